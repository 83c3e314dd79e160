"""Write an edit that was worked out: judged by its scope, compared with what is there, kept for rollback.

    survey      every path judged as text, then looked at through directory handles: what would change
    write       the same, then all files or none, then kept under an id
    roll_back   exactly what was there before, all files or none
    recover     what a crash cut short; each of the others does it first

Of a workspace only one process writes at a time: the lock of its state directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from holdfast.edits.apply import Recovered, apply, forget, recover
from holdfast.edits.beneath import Seen, read_beneath
from holdfast.edits.change import FileChange, check_disjoint, cleared_by, in_the_way
from holdfast.edits.diff import Stat, difference
from holdfast.edits.journal import Journal, place_of, read_journal
from holdfast.edits.keeping import (
    Kept,
    is_unfinished,
    keep,
    kept,
    next_key,
    recover_all,
    take_back,
)
from holdfast.edits.lock import exclusive
from holdfast.edits.outcome import Level, Outcome, Planned, Refusal, helped
from holdfast.edits.scope import check_size, judge, outside
from holdfast.edits.tree import has_unseen, quoted
from holdfast.edits.workspace import Workspace, check_state, keep_key, keep_state
from holdfast.errors import BugError, EditError, UsageError
from holdfast.model.digest import digest_bytes
from holdfast.model.glob import parents

_PLAIN = 0o777
_PLAINLY = "write it with letters that can be seen"


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One file of an edit: digests, modes and lines before and after; None where there is no file.

    A file that is moved is two of them, linked by `moved_from` and `moved_to`. The lines that change on the
    way are counted and shown where it goes, compared with where it was; where it was, nothing is. `contents`
    are the bytes that are compared.
    """

    path: str
    before: str | None
    after: str | None
    modes: tuple[int, int]
    levels: tuple[Level, ...]
    stat: Stat
    diff: str
    contents: tuple[bytes | None, bytes | None] = field(repr=False)
    moved_from: str | None = None
    moved_to: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What an edit does, or why it is refused. It has an `id` when it was made."""

    files: tuple[FileEdit, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()
    warnings: tuple[str, ...] = ()
    id: str = ""


def survey(
    workspace: Workspace, outcome: Outcome, known: Mapping[str, bytes] | None = None
) -> Report:
    """What an edit would do; nothing is written. `known` is what its author saw, for the diff if it moved."""
    report, _ = _survey(workspace, outcome, known or {})
    return report


def write(
    workspace: Workspace,
    outcome: Outcome,
    digest: str = "",
    known: Mapping[str, bytes] | None = None,
) -> Report:
    """Make an edit, all files or none. With refusals nothing was written. `digest` becomes part of its id."""
    with _held(workspace):
        report, changes = _survey(workspace, outcome, known or {})
        if report.refusals or not changes:
            return report
        contents: dict[str, bytes] = {
            digest_bytes(one.after): one.after for one in outcome.files if one.after is not None
        }
        key = next_key(workspace.journals, digest or digest_bytes(repr(changes).encode()))
        try:
            apply(
                workspace.root,
                changes,
                contents.__getitem__,
                journal_dir=workspace.journals,
                key=key,
            )
        except EditError as error:
            again, _ = _survey(workspace, outcome, known or {})
            found = again.refusals or (helped(_moved(error)),)
            return replace(report, refusals=found)
        _check_written(workspace, key)
        keep(workspace.journals, key)
        return replace(report, id=key)


def roll_back(workspace: Workspace, key: str) -> tuple[str, Journal]:
    """Take a kept edit back, `last` or by its id or a beginning of it; its id, and what it had changed.

    EditError names files that somebody changed since; UsageError says that there is no such edit.
    """
    if not os.path.lexists(workspace.journals):
        _find(workspace, key)  # which refuses, and makes nothing
    with _held(workspace):
        found = _find(workspace, key)
        return found, take_back(workspace.root, workspace.journals, found)


def forget_edits(
    workspace: Workspace, keys: Sequence[str] = (), keep_latest: int | None = None
) -> tuple[str, ...]:
    """Remove edits from what is kept, named ones or old ones; they cannot be taken back any more."""
    if not os.path.lexists(workspace.journals):
        return tuple(_matching([], key) for key in keys)  # which refuses, and makes nothing
    with _held(workspace):
        known = [edit.key for edit in kept(workspace.journals)]
        gone = [_matching(known, key) for key in keys]
        gone += known[keep_latest:] if keep_latest is not None else []
        for key in gone:
            forget(workspace.journals, key)
    return tuple(gone)


def history(workspace: Workspace) -> tuple[Kept, ...]:
    """The edits on record, the latest first."""
    return tuple(kept(workspace.journals))


def recover_workspace(workspace: Workspace) -> list[Recovered]:
    """Bring what a crash cut short to its end; does nothing, and makes nothing, if there is nothing."""
    check_state(workspace)
    if not is_unfinished(workspace.journals):
        return []
    with exclusive(workspace.state_dir):
        return recover_all(workspace.root, workspace.journals)


def read_file(workspace: Workspace, path: str) -> Seen | None:
    """A file of the workspace, reached without following a link; None if there is none."""
    return read_beneath(workspace.root, path)


# Looking.


def _survey(
    workspace: Workspace, outcome: Outcome, known: Mapping[str, bytes]
) -> tuple[Report, list[FileChange]]:
    refusals = list(outcome.refusals)
    files: list[FileEdit] = []
    changes: list[FileChange] = []
    way = _Way.of(outcome.files)
    targets = {one.moved_from: one.path for one in outcome.files if one.moved_from is not None}
    for planned in outcome.files:
        found = _examine(workspace, planned, way, known)
        if isinstance(found, Refusal):
            refusals.append(found)
        elif (found.before, found.modes[0]) != (found.after, found.modes[1]):
            files.append(_left(found, targets.get(found.path)))
            changes.append(FileChange(found.path, found.before, found.after, found.modes[1]))
    try:
        check_disjoint(workspace.root, changes)
    except EditError as error:
        refusals.append(Refusal("", "overlapping", error.message))
    lines = sum(file.stat.added + file.stat.removed for file in files)
    refusals += check_size(workspace.scope, count_files(files), lines)
    told = tuple(helped(refusal) for refusal in refusals)
    report = Report(tuple(files), told, outcome.skipped, outcome.warnings)
    return report, changes


def count_files(files: Iterable[FileEdit]) -> int:
    """How many files an edit changes; one that is moved is one."""
    return sum(file.moved_to is None for file in files)


def _left(file: FileEdit, target: str | None) -> FileEdit:
    """Where a file was that is moved, no line is lost."""
    if target is None or file.after is not None:
        return file
    return replace(file, stat=Stat(0, 0), diff="", moved_to=target)


def _examine(
    workspace: Workspace, planned: Planned, way: _Way, known: Mapping[str, bytes]
) -> FileEdit | Refusal:
    refusal = judge(workspace.scope, planned.path)
    if refusal is not None:
        return refusal
    try:
        seen = _look(workspace, planned.path, way)
    except EditError as error:
        return Refusal(planned.path, "special", error.message, guidance=error.hint or "")
    if seen is None and planned.after is not None and has_unseen(planned.path):
        message = f"{quoted(planned.path)} has letters that nobody sees"
        return Refusal(planned.path, "protected", message, guidance=_PLAINLY)
    return _unfit(planned, seen, known) or _file_edit(planned, seen, _source(workspace, planned))


class _Way(NamedTuple):
    """Files that the edit removes so that others can stand, and directories that go with them."""

    files: frozenset[str]
    directories: frozenset[str]

    @classmethod
    def of(cls, planned: Iterable[Planned]) -> _Way:
        wanted = [(one.path, one.after is not None) for one in planned]
        way = in_the_way(wanted)
        written = {path for path, stays in wanted if stays}
        return cls(frozenset(way), frozenset(cleared_by(way, written)))


def _look(workspace: Workspace, path: str, way: _Way) -> Seen | None:
    """What lies at a path, or would if the edit had made way for it."""
    try:
        return read_beneath(workspace.root, path)
    except EditError:
        if path in way.directories or not way.files.isdisjoint(parents(path)):
            return None
        raise


def _unfit(planned: Planned, seen: Seen | None, known: Mapping[str, bytes]) -> Refusal | None:
    """Why what lies at a path cannot be replaced."""
    path = planned.path
    if linked := hard_linked(path, seen):
        return linked
    for mode in (seen.mode if seen else 0, planned.mode or 0):
        if mode & ~_PLAIN:
            message = f"{quoted(path)} would run as somebody else (mode {mode:o})"
            return Refusal(path, "special", message)
    if planned.before == (seen.digest if seen else None):
        return None
    if seen is None:
        return Refusal(path, "missing", f"{quoted(path)} is not there any more")
    if planned.before is None:
        return Refusal(path, "exists", f"{quoted(path)} is there already")
    return stale(path, known.get(path), seen)


def hard_linked(path: str, seen: Seen | None) -> Refusal | None:
    """Why a file with several names is not edited: some may lie anywhere."""
    if seen is None or seen.links == 1:
        return None
    message = f"{quoted(path)} has {seen.links} hard links, and must have one"
    return Refusal(path, "special", message, guidance="its other names would not change with it")


def stale(path: str, known: bytes | None, seen: Seen | None) -> Refusal:
    """The refusal of an edit whose author saw another file, with what changed since, if that is known."""
    guidance = f"read it again: it is {seen.digest} now" if seen else "it is not there any more"
    if known is not None:
        guidance += "\n" + difference(path, known, seen.content if seen else None).text
    message = f"{quoted(path)} was changed since its author saw it"
    return Refusal(path, "stale", message, guidance=guidance)


def _source(workspace: Workspace, planned: Planned) -> Seen | None:
    """The file that is moved to a path."""
    if planned.moved_from is not None and judge(workspace.scope, planned.moved_from) is None:
        with suppress(EditError):
            return read_beneath(workspace.root, planned.moved_from)
    return None


def _file_edit(planned: Planned, seen: Seen | None, source: Seen | None) -> FileEdit:
    """A file that was not there has the mode of the one it was, or what files have."""
    usual = source.mode & _PLAIN if source else 0o644
    mode = seen.mode if seen else usual
    modes = (mode, mode if planned.mode is None else planned.mode)
    came_from = planned.moved_from if source else None
    compared = source or seen
    old = compared.content if compared else None
    found = difference(planned.path, old, planned.after, modes, came_from)
    return FileEdit(
        planned.path,
        seen.digest if seen else None,
        None if planned.after is None else digest_bytes(planned.after),
        modes,
        planned.levels,
        found.stat,
        found.text,
        (old, planned.after),
        came_from,
    )


def _moved(error: EditError) -> Refusal:
    return Refusal("", "stale", error.message, guidance=error.hint or "")


# Writing.


@contextmanager
def _held(workspace: Workspace) -> Iterator[None]:
    """Alone in the workspace, with nothing left from a crash."""
    keep_key(workspace)
    check_state(workspace)
    with exclusive(workspace.state_dir):
        keep_state(workspace)
        recover_all(workspace.root, workspace.journals)
        yield


def _check_written(workspace: Workspace, key: str) -> None:
    """Ask once more of what the journal says was written whether it lies in the scope."""
    journal = read_journal(place_of(workspace.journals, key))
    beyond = outside(workspace.scope, (row.path for row in journal.rows))
    if beyond:
        recover(workspace.root, workspace.journals, committed=lambda _: False)
        raise BugError(f"an edit was written outside its scope, and undone: {beyond[0].message}")


def _find(workspace: Workspace, given: str) -> str:
    states = {edit.key: edit.state for edit in kept(workspace.journals)}
    if given == "last":
        latest = (key for key, state in states.items() if state in {"applied", "damaged"})
        given = next(latest, "")
        if not given:
            raise UsageError("there is no edit to roll back", hint="holdfast edit list")
    key = _matching(list(states), given)
    if states[key] == "damaged":
        raise UsageError(f"the edit '{key}' is damaged", hint=f"holdfast edit forget {key}")
    if states[key] != "applied":
        raise UsageError(f"the edit '{key}' is {states[key]}", hint="holdfast edit list")
    return key


def _matching(known: Sequence[str], given: str) -> str:
    """An edit by its id, or by a beginning of it that no other has."""
    found = [given] if given in known else [key for key in known if given and key.startswith(given)]
    if len(found) != 1:
        what = f"{len(found)} edits begin with" if found else "there is no edit"
        raise UsageError(f"{what} '{given}'", hint="holdfast edit list")
    return found[0]
