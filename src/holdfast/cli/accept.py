"""accept: let the result that a step had in an earlier run stand, on purpose."""

from __future__ import annotations

import getpass

import click

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.grown import grown
from holdfast.cli.people import latest_run
from holdfast.cli.place import (
    Place,
    file_option,
    find_run,
    json_option,
    known_step,
    place,
    place_options,
)
from holdfast.cli.preview import look_ahead, survey_of
from holdfast.cli.say import out, out_json, short
from holdfast.cli.show import load_state
from holdfast.core.changes import Probe
from holdfast.core.preview import Outlook
from holdfast.core.reasons import sentence
from holdfast.core.refs import encode_own
from holdfast.core.state import COMPLETE, State
from holdfast.core.views import person_row
from holdfast.engine.briefs import Foreknown
from holdfast.engine.elsewhere import came_with, handoffs_of
from holdfast.engine.lines import tell_line
from holdfast.engine.outputs import Outputs
from holdfast.engine.unkept import check_free, check_words
from holdfast.errors import UsageError
from holdfast.formats.planfile import Loaded
from holdfast.model.artifact import Artifact, Form, tree_entries
from holdfast.model.digest import Digest
from holdfast.model.event import Options
from holdfast.model.line import StepAccepted
from holdfast.model.plan import RunId, Step
from holdfast.ports import Store


@click.command(epilog="\b\nExample:\n  holdfast accept brief --from @-1 --because 'wording only'")
@click.argument("step")
@click.option("--from", "origin", metavar="RUN", required=True, help="The run that had it.")
@click.option("--because", required=True, metavar="TEXT", help="Why; kept with the decision.")
@file_option
@place_options
@json_option
def accept(
    step: str,
    origin: str,
    because: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    as_json: bool,
) -> int:
    """Let the result that STEP had in an earlier run stand as if it had been made now.

    Nothing runs and no guard looks at it: the decision is yours and is recorded with your name. The next
    run writes its files.
    """
    if not because.strip():
        raise UsageError("--because is empty: say why this result may stand")
    where = place(plan, store, plan_id)
    loaded = grown(where, where.load())
    found = loaded.plan.steps[known_step(loaded.plan, step)]
    with_store = where.open()
    try:
        run = find_run(with_store, origin, loaded.plan.name)
        event, fresh = _accept(where, loaded, found, with_store, run, because)
    finally:
        with_store.close()
    if as_json:
        out_json(
            {
                "schema": "holdfast.accept/1",
                "step": event.step,
                "digest": event.digest,
                "config_ref": event.config_ref,
                "from": event.origin,
                "by": event.by,
                "because": because,
                "verified": False,
                "changed": fresh,
            }
        )
        return 0
    if not fresh:
        out(f"{event.step}: {event.digest[:12]} of {short(run)} stands already")
        out_next("holdfast status")
        return 0
    out(f"{event.step}: {event.digest[:12]} of {short(run)} stands, unverified: {because}")
    if found.produces:
        out(f"  the next run writes {', '.join(found.produces)}")
    out_next(f"holdfast plan    holdfast run    (to take it back: holdfast undo {event.step})")
    return 0


