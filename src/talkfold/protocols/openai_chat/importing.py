"""OpenAI chat-completions messages as the log of a session.

The log is what a live run of the same conversation would have left: one ``send`` for each message of the
person, an assistant message for each of the model's, its calls and their results, and an end for every turn.
Nothing is invented: no time, no random id. What the session has no word for stays, as it came, in the
``meta`` of its action, and is noted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import UNSET, Struct

from ...actions import (
    AgentStreamPart,
    Finish,
    MessageStart,
    Part,
    Send,
    SessionAction,
    Stop,
    TextDelta,
    ToolCall,
    ToolResult,
)
from ...errors import InvalidAction
from ...json_values import is_list, is_object
from ...log import Entry
from ...model import Json
from ..system_prompt import SystemPrompt, to_metadata
from .arguments import parse_arguments, raw_to_keep

__all__ = ("Note", "NoteCode", "OpenAIImport", "from_openai_chat")

NoteCode: TypeAlias = Literal[
    "call-without-result",
    "content-parts",
    "id-in-use",
    "kept-in-meta",
    "late-result",
    "legacy-function",
    "result-again",
    "result-without-call",
    "system-fields",
    "system-moved",
]

_SENTENCES: Mapping[NoteCode, str] = {
    "call-without-result": "The call {0} has no result; its turn ends with a stop, which cancels it.",
    "content-parts": "The content is a list of parts; its texts are taken, the list is kept in meta.",
    "id-in-use": "The id {0} is that of a call that still waits for its result; this call is logged as {1}.",
    "kept-in-meta": "Fields that a session has no place for are kept in meta: {0}.",
    "late-result": "The result of the call {0} comes after its turn had ended; it counts all the same.",
    "legacy-function": "The old form of a call of {0} is taken as a call with the id {1}.",
    "result-again": "The call {0} has a result already; the later one replaces it.",
    "result-without-call": "There is no call {0}; its result is kept in the log and changes nothing.",
    "system-fields": "Fields of a system prompt that are not kept: {0}.",
    "system-moved": "A system prompt between a call and its result counts as standing behind the result.",
}


class Note(Struct, frozen=True, rename="camel"):
    """Something that the import could not carry over one to one. ``message`` is an index into the input."""

    code: NoteCode
    message: int
    text: str


class OpenAIImport(Struct, frozen=True):
    """A conversation read from chat-completions messages: its system prompts, its log, and notes."""

    system: tuple[SystemPrompt, ...]
    entries: tuple[Entry, ...]
    notes: tuple[Note, ...]

    @property
    def metadata(self) -> dict[str, Json]:
        """The session's metadata: its system prompts, where ``system_prompts(metadata)`` finds them."""
        return to_metadata(self.system)


def from_openai_chat(messages: Sequence[Json]) -> OpenAIImport:
    """The log that these messages (decoded JSON) make, with ids ``m-1``, ``m-2`` … by their place in the
    input.

    A result is paired with the oldest unanswered call of its id; where a call's id is that of an earlier call
    still unanswered, it is logged under another, so that the fold pairs them the same way. A tool's text
    becomes ``{"content": [{"type": "text", "text": …}]}``. Raises InvalidAction with the path of what is no
    such message.
    """
    reader = _Reader()
    for index, message in enumerate(messages):
        reader.read(index, _object(message, f"$[{index}]"))
    reader.end_turn()
    return OpenAIImport(tuple(reader.system), tuple(reader.entries), tuple(reader.notes))


