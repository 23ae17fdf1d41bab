"""Whatever an adapter does, its run ends in time, the log ends well, and the session can go on."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import pytest
from run_world import at_rest

from talkfold import Finish, Part, RunError, SessionState, ToolPart
from talkfold.healing import heal
from talkfold.runs import Run, RunSettings, SubAgent, Toolbox, start_run
from talkfold.store import SessionStore, open_store
from talkfold.testing.misbehaving import MISBEHAVING, Misbehaviour
from talkfold.testing.scripted import ScriptedAdapter, call, say, script

GRACE = 0.3
SETTINGS = RunSettings(grace_seconds=GRACE)

pytestmark = [
    # These adapters leave iterators and coroutines behind on purpose; nobody else is to blame for it.
    pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:coroutine '_run_is_a_coroutine' was never awaited:RuntimeWarning"),
]

_LATE = "what is refused in the last commit is told too late: the run ends well and without a fault"
_END = "an end that no log takes raises out of start_run, and the session stays open until its lease is over"
_UNCHECKED = "a field of the wrong type raises out of start_run, before any codec has seen the part"

NOT_YET: dict[str, str] = {}
"""What runs do not survive yet, and how it shows."""


def each_case() -> Iterator[object]:
    for name in MISBEHAVING:
        marks = [pytest.mark.xfail(reason=NOT_YET[name])] if name in NOT_YET else []
        yield pytest.param(name, marks=marks)


def calls(state: SessionState) -> Iterator[ToolPart]:
    return (part for message in state.messages for part in message.parts if isinstance(part, ToolPart))


def tools() -> tuple[Toolbox, list[object]]:
    """A box with one tool, and the inputs with which it ran."""
    ran = list[object]()

    def act(amount: int = 0) -> str:
        """Act."""
        ran.append({"amount": amount} if amount else {})
        return "done"

    return Toolbox(act), ran


async def play(store: SessionStore, case: Misbehaviour, box: Toolbox) -> Run:
    """The run, when it is over. Where it must be stopped, Stop comes once it has had time to begin."""
    async with start_run(store, "s", case.adapter(), text="Go", tools=box, settings=SETTINGS) as run:
        if case.until_stop:
            await anyio.sleep(0.1)
            await run.stop()
        with anyio.fail_after(GRACE + 2):  # from outside: the adapter itself may still hold out
            while (await store.get("s")).lease is not None:  # noqa: ASYNC110 -- a store tells of appends, not of leases
                await anyio.sleep(0.02)
    return run


def reason(run: Run) -> str | None:
    part = run.ending.part if run.ending else None
    return "error" if isinstance(part, RunError) else part.reason if isinstance(part, Finish) else None


@pytest.mark.parametrize("name", list(each_case()))
async def test_the_run_ends_well(name: str, store: SessionStore) -> None:
    case = MISBEHAVING[name]
    await store.create("s")
    box, ran = tools()
    run = await play(store, case, box)

    session, state = await store.get("s"), (await store.state("s")).state
    assert session.lease is None
    assert session.status == state.status == case.status
    assert [made for made in calls(state) if made.state in ("running", "awaiting-confirmation")] == []
    assert run.ending is not None
    assert (reason(run), {fault.code for fault in run.ending.faults}) == (case.reason, case.faults)
    assert run.ending.cause == ("stop" if case.until_stop else "agent")
    assert (await store.check("s")).problems == ()

    log = await store.read("s", after=max(0, session.number - 500))
    assert log[-1].action == Part(run.ending.part)
    said = [row.action.part.input for row in log if isinstance(row.action, Part) and hasattr(row.action.part, "input")]
    assert [given for given in ran if given not in said] == []  # no tool ran with what the log does not show

    async with start_run(store, "s", ScriptedAdapter(script(), script(say("Here."))), text="Again") as after:
        pass
    assert after.ending is not None
    assert (after.ending.part, after.ending.faults) == (Finish("stop"), ())
    healed = heal((await store.state("s")).state.messages)
    assert heal(healed.messages).healed == ()


# Each of them takes STUBBORN_SECONDS, and there is nothing new to see.
STUBBORN = ("catches-its-cancellation", "shields-its-finally", "talks-on-when-cancelled")


@pytest.mark.parametrize("name", [name for name in MISBEHAVING if name not in {*STUBBORN, *NOT_YET}])
async def test_a_sub_agent_that_does_it_harms_nobody(name: str, anyio_backend: str) -> None:
    """The delegate call fails or gives something; the agent that made it, and the session, go on."""
    case = MISBEHAVING[name]
    box, _ = tools()
    agents = [SubAgent("odd", case.adapter(), "Does something odd.", tools=box)]
    outer = ScriptedAdapter(script(call("delegate_to_odd", task="Go"), say("Well.")))
    async with open_store("memory:") as store:
        await store.create("s")
        async with start_run(store, "s", outer, text="Go", agents=agents, settings=SETTINGS) as run:
            if case.until_stop:
                await anyio.sleep(0.1)
                await run.stop()
            with anyio.fail_after(GRACE + 2):
                await run.wait()
        await at_rest(store, "s")
        assert run.ending is not None
        assert {fault.code for fault in run.ending.faults} == case.faults
        if case.until_stop:
            assert run.ending.part == Finish("aborted")
        elif "unstorable-part" not in case.faults:  # that one ends the whole run: its log is not what was said
            assert run.ending.part == Finish("stop")
