"""Logs with one fault each, made of healthy ones: for whoever reads logs and must see what is wrong with them.

```python
broken = FAULTS["outcome-missing"].make(rows, Random(1))
if broken is not None:                      # None: there is no place in this log for that fault
    assert broken.expected <= {(f.code, f.numbers[0]) for f in findings(broken.rows)}
```

A healthy log is one in which ``talkfold.audit.findings`` has nothing but infos, with ids that are used once. Rows are
inserted, taken out or changed, and numbered anew; their bodies fit, their hashes are gone. The places are found with
the fold, not with what is tested.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from . import _calls, _rows, _turns
from ._places import Broken, LogFault, numbered, row_of

__all__ = ("FAULTS", "Broken", "LogFault", "numbered", "row_of")

FAULTS: Final[Mapping[str, LogFault]] = {**_rows.FAULTS, **_turns.FAULTS, **_calls.FAULTS}
"""Every fault, by name."""
