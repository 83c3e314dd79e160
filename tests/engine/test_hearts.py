"""The heart of an engine beats whatever else it does, and who was taken for dead hears of it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.engine.hold import Hold
from holdfast.engine.world import World
from holdfast.errors import FencedError
from holdfast.executors.local import LocalExecutor
from holdfast.ports import Holder
from holdfast.store.sqlite import SqliteStore
from tests.cli.project import until
from tests.laws.harness import Bed


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore.open(str(tmp_path / "store"), create=True)
    yield made
    made.close()


@pytest.fixture
def world(store: SqliteStore, tmp_path: Path) -> World:
    made = Bed(store, str(tmp_path)).world(LocalExecutor({}, {}))
    return replace(made, beat_seconds=0.02, gone=lambda _: False)


def only(store: SqliteStore) -> Holder:
    (found,) = store.holders("", "line")
    return found


@pytest.mark.req("D16", "R49")
def test_a_heart_beats_though_nothing_else_goes_on(store: SqliteStore, world: World) -> None:
    hold = Hold(world, "", "line")
    hold.take(join=False)
    until(lambda: only(store).beat > 3, "it beats while this thread waits")
    hold.check_alive()
    hold.release()
    assert not store.holders("", "line")


@pytest.mark.req("D14", "I3")
def test_who_stood_still_past_its_lease_asks_before_it_goes_on(
    store: SqliteStore, world: World
) -> None:
    hold = Hold(replace(world, beat_seconds=3600, lease_seconds=0.0), "", "line")
    hold.take(join=False)
    hold.check_alive()
    assert store.bury(only(store))
    with pytest.raises(FencedError):
        hold.check_alive()


@pytest.mark.req("D14")
def test_a_live_process_whose_heart_stood_still_for_a_lease_is_dead(
    store: SqliteStore, world: World
) -> None:
    first = Hold(replace(world, beat_seconds=3600), "", "line")
    first.take(join=False)
    said: list[str] = []
    other = replace(world.owner, engine="another")
    second = replace(world, owner=other, poll_seconds=0.01, lease_seconds=0.05, say=said.append)
    hold = Hold(second, "", "line")
    hold.take(join=True)
    assert [holder.owner.engine for holder in store.holders("", "line")] == ["another"]
    assert any("stood still for 0.05 s" in line for line in said)
    with pytest.raises(FencedError):
        first.announce(None)
    hold.release()
