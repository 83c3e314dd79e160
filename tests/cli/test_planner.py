"""How a model plans for a goal: what it is shown, what is kept of its attempts, when it is asked again."""

import json

import pytest

from holdfast import wire
from holdfast.cli import templates
from holdfast.engine.versions import keep_planned, kept_plan, planned, versions
from holdfast.model.plan import RunId, StepId
from holdfast.testing.server import Hang, Say
from tests.cli.goals import API, GOAL, STEPS, answer, artifact, digest, planner
from tests.cli.project import Project, kill, until

DAY = 86_400_000
CIRCLE = answer(artifact("A", "B"), artifact("B", "A"))
UNKNOWN = answer(artifact("A", "Z"))
NO_CONTRACT = answer(artifact("A", contract=""))


@pytest.mark.req("R154", "R150")
def test_every_attempt_at_a_plan_can_be_looked_at(project: Project) -> None:
    """A circle, an unknown need, a missing contract: refused, kept, and shown by every command that shows."""
    with planner(project, CIRCLE, UNKNOWN, NO_CONTRACT, API):
        project.ok("plan", GOAL, "--yes", "--plan-id", "api")
    line = ("--plan-id", "api.planning")
    kept = [json.loads(project.shown(f"plan@{number}")) for number in (1, 2, 3, 4)]
    assert kept == [json.loads(one) for one in (CIRCLE, UNKNOWN, NO_CONTRACT, API)]
    shown = project.ok("show", "@", *line).out
    assert "plan done: first time, 4 attempts" in shown
    told = project.why("plan", *line, "--run", "@")["notes"]
    assert told == {
        "attempt 1": "plan refused it: these artifacts require each other in a circle: A → B → A;"
        " one of them must be made without the next",
        "attempt 2": "plan refused it: 'A' requires 'Z', which is not among the artifacts",
        "attempt 3": "plan refused it: 'A' has no contract: say what it must fulfil",
    }
    assert (
        "attempt 3   plan refused it: 'A' has" in project.ok("why", "plan", *line, "--run", "@").out
    )
    assert "in a circle" in project.ok("logs", "plan", *line, "--attempt", "1").out
    events = [event["event"] for event in project.events()]
    assert events.count("attempt_rejected") == 3
    assert events.count("attempt_accepted") == 1


def test_a_planner_sees_the_files_of_the_project_if_somebody_wants_it(project: Project) -> None:
    project.write("src/app.py", "x = 1\n")
    project.write("src/api/routes.py", "x = 1\n")
    project.write(".env", "TOKEN=abc\n")
    project.write("deploy/server.pem", "abc\n")
    project.write(".gitignore", "build/\n")
    project.write("build/out.js", "1\n")
    with planner(project) as (model, _):
        project.ok("plan", GOAL, "--yes", "--with-files")
        listed = model.planned[0].partition("PROJECT FILES")[2]
        assert "src/api/routes.py\nsrc/app.py" in listed
        for hidden in (".env", "server.pem", "out.js", "state.db", "TOKEN"):
            assert hidden not in model.planned[0]
        project.run(GOAL, "--yes", "--trust", digest(project))
        assert project.has("src/user.py")
        again = project.run(GOAL, "--yes", "--with-files")
        assert set(again.states.values()) == {"reused"}, "files of its own steps are no other goal"
        assert len(model.planned) == 1
        assert "stands and is used" in again.err
        project.ok("plan", "another goal", "--yes")
        assert "PROJECT FILES" not in model.planned[1]
        own = project.home / ".config" / "holdfast" / "config.toml"
        own.write_text(own.read_text() + "[planner]\nwith_files = true\n")
        project.ok("plan", "a third goal", "--yes")
        assert "src/user.py" in model.planned[2]
        own.write_text(own.read_text().replace("true", "1"))
        assert "must be true or false" in project.refused(2, "plan", "a fourth one", "--yes")


def test_what_looks_like_an_expression_is_only_text(project: Project) -> None:
    """In the goal, in file names, in what a planner says, in the plan that stands and in what failed."""
    goal = "Write a workflow that uses ${{ secrets.TOKEN }} and $${{ x }}"
    said = "it says ${{ steps.nobody.output }}, $${{ and ${{"
    project.write("notes/${{ params.n }}.md", "1\n")
    named = artifact("Flow", contract=said, description=said, produces_file="flow.py")
    other = artifact("Flow", contract=said, description=said + ".", produces_file="flow.py")
    words = (goal, "--yes", "--with-files", "--plan-id", "flow")
    with planner(project, answer(named), answer(other)) as (model, _):
        shown = project.ok("plan", *words, "--json").json["plan"]["digest"]
        assert goal in model.planned[0]
        assert "${{ params.n }}.md" in model.planned[0]
        model.makes = Say("def ${{ secrets.TOKEN }}(")
        failed = project.call("run", *words, "--trust", shown[:12], "--on-failure", "regenerate")
        assert failed.code == 3, failed.err
        assert goal in model.made[0]
        assert said in model.made[0]
        asked = model.planned[1]
        assert json.dumps(said)[1:-1] in asked.partition("EARLIER PLAN")[2]
        assert "not Python" in asked.partition("WHAT FAILED")[2]
    store = wire.open_store(str(project.store), readonly=True)
    try:
        version = planned(store, "", "flow")
        assert version is not None
        plan = kept_plan(store, version.plan)
    finally:
        store.close()
    step = plan.steps[StepId("Flow")]
    assert (plan.goal, step.contract, step.description) == (goal, said, said + ".")


