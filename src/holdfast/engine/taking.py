"""Takes the changes that steps made in copies over into the project, all of a step's or none.

A path is written only if it holds what the step began with, or something that is Holdfast's own to
replace: an earlier result of the same step, or of one that is ordered with it by needs. Anything else is a
clash, with the step that wrote it or with a person, and then nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from holdfast.core.state import COMPLETE, State
from holdfast.edits.change import FileChange
from holdfast.edits.lock import exclusive
from holdfast.edits.tree import fold
from holdfast.engine.journals import Followed
from holdfast.engine.outputs import Kept, Outputs
from holdfast.engine.world import World
from holdfast.errors import EditError, IntegrityError
from holdfast.model.artifact import Artifact, Entry, Form
from holdfast.model.changeset import Change, Settled, changes_in, settled_in
from holdfast.model.digest import Digest
from holdfast.model.event import AttemptAccepted, ConflictFound
from holdfast.model.glob import parents
from holdfast.model.plan import Plan, Step, StepId
from holdfast.ports import Candidate, File

_UNREADABLE = Digest("")
Contents = Mapping[str, Digest | None]  # by path; none where no file lies
Others = Mapping[str, Sequence[Digest | None]]  # by path, what all others in its conflicts wrote
Allowed = Contents  # what a person has seen at a path and wants replaced


_Made = tuple[tuple[Change, ...], tuple[Settled, ...]]


class Clash(NamedTuple):
    """A path that a step wants to write and that somebody else wrote; `by` is empty for a person.

    `made` is the artifact of the other step.
    """

    path: str
    by: StepId = StepId("")
    made: Digest | None = None


class _Wrote(NamedTuple):
    """What a step of this run left at a path."""

    path: str
    step: StepId
    digest: Digest | None
    artifact: Digest


class _Award(NamedTuple):
    """What people decided about a path in a conflict of a step, with the artifact that tells it."""

    step: StepId
    settled: Settled
    artifact: Digest


class Taken(NamedTuple):
    """What was written or removed, and everything that lay there before."""

    paths: tuple[str, ...]
    kept: Kept


class Wish(NamedTuple):
    """What a step wants of the project: files at its outputs, and changes beside them."""

    step: Step
    artifact: Digest
    entries: Sequence[Entry]
    changes: Sequence[Change]
    fresh: Sequence[File] = ()


class Word(NamedTuple):
    """What people said of a step's conflicts: what it gives up, what it may replace, who else wrote there."""

    lost: Sequence[str]
    allowed: Allowed
    others: Others


