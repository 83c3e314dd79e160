"""Steps that touch the outside world: shown first, never silently repeated."""

import json

import pytest

from tests.cli.project import Project, finish, kill


def publish(project: Project, *, idempotent: bool = False) -> None:
    """The note of the execution is the effect."""
    project.plan(
        {
            "make": {"shell": project.sh("echo text")},
            "publish": {
                "shell": project.sh(f"{project.gate('sent')}; echo receipt"),
                "needs": ["make"],
                "effects": "external",
                "idempotent": idempotent,
            },
        }
    )


def test_nothing_outside_is_touched_unasked(project: Project) -> None:
    publish(project)
    said = project.refused(2, "run")
    assert "publish" in said
    assert "--yes" in said
    assert project.ran() == []
    assert not project.store.exists()
    project.open("sent")
    assert project.run("--yes").code == 0
    project.ran()
    again = project.run("--yes")
    assert again.states == {"make": "reused", "publish": "reused"}, "the artifact is the receipt"
    assert project.ran() == []


@pytest.mark.req("R170")
def test_an_effect_that_was_cut_off_is_held_for_a_person(project: Project) -> None:
    publish(project)
    kill(project.begun_by("run", "--yes", step="publish"))
    project.open("sent")
    assert project.ran() == ["make", "publish"]

    held = project.resume("--yes")
    assert (held.code, held.data["status"]) == (3, "waiting")
    assert held.states == {"make": "done", "publish": "waiting"}
    assert held.codes["publish"] == "effect_unconfirmed"
    assert [item["step"] for item in held.data["waiting"]] == ["publish"]
    again = project.resume("--yes")
    assert again.code == 3, "asking twice is no answer"
    assert project.ran() == []

    done = project.retry("publish", "--yes")
    assert (done.code, done.data["status"]) == (0, "completed")
    assert done.codes["publish"] == "retried"
    assert project.ran() == ["publish"]


def test_a_new_run_of_the_line_begins_with_the_effect_held(project: Project) -> None:
    publish(project)
    kill(project.begun_by("run", "--yes", step="publish"))
    project.open("sent")
    project.ran()
    assert project.status().data["status"] == "running", "nobody has looked at the dead engine yet"
    fresh = project.run("--yes")
    assert project.ran() == [], "it may have happened: a new run may not repeat it unasked"
    assert (fresh.code, fresh.codes["publish"]) == (3, "effect_unconfirmed")
    assert project.why("publish")["decision"] == "wait"
    assert project.run("--yes").code == 3
    done = project.retry("publish", "--yes")
    assert done.code == 0
    assert project.ran() == ["publish"]
    assert project.run("--yes").data["totals"]["reused"] == 2


def test_a_held_effect_stays_held_over_runs_that_do_not_come_to_it(project: Project) -> None:
    publish(project)
    kill(project.begun_by("run", "--yes", step="publish"))
    project.open("sent")
    steps = json.loads(project.read("plan.yaml"))["steps"]
    project.plan({**steps, "make": {"shell": project.sh("exit 1")}})
    assert project.run("--yes").states == {"make": "failed", "publish": "skipped"}
    project.ran()
    publish(project)
    assert project.run("--yes").codes["publish"] == "effect_unconfirmed"
    assert project.ran() == []
    asked = project.run("--yes", "--force-node", "publish")
    assert (asked.code, asked.codes["publish"]) == (0, "forced")
    assert project.ran() == ["publish"]


def test_an_idempotent_effect_is_repeated(project: Project) -> None:
    publish(project, idempotent=True)
    kill(project.begun_by("run", "--yes", step="publish"))
    project.open("sent")
    project.ran()
    done = project.resume("--yes")
    assert done.code == 0
    assert project.ran() == ["publish"]


def test_a_killed_external_command_is_held_too(project: Project) -> None:
    publish(project)
    engine = project.begun_by("run", "--yes", step="publish")
    project.ok("stop", "--now")
    stopped = finish(engine)
    assert stopped.code == 3
    assert project.status().codes["publish"] == "effect_unconfirmed"


def test_a_run_that_waits_for_a_person_is_not_left_unasked(project: Project) -> None:
    publish(project)
    kill(project.begun_by("run", "--yes", step="publish"))
    project.open("sent")
    waiting = project.resume("--yes")
    assert waiting.data["status"] == "waiting"
    project.ran()
    project.plan({"make": {"shell": project.sh()}})
    said = project.refused(2, "run")
    assert f"{waiting.id[:10]} waits for a person; a new run takes its place" in said
    assert project.ran() == []
    fresh = project.run("--yes")
    assert "was left waiting; this run takes its place" in fresh.err
    assert project.status(waiting.id).data["status"] == "superseded"
