"""Guards with models and with sources, through the front door."""

import json
from typing import Any

import pytest

from holdfast.testing.server import Asked, Fail, Reply, Say
from tests.cli.project import Project, kill, until
from tests.cli.served import MODEL, of_kind, plan_quotes, served, verdict

RUBRIC = "Is every sentence about cats?"


def judged(**more: Any) -> dict[str, Any]:
    return {"judge": {"rubric": RUBRIC, "model": MODEL, **more}}


def is_judge(asked: Asked) -> bool:
    return RUBRIC in asked.last or any(RUBRIC in text for text in asked.texts)


@pytest.mark.req("R77")
def test_a_judge_accepts_or_sends_back_with_the_fragment_that_fails(project: Project) -> None:
    project.plan(
        {"a": {"prompt": "write", "model": "small", "guards": [{"judge": {"rubric": RUBRIC}}]}}
    )

    def script(asked: Asked) -> Reply:
        if not is_judge(asked):
            return Say("Cats\n purr." if "refused" in asked.last else "Cats purr. Dogs bark.")
        if "Dogs bark." in asked.last:
            return Say(verdict(0.2, "it is about dogs, too", "Dogs bark."))
        return Say(verdict(0.9, "fine"))

    with served(project, script) as server:
        run = project.run("--yes")
        assert run.states == {"a": "done"}, run
        asked = [item for item in server.requests if is_judge(item)]
        writer = [item for item in server.requests if not is_judge(item)]
    assert project.shown("a") == b"Cats\n purr."
    assert len(asked) == len(writer) == 2
    assert "count for nothing" in asked[0].texts[0]
    assert "```\nCats purr. Dogs bark.\n```" in asked[0].texts[1]
    assert "it is about dogs, too" in writer[1].last
    assert 'fails: "Dogs bark."' in writer[1].last
    assert len(of_kind(project, "call_answered")) == 4


def test_a_quote_that_the_judge_made_up_is_told_as_that(project: Project) -> None:
    project.plan({"a": {"shell": "echo Cats purr.", "guards": [judged()]}})
    with served(project, verdict(0.1, "bad", "Birds sing.")):
        run = project.run("--yes")
    assert run.codes == {"a": "guard_rejected"}
    (event,) = of_kind(project, "attempt_rejected")
    said = project.shown(event["feedback"]).decode()
    assert "Birds" not in said
    assert "does not stand in the artifact" in said


def test_most_judges_decide_and_no_more_are_asked_than_needed(project: Project) -> None:
    project.plan({"a": {"shell": "echo Cats", "guards": [judged(votes=5)]}})
    scores = [0.9, 0.1, 0.8, 0.85]
    with served(project, lambda asked: Say(verdict(scores[asked.number - 1]))) as server:
        assert project.run("--yes").states == {"a": "done"}
        assert len(server.requests) == 4
        assert "judge 2 of 5" in server.requests[1].texts[0]


def test_a_judge_that_cannot_be_read_is_a_broken_guard_and_is_asked_anew_later(
    project: Project,
) -> None:
    project.plan({"a": {"shell": "echo Cats", "guards": [judged()]}})
    good = False

    def script(asked: Asked) -> Reply:
        return Say(verdict(1) if good else f"well, {asked.number}")

    with served(project, script) as server:
        run = project.run("--yes")
        assert run.codes == {"a": "guard_broken"}
        assert len(server.requests) == 3  # the second attempt finds the first answer stored
        good = True
        assert project.resume("--yes").states == {"a": "done"}
        assert len(server.requests) == 4


def test_a_judge_that_cannot_be_asked_ends_the_step_with_its_own_code(project: Project) -> None:
    project.plan({"a": {"shell": "echo Cats", "guards": [judged()], "retries": 2}})
    with served(project, lambda _: Fail(400, "no such thing")) as server:
        run = project.run("--yes")
        assert [event["code"] for event in of_kind(project, "attempt_failed")] == ["call_refused"]
        assert len(server.requests) == 1
    assert run.code == 1


@pytest.mark.req("R4")
def test_another_rubric_judges_again_without_asking_for_the_text_again(project: Project) -> None:
    project.plan({"a": {"prompt": "write", "model": MODEL, "guards": [judged()]}})

    def script(asked: Asked) -> Reply:
        return Say(verdict(1)) if "# RUBRIC" in asked.last else Say("Cats")

    with served(project, script) as server:
        project.run("--yes")
        project.write("rubric.md", "Is it short?")
        project.plan(
            {"a": {"prompt": "write", "model": MODEL, "guards": [judged(rubric="rubric.md")]}}
        )
        later = project.run("--yes")
        assert later.codes == {"a": "reguarded"}
        assert len(server.requests) == 3
        project.write("rubric.md", "Is it long?")
        assert project.run("--yes").codes == {"a": "reguarded"}


def test_a_stored_verdict_is_not_asked_for_again(project: Project) -> None:
    guards = [
        judged(),
        {"command": ["sh", "-c", f"echo guard >> {project.log}; {project.gate('go')}"]},
    ]
    project.plan({"a": {"prompt": "write", "model": MODEL, "guards": guards}})

    def script(asked: Asked) -> Reply:
        return Say(verdict(1)) if is_judge(asked) else Say("Cats")

    with served(project, script) as server:
        engine = project.start("run", "--yes")
        until(lambda: "guard" in project.begun(), "the second guard looks")
        kill(engine)
        project.open("go")
        assert project.run("--yes").states == {"a": "done"}
        assert len(server.requests) == 2


@pytest.mark.req("R77")
def test_quotes_are_looked_for_in_files_that_then_decide_the_result(project: Project) -> None:
    project.write("sources/de.md", "one\nsales rose 24 % in Q2\n")
    facts = {"facts": [{"quote": "sales rose 34 % in Q2"}]}
    right = {"facts": [{"quote": "sales rose 24 % in Q2"}]}
    step = {
        "prompt": "extract",
        "model": MODEL,
        "guards": [{"cites": {"each": "facts", "in": "sources/*.md"}}],
    }
    project.plan({"a": step})

    def script(asked: Asked) -> Reply:
        return Say(json.dumps(right if "refused" in asked.last else facts))

    with served(project, script) as server:
        assert project.run("--yes").states == {"a": "done"}
        told = server.requests[1].last
        assert 'nearest "sales rose 24 % in Q2" (sources/de.md:2)' in told
        project.write("sources/de.md", "one\nsales rose 25 % in Q2\n")
        assert project.run("--yes").states == {"a": "failed"}


def test_quotes_are_looked_for_in_what_a_step_needs_and_in_values(project: Project) -> None:
    plan_quotes(project)
    assert project.run().states == {"up": "done", "a": "done"}


@pytest.mark.req("R165")
def test_a_verdict_that_a_bound_of_ours_cuts_says_which(project: Project) -> None:
    project.plan({"a": {"shell": "echo Cats", "guards": [judged()]}})
    with served(project, lambda _: Say("half", finish="length")) as server:
        run = project.run("--max-cost", "1")
    assert run.codes == {"a": "guard_broken"}, run.err
    assert "was cut at 4,096 tokens" in run.err
    assert "$1.00 in all" in run.err
    assert not any("$" in text for asked in server.requests for text in asked.texts)
