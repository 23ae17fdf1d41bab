"""The contract of a store, as tests that any implementation can inherit.

    from talkfold.testing.store_contract import METADATA_KEYS, StoreContract

    class TestMyStore(StoreContract):
        def open(self):
            return open_my_store(..., metadata_keys=METADATA_KEYS, clock=self.clock)

``open()`` gives an async context manager of a new, empty store; ``self.clock`` gives milliseconds since 1970, and the
tests of leases stop it. The tests run under anyio's pytest plugin, on asyncio.
What they demand is what the docstrings of ``SessionStore`` say, nothing of how a store does it.
"""

from __future__ import annotations

import pytest

# Before the modules with the asserts are imported: a failing test then shows the values it compared.
pytest.register_assert_rewrite(
    *(
        f"{__name__}.{part}"
        for part in (
            "appending",
            "keys",
            "reading",
            "sessions",
            "forks",
            "listing",
            "owners",
            "following",
            "starting",
            "holding",
            "waiting",
            "watching",
            "searching",
            "proving",
            "erasing",
            "retaining",
            "tokens",
        )
    )
)

from .appending import Appending  # noqa: E402
from .clock import Clock  # noqa: E402
from .erasing import Erasing  # noqa: E402
from .following import Following  # noqa: E402
from .forks import Forks  # noqa: E402
from .holding import Holding  # noqa: E402
from .keys import Keys  # noqa: E402
from .listing import Listing  # noqa: E402
from .opening import METADATA_KEYS  # noqa: E402
from .owners import Owners  # noqa: E402
from .proving import Proving  # noqa: E402
from .reading import Reading  # noqa: E402
from .retaining import Retaining  # noqa: E402
from .searching import Searching  # noqa: E402
from .sessions import Sessions  # noqa: E402
from .starting import Starting  # noqa: E402
from .tokens import TokensKept  # noqa: E402
from .waiting import Waits  # noqa: E402
from .watching import Watching  # noqa: E402

__all__ = ("METADATA_KEYS", "Clock", "StoreContract")


class StoreContract(
    Sessions,
    Appending,
    Keys,
    Reading,
    Forks,
    Listing,
    Owners,
    Following,
    Starting,
    Holding,
    Waits,
    Watching,
    Searching,
    Proving,
    Erasing,
    Retaining,
    TokensKept,
):
    """Every test of the contract. Inherit it, name the class ``Test…``, and say how to ``open`` a store."""
