"""Beyond the retries: patience, a step above made again, then a person."""

import json
from typing import Any

import pytest

from tests.cli.project import Project

REFUSE = {"command": ["sh", "-c", "cat $HOLDFAST_ARTIFACT; grep -q good $HOLDFAST_ARTIFACT"]}


def tower(project: Project, *, good_after: int, **more: Any) -> None:
    """`spec` gets better each time it is sent back; `code` copies it and is refused until it is good."""
    count = project.folder / "count"
    spec = (
        f"n=$(cat {count} 2>/dev/null || echo 0); n=$((n+1)); echo $n > {count}; "
        f'[ $n -gt {good_after} ] && echo "good $n" || echo "bad $n"'
    )
    project.plan(
        {
            "spec": {"shell": project.sh(spec)},
            "beside": {"shell": project.sh("cat $HOLDFAST_INPUTS/spec"), "needs": ["spec"]},
            "code": {
                "shell": project.sh("cat $HOLDFAST_INPUTS/spec"),
                "needs": ["spec"],
                "guards": [REFUSE],
                "escalate": ["spec"],
                **more,
            },
            "ship": {"shell": project.sh("cat $HOLDFAST_INPUTS/code"), "needs": ["code"]},
        }
    )


@pytest.mark.req("R95")
def test_a_step_above_is_made_again_with_what_went_wrong(project: Project) -> None:
    seen = project.folder / "seen.json"
    tower(project, good_after=1, retries=1)
    plan = json.loads(project.read("plan.yaml"))
    keep = f'[ -n "$HOLDFAST_FEEDBACK" ] && cp $HOLDFAST_FEEDBACK {seen}; true; '
    plan["steps"]["spec"]["shell"] = keep + plan["steps"]["spec"]["shell"]
    project.plan(plan["steps"])
    run = project.run("-j", "1")
    assert (run.code, run.data["status"]) == (0, "completed"), run.err
    assert project.ran() == sorted(["spec"] * 2 + ["beside"] * 2 + ["code"] * 3 + ["ship"])
    assert run.states == dict.fromkeys(("spec", "beside", "code", "ship"), "done")
    assert run.codes["spec"] == "reopened"
    assert run.because("spec") == ["code"]
    assert project.shown("ship") == project.shown("spec") == b"good 2\n"
    assert (run.codes["code"], run.because("code")) == ("reopened", ["code"])
    (told,) = json.loads(seen.read_text())
    assert told["guard"].startswith("code: ")
    assert "bad 1" in told["feedback"], "the failure below is what it is told"
    (event,) = [e for e in project.events() if e["event"] == "steps_reopened"]
    assert (event["step"], event["by"]) == ("spec", "code")
    assert set(event["steps"]) == {"spec", "beside", "code", "ship"}
    assert project.call("verify").code == 0
    rebuilt = project.call("rebuild")
    assert rebuilt.code == 0, rebuilt.err
    assert project.call("verify").code == 0
    again = project.run()
    assert set(again.states.values()) == {"reused"}, "the newer version stands for later runs"


@pytest.mark.req("R95")
def test_the_run_tells_of_the_sending_back_and_counts_the_tries_anew(project: Project) -> None:
    tower(project, good_after=1, retries=1)
    lines = project.call("run", "-j", "1").err.splitlines()
    anew = "tried anew, because a step could not get through: code"
    told = [line for line in lines if "sent back" in line or anew in line]
    assert told == [
        "· spec: sent back, 'code' could not get through",
        f"▸ spec: attempt 2: {anew}",
        f"▸ code: attempt 3, try 1 of 2: {anew}",
    ]


@pytest.mark.req("R95")
def test_the_rounds_end_and_a_person_is_asked(project: Project) -> None:
    tower(project, good_after=3, rounds=2)
    run = project.run("-j", "1")
    assert (run.code, run.data["status"]) == (3, "waiting")
    assert run.codes["code"] == "stuck"
    assert run.states["ship"] == "pending"
    assert project.ran().count("spec") == 3, "once, and once more in each of two rounds"
    shown = project.ok("why", "code", "--wait").out
    assert "cannot get through" in shown
    assert "bad 3" in shown, "what it was last refused with"
    assert "spec" in shown
    done = project.retry("code")
    assert (done.code, done.data["status"]) == (0, "completed"), "asking again begins new rounds"
    assert project.shown("ship") == b"good 4\n"


