"""What holds for every command: help, an example that runs, an entry in the page, ``--json``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from cli_world import Talkfold

from talkfold import __version__
from talkfold.cli.commands import COMMANDS, GROUPS, Command
from talkfold.cli.reference import page

each_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


@each_command
def test_it_explains_itself_with_an_example(talkfold: Talkfold, command: Command) -> None:
    shown = talkfold(command.name, "--help")
    assert shown.code == 0
    usage, sentence, *_ = (line for line in shown.out.splitlines() if line.strip())
    assert usage.startswith(f"Usage: talkfold {command.name}")
    assert sentence.endswith(".")
    assert f"Example: {command.example}" in shown.out


@each_command
def test_every_option_is_explained(talkfold: Talkfold, command: Command) -> None:
    options = [line for line in talkfold(command.name, "--help").out.splitlines() if line.startswith("  --")]
    assert any(line.startswith("  --json:") for line in options)
    for line in options:
        _, _, text = line.partition(": ")
        assert len(text.split("[")[0].split()) >= 3, f"too little said: {line}"


@each_command
def test_its_example_runs(waiting: Talkfold, command: Command) -> None:
    name, *arguments = shlex.split(command.example)
    assert name == "talkfold"
    ended = waiting(*arguments)
    assert (ended.code, ended.out + ended.err != "") == (0, True)


@each_command
def test_its_example_answers_with_one_json_document(waiting: Talkfold, command: Command) -> None:
    ended = waiting(*shlex.split(command.example)[1:], "--json")
    assert ended.code == 0
    json.loads(ended.out)


@each_command
def test_the_page_has_it(command: Command) -> None:
    assert f"\n### talkfold {command.name}\n" in PAGE.read_text(encoding="utf-8")


def test_the_page_is_what_the_commands_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew with `make docs`"


def test_the_overview_says_what_each_command_does(talkfold: Talkfold) -> None:
    overview = talkfold("--help").out
    assert talkfold().out == overview
    for command in COMMANDS:
        sentence = talkfold(command.name, "--help").out.splitlines()[2]
        assert f"  {command.name}: {sentence}" in overview
    assert [group for group in GROUPS if f"\n{group}:\n" in overview] == list(GROUPS)


def test_version(talkfold: Talkfold) -> None:
    assert talkfold("--version").out == f"{__version__}\n"


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["show"], ["show", "a", "b"], ["list", "--nonsense"], ["show", "a", "--at", "x"]]
)
def test_wrong_usage_ends_with_2_and_a_way_on(talkfold: Talkfold, arguments: list[str]) -> None:
    ended = talkfold(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("talkfold: ")
    assert "--help`" in ended.err


def test_an_option_before_the_command_is_told_where_it_belongs(talkfold: Talkfold) -> None:
    ended = talkfold("--db", "my chats.db", "list")
    assert ended.code == 2
    assert "`talkfold list --db 'my chats.db'`" in ended.err
