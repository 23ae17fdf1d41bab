"""Every fault at every point of a run, on every level: the session is at rest afterwards, for every later process."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from aftermath import Asked, Found, examine_all, examine_in_new_process
from fault_play import Outcome, play
from faults import FAULTS, FLOOD, Cell, Fault, cells

from talkfold import RunError
from talkfold.store import open_store

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning"),
]


_UNSETTLED = {"call-never-ended", "run-without-end", "settled-again", "fenced-run-wrote"}
"""What no run may leave behind, whatever happened to it."""


def judged(cell: Cell, outcome: Outcome, found: Found) -> list[str]:
    """What is wrong with how a cell ended."""
    says, ending = cell.says, outcome.ending
    wrong = list(found.problems)

    def must(holds: object, text: str) -> None:
        if not holds:
            wrong.append(text)

    must(outcome.raised is None or outcome.raised in says.raises, f"the block raised {outcome.raised}")
    if ending is None:
        return [*wrong, "the run has no ending"]
    part = ending.part
    reason = None if part is None else "error" if isinstance(part, RunError) else part.reason
    must((ending.cause, reason) in zip(says.causes, says.reasons, strict=True), f"it ended by {ending.cause}, {reason}")
    codes = {fault.code for fault in ending.faults}
    must(codes >= {*says.needs}, f"the faults {codes} do not name {says.needs}")
    must(codes <= {*says.needs, *says.may}, f"the faults {codes}, of which only {says.needs} happened")
    if found.erased:
        must(cell.fault.name == "erased", "the session is erased")
    elif part is not None:
        noted = found.meta.get("faults", [])
        must({each["code"] for each in noted} == codes, f"the log names the faults {noted}")  # type: ignore[union-attr, index, call-overload]
        must(found.meta.get("cause", "agent") == ending.cause, f"the log names the cause {found.meta}")
        must(found.reason == reason, f"the log ends with {found.reason}")
    if not found.erased:
        must(codes <= {*found.findings}, f"the findings {found.findings} do not tell of {codes}")
        must(_UNSETTLED.isdisjoint(found.findings), f"the findings are {found.findings}")
    outcome_is = cell.fault.outcome
    must(outcome_is is None or (found.second or "").startswith(outcome_is), f"the call ended with {found.second}")
    if cell.point[0] == "parked" and not found.erased:
        must((found.second or "").startswith(("cancelled", "Error [cancelled]")), f"it ended with {found.second}")
    must(not found.settled, "somebody else had to settle it")
    return [f"{cell.name}: {text}" for text in wrong]


async def played(path: Path | None, wanted: list[Cell], lines: Path, flood: int = FLOOD) -> list[str]:
    """Play cells at the same time, close the store, look at their sessions in a new process; what is wrong."""
    outcomes: dict[str, Outcome] = {}
    asked = [Asked(cell.name, cell.level) for cell in wanted]
    async with open_store("memory:" if path is None else path) as store:

        async def one(cell: Cell) -> None:
            with anyio.fail_after(30):
                outcomes[cell.name] = await play(cell, store, cell.name, lines, flood=flood)

        async with anyio.create_task_group() as tasks:
            for cell in wanted:
                tasks.start_soon(one, cell)
        if path is None:
            found = await examine_all(store, asked, lines)
    if path is not None:
        found = await anyio.to_thread.run_sync(examine_in_new_process, path, asked, lines)
    return [text for cell, each in zip(wanted, found, strict=True) for text in judged(cell, outcomes[cell.name], each)]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_the_session_is_at_rest(fault: Fault, store_kind: str, anyio_backend: str, tmp_path: Path) -> None:
    if fault.native and anyio_backend != "asyncio":
        pytest.skip("only asyncio has such tasks")
    path = tmp_path / "chat.db" if store_kind == "sqlite" else None
    assert await played(path, cells(fault), tmp_path / "lines") == []


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["text-delta", "call_tool", "finish"])
async def test_a_hundred_thousand_parts(kind: str, store_kind: str, anyio_backend: str, tmp_path: Path) -> None:
    floods = next(fault for fault in FAULTS if fault.name == "floods")
    path = tmp_path / "chat.db" if store_kind == "sqlite" else None
    wanted = [cell for cell in cells(floods) if cell.point == ("before", kind)]
    assert await played(path, wanted, tmp_path / "lines", flood=100_000) == []
