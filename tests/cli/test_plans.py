"""Lines of a store with the versions of their plans: listed, shown, compared, written out, forgotten."""

import pytest

from holdfast.cli.goal import OLD_MS, old_run_words, old_words
from holdfast.testing.server import Say
from tests.cli.goals import API, GOAL, TIERS, answer, artifact, digest, planner
from tests.cli.models import configure
from tests.cli.project import Project, finish


def _two_versions(project: Project) -> None:
    project.plan({"a": {"shell": "echo 1"}, "b": {"shell": "echo b", "needs": "a"}})
    project.run()
    project.plan({"a": {"shell": "echo 2"}, "c": {"shell": "echo c", "needs": "a"}})
    project.run()


@pytest.mark.req("R66", "C12")
def test_lines_are_listed_with_their_versions_and_runs(project: Project) -> None:
    _two_versions(project)
    project.plan({"x": {"shell": "echo x"}}, file="other.yaml", name="other")
    project.run("other.yaml")
    listed = project.ok("plans", "list", "--json").json
    assert [one["line"] for one in listed["lines"]] == ["other", "demo"]
    demo = listed["lines"][1]
    assert (demo["versions"], demo["steps"], demo["runs"], demo["status"]) == (2, 2, 2, "completed")
    shown = project.ok("plans", "show", "demo", "--json").json
    assert [one["parent"] for one in shown["versions"]] == [None, shown["versions"][0]["plan"]]
    assert list(shown["steps"]) == ["a", "c"]
    text = project.ok("plans", "list").out
    assert "demo" in text
    assert "2 versions" in text
    assert "c ← a" in project.ok("plans", "show").out
    assert "there is no line 'nobody'" in project.refused(2, "plans", "show", "nobody")
    for number in range(12):
        project.run("other.yaml", "--plan-id", f"line-{number}")
    assert len(project.ok("plans", "list", "--json").json["lines"]) == 10
    assert "10 of 14 lines" in project.ok("plans", "list").out


def test_versions_are_compared(project: Project) -> None:
    _two_versions(project)
    text = project.ok("plans", "diff", "demo").out
    assert "1 added, 1 removed, 1 changed" in text
    assert "shell: echo 1 → echo 2" in text
    data = project.ok("plans", "diff", "demo", "--json").json
    assert data["plan"]["added"] == ["c"]
    assert data["plan"]["removed"] == ["b"]
    before = data["a"]
    back = project.ok("plans", "diff", "demo", "@", before[:8], "--json").json
    assert back["plan"]["added"] == ["b"]
    assert project.call("plans", "diff", "demo", "--exit-code").code == 1
    assert "has no version '@-5'" in project.refused(2, "plans", "diff", "demo", "@-5")
    against = project.ok("diff", before[:12], "@", "--plan", "--json").json
    assert against["plan"]["added"] == ["c"]


def test_a_version_is_written_out_as_a_plan_file(project: Project) -> None:
    with planner(project, API):
        project.ok("plan", GOAL, "--yes", "--plan-id", "api")
        project.ok("plans", "show", "api", "-o", "mine.yaml")
        assert "is there already" in project.refused(2, "plans", "show", "api", "-o", "mine.yaml")
        checked = project.ok("check", "mine.yaml", "--json").json
        assert not checked.get("errors")
        assert project.read("mine.yaml") == project.ok("plans", "show", "api", "--yaml").out
        ran = project.run("mine.yaml", "--yes")  # a file that a person names is his own
        assert set(ran.states.values()) == {"done"}
        again = project.run(
            GOAL, "--plan-id", "api", "--yes", "--trust", digest(project, "--plan-id", "api")
        )
    assert set(again.states.values()) == {"reused"}


def test_the_version_that_is_shown_is_marked_once(project: Project) -> None:
    for number in ("1", "2", "1"):
        project.plan({"a": {"shell": f"echo {number}"}})
        project.run()
    assert _marked(project, "demo") == [True, False, False]


def test_of_a_goal_the_plan_that_stands_for_it_is_shown(project: Project) -> None:
    with planner(project, API):
        project.ok("plan", GOAL, "--yes", "--plan-id", "api")
        project.ok("plans", "show", "api", "-o", "mine.yaml")
        text = project.read("mine.yaml").replace("name: api", "name: api\ndescription: Mine.")
        project.write("mine.yaml", text)
        project.run("mine.yaml", "--yes")
        assert _marked(project, "api") == [False, True]
        shown = project.ok("plans", "show", "api", "--json").json["shown"]
        assert shown.startswith(digest(project, "--plan-id", "api"))


def _marked(project: Project, line: str) -> list[bool]:
    shown = project.ok("plans", "show", line).out.splitlines()
    return [line.startswith(" * ") for line in shown if line[3:].startswith("plan ")]


