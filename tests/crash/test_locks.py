"""Another process has the database locked, again and again: steps wait, none fails, waiting is idle."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from holdfast.store.sqlite import SqliteStore
from tests.crash import plans
from tests.crash.disk import blamed
from tests.crash.faults import Case, Reference, Report, Scene, lay, reference_of, until

STORM = """
import sys, time, apsw
connection = apsw.Connection(sys.argv[1])
connection.set_busy_timeout(60_000)
for _ in range(int(sys.argv[2])):
    connection.execute("BEGIN EXCLUSIVE")
    print("held", flush=True)
    time.sleep(float(sys.argv[3]))
    connection.execute("ROLLBACK")
    print("free", flush=True)
    time.sleep(float(sys.argv[4]))
"""


def used(pid: int) -> float:
    """Seconds of processor time of a process alone."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@contextmanager
def storm(scene: Scene, times: int, seconds: float, gap: float) -> Iterator[Iterator[str]]:
    """Another process that locks the database so often; gives its words, once it has it."""
    words = (str(scene.store / "state.db"), str(times), str(seconds), str(gap))
    with subprocess.Popen(
        [sys.executable, "-c", STORM, *words], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process.stdout
        assert process.wait() == 0


def gated(folder: Path, length: int) -> Scene:
    """A project whose second step waits until it is let through; the others follow one by one."""
    steps: dict[str, object] = {
        "first": {"shell": plans.noted("echo first")},
        "gate": {
            "shell": plans.noted('read x < "$HOLDFAST_ROOT/../gate"; echo gate'),
            "needs": ["first"],
        },
    }
    for number in range(length):
        before = f"s{number - 1}" if number else "gate"
        steps[f"s{number}"] = {"shell": plans.noted(f"echo {number}"), "needs": [before]}
    scene = Scene(folder)
    plans.write_project(scene.root, {"name": "gated", "steps": steps}, {})
    os.mkfifo(folder / "gate")
    return scene


def let_through(scene: Scene) -> None:
    (scene.folder / "gate").write_text("go\n")


def undisturbed(folder: Path, length: int) -> Reference:
    scene = gated(folder, length)
    helper = Thread(target=let_through, args=[scene])
    helper.start()
    reference = reference_of(scene)
    helper.join()
    return reference


def stormed(tmp_path: Path, report: Report, times: int, seconds: float, length: int = 6) -> None:
    """The database is locked again and again while steps end and begin."""
    reference = undisturbed(tmp_path / "undisturbed", length)
    scene = gated(tmp_path / "case", length)
    case = Case(scene, reference, report, f"locked {times} times for {seconds} s")
    running = scene.start("run")
    until(lambda: "first" in scene.said(0).acknowledged, running)
    report.kept += len(scene.said(0).acknowledged)
    spent, holds = 0.0, 1
    with storm(scene, times, seconds, gap=0.15) as words:
        let_through(scene)
        before = used(running.pid)
        for line in words:
            if running.poll() is not None:
                break
            now = used(running.pid)
            if line == "held\n":
                holds, before = holds + 1, now
                report.tried += 1
            else:
                case.fired()
                spent += now - before
    answer = scene.said(running.wait(120))
    case.ended(f"exit {answer.code}")
    if answer.code:
        case.violated(f"it ended with {answer.code}: {answer.err[-800:]}")
    if blame := blamed(scene.journal()):
        case.violated(f"a step was blamed for a lock: {dict(blame)}")
    if spent > 0.2 * holds * seconds:
        case.violated(f"{spent:.1f} s of processor time in {holds} waits of {seconds} s")
    case.finished(answer)


@pytest.mark.req("D09")
def test_a_lock_storm_fails_no_step(tmp_path: Path, settle: Callable[[Report], None]) -> None:
    report = Report("D09 locked again and again")
    stormed(tmp_path, report, 4, 1.2)
    settle(report)


@pytest.mark.soak("lock")
@pytest.mark.req("D09")
def test_a_long_lock_storm_fails_no_step(tmp_path: Path, settle: Callable[[Report], None]) -> None:
    report = Report("D09 locked for 30 s, ten times")
    stormed(tmp_path, report, 10, 30, length=120)  # more than fit between two locks
    settle(report)
    assert report.fired > 2


@pytest.mark.req("D09")
def test_who_waits_long_says_for_what(tmp_path: Path) -> None:
    scene = lay(tmp_path / "case", "tiny")
    scene.store.mkdir()
    SqliteStore.open(str(scene.store), create=True).close()
    with storm(scene, 1, 3.0, gap=0):
        answer = scene.call("run")
    assert answer.code == 0, answer.err
    assert answer.err.count("waiting: another process has the database") == 1


@pytest.mark.req("D09", "D16")
def test_a_heart_that_waits_for_the_lock_does_not_wait_for_who_listens(tmp_path: Path) -> None:
    """A terminal that stands still must not cost an engine its line."""
    scene = lay(tmp_path / "case", "tiny")
    scene.store.mkdir()
    said, heard = Event(), Event()

    def say(_: str) -> None:
        said.set()
        heard.wait(300)

    store = SqliteStore.open(str(scene.store), create=True, say=say)
    done: list[bool] = []
    heart = Thread(
        target=lambda: done.append(store.beat("nobody", sharing=False, run=None)), daemon=True
    )
    try:
        with storm(scene, 1, 3.0, gap=0):
            heart.start()
            assert said.wait(60)
        heart.join(60)
        assert done == [False]
    finally:
        heard.set()
        heart.join()
        store.close()
