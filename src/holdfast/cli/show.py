"""status, show, logs, trace: what is there, and what happened."""

from __future__ import annotations

import json
import sys

import click

from holdfast import wire
from holdfast.cli.place import file_option, find_run, json_option, known_step, place, place_options
from holdfast.cli.say import SIGNS, end_block, out, out_json
from holdfast.core.reasons import sentence
from holdfast.core.state import State
from holdfast.core.views import run_json
from holdfast.engine.probe import read_state
from holdfast.errors import IntegrityError, UsageError
from holdfast.model.artifact import Artifact, Entry, tree_entries
from holdfast.model.digest import Digest, Json
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptRejected,
)
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Store
from holdfast.store.codec import event_json

SHORTEST = 6  # digits of a digest: shorter ones fit by chance
Ended = AttemptAccepted | AttemptRejected | AttemptFailed | AttemptLost


@click.command(epilog="\b\nExample:\n  holdfast status\n  holdfast status @-1 --json")
@click.argument("run_id", metavar="[RUN]", required=False)
@file_option
@place_options
@json_option
def status(
    run_id: str | None, plan: str | None, store: str | None, plan_id: str | None, *, as_json: bool
) -> int:
    """Show where a run stands; the last one of the line if none is named."""
    where = place(plan, store, plan_id)
    with_store = where.open(readonly=True)
    try:
        state = load_state(with_store, find_run(with_store, run_id, where.line()))
        driven = wire.is_driven(with_store, state)
    finally:
        with_store.close()
    if as_json:
        out_json(run_json(state, file=where.file, now=wire.now_ms()))
        return 0
    for step_id in state.graph.order:
        step = state.steps[step_id]
        why = f": {sentence(step.reason)}" if step.reason else ""
        tries = f" ({step.attempts} attempts)" if step.attempts > 1 else ""
        out(f"{SIGNS[step.phase]} {step_id} {step.phase}{why}{tries}")
    out(end_block(state, wire.now_ms(), driven=driven))
    return 0


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
@file_option
@place_options
@json_option
def show(
    ref: str, plan: str | None, store: str | None, plan_id: str | None, *, as_json: bool
) -> int:
    """Print an artifact (STEP, STEP@ATTEMPT or a digest), or a run (r-…, @, @-1)."""
    where = place(plan, store, plan_id)
    with_store = where.open(readonly=True)
    try:
        if ref.startswith(("r-", "@")):
            state = load_state(with_store, find_run(with_store, ref, where.line()))
            out_json(run_json(state, file=where.file, now=wire.now_ms()))
            return 0
        artifact = _find_artifact(with_store, ref, where.line())
        if artifact is None:
            _print_content(with_store, _find_content(with_store, ref), as_json=as_json)
            return 0
        if as_json:
            out_json(artifact_json(artifact))
            return 0
        _print_artifact(with_store, artifact)
    finally:
        with_store.close()
    return 0


def _find_artifact(store: Store, ref: str, line: str | None) -> Artifact | None:
    name, _, attempt = ref.partition("@")
    rows = [row for row in store.artifacts(step=StepId(name)) if line is None or row.line == line]
    if attempt:
        last = next((row.run for row in reversed(rows) if row.attempt), "")
        rows = (
            [row for row in rows if row.attempt == int(attempt) and row.run == last]
            if attempt.isdigit()
            else []
        )
    else:
        rows = [row for row in rows if row.status == "accepted"]
    if not rows and len(ref) >= SHORTEST:
        rows = [row for row in store.artifacts() if row.digest.startswith(ref)]
    return rows[-1] if rows else None


def _find_content(store: Store, ref: str) -> Digest:
    """Content that is no artifact of its own: a file of one, or what lay in the place of an output."""
    found = {d for d in store.blobs() if d.startswith(ref)} if len(ref) >= SHORTEST else set()
    if len(found) > 1:
        raise UsageError(f"'{ref}' fits {len(found)} contents", hint="name more of the digest")
    if not found:
        raise UsageError(f"there is no artifact '{ref}'", hint="holdfast status")
    return found.pop()