@pytest.mark.req("R103")
def test_a_line_is_forgotten_and_planned_as_for_the_first_time(project: Project) -> None:
    with planner(project, API) as (model, _):
        project.ok("plan", GOAL, "--yes")
        project.run(GOAL, "--yes", "--trust", digest(project))
        project.plan({"a": {"shell": "echo 1"}})
        project.run()
        dry = project.ok("plans", "delete", GOAL, "--dry-run").out
        assert "forgets 1 version" in dry
        assert "removes 2 runs" in dry
        assert "this needs a yes" in project.refused(2, "plans", "delete", GOAL)
        gone = project.ok("plans", "delete", GOAL, "--yes", "--json").json
        assert len(gone["removed"]) == 2
        assert [one["line"] for one in project.ok("plans", "list", "--json").json["lines"]] == [
            "demo"
        ]
        assert project.read("src/user.py") == "x = 1\n"
        project.ok("verify")
        assert len(model.planned) == 1
        project.ok("plan", GOAL, "--yes")
        assert len(model.planned) == 2
    assert project.run().states == {"a": "reused"}


@pytest.mark.req("R103")
def test_what_a_live_run_needs_is_not_removed(project: Project) -> None:
    project.plan({"a": {"shell": project.sh(project.gate("go"))}})
    engine = project.begun_by("run", "--json", step="a")
    assert "an engine holds line 'demo'" in project.refused(7, "plans", "delete", "demo", "--yes")
    cleaned = project.ok("plans", "clean", "--older-than", "0s", "--yes", "--json").json
    assert cleaned["lines"] == []
    project.open("go")
    assert finish(engine).code == 0


@pytest.mark.req("R103")
def test_old_lines_are_cleaned(project: Project) -> None:
    _two_versions(project)
    assert "no line is that old" in project.ok("plans", "clean").out
    dry = project.ok("plans", "clean", "--older-than", "0s", "--dry-run").out
    assert "forgets 2 versions of demo" in dry
    done = project.ok("plans", "clean", "--older-than", "0s", "--yes", "--json").json
    assert [one["line"] for one in done["lines"]] == ["demo"]
    assert project.ok("plans", "list", "--json").json["lines"] == []
    assert "no plan is kept here" in project.ok("plans", "list").out
    assert set(project.run().states.values()) == {"done"}
    project.ok("verify")


@pytest.mark.req("C32")
def test_a_tier_is_settled_when_the_plan_is_made(project: Project) -> None:
    with planner(project, API) as (_, server):
        project.ok("plan", GOAL, "--yes")
        tiers = {
            s: one["tier"] for s, one in project.ok("plan", GOAL, "--json").json["steps"].items()
        }
        assert tiers["UserProtocol"] == "small"
        assert tiers["UserModel"] == "medium"
        assert tiers["App"] == "large"
        trusted = digest(project)
        project.run(GOAL, "--yes", "--trust", trusted)
        configure(project, server.url, TIERS.replace('small = "fake:m"', 'small = "fake:other"'))
        assert digest(project) == trusted
        assert set(project.run(GOAL, "--yes").states.values()) == {"reused"}


@pytest.mark.req("R96", "R97", "R102")
def test_the_flags_of_runs_hold_for_goals(project: Project) -> None:
    with planner(project, answer(artifact("A"), artifact("B", "A"))) as (model, _):
        project.ok("plan", GOAL, "--yes", "--model", "fake:m", "--strategy", "sequential")
        assert "nothing is made side by side" in model.planned[0]
        first = project.run(GOAL, "--yes", "--trust", digest(project), "--verbose")
        assert set(first.states.values()) == {"done"}
        assert set(project.run(GOAL, "-i").states.values()) == {"reused"}
        assert set(project.run(GOAL, "--incremental").states.values()) == {"reused"}
        assert set(project.run(GOAL, "--force", "--yes").states.values()) == {"done"}
        late = project.run(GOAL, "--force", "--yes", "--time", "0s")
        assert late.code == 5
        assert set(late.states.values()) == {"pending"}
        assert "a limit was reached: time" in project.ok("status", "-f", GOAL).out


@pytest.mark.req("R100")
def test_a_run_of_a_goal_is_resumed_by_its_name(project: Project) -> None:
    with planner(project, answer(artifact("A", produces_file="a.py"))) as (model, _):
        project.ok("plan", GOAL, "--plan-id", "api", "--yes")
        model.makes = Say("def (")
        trusted = digest(project, "--plan-id", "api")
        failed = project.call("run", GOAL, "--plan-id", "api", "--yes", "--trust", trusted)
        assert failed.code == 1
        model.makes = Say("x = 2\n")
        project.ok("checkpoint", "--plan-id", "api")
        resumed = project.resume("--plan-id", "api", "--yes")
        assert resumed.states == {"A": "done"}
    assert project.read("a.py") == "x = 2\n"


@pytest.mark.req("R101")
def test_a_plan_that_is_older_than_a_day_is_said_to_be_old() -> None:
    assert old_words(1000, 1000 + OLD_MS) == ""
    assert "made 24 h ago" in old_words(1000, 1001 + OLD_MS)
    assert "--replan" in old_words(1000, 1001 + OLD_MS)
    assert old_run_words(1000, 1000 + OLD_MS) == ""
    assert "began 24 h ago" in old_run_words(1000, 1001 + OLD_MS)
