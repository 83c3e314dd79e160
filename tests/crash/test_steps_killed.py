"""A step's own processes are killed: the engine goes on, within the budget for lost attempts."""

import os
import signal
import subprocess
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.crash import plans
from tests.crash.faults import Answer, Scene, left_behind, marked, unsound, until


def patient(folder: Path, waits: int) -> Scene:
    scene = Scene(folder)
    plans.write_project(scene.root, plans.patient(waits), {"waits.txt": "before\n"})
    os.mkfifo(folder / "gate")
    return scene


def groups(scene: Scene, attempt: int) -> set[int]:
    """The process groups of the shells of one attempt at the waiting step."""
    found = set()
    for pid in marked([f"{run}/waits/{attempt}" for run in scene.journal().runs]):
        with suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"/bin/sh\0"):
                found.add(os.getpgid(pid))
    return found


def run_and_kill(scene: Scene, times: int) -> Answer:
    """Kill the process group of the waiting step each time it has begun."""
    engine = scene.start("run", "-j", "2")
    for attempt in range(1, times + 1):
        until(partial(has_begun, scene, attempt), engine)
        for group in until(partial(groups, scene, attempt), engine):
            os.killpg(group, signal.SIGKILL)
    try:
        return scene.said(engine.wait(60))
    finally:
        engine.kill()


def has_begun(scene: Scene, attempt: int) -> bool:
    return scene.begun()["waits"] == attempt


def facts(scene: Scene, step: str) -> list[tuple[str, str]]:
    """What the journal says about the attempts at a step, and why they ended."""
    journal = scene.journal()
    return [
        (kind, body.get("code", ""))
        for kind, body in journal.facts[f"run:{journal.runs[-1]}"]
        if body.get("step") == step and kind != "attempt_started"
    ]


def check_nothing_is_left(scene: Scene) -> None:
    assert list(left_behind(scene)) == []
    assert list(marked(scene.journal().runs)) == []
    assert unsound(scene.store) == []


@pytest.mark.req("R74", "I12")
def test_a_killed_step_is_tried_once_more_and_the_engine_goes_on(tmp_path: Path) -> None:
    scene = patient(tmp_path, waits=1)
    answer = run_and_kill(scene, 1)
    assert answer.code == 0, answer.err
    assert facts(scene, "waits") == [("attempt_lost", "lost"), ("attempt_accepted", "")]
    assert scene.begun() == {"beside": 1, "waits": 2, "below": 1}
    assert (scene.root / "waits.txt").read_text() == "half\n"
    befores = [places for _, step, places in scene.journal().befores() if step == "waits"]
    assert [len(places) for places in befores] == [1], "put back before the second attempt"
    check_nothing_is_left(scene)


@pytest.mark.req("R74", "R93", "I12")
def test_a_step_that_is_killed_again_fails_and_resume_tries_it_afresh(tmp_path: Path) -> None:
    scene = patient(tmp_path, waits=2)
    answer = run_and_kill(scene, 2)
    assert answer.code == 1, answer.err
    assert [kind for kind, _ in facts(scene, "waits")] == [
        *("attempt_lost", "attempt_lost", "step_failed")
    ]
    assert (scene.root / "waits.txt").read_text() == "before\n", "it was put back"
    assert scene.begun() == {"beside": 1, "waits": 2}
    resumed = scene.call("resume")
    assert resumed.code == 0, resumed.err
    assert scene.begun() == {"beside": 1, "waits": 3, "below": 1}
    assert (scene.root / "waits.txt").read_text() == "half\n"
    check_nothing_is_left(scene)


def test_a_listener_that_went_away_does_not_end_the_engine(tmp_path: Path) -> None:
    scene = patient(tmp_path, waits=0)
    read, write = os.pipe()
    os.close(read)
    engine = subprocess.Popen(
        [*scene.command, "run", "-j", "1"],
        cwd=scene.root,
        env=scene.environment({}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=write,
    )
    os.close(write)
    try:
        assert engine.wait(60) == 0
    finally:
        engine.kill()
    assert scene.begun() == {"beside": 1, "waits": 1, "below": 1}
    check_nothing_is_left(scene)
