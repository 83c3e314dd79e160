"""undo: files as they were before a step, or a whole run, and its artifacts withdrawn."""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from holdfast import wire
from holdfast.cli.again import again, out_next
from holdfast.cli.place import (
    Place,
    file_option,
    find_run,
    json_option,
    place,
    place_options,
)
from holdfast.cli.say import named, out, out_json, short, talk
from holdfast.cli.show import load_state
from holdfast.core.state import State
from holdfast.edits.change import FileChange
from holdfast.engine.hold import Hold
from holdfast.engine.journals import read_state, runs_of
from holdfast.engine.outputs import Outputs
from holdfast.engine.runs import supersede
from holdfast.engine.undo import (
    OUTSIDE,
    Undo,
    Undoing,
    changed_by,
    settle_undone,
    undo,
)
from holdfast.engine.unkept import check_words
from holdfast.errors import UsageError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest, Json
from holdfast.model.line import StepUndone
from holdfast.model.plan import RunId, Step, StepId
from holdfast.ports import Store


@dataclass(frozen=True, slots=True)
class Scope:
    """What was named: a step (its last act) or a run (all it did); and in which line."""

    project: str
    line: str
    step: StepId | None
    run: RunId | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A step that is not undone, and why."""

    step: StepId
    why: str


@dataclass(frozen=True, slots=True)
class Found:
    """What would be undone, what not, and the files that have to change for it."""

    items: Sequence[Undoing]
    refusals: Sequence[Refusal]
    changes: Sequence[FileChange]


@click.command(
    "undo",
    epilog="\b\nExample:\n  holdfast undo build --dry-run\n  holdfast undo @ --because 'wrong branch'",
)
@click.argument("what", metavar="STEP|RUN")
@click.option("--dry-run", is_flag=True, help="Only show what would be undone.")
@click.option("--because", default="", metavar="TEXT", help="Why; kept with the decision.")
@file_option
@place_options
@json_option
def undo_command(
    what: str,
    because: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Put files back as they were before a step, or before all that a run did.

    What lies there is stored first. The artifacts no longer count, so the steps run again. Of a step, its
    last act is undone: an attempt, an amendment or an acceptance. What cannot be undone is listed.
    """
    where = place(plan, store, plan_id)
    with_store = where.open(readonly=dry_run)
    try:
        scope = _scope(with_store, what, where.line())
        if dry_run:
            found = _found(with_store, where, scope)
            said = _foreseen(found)
            ended: Sequence[RunId] = _unfinished(with_store, scope)
        else:
            check_words(because, where.hidden(with_store))
            said, found, ended = _undo(where, with_store, scope, because)
    finally:
        with_store.close()
    if as_json:
        _tell_json(said, found, ended, dry_run=dry_run)
    else:
        _tell(said, found, ended, dry_run=dry_run)
        redo = f"holdfast undo {named(what) if scope.step else what}"
        out_next(redo if dry_run else "holdfast plan    holdfast run")
    return 0


def _scope(store: Store, what: str, line: str | None) -> Scope:
    """A step of the line's last run by its id, else a run."""
    latest = load_state(store, find_run(store, None, line))
    rows = store.artifacts(project=latest.project, line=latest.line, step=StepId(what))
    if what in latest.plan.steps or next(rows, None) is not None:
        return Scope(latest.project, latest.line, StepId(what), None)
    if not what.startswith(("@", "r-")):
        import difflib

        near = difflib.get_close_matches(what, list(latest.plan.steps), n=1)
        hint = f"did you mean '{near[0]}'?" if near else "holdfast status"
        raise UsageError(f"there is no step and no run '{what}'", hint=hint)
    state = load_state(store, find_run(store, what, line))
    return Scope(state.project, state.line, None, state.run)


def _undo(
    where: Place, store: Store, scope: Scope, because: str
) -> tuple[list[StepUndone], Found, list[RunId]]:
    plan = load_state(store, find_run(store, None, scope.line)).plan
    world = wire.world_for(plan, where.root, where.location, store, wire.Wishes(say=talk))
    _found(store, where, scope)  # refuse before anything is touched
    hold = Hold(world, scope.project, scope.line)
    hold.take(join=False)
    try:
        settle_undone(world, hold, scope.project, scope.line)
        ended = _unfinished(store, scope)
        supersede(world, scope.project, scope.line)
        found = _found(store, where, scope)
        reason = store.put(because.encode()) if because else None
        by = getpass.getuser()
        names = (scope.project, scope.line)
        said = undo(world, *names, found.items, found.changes, by=by, because=reason)
    finally:
        hold.release()
    return said, found, ended


def _unfinished(store: Store, scope: Scope) -> list[RunId]:
    """Runs that could be resumed: they would go on from what is undone, so they end."""
    rows = runs_of(store, scope.project, scope.line)
    states = (read_state(store, row.run) for row in rows)
    return [state.run for state in states if state is not None and not state.ended]


