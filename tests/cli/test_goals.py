"""From a goal in words to a plan that runs: planned once, checked, kept, approved, used again."""

import hashlib
import json

import pytest

from holdfast.testing.server import Hang, Say
from tests.cli.goals import API, GOAL, STEPS, answer, artifact, digest, planner
from tests.cli.project import Project, kill, until
from tests.cli.terminal import at_terminal

LINE = hashlib.sha256(GOAL.encode()).hexdigest()
CIRCLE = answer(artifact("A", "B"), artifact("B", "A"))
UNKNOWN = answer(artifact("A", "Z"))
NO_CONTRACT = answer(artifact("A", contract=""))


@pytest.mark.req("R154", "C13")
def test_a_planner_hears_what_is_wrong_until_its_plan_holds(project: Project) -> None:
    with planner(project, CIRCLE, UNKNOWN, NO_CONTRACT, API) as (model, _):
        shown = project.ok("plan", GOAL, "--yes", "--json")
    assert sorted(shown.json["steps"]) == STEPS
    assert len(model.planned) == 4
    assert "in a circle: A → B → A" in model.planned[1]
    assert "'A' requires 'Z', which is not among the artifacts" in model.planned[2]
    assert "'A' has no contract" in model.planned[3]
    kept = [project.shown(f"plan@{number}") for number in (1, 2, 3, 4)]
    assert [json.loads(one) for one in kept] == [
        json.loads(one) for one in (CIRCLE, UNKNOWN, NO_CONTRACT, API)
    ]
    assert (
        "first time"
        in project.ok("why", "plan", "--plan-id", f"{LINE[:12]}.planning", "--run", "@").out
    )
    project.ok("verify")


@pytest.mark.req("R13", "C12", "C13")
def test_the_same_goal_is_planned_once(project: Project) -> None:
    with planner(project) as (model, server):
        project.ok("plan", GOAL, "--yes")
        name = digest(project)
        assert "nobody approved its plan" in project.refused(2, "run", GOAL, "--yes")
        first = project.run(GOAL, "--yes", "--trust", name)
        assert sorted(first.states) == STEPS
        assert set(first.states.values()) == {"done"}
        asked = len(server.requests)
        again = project.run(GOAL, "--yes")
        assert set(again.states.values()) == {"reused"}
        assert len(model.planned) == 1
        assert len(server.requests) == asked
        assert first.data["plan"]["line"] == LINE
    assert project.read("src/user.py") == "x = 1\n"
    assert GOAL in project.ok("history", "--all").out


@pytest.mark.req("R13", "R100")
def test_a_name_takes_the_place_of_the_digest(project: Project) -> None:
    with planner(project) as (model, _):
        project.ok("plan", GOAL, "--plan-id", "api", "--yes")
        trusted = digest(project, "--plan-id", "api")
        ran = project.run(GOAL, "--plan-id", "api", "--yes", "--trust", trusted)
        assert ran.data["plan"]["line"] == "api"
        by_name = project.run("--plan-id", "api", "--yes")
        assert set(by_name.states.values()) == {"reused"}
        assert len(model.planned) == 1
        said = project.refused(2, "run", "Something else entirely", "--plan-id", "api", "--yes")
    assert "has a plan for another goal" in said


def test_killed_while_it_plans_it_asks_nothing_twice(project: Project) -> None:
    """The first two answers were refused, the third never came: only that one is asked for again."""
    with planner(project, CIRCLE, UNKNOWN, Hang(), API) as (model, _):
        engine = project.start("plan", GOAL, "--yes")
        until(lambda: len(model.planned) == 3, "the third is asked for")
        kill(engine)
        shown = project.ok("plan", GOAL, "--yes", "--json")
        assert sorted(shown.json["steps"]) == STEPS
        assert model.planned[3] == model.planned[2]
        assert len(model.planned) == 4
    assert len(project.ok("history", "--all", "--json").json["runs"]) == 1


def test_a_plan_that_was_made_and_not_kept_yet_is_not_paid_for_again(project: Project) -> None:
    """Who dies between the end of planning and the version of the line loses nothing either."""
    with planner(project, CIRCLE, Hang(), API) as (model, _):
        engine = project.start("plan", GOAL, "--yes")
        until(lambda: len(model.planned) == 2, "the second is asked for")
        kill(engine)
        project.ok("resume", "--plan-id", f"{LINE[:12]}.planning", "--yes")
        assert len(model.planned) == 3
        assert project.ok("plans", "list", "--json").json["lines"] == []
        shown = project.ok("plan", GOAL, "--json")  # nobody has to agree: nobody is asked
        assert sorted(shown.json["steps"]) == STEPS
        assert len(model.planned) == 3


