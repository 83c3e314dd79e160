"""repair: what is damaged goes out of the way and is made again; history is never changed.

Three things can be wrong with a store. A content that is not what its name says is moved to quarantine and
recorded as lost, and the step that made it is named: the next run makes it again, by itself unless that
would repeat an effect outside. An index that does not follow from the journals is made again from them. A
journal or a page of the database that cannot be read is history, which nobody can make again: with
--start-over the whole database is moved aside, and the next run begins anew.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple, cast

import click

from holdfast.cli.again import again, out_next
from holdfast.cli.ask import confirm
from holdfast.cli.measure import count
from holdfast.cli.pin import record_lost
from holdfast.cli.place import Place, file_option, json_option, place, place_options
from holdfast.cli.say import out, out_json, short, talk
from holdfast.core.refs import structure
from holdfast.engine.audit import audit, follows
from holdfast.engine.journals import read_state, runs_of
from holdfast.engine.needed import absent_in, files_of, lacking, lost_bases
from holdfast.engine.rebuilt import rebuilt_index
from holdfast.engine.whole import assure_runs
from holdfast.errors import LET_IN, HeldError, HoldfastError, IntegrityError, StoreError, UsageError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest, Json, digest_bytes
from holdfast.model.plan import Step, StepId, plan_bytes
from holdfast.ports import Store
from holdfast.store.host import gone
from holdfast.store.peek import ASIDE, was_used
from holdfast.wire.shared import is_shared

LOST = "lost or damaged: found by holdfast repair"
# In the order in which they are moved: once the database is gone, the others say so until the last one is.
_DATABASE = ("state.db-shm", "state.db", "state.db-wal", "state.end", "locks")


Made = tuple[str, str, StepId]  # project, line and step


@dataclass(frozen=True, slots=True)
class Mended:
    """What was done, and what is left to do."""

    moved: tuple[Digest, ...] = ()
    rebuilt: bool = False
    again: tuple[Artifact, ...] = ()  # whose content is gone; the newest of each step
    asked: frozenset[Made] = frozenset()  # those that no run makes again unasked
    keys: frozenset[Made] = frozenset()  # those of which only what they were made of is gone
    told: tuple[Digest, ...] = ()  # what is recorded as lost
    left: tuple[str, ...] = field(default=())  # what nothing here can mend
    stored: tuple[Digest, ...] = ()  # of the plan, which its file still says


class Ways(NamedTuple):
    """Commands that make again what is gone: those for the project here, and others with their projects."""

    project: str | None
    here: list[str]
    elsewhere: list[str]


@click.command(
    epilog="\b\nExample:\n  holdfast repair --dry-run\n  holdfast repair\n  holdfast repair --start-over"
)
@click.option("--dry-run", is_flag=True, help="Only say what is damaged.")
@click.option(
    "--start-over", is_flag=True, help="Move the whole database aside; its history is left with it."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@file_option
@place_options
@json_option
def repair(
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    dry_run: bool,
    start_over: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Move damaged contents to quarantine and make the index again; say what must be made anew.

    History is never changed: an event that cannot be read stays as it is, and 9 is the exit code.
    While an engine works on the store nothing is moved, and 7 is the exit code.
    """
    where = place(plan, store, plan_id)
    if start_over:
        return _start_over(where, dry=dry_run, yes=yes, as_json=as_json)
    try:
        opened = where.open(readonly=dry_run)
        try:
            _refuse_engines(opened, dry=dry_run)
            found = _mended(where, opened, dry=dry_run)
        finally:
            opened.close()
    except IntegrityError as error:
        found = Mended(left=(error.message,))
    known = ways(where, found)
    if as_json:
        out_json(_json(found, known.here))
    else:
        _say(found, known, dry=dry_run)
    return 9 if found.left else 0


def _mended(where: Place, store: Store, *, dry: bool) -> Mended:
    moved = tuple(digest for digest in list(store.blobs()) if _is_damaged(store, digest))
    present = set(store.blobs()).difference(moved)
    stored = _plan_again(where, store, present)
    for content in stored.values() if not dry else ():
        store.put(content)
    rebuilt = _rebuild(store, dry=dry)
    present |= stored.keys()
    lost = {*moved, *_missing(store, present)}
    gone_now = made_again(store, lost)
    newest, asked = gone_now.again, gone_now.asked
    waiting = {row.digest for row in newest if made_by(row) in asked}
    waiting |= {row.own_ref for row in newest if made_by(row) in gone_now.keys}
    told = tuple(sorted(_to_tell(store, present) - waiting))
    if told and not dry:
        record_lost(store, where, told, LOST)
    named = {*told, *waiting, *moved, *stored} if dry else waiting
    problems = audit(store, gone).problems
    left = [told for told in problems if not any(digest in told for digest in named)]
    if rebuilt and dry:
        left = [told for told in left if "holdfast rebuild" not in told]
    return replace(
        gone_now,
        moved=moved,
        rebuilt=rebuilt,
        told=told,
        left=tuple(left),
        stored=tuple(stored),
    )


