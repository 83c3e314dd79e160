"""What a failure means for the rest: the table of the graph document, and the ways in which a run ends."""

import json
from typing import Any

import pytest

from tests.cli.project import Project, finish_run, until

ENDS = {"completed": 0, "failed": 1, "blocked": 1, "waiting": 3, "escalated": 8}


def ended(project: Project, *words: str) -> tuple[str, str]:
    """Status and code of the reason, the same in the answer, in `status` and in the exit code."""
    run = project.run("--yes", *words)
    reason = run.data["reason"]
    shown = project.status()
    assert (shown.data["status"], shown.data["reason"]) == (run.data["status"], reason)
    assert run.code == ENDS[run.data["status"]]
    return run.data["status"], reason["code"] if reason else ""


def shell(project: Project, body: str = "echo $HOLDFAST_STEP", *needs: str, **more: Any) -> Any:
    return {"shell": project.sh(body), "needs": list(needs), **more}


@pytest.mark.req("R80", "C18", "R78", "E17")
def test_what_stands_on_a_failure_is_skipped_and_the_rest_goes_on(project: Project) -> None:
    project.plan(
        {
            "bad": shell(project, "exit 1"),
            "under": shell(project, "true", "bad"),
            "deep": shell(project, "true", "under"),
            "both": shell(project, "true", "deep", "good"),
            "good": shell(project),
            "further": shell(project, "true", "good"),
            "end": shell(project, "true", "further"),
        }
    )
    run = project.run()
    assert (run.code, run.data["status"]) == (1, "failed")
    assert project.ran() == ["bad", "end", "further", "good"]
    assert {s for s, state in run.states.items() if state == "skipped"} == {"under", "deep", "both"}
    assert run.codes["under"] == "dependency_failed"
    assert run.because("under") == ["bad"]
    assert run.codes["deep"] == run.codes["both"] == "dependency_skipped"


@pytest.mark.req("R81", "C19", "R87")
def test_a_critical_failure_starts_nothing_more_and_can_be_resumed(project: Project) -> None:
    project.plan(
        {
            "gate": shell(project, f"[ -e {project.folder}/mended ]", priority="CRITICAL"),
            "beside": shell(project, f"{project.gate('go')}; echo late", priority="HIGH"),
            "low": shell(project),
            "under": shell(project, "true", "gate"),
            "after": shell(project, "true", "beside"),
        }
    )
    engine = project.begun_by("run", "-j", "2", "--json", step="beside")
    until(lambda: project.status().states["gate"] == "failed", "the critical step failed")
    project.open("go")
    run = finish_run(engine)
    assert (run.code, run.data["status"]) == (8, "escalated")
    assert run.data["reason"]["code"] == "critical_failed"
    assert run.data["reason"]["because"] == ["gate"]
    assert project.ran() == ["beside", "gate"], "what ran came to its end, nothing else began"
    assert run.states == {
        "gate": "failed",
        "beside": "done",
        "low": "pending",
        "under": "skipped",
        "after": "pending",
    }
    shown = project.call("status").out
    assert "escalated" in shown
    assert "a critical step failed: gate" in shown
    assert project.call("history", "--json").json["runs"][0]["status"] == "escalated"
    (project.folder / "mended").touch()
    done = project.resume()
    assert (done.code, done.id, done.data["status"]) == (0, run.id, "completed")
    assert project.ran() == ["after", "gate", "low", "under"], "beside is done and kept"


@pytest.mark.req("R81")
def test_a_critical_failure_holds_back_what_already_waited_for_a_place(project: Project) -> None:
    many = {f"s{n}": shell(project) for n in range(6)}
    project.plan({"first": shell(project, "exit 1", priority="critical"), **many})
    run = project.run("-j", "1")
    assert run.code == 8
    assert project.ran() == ["first"]
    assert {state for step, state in run.states.items() if step != "first"} == {"pending"}


@pytest.mark.req("R83", "C19")
def test_a_whole_wave_that_fails_escalates(project: Project) -> None:
    wave = {name: shell(project, "exit 1", "top") for name in ("a", "b")}
    project.plan(
        {"top": shell(project), **wave, "far": shell(project, "true", "side", "top")}
        | {"side": shell(project)}
    )
    run = project.run("-j", "1")
    assert (run.code, run.data["status"]) == (1, "failed"), "far is in that wave and was made"
    project.plan({"top": shell(project), **wave})
    run = project.run("-j", "1")
    assert (run.code, run.data["status"]) == (8, "escalated")
    assert run.data["reason"]["code"] == "wave_failed"
    assert run.data["reason"]["because"] == ["a", "b"]
    assert run.states["top"] == "reused"


