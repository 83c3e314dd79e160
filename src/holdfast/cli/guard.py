"""guard: what the guards of a step say now, about what stands, about a file, about an earlier result."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import click

from holdfast.cli.again import out_next
from holdfast.cli.ask import stdin_bytes
from holdfast.cli.grown import grown
from holdfast.cli.judge import (
    Consent,
    ask_about_cost,
    guards_of,
    judge,
    judging_options,
    only,
    stored_candidate,
)
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
from holdfast.core.moves import LIMIT
from holdfast.engine.outputs import Outputs
from holdfast.errors import EditError, UsageError
from holdfast.formats.planfile import Loaded
from holdfast.model.digest import Digest, Json, digest_bytes
from holdfast.model.plan import COPIES, Guard, Step
from holdfast.ports import Candidate, Outcome, Store

MOST_LINES = 12
_LIMIT = 5


class Judged(NamedTuple):
    """What is judged: the content, its digest, how people call it, whether it lies in the project."""

    candidate: Candidate
    digest: Digest
    name: str
    on_disk: bool


@click.command(
    epilog="\b\nExample:\n  holdfast guard brief\n  holdfast guard brief --on draft.md\n"
    "  holdfast guard brief --on @-1 --json"
)
@click.argument("step")
@click.option(
    "--on", "what", metavar="FILE|RUN", help="Judge this file, or what the step had in that run."
)
@file_option
@place_options
@judging_options
@json_option
def guard(
    step: str,
    what: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    yes: bool,
    max_cost: int | None,
    as_json: bool,
) -> int:
    """Run only the guards of STEP, all of them, and record nothing but what models are asked.

    They are those of the present plan. Without --on they look at the newest accepted artifact. Exit 0 if all
    accept, 1 if one does not or broke, 5 if a budget leaves no room for a question to a model.
    """
    where = place(plan, store, plan_id)
    loaded = grown(where, where.load())
    found = loaded.plan.steps[known_step(loaded.plan, step)]
    judged = _judged(where, loaded, found, what)
    guards = guards_of(found)
    steps = [only(found, item) for item in guards]
    ask_about_cost(where, loaded.plan, found, Consent(yes, max_cost))
    outcomes = judge(
        where,
        loaded.plan,
        steps,
        judged.candidate,
        on_disk=judged.on_disk,
        max_cost=max_cost,
    )
    passed = all(outcome.ended in {"accepted", "asked"} for outcome in outcomes)
    if as_json:
        out_json(_as_json(found, judged, guards, outcomes, passed=passed))
    else:
        _print(found, judged, guards, outcomes, passed=passed)
    if any(outcome.code == LIMIT for outcome in outcomes):
        return _LIMIT
    return 0 if passed else 1


def _judged(where: Place, loaded: Loaded, step: Step, what: str | None) -> Judged:
    if what is not None and (what == "-" or os.path.isfile(what)):
        return _file(step, what)
    if what is not None and not what.startswith(("@", "r-")):
        raise UsageError(f"there is no file '{what}'", hint="name a file, '-' for stdin, or a run")
    store = where.open(readonly=True)
    try:
        plan = loaded.plan
        if what is not None:
            run = find_run(store, what, plan.name)
            then = load_state(store, run).steps.get(step.id)
            if then is None or then.digest is None:
                raise UsageError(f"'{step.id}' has no artifact in {short(run)}")
            candidate = stored_candidate(store, then.digest, then.form)
            return Judged(candidate, then.digest, f"what it had in {short(run)}", on_disk=False)
        newest = store.newest(plan.project, plan.name, step.id)
        if newest is None:
            raise UsageError(
                f"'{step.id}' has no accepted artifact yet",
                hint=f"holdfast run, or holdfast guard {step.id} --on FILE",
            )
        candidate = stored_candidate(store, newest.digest, newest.form)
        there = _lies_there(where, store, step, candidate)
        return Judged(candidate, newest.digest, "its newest artifact", there)
    finally:
        store.close()


def _file(step: Step, what: str) -> Judged:
    if len(step.produces) > 1:
        raise UsageError(
            f"'{step.id}' makes several files; a FILE can only be one",
            hint=f"put them in place, then holdfast amend {step.id}",
        )
    try:
        if what == "-":
            content, name, program = stdin_bytes(), "what stdin gave", False
        else:
            with open(what, "rb") as file:
                content, name = file.read(), what
                program = bool(os.fstat(file.fileno()).st_mode & 0o100)
    except OSError as error:
        raise UsageError(f"cannot read '{what}': {error.strerror}") from error
    form = Candidate("program" if program and step.produces else "bytes", content)
    return Judged(form, digest_bytes(content), name, on_disk=False)


def _lies_there(where: Place, store: Store, step: Step, candidate: Candidate) -> bool:
    """Whether the project has exactly this version; then guards look where they look in a run."""
    if step.workspace in COPIES:
        return False
    try:
        there = Outputs(where.root, "", store).read(step)
    except EditError:
        return False
    if candidate.form == "tree":
        return {e.path: e.digest for e in there} == {
            f.path: digest_bytes(f.content) for f in candidate.files
        }
    return [(e.path, e.digest) for e in there] == [
        (path, digest_bytes(candidate.content)) for path in step.produces
    ]


_WORDS = {"accepted": "accept", "asked": "ask", "rejected": "reject", "fatal": "fatal"}
_SIGNS = {"accept": "✓", "ask": "⏸", "reject": "✗", "fatal": "✗", "broken": "!"}


def _word(outcome: Outcome) -> str:
    return _WORDS.get(outcome.ended, "broken")


def _name(item: Guard) -> str:
    return item.name or item.kind


def _as_json(
    step: Step,
    judged: Judged,
    guards: Sequence[Guard],
    outcomes: Sequence[Outcome],
    *,
    passed: bool,
) -> dict[str, Json]:
    verdicts: list[Json] = [
        {
            "guard": _name(item),
            "kind": item.kind,
            "verdict": _word(outcome),
            "feedback": outcome.feedback,
        }
        for item, outcome in zip(guards, outcomes, strict=True)
    ]
    return {
        "schema": "holdfast.guard/1",
        "step": step.id,
        "on": judged.name,
        "digest": judged.digest,
        "in_project": judged.on_disk,
        "passed": passed,
        "verdicts": verdicts,
    }


def _print(
    step: Step,
    judged: Judged,
    guards: Sequence[Guard],
    outcomes: Sequence[Outcome],
    *,
    passed: bool,
) -> None:
    count = f"{len(guards)} guard{'s' if len(guards) != 1 else ''}"
    out(f"{step.id}: {count} on {judged.name} ({judged.digest[:12]})")
    for item, outcome in zip(guards, outcomes, strict=True):
        word = _word(outcome)
        said = {"accept": "accepts", "reject": "rejects", "fatal": "refuses it for good"}
        said["ask"] = "asks a person"
        out(f"{_SIGNS[word]} {_name(item)} {said.get(word, 'broke: no verdict')}")
        lines = outcome.feedback.strip().splitlines() if word != "accept" else []
        for line in lines[-MOST_LINES:]:
            out(f"    {line}")
        if len(lines) > MOST_LINES:
            out(f"    ({len(lines) - MOST_LINES} lines above: --json)")
    if not guards:
        out("it has no guards, so anything passes")
    if step.produces and not judged.on_disk and guards:
        out("judged in a copy, with the declared inputs beside it")
    if passed:
        out_next("holdfast status")
    else:
        out_next(f"holdfast show {judged.digest[:12]}    holdfast amend {step.id} FILE")
