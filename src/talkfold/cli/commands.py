"""Every command as data: its name, where its code is, the group it is shown in, and an example that runs.

Adding a command is a row here and a function there. The code of a command is imported only when it is called.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ("COMMANDS", "GROUPS", "Command")


class Command(NamedTuple):
    """A command: ``target`` is ``module:function``, ``example`` is what a person would type."""

    name: str
    target: str
    group: str
    example: str


_START = "Start here"
_LOOK = "Look at a session"
_LIVE = "Live runs"
_MOVE = "In and out"
_CHANGE = "Change a session"
_PLACE = "The database"
_PURE = "Without a database"

GROUPS = (_START, _LOOK, _LIVE, _MOVE, _CHANGE, _PLACE, _PURE)
"""The groups in the order of the help page."""


def _command(group: str, name: str, target: str, example: str) -> Command:
    return Command(name, f"talkfold.cli.{target}", group, f"talkfold {name}{example and ' '}{example}")


COMMANDS = (
    _command(_START, "demo", "demo:demo", ""),
    _command(_LOOK, "list", "sessions:list_sessions", "--title mugs"),
    _command(_LOOK, "search", "searching:search", "blue mug*"),
    _command(_LOOK, "show", "reading:show", "order-17 --at 4"),
    _command(_LOOK, "steps", "stepping:steps", "order-17 --from 3 --to 9"),
    _command(_LOOK, "step", "inspecting:step", "order-17 5"),
    _command(_LOOK, "tail", "tailing:tail", "order-17 -n 3"),
    _command(_LOOK, "retry", "reading:retry", "order-17"),
    _command(_LOOK, "diff", "comparing:diff", "order-17 4 9"),
    _command(_LOOK, "blame", "blaming:blame", "order-17 --call c1"),
    _command(_LOOK, "whatif", "supposing:whatif", "order-17 --skip-call c1"),
    _command(_LOOK, "lanes", "waterfall:lanes", "order-17"),
    _command(_LOOK, "stats", "timing:stats", "--all"),
    _command(_LOOK, "findings", "finding:findings", "order-17"),
    _command(_LOOK, "check", "proof:check", "--all"),
    _command(_LIVE, "follow", "running:follow", "order-17"),
    _command(_LIVE, "stop", "running:stop", "order-17 --reason 'The wrong mugs'"),
    _command(_LIVE, "approve", "answering:approve", "order-18 c1 --yes"),
    _command(_LIVE, "deny", "answering:deny", "order-18 c1 --yes --reason 'Too expensive'"),
    _command(_MOVE, "import", "importing:import_file", "--format openai chats.jsonl"),
    _command(_MOVE, "export", "exporting:export", "order-17 --format openai"),
    _command(_CHANGE, "settle", "settling:settle", "--all"),
    _command(_CHANGE, "fork", "sessions:fork", "order-17 --at 4"),
    _command(_CHANGE, "rename", "sessions:rename", "order-17 'Two blue mugs'"),
    _command(_CHANGE, "erase", "erasing:erase", "order-17 --yes"),
    _command(_CHANGE, "retain", "retaining:retain", "--older-than 90d"),
    _command(_PLACE, "migrate", "database:migrate", "--check"),
    _command(_PLACE, "doctor", "database:doctor", ""),
    _command(_PURE, "fold", "folding:fold_log", "run.jsonl"),
    _command(_PURE, "resumable", "folding:resumable_messages", "messages.json"),
)
"""All commands in the order of the help page."""
