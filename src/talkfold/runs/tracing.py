"""Traces of live runs over the OpenTelemetry API, which ``talkfold[otel]`` brings.

```python
settings = RunSettings(observe=OpenTelemetry())
```

The spans follow the OpenTelemetry semantic conventions for generative AI, version 0.1.0: the first release of their own
repository, and still in development. A run and each of its sub-agents is an ``invoke_agent`` span, a call an
``execute_tool`` span. What those conventions have no word for stands in attributes that begin with ``talkfold.``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import Token
from typing import TypeAlias, get_args

try:
    from opentelemetry import trace
    from opentelemetry.context import Context, attach, detach
    from opentelemetry.trace import Span, StatusCode, TracerProvider
except ImportError as _absent:
    raise ImportError("talkfold.runs.tracing needs the OpenTelemetry API: pip install 'talkfold[otel]'") from _absent

from .._version import __version__
from ..model import DELEGATE_PREFIX, Json
from .events import (
    AgentEnded,
    AgentStarted,
    CallAnswered,
    CallEnded,
    CallParked,
    CallProgress,
    CallStarted,
    Observation,
    RunCause,
    RunEnded,
    RunEvent,
    RunStarted,
)
from .output import ToolErrorCode

__all__ = ("OpenTelemetry",)

_Attributes: TypeAlias = dict[str, str | int | float]
_Key: TypeAlias = tuple[str, str | None, str | None]

_RUN: _Key = ("agent", None, None)

_FAILED: frozenset[RunCause] = frozenset({"cancelled", "raised", "lease-lost", "store", "refused"})
"""Ends of a run that are errors of its span. A stop is what somebody wanted."""

_CODE = re.compile(r"Error \[(\w+)\] ")
_CODES = frozenset(get_args(ToolErrorCode))


class OpenTelemetry:
    """An observer for ``RunSettings(observe=…)`` that makes a trace of each run. One serves any number of runs.

    - ``tracer_provider``: where the spans go; ``None``: the one that is set for the process, now or later.
    - ``capture_content``: whether the spans say what was said as well: the texts of errors and of faults, and what a
      person is asked before a call. They may hold anything that a conversation holds. Inputs and results of calls and
      the text of messages are never in a span: they are in the log, which the trace's id leads to.

    The span that is current where the run is started is the parent of the run's. An agent's span is current in the
    task that its adapter runs in, a call's in the task or the thread of its tool.
    """

    def __init__(self, tracer_provider: TracerProvider | None = None, *, capture_content: bool = False) -> None:
        self._tracer = trace.get_tracer("talkfold", __version__, tracer_provider)
        self._capture = capture_content
        self._runs: dict[str, _Run] = {}

    def __call__(self, event: RunEvent) -> Observation | None:
        if isinstance(event, RunStarted):
            return self._run_started(event)
        run = self._runs.get(event.run)
        if run is None:
            return None
        match event:
            case AgentStarted():
                return self._agent_started(run, event)
            case CallStarted():
                return self._call_started(run, event)
            case CallParked():
                self._parked(run, event)
            case CallAnswered():
                self._answered(run, event)
            case CallProgress():
                pass  # as often as the tool likes: too much for a span
            case CallEnded():
                self._call_ended(run, event)
            case AgentEnded():
                self._agent_ended(run, event)
            case RunEnded():
                self._run_ended(run, event)
        return None

    # ---- what starts -------------------------------------------------------------------------------------

    def _run_started(self, event: RunStarted) -> _Work:
        if (before := self._runs.pop(event.run, None)) is not None:  # an id that is given twice: no span may leak
            before.end_all("_OTHER")
        attributes: _Attributes = {
            **_agent(event.session_id, event.adapter_id, event.adapter_id),
            "talkfold.run.id": event.run,
            "talkfold.run.action": event.action,
        }
        caller = trace.get_current_span().get_span_context().span_id
        span = self._tracer.start_span(f"invoke_agent {event.adapter_id}", attributes=attributes)
        work = _Work(_RUN, span)
        self._runs[event.run] = _Run(event.session_id, caller, work)
        return work

    def _agent_started(self, run: _Run, event: AgentStarted) -> _Work | None:
        attributes = _agent(run.session_id, event.agent_id, event.adapter_id)
        name = f"invoke_agent {event.agent_id}"
        if not event.depth:  # the run's own: its span is the run's, which began without knowing the agent's name
            own = run.open[0].span
            own.update_name(name)
            own.set_attributes(attributes)
            return None
        attributes |= {"talkfold.run.id": event.run, "talkfold.agent.depth": event.depth}
        return self._start(run, ("agent", event.within, None), name, attributes, ("call", event.within, None))

    def _call_started(self, run: _Run, event: CallStarted) -> _Work:
        attributes: _Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.name,
            "gen_ai.tool.call.id": event.call_id,
            "gen_ai.conversation.id": run.session_id,
            "talkfold.run.id": event.run,
            "talkfold.call.number": event.number,
        }
        if not event.name.startswith(DELEGATE_PREFIX):
            attributes["gen_ai.tool.type"] = "function"
        key = ("call", event.call_id, event.within)
        return self._start(run, key, f"execute_tool {event.name}", attributes, ("agent", event.within, None))

    def _start(self, run: _Run, key: _Key, name: str, attributes: _Attributes, around: _Key) -> _Work:
        span = self._tracer.start_span(name, run.context(around), attributes=attributes)
        work = _Work(key, span, number=attributes.get("talkfold.call.number"))
        run.open.append(work)
        return work

    # ---- what happens and ends ---------------------------------------------------------------------------

    def _answered(self, run: _Run, event: CallAnswered) -> None:
        work = run.call(event.waiting.number)
        if work is not None:
            said: _Attributes = {"talkfold.wait.decision": event.decision, "talkfold.wait.seconds": event.seconds}
            work.span.set_attributes(said)

    def _parked(self, run: _Run, event: CallParked) -> None:
        waiting = event.waiting
        work = run.call(waiting.number)
        if work is None:
            return
        work.span.set_attribute("talkfold.wait.kind", waiting.kind)
        attributes: _Attributes = {"talkfold.wait.kind": waiting.kind}
        if waiting.expires is not None:
            attributes["talkfold.wait.expires"] = waiting.expires
        if self._capture and waiting.prompt is not None:
            attributes["talkfold.wait.prompt"] = waiting.prompt
        work.span.add_event("talkfold.call.parked", attributes)

    def _call_ended(self, run: _Run, event: CallEnded) -> None:
        work = run.take(("call", event.call_id, event.within))
        if work is None:
            return
        work.span.set_attribute("talkfold.call.state", event.state)
        self._end(work.span, _tool_error(event.error) if event.state == "error" else None, event.error)

    def _agent_ended(self, run: _Run, event: AgentEnded) -> None:
        if not event.depth:
            return
        work = run.take(("agent", event.within, None))
        if work is not None:
            work.span.set_attribute("talkfold.agent.reason", event.reason)
            self._end(work.span, "agent_error" if event.reason == "error" else None, event.error)

    def _run_ended(self, run: _Run, event: RunEnded) -> None:
        del self._runs[event.run]
        own = run.open.pop(0).span
        run.end_all(event.cause)
        own.set_attributes({"talkfold.run.cause": event.cause, "talkfold.run.parts": event.parts})
        if event.reason is not None:
            own.set_attribute("talkfold.run.reason", event.reason)
        for fault in event.faults:
            attributes: _Attributes = {"talkfold.fault.code": fault.code, "talkfold.fault.count": fault.count}
            own.add_event("talkfold.fault", attributes | ({"talkfold.fault.text": fault.text} if self._capture else {}))
        failed = event.cause if event.cause in _FAILED else None
        said = (event.error_code or "agent_error") if event.reason == "error" else None
        self._end(own, failed or said, event.error)

    def _end(self, span: Span, error_type: str | None, text: str | None) -> None:
        if error_type is not None:
            span.set_attribute("error.type", error_type)
            span.set_status(StatusCode.ERROR, text if self._capture else None)
        span.end()


class _Work:
    """A span that goes on. As an ``Observation`` it makes the span current."""

    def __init__(self, key: _Key, span: Span, number: object = None) -> None:
        self.key = key
        self.span = span
        self.number = number

    @property
    def meta(self) -> Mapping[str, Json]:
        ids = self.span.get_span_context()
        if not ids.is_valid:
            return {}
        return {"trace": trace.format_trace_id(ids.trace_id), "span": trace.format_span_id(ids.span_id)}

    def around(self) -> AbstractContextManager[None]:
        return _Current(self.span)


class _Current(AbstractContextManager[None]):
    def __init__(self, span: Span) -> None:
        self._span = span
        self._token: Token[Context] | None = None

    def __enter__(self) -> None:
        self._token = attach(trace.set_span_in_context(self._span))

    def __exit__(self, *raised: object) -> None:
        if self._token is not None:
            detach(self._token)


class _Run:
    """A run that goes on, and its open spans in the order in which they began: its own comes first."""

    def __init__(self, session_id: str, caller: int, own: _Work) -> None:
        self.session_id = session_id
        self.open = [own]
        self._caller = caller
        self._trace = own.span.get_span_context().trace_id

    def context(self, around: _Key) -> Context:
        """Where a new span belongs: under the current one, if that is of this run. An adapter may make its calls
        from a task that was there before the run; then it is under the work ``around`` it."""
        current = trace.get_current_span()
        ids = current.get_span_context()
        if ids.trace_id == self._trace and ids.span_id != self._caller:
            return trace.set_span_in_context(current)
        inner = next((work for work in reversed(self.open) if work.key[:2] == around[:2]), self.open[0])
        return trace.set_span_in_context(inner.span)

    def call(self, number: int) -> _Work | None:
        """The open call whose action has this number in the log."""
        return next((work for work in self.open if work.number == number), None)

    def take(self, key: _Key) -> _Work | None:
        """The work that has ended, out of the open ones. An agent makes one call at a time: no key is there twice."""
        found = next((work for work in self.open[1:] if work.key == key), None)
        if found is not None:
            self.open.remove(found)
        return found

    def end_all(self, error_type: str) -> None:
        """End what is open, inner spans first."""
        for work in reversed(self.open):
            work.span.set_attribute("error.type", error_type)
            work.span.set_status(StatusCode.ERROR)
            work.span.end()
        self.open.clear()


def _agent(session_id: str, agent_id: str, adapter_id: str) -> _Attributes:
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": adapter_id,  # what is known of it: the adapter knows the provider, the run does not
        "gen_ai.agent.name": agent_id,
        "gen_ai.agent.id": agent_id,  # the application chose it and it stays, as the conventions ask of an id
        "gen_ai.conversation.id": session_id,
    }


def _tool_error(text: str | None) -> str:
    """The class of a call's error: its code, where the text begins with one, else what MCP's conventions say."""
    found = _CODE.match(text or "")
    return found[1] if found and found[1] in _CODES else "tool_error"
