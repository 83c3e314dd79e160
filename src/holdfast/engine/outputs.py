"""The files that steps put into the project directory: read, placed, put back, and checked for drift.

Whatever lies at an output path is stored before anything is written over it. Writing goes through the
journaled apply, so a set of files changes as a whole, also across a crash.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Literal, NamedTuple

from holdfast.edits.apply import Claims, apply, forget, recover
from holdfast.edits.change import FileChange
from holdfast.edits.journal import images_in, is_settled, keep_home, keys_in, place_of
from holdfast.edits.tree import clear, read_tree, sync_files, take_special
from holdfast.engine.family import forked_with
from holdfast.errors import EditError, IntegrityError
from holdfast.model.artifact import Artifact, Entry, Form, tree_bytes, tree_entries
from holdfast.model.digest import Digest, digest_bytes, digest_texts
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    Event,
    OutputsPlaced,
)
from holdfast.model.glob import parents
from holdfast.model.items import base_of
from holdfast.model.plan import STEP_ID, RunId, Step, StepId
from holdfast.model.secret import holds
from holdfast.ports import File, Store
from holdfast.process.inside import open_inside

SMALL = 16 * 1024


class Kept(NamedTuple):
    """A manifest of files as they were, with the small contents still to be stored."""

    digest: Digest
    blobs: tuple[tuple[Digest, bytes], ...]
    entries: tuple[Entry, ...]


class Drift(NamedTuple):
    """How the files on disk stand to what is wanted: as they should, to be written, or a person's."""

    state: Literal["equal", "stale", "edited"]
    paths: tuple[str, ...] = ()


class _Places(NamedTuple):
    """Which steps write exactly at a path, and which beneath it; and the order of the plan."""

    at: dict[str, list[StepId]]
    beneath: dict[str, list[StepId]]
    rank: dict[StepId, int]