class Taker:
    """Takes over changes for one run."""

    def __init__(self, world: World, state: State, outputs: Outputs) -> None:
        self._world = world
        self._state = state
        self._outputs = outputs
        self._place = os.path.join(world.home, "apply")
        self._plan: Plan | None = None
        self._makers: dict[str, StepId] = {}
        self._made_here: dict[Digest, _Made] = {}  # perhaps not stored yet
        self._names: dict[str, _Wrote] = {}
        self._seen: set[tuple[StepId, Digest]] = set()
        self._followed = Followed(world.store, state.project, state.line, state.run)
        self._looked_with: Plan | None = None  # at the last look at all that stands
        self._won: dict[str, dict[StepId, _Award]] | None = None
        self._not_named = [  # taken from the end: who goes on from another comes after it
            step_id
            for step_id in reversed(state.graph.order)
            if state.plan.steps[step_id].changes_copy and state.steps[step_id].phase in COMPLETE
        ]
        self._above: dict[StepId, frozenset[StepId]] = {}

    def take(
        self, wish: Wish, key: str, allowed: Allowed | None = None
    ) -> Taken | tuple[Clash, ...]:
        """Write all that a step wants, under this key of an edit; the clashes if there are any."""
        with exclusive(self._place):
            there = self._there(wish)
            if isinstance(there, tuple):
                return there
            clashes = self._clashes(wish, there, allowed or {})
            return clashes or self._write(wish, there, key)

    def _write(self, wish: Wish, there: Mapping[str, Entry], key: str) -> Taken:
        step = wish.step
        changes = self._outputs.changes(step.produces, wish.entries)
        changes += [
            self._file_change(change, there.get(change.path))
            for change in wish.changes
            if not _same(there.get(change.path), change.entry)
        ]
        paths = sorted({*step.produces, *(change.path for change in changes)})
        kept = self._outputs.keep_paths(paths)
        written = self._outputs.write(changes, key, wish.fresh)
        self._remember(step.id, wish.artifact, wish.changes)
        if self.settled(wish.artifact):
            self._award(step.id, wish.artifact, self._awarded())
        return Taken(written, kept)

    def stand(self, wish: Wish, key: str) -> Taken:
        """Write what is missing of a kept result that was only guarded again; edits on top of it stay."""
        with exclusive(self._place):
            changes = self._outputs.changes(wish.step.produces, wish.entries)
            changes += self.restored(wish.step, wish.artifact)
            kept = self._outputs.keep_paths([change.path for change in changes])
            return Taken(self._outputs.write(changes, key, wish.fresh), kept)

    def put_in_place(self, changes: Sequence[FileChange], key: str) -> tuple[str, ...]:
        """Write files of a result that stands, once what they replace is stored."""
        with exclusive(self._place):
            self._outputs.save([change.path for change in changes if change.before is not None])
            return self._outputs.write(changes, key)

    def check_outputs(self, step: Step, changes: Sequence[Change]) -> None:
        """EditError if a change is about what another step promises to make: that is for this one alone."""
        if self._plan is not self._state.plan:
            self._plan = self._state.plan
            self._above.clear()
            self._makers = {
                path: other for other, one in self._plan.steps.items() for path in one.produces
            }
        for change in changes:
            for place in (change.path, *parents(change.path)):
                maker = self._makers.get(place, step.id)
                if maker != step.id and not _same(
                    self._read([change.path]).get(change.path), change.entry
                ):
                    raise EditError(
                        f"it changed '{change.path}', which is an output of '{maker}'",
                        hint=f"say it in 'produces' too, and need '{maker}'",
                    )

    def restored(self, step: Step, artifact: Digest) -> list[FileChange]:
        """What of a step's changes is not in the project any more, or not yet, where its base lies."""
        changes = self.changes(artifact)
        self._remember(step.id, artifact, changes)
        there = self._read([change.path for change in changes])
        due = still_due(changes, self.settled(artifact), there)
        return [self._file_change(change, there.get(change.path)) for change in due]

    def displaced(self, step: Step, artifact: Digest) -> tuple[str, ...]:
        """Where the changes of a result lie no more, if the step made another one since.

        Nobody can tell then whether that one lies there, or what somebody made of it.
        """
        newest = self._world.store.newest(self._state.project, self._state.line, step.id)
        if newest is None or newest.digest == artifact:
            return ()
        changes = self.changes(artifact)
        there = self._read([change.path for change in changes])
        return displaced_in(changes, self.settled(artifact), there)

    def outdated(self, step: Step, changes: Sequence[Change]) -> StepId | None:
        """The step above that wrote anew, in this run, where these changes begin: they must be made again."""
        there = self._read([change.path for change in changes])
        for change in changes:
            lies = there.get(change.path)
            if _same(lies, change.entry) or _begins_at(change, lies):
                continue
            for other in self._ancestors(step.id):
                here = self._state.steps[other]
                if here.phase == "done" and self._wrote_now(other, change.path, _digest(lies)):
                    return other
        return None

    def last_written(self, path: str) -> list[Digest | None]:
        """What a step of this run left at a path last, if one did."""
        self._catch_up()
        wrote = self._names.get(_folded(path))
        return [wrote.digest] if wrote is not None and wrote.path == path else []

    def cleared(self, changes: Sequence[Change], allowed: Allowed) -> tuple[Change, ...]:
        """Removals of what is in the way of files that won: a file above them, files beneath them.

        Only what people have seen, `allowed`, is removed.
        """
        known = {change.path for change in changes}
        way: dict[str, Entry] = {}
        for change in changes:
            if change.digest is not None and change.path in allowed:
                above = [entry for outer in parents(change.path) for entry in self._file_at(outer)]
                way |= {entry.path: entry for entry in above}
                way |= self._read([change.path]) if not above else {}
        return tuple(
            Change(path, None, base=entry.digest, base_executable=entry.executable)
            for path, entry in way.items()
            if path not in known and allowed.get(path) == entry.digest
        )

    def lying(self, paths: Sequence[str]) -> Contents:
        """What lies at each of these paths now."""
        there = self._read(paths)
        return {path: _digest(there.get(path)) for path in paths}

    def note(self, digest: Digest, made: Candidate) -> None:
        """Know a set of changes that is about to be stored."""
        self._made_here[digest] = (made.changes, made.settled)

    def changes(self, digest: Digest) -> tuple[Change, ...]:
        """The changes that an artifact holds."""
        known = self._made_here.get(digest)
        return known[0] if known else changes_in(self._world.store.get(digest))

    def settled(self, digest: Digest) -> tuple[Settled, ...]:
        """The paths of an artifact about which people decided."""
        known = self._made_here.get(digest)
        return known[1] if known else settled_in(self._world.store.get(digest))

    # --- what lies there ------------------------------------------------------------------------

    def _read(self, paths: Sequence[str]) -> dict[str, Entry]:
        return lying_at(self._outputs, paths)

    def _there(self, wish: Wish) -> dict[str, Entry] | tuple[Clash, ...]:
        """The files at the paths of the changes; clashes if a file lies where a directory has to be."""
        paths = [change.path for change in wish.changes]
        try:
            return {entry.path: entry for entry in self._outputs.read_paths(paths)}
        except EditError:
            found = [
                self._clash(wish.step, path, outer, lies[0].digest)
                for path in paths
                for outer in parents(path)
                if (lies := self._file_at(outer))
            ]
            if not found:
                raise
            return tuple(found)

    def _file_at(self, path: str) -> tuple[Entry, ...]:
        try:
            found = self._outputs.read_paths([path])
        except EditError:
            return ()
        return found if [entry.path for entry in found] == [path] else ()

    def _clashes(
        self, wish: Wish, there: Mapping[str, Entry], allowed: Allowed
    ) -> tuple[Clash, ...]:
        wanted = {change.path for change in wish.changes}
        beneath: dict[str, Entry] = {}
        for path, entry in there.items():
            if path not in wanted:
                beneath.update({outer: entry for outer in parents(path) if outer in wanted})
        self._catch_up()
        found = []
        for change in wish.changes:
            path, lies = change.path, there.get(change.path)
            if _same(lies, change.entry):
                continue
            if inner := beneath.get(path):
                found.append(self._clash(wish.step, path, inner.path, inner.digest))
            elif path in allowed and allowed[path] == _digest(lies):
                continue
            elif rival := self._rival(wish.step, change, lies):
                found.append(rival)
            elif not self._may_replace(wish.step, change, lies):
                found.append(self._clash(wish.step, path, path, _digest(lies)))
        return tuple(found)

    def _may_replace(self, step: Step, change: Change, lies: Entry | None) -> bool:
        """Whether what lies there is what the change began with, or an earlier result that it replaces."""
        now = _digest(lies)
        if _begins_at(change, lies):
            return True
        return any(
            self._made(row, change.path, now)
            for other in self._ordered(step.id)
            if self._state.plan.steps[other].changes_copy or other == step.id
            for row in self._rows(other)
        )

    def _clash(self, step: Step, path: str, place: str, now: Digest | None) -> Clash:
        """Who wrote what lies at a place: another step of the plan, else a person."""
        ordered = self._ordered(step.id)
        for other, one in self._state.plan.steps.items():
            if other in ordered or not (one.changes_copy or one.produces):
                continue
            here = self._state.steps[other]
            if here.phase in COMPLETE and self._wrote_now(other, place, now):
                return Clash(path, other, here.digest)
            for row in self._rows(other):
                if row.status == "accepted" and self._made(row, place, now):
                    return Clash(path, other, row.digest)
        return Clash(path)

    def _rival(self, step: Step, change: Change, lies: Entry | None) -> Clash | None:
        """Who is in the way of a change: a step that wrote the same file in this run, or people's word.

        Names that are one to some file systems are one file here. Who was asked by a person to be made again
        began with what the other wrote, and may go on from it.
        """
        wrote = self._names.get(_folded(change.path))
        clash = self._beside(step, change, lies, wrote) if wrote is not None else None
        return clash or self._overruled(step, change, lies)

    def _beside(
        self, step: Step, change: Change, lies: Entry | None, wrote: _Wrote
    ) -> Clash | None:
        """A step that is not ordered with this one and whose version lies there."""
        if wrote.step in self._ordered(step.id):
            return None
        if wrote.path == change.path and (
            wrote.digest != _digest(lies) or self._may_go_on(step, change, lies)
        ):
            return None
        return Clash(change.path, wrote.step, wrote.artifact)

    def _may_go_on(self, step: Step, change: Change, lies: Entry | None) -> bool:
        """Whether a person wants a change over what lies there."""
        last = self._state.steps[step.id].last
        again = last is not None and last.code == "retried" and _begins_at(change, lies)
        return _is_over(change, lies) or (again and self._was_asked_about(step.id))

    def _was_asked_about(self, step: StepId) -> bool:
        """Whether the step was in a conflict of this run: else it is tried again for another reason."""
        events = (recorded.event for recorded in self._world.store.read(f"run:{self._state.run}"))
        return any(isinstance(one, ConflictFound) and step in one.steps for one in events)

    def _overruled(self, step: Step, change: Change, lies: Entry | None) -> Clash | None:
        """What stands there because people settled a conflict so, against this step or one beside it."""
        for award in self._awarded().get(_folded(change.path), {}).values():
            one = award.settled
            if not one.won:
                clash = self._gave_way(step, change, lies, award)
            else:
                wrote = _Wrote(one.path, award.step, one.digest, award.artifact)
                clash = self._beside(step, change, lies, wrote)
            if clash is not None:
                return clash
        return None

    def _gave_way(
        self, step: Step, change: Change, lies: Entry | None, award: _Award
    ) -> Clash | None:
        """The version that a step gave way to, of a step that has no record of it, or of a person."""
        now, one = _digest(lies), award.settled
        if one.path != change.path or self._may_go_on(step, change, lies):
            return None
        if now != one.digest and award.step != step.id:
            return None
        winner = self._clash(self._state.plan.steps[award.step], change.path, change.path, now)
        if winner.by:
            return None if winner.by in self._ordered(step.id) else winner
        may_follow = award.step in self._ancestors(step.id)
        return winner if now == one.digest and not may_follow else None

    def _awarded(self) -> dict[str, dict[StepId, _Award]]:
        """What people decided about conflicts, as the newest artifacts of the steps in them tell."""
        if self._won is None:
            self._won = {}
            state = self._state
            for other, row in self._world.store.newest_of_all(state.project, state.line).items():
                step = state.plan.steps.get(other)
                if step is not None and step.changes_copy:
                    with suppress(IntegrityError):  # purged
                        self._award(other, row.digest, self._won)
        return self._won

    def _award(self, step: StepId, digest: Digest, won: dict[str, dict[StepId, _Award]]) -> None:
        for one in self.settled(digest):
            won.setdefault(_folded(one.path), {})[step] = _Award(step, one, digest)

    def _catch_up(self) -> None:
        """Know what steps of this run changed before this engine drove it, or beside it."""
        while self._not_named:
            other = self._not_named.pop()
            if (digest := self._state.steps[other].digest) is not None:
                self._recall(other, digest)
        for other, digest in self._made_beside() if self._state.options.joined else ():
            step = self._state.plan.steps.get(other)
            if step is not None and step.changes_copy and (other, digest) not in self._seen:
                self._recall(other, digest)

    def _recall(self, step: StepId, artifact: Digest) -> None:
        with suppress(IntegrityError):  # purged or lost: nobody can tell
            self._remember(step, artifact, self.changes(artifact))

    def _made_beside(self) -> Iterator[tuple[StepId, Digest]]:
        """What runs beside this one accepted since the last look; all that stands if line or plan moved."""
        state = self._state
        if self._followed.has_grown() or self._looked_with is not state.plan:
            self._looked_with = state.plan
            newest = self._world.store.newest_of_all(state.project, state.line)
            yield from ((other, row.digest) for other, row in newest.items())
        for _, event in self._followed.news():
            if isinstance(event, AttemptAccepted) and event.stands:
                yield event.step, event.digest

    def _ordered(self, step_id: StepId) -> set[StepId]:
        """The step itself and all that come before or after it by needs."""
        return {step_id, *self._ancestors(step_id), *self._state.graph.below([step_id])}

    def _remember(self, step: StepId, artifact: Digest, changes: Sequence[Change]) -> None:
        self._seen.add((step, artifact))
        for change in changes:
            self._names[_folded(change.path)] = _Wrote(change.path, step, change.digest, artifact)

    # --- who made it ----------------------------------------------------------------------------

    def _ancestors(self, step_id: StepId) -> frozenset[StepId]:
        found = self._above.get(step_id)
        if found is None:
            pending, reached = [step_id], set[StepId]()
            while pending:
                for need in self._state.plan.steps[pending.pop()].needs:
                    if need.step not in reached:
                        reached.add(need.step)
                        pending.append(need.step)
            found = self._above[step_id] = frozenset(reached)
        return found

    def above(self, step_id: StepId) -> list[StepId]:
        """Everything a step stands on, first things first."""
        return sorted(self._ancestors(step_id), key=self._state.graph.rank.__getitem__)

    def _rows(self, step: StepId) -> Iterator[Artifact]:
        state = self._state
        for row in self._world.store.artifacts(project=state.project, line=state.line, step=step):
            if not row.is_refused_edit:
                yield row

    def _wrote_now(self, step: StepId, path: str, now: Digest | None) -> bool:
        here = self._state.steps[step]
        return here.digest is not None and self._has(step, here.digest, here.form, path, now)

    def _made(self, row: Artifact, path: str, now: Digest | None) -> bool:
        return self._has(row.step, row.digest, row.form, path, now)

    def _has(self, step: StepId, digest: Digest, form: Form, path: str, now: Digest | None) -> bool:
        """Whether an artifact has this content at a path; none means that it removed the file."""
        one = self._state.plan.steps[step]
        try:
            if form == "tree" and any(
                change.path == path and change.digest == now for change in self.changes(digest)
            ):
                return True
            if now is None or not one.produces:
                return False
            wanted = self._outputs.wanted(one, digest, form)
            return any(entry.path == path and entry.digest == now for entry in wanted)
        except IntegrityError:  # purged: nobody can tell
            return False

    # --- writing --------------------------------------------------------------------------------

    def _file_change(self, change: Change, lies: Entry | None) -> FileChange:
        mode = 0o755 if change.executable else 0o644
        left_alone = change.base is not None and change.executable == change.base_executable
        if lies is not None and (left_alone or lies.executable == change.executable):  # the owner's
            mode = os.lstat(os.path.join(self._world.root, change.path)).st_mode & 0o777
        return FileChange(change.path, _digest(lies), change.digest, mode)


