"""replay, skip, fork: how to get on with a run in which something failed."""

from __future__ import annotations

from functools import partial

import click

from holdfast import wire
from holdfast.cli.add import await_answer
from holdfast.cli.again import out_next
from holdfast.cli.ask import consent_to, who
from holdfast.cli.consent import agreed_with, said_of_money
from holdfast.cli.drive import as_begun
from holdfast.cli.driving import agree_again, drive, max_cost, run_options
from holdfast.cli.gates import is_paid
from holdfast.cli.place import (
    file_option,
    find_run,
    keep_line,
    known_step,
    place,
    place_options,
)
from holdfast.cli.provisions import can_bound, provide_all
from holdfast.cli.say import named, out, out_json, short, talk
from holdfast.cli.show import load_state
from holdfast.core.state import COMPLETE, State
from holdfast.engine.fork import fork_run, free_name
from holdfast.engine.hold import Hold
from holdfast.engine.loop import Engine
from holdfast.engine.opened import is_left_rejected, left_alone, left_open
from holdfast.engine.requests import ask, check_secrets
from holdfast.engine.runs import resume_run
from holdfast.engine.unkept import check_words
from holdfast.engine.world import World
from holdfast.errors import UsageError
from holdfast.model.event import RequestRefused
from holdfast.model.line import SkipRequested
from holdfast.model.plan import StepId
from holdfast.ports import Store


@click.command(epilog="\b\nExample:\n  holdfast replay\n  holdfast replay r-1f3c --json")
@click.argument("run_id", metavar="[RUN]", required=False)
@file_option
@place_options
@run_options
def replay(
    run_id: str | None, plan: str | None, store: str | None, plan_id: str | None, **manner: object
) -> int:
    """Try everything that failed in a run again, with all that was skipped because of it.

    What is done stays done; a step that cannot be reached even so stays skipped.
    """
    where = place(plan, store, plan_id)
    with_store = where.open()
    try:
        state = load_state(with_store, find_run(with_store, run_id, where.line()))
        _check_open(state)
        wire.check_free(with_store, where.location, state, float(str(manner["lease"])))
        found = [s for s in state.graph.order if state.steps[s].phase == "failed"]
        failed = tuple(s for s in found if not is_left_rejected(with_store, state, s))
    finally:
        with_store.close()
    if not failed:
        left = f" but what a person rejected, {found[0]}" if found else ""
        hint = f"holdfast retry {named(found[0])}" if found else "holdfast status"
        raise UsageError(f"nothing failed in {short(state.run)}{left}", hint=hint)
    agreed, raised = agree_again(where, state, state.graph.below(failed), manner)
    return drive(
        where,
        state.plan,
        as_begun(state, manner),
        agreed,
        lambda world: resume_run(world, state.run, only=failed, max_cost=raised),
    )


def _check_open(state: State) -> None:
    if state.ended:
        raise UsageError(
            f"run {short(state.run)} is {state.status} and never changes again", hint="holdfast run"
        )


@click.command(
    epilog="\b\nExample:\n  holdfast skip lint --because 'the linter is down; checked by hand'"
)
@click.argument("step")
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--because", required=True, metavar="TEXT", help="Why; kept with the decision.")
@file_option
@place_options
@run_options
def skip(
    step: str,
    run_id: str | None,
    because: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    **manner: object,
) -> int:
    """Go on without STEP: an empty artifact of yours stands in its place, and that is a gap.

    What needs it runs. The gap is listed wherever the run is shown; 'holdfast retry STEP' closes it, and
    makes again what was made without it. The next run tries the step as ever.
    """
    if not because.strip():
        raise UsageError("--because is empty: say why the run may go on without it")
    where = place(plan, store, plan_id)
    with_store = where.open()
    try:
        state = load_state(with_store, find_run(with_store, run_id, where.line()))
        step_id = _waivable(state, step)
        check_words(because, where.hidden(with_store, state.plan))
        if wire.is_driven(with_store, state):
            request = _ask_to_skip(with_store, state, step_id, because)
            _heard(with_store, state, step_id, request, as_json=bool(manner["as_json"]))
            return 0
        allowed = manner["secrets"]
        check_secrets(with_store, state, allowed if isinstance(allowed, tuple) else ())
        drives = partial(wire.is_driven, with_store)
        left = left_alone(with_store, state, wire.now_ms(), drives, without=step_id)
    finally:
        with_store.close()
    below = state.graph.below([step_id]) - {step_id} - left
    agreed, raised = agree_again(where, state, below, manner)

    def begin(world: World) -> tuple[Hold, Engine]:
        """Only now is it written down: nothing keeps the run from going on any more."""
        _ask_to_skip(world.store, state, step_id, because)
        return resume_run(world, state.run, only=(), max_cost=raised)

    return drive(where, state.plan, as_begun(state, manner), agreed, begin)


