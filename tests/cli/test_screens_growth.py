"""The screens of runs that grow: what is added and by whom, gaps, forks."""

import json

from tests.cli.project import Project
from tests.cli.screens import Screen


def _story(project: Project) -> None:
    more = json.dumps({"steps": {"lint": {"shell": "echo lint", "needs": ["scan"]}}})
    project.plan(
        {
            "scan": {"shell": f"printf '%s' '{more}' > $HOLDFAST_ADD/more.json; echo scan"},
            "bad": {"shell": "test -e flag && echo good", "needs": "scan"},
            "after": {"shell": "cat $HOLDFAST_INPUTS/bad; echo after", "needs": "bad"},
        }
    )


def test_a_run_that_grew(project: Project, screen: Screen) -> None:
    _story(project)
    screen("run", "-j", "1", name="grows")
    screen("status", name="grown")
    screen("plan", "-v", name="plan-grown")
    screen("graph", name="graph-grown")
    screen("why", "lint", name="why-added")
    screen("history", name="history-grown")


def test_adding_to_a_run_at_rest(project: Project, screen: Screen) -> None:
    _story(project)
    project.call("run", "-q", "-j", "1")
    project.write("more.yaml", "steps:\n  extra: {shell: echo extra, needs: [scan]}\n")
    project.write(
        "wrong.yaml", "steps:\n  scan: {shell: echo}\n  x: {shell: echo, needs: [nothing]}\n"
    )
    screen("add", "wrong.yaml", name="add-wrong")
    project.write("late.yaml", "steps:\n  x: {shell: echo, needs: [bad]}\n")
    screen("add", "late.yaml", name="add-failed-need")
    screen("add", "more.yaml", "--because", "wanted", name="add-at-rest")
    project.write("known.yaml", "steps:\n  sign: {shell: echo, needs: [scan], secrets: [KEY]}\n")
    screen("add", "known.yaml", name="add-with-a-secret")
    project.call("add", "known.yaml")
    screen("status", name="status-to-be-added", modes=("plain",))
    screen("plan", name="plan-left-out", modes=("plain",))
    screen("resume", "-j", "1", name="resume-without-the-secret")
    project.write("flag", "")
    screen("run", "-j", "1", name="run-leaves-it-out", modes=("plain",))
    screen("history", name="history-never-added", modes=("plain",))


def test_resuming_takes_up_what_was_asked_for(project: Project, screen: Screen) -> None:
    _story(project)
    project.call("run", "-q", "-j", "1")
    project.write("more.yaml", "steps:\n  extra: {shell: echo extra, needs: [scan]}\n")
    project.call("add", "more.yaml", "--because", "wanted")
    project.write("flag", "")
    screen("resume", "-j", "1", name="resume-takes-it-up")


def test_going_on_without_a_step(project: Project, screen: Screen) -> None:
    _story(project)
    project.call("run", "-q", "-j", "1")
    screen("replay", "-j", "1", name="replay")
    screen("skip", "bad", "--because", "the tool is down", "-j", "1", name="skip")
    project.call("skip", "bad", "--because", "the tool is down", "-q", "-j", "1")
    screen("status", name="status-gap")
    screen("why", "bad", "--run", "@", name="why-gap")
    screen("replay", name="nothing-to-replay")


def test_a_fork(project: Project, screen: Screen) -> None:
    _story(project)
    project.write("flag", "")
    project.call("run", "-q", "-j", "1")
    screen("fork", "@", "--from", "bad", "-j", "1", name="fork")
    project.call("fork", "@", "--from", "bad", "--as", "other", "-q", "-j", "1")
    screen("status", "--plan-id", "other", name="status-fork")
    screen("fork", "@", "--from", "bad", "--as", "other", name="fork-taken-name")