def settled(changes: Sequence[Change], lost: Sequence[str], won: Allowed) -> tuple[Change, ...]:
    """Changes without the paths that were lost; at those that were won, over what the other wrote."""
    gone = set(lost)
    return tuple(
        replace(change, over=won.get(change.path)) for change in changes if change.path not in gone
    )


def lying_at(outputs: Outputs, paths: Sequence[str]) -> dict[str, Entry]:
    """The files at these paths; what cannot be read as one is a person's, and like nothing else."""
    try:
        return {entry.path: entry for entry in outputs.read_paths(paths)}
    except EditError:
        found: dict[str, Entry] = {}
        for path in paths:
            try:
                found.update({entry.path: entry for entry in outputs.read_paths([path])})
            except EditError:
                found[path] = Entry(path, _UNREADABLE)
        return found


def still_due(
    changes: Sequence[Change], decided: Sequence[Settled], there: Mapping[str, Entry]
) -> list[Change]:
    """The changes of a result that stands that are not in the project any more, or not yet.

    They are due only where their base lies, or a version that gave way as people decided.
    """
    over = {one.path: one.over for one in decided}
    found = []
    for change in changes:
        lies = there.get(change.path)
        if _same(lies, change.entry):
            continue
        gave_way = lies is not None and lies.digest in over.get(change.path, ())
        if gave_way or _begins_at(change, lies):
            found.append(change)
    gone = {one.path for one in found if one.digest is None}
    held = {outer for path in there.keys() - gone for outer in parents(path)}
    return [one for one in found if one.path not in held]  # steps below made it a directory


def displaced_in(
    changes: Sequence[Change], decided: Sequence[Settled], there: Mapping[str, Entry]
) -> tuple[str, ...]:
    """The paths where neither what a result left lies nor what it was put in the place of."""
    due = {change.path for change in still_due(changes, decided, there)}
    return tuple(
        change.path
        for change in changes
        if change.path not in due and _digest(there.get(change.path)) != change.digest
    )


def _is_over(change: Change, lies: Entry | None) -> bool:
    return change.over is not None and _digest(lies) == change.over


def _begins_at(change: Change, lies: Entry | None) -> bool:
    """Whether what lies there is what a change was made from, or was once put in the place of."""
    now = _digest(lies)
    return now == change.base or (now is not None and now == change.over)


def _digest(entry: Entry | None) -> Digest | None:
    return entry.digest if entry is not None else None


def _same(one: Entry | None, other: Entry | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.digest == other.digest and one.executable == other.executable


def _folded(path: str) -> str:
    return "/".join(fold(part) for part in path.split("/"))