def _ask_to_skip(store: Store, state: State, step_id: StepId, because: str) -> int:
    words = store.put(because.encode())
    return ask(store, state, SkipRequested(state.run, step_id, who(), words), wire.now_ms)


def _waivable(state: State, step: str) -> StepId:
    _check_open(state)
    step_id = known_step(state.plan, step)
    phase = state.steps[step_id].phase
    if step_id in state.gaps:
        raise UsageError(f"{short(state.run)} goes on without '{step_id}' already")
    if phase in {"done", "reused"}:
        raise UsageError(
            f"'{step_id}' is {phase} in {short(state.run)}: there is nothing to go on without"
        )
    return step_id


def _heard(store: Store, state: State, step_id: StepId, request: int, *, as_json: bool) -> None:
    """Tell what the engine that drives the run made of the decision."""
    found = await_answer(store, state, request)
    if isinstance(found, RequestRefused):
        raise UsageError(
            store.get(found.because).decode("utf-8", "replace"),
            hint="wait for it, or holdfast stop --now",
        )
    if as_json:
        out_json(
            {
                "schema": "holdfast.skip/1",
                "run": state.run,
                "step": step_id,
                "state": "requested" if found is None else "skipped",
            }
        )
        return
    then = "goes on" if found is not None else "will go on, when it is resumed,"
    out(f"{short(state.run)} {then} without '{step_id}'; that is a gap")
    out_next(f"holdfast status    (to close it: holdfast retry {step_id})")


@click.command(
    epilog="\b\nExample:\n  holdfast fork @-1 --from draft\n"
    "  holdfast fork r-1f3c --from draft --as bolder"
)
@click.argument("run_id", metavar="RUN")
@click.option("--from", "step", required=True, metavar="STEP", help="The first step made again.")
@click.option(
    "--as", "name", metavar="NAME", help="The line of the new run (default: LINE.fork-N)."
)
@file_option
@place_options
@run_options
def fork(
    run_id: str,
    step: str,
    name: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    **manner: object,
) -> int:
    """Take a run as it was up to STEP into a new run, and make STEP and all below it again.

    The run itself, and its line, stay as they are: the new one has a line of its own. 'holdfast diff RUN
    NEW' compares the two.
    """
    where = place(plan, store, plan_id)
    with_store = where.open()
    try:
        state = load_state(with_store, find_run(with_store, run_id, where.line()))
        step_id = known_step(state.plan, step)
        line = free_name(with_store, state, name)
        once = left_open(with_store, state, partial(wire.is_driven, with_store))
    finally:
        with_store.close()
    below = state.graph.below([step_id])
    below |= {s for s, here in state.steps.items() if here.phase not in COMPLETE or s in state.gaps}
    for one in sorted(once & below, key=state.graph.rank.__getitem__):
        talk(f"{one}: its effect may have happened in {short(state.run)}; the fork does it anew")
    again = [state.plan.steps[s] for s in state.graph.order if s in below]
    outside = [step.id for step in again if step.effects == "external"]
    bound = max_cost(where, state.plan, manner)
    provide_all(where, state.plan, [step.id for step in again], bound)
    told = said_of_money(manner)
    paid = [step for step in again if told == "nothing" and is_paid(where.root, step)]
    names, bounds = [step.id for step in paid], can_bound(where.root, paid)
    consent_to(outside, yes=bool(manner["yes"]), paid=names, bounds=bounds)
    agreed = agreed_with(told, names)
    talk(f"forking {short(state.run)} at '{step_id}' into line '{line}'")
    keep_line(where, line, state.file)
    return drive(
        where,
        state.plan,
        manner,
        agreed,
        lambda world: fork_run(world, state, step_id, line, bound),
    )