def test_a_version_is_compared_with_the_one_before_it(project: Project) -> None:
    with planner(project, API, answer(artifact("A"))):
        project.ok("plan", GOAL, "--yes", "--plan-id", "api")
        first = digest(project, "--plan-id", "api")
        project.plan({"x": {"shell": "echo x"}})  # a file that is here is not the plan of that line
        shown = project.ok("plan", "--plan-id", "api", "--replan", "--yes", "--json").json
        assert shown["against"] == f"plan {first}"
        assert len(shown["changes"]["removed"]) == 5
        back = project.ok("plan", "--plan-id", "api", "--against", first, "--json").json
        assert back["changes"]["added"] == ["A"]
        said = project.refused(2, "plan", "--plan-id", "api", "--against", "main")
    assert "neither a run nor a version of the plan" in said
    assert "'x'" not in project.ok("ls", "--plan-id", "api").out


@pytest.mark.req("R101", "C13", "C24")
def test_another_plan_is_shown_beside_the_old_one_first(project: Project) -> None:
    other = json.loads(API)
    other["artifacts"][4]["contract"] = "another contract"
    other["artifacts"].append(artifact("Docs", "App"))
    with planner(project, API, json.dumps(other)) as (model, _):
        project.ok("plan", GOAL, "--yes")
        before = digest(project)
        said = project.refused(2, "plan", GOAL, "--replan")
        assert "would take the place of the one that stands" in said
        assert len(model.planned) == 1
        taken = project.ok("plan", GOAL, "--replan", "--yes")
        assert " + Docs: added" in taken.err
        assert " ~ App: contract changed" in taken.err
        assert "EARLIER PLAN" in model.planned[1]
        assert "1 added, 0 removed, 1 changed, 4 unchanged" in taken.err
        after = digest(project)
        assert before != after
        assert len(model.planned) == 2
        listed = project.ok("plans", "show", GOAL, "--json").json["versions"]
    assert [one["reason"] for one in listed] == ["planned", "replanned"]
    assert listed[1]["parent"] == listed[0]["plan"]
    assert listed[1]["plan"].startswith(after)


def test_without_a_model_for_it_nothing_is_planned(project: Project) -> None:
    with planner(project, tiers=""):
        said = project.refused(2, "plan", GOAL, "--yes")
        assert "nobody said which model plans" in said
        assert not project.store.exists()
        project.ok("plan", GOAL, "--yes", "--model", "fake:m")
    assert "no provider 'nobody'" in project.refused(2, "plan", "one two", "--model", "nobody:m")


def test_planning_asks_before_it_costs_money(project: Project) -> None:
    with planner(project) as (model, _):
        said = project.refused(2, "run", GOAL)
        assert "cost money: plan" in said
        assert not model.planned
        project.ok("plan", GOAL, "--max-cost", "1")
        assert len(model.planned) == 1


@pytest.mark.req("R154")
def test_a_planner_that_never_gets_it_right_is_for_a_person(project: Project) -> None:
    with planner(project, CIRCLE) as (model, _):
        answered = project.call("plan", GOAL, "--yes", "--rounds", "2")
        assert answered.code == 8
        assert len(model.planned) == 2
        assert "in a circle" in answered.out
        small = project.call(
            "plan", "another goal", "--yes", "--rounds", "1", "--max-artifacts", "1"
        )
        assert small.code == 8
        assert "at most 1 are allowed" in small.out


@pytest.mark.req("R154")
def test_work_that_failed_is_planned_again_if_the_policy_says_so(project: Project) -> None:
    broken = answer(artifact("A", produces_file="a.py"))
    fixed = answer(artifact("A", produces_file="a.txt"))
    with planner(project, broken, fixed) as (model, _):
        project.ok("plan", GOAL, "--yes")
        model.makes = Say("def (")
        name = digest(project)
        escalated = project.call("run", GOAL, "--yes", "--trust", name)
        assert escalated.code == 1
        assert len(model.planned) == 1
        again = project.call("run", GOAL, "--yes", "--on-failure", "hybrid")
        assert again.code == 3, again.err
        assert "WHAT FAILED" in model.planned[1]
        assert "not Python" in model.planned[1]
        assert "nobody approved its plan" in again.err
        project.ok("run", GOAL, "--yes", "--trust", digest(project))
    assert project.read("a.txt") == "def ("


