"""The scribe: folds facts, queues them, and commits them in groups.

State in memory may be ahead of the disk by what is queued, never the other way round. One commit is under
way at a time; whoever asked is told when it is stored, with what goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from holdfast.core.decide import fail
from holdfast.core.fold import apply, extend
from holdfast.core.state import State
from holdfast.engine.commit import Writer
from holdfast.engine.hold import Hold
from holdfast.engine.lines import line_journal
from holdfast.engine.outputs import Outputs
from holdfast.engine.pending import Pending
from holdfast.engine.result import Result, Told
from holdfast.engine.world import World
from holdfast.errors import ConflictError, LockedError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.event import (
    ConflictFound,
    Event,
    Reason,
    Recorded,
    Reused,
    RunEvent,
    StepsReused,
)
from holdfast.model.line import LineEvent
from holdfast.model.plan import StepId
from holdfast.ports import Append, Batch, ClaimKey

MOST_REUSED = 1000
QUICK_MS = 2  # a commit that takes no longer is not worth handing over, also while attempts run

Stored = Callable[[BaseException | None, Pending], None]


class Scribe:
    """Writes the journal of one run, for the engine that has the run under `fence`."""

    def __init__(
        self, world: World, state: State, fence: int, hold: Hold, outputs: Outputs
    ) -> None:
        self._world = world
        self._state = state
        self._fence = fence
        self._hold = hold
        self._outputs = outputs
        self.writer = world.writer() if world.writer is not None else Writer()
        self.pending = Pending()
        self.committing = False
        self._committed = state.seq
        self._storing: list[tuple[Digest, bytes]] = []
        self._indexing: list[Artifact] = []
        self.releasing: list[tuple[ClaimKey, int]] = []  # claims that a commit under way gives up
        self._took = 0

    # --- queueing ---------------------------------------------------------------------------------

    def append(self, event: RunEvent, at: int | None = None) -> None:
        """Fold an event and queue it for the next commit."""
        if self.pending.reused:
            self._close_reused()
        state = self._state
        moment = self._world.clock() if at is None else at
        if moment == state.last_at:
            moment = state.last_at  # one number for all that happened then: a run keeps a million
        recorded = Recorded(state.seq + 1, moment, event)
        apply(state, recorded)
        self.pending.events.append(recorded)

    def record(self, events: Iterable[RunEvent]) -> None:
        """Append several; who finds a conflict also hears whether people decided it before."""
        for event in events:
            self.append(event)
            if isinstance(event, ConflictFound):
                self._hold.has_news = True

    def fail(self, step_id: StepId, reason: Reason, said: Digest | None = None) -> None:
        """A step failed, with everything that follows from that."""
        self.record(fail(self._state, step_id, reason, said))

    def reuse(self, item: Reused) -> None:
        """Fold a reuse; reuse after reuse becomes one event."""
        if 0 < len(self.pending.reused) < MOST_REUSED:
            extend(self._state, item)
        else:
            self.append(StepsReused((item,)))
        self.pending.reused.append(item)

    def tell(self, told: Told) -> None:
        """Record conflicts, or how they were settled."""
        self.pending.blobs += told.blobs
        self.record(told.events)

    def take(self, result: Result) -> None:
        """Queue what an ended attempt leaves beside its events."""
        self.pending.blobs += result.blobs
        self.pending.artifacts += result.artifacts
        self.pending.superseded += result.superseded
        self.pending.applied += result.applied
        self.pending.words += result.words
        self.pending.wrote += result.wrote

    def content(self, digest: Digest) -> bytes:
        """A content that was stored, or that goes with a commit which is still to come."""
        queued = (*self.pending.blobs, *self._storing)
        found = next((content for name, content in queued if name == digest), None)
        return self._world.store.get(digest) if found is None else found

    def rows(self) -> Sequence[Artifact]:
        """The rows of the index that are queued, or go with a commit that is under way."""
        return [*self._indexing, *self.pending.artifacts]

    @property
    def places_files(self) -> bool:
        """Whether files of the project may be under way that no stored fact names yet."""
        return bool(self.pending.applied) or self.committing

    @property
    def has_said_all(self) -> bool:
        """Whether every event is stored."""
        return not self.committing and not self.pending.events

    def _close_reused(self) -> None:
        """Let the last event have all that was gathered for it."""
        pending = self.pending
        if len(pending.reused) > 1:
            whole = StepsReused(tuple(pending.reused))
            pending.events[-1] = pending.events[-1]._replace(event=whole)
        pending.reused.clear()

    # --- committing -------------------------------------------------------------------------------

    def flush(self, stored: Stored, *, busy: bool) -> None:
        """Commit what is queued, unless a commit is under way; `stored` is told how that ended.

        `busy` says that attempts run, which a slow commit must not keep from being heard.
        """
        if self.committing:
            return
        self._close_reused()
        pending = self.pending
        if not pending.events and not pending.released:
            return
        self.pending = Pending()
        self.committing, self._storing = True, pending.blobs
        self.releasing = pending.released
        self._indexing = pending.artifacts
        batch = self._batch(pending)
        beside = busy and (self._hold.sharing or self._took > QUICK_MS)
        if not beside and self.writer.is_idle:
            error: BaseException | None = None
            try:
                self._store(batch, pending.wrote, pending.said, wait=False)
            except LockedError:  # attempts, signals and the heart are not kept waiting
                beside = True
            except BaseException as raised:  # noqa: BLE001 - an engine that cannot store is over
                error = raised
            if not beside:
                self._stored(error, pending, stored)
                return
        future = self.writer.call(self._store, batch, pending.wrote, pending.said)
        future.add_done_callback(lambda done: self._stored(_error_of(done), pending, stored))

    def _batch(self, pending: Pending) -> Batch:
        appends = []
        if pending.events:
            facts: list[tuple[int, Event]] = [(item.at, item.event) for item in pending.events]
            appends.append(Append(f"run:{self._state.run}", self._committed, facts, self._fence))
        return Batch(
            appends,
            pending.artifacts,
            pending.blobs,
            pending.held,
            pending.released,
            superseded=pending.superseded,
        )

    def _store(
        self,
        batch: Batch,
        wrote: Sequence[str],
        said: Sequence[tuple[int, LineEvent]],
        *,
        wait: bool = True,
    ) -> None:
        """Files of steps first, then the facts that name them."""
        began = self._world.clock()
        self._outputs.secure(wrote)
        if said:
            self._store_and_tell(batch, said, wait=wait)
        else:
            self._world.store.commit(batch, wait=wait)
        self._took = self._world.clock() - began

    def _store_and_tell(
        self, batch: Batch, said: Sequence[tuple[int, LineEvent]], *, wait: bool
    ) -> None:
        """The same with what the line has to know, to which others write too."""
        store, journal = self._world.store, line_journal(self._state.project, self._state.line)
        while True:
            last = store.last(journal)
            try:
                appends = [*batch.appends, Append(journal, last, said)]
                store.commit(replace(batch, appends=appends), wait=wait)
            except ConflictError:
                if store.last(journal) == last:
                    raise
                continue
            return

    def _stored(self, error: BaseException | None, pending: Pending, stored: Stored) -> None:
        self.committing, self._storing, self._indexing = False, [], []
        self.releasing = []
        if error is None:
            self._committed += len(pending.events)
        stored(error, pending)


def _error_of(done: asyncio.Future[None]) -> BaseException | None:
    return asyncio.CancelledError() if done.cancelled() else done.exception()
