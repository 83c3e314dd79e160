"""How many steps are under way when models are asked: by provider, by machine, by plan, one by one."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.testing.server import Asked, ModelServer, Say
from tests.cli.models import served, step
from tests.cli.project import Project, finish, finish_run, until

PATIENCE = 240.0  # seconds: an engine of its own loads the library first


class Crowds:
    """Holds each answer back until so many requests are there; the next so many are another crowd."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._met: dict[int, threading.Event] = {}

    def __call__(self, asked: Asked) -> Say:
        crowd = (asked.number - 1) // self._size
        met = self._met.setdefault(crowd, threading.Event())
        if asked.number % self._size == 0:
            met.set()
        return Say(f"answer to {asked.last}", after=met)


@contextmanager
def asked_in_crowds(project: Project, size: int, at_once: int) -> Iterator[ModelServer]:
    with served(project, Crowds(size), provider=f"at_once = {at_once}") as server:
        yield server


def test_a_crowd_waits_at_the_door_of_the_server() -> None:
    server = ModelServer("ok")  # it takes nobody in before it serves
    host, _, port = server.url.removeprefix("http://").removesuffix("/v1").partition(":")
    crowd = [socket.create_connection((host, int(port)), timeout=5) for _ in range(200)]
    for one in crowd:
        one.close()
    with server:
        assert not server.requests


@pytest.mark.req("R168")
@pytest.mark.parametrize("jobs", [(), ("-j", "2")])
def test_as_many_calls_are_out_as_the_provider_bears(
    project: Project, jobs: tuple[str, ...]
) -> None:
    project.plan({f"s{n}": step(f"number {n}") for n in range(50)})
    with asked_in_crowds(project, 5, at_once=5) as server:
        run = project.run("--yes", *jobs)
    assert (run.code, set(run.states.values())) == (0, {"done"}), run.err
    assert (len(server.requests), server.most) == (50, 5)


@pytest.mark.req("R168")
def test_the_limit_of_the_plan_bounds_all_steps(project: Project) -> None:
    project.plan({f"s{n}": step(f"number {n}") for n in range(12)}, limits={"parallel": 3})
    with asked_in_crowds(project, 3, at_once=64) as server:
        assert project.run("--yes", "-j", "8").code == 0
    assert (len(server.requests), server.most) == (12, 3)


def test_with_one_job_one_step_follows_the_other(project: Project) -> None:
    project.plan(
        {f"s{n}": step(f"number {n}") if n % 2 else {"shell": "echo x"} for n in range(12)}
    )
    with asked_in_crowds(project, 1, at_once=64) as server:
        assert project.run("--yes", "-j", "1").code == 0
    assert (len(server.requests), server.most) == (6, 1)
    kinds = [event["event"] for event in project.events() if "attempt_" in event["event"]]
    assert kinds == ["attempt_started", "attempt_accepted"] * 12


def test_who_waits_for_a_model_and_who_works_do_not_wait_for_each_other(project: Project) -> None:
    busy = {"shell": project.sh(held(project, "work")), "priority": "high"}
    project.plan({"w0": busy, "w1": busy, "ask": step()})
    with served(project, "ok") as server:
        engine = project.start("run", "--yes", "--json", "-j", "2")
        until(
            lambda: len(project.begun()) == 2 and server.requests,
            "all three are under way",
            PATIENCE,
        )
        project.open("work")
        assert finish_run(engine).code == 0
    answered = threading.Event()
    project.plan({"ask0": step("a"), "ask1": step("b"), "w": {"shell": project.sh()}})
    with served(project, lambda _: Say("ok", after=answered)):
        engine = project.start("run", "--yes", "--json", "-j", "2")
        until(lambda: project.begun()[2:] == ["w"], "it works while both wait")
        answered.set()
        assert finish_run(engine).code == 0


def test_guards_of_many_answers_start_no_more_processes_than_places(project: Project) -> None:
    script = f"echo begin >> {project.log}; {held(project, 'judge')}; echo end >> {project.log}"
    guard = {"command": ["/bin/sh", "-c", script]}
    project.plan({f"s{n}": step(f"number {n}", guards=[guard]) for n in range(6)})
    with asked_in_crowds(project, 6, at_once=6):
        engine = project.start("run", "--yes", "-j", "2")
        until(
            lambda: len(project.begun()) >= 2 and answers(project) == 6,
            "all were answered",
            PATIENCE,
        )
        project.open("judge")
        assert finish(engine).code == 0
    assert most_at_once(project.begun()) == 2


def held(project: Project, name: str) -> str:
    """A piece of shell that waits until the test opens a gate, however long that takes."""
    return f"until [ -e {project.gates / name} ]; do sleep 0.03; done"


def answers(project: Project) -> int:
    return sum(event["event"] == "call_answered" for event in project.events())


def most_at_once(notes: list[str]) -> int:
    now = most = 0
    for note in notes:
        now += 1 if note == "begin" else -1
        most = max(most, now)
    return most


SLOW_TO_LOAD = """
import importlib.abc, os, sys, time
class Gate(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "pydantic_ai.models":
            sys.meta_path.remove(self)
            open(os.path.join({gates!r}, "loading"), "w").close()
            while not os.path.exists(os.path.join({gates!r}, "load")):
                time.sleep(0.02)
sys.meta_path.insert(0, Gate())
"""


def test_loading_the_library_is_no_part_of_an_attempt(project: Project, tmp_path: Path) -> None:
    place = tmp_path / "slow"
    place.mkdir()
    (place / "sitecustomize.py").write_text(SLOW_TO_LOAD.format(gates=str(project.gates)))
    project.plan({"ask": step(), "work": {"shell": project.sh()}})
    with served(project, "ok") as server:
        engine = project.start("run", "--yes", "--json", env={"PYTHONPATH": str(place)})
        until((project.gates / "loading").exists, "the library is being loaded", PATIENCE)
        until(lambda: "attempt_accepted" in kinds(project), "the other step is made", PATIENCE)
        assert kinds(project).count("attempt_started") == 1, "that of the model has not begun"
        project.open("load")
        run = finish_run(engine)
    assert (run.code, len(server.requests)) == (0, 1), run.err


def kinds(project: Project) -> list[str]:
    return [event["event"] for event in project.events()]
