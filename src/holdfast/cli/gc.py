"""gc: remove old runs and contents that nothing names; say what stays, what goes, what it costs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nsmallest

import click

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.ask import confirm, who
from holdfast.cli.measure import Duration, Size, age_words, count, cut, size_words
from holdfast.cli.place import Place, file_option, json_option, place, place_options
from holdfast.cli.say import out, out_json, seconds, short, talk
from holdfast.cli.view import view
from holdfast.edits.journal import is_open, is_settled, keys_in
from holdfast.engine.collect import (
    YOUNG_MS,
    Bounds,
    Sweep,
    Told,
    hold_lines,
    look,
    remove,
    unnamed,
)
from holdfast.engine.journals import has_ended
from holdfast.engine.makers import Losses
from holdfast.engine.naming import NO_CONTENTS
from holdfast.engine.snapshots import drop_snapshots
from holdfast.engine.worktrees import drop_worktrees
from holdfast.engine.written import written_paths
from holdfast.model.digest import Json
from holdfast.model.plan import RunId
from holdfast.ports import Holder, Store
from holdfast.process.removal import discard_folder
from holdfast.store.host import gone, this_process
from holdfast.store.strangers import is_run

DEFAULT_KEEP = 30 * 86_400_000
WHY = {
    "newest": "newest of the line",
    "unfinished": "not finished",
    "young": "young enough",
    "wanted": "within the bounds",
    "pinned": "pinned",
    "stands": "with an artifact that stands for a step",
    "reused": "with an artifact that a kept run reuses",
    "effect": "with an effect that was never confirmed, or after one",
    "receipt": "with an effect whose receipt was purged",
    "written": "with what a person wrote and no other run keeps",
    "held": "of a line that an engine holds",
}
SHOWN = 10
NAMED = 5  # steps
_Busy = Sequence[tuple[str, str, Holder]]


@dataclass(frozen=True, slots=True)
class Done:
    """What was really removed, when it was asked for."""

    sweep: Sweep
    leftovers: tuple[str, ...]
    busy: _Busy
    dry: bool
    unfinished: tuple[str, ...] = ()
    wrote: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by run, for which it stays


@click.command(
    epilog="\b\nExample:\n  holdfast gc --dry-run\n  holdfast gc --keep 7d --yes\n"
    "  holdfast gc --keep-runs 20 --max-size 5GB"
)
@click.option("--keep", type=Duration(), help="Keep runs younger than this (default: 30d).")
@click.option("--keep-runs", type=click.IntRange(0), metavar="N", help="Keep N runs of each line.")
@click.option("--max-size", type=Size(), help="Remove older runs until contents fit in this.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@file_option
@place_options
@json_option
def gc(
    keep: int | None,
    keep_runs: int | None,
    max_size: int | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Remove old runs that nothing stands on, and contents that nothing names.

    What is pinned, young, unfinished, the newest of its line, or stands for a step always stays; so does
    an effect that was never confirmed or whose receipt was purged, and what a person wrote ('holdfast purge'
    removes that).
    """
    where = place(plan, store, plan_id)
    if keep is None and keep_runs is None and max_size is None:
        keep = DEFAULT_KEEP
    bounds = Bounds(wire.now_ms(), keep, keep_runs, max_size)
    with_store = where.open(readonly=dry_run)
    try:
        found = looked(where, with_store, bounds, dry=dry_run)
        if not as_json:
            print_sweep(found)
        goes = found.sweep.goes or found.sweep.contents or found.leftovers
        if not dry_run and goes:
            confirm("remove them?", yes=yes)
            found = without_lists(found)
            found = swept(where, with_store, bounds, found)
            if not as_json:
                out(outcome(found))
        if not dry_run:
            drop_snapshots(where.location)  # caches: they are made again when somebody looks
    finally:
        with_store.close()
    if as_json:
        out_json(sweep_json(found))
    elif dry_run and goes:
        out_next("holdfast gc --yes")
    return 0


