"""What the tests of traces have in common: spans in memory, and what is asked of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from run_world import calls

from talkfold.runs import RunSettings
from talkfold.runs.tracing import OpenTelemetry

ROOT = Path(__file__).parents[2]


class Traces(SpanProcessor):
    """Spans that have ended, and those that have not."""

    def __init__(self, **options: Any) -> None:
        self.provider = TracerProvider(shutdown_on_exit=False, **options)
        self.exporter = InMemorySpanExporter()
        self.provider.add_span_processor(self)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.begun: list[int] = []
        self.open: set[int] = set()

    def on_start(self, span: ReadableSpan, parent_context: object = None) -> None:
        self.begun.append(span.context.span_id)
        self.open.add(span.context.span_id)

    def on_end(self, span: ReadableSpan) -> None:
        self.open.remove(span.context.span_id)

    def tracer(self) -> trace.Tracer:
        return self.provider.get_tracer("test")

    def settings(self, **options: Any) -> RunSettings:
        return RunSettings(observe=OpenTelemetry(self.provider, **options), grace_seconds=0.2)

    def ended(self) -> list[ReadableSpan]:
        """All spans, in the order in which they began. None is open any more."""
        assert self.open == set()
        return sorted(self.exporter.get_finished_spans(), key=lambda span: self.begun.index(span.context.span_id))

    def named(self, name: str) -> ReadableSpan:
        (span,) = [span for span in self.ended() if span.name == name]
        return span

    def tree(self) -> list[str]:
        """The names, indented by depth. All spans are of one trace."""
        spans = self.ended()
        by_id = {span.context.span_id: span for span in spans}
        assert len({span.context.trace_id for span in spans}) == 1

        def depth(span: ReadableSpan) -> int:
            return 1 + depth(by_id[span.parent.span_id]) if span.parent and span.parent.span_id in by_id else 0

        return [". " * depth(span) + span.name for span in spans]


def about(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def status(span: ReadableSpan) -> tuple[StatusCode, str | None, Any]:
    return span.status.status_code, span.status.description, about(span).get("error.type")


FINE = (StatusCode.UNSET, None, None)


def failed(error_type: str, text: str | None = None) -> tuple[StatusCode, str | None, str]:
    return (StatusCode.ERROR, text, error_type)


def everything(spans: list[ReadableSpan]) -> str:
    return "\n".join(span.to_json() for span in spans)


def add(a: int, b: int) -> int:
    return a + b


ADDS = calls(("c1", "add", {"a": 1, "b": 2}))


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
