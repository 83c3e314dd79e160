"""Stopping an engine: Ctrl-C once and twice, `stop` from elsewhere, and going on afterwards."""

import os
import signal
from collections.abc import Callable

import pytest

from tests.cli.project import Project, finish, finish_run
from tests.forge import Running

Stop = Callable[[Project, Running], None]


def two_after_one(project: Project) -> None:
    """One step that waits for the gate, one after it, one beside it that is done before."""
    project.plan(
        {
            "before": {"shell": project.sh("echo before")},
            "slow": {
                "shell": project.sh(f"{project.gate('go')}; echo slow"),
                "needs": ["before"],
            },
            "after": {"shell": project.sh("cat $HOLDFAST_INPUTS/slow"), "needs": ["slow"]},
        }
    )


def heard(process: Running, word: bytes) -> bytes:
    """Read what an engine says until it says this."""
    assert process.stderr is not None
    said = b""
    while word not in said:
        piece = process.stderr.readline()
        assert piece, said
        said += piece
    return said


def by_signal(project: Project, engine: Running) -> None:
    engine.send_signal(signal.SIGINT)
    heard(engine, b"stopping after the running steps")


def by_terminal(project: Project, engine: Running) -> None:
    """Ctrl-C of a terminal goes to everything in the group, not only to the engine."""
    os.killpg(engine.pid, signal.SIGINT)
    heard(engine, b"stopping after the running steps")


def by_command(project: Project, engine: Running) -> None:
    answer = project.ok("stop", "--json").json
    assert (answer["run"], answer["now"]) == (project.status().id, False)
    heard(engine, b"asked to stop")


@pytest.mark.req("R175")
@pytest.mark.parametrize("stop", [by_signal, by_terminal, by_command])
def test_stopping_keeps_the_running_step_and_starts_nothing_more(
    project: Project, stop: Stop
) -> None:
    two_after_one(project)
    engine = project.begun_by("run", "--json", "--poll", "0.05", step="slow")
    stop(project, engine)
    project.open("go")
    stopped = finish_run(engine)
    assert (stopped.code, stopped.data["status"]) == (130, "paused")
    assert stopped.states == {"before": "done", "slow": "done", "after": "pending"}
    assert project.ran() == ["before", "slow"]

    resumed = project.resume()
    assert (resumed.code, resumed.id) == (0, stopped.id)
    assert project.ran() == ["after"]
    assert project.shown("after") == b"slow\n"


def twice(project: Project, engine: Running) -> None:
    engine.send_signal(signal.SIGINT)
    heard(engine, b"stopping after the running steps")
    engine.send_signal(signal.SIGINT)


def now(project: Project, engine: Running) -> None:
    project.ok("stop", "--now")


def terminated(project: Project, engine: Running) -> None:
    engine.send_signal(signal.SIGTERM)


@pytest.mark.req("R175", "R170")
@pytest.mark.parametrize("stop", [twice, now, terminated])
def test_stopping_now_ends_the_running_step_which_runs_again_on_resume(
    project: Project, stop: Stop
) -> None:
    two_after_one(project)
    engine = project.begun_by("run", "--json", "--poll", "0.05", step="slow")
    stop(project, engine)
    stopped = finish_run(engine)
    assert (stopped.code, stopped.data["status"]) == (130, "paused")
    assert stopped.states == {"before": "done", "slow": "pending", "after": "pending"}
    project.open("go")
    project.ran()
    resumed = project.resume()
    assert (resumed.code, resumed.id) == (0, stopped.id)
    assert project.ran() == ["after", "slow"]
    codes = [e["code"] for e in project.events() if e["event"] == "attempt_lost"]
    assert codes == ["previous_interrupted"]
    assert resumed.field("attempts") == {"before": 1, "slow": 2, "after": 1}


def test_a_new_run_instead_of_resume_says_why_the_interrupted_step_runs(project: Project) -> None:
    two_after_one(project)
    engine = project.begun_by("run", "--json", step="slow")
    engine.send_signal(signal.SIGTERM)
    stopped = finish_run(engine)
    project.open("go")
    project.ran()
    fresh = project.run()
    assert fresh.id != stopped.id
    assert fresh.codes == {
        "before": "unchanged",
        "slow": "previous_interrupted",
        "after": "previous_incomplete",
    }
    assert project.ran() == ["after", "slow"]
    assert project.status(stopped.id).data["status"] == "superseded"
    assert "not running" in project.refused(2, "stop")


def test_stop_reaches_only_the_run_that_is_named(project: Project) -> None:
    two_after_one(project)
    engine = project.begun_by("run", "--json", "--poll", "0.05", step="slow")
    run = project.status().id
    assert "no run 'r-0000" in project.refused(2, "stop", "r-0000")
    project.ok("stop", run[:10], "--now")
    assert finish(engine).code == 130
