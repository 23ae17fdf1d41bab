"""What users need to test what they build on talkfold.

``scripted`` is an adapter that plays a script in place of a model. ``adapter_contract``, ``tool_contract`` and
``store_contract`` are the tests that every adapter, source of tools and store must pass (they need pytest);
``misbehaving`` are adapters that do one thing wrong each, for whoever runs adapters. ``strategies`` makes conversations
of every shape (needs hypothesis). Nothing in talkfold itself imports them.
"""

from __future__ import annotations

__all__ = ()
