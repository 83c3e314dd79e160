"""How often a run commits, and which thread does it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from holdfast import wire
from holdfast.api import Plan
from holdfast.core.state import State
from holdfast.engine import scribe
from holdfast.engine.runs import start_run
from holdfast.model.event import Options
from holdfast.model.plan import Step, StepId
from holdfast.ports import Batch
from holdfast.store.sqlite import SqliteStore


class Counted(SqliteStore):
    """Notes the thread of each commit."""

    threads: list[int]

    def commit(self, batch: Batch, *, wait: bool = True) -> None:
        self.threads.append(threading.get_ident())
        super().commit(batch, wait=wait)


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


def runs(command: str) -> bool:
    """Whether a process with this command line is there."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if place.read_bytes().replace(b"\0", b" ").strip() == command.encode():
                return True
    return False


@pytest.mark.req("D09")
def test_a_locked_database_does_not_keep_a_timeout_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has the database locked when a step ends: what else runs is watched all the same."""
    fast = 1 << 40  # a disk so fast that the loop commits by itself
    monkeypatch.setattr(scribe, "QUICK_MS", fast)
    command = f"sleep 98{os.getpid():07}"
    plan = Plan("late", root=str(tmp_path))
    plan.add(Step(StepId("ends"), run=("true",)))
    plan.add(Step(StepId("late"), run=tuple(command.split()), timeout=3.0, lost_retries=0))
    built, location = plan.build(), wire.store_location(str(tmp_path), None)
    other: list[apsw.Connection] = []
    seen: list[bool] = []

    def let_go() -> None:
        seen.append(_until(lambda: runs(command)) and _until(lambda: not runs(command)))
        other[0].execute("ROLLBACK")

    def lock(_: object) -> None:
        if len(other) == 0 and store.last(f"run:{store.runs()[0].run}") > 1:  # both were begun
            other.append(apsw.Connection(f"{location}/state.db"))
            other[0].execute("BEGIN IMMEDIATE")
            threading.Thread(target=let_go).start()

    with SqliteStore.open(location, create=True) as store:
        wishes = wire.Wishes(parallel=2, on_events=lock)
        world = wire.world_for(built, str(tmp_path), location, store, wishes)
        state = wire.drive(lambda: start_run(world, built, "line", Options()), world=world)
    assert seen == [True], "the step outlived its time while the database was locked"
    assert state.steps[StepId("ends")].phase == "done"
    reason = state.steps[StepId("late")].reason
    assert reason is not None
    assert reason.code == "timed_out"


def _until(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 30
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
