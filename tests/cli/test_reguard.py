"""Guards: a kept artifact under changed guards, feedback, verdicts that end a step."""

import json
from typing import Any

import pytest

from tests.cli.project import Project


def counted(project: Project, guards: list[Any], **more: Any) -> None:
    """A step that makes "n words", n counting its executions, and one that reads it."""
    body = f"wc -l < {project.log}"
    project.plan(
        {
            "s": {"shell": project.sh(body), "guards": guards, **more},
            "below": {"shell": project.sh("cat $HOLDFAST_INPUTS/s"), "needs": ["s"]},
        }
    )


def number(least: int) -> dict[str, Any]:
    """A guard that wants a number of at least this."""
    script = (
        f'n=$(cat "$HOLDFAST_ARTIFACT"); [ $n -ge {least} ] || {{ echo "$n < {least}"; exit 1; }}'
    )
    return {"command": ["sh", "-c", script], "name": "size"}


@pytest.mark.req("R4", "R170")
def test_a_kept_artifact_is_guarded_again_when_only_its_guards_changed(project: Project) -> None:
    counted(project, [number(0)])
    first = project.run()
    assert project.ran() == ["below", "s"]

    counted(project, [number(1)])
    assert project.why("s")["reason"]["code"] == "guard_changed"
    again = project.run()
    assert again.states == {"s": "reused", "below": "done"}
    assert again.codes == {"s": "reguarded", "below": "upstream_changed"}
    assert again.digests["s"] == first.digests["s"]
    assert again.refs["s"] != first.refs["s"]
    assert project.ran() == ["below"], "nothing was made again"
    third = project.run()
    assert third.codes == {"s": "unchanged", "below": "unchanged"}
    assert third.refs == again.refs


@pytest.mark.req("R4", "R159")
def test_an_edited_script_of_a_guard_is_a_changed_guard(project: Project) -> None:
    project.write("check.sh", "exit 0\n")
    counted(project, [{"command": ["sh", "check.sh"]}])
    project.run()
    project.ran()
    project.write("check.sh", "test -s $HOLDFAST_ARTIFACT\n")
    again = project.run()
    assert again.codes == {"s": "reguarded", "below": "upstream_changed"}
    assert project.ran() == ["below"]
    project.write("check.sh", "exit 1\n")
    failed = project.run()
    assert failed.states == {"s": "failed", "below": "skipped"}
    assert failed.codes["s"] == "guard_rejected"
    project.write("check.sh", "exit 0\n")
    back = project.run()
    assert set(back.codes.values()) == {"unchanged"}, "the first key has its artifact still"


@pytest.mark.req("R4", "R159")
def test_a_function_that_guards_a_kept_artifact_gets_the_needs_of_its_step(
    project: Project,
) -> None:
    guard = "def longer(text: str, short: str) -> bool:\n    return len(text) > len(short)\n"
    project.write("checks.py", guard)
    project.plan(
        {
            "short": {"run": ["echo", "a"]},
            "long": {
                "run": ["echo", "aaa"],
                "needs": ["short"],
                "guards": [{"python": "checks:longer"}],
            },
        }
    )
    assert project.run().code == 0
    project.write("checks.py", guard.replace("len(short)", "len(short) + 1"))
    again = project.run()
    assert (again.code, again.codes["long"]) == (0, "reguarded"), again.err


@pytest.mark.req("R77")
def test_what_a_changed_guard_says_reaches_the_next_attempt(project: Project) -> None:
    counted(project, [number(0)])
    project.run()
    project.ran()
    fed = f"cp ${{HOLDFAST_FEEDBACK:-/dev/null}} {project.folder}/fed.json; "
    counted(project, [number(3)])
    again = project.run()
    assert again.states == {"s": "done", "below": "done"}
    assert again.data["steps"]["s"]["attempts"] == 2, "the first one only guarded"
    assert project.ran() == ["below", "s"]

    counted(project, [number(4)])
    steps = json.loads(project.read("plan.yaml"))["steps"]
    steps["s"]["shell"] = fed + steps["s"]["shell"]
    project.plan(steps)
    project.run()
    steps["s"]["guards"] = [number(99)]
    project.plan(steps)
    failed = project.run()
    assert failed.codes["s"] == "guard_rejected"
    history = json.loads((project.folder / "fed.json").read_text())
    assert [item["guard"] for item in history] == ["size"]
    assert "< 99" in history[0]["feedback"]
    assert history[0]["digest"]