@pytest.mark.req("R83")
def test_one_step_that_fails_alone_in_its_wave_is_an_ordinary_failure(project: Project) -> None:
    project.plan({"only": shell(project, "exit 1"), "below": shell(project, "true", "only")})
    assert ended(project) == ("failed", "dependency_failed")


@pytest.mark.req("R77", "C19")
def test_a_fatal_verdict_escalates_at_once_where_the_step_says_so(project: Project) -> None:
    judge = {"command": ["sh", "-c", "exit 9"], "fatal_on": [9]}
    bad = shell(project, "echo x", guards=[judge], retries=3)
    project.plan(
        {"bad": {**bad, "on_fatal": "escalate"}, **{f"s{n}": shell(project) for n in "12"}}
    )
    run = project.run("-j", "1")
    assert (run.code, run.data["reason"]["code"]) == (8, "fatal_verdict")
    assert project.ran() == ["bad"], "no retry, and nothing more"
    project.plan({"bad": bad, **{f"s{n}": shell(project) for n in "12"}})
    run = project.run("-j", "1")
    assert (run.code, run.codes["bad"]) == (1, "guard_fatal")
    assert project.ran() == ["bad", "s1", "s2"]


@pytest.mark.req("R82")
def test_a_timeout_is_tried_once_more_then_the_step_has_failed(project: Project) -> None:
    project.plan(
        {"slow": shell(project, "exec sleep 300", timeout="0.3s"), "quick": shell(project)}
    )
    run = project.run()
    assert (run.code, run.codes["slow"]) == (1, "timed_out")
    assert project.ran() == ["quick", "slow", "slow"]


@pytest.mark.req("C23", "R87")
def test_complete_blocked_waiting_and_deadlocked_are_four_ends(project: Project) -> None:
    def said() -> str:
        return project.call("status").out

    project.plan({"a": shell(project)})
    assert ended(project) == ("completed", "")
    assert " completed · 1 of 1 done" in said()

    project.plan({"a": shell(project, "exit 1"), "b": shell(project, "true", "a")})
    assert ended(project) == ("failed", "dependency_failed")
    assert "b skipped: Dependency 'a' failed" in said()

    project.plan({"a": shell(project, "echo ask first", approve="always")})
    assert ended(project) == ("waiting", "awaiting_person")
    assert " waiting · 0 of 1 done" in said()

    config = project.home / ".config" / "holdfast"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("[resources]\ngpu = 1\n")
    steps = {
        "a": shell(project, "echo much", resources={"gpu": 2}),
        "b": shell(project, "true", "a"),
    }
    project.plan({**steps, "c": shell(project)}, limits={"resources": {"gpu": 2}})
    project.ran()
    assert ended(project) == ("blocked", "deadlocked")
    assert project.ran() == ["c"]
    assert "these steps can never start: a" in said()
    again = project.call("run", "--yes")
    assert "! a: it takes 2 of gpu, and there is less" in again.out
    (config / "config.toml").write_text("[resources]\ngpu = 2\n")
    done = project.resume()
    assert done.data["status"] == "completed", "more of it lets the same run go on"


@pytest.mark.req("C1", "R79")
def test_a_barrier_waits_for_the_whole_wave(project: Project) -> None:
    project.plan(
        {
            "quick": shell(project),
            "slow": shell(project, f"{project.gate('go')}; echo late"),
            "after": shell(project, "true", "quick"),
        }
    )
    engine = project.begun_by("run", "-j", "4", "--barrier", "--json", step="slow")
    project.open("go")
    run = finish_run(engine)
    assert run.code == 0
    order = [e["step"] for e in project.events() if e["event"] == "attempt_started"]
    ends = [e["event"] + " " + e["step"] for e in project.events() if "step" in e]
    assert order[-1] == "after"
    assert ends.index("attempt_accepted slow") < ends.index("attempt_started after")


@pytest.mark.req("R81", "R110")
def test_an_escalated_run_is_told_to_the_notify_command(project: Project) -> None:
    config = project.home / ".config" / "holdfast"
    config.mkdir(parents=True)
    told = project.folder / "told.json"
    command = json.dumps(["sh", "-c", f"cat > {told}"])
    (config / "config.toml").write_text(f"[notify]\ncommand = {command}\n")
    project.plan({"a": shell(project, "exit 1", priority="critical")})
    assert project.run().code == 8
    assert json.loads(told.read_text())["reason"]["code"] == "critical_failed"
