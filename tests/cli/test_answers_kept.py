"""What a model answered is never asked again, whoever dies and whichever command goes on."""

from typing import Any

import pytest

from holdfast.testing.server import Asked, Fail, Reply, Say
from tests.cli import models
from tests.cli.project import Project, finish_run, kill, until
from tests.cli.served import MODEL, of_kind, served, tool_answers, verdict


def step(project: Project, prompt: str = "say it", **more: Any) -> dict[str, Any]:
    """A model step whose guard waits for a gate, so that a kill falls between answer and acceptance."""
    guard = f"echo guard >> {project.log}; {project.gate('go')}"
    return {
        "prompt": prompt,
        "model": MODEL,
        "guards": [{"command": ["sh", "-c", guard]}],
        **more,
    }


def killed_before_acceptance(project: Project, *words: str) -> None:
    """An engine that dies when the answer is stored and the guard looks at it."""
    before = project.begun().count("guard")
    engine = project.start(*words)
    until(lambda: project.begun().count("guard") > before, "the guard looks")
    kill(engine)


@pytest.mark.req("R77")
@pytest.mark.parametrize("command", ["resume", "run"])
def test_a_stored_answer_is_not_asked_again(project: Project, command: str) -> None:
    project.plan({"a": step(project)})
    with served(project, lambda asked: Say(f"answer {asked.number}")) as server:
        killed_before_acceptance(project, "run", "--yes")
        project.open("go")
        done = project.run("--yes") if command == "run" else project.resume("--yes")
        assert done.states == {"a": "done"}, done
        assert len(server.requests) == 1
    assert project.shown("a") == b"answer 1"


def test_an_answer_is_kept_over_several_runs_that_died(project: Project) -> None:
    project.plan({"a": step(project)})
    with served(project, lambda asked: Say(f"answer {asked.number}")) as server:
        killed_before_acceptance(project, "run", "--yes")
        killed_before_acceptance(project, "run", "--yes")
        killed_before_acceptance(project, "resume", "--yes")
        project.open("go")
        assert project.run("--yes").states == {"a": "done"}
        assert len(server.requests) == 1
    (kept,) = of_kind(project, "answers_kept")
    assert kept["step"] == "a"
    assert of_kind(project, "call_started") == []
    project.ok("verify")


def test_another_question_is_asked(project: Project) -> None:
    project.plan({"a": step(project)})
    with served(project, lambda asked: Say(f"answer {asked.number}")) as server:
        killed_before_acceptance(project, "run", "--yes")
        project.plan({"a": step(project, "say another thing")})
        project.open("go")
        assert project.run("--yes").states == {"a": "done"}
        assert len(server.requests) == 2
    assert project.shown("a") == b"answer 2"


def test_an_answer_that_was_refused_is_asked_for_anew(project: Project) -> None:
    """An answer that a guard refused was acted on: whoever runs the plan again wants another one."""
    project.plan({"a": {**step(project, retries=0), "guards": [{"regex": {"pattern": "2"}}]}})

    def script(asked: Asked) -> Reply:
        return Say(f"answer {asked.number}")

    with served(project, script) as server:
        assert project.run("--yes").states == {"a": "failed"}
        assert project.run("--yes").states == {"a": "done"}
        assert len(server.requests) == 2


@pytest.mark.req("R75")
@pytest.mark.parametrize("what", ["request", "answer", "kept request", "kept answer"])
def test_a_question_or_an_answer_that_is_gone_is_damage(project: Project, what: str) -> None:
    project.plan({"a": step(project)})
    with served(project, "an answer"):
        killed_before_acceptance(project, "run", "--yes")
        first = {
            "request": of_kind(project, "call_started")[0]["request"],
            "answer": of_kind(project, "call_answered")[0]["answer"],
        }
        if what.startswith("kept"):  # the run that asked is gone, another one lives on its answer
            project.open("go")
            project.ok("run", "--yes")
            (kept,) = of_kind(project, "answers_kept")
            assert kept["items"] == [[first["request"], first["answer"]]]
            project.ok("gc", "--keep-runs", "1", "--yes")
        project.ok("verify")
        digest = first[what.removeprefix("kept ")]
        with project.database() as connection:
            connection.execute("DELETE FROM blob WHERE digest = ?", (bytes.fromhex(digest),))
    said = project.refused(9, "verify")
    assert f"content '{digest}' is missing (step 'a' in run" in said


