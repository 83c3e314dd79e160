"""Runs that go on without a terminal: detached, watched, and what they tell a program afterwards."""

import json
import signal
from pathlib import Path

import pytest

from tests.cli.project import Project, alive, finish, until


def _settings(project: Project, text: str) -> None:
    place = project.home / ".config" / "holdfast"
    place.mkdir(parents=True)
    (place / "config.toml").write_text(text)


def test_a_detached_run_outlives_the_command_that_began_it(project: Project) -> None:
    project.plan({"slow": {"shell": project.sh(project.gate("go"))}})
    begun = project.ok("run", "--detach", "--json").json
    assert alive(begun["pid"])
    project.watch(begun["pid"])
    assert project.status("--json").data["run"] == begun["run"]
    project.open("go")
    until(lambda: project.status().data["status"] == "completed", "the detached run ends")
    assert project.ran() == ["slow"]


def test_what_is_wrong_is_said_before_anything_is_detached(project: Project) -> None:
    project.plan({"out": {"shell": project.sh(), "effects": "external"}})
    assert "--yes" in project.refused(2, "run", "--detach")
    assert not project.store.exists()


def test_a_line_that_is_held_refuses_a_detached_run_with_its_reason(project: Project) -> None:
    project.plan({"slow": {"shell": project.sh(project.gate("go"))}})
    first = project.begun_by("run", step="slow")
    assert "is held by process" in project.refused(7, "run", "--detach")
    project.open("go")
    assert finish(first).code == 0


def test_a_key_whose_run_goes_on_tells_of_that_one(project: Project) -> None:
    project.plan({"slow": {"shell": project.sh(project.gate("go"))}})
    words = ("run", "--detach", "--key", "once")
    first = project.ok(*words, "--json").json
    until(lambda: project.begun() == ["slow"], "it has begun")
    assert project.ok(*words, "--json").json == first, "the run, its process and what it says"
    said = project.ok(*words).out
    assert f"was begun under this key and runs in process {first['pid']} on " in said
    assert f"what it says is in {first['log']}" in said
    project.open("go")
    until(lambda: project.status().data["status"] == "completed", "the detached run ends")
    project.write("plan.yaml", project.read("plan.yaml").replace("ran.txt", "ran.txt "))
    over = project.ok(*words, "--json").json
    assert (over["run"], over["pid"], over["log"]) == (first["run"], None, None)
    assert "begun under this key and is completed already" in project.ok(*words).out
    assert len(list((project.store / "detached").iterdir())) == 1, "nothing was started for that"
    assert project.ran() == ["slow"]


def test_a_key_whose_run_rests_goes_on_in_the_background(project: Project) -> None:
    project.plan({"a": {"shell": project.sh("[ -e ok ]")}})
    first = project.run("--key", "once")
    assert first.code == 1
    project.write("ok", "")
    begun = project.ok("run", "--detach", "--key", "once", "--json").json
    assert begun["run"] == first.id
    until(lambda: project.status().data["status"] == "completed", "the detached run ends")
    assert project.ran() == ["a", "a"]


def test_a_watched_plan_runs_again_when_an_input_changes(project: Project) -> None:
    project.plan({"copy": {"shell": project.sh("cat in.txt"), "inputs": "in.txt"}})
    project.write("in.txt", "1")
    process = project.begun_by("run", "--watch", step="copy")
    assert process.stderr is not None
    while b"watching" not in process.stderr.readline():
        pass
    project.write("in.txt", "2")
    until(lambda: project.begun().count("copy") == 2, "it runs again")
    while b"watching" not in process.stderr.readline():  # a Ctrl-C before only stops the run
        pass
    process.send_signal(signal.SIGINT)
    assert finish(process).code == 0
    assert len(project.database().execute("SELECT * FROM run").fetchall()) == 2


@pytest.mark.parametrize(("line", "status"), [("true", "completed"), ("false", "failed")])
def test_a_program_of_the_person_is_told_how_a_run_came_out(
    project: Project, tmp_path: Path, line: str, status: str
) -> None:
    told = tmp_path / "told.json"
    _settings(project, f'[notify]\ncommand = ["tee", "{told}"]\n')
    project.plan({"a": {"shell": line}})
    run = project.run()
    body = json.loads(told.read_text())
    assert (body["schema"], body["run"], body["status"]) == ("holdfast.notify/1", run.id, status)


def test_a_notify_command_that_fails_changes_nothing(project: Project) -> None:
    _settings(project, '[notify]\ncommand = ["no-such-program"]\n')
    project.plan({"a": {"shell": "true"}})
    run = project.run()
    assert run.code == 0
    assert "notify command 'no-such-program' did not work" in run.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[notify]\ncommand = ["x"]\n', "belongs to a person"),
        ("[provider]\n", "unknown key 'provider'"),
        ("[run]\nparallel = 0\n", "from 1 to 1024"),
        ("[run]\nfast = true\n", "unknown key 'run.fast'"),
        ("[run\n", "is not TOML"),
        ("[templates]\n", "'templates' in"),
        ('templates = ""\n', "must be the name of a folder"),
        ('[providers.x]\nbase_url = "http://127.0.0.1:9"\n', "belongs to a person"),
    ],
)
def test_a_project_cannot_say_what_is_not_its_own(project: Project, text: str, said: str) -> None:
    project.plan({"a": {"shell": "true"}})
    project.write("holdfast.toml", text)
    assert said in project.refused(2, "run")
    assert not project.store.exists()


def test_a_project_says_how_many_steps_run_at_once(project: Project) -> None:
    project.plan({name: {"shell": project.sh(project.gate(name))} for name in "ab"})
    project.write("holdfast.toml", "[run]\nparallel = 1\n")
    process = project.begun_by("run", step="a")
    assert project.begun() == ["a"]
    project.open("a")
    until(lambda: project.begun() == ["a", "b"], "the second begins")
    project.open("b")
    assert finish(process).code == 0