def looked(where: Place, store: Store, bounds: Bounds, *, dry: bool) -> Done:
    """What would go now."""
    busy = [item for item in store.held() if not gone(item[2])]
    sweep = look(store, bounds, {(project, line) for project, line, _ in busy})
    if busy:  # what an engine is about to name cannot be told from what nobody names
        sweep = replace(sweep, contents=NO_CONTENTS)
    left = tuple(leftovers(where, store, busy))
    return Done(sweep, left, busy, dry, tuple(unfinished(where)), _wrote(store, sweep))


def without_lists(found: Done) -> Done:
    """What was shown, without what it listed: everything is looked up again before it goes."""
    return replace(found, sweep=replace(found.sweep, contents=NO_CONTENTS, lost=Losses()))


def _wrote(store: Store, sweep: Sweep) -> dict[str, tuple[str, ...]]:
    """The files for which runs stay, because a person wrote them."""
    return {
        told.row.run: tuple(written_paths(store, told.wrote))
        for told, why in sweep.stays
        if why == "written"
    }


def swept(where: Place, store: Store, bounds: Bounds, shown: Done) -> Done:
    """Hold all lines, look again, and remove what was shown and still may go; contents last."""
    owner = this_process()
    try:
        busy = hold_lines(store, owner, gone)
        sweep = look(store, bounds, {(project, line) for project, line, _ in busy})
        seen = {told.row.run for told in shown.sweep.goes}
        goes = tuple(told for told in sweep.goes if told.row.run in seen)
        for told in goes:
            remove(store, told, who(), wire.now_ms)
        contents = NO_CONTENTS
        if sweep.contents and not busy:
            before = bounds.now - YOUNG_MS
            contents = unnamed(store, before, sweep.contents)
            store.forget(contents.digests(), before)
        left = tuple(leftovers(where, store, busy))
        for path in left:
            if os.path.basename(os.path.dirname(path)) == "worktrees":
                drop_worktrees(where.root, where.location, os.path.basename(path))
            discard_folder(path)
        lost = sweep.lost
        if len(goes) < len(sweep.goes):
            lost = lost.of({told.row.run for told in goes})
        removed = replace(sweep, goes=goes, contents=contents, lost=lost)
        return replace(
            shown, sweep=removed, leftovers=left, busy=busy, wrote=_wrote(store, removed)
        )
    finally:
        store.leave(owner.engine)


def leftovers(where: Place, store: Store, busy: _Busy) -> Iterable[str]:
    """Private directories of runs that have ended or are not there, unless somebody works on them."""
    driven = {str(holder.run) for _, _, holder in busy}
    known = {str(row.run) for row in store.runs(imported=True)}
    for kind in ("scratch", "apply", "worktrees"):
        folder = os.path.join(where.location, kind)
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if name in driven or (busy and name not in known):
                continue
            path = os.path.join(folder, name)
            if not os.path.isdir(path):  # a lock
                continue
            if kind == "apply" and (not is_run(name) or unsettled([path])):
                continue  # whoever changes files next finishes what a kill left, or takes it back
            empty = not os.listdir(path)
            if name not in known or (has_ended(store, RunId(name)) and not _is_kept(kind, path)):
                yield from () if empty else (path,)


def _is_kept(kind: str, path: str) -> bool:
    """Whether an edit kept images that found no place: somebody may want them."""
    return kind == "apply" and any(is_settled(os.path.join(path, key)) for key in keys_in(path))


def unfinished(where: Place) -> list[str]:
    """Where changes of the project's files are written down that a kill left half done."""
    folder = os.path.join(where.location, "apply")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return unsettled([os.path.join(folder, name) for name in names])


def unsettled(paths: Iterable[str]) -> list[str]:
    """Those of these directories that hold an open journal."""
    return [path for path in paths if any(is_open(os.path.join(path, k)) for k in keys_in(path))]


