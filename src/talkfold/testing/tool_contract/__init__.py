"""The contract of a source of tools, as tests that any implementation can inherit.

    from talkfold.runs import ToolCallRequest
    from talkfold.testing.tool_contract import ToolContract

    class TestMyTools(ToolContract):
        def open(self):
            return MyTools.connect(...)

        def working(self):
            return ToolCallRequest("c1", "add", {"a": 1, "b": 2})

``open()`` gives an async context manager of a source with its tools in it. The other hooks name calls of each kind;
what a call is not given for is skipped. The tests run under anyio's pytest plugin, on asyncio; override the fixture
``anyio_backend`` for trio. What they demand is what the docstrings of ``ToolSource`` say, nothing of how it is done.
"""

from __future__ import annotations

import pytest

# Before the modules with the asserts are imported: a failing test then shows the values it compared.
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in ("calling", "listing", "uses")))

from .calling import Calling  # noqa: E402
from .listing import Listing  # noqa: E402

__all__ = ("ToolContract",)


class ToolContract(Listing, Calling):
    """Every test of the contract. Inherit it, name the class ``Test…``, and say how to ``open`` a source."""
