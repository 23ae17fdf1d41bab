"""``import`` and ``export``: what goes in comes out, and a refused file leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_world import CHATS, ORDER, Talkfold, jsonl


def ids(talkfold: Talkfold, *more: str) -> set[str]:
    return {session["id"] for session in talkfold("list", "--jsonl", *more).jsonl}


def test_chats_keep_their_ids_and_come_out_as_they_went_in(talkfold: Talkfold) -> None:
    ended = talkfold("import", "--format", "openai", "-", "--json", stdin=jsonl(CHATS))
    assert ended.code == 0
    assert [row["id"] for row in ended.json["imported"]] == ["chat-1", "chat-2"]
    for chat in CHATS:
        exported = talkfold("export", str(chat["id"]), "--format", "openai")
        assert (exported.json, exported.err) == (chat, "")


def test_all_sessions_at_once_newest_first(world: Talkfold) -> None:
    lines = world("export", "--all", "--format", "openai").jsonl
    assert [line["id"] for line in lines] == ["chat-2", "chat-1", "order-17"]
    assert world("export", "--all", "--format", "openai", "--json").json == lines


def test_an_export_for_a_provider_is_healed_and_says_so(world: Talkfold) -> None:
    exported = world("export", "order-17", "--format", "openai")
    calls = [call["id"] for message in exported.json["messages"] for call in message.get("tool_calls", ())]
    results = [message["tool_call_id"] for message in exported.json["messages"] if message["role"] == "tool"]
    assert calls == results == ["c1", "c2"]
    assert "call c2" in exported.err

    request = world("export", "order-17", "--format", "anthropic").json
    blocks = [block for message in request["messages"] for block in message["content"] if isinstance(block, dict)]
    assert [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"] == ["c1", "c2"]


def test_a_whole_database_moves_through_its_native_export(world: Talkfold, tmp_path: Path) -> None:
    (tmp_path / "all.jsonl").write_text(world("export", "--all").out)
    assert world("import", "all.jsonl", "--db", "other.db").code == 0

    def essence(*more: str) -> dict[str, object]:
        rows = world("list", "--jsonl", *more).jsonl
        return {row["id"]: (row["digest"], row["number"], row.get("title"), row.get("metadata")) for row in rows}

    assert essence() == essence("--db", "other.db")
    assert len(essence()) == 3
    assert world("check", "--all", "--db", "other.db").code == 0


def test_bare_actions_become_one_session_with_a_new_id(talkfold: Talkfold) -> None:
    imported = talkfold("import", "-", "--json", stdin=jsonl(ORDER)).json["imported"]
    assert [row["number"] for row in imported] == [len(ORDER)]
    assert ids(talkfold) == {imported[0]["id"]}


def test_an_id_that_is_used_already_refuses_the_file(world: Talkfold) -> None:
    file = jsonl([{**CHATS[1], "id": "fresh"}, CHATS[0]])
    refused = world("import", "--format", "openai", "-", stdin=file)
    assert refused.code == 4
    assert "'chat-1'" in refused.err
    assert "--skip-existing" in refused.err
    assert "fresh" not in ids(world)

    digest = world("show", "chat-1", "--json").json["session"]["digest"]
    taken = world("import", "--format", "openai", "-", "--skip-existing", "--json", stdin=file)
    assert taken.code == 0
    assert [row["id"] for row in taken.json["imported"]] == ["fresh"]
    assert taken.json["skipped"] == ["chat-1"]
    assert world("show", "chat-1", "--json").json["session"]["digest"] == digest


def test_an_erased_id_is_never_used_again(world: Talkfold) -> None:
    assert world("erase", "chat-1", "--yes").code == 0
    assert world("import", "--format", "openai", "-", stdin=jsonl(CHATS[:1])).code == 4
    assert world("import", "--format", "openai", "-", "--skip-existing", stdin=jsonl(CHATS[:1])).code == 0
    assert "chat-1" not in ids(world)


@pytest.mark.parametrize("form", ["openai", "native"])
def test_a_damaged_line_is_named_and_nothing_is_taken(talkfold: Talkfold, form: str) -> None:
    good = jsonl(CHATS) if form == "openai" else jsonl([{"talkfold": 1, "session": {"id": "x"}}, *ORDER])
    refused = talkfold("import", "--format", form, "-", stdin=good + b"damage\n" + good.replace(b'"x"', b'"y"'))
    assert refused.code == 6
    assert f"line {good.count((10).to_bytes()) + 1} " in refused.err
    assert talkfold("list").out == ""


def test_what_is_no_conversation_is_named_with_its_path(talkfold: Talkfold) -> None:
    wrong = [{"id": "a", "messages": [{"role": "user", "content": "Hi"}, {"role": "nobody", "content": "?"}]}]
    refused = talkfold("import", "--format", "openai", "-", stdin=jsonl(wrong))
    assert refused.code == 6
    assert "line 1" in refused.err
    assert "$.messages[1]" in refused.err


def test_an_id_twice_in_the_file_refuses_it(talkfold: Talkfold) -> None:
    refused = talkfold("import", "--format", "openai", "-", stdin=jsonl([CHATS[0], CHATS[0]]))
    assert refused.code == 2
    assert "twice" in refused.err
    assert talkfold("list").out == ""


def test_a_torn_end_is_told_and_the_rest_is_taken(talkfold: Talkfold) -> None:
    ended = talkfold("import", "--format", "openai", "-", stdin=jsonl(CHATS) + b'{"id": "chat-3", "mess')
    assert ended.code == 0
    assert ended.err.count("line 3 was cut short") == 1
    assert ids(talkfold) == {"chat-1", "chat-2"}


def test_a_call_without_a_result_is_told(talkfold: Talkfold) -> None:
    chat = {"id": "open", "messages": CHATS[0]["messages"][:3]}
    ended = talkfold("import", "--format", "openai", "-", stdin=jsonl([chat]))
    assert ended.code == 0
    assert "open: " in ended.err
    assert "k1" in ended.err
    (call,) = [
        part
        for message in talkfold("show", "open", "--json").json["state"]["messages"]
        for part in message["parts"]
        if part["type"] == "tool"
    ]
    assert call["state"] == "cancelled"


def test_an_interrupted_import_goes_on(talkfold: Talkfold) -> None:
    """A session and its log are stored together, so what an import left behind when it died is whole."""
    assert talkfold("import", "--format", "openai", "-", stdin=jsonl(CHATS[:1])).code == 0
    assert talkfold("import", "--format", "openai", "-", "--skip-existing", stdin=jsonl(CHATS)).code == 0
    assert [talkfold("export", chat["id"], "--format", "openai").json for chat in CHATS] == CHATS


def test_an_owner_sees_only_their_own(talkfold: Talkfold) -> None:
    for owner in ("ann", "bob"):
        assert talkfold("import", "--format", "openai", "-", "--owner", owner, stdin=jsonl(CHATS[:1])).code == 0
    assert ids(talkfold, "--owner", "ann") == {"chat-1"}
    assert talkfold("show", "chat-1", "--owner", "ann").code == 0
    foreign, unknown = talkfold("show", "chat-1", "--owner", "eve"), talkfold("show", "chat-9", "--owner", "eve")
    assert (foreign.code, unknown.code) == (3, 3)
    assert foreign.err == unknown.err.replace("chat-9", "chat-1")
    assert talkfold("show", "chat-1").code == 3  # two owners have it: which one is meant?


def test_export_wants_one_session_or_all(world: Talkfold) -> None:
    assert world("export").code == 2
    assert world("export", "chat-1", "--all").code == 2


def test_an_import_can_leave_secrets_out(talkfold: Talkfold, tmp_path: Path) -> None:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "sign_in", "arguments": '{"Password" : "hunter2", "n": 1}'},
    }
    messages = [
        {"role": "user", "content": "My key is sk-123."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "welcome sk-123"},
    ]
    options = ("--redact", r"sk-\d+", "--redact", "nobody", "--redact-field", "password")
    chat = jsonl([{"id": "chat-9", "messages": messages, "title": "about sk-123"}])
    assert talkfold("import", *options, "--format", "openai", "--db", "clean.db", "-", stdin=chat).code == 0
    out = talkfold("export", "chat-9", "--db", "clean.db").out
    assert "[redacted]" in out
    assert '"redacted":1' in out
    assert "1 redacted" in talkfold("steps", "chat-9", "--db", "clean.db").out
    for file in tmp_path.glob("clean.db*"):
        assert not any(secret in file.read_bytes() for secret in (b"sk-123", b"hunter2"))


def test_a_redaction_that_is_none_names_its_option(talkfold: Talkfold) -> None:
    for option, value in (("--redact", "("), ("--redact", "x*"), ("--redact-field", "")):
        ended = talkfold("import", "-", option, value, stdin=jsonl(CHATS))
        assert ended.code == 2
        assert option in ended.err
