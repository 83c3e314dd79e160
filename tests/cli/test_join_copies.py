"""Several engines on one line and in one directory, whose steps change what they read: each once."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.cli.project import Project, Run, finish_run, kill, until
from tests.cli.test_join import QUICK
from tests.forge import Running

COPY = {"workspace": "scratch", "effects": "workspace"}
JOINED = ("run", "--json", "--join", "-j", "1", *QUICK)


def planned(project: Project, steps: str) -> None:
    """A step that goes on from what it left, one that removes what it reads; `l` reads before both."""
    project.write("chain.txt", "start\n")
    project.write("old.txt", "o\n")
    wait = f"{project.gate('go')}; "
    bodies: dict[str, dict[str, Any]] = {
        "a": {"shell": f"{wait}echo a >> chain.txt", "inputs": "chain.txt", **COPY},
        "l": {"shell": "cat chain.txt old.txt", "inputs": ["chain.txt", "old.txt"]},
        "r": {"shell": f"{wait}rm old.txt", "inputs": "old.txt", **COPY},
    }
    needs = {"needs": [{"step": "l", "type": "sequence"}]} if "l" in steps else {}
    for step in steps:
        bodies[step]["shell"] = project.sh(bodies[step]["shell"])
        bodies[step] |= needs if step != "l" else {}
    project.plan({step: bodies[step] for step in steps}, project="shop")


def is_there(project: Project, steps: str) -> None:
    """Each step changed its file once, and that stands."""
    assert project.read("chain.txt") == ("start\na\n" if "a" in steps else "start\n")
    assert project.has("old.txt") == ("r" not in steps)
    assert project.run("--join").states == dict.fromkeys(steps, "reused")
    project.ok("verify")


def is_done_once(project: Project, steps: str, *runs: Run) -> None:
    for run in runs:
        assert (run.code, run.data["status"]) == (0, "completed"), run.err
    assert sorted(project.begun()) == sorted(steps)
    is_there(project, steps)


def beats(project: Project, engine: Running) -> int:
    """How often an engine said that it lives; none if it is not there."""
    query = "SELECT max(beat) FROM holder WHERE pid = ?"
    return int(project.database().execute(query, (engine.pid,)).get or 0)


def has_looked(project: Project, engine: Running) -> None:
    """Wait until an engine had time to look around."""
    before = beats(project, engine)
    until(lambda: engine.poll() is not None or beats(project, engine) > before + 2)


@contextmanager
def locked(project: Project) -> Iterator[None]:
    """While nobody can write to the store."""
    database = apsw.Connection(str(project.store / "state.db"))
    database.set_busy_timeout(10_000)
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        database.execute("ROLLBACK")
        database.close()


def is_stopped(engine: Running) -> bool:
    """Whether every thread of an engine stands still."""
    threads = [task.read_text() for task in Path(f"/proc/{engine.pid}/task").glob("*/stat")]
    return {told.rpartition(")")[2].split()[0] for told in threads} == {"T"}


def stopped_with_what_it_wrote(project: Project, steps: str) -> tuple[Running, Running]:
    """An engine that stands still when it wrote what a step made and said so nowhere; one that joined it."""
    planned(project, steps)
    first = project.begun_by(*JOINED, step=steps[-1])
    second = project.start(*JOINED)
    until(lambda: beats(project, second) > 2, "the other one joined, and looked")
    with locked(project):
        project.open("go")
        until(lambda: project.read("chain.txt") != "start\n" or not project.has("old.txt"))
        os.kill(first.pid, signal.SIGSTOP)
        until(lambda: is_stopped(first), "it stands still")
    return first, second


@pytest.mark.req("R49", "R67")
@pytest.mark.parametrize("time", range(3))
def test_two_engines_that_begin_together_change_each_file_once(project: Project, time: int) -> None:
    planned(project, "ar")
    engines = [project.start(*JOINED) for _ in range(2)]
    until(lambda: len(project.begun()) == 2, f"each has a step, for the {time}. time")
    project.open("go")
    is_done_once(project, "ar", *map(finish_run, engines))


@pytest.mark.req("R49", "R67")
def test_many_files_are_changed_once_each_by_two_engines(project: Project) -> None:
    files = [f"f{n}.txt" for n in range(60)]
    for file in files:
        project.write(file, "start\n")
    project.plan(
        {
            f"s{n}": {"shell": project.sh(f"echo a >> {file}"), "inputs": file, **COPY}
            for n, file in enumerate(files)
        }
    )
    runs = [finish_run(one) for one in [project.start(*JOINED) for _ in range(2)]]
    assert [run.code for run in runs] == [0, 0]
    assert {project.read(file) for file in files} == {"start\na\n"}
    assert len(project.begun()) == len(files)


@pytest.mark.req("R49", "I7")
@pytest.mark.parametrize("step", ["a", "r"])
def test_what_an_engine_wrote_and_did_not_say_yet_is_waited_for(
    project: Project, step: str
) -> None:
    first, second = stopped_with_what_it_wrote(project, step)
    has_looked(project, second)
    os.kill(first.pid, signal.SIGCONT)
    is_done_once(project, step, finish_run(first), finish_run(second))


@pytest.mark.req("R49", "I7")
@pytest.mark.parametrize("step", ["a", "r"])
def test_who_joins_then_makes_nothing_anew_of_what_a_step_below_wrote(
    project: Project, step: str
) -> None:
    first, second = stopped_with_what_it_wrote(project, f"l{step}")
    third = project.start(*JOINED)
    until(lambda: beats(project, third) > 2 or third.poll() is not None)
    os.kill(first.pid, signal.SIGCONT)
    is_done_once(project, f"l{step}", *map(finish_run, (first, second, third)))


@pytest.mark.req("R49", "R74", "I7")
@pytest.mark.parametrize("step", ["a", "r"])
def test_what_a_killed_engine_wrote_and_never_said_is_made_once(
    project: Project, step: str
) -> None:
    first, second = stopped_with_what_it_wrote(project, step)
    has_looked(project, second)
    kill(first)
    run = finish_run(second)
    assert (run.code, run.states, project.begun()) == (0, {step: "done"}, [step, step]), run.err
    is_there(project, step)
