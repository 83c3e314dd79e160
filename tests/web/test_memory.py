"""What a page keeps in memory does not grow with what it was shown."""

import gc
from pathlib import Path

import pytest

from holdfast.cli.place import Place
from holdfast.core.state import State
from holdfast.model.plan import RunId
from holdfast.ports import Batch
from holdfast.store.sqlite import SqliteStore
from holdfast.web.look import Look
from tests.web.big import large_run

MANY = 6


def folded() -> int:
    """How many runs lie folded in memory."""
    gc.collect()
    return sum(type(one) is State for one in gc.get_objects())


def looked(look: Look, runs: list[str]) -> int:
    """How many runs lie folded in memory after a look at these; each was there to be seen."""
    assert all(is_there(look, RunId(run)) for run in runs)
    return folded()


def is_there(look: Look, run: RunId) -> bool:
    state = look.state(run)
    return state is not None and state.run == run


@pytest.mark.req("I16")
def test_a_page_that_saw_twice_as_many_runs_keeps_no_more_of_them(tmp_path: Path) -> None:
    before, folder = folded(), tmp_path / ".holdfast"
    runs = [large_run(folder, 8, line=f"line{number}") for number in range(4 * MANY)]
    look = Look(Place(None, str(tmp_path), str(folder), None), most_runs=MANY)
    kept = looked(look, runs[: 2 * MANY])
    assert kept == before + MANY
    assert looked(look, runs) == kept
    assert looked(look, [runs[0], *runs[-MANY:]]) == kept, "the ones of just now are there"
    look.close()


@pytest.mark.req("I16")
def test_a_run_that_was_removed_is_not_kept(tmp_path: Path) -> None:
    before, folder = folded(), tmp_path / ".holdfast"
    run = RunId(large_run(folder, 8))
    look = Look(Place(None, str(tmp_path), str(folder), None))
    assert looked(look, [run]) == before + 1
    store = SqliteStore.open(str(folder), create=False)
    store.remove_run(run, Batch([]))
    store.close()
    assert look.state(run) is None
    assert folded() == before
    look.close()
