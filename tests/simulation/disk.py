"""Where a simulated machine keeps its store, and the seat from which a process uses it.

Two disks. In memory, a commit is atomic and what it made true stays: a crash falls between calls. On
SQLite, the real `SqliteStore` works on files in memory-backed storage, a connection for each process;
when the power fails in the middle of a commit, of the pages that it had not synced yet each sector is
there or not, as the seed says, and the next process opens what is left. The journal of the database is
the only file that a commit writes between two checkpoints, so nothing else can be torn.
"""

import asyncio
import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar, cast

from holdfast.engine.commit import P, Writer
from holdfast.errors import StoreError
from holdfast.model.event import CallAnswered
from holdfast.model.plan import RunId
from holdfast.ports import Batch, ClaimKey, Holder, Store
from holdfast.store.memory import MemoryStore
from holdfast.store.sqlite import SqliteStore
from holdfast.testing import PassingStore
from tests.simulation.machine import Killed, Machine, Process
from tests.simulation.platter import failing, rough_files
from tests.simulation.watch import Watch

T = TypeVar("T")
SECTOR = 512
LAZY = frozenset(
    {"artifacts", "blobs", "check", "chunks", "read", "stored", "told"}
)  # give iterators


class Disk(Protocol):
    """Keeps what was committed."""

    def open(self) -> Store:
        """The store, as a process opens it."""

    def cut(self, commit: Callable[[], None]) -> None:
        """The power fails in the middle of this commit."""

    def close(self) -> None:
        """The simulation is over."""


