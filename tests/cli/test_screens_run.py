"""What runs look like: while they run, at their end, and afterwards."""

import pytest

from tests.cli.project import Project, finish, kill
from tests.cli.screens import Screen

GUARD = {"command": ["grep", "-q", "answer: yes", "report.md"], "name": "has-answer"}


def story(project: Project, *, good: bool = True) -> None:
    """Fetch, two reports of which one is guarded, a summary, and what is below."""
    answer = "yes" if good else "no"
    report = f"echo 'answer: {answer}' > report.md; echo wrote a report"
    project.write("words.txt", "one\n")
    project.plan(
        {
            "fetch": {"shell": "cat words.txt", "inputs": ["words.txt"]},
            "report": {
                "shell": report,
                "needs": ["fetch"],
                "produces": "report.md",
                "guards": [GUARD],
                "retries": 1,
            },
            "count": {"shell": "wc -w < words.txt", "inputs": ["words.txt"]},
            "summary": {"shell": "echo summary", "needs": ["report", "count"]},
        }
    )


def test_a_first_run_and_one_that_reuses(project: Project, screen: Screen) -> None:
    story(project)
    screen("run", "-j", "1", name="run-first")
    screen("run", "-j", "1", name="run-reused")
    project.write("words.txt", "two\n")
    screen("run", "-j", "1", name="run-again")
    screen("status", name="status-completed")


def test_a_run_that_fails_and_is_resumed(project: Project, screen: Screen) -> None:
    story(project, good=False)
    screen("run", "-j", "1", name="run-failed")
    screen("status", name="status-failed")
    screen("resume", "-j", "1", name="resume-failed")
    screen("run", "-q", "-j", "1", name="run-quiet")
    screen("status", "--output", "a11y", name="status-a11y", modes=("plain",))


def test_a_run_that_waits_for_a_person(project: Project, screen: Screen) -> None:
    project.plan(
        {
            "build": {"shell": "echo built"},
            "send": {
                "shell": project.sh(project.gate("never")),
                "needs": ["build"],
                "effects": "external",
            },
        }
    )
    kill(project.begun_by("run", "--yes", step="send"))
    screen("resume", "--yes", name="resume-held")
    screen("status", name="status-waiting")


@pytest.mark.req("R87")
def test_a_run_that_was_killed(project: Project, screen: Screen) -> None:
    project.plan(
        {
            "a": {"shell": "echo a"},
            "b": {"shell": project.sh(project.gate("go")), "needs": ["a"]},
            "c": {"shell": "echo c", "needs": ["b"]},
        }
    )
    engine = project.begun_by("run", step="b")
    screen("status", name="status-running", modes=("80",))
    kill(engine)
    screen("status", name="status-killed")
    project.open("go")
    screen("resume", name="resume-killed")


@pytest.mark.req("R87", "R110")
def test_the_states_of_a_run_and_what_they_exit_with(project: Project, screen: Screen) -> None:
    project.plan({"a": {"shell": project.sh(project.gate("go"))}, "b": {"shell": "echo b"}})
    engine = project.begun_by("run", "--key", "once", step="a")
    project.ok("stop", "--now")
    assert finish(engine).code == 130
    assert project.status().data["status"] == "paused"
    project.open("go")
    resumed = project.resume()
    assert "▸ a: attempt 1 was interrupted after " in resumed.err
    assert (resumed.code, resumed.data["status"]) == (0, "completed")
    screen("run", "--key", "once", name="run-key-again")


def test_a_voice(project: Project, screen: Screen) -> None:
    story(project, good=False)
    screen("run", "-j", "1", "--output", "a11y", name="run-a11y", modes=("plain",))


def test_many_steps_fit_on_a_screen(project: Project, screen: Screen) -> None:
    steps = {f"part-{n:02}": {"shell": f"echo {n}"} for n in range(24)}
    project.plan({**steps, "all": {"shell": "exit 4", "needs": ["part-00"]}})
    project.call("run", "-q")
    screen("status", name="status-many")
