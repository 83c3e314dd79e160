"""What budgets of a day and a project leave to a run."""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import pytest

from holdfast.engine.lines import line_journal
from holdfast.engine.outlays import paid_by
from holdfast.engine.purse import Purse, Room
from holdfast.model.digest import Digest
from holdfast.model.event import (
    AttemptLost,
    CallAnswered,
    CallFailed,
    CallStarted,
    Event,
    Options,
    Recorded,
    RunStarted,
)
from holdfast.model.line import RunCollected
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Append, Batch, Store
from holdfast.store.host import budget_lock
from holdfast.store.memory import MemoryStore

pytestmark = pytest.mark.req("R165")

MIDNIGHT = 1000
NONE = Digest("0" * 64)


def paid(store: Store, run: str, *calls: tuple[int, int | None], project: str = "shop") -> None:
    """A run whose calls began at a moment and cost so much; None is still open, with 100 reserved."""
    start = RunStarted(RunId(run), "main", project, NONE, NONE, Options(), "e")
    events: list[tuple[int, Event]] = [(1, start)]
    for number, (at, cost) in enumerate(calls, 1):
        step = StepId("a")
        events.append((at, CallStarted(step, 1, number, "p:m", NONE, 100, 9)))
        if cost is not None:
            events.append((at, CallAnswered(step, 1, number, NONE, 4, 5, cost=cost)))
    append = Append(f"run:{run}", 0, events, 1)
    store.open_run(RunId(run), project, "main", Batch([append]))


def purse(store: Store, day: int | None, whole: int | None) -> Purse:
    return Purse(store, "shop", day, whole, lambda: MIDNIGHT)


def left(found: Purse, run: str) -> int | None:
    room = found.room(RunId(run))
    return None if room is None else room.left


def test_what_others_spent_today_is_gone() -> None:
    store = MemoryStore()
    paid(store, "r-1", (500, 70), (1500, 30))
    paid(store, "r-2", (1600, 5), project="other")
    assert left(purse(store, 1000, None), "r-3") == 1000 - 30 - 5


def test_what_it_spent_itself_on_days_before_is_not_of_today() -> None:
    store = MemoryStore()
    paid(store, "r-1", (500, 70), (1500, 30))
    assert left(purse(store, 1000, None), "r-1") == 1000 + 70


def test_a_project_counts_for_ever_and_only_its_own() -> None:
    store = MemoryStore()
    paid(store, "r-1", (500, 70), (1500, 30))
    paid(store, "r-2", (1600, 5), project="other")
    assert left(purse(store, None, 1000), "r-3") == 900
    assert left(purse(store, 920, 1000), "r-3") == 885
    assert left(purse(store, None, None), "r-3") is None


@pytest.mark.req("R187")
def test_a_run_that_was_collected_counts_when_it_paid() -> None:
    store, quarter = MemoryStore(), 15 * 60 * 1000
    paid(store, "r-1", (quarter - 1, 70), (quarter, 30), (quarter + 1, 2), (quarter * 9, None))
    before = paid_by(store, RunId("r-1"))
    assert before == ((0, 70), (quarter, 32), (quarter * 9, 100))
    since = [0, quarter, quarter * 9, quarter * 10]
    collected = RunCollected(RunId("r-1"), 1, *store.end("run:r-1"), "me", before)
    line = Append(line_journal("shop", "main"), 0, [(quarter * 9, collected)])
    store.remove_run(RunId("r-1"), Batch([line]))
    left_by = [1000 - 202, 1000 - 132, 1000 - 100, 1000]
    for moment, most in zip(since, left_by, strict=True):
        found = Purse(store, "shop", 1000, None, lambda moment=moment: moment)  # type: ignore[misc]
        assert left(found, "r-2") == most
    assert left(purse(store, None, 1000), "r-2") == 1000 - 202


def test_a_call_under_way_counts_with_all_that_it_reserved() -> None:
    store = MemoryStore()
    paid(store, "r-1", (1500, None))
    assert left(purse(store, 1000, None), "r-2") == 900


def test_a_call_of_yesterday_that_is_under_way_counts_for_today() -> None:
    store = MemoryStore()
    paid(store, "r-1", (500, 70), (600, None))
    assert left(purse(store, 1000, None), "r-1") == 1000 + 70


def test_a_call_of_another_run_that_is_open_over_midnight_counts_for_today() -> None:
    store = MemoryStore()
    paid(store, "r-1", (500, 70), (600, None))
    found = purse(store, 1000, None)
    assert left(found, "r-2") == 900
    more = (1600, CallAnswered(StepId("a"), 1, 2, NONE, 4, 5, cost=30))
    store.commit(Batch([Append("run:r-1", store.last("run:r-1"), [more], 1)]))
    assert left(found, "r-2") == left(purse(store, 1000, None), "r-2") == 970


def test_a_call_that_was_lost_before_midnight_is_not_of_today() -> None:
    store = MemoryStore()
    paid(store, "r-1", (600, None))
    lost = (700, AttemptLost(StepId("a"), 1, "previous_interrupted"))
    store.commit(Batch([Append("run:r-1", store.last("run:r-1"), [lost], 1)]))
    assert left(purse(store, 1000, None), "r-2") == 1000


