"""Slow is not dead, and dead is not slow: a heart that beats keeps a step, a hung attempt does not."""

import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

from tests.crash import plans
from tests.crash.faults import NONE, Fault, Running, Scene, left_behind, marked, unsound, until

BEAT, LEASE, LEASES = 0.1, 1.5, 5
QUICK = ("--poll", "0.05", "--beat", str(BEAT), "--lease", str(LEASE))
JOIN = ("run", "--join", "-j", "2", *QUICK)
WORK = f"""{plans.WORK}

def hangs():
    note("begin")
    if os.environ["HOLDFAST_ATTEMPT"] == "1":
        open(os.path.join(os.environ["HOLDFAST_ROOT"], os.pardir, "gate")).read()
    return "python"
"""


class Heart(NamedTuple):
    pid: int
    beat: int
    sharing: bool


def hearts(scene: Scene) -> list[Heart]:
    """The engines that hold the line, in the order they came."""
    if not (scene.store / "state.db").exists():
        return []
    flags = apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(str(scene.store / "state.db"), flags=flags)
    connection.set_busy_timeout(10_000)
    try:
        query = "SELECT pid, beat, sharing FROM holder ORDER BY since, engine"
        return [Heart(int(p), int(b), bool(s)) for p, b, s in connection.execute(query)]
    except apsw.SQLError:  # it is being made
        return []
    finally:
        connection.close()


def are_two(scene: Scene) -> bool:
    """Two share the line; or the step was begun again, and it is too late to see them."""
    found = hearts(scene)
    return (len(found) == 2 and all(heart.sharing for heart in found)) or has_begun(scene, 2)


def have_beaten(scene: Scene, before: list[Heart], times: int) -> bool:
    now = hearts(scene)
    return {len(now), len(before)} != {2} or all(
        new.beat >= old.beat + times for new, old in zip(now, before, strict=True)
    )


def has_begun(scene: Scene, times: int) -> bool:
    return scene.begun()["waits"] >= times


def open_gate(scene: Scene) -> None:
    """Let go up to two who wait at it: each reads a line."""
    gate = os.open(scene.folder / "gate", os.O_WRONLY)
    os.write(gate, b"go\n" * 2)
    os.close(gate)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path)
    plan = plans.patient(waits=1)
    plan["defaults"] = {"workspace": "scratch"}
    plans.write_project(made.root, plan, {})
    os.mkfifo(tmp_path / "gate")
    return made


@pytest.fixture
def start(scene: Scene) -> Iterator[Callable[..., Running]]:
    """Start engines that end with the test."""
    started: list[Running] = []

    def begin(voice: str, fault: Fault = NONE) -> Running:
        started.append(scene.start(*JOIN, fault=fault, voice=voice))
        return started[-1]

    yield begin
    for engine in started:
        engine.send_signal(signal.SIGCONT)
        engine.kill()
        engine.wait()


@pytest.fixture
def elsewhere(require_part: Callable[[str], str]) -> Fault:
    """Among other processes: who is there cannot see whether an engine outside lives."""
    words = ("--pid", "--fork", "--mount-proc", "--kill-child")
    return Fault("elsewhere", (require_part("unshare"), *words))


@pytest.mark.req("D16", "I9")
def test_a_slow_step_with_a_beating_heart_is_not_taken(
    scene: Scene, start: Callable[..., Running], elsewhere: Fault
) -> None:
    first = start("-1")
    until(partial(has_begun, scene, 1), first)
    second = start("-2", elsewhere)
    until(partial(are_two, scene), second)
    before = hearts(scene)
    until(partial(have_beaten, scene, before, round(LEASES * LEASE / BEAT)), first)
    assert len(hearts(scene)) == 2, "the heart beats, and it was taken over"
    assert scene.begun()["waits"] == 1, "the heart beats, and it was taken over"
    open_gate(scene)
    assert (first.wait(60), second.wait(60)) == (0, 0)
    assert scene.begun() == {"beside": 1, "waits": 1, "below": 1}
    assert unsound(scene.store) == []


@pytest.mark.req("D14", "D16", "I2", "I9", "I10")
def test_a_heart_that_stands_still_gives_the_step_away_and_can_write_no_more(
    scene: Scene, start: Callable[..., Running], elsewhere: Fault
) -> None:
    first = start("-1")
    until(partial(has_begun, scene, 1), first)
    second = start("-2", elsewhere)
    until(partial(are_two, scene), second)
    first.send_signal(signal.SIGSTOP)
    until(partial(has_begun, scene, 2), second)
    assert scene.begun()["waits"] == 2, "what a dead heart had is taken over"
    open_gate(scene)
    assert second.wait(60) == 0, scene.said(0, "-2").err
    first.send_signal(signal.SIGCONT)
    assert first.wait(60) not in {0, -signal.SIGKILL}
    told = scene.said(0, "-1").err  # by its heart, or by the store if it writes first
    assert "took" in told or "was taken over" in told
    assert "Traceback" not in scene.said(0, "-1").err
    journal = scene.journal()
    assert [step for _, step in journal.accepted if step == "waits"] == ["waits"]
    assert list(marked(journal.runs)) == []
    assert scene.call("resume", journal.runs[0]).code == 0
    assert scene.begun() == {"beside": 1, "waits": 2, "below": 1}
    assert [*unsound(scene.store), *left_behind(scene)] == []


HANGS = "trap '' TERM INT HUP; if [ $HOLDFAST_ATTEMPT = 1 ]; then read x < \"$HOLDFAST_ROOT/../gate\"; fi"


@pytest.mark.req("D16", "R74", "I9", "I12")
def test_a_hung_attempt_past_its_time_is_ended_although_the_heart_beats(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    plan = {
        "name": "hangs",
        "steps": {
            "shell": {"shell": plans.noted(f"{HANGS}; echo shell"), "timeout": "1s"},
            "python": {"uses": "python", "run": "work:hangs", "timeout": "1s"},
        },
    }
    plans.write_project(scene.root, plan, {"work.py": WORK})
    os.mkfifo(tmp_path / "gate")
    engine = scene.start("run", "-j", "2", *QUICK)
    assert until(lambda: any(heart.beat > 3 for heart in hearts(scene)), engine)
    assert engine.wait(60) == 0, scene.said(0).err
    journal = scene.journal()
    ended = [
        (body["step"], kind, body.get("code", ""))
        for kind, body in journal.facts[f"run:{journal.runs[0]}"]
        if kind in {"attempt_lost", "attempt_accepted"}
    ]
    assert sorted(ended) == [
        ("python", "attempt_accepted", ""),
        ("python", "attempt_lost", "timed_out"),
        ("shell", "attempt_accepted", ""),
        ("shell", "attempt_lost", "timed_out"),
    ]
    assert scene.begun() == {"shell": 2, "python": 2}
    assert list(marked(journal.runs)) == []
    assert unsound(scene.store) == []
