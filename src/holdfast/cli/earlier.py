"""What becomes of an earlier run of the line that was left unfinished."""

from __future__ import annotations

from typing import NamedTuple

from holdfast import wire
from holdfast.cli.additions import left_out, waiting_in
from holdfast.cli.ask import go_on
from holdfast.cli.ending import is_settled
from holdfast.cli.place import Place
from holdfast.cli.say import short, talk
from holdfast.cli.view import view
from holdfast.engine.journals import read_state, runs_of
from holdfast.engine.runs import run_of_key
from holdfast.errors import UsageError
from holdfast.model.event import RunEnded, RunRested
from holdfast.model.plan import Plan, RunId
from holdfast.ports import Store


def leave_earlier(where: Place, plan: Plan, *, yes: bool) -> None:
    """Say which unfinished run a new one takes the place of; ask first if that one waits for a person."""
    if (left := _unfinished(where, plan)) is None:
        return
    run, status = short(left.run), left.status
    if status == "waiting" and not yes:
        goes_on = left.goes_on
        waits = "can be resumed" if goes_on else "waits for a person"
        question = f"{run} {waits}; a new run takes its place"
        if not view().asks:
            look = "holdfast resume" if goes_on else f"holdfast status {run}"
            raise UsageError(question, hint=f"{look}, or say --yes")
        go_on(f"{question}. Proceed?", default=False)
    if not view().quiet:
        talk(f"{run} was left {status}; this run takes its place and reuses what it accepted")
    for line in left.lines:
        talk(line)


def waits_before(where: Place, plan: Plan) -> bool:
    """Whether a new run would take the place of one that waits for a person."""
    left = _unfinished(where, plan)
    return left is not None and left.status == "waiting"


class _Unfinished(NamedTuple):
    """The last run of a line, if it did not end and nobody drives it; and what people asked to add to it."""

    run: RunId
    status: str
    goes_on: bool
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
        state = read_state(store, rows[-1]) if status == "waiting" else None
        goes_on = state is not None and is_settled(store, state)
        return _Unfinished(rows[-1], status, goes_on, _left_out(store, plan))
    finally:
        store.close()


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
