"""attest: where an artifact comes from, as an in-toto statement; and whether such a statement is true."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, cast

import click

from holdfast.cli.again import out_next
from holdfast.cli.measure import count
from holdfast.cli.place import Place, file_option, json_option, nearest, place, place_options
from holdfast.cli.say import named, out, out_json, talk
from holdfast.cli.show import find_artifact
from holdfast.engine.maker import refs_follow
from holdfast.engine.provenance import PREDICATE, STATEMENT, statement
from holdfast.errors import ELSEWHERE, IntegrityError, StoreError, UsageError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Json
from holdfast.model.plan import StepId
from holdfast.ports import Store

MOST = 20  # differences that are named
_LARGEST = 64 << 20  # bytes of a statement
_WRITES_ONE = "holdfast attest STEP -o FILE"
_OF_STEP = "step:"
_ONCE_ACCEPTED = frozenset({"accepted", "superseded", "withdrawn"})
FileState = Literal["same", "differs", "missing"]


@click.command(
    epilog="\b\nExample:\n  holdfast attest report\n  holdfast attest report -o report.intoto.json\n"
    "  holdfast verify --attestation report.intoto.json"
)
@click.argument("ref", metavar="ARTIFACT|STEP")
@click.option("-o", "--out", "target", metavar="FILE", help="Write it to a file instead of stdout.")
@file_option
@place_options
@json_option
def attest(
    ref: str,
    target: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    as_json: bool,
) -> int:
    """Say where an artifact comes from: an in-toto statement with SLSA provenance.

    Its files by digest; the plan, the inputs, the model, the guards and what they said, who approved it and
    when. All of it is in the journal and the store, so the same artifact always has the same statement.
    """
    where = place(plan, store, plan_id)
    opened = where.open(readonly=True)
    try:
        row = _accepted(opened, ref, where.line())
        made = statement(opened, row)
    finally:
        opened.close()
    if target is None:
        out_json(made)
        return 0
    _write(target, made)
    if as_json:
        told: dict[str, Json] = {"file": target, "step": row.step, "digest": row.digest}
        out_json({"schema": "holdfast.attest/1", **told, "subjects": len(_list(made, "subject"))})
        return 0
    out(f"{target}: {row.step} {row.digest[:12]}")
    out_next(f"holdfast verify --attestation {named(target)}")
    return 0


def _accepted(store: Store, ref: str, line: str | None) -> Artifact:
    row = find_artifact(store, ref, line)
    if row is None:
        names = {one.step for one in store.artifacts() if line is None or one.line == line}
        hint = nearest(ref.partition("@")[0], sorted(names)) or "holdfast status"
        raise UsageError(f"there is no artifact '{ref}'", hint=hint)
    if row.status not in _ONCE_ACCEPTED:
        raise UsageError(f"'{ref}' was never accepted", hint=f"holdfast show {named(ref)} --json")
    return row


def _write(path: str, made: Mapping[str, Json]) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text_of(made))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no usable name"
        raise StoreError(f"cannot write '{path}': {reason}", hint=ELSEWHERE) from error


def text_of(made: Mapping[str, Json]) -> str:
    """A statement as it is written: the same bytes for the same facts."""
    return json.dumps(made, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


# --- is it true -----------------------------------------------------------------------------------


class Checked(NamedTuple):
    """What was found about a statement; `store` says whether there was one that knows its run."""

    problems: list[str]
    files: dict[str, FileState]
    store: bool


def verify_attestation(where: Place, file: str, *, only_files: bool, as_json: bool) -> int:
    """Check a statement against the store, or without one against the files; its exit code."""
    found = checked(where, _read(file), only_files=only_files)
    if as_json:
        problems: list[Json] = [*found.problems]
        out_json(
            {
                "schema": "holdfast.verify-attestation/1",
                "ok": not found.problems,
                "store": found.store,
                "problems": problems,
                "files": dict(found.files),
            }
        )
        return 9 if found.problems else 0
    for problem in found.problems:
        talk(problem)
    for path, state in found.files.items():
        if found.store and state != "same":
            talk(
                f"'{path}' here is another one by now"
                if state == "differs"
                else f"no '{path}' here"
            )
    against = (
        "the store" if found.store else f"{count(len(found.files), 'file')}; no store was asked"
    )
    wrong = count(len(found.problems), "problem") if found.problems else "no problems"
    out(f"{file}: {wrong} (compared with {against})")
    return 9 if found.problems else 0


def checked(where: Place, given: Mapping[str, Json], *, only_files: bool = False) -> Checked:
    """Compare a statement with what made it, and with the files that lie here."""
    problems = [*_misshapen(given)]
    if problems:
        return Checked(problems, {}, store=False)
    files = _files(given, where.root)
    known = None if only_files else _stored(where, given)
    if known is None:
        wrong = [f"'{path}' is {_WORDS[state]}" for path, state in files.items() if state != "same"]
        if not files:
            wrong = ["it names no file that could be looked at, and no store was asked"]
        return Checked(wrong, files, store=False)
    return Checked(known, files, store=True)


_WORDS = {"differs": "not what it says", "missing": "not there"}


def _read(path: str) -> Mapping[str, Json]:
    try:
        with open(path, "rb") as file:
            content = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no usable name"
        raise UsageError(f"cannot read '{path}': {reason}", hint=_WRITES_ONE) from error
    try:
        found = json.loads(content) if len(content) <= _LARGEST else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UsageError(f"'{path}' is no statement", hint=_WRITES_ONE)
    return cast("Mapping[str, Json]", found)


def _misshapen(given: Mapping[str, Json]) -> Iterator[str]:
    if given.get("_type") != STATEMENT:
        yield f"it is no in-toto statement of version 1: {given.get('_type')!r}"
    elif given.get("predicateType") != PREDICATE:
        yield f"it is not about provenance: {given.get('predicateType')!r}"
    elif not all(_name_and_digest(one) for one in _list(given, "subject")):
        yield "a subject has no name or no sha256"
    elif not _list(given, "subject"):
        yield "it is about nothing: it has no subject"


def _list(given: Mapping[str, Json], key: str) -> list[Json]:
    found = given.get(key)
    return found if isinstance(found, list) else []


def _at(given: Json, *path: str) -> Json:
    """What lies under these keys; None if they are not there."""
    for key in path:
        given = given.get(key) if isinstance(given, Mapping) else None
    return given


def _name_and_digest(one: Json) -> tuple[str, str] | None:
    name, digest = _at(one, "name"), _at(one, "digest", "sha256")
    return (name, digest) if isinstance(name, str) and isinstance(digest, str) else None


def _files(given: Mapping[str, Json], root: str) -> dict[str, FileState]:
    """The files of the subject as they lie in the project."""
    found: dict[str, FileState] = {}
    for one in _list(given, "subject"):
        name, digest = _name_and_digest(one) or ("", "")
        if not name.startswith(_OF_STEP):
            found[name] = _file(os.path.join(root, name), digest, inside=root)
    return found


def _file(path: str, digest: str, inside: str) -> FileState:
    """How a file is beside its digest; whatever lies outside of the project is not looked at."""
    try:
        real, top = os.path.realpath(path), os.path.realpath(inside)
        if os.path.commonpath((real, top)) != top or not os.path.isfile(real):
            return "missing"
        with open(real, "rb") as file:
            return (
                "same" if hashlib.file_digest(file, "sha256").hexdigest() == digest else "differs"
            )
    except (OSError, ValueError):
        return "missing"


def _stored(where: Place, given: Mapping[str, Json]) -> list[str] | None:
    """What is wrong with a statement by the store; None if there is none."""
    if not where.exists():
        return None
    opened = where.open(readonly=True)
    try:
        row = _row(opened, given)
        if row is None:
            return [_unknown(opened, given)]
        problems = [*_differences(statement(opened, row), given)]
        problems += [*_damaged(opened, row)]
        if refs_follow(opened, row) is False:
            problems.append(f"the refs of '{row.step}' do not follow from what it was made of")
        return problems
    except IntegrityError as error:
        return [error.message]
    finally:
        opened.close()


def _named_in(given: Mapping[str, Json]) -> tuple[str, str, str]:
    """The run, the step and the number of the attempt that a statement names."""
    whole = _at(given, "predicate", "runDetails", "metadata", "invocationId")
    run, _, rest = str(whole or "").partition("/")
    step, _, attempt = rest.rpartition("@")
    return run, step, attempt


def _row(store: Store, given: Mapping[str, Json]) -> Artifact | None:
    """The artifact that a statement is about, by what it says of itself."""
    asked = _at(given, "predicate", "buildDefinition", "externalParameters")
    step, line, project = _at(asked, "step"), _at(asked, "line"), _at(asked, "project")
    rows = [
        row
        for row in store.artifacts(step=StepId(str(step)))
        if (row.line, row.project) == (line, project) and row.status in _ONCE_ACCEPTED
    ]
    if _at(given, "predicate", "holdfast_decision") is not None:
        ref = _at(given, "predicate", "buildDefinition", "internalParameters", "config_ref")
        found = [row for row in rows if not row.run and row.config_ref == ref]
    else:
        run, _, attempt = _named_in(given)
        found = [row for row in rows if (row.run, str(row.attempt)) == (run, attempt)]
    return found[-1] if found else None


def _unknown(store: Store, given: Mapping[str, Json]) -> str:
    """Why a store has nothing to compare a statement with."""
    run, step, attempt = _named_in(given)
    if any(row.run == run for row in store.runs(imported=True)):
        return f"{run} has no accepted attempt {attempt} of '{step}' that it could be about"
    return f"this store knows nothing of {run or 'its run'}: --files compares the files alone"


def _damaged(store: Store, row: Artifact) -> Iterator[str]:
    """Contents of the artifact that are not what their digest says; reading one tells."""
    from holdfast.model.artifact import tree_entries

    try:
        content = store.get(row.digest)
        entries = tree_entries(content) if row.form == "tree" else ()
        for entry in entries:
            store.get(entry.digest)
    except IntegrityError as error:
        yield error.message


def _differences(true: Json, given: Json) -> Iterator[str]:
    found = [*_unlike(true, given, "")]
    yield from found[:MOST]
    if len(found) > MOST:
        yield f"and {len(found) - MOST} more differences"


def _unlike(true: Json, given: Json, at: str) -> Iterator[str]:
    """Where a statement says something else than the store, by the path there."""
    if isinstance(true, Mapping) and isinstance(given, Mapping):
        for key in sorted({*true, *given}):
            if key not in true or key not in given:
                yield f"{at}/{key}: " + (
                    "is missing" if key in true else "the store has no such thing"
                )
            else:
                yield from _unlike(true[key], given[key], f"{at}/{key}")
    elif isinstance(true, list) and isinstance(given, list) and len(true) == len(given):
        for place_of, (one, other) in enumerate(zip(true, given, strict=True)):
            yield from _unlike(one, other, f"{at}/{place_of}")
    elif true != given or isinstance(true, bool) != isinstance(given, bool):
        yield f"{at}: says {_short(given)}, the store has {_short(true)}"


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"  # noqa: PLR2004 - a line