def _plan_again(where: Place, store: Store, present: Collection[Digest]) -> dict[Digest, bytes]:
    """What is lost of the plan that journals are read with, if the plan file still says the very same."""
    try:
        plan = where.load().plan
        contents = {digest_bytes(one): one for one in (plan_bytes(plan), structure(plan))}
        lost = {digest: one for digest, one in contents.items() if digest not in present}
        named = _read_with(store, "plan", "w_ref") if lost else ()
    except HoldfastError:
        return {}
    return {digest: one for digest, one in lost.items() if digest in named}


def _read_with(store: Store, *names: str) -> set[object]:
    """What the events of all journals have in these fields."""
    return {
        getattr(recorded.event, name, None)
        for journal in store.journals()
        for recorded in store.read(journal)
        for name in names
    }


def _to_tell(store: Store, present: Collection[Digest]) -> set[Digest]:
    """Contents that events name and that are gone untold.

    Not those that journals are read with, and no key of what stands: that comes again with the step.
    """
    try:
        gone_now = chain(lacking(store, present), lost_bases(store, present))
        known, lost = absent_in(store), {digest for digest, _ in gone_now}
        keys = _read_with(store, "plan", "w_ref")
    except HoldfastError:  # a journal that cannot be read is left as it is
        return set()
    newest = _newest(store)
    counted = {row.digest for row in newest if row.reusable}
    keys.update(row.own_ref for row in newest)
    return {digest for digest in lost if digest not in keys and digest not in known - counted}


def made_by(row: Artifact) -> Made:
    """The step of a line that an artifact is of."""
    return row.project, row.line, row.step


def _unasked(store: Store, rows: Iterable[Artifact]) -> frozenset[Made]:
    """Those that no run makes again by itself: their effect would be repeated, or files be changed twice."""
    found: set[Made] = set()
    plans: dict[tuple[str, str], Mapping[StepId, Step]] = {}
    for row in rows:
        line = row.project, row.line
        if line not in plans:
            with suppress(HoldfastError):
                state = read_state(store, runs_of(store, *line)[-1].run)
                plans[line] = state.plan.steps if state is not None else {}
        step = plans.get(line, {}).get(row.step)
        if step is not None and (step.done_once or step.changes_copy):
            found.add(made_by(row))
    return frozenset(found)


def _is_damaged(store: Store, digest: Digest) -> bool:
    """Read it whole. A store that may be written moves what is damaged out of the way."""
    try:
        for _ in store.chunks(digest):
            pass
    except IntegrityError:
        return True
    return False


def _missing(store: Store, present: Collection[Digest]) -> Iterator[Digest]:
    """Contents and keys of artifacts that are not there, whoever took them away."""
    for row in _newest(store):
        if row.own_ref not in present:
            yield row.own_ref
        if row.digest not in present:
            yield row.digest
        elif row.form == "tree":
            with suppress(HoldfastError):
                yield from (one for one in files_of(store, row.digest) if one not in present)


def _newest(store: Store) -> list[Artifact]:
    """What each step of each line stands on."""
    lines = dict.fromkeys((row.project, row.line) for row in store.runs())
    return [row for project, line in lines for row in store.newest_of_all(project, line).values()]


def _stands_on(store: Store, row: Artifact, absent: set[Digest]) -> bool:
    if row.digest in absent or row.form != "tree":
        return row.digest in absent
    return any(one in absent for one in files_of(store, row.digest))


def _rebuild(store: Store, *, dry: bool) -> bool:
    """Whether the index was another one than the journals give; it is made again unless only asked."""
    before = [replace(row, number=0) for row in store.artifacts()]
    try:
        assure_runs(store)
        rows = rebuilt_index(store)
    except HoldfastError:  # a run that cannot be read: the index is all that is left of it
        return False
    if follows(store, before, rows):
        return False
    if not dry:
        store.replace_artifacts(lambda: rebuilt_index(store))
    return True


def made_again(store: Store, lost: set[Digest]) -> Mended:
    """What each step stands on that is among these contents, and how it is made again.

    What a step was made of is stored again with it, and no run asks for that by itself.
    """
    newest = _newest(store)
    gone_now = [row for row in newest if _stands_on(store, row, lost)]
    content = set(map(made_by, gone_now))
    keyless = [row for row in newest if row.own_ref in lost and made_by(row) not in content]
    keys = frozenset(map(made_by, keyless))
    asked = _unasked(store, gone_now) | keys
    return Mended(again=(*gone_now, *keyless), asked=asked, keys=keys)


def ways(where: Place, found: Mended) -> Ways:
    """What makes again what is gone, line by line."""
    own = _project(where, found) if found.again else None
    if found.left:
        return Ways(own, ["holdfast repair --start-over"], [])
    lines: dict[tuple[str, str], str] = {}
    for row in found.again:
        asked = f" --force-node {shlex.quote(row.step)}" if made_by(row) in found.asked else ""
        key = row.project, row.line
        lines[key] = lines.get(key, "") + asked
    found_ways = Ways(own, [], [])
    here = where.line() if lines else None
    for (project, line), steps in lines.items():
        name = f" --plan-id {shlex.quote(line)}"
        if project == own:
            file = "" if line == here else f" -f FILE{name}"
            found_ways.here.append(f"holdfast run{steps}{file}")
        else:
            found_ways.elsewhere.append(f"in {_named(project)}: holdfast run{steps}{name}")
    return found_ways


