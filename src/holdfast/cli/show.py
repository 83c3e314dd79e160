"""status, show, logs, trace: what is there, and what happened."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from holdfast import wire
from holdfast.cli.again import again, out_next
from holdfast.cli.brought import brought_words
from holdfast.cli.confined import was_confined
from holdfast.cli.ending import REPLAN, doubted, is_settled, last_words, print_lines, run_told
from holdfast.cli.limits import limit_words, own_of
from holdfast.cli.people import decided, decided_in
from holdfast.cli.place import (
    Place,
    file_option,
    find_run,
    json_option,
    keep_line,
    known_step,
    nearest,
    place,
    place_options,
)
from holdfast.cli.say import out, out_json, out_line, short
from holdfast.cli.since import answered_in, waiting_since
from holdfast.cli.status import status_lines
from holdfast.cli.succession import took_place
from holdfast.cli.view import view, width_now
from holdfast.core.effects import made_none
from holdfast.core.state import COMPLETE, State
from holdfast.engine.elsewhere import brought_in
from holdfast.engine.journals import read_state, runs_of
from holdfast.engine.requests import additions
from holdfast.engine.samples import recorded_score, samples
from holdfast.errors import IntegrityError, UsageError, Where
from holdfast.model.artifact import Artifact, tree_entries
from holdfast.model.changeset import changes_in
from holdfast.model.digest import Digest, Json
from holdfast.model.items import ids_meant, refuse_two, step_named
from holdfast.model.plan import RunId, StepId
from holdfast.model.text import cut, is_count, one_line
from holdfast.ports import Store
from holdfast.store.codec import event_json

if TYPE_CHECKING:
    from holdfast.cli.telling import What

SHORTEST = 6  # digits of a digest: shorter ones fit by chance


@click.command(
    epilog="\b\nExample:\n  holdfast status\n  holdfast status @-1 --json\n  holdfast status --watch"
)
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--run", "also", metavar="RUN", help="Which run (default: the last of the line).")
@click.option("--watch", is_flag=True, help="Go on showing it until the run ends or rests.")
@file_option
@place_options
@json_option
def status(
    run_id: str | None,
    also: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    watch: bool,
    as_json: bool,
) -> int:
    """Show where a run stands; the last one of the line if none is named."""
    where = place(plan, store, plan_id)
    with_store = where.open(readonly=True)
    try:
        state = load_state(with_store, find_run(with_store, _one_of(run_id, also), where.line()))
        if watch and state.status == "running":
            _watch(with_store, where.location, state)
        _print_run(with_store, state, where, every=view().verbose > 0, as_json=as_json)
    finally:
        with_store.close()
    return 0


def _print_run(store: Store, state: State, where: Place, *, every: bool, as_json: bool) -> None:
    if as_json:
        out_json(run_told(store, state, where.file))
        return
    print_lines(run_lines(store, state, where, every=every, voice=view().mode == "a11y"))


def run_lines(
    store: Store, state: State, where: Place, *, every: bool = False, voice: bool = False
) -> list[str]:
    """Where a run stands, on one screen; its last line says what to do next."""
    imported = any(row.run == state.run and row.imported for row in store.runs(imported=True))
    if not imported:
        keep_line(where, state.line, state.file)
    now, more = wire.now_ms(), additions(store, state)
    driven, words = wire.is_driven(store, state), last_words(store, state)
    words |= {step: f"by {word.words()}" for step, word in decided_in(store, state).items()}
    words |= waiting_since(store, state) | doubted(store, state)
    answered = answered_in(store, state)
    answered |= {REPLAN: "settled"} if is_settled(store, state) else {}
    lines = status_lines(
        state,
        now,
        words,
        driven=driven,
        every=every,
        voice=voice,
        additions=more,
        why=limit_words(store, state),
        own=own_of(state, where.file),
        answered=answered,
    )
    lines[1:1] = took_place(store, state)
    brought = brought_in(store, state.project, state.line).get(state.run)
    if brought is not None:
        lines[1:1] = [
            f"brought {brought_words(brought)}: what it made is reused here; it cannot be continued here"
        ]
    elif imported:
        lines[1:1] = ["imported: the history of another store; it cannot be continued here"]
        lines[-1] = again(
            f"next: holdfast accept STEP --from {short(state.run)}    holdfast history"
        )
    return lines


def _one_of(first: str | None, second: str | None) -> str | None:
    if first and second and first != second:
        raise UsageError(f"two runs are named: '{first}' and '{second}'")
    return first or second


def _watch(store: Store, home: str, state: State) -> None:
    """Show a run until it ends or rests; nothing that this does reaches the run."""
    from holdfast.cli.follow import following
    from holdfast.cli.onlook import leaving, look_on

    with leaving(lambda: None), following(store, hint="Ctrl-C ends the watching") as tell:
        tell.began(state)
        look_on(store, home, state, tell)


def load_state(store: Store, run: RunId) -> State:
    """A run that is known to exist."""
    state = read_state(store, run)
    if state is None:
        raise IntegrityError(f"run '{run}' has no journal")
    return state


@click.command(
    epilog="\b\nExample:\n  holdfast show build\n  holdfast show build@1\n  holdfast show r-1f3c --json"
)
@click.argument("ref")
@click.option("--samples", "every", is_flag=True, help="List all artifacts under the same key.")
@click.option("--handoff", "what", flag_value="handoff", help="What the step handed over.")
@click.option("--context", "what", flag_value="context", help="What its attempt was told.")
@file_option
@place_options
@json_option
def show(
    ref: str,
    what: What | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    every: bool,
    as_json: bool,
) -> int:
    """Print an artifact (STEP, STEP@ATTEMPT or a digest), or a run (r-…, @, @-1)."""
    where = place(plan, store, plan_id)
    with_store = where.open(readonly=True)
    try:
        if ref.startswith(("r-", "@")):
            state = load_state(with_store, find_run(with_store, ref, where.line()))
            _print_run(with_store, state, where, every=True, as_json=as_json)
            return 0
        if what is not None:
            from holdfast.cli.telling import print_told

            state = load_state(with_store, find_run(with_store, None, where.line()))
            print_told(with_store, state, ref, what, as_json=as_json)
            return 0
        artifact = find_artifact(with_store, ref, where.line())
        if every:
            _print_samples(with_store, artifact, ref, as_json=as_json)
            return 0
        if artifact is None:
            _print_content(
                with_store, _find_content(with_store, ref, where.line()), as_json=as_json
            )
            return 0
        if as_json:
            word = decided(with_store, artifact.project, artifact.line)
            said = word.get((artifact.step, artifact.digest))
            confined = was_confined(with_store, artifact.run, artifact.step, artifact.attempt)
            shown = {**artifact_json(artifact), "confined": confined}
            out_json({**shown, "decided": said.json() if said else None})
            return 0
        try:
            _print_artifact(with_store, artifact)
        except IntegrityError as error:
            error.where = Where(step=artifact.step)
            raise
    finally:
        with_store.close()
    return 0


def _print_samples(store: Store, stands: Artifact | None, ref: str, *, as_json: bool) -> None:
    """Every artifact that was accepted under the key of one, and which of them stands."""
    if stands is None:
        raise UsageError(f"'{ref}' has no accepted artifact", hint="name a step that is done")
    found = [(row, recorded_score(store, row)) for row in samples(store, stands)]
    if as_json:
        rows: list[Json] = [
            {
                **artifact_json(row),
                "score": None if score is None else score / 1000,
                "at": row.at,
                "stands": row == stands,
            }
            for row, score in found
        ]
        out_json({"schema": "holdfast.samples/1", "step": stands.step, "samples": rows})
        return
    out("   RUN         DIGEST        SCORE")
    for row, score in found:
        sign = "=" if row == stands else " "
        told = "-" if score is None else f"{score / 1000:g}"
        out(f" {sign} {short(row.run):<10}  {row.digest[:12]}  {told:>5}")
    out_next(f"holdfast accept {stands.step} --from RUN --because TEXT    holdfast show DIGEST")


def find_artifact(store: Store, ref: str, line: str | None) -> Artifact | None:
    """The artifact that is meant by STEP, STEP@ATTEMPT or the beginning of a digest."""
    name, attempt = ref, ""
    if not ref.endswith("]"):  # a key may have that sign too
        name, _, attempt = ref.rpartition("@") if "]@" in ref else ref.partition("@")
    found = {step: _of_line(store, step, line) for step in ids_meant(name)}
    refuse_two(name, [step for step, rows in found.items() if rows])
    rows = next(filter(None, found.values()), [])
    if attempt:
        last = next((row.run for row in reversed(rows) if row.attempt), "")
        rows = (
            [row for row in rows if row.attempt == int(attempt) and row.run == last]
            if is_count(attempt)
            else []
        )
    else:
        rows = _standing(store, [row for row in rows if row.status == "accepted"])
    if not rows and len(ref) >= SHORTEST:
        rows = [row for row in store.artifacts() if row.digest.startswith(ref)]
    return rows[-1] if rows else None


def _of_line(store: Store, step: StepId, line: str | None) -> list[Artifact]:
    return [row for row in store.artifacts(step=step) if line is None or row.line == line]


def _standing(store: Store, rows: list[Artifact]) -> list[Artifact]:
    """What a step has: by a person's word since the last run, else as that run had it, else the newest."""
    if len(rows) < 2:  # noqa: PLR2004 - nothing to choose
        return rows
    newest = rows[-1]
    runs = [row.run for row in runs_of(store, newest.project, newest.line)]
    state = read_state(store, runs[-1]) if runs else None
    step = state.steps.get(newest.step) if state is not None else None
    if state is None or step is None or step.phase not in COMPLETE:
        return rows
    if newest.source in {"human", "accepted"} and newest.at >= state.started_at:
        return rows
    return [row for row in rows if row.digest == step.digest] or rows


