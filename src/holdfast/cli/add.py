"""add: give a run that goes on, or rests, further steps."""

from __future__ import annotations

import time
from collections.abc import Mapping

import click

from holdfast import wire
from holdfast.cli.additions import resume_command
from holdfast.cli.again import out_next
from holdfast.cli.ask import consent_to, stdin_bytes, who
from holdfast.cli.gates import is_paid
from holdfast.cli.place import (
    Place,
    file_option,
    find_run,
    json_option,
    known_step,
    place,
    place_options,
)
from holdfast.cli.say import out, out_json, short
from holdfast.cli.show import load_state
from holdfast.core.growth import after as put_after
from holdfast.core.growth import with_steps
from holdfast.core.state import State
from holdfast.engine.requests import (
    Answer,
    answer,
    ask_to_add,
    check_needs,
    plan_to_be,
    secrets_of,
)
from holdfast.errors import UsageError
from holdfast.model.event import PlanExtended, RequestRefused
from holdfast.model.plan import Step, StepId
from holdfast.model.text import one_line
from holdfast.ports import Store

PAUSE = 0.1  # seconds between looks at the run's journal


@click.command(
    epilog="\b\nExample:\n  holdfast add more.yaml --after build --because 'the release needs notes'\n"
    "  holdfast add fix.yaml r-1f3c"
)
@click.argument("fragment", metavar="STEPS.yaml")
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--after", metavar="STEP", help="Each added step comes after this one.")
@click.option("--because", default="", metavar="TEXT", help="Why; kept with the plan's version.")
@click.option("--yes", is_flag=True, help="Do not ask before steps with external effects.")
@file_option
@place_options
@json_option
def add(
    fragment: str,
    run_id: str | None,
    after: str | None,
    because: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    yes: bool,
    as_json: bool,
) -> int:
    """Add the steps of a file to a run, also while it goes on.

    The file has 'steps:' as in a plan; they may need steps of the run. A run at rest takes them up when
    it is resumed. '-' reads them from stdin, as YAML.
    """
    where = place(plan, store, plan_id)
    with_store = where.open()
    try:
        state = load_state(with_store, find_run(with_store, run_id, where.line()))
        steps = _read(where, with_store, state, fragment, after)
        outside: list[str] = [s for s, step in steps.items() if step.effects == "external"]
        paid = [s for s, step in steps.items() if is_paid(where.root, step)]
        look = f"look at {one_line(fragment)}" if fragment != "-" else ""
        consent_to(outside, yes=yes, look=look, paid=paid, bounds=False)
        hidden = where.hidden(with_store, with_steps(state.plan, steps))
        request = ask_to_add(with_store, state, steps, who(), because, wire.now_ms, hidden)
        found = await_answer(with_store, state, request)
        if isinstance(found, RequestRefused):
            raise UsageError(with_store.get(found.because).decode("utf-8", "replace"))
        _tell(state, steps, request, found, as_json=as_json)
    finally:
        with_store.close()
    return 0


def _read(
    where: Place, store: Store, state: State, fragment: str, after: str | None
) -> Mapping[StepId, Step]:
    """The steps, checked against the run as it is and with what it was asked for already."""
    from holdfast.formats.fragment import check_added, read_fragment
    from holdfast.formats.planfile import read_file

    if state.ended:
        raise UsageError(
            f"run {short(state.run)} is {state.status}; nothing can be added to it",
            hint="put the steps into the plan, then holdfast run",
        )
    walls = wire.walls_at(where.root)
    content = stdin_bytes() if fragment == "-" else read_file(fragment, walls=walls)[0]
    whole = plan_to_be(store, state)
    steps: Mapping[StepId, Step] = read_fragment(
        content,
        fragment,
        where.root,
        whole,
        check=wire.guard_flaw,
        own=wire.own_agents,
        walls=walls,
    )
    if after is not None:
        above = known_step(whole, after)
        steps = put_after(steps, above)
        check_added(whole, steps)
    check_needs(state, steps)
    return steps


def await_answer(store: Store, state: State, request: int) -> Answer | None:
    """What the run answers; None if nobody drives it, so that it will when it is resumed.

    UsageError if it ended without an answer: it was faster.
    """
    while True:
        driven = wire.is_driven(store, state)  # asked before reading: no answer is missed
        found = answer(store, state.run, request, state.seq)
        if found is not None:
            return found
        if not driven:
            break
        time.sleep(PAUSE)
    now = load_state(store, state.run)
    if now.ended:
        raise UsageError(
            f"run {short(state.run)} was {now.status} before it heard of it; nothing was changed",
            hint="holdfast status",
        )
    return None


def _tell(
    state: State,
    steps: Mapping[StepId, Step],
    request: int,
    found: Answer | None,
    *,
    as_json: bool,
) -> None:
    names = sorted(steps)
    extended = found if isinstance(found, PlanExtended) else None
    if as_json:
        out_json(
            {
                "schema": "holdfast.add/1",
                "run": state.run,
                "added": list(names),
                "state": "added" if extended else "requested",
                "plan": extended.plan if extended else None,
                "request": request,
                "secrets": list(secrets_of(steps)),
            }
        )
        return
    listed = ", ".join(names)
    if extended:
        out(f"added to {short(state.run)}: {listed}")
        out_next("holdfast status    holdfast attach")
    else:
        out(f"{short(state.run)} rests and takes it up when it is resumed: {listed}")
        for secret in secrets_of(steps):
            out(
                f"it asks for the secret '{secret}': without '--secret {secret}' nothing is resumed"
            )
        out_next(f"{resume_command(secrets_of(steps))}    holdfast status")
