"""A store in memory: the plain statement of what every store does.

Nothing outlives the process. It is the reference of the contract suite and the store of fast tests.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.model.artifact import Artifact, Status
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.event import Recorded
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Batch, ClaimKey, Holder, Owner, RunRow, Stat
from holdfast.store.refusals import (
    RUN,
    accepted_twice,
    check_end,
    check_fence,
    claim_lost,
    damaged,
    first_batch,
    missing,
    no_run,
    run_exists,
)

_Step = tuple[str, str, str]  # project, line, step
_Once = tuple[str, str, int]  # run, step, attempt


@dataclass(frozen=True, slots=True)
class _Hold:
    project: str
    line: str
    holder: Holder


class MemoryStore:
    """Fills the port `Store` with dictionaries."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._journals: dict[str, list[Recorded]] = {}
        self._runs: dict[RunId, RunRow] = {}
        self._artifacts: list[Artifact] = []
        self._steps: dict[_Step, list[Artifact]] = {}
        self._accepted: set[_Once] = set()
        self._blobs: dict[Digest, bytes] = {}
        self._claims: dict[ClaimKey, tuple[str, int]] = {}
        self._fence = 0
        self._holds: dict[tuple[str, str, str], _Hold] = {}
        self._stats: dict[str, tuple[Stat, Digest, bool]] = {}

    # journals and batches

    def commit(self, batch: Batch) -> None:
        with self._lock:
            self._check(batch)
            for append in batch.appends:
                events = self._journals.setdefault(append.journal, [])
                events.extend(
                    Recorded(seq, at, event)
                    for seq, (at, event) in enumerate(append.events, append.expected + 1)
                )
            self._blobs.update(batch.blobs)
            for row in batch.artifacts:
                self._index(row)
            for key, fence in batch.released:
                if self._claims.get(key, ("", 0))[1] == fence:
                    del self._claims[key]

    def _check(self, batch: Batch) -> None:
        """Refuse the whole batch before anything of it is applied."""
        ends: dict[str, int] = {}
        for append in batch.appends:
            if append.journal.startswith(RUN):
                run = self._run(RunId(append.journal.removeprefix(RUN)))
                check_fence(run.run, run.fence, append)
            last = ends.get(append.journal, self.last(append.journal))
            check_end(append, last)
            ends[append.journal] = last + len(append.events)
        for key, fence in batch.held:
            if self._claims.get(key, ("", 0))[1] != fence:
                raise claim_lost(key)
        new: set[_Once] = set()
        for row in batch.artifacts:
            if _is_once(row):
                once = (row.run, row.step, row.attempt)
                if once in self._accepted or once in new:
                    raise accepted_twice(f"step '{row.step}', attempt {row.attempt}")
                new.add(once)

    def _run(self, run: RunId) -> RunRow:
        if run not in self._runs:
            raise no_run(run)
        return self._runs[run]

    def read(self, journal: str, after: int = 0) -> Iterator[Recorded]:
        yield from self._journals.get(journal, [])[after:]

    def last(self, journal: str) -> int:
        return len(self._journals.get(journal, ()))

    def journals(self) -> Sequence[str]:
        return list(self._journals)

    # runs

    def runs(self, line: str | None = None) -> Sequence[RunRow]:
        return [row for row in list(self._runs.values()) if line is None or row.line == line]

    def open_run(self, run: RunId, project: str, line: str, batch: Batch) -> int:
        with self._lock:
            if run in self._runs:
                raise run_exists(run)
            self._runs[run] = RunRow(run, project, line, len(self._runs) + 1, 1)
            try:
                self.commit(first_batch(run, batch))
            except BaseException:
                del self._runs[run]
                raise
            return 1

    def take_run(self, run: RunId) -> int:
        with self._lock:
            row = self._run(run)
            self._runs[run] = replace(row, fence=row.fence + 1)
            return row.fence + 1

    # artifacts

    def find(
        self, project: str, line: str, step: StepId, ref: Digest, *, content: bool = False
    ) -> Artifact | None:
        for row in reversed(self._steps.get((project, line, step), ())):
            of_row = row.input_ref if content else row.config_ref
            if row.status == "accepted" and row.reusable and of_row == ref:
                return row
        return None

    def newest(self, project: str, line: str, step: StepId) -> Artifact | None:
        for row in reversed(self._steps.get((project, line, step), ())):
            if row.status == "accepted":
                return row
        return None

    def newest_of_all(self, project: str, line: str) -> Mapping[StepId, Artifact]:
        rows = self.artifacts(project=project, line=line, status="accepted")
        return {row.step: row for row in rows}

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

    def replace_artifacts(self, rows: Iterable[Artifact]) -> None:
        given = list(rows)
        with self._lock:
            self._artifacts, self._steps, self._accepted = [], {}, set()
            for row in given:
                self._index(row)

    def _index(self, row: Artifact) -> None:
        numbered = replace(row, number=len(self._artifacts) + 1)
        self._artifacts.append(numbered)
        self._steps.setdefault((row.project, row.line, row.step), []).append(numbered)
        if _is_once(row):
            self._accepted.add((row.run, row.step, row.attempt))

    # blobs

    def put(self, content: bytes | Iterable[bytes]) -> Digest:
        whole = content if isinstance(content, bytes) else b"".join(content)
        digest = digest_bytes(whole)
        self._blobs[digest] = whole
        return digest

    def get(self, digest: Digest) -> bytes:
        content = self._blobs.get(digest)
        if content is None:
            raise missing(digest)
        if digest_bytes(content) != digest:
            del self._blobs[digest]
            raise damaged(digest)
        return content

    def chunks(self, digest: Digest) -> Iterator[bytes]:
        yield self.get(digest)

    def has(self, digest: Digest) -> bool:
        return digest in self._blobs

    def blobs(self) -> Iterator[Digest]:
        yield from list(self._blobs)

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

    def leave(self, engine: str) -> None:
        with self._lock:
            self._holds = {key: hold for key, hold in self._holds.items() if key[2] != engine}
            self._claims = {key: own for key, own in self._claims.items() if own[0] != engine}

    def holders(self, project: str, line: str) -> Sequence[Holder]:
        holds = list(self._holds.values())
        return [hold.holder for hold in holds if (hold.project, hold.line) == (project, line)]

    # what is on disk

    def stats(self, paths: Iterable[str]) -> Mapping[str, tuple[Stat, Digest, bool]]:
        return {path: self._stats[path] for path in paths if path in self._stats}

    def remember_stats(self, items: Iterable[tuple[str, Stat, Digest, bool]]) -> None:
        for path, stat, digest, executable in items:
            self._stats[path] = (stat, digest, executable)

    def check(self) -> Iterator[str]:
        for row in self.artifacts():
            if row.digest not in self._blobs:
                yield (
                    f"artifact {row.number} of step '{row.step}' in run '{row.run}':"
                    f" content '{row.digest}' is missing"
                )
        for digest, content in list(self._blobs.items()):
            if digest_bytes(content) != digest:
                yield f"content '{digest}' is damaged"

    def close(self) -> None:
        """Nothing to give back."""


def _is_once(row: Artifact) -> bool:
    """Whether an attempt of a run made this row; a run accepts an attempt once."""
    return row.status == "accepted" and row.source == "generated"
