"""What a step reads, as it was before steps of the plan changed it themselves.

A step that changes project files would otherwise never stand: what it changed is often what it reads, and
what it was made from. So for the question whether an artifact stands, every file that holds exactly what
the step, or one below it, left there counts with the content that this one began with. Anything else, and
any edit on top of it, counts as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from holdfast.core.waves import Graph, graph_of
from holdfast.errors import IntegrityError
from holdfast.model.artifact import Artifact
from holdfast.model.changeset import Change, changes_in
from holdfast.model.digest import Json
from holdfast.model.glob import glob_regex, is_plain
from holdfast.model.plan import Plan, Step, StepId
from holdfast.ports import Store
from holdfast.process.room import shell_words


class _Write(NamedTuple):
    """A change of the newest artifact of a step."""

    rank: int
    step: StepId
    change: Change


class Unwinder:
    """Takes back what steps of one plan changed, in what was observed for keys."""

    def __init__(
        self, store: Store, plan: Plan, newest: Callable[[StepId], Artifact | None]
    ) -> None:
        self._store = store
        self._plan = plan
        self._newest = newest
        self._steps = [s for s, step in plan.steps.items() if step.changes_copy]
        self._writes: dict[str, list[_Write]] | None = None
        self._graph: Graph | None = None
        self._below: dict[StepId, set[StepId]] = {}

    @property
    def is_idle(self) -> bool:
        """Whether no step of the plan changes files in copies."""
        return not self._steps

    def forget(self) -> None:
        """The newest artifacts may be others now."""
        self._writes = None

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
                for change in self._changes(self._newest(step_id)):
                    write = _Write(self._graph.rank[step_id], step_id, change)
                    self._writes.setdefault(change.path, []).append(write)
            for some in self._writes.values():
                some.sort(key=lambda write: -write.rank)
        return self._writes

    def _changes(self, artifact: Artifact | None) -> tuple[Change, ...]:
        if artifact is None or artifact.form != "tree":
            return ()
        try:
            return changes_in(self._store.get(artifact.digest))
        except IntegrityError:  # purged
            return ()

    def _counts(self, step: StepId, write: _Write) -> bool:
        if step == write.step:
            return True
        if step not in self._below:
            assert self._graph is not None  # _known came first
            self._below[step] = self._graph.below([step])
        return write.step in self._below[step]

    def _before(self, step: Step, path: str, now: str | None, some: list[_Write]) -> Change | None:
        """The first of the changes that led to the present content and that count for a step.

        Others may lie in between: a step that goes on from what this one left, or was put over it.
        """
        first, left = None, list(some)
        while write := next((one for one in left if one.change.digest == now), None):
            left.remove(write)
            now = write.change.over or write.change.base
            if self._counts(step.id, write):
                first = write.change
        return first

    def _inputs(
        self, step: Step, inputs: Mapping[str, Json], writes: Mapping[str, list[_Write]]
    ) -> dict[str, Json]:
        found = dict(inputs)
        for path, some in writes.items():
            seen = inputs.get(path)
            if seen is None and not _matches(step, path):
                continue
            now = str(seen[0]) if isinstance(seen, list) else None
            first = self._before(step, path, now, some)
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
            first = self._before(step, path, now, writes.get(path, []))
            if first is None:
                found[path] = seen
            elif first.base is not None:
                found[path] = _spelled(first)
        for path in {os.path.normpath(word) for word in step.run or shell_words(step.shell)}:
            gone = None if path in files else self._before(step, path, None, writes.get(path, []))
            if gone is not None and gone.base is not None:  # named, and removed since
                found[path] = _spelled(gone)
        return found


def _spelled(change: Change) -> str:
    assert change.base is not None  # asked before
    return f"{change.base}+x" if change.base_executable else change.base


def _matches(step: Step, path: str) -> bool:
    for item in step.inputs:
        if is_plain(item.glob):
            place = item.glob.rstrip("/")
            if path == place or path.startswith(f"{place}/"):
                return True
        elif glob_regex(item.glob).match(path):
            return True
    return False