def _find_content(store: Store, ref: str, line: str | None) -> Digest:
    """Content that is no artifact of its own: a file of one, or what lay in the place of an output."""
    found = {d for d in store.blobs() if d.startswith(ref)} if len(ref) >= SHORTEST else set()
    if len(found) > 1:
        raise UsageError(f"'{ref}' fits {len(found)} contents", hint="name more of the digest")
    if not found:
        names = {row.step for row in store.artifacts() if line is None or row.line == line}
        if step_named(ref, dict.fromkeys(names)) is not None:
            raise UsageError(
                f"nothing that '{ref}' made was accepted", hint=f"holdfast logs '{ref}'"
            )
        hint = nearest(ref.partition("@")[0], sorted(names)) or "holdfast status"
        raise UsageError(f"there is no artifact '{ref}'", hint=hint)
    return found.pop()


def _print_content(store: Store, digest: Digest, *, as_json: bool) -> None:
    content = store.get(digest)
    if as_json:
        out_json({"schema": "holdfast.content/1", "digest": digest, "size": len(content)})
        return
    try:
        _print_manifest(content)
    except IntegrityError:  # not a list of files
        _print_bytes(iter([content]))


def artifact_json(artifact: Artifact) -> dict[str, Json]:
    """An artifact's row as JSON."""
    return {
        "schema": "holdfast.artifact/1",
        "step": artifact.step,
        "digest": artifact.digest,
        "form": artifact.form,
        "status": artifact.status,
        "source": artifact.source,
        "line": artifact.line,
        "run": artifact.run,
        "attempt": artifact.attempt,
        "config_ref": artifact.config_ref,
        "input_ref": artifact.input_ref,
        "verified": artifact.verified,
        "reusable": artifact.reusable,
    }