@pytest.mark.req("R154")
def test_the_same_plan_is_not_tried_again_after_it_failed(project: Project) -> None:
    broken = answer(artifact("A", produces_file="a.py"))
    with planner(project, broken) as (model, _):
        project.ok("plan", GOAL, "--yes")
        model.makes = Say("def (")
        words = ("run", GOAL, "--trust", digest(project), "--on-failure", "regenerate")
        again = project.call(*words, "--yes")
        assert again.code == 1, again.err
        assert "planned the same again" in again.err
        assert "the same plan would fail again: this is for a person to decide" in again.err
        made = len(model.made)
        assert len(model.planned) == 2
        bounded = project.call(*words, "--max-cost", "1")
        assert bounded.code == 1, bounded.err
        assert "it is not planned again: a new plan would take the place" in bounded.err
        assert "hint: say --yes" in bounded.err
        assert len(model.planned) == 2
        assert len(model.made) == 2 * made


def test_programs_read_one_object_however_often_it_is_planned(project: Project) -> None:
    broken = answer(artifact("A", produces_file="a.py"))
    for other in (broken, answer(artifact("A", produces_file="b.py")), CIRCLE):
        with planner(project, broken, other) as (model, _):
            project.ok("plan", GOAL, "--yes", "--fresh")
            model.makes = Say("def (")
            words = ("--on-failure", "regenerate", "--json", "--trust", digest(project))
            ran = project.call("run", GOAL, "--yes", "--force", *words)
            assert ran.code != 0
            assert json.loads(ran.out)["schema"] == "holdfast.run/1"


@pytest.mark.parametrize("last", [Say(API[:40], finish="length"), Say("", refusal="no"), Say("")])
def test_no_answer_that_is_a_plan_is_for_a_person(project: Project, last: Say) -> None:
    with planner(project, CIRCLE, last):
        answered = project.call("plan", GOAL, "--yes", "--rounds", "2")
    assert answered.code == 8
    assert "no plan held" in answered.err


def test_one_bound_holds_for_the_work_and_all_planning(project: Project) -> None:
    """What the run that failed spent, and planning again, is gone: the bound is that of the command."""
    broken = answer(artifact("A", produces_file="a.py"))
    fixed = answer(artifact("A", produces_file="b.py"))
    with planner(project, broken, fixed) as (model, _):
        project.ok("plan", GOAL, "--yes")
        model.makes = Say("def (", output=1000)
        words = ("--yes", "--on-failure", "regenerate", "--max-cost", "0.008")
        code, seen = at_terminal(project, "y\ny", "run", GOAL, "--trust", digest(project), *words)
        assert code == 5, seen
        assert "of $0.0019 the run has $0 left" in seen.replace("\r\n    ", " ")
        assert len(model.made) == 4


@pytest.mark.req("R98", "R99")
def test_flags_that_only_show_run_nothing(project: Project) -> None:
    with planner(project) as (model, server):
        first = project.ok("run", GOAL, "--diff-plan")
        assert first.out.startswith("No previous plan to compare")
        assert not model.planned
        project.ok("plan", GOAL, "--yes")
        asked = len(server.requests)
        assert "App" in project.ok("run", GOAL, "--show-plan").out
        assert "App" in project.ok("run", GOAL, "--dry-run").out
        assert "No previous plan to compare" in project.ok("run", GOAL, "--diff-plan").out
        assert len(server.requests) == asked


def test_planning_flags_mean_nothing_to_a_plan_file(project: Project) -> None:
    project.plan({"a": {"shell": "echo a"}})
    assert "a plan file says itself what to do" in project.refused(2, "run", "--replan")
    assert "a plan file says itself what to do" in project.refused(2, "plan", "--model", "x:y")
    assert "more than one word" in project.refused(2, "run", "word")


def test_a_saved_preview_of_a_goal_runs_as_it_was_shown(project: Project) -> None:
    with planner(project):
        project.ok("plan", GOAL, "--yes")
        project.ok("plan", GOAL, "-o", "review.plan.json")
        ran = project.run("review.plan.json", "--trust", digest(project))
        assert set(ran.states.values()) == {"done"}
        assert "stale" in project.refused(6, "run", "review.plan.json")


def test_a_preview_of_a_goal_is_stale_before_it_is_unapproved(project: Project) -> None:
    """Whoever holds on to what he saw is not led to approve what he did not see."""
    with planner(project, API, answer(artifact("A"))) as (model, _):
        project.ok("plan", GOAL, "--yes")
        project.ok("plan", GOAL, "-o", "my review.json")
        project.ok("plan", GOAL, "--replan", "--yes")
        said = project.refused(6, "run", "my review.json")
        assert "is stale: the plan changed" in said
        assert f"holdfast plan '{GOAL}' -o 'my review.json'" in said
        assert "--trust" not in said
        project.ok("plans", "delete", GOAL, "--yes")
        assert "the plan for its goal is gone" in project.refused(6, "run", "my review.json")
        assert len(model.planned) == 2


