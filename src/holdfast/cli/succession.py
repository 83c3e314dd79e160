"""Plans that took the place of others on a line: which one, why, and where a step of them is."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.cli.place import Place
from holdfast.cli.say import short
from holdfast.core.premises import rules_of
from holdfast.core.state import State
from holdfast.engine.journals import read_state, runs_of
from holdfast.engine.replans import doubts, led_to
from holdfast.errors import IntegrityError, PlanError, UsageError
from holdfast.formats.prepared import MOST
from holdfast.model.items import step_named
from holdfast.model.text import one_line
from holdfast.ports import Store

if TYPE_CHECKING:
    from holdfast.cli.whytext import Told


def place_of(where: Place, line: str, file: str) -> Place:
    """Where the plan is that takes the place of another: beside it, on the same line."""
    beside = os.path.join(os.path.dirname(where.file), file) if where.file else file
    path = beside if os.path.dirname(os.path.abspath(beside)) == where.root else ""
    found = path or os.path.join(where.root, file)
    return replace(where, file=found, plan_id=line, spare=True)


def with_step(where: Place, step: str) -> Place:
    """Where the plan is that has a step: this one, or the first of those that may take its place."""
    there = where
    for _ in range(MOST):
        if there.file is None:
            break
        try:
            plan = there.load().plan
        except (PlanError, UsageError):  # its params, perhaps: whoever needs the plan will say so
            break
        if step_named(step, plan.steps) is not None:
            return there
        if not (file := rules_of(plan).to):
            break
        there = place_of(there, plan.name, file)
    return where


def with_successor(where: Place, told: Told) -> Told:
    """Of a step that a run never came to: the plan that took the place of its own, and why."""
    if told.run is None or told.decision not in {"pending", "wait"}:
        return told
    store = where.open(readonly=True)
    try:
        state = read_state(store, told.run)
        if state is None or state.replanned is None:
            return told
        rows = [("because", words) for words in _spoken(store, state)]
        rows.append(("then", _took(store, state)))
    finally:
        store.close()
    return replace(told, rows=(*told.rows, *rows))


def took_place(store: Store, state: State) -> list[str]:
    """Whose place the plan of a run took, and what had spoken against that one."""
    answer = led_to(store, state)
    before = read_state(store, answer.run) if answer is not None else None
    if before is None:
        return []
    spoke = "; ".join(_spoken(store, before))
    return [f"it took the place of {short(before.run)}: {spoke}"]


def _took(store: Store, state: State) -> str:
    after = [row.run for row in runs_of(store, state.project, state.line)]
    following = after[after.index(state.run) + 1 :] if state.run in after else []
    where = f" in {short(following[0])}" if following else ""
    return f"plan {str(state.replanned)[:12]} took the place of this one{where}"


def _spoken(store: Store, state: State) -> list[str]:
    if state.replan is not None:
        with suppress(IntegrityError):  # removed since
            return [one_line(one.words) for one in doubts(store.get(state.replan.words))]
    return []