def _print_artifact(store: Store, artifact: Artifact) -> None:
    if artifact.form == "tree":
        _print_manifest(store.get(artifact.digest))
        return
    _print_bytes(store.chunks(artifact.digest))


def _print_bytes(pieces: Iterator[bytes]) -> None:
    """Content as it is; on a terminal as text, with everything spelled out that a terminal would obey."""
    if sys.stdout is None:
        return
    sys.stdout.flush()
    if not sys.stdout.isatty():
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        return
    text = b"".join(pieces).decode("utf-8", "replace")
    if text:
        out(text.removesuffix("\n"), raw=True)


def _print_manifest(content: bytes) -> None:
    for line in manifest_lines(content):
        out(line)


def manifest_lines(content: bytes) -> list[str]:
    """The files of an artifact; IntegrityError if it is none of several files."""
    entries, changes = tree_entries(content), changes_in(content)
    modes = ["755" if entry.executable else "644" for entry in entries]
    return [
        f"{mode} {entry.digest[:12]} {entry.size:>9} {one_line(entry.path)}"
        for mode, entry in zip(modes, entries, strict=True)
    ] + [
        f"gone {(change.base or '')[:12]} {'-':>9} {one_line(change.path)}"
        for change in changes
        if change.digest is None
    ]


@click.command(
    epilog="\b\nExample:\n  holdfast logs build -f\n  holdfast logs build --attempt 1 --grep error"
)
@click.argument("step")
@click.option("-f", "--follow", is_flag=True, help="Go on until the attempt ends.")
@click.option("--attempt", type=int, metavar="N", help="Which attempt (default: the last).")
@click.option("--grep", metavar="PATTERN", help="Only lines with this in them.")
@click.option("--since", metavar="SPAN", help="All attempts that ended since: 90s, 5m, 2h, 7d.")
@click.option("--run", "run_id", metavar="RUN", help="Which run (default: the last).")
@click.option("--file", "plan", metavar="PLAN", help="The plan file (default: plan.yaml).")
@place_options
@json_option
def logs(
    step: str,
    attempt: int | None,
    grep: str | None,
    since: str | None,
    run_id: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    follow: bool,
    as_json: bool,
) -> int:
    """Print what an attempt wrote and why it did not count."""
    from holdfast.cli.logs import Wanted, print_logs

    where = place(plan, store, plan_id)
    wanted = Wanted(attempt, grep, since, follow=follow, as_json=as_json)
    with_store = where.open(readonly=True)
    try:
        state = load_state(with_store, find_run(with_store, run_id, where.line()))
        step_id = known_step(state.plan, step)
        if run_id is None and state.steps[step_id].phase == "reused":
            state = _maker(with_store, state, step_id)
        elif run_id is None and made_none(state, step_id):
            state = _begun(with_store, state, step_id)
        return print_logs(with_store, where.location, state, step_id, wanted)
    finally:
        with_store.close()


