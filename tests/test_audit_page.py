"""docs/audit.md: its commands run, one after the other, and print what stands there; so does its Python.

``python tests/test_audit_page.py`` writes what they print today into the page.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from talkfold.cli.commands import COMMANDS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "audit.md"
BLOCK = re.compile(r"^```sh\n(?P<command>.*?)^```\n(?P<between>\n)?(?:^```text\n(?P<output>.*?)^```$)?", re.M | re.S)


def printed(command: str, folder: Path) -> str:
    """What a command of the page prints to a pipe, in a folder with the examples and a database of its own."""
    name, *arguments = shlex.split(command)
    assert name == "talkfold"
    environment = {"PATH": os.environ["PATH"], "TALKFOLD_DB": "chat.db"}
    ended = subprocess.run(
        [sys.executable, "-m", "talkfold", *arguments], cwd=folder, env=environment, capture_output=True, check=False
    )
    assert ended.returncode == 0, (command, ended.stderr.decode())
    return "".join(f"{line.rstrip()}\n" for line in ended.stdout.decode().splitlines())


def filled(page: str, folder: Path) -> str:
    """The page with what its commands print now."""
    shutil.copytree(ROOT / "examples", folder / "examples")

    def run(block: re.Match[str]) -> str:
        output = printed(block["command"], folder)
        start = f"```sh\n{block['command']}```\n{block['between'] or ''}"
        return start if block["output"] is None else f"{start}```text\n{output}```"

    return BLOCK.sub(run, page)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit")


def test_its_commands_print_what_stands_there(folder: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page, folder) == page
    assert (folder / "order-41.html").stat().st_size > 1000


def test_its_python_runs_on_what_was_imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert code.count("assert ") >= 5
    names: dict[str, object] = {}
    exec(compile(f"async def walk():\n{textwrap.indent(code, '    ')}", "the page", "exec"), names)
    walk = names["walk"]
    assert callable(walk)
    asyncio.run(walk())


def test_it_names_only_commands_that_there_are() -> None:
    named = re.findall(r"talkfold ([a-z]+)", PAGE.read_text(encoding="utf-8"))
    assert len(set(named)) >= 12
    assert set(named) <= {command.name for command in COMMANDS}


def test_its_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", PAGE.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (PAGE.parent / link).exists()] == []


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), Path(place)), encoding="utf-8")
