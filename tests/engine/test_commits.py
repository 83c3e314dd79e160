"""How often a run commits, and which thread does it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from holdfast import wire
from holdfast.api import Plan
from holdfast.core.state import State
from holdfast.engine.runs import start_run
from holdfast.model.event import Options
from holdfast.ports import Batch
from holdfast.store.sqlite import SqliteStore


class Counted(SqliteStore):
    """Notes the thread of each commit."""

    threads: list[int]

    def commit(self, batch: Batch) -> None:
        self.threads.append(threading.get_ident())
        super().commit(batch)


def run(plan: Plan) -> tuple[State, list[int]]:
    location = wire.store_location(plan.root, None)
    with Counted.open(location, create=True) as store:
        store.threads = []
        wishes = wire.Wishes(functions=plan.functions)
        built = plan.build()
        world = wire.world_for(built, plan.root, location, store, wishes)
        state = wire.drive(lambda: start_run(world, built, "line", Options()), world=world)
        return state, store.threads


def chain(place: Path, length: int) -> Plan:
    plan = Plan("chain", root=str(place))
    for number in range(length):
        needs = [f"s{number - 1}"] if number else []
        plan.step(f"s{number}", lambda **needs: "".join(needs), needs=needs, inline=True)
    return plan


@pytest.mark.req("E7")
def test_a_step_and_the_start_of_what_it_frees_are_one_commit(tmp_path: Path) -> None:
    state, threads = run(chain(tmp_path, 20))
    assert state.status == "completed"
    assert len(threads) == 20 + 1  # the first start, then one for each step that ended


def test_functions_alone_are_committed_without_another_thread(tmp_path: Path) -> None:
    _, threads = run(chain(tmp_path, 5))
    assert set(threads) == {threading.get_ident()}


def test_a_wide_plan_is_committed_in_groups(tmp_path: Path) -> None:
    plan = Plan("wide", root=str(tmp_path))
    for number in range(600):
        plan.step(f"s{number}", lambda: "", inline=True)
    state, threads = run(plan)
    assert state.counts["done"] == 600
    assert len(threads) == 4  # three groups of at most 256 begin; the end of the last one
