"""Steps for a run that has begun."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterable

from holdfast import wire
from holdfast.api.deciding import hidden_in
from holdfast.core.growth import after as put_after
from holdfast.core.growth import with_steps
from holdfast.engine.journals import read_state
from holdfast.engine.requests import ask_to_add, check_needs, plan_to_be
from holdfast.errors import UsageError
from holdfast.formats.fragment import check_added, held, read_fragment
from holdfast.formats.planfile import read_file
from holdfast.model.plan import RunId, Step, StepId


def add(
    steps: str | Iterable[Step],
    run: str,
    *,
    root: str = ".",
    store: str | None = None,
    after: str | None = None,
    because: str = "",
) -> int:
    """Ask a run that has not ended to add steps; gives the number of the request in its line's journal.

    `steps` are the path of a file with `steps:` as in a plan, or steps made by hand; each comes after the
    step `after`. The engine that drives the run answers within a second; a run at rest takes them up when
    it is resumed. PlanError or UsageError say what keeps them from being added.
    """
    root = os.path.abspath(root)
    opened = wire.open_store(wire.store_location(root, store))
    try:
        state = read_state(opened, RunId(run))
        if state is None:
            raise UsageError(f"there is no run '{run}'")
        if state.ended:
            raise UsageError(f"run '{run}' is {state.status}; nothing can be added to it")
        whole = plan_to_be(opened, state)
        if isinstance(steps, str):
            check, own, walls = wire.guard_flaw, wire.own_agents, wire.walls_at(root)
            content = read_file(steps, walls=walls)[0]
            more = read_fragment(content, steps, root, whole, check=check, own=own, walls=walls)
        else:
            more = {step.id: step for step in steps}
        if after is not None:
            if after not in whole.steps:
                raise UsageError(f"the run has no step '{after}'")
            more = put_after(more, StepId(after))
        more, _ = held(whole, more, wire.own_agents)
        check_added(whole, more)
        check_needs(state, more)
        hidden = hidden_in(root, opened, state.project, state.line, with_steps(whole, more))
        return ask_to_add(opened, state, more, getpass.getuser(), because, wire.now_ms, hidden)
    finally:
        opened.close()