def test_killed_while_it_plans_with_files_it_asks_nothing_twice(project: Project) -> None:
    """A file that came meanwhile is no other question: answers that were paid for count."""
    project.write("one.txt", "1\n")
    with planner(project, CIRCLE, Hang(), API) as (model, _):
        engine = project.start("plan", GOAL, "--yes", "--with-files")
        until(lambda: len(model.planned) == 2, "the second is asked for")
        kill(engine)
        project.write("two.txt", "2\n")
        shown = project.ok("plan", GOAL, "--yes", "--with-files", "--json")
        assert sorted(shown.json["steps"]) == STEPS
        assert len(model.planned) == 3
        assert model.planned[2] == model.planned[1]
    assert len(project.ok("history", "--all", "--json").json["runs"]) == 1


def test_a_strategy_is_kept_to(project: Project) -> None:
    side_by_side = answer(artifact("A"), artifact("B"), artifact("C", "A", "B"))
    in_a_row = answer(artifact("A"), artifact("B", "A"), artifact("C", "B"))
    on_a_model = answer(artifact("A", domain_type="model"), artifact("B", "A"))
    on_a_protocol = answer(artifact("A", domain_type="Protocol"), artifact("B", "A"))
    with planner(project, side_by_side, in_a_row) as (model, _):
        project.ok("plan", GOAL, "--yes", "--strategy", "sequential")
        assert "these would be made side by side: A, B" in model.planned[1]
        assert len(model.planned) == 2
    with planner(project, on_a_model, on_a_protocol) as (model, _):
        project.ok("plan", "another goal", "--yes", "--strategy", "contract-first")
        assert "'A' is what others begin with, and no interface" in model.planned[1]
        assert len(model.planned) == 2


def test_what_says_how_to_ask_a_model_is_refused_where_none_is_asked(project: Project) -> None:
    project.plan({"a": {"shell": "echo a"}})
    for words in (("--yes",), ("--max-cost", "1"), ("--record", "answers")):
        said = project.refused(2, "plan", *words)
        assert f"a look at a plan file asks no model: {words[0]} would do nothing" in said
        assert "to 'holdfast run'" in said
    assert not project.store.exists()
    assert not project.has("answers")
    project.ok("plan")


def test_a_wish_about_planning_that_comes_too_late_is_told(project: Project) -> None:
    with planner(project) as (model, _):
        project.ok("plan", GOAL, "--yes")
        said = project.ok("plan", GOAL, "--strategy", "sequential", "--yes").err
        assert "a plan for this goal stands and is used; another one: `holdfast plan" in said
        assert len(model.planned) == 1


def test_what_a_run_planned_is_kept_once(project: Project) -> None:
    with planner(project):
        project.ok("plan", GOAL, "--yes", "--plan-id", "api")
    store = wire.open_store(str(project.store), create=False, readonly=False)
    try:
        (first,) = versions(store, "", "api")
        plan = kept_plan(store, first.plan)
        keep_planned(store, plan, first.run, "me", wire.now_ms)
        assert versions(store, "", "api") == [first]
        keep_planned(store, plan, RunId("r-other"), "me", wire.now_ms)
        second = versions(store, "", "api")[-1]
        assert (second.reason, second.parent) == ("replanned", first.plan)
    finally:
        store.close()


@pytest.mark.req("R101")
def test_an_old_plan_is_used_and_said_to_be_old_and_a_fresh_one_is_not(project: Project) -> None:
    with planner(project) as (model, _):
        project.ok("plan", GOAL, "--yes", "--plan-id", "api")
        assert "was made" not in project.ok("plan", "--plan-id", "api").err
        store = wire.open_store(str(project.store), create=False, readonly=False)
        try:
            version = planned(store, "", "api")
            assert version is not None
            plan = kept_plan(store, version.plan)
            keep_planned(store, plan, RunId("r-before"), "me", lambda: wire.now_ms() - 2 * DAY)
        finally:
            store.close()
        said = project.ok("run", GOAL, "--plan-id", "api", "--show-plan").err
        assert "this plan was made 2 days ago; `holdfast run 'Build a REST" in said
        assert "--replan` makes another one" in said
        assert len(model.planned) == 1
        project.ok("plan", GOAL, "--plan-id", "api", "--fresh", "--yes")
        assert len(model.planned) == 2
        project.ok("verify")


@pytest.mark.req("R53")
def test_files_that_another_plan_for_the_goal_leaves_behind_are_kept_until_pruned(
    project: Project,
) -> None:
    with planner(project, API, answer(artifact("App"))):
        project.ok("plan", GOAL, "--yes")
        project.run(GOAL, "--yes", "--trust", digest(project))
        project.ok("plan", GOAL, "--replan", "--yes")
        shown = project.ok("run", GOAL, "--show-plan").out
        assert "  Removed: 4 (AuthInterface, AuthService, UserModel and 1 more)\n" in shown
        assert "UserProtocol: left the plan; src/user.py is kept (delete: holdfast run" in shown
        ran = project.run(GOAL, "--yes", "--trust", digest(project))
        assert "src/user.py: kept, though its step 'UserProtocol' left the plan" in ran.err
        assert project.has("src/user.py")
        pruned = project.run(GOAL, "--yes", "--removed", "prune")
        assert "src/user.py: deleted" in pruned.err
        assert not project.has("src/user.py")


def test_what_to_do_next_works_as_it_is_printed(project: Project) -> None:
    """Who asks nobody is told commands that ask nobody either."""
    project.ok("init", "kelp", "--template", "goal")
    shown = project.ok("-C", "kelp", "plan", templates.GOAL, "--provider", "recorded").out
    assert f"next: holdfast -C kelp run '{templates.GOAL}' --provider recorded    " in shown
    said = project.refused(2, "-C", "kelp", "resume", "--plan-id", "nobody")
    assert "there is no run of 'nobody'" in said
