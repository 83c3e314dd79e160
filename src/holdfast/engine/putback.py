"""Puts output paths back to what was there before an attempt that did not make it; loses nobody's bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from holdfast.engine.outputs import Kept, Outputs
from holdfast.engine.world import World
from holdfast.errors import EditError, StoreError, outside_fault
from holdfast.model.artifact import Entry
from holdfast.model.plan import Step

MOST = 5


class PutBack(NamedTuple):
    """What was written again, what was removed because it was not there before, and all that was kept."""

    restored: tuple[str, ...]
    removed: tuple[str, ...]
    kept: Kept

    @property
    def left(self) -> str:
        """The digest that shows what the attempt left: of the one file, or of the list of them."""
        changed = {*self.restored, *self.removed}
        files = [entry for entry in self.kept.entries if entry.path in changed]
        if not files:
            return ""
        return files[0].digest[:12] if len(files) == 1 else self.kept.digest[:12]

    def words(self, step: Step) -> Iterator[str]:
        """What a person is told."""
        acts = [("put back", self.restored), ("removed", self.removed)]
        done = [f"{act} {_names(paths)}" for act, paths in acts if paths]
        if done:
            left = self.left
            kept = f"; what it left is kept as {left}: holdfast show {left}" if left else ""
            yield f"{step.id}: {', '.join(done)}{kept}"

    def doubt(self, step: Step) -> Iterator[str]:
        """What a person is told if nobody watched: it may have been he who wrote there."""
        if left := self.left:
            path = self.restored + self.removed
            where = f" > {path[0]}" if len(path) == 1 else ""
            yield f"  if it was you who wrote that since: let '{step.id}' run, put yours in place again"
            yield f"  (holdfast show {left}{where}), then holdfast amend {step.id}"


def _names(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MOST} more" if len(paths) > MOST else ""
    return ", ".join(paths[:MOST]) + more


def put_back(
    world: World, outputs: Outputs, step: Step, entries: Sequence[Entry], key: str
) -> PutBack | None:
    """Store what lies at the step's outputs, then let these files lie there; None if they do already.

    A link that the attempt left is removed, its target stored. Where something cannot be stored, the
    files that were there before are still put back, one by one; the rest stays, and is told of.
    """
    links = outputs.take_special(step.produces)
    paths = list(_readable(world, outputs, step, entries))
    kept = outputs.keep_paths(paths, links)
    wanted = [e for e in entries if any(e.path == p or e.path.startswith(f"{p}/") for p in paths)]
    changes = outputs.changes(paths, wanted)
    if not changes and not links:
        return None
    _store(world, kept)
    try:
        outputs.write(changes, key)
    except (
        EditError
    ):  # a file where a directory was, a second name of a file: nothing to be kept there
        kept = outputs.keep_paths(paths, links)
        _store(world, kept)
        outputs.force(paths, wanted, key)
    touched = sorted({change.path for change in changes} | {link.path for link in links})
    before = {entry.path for entry in wanted}
    return PutBack(
        tuple(path for path in touched if path in before),
        tuple(path for path in touched if path not in before),
        kept,
    )


def _readable(
    world: World, outputs: Outputs, step: Step, entries: Sequence[Entry]
) -> Iterator[str]:
    """The output paths that can be stored; beneath the others, the files that were there before."""
    for path in step.produces:
        fault = _fault(outputs, path)
        if fault is None:
            yield path
            continue
        world.say(f"{step.id}: '{path}' is not put back as a whole: {fault}")
        for entry in entries:
            if entry.path.startswith(f"{path}/") and _fault(outputs, entry.path) is None:
                yield entry.path


def _fault(outputs: Outputs, path: str) -> str | None:
    """Why what lies there cannot be stored; what the machine refuses for now is not the path's fault."""
    try:
        outputs.check(path)
    except (EditError, StoreError) as error:
        if error.__cause__ is not None and outside_fault(error.__cause__) is not None:
            raise
        return str(error)
    return None


def _store(world: World, kept: Kept) -> None:
    """Stored before anything is written over it."""
    for digest, content in kept.blobs:
        if not world.store.has(digest):
            world.store.put(content)
