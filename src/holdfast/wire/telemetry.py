"""Sends the spans of a run to a collector by OpenTelemetry; loaded only if the environment names one.

It is told of events that are stored, on the engine's own thread, and hands spans to a thread that sends them.
A collector that is slow, absent or wrong costs a run nothing but a sentence: what cannot be sent is dropped.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import cast

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import (
    SERVICE_NAME,
    SERVICE_VERSION,
    OTELResourceDetector,
    Resource,
)
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from holdfast.core import genai
from holdfast.core.spans import Span, Spans, Value
from holdfast.core.state import State
from holdfast.errors import IntegrityError
from holdfast.model.digest import Digest, Json
from holdfast.model.event import Recorded, RunStarted
from holdfast.model.plan import Plan, Step, StepId
from holdfast.model.secret import struck_text
from holdfast.model.text import cut, one_line
from holdfast.model.version import VERSION
from holdfast.planner.goal import PLANNING
from holdfast.ports import Store

CONTENT = "HOLDFAST_OTEL_CONTENT"
LONGEST = 65_536  # characters of one content
MOST_WAITING = 50_000  # spans that were not sent yet; beyond that they are dropped
BATCH = 512
SECONDS = 2.0  # that the end of a run waits until the last spans are sent
_BRIEFLY = 0.2  # if it failed before
_PAUSE = 1.0  # between batches
_WIDEST = 200
_NANO = 1_000_000  # nanoseconds in a millisecond


class Telling:
    """Whoever is told of events, and the collector beside him. Nothing of it reaches the run."""

    def __init__(
        self,
        on_events: Callable[[list[Recorded]], None],
        store: Store,
        secrets: Callable[[], Sequence[str]],
        say: Callable[[str], None],
        exporter: SpanExporter | None = None,
    ) -> None:
        self._on_events = on_events
        self._store = store
        self._secrets = secrets
        self._say = say
        self._given = exporter
        self._heard: list[Recorded] = []
        self._spans: Spans | None = None
        self._sending: Sending | None = None
        self._said = self._over = False

    def __call__(self, events: list[Recorded]) -> None:
        """Tell him first; spans are made of what has been stored already."""
        self._on_events(events)
        if self._spans is None:
            self._heard += events
        else:
            self._safely(lambda: self._tell(events))

    def began(self, state: State) -> None:
        """The run is known now: what was told before belongs to it, and so does its journal."""

        def steps(step: StepId) -> Step | None:  # of the plan as it is then: it may grow
            return state.plan.steps.get(step)

        self._safely(lambda: self._begin(state.run, steps))

    def repeated(self, plan: Plan, events: Sequence[Recorded]) -> None:
        """A run that was over as soon as it began."""
        first = events[0].event
        assert isinstance(first, RunStarted)  # every run begins so
        self._heard = [*events]
        self._safely(lambda: self._begin(first.run, plan.steps.get))
        self.close()

    def _begin(self, run: str, steps: Callable[[StepId], Step | None]) -> None:
        self._spans = Spans(steps, PLANNING)
        heard, self._heard = self._heard, []
        first = heard[0].seq if heard else None
        for recorded in self._store.read(f"run:{run}"):  # what an engine before this one told of
            if first is not None and recorded.seq >= first:
                break
            self._spans.take(recorded)
        self._tell(heard)

    def _tell(self, events: Sequence[Recorded]) -> None:
        assert self._spans is not None
        for recorded in events:
            for span in self._spans.take(recorded):
                self._send(span)
        self._complain()

    def _send(self, span: Span) -> None:
        if self._sending is None:
            self._sending = Sending(self._given or OTLPSpanExporter())
        contents = Contents(self._store, self._secrets()) if _wants_content() else None
        self._sending.send(span, contents)

    def close(self) -> None:
        """Send what is left, within a moment."""
        self._safely(self._end)
        self._over = True

    def _end(self) -> None:
        if self._sending is not None:
            self._sending.close(SECONDS if not self._said else _BRIEFLY)
            self._complain()

    def _complain(self) -> None:
        if self._sending is not None and self._sending.wrong and not self._said:
            self._said = True
            self._say(f"telemetry is not sent: {self._sending.wrong}; the run goes on without it")

    def _safely(self, act: Callable[[], None]) -> None:
        """Whatever goes wrong here ends the telling, and nothing else."""
        if self._over:
            return
        try:
            act()
        except Exception as error:  # noqa: BLE001 - the boundary between a run and who looks on
            self._over = True
            if not self._said:
                self._say(f"telemetry ends here: {error}; the run goes on without it")


def _wants_content() -> bool:
    return os.environ.get(CONTENT) == "1"


# --- sending --------------------------------------------------------------------------------------


class _Ids(IdGenerator):
    """Gives the ids that were put here before a span is begun."""

    trace = span = 0

    def generate_trace_id(self) -> int:
        return self.trace

    def generate_span_id(self) -> int:
        return self.span


class _Queue(SpanProcessor):
    """Spans on their way to the thread that sends them."""

    def __init__(self) -> None:
        self.waiting: deque[ReadableSpan] = deque()
        self.dropped = 0

    def on_end(self, span: ReadableSpan) -> None:
        if len(self.waiting) < MOST_WAITING:
            self.waiting.append(span)
        else:
            self.dropped += 1


class _Heard(logging.Handler):
    """Keeps the first complaint of the library instead of printing all of them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.words = ""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):
            self.words = self.words or record.getMessage()