def _print_content(store: Store, digest: Digest, *, as_json: bool) -> None:
    content = store.get(digest)
    if as_json:
        out_json({"schema": "holdfast.content/1", "digest": digest, "size": len(content)})
        return
    try:
        _print_entries(tree_entries(content))
    except IntegrityError:  # not a list of files
        sys.stdout.flush()
        sys.stdout.buffer.write(content)


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
        _print_entries(tree_entries(store.get(artifact.digest)))
        return
    sys.stdout.flush()
    for piece in store.chunks(artifact.digest):
        sys.stdout.buffer.write(piece)


def _print_entries(entries: tuple[Entry, ...]) -> None:
    for entry in entries:
        mode = "755" if entry.executable else "644"
        out(f"{mode} {entry.digest[:12]} {entry.size:>9} {entry.path}")


@click.command(epilog="\b\nExample:\n  holdfast logs build\n  holdfast logs build --attempt 1")
@click.argument("step")
@click.option("--attempt", type=int, help="Which attempt (default: the last).")
@click.option("--run", "run_id", metavar="RUN", help="Which run (default: the last).")
@file_option
@place_options
@json_option
def logs(
    step: str,
    attempt: int | None,
    run_id: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    as_json: bool,
) -> int:
    """Print what an attempt wrote and why it did not count."""
    where = place(plan, store, plan_id)
    with_store = where.open(readonly=True)
    try:
        run = find_run(with_store, run_id, where.line())
        state = load_state(with_store, run)
        step_id = known_step(state.plan, step)
        ended = _ended(with_store, run, step_id, attempt)
        words = _blob(with_store, None if isinstance(ended, AttemptAccepted) else ended.feedback)
        log = _blob(with_store, ended.log)
    finally:
        with_store.close()
    if as_json:
        out_json(
            {
                "schema": "holdfast.logs/1",
                "run": run,
                "step": step_id,
                "attempt": ended.attempt,
                "log": log,
                "feedback": words,
            }
        )
        return 0
    for text, title in ((log, ""), (words, "feedback")):
        if text:
            if title:
                out(f"--- {title}")
            out(text.rstrip("\n"))
    if not log and not words:
        out(f"attempt {ended.attempt} of '{step_id}' wrote nothing")
    return 0


def _ended(store: Store, run: RunId, step: StepId, attempt: int | None) -> Ended:
    found: Ended | None = None
    for recorded in store.read(f"run:{run}"):
        event = recorded.event
        if isinstance(event, Ended) and event.step == step and attempt in {None, event.attempt}:
            found = event
    if found is None:
        raise UsageError(
            f"'{step}' has no ended attempt in {run}",
            hint="it may have been reused: holdfast status",
        )
    return found


def _blob(store: Store, digest: Digest | None) -> str:
    return "" if digest is None else store.get(digest).decode("utf-8", "replace")


@click.command(epilog="\b\nExample:\n  holdfast trace @ --json")
@click.argument("run_id", metavar="[RUN]", required=False)
@file_option
@place_options
@json_option
def trace(
    run_id: str | None, plan: str | None, store: str | None, plan_id: str | None, *, as_json: bool
) -> int:
    """Print the journal of a run, one event a line."""
    where = place(plan, store, plan_id)
    with_store = where.open(readonly=True)
    try:
        run = find_run(with_store, run_id, where.line())
        for recorded in with_store.read(f"run:{run}"):
            data = event_json(recorded)
            if as_json:
                sys.stdout.write(json.dumps(data, ensure_ascii=False) + "\n")
            else:
                rest = {k: v for k, v in data.items() if k not in {"seq", "ts", "event"}}
                body = json.dumps(rest, ensure_ascii=False)[:160]
                out(f"{data['seq']:>5} {data['ts']} {data['event']} {body}")
    finally:
        with_store.close()
    return 0
