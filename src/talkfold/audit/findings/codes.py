"""Every finding that there is: its code, how grave it is, its sentence, and what to do about it.

``docs/findings.md`` is made from this table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

__all__ = ("AGENT_FAULTS", "FINDINGS", "Finding", "FindingKind", "Severity", "to_page")

Severity: TypeAlias = Literal["error", "warning", "info"]
"""``error``: the conversation goes wrong there, or a promise was broken. ``warning``: somebody should look. ``info``:
worth knowing."""


class Finding(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Something that a log shows.

    ``numbers`` are the actions concerned; the first one is where it shows. ``message_id``, ``call_id``, ``within`` (the
    delegate call around it) and ``run`` are set where it is about one.
    """

    code: str
    severity: Severity
    numbers: tuple[int, ...]
    text: str
    next_step: str
    message_id: str | None = None
    call_id: str | None = None
    within: str | None = None
    run: str | None = None


class FindingKind(Struct, frozen=True):
    """What all findings of one code have in common. ``sentence`` has the names of what is put in between braces."""

    severity: Severity
    sentence: str
    next_step: str


_AGENT = "The agent of the run that ended with action {number} broke its contract {times}: {told}."
_CHECK_ADAPTER = "Run the adapter against the contract in talkfold.testing.adapter_contract, and mend it."

AGENT_FAULTS: Final[Mapping[str, FindingKind]] = {
    "agent-raised": FindingKind(
        "error", _AGENT, "Read the adapter's log of that time. Retry goes on after the last call."
    ),
    "no-end": FindingKind("error", _AGENT, "Let the adapter end every run with finish or error, then Retry."),
    "not-a-part": FindingKind("error", _AGENT, _CHECK_ADAPTER),
    "unstorable-part": FindingKind(
        "error", _AGENT, "Let the adapter yield legal JSON within the limits; the part is lost."
    ),
    "part-after-end": FindingKind(
        "warning", _AGENT, "Let the adapter yield nothing after its end; those parts are lost."
    ),
    "open-call": FindingKind("warning", _AGENT, "Look whether the tool ran; let the adapter await each call's result."),
    "unsaid-call": FindingKind("warning", _AGENT, "Let the adapter yield tool-call before it makes the call."),
    "changed-call": FindingKind("warning", _AGENT, "Let the adapter make each call with the input that it yielded."),
    "changed-outcome": FindingKind("warning", _AGENT, "Let the adapter report what its tools gave; the result stays."),
    "unknown-call": FindingKind("warning", _AGENT, "Let the adapter report outcomes of its own calls only."),
    "unknown-message": FindingKind("warning", _AGENT, "Let the adapter yield message-start before what belongs to it."),
    "agent-fault": FindingKind("warning", _AGENT, _CHECK_ADAPTER),
}
"""What an adapter did against its contract, as its run noted it; ``agent-fault`` is any that is not known here."""