def _named(project: str) -> str:
    return f"project '{project}'" if project else "the project without a name"


def _project(where: Place, found: Mended) -> str | None:
    """The project of the plan here; if none can be read, the only one that lost something."""
    with suppress(HoldfastError):
        return where.load().plan.project
    projects = {row.project for row in found.again}
    return projects.pop() if len(projects) == 1 else None


def _json(found: Mended, words: list[str]) -> dict[str, Json]:
    again_json: list[Json] = [
        {
            "step": row.step,
            "project": row.project,
            "line": row.line,
            "run": row.run,
            "digest": row.digest,
        }
        for row in found.again
    ]
    return {
        "schema": "holdfast.repair/1",
        "ok": not found.left and not found.again,
        "moved": cast("list[Json]", list(found.moved)),
        "rebuilt": found.rebuilt,
        "again": again_json,
        "stored": cast("list[Json]", list(found.stored)),
        "recorded": cast("list[Json]", list(found.told)),
        "left": cast("list[Json]", list(found.left)),
        "next": [again(command) for command in words],
    }


def _say(found: Mended, known: Ways, *, dry: bool) -> None:
    would = "would be " if dry else ""
    if found.moved:
        out(f"{count(len(found.moved), 'damaged content')}: {would}moved to quarantine")
    if found.stored:
        out(f"the plan of runs was lost: {would}stored again as its file says it")
    if found.told:
        out(f"{count(len(found.told), 'content')} gone: {would}recorded as lost")
    if found.rebuilt:
        out(f"the index did not follow from the journals: {would}made again")
    for row in found.again:
        asked = made_by(row) in found.asked
        how = "only if you ask for it: that may repeat what it did" if asked else "by the next run"
        what = f"what '{row.step}' made in {short(row.run) or 'a person'} is gone; it is made again"
        if made_by(row) in found.keys:
            what = f"what '{row.step}' was made of is gone; it is stored again"
        whose = "" if row.project == known.project else f"{_named(row.project)}: "
        out(f"{whose}{what} {how}")
    for told in known.elsewhere:
        out(told)
    for told in found.left:
        talk(told)
    if found.left:
        talk("this is history: it stays as it is. take it from a back-up ('holdfast import'), or")
    elif not (found.moved or found.rebuilt or found.again or found.told or found.stored):
        out("nothing is damaged")
    if known.here:
        out_next("    ".join(known.here))


def _start_over(where: Place, *, dry: bool, yes: bool, as_json: bool) -> int:
    """Move the database aside, whatever is in it; contents stay, and are found again by their digests."""
    if is_shared(where.location):
        raise UsageError(
            "a store that others share is not moved aside", hint="restore the server's own back-up"
        )
    if not _files(where.location) and not was_used(where.location):
        raise UsageError(f"there is no store at '{where.location}'", hint="holdfast run")
    with suppress(IntegrityError):  # what cannot be read says nothing of who writes it
        opened = where.open(readonly=True)
        try:
            _refuse_engines(opened)
        finally:
            opened.close()
    if not dry:
        confirm(
            "all history of this store is left behind, and every step runs again. go on?", yes=yes
        )
    files = _files(where.location)  # to look may have moved the log into the database
    target = _free(os.path.join(where.location, ASIDE))
    if not dry:
        _move(where.location, files, target)
    if as_json:
        moved: list[Json] = [*files]
        out_json({"schema": "holdfast.repair/1", "ok": True, "moved": moved, "to": target})
    else:
        out(f"the database {'would be ' if dry else ''}moved to {target}")
        out_next("holdfast run")
    return 0


def _move(location: str, files: Iterable[str], target: str) -> None:
    try:
        os.makedirs(target, mode=0o700)
        for name in files:
            os.replace(os.path.join(location, name), os.path.join(target, name))
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        hint = LET_IN if isinstance(error, PermissionError) else "mend that, then say it again"
        raise StoreError(f"'{location}' cannot be moved aside: {said}", hint=hint) from error


def _files(location: str) -> list[str]:
    """What there is of a database and of what tells that there was one."""
    return [name for name in _DATABASE if os.path.lexists(os.path.join(location, name))]


def _refuse_engines(store: Store, *, dry: bool = False) -> None:
    """Nobody may write meanwhile; whoever only asks is told."""
    live = [(line, holder) for _, line, holder in store.held() if not gone(holder)]
    if not live:
        return
    line, holder = live[0]
    told = f"an engine works on '{line}' (process {holder.owner.pid} on {holder.owner.host})"
    if not dry:
        raise HeldError(f"{told}; nothing was changed", hint="holdfast stop, then holdfast repair")
    talk(f"{told}: nothing can be repaired before it ends")


def _free(folder: str) -> str:
    """A name below a folder that nobody has."""
    number = 1
    while os.path.lexists(os.path.join(folder, str(number))):
        number += 1
    return os.path.join(folder, str(number))
