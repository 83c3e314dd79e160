"""A plan that no longer holds, and one that was written for that case: it takes its place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.testing.server import Say
from tests.cli.models import served
from tests.cli.models import step as asked
from tests.cli.project import Project
from tests.cli.terminal import at_terminal

PLAIN: dict[str, Any] = {
    "attempted": "test it",
    "observed": [],
    "changed": [],
    "not_done": [],
    "highest_impact_uncertainty": "",
    "next_agent_should_first": "",
}
REFUTED = {**PLAIN, "hypotheses": {"grows": {"status": "refuted"}}}
GROWS = {"grows": {"statement": "it grows", "critical": True}}
SECOND = "second.yaml"


def told(name: str) -> dict[str, Any]:
    """A step that hands over what a file says."""
    shell = f"cp {name}.json $HOLDFAST_HANDOFF; echo {name} >> {{log}}; cat {name}.json"
    return {"inputs": f"{name}.json", "shell": shell}


def write(project: Project, file: str, end: str, *extra: str, **top: Any) -> None:
    """A plan: a test, perhaps further ones, and what is written at the end."""
    steps = {name: told(name) for name in ("test", *extra)}
    for name, above in zip(extra, ("test", *extra), strict=False):
        steps[name]["needs"] = [above]
    steps["test"] |= {"type": "experiment", "hypotheses": ["grows"]}
    steps["write"] = {"needs": [("test", *extra)[-1]], "shell": f"echo {end}"}
    for step in steps.values():
        step["shell"] = step["shell"].replace("{log}", str(project.log))
    project.plan(steps, file=file, **{"hypotheses": GROWS, **top})


def say(project: Project, name: str, handoff: Mapping[str, Any]) -> None:
    project.write(f"{name}.json", json.dumps(handoff))


@pytest.fixture
def ready(project: Project) -> Project:
    """A plan that names another, and a test that refutes what it stands on."""
    say(project, "test", REFUTED)
    write(project, "plan.yaml", "first", replan={"to": SECOND, "ask": False})
    write(project, SECOND, "second")
    return project


def kinds(project: Project, run: str) -> list[str]:
    return [event["event"] for event in project.events(run)]


@pytest.mark.req("R118", "R121")
def test_the_plan_that_is_ready_takes_the_place_of_one_that_no_longer_holds(ready: Project) -> None:
    run = ready.run()
    assert (run.code, run.data["status"]) == (0, "completed")
    assert run.states == {"test": "reused", "write": "done"}
    assert ready.ok("show", "write").out == "second\n"
    assert ready.log.read_text() == "test\n"
    assert "'grows' was refuted, and the plan stands on it" in run.err
    assert "going on with second.yaml" in run.err
    assert "~ write: shell changed" in run.err
    replaced = run.data["replaces"]
    assert replaced["how"] == "prepared"
    before = ready.ok("status", replaced["run"], "--json").json
    assert (before["status"], before["replan"]["triggers"]) == ("superseded", replaced["triggers"])
    first, last = ready.ok("plans", "show", "--json").json["versions"]
    assert (last["parent"], last["reason"]) == (first["plan"], "prepared")
    assert last["answers"] == replaced["triggers"]
    assert before["replan"]["plan"] == last["plan"]
    assert ready.ok("verify").code == 0


@pytest.mark.req("R118", "R121")
def test_it_is_told_wherever_somebody_looks(ready: Project) -> None:
    replaced = ready.run().data["replaces"]["run"]
    words = "'grows' was refuted, and the plan stands on it"
    assert f"it took the place of {replaced[:10]}: {words}" in ready.ok("status").out
    assert "took its place" in ready.ok("status", replaced).out
    newer, older = ready.ok("history", "--json").json["runs"]
    assert (newer["replanned"], newer["previous"]) == (None, replaced)
    assert older["replanned"] == ready.ok("plans", "show", "--json").json["shown"]
    assert "took its place" in ready.ok("history").out
    assert "took the place of the one before" in ready.ok("plans", "show").out
    page = ready.ok("why", "write", "--run", replaced).out
    assert words in page
    assert "took the place of this one" in page
    assert (
        "holdfast approve replan" not in ready.ok("why", "write", "--wait", "--run", replaced).out
    )
    asked = ready.call("resume")
    assert (asked.code, "there is no unfinished run" in asked.err) == (2, True)


@pytest.mark.req("R118")
def test_the_run_that_was_held_says_which_plan_took_its_place(
    ready: Project,
) -> None:
    run = ready.run()
    before = run.data["replaces"]["run"]
    assert kinds(ready, before)[-4:] == [
        "replan_wanted",
        "run_rested",
        "replan_decided",
        "run_ended",
    ]
    decided = ready.events(before)[-2]
    assert decided["code"] == "prepared"
    assert decided["plan"] == ready.ok("plans", "show", "--json").json["shown"]


@pytest.mark.req("R118", "R121")
def test_once_more_everything_is_reused_and_nobody_is_asked(ready: Project) -> None:
    first = ready.run()
    for _ in range(2):
        again = ready.run()
        assert (again.code, again.states) == (0, {"test": "reused", "write": "reused"})
        assert again.digests == first.digests
    assert ready.log.read_text() == "test\n"


@pytest.mark.req("R118")
def test_a_plan_that_holds_again_goes_to_its_own_end(ready: Project) -> None:
    assert ready.run().code == 0
    say(ready, "test", PLAIN)
    run = ready.run()
    assert (run.code, run.data["replaces"]) == (0, None)
    assert ready.ok("show", "write").out == "first\n"
    say(ready, "test", REFUTED)
    assert ready.run().data["replaces"] is not None
    assert ready.ok("show", "write").out == "second\n"


@pytest.mark.req("R118", "R92")
def test_a_person_is_asked_first_unless_the_plan_says_otherwise(ready: Project) -> None:
    write(ready, "plan.yaml", "first", replan={"to": SECOND})
    assert ready.run().code == 3
    said = "second.yaml is ready to take its place: holdfast run second.yaml"
    assert said in ready.ok("status").out
    assert said in ready.ok("approvals").out
    asked = ready.call("run")
    assert (asked.code, "waits for a person" in asked.err) == (2, True)
    run = ready.run(SECOND)
    assert (run.code, run.states) == (0, {"test": "reused", "write": "done"})
    assert run.data["replaces"]["how"] == "prepared"
    again = ready.run()  # the answer stands for the line
    assert (again.code, again.states) == (0, {"test": "reused", "write": "reused"})
    assert ready.ok("show", "write").out == "second\n"


@pytest.mark.req("R118", "R92")
def test_a_person_may_let_the_plan_go_on_as_it_is(ready: Project) -> None:
    write(ready, "plan.yaml", "first", replan={"to": SECOND})
    assert ready.run().code == 3
    ready.ok("approve", "replan", "--yes")
    assert ready.resume().code == 0
    assert ready.ok("show", "write").out == "first\n"
    assert ready.run().data["replaces"] is None


@pytest.mark.req("R118", "E18")
@pytest.mark.parametrize("rounds", [1, 2])
def test_so_many_plans_take_each_others_place_and_then_a_person_is_asked(
    ready: Project, rounds: int
) -> None:
    say(ready, "more", {**PLAIN, "replan": {"reason": "there is a third way"}})
    rules = {"to": "third.yaml", "ask": False, "rounds": rounds}
    write(ready, SECOND, "second", "more", replan=rules)
    write(ready, "third.yaml", "third", "more")
    run = ready.run()
    assert run.data["replaces"] is not None
    if rounds == 1:
        assert (run.code, run.states["write"]) == (3, "pending")
        return
    assert (run.code, run.states["more"], run.states["write"]) == (0, "reused", "done")
    assert ready.ok("show", "write").out == "third\n"
    again = ready.run()
    assert (again.code, set(again.states.values())) == (0, {"reused"})
    assert len(ready.ok("history", "--json").json["runs"]) == 6


@pytest.mark.req("R118")
def test_who_selected_steps_asked_for_those_alone(ready: Project) -> None:
    run = ready.run("-s", "test")
    assert (run.code, run.data["replaces"], run.states["test"]) == (3, None, "done")


@pytest.mark.req("R118")
def test_an_engine_that_waits_for_people_does_not_wait_for_this(ready: Project) -> None:
    assert ready.run("--wait").code == 0


@pytest.mark.req("R118")
def test_a_run_of_a_key_is_begun_once_whatever_plan_it_ends_with(ready: Project) -> None:
    first = ready.run("--key", "today")
    again = ready.run("--key", "today")
    assert (again.code, again.id) == (0, first.id)


@pytest.mark.req("R118")
def test_a_file_that_became_wrong_meanwhile_leaves_the_run_waiting(ready: Project) -> None:
    place = ready.root / SECOND
    steps = {
        "test": {
            "type": "experiment",
            "hypotheses": ["grows"],
            "inputs": "test.json",
            "shell": f"cp test.json $HOLDFAST_HANDOFF; echo steps: > {place}; echo tested",
        },
        "write": {"needs": ["test"], "shell": "echo first"},
    }
    ready.plan(steps, hypotheses=GROWS, replan={"to": SECOND, "ask": False})
    run = ready.run()
    assert (run.code, run.data["status"], run.states["write"]) == (3, "waiting", "pending")
    assert "second.yaml is not as it was when" in run.err
    write(ready, SECOND, "second")
    assert ready.resume().code == 0
    assert ready.ok("show", "write").out == "second\n"


THIRD = "third.yaml"


@pytest.mark.req("R118")
@pytest.mark.parametrize("changed", [SECOND, THIRD])
def test_a_plan_that_a_step_changed_takes_no_place_unless_a_person_says_so(
    ready: Project, changed: str
) -> None:
    write(ready, SECOND, "second", replan={"to": THIRD, "ask": False, "rounds": 2})
    write(ready, THIRD, "third")
    was = (ready.root / changed).read_text()
    write(ready, changed, "evil", "more")
    evil = ready.root / "evil"
    (ready.root / changed).rename(evil)
    ready.write(changed, was)
    write(ready, "plan.yaml", "first", replan={"to": SECOND, "ask": False})
    plan = (ready.root / "plan.yaml").read_text()
    ready.write("plan.yaml", plan.replace("cp test.json", f"cp {evil} {changed}; cp test.json", 1))
    run = ready.run()
    assert (run.code, run.data["status"], run.states["write"]) == (3, "waiting", "pending")
    assert f"{SECOND} is not as it was when" in run.err
    assert ready.resume().code == 3
    assert "a new run takes its place" in ready.refused(2, "run")
    ready.write(changed, was)  # as it was
    assert ready.resume().data["status"] != "waiting"


@pytest.mark.req("R118")
def test_a_plan_that_a_step_produces_is_not_ready(ready: Project) -> None:
    plan = json.loads((ready.root / "plan.yaml").read_text())
    plan["steps"]["test"]["produces"] = f"./{SECOND}"
    ready.write("plan.yaml", json.dumps(plan))
    (problem,) = ready.call("check", "--json").json["problems"]
    assert problem["code"] == "P112"
    assert f"'{SECOND}' is produced by the step 'test'" in problem["message"]


@pytest.mark.req("R118", "R165")
@pytest.mark.parametrize("yes", [("--yes",), ("--max-cost", "1")])
def test_what_was_agreed_to_holds_for_the_plan_that_follows(
    ready: Project, yes: tuple[str, ...]
) -> None:
    """Left in between, `resume` comes to the same end as a run that nobody disturbed."""
    place = ready.root / SECOND
    test = {
        "type": "experiment",
        "hypotheses": ["grows"],
        "inputs": "test.json",
        "shell": f"cp test.json $HOLDFAST_HANDOFF; echo steps: > {place}; echo tested",
    }
    paid = asked("write it", needs=["test"])
    ready.plan({"test": test, "write": paid}, hypotheses=GROWS, replan={"to": SECOND, "ask": False})
    other: dict[str, dict[str, Any]] = {"test": test, "write": paid | {"prompt": "other"}}
    ready.plan(other, file=SECOND, hypotheses=GROWS)
    with served(ready, [Say("second")]) as server:
        assert ready.run(*yes).code == 3
        ready.plan(other, file=SECOND, hypotheses=GROWS)
        went_on = ready.resume()
        assert (went_on.code, len(server.requests)) == (0, 1), went_on.err
    assert went_on.states["write"] == "done"


@pytest.mark.req("R118")
def test_what_acts_outside_is_asked_about_as_ever(ready: Project) -> None:
    acts = {"shell": "echo sent", "effects": "external", "needs": ["test"]}
    test = {**told("test"), "type": "experiment", "hypotheses": ["grows"]}
    test["shell"] = test["shell"].replace("{log}", str(ready.log))
    ready.plan({"test": test, "send": acts}, file=SECOND, hypotheses=GROWS)
    run = ready.run()
    assert (run.code, run.data["status"]) == (3, "waiting")
    assert "these steps touch the outside world: send" in run.err
    assert ready.resume("--yes").states == {"test": "reused", "send": "done"}


@pytest.mark.req("R118")
def test_steps_of_either_plan_can_be_asked_about_and_tried_again(ready: Project) -> None:
    say(ready, "more", PLAIN)
    write(ready, SECOND, "second", "more")
    assert ready.run().code == 0
    assert "more is reused" in ready.ok("why", "more").out
    again = ready.ok("retry", "more", "--json").json
    assert again["steps"]["more"]["state"] == "done"


# --- what is no answer ----------------------------------------------------------------------------

THIRD = "third.yaml"
ASKS = {**PLAIN, "replan": {"reason": "there is a third way"}}


def held_twice(project: Project, **rules: Any) -> str:
    """The second plan is doubted too; what speaks against it."""
    say(project, "more", ASKS)
    top = {"replan": rules} if rules else {}
    write(project, SECOND, "second", "more", **top)
    run = project.run()
    assert (run.code, run.states["write"]) == (3, "pending")
    (name,) = run.data["replan"]["triggers"]
    return str(name)


@pytest.mark.req("R118", "R121", "E18")
def test_to_begin_again_is_no_answer_to_what_speaks_against_a_plan_that_followed(
    ready: Project,
) -> None:
    name = held_twice(ready)
    for _ in range(2):
        again = ready.run("--yes")
        assert (again.code, again.data["replan"]["triggers"]) == (3, [name])
    versions = ready.ok("plans", "show", "--json").json["versions"]
    assert all(name not in one["answers"] for one in versions)
    assert ready.ok("verify").code == 0


@pytest.mark.req("R118", "E18")
def test_the_third_plan_follows_when_more_rounds_are_allowed(ready: Project) -> None:
    write(ready, THIRD, "third", "more")
    name = held_twice(ready, to=THIRD, ask=False)
    assert ready.run("--yes").data["replan"]["triggers"] == [name]
    write(ready, SECOND, "second", "more", replan={"to": THIRD, "ask": False, "rounds": 5})
    assert ready.run("--yes").code == 0
    assert ready.ok("show", "write").out == "third\n"


@pytest.mark.req("R118", "R92")
def test_a_person_who_took_the_third_plan_is_not_asked_again(ready: Project) -> None:
    write(ready, THIRD, "third", "more")
    held_twice(ready, to=THIRD)
    assert ready.run(THIRD).code == 0
    again = ready.run()
    assert (again.code, set(again.states.values())) == (0, {"reused"})
    assert ready.ok("show", "write").out == "third\n"


@pytest.mark.req("R118", "R121")
@pytest.mark.parametrize("file", ["plan.yaml", SECOND])
def test_a_second_plan_that_was_changed_answers_whichever_file_is_run(
    ready: Project, file: str
) -> None:
    name = held_twice(ready)
    write(ready, SECOND, "otherwise", "more")
    assert ready.run(file, "--yes").code == 0
    last = ready.ok("plans", "show", "--json").json["versions"][-1]
    assert name in last["answers"]
    again = ready.run()
    assert (again.code, again.data["replan"]) == (0, None)
    assert ready.ok("show", "write").out == "otherwise\n"


@pytest.mark.req("R118", "R121")
def test_a_first_plan_that_leads_to_the_same_second_one_lets_it_wait_again(ready: Project) -> None:
    name = held_twice(ready)
    write(ready, "plan.yaml", "changed", replan={"to": SECOND, "ask": False})
    assert ready.run("--yes").data["replan"]["triggers"] == [name]


@pytest.mark.req("R118")
@pytest.mark.parametrize(
    "words", [{"description": "of bikes"}, {"goal": "know it"}, {"replan": {"rounds": 3}}]
)
def test_words_alone_are_no_other_plan(project: Project, words: dict[str, Any]) -> None:
    say(project, "test", REFUTED)
    write(project, "plan.yaml", "first")
    name = project.run().data["replan"]["triggers"][0]
    write(project, "plan.yaml", "first", **words)
    again = project.run("--yes")
    assert (again.code, again.data["replan"]["triggers"]) == (3, [name])


@pytest.mark.req("R118")
def test_a_successor_that_is_named_later_takes_the_place(ready: Project) -> None:
    write(ready, "plan.yaml", "first")
    assert ready.run().code == 3
    write(ready, "plan.yaml", "first", replan={"to": SECOND, "ask": False})
    assert ready.run("--yes").code == 0
    assert ready.ok("show", "write").out == "second\n"


@pytest.mark.req("R118")
def test_who_comes_back_to_the_plan_that_was_doubted_is_asked_again(project: Project) -> None:
    say(project, "test", REFUTED)
    write(project, "plan.yaml", "first")
    assert project.run().code == 3
    write(project, "plan.yaml", "other")
    assert project.run("--yes").code == 0
    write(project, "plan.yaml", "first")
    assert project.run().code == 3


# --- what is foreseen -----------------------------------------------------------------------------

WORDS = "'grows' was refuted, and the plan stands on it"


def decisions(told: Mapping[str, Any]) -> dict[str, str]:
    return {name: step["decision"] for name, step in told["steps"].items()}


@pytest.mark.req("R118", "R107")
def test_a_preview_is_of_the_plan_that_a_run_comes_to(ready: Project) -> None:
    say(ready, "more", PLAIN)
    write(ready, SECOND, "second", "more")
    first = ready.ok("plan")
    assert "second.yaml is ready, should what is learned speak against this plan" in first.out
    assert ready.run().code == 0
    told = ready.ok("plan", "--json").json
    assert decisions(told) == dict.fromkeys(("test", "more", "write"), "reuse")
    (over,) = told["replan"]["goes_on"]
    assert (over["file"], over["because"][0]["words"]) == (SECOND, WORDS)
    shown = ready.ok("plan", "--detailed-exitcode").out
    assert f"goes on with second.yaml: {WORDS}" in shown
    assert "Nothing to do" in shown
    assert "Nothing to do" in ready.ok("run", "--dry-run").out
    why = ready.ok("why", "write").out
    assert "write is reused" in why
    assert "goes on with second.yaml" in why
    assert "holdfast retry write" in why
    assert ready.ok("run", "--preview", told["digest"]).code == 0


@pytest.mark.req("R118", "R107")
def test_if_steps_run_before_it_is_known_the_first_plan_is_shown(ready: Project) -> None:
    assert ready.run().code == 0
    say(ready, "test", {**REFUTED, "attempted": "test it again"})
    told = ready.ok("plan", "--json").json
    assert decisions(told)["test"] == "run"
    assert (told["replan"]["goes_on"], told["replan"]["ready"]) == ([], SECOND)


@pytest.mark.req("R118", "R107", "E18")
def test_a_preview_follows_a_chain_to_where_a_person_is_asked(ready: Project) -> None:
    write(ready, THIRD, "third", "more")
    name = held_twice(ready, to=THIRD, ask=False)
    told = ready.ok("plan", "--json").json
    assert [over["file"] for over in told["replan"]["goes_on"]] == [SECOND]
    assert [one["trigger"] for one in told["replan"]["waits_for"]] == [name]
    assert told["replan"]["held"] == ready.ok("status", "--json").json["run"]
    assert "follows after: holdfast approve replan" in ready.ok("plan").out
    write(ready, SECOND, "second", "more", replan={"to": THIRD, "ask": False, "rounds": 2})
    told = ready.ok("plan", "--json").json
    assert [over["file"] for over in told["replan"]["goes_on"]] == [SECOND, THIRD]
    assert decisions(told) == {"test": "reuse", "more": "reuse", "write": "run"}
    assert ready.run().code == 0  # nobody has to be asked
    assert ready.ok("show", "write").out == "third\n"


@pytest.mark.req("R118", "R107")
def test_a_preview_says_that_a_run_is_held_and_what_can_be_done(ready: Project) -> None:
    write(ready, "plan.yaml", "first", replan={"to": SECOND})
    run = ready.call("run")
    assert run.code == 3
    assert "next: holdfast approve replan    holdfast ledger    holdfast run second.yaml" in run.out
    shown = ready.ok("plan").out
    assert f"is held: {WORDS}" in shown
    assert "next: holdfast approve replan" in shown
    write(ready, "plan.yaml", "other", replan={"to": SECOND})
    assert ready.ok("plan", "--json").json["replan"]["waits_for"] == []
    assert ready.run().code == 0  # it is the answer


@pytest.mark.req("R118")
def test_no_command_is_offered_that_would_be_refused(project: Project) -> None:
    say(project, "test", REFUTED)
    write(project, "plan.yaml", "first")
    run = project.call("run")
    assert run.out.splitlines()[-1] == "next: holdfast approve replan    holdfast ledger"
    assert "or change the plan: holdfast run" in run.out
    assert project.call("run").code == 2  # nothing was changed
    write(project, "plan.yaml", "other")
    assert project.run().code == 0


@pytest.mark.req("R118", "R107", "R124")
def test_a_contest_shows_what_falls_in_the_plan_that_a_run_comes_to(ready: Project) -> None:
    say(ready, "more", {**PLAIN, "observed": [{"finding": "it is so"}]})
    write(ready, SECOND, "second", "more")
    assert ready.run().code == 0
    shown = ready.ok("ledger", "contest", "more", "--because", "no", "--dry-run", "--json").json
    assert [one["step"] for one in shown["again"]] == ["more", "write"]
    assert shown["replan"]["goes_on"][0]["file"] == SECOND
    out = ready.ok("ledger", "contest", "more", "--because", "no").out
    assert "a run would check again (2 steps of 3)" in out
    assert "goes on with second.yaml" in out
    assert ready.run().states["more"] == "done"


@pytest.mark.req("R118", "R92")
@pytest.mark.parametrize(("answer", "code", "text"), [("y", 0, "second\n"), ("n", 3, "")])
def test_at_a_terminal_a_person_is_asked_which_plan_it_goes_on_with(
    ready: Project, answer: str, code: int, text: str
) -> None:
    write(ready, "plan.yaml", "first", replan={"to": SECOND})
    found, seen = at_terminal(ready, answer, "run")
    assert "go on with 'second.yaml' instead of this plan?" in seen
    assert found == code
    if text:
        assert ready.ok("show", "write").out == text
    assert ready.ok("status", "--json").json["status"] == ("completed" if text else "waiting")


# --- what check finds -----------------------------------------------------------------------------


def found(project: Project) -> tuple[str, int, str]:
    (problem,) = project.call("check", "--json").json["problems"]
    return problem["code"], problem["line"], problem["message"]


@pytest.mark.req("R16", "R118")
@pytest.mark.parametrize(
    ("to", "text", "words"),
    [
        ("gone.yaml", "", "there is no file 'gone.yaml'"),
        ("bad.yaml", "name: demo\nsteps: {a: {shel: x}}\n", "(line 2)"),
        ("other.yaml", "name: other\nsteps: {a: {shell: x}}\n", "its name is 'other'"),
        ("unnamed.yaml", "steps: {a: {shell: x}}\n", "its name is 'unnamed'"),
        ("far.yaml", "name: demo\nproject: x\nsteps: {a: {shell: x}}\n", "its project is 'x'"),
        ("in/it.yaml", "name: demo\nsteps: {a: {shell: x}}\n", "lies in another directory"),
    ],
)
def test_a_plan_that_cannot_take_the_place_is_found_beforehand(
    project: Project, to: str, text: str, words: str
) -> None:
    project.write("plan.yaml", f"name: demo\nreplan: {{to: {to}}}\nsteps: {{a: {{shell: x}}}}\n")
    if text:
        project.write(to, text)
    code, line, message = found(project)
    assert (code, line) == ("P112", 2)
    assert words in message
    assert project.call("run").code == 2
    assert not project.store.exists()


@pytest.mark.req("R118")
@pytest.mark.parametrize("ask", [True, False])
def test_a_plan_that_is_gone_is_not_called_ready(ready: Project, ask: bool) -> None:
    write(ready, "plan.yaml", "first", replan={"to": SECOND, "ask": ask})
    plan = json.loads(ready.read("plan.yaml"))
    plan["steps"]["test"]["shell"] += f"; rm {SECOND}"
    ready.write("plan.yaml", json.dumps(plan))
    held = ready.call("run")
    assert held.code == 3
    every = [held.out + held.err, ready.ok("status").out, ready.ok("approvals").out]
    every.append(ready.call("approve", "replan").out)
    for text in every:
        assert f"{SECOND}, which was to take its place, is not there any more" in text
        assert "is ready" not in text
        assert f"holdfast run {SECOND}" not in text
    write(ready, SECOND, "second")
    assert f"next: holdfast approve replan    holdfast ledger    holdfast run {SECOND}" in (
        ready.ok("status").out
    )


@pytest.mark.req("R16", "R118", "E18")
@pytest.mark.parametrize("way", [["plan.yaml"], ["b.yaml", "plan.yaml"], ["b.yaml", "b.yaml"]])
def test_plans_that_take_each_others_place_in_a_circle_are_refused(
    project: Project, way: list[str]
) -> None:
    for file, to in zip(["plan.yaml", *way], way, strict=False):
        project.write(file, f"name: demo\nreplan: {{to: {to}}}\nsteps: {{a: {{shell: x}}}}\n")
    code, line, message = found(project)
    assert (code, line) == ("P113", 2)
    assert message.endswith(" → ".join(["plan.yaml", *way]))


@pytest.mark.req("R118")
def test_params_are_handed_on_to_the_plan_that_has_them(ready: Project) -> None:
    params = {"word": {"type": "string", "default": "x"}, "own": {"type": "string", "default": "y"}}
    write(ready, "plan.yaml", "first", replan={"to": SECOND, "ask": False}, params=params)
    write(ready, SECOND, "second", params={"word": params["word"]})
    plan = json.loads(ready.read(SECOND))
    plan["steps"]["write"] |= {
        "with": {"word": "${{ params.word }}"},
        "shell": "cat $HOLDFAST_WITH/word",
    }
    ready.write(SECOND, json.dumps(plan))
    assert ready.run("--param", "word=later", "--param", "own=z").code == 0
    assert ready.ok("show", "write").out == "later"