class Outputs:
    """Reads and writes output paths beneath one project directory. `steps` are those of the plan.

    A file that holds a secret of `hidden` is never stored, so it is never written over either.
    """

    def __init__(
        self,
        root: str,
        journal: str,
        store: Store,
        steps: Mapping[StepId, Step] = MappingProxyType({}),
        hidden: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._hidden = hidden
        self._steps = steps
        self._root = root
        self._journal = journal
        self._store = store
        self._has_home = False
        self._claims = Claims(journal)
        self._places: _Places | None = None
        self._family: tuple[str, ...] | None = None

    def grow(self, steps: Mapping[StepId, Step]) -> None:
        """The plan has further steps."""
        self._steps, self._places = steps, None

    def read(self, step: Step) -> tuple[Entry, ...]:
        """What lies at the step's output paths now."""
        return self.read_paths(step.produces)

    def read_paths(self, paths: Sequence[str]) -> tuple[Entry, ...]:
        """What lies at or beneath these paths now."""
        return tuple(
            Entry(item.path, Digest(item.digest), bool(item.mode & 0o100), item.size)
            for item in read_tree(self._root, paths)
        )

    def keep(self, step: Step) -> Kept:
        """Store what lies at the step's output paths: large files now, small ones with the next batch."""
        return self.keep_paths(step.produces)

    def keep_paths(self, paths: Sequence[str], more: Sequence[Entry] = ()) -> Kept:
        """Store what lies at or beneath these paths; `more` is in the store and named with it."""
        entries = self.read_paths(paths)
        blobs: list[tuple[Digest, bytes]] = []
        for entry in entries:
            if self._store.has(entry.digest):
                continue
            self._check(entry.path)
            if entry.size > SMALL:
                found = self._store.put(self._chunks(entry.path))
            else:
                content = b"".join(self._chunks(entry.path))
                found = digest_bytes(content)
                blobs.append((found, content))
            if found != entry.digest:
                raise EditError(f"'{entry.path}' changes while it is being read")
        entries = tuple(sorted((*entries, *more), key=lambda entry: entry.path))
        manifest = tree_bytes(entries)
        digest = digest_bytes(manifest)
        return Kept(digest, (*blobs, (digest, manifest)), entries)

    def save(self, paths: Sequence[str]) -> None:
        """Have what lies there in the store before it is replaced, at once."""
        kept = self.keep_paths(paths)
        for digest, content in kept.blobs:
            if digest != kept.digest:  # nobody asks for the list of them
                self._store.put(content)

    def check(self, path: str) -> None:
        """EditError if what lies at or beneath a path cannot be stored."""
        for entry in self.read_paths([path]):
            self._check(entry.path)

    def _check(self, path: str) -> None:
        secrets = self._hidden()
        if secrets and holds(self._chunks(path), secrets):
            raise EditError(
                f"'{path}' holds the value of a secret or of a key, which is never stored;"
                " remove it from there"
            )

    def keep_places(self, paths: Sequence[str]) -> Kept:
        """Store what lies at or beneath these paths, or is a file where a directory of theirs would be."""
        return self.keep_paths(sorted({self._place(path) for path in paths}))

    def _place(self, path: str) -> str:
        above = (
            outer for outer in parents(path) if os.path.isfile(os.path.join(self._root, outer))
        )
        return next(above, path)

    def _chunks(self, path: str) -> Iterator[bytes]:
        with open_inside(self._root, path) as file:
            while piece := file.read(1 << 20):
                yield piece

    def wanted(self, step: Step, digest: Digest, form: Form) -> tuple[Entry, ...]:
        """The files that an artifact of this step means."""
        if form == "tree":
            entries = tree_entries(self._store.get(digest))
            if not step.changes_copy:
                return entries
            return tuple(e for e in entries if any(_is_at(e.path, p) for p in step.produces))
        return (Entry(step.produces[0], digest, form == "program"),)

    def meant(self, step: Step, artifact: Artifact) -> tuple[Entry, ...]:
        """The same, as far as it can be told: none if the list of them was removed or is lost."""
        try:
            return self.wanted(step, artifact.digest, artifact.form)
        except IntegrityError:
            return ()

    def is_lost(self, step: Step, artifact: Artifact) -> bool:
        """Whether nobody can tell which files an artifact meant."""
        try:
            self.wanted(step, artifact.digest, artifact.form)
        except IntegrityError:
            return True
        return False

    def known(self, project: str, line: str, step: Step) -> Iterator[Artifact]:
        """Everything that was ever made at the step's output paths, refused and interrupted too.

        Steps in a row may write the same path; what one of them made is a person's for none.
        """
        for name in self._relatives(project, line):
            yield from self._store.artifacts(project=project, line=name, step=step.id)
            for other in self._neighbours(step):
                yield from self._store.artifacts(project=project, line=name, step=other)

    def _relatives(self, project: str, line: str) -> Iterator[str]:
        """The line, then those that were forked from it or that it was forked from: they share the files."""
        yield line
        if self._family is None:
            self._family = forked_with(self._store, project, line)
        yield from self._family

    def _neighbours(self, step: Step) -> list[StepId]:
        """The other steps that write at, above or beneath the step's output paths, as in the plan."""
        places = self._places
        if places is None:
            places = self._places = _places_of(self._steps.values())
        found = dict.fromkeys(
            other
            for path in step.produces
            for some in (places.beneath.get(path), *map(places.at.get, (path, *parents(path))))
            for other in some or ()
        )
        found.pop(step.id, None)
        return sorted(found, key=places.rank.__getitem__)

    def drift(
        self, step: Step, artifact: Artifact, known: Callable[[], Iterator[Artifact]]
    ) -> Drift:
        """Compare the disk with the artifact. `known` are all artifacts of its makers, of any status."""
        return self.drift_from(step, self.wanted(step, artifact.digest, artifact.form), known)

    def drift_from(
        self, step: Step, entries: Sequence[Entry], known: Callable[[], Iterator[Artifact]]
    ) -> Drift:
        """Compare the disk with the files that shall be there."""
        return self.drift_of(step, self.read(step), entries, known)

    def drift_of(
        self,
        step: Step,
        there: Sequence[Entry],
        entries: Sequence[Entry],
        known: Callable[[], Iterator[Artifact]],
    ) -> Drift:
        """Compare the files that are there with those that shall be.

        A person's version that guards refused is no known one: it is an edit for as long as it lies there.
        """
        wanted = {entry.path: entry for entry in entries}
        present = {entry.path: entry for entry in there}
        wrong = {
            path
            for path in wanted.keys() | present.keys()
            if not _same(wanted.get(path), present.get(path))
        }
        if not wrong:
            return Drift("equal")
        unknown = {path: present[path].digest for path in wrong if path in present}
        if unknown:
            for other in known():
                if other.is_refused_edit:
                    continue
                maker = self._steps.get(other.step, step)
                for entry in self.meant(maker, other):
                    if unknown.get(entry.path) == entry.digest:
                        del unknown[entry.path]
                if not unknown:
                    break
        if unknown:
            return Drift("edited", tuple(sorted(unknown)))
        return Drift("stale", tuple(sorted(wrong)))

    def written_by_people(
        self, step: Step, there: Sequence[Entry], known: Callable[[], Iterator[Artifact]]
    ) -> tuple[str, ...]:
        """The files there that are stored as a person's version and that no attempt ever made."""
        rows = list(known())
        if not any(row.source == "human" for row in rows):
            return ()
        lies = {entry.path: entry.digest for entry in there}
        theirs: set[str] = set()
        made: set[str] = set()
        for row in rows:
            entries = self.meant(self._steps.get(row.step, step), row)
            same = {entry.path for entry in entries if lies.get(entry.path) == entry.digest}
            (theirs if row.source == "human" else made).update(same)
        return tuple(sorted(theirs - made))

    def missing(
        self, step: Step, there: Sequence[Entry], entries: Sequence[Entry]
    ) -> tuple[Entry, ...]:
        """The files that shall be at output paths where nothing lies at all: a person's edit needs them.

        EditError if a directory stands in the place of a file, or a file in that of a directory: that
        is no other version of the step's files.
        """
        absent: list[Entry] = []
        for path in step.produces:
            present = [entry for entry in there if _is_at(entry.path, path)]
            wanted = [entry for entry in entries if _is_at(entry.path, path)]
            if not present:
                absent += wanted
            elif wanted and (present[0].path == path) != (wanted[0].path == path):
                kinds = ("a file", "a directory")
                now, then = kinds if present[0].path == path else kinds[::-1]
                raise EditError(
                    f"'{path}' is {now} and was {then}: move it away, then holdfast run writes"
                    f" the version of '{step.id}' that stands"
                )
        return tuple(absent)

    def place(
        self, step: Step, entries: Sequence[Entry], key: str, fresh: Sequence[File] = ()
    ) -> tuple[str, ...]:
        """Make the output paths hold exactly these files; call `placed` once that is recorded.

        `fresh` are contents that are not in the store yet.
        """
        return self.write(self.changes(step.produces, entries), key, fresh)

    def write(
        self, changes: Sequence[FileChange], key: str, fresh: Sequence[File] = ()
    ) -> tuple[str, ...]:
        """Make these changes, all or none; gives the paths that were written or removed."""
        contents = {digest_bytes(file.content): file.content for file in fresh}
        if not changes:
            return ()

        def content(digest: str) -> bytes | Iterator[bytes]:
            found = contents.get(Digest(digest))
            return self._store.chunks(Digest(digest)) if found is None else found

        if not self._has_home:
            keep_home(self._journal)
            self._has_home = True
        journal, claims = self._journal, self._claims
        apply(self._root, changes, content, journal_dir=journal, key=key, claims=claims)
        return tuple(change.path for change in changes)

    def secure(self, paths: Sequence[str]) -> None:
        """Let files that steps wrote by themselves outlast a power cut.

        Afterwards nobody could tell what is left of them from what a person wrote.
        """
        if paths:
            sync_files(self._root, paths)

    def changes(self, paths: Sequence[str], entries: Sequence[Entry]) -> list[FileChange]:
        """What has to change so that at and beneath these paths lie exactly these files."""
        wanted = {entry.path: entry for entry in entries}
        present = {entry.path: entry for entry in self.read_paths(paths)}
        changes = []
        for path in sorted(wanted.keys() | present.keys()):
            want, have = wanted.get(path), present.get(path)
            if _same(want, have):
                continue
            before = have.digest if have else None
            after = want.digest if want else None
            mode = 0o755 if want and want.executable else 0o644
            changes.append(FileChange(path, before, after, mode))
        return changes

    def take_special(self, paths: Sequence[str]) -> list[Entry]:
        """Remove links and the like at these paths, after the targets of the links are stored."""
        taken: list[Entry] = []

        def keep(path: str, target: bytes) -> None:
            taken.append(Entry(path, self._store.put(target), size=len(target)))

        take_special(self._root, paths, keep)
        return taken

    def force(self, paths: Sequence[str], entries: Sequence[Entry], key: str) -> None:
        """Let these paths hold exactly these files, whatever is in the way: all of it must be stored."""
        clear(self._root, paths)
        self.write(self.changes(paths, entries), key)

    def placed(self, key: str) -> None:
        """The event that names this change is stored: its journal is no longer needed."""
        forget(self._journal, key)
        self._claims.forgotten(key)

    def all_placed(self) -> None:
        """The run has ended, so every change is recorded: no journal of it is needed any more."""
        for key in keys_in(self._journal):
            if not is_settled(place_of(self._journal, key)):
                forget(self._journal, key)
        self.leave()

    def leave(self) -> None:
        """The run is over: remove the directory for its journals if none is left in it."""
        with suppress(OSError):
            os.rmdir(self._journal)

    def recover(self, committed: Callable[[str], bool]) -> list[str]:
        """Finish or undo what a dead engine left half done; gives the paths a person changed meanwhile.

        What found no place because of that is stored, so that the journal does not stay.
        """
        if not os.path.isdir(self._journal):
            return []
        done = recover(self._root, self._journal, committed=committed)
        for key in keys_in(self._journal):
            if is_settled(place_of(self._journal, key)):
                for image in images_in(self._journal, key):
                    self._store.put(image)
                forget(self._journal, key)
        return [conflict.path for item in done for conflict in item.conflicts]


BACK, PLACE = "back", "place"  # of what changes of files are for, beside results of attempts
_BASE = 64  # characters of the name of a step in the key of its item


def edit_key(run: RunId, step: StepId, *what: int | str) -> str:
    """Names a change of files in its journal, as a directory: ids of items may have what no key has."""
    name = step
    if not STEP_ID.match(step):
        name = StepId(f"{(base_of(step) or step)[:_BASE]}@{digest_texts(step)[:32]}")
    return ".".join(map(str, (run, name, *what)))


def edit_of(run: RunId, event: Event) -> str:
    """The key of the change of files that this event records; empty if it records none."""
    match event:
        case AttemptAccepted():
            return edit_key(run, event.step, event.attempt)
        case AttemptParked() | AttemptRejected() | AttemptFailed() | AttemptLost():
            return edit_key(run, event.step, event.attempt, BACK)
        case OutputsPlaced():
            return edit_key(run, event.step, PLACE)
        case _:
            return ""


def _is_at(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")


def _places_of(steps: Iterable[Step]) -> _Places:
    places = _Places({}, {}, {})
    for step in steps:
        places.rank[step.id] = len(places.rank)
        for path in step.produces:
            places.at.setdefault(path, []).append(step.id)
            for place in parents(path):
                places.beneath.setdefault(place, []).append(step.id)
    return places


def _same(one: Entry | None, other: Entry | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.digest == other.digest and one.executable == other.executable
