"""What is seen before a plan for a goal runs: wave by wave, its price, what changed and what is saved."""

import hashlib
import json
from pathlib import Path

import pytest

from tests.cli.goals import API, GOAL, digest, planner
from tests.cli.project import Project
from tests.cli.terminal import at_terminal


def _again() -> str:
    """The plan with another contract for one artifact."""
    other = json.loads(API)
    other["artifacts"][2]["contract"] = "a class with the fields of UserProtocol"
    return json.dumps(other)


def _bytes(folder: Path) -> dict[str, str]:
    """Every file of a store with its content."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.req("R98", "R104", "R105", "R150")
def test_a_goal_is_shown_wave_by_wave_before_it_runs(project: Project) -> None:
    with planner(project):
        project.ok("plan", GOAL, "--yes")
        shown = project.ok("run", GOAL, "--show-plan").out
    assert shown.splitlines()[1:20] == [
        "",
        "Wave 1 ⚡",
        " + [small] AuthInterface",
        "      the AuthInterface of the API",
        " + [small] UserProtocol → src/user.py",
        "      the UserProtocol of the API",
        "",
        "Wave 2 ⚡",
        " + [medium] AuthService",
        "      the AuthService of the API",
        " + [medium] UserModel",
        "      the UserModel of the API",
        "",
        "Wave 3 →",
        " + [large] App",
        "      the App of the API",
        "",
        "Estimates",
        "  Steps: 5 (5 run)",
    ]
    for words in (
        "  Waves: 3\n",
        "  Parallelization: 1.7x\n",
        "  Models: 5 × fake:m (small, medium, large)\n",
        "  Tokens: ~",
        "  Cost: $0.0",
        "  Time: no history\n",
    ):
        assert words in shown


@pytest.mark.req("R55", "R98", "R104", "R105")
def test_a_second_plan_is_shown_with_what_changed_and_what_is_saved(project: Project) -> None:
    with planner(project, API, _again()) as (_, server):
        project.ok("plan", GOAL, "--yes")
        project.run(GOAL, "--yes", "--trust", digest(project))
        project.ok("plan", GOAL, "--replan", "--yes")
        before, asked = _bytes(project.store), len(server.requests)
        shown = project.ok("run", GOAL, "--show-plan").out
        assert (
            " ~ [medium] UserModel\n      the UserModel of the API\n"
            "      runs again: what it must produce changed: contract\n"
        ) in shown
        assert "  Steps: 5 (2 run, 3 reused)\n" in shown
        assert "  Reuse: 3 of 5 (60 %), saves ~$" in shown
        assert "  Contract changed: 1 (UserModel)\n  Unchanged: 4\n" in shown
        for words in (("--dry-run",), ("--diff-plan",), ("--show-plan", "-v"), ("--dry-run", "-v")):
            project.ok("run", GOAL, *words)
        project.ok("plan", GOAL, "-v")
        code, seen = at_terminal(project, "n", "run", GOAL, "--show-plan")
        assert (code, "Execute? [y/N]" in seen) == (0, True)
        assert _bytes(project.store) == before, "a look writes nothing"
        assert len(server.requests) == asked


@pytest.mark.req("R55", "R96", "R150")
def test_who_wants_to_know_sees_what_changed_before_it_runs(project: Project) -> None:
    """`run GOAL --incremental --verbose`: every step with its reason, what is skipped, built and saved."""
    with planner(project, API, _again()):
        project.ok("plan", GOAL, "--yes")
        project.run(GOAL, "--yes", "--trust", digest(project))
        project.ok("plan", GOAL, "--replan", "--yes")
        code, seen = at_terminal(
            project, "n", "run", GOAL, "-i", "--verbose", "--trust", digest(project)
        )
        assert code == 130, seen
        for words in (
            "AuthInterface  unchanged (",
            "UserModel      what it must produce changed: contract",
            "App            a step it needs changed: UserModel",
            "Skip (3): AuthInterface, UserProtocol, AuthService",
            "Build (2): UserModel, App",
            "Reuses 3 of 5 (60 %), saves ~$",
            "Proceed? [y/N]",
        ):
            assert words in seen
        ran = project.run(GOAL, "--incremental", "--verbose", "--yes")
    assert "Build (2): UserModel, App" in ran.err
    assert [ran.states[s] for s in ("UserProtocol", "UserModel", "App")] == [
        "reused",
        "done",
        "done",
    ]


def test_a_person_sees_plan_and_price_and_says_yes_once(project: Project) -> None:
    with planner(project) as (model, _):
        code, seen = at_terminal(project, "y\ny", "run", GOAL)
        assert code == 0, seen
        assert "these steps cost money: plan" in seen
        assert "a model made this plan, and nobody approved it yet" in seen
        assert seen.index("Estimates") < seen.index("approve this plan and run it?")
        assert seen.count("[y/N]") == 2
        assert len(model.planned) == 1
    with planner(project):
        again = at_terminal(project, "y", "run", GOAL, "--force", "--show-plan")
        assert again[0] == 0
        assert "Execute? [y/N]" in again[1]


@pytest.mark.req("R98")
def test_who_is_shown_a_plan_approves_it_with_the_same_yes(project: Project) -> None:
    with planner(project) as (model, _):
        project.ok("plan", GOAL, "--yes")
        code, seen = at_terminal(project, "", "run", GOAL, "--show-plan")
        assert code == 0, seen
        assert "a model made this plan, and nobody approved it yet" in seen
        assert not model.made, "nobody said yes"
        code, seen = at_terminal(project, "y", "run", GOAL, "--show-plan")
        assert code == 0, seen
        assert "approve this plan" not in seen
        assert set(project.run(GOAL, "--yes").states.values()) == {"reused"}


def test_a_preview_of_a_goal_is_held_to_by_its_digest(project: Project) -> None:
    with planner(project, API, _again()):
        project.ok("plan", GOAL, "--yes", "--plan-id", "api")
        name = ("--plan-id", "api")
        held = project.ok("plan", GOAL, *name, "--json").json["digest"]
        project.ok("plan", GOAL, *name, "--replan", "--yes")
        trusted = digest(project, *name)
        said = project.refused(
            6, "run", GOAL, *name, "--trust", trusted, "--preview", held, "--yes"
        )
        assert "the preview is" in said
        now = project.ok("plan", GOAL, *name, "--json").json["digest"]
        assert project.run(GOAL, *name, "--trust", trusted, "--preview", now[:12]).code == 0
