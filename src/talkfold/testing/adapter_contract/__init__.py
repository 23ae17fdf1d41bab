"""The contract of an adapter, as tests that any implementation can inherit.

    from talkfold.testing.adapter_contract import AdapterContract, Scenario

    class TestMyAdapter(AdapterContract):
        def adapter(self):
            return MyAdapter(url=self.fake_provider.url)

        def calling(self):
            return Scenario("Call the tool probe once, then say what it gave.")

``adapter()`` gives an adapter; the scenarios say how to make it do something. What a scenario is not given for is
skipped. The tests run under anyio's pytest plugin, on asyncio; override the fixture ``anyio_backend`` for trio.
What they demand is what ``talkfold.runs.adapter`` says, nothing of how an adapter does it.
"""

from __future__ import annotations

try:
    import pytest
except ModuleNotFoundError:
    raise ModuleNotFoundError("the adapter contract is made of pytest tests: install pytest", name="pytest") from None

# Before the modules with the asserts are imported: a failing test then shows the values it compared.
pytest.register_assert_rewrite(
    *(f"{__name__}.{part}" for part in ("calls", "messages", "readiness", "runs", "stopping", "uses"))
)

from .calls import Calls  # noqa: E402
from .messages import Messages  # noqa: E402
from .readiness import Readiness  # noqa: E402
from .record import Record, play  # noqa: E402
from .rules import RULES, broken  # noqa: E402
from .runs import Runs  # noqa: E402
from .stopping import Stopping  # noqa: E402
from .uses import PROBE, Scenario  # noqa: E402

__all__ = ("PROBE", "RULES", "AdapterContract", "Record", "Scenario", "broken", "play")


class AdapterContract(Messages, Calls, Stopping, Readiness, Runs):
    """Every test of the contract. Inherit it, name the class ``Test…``, and say how to make an ``adapter``."""