def _begun(store: Store, state: State, step: StepId) -> State:
    """The run that began the effect for which this one holds the step; the same if that is not known."""
    found: State | None = state
    while found is not None and (step not in found.steps or not found.steps[step].attempts):
        found = read_state(store, found.previous) if found.previous is not None else None
    return found or state


def _maker(store: Store, state: State, step: StepId) -> State:
    """The run that made the artifact which this one reuses; the same if that is not known any more."""
    here = state.steps[step]
    for row in store.artifacts(project=state.project, line=state.line, step=step):
        if row.digest == here.digest and row.run and row.attempt:
            return load_state(store, row.run)
    return state


@click.command(epilog="\b\nExample:\n  holdfast trace @ --json")
@click.argument("run_id", metavar="[RUN]", required=False)
@file_option
@place_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print each event as a JSON object, one a line."
)
def trace(
    run_id: str | None, plan: str | None, store: str | None, plan_id: str | None, *, as_json: bool
) -> int:
    """Print the journal of a run, one event a line."""
    where = place(plan, store, plan_id)
    with_store = where.open(readonly=True)
    try:
        run = find_run(with_store, run_id, where.line())
        width = width_now()
        for recorded in with_store.read(f"run:{run}"):
            data = event_json(recorded)
            if as_json:
                out_line(data)
            else:
                rest = {k: v for k, v in data.items() if k not in {"seq", "ts", "event"}}
                body = one_line(json.dumps(rest, ensure_ascii=False))
                line = f"{data['seq']:>5} {data['ts']} {data['event']} {body}"
                out(cut(line, width) if width else line, raw=True)
        if view().mode == "jsonl":
            state = load_state(with_store, run)
            out_json(run_told(with_store, state, where.file))
    finally:
        with_store.close()
    return 0
