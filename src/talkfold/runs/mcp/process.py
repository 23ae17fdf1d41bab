"""A server in a process of its own, spoken to over its stdin and stdout, one JSON-RPC message a line.

The SDK has such a transport as well, but its process is out of reach: nobody could say with which exit it ended and
what it said last. Lines of any length are read here in linear time, and a line that is no message is passed over.
"""

from __future__ import annotations

import json
import logging
import math
import os
import signal
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import anyio
from anyio.abc import ByteReceiveStream, ObjectReceiveStream, ObjectSendStream, Process
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from .wire import Heard, Reading, Writing

__all__ = ("MAX_MESSAGE_BYTES", "ProcessTransport")

_log = logging.getLogger("talkfold.runs.mcp")

MAX_MESSAGE_BYTES = 64 * 2**20
"""The longest message that is read, in bytes; a server that sends more is given up."""

_LAST_LINES = 5
_MAX_WARNINGS = 10
_LINE = 300  # characters of a line of stderr that are kept
_GIVEN_UP = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)
_STEPS: tuple[tuple[signal.Signals | None, float], ...] = ((None, 0.5), (signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0))
"""How a server is ended: its stdin is closed, then these signals; how many seconds each has to help."""


class ProcessTransport:
    """Starts the process each time it is opened, in a process group of its own.

    ``env`` comes on top of the few variables that the SDK hands down (HOME, PATH, USER …): secrets of this process
    are not the server's. The path of ``cwd`` is this process's own when ``None``.
    """

    bounded: bool = True

    def __init__(
        self, command: str, args: tuple[str, ...], env: Mapping[str, str] | None, cwd: str | Path | None
    ) -> None:
        self._command, self._args, self._env, self._cwd = command, args, dict(env or {}), cwd
        self._said: deque[str] = deque(maxlen=_LAST_LINES)
        self._exit: int | None = None

    @property
    def name(self) -> str:
        """The command and the first of its arguments that is no option."""
        words = [self._command, *[each for each in self._args if not each.startswith("-")][:1]]
        return " ".join(Path(word).name for word in words)

    def story(self) -> str:
        """How the last process ended by itself, and what it said last on stderr; empty when neither is known."""
        parts = [] if self._exit is None else [_exit_text(self._exit)]
        if self._said:
            parts.append("its last words: " + " | ".join(self._said))
        return "; ".join(parts)

    def refused(self, request_id: str) -> bool:
        """Whether the server did not even look at this request; a process never says so."""
        return False

    def remark(self, request_id: str) -> str:
        """What there is to say of the answer to this request besides; here nothing."""
        return ""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[tuple[Reading[Heard], Writing[SessionMessage]], None]:
        """Start it; on the way out, end it and all its children. Raises OSError when it cannot be started."""
        self._said.clear()
        self._exit = None
        heard, read = anyio.create_memory_object_stream[Heard](0)
        write, to_send = anyio.create_memory_object_stream[SessionMessage](math.inf)  # a cancellation never waits
        with heard, read, write, to_send:
            process = await self._start()
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._read, process, heard)
                    group.start_soon(_write, process, to_send)
                    group.start_soon(self._listen, process)
                    try:
                        yield read, write
                    finally:
                        self._exit = process.returncode  # before it is helped along
                        read.close()  # the reader goes on, into nothing: who writes can end
                        with anyio.CancelScope(shield=True):
                            await _end(process)
                        group.cancel_scope.cancel()
            finally:
                await _release(process)

    async def _start(self) -> Process:
        with anyio.CancelScope(shield=True):  # a process that was started but is in no hand could not be ended
            return await anyio.open_process(
                [self._command, *self._args],
                env=get_default_environment() | self._env,
                cwd=self._cwd,
                start_new_session=True,
            )
        raise AssertionError("a shield is never cancelled")

    async def _read(self, process: Process, heard: ObjectSendStream[Heard]) -> None:
        assert process.stdout is not None
        async with anyio.create_task_group() as group:
            group.start_soon(_watch, process, group.cancel_scope)
            with suppress(anyio.EndOfStream, *_GIVEN_UP):
                await self._messages(process.stdout, heard)
            with anyio.move_on_after(0.5):  # its exit comes a moment after the end of its output
                await _exited(process, 0.005)
            group.cancel_scope.cancel()
        await heard.aclose()

    async def _messages(self, stdout: ByteReceiveStream, heard: ObjectSendStream[Heard]) -> None:
        rest = bytearray()
        listening = True
        passed_over = 0
        while True:
            seen = len(rest)
            rest += await stdout.receive()
            if not listening:
                rest.clear()
                continue
            start = 0
            while (end := rest.find(b"\n", max(start, seen))) >= 0:
                line = bytes(rest[start:end])
                start = end + 1
                message: Heard | None
                try:
                    message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
                except ValueError:
                    message = _for_unreadable(line)
                    if line.strip():
                        passed_over += 1
                        level = logging.WARNING if passed_over <= _MAX_WARNINGS else logging.DEBUG
                        _log.log(level, "%s: passed over a line that is no message: %r", self.name, line[:200])
                if message is None:
                    continue
                try:
                    await heard.send(message)
                except _GIVEN_UP:
                    listening = False
                    break
            del rest[:start]
            if len(rest) > MAX_MESSAGE_BYTES:
                self._said.append(f"(a message of more than {MAX_MESSAGE_BYTES} bytes)")
                return

    async def _listen(self, process: Process) -> None:
        """Its stderr: into the log, and the last lines kept."""
        assert process.stderr is not None
        rest = b""
        with suppress(anyio.EndOfStream, *_GIVEN_UP):
            while True:
                *lines, rest = (rest + await process.stderr.receive()).split(b"\n")
                for line in [*lines, *([rest] if len(rest) > _LINE * 4 else [])]:
                    self._hear(line)
                rest = rest if len(rest) <= _LINE * 4 else b""
        self._hear(rest)

    def _hear(self, line: bytes) -> None:
        if text := line.decode("utf-8", "replace").strip()[:_LINE]:
            self._said.append(text)
            _log.debug("%s: %s", self.name, text)


