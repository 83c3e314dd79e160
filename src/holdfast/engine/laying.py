"""What lies in the copy of the project that an attempt works in: inputs, needed files, earlier changes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from holdfast.core.state import State
from holdfast.engine.copies import Copy
from holdfast.engine.furnish import furnish, named_in, write_file
from holdfast.engine.outputs import Outputs
from holdfast.engine.taking import Taker
from holdfast.engine.unwind import reader
from holdfast.engine.world import World
from holdfast.model.digest import Json
from holdfast.model.glob import is_plain
from holdfast.model.plan import Step, StepId
from holdfast.ports import Candidate
from holdfast.process.inside import read_inside
from holdfast.process.room import named_files, shell_words

_MOST_LINKS = 40  # that lead to one file, as in the kernel


class Laid(NamedTuple):
    """A file for a copy; without content there shall be none."""

    path: str
    content: bytes | None
    executable: bool = False


class Layer:
    """Lays out copies for the attempts of one run."""

    def __init__(self, world: World, state: State, outputs: Outputs, taker: Taker) -> None:
        self._world = world
        self._state = state
        self._outputs = outputs
        self._taker = taker

    def scratch(self, step: Step, folder: str, seen: Mapping[str, Json]) -> None:
        """Fill a fresh directory: declared inputs, files named by the command, files of needed steps."""
        furnish(folder, self._world.root, seen)
        for need in step.data_needs:
            for laid in (*self._outputs_of(need), *self._changes_of(need)):
                if laid.content is not None:
                    write_file(folder, laid.path, laid.content, executable=laid.executable)
                elif _is_file(place := os.path.join(folder, laid.path)):
                    os.unlink(place)

    def worktree(self, step: Step, copy: Copy, seen: Mapping[str, Json]) -> None:
        """Lay over the files of a commit: declared inputs, and what the steps above left in the project."""
        for path in self._gone(step, copy):
            copy.take_away(copy.prefix + path)
        for path in named_in(seen):
            self._put(copy, self._present(path))
        for above in self._taker.above(step.id):
            for laid in self._changes_of(above):
                self._put(copy, laid)
            for laid in self._outputs_of(above):
                mine = above in step.data_needs
                self._put(copy, laid if mine else self._present(laid.path))

    def _gone(self, step: Step, copy: Copy) -> list[str]:
        """What the step or its guards would read of the commit, though the project does not have it any more.

        Links count as far as they lead there: each of them, and the file at their end.
        """
        root, prefix, is_read = self._world.root, copy.prefix, reader(step)
        there = {
            path.removeprefix(prefix)
            for path in (*copy.files, *copy.links)
            if path.startswith(prefix)
        }
        words = (step.run or shell_words(step.shell)) if step.uses == "shell" else ()
        globs = [item.glob for item in step.inputs if is_plain(item.glob)]
        named = named_files([*words, *globs], copy.folder).get("files", ())
        judged = Step(step.id, guards=step.guards, schema=step.schema)
        judging = named_in(self._world.executor.identity(judged, copy.folder))
        read = {path for path in there if is_read(path)}.union(named, judging)
        lost = [path for path in read if not os.path.isfile(os.path.join(root, path))]
        ways = {place for path in lost for place in _way(copy.folder, path)}
        return [path for path in ways & there if not _is_same(copy.folder, root, path)]

    def candidate(self, copy: Copy, candidate: Candidate) -> None:
        """Put a kept candidate where its guards look."""
        for file in candidate.files:
            self._put(copy, Laid(file.path, file.content, file.executable))
        for change in candidate.changes:
            if change.digest is None:
                self._put(copy, Laid(change.path, None))

    def _put(self, copy: Copy, laid: Laid) -> None:
        path = copy.prefix + laid.path
        if laid.content is None:
            copy.take_away(path)
        else:
            copy.put(path, laid.content, executable=laid.executable)

    def _outputs_of(self, step_id: StepId) -> Iterator[Laid]:
        """The files at the outputs of a complete step, from the store."""
        above, done = self._state.plan.steps[step_id], self._state.steps[step_id]
        if above.produces and done.digest is not None:
            for entry in self._outputs.wanted(above, done.digest, done.form):
                content = self._world.store.get(entry.digest)
                yield Laid(entry.path, content, entry.executable)

    def _changes_of(self, step_id: StepId) -> Iterator[Laid]:
        """The project files that a complete step changed, as they are now: they may have gone on."""
        above, done = self._state.plan.steps[step_id], self._state.steps[step_id]
        if above.changes_copy and done.digest is not None:
            for change in self._taker.changes(done.digest):
                yield self._present(change.path)

    def _present(self, path: str) -> Laid:
        try:
            return Laid(path, *read_inside(self._world.root, path, self._world.walls.artifact))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return Laid(path, None)


def _is_file(path: str) -> bool:
    return os.path.islink(path) or os.path.isfile(path)


def _is_same(folder: str, root: str, path: str) -> bool:
    """Whether a project has a file where its copy has one, or the same link."""
    here, there = os.path.join(folder, path), os.path.join(root, path)
    if os.path.islink(here):
        return os.path.islink(there) and os.readlink(here) == os.readlink(there)
    return os.path.isfile(there)


def _way(top: str, path: str) -> Iterator[str]:
    """The links that a path leads over, and where they end, as long as that is beneath the top."""
    rest, place, links = path.split("/"), "", 0
    while rest and links <= _MOST_LINKS:
        place = os.path.normpath(os.path.join(place, rest.pop(0)))
        if place == "..":
            return
        full = os.path.join(top, place)
        if os.path.islink(full):
            yield place
            target, links = os.readlink(full), links + 1
            if target.startswith("/"):
                return
            rest, place = [*target.split("/"), *rest], os.path.dirname(place)
    yield place