def test_a_new_plan_that_a_person_refuses_changes_nothing(project: Project) -> None:
    other = answer(artifact("A"))
    with planner(project, API, other, API) as (model, _):
        project.ok("plan", GOAL, "--yes")
        before = digest(project)
        code, seen = at_terminal(project, "y\nn", "plan", GOAL, "--replan")
        assert code == 0, seen
        assert "take the new plan?" in seen
        assert "the plan stands as it was" in seen
        assert digest(project) == before
        project.ok("plan", GOAL, "--replan", "--yes")  # what was refused is not offered again
        assert len(model.planned) == 3
        assert digest(project) == before


def test_a_plan_that_nobody_saw_is_not_asked_for_again(project: Project) -> None:
    """Only shown beside the old one, it is paid for; who wants it then gets that one."""
    with planner(project, API, answer(artifact("A"))) as (model, _):
        project.ok("plan", GOAL, "--yes")
        shown = project.ok("run", GOAL, "--replan", "--diff-plan", "--yes")
        assert " - App: removed" in shown.out
        assert len(model.planned) == 2
        project.ok("plan", GOAL, "--replan", "--yes")
        assert len(model.planned) == 2
        assert list(project.ok("plan", GOAL, "--json").json["steps"]) == ["A"]


def test_to_plan_afresh_is_to_forget_the_plan_that_stands(project: Project) -> None:
    with planner(project, API) as (model, _):
        project.ok("plan", GOAL, "--yes")
        project.ok("plan", GOAL, "--replan", "--yes")
        assert len(model.planned) == 2
        project.ok("plan", GOAL, "--fresh", "--yes")
        assert len(model.planned) == 3
        assert "EARLIER PLAN" not in model.planned[2]


@pytest.mark.parametrize(
    "path",
    [
        "plan.yaml",
        "plan.yml",
        "Plan.JSON",
        "sub/plan.yaml",
        "holdfast.toml",
        "./holdfast.toml",
        "pyproject.toml",
        "mine.yaml",
        "work.py",
        "other.json",
    ],
)
def test_no_planned_step_writes_what_says_what_runs(project: Project, path: str) -> None:
    """A later bare `run` would do what a model wrote, and nobody approved that."""
    project.write("mine.yaml", "steps: {a: {shell: 'echo a'}}\n")
    project.write("other.json", '{"schema": "holdfast.plan/1", "steps": {"a": {"shell": "x"}}}')
    project.write("work.py", "import holdfast\n")
    before = project.read("mine.yaml")
    with planner(project, answer(artifact("A", produces_file=path)), API) as (model, _):
        project.ok("plan", GOAL, "--yes")
        assert len(model.planned) == 2
        assert "no planned step may write it" in model.planned[1]
        assert sorted(project.ok("plan", GOAL, "--json").json["steps"]) == STEPS
    assert project.read("mine.yaml") == before


def test_files_that_only_look_like_plans_may_be_planned(project: Project) -> None:
    paths = ["docs/planning.yaml", "api/pyproject.toml", "src/plan.py", "plan.md"]
    found = [artifact(f"A{n}", produces_file=path) for n, path in enumerate(paths)]
    with planner(project, answer(*found)) as (model, _):
        project.ok("plan", GOAL, "--yes")
        assert len(model.planned) == 1


@pytest.mark.parametrize("odd", ["\x1b", "\x01", "\x85", "\x7f"])
def test_a_goal_that_no_plan_can_hold_is_refused_before_anybody_is_asked(
    project: Project, odd: str
) -> None:
    with planner(project) as (model, _):
        said = project.refused(2, "plan", f"Build a{odd} thing", "--yes")
        assert f"the character U+{ord(odd):04X} is not allowed" in said
        assert odd not in said
        assert not model.planned
    assert not project.store.exists()


def test_a_goal_that_was_pasted_is_planned_as_it_is(project: Project) -> None:
    """Line separators come with text from elsewhere; a plan holds them, and so do its words."""
    with planner(project, answer(artifact("A", contract="one\u2028two"))) as (model, _):
        project.ok("plan", "Build a\u2028 thing\u2029 of\nparts", "--yes")
        assert len(model.planned) == 1
        assert "Build a\u2028 thing\u2029 of\nparts" in model.planned[0]


