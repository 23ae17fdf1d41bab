"""``export`` to a file, and as a page."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from cli_world import ORDER, Talkfold

from talkfold.cli.app import run


def test_a_page_is_one_file_with_the_whole_session(world: Talkfold, tmp_path: Path) -> None:
    ended = world("export", "order-17", "--html", "-o", "order.html")
    assert (ended.code, ended.out) == (0, "")
    assert "order.html: 9 actions of order-17" in ended.err
    page = (tmp_path / "order.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
    assert [f'id="n{number}"' in page for number in range(1, len(ORDER) + 1)] == [True] * len(ORDER)
    (digest,) = re.findall(r'class="digest">([0-9a-f]{64})<', page)
    assert world("check", "order-17", "--since", digest).code == 0


def test_a_page_goes_to_stdout_where_that_is_no_terminal(world: Talkfold) -> None:
    page = world("export", "order-17", "--format", "html").out
    assert page.startswith("<!doctype html>")
    assert world("export", "order-17", "--html", "--output", "-").out.splitlines()[:5] == page.splitlines()[:5]


def test_with_json_the_answer_says_what_was_written(world: Talkfold, tmp_path: Path) -> None:
    told = world("export", "order-17", "--html", "-o", "order.html", "--json").json
    size = (tmp_path / "order.html").stat().st_size
    assert told == {"id": "order-17", "number": len(ORDER), "file": "order.html", "size": size}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--all", "--html"], "a page shows one session"),
        (["order-17", "--html", "--json"], "name a file for it with -o FILE"),
        (["order-17", "--html", "--format", "openai"], "say one of the two"),
        (["order-17", "--html", "-o", "."], "is a folder"),
        (["order-17", "-o", "nowhere/order.jsonl"], "nowhere/order.jsonl"),
    ],
)
def test_what_cannot_be_is_told_and_nothing_is_written(
    world: Talkfold, tmp_path: Path, arguments: list[str], words: str
) -> None:
    before = sorted(tmp_path.iterdir())
    ended = world("export", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
    assert sorted(tmp_path.iterdir()) == before


def test_a_page_is_not_printed_on_a_terminal(world: Talkfold, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", screen)
    assert run(("export", "order-17", "--html")) == 2


def test_any_export_can_go_to_a_file_which_is_replaced_whole(world: Talkfold, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    file.write_text("old")
    file.chmod(0o640)
    assert world("export", "order-17", "-o", "out.jsonl").out == ""
    assert file.read_text() == world("export", "order-17").out
    assert file.stat().st_mode & 0o777 == 0o640
    assert not list(tmp_path.glob(".*"))


def test_an_export_that_fails_leaves_the_old_file(world: Talkfold, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    file.write_text("old")
    assert world("export", "no-such", "-o", "out.jsonl").code == 3
    assert file.read_text() == "old"
