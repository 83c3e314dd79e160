"""An edit from its text to the files: read, judged, worked out, looked at or made, kept.

The paths are judged before anything is read, so that no guidance shows what the edit may not touch. What
the author saw is compared with what is there: if it moved on, lines are placed where they stand now, or
merged if the old content is known; a whole file that would undo what others did is refused, with the
difference.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from holdfast.edits.beneath import Seen, read_beneath
from holdfast.edits.effort import TooMuchError
from holdfast.edits.formats import read_edit
from holdfast.edits.keeping import image_of
from holdfast.edits.outcome import Outcome, Refusal, Why
from holdfast.edits.places import work_out
from holdfast.edits.refused import (
    Refused,
    edit_digest,
    forget_refusal,
    recall,
    remember,
    repeated,
)
from holdfast.edits.scope import check_size, judge, outside
from holdfast.edits.wanted import Wanted
from holdfast.edits.workspace import Workspace
from holdfast.edits.write import (
    Report,
    hard_linked,
    recover_workspace,
    stale,
    survey,
    write,
)
from holdfast.errors import EditError
from holdfast.model.digest import digest_bytes
from holdfast.model.glob import parents

_FEW = 5
_MOST_BYTES = 256 << 20  # of all files of an edit
Syntax = Literal["warn", "refuse", "off"]
CODE = frozenset(
    {
        ".py",
        ".pyi",
        ".js",
        ".mjs",
        ".cjs",
        ".jsx",
        ".ts",
        ".mts",
        ".cts",
        ".tsx",
        ".go",
        ".rs",
        ".java",
    }
)


@dataclass(frozen=True, slots=True)
class Saw:
    """What the author of an edit saw: digests by path (None: no file), and contents as far as known.

    An edit that does not touch one of the `needed` paths is refused: whoever named it meant another file.
    """

    digests: Mapping[str, str | None] = field(default_factory=dict)
    contents: Mapping[str, bytes] = field(default_factory=dict)
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit as its author wrote it; without `form` the format is recognised."""

    text: str
    form: str | None = None
    saw: Saw = Saw()
    syntax: Syntax = "warn"
    if_unchanged: bool = False  # refuse it if a file is no longer what the author saw


def preview_edit(workspace: Workspace, edit: Edit) -> Report:
    """What an edit would do; nothing is written."""
    recover_workspace(workspace)
    reading = _Reading(workspace, {})
    outcome = _worked_out(workspace, edit, reading)
    return survey(workspace, outcome, reading.known)


def apply_edit(workspace: Workspace, edit: Edit) -> Report:
    """Make an edit, all files or none; an edit that was refused before is not tried again in vain."""
    recover_workspace(workspace)
    digest = edit_digest(edit, workspace.scope)
    reading = _Reading(workspace, {})
    earlier = recall(workspace.state_dir, digest, reading.look)
    if earlier is not None:
        remember(workspace.state_dir, digest, replace(earlier, times=earlier.times + 1))
        return Report(refusals=repeated(earlier))
    reading = _Reading(workspace, {})
    outcome = _worked_out(workspace, edit, reading)
    report = write(workspace, outcome, digest, reading.known)
    if report.refusals:
        seen = {path: reading.look(path) for path in reading.files}
        remember(workspace.state_dir, digest, Refused(1, report.refusals, seen))
    elif report.id:
        forget_refusal(workspace.state_dir, digest)
    return report


@dataclass(slots=True)
class _Reading:
    """The files that were looked at, each read once."""

    workspace: Workspace
    files: dict[str, Seen | str | None]  # a text says why it cannot be read
    size: int = 0

    def find(self, path: str) -> Seen | None:
        if path not in self.files:
            try:
                seen = read_beneath(self.workspace.root, path)
                self.size += len(seen.content) if seen else 0
                self.files[path] = seen
            except EditError as error:
                self.files[path] = str(error)
            if self.size > _MOST_BYTES:
                raise TooMuchError(f"the files of the edit have more than {_MOST_BYTES} bytes")
        found = self.files[path]
        if isinstance(found, str):
            raise EditError(found)
        return found

    def content(self, path: str) -> bytes | None:
        found = self.find(path)
        return found.content if found else None

    def is_there(self, path: str) -> bool:
        """Whether something lies at a path that an edit may name; what it is, is judged later."""
        try:
            return judge(self.workspace.scope, path) is None and self.find(path) is not None
        except EditError:
            return True

    def look(self, path: str) -> str | None:
        """What would have to change for another answer about a path."""
        try:
            found = self.find(path)
        except EditError as error:
            return error.message
        return f"{found.digest} {found.mode:o} {found.links}" if found else None

    @property
    def known(self) -> dict[str, bytes]:
        return {path: one.content for path, one in self.files.items() if isinstance(one, Seen)}


def _worked_out(workspace: Workspace, edit: Edit, reading: _Reading) -> Outcome:
    if not edit.text.strip():
        return _refused([Refusal("", "malformed", "the edit is empty")])
    why: Why = "malformed"
    try:
        wanted = read_edit(edit.text, edit.form, reading.is_there)
        why = "special"
        return _compared_with(workspace, edit, wanted, reading)
    except EditError as error:
        why = "too_large" if isinstance(error, TooMuchError) else why
        return _refused([Refusal("", why, error.message, guidance=error.hint or "")])