def _exit_text(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return f"ended by {signal.Signals(-code).name}"
    return f"ended by signal {-code}"


def _for_unreadable(line: bytes) -> SessionMessage | None:
    """An error in the place of an answer that cannot be read, so that nobody waits for it; else ``None``."""
    with suppress(ValueError, RecursionError):
        found: object = json.loads(line)
        if isinstance(found, dict) and "method" not in found:
            request_id: object = cast("dict[str, object]", found).get("id")
            if isinstance(request_id, str | int) and not isinstance(request_id, bool):
                fault = ErrorData(code=PARSE_ERROR, message="the server's answer is no JSON-RPC message")
                return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=fault))
    return None


async def _write(process: Process, to_send: ObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin is not None
    with suppress(*_GIVEN_UP):  # who cannot be written to is about to be heard no more
        async for item in to_send:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            await process.stdin.send(line.encode() + b"\n")


async def _exited(process: Process, every: float) -> None:
    """Waits for the exit alone: asyncio's own waiting goes on while a child holds the pipes open."""
    while process.returncode is None:  # noqa: ASYNC110
        await anyio.sleep(every)


async def _watch(process: Process, reading: anyio.CancelScope) -> None:
    """Ends the reading when the process has ended but a child of it keeps its output open."""
    await _exited(process, 0.25)
    await anyio.sleep(0.25)  # what it wrote at the end is still to be read
    reading.cancel()


async def _end(process: Process) -> None:
    assert process.stdin is not None
    for step, seconds in _STEPS:
        if step is not None:
            _signal(process, step)
        else:
            with suppress(*_GIVEN_UP):
                await process.stdin.aclose()
        with anyio.move_on_after(seconds):
            await _exited(process, 0.01)
        if process.returncode is not None:
            break
    if _signal(process, signal.SIGTERM):  # its own children, if it left any
        await anyio.sleep(0.1)
        _signal(process, signal.SIGKILL)


def _signal(process: Process, what: signal.Signals) -> bool:
    """Signal the process and its children; false when there is nobody left."""
    try:
        os.killpg(process.pid, what)
    except (ProcessLookupError, PermissionError):
        return False
    return True


async def _release(process: Process) -> None:
    """Close the pipes. A child that left the group may hold them open: nobody waits for it."""
    with anyio.move_on_after(1, shield=True):
        await process.aclose()
    transport = getattr(getattr(process, "_process", None), "_transport", None)  # asyncio's, else it warns
    if (close := getattr(transport, "close", None)) is not None:
        close()
