"""A store in memory: the plain statement of what every store does.

Nothing outlives the process. It is the reference of the contract suite and the store of fast tests.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

from holdfast.errors import PurgedError
from holdfast.model.artifact import Artifact, Status
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.event import Event, Recorded
from holdfast.model.line import ContentPurged, RunImported
from holdfast.model.newest import Newest
from holdfast.model.plan import RunId, StepId
from holdfast.ports import (
    Batch,
    ClaimKey,
    Errand,
    Holder,
    Kept,
    Owner,
    Raw,
    RunRow,
    Stat,
    Stored,
    event_of,
)
from holdfast.store.codec import encode, first_hash, next_hash
from holdfast.store.refusals import (
    RUN,
    accepted_twice,
    check_end,
    check_fence,
    claim_lost,
    damaged,
    driven,
    first_batch,
    is_history,
    missing,
    no_run,
    not_there,
    purged,
    run_exists,
)

_Step = tuple[str, str, str]  # project, line, step
_Once = tuple[RunId, StepId]


@dataclass(frozen=True, slots=True)
class _Hold:
    project: str
    line: str
    holder: Holder


class MemoryStore:
    """Fills the port `Store` with dictionaries."""

    def __init__(self, clock: Callable[[], int] | None = None) -> None:
        self._clock = clock or _now  # when a content was stored, in ms since 1970
        self._lock = threading.RLock()
        self._journals: dict[str, list[Recorded]] = {}
        self._runs: dict[RunId, RunRow] = {}
        self._artifacts: list[Artifact] = []
        self._steps: dict[_Step, list[Artifact]] = {}
        self._accepted: set[_Once] = set()
        self._blobs: dict[Digest, bytes] = {}
        self._ages: dict[Digest, int] = {}
        self._number = 0
        self._claims: dict[ClaimKey, tuple[str, int]] = {}
        self._errands: dict[int, Errand] = {}
        self._said: dict[int, list[tuple[str, bytes]]] = {}
        self._fence = 0
        self._holds: dict[tuple[str, str, str], _Hold] = {}
        self._stats: dict[str, tuple[Stat, Digest, bool]] = {}

    # journals and batches

    def commit(self, batch: Batch, *, wait: bool = True) -> None:
        del wait  # nobody else can have it
        with self._lock:
            self._check(batch)
            for append in (append for append in batch.appends if append.events):
                events = self._journals.setdefault(append.journal, [])
                events.extend(
                    Recorded(seq, at, event_of(event))
                    for seq, (at, event) in enumerate(append.events, append.expected + 1)
                )
            for digest, content in batch.blobs:
                self._blobs[digest] = content
                self._ages[digest] = self._clock()
            for gone in batch.superseded:
                self._leave(gone, "superseded")
                self._accepted.discard((gone.run, gone.step))
            for row in batch.artifacts:
                self._index(row)
            for gone in batch.withdrawn:
                self._leave(gone, "withdrawn")
            for key, fence in batch.released:
                if self._claims.get(key, ("", 0))[1] == fence:
                    del self._claims[key]

    def _check(self, batch: Batch) -> None:
        """Refuse the whole batch before anything of it is applied."""
        ends: dict[str, int] = {}
        for append in batch.appends:
            if append.events and append.journal.startswith(RUN):
                run = RunId(append.journal.removeprefix(RUN))
                check_fence(run, self._runs[run].fence if run in self._runs else None, append)
            last = ends.get(append.journal, self.last(append.journal))
            check_end(append, last)
            ends[append.journal] = last + len(append.events)
        for key, fence in batch.held:
            if self._claims.get(key, ("", 0))[1] != fence:
                raise claim_lost(key)
        new: set[_Once] = set()
        gone = {(row.run, row.step) for row in batch.superseded}
        for row in batch.artifacts:
            if _is_once(row):
                once = (row.run, row.step)
                if (once in self._accepted and once not in gone) or once in new:
                    raise accepted_twice(f"step '{row.step}'")
                new.add(once)

    def _run(self, run: RunId) -> RunRow:
        if run not in self._runs:
            raise no_run(run)
        return self._runs[run]

    def read(self, journal: str, after: int = 0) -> Iterator[Recorded]:
        yield from self._journals.get(journal, [])[after:]

    def told(
        self, journals: Iterable[str], kinds: Collection[type[Event]], since: int = 0
    ) -> Iterator[tuple[str, Recorded]]:
        for journal in journals:
            for recorded in self._journals.get(journal, []):
                if type(recorded.event) in kinds and recorded.at >= since:
                    yield journal, recorded

    def kept(self, journal: str) -> Iterator[tuple[int, Kept]]:
        for _, at, event in self._journals.get(journal, []):
            yield at, Kept(type(event), encode(event)[1], partial(_same, event))

    def raw(self, journal: str) -> Iterator[Raw]:
        for seq, at, event in self._journals.get(journal, []):
            yield Raw(seq, at, *encode(event))

    def last(self, journal: str) -> int:
        return len(self._journals.get(journal, ()))

    def journals(self) -> Sequence[str]:
        return list(self._journals)

    # runs

    def end(self, journal: str) -> tuple[int, Digest]:
        chain = first_hash(journal)
        for seq, at, event in self._journals.get(journal, ()):
            chain = next_hash(chain, seq, at, *encode(event))
        return self.last(journal), Digest(chain.hex())

    def runs(self, line: str | None = None, *, imported: bool = False) -> Sequence[RunRow]:
        rows = sorted(self._runs.values(), key=lambda row: row.number)
        return [row for row in rows if line in {None, row.line} and (imported or not row.imported)]

    def open_run(
        self, run: RunId, project: str, line: str, batch: Batch, engine: str | None = None
    ) -> int:
        with self._lock:
            self._check_there(engine)
            if run in self._runs:
                raise run_exists(run)
            self._runs[run] = RunRow(run, project, line, self._next_number(), 1)
            try:
                self.commit(first_batch(run, batch))
            except BaseException:
                del self._runs[run]
                raise
            return 1

    def take_run(
        self, run: RunId, engine: str | None = None, *, unless_driven: bool = False
    ) -> int:
        with self._lock:
            self._check_there(engine)
            others = (item for _, _, item in self.held() if item.owner.engine != engine)
            if unless_driven and any(other.run == run for other in others):
                raise driven(run)
            row = self._run(run)
            if row.imported:
                raise is_history(run)
            self._runs[run] = replace(row, fence=row.fence + 1)
            return row.fence + 1

    def _check_there(self, engine: str | None) -> None:
        if engine is not None and not self._beats(engine):
            raise not_there(engine)

    def _next_number(self, given: int = 0) -> int:
        number = given or self._number + 1
        self._number = max(self._number, number)
        return number

    def add_runs(self, rows: Sequence[RunRow], batch: Batch) -> None:
        with self._lock:
            known = dict(self._runs)
            for row in rows:
                if row.run in known:
                    raise run_exists(row.run)
            try:
                for row in rows:
                    self._runs[row.run] = replace(row, number=self._next_number(row.number))
                self.commit(batch)
            except BaseException:
                self._runs = known
                raise

    def remove_run(self, run: RunId, batch: Batch) -> None:
        with self._lock:
            self._run(run)
            self.commit(batch)
            del self._runs[run]
            self._journals.pop(f"{RUN}{run}", None)
            self._artifacts = [row for row in self._artifacts if row.run != run]
            self._index_again()

    def purge(self, digests: Sequence[Digest], numbers: Iterable[int], batch: Batch) -> None:
        unfit = set(numbers)
        with self._lock:
            self.commit(batch)
            for digest in digests:
                self._blobs.pop(digest, None)
            self._artifacts = [
                replace(row, reusable=False) if row.number in unfit else row
                for row in self._artifacts
            ]
            self._index_again()

    def _tombstone(self, digest: Digest) -> PurgedError | None:
        found = None
        for events in self._journals.values():
            for _, at, event in events:
                if isinstance(event, ContentPurged) and digest in event.digests:
                    words = self._blobs.get(event.because, b"") if event.because else b""
                    found = purged(digest, at, event, words.decode("utf-8", "replace"))
        return found

    # artifacts

    def find(
        self, project: str, line: str, step: StepId, ref: Digest, *, content: bool = False
    ) -> Artifact | None:
        for row in reversed(self._steps.get((project, line, step), ())):
            of_row = row.input_ref if content else row.config_ref
            if _stands(row) and row.reusable and of_row == ref:
                return row
        return None

    def newest(self, project: str, line: str, step: StepId) -> Artifact | None:
        for row in reversed(self._steps.get((project, line, step), ())):
            if _stands(row):
                return row
        return None

    def newest_of_all(self, project: str, line: str) -> Newest:
        newest = Newest(project, line)
        for row in self.artifacts(project=project, line=line, status="accepted"):
            if _stands(row):
                newest.add(row)
        return newest

    def artifacts(
        self,
        *,
        project: str | None = None,
        line: str | None = None,
        step: StepId | None = None,
        run: RunId | None = None,
        status: Status | None = None,
        source: str | None = None,
        digest: Digest | None = None,
    ) -> Iterator[Artifact]:
        asked = {
            "project": project,
            "line": line,
            "step": step,
            "run": run,
            "status": status,
            "source": source,
            "digest": digest,
        }
        for row in list(self._artifacts):
            if all(want is None or getattr(row, name) == want for name, want in asked.items()):
                yield row

    def steady(self) -> AbstractContextManager[None]:
        return nullcontext()

    def replace_artifacts(self, rows: Callable[[], Iterable[Artifact]]) -> None:
        with self._lock:
            given = list(rows())
            self._artifacts, self._steps, self._accepted = [], {}, set()
            for row in given:
                self._index(row)

    def _index(self, row: Artifact) -> None:
        highest = self._artifacts[-1].number if self._artifacts else 0
        numbered = replace(row, number=highest + 1)
        self._artifacts.append(numbered)
        self._enter(numbered)

    def _index_again(self) -> None:
        self._steps, self._accepted = {}, set()
        for row in self._artifacts:
            self._enter(row)

    def _enter(self, numbered: Artifact) -> None:
        row = numbered
        self._steps.setdefault((row.project, row.line, row.step), []).append(numbered)
        if _is_once(row):
            self._accepted.add((row.run, row.step))

    def _leave(self, gone: Artifact, status: Status) -> None:
        for number, row in enumerate(self._artifacts):
            if replace(row, number=gone.number) == gone:
                now = self._artifacts[number] = replace(row, status=status)
                kept = self._steps[row.project, row.line, row.step]
                kept[kept.index(row)] = now
                self._accepted.discard((row.run, row.step))

    # blobs

    def put(self, content: bytes | Iterable[bytes]) -> Digest:
        whole = content if isinstance(content, bytes) else b"".join(content)
        digest = digest_bytes(whole)
        self._blobs[digest] = whole
        self._ages[digest] = self._clock()
        return digest

    def get(self, digest: Digest) -> bytes:
        content = self._blobs.get(digest)
        if content is None:
            raise self._tombstone(digest) or missing(digest)
        if digest_bytes(content) != digest:
            del self._blobs[digest]
            raise damaged(digest)
        return content

    def chunks(self, digest: Digest) -> Iterator[bytes]:
        yield self.get(digest)

    def has(self, digest: Digest) -> bool:
        return digest in self._blobs

    def absent(self, digests: Iterable[Digest]) -> set[Digest]:
        return {*digests} - self._blobs.keys()

    def blobs(self) -> Iterator[Digest]:
        yield from list(self._blobs)

    def apart(self, digests: Iterable[Digest]) -> set[Digest]:
        return {*digests}

    def stored(self) -> Iterator[Stored]:
        for digest, content in list(self._blobs.items()):
            yield Stored(digest, len(content), self._ages.get(digest, 0))

    def forget(self, digests: Iterable[Digest], before: int) -> None:
        for digest in digests:
            if self._ages.get(digest, 0) < before:
                self._blobs.pop(digest, None)

    # claims and holders

    def claim(self, key: ClaimKey, engine: str) -> int | None:
        with self._lock:
            owner, fence = self._claims.get(key, ("", 0))
            if owner == engine:
                return fence
            if owner and any(hold.holder.owner.engine == owner for hold in self._holds.values()):
                return None
            self._fence += 1
            self._claims[key] = (engine, self._fence)
            return self._fence

    def claims(self) -> Sequence[tuple[ClaimKey, str, int]]:
        return [(key, engine, fence) for key, (engine, fence) in list(self._claims.items())]

    def enter(
        self, project: str, line: str, owner: Owner, *, alone: bool = False
    ) -> Sequence[Holder]:
        with self._lock:
            present = self.holders(project, line)
            others = [holder for holder in present if holder.owner.engine != owner.engine]
            if not (alone and others):
                hold = _Hold(project, line, Holder(owner, None, 0, sharing=False))
                self._holds[project, line, owner.engine] = hold
            return others

    def beat(self, engine: str, *, sharing: bool, run: RunId | None = None) -> bool:
        with self._lock:
            mine = [key for key in self._holds if key[2] == engine]
            for key in mine:
                hold = self._holds[key]
                holder = replace(hold.holder, beat=hold.holder.beat + 1, sharing=sharing, run=run)
                self._holds[key] = replace(hold, holder=holder)
            return bool(mine)

    def post(self, queue: str, parcel: Digest, engine: str) -> int:
        with self._lock:
            self._fence += 1
            self._errands[self._fence] = Errand(self._fence, queue, parcel, engine)
            return self._fence

    def take_errand(self, queues: Sequence[str], worker: str) -> Errand | None:
        with self._lock:
            free = (
                one for one in self._errands.values() if one.worker is None and one.queue in queues
            )
            first = next(free, None)
            if first is None or not self._beats(worker):
                return None
            taken = first._replace(worker=worker, fence=first.fence + 1)
            self._errands[taken.id] = taken
            return taken

    def report(self, errand: Errand, report: Digest) -> bool:
        with self._lock:
            now = self._errands.get(errand.id)  # nobody may wait for it any more
            if (
                now is None
                or now._replace(engine=errand.engine) != errand
                or now.report is not None
            ):
                return False
            self._errands[errand.id] = now._replace(report=report)
            return True

    def errands(self, engine: str | None = None, worker: str | None = None) -> Sequence[Errand]:
        every = list(self._errands.values())
        return [e for e in every if engine in {None, e.engine} and worker in {None, e.worker}]

    def tell(self, errand: Errand, said: Sequence[tuple[str, bytes]]) -> bool:
        with self._lock:
            if self._errands.get(errand.id) != errand:
                return False
            self._said.setdefault(errand.id, []).extend(said)
            return True

    def heard(self, errand: int, after: int = 0) -> Sequence[tuple[int, str, bytes]]:
        said = list(self._said.get(errand, ())) if errand in self._errands else []
        return [(n, stream, content) for n, (stream, content) in enumerate(said, 1) if n > after]

    def hints(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        del wake
        return nullcontext()

    def call_off(self, errands: Collection[int]) -> None:
        with self._lock:
            for number in errands:
                if (one := self._errands.pop(number, None)) is not None and one.worker is not None:
                    self._errands[number] = one._replace(engine="")

    def withdraw(self, errands: Collection[int]) -> None:
        with self._lock:
            for number in errands:
                self._errands.pop(number, None)

    def leave(self, engine: str) -> None:
        with self._lock:
            self._errands = {key: one for key, one in self._errands.items() if one.engine != engine}
            self._holds = {key: hold for key, hold in self._holds.items() if key[2] != engine}
            self._claims = {key: own for key, own in self._claims.items() if own[0] != engine}

    def bury(self, holder: Holder) -> bool:
        with self._lock:
            if holder.beat not in self._beats(holder.owner.engine):
                return False
            self.leave(holder.owner.engine)
            driven_now = {other.run for _, _, other in self.held()}
            if holder.run in self._runs and holder.run not in driven_now:
                self.take_run(holder.run)
            return True

    def _beats(self, engine: str) -> set[int]:
        return {hold.holder.beat for key, hold in self._holds.items() if key[2] == engine}

    def holders(self, project: str, line: str) -> Sequence[Holder]:
        holds = list(self._holds.values())
        return [hold.holder for hold in holds if (hold.project, hold.line) == (project, line)]

    def held(self) -> Sequence[tuple[str, str, Holder]]:
        return [(hold.project, hold.line, hold.holder) for hold in list(self._holds.values())]

    # what is on disk

    def stats(self, paths: Iterable[str]) -> Mapping[str, tuple[Stat, Digest, bool]]:
        return {path: self._stats[path] for path in paths if path in self._stats}

    def remember_stats(self, items: Iterable[tuple[str, Stat, Digest, bool]]) -> None:
        for path, stat, digest, executable in items:
            self._stats[path] = (stat, digest, executable)

    def assure(self) -> None:
        """There are no tables."""

    def check(self) -> Iterator[str]:
        absent = self._absent()
        for row in self.artifacts():
            unused = not (row.reusable and _stands(row))
            if row.digest not in self._blobs and not (row.digest in absent and unused):
                yield (
                    f"artifact {row.number} of step '{row.step}' in run '{row.run}':"
                    f" content '{row.digest}' is missing"
                )
        for digest, content in list(self._blobs.items()):
            if digest_bytes(content) != digest:
                yield f"content '{digest}' is damaged"

    def _absent(self) -> set[Digest]:
        found: set[Digest] = set()
        for events in self._journals.values():
            for recorded in events:
                event = recorded.event
                found.update(event.digests if isinstance(event, ContentPurged) else ())
                found.update(event.absent if isinstance(event, RunImported) else ())
        return found

    def close(self) -> None:
        """Nothing to give back."""


def _same(event: Event) -> Event:
    return event


def _now() -> int:
    return time.time_ns() // 1_000_000


def _stands(row: Artifact) -> bool:
    """Whether a row can stand for its step: accepted, and not only the history of another store."""
    return row.status == "accepted" and row.source != "imported"


def _is_once(row: Artifact) -> bool:
    """Whether a run made this row; a run accepts a step once."""
    return row.status == "accepted" and row.source == "generated"