def _accept(
    where: Place, loaded: Loaded, step: Step, store: Store, run: RunId, because: str
) -> tuple[StepAccepted, bool]:
    """The recorded decision; false if the artifact stands without it."""
    plan, then = loaded.plan, load_state(store, run)
    hidden = where.hidden(store, plan, then.plan)
    check_words(because, hidden)
    digest, form = _had(then, step)
    _check_fits(store, step, digest, form, run)
    outlook, probe, pages = _known(where, loaded, step)
    check_unedited(where, store, loaded, step, digest, form)
    stands = probe.found
    survey = survey_of(where, plan, store)
    if pages is not None:
        survey.heed(pages.on(store).page)
    own = encode_own(step, survey.observe(step).parts)
    check_free(f"what '{step.id}' is made of", own, hidden)
    if store.put(own) != probe.refs.own_ref:
        raise UsageError(f"something '{step.id}' reads changes just now", hint="try again")
    reason = store.put(because.encode())
    is_foreign = came_with(store, then) is not None
    handoff = handoffs_of(store, then).came(then, step.id) if is_foreign else None

    def event() -> StepAccepted:
        latest, seq = latest_run(store, plan.project, plan.name)
        return StepAccepted(
            step=step.id,
            config_ref=probe.refs.config_ref,
            input_ref=probe.refs.input_ref,
            own_ref=probe.refs.own_ref,
            digest=digest,
            form=form,
            origin=run,
            by=getpass.getuser(),
            because=reason,
            replaces=stands.digest if stands else None,
            after_run=latest,
            after_seq=seq,
            handoff=handoff if handoff and store.has(handoff) else None,
        )

    if outlook.decision == "reuse" and stands is not None and stands.digest == digest:
        return event(), False

    def say() -> tuple[int, StepAccepted, list[Artifact]]:
        at, said = wire.now_ms(), event()
        return at, said, [person_row(said, plan.project, plan.name, at)]

    told = tell_line(store, plan.project, plan.name, say)
    assert isinstance(told, StepAccepted)  # what was said
    return told, True


def _had(state: State, step: Step) -> tuple[Digest, Form]:
    """What the step had in that run."""
    run, then = state.run, state.steps.get(step.id)
    if then is None:
        raise UsageError(f"{short(run)} has no step '{step.id}'", hint=f"holdfast status {run}")
    if then.phase not in COMPLETE or then.digest is None:
        raise UsageError(
            f"'{step.id}' has no accepted artifact in {short(run)}: it is {then.phase} there",
            hint="name a run in which it was done or reused: holdfast history",
        )
    return then.digest, then.form


def _check_fits(store: Store, step: Step, digest: Digest, form: Form, run: RunId) -> None:
    """The content must be there, and be something that this step can have now."""
    gone = f"the content of '{step.id}' in {short(run)} is no longer kept"
    if not store.has(digest):
        raise UsageError(gone)
    if form != "tree":
        if len(step.produces) > 1:
            raise UsageError(
                f"'{step.id}' had one file in {short(run)} and makes several now",
                hint=f"put them in place, then holdfast amend {step.id}",
            )
        return
    for entry in tree_entries(store.get(digest)):
        if not any(entry.path == p or entry.path.startswith(f"{p}/") for p in step.produces):
            raise UsageError(
                f"'{step.id}' made '{entry.path}' in {short(run)}, which is none of its outputs now"
            )
        if not store.has(entry.digest):
            raise UsageError(gone)


def _known(where: Place, loaded: Loaded, step: Step) -> tuple[Outlook, Probe, Foreknown | None]:
    """The refs under which it would stand; they are known only if nothing above it will run."""
    foreseen = look_ahead(where, loaded, Options())
    outlooks = foreseen.outlooks
    above = [need for need in step.data_needs if outlooks[need].decision != "reuse"]
    if above:
        first = above[0]
        raise UsageError(
            f"'{step.id}' reads '{first}', which will run: {sentence(outlooks[first].reason)}",
            hint=f"accept '{first}' first, or holdfast run and then accept",
        )
    probe = outlooks[step.id].probe
    if probe is None:
        raise UsageError(f"'{step.id}': {sentence(outlooks[step.id].reason)}")
    if probe.unsure:
        raise UsageError(
            f"'{step.id}' is never reused: {probe.unsure[0]} cannot be resolved",
            hint=f"holdfast why {step.id}",
        )
    return outlooks[step.id], probe, foreseen.pages


def check_unedited(
    where: Place, store: Store, loaded: Loaded, step: Step, digest: Digest, form: Form
) -> None:
    """What a person wrote to the outputs would be adopted in the place of what shall stand here."""
    if not step.produces:
        return
    plan = loaded.plan
    outputs = Outputs(where.root, "", store, plan.steps)
    wanted = outputs.wanted(step, digest, form)
    drift = outputs.drift_from(step, wanted, lambda: outputs.known(plan.project, plan.name, step))
    if drift.state == "edited":
        raise UsageError(
            f"{', '.join(drift.paths)} was changed by hand, and one of both can stand",
            hint=f"holdfast amend {step.id} keeps yours; put it aside to have the other stand",
        )
