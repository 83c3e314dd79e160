"""What must be true of a disk after the power went away, asked in this process because it is asked often.

The store is opened and its runs are taken up again as the next command would begin to; then everything
that was told is there and verifies, the store is sound, and an edit is whole or did not happen.
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from holdfast.core.state import State
from holdfast.engine.audit import audit
from holdfast.engine.journals import read_state
from holdfast.engine.outputs import Outputs
from holdfast.engine.runs import resume_run
from holdfast.errors import HoldfastError, UsageError
from holdfast.model.artifact import tree_entries
from holdfast.model.digest import Digest
from holdfast.model.event import AttemptAccepted, RunEnded, StepsReused
from holdfast.model.plan import RunId, StepId
from holdfast.store.sqlite import SqliteStore
from holdfast.wire import Wishes, world_for
from tests.crash.faults import Answer
from tests.crash.power_disk import Cut, lay_out
from tests.crash.power_disk import State as Disk

RUN = re.compile(r"\br-[0-9a-f]{8}\b")
ENDED = re.compile(r"^(r-[0-9a-f]{8}) completed .*\n", re.MULTILINE)
SHARD = re.compile(r"(?:project/)?\.holdfast/blobs/[0-9a-f]{2}")
KEPT = re.compile(r"\bholdfast show ([0-9a-f]{12})\b.*\n")


class Told(NamedTuple):
    """What a person was told in whole lines."""

    steps: frozenset[str]
    runs: frozenset[str]
    ended: frozenset[str]
    contents: frozenset[str]


def told_by(answer: Answer) -> Told:
    text = answer.err + answer.out
    return Told(
        frozenset(answer.acknowledged),
        frozenset(RUN.findall(text)),
        frozenset((*ENDED.findall(answer.err), *ENDED.findall(answer.out))),
        frozenset(KEPT.findall(text)),
    )


class Edit(NamedTuple):
    """The files that one edit changes together, before and after it."""

    old: Mapping[str, bytes]
    new: Mapping[str, bytes]


def part_of(state: Mapping[str, tuple[int, bytes | None]], *paths: str) -> dict[str, bytes]:
    """The files at and beneath some paths."""
    return {
        path: content
        for path, (_, content) in state.items()
        if content is not None
        and any(path == wanted or path.startswith(f"{wanted}/") for wanted in paths)
    }


def without_shards(state: Disk) -> Disk:
    """Without the directories for contents that are empty: a store makes them when it needs them.

    There are 256 of them, and each costs as much as a file. The real command gets them all.
    """
    used = {path.rpartition("/")[0] for path in state}
    return {path: file for path, file in state.items() if path in used or not SHARD.fullmatch(path)}


class Checker:
    """Lays states out in one directory, one after the other, and says what is wrong with each."""

    def __init__(self, place: Path, edits: Iterable[Edit] = ()) -> None:
        self._place = place
        self._edits = tuple(edits)

    def check(self, cut: Cut) -> tuple[str, list[str]]:
        """How far the store was, and every violation."""
        root = self._place / "project"
        lay_out(without_shards(cut.state), root)
        try:
            return self._looked(root, told_by(cut.told))
        except HoldfastError as error:
            return "refused", [f"{type(error).__name__}: {error}"]
        finally:
            shutil.rmtree(root)

    def _looked(self, root: Path, told: Told) -> tuple[str, list[str]]:
        store_place = root / ".holdfast"
        try:
            store = SqliteStore.open(str(store_place), create=False)
        except UsageError:
            SqliteStore.open(str(store_place), create=True).close()
            found = [f"told, and there is no store: {told}"] if any(told) else []
            return "no store", [*found, *_unmarked(store_place)]
        with store:
            rows = store.runs()
            found = [f"verify: {problem}" for problem in audit(store).problems]
            for row in [row for row in rows[-1:] if not row.line.startswith("ticket-")]:
                found += _misplaced(store, root, take_up(store, root, row.run), told)
            found += _missing(store, told)
        found += [*self._torn_edits(root), *_unmarked(store_place)]
        return "run" if rows else "no run", found

    def _torn_edits(self, root: Path) -> Iterator[str]:
        for old, new in self._edits:
            paths = {path.split("/")[0] for path in (*old, *new)}
            now = {
                str(path.relative_to(root)): path.read_bytes()
                for top in paths
                for path in (root / top, *(root / top).rglob("*"))
                if path.is_file()
            }
            if now not in (old, new):
                yield f"an edit is neither done nor undone: {sorted(now)}"


def _unmarked(store: Path) -> Iterator[str]:
    """What keeps a store out of version control and back-ups; the second is made with the first content."""
    ignore, tag = store / ".gitignore", store / "blobs" / "CACHEDIR.TAG"
    if not ignore.is_file() or ignore.read_bytes() != b"*\n":
        yield "'.gitignore' is lost, or lost its content"
    if tag.is_file() and not tag.read_bytes().startswith(b"Signature: 8a47"):
        yield "'CACHEDIR.TAG' lost its content"


def take_up(store: SqliteStore, root: Path, run: RunId) -> State:
    """Go as far as `resume` does before it starts anything."""
    state = read_state(store, run)
    assert state is not None, f"{run} has no journal"
    world = world_for(state.plan, str(root), str(root / ".holdfast"), store, Wishes())
    world = replace(world, sweep=lambda _: 0)  # no process outlives the power
    hold, _ = resume_run(world, run)
    hold.release()
    return state


def _misplaced(store: SqliteStore, root: Path, state: State, told: Told) -> Iterator[str]:
    """Files of accepted steps that are not what was accepted: they would count as a person's."""
    outputs = Outputs(str(root), "", store)
    for name in told.steps & state.steps.keys():
        step, done = state.plan.steps[StepId(name)], state.steps[StepId(name)]
        if step.produces and done.phase == "done" and done.digest is not None:
            wanted = outputs.wanted(step, done.digest, done.form)
            if outputs.changes(step.produces, wanted):
                yield f"told as accepted, but its files are others: {name}"


def _missing(store: SqliteStore, told: Told) -> Iterator[str]:
    accepted: dict[str, set[Digest]] = {}
    ended: set[str] = set()
    runs = {row.run for row in store.runs()}
    for run in runs:
        for recorded in store.read(f"run:{run}"):
            match recorded.event:
                case AttemptAccepted() as event:
                    accepted.setdefault(event.step, set()).add(event.digest)
                case StepsReused(items=items):
                    for item in items:
                        accepted.setdefault(item.step, set()).add(item.digest)
                case RunEnded("completed"):
                    ended.add(run)
                case _:
                    pass
    if lost := told.steps - accepted.keys():
        yield f"told as accepted, but not in the journal: {sorted(lost)}"
    for step in told.steps & accepted.keys():
        for digest in accepted[step]:
            yield from _unreadable(store, step, digest)
    for short in told.runs:
        if not any(run.startswith(short) for run in runs):
            yield f"told as a run, but not in the store: {short}"
    for short in told.ended:
        if not any(run.startswith(short) for run in ended):
            yield f"told as completed, but the journal says no such thing: {short}"
    known = tuple(store.blobs())
    for short in told.contents:
        if not any(digest.startswith(short) for digest in known):
            yield f"told as kept, but not in the store: {short}"


def _unreadable(store: SqliteStore, step: str, digest: Digest) -> Iterator[str]:
    try:
        content = store.get(digest)
        if content.startswith(b'{"files":'):
            for entry in tree_entries(content):
                store.get(entry.digest)
    except HoldfastError as error:
        yield f"told as accepted, but its content is lost: {step}: {error}"
