"""The page on observability: its examples run, and it names all that there is."""

from __future__ import annotations

import re
from pathlib import Path

from traces import ROOT, python

PAGE = (ROOT / "docs" / "observability.md").read_text(encoding="utf-8")

SHOP = """
import anyio
from run_world import Agent, calls
from talkfold.runs import Toolbox
from talkfold.store import open_store

def add(a: int, b: int) -> int:
    return a + b

async def main():
    agent = Agent(calls(("c1", "add", {"a": 1, "b": 2})))
    async with open_store("memory:") as store:
        await store.create("chat")
        for observe in (watch, traced):
            await answer(store, "chat", agent, "What is 1 + 2?", Toolbox(add), observe)
        for row in await store.read("chat"):
            if row.meta:
                print(row.meta["trace"])

anyio.run(main)
"""


def test_the_pages_examples_run() -> None:
    examples = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(examples) == 2
    done = python("\n".join([f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})", *examples, SHOP]))
    assert (done.returncode, done.stderr) == (0, "")
    first, second, trace_id, *rest = done.stdout.splitlines()
    assert re.fullmatch(r"add: done after \d\.\d s", first)
    assert second == "run: agent, stop, 5 parts"
    said = "\n".join(rest)
    assert said.count(f'"trace_id": "0x{trace_id}"') == 2
    assert re.findall(r'"name": "(.*)"', said) == ["execute_tool add", "invoke_agent agent"]
    assert '"service.name": "shop"' in said


def test_the_page_names_every_attribute_event_and_logger() -> None:
    source = (ROOT / "src" / "talkfold" / "runs" / "tracing.py").read_text(encoding="utf-8")
    said = set(re.findall(r'"((?:gen_ai|talkfold|error)\.[a-z_.]+)"', source))
    assert len(said) > 20
    assert sorted(name for name in said if f"`{name}`" not in PAGE) == []
    loggers = set()
    for path in (ROOT / "src" / "talkfold" / "runs").rglob("*.py"):
        made = re.search(r"getLogger\((__name__|\"[\w.]+\")\)", path.read_text(encoding="utf-8"))
        if made:
            own = path.relative_to(ROOT / "src").with_suffix("").as_posix().replace("/", ".")
            loggers.add(own if made[1] == "__name__" else made[1].strip('"'))
    assert len(loggers) > 5
    assert sorted(name for name in loggers if f"`{name}`" not in PAGE) == []
