"""What a run takes over from those before it and beside it: answers that were paid for and never acted on.

They are read from the runs that heard them, not handed on by whoever ended one: a process that dies
between the end of one run and the beginning of the next loses nothing. What a run had and acted on is used
up, also where another one still has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from holdfast.core.effects import is_in_hand
from holdfast.core.estimate import asked_models
from holdfast.core.fold import apply
from holdfast.core.state import Paid, State, StepState, Tools
from holdfast.engine.journals import is_complete, overlapping, read_state
from holdfast.model.digest import Digest
from holdfast.model.event import AnswersKept, CallAnswered, Recorded
from holdfast.model.plan import Plan, RunId, StepId
from holdfast.ports import Store

MOST_BESIDE = 8  # runs of a line that may have left something


def left_answers(
    store: Store, plan: Plan, line: str, driven: Collection[RunId | None]
) -> list[AnswersKept]:
    """What the steps of a plan need not ask again; what `driven` runs have is still theirs.

    What is asked otherwise now is simply not found among it.
    """
    if not any(asked_models(step) for step in plan.steps.values()):
        return []
    span = _span(store, plan.project, line, {})
    if all(run in driven or is_complete(store, run) for run in span):
        return []
    read = ((run, read_state(store, run)) for run in span)
    known = {run: _Known.of(store, state) for run, state in read if state is not None}
    over = [one for run, one in known.items() if run not in driven]
    steps = sorted({step for one in over for step in one.state.steps} & plan.steps.keys())
    found = (_kept(store, step, over, known.values()) for step in steps)
    return [one for one in found if one is not None]


def _span(store: Store, project: str, line: str, joined: dict[RunId, bool]) -> list[RunId]:
    """The runs that may have left something to one that goes on now, newest first.

    Who begins alone takes over what those before it left.
    """
    return list(islice(overlapping(store, project, line, joined), MOST_BESIDE))


@dataclass
class _Known:
    """A run as its journal tells it so far, with every answer that it ever had."""

    state: State
    had: dict[StepId, set[Digest]] = field(default_factory=dict)
    upto: int = 0

    @classmethod
    def of(cls, store: Store, state: State) -> _Known:
        known = cls(state)
        told = store.told([f"run:{state.run}"], {CallAnswered, AnswersKept})
        known.note(recorded for _, recorded in told if recorded.seq <= state.seq)
        return known

    def note(self, events: Iterable[Recorded]) -> None:
        for recorded in events:
            event, self.upto = recorded.event, recorded.seq
            if isinstance(event, CallAnswered):
                self.had.setdefault(event.step, set()).add(event.answer)
            elif isinstance(event, AnswersKept):
                answers = (answer for _, answer in event.items)
                self.had.setdefault(event.step, set()).update(answers)

    def left(self, step_id: StepId) -> tuple[Paid, ...]:
        """The answers that no verdict followed yet."""
        step = self.state.steps.get(step_id)
        return () if step is None else (*step.paid, *step.heard)

    def used(self, step_id: StepId) -> set[Digest]:
        """The answers that an attempt acted on."""
        return self.had.get(step_id, set()) - {paid.answer for paid in self.left(step_id)}


class Beside:
    """The other runs of a run's line: each is read once, and then followed."""

    def __init__(self, store: Store, state: State) -> None:
        self._store = store
        self._state = state
        self._others: dict[RunId, _Known] = {}
        self._own: _Known | None = None
        self._joined: dict[RunId, bool] = {}
        self._span: list[RunId] | None = None  # of a line that nobody shares: nothing changes there

    def answers(self, step_id: StepId, *, shared: bool) -> AnswersKept | None:
        """What others paid for a step and never acted on; if the line is `shared`, its claim is ours now."""
        state = self._state
        if self._span is None or shared:
            span = _span(self._store, state.project, state.line, self._joined)
            self._span = [run for run in span if run != state.run]
        read = [self._now(run) if shared else self._known(run) for run in self._span]
        others = [one for one in read if one is not None]
        if not others:
            return None
        return _kept(self._store, step_id, others, [*others, self._mine()], self._mine())

    def has_in_hand(self, step_id: StepId) -> bool:
        """Whether an engine that shares the line has the effect of a step under way, under whatever key.

        Who is there is asked first: what one that has left by then said last is read afterwards.
        """
        state = self._state
        holders = self._store.holders(state.project, state.line)
        runs = {one.run for one in holders if one.run is not None and one.run != state.run}
        found = map(self._now, runs)
        return any(other is not None and is_in_hand(other.state, step_id) for other in found)

    def _known(self, run: RunId) -> _Known | None:
        if run not in self._others and (found := read_state(self._store, run)) is not None:
            self._others[run] = _Known.of(self._store, found)
        return self._others.get(run)

    def _now(self, run: RunId) -> _Known | None:
        known = self._known(run)
        if known is not None:
            news = list(self._store.read(f"run:{run}", known.state.seq))
            for recorded in news:
                apply(known.state, recorded)
            known.note(news)
        return known

    def _mine(self) -> _Known:
        """This run: what it left is known before it is stored, what it had only then."""
        if self._own is None:
            self._own = _Known.of(self._store, self._state)
        self._own.note(self._store.read(f"run:{self._state.run}", self._own.upto))
        return self._own


def _kept(
    store: Store,
    step_id: StepId,
    runs: Sequence[_Known],
    all_runs: Iterable[_Known],
    own: _Known | None = None,
) -> AnswersKept | None:
    """What runs left of one step, newest first, and none of all used up; this run's `own` it has already.

    A candidate that people had not decided about counts for nothing now.
    """
    used = {answer for one in all_runs for answer in one.used(step_id)}
    found = Counter[Paid]()  # whoever asks the same twice has two answers
    for one in runs:
        found |= Counter(one.left(step_id))
    if own is not None:
        found -= Counter(own.left(step_id))
    items = tuple(
        (paid.request, paid.answer)
        for paid in found.elements()
        if paid.answer not in used and store.has(paid.answer)
    )
    here = own.state.steps[step_id] if own is not None else StepState()
    tools = Tools() if here.attempts or here.tools else _tools(step_id, runs)
    said = tuple(item for item in tools.said.values() if store.has(item.answer))
    left = tuple(sorted(tools.left))
    return AnswersKept(step_id, items, said, left) if items or said or left else None


def _tools(step_id: StepId, runs: Iterable[_Known]) -> Tools:
    """What tools said to the newest run that tried the step: it had taken over what was left before."""
    for one in runs:
        step = one.state.steps.get(step_id)
        if step is not None and (step.attempts or step.tools):
            return step.tools or Tools()
    return Tools()
