"""The peers: what else keeps agent conversations in SQLite from Python.

Each is imported only when it is measured, and one that is not installed is named with the reason, never left
out silently.
"""

from __future__ import annotations

from importlib import import_module

from ..stores import Store

__all__ = ("load_peers",)

MODULES = ("openai_agents", "google_adk", "langgraph_sqlite", "event_sourcing")


def load_peers() -> tuple[list[Store], dict[str, str]]:
    """The stores of every peer that can be imported, and for each other one why not."""
    stores: list[Store] = []
    missing: dict[str, str] = {}
    for name in MODULES:
        try:
            stores += import_module(f".{name}", __name__).STORES
        except ImportError as error:
            missing[name] = str(error)
    return stores, missing