class _Reader:
    """Goes through the messages once. Knows which calls wait for a result, and whether a turn is open."""

    def __init__(self) -> None:
        self.system: list[SystemPrompt] = []
        self.entries: list[Entry] = []
        self.notes: list[Note] = []
        self._readers = {
            "system": self._read_system,
            "developer": self._read_system,
            "user": self._read_user,
            "assistant": self._read_assistant,
            "tool": self._read_tool,
            "function": self._read_function,
        }
        self._index = 0
        self._path = "$"
        self._last_id: str | None = None
        self._in_turn = False
        # Unanswered calls by what a result will name: of the open turn, and of turns that ended.
        self._waiting: dict[Hashable, deque[_Waiting]] = {}
        self._late: dict[Hashable, deque[_Waiting]] = {}
        self._ids: set[str] = set()
        self._unanswered: set[str] = set()
        self._next: dict[str, int] = {}

    def read(self, index: int, message: dict[str, Json]) -> None:
        self._index, self._path = index, f"$[{index}]"
        role = message.get("role")
        read = self._readers.get(role) if isinstance(role, str) else None
        if read is None:
            raise self._invalid(f"role is {role!r}, known are {', '.join(self._readers)}", ".role")
        read(message)

    def end_turn(self) -> None:
        if not self._in_turn:
            return
        self._in_turn = False
        unanswered = sorted(call for calls in self._waiting.values() for call in calls)
        for call in unanswered:
            self.notes.append(_note("call-without-result", call.message, repr(call.id)))
        if unanswered:
            self.entries.append(Entry(Stop(), meta={"cause": "import"}))
        else:
            self.entries.append(Entry(Part(Finish("stop"))))
        for name, calls in self._waiting.items():
            self._late.setdefault(name, deque()).extend(calls)
        self._waiting.clear()

    # ---- one method for each role -------------------------------------------------------------------------

    def _read_system(self, message: dict[str, Json]) -> None:
        content = message.get("content")
        if not isinstance(content, str) and not is_list(content):
            raise self._invalid("neither a text nor a list of parts", ".content")
        name = message.get("name")
        if unknown := _left(message, {"role", "content", "name"}):
            self._note("system-fields", ", ".join(unknown))
        role: Literal["system", "developer"] = "developer" if message["role"] == "developer" else "system"
        self.system.append(
            SystemPrompt(
                content,
                role,
                self._last_id,
                name if isinstance(name, str) else None,
            )
        )
        if self._waiting:
            self._note("system-moved")

    def _read_user(self, message: dict[str, Json]) -> None:
        self.end_turn()
        texts, left = self._content(message, {"role", "content"})
        self._log(Send(self._new_id(), "\n".join(texts)), left)

    def _read_assistant(self, message: dict[str, Json]) -> None:
        texts, left = self._content(message, {"role", "content", "tool_calls", "function_call"}, optional=True)
        message_id = self._new_id()
        self._part(MessageStart(message_id), left)
        if texts:
            self._part(TextDelta(message_id, "\n".join(texts)))
        for number, call in enumerate(_list(message.get("tool_calls"), f"{self._path}.tool_calls")):
            self._call(message_id, _object(call, path := f"{self._path}.tool_calls[{number}]"), path)
        if (old := message.get("function_call")) is not None:
            self._old_call(message_id, _object(old, f"{self._path}.function_call"))

    def _read_tool(self, message: dict[str, Json]) -> None:
        texts, left = self._content(message, {"role", "content", "tool_call_id"}, optional=True)
        self._result(_text(message, "tool_call_id", self._path), texts, left)

    def _read_function(self, message: dict[str, Json]) -> None:
        texts, left = self._content(message, {"role", "content", "name"}, optional=True)
        name = _text(message, "name", self._path)
        self._result(("function", name), texts, left, otherwise=name)

    # ---- calls and results --------------------------------------------------------------------------------

    def _call(self, message_id: str, call: dict[str, Json], path: str) -> None:
        kind = call.get("type", "function")
        if kind not in ("function", "custom"):
            raise InvalidAction(_WHAT, f"a call of the type {kind!r}, known are function and custom", f"{path}.type")
        call_id = _text(call, "id", path)
        body = _object(call.get(kind), f"{path}.{kind}")
        name = _text(body, "name", f"{path}.{kind}")
        left = _left(call, {"id", "type", kind}) | _left(body, {"name", "arguments", "input"})
        if kind == "custom":
            value: Json = _text(body, "input", f"{path}.custom")
            kept: dict[str, Json] = {"type": "custom"}
        else:
            value, kept = _arguments(_text(body, "arguments", f"{path}.function"))
        self._log_call(message_id, call_id, call_id, name, value, kept, left)

    def _old_call(self, message_id: str, call: dict[str, Json]) -> None:
        path = f"{self._path}.function_call"
        name, call_id = _text(call, "name", path), f"{message_id}-call"
        value, kept = _arguments(_text(call, "arguments", path))
        self._note("legacy-function", repr(name), repr(call_id))
        self._log_call(message_id, ("function", name), call_id, name, value, kept, {})

    def _log_call(
        self,
        message_id: str,
        awaited: Hashable,
        call_id: str,
        name: str,
        value: Json,
        kept: dict[str, Json],
        left: dict[str, Json],
    ) -> None:
        free = call_id
        if call_id in self._unanswered:
            number = self._next.get(call_id, 2)
            while (free := f"{call_id}-{number}") in self._ids:
                number += 1
            self._next[call_id] = number + 1
            self._note("id-in-use", repr(call_id), repr(free))
        self._ids.add(free)
        self._unanswered.add(free)
        self._waiting.setdefault(awaited, deque()).append(_Waiting(self._index, free, name))
        metadata = {"openai": kept} if kept else UNSET
        self._part(ToolCall(message_id, free, name, value, metadata), left)

    def _result(self, awaited: Hashable, texts: list[str], left: dict[str, Json], otherwise: str | None = None) -> None:
        if calls := self._waiting.get(awaited):
            call = calls.popleft()
            if not calls:
                del self._waiting[awaited]
        elif calls := self._late.get(awaited):
            call = calls.popleft()
            self._note("late-result", repr(call.id))
        else:
            call = _Waiting(self._index, otherwise if otherwise is not None else str(awaited), None)
            self._note("result-again" if call.id in self._ids else "result-without-call", repr(call.id))
        self._unanswered.discard(call.id)
        if call.name is not None and left.get("name") == call.name:
            del left["name"]  # repeats the name of the call: nothing that the session does not know
        blocks = [{"type": "text", "text": text} for text in texts]
        self._part(ToolResult(call.id, {"content": blocks}), left)

    # ---- what all of them need ----------------------------------------------------------------------------

    def _content(
        self, message: dict[str, Json], known: set[str], *, optional: bool = False
    ) -> tuple[list[str], dict[str, Json]]:
        """The texts of a message, and the fields that its actions do not carry."""
        content, left = message.get("content"), _left(message, known)
        if isinstance(content, str):
            return [content], left
        if content is None and optional:
            return [text for text in (message.get("refusal"), _transcript(message)) if isinstance(text, str)], left
        if not is_list(content):
            raise self._invalid("neither a text nor a list of parts", ".content")
        parts = [_object(part, f"{self._path}.content[{number}]") for number, part in enumerate(content)]
        self._note("content-parts")
        found = (part.get("refusal" if part.get("type") == "refusal" else "text") for part in parts)
        return [text for text in found if isinstance(text, str)], {"content": content, **left}

    def _new_id(self) -> str:
        self._last_id = f"m-{self._index + 1}"
        return self._last_id

    def _part(self, part: AgentStreamPart, left: dict[str, Json] | None = None) -> None:
        self._log(Part(part), left)

    def _log(self, action: SessionAction, left: dict[str, Json] | None = None) -> None:
        if left and (fields := [field for field in left if field != "content"]):
            self._note("kept-in-meta", ", ".join(fields))
        self.entries.append(Entry(action, meta={"openai": left} if left else None))
        self._in_turn = True

    def _note(self, code: NoteCode, *values: str) -> None:
        self.notes.append(_note(code, self._index, *values))

    def _invalid(self, reason: str, below: str) -> InvalidAction:
        return InvalidAction(_WHAT, reason, self._path + below)