def _compared_with(
    workspace: Workspace, edit: Edit, wanted: Sequence[Wanted], reading: _Reading
) -> Outcome:
    """What an edit comes to with the files that are there; all of them are read."""
    if too_many := check_size(workspace.scope, len(wanted), 0):
        return _refused(too_many)
    paths = list(dict.fromkeys(path for one in wanted for path in (one.path, one.to) if path))
    refusals = outside(workspace.scope, paths) or tuple(_special(reading, paths))
    refusals = refusals or tuple(_unneeded(edit.saw, wanted, reading))
    if refusals:
        return _refused(refusals)
    compared = [_compared(workspace, edit.saw, one, reading) for one in wanted]
    moved = {one.wanted.path: one for one in compared if one.moved}
    if edit.if_unchanged and moved:
        return _refused(stale(path, one.content, one.found) for path, one in moved.items())
    bases = {one.wanted.path: one.content for one in compared if one.content is not None}
    outcome = work_out([one.wanted for one in compared], reading.content, bases)
    return _with_syntax(_with_what_changed(outcome, moved), edit.syntax, reading)


def _special(reading: _Reading, paths: Collection[str]) -> list[Refusal]:
    """Paths at which something lies that is no plain file.

    Whether a file and a directory can change places is found out when all files are known.
    """
    found = []
    known = frozenset(paths)
    above = {outer for path in paths for outer in parents(path)}
    for path in paths:
        try:
            if linked := hard_linked(path, reading.find(path)):
                found.append(linked)
        except TooMuchError:
            raise
        except EditError as error:
            if path in above or not known.isdisjoint(parents(path)):
                reading.files[path] = None
            else:
                found.append(Refusal(path, "special", error.message, guidance=error.hint or ""))
    return found


def _unneeded(saw: Saw, wanted: Iterable[Wanted], reading: _Reading) -> Iterator[Refusal]:
    """Paths of which it was said what the author saw, and that guard nothing."""
    touched = [one.path for one in wanted]
    for path in saw.needed:
        if path not in touched:
            message = f"'{path}' is what the author saw, and the edit does not touch it"
            yield Refusal(path, "malformed", message, guidance=f"it touches: {_listed(touched)}")
        elif reading.find(path) is None:
            guidance = "leave its base out if the edit makes the file"
            yield Refusal(path, "missing", "there is no such file any more", guidance=guidance)


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _FEW} more" if len(paths) > _FEW else ""
    return ", ".join(paths[:_FEW]) + more


def _refused(refusals: Iterable[Refusal]) -> Outcome:
    return Outcome(refusals=tuple(refusals))


class _Compared(NamedTuple):
    """One file of an edit: what its author saw, as far as it is known, and whether that moved on."""

    wanted: Wanted
    content: bytes | None
    found: Seen | None
    moved: bool


def _compared(workspace: Workspace, saw: Saw, wanted: Wanted, reading: _Reading) -> _Compared:
    found = reading.find(wanted.path)
    content = saw.contents.get(wanted.path)
    digest = saw.digests.get(wanted.path, wanted.base)
    if content is not None:
        digest = digest_bytes(content)
    elif digest is not None and digest != (found.digest if found else None):
        content = image_of(workspace.journals, digest)
    elif digest is None and wanted.path in saw.digests:
        content = b""  # there was no file, which is as good as an empty one
    known = digest is not None or wanted.path in saw.digests
    moved = known and digest != (found.digest if found else None)
    return _Compared(replace(wanted, base=digest), content, found, moved)


def _with_what_changed(outcome: Outcome, moved: Mapping[str, _Compared]) -> Outcome:
    """Whoever is refused over a file that moved on is told how; whoever is not, that it did."""
    refusals = []
    for refusal in outcome.refusals:
        if one := moved.get(refusal.path):
            told = stale(refusal.path, one.content, one.found)
            guidance = "\n".join(
                text for text in (refusal.guidance, told.message, told.guidance) if text
            )
            refusals.append(replace(refusal, guidance=guidance))
        else:
            refusals.append(refusal)
    placed = () if refusals else moved
    warnings = tuple(f"'{path}' was changed since its author saw it" for path in placed)
    return replace(outcome, refusals=tuple(refusals), warnings=(*outcome.warnings, *warnings))


def _with_syntax(outcome: Outcome, how: Syntax, reading: _Reading) -> Outcome:
    """Say which files would have more syntax errors; with `refuse` that is a refusal.

    The parsers are an extra and take long to load: only an edit of code asks for them.
    """
    is_code = any(os.path.splitext(one.path)[1].lower() in CODE for one in outcome.files)
    if how == "off" or outcome.refusals or not is_code:
        return outcome
    try:
        gate = importlib.import_module("holdfast.edits.syntax")
    except ImportError:
        note = "the syntax was not checked: the parsers are not installed (holdfast[code])"
        return replace(outcome, warnings=(*outcome.warnings, note))
    found = gate.checked(outcome, reading.content, refuse=how == "refuse")
    assert isinstance(found, Outcome)
    return found
