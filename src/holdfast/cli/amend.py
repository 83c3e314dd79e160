"""amend: a person's own version in the place of an artifact."""

from __future__ import annotations

import getpass
import os

import click

from holdfast import wire
from holdfast.cli.accept import check_unedited
from holdfast.cli.again import out_next
from holdfast.cli.ask import read_most, stdin_bytes
from holdfast.cli.grown import grown
from holdfast.cli.handing import handed_over, handoff_option
from holdfast.cli.judge import Consent, ask_about_cost, judge, judging_options, stored_candidate
from holdfast.cli.people import held_row, latest_run
from holdfast.cli.place import (
    Place,
    file_option,
    json_option,
    known_step,
    near_file,
    place,
    place_options,
)
from holdfast.cli.preview import look_ahead
from holdfast.cli.say import out, out_json
from holdfast.cli.view import view
from holdfast.core.effects import DOUBTED, RECEIPT_GONE
from holdfast.core.reasons import sentence
from holdfast.core.views import person_row
from holdfast.engine.answers import keep_given
from holdfast.engine.lines import tell_line
from holdfast.engine.outputs import Kept, Outputs
from holdfast.engine.questions import approvers
from holdfast.engine.unkept import Hidden, check_free, check_words
from holdfast.errors import HoldfastError, UsageError
from holdfast.formats.planfile import Loaded
from holdfast.model.artifact import Artifact, Form
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.event import Options
from holdfast.model.line import StepAmended
from holdfast.model.plan import Step
from holdfast.model.walls import moved_by, size_of
from holdfast.ports import Candidate, Store
from holdfast.process.inside import SpecialFileError, open_regular


class RefusedError(HoldfastError):
    """A guard refused a person's version."""

    code = "guard_rejected"


@click.command(
    epilog="\b\nExample:\n  holdfast amend summary better.txt --because 'wrong source'\n"
    "  holdfast amend build            # take what lies at its output paths"
)
@click.argument("step")
@click.argument("file", required=False)
@click.option("--because", default="", metavar="TEXT", help="Why; kept with the decision.")
@handoff_option
@file_option
@place_options
@judging_options
@json_option
def amend(
    step: str,
    file: str | None,
    because: str,
    handoff: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    yes: bool,
    max_cost: int | None,
    as_json: bool,
) -> int:
    """Put your own version in the place of a step's artifact. Its guards must pass.

    FILE is the new content, '-' reads stdin; without FILE what lies at the step's output paths counts.
    """
    where = place(plan, store, plan_id)
    loaded = grown(where, where.load())
    found = loaded.plan.steps[known_step(loaded.plan, step)]
    with_store = where.open()
    try:
        was_held = held_row(with_store, loaded.plan, found) is not None
        told = handed_over(with_store, where, loaded.plan, found, handoff)
        consent = Consent(yes, max_cost)
        event = _amend(where, loaded, found, with_store, file, because, consent, told)
    finally:
        with_store.close()
    if as_json:
        out_json(
            {
                "schema": "holdfast.amend/1",
                "step": event.step,
                "digest": event.digest,
                "config_ref": event.config_ref,
                "verified": event.verified,
            }
        )
    else:
        out(
            f"{event.step}: your version {event.digest[:12]} stands; steps that read it will run again"
        )
        out_next(
            "holdfast resume    holdfast plan" if was_held else "holdfast plan    holdfast run"
        )
    return 0


def _amend(
    where: Place,
    loaded: Loaded,
    step: Step,
    store: Store,
    file: str | None,
    because: str,
    consent: Consent,
    handoff: Digest | None,
) -> StepAmended:
    plan = loaded.plan
    hidden = where.hidden(store, plan)
    check_words(because, hidden)
    newest = _amendable(where, loaded, step, store)
    digest, form, candidate = _content(where, step, store, file, newest, hidden)
    if file is not None:
        check_unedited(where, store, loaded, step, digest, form)
    ask_about_cost(where, plan, step, consent)
    (outcome,) = judge(
        where, plan, [step], candidate, on_disk=file is None, max_cost=consent.max_cost
    )
    if outcome.ended == "asked":  # whoever puts a version of his own there answers for it
        person = wire.person(store, where.location, terminal=view().asks)
        for name in outcome.asks:
            person.names_for(approvers(step.guards, name))
    elif outcome.ended != "accepted":
        guard = outcome.verdict.guard if outcome.verdict else outcome.code
        raise RefusedError(
            f"guard '{guard}' refuses this version of '{step.id}': {outcome.feedback}"
        )
    reason = store.put(because.encode()) if because else None

    def say() -> tuple[int, StepAmended, list[Artifact]]:
        at = wire.now_ms()
        latest, seq = latest_run(store, plan.project, plan.name)
        event = StepAmended(
            step=step.id,
            config_ref=newest.config_ref,
            input_ref=newest.input_ref,
            own_ref=newest.own_ref,
            digest=digest,
            form=form,
            verified=outcome.verified or outcome.ended == "asked",
            by=getpass.getuser(),
            because=reason,
            replaces=newest.digest or None,
            after_run=latest,
            after_seq=seq,
            handoff=handoff,
        )
        return at, event, [person_row(event, plan.project, plan.name, at)]

    said = tell_line(store, plan.project, plan.name, say)
    assert isinstance(said, StepAmended)  # what was said
    return said


