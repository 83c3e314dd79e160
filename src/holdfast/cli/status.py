"""Where a run stands, on one screen."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.cli.additions import NONE, added_words, addition_lines
from holdfast.cli.again import again
from holdfast.cli.ending import REPLAN, headline, next_commands
from holdfast.cli.failure import refusal
from holdfast.cli.gates import conflict_lines, waiting_words
from holdfast.cli.limits import NO_MONEY, Own
from holdfast.cli.money import step_words
from holdfast.cli.progress import choices
from holdfast.cli.say import SIGNS, seconds, short
from holdfast.core.reasons import sentence
from holdfast.core.state import Phase, State, StepState
from holdfast.core.views import Addition, shown_phase
from holdfast.model.plan import StepId
from holdfast.model.text import first_line, one_line

FEW = 20  # steps that fit on a screen, each on its line
NOT_ANSWERED: Mapping[StepId, str] = {}
_OPEN = ("running", "waiting", "failed")


def status_lines(
    state: State,
    now: int,
    words: Mapping[StepId, str],
    *,
    driven: bool,
    every: bool = False,
    voice: bool = False,
    additions: Mapping[int, Addition] = NONE,
    why: str = "",
    own: Own = NO_MONEY.own,
    answered: Mapping[StepId, str] = NOT_ANSWERED,
) -> list[str]:
    """Each step, or of many only those that want attention; the run in one line; what to do next.

    `why` are the words of the limit that it came to, `own` is what a person lets every run spend,
    `answered` are steps that wait although somebody decided about them.
    """
    every = every or len(state.steps) <= FEW
    lines = [headline(state, now, driven=driven), *_origin(state)]
    for step_id in state.graph.order:
        phase = state.steps[step_id].phase
        if every or phase in _OPEN or step_id in state.gaps:
            elapsed = now if driven else 0
            origin = added_words(state, step_id, additions)
            said = words.get(step_id, "")
            if step_id in answered:
                said = answered_words(answered[step_id])
            lines += _step(state, step_id, elapsed, said, origin, voice=voice)
    if not every:
        lines += _rest(state)
    lines += conflict_lines(state)
    lines += [one_line(f"! {line}") for line in words.get(REPLAN, "").splitlines()]
    lines += [one_line(line) for line in addition_lines(additions, driven=driven)]
    lines += [one_line(f"! {first_line(why)}")] if why else []
    return [
        *lines,
        again(f"next: {next_commands(state, driven=driven, own=own, answered=answered)}"),
    ]


def answered_words(said: str) -> str:
    """What is told of a step that waits although somebody decided."""
    return f"{said}: it goes on with holdfast resume"


def _origin(state: State) -> list[str]:
    if state.forked is None:
        return []
    return [f"forked from {short(state.forked)} at '{state.forked_at}'; its line is '{state.line}'"]


def _step(
    state: State, step_id: StepId, now: int, words: str, origin: str, *, voice: bool
) -> list[str]:
    """One step; `now` is 0 if nobody drives it any more."""
    step = state.steps[step_id]
    notes = step_notes(state, step_id, now, words, origin)
    phase = shown_phase(state, step_id)
    what = "" if voice else f" {phase}"
    told = f": {', '.join(notes)}" if notes else ""
    lines = [one_line(f"{SIGNS[phase]} {step_id}{what}{told}")]
    if step.phase == "failed" and (said := first_line(words)):
        lines.append(f"    {one_line(' '.join([*refusal(step), said]))}")
    if step.phase == "failed" and step.reason is not None:
        lines += choices(step.reason)
    return lines


def step_notes(
    state: State, step_id: StepId, now: int, words: str = "", origin: str = ""
) -> list[str]:
    """What is said of a step beside its state; `now` is 0 if nobody drives it any more."""
    step = state.steps[step_id]
    notes = [sentence(step.reason)] if step.reason else []
    if step.phase == "waiting":
        notes = [waiting_words(state.plan.steps[step_id], step)]
    if words and step.phase != "failed":  # a person's decision
        notes.append(first_line(words))
    if origin:
        notes.append(origin)
    if step.attempts > 1:
        most = 1 + state.plan.steps[step_id].retries
        running = step.phase == "running" and step.attempts == step.rejections + 1 <= most
        notes.append(
            f"attempt {step.attempts} of {most}" if running else f"{step.attempts} attempts"
        )
    if step.phase == "running":
        notes.append(ran_words(step, now))
    elif step.phase == "done":
        notes.append(seconds(step.duration_ms))
    open_calls = (step.calls or {}).values() if not now else ()
    if cost := step_words(step.spent, sum(call.reserved or 0 for call in open_calls)):
        notes.append(cost)
    return notes


def ran_words(step: StepState, now: int) -> str:
    """For how long a step is running; `now` is 0 if nobody drives it any more."""
    return f"for {seconds(max(0, now - step.started_at))}" if now else "interrupted"


def _rest(state: State) -> list[str]:
    phases: tuple[Phase, ...] = ("done", "reused", "pending", "skipped")
    counts = [(phase, state.counts[phase]) for phase in phases]
    return [f"{SIGNS[phase]} {count} {phase}" for phase, count in counts if count] + [
        again("  (every step: holdfast status -v)")
    ]
