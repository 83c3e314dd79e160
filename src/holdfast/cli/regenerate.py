"""What follows when a plan that a model made for a goal fails: a person decides, or another plan is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from holdfast.cli.again import mend
from holdfast.cli.ending import last_words
from holdfast.cli.goal import loaded_for
from holdfast.cli.place import Place
from holdfast.cli.planning import Wanted
from holdfast.cli.say import short, talk
from holdfast.cli.view import view
from holdfast.config.settings import read_planner
from holdfast.core.reasons import sentence
from holdfast.core.state import State
from holdfast.engine.journals import read_state, runs_of
from holdfast.errors import UsageError
from holdfast.formats.planfile import Loaded
from holdfast.model.plan import plan_digest
from holdfast.model.text import one_line

_FAILED = 1
_MOST_WORDS = 2000  # characters that a planner is told of one failure
_REFUSED = frozenset({"guard_rejected", "command_failed", "answer_cut", "answer_empty"})


def regenerated(
    where: Place,
    code: int,
    wanted: Wanted,
    manner: dict[str, object],
    policy: str | None,
    start: Callable[[Loaded], int],
) -> int:
    """Plan again after a failure, as often as the policy lets it, and start what was planned."""
    own = read_planner()
    mode = policy or own.on_failure
    for _ in range(own.regenerations if mode != "escalate" else 0):
        if code != _FAILED or (found := _failed(where)) is None:
            return code
        state, words = found
        if (most := cast("int | None", manner["max_cost"])) is not None:
            manner["max_cost"] = max(0, most - state.spent.cost)  # one bound for the whole command
        if mode == "hybrid" and not is_recoverable(state):
            talk("another plan would not help: this is for a person to decide")
            return code
        again = replace(wanted, replan=True, fresh=False, failed=words)
        if not (manner["yes"] or view().asks):
            talk(
                f"{short(state.run)} failed; it is not planned again: a new plan would take the place"
                " of the one that stands, and nobody is there to ask"
            )
            talk("hint: say --yes")
            return code
        talk(f"{short(state.run)} failed; planning again")
        try:
            loaded = loaded_for(where, again, manner)
        except UsageError as error:  # that the work failed is what counts
            mend(error)
            talk(f"it is not planned again: {error}")
            return code
        if loaded is None:
            return code
        if plan_digest(loaded.plan) == state.base:
            talk("the same plan would fail again: this is for a person to decide")
            return code
        code = start(loaded)
    return code


def is_recoverable(state: State) -> bool:
    """Whether another plan may help: what was made was refused, and nothing else went wrong."""
    failed = [step for step in state.steps.values() if step.phase == "failed"]
    return all(step.reason is not None and step.reason.code in _REFUSED for step in failed)


def _failed(where: Place) -> tuple[State, str] | None:
    """The last run of the line and what failed in it, in words for a planner."""
    store = where.open(readonly=True)
    try:
        rows = runs_of(store, "", str(where.plan_id))
        state = read_state(store, rows[-1].run) if rows else None
        if state is None:
            return None
        words = last_words(store, state)
    finally:
        store.close()
    told = []
    for step_id in state.graph.order:
        step = state.steps[step_id]
        if step.phase == "failed" and step.reason is not None:
            said = words.get(step_id, "").strip()[-_MOST_WORDS:]
            told.append(f"{step_id}: {one_line(sentence(step.reason))}\n{said}".strip())
    return (state, "\n\n".join(told)) if told else None
