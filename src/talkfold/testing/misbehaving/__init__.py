"""Adapters that misbehave, one for each thing that an adapter may get wrong: to test whatever runs adapters.

```python
@pytest.mark.parametrize("name", MISBEHAVING)
async def test_my_host_survives(name):
    case = MISBEHAVING[name]
    async with start_run(store, "chat", case.adapter(), text="Hi", tools=Toolbox(my_tool)) as run:
        ...
```

A host gives each of them one tool that takes ``{}``. Those that need it call the first tool that they see.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .calling import CALLING
from .hanging import HANGING
from .raising import RAISING
from .saying import SAYING
from .table import STUBBORN_SECONDS, Misbehaviour

__all__ = ("MISBEHAVING", "STUBBORN_SECONDS", "Misbehaviour")

MISBEHAVING: Mapping[str, Misbehaviour] = MappingProxyType({**RAISING, **HANGING, **SAYING, **CALLING})
"""Every misbehaviour by its name."""
