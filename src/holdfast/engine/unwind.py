"""What a step reads, as it was before steps of the plan changed it themselves.

A step that changes project files would otherwise never stand: what it changed is often what it reads, and
what it was made from. So for the question whether an artifact stands, every file that holds exactly what
the step, or one below it, left there counts with the content that this one began with. So does a file
about which people settled a conflict that the step was in, while it holds what they decided. Anything
else, and any edit on top of it, counts as it is. What is read through a link is the file that it leads to.

The newest artifacts of a line tell that first. Where nothing stands by them, its earlier runs are asked,
each with what it came to: another branch, or another checkout that shares the store, may have made newer
artifacts from other files.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import NamedTuple

from holdfast.core.refs import Upstream
from holdfast.core.waves import Graph, graph_of
from holdfast.engine.additions import Additions
from holdfast.engine.survey import Survey
from holdfast.engine.walk import RULES
from holdfast.errors import EditError, IntegrityError
from holdfast.model.artifact import Artifact
from holdfast.model.changeset import Change, Settled, changes_in, settled_in
from holdfast.model.digest import Digest, Json
from holdfast.model.glob import glob_regex, is_plain
from holdfast.model.plan import Plan, Step, StepId
from holdfast.ports import Store
from holdfast.process.room import place_of, reached, shell_words

MOST_OLDER = 20  # artifacts of a step


class _Write(NamedTuple):
    """What stands at a path by an artifact of a step, and what it stands over."""

    step: StepId
    stands: Change | Settled
    over: tuple[Digest | None, ...]


Parts = Mapping[str, Json]  # of a key, as they are observed
_Writes = Mapping[str, Sequence[_Write]]  # at each path, the last step of the plan first
_Run = tuple[Mapping[StepId, Upstream], _Writes]  # what it came to, and what that left
_NONE: _Writes = {}


class _Left(Mapping[str, Sequence[_Write]]):
    """Writes, and what steps that had written to a path before found there and left alone."""

    def __init__(
        self, writes: _Writes, older: _Writes, found: Callable[[StepId, str], _Write | None]
    ) -> None:
        self._writes = writes
        self._older = older
        self._found = found
        self._known: dict[str, Sequence[_Write]] = {}

    def _at(self, path: str) -> Sequence[_Write]:
        if path not in self._known:
            some = self._writes.get(path, ())
            wrote = {write.step for write in some}
            others = dict.fromkeys(write.step for write in self._older.get(path, ()))
            alone = (self._found(step, path) for step in others if step not in wrote)
            self._known[path] = [*some, *filter(None, alone)]
        return self._known[path]

    def __getitem__(self, path: str) -> Sequence[_Write]:
        if found := self._at(path):
            return found
        raise KeyError(path)

    def __iter__(self) -> Iterator[str]:
        return (path for path in {**self._writes, **self._older} if self._at(path))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Unwinder:
    """Takes back what steps of one plan changed, in what was observed for keys."""

    def __init__(
        self,
        store: Store,
        plan: Plan,
        newest: Callable[[StepId], Artifact | None],
        rows: Callable[[StepId], Iterable[Artifact]],
        earlier: Callable[[Sequence[StepId]], Iterable[Mapping[StepId, Upstream]]],
        found: Callable[[StepId, Upstream], Artifact | None],
        saw: Callable[[Artifact], Parts],
        survey: Survey,
    ) -> None:
        self._store = store
        self._given = plan
        self._newest = newest
        self._rows = rows
        self._runs = earlier
        self._found = found
        self._saw = saw
        self._survey = survey
        self._additions: Additions | None = None
        self.grow(plan)

    def grow(self, plan: Plan) -> None:
        """The plan has further steps."""
        self._given = plan
        self._plan = self._foreseen(plan)
        self._steps = [s for s, step in self._plan.steps.items() if step.changes_copy]
        self.is_idle = not self._steps  # no step changes files in copies
        self._writes: _Writes | None = None
        self._older: _Writes | None = None
        self._newest_left: _Writes | None = None
        self._earlier: list[_Run] | None = None
        self._last: _Run | None = None
        self._lost: set[StepId] = set()
        self._unruled: dict[StepId, set[StepId]] = {}  # step -> who changed rules that are gone
        self._graph: Graph | None = None
        self._below: dict[StepId, set[StepId]] = {}

    def count_additions(self, additions: Additions) -> None:
        """Take back also what those steps changed that come with what was made last."""
        self._additions = additions
        self.forget()

    def forget(self) -> None:
        """The newest artifacts may be others now, and come with other steps."""
        if self._additions is not None and self._additions.are_any():
            self.grow(self._given)
        self._writes = self._older = self._newest_left = self._earlier = self._last = None

    def _foreseen(self, plan: Plan) -> Plan:
        """The plan with the steps that the newest artifacts bring, as far as they fit."""
        if self._additions is None or not self._additions.are_any():
            return plan
        steps, left = dict(plan.steps), [*plan.steps]
        while left:
            artifact = self._newest(left.pop())
            more = {} if artifact is None else self._additions.of(artifact)
            new = {name: step for name, step in more.items() if name not in steps}
            known = {*steps, *new}
            if all(need.step in known for step in new.values() for need in step.needs):
                steps.update(new)
                left += new
        return replace(plan, steps=steps)

    def counting(self, step: StepId, tried: set[StepId]) -> set[StepId]:
        """Those of the tried steps that change files in copies, at this one or below it."""
        known = self._plan.steps
        copies = {one for one in tried if one in known and known[one].changes_copy}
        if copies <= {step}:
            return copies
        self._graph = self._graph or graph_of(self._plan)
        return copies & (self._below.get(step) or self._graph.below([step]))

    def taken_back(self, step: Step, parts: Parts, *, then: Parts | None = None) -> Parts | None:
        """The observed parts without the changes of this step and of those below it; None if none count.

        If it is given what the step saw `then`, only what was changed since is left out, and those below
        may have gone on from what they had made before themselves.
        """
        read, counts = self._read(step, parts), partial(self._is_at, step.id)
        if then is None:
            left = read.without(self._known(), counts)
            self._unruled[step.id] = read.unruled
            return left
        if self._newest_left is None:
            self._newest_left = self._left(self._known(), self._newest)
        return read.without(self._newest_left, counts, then, self._older or _NONE)

    def taken_back_earlier(
        self, step: Step, parts: Parts, last: Mapping[StepId, Upstream] | None = None
    ) -> Iterator[tuple[Artifact, Parts]]:
        """The same without what steps left in each of the earlier runs, with what the step came to there.

        If it is told what the `last` run came to, without what they left in that one alone.
        """
        if last is not None and (self._last is None or self._last[0] is not last):
            self._last = self._of(last)
        if last is None and self._earlier is None:
            self._earlier = [*map(self._of, self._runs(self._steps))]
        read, counts = self._read(step, parts), partial(self._is_at, step.id)
        asked = self._earlier if last is None else [self._last]
        for came_to, writes in filter(None, asked or ()):
            artifact = self._stood(came_to, step.id)
            if artifact is not None:
                then, older = self._saw(artifact), self._older or _NONE
                if (left := read.without(writes, counts, then, older)) is not None:
                    yield artifact, left

    def untold(self, step: StepId) -> tuple[StepId, ...]:
        """Those of this step and the ones below it of which nobody can tell what they changed."""
        self._known()
        unruled = self._unruled.get(step, ())
        return tuple(
            other
            for other in self._steps
            if other in unruled or (other in self._lost and self._is_at(step, other))
        )

    def _read(self, step: Step, parts: Parts) -> _Read:
        return _Read(step, parts, self._survey, self._store.get)

    def _known(self) -> _Writes:
        """By the newest artifacts."""
        if self._writes is None:
            self._lost = set()
            self._writes = self._gathered(self._of_newest)
        return self._writes

    def _of(self, came_to: Mapping[StepId, Upstream]) -> _Run:
        writes = self._gathered(partial(self._of_run, came_to))
        return came_to, self._left(writes, partial(self._stood, came_to))

    def _stood(self, came_to: Mapping[StepId, Upstream], step: StepId) -> Artifact | None:
        return self._found(step, came_to[step]) if step in came_to else None

    def _gathered(self, left: Callable[[StepId], Iterable[Change | Settled]]) -> _Writes:
        graph = self._graph = self._graph or graph_of(self._plan)
        writes: dict[str, list[_Write]] = {}
        for step_id in sorted(self._steps, key=lambda step_id: -graph.rank[step_id]):
            for one in left(step_id):
                writes.setdefault(one.path, []).append(_Write(step_id, one, _over(one)))
        return writes

    def _of_newest(self, step: StepId) -> Iterable[Change | Settled]:
        artifact = self._newest(step)
        if artifact is None or artifact.form != "tree":
            return ()
        try:
            return self._standing(artifact.digest)
        except IntegrityError:  # purged, or lost
            self._lost.add(step)
            return ()

    def _left(self, writes: _Writes, stood: Callable[[StepId], Artifact | None]) -> _Writes:
        """The writes with what steps found there already; `stood` tells the artifacts that they stood by."""
        if self._older is None:
            self._older = self._gathered(self._of_older)
        saw: dict[StepId, _Seen | None] = {}

        def found(step: StepId, path: str) -> _Write | None:
            if step not in saw:
                artifact = None if step in self._lost else stood(step)
                saw[step] = None if artifact is None else _Seen(self._saw(artifact))
            seen = saw[step]
            now = None if seen is None else seen.at(path)
            if seen is None or (now is None and not reads(self._plan.steps[step], path)):
                return None
            return _Write(step, Change(path, now, base=now), (now,))

        return _Left(writes, self._older, found)

    def _of_older(self, step: StepId) -> Iterable[Change | Settled]:
        """What its earlier artifacts left, the newest of them first."""
        newest = self._newest(step)
        for artifact in reversed(deque(self._rows(step), MOST_OLDER)):
            is_newest = newest is not None and artifact.number == newest.number
            if artifact.form == "tree" and not is_newest:
                with suppress(IntegrityError):
                    yield from self._standing(artifact.digest)

    def _of_run(
        self, came_to: Mapping[StepId, Upstream], step: StepId
    ) -> Iterable[Change | Settled]:
        if step not in came_to:
            return ()
        try:
            return self._standing(came_to[step].digest)
        except IntegrityError:
            return ()

    def _standing(self, artifact: Digest) -> Iterable[Change | Settled]:
        """What an artifact left; where people decided, their word instead of the change."""
        manifest = self._store.get(artifact)
        left: dict[str, Change | Settled] = {one.path: one for one in changes_in(manifest)}
        return (left | {one.path: one for one in settled_in(manifest)}).values()

    def _is_at(self, step: StepId, other: StepId) -> bool:
        """Whether the other one is this step, or below it."""
        if step == other:
            return True
        if step not in self._below:
            assert self._graph is not None  # _known came first
            self._below[step] = self._graph.below([step])
        return other in self._below[step]


class _Read:
    """What one step reads, as it was observed, and where its paths and words lead."""

    def __init__(
        self, step: Step, parts: Parts, survey: Survey, get: Callable[[Digest], bytes]
    ) -> None:
        self._root = survey.root
        self._step = step
        self._parts = parts
        self._survey = survey
        self._get = get
        self._landed: dict[str, str] = {}
        self._then: _Seen | None = None
        self._older: _Writes = _NONE
        self.unruled: set[StepId] = set()  # they changed rules, and what those were before is gone

    def without(
        self,
        writes: _Writes,
        counts: Callable[[StepId], bool],
        then: Parts | None = None,
        older: _Writes = _NONE,
    ) -> Parts | None:
        """The parts without those of the writes whose steps count; None if that changes nothing.

        If it is known what the step saw `then`, nothing is taken back further than that; what lay there may
        come from `older` writes, too.
        """
        if not writes:
            return None
        self._then, self._older = None if then is None else _Seen(then), older
        parts, step = self._parts, self._step
        if rules := self._rules(writes, counts):
            parts = self._survey.under(rules).observe(step, lenient=True).parts
        inputs, files = parts.get("inputs"), parts.get("files")
        changed = parts != self._parts
        found = dict(parts)
        if isinstance(inputs, Mapping):
            declared = self._inputs(inputs, writes, counts)
            changed, found["inputs"] = changed or declared != inputs, declared
        if step.uses == "shell" or isinstance(files, Mapping):
            named_now = files if isinstance(files, Mapping) else {}
            named = self._files(named_now, writes, counts)
            changed, found["files"] = changed or named != named_now, named
        if not changed:
            return None
        return {
            name: part for name, part in found.items() if part or name not in {"inputs", "files"}
        }

    def _rules(self, writes: _Writes, counts: Callable[[StepId], bool]) -> dict[str, bytes | None]:
        """The `.gitignore` files as they were, which decide what globs match, where writes changed them."""
        found: dict[str, bytes | None] = {}
        if not self._step.inputs:
            return found
        for path, some in writes.items():
            if os.path.basename(path) != RULES:
                continue
            with suppress(EditError):  # no file lies there
                digest, _ = self._survey.digest(path)
                is_seen = reads(self._step, path)
                first = self._before(path, digest, some, counts, is_seen=is_seen)
                try:
                    if first is not None:
                        found[path] = None if first.base is None else self._get(first.base)
                except IntegrityError:  # purged, or lost
                    self.unruled |= {write.step for write in some if counts(write.step)}
        return found

    def _before(
        self,
        path: str,
        now: str | None,
        some: Sequence[_Write],
        counts: Callable[[StepId], bool],
        *,
        is_seen: bool = True,
    ) -> Change | Settled | None:
        """The first of the changes that led to the present content and that count for the step.

        Others may lie in between: a step that goes on from what this one left, or was put over it. What the
        step saw then was before all that counts, if it sees the file.
        """
        then = None if self._then is None else self._then.at(path)
        is_known = is_seen and self._then is not None
        if is_known and then == now:
            return None
        left, held = list(some), {now}
        first = next((one.stands for one in some if _gave_way(self._step, now, one)), None)
        older = self._older.get(some[0].stands.path, ())
        while write := next((one for one in left if one.stands.digest in held), None):
            left.remove(write)
            left += [one for one in older if one.step != self._step.id]  # it went on from these
            older = ()
            held.update(write.over)
            if counts(write.step):
                first = write.stands
                if is_known and first.base == then:
                    break
        return first

    def _inputs(
        self, inputs: Mapping[str, Json], writes: _Writes, counts: Callable[[StepId], bool]
    ) -> dict[str, Json]:
        found = dict(inputs)
        for path, seen in inputs.items():
            now, *more = seen if isinstance(seen, list) else (None,)
            target = more[1:]
            some = writes.get(path) or writes.get(self._lands(path, is_link=bool(target)))
            first = (
                self._before(path, None if now is None else str(now), some, counts)
                if some
                else None
            )
            if first is None:
                continue
            if first.base is None and not target:
                found.pop(path)
            else:
                found[path] = [first.base, first.base_executable, *target]
        is_read = reader(self._step)
        for path, some in writes.items():
            if path not in inputs and any(map(_removes, some)) and is_read(path):
                gone = self._before(path, None, some, counts)
                if gone is not None and gone.base is not None:
                    found[path] = [gone.base, gone.base_executable]
        return found

    def _files(
        self, files: Mapping[str, Json], writes: _Writes, counts: Callable[[StepId], bool]
    ) -> dict[str, Json]:
        found = dict(files)
        for path, seen in files.items():
            now, _, _ = str(seen).partition("+")
            some = writes.get(path) or writes.get(self._lands(path, is_link=True))
            first = self._before(path, now, some, counts) if some else None
            if first is not None and first.base is not None:
                found[path] = _spelled(first)
            elif first is not None:
                found.pop(path)
        for path in self._words:
            if path in files:
                continue  # it stands there still
            some = writes.get(path) or writes.get(self._lands(path, is_link=True))
            gone = self._before(path, None, some, counts) if some else None
            if gone is not None and gone.base is not None and not reads(self._step, path):
                found[path] = _spelled(gone)  # named, and removed since
        return found

    def _lands(self, path: str, *, is_link: bool) -> str:
        """Where a path leads to; of a file that is none itself its directory may be a link."""
        if path not in self._landed:
            place, name = os.path.split(path)
            if is_link or not place:
                self._landed[path] = reached(self._root, path) if is_link else path
            else:
                self._landed[path] = f"{self._lands(place, is_link=True)}/{name}"
        return self._landed[path]

    @cached_property
    def _words(self) -> set[str]:
        """The paths that the words of its command lead to."""
        words = self._step.run or shell_words(self._step.shell)
        places = (place_of(self._root, word) for word in words if "\0" not in word)
        return {os.path.relpath(place, self._root) for place in places}


class _Seen:
    """What lay at each path that a step saw."""

    def __init__(self, parts: Parts) -> None:
        inputs, files = parts.get("inputs"), parts.get("files")
        self._inputs = inputs if isinstance(inputs, Mapping) else {}
        self._files = files if isinstance(files, Mapping) else {}

    def at(self, path: str) -> Digest | None:
        seen = self._inputs.get(path)
        if isinstance(seen, list):
            return None if seen[0] is None else Digest(str(seen[0]))
        named = self._files.get(path)
        return None if named is None else Digest(str(named).partition("+")[0])


def _gave_way(step: Step, now: str | None, write: _Write) -> bool:
    """Whether a version lies there again that people put behind another one in a conflict of the step."""
    return isinstance(write.stands, Settled) and write.step == step.id and now in write.over


def _removes(write: _Write) -> bool:
    """Whether a file may be gone because of this."""
    return write.stands.digest is None or None in write.over


def _over(one: Change | Settled) -> tuple[Digest | None, ...]:
    if isinstance(one, Settled):
        return one.over
    return (one.base,) if one.over is None else (one.over, one.base)


def _spelled(change: Change | Settled) -> str:
    assert change.base is not None  # asked before
    return f"{change.base}+x" if change.base_executable else change.base


def reads(step: Step, path: str) -> bool:
    """Whether a step declares that it reads this path."""
    return reader(step)(path)


def reader(step: Step) -> Callable[[str], bool]:
    """Whether a step declares that it reads a path, for many paths."""
    globs = [item.glob for item in step.inputs]
    places = [glob.rstrip("/") for glob in globs if is_plain(glob)]
    patterns = [glob_regex(glob) for glob in globs if not is_plain(glob)]

    def is_read(path: str) -> bool:
        if any(path == place or path.startswith(f"{place}/") for place in places):
            return True
        return any(pattern.match(path) for pattern in patterns)

    return is_read