@pytest.mark.req("R4")
def test_strict_reuse_makes_it_again_when_the_guard_changed(project: Project) -> None:
    counted(project, [number(0)], reuse="strict")
    project.run()
    counted(project, [number(1)], reuse="strict")
    project.ran()
    again = project.run()
    assert again.codes["s"] == "guard_changed"
    assert project.ran() == ["below", "s"]


@pytest.mark.req("R41", "R77")
def test_rejected_attempts_are_kept_and_their_feedback_accumulates(project: Project) -> None:
    body = 'cat "$HOLDFAST_FEEDBACK" 2>/dev/null; echo; echo "try $HOLDFAST_ATTEMPT"'
    guard = 'grep -q "try 3" "$HOLDFAST_ARTIFACT" || { echo "no: $(tail -1 $HOLDFAST_ARTIFACT)"; exit 1; }'
    project.plan(
        {
            "s": {
                "shell": project.sh(body),
                "guards": [{"command": ["sh", "-c", guard]}],
                "retries": 2,
            }
        }
    )
    done = project.run()
    assert done.code == 0
    assert done.data["steps"]["s"]["attempts"] == 3
    assert project.ran() == ["s", "s", "s"]
    last = project.shown("s").decode()
    history = json.loads(last.partition("try 3")[0])
    assert [item["feedback"].strip() for item in history] == ["no: try 1", "no: try 2"]
    assert project.shown("s@1") == b"\ntry 1\n", "what was rejected stays for who wants to look"
    assert project.ok("show", "s@2", "--json").json["status"] == "rejected"
    assert "no: try 1" in project.ok("logs", "s", "--attempt", "1").out


@pytest.mark.req("R41", "R77", "E6")
def test_retries_count_tries_after_the_first_and_a_fatal_verdict_ends_at_once(
    project: Project,
) -> None:
    project.plan(
        {
            "no": {
                "shell": project.sh("echo x"),
                "guards": [{"regex": {"pattern": "y"}, "name": "wants y"}],
                "retries": 2,
            },
            "fatal": {
                "shell": project.sh("echo x"),
                "guards": [{"command": ["sh", "-c", "exit 4"], "fatal_on": [4]}],
                "retries": 5,
            },
            "broken": {
                "shell": project.sh("echo x"),
                "guards": [{"command": ["no-such-guard-here"]}],
                "retries": 5,
            },
            "well": {"shell": project.sh("echo x")},
        }
    )
    run = project.run()
    assert run.code == 1
    tries = {"no": 3, "fatal": 1, "broken": 2}
    assert run.field("attempts") == {**tries, "well": 1}
    assert {name: run.codes[name] for name in tries} == {
        "no": "guard_rejected",
        "fatal": "guard_fatal",
        "broken": "guard_broken",
    }
    assert run.because("no") == ["wants y"]
    again = project.run()
    assert again.code == 8, (
        "a rejected artifact never stands for an accepted one: all that ran failed"
    )
    assert {name: again.field("attempts")[name] for name in tries} == tries


def test_showing_what_only_was_refused_says_so(project: Project) -> None:
    project.plan({"s": {"shell": "echo no", "guards": [{"regex": {"pattern": "yes"}}]}})
    assert project.run().code == 1
    said = project.refused(2, "show", "s")
    assert "nothing that 's' made was accepted" in said
    assert "hint: holdfast logs 's'" in said