def _amendable(where: Place, loaded: Loaded, step: Step, store: Store) -> Artifact:
    """The artifact that stands now. If the step would run again, a version of it would not stand."""
    held = held_row(store, loaded.plan, step)
    if held is not None:
        return held
    newest = store.newest(loaded.plan.project, loaded.plan.name, step.id)
    outlook = look_ahead(where, loaded, Options()).outlooks[step.id]
    if newest is None and outlook.probe is not None and outlook.reason.code == RECEIPT_GONE:
        newest = outlook.probe.lost  # of a run that was brought
    if newest is None:
        raise UsageError(f"'{step.id}' has no accepted artifact to amend", hint="holdfast run")
    probe = outlook.probe
    given = {"output_modified", "expired", RECEIPT_GONE}
    if outlook.decision != "reuse" and outlook.reason.code not in given:
        waits = outlook.decision == "wait"
        in_doubt = outlook.reason.code == DOUBTED
        raise UsageError(
            f"'{step.id}' {'waits' if waits else 'will run again'}, so no version of it stands:"
            f" {sentence(outlook.reason)}",
            hint=f"holdfast why {step.id} --wait" if in_doubt else "holdfast run, then amend",
        )
    return (probe.found or probe.lost or newest) if probe is not None else newest


def _content(
    where: Place, step: Step, store: Store, file: str | None, newest: Artifact, hidden: Hidden
) -> tuple[Digest, Form, Candidate]:
    """Store the new content and return it as the guards see it."""
    if step.changes_copy:
        raise UsageError(
            f"'{step.id}' changes project files, and no other version can stand in their place",
            hint="edit them where they are, they stay; or holdfast undo it",
        )
    if file is not None:
        if newest.form == "tree":
            raise UsageError(
                f"'{step.id}' makes several files; FILE can only be one",
                hint=f"put them in place, then holdfast amend {step.id}",
            )
        content = _read(file, wire.walls_at(where.root).artifact)
        check_free(f"the content for '{step.id}'", content, hidden)
        return store.put(content), newest.form, Candidate(newest.form, content)
    if not step.produces:
        raise UsageError(f"'{step.id}' writes no files; name a FILE with the new content")
    kept = _whole(Outputs(where.root, "", store, hidden=hidden), step, newest)
    for digest, content in kept.blobs:
        store.put(content)
        assert digest == digest_bytes(content)
    if len(step.produces) == 1 and [e.path for e in kept.entries] == [step.produces[0]]:
        entry = kept.entries[0]
        form: Form = "program" if entry.executable else "bytes"
        return entry.digest, form, Candidate(form, store.get(entry.digest))
    return kept.digest, "tree", stored_candidate(store, kept.digest, "tree")


def _whole(outputs: Outputs, step: Step, newest: Artifact) -> Kept:
    """What lies at the output paths; all of a step's files are amended together, so none may be missing."""
    kept = keep_given(outputs, step)
    if not kept.entries:
        raise UsageError(f"nothing lies at the output paths of '{step.id}'")
    wanted = outputs.wanted(step, newest.digest, newest.form) if newest.digest else ()
    missing = [entry.path for entry in outputs.missing(step, kept.entries, wanted)]
    if missing:
        raise UsageError(
            f"'{step.id}' makes {', '.join(missing)} too, and nothing lies there",
            hint="holdfast run puts it back from the store and adopts your edit",
        )
    return kept


def _read(file: str, most: int) -> bytes:
    """What stdin or a regular file gives; UsageError if that is more than an artifact may have."""
    try:
        if file == "-":
            content = stdin_bytes(most)
        else:
            with open_regular(os.path.realpath(file)) as opened:
                content = read_most(opened, most)
    except (SpecialFileError, IsADirectoryError) as error:
        raise UsageError(
            f"'{file}' is no regular file", hint="name a file, or '-' for stdin"
        ) from error
    except OSError as error:
        hint = None
        if isinstance(error, FileNotFoundError):
            hint = near_file(file) or "name a file that is there, '-' for stdin, or none at all"
        raise UsageError(f"cannot read '{file}': {error.strerror}", hint=hint) from error
    if len(content) > most:
        given = "stdin" if file == "-" else f"'{file}'"
        raise UsageError(
            f"{given} has more than {size_of(most)}, as much as an artifact may have",
            hint=moved_by("artifact", most),
        )
    return content
