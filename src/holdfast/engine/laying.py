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
from holdfast.model.plan import Step, StepId
from holdfast.ports import Candidate
from holdfast.process.inside import read_inside
from holdfast.process.room import named_files, shell_words


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
        """What the step would read of the commit, though it is not in the project any more."""
        words = step.run or shell_words(step.shell)
        named = named_files(words, copy.folder).get("files", ()) if step.uses == "shell" else ()
        is_read, root, prefix = reader(step), self._world.root, copy.prefix
        there = [*copy.files, *copy.links]
        paths = [path.removeprefix(prefix) for path in there if path.startswith(prefix)]
        return [
            path
            for path in paths
            if (path in named or is_read(path)) and not _is_file(os.path.join(root, path))
        ]

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