class Sending:
    """A thread that sends spans by an exporter, in batches, until it is closed."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._ids = _Ids()
        self._queue = _Queue()
        self._failed = ""
        self._heard = _Heard()
        self._logger = logging.getLogger("opentelemetry")
        self._propagates = self._logger.propagate
        self._logger.addHandler(self._heard)
        self._logger.propagate = False
        provider = TracerProvider(
            sampler=ALWAYS_ON,
            resource=_resource(),
            shutdown_on_exit=False,
            id_generator=self._ids,
        )
        provider.add_span_processor(self._queue)
        self._tracer = provider.get_tracer("holdfast", VERSION)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="telemetry", daemon=True)
        self._thread.start()

    @property
    def wrong(self) -> str:
        """Why spans were not sent, the first time they were not."""
        if not self._failed and not self._queue.dropped:
            return ""
        words = self._heard.words or self._failed or "more spans came than were sent"
        if "NewConnectionError" in words or "Connection refused" in words:
            words = "the collector cannot be reached"
        return cut(one_line(words), _WIDEST)

    def send(self, span: Span, contents: Contents | None) -> None:
        """Hand a span over; it is sent later."""
        self._ids.trace, self._ids.span = int(span.trace, 16), int(span.id, 16)
        values: dict[str, Value] = dict(span.values)
        if contents is not None:
            values |= contents.texts(span.content)
        made = self._tracer.start_span(
            span.name,
            context=self._below(span),
            kind=SpanKind.CLIENT if span.kind == "client" else SpanKind.INTERNAL,
            attributes=values,
            start_time=span.start * _NANO,
        )
        for noted in span.noted:
            more = {} if contents is None else contents.texts(noted.content)
            made.add_event(noted.name, {**noted.values, **more}, noted.at * _NANO)
        if span.error:
            made.set_status(Status(StatusCode.ERROR, span.error))
        made.end(span.end * _NANO)

    def _below(self, span: Span) -> Context:
        """Where a span stands: below its parent, or first in a trace; never below a span of the program."""
        if not span.parent:
            return Context()
        sampled = TraceFlags(TraceFlags.SAMPLED)
        parent = SpanContext(
            int(span.trace, 16), int(span.parent, 16), is_remote=True, trace_flags=sampled
        )
        return set_span_in_context(NonRecordingSpan(parent), Context())

    def _work(self) -> None:
        while not self._closing.wait(_PAUSE):
            self._send_all()
        self._send_all()

    def _send_all(self) -> None:
        waiting = self._queue.waiting
        while waiting:
            batch = [waiting.popleft() for _ in range(min(BATCH, len(waiting)))]
            try:
                if self._exporter.export(batch) is SpanExportResult.SUCCESS:
                    continue
                self._failed = "the collector did not take them"
            except Exception as error:  # noqa: BLE001 - of a library, on a thread of its own
                self._failed = str(error) or type(error).__name__

    def close(self, seconds: float) -> None:
        """Send the rest for so many seconds, then leave it."""
        self._closing.set()
        self._thread.join(seconds)
        if self._thread.is_alive() and not self._failed:
            self._failed = "the collector does not answer"
        with suppress(Exception):
            self._exporter.shutdown()  # it gives up what it tries again and again
        self._thread.join(_BRIEFLY)
        if not self._thread.is_alive():
            self._logger.removeHandler(self._heard)
            self._logger.propagate = self._propagates


def _resource() -> Resource:
    """What sends: Holdfast, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES say otherwise."""
    ours = Resource({SERVICE_NAME: "holdfast", SERVICE_VERSION: VERSION})
    return ours.merge(OTELResourceDetector().detect())


# --- content --------------------------------------------------------------------------------------


class Contents:
    """What was said, as values of spans, with secrets struck out."""

    def __init__(self, store: Store, secrets: Sequence[str]) -> None:
        self._store = store
        self._secrets = secrets

    def texts(self, named: Mapping[str, Digest]) -> dict[str, Value]:
        """The contents as far as they are still there."""
        found: dict[str, Value] = {}
        for key, digest in named.items():
            with suppress(IntegrityError, ValueError, KeyError, TypeError):
                found[key] = struck_text(self._text(key, digest), self._secrets)[:LONGEST]
        return found

    def _text(self, key: str, digest: Digest) -> str:
        text = self._store.get(digest).decode("utf-8", "replace")
        if key == genai.INPUT_MESSAGES:
            asked = cast("Mapping[str, list[Mapping[str, Json]]]", json.loads(text))
            return json.dumps([_message(one) for one in asked["messages"]], ensure_ascii=False)
        if key == genai.OUTPUT_MESSAGES:
            said = cast("Mapping[str, Json]", json.loads(text))
            finish = str(said.get("finish", "stop"))
            whole = _message({"role": "assistant", **said})
            answer = {**whole, "finish_reason": genai.FINISHES.get(finish, finish)}
            return json.dumps([answer], ensure_ascii=False)
        return text


def _message(one: Mapping[str, Json]) -> dict[str, Json]:
    """A message in the shape of the conventions: a role, and parts."""
    if one.get("answers"):
        part: Json = {
            "type": "tool_call_response",
            "id": one["answers"],
            "response": one.get("text", ""),
        }
        return {"role": "tool", "parts": [part]}
    parts: list[Json] = [{"type": "text", "content": one["text"]}] if one.get("text") else []
    uses = cast("list[Mapping[str, Json]]", one.get("uses", []))
    parts += [{"type": "tool_call", **use} for use in uses]
    return {"role": one["role"], "parts": parts}
