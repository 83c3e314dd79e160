"""What events about calls mean: money and tokens reserved, settled, or spent in vain.

A call reserves the most that it may cost before it is sent. An answer settles it; a call that was cut off
counts with all that it had reserved, because nobody knows better. Answers are kept until their attempt
ends with a verdict: an attempt that was lost before leaves them to the next one.
"""

from __future__ import annotations

from collections.abc import Collection

from holdfast.core.moves import move
from holdfast.core.state import Paid, Spent, State, StepState, Tools
from holdfast.errors import BugError
from holdfast.model.event import (
    AnswersKept,
    CallAnswered,
    CallFailed,
    CallStarted,
    ToolStarted,
    ToolUsed,
    Used,
)


def call_started(state: State, event: CallStarted, _: int) -> None:
    """A model is about to be asked."""
    step = move(state, event.step, "call_started")
    if step.running is None or step.running.attempt != event.attempt:
        raise BugError(f"a call of '{event.step}' belongs to an attempt that is not running")
    calls = {} if step.calls is None else step.calls
    if event.call in calls:
        raise BugError(f"call {event.call} of '{event.step}' is under way already")
    step.calls = calls
    calls[event.call] = event
    state.reserved += event.reserved or 0
    state.reserved_tokens += event.tokens
    for spent in _accounts(state, step):
        spent.calls += 1


def call_answered(state: State, event: CallAnswered, _: int) -> None:
    """An answer is stored."""
    step = move(state, event.step, "call_answered")
    started = _close(state, step, event)
    _spend(state, step, event.cost, event.input + event.output)
    step.heard = (*step.heard, Paid(started.request, event.answer))


def call_failed(state: State, event: CallFailed, _: int) -> None:
    """A call ended without an answer; what it may have cost is spent."""
    step = move(state, event.step, "call_failed")
    _close(state, step, event)
    _spend(state, step, event.cost, event.tokens)
    if event.cost:
        _in_vain(state, step, event.cost)


def answers_kept(state: State, event: AnswersKept, _: int) -> None:
    """An earlier run left answers."""
    step = move(state, event.step, "answers_kept")
    step.paid = (*step.paid, *(Paid(*item) for item in event.items))
    if event.used or event.left:
        tools = _tools(step)
        tools.said |= {item.use: item for item in event.used}
        tools.left |= frozenset(event.left)


def tool_started(state: State, event: ToolStarted, _: int) -> None:
    """A tool is about to change something."""
    step = _running(state, event, "tool_started")
    if step.tools is not None and event.use in step.tools.doing:
        raise BugError(f"a use of '{event.name}' of '{event.step}' is under way already")
    _tools(step).doing.add(event.use)


def tool_used(state: State, event: ToolUsed, _: int) -> None:
    """A tool answered."""
    tools = _tools(_running(state, event, "tool_used"))
    tools.doing.discard(event.use)
    tools.said[event.use] = Used(event.use, event.answer, event.ok)


def _running(state: State, event: ToolStarted | ToolUsed, kind: str) -> StepState:
    step = move(state, event.step, kind)
    if step.running is None or step.running.attempt != event.attempt:
        raise BugError(f"a tool of '{event.step}' is used by an attempt that is not running")
    return step


def _tools(step: StepState) -> Tools:
    if step.tools is None:
        step.tools = Tools()
    return step.tools


def talks(step: StepState) -> bool:
    """Whether models or tools answered for the step, or are about to."""
    return step.spent is not None or step.tools is not None or bool(step.paid)


def acted_on(state: State, step: StepState, *, accepted: bool) -> None:
    """An attempt ended with a verdict, or could not: its answers are not asked for again, nor used again."""
    _cut_off(state, step)
    if step.spent is not None and not accepted:
        for spent in (step.spent, state.spent):
            spent.rejected += step.trying
    step.paid = step.heard = ()
    step.tools = None
    step.trying = 0


def cut_off(state: State, step: StepState, unsent: Collection[int] = ()) -> None:
    """An attempt was lost: what was sent may have cost all that was reserved; answers stay."""
    for event in tuple((step.calls or {}).values()):
        if event.call in unsent:
            _close(state, step, event)
            for spent in _accounts(state, step):
                spent.calls -= 1
    _cut_off(state, step)
    step.paid = (*step.paid, *step.heard)  # whoever asks the same twice has two answers
    step.heard = ()
    if step.tools is not None:
        step.tools.left |= step.tools.doing
        step.tools.doing = set()


def _cut_off(state: State, step: StepState) -> None:
    for event in tuple((step.calls or {}).values()):
        _close(state, step, event)
        _spend(state, step, event.reserved, event.tokens)
        _in_vain(state, step, event.reserved or 0, cut=1)


def _close(
    state: State, step: StepState, event: CallStarted | CallAnswered | CallFailed
) -> CallStarted:
    calls = step.calls or {}
    started = calls.get(event.call)
    if started is None or started.attempt != event.attempt:
        raise BugError(f"call {event.call} of '{event.step}' is not under way")
    del calls[event.call]
    state.reserved -= started.reserved or 0
    state.reserved_tokens -= started.tokens
    return started


def _spend(state: State, step: StepState, cost: int | None, tokens: int) -> None:
    for spent in _accounts(state, step):
        spent.cost += cost or 0
        spent.tokens += tokens
        spent.unpriced += cost is None
    step.trying += cost or 0


def _in_vain(state: State, step: StepState, cost: int, cut: int = 0) -> None:
    for spent in _accounts(state, step):
        spent.interrupted += cost
        spent.cut += cut
    step.trying -= cost


def _accounts(state: State, step: StepState) -> tuple[Spent, Spent]:
    if step.spent is None:
        step.spent = Spent()
    return state.spent, step.spent