class MemoryDisk:
    """A store in memory."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._store = MemoryStore(machine.wall)

    def open(self) -> Store:
        return self._store

    def cut(self, commit: Callable[[], None]) -> None:
        if self._machine.random.random() < 0.5:
            commit()

    def close(self) -> None:
        """Nothing to give back."""


class SqliteDisk:
    """The real store on files; `template` is a store that was just made. A `rough` disk can fail."""

    def __init__(self, machine: Machine, folder: str, template: str, *, rough: bool) -> None:
        self._machine = machine
        self._rough = rough
        self._folder = folder
        self._epoch = 0
        self._opened: list[SqliteStore] = []
        shutil.copytree(template, self._place)

    @property
    def _place(self) -> str:
        return os.path.join(self._folder, f"store-{self._epoch}")

    def open(self) -> Store:
        with rough_files() if self._rough else contextlib.nullcontext():
            store = SqliteStore.open(self._place, create=False, kind_of_disk=lambda _: "")
        self._opened.append(store)
        return store

    def cut(self, commit: Callable[[], None]) -> None:
        """Take the files as they would be found: synced bytes whole, the others by sectors."""
        old = self._place
        base, before = (self._read(old, name) for name in ("state.db", "state.db-wal"))
        commit()
        after = self._read(old, "state.db-wal")
        moved = self._read(old, "state.db") != base  # a checkpoint: both were synced in between
        self._epoch += 1
        os.makedirs(self._place)
        shutil.copytree(os.path.join(old, "blobs"), os.path.join(self._place, "blobs"))
        left = after if moved else self._torn(before, after)
        for name, content in (("state.db", self._read(old, "state.db")), ("state.db-wal", left)):
            with open(os.path.join(self._place, name), "wb") as file:
                file.write(content)

    def _torn(self, before: bytes, after: bytes) -> bytes:
        """Each sector that the commit wrote is the old one or the new one: in order, or at random."""
        source, found = self._machine.random, bytearray()
        size = max(len(before), len(after))
        changed = [
            at
            for at in range(0, size, SECTOR)
            if before[at : at + SECTOR] != after[at : at + SECTOR]
        ]
        if source.random() < 0.5:
            written = set(changed[: source.randrange(len(changed) + 1)])
        else:
            rate = source.choice([0.5, 0.9])
            written = {at for at in changed if source.random() < rate}
        for at in range(0, size, SECTOR):
            old, new = before[at : at + SECTOR], after[at : at + SECTOR]
            found += new if at in written or old == new else old.ljust(len(new), b"\0")
        end = max(written, default=0) + SECTOR if source.random() < 0.5 else size
        return bytes(found[: max(end, len(before))])

    @staticmethod
    def _read(folder: str, name: str) -> bytes:
        try:
            with open(os.path.join(folder, name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def close(self) -> None:
        for store in self._opened:
            store.close()


class Seat(PassingStore):
    """The store as one process has it: every call is a point, and the watch sees what became true."""

    def __init__(
        self, process: Process, disk: Disk, watch: Watch, on_cut: Callable[[], None]
    ) -> None:
        super().__init__(disk.open())
        self._process = process
        self._disk = disk
        self._watch = watch
        self._on_cut = on_cut
        self.refuses = ""  # the next commit: "refused" or "doubtful"
        self.refuses_beat = False  # the next heartbeat
        self.dies = ""  # "before" or "after" the next commit
        self.cuts = False  # the power fails in the next commit
        self.fails = ""  # what of the disk under the next commit: "write", "full", "sync"
        self.failed = False  # it failed under a commit of this process
        self.distrusts = False  # a sync failed: nothing that this process stores can be believed
        self.seconds = 0.0  # how long a commit takes
        self.unordered: frozenset[str] = (
            frozenset()
        )  # calls that come in no order: they are no points
        self.writer: SimulatedWriter | None = None  # of the same process

    def calm(self) -> None:
        """What has not fired yet never will."""
        self.refuses, self.refuses_beat, self.dies, self.cuts = "", False, "", False
        self.fails = ""

    def _pass(self, name: str, work: Callable[[], T]) -> T:
        if name in self.unordered:
            return work()
        self._process.point(f"before {name}")
        result = work()
        if name in LAZY:
            result = cast("T", iter(list(cast("Iterator[object]", result))))
        self._process.point(f"after {name}")
        return result

    def commit(self, batch: Batch, *, wait: bool = True) -> None:
        machine, inside = self._process.machine, self._store
        self._process.point("before commit")
        if self.refuses == "refused":
            self.refuses = ""
            machine.fault("commit_refused", self._process.name)
            raise StoreError("simulated: the disk refused")
        self._take_time()
        if self.cuts:
            self._cut(batch)
        self._die("before", batch)
        if self.fails:
            self._fail(batch)
        else:
            inside.commit(batch, wait=wait)
        if self.distrusts:
            machine.violated(
                "I1", f"{self._process.name} stores, and a sync of its disk had failed"
            )
        self._watch.committed(self._process, batch, inside)
        self._die("after", batch)
        if self.refuses == "doubtful":
            self.refuses = ""
            machine.fault("commit_doubtful", self._process.name)
            raise StoreError("simulated: the disk wrote it and said no")
        self._process.point("after commit")

    def _fail(self, batch: Batch) -> None:
        """The disk fails under the database; whether the commit is there, only the next process sees."""
        kind, self.fails = self.fails, ""
        with failing(kind) as platter:
            try:
                self._store.commit(batch)
            except StoreError as error:
                if not platter.failed:
                    raise
                self._process.machine.fault(f"disk_{kind}", self._process.name)
                self.failed, self.distrusts = True, kind == "sync"
                left = self._disk.open()
                ends = [(item.journal, item.expected) for item in batch.appends if item.events]
                if ends and all(left.last(journal) > expected for journal, expected in ends):
                    self._watch.committed(self._process, batch, left)
                raise StoreError(f"simulated: {error.message}") from error

    def _take_time(self) -> None:
        """A commit that the event loop makes by itself keeps everything waiting; the writer's does not."""
        writer = self.writer
        if writer is not None and writer.is_idle:
            seconds, writer.slow = writer.slow or self.seconds, 0.0
            if seconds:
                self._process.sleep(seconds)

    def _die(self, when: str, batch: Batch) -> None:
        """The process ends here if it is to: at any commit, or at one that stores an answer."""
        moment, _, only = self.dies.partition(" ")
        if moment != when or (only and not _has_answer(batch)):
            return
        machine, self.dies = self._process.machine, ""
        machine.fault(f"kill_{when}_{only or 'commit'}", self._process.name)
        machine.kill([self._process], f"{when} a commit")
        self._process.block(None)

    def beat(self, engine: str, *, sharing: bool, run: RunId | None = None) -> bool:
        if self.refuses_beat:
            self.refuses_beat = False
            self._process.machine.fault("beat_refused", self._process.name)
            raise StoreError("simulated: the database is locked")
        return super().beat(engine, sharing=sharing, run=run)

    def _cut(self, batch: Batch) -> None:
        """Everything that runs is gone; whether the commit is there, the disk says when it is opened."""
        machine = self._process.machine
        machine.fault("power", self._process.name)
        ends = {
            item.journal: self._store.last(item.journal) for item in batch.appends if item.events
        }
        self._disk.cut(lambda: self._store.commit(batch))
        left = self._disk.open()
        if all(left.last(journal) > expected for journal, expected in ends.items()):
            machine.note("", "the commit is there")
            self._watch.committed(self._process, batch, left)
        self._watch.check_told(left)
        self._on_cut()
        self._process.block(None)
        raise Killed

    def open_run(
        self, run: RunId, project: str, line: str, batch: Batch, engine: str | None = None
    ) -> int:
        self._process.point("before open_run")
        fence = self._store.open_run(run, project, line, batch, engine)
        self._watch.fenced(run, fence)
        self._watch.committed(self._process, batch, self._store)
        self._process.point("after open_run")
        return fence

    def take_run(
        self, run: RunId, engine: str | None = None, *, unless_driven: bool = False
    ) -> int:
        self._process.point("before take_run")
        fence = self._store.take_run(run, engine, unless_driven=unless_driven)
        self._watch.fenced(run, fence)
        self._process.machine.note(self._process.name, f"takes {run} over, fence {fence}")
        self._process.point("after take_run")
        return fence

    def remove_run(self, run: RunId, batch: Batch) -> None:
        self._process.point("before remove_run")
        self._store.remove_run(run, batch)
        self._watch.removed(run)
        self._watch.committed(self._process, batch, self._store)
        self._process.point("after remove_run")

    def bury(self, holder: Holder) -> bool:
        engine, run = holder.owner.engine, holder.run
        self._process.point("before bury")
        done = self._store.bury(holder)
        if done:
            self._process.machine.note(self._process.name, f"takes {engine} for dead")
            self._watch.buried.add(engine)
            fences = {row.run: row.fence for row in self._store.runs()}
            if run in fences and fences[run] > self._watch.fence_of(run):
                self._watch.fenced(run, fences[run])
        self._process.point("after bury")
        return done

    def claim(self, key: ClaimKey, engine: str) -> int | None:
        self._process.point("before claim")
        fence = self._store.claim(key, engine)
        if fence is not None:
            self._watch.claimed(key, fence, engine)
        self._process.point("after claim")
        return fence