def test_everything_wrong_with_an_answer_is_told_at_once(project: Project) -> None:
    odd = answer(artifact("A", "Z", contract="\x1b[31m", description="one\x00"), artifact("A"))
    with planner(project, odd, API) as (model, _):
        project.ok("plan", GOAL, "--yes")
    for words in (
        "'contract' of 'A' has the character U+001B",
        "'description' of 'A' has the character U+0000",
        "'A' requires 'Z'",
        "'A' is there more than once",
    ):
        assert words in model.planned[1]


def test_the_line_of_planning_is_found_and_forgotten_with_its_goal(project: Project) -> None:
    with planner(project):
        project.ok("plan", GOAL, "--yes")
        shown = project.ok("plans", "show", f"{LINE[:12]}.planning").out
        assert "planning of 'Build a REST API" in shown
        assert len(project.ok("plans", "list", "--all", "--json").json["lines"]) == 2
        project.ok("plans", "delete", GOAL, "--yes")
        assert project.ok("plans", "list", "--all", "--json").json["lines"] == []


def test_runs_that_plan_are_not_compared_with_those_that_work(project: Project) -> None:
    with planner(project, API, answer(artifact("A"))):
        project.ok("plan", GOAL, "--yes")
        first = project.run(GOAL, "--yes", "--trust", digest(project)).data["run"]
        project.ok("plan", GOAL, "--replan", "--yes")
        second = project.run(GOAL, "--yes", "--trust", digest(project)).data["run"]
        found = project.ok("diff", "@-1", "@", "--json").json
    assert (found["a"]["run"], found["b"]["run"]) == (first, second)


def test_what_follows_planning_names_the_goal(project: Project) -> None:
    """Nothing can be planned or run on the line of planning itself."""
    with planner(project, CIRCLE, Hang(), API) as (model, _):
        engine = project.start("plan", GOAL, "--yes")
        until(lambda: len(model.planned) == 2, "the second is asked for")
        held = project.refused(7, "plan", GOAL, "--yes")
        assert f"wait for it, or holdfast stop --plan-id {LINE[:12]}.planning" in held
        assert "--join" not in held
        kill(engine)
        shown = project.ok("resume", "--plan-id", f"{LINE[:12]}.planning", "--yes").out
        assert f"holdfast plan '{GOAL}'" in shown
        assert "plan --plan-id" not in shown


def test_a_command_in_quotes_has_no_quotes_inside(project: Project) -> None:
    with planner(project):
        project.ok("plan", GOAL, "--yes")
        said = project.ok("plan", GOAL, "--model", "fake:m").err
    assert f"`holdfast plan '{GOAL}' --replan`" in said


@pytest.mark.parametrize("goal", ["-v is the goal", "word " * 5000])
def test_a_goal_that_is_no_argument_is_named_by_its_digest(project: Project, goal: str) -> None:
    line = hashlib.sha256(goal.encode()).hexdigest()[:12]
    with planner(project):
        shown = project.ok("plan", "--yes", "--", goal)
        assert f"holdfast run --plan-id {line}" in shown.out
        assert len(shown.out) < 5000
        project.ok("plan", "--plan-id", line)


def test_a_file_that_cannot_be_written_there_is_told_to_the_planner(project: Project) -> None:
    (project.root / "link").symlink_to("/")
    project.write("notes", "mine")
    (project.root / "folder").mkdir()
    wrong = [
        artifact(f"A{n}", produces_file=p)
        for n, p in enumerate(("link/x.md", "notes/x.md", "folder"))
    ]
    with planner(project, answer(*wrong), API) as (model, _):
        project.ok("plan", GOAL, "--yes")
    told = model.planned[1]
    assert "'A0' is the file 'link/x.md', but 'link' is a link" in told
    assert "'A1' is the file 'notes/x.md', but 'notes' is a file" in told
    assert "'A2' is the file 'folder', but 'folder' is a directory" in told


def test_who_does_not_approve_a_plan_ends_in_peace(project: Project) -> None:
    with planner(project) as (model, _):
        project.ok("plan", GOAL, "--yes")
        code, seen = at_terminal(project, "n", "run", GOAL)
        assert code == 0, seen
        assert "not approved; nothing was run" in seen
        assert not model.made


def test_no_line_takes_the_name_of_its_planning(project: Project) -> None:
    project.plan({"a": {"shell": "echo a"}})
    with planner(project) as (model, _):
        for words in ((GOAL,), ()):
            for command in ("run", "plan"):
                said = project.refused(2, command, *words, "--plan-id", "x.planning")
                assert "'x.planning' is the name of a line on which plans are made" in said
        assert not model.planned
