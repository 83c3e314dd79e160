"""resume and retry: go on with a run that was left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar, cast

import click

from holdfast import wire
from holdfast.cli.additions import taken_up
from holdfast.cli.again import again, here_now, keep_here
from holdfast.cli.consent import consent_within
from holdfast.cli.detach import detach_on
from holdfast.cli.drive import as_begun, manner_of, where_of
from holdfast.cli.driving import (
    agree_again,
    check_trust,
    drive,
    exclude,
    folder_of,
    max_cost,
    raised_cost,
    run_options,
)
from holdfast.cli.earlier import leave_earlier
from holdfast.cli.goal import old_run_words
from holdfast.cli.grown import forced_steps
from holdfast.cli.people import is_held
from holdfast.cli.place import (
    WITHOUT_FILE,
    Place,
    file_option,
    find_run,
    known_step,
    place,
    place_options,
)
from holdfast.cli.provisions import provide, provide_again
from holdfast.cli.resume import resume_lines
from holdfast.cli.saved import consent
from holdfast.cli.say import named, short, talk
from holdfast.cli.show import load_state
from holdfast.cli.since import answered_in
from holdfast.cli.succession import with_step
from holdfast.cli.titles import brief
from holdfast.core.reasons import sentence
from holdfast.core.state import COMPLETE, State
from holdfast.engine.journals import read_state
from holdfast.engine.opened import is_left_rejected, left_alone
from holdfast.engine.replans import led_to
from holdfast.engine.requests import additions, check_secrets
from holdfast.engine.runs import resume_run, start_run
from holdfast.errors import PlanError, UsageError
from holdfast.model.event import Agreed, Options
from holdfast.model.plan import RunId, StepId, plan_digest
from holdfast.ports import Store

F = TypeVar("F", bound=Callable[..., object])


def detach_options(command: F) -> F:
    """Let a command go on in the background, and tell that process what was agreed to."""
    command = click.option(
        "--agreed", "told", type=click.Choice(["nothing", "shown", "anything"]), hidden=True
    )(command)
    return click.option(
        "--detach", is_flag=True, help="Go on in the background; see attach, status, stop."
    )(command)


@click.command(epilog="\b\nExample:\n  holdfast resume\n  holdfast resume r-1f3c")
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option(
    "-c",
    "--checkpoint",
    metavar="ID|FILE|latest",
    help="Continue the run that a checkpoint names, after looking at what changed since.",
)
@file_option
@place_options
@run_options
@detach_options
def resume(
    run_id: str | None,
    checkpoint: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    detach: bool,
    told: Agreed | None,
    **manner: object,
) -> int:
    """Continue a run that was stopped, failed or killed. What is done stays done."""
    exclude(run_id is not None, checkpoint is not None, "a run and --checkpoint")
    where = place(plan, store, plan_id)
    with_store = where.open()
    try:
        if checkpoint is None:
            found = unfinished(with_store, run_id, where.line())
        else:
            from holdfast.cli.checkpoint import run_of

            found = run_of(where, with_store, checkpoint, folder_of(manner))
        state = load_state(with_store, found)
        if not state.ended:
            _check_free(where, with_store, state, manner)
            check_secrets(with_store, state, manner_of(manner).secrets)
        more = additions(with_store, state)
        stay = {s for s in state.steps if is_left_rejected(with_store, state, s)}
        drives = partial(wire.is_driven, with_store)
        left = left_alone(with_store, state, wire.now_ms(), drives)
        said = answered_in(with_store, state)
        refused = {step_id for step_id in said if said[step_id] == "rejected"}  # they only fail
    finally:
        with_store.close()
    if state.ended:
        raise UsageError(
            f"run {short(found)} is {state.status}; there is nothing to resume", hint="holdfast run"
        )
    raised = raised_cost(where, state, manner)
    provide_again(where, state, set(state.steps) - stay, raised)
    if words := old_run_words(state.started_at, wire.now_ms()):
        talk(again(words))
    for line in [*resume_lines(state, stay), *taken_up(more)]:
        talk(line)
    _say_edited(where, state)
    agreed = told or consent_within(where, state, state.steps.keys() - left - refused, manner)
    if detach:
        return detach_on(where, state.line, agreed, state, as_json=bool(manner["as_json"]))
    return drive(
        where,
        state.plan,
        as_begun(state, manner),
        agreed,
        lambda world: resume_run(world, found, max_cost=raised),
    )


def _check_free(where: Place, store: Store, state: State, manner: Mapping[str, object]) -> None:
    """What a run will do is said only if no live engine keeps it."""
    wire.check_free(store, where.location, state, float(str(manner["lease"])))


def unfinished(store: Store, given: str | None, line: str | None) -> RunId:
    """A run as named, else the last that has not ended."""
    if given is not None:
        return find_run(store, given, line)
    rows = [row for row in store.runs() if line is None or row.line == line]
    if line is not None and not rows:
        raise UsageError(f"there is no run of '{brief(line)}'", hint="holdfast run")
    for row in reversed(rows):
        state = read_state(store, row.run)
        if state is not None and not state.ended:
            return row.run
    raise UsageError("there is no unfinished run", hint="holdfast run")


def _say_edited(where: Place, state: State) -> None:
    """A run keeps its plan: who edited the file to mend a failure means `run`, not `resume`."""
    if (where.file is None and not where.goal) or _is_later(where, state):
        return
    try:
        found = where.load(state.plan.params).plan
        edited = plan_digest(replace(found, name=state.plan.name)) != state.base
    except (PlanError, UsageError):
        edited = True
    if edited:
        talk(
            f"{where.file or 'the plan'} changed since; this run keeps its plan. "
            + again("'holdfast run' takes the new one")
        )


def _is_later(where: Place, state: State) -> bool:
    """Whether the plan of a run took the place of the one in the file."""
    store = where.open(readonly=True)
    try:
        return led_to(store, state) is not None
    finally:
        store.close()


@click.command(epilog="\b\nExample:\n  holdfast retry build")
@click.argument("step")
@file_option
@place_options
@run_options
@detach_options
def retry(
    step: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    detach: bool,
    told: Agreed | None,
    **manner: object,
) -> int:
    """Try a failed or held step again, with what was skipped below it.

    A step that is done, or whose run has ended, is made again in a new run, which reuses the rest.
    """
    where = with_step(place(plan, store, plan_id), step.removesuffix("+"))
    with_store = where.open()
    try:
        found = find_run(with_store, None, where.line())
        state = load_state(with_store, found)
        _check_free(where, with_store, state, manner)
        step_id = known_step(state.plan, step.removesuffix("+"))
        held = is_held(with_store, state, step_id)
        phase = state.steps[step_id].phase
        goes_on = not state.ended and (
            held or phase in {"failed", "waiting"} or step_id in state.gaps
        )
        if not goes_on and not state.ended and phase not in COMPLETE:
            raise _not_tried(state, step_id)
        loaded = None if goes_on else where.load_again(with_store, state)
    finally:
        with_store.close()
    if loaded is None:
        below = state.graph.below([step_id])
        agreed, raised = agree_again(where, state, below, manner, told)
        if detach:
            return detach_on(where, state.line, agreed, state, as_json=bool(manner["as_json"]))
        named = (step_id,)
        return drive(
            where,
            state.plan,
            as_begun(state, manner),
            agreed,
            lambda world: resume_run(world, found, only=named, asked=named, max_cost=raised),
        )
    if not loaded.file and not loaded.foreign:
        talk(WITHOUT_FILE)
        where = replace(where, file=None)
        keep_here(replace(here_now(), planless=True))
    check_trust(where, loaded, Options(), None, manner)
    options = Options(
        force_steps=forced_steps(where, loaded, [step_id]),
        max_cost=max_cost(where, loaded.plan, manner),
        executor=where_of(manner),
    )
    provide(where, loaded, options, cast("int | None", manner["max_cost"]))
    given = consent(where, loaded, options, manner, made_again=step_id)
    leave_earlier(where, loaded.plan, yes=bool(manner["yes"]))
    if not manner_of(manner).quiet:
        talk(f"a new run makes '{step_id}' again and reuses what stands")
    if detach:
        return detach_on(where, loaded.plan.name, given.agreed, as_json=bool(manner["as_json"]))
    return drive(
        where,
        loaded.plan,
        manner,
        told or given.agreed,
        lambda world: start_run(world, loaded.plan, loaded.plan.name, given.options),
    )


def _not_tried(state: State, step_id: StepId) -> UsageError:
    """Why there is nothing to try again about a step: what it came to, and the command that helps."""
    step = state.steps[step_id]
    if step.phase != "skipped" or step.reason is None:
        return UsageError(
            f"'{step_id}' is {step.phase} in {short(state.run)}: there is nothing to try again yet",
            hint="holdfast resume",
        )
    failed = (s for s in state.graph.order if state.steps[s].phase == "failed")
    above = next((s for s in failed if step_id in state.graph.below([s])), None)
    return UsageError(
        f"'{step_id}' was skipped: {sentence(step.reason)}",
        hint=f"holdfast retry {named(above)}" if above is not None else "holdfast resume",
    )
