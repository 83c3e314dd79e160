"""What becomes of an earlier run of the line that was left unfinished."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from holdfast import wire
from holdfast.cli.additions import left_out, waiting_in
from holdfast.cli.ask import go_on
from holdfast.cli.ending import is_settled
from holdfast.cli.place import Place
from holdfast.cli.say import short, talk
from holdfast.cli.view import view
from holdfast.core.effects import is_cut_off
from holdfast.core.state import State
from holdfast.engine.decisions import Decisions
from holdfast.engine.journals import read_state, runs_of
from holdfast.engine.runs import run_of_key
from holdfast.errors import UsageError
from holdfast.model.event import RunEnded, RunRested
from holdfast.model.plan import Plan, RunId, StepId
from holdfast.ports import Store

MOST_NAMES = 5


def leave_earlier(where: Place, plan: Plan, *, yes: bool) -> None:
    """Say which unfinished run a new one takes the place of; ask first if that one waits for a person."""
    if (left := _unfinished(where, plan)) is None:
        return
    run, status = short(left.run), left.status
    if status == "waiting" and not yes:
        question, look = _question(left)
        if not view().asks:
            raise UsageError(question, hint=f"{look}, or say --yes")
        go_on(f"{question}. Proceed?", default=False)
    if not view().quiet:
        talk(f"{run} was left {status}; this run takes its place and reuses what it accepted")
    if left.approved:
        talk(f"the yes to {_names(left.approved)} was for {run} alone: this run asks again")
    for line in left.lines:
        talk(line)


def _question(left: _Unfinished) -> tuple[str, str]:
    """What a person says yes to who leaves a run that waits, and the command that does not leave it."""
    run = short(left.run)
    if left.approved:
        words = f"{run} waits, and {_names(left.approved)} was approved in it"
        return f"{words}; a new run takes its place and asks again", f"holdfast resume {run}"
    if left.goes_on:
        return f"{run} can be resumed; a new run takes its place", "holdfast resume"
    return f"{run} waits for a person; a new run takes its place", f"holdfast status {run}"


def _names(steps: Sequence[StepId]) -> str:
    more = len(steps) - MOST_NAMES
    rest = f" and {more} more" if more > 0 else ""
    return ", ".join(f"'{step}'" for step in steps[:MOST_NAMES]) + rest


def waits_before(where: Place, plan: Plan) -> bool:
    """Whether a new run would take the place of one that waits for a person."""
    left = _unfinished(where, plan)
    return left is not None and left.status == "waiting"


class _Unfinished(NamedTuple):
    """The last run of a line, if it did not end and nobody drives it; and what people asked to add to it."""

    run: RunId
    status: str
    goes_on: bool
    approved: list[StepId]  # what waits there for nothing: the yes is for that run alone
    lines: list[str]


def _unfinished(where: Place, plan: Plan) -> _Unfinished | None:
    if not where.exists():
        return None
    store = where.open(readonly=True)
    try:
        rows = [row.run for row in runs_of(store, plan.project, plan.name)]
        status = _left(store, rows[-1]) if rows else None
        if status is None or wire.drives(store, plan.project, plan.name, rows[-1]):
            return None
        said = _approved(store, plan, rows[-1])
        state = read_state(store, rows[-1]) if status == "waiting" or said else None
        goes_on = status == "waiting" and state is not None and is_settled(store, state)
        approved = _still_held(state, said) if state is not None else []
        return _Unfinished(rows[-1], status, goes_on, approved, _left_out(store, plan))
    finally:
        store.close()


def _approved(store: Store, plan: Plan, run: RunId) -> set[StepId]:
    """The steps of a run to which somebody said a yes that no other run may use."""
    book = Decisions(store, plan.project, plan.name, wire.now_ms).book
    now = wire.now_ms()
    return {found.request.step for found in book if found.stands_for(run, now)}


def _still_held(state: State, steps: Collection[StepId]) -> list[StepId]:
    """Those of these steps that the run would go on with under the yes."""
    known = state.steps.keys() & steps
    held = {s for s in known if state.steps[s].phase == "waiting" or is_cut_off(state, s)}
    return sorted(held, key=state.graph.rank.__getitem__)


def say_left_out(where: Place, plan: Plan, key: str = "") -> None:
    """Say what people asked to add to the run that a new one, if one is begun, takes the place of."""
    if not where.exists():
        return
    store = where.open(readonly=True)
    try:
        begun = bool(key) and run_of_key(store, plan.project, plan.name, key) is not None
        lines = [] if begun else _left_out(store, plan)
    finally:
        store.close()
    for line in lines:
        talk(line)


def _left_out(store: Store, plan: Plan) -> list[str]:
    return left_out(*waiting_in(store, plan))


def _left(store: Store, run: RunId) -> str | None:
    """How a run was left: at rest, or in the middle; None if it ended."""
    journal = f"run:{run}"
    for recorded in store.read(journal, max(0, store.last(journal) - 1)):
        if isinstance(recorded.event, RunEnded):
            return None
        if isinstance(recorded.event, RunRested):
            return recorded.event.status
    return "unfinished"