class _Waiting(Struct, frozen=True, order=True):
    """A call without a result: the message that made it, the id it is logged under, and its tool's name."""

    message: int
    id: str
    name: str | None


_WHAT = "OpenAI message"


def _note(code: NoteCode, message: int, *values: str) -> Note:
    return Note(code, message, _SENTENCES[code].format(*values))


def _arguments(raw: str) -> tuple[Json, dict[str, Json]]:
    value = parse_arguments(raw)
    return value, {} if raw_to_keep(raw, value) is None else {"arguments": raw}


def _left(fields: dict[str, Json], known: set[str]) -> dict[str, Json]:
    # Clients write out fields that say nothing: "refusal": null, "annotations": [].
    return {key: value for key, value in fields.items() if key not in known and value is not None and value != []}


def _transcript(message: dict[str, Json]) -> Json:
    audio = message.get("audio")
    return audio.get("transcript") if is_object(audio) else None


def _object(value: Json, path: str) -> dict[str, Json]:
    if not is_object(value):
        raise InvalidAction(_WHAT, "an object is needed here", path)
    return value


def _list(value: Json, path: str) -> list[Json]:
    if value is None:
        return []
    if not is_list(value):
        raise InvalidAction(_WHAT, "a list is needed here", path)
    return value


def _text(fields: dict[str, Json], key: str, path: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise InvalidAction(_WHAT, "a text is needed here", f"{path}.{key}")
    return value
