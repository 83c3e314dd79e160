"""Effects of a line that were started and that nobody confirmed, over its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from holdfast.core.approvals import Book
from holdfast.core.effects import (
    Word,
    effect_name,
    is_cut_off,
    is_open,
    made_none,
    open_since,
)
from holdfast.core.state import State
from holdfast.engine.journals import overlapping, read_state
from holdfast.engine.lines import line_journal
from holdfast.engine.questions import Question, goes_on
from holdfast.engine.received import TELLING, Received
from holdfast.model.line import StepAccepted, StepAmended, StepUndone
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Store


def left_beside(store: Store, state: State, step_id: StepId) -> tuple[str, ...]:
    """The attempts of other runs that may share the line with this one whose effect is open."""
    if not state.plan.steps[step_id].done_once:
        return ()
    found = sharing(store, state, step_id, partial(read_state, store), {})
    others = (one for one in found if one is not state and is_left(one, step_id))
    return tuple(sorted(effect_name(other, step_id) for other in others))


def sharing(
    store: Store,
    state: State,
    step_id: StepId,
    read: Callable[[RunId], State | None],
    joined: dict[RunId, bool],
) -> Iterator[State]:
    """This run and those with the step that may share the line with it, newest first."""
    for run in overlapping(store, state.project, state.line, joined):
        other = state if run == state.run else read(run)
        if other is not None and step_id in other.steps:
            yield other


def is_left(state: State, step_id: StepId) -> bool | None:
    """Whether a run left an effect of its own open, if nobody drives it; None if it says nothing."""
    if made_none(state, step_id):
        return None
    return is_cut_off(state, step_id) or is_open(state, step_id)


def asked_about(store: Store, state: State, step_id: StepId) -> Question:
    """Whether a step that is held may be tried again, as things stand."""
    beside = left_beside(store, state, step_id)
    return goes_on(step_id, state.run, state.steps[step_id], beside)


def is_left_rejected(store: Store, state: State, step_id: StepId) -> bool:
    """Whether a person rejected a step whose effect may have happened: only who names it repeats it."""
    if state.steps[step_id].phase != "failed" or not state.plan.steps[step_id].done_once:
        return False
    if is_open(state, step_id) is False:
        return False
    return _open_since(store, state, step_id) is not None


def left_alone(
    store: Store,
    state: State,
    now: int,
    drives: Callable[[State], bool],
    without: StepId | None = None,
) -> set[StepId]:
    """The steps that going on with a run will not let touch the outside: their effects are open.

    With those that stand on them, if what they need is not given. Whose repetition was approved is none,
    nor is a step that the run goes on `without`.
    """
    once = [s for s, step in state.plan.steps.items() if step.done_once and s != without]
    if not once:
        return set()
    book, given = Book(), dict[StepId, list[Word]]()
    for recorded in store.read(line_journal(state.project, state.line)):
        book.take(recorded)
        if isinstance(recorded.event, StepAmended | StepAccepted):
            given.setdefault(recorded.event.step, []).append(recorded.event)
    found: set[StepId] = set()
    for step_id in once:
        since = _since(store, state, step_id, drives)
        asked = book.by_subject.get(asked_about(store, state, step_id).subject, [])[-1:]
        if since is None or any(approval.stand(now) == "approved" for approval in asked):
            continue
        words = given.get(step_id, ())
        stands = any(word.after_seq >= since.get(word.after_run, now) for word in words)
        found |= {step_id} if stands else state.graph.below([step_id])
    return found


def left_open(store: Store, state: State, drives: Callable[[State], bool]) -> set[StepId]:
    """The steps whose effect may have happened, and nobody confirmed."""
    once = [s for s, step in state.plan.steps.items() if step.done_once]
    return {s for s in once if _since(store, state, s, drives) is not None}


def _since(
    store: Store, state: State, step_id: StepId, drives: Callable[[State], bool]
) -> Mapping[RunId, int] | None:
    """The events that left the effect of a step open, in this run and those before; None if it is not."""
    if is_cut_off(state, step_id) and not drives(state):
        return {state.run: state.steps[step_id].effect_at}
    return _open_since(store, state, step_id)


def _open_since(store: Store, state: State, step_id: StepId) -> dict[RunId, int] | None:
    told = store.told([line_journal(state.project, state.line)], [*TELLING, StepUndone])
    words, received = list[Word](), Received()
    for _, recorded in told:
        event = recorded.event
        received.take(recorded)
        if isinstance(event, StepUndone):
            words = [] if event.step == step_id else words
        elif isinstance(event, StepAmended | StepAccepted) and event.step == step_id:
            words.append(event)
    past = partial(read_state, store)
    since = open_since(past, words, step_id, state.run)
    if since is None and (left := received.open_of(store, past, step_id, state.run)) is not None:
        return {left.run: left.steps[step_id].effect_at or left.steps[step_id].held_at}
    return since