@pytest.mark.req("R95")
@pytest.mark.parametrize("answer", ["approve", "reject", "amend"])
def test_a_person_goes_on_from_there(project: Project, answer: str) -> None:
    tower(project, good_after=2)
    assert project.run("-j", "1").code == 3
    project.ran()
    if answer == "amend":
        project.ok("amend", "code", "-", stdin=b"a good one of mine\n")
        done = project.resume()
        assert (done.code, done.codes["code"]) == (0, "amended")
        assert project.ran() == ["ship"]
        assert project.shown("ship") == b"a good one of mine\n"
    elif answer == "approve":
        assert "begins its tries anew" in project.call("approvals").out
        project.ok("approve", "code", "--yes")
        done = project.resume()
        assert (done.code, done.data["status"]) == (0, "completed")
        assert project.ran() == ["beside", "code", "code", "ship", "spec"]
    else:
        project.ok("reject", "code", "--because", "the spec is wrong")
        done = project.resume()
        assert (done.code, done.codes["code"]) == (1, "rejected_by_person")
        assert project.ran() == []


@pytest.mark.req("R95")
def test_patience_ends_with_the_same_words(project: Project) -> None:
    same = {"command": ["sh", "-c", "echo always the same; exit 1"]}
    other = {"command": ["sh", "-c", "cat $HOLDFAST_ARTIFACT; exit 1"]}
    body = "echo attempt $HOLDFAST_ATTEMPT"
    project.plan(
        {
            "dull": {"shell": project.sh(body), "guards": [same], "retries": 9, "patience": 3},
            "lively": {"shell": project.sh(body), "guards": [other], "retries": 4, "patience": 3},
            "crash": {"shell": project.sh("echo no >&2; exit 1"), "retries": 9, "patience": 2},
            "fine": {"shell": project.sh()},
        }
    )
    run = project.run()
    assert run.field("attempts") == {"dull": 3, "lively": 5, "crash": 2, "fine": 1}
    assert run.codes["dull"] == run.codes["crash"] == "stagnated"
    assert run.codes["lively"] == "guard_rejected"
    assert "the same words" in project.call("status").out


@pytest.mark.req("R95", "R77")
def test_a_fatal_verdict_goes_up_at_once(project: Project) -> None:
    tower(project, good_after=1, retries=5)
    plan = json.loads(project.read("plan.yaml"))["steps"]
    plan["code"]["guards"] = [{**REFUSE, "fatal_on": [1]}]
    project.plan(plan)
    run = project.run("-j", "1")
    assert run.code == 0, run.err
    assert project.ran().count("code") == 2, "none of the five retries was used"


@pytest.mark.req("R95")
def test_steps_that_were_made_the_same_again_are_kept(project: Project) -> None:
    """What is sent back and comes out equal costs those beside it nothing."""
    project.plan(
        {
            "spec": {"shell": project.sh("echo the same")},
            "beside": {"shell": project.sh("cat $HOLDFAST_INPUTS/spec"), "needs": ["spec"]},
            "code": {
                "shell": project.sh("cat $HOLDFAST_INPUTS/spec"),
                "needs": ["spec"],
                "guards": [REFUSE],
                "escalate": ["spec"],
            },
        }
    )
    run = project.run("-j", "1")
    assert run.code == 3
    assert project.ran() == ["beside", "code", "code", "spec", "spec"]
    assert run.states == {"spec": "done", "beside": "reused", "code": "waiting"}
    assert project.call("verify").code == 0


@pytest.mark.req("R95")
def test_check_refuses_what_cannot_be_sent_back(project: Project) -> None:
    step = {"shell": "echo"}
    project.plan({"a": step, "b": {**step, "escalate": ["a", "ghost"]}})
    said = project.refused(2, "check")
    assert "'escalate' of 'b' names 'a', which is not above it" in said
    assert "'ghost', which is no step" in said
    project.plan({"a": step, "b": {**step, "needs": ["a"], "escalate": "b"}})
    assert "'b', which is not above it" in project.refused(2, "check")
    project.plan({"c": {**step, "rounds": 2}})
    assert "'rounds' of 'c' says nothing" in project.ok("check").err
