"""What users need to test what they build on talkfold.

``store_contract`` is the tests that every store must pass (needs pytest); ``strategies`` makes conversations of
every shape (needs hypothesis). Nothing in talkfold itself imports them.
"""

from __future__ import annotations

__all__ = ()