def test_the_budget_that_leaves_least_is_named() -> None:
    store = MemoryStore()
    paid(store, "r-1", (500, 70), (1500, 30))
    assert purse(store, 100, 1000).room(RunId("r-2")) == Room("day budget", 100, 70)
    assert purse(store, 100, 150).room(RunId("r-2")) == Room("project budget", 150, 50)


def test_what_others_reserve_is_seen_at_once() -> None:
    store = MemoryStore()
    found = purse(store, 1000, None)
    assert left(found, "r-3") == 1000
    paid(store, "r-1", (1500, None))
    assert left(found, "r-3") == 900
    more = (1600, CallAnswered(StepId("a"), 1, 1, NONE, 4, 5, cost=30))
    store.commit(Batch([Append("run:r-1", store.last("run:r-1"), [more], 1)]))
    assert left(found, "r-3") == 970


def test_a_call_that_never_left_gives_back_what_it_reserved() -> None:
    store = MemoryStore()
    paid(store, "r-1", (1500, None), (1500, None))
    found = purse(store, 1000, None)
    assert left(found, "r-2") == 800
    lost = (1600, AttemptLost(StepId("a"), 1, "previous_interrupted", unsent=(2,)))
    store.commit(Batch([Append("run:r-1", store.last("run:r-1"), [lost], 1)]))
    assert left(found, "r-2") == left(purse(store, 1000, None), "r-2") == 900


def test_one_reserves_at_a_time() -> None:
    found, told = purse(MemoryStore(), 1000, None), []

    async def reserve(name: str) -> None:
        async with found.alone():
            told.append(f"{name} looks")
            await asyncio.sleep(0)
            told.append(f"{name} stores")

    async def both() -> None:
        await asyncio.gather(reserve("one"), reserve("two"))

    asyncio.run(both())
    assert told == ["one looks", "one stores", "two looks", "two stores"]


def test_two_engines_never_reserve_the_same_dollar(tmp_path: Path) -> None:
    store = MemoryStore()
    engines = [
        Purse(store, "shop", 150, None, lambda: MIDNIGHT, budget_lock(str(tmp_path)))
        for _ in range(2)
    ]

    async def reserve(name: str, engine: Purse) -> bool:
        async with engine.alone():
            enough = (left(engine, name) or 0) >= 100
            await asyncio.sleep(0)  # what others do between a look and what is stored
            if enough:
                paid(store, name, (1500, None))
        return enough

    async def both() -> list[bool]:
        return await asyncio.gather(*map(reserve, ("r-1", "r-2"), engines))

    assert asyncio.run(both()) == [True, False]


class Counting(MemoryStore):
    """A store that counts the events that are read."""

    events = 0

    def told(
        self, journals: Iterable[str], kinds: Collection[type[Event]], since: int = 0
    ) -> Iterator[tuple[str, Recorded]]:
        for found in super().told(journals, kinds, since):
            self.events += 1
            yield found

    def read(self, journal: str, after: int = 0) -> Iterator[Recorded]:
        for found in super().read(journal, after):
            self.events += 1
            yield found


@pytest.mark.parametrize(("day", "whole"), [(1000, None), (None, 1000)])
def test_of_a_long_journal_only_what_is_new_is_read(day: int | None, whole: int | None) -> None:
    store = Counting()
    paid(store, "r-1", *[(1500, 1)] * 50, (1500, None))
    found = purse(store, day, whole)
    assert left(found, "r-2") == 1000 - 50 - 100
    store.events = 0
    assert left(found, "r-2") == 1000 - 50 - 100
    assert store.events == 0
    for at, event in (
        (1600, CallFailed(StepId("a"), 1, 51, "cut_off", cost=20)),
        (1700, CallStarted(StepId("a"), 1, 52, "p:m", NONE, 7, 9)),
        (1800, CallAnswered(StepId("a"), 1, 52, NONE, 4, 5, cost=3)),
    ):
        store.commit(Batch([Append("run:r-1", store.last("run:r-1"), [(at, event)], 1)]))
    assert left(found, "r-2") == 1000 - 50 - 20 - 3
    assert store.events == 3


def test_a_call_that_fails_after_midnight_is_of_today() -> None:
    store = MemoryStore()
    paid(store, "r-1", (500, None))
    failed = (1500, CallFailed(StepId("a"), 1, 1, "cut_off", cost=40))
    store.commit(Batch([Append("run:r-1", store.last("run:r-1"), [failed], 1)]))
    assert left(purse(store, 1000, None), "r-2") == 960


def test_others_have_their_turn_while_long_journals_are_read() -> None:
    store = MemoryStore()
    paid(store, "r-1", *[(1500, 1)] * 2000)
    found, turns = purse(store, 10_000, None), 0

    async def look() -> None:
        nonlocal turns
        waiting = asyncio.ensure_future(found.alone().__aenter__())
        while not waiting.done():
            await asyncio.sleep(0)
            turns += 1
        assert left(found, "r-2") == 8000

    asyncio.run(look())
    assert turns > 5
