"""When nothing more may start before a person has looked. The fold asks; nobody else.

Three things say so: a critical step failed; a guard refused for good what a step with
`on_fatal: escalate` made; everything that ran in a wave failed, and at least two steps did. What was
reused did not run, what was skipped neither.

Waves are looked at only where something failed, and each step of such a wave is passed once: `settled`
is how far it is known that nothing of the wave is open or was made.
"""

from __future__ import annotations

from typing import Final

from holdfast.core.state import State, WaveFailures
from holdfast.model.event import Reason
from holdfast.model.plan import Step, StepId

_WITHOUT_SUCCESS: Final = frozenset({"failed", "skipped", "reused"})
_SEVERAL: Final = 2  # one step that fails alone in its wave is a failure like any other
_NAMED: Final = 5


def note_failure(state: State, step_id: StepId, reason: Reason) -> None:
    """A step failed for good."""
    step = state.plan.steps[step_id]
    if step.priority == "critical":
        _escalate(state, Reason("critical_failed", (step_id,)))
    if _is_fatal(step, reason):
        _escalate(state, Reason("fatal_verdict", (step_id,)))
    if state.steps[step_id].attempts:
        _wave_of(state, step_id).failed += 1
    note_settled(state, step_id)


def escalates(step: Step, reason: Reason) -> bool:
    """Whether nothing more starts once this step failed so."""
    return step.priority == "critical" or _is_fatal(step, reason)


def _is_fatal(step: Step, reason: Reason) -> bool:
    return reason.code == "guard_fatal" and step.on_fatal == "escalate"


def note_settled(state: State, step_id: StepId) -> None:
    """A step came to its end without having been made: its wave may be over."""
    wave = state.failures.get(state.graph.wave[step_id])
    if wave is None:
        return
    order, steps = state.graph.order, state.steps
    while wave.settled < wave.end:
        if steps[order[wave.settled]].phase not in _WITHOUT_SUCCESS:
            return
        wave.settled += 1
    if wave.failed >= _SEVERAL:
        failed = [s for s in order[wave.first : wave.end] if steps[s].phase == "failed"]
        _escalate(state, Reason("wave_failed", tuple(failed[:_NAMED])))


def note_again(state: State, step_id: StepId) -> None:
    """A step that was settled is about to be pending again."""
    wave = state.failures.get(state.graph.wave[step_id])
    if wave is None:
        return
    step = state.steps[step_id]
    if step.phase == "failed" and step.attempts:
        wave.failed -= 1
    wave.settled = min(wave.settled, state.graph.rank[step_id])


def _escalate(state: State, reason: Reason) -> None:
    state.escalation = state.escalation or reason


def _wave_of(state: State, step_id: StepId) -> WaveFailures:
    """The wave of a step that failed; its steps stand side by side in the order of the graph."""
    number = state.graph.wave[step_id]
    found = state.failures.get(number)
    if found is None:
        order, wave = state.graph.order, state.graph.wave
        first = end = state.graph.rank[step_id]
        while first and wave[order[first - 1]] == number:
            first -= 1
        while end < len(order) and wave[order[end]] == number:
            end += 1
        found = state.failures[number] = WaveFailures(first, end, settled=first)
    return found
