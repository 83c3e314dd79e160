"""A process that takes many locks one after the other keeps none of them."""

import gc
import os
from pathlib import Path

import pytest

from holdfast.store.host import line_lock

MANY = 100


def after(locks: int, folder: Path) -> int:
    """How many objects there are after so many locks were taken and given back."""
    assert all(is_taken(folder) for _ in range(locks))
    gc.collect()
    return len(gc.get_objects())


def is_taken(folder: Path) -> bool:
    with line_lock(str(folder), "project", "line") as lock:
        return lock.try_lock()


@pytest.mark.req("I16")
def test_twice_as_many_locks_leave_no_more_objects(tmp_path: Path) -> None:
    after(MANY, tmp_path)
    first = after(MANY, tmp_path)
    assert after(MANY, tmp_path) - first < MANY


def test_a_forked_child_lets_go_of_every_lock(tmp_path: Path) -> None:
    locks = [line_lock(str(tmp_path), "project", name) for name in ("a", "b")]
    assert all(lock.try_lock() for lock in locks)
    child = os.fork()
    if child == 0:
        os._exit(sum(lock.held for lock in locks))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert all(lock.held for lock in locks)
    for lock in locks:
        lock.release()