# --- telling ----------------------------------------------------------------------------------


def print_sweep(found: Done) -> None:
    """Say what stays and what goes."""
    sweep = found.sweep
    counts = Counter(why for _, why in sweep.stays)
    if sweep.stays:
        out(f"keeps {count(len(sweep.stays), 'run')}")
        for why, number in counts.most_common():
            out(f"  {number} {WHY[why]}")
        for run, paths in found.wrote.items():
            out(f"kept: what you wrote to {', '.join(paths)} ({short(run)})")
    for project, line, holder in found.busy:
        name = f"{project}/{line}" if project else line
        talk(
            f"process {holder.owner.pid} holds line '{name}': its runs stay,"
            " and so do all contents for now"
        )
    if found.unfinished:
        talk("a change of the project's files was killed half way: the next run or undo settles it")
    if not (sweep.goes or sweep.contents or found.leftovers):
        out("nothing to remove")
        return
    size = size_words(sweep.contents.size)
    contents = f"{count(len(sweep.contents), 'content')} ({size})"
    out(f"removes {count(len(sweep.goes), 'run')}, {contents}{_litter(found)}")
    if sweep.young and not found.busy:
        out(f"  {count(sweep.young, 'content')} younger than an hour may go the next time")
    now = wire.now_ms()
    shown = sweep.goes if view().mode == "plain" else sweep.goes[:SHOWN]
    for told in shown:
        out(
            f"  {short(told.row.run)} {told.status}, {age_words(now - told.at)},"
            f" {count(told.made, 'artifact')}"
        )
    if len(sweep.goes) > len(shown):
        out(f"  … and {len(sweep.goes) - len(shown)} more")
    out(_repaid(sweep))


def _litter(found: Done) -> str:
    """The last part of the sentence about what goes."""
    number = len(found.leftovers)
    if not number:
        return ""
    return ", 1 leftover directory" if number == 1 else f", {number} leftover directories"


def _repaid(sweep: Sweep) -> str:
    if not sweep.lost:
        return "nothing of it would have to be made again"
    steps = nsmallest(NAMED + 1, {*sweep.lost.steps})
    names = ", ".join(steps[:NAMED]) + (" …" if len(steps) > NAMED else "")
    return (
        f"to make again if ever wanted: {count(len(sweep.lost), 'artifact')},"
        f" {seconds(sweep.lost.work_ms)} of work\n" + cut(f"  {names}")
    )


def outcome(found: Done) -> str:
    """What went, in a sentence."""
    sweep = found.sweep
    return (
        f"removed {count(len(sweep.goes), 'run')} and {count(len(sweep.contents), 'content')},"
        f" {size_words(sweep.contents.size)}"
    )


def sweep_json(found: Done) -> dict[str, Json]:
    """The same for programs."""
    sweep = found.sweep
    return {
        "schema": "holdfast.gc/1",
        "dry_run": found.dry,
        "removed": [_told_json(told) for told in sweep.goes],
        "kept": [
            {
                **_told_json(told),
                "why": why,
                "wrote": list[Json](found.wrote.get(told.row.run, ())),
            }
            for told, why in sweep.stays
        ],
        "contents": {
            "count": len(sweep.contents),
            "bytes": sweep.contents.size,
            "stored_bytes": sweep.total,
        },
        "held": [
            {"project": project, "line": line, "pid": holder.owner.pid}
            for project, line, holder in found.busy
        ],
        "leftovers": len(found.leftovers),
        "repay": {
            "artifacts": [
                {"step": item.step, "run": item.run, "digest": item.digest, "work_ms": item.work_ms}
                for item in sweep.lost
            ],
            "work_ms": sweep.lost.work_ms,
        },
    }


def _told_json(told: Told) -> dict[str, Json]:
    return {
        "run": told.row.run,
        "line": told.row.line,
        "status": "imported" if told.row.imported else told.status,
        "at": told.at,
        "artifacts": told.made,
    }
