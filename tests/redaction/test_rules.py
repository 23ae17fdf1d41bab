"""What rules find in a text, and what they refuse to be."""

from __future__ import annotations

import re

import pytest

from talkfold import InvalidArgument, RedactionFailed
from talkfold.redaction import AWS_KEY_ID, BEARER_TOKEN, CARD_NUMBER, EMAIL, PRIVATE_KEY, Pattern, Redaction

_KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"


def test_patterns_and_functions_follow_one_another() -> None:
    shout = Redaction(patterns=[r"sk-\w+", Pattern("blue", "a red")], functions=[lambda text: text.replace("red", "x")])
    assert shout.text("sk-1 and blue")[0] == "[xacted] and a x"
    assert Redaction(patterns=[r"sk-\w+"]).text("sk-1 and sk-22") == ("[redacted] and [redacted]", 2)


def test_a_replacement_is_taken_as_it_is_or_made_from_the_match() -> None:
    assert Redaction(patterns=[Pattern("a(b)", r"\1")]).text("ab") == (r"\1", 1)
    last = Redaction(patterns=[Pattern(r"\d+", lambda found: "…" + found[0][-2:])])
    assert last.text("card 123456") == ("card …56", 1)
    same = Redaction(patterns=[Pattern(r"\d+", lambda found: found[0])])
    assert same.text("card 123456") == ("card 123456", 0)


def test_a_compiled_pattern_keeps_its_flags() -> None:
    assert Redaction(patterns=[re.compile("key", re.IGNORECASE)]).text("KEY") == ("[redacted]", 1)


@pytest.mark.parametrize(
    ("pattern", "text", "left"),
    [
        (BEARER_TOKEN, "Authorization: Bearer abc.DEF-123~+/=", "Authorization: Bearer [redacted]"),
        (BEARER_TOKEN, "the bearer of this letter", "the bearer of this letter"),
        (PRIVATE_KEY, f"before {_KEY} after", "before [redacted] after"),
        (PRIVATE_KEY, f"cut off: {_KEY[:50]}", "cut off: [redacted]"),
        (PRIVATE_KEY, "-----BEGIN PUBLIC KEY-----", "-----BEGIN PUBLIC KEY-----"),
        (AWS_KEY_ID, "id AKIAIOSFODNN7EXAMPLE.", "id [redacted]."),
        (AWS_KEY_ID, "AKIAIOSFODNN7EXAMPLES", "AKIAIOSFODNN7EXAMPLES"),
        (CARD_NUMBER, "4111 1111 1111 1111", "[redacted]"),
        (CARD_NUMBER, "pay 5555555555554444!", "pay [redacted]!"),
        (CARD_NUMBER, "378282246310005", "[redacted]"),
        (CARD_NUMBER, "4111 1111 1111 1112", "4111 1111 1111 1112"),
        (CARD_NUMBER, "1764541000000", "1764541000000"),
        (EMAIL, "to ann.lee+x@mail.example.org, now", "to [redacted], now"),
        (EMAIL, "a @ b, user@host, @name", "a @ b, user@host, @name"),
    ],
)
def test_ready_patterns(pattern: Pattern, text: str, left: str) -> None:
    assert Redaction(patterns=[pattern]).text(text)[0] == left


def test_nothing_is_active_by_itself() -> None:
    text = f"Bearer abcdefghij {_KEY} AKIAIOSFODNN7EXAMPLE 4111111111111111 a@b.org"
    assert Redaction().text(text) == (text, 0)


@pytest.mark.parametrize(
    "given",
    [
        {"patterns": ["("]},
        {"patterns": ["a*"]},
        {"patterns": "secret"},
        {"patterns": [7]},
        {"patterns": [re.compile(b"x")]},
        {"functions": ["text"]},
        {"fields": "password"},
        {"fields": [""]},
        {"span": 0},
        {"span": True},
    ],
)
def test_what_is_no_rule_is_told_at_once(given: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Redaction(**given)  # type: ignore[arg-type]
    assert caught.value.name in given


def test_a_rule_that_fails_is_named_and_its_text_is_not() -> None:
    def broken(text: str) -> str:
        raise ValueError(text)

    with pytest.raises(RedactionFailed, match=r"broken.*ValueError") as caught:
        Redaction(functions=[broken]).text("hunter2")
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(RedactionFailed, match="NoneType"):
        Redaction(functions=[lambda text: None]).text("hunter2")  # type: ignore[arg-type,return-value]
    with pytest.raises(RedactionFailed, match="card"):
        Redaction(patterns=[Pattern("x", lambda found: found["no"], name="card")]).text("x")
