"""The secrets that steps of a line name: nothing that people say there may hold their values."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from holdfast.engine.journals import has_ended, read_state, runs_of
from holdfast.engine.requests import plan_to_be
from holdfast.errors import IntegrityError
from holdfast.model.plan import Plan
from holdfast.ports import Store


def secret_names(plans: Iterable[Plan]) -> set[str]:
    """The variables that steps of these plans see and nobody else."""
    return {name for plan in plans for step in plan.steps.values() for name in step.secrets}


def declared_secrets(store: Store, project: str, line: str) -> set[str]:
    """Those of the line's last run and of all that may go on, with what is to be added to them."""
    runs, found = [row.run for row in runs_of(store, project, line)], set[str]()
    for run in runs:
        if run != runs[-1] and has_ended(store, run):
            continue
        with suppress(IntegrityError):  # said by whoever needs it
            state = read_state(store, run)
            found |= secret_names([plan_to_be(store, state)] if state is not None else [])
    return found
