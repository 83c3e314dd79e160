"""Undoing steps: their files as they were before the attempt that made them, their artifacts withdrawn.

Files and facts change together although they lie in two places: the files are changed first, through
the journaled apply, then the facts are stored, then the journal of the change is forgotten. Whoever
next holds the line finds what a crash left, and finishes it if the facts are there, else takes it back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from holdfast.edits.change import FileChange
from holdfast.engine.hold import Hold
from holdfast.engine.journals import runs_of
from holdfast.engine.lines import line_journal
from holdfast.engine.needed import before_change
from holdfast.engine.outputs import Outputs
from holdfast.engine.rebuilt import withdrawn
from holdfast.engine.world import World
from holdfast.errors import ConflictError, IntegrityError, PurgedError
from holdfast.model.artifact import Artifact, Entry, tree_entries
from holdfast.model.changeset import changes_in
from holdfast.model.digest import Digest
from holdfast.model.event import AttemptAccepted, AttemptStarted, Event
from holdfast.model.fixed import frozen
from holdfast.model.line import StepUndone
from holdfast.model.plan import RunId, Step, StepId
from holdfast.ports import Append, Batch, Store

OUTSIDE = "it touched the outside world, which no one can take back"
BESIDE = "what it changed beside its outputs stays as it is"
NO_FILES = "it writes no files; only its artifact is withdrawn"


@frozen
class Undoing:
    """One step as it will be undone.

    `rows` are withdrawn, the one that was made first. `files` shall lie at its output paths afterwards,
    None if they stay as they are; `left` are paths that stay: a person changed them, or their earlier content
    is `lost`.
    """

    step: Step
    rows: tuple[Artifact, ...]
    files: tuple[Entry, ...] | None
    left: tuple[str, ...]
    notes: tuple[str, ...]
    beside: tuple[str, ...] = ()  # files of the project that it changed in a copy
    lost: tuple[str, ...] = ()


def place_of_undoing(world: World, project: str, line: str) -> Outputs:
    """Where the changes of files of undone steps are written down, for one line."""
    name = hashlib.sha256(f"{project}\0{line}".encode("utf-8", "surrogatepass")).hexdigest()
    return Outputs(world.root, world.journal(RunId(f"undo-{name[:16]}")), world.store)


def settle_undone(world: World, hold: Hold, project: str, line: str) -> None:
    """Finish, or take back, what a dead process left of an undoing."""
    if hold.sharing:  # a joined engine found the line held, so somebody did this already
        return

    def is_stored(key: str) -> bool:
        said = (recorded.event for recorded in world.store.read(line_journal(project, line)))
        return any(isinstance(event, StepUndone) and event.edit == key for event in said)

    for path in place_of_undoing(world, project, line).recover(is_stored):
        world.say(f"'{path}' was changed by hand meanwhile and is left as it is")


class Undo:
    """Works out how steps of a line would be undone, one after the other; changes nothing.

    `paths` and `files` are the output paths of all of them and what would lie there then.
    """

    def __init__(self, store: Store, outputs: Outputs, project: str, line: str) -> None:
        self._store = store
        self._outputs = outputs
        self._project = project
        self._line = line
        self._journals: dict[RunId, list[Event]] = {}
        self._files: dict[str, Entry] = {}
        self.paths: list[str] = []

    @property
    def files(self) -> list[Entry]:
        """What would lie at the output paths."""
        return list(self._files.values())

    def changes(self) -> list[FileChange]:
        """What would have to change on disk."""
        return self._outputs.changes(self.paths, self.files)

    def acts(self, step: StepId) -> list[Artifact]:
        """The accepted rows of a step that something was done for: an attempt, or a person's word."""
        rows = self._accepted(step)
        return [row for row in rows if row.attempt or not row.run]

    def _accepted(self, step: StepId) -> list[Artifact]:
        found = self._store.artifacts(
            project=self._project, line=self._line, step=step, status="accepted"
        )
        return [row for row in found if row.source != "imported"]

    def done_in(self, run: RunId) -> list[Artifact]:
        """What a run made or guarded and that still counts, the last one first."""
        rows = self._store.artifacts(run=run, status="accepted")
        return [row for row in rows if row.attempt and row.source != "imported"][::-1]

    def of(self, step: Step, act: Artifact) -> Undoing:
        """How one act would be undone."""
        rows = self._accepted(step.id)
        copies = (
            row
            for row in rows
            if row.run and not row.attempt and row.digest == act.digest and row.number > act.number
        )
        gone = (act, *copies)
        rest = [row for row in rows if row not in gone]
        notes = [BESIDE] if step.runs_alone else []
        notes += [OUTSIDE] if step.effects == "external" else []
        beside, left, lost = self._take_back(step, act) if step.changes_copy else ((), (), ())
        left += lost
        back = tuple(self._files[path] for path in beside if path in self._files)
        if not step.produces:
            notes += [] if beside else [NO_FILES]
            return Undoing(step, gone, back if beside else None, left, tuple(notes), beside, lost)
        files = self._before(step, act, rest)
        if files is not None:
            files = tuple(entry for entry in files if entry.path not in beside)
            left += self._put(step, act, files)
        elif not beside:
            return Undoing(step, gone, None, left, tuple(notes))
        return Undoing(step, gone, (*(files or ()), *back), left, tuple(notes), beside, lost)

    def _take_back(
        self, step: Step, act: Artifact
    ) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Let the files that a step changed be as they were.

        Gives their paths, those that stay because a person changed them since, and those that stay because
        it is recorded that their earlier content is gone. IntegrityError if it is gone unrecorded.
        """
        _, ended = self._attempt(act)
        before = tree_entries(self._store.get(ended.kept)) if ended and ended.kept else ()
        replaced = {entry.path: entry for entry in before}
        changes = changes_in(self._store.get(act.digest))
        self._read([change.path for change in changes])
        left, gone = [], []
        for change in changes:
            was = before_change(change, replaced)
            now = self._files.get(change.path)
            if _is_entry(now, was):
                continue
            if not _is_entry(now, change.entry):
                left.append(change.path)
            elif was is None:
                del self._files[change.path]
            elif self._can_read(step, was):
                self._files[change.path] = was
            else:
                gone.append(change.path)
        return tuple(change.path for change in changes), tuple(left), tuple(gone)

    def _can_read(self, step: Step, was: Entry) -> bool:
        """Whether the earlier content of a file is there, which may be told to be gone."""
        try:
            for _ in self._store.chunks(was.digest):
                pass
        except PurgedError:
            return False
        except IntegrityError as error:
            words = f"'{was.path}' cannot be as it was before '{step.id}': {error.message}"
            raise IntegrityError(words, hint="holdfast repair") from error
        return True

    def _put(self, step: Step, act: Artifact, files: Sequence[Entry]) -> tuple[str, ...]:
        """Let these files lie at the outputs; gives the paths that a person changed, and that stay."""
        self._read(step.produces)
        there = [e for e in self._files.values() if _is_beneath(e.path, step.produces)]
        made = self._outputs.wanted(step, act.digest, act.form)
        drift = self._outputs.drift_of(step, there, made, lambda: self._known(step.id))
        present = {entry.path: entry.digest for entry in there}
        right = {entry.path for entry in files if present.get(entry.path) == entry.digest}
        edited = drift.paths if drift.state == "edited" else ()
        left = tuple(path for path in edited if path not in right)
        for path in present.keys() - set(left):
            del self._files[path]
        self._files.update({e.path: e for e in files if e.path not in left})
        return left

    def _read(self, produces: Sequence[str]) -> None:
        """What lies on disk now, for paths that no step before this one has."""
        for entry in self._outputs.read_paths(produces):
            if not _is_beneath(entry.path, self.paths):
                self._files[entry.path] = entry
        self.paths += [path for path in produces if path not in self.paths]

    def _known(self, step: StepId) -> Iterator[Artifact]:
        return self._store.artifacts(project=self._project, line=self._line, step=step)

    def _before(
        self, step: Step, act: Artifact, rest: Sequence[Artifact]
    ) -> tuple[Entry, ...] | None:
        """The files before an act; those of what stands without it, if it wrote none itself."""
        started, ended = self._attempt(act)
        manifest = (ended.kept if ended else None) or (started.before if started else None)
        if manifest is not None:
            return tree_entries(self._store.get(manifest))
        if started is not None and act.source != "human":
            return None  # kept content was only guarded again: no file was touched
        same = [row for row in rest if row.config_ref == act.config_ref] or rest
        return self._outputs.wanted(step, same[-1].digest, same[-1].form) if same else None

    def _attempt(self, act: Artifact) -> tuple[AttemptStarted | None, AttemptAccepted | None]:
        if not act.attempt:
            return None, None
        if act.run not in self._journals:
            self._journals[act.run] = [r.event for r in self._store.read(f"run:{act.run}")]
        started: AttemptStarted | None = None
        ended: AttemptAccepted | None = None
        for event in self._journals[act.run]:
            mine = getattr(event, "step", None) == act.step
            if mine and isinstance(event, AttemptStarted) and event.attempt == act.attempt:
                started = event
            if mine and isinstance(event, AttemptAccepted) and event.attempt == act.attempt:
                ended = event
        return started, ended


def _is_entry(now: Entry | None, then: Entry | None) -> bool:
    if now is None or then is None:
        return now is then
    return (now.digest, now.executable) == (then.digest, then.executable)


def changed_by(item: Undoing, changed: Iterable[str]) -> tuple[str, ...]:
    """The changed paths that are outputs of one of the steps."""
    mine = (*item.step.produces, *item.beside)
    return tuple(path for path in changed if _is_beneath(path, mine))


def _is_beneath(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def undo(
    world: World,
    project: str,
    line: str,
    undoings: Sequence[Undoing],
    changes: Sequence[FileChange],
    *,
    by: str,
    because: Digest | None,
) -> list[StepUndone]:
    """Undo these steps together, all or none; the line must be held. The last step comes first."""
    outputs = place_of_undoing(world, project, line)
    kept = {item.step.id: _store_now(world.store, outputs, item) for item in undoings}
    key = f"undo.{world.new_id()}"
    changed = outputs.write(changes, key)
    events = [
        StepUndone(
            step=item.step.id,
            rows=tuple(withdrawn(row) for row in item.rows),
            by=by,
            because=because,
            run=item.rows[0].run,
            kept=kept[item.step.id],
            paths=changed_by(item, changed),
            left=item.left,
            edit=key if changed else "",
        )
        for item in undoings
    ]
    said = _tell(world, project, line, events, [row for item in undoings for row in item.rows])
    outputs.placed(key)
    return said


def _store_now(store: Store, outputs: Outputs, item: Undoing) -> Digest | None:
    """Store what lies at the output paths before anything is written over it."""
    if item.files is None:
        return None
    kept = outputs.keep_paths((*item.step.produces, *item.beside))
    for digest, content in kept.blobs:
        if store.put(content) != digest:
            raise IntegrityError(f"a file of '{item.step.id}' does not have its own digest")
    return kept.digest


def _tell(
    world: World, project: str, line: str, events: list[StepUndone], rows: list[Artifact]
) -> list[StepUndone]:
    journal, store = line_journal(project, line), world.store
    runs = [row.run for row in runs_of(store, project, line)]
    latest = runs[-1] if runs else RunId("")
    seq = store.last(f"run:{latest}")
    placed = [replace(event, after_run=latest, after_seq=seq) for event in events]
    while True:
        last, at = store.last(journal), world.clock()
        append = Append(journal, last, [(at, event) for event in placed])
        try:
            store.commit(Batch([append], withdrawn=rows))
        except ConflictError:
            if store.last(journal) == last:
                raise
            continue
        return placed
