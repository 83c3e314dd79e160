"""What `verify` finds between runs: an acceptance that came too late, and nothing else beside a run."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

import holdfast
from holdfast.core.refs import encode_own, refs_of, w_ref
from holdfast.core.refs import structure as structure_of
from holdfast.engine.audit import audit
from holdfast.engine.collect import Told, remove
from holdfast.engine.rebuilt import rebuilt_index
from holdfast.engine.whole import unmatched
from holdfast.errors import LockedError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import digest_bytes
from holdfast.model.event import (
    AttemptAccepted,
    AttemptStarted,
    Event,
    Options,
    Reason,
    RunEnded,
    RunStarted,
)
from holdfast.model.line import ContentPurged, RunOpened
from holdfast.model.plan import Plan, RunId, Step, StepId, plan_bytes
from holdfast.ports import Append, Batch
from holdfast.store.memory import MemoryStore
from holdfast.store.sqlite import SqliteStore
from holdfast.testing import PassingStore

T = TypeVar("T")
STEP = Step(StepId("a"), uses="shell", shell="echo a")
PLAN = Plan(name="main", project="p", steps={STEP.id: STEP})
CONTENT = b"a\n"


def run(store: MemoryStore, name: str, fence: int, expected: int) -> None:
    """A run of a joined engine that accepted the step under this fence of its claim."""
    own = encode_own(STEP, {})
    refs, digest, plan = refs_of(STEP, own, {}), digest_bytes(CONTENT), plan_bytes(PLAN)
    structure = structure_of(PLAN)
    options = Options(joined=True, force=True)
    start = RunStarted(
        RunId(name), "main", "p", digest_bytes(plan), w_ref(PLAN), options, name, None
    )
    events: list[Event] = [
        start,
        AttemptStarted(STEP.id, 1, *refs, Reason("forced"), fence=fence),
        AttemptAccepted(STEP.id, 1, digest),
        RunEnded("completed"),
    ]
    row = Artifact("p", "main", STEP.id, *refs, digest, "accepted", "generated", RunId(name), 1)
    blobs = [(digest_bytes(blob), blob) for blob in (own, CONTENT, plan, structure)]
    appends = [
        Append("line:p/main", expected, [(0, RunOpened(RunId(name)))]),
        Append(f"run:{name}", 0, [(0, event) for event in events]),
    ]
    store.open_run(RunId(name), "p", "main", Batch(appends, [row], blobs))


@pytest.mark.req("I10")
@pytest.mark.parametrize("fences", [(1, 2), (2, 1), (1, 1)])
def test_an_acceptance_under_a_fence_that_was_taken_is_found(fences: tuple[int, int]) -> None:
    store = MemoryStore()
    for number, fence in enumerate(fences):
        run(store, f"r-{number}", fence, number)
    found = audit(store)
    if fences == (2, 1):
        assert found.problems == ("run 'r-1': step 'a' was accepted under fence 1 after fence 2",)
        assert found.bits == 1
    else:
        assert found.problems == ()


def make(place: Path, name: str) -> None:
    """A run of another process's, as far as the store can tell."""
    plan = holdfast.Plan("main", root=str(place))
    plan.step("a", lambda name: name, values={"name": name}, inline=True)
    assert holdfast.run(plan).status == "completed"


class Visited(PassingStore):
    """A store in which somebody else ends a run whenever something is read."""

    def __init__(self, store: SqliteStore, place: Path) -> None:
        super().__init__(store)
        self._place = place
        self.visits = 0

    def _pass(self, name: str, work: Callable[[], T]) -> T:
        self.visits += 1
        make(self._place, f"{name} {self.visits}")
        return work()


@pytest.mark.req("I1")
def test_runs_that_end_meanwhile_are_no_problem(tmp_path: Path) -> None:
    make(tmp_path, "first")
    with SqliteStore.open(str(tmp_path / ".holdfast"), create=False) as store:
        visited = Visited(store, tmp_path)
        found = audit(visited)
    assert visited.visits > 5
    assert found.problems == ()


class Collected(PassingStore):
    """A store of which somebody else collects a run, whenever one is asked for its journal."""

    def __init__(self, store: SqliteStore) -> None:
        super().__init__(store)
        self.left = [row.run for row in store.runs()]

    def last(self, journal: str) -> int:
        if self.left and journal == f"run:{self.left[0]}":
            gone = self.left.pop(0)
            (row,) = (row for row in self._store.runs() if row.run == gone)
            remove(self._store, Told(row, "completed"), "ann", lambda: 0)
        return super().last(journal)


@pytest.mark.req("I2")
def test_runs_that_are_collected_meanwhile_are_no_damage(tmp_path: Path) -> None:
    """One after the other, also while what was seen of the first is looked at again."""
    for number in range(4):
        make(tmp_path, str(number))
    with SqliteStore.open(str(tmp_path / ".holdfast"), create=False) as store:
        collected = Collected(store)
        assert list(unmatched(collected)) == []
        assert collected.left == []


@pytest.mark.req("I2")
def test_a_rebuild_reads_when_nobody_can_write(tmp_path: Path) -> None:
    """What is accepted beside it stands in the index afterwards."""
    make(tmp_path, "first")
    place = str(tmp_path / ".holdfast")
    with (
        SqliteStore.open(place, create=False) as mine,
        SqliteStore.open(place, create=False) as other,
    ):

        def rows() -> list[Artifact]:
            with pytest.raises(LockedError):
                other.commit(Batch(blobs=[(digest_bytes(b"x"), b"x")]), wait=False)
            return rebuilt_index(mine)

        mine.replace_artifacts(rows)
        assert audit(mine).problems == ()


@pytest.mark.parametrize("later, told", [(999, False), (1000, True)])
def test_a_content_stored_again_in_the_second_of_its_purge_is_no_finding(
    tmp_path: Path, *, later: int, told: bool
) -> None:
    """Contents know their age in seconds: of one that lay there a second before, it is sure."""
    with SqliteStore.open(str(tmp_path), create=True) as store:
        digest = store.put(b"one")
        (stored,) = (item for item in store.stored() if item.digest == digest)
        purged = ContentPurged((digest,), "ann", None)
        store.commit(Batch([Append("line:main", 0, [(stored.at + later, purged)])]))
        found = [problem for problem in audit(store).problems if "still there" in problem]
        assert bool(found) is told


@pytest.mark.req("I10")
def test_a_content_that_is_gone_hides_no_late_acceptance() -> None:
    store = MemoryStore()
    for number, fence in enumerate((2, 1)):
        run(store, f"r-{number}", fence, number)
    store.forget([digest_bytes(CONTENT)], 1 << 62)
    found = audit(store).problems
    assert any("is missing" in told for told in found)
    assert "run 'r-1': step 'a' was accepted under fence 1 after fence 2" in found
