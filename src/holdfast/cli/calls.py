"""What the calls of models are doing, in words: who is waited for, and how much was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.core.state import State
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
)
from holdfast.model.plan import Step, StepId

ANSWER = "answer"  # the stream of a model's words
FIRST_TOLD = 1000  # characters of an answer after which a line tells of it; then twice as many
TAIL = 500  # bytes of an answer that are kept for that line
_WORDS = {
    "rate_limited": "rate limited",
    "provider_error": "it could not answer",
    "unreachable": "it was not reached",
    "cut_off": "its answer broke off",
    "malformed": "its answer could not be read",
}


class Written(NamedTuple):
    """So much of an answer: characters, and the last bytes."""

    size: int = 0
    tail: bytes = b""


class Call(NamedTuple):
    """A call that is wanted, under way, or to be tried again."""

    model: str
    is_out: bool = False
    code: str = ""  # why the last one gave no answer
    until: int = 0  # when it is tried again

    @property
    def provider(self) -> str:
        return self.model.partition(":")[0]


@dataclass(slots=True)
class Calls:
    """The calls of a run as its events tell them, and how much of each answer is there."""

    steps: Mapping[StepId, Step] = field(default_factory=dict)
    under_way: dict[StepId, Call] = field(default_factory=dict)
    _held: dict[str, int] = field(default_factory=dict)  # providers that want peace, and until when
    _written: dict[StepId, Written] = field(default_factory=dict)

    def take(self, recorded: Recorded) -> None:
        """Count one event."""
        event = recorded.event
        match event:
            case AttemptStarted():
                self._begin(event)
            case CallStarted():
                self.under_way[event.step] = Call(event.model, is_out=True)
                self._written.pop(event.step, None)
            case CallFailed():
                self._fail(event, recorded.at)
            case (
                CallAnswered()
                | AttemptAccepted()
                | AttemptRejected()
                | AttemptFailed()
                | AttemptLost()
                | AttemptParked()
            ):
                self._forget(event.step)
            case _:
                pass

    def _begin(self, event: AttemptStarted) -> None:
        step = self.steps.get(event.step)
        self._forget(event.step)
        if step is not None and step.asks_model and event.reguard is None:
            self.under_way[event.step] = Call(step.model)

    def _forget(self, step: StepId) -> None:
        self.under_way.pop(step, None)
        self._written.pop(step, None)

    def _fail(self, event: CallFailed, at: int) -> None:
        self._written.pop(event.step, None)
        before = self.under_way.pop(event.step, None)
        if before is None or event.wait_ms is None:
            return
        until = at + event.wait_ms
        self.under_way[event.step] = Call(before.model, code=event.code, until=until)
        if event.code == "rate_limited":
            held = self._held.get(before.provider, 0)
            self._held[before.provider] = max(held, until)

    def add(self, step: StepId, stream: str, data: bytes) -> Written | None:
        """More of an answer came; what there is of it, if it has come so far that a line should tell."""
        if stream != ANSWER:
            return None
        before = self._written.get(step, Written())
        size = before.size + len(data.decode("utf-8", "ignore"))
        now = self._written[step] = Written(size, (before.tail + data[-TAIL:])[-TAIL:])
        return now if _is_worth_a_line(before.size, size) else None

    def words(self, step: StepId, now: int) -> str:
        """What the call of a step is doing; nothing if it has none."""
        call = self.under_way.get(step)
        if call is None:
            return ""
        if call.is_out:
            written = self._written.get(step)
            return writing(written) if written else f"asked {call.provider}"
        if call.until > now:
            why = f" ({_WORDS[call.code]})" if call.code in _WORDS else ""
            return f"asks again in {_left(call.until, now)} s{why}"
        held = self._held.get(call.provider, 0)
        if held > now:
            return f"waits {_left(held, now)} s for {call.provider} (rate limited)"
        return f"waits for {call.provider}"


def calls_of(state: State) -> Calls:
    """The calls of a run as it stands."""
    out = {
        step_id: Call(started.model, is_out=True)
        for step_id in state.running
        for started in (state.steps[step_id].calls or {}).values()
    }
    return Calls(state.plan.steps, out)


def writing(written: Written) -> str:
    """How far an answer is."""
    return f"writing, {written.size:,} characters"


def _is_worth_a_line(before: int, now: int) -> bool:
    """Whether an answer that grew has come to the next mark; each is twice as far as the one before."""
    mark = FIRST_TOLD
    while mark <= before:
        mark *= 2
    return now >= mark


def _left(until: int, now: int) -> int:
    return -(-(until - now) // 1000)
