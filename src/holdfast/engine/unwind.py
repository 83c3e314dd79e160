"""What a step reads, as it was before steps of the plan changed it themselves.

A step that changes project files would otherwise never stand: what it changed is often what it reads, and
what it was made from. So for the question whether an artifact stands, every file that holds exactly what
the step, or one below it, left there counts with the content that this one began with. So does a file
about which people settled a conflict that the step was in, while it holds what they decided. Anything
else, and any edit on top of it, counts as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from holdfast.core.waves import Graph, graph_of
from holdfast.engine.additions import Additions
from holdfast.errors import IntegrityError
from holdfast.model.artifact import Artifact
from holdfast.model.changeset import Change, Settled, changes_in, settled_in
from holdfast.model.digest import Digest, Json
from holdfast.model.glob import glob_regex, is_plain
from holdfast.model.plan import Plan, Step, StepId
from holdfast.ports import Store
from holdfast.process.room import shell_words


class _Write(NamedTuple):
    """What stands at a path by the newest artifact of a step, and what it stands over."""

    rank: int
    step: StepId
    stands: Change | Settled
    over: tuple[Digest | None, ...]


class Unwinder:
    """Takes back what steps of one plan changed, in what was observed for keys."""

    def __init__(
        self, store: Store, plan: Plan, newest: Callable[[StepId], Artifact | None]
    ) -> None:
        self._store = store
        self._given = plan
        self._newest = newest
        self._additions: Additions | None = None
        self.grow(plan)

    def grow(self, plan: Plan) -> None:
        """The plan has further steps."""
        self._given = plan
        self._plan = self._foreseen(plan)
        self._steps = [s for s, step in self._plan.steps.items() if step.changes_copy]
        self.is_idle = not self._steps  # no step changes files in copies
        self._writes: dict[str, list[_Write]] | None = None
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
        self._writes = None

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

    def taken_back(self, step: Step, parts: Mapping[str, Json]) -> Mapping[str, Json] | None:
        """The observed parts without the changes of this step and of those below it; None if none count."""
        writes = self._known()
        inputs, files = parts.get("inputs"), parts.get("files")
        changed = False
        found = dict(parts)
        if isinstance(inputs, Mapping):
            then = self._inputs(step, inputs, writes)
            changed, found["inputs"] = then != inputs, then
        if step.uses == "shell" or isinstance(files, Mapping):
            named_now = files if isinstance(files, Mapping) else {}
            named = self._files(step, named_now, writes)
            changed, found["files"] = changed or named != named_now, named
        if not changed:
            return None
        return {
            name: part for name, part in found.items() if part or name not in {"inputs", "files"}
        }

    def _known(self) -> dict[str, list[_Write]]:
        """The writes at each path, the last step of the plan first."""
        if self._writes is None:
            self._graph = self._graph or graph_of(self._plan)
            self._writes = {}
            for step_id in self._steps:
                for one in self._standing(self._newest(step_id)):
                    write = _Write(self._graph.rank[step_id], step_id, one, _over(one))
                    self._writes.setdefault(one.path, []).append(write)
            for some in self._writes.values():
                some.sort(key=lambda write: -write.rank)
        return self._writes

    def _standing(self, artifact: Artifact | None) -> Iterable[Change | Settled]:
        """What an artifact left; where people decided, their word instead of the change."""
        if artifact is None or artifact.form != "tree":
            return ()
        try:
            manifest = self._store.get(artifact.digest)
        except IntegrityError:  # purged
            return ()
        left: dict[str, Change | Settled] = {one.path: one for one in changes_in(manifest)}
        return (left | {one.path: one for one in settled_in(manifest)}).values()

    def _counts(self, step: StepId, write: _Write) -> bool:
        if step == write.step:
            return True
        if step not in self._below:
            assert self._graph is not None  # _known came first
            self._below[step] = self._graph.below([step])
        return write.step in self._below[step]

    def _before(self, step: Step, now: str | None, some: list[_Write]) -> Change | Settled | None:
        """The first of the changes that led to the present content and that count for a step.

        Others may lie in between: a step that goes on from what this one left, or was put over it.
        """
        left, held = list(some), {now}
        first = next((one.stands for one in some if _gave_way(step, now, one)), None)
        while write := next((one for one in left if one.stands.digest in held), None):
            left.remove(write)
            held.update(write.over)
            if self._counts(step.id, write):
                first = write.stands
        return first

    def _inputs(
        self, step: Step, inputs: Mapping[str, Json], writes: Mapping[str, list[_Write]]
    ) -> dict[str, Json]:
        found = dict(inputs)
        for path, some in writes.items():
            seen = inputs.get(path)
            if seen is None and not reads(step, path):
                continue
            now = str(seen[0]) if isinstance(seen, list) else None
            first = self._before(step, now, some)
            if first is None:
                continue
            if first.base is None:
                found.pop(path, None)
            else:
                found[path] = [first.base, first.base_executable]
        return found

    def _files(
        self, step: Step, files: Mapping[str, Json], writes: Mapping[str, list[_Write]]
    ) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for path, seen in files.items():
            now, _, _ = str(seen).partition("+")
            first = self._before(step, now, writes.get(path, []))
            if first is None:
                found[path] = seen
            elif first.base is not None:
                found[path] = _spelled(first)
        for path in {os.path.normpath(word) for word in step.run or shell_words(step.shell)}:
            if path in files or reads(step, path):
                continue  # it stands there still, or among the inputs
            gone = self._before(step, None, writes.get(path, []))
            if gone is not None and gone.base is not None:  # named, and removed since
                found[path] = _spelled(gone)
        return found


def _gave_way(step: Step, now: str | None, write: _Write) -> bool:
    """Whether a version lies there again that people put behind another one in a conflict of the step."""
    return isinstance(write.stands, Settled) and write.step == step.id and now in write.over


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