def _has_answer(batch: Batch) -> bool:
    return any(
        isinstance(event, CallAnswered) for append in batch.appends for _, event in append.events
    )


class SimulatedWriter(Writer):
    """The writer thread without a thread: what it is given happens a moment later, one after the other.

    As with the thread, what has begun happens although nobody waits for it any more, and what has not
    begun can still be called off.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._queue: list[tuple[asyncio.Future[object], Callable[[], object]]] = []
        self.slow = 0.0  # how long the next call takes, once

    @property
    def is_idle(self) -> bool:
        return not self._queue

    def call(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        one = cast("asyncio.Future[object]", future)
        self._queue.append((one, lambda: work(*args, **kwargs)))
        if len(self._queue) == 1:
            self._begin(loop)
        return future

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        seconds = self.slow or self._process.machine.random.uniform(0.0005, 0.02)
        self.slow = 0.0
        loop.call_later(seconds, self._do, loop)

    def _do(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._queue:  # closed meanwhile: it was done then
            return
        future, work = self._queue[0]
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - as an executor does
            if not future.done():
                future.set_exception(error)
        else:
            if not future.done():
                future.set_result(result)
        self._queue.pop(0)
        while self._queue and self._queue[0][0].cancelled():
            self._queue.pop(0)
        if self._queue:
            self._begin(loop)

    def close(self) -> None:
        queue, self._queue = self._queue, []
        for number, (future, work) in enumerate(queue):
            if number == 0 or not future.cancelled():
                with contextlib.suppress(StoreError):
                    work()