@pytest.mark.req("R77")
@pytest.mark.parametrize("command", ["resume", "run"])
def test_two_equal_judges_keep_their_own_answers(project: Project, command: str) -> None:
    judged = {"judge": {"rubric": "Is it about cats?", "model": MODEL}}
    both = {"majority": [judged, judged, {"regex": {"pattern": "Dogs"}}]}
    project.plan({"a": step(project, guards=[both, *step(project)["guards"]])})

    def script(asked: Asked) -> Reply:
        return Say("Cats" if asked.number == 1 else verdict(0.9, f"fine {asked.number}"))

    with served(project, script) as server:
        killed_before_acceptance(project, "run", "--yes")
        assert len(server.requests) == 3
        killed_before_acceptance(project, command, "--yes")
        project.open("go")
        done = project.run("--yes") if command == "run" else project.resume("--yes")
        assert done.states == {"a": "done"}, done
        assert len(server.requests) == 3


def wrong_key(asked: Asked) -> Reply:
    key = asked.headers.get("authorization", "").removeprefix("Bearer ")
    return Say(f"answer {asked.number}") if key == "right" else Fail(401, "no such key")


@pytest.mark.req("R77")
def test_what_a_provider_refused_is_no_feedback_for_the_model(project: Project) -> None:
    project.plan({"a": {"prompt": "say it", "model": "fake:m"}})
    with models.served(project, wrong_key, provider='api_key_env = "FAKE_CREDS"') as server:
        assert project.call("run", "--yes", env={"FAKE_CREDS": "wrong"}).code == 4
        assert project.call("retry", "a", "--yes", env={"FAKE_CREDS": "right"}).code == 0
        first, second = server.requests
    assert first.texts == second.texts


@pytest.mark.req("R77")
@pytest.mark.parametrize("command", ["retry", "run"])
def test_turns_that_were_paid_before_a_budget_was_spent_are_kept(
    project: Project, command: str
) -> None:
    project.write("work.py", "def add(a: int, b: int) -> int:\n    return a + b\n")

    def plan(tokens: int) -> None:
        agent = {"uses": "agent", "prompt": "add", "model": MODEL, "tools": ["work:add"]}
        project.plan({"a": {**agent, "budget": {"tokens": tokens}}})

    def script(asked: Asked) -> Reply:
        if asked.number == 1:
            return Say(tools=[("add", {"a": 1, "b": 2})], input=900, output=10)
        return Say("three", input=10, output=10)

    plan(1000)
    with served(project, script) as server:
        assert project.run("--yes").states == {"a": "failed"}
        assert len(server.requests) == 1
        if command == "run":
            plan(100_000)
            assert project.run("--yes").states == {"a": "done"}
            _, second = server.requests
            assert tool_answers(second) == ["3"]
        else:
            project.call("retry", "a", "--yes")
            assert len(server.requests) == 1


@pytest.mark.req("R77")
def test_an_answer_that_another_engine_left_is_refused_only_once(project: Project) -> None:
    guard = f"echo guard >> {project.log}; {project.gate('go')}; grep -q 2 $HOLDFAST_ARTIFACT"
    quick = ("--poll", "0.1", "--beat", "0.3")
    asks = {"prompt": "say it", "model": MODEL, "retries": 0}
    project.plan(
        {
            "a": {**asks, "guards": [{"command": ["sh", "-c", guard]}]},
            "z": {"shell": project.sh(project.gate("end"))},
        }
    )
    with served(project, lambda asked: Say(f"answer {asked.number}")) as server:
        beside = project.begun_by("run", "--yes", "--join", "-s", "z", *quick, step="z")
        first = project.start("run", "--yes", "--join", "-s", "a", *quick)
        until(lambda: "guard" in project.begun(), "the guard looks")
        kill(first)
        project.open("go")
        states = [
            finish_run(project.start("run", "--json", "--yes", "--join", "-s", "a", *quick)).states
            for _ in range(2)
        ]
        assert [found["a"] for found in states] == ["failed", "done"]
        assert len(server.requests) == 2
        kill(beside)