def _found(store: Store, where: Place, scope: Scope) -> Found:
    outputs = Outputs(where.root, "", store)
    undo_of = Undo(store, outputs, scope.project, scope.line)
    states: dict[RunId, State] = {}
    if scope.step is not None:
        acts = undo_of.acts(scope.step)
        if not acts:
            raise UsageError(
                f"'{scope.step}' has nothing to undo: no accepted artifact", hint="holdfast status"
            )
        step = _step(store, states, acts[-1], scope)
        return Found([undo_of.of(step, acts[-1])], [], undo_of.changes())
    assert scope.run is not None  # one of both is named
    items, refusals = [], []
    for act in undo_of.done_in(scope.run):
        step = _step(store, states, act, scope)
        why = _why_not(undo_of, step, act)
        if why:
            refusals.append(Refusal(step.id, why))
        else:
            items.append(undo_of.of(step, act))
    if not items:
        why = f": '{refusals[0].step}': {refusals[0].why}" if refusals else ""
        raise UsageError(f"nothing that {short(scope.run)} did can be undone{why}")
    return Found(items, refusals, undo_of.changes())


def _why_not(undo_of: Undo, step: Step, act: Artifact) -> str:
    newest = undo_of.acts(step.id)[-1]
    if newest != act:
        by = (
            f"it was done again in {short(newest.run)}"
            if newest.run
            else "it has a person's version"
        )
        return f"{by}; undo that first: holdfast undo {step.id}"
    if step.effects == "external":
        return f"{OUTSIDE}; its artifact stays, so that it is not done twice"
    return ""


def _step(store: Store, states: dict[RunId, State], act: Artifact, scope: Scope) -> Step:
    """The step as it was when the act was done."""
    run = act.run
    if not run or not store.last(f"run:{run}"):  # said by a person, or imported without its journal
        run = find_run(store, None, scope.line)
    if run not in states:
        states[run] = load_state(store, run)
    return states[run].plan.steps.get(act.step) or Step(act.step)


def _foreseen(found: Found) -> list[StepUndone]:
    """The facts as they would be; nothing is written."""
    changed = [change.path for change in found.changes]
    return [
        StepUndone(
            step=item.step.id,
            rows=(),
            by="",
            run=item.rows[0].run,
            paths=changed_by(item, changed),
            left=item.left,
        )
        for item in found.items
    ]


def _tell_json(
    said: Sequence[StepUndone], found: Found, ended: Sequence[RunId], *, dry_run: bool
) -> None:
    undone: list[Json] = [
        _item_json(event, item) for event, item in zip(said, found.items, strict=True)
    ]
    out_json(
        {
            "schema": "holdfast.undo/1",
            "dry_run": dry_run,
            "undone": undone,
            "not_undone": [{"step": r.step, "why": r.why} for r in found.refusals],
            "superseded": list(ended),
        }
    )


def _tell(
    said: Sequence[StepUndone], found: Found, ended: Sequence[RunId], *, dry_run: bool
) -> None:
    for event, item in zip(said, found.items, strict=True):
        _print_item(event, item, dry_run=dry_run)
    for refusal in found.refusals:
        out(f"not undone: {refusal.step}: {refusal.why}")
    for run in ended:
        word = "would be superseded" if dry_run else "is superseded"
        out(f"{short(run)} was not finished and {word}: it cannot go on from what is undone")


def _item_json(event: StepUndone, item: Undoing) -> dict[str, Json]:
    changed = _changed(event, item)
    return {
        "step": event.step,
        "run": event.run or None,
        "attempt": item.rows[0].attempt or None,
        "digest": item.rows[0].digest,
        "restored": [path for path, digest in changed.items() if digest],
        "removed": [path for path, digest in changed.items() if not digest],
        "left": list(event.left),
        "kept": event.kept,
        "notes": list(item.notes),
    }


def _changed(event: StepUndone, item: Undoing) -> Mapping[str, Digest | None]:
    files = {entry.path: entry.digest for entry in item.files or ()}
    return {path: files.get(path) for path in event.paths}


def _print_item(event: StepUndone, item: Undoing, *, dry_run: bool) -> None:
    act = item.rows[0]
    if act.run:
        what = f"attempt {act.attempt} of {short(act.run)}"
    else:
        what = "its amendment" if act.source == "human" else "its acceptance"
    out(f"{'would undo' if dry_run else 'undone'}: {event.step}, {what} ({act.digest[:12]})")
    for path, digest in _changed(event, item).items():
        out(f"  {f'put back  {path}' if digest else f'removed   {path} (it was not there before)'}")
    for path in event.left:
        why = "what it was before is gone" if path in item.lost else "it was changed by hand"
        out(f"  left      {path}: {why}")
    for note in item.notes:
        out(f"  note      {note}")
    if event.paths and event.kept:
        out(again(f"  kept      what lay there: holdfast show {event.kept[:12]}"))
