"""A run as spans of a trace: a function of its journal alone.

Every id follows from the run and from what the span tells of, every time is the journal's. So a run that was
killed and resumed is one trace, whoever drove it: what an engine could not tell any more is told by the one
that takes it up, under the same ids.

    run       from each start to the rest or end that follows; a later one stands below the first
    attempt   below the start in which it began
    call, use of a tool   below their attempt
    verdict   an event of its attempt
    approval  from the question to the answer, below the run
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from holdfast.core import genai
from holdfast.model.call import MICRO
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    AttemptStarted,
    CallAnswered,
    CallFailed,
    CallStarted,
    Recorded,
    RunEnded,
    RunRested,
    RunResumed,
    RunStarted,
    StepFailed,
    StepHeld,
    StepsReleased,
    StepsReopened,
    StepsReset,
    StepsReused,
    StepsSkipped,
    StepsTaken,
    ToolStarted,
    ToolUsed,
)
from holdfast.model.fixed import fixed
from holdfast.model.plan import CLI_AGENT, Step, StepId

Value = str | int | float | bool | tuple[str, ...]
Values = Mapping[str, Value]
Steps = Callable[[StepId], Step | None]
_Ended = AttemptAccepted | AttemptRejected | AttemptFailed | AttemptLost | AttemptParked
_WRONG = frozenset({"failed", "escalated", "blocked"})
_FORCED = frozenset({"forced", "resampled", "retried"})
_DIED = "engine_died"
_CUT = "interrupted"


class Noted(NamedTuple):
    """Something that happened within a span; `content` are values that stand in the store."""

    name: str
    at: int
    values: Values
    content: Mapping[str, Digest]


@fixed
class Span:
    """One span, ended. Times are milliseconds since 1970; without a `parent` it is the first of its trace."""

    trace: str
    id: str
    parent: str
    name: str
    start: int
    end: int
    values: Values
    kind: Literal["internal", "client"] = "internal"
    noted: tuple[Noted, ...] = ()
    content: Mapping[str, Digest] = field(default_factory=dict)
    error: str = ""  # its code, if it did not come to what it was for


@dataclass(slots=True)
class _Open:
    """Something that has begun."""

    id: str
    parent: str
    name: str
    at: int
    values: dict[str, Value]
    kind: Literal["internal", "client"] = "internal"
    content: dict[str, Digest] = field(default_factory=dict)


class Spans:
    """The spans of one run, as its events come; `steps` finds the steps of its plan."""

    def __init__(self, steps: Steps, planning: str = "") -> None:
        self._steps = steps
        self._planning = planning  # how the lines are called on which plans are made
        self._start: RunStarted | None = None
        self._life: _Open | None = None
        self._first = ""  # the id of the span of the first start
        self._last = 0
        self._reused = self._skipped = 0
        self._attempts: dict[StepId, _Open] = {}
        self._calls: dict[tuple[StepId, int], _Open] = {}
        self._tools: dict[tuple[StepId, Digest], _Open] = {}
        self._waits: dict[StepId, _Open] = {}

    def take(self, recorded: Recorded) -> list[Span]:
        """The spans that end with an event."""
        ended = [*self._ended(recorded)]
        self._last = recorded.at
        return ended

    def _ended(self, recorded: Recorded) -> Iterator[Span]:
        event, at = recorded.event, recorded.at
        match event:
            case RunStarted() | RunResumed():
                yield from self._begin(event, recorded.seq, at)
            case RunRested(status=status) | RunEnded(status=status):
                yield from self._rest(status, at)
            case AttemptStarted():
                self._attempt(event, at)
            case (
                AttemptAccepted()
                | AttemptRejected()
                | AttemptFailed()
                | AttemptLost()
                | AttemptParked()
            ):
                yield from self._end_attempt(event, at)
                if isinstance(event, AttemptParked):
                    self._wait(event.step, recorded.seq, at, "guard", event.approvals)
                else:
                    yield from self._answered([event.step], at, _outcome(event))
            case CallStarted():
                self._call(event, at)
            case CallAnswered() | CallFailed():
                yield from self._end_call(event, at)
            case ToolStarted() | ToolUsed():
                yield from self._tool(event, at)
            case StepHeld(step=step, reason=reason):
                self._wait(step, recorded.seq, at, reason.code, reason.because)
            case StepsReleased(steps=steps, code=code) | StepsReset(steps=steps, code=code):
                yield from self._answered(steps, at, code)
            case StepsReopened(steps=steps):
                yield from self._answered(steps, at, "reopened")
            case StepFailed(step=step, reason=reason):
                yield from self._answered([step], at, reason.code)
            case StepsReused(items=items) | StepsTaken(items=items):
                self._reused += len(items)
            case StepsSkipped(items=skipped):
                self._skipped += len(skipped)
            case _:
                pass

    # --- a run ----------------------------------------------------------------------------------

    def _begin(self, event: RunStarted | RunResumed, seq: int, at: int) -> Iterator[Span]:
        if self._life is not None:  # nobody saw it end
            yield self._closed(self._life, self._last, {genai.STATUS: "running"}, _DIED)
        if isinstance(event, RunStarted):
            self._start = event
        start = self._start
        if start is None:
            return
        own = self._id("run", str(seq))
        values: dict[str, Value] = {
            genai.OPERATION: genai.INVOKE_WORKFLOW,
            genai.WORKFLOW: start.line,
            genai.RUN: start.run,
            genai.PLAN_REF: start.w_ref,
            genai.PLAN_DIGEST: start.plan,
            genai.RESUMED: isinstance(event, RunResumed),
        }
        name = f"{genai.INVOKE_WORKFLOW} {start.line}"
        self._life = _Open(own, self._first, name, at, values)
        self._first = self._first or own
        self._reused = self._skipped = 0

    def _rest(self, status: str, at: int) -> Iterator[Span]:
        for step in [*self._attempts]:  # none is left if the engine itself came to a rest
            yield from self._cut(step, at)
        if self._life is None:
            return
        values: dict[str, Value] = {
            genai.STATUS: status,
            genai.STEPS_REUSED: self._reused,
            genai.STEPS_SKIPPED: self._skipped,
        }
        yield self._closed(self._life, at, values, status if status in _WRONG else "")
        self._life = None

    # --- attempts -------------------------------------------------------------------------------

    def _attempt(self, event: AttemptStarted, at: int) -> None:
        step = self._steps(event.step)
        asks = step is not None and (step.asks_model or step.uses == CLI_AGENT)
        operation = genai.INVOKE_AGENT if asks else ""
        if self._planning and self._start and self._start.line.endswith(self._planning):
            operation = genai.PLAN
        values: dict[str, Value] = {
            **({genai.OPERATION: operation} if operation else {}),
            **({genai.AGENT: (step and step.agent) or event.step} if asks else {}),
            **self._about(event.step, event.attempt),
            genai.REASON: event.reason.code,
            genai.REUSE: "forced" if event.reason.code in _FORCED else "miss",
            genai.CONFIG_REF: event.config_ref,
        }
        if event.approvals:
            values[genai.APPROVALS] = event.approvals
        name = f"{operation or genai.STEP} {event.step}"
        parent = self._life.id if self._life else self._first
        own = self._id("attempt", event.step, str(event.attempt))
        self._attempts[event.step] = _Open(own, parent, name, at, values)

    def _end_attempt(self, event: _Ended, at: int) -> Iterator[Span]:
        open_one = self._attempts.pop(event.step, None)
        if open_one is None:
            return
        yield from self._left_over(event.step, at)
        values: dict[str, Value] = {genai.OUTCOME: _outcome(event)}
        error, noted = "", tuple[Noted, ...]()
        match event:
            case AttemptAccepted():
                values |= {genai.ARTIFACT: event.digest, genai.VERIFIED: event.verified}
                noted = tuple(self._passed(event, at))
            case AttemptParked():
                values[genai.ARTIFACT] = event.digest
            case AttemptRejected():
                error, noted = "guard_rejected", (_refused(event, at),)
            case AttemptFailed() | AttemptLost():
                error = event.code
        yield replace(self._closed(open_one, at, values, error), noted=noted)

    def _passed(self, event: AttemptAccepted, at: int) -> Iterator[Noted]:
        """Every guard of a step said yes to what was accepted as verified."""
        step = self._steps(event.step) if event.verified else None
        for guard in step.guards if step else ():
            values: dict[str, Value] = {
                genai.EVALUATION_NAME: guard.name or guard.kind,
                genai.EVALUATION_LABEL: "pass",
            }
            if event.score is not None and guard.asks_model:
                values[genai.EVALUATION_SCORE] = event.score / 1000
            yield Noted(genai.EVALUATION, at, values, {})

    def _cut(self, step: StepId, at: int) -> Iterator[Span]:
        """End an attempt of which no end was written."""
        yield from self._left_over(step, at)
        yield self._closed(self._attempts.pop(step), at, {genai.OUTCOME: "lost"}, _CUT)

    def _left_over(self, step: StepId, at: int) -> Iterator[Span]:
        """End the calls and tools of an attempt that were under way when it ended."""
        for key in [key for key in self._calls if key[0] == step]:
            yield self._closed(self._calls.pop(key), at, {}, _CUT)
        for use in [use for use in self._tools if use[0] == step]:
            yield self._closed(self._tools.pop(use), at, {}, _CUT)

    # --- calls and tools ------------------------------------------------------------------------

    def _call(self, event: CallStarted, at: int) -> None:
        provider, _, model = event.model.partition(":")
        values: dict[str, Value] = {
            genai.OPERATION: genai.CHAT,
            genai.PROVIDER: genai.PROVIDERS.get(provider, provider),
            genai.MODEL: model,
            **self._about(event.step, event.attempt),
        }
        own = self._id("call", event.step, str(event.attempt), str(event.call))
        name, parent = f"{genai.CHAT} {model}", self._parent(event.step, event.attempt)
        content = {genai.INPUT_MESSAGES: event.request}
        made = _Open(own, parent, name, at, values, "client", content)
        self._calls[event.step, event.call] = made

    def _end_call(self, event: CallAnswered | CallFailed, at: int) -> Iterator[Span]:
        open_one = self._calls.pop((event.step, event.call), None)
        if open_one is None:
            return
        values: dict[str, Value] = {}
        if event.cost is not None:
            values[genai.COST] = event.cost / MICRO
        if isinstance(event, CallFailed):
            yield self._closed(open_one, at, values, event.code)
            return
        values |= {
            genai.INPUT_TOKENS: event.input,
            genai.OUTPUT_TOKENS: event.output,
            genai.CACHE_READ_TOKENS: event.cached,
            genai.FINISH_REASONS: (genai.FINISHES.get(event.finish, event.finish),),
            **({genai.RESPONSE_ID: event.id} if event.id else {}),
        }
        open_one.content[genai.OUTPUT_MESSAGES] = event.answer
        yield self._closed(open_one, at, values)

    def _tool(self, event: ToolStarted | ToolUsed, at: int) -> Iterator[Span]:
        key = (event.step, event.use)
        if isinstance(event, ToolStarted):
            self._tools[key] = self._used(event, at)
            return
        begun = self._tools.pop(key, None) or self._used(event, at - event.took_ms)
        begun.content[genai.TOOL_RESULT] = event.answer
        yield self._closed(begun, at, {}, "" if event.ok else "tool_error")

    def _used(self, event: ToolStarted | ToolUsed, at: int) -> _Open:
        name = event.name or "unknown"
        own = self._id("tool", event.step, str(event.attempt), event.use)
        values: dict[str, Value] = {
            genai.OPERATION: genai.EXECUTE_TOOL,
            genai.TOOL: name,
            **self._about(event.step, event.attempt),
        }
        parent = self._parent(event.step, event.attempt)
        content = {genai.TOOL_ARGUMENTS: event.arguments}
        return _Open(own, parent, f"{genai.EXECUTE_TOOL} {name}", at, values, content=content)

    # --- people ---------------------------------------------------------------------------------

    def _wait(self, step: StepId, seq: int, at: int, code: str, names: Iterable[str]) -> None:
        values: dict[str, Value] = {genai.STEP_ID: step, genai.REASON: code}
        if asked := tuple(names):
            values[genai.APPROVALS] = asked
        own = self._id("wait", step, str(seq))
        parent = self._life.id if self._life else self._first
        self._waits.setdefault(step, _Open(own, parent, f"{genai.APPROVAL} {step}", at, values))

    def _answered(self, steps: Iterable[StepId], at: int, how: str) -> Iterator[Span]:
        for step in steps:
            if (waited := self._waits.pop(step, None)) is not None:
                yield self._closed(waited, at, {genai.OUTCOME: how})

    # --- ids ------------------------------------------------------------------------------------

    def _about(self, step: StepId, attempt: int) -> Values:
        return {genai.STEP_ID: step, genai.ATTEMPT: attempt}

    def _parent(self, step: StepId, attempt: int) -> str:
        """The span of the attempt, whether it was seen to begin or not."""
        return self._id("attempt", step, str(attempt))

    def _id(self, *parts: str) -> str:
        run = self._start.run if self._start else ""
        return digest_bytes("\0".join((run, *parts)).encode())[:16]

    def _closed(self, one: _Open, at: int, values: Values, error: str = "") -> Span:
        assert self._start is not None  # nothing is open before it
        whole = {**one.values, **values, **({genai.ERROR: error} if error else {})}
        return Span(
            trace=trace_of(self._start.run),
            id=one.id,
            parent=one.parent,
            name=one.name,
            start=one.at,
            end=max(one.at, at),
            values=whole,
            kind=one.kind,
            content=one.content,
            error=error,
        )


def trace_of(run: str) -> str:
    """The id of a run's trace."""
    return digest_bytes(f"trace\0{run}".encode())[:32]


def _outcome(event: _Ended) -> str:
    return type(event).__name__.removeprefix("Attempt").lower()


def _refused(event: AttemptRejected, at: int) -> Noted:
    content = {} if event.feedback is None else {genai.EVALUATION_WORDS: event.feedback}
    values = {genai.EVALUATION_NAME: event.guard, genai.EVALUATION_LABEL: "fail"}
    return Noted(genai.EVALUATION, at, values, content)