FINDINGS: Final[Mapping[str, FindingKind]] = {
    # ---- the rows themselves
    "number-gap": FindingKind(
        "error",
        "After action {last} comes action {number}: what stood between them is missing.",
        "Read the log from its start. If rows are gone, check the store (talkfold check) and restore a backup.",
    ),
    "number-again": FindingKind(
        "error",
        "After action {last} comes action {number}: numbers must rise by one.",
        "Look where the rows come from: two logs were mixed, or pages were read twice.",
    ),
    "time-back": FindingKind(
        "info",
        "Action {number} is {seconds} s older than action {last} before it.",
        "Trust the numbers; check the clocks of the machines that write.",
    ),
    "lone-surrogate": FindingKind(
        "info",
        "Action {number} carries half of a UTF-16 pair without the other half.",
        "Nothing, unless text looks damaged: exports to providers send U+FFFD in its place.",
    ),
    "huge-part": FindingKind(
        "info",
        "Action {number} alone has {size} bytes.",
        "See whether a tool can answer with less: the model pays for all of it in every later request.",
    ),
    # ---- turns
    "turn-without-message": FindingKind(
        "info",
        "With action {number} the agent speaks before the person has said anything.",
        "Nothing for an imported greeting. Retry is not possible before the person speaks.",
    ),
    "send-over-run": FindingKind(
        "error",
        "Action {number} is a new message while the turn that began with action {began} still goes on.",
        "Wait for the run's end or stop it first; start_run does either.",
    ),
    "retry-over-run": FindingKind(
        "error",
        "Action {number} tries again while the turn that began with action {began} still goes on.",
        "Wait for the run's end or stop it first; retry_run does either.",
    ),
    "send-over-open-call": FindingKind(
        "warning",
        "Action {number} is a new message while {calls} had not ended.",
        "Look whether the tools ran. Exports give such calls a neutral outcome, so providers take the conversation.",
    ),
    "retry-without-message": FindingKind(
        "warning",
        "Action {number} tries again, but there is no message of a person: nothing happened.",
        "Send a message first.",
    ),
    "retry-repeats-calls": FindingKind(
        "warning",
        "The retry of action {number} drops a sub-agent's run in which {calls} had finished: they may be made again.",
        "Look whether they were: retry_run reuses the outcome of a call that is made again with the same input.",
    ),
    "run-without-end": FindingKind(
        "error",
        "The turn that began with action {began} has no end: no finish, error or stop comes up to action {number}.",
        "Open the session with open_session: it settles what a dead run left open. Then Retry.",
    ),
    "empty-reply": FindingKind(
        "warning",
        "Action {number} ends the turn of {where} well, but nothing was said in it.",
        "Look at the model's raw answer; a filter or an empty completion is the usual cause. Then Retry.",
    ),
    "part-outside-turn": FindingKind(
        "error",
        "Action {number} is a part for {where}, whose turn is over.",
        "Look at the adapter: nothing may come after finish or error. What came is part of the conversation.",
    ),
    "end-again": FindingKind(
        "warning",
        "Action {number} ends the turn of {where} once more.",
        "Look at the adapter: a turn ends once. The later end decides the session's status.",
    ),
    "part-after-stop": FindingKind(
        "info",
        "Action {number} comes after the stop: it was on its way, or the agent went on.",
        "Nothing: what came is kept, and Retry drops it.",
    ),
    "call-after-stop": FindingKind(
        "warning",
        "The call {call} of action {other} was made after the stop, and its tool ran: action {number} is its outcome.",
        "Let the adapter watch its signal, and make calls by the run's call_tool: after a stop that begins no tool.",
    ),
    # ---- runs
    "run-settled": FindingKind(
        "info",
        "The process of run {who} died ({cause}); action {number} stopped what it had left open.",
        "Retry goes on after the last finished call.",
    ),
    "settled-again": FindingKind(
        "error",
        "Action {number} settles run {who} a second time.",
        "Check that all processes use this store by talkfold, of one version: a run is settled once.",
    ),
    "fenced-run-wrote": FindingKind(
        "error",
        "Action {number} is of run {who}, which had been settled: its process was taken for dead and wrote on.",
        "Check that every write of a run names its lease; what it wrote is part of the conversation.",
    ),
    "run-after-end": FindingKind(
        "error",
        "Action {number} is of run {who}, which had ended.",
        "Look at who writes: after its end a run writes nothing.",
    ),
    "runs-interleaved": FindingKind(
        "error",
        "Action {number} is of run {who}, in the middle of a turn of run {current}.",
        "Look at who writes: one run at a time owns a session, by its lease.",
    ),
    "run-cancelled": FindingKind(
        "info",
        "The run that ended with action {number} was cancelled by the program that started it.",
        "Retry goes on after the last finished call.",
    ),
    "run-raised": FindingKind(
        "warning",
        "The run that ended with action {number} was cut off: the program that started it raised an exception.",
        "Read that program's log, then Retry.",
    ),
    "run-store-failed": FindingKind(
        "error",
        "The run that ended with action {number} could not store what happened.",
        "Look at the disk and the database (talkfold check). What its last calls did may be missing here.",
    ),
    "parts-dropped": FindingKind(
        "info",
        "The run that ended with action {number} left out {count} parts that came after its stop.",
        "Nothing: nobody waited for them.",
    ),
    # ---- messages
    "message-id-again": FindingKind(
        "warning",
        "Action {number} begins a message {message}, which is the id of the message of action {other} already.",
        "Let the adapter give new ids: parts for this id go to the newest such message.",
    ),
    "part-for-unknown-message": FindingKind(
        "error",
        "Action {number} is for a message {message}, which {where} does not have: it is lost.",
        "Let the adapter yield message-start first, and look whether ids are mixed up.",
    ),
    "part-for-user-message": FindingKind(
        "error",
        "Action {number} is for the message {message}, which the person wrote: it is lost.",
        "Let the adapter begin a message of its own; a part never edits what the person wrote.",
    ),
    # ---- calls
    "outcome-without-call": FindingKind(
        "error",
        "Action {number} is the outcome of a call {call}, which {where} does not have.",
        "Look for the call that it belongs to: that call has no outcome now. Let the adapter keep ids as they are.",
    ),
    "outcome-on-wrong-level": FindingKind(
        "error",
        "Action {number} is the outcome of a call {call} of {where}, but that call stands in {there}.",
        "Let the adapter write the outcome with the within of its call.",
    ),
    "call-never-ended": FindingKind(
        "error",
        "The call {call} of action {number} never got an outcome, and nothing cancelled it.",
        "Look whether its tool ran. Open the session with open_session, which settles it; exports heal it.",
    ),
    "finish-over-open-call": FindingKind(
        "warning",
        "Action {number} finishes the turn of {where} while {calls} had not ended.",
        "Look whether the tools ran; let the adapter await its calls before it finishes.",
    ),
    "call-outlives-delegate": FindingKind(
        "error",
        "Action {number} ends the call {call}, but inside its run {calls} had not ended.",
        "Look whether the tools ran; let the sub-agent end its calls before it answers.",
    ),
    "call-id-in-use": FindingKind(
        "error",
        "Action {number} makes a call {call} while the call of action {other} with the same id is open.",
        "Let the adapter give new ids: the next outcome goes to the newer call, whichever it was meant for.",
    ),
    "call-id-again": FindingKind(
        "info",
        "Action {number} makes a call {call}; the ended call of action {other} has the same id.",
        "Nothing: exports give the later call an id of its own.",
    ),
    "delegate-id-in-use": FindingKind(
        "error",
        "Action {number} makes a delegate call {call}, and the one of action {other} on another level has the same id.",
        "Let the adapter give new ids: within names a delegate call by its id alone.",
    ),
    "outcome-again": FindingKind(
        "info",
        "Action {number} says again what action {other} said about the call {call}.",
        "Nothing: it changes nothing.",
    ),
    "outcome-replaced": FindingKind(
        "warning",
        "Action {number} gives the call {call} another outcome than action {other} did: the later one counts.",
        "See which of the two the tool gave. Two outcomes with one id may also belong to two calls.",
    ),
    "result-after-stop": FindingKind(
        "info",
        "Action {number} is the outcome of the call {call}, which had been stopped: its tool did run.",
        "Nothing: the outcome counts, and Retry does not run the tool again.",
    ),
    "outcome-after-end": FindingKind(
        "warning",
        "Action {number} is the outcome of the call {call}, and comes after the end of its turn: it counts.",
        "Let the adapter await its calls before it ends.",
    ),
    "outcome-reused": FindingKind(
        "info",
        "The outcome of the call {call} in action {number} is that of an earlier run: the tool did not run again.",
        "Nothing: it spares the world a second effect.",
    ),
    "approval-denied": FindingKind("info", "Action {number}: a person declined the call {call}.", "Nothing."),
    "approval-expired": FindingKind(
        "info",
        "Action {number}: nobody answered in time whether the call {call} may run.",
        "Give people more time (approval_seconds), or see why nobody was asked.",
    ),
    "phase-without-call": FindingKind(
        "warning",
        "Action {number} is a phase of the tool {tool}, of which no call is open: nothing happened.",
        "Look who wrote it: the call had ended, or the name is wrong.",
    ),
    "phase-ambiguous": FindingKind(
        "warning",
        "Action {number} is a phase of the tool {tool}, of which {count} calls are open: the newest, {call}, took it.",
        "Have one call of a tool wait at a time, or note in meta.call which one is meant.",
    ),
    # ---- sub-agents
    "within-unknown-call": FindingKind(
        "error",
        "Action {number} is for the run inside a call {within}, and there is no such call: it is lost.",
        "Let the adapter log the delegate call before the parts of its run.",
    ),
    "within-not-delegate": FindingKind(
        "error",
        "Action {number} is for the run inside the call {within}, which is no delegate call: it is lost.",
        "Only calls named delegate_to_… have a run inside.",
    ),
    "within-finished-call": FindingKind(
        "error",
        "Action {number} is for the run inside the call {within}, which ended with action {other}.",
        "Let the sub-agent end before its call does; what came is part of the conversation.",
    ),
    "delegate-without-run": FindingKind(
        "warning",
        "Action {number} answers the delegate call {call}, but its sub-agent never said or did anything.",
        "Look whether the sub-agent ran at all, or its parts were logged under another id.",
    ),
    "nested-run-without-end": FindingKind(
        "warning",
        "Action {number} ends the delegate call {call}, but the run inside has no end.",
        "Let the sub-agent end with finish or error before its call does.",
    ),
    **AGENT_FAULTS,
}
"""Every code, in the order in which the page tells them."""


