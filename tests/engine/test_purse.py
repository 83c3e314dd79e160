"""What budgets of a day and a project leave to a run."""

import pytest

from holdfast.engine.purse import Purse
from holdfast.model.digest import Digest
from holdfast.model.event import CallAnswered, CallStarted, Event, Options, RunStarted
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Append, Batch, Store
from holdfast.store.memory import MemoryStore
from holdfast.testing import FakeClock

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


def purse(
    store: Store, day: int | None, whole: int | None, clock: FakeClock | None = None
) -> Purse:
    monotonic = (lambda: 0.0) if clock is None else (lambda: clock() / 1000)
    return Purse(store, "shop", day, whole, lambda: MIDNIGHT, monotonic)


def test_what_others_spent_today_is_gone() -> None:
    store = MemoryStore()
    paid(store, "r-1", (500, 70), (1500, 30))
    paid(store, "r-2", (1600, 5), project="other")
    assert purse(store, 1000, None)(RunId("r-3")) == 1000 - 30 - 5


def test_what_it_spent_itself_on_days_before_is_not_of_today() -> None:
    store = MemoryStore()
    paid(store, "r-1", (500, 70), (1500, 30))
    assert purse(store, 1000, None)(RunId("r-1")) == 1000 + 70


def test_a_project_counts_for_ever_and_only_its_own() -> None:
    store = MemoryStore()
    paid(store, "r-1", (500, 70), (1500, 30))
    paid(store, "r-2", (1600, 5), project="other")
    assert purse(store, None, 1000)(RunId("r-3")) == 900
    assert purse(store, 920, 1000)(RunId("r-3")) == 885
    assert purse(store, None, None)(RunId("r-3")) is None


def test_a_call_under_way_counts_with_all_that_it_reserved() -> None:
    store = MemoryStore()
    paid(store, "r-1", (1500, None))
    assert purse(store, 1000, None)(RunId("r-2")) == 900


def test_others_are_looked_at_once_a_second() -> None:
    store, clock = MemoryStore(), FakeClock()
    found = purse(store, 1000, None, clock)
    assert found(RunId("r-3")) == 1000
    paid(store, "r-1", (1500, 30))
    assert found(RunId("r-3")) == 1000
    clock.advance(1000)
    assert found(RunId("r-3")) == 970