def to_page() -> str:
    """The table as a page of Markdown: ``docs/findings.md``."""
    lines = [
        f"| `{code}` | {kind.severity} | {re.sub(r'{[^}]*}', '…', kind.sentence)} | {kind.next_step} |"
        for code, kind in FINDINGS.items()
    ]
    return _PAGE + "\n".join(lines) + "\n"


_PAGE = """\
# What a log shows

<!-- Made from the table in src/talkfold/audit/findings/codes.py; do not edit. -->

`findings(rows)` reads a log once and tells what went wrong in it, or is worth knowing. It changes nothing. An *error*
is where the conversation goes wrong or a promise was broken; a *warning* is where somebody should look; an *info* is
worth knowing.

```python
import asyncio

from talkfold import Send
from talkfold.audit import Auditor, findings
from talkfold.store import open_store


async def main() -> None:
    async with open_store("memory:") as store:
        session = await store.create()
        await store.append(session.id, [Send("u1", "Two mugs."), Send("u2", "No, three.")])
        rows = await store.read(session.id)

    for finding in findings(rows):
        print(finding.severity, finding.numbers, finding.text, finding.next_step)

    auditor = Auditor()  # a log that still grows
    for row in rows:
        print(auditor.feed([row]))  # what is certain now
    print(auditor.pending(living=True))  # what would be told if the log ended here, while its run lives


asyncio.run(main())
```

Each finding has a stable `code`, its `severity`, the `numbers` of the actions concerned (the first is where it shows),
a `text`, a `nextStep`, and where it is about one of them `messageId`, `callId`, `within` and `run`. What repeats for
the same message, call or run within one turn is told once, where it begins.

| code | severity | what it says | next step |
|---|---|---|---|
"""
