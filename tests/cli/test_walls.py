"""Walls: what is too large is refused with the key that moves the wall, and passes once it was moved."""

import json
import os
from collections.abc import Mapping

import pytest

from holdfast.config.walls import MOST, read_walls
from holdfast.errors import UsageError
from holdfast.model.walls import WALLS, Walls
from tests.cli.project import Answer, Project
from tests.cli.tickets import repository

pytestmark = pytest.mark.req("I16", "D32", "D40")


def own(project: Project, **walls: int | str) -> None:
    """Let the person's own file say where the walls are."""
    place = project.home / ".config" / "holdfast"
    place.mkdir(parents=True, exist_ok=True)
    rows = "".join(f"{name} = {json.dumps(value)}\n" for name, value in walls.items())
    (place / "config.toml").write_text(f"[limits]\n{rows}")


def checked(project: Project, text: str) -> Answer:
    project.write("plan.yaml", text)
    return project.call("check")


def refused(answer: Answer, code: str, key: str) -> bool:
    words = f"error[{code}]" in answer.err and f"'limits.{key}'" in answer.err
    return answer.code == 2 and words and "Traceback" not in answer.err


DEEP = "steps:\n  a: {run: x, with: {v: " + "[" * 9 + "1" + "]" * 9 + "}}\n"
ALIASES = "steps:\n  a: {run: x, with: {v: &v [1], a: *v, b: *v, c: *v}}\n"
LISTS = "steps:\n" + "".join(
    f"  s{n}: {{run: [echo, x], for_each: [1, 2, 3, 4]}}\n" for n in range(2)
)
PLANS: Mapping[str, tuple[str, str, int, int]] = {  # plan, code, a wall before it, one beyond
    "plan_size": ("steps:\n  a: {run: x} # " + "x" * 2_000 + "\n", "P011", 2_000, 4_000),
    "plan_steps": ("steps:\n" + "".join(f"  s{n}: {{run: x}}\n" for n in range(9)), "P011", 8, 9),
    "plan_depth": (DEEP, "P019", 12, 14),
    "plan_aliases": (ALIASES, "P018", 2, 3),
    "plan_items": (LISTS, "P011", 7, 8),
    "items": (LISTS, "P092", 3, 4),
}


@pytest.mark.parametrize("key", PLANS)
def test_a_plan_beyond_a_wall_is_refused_with_its_key(project: Project, key: str) -> None:
    text, code, before, beyond = PLANS[key]
    own(project, **{key: before})
    answer = checked(project, text)
    assert refused(answer, code, key), answer
    assert f"'limits.{key}' in your config.toml moves" in answer.err
    own(project, **{key: beyond})
    assert project.ok("check").code == 0
    project.write("holdfast.toml", f"[limits]\n{key} = {before}\n")
    answer = project.call("check")
    assert refused(answer, code, key), answer
    assert f"'limits.{key}' in the project's holdfast.toml moves" in answer.err


def test_the_steps_of_lists_and_other_plans_count(project: Project) -> None:
    own(project, plan_steps=8)
    assert refused(checked(project, LISTS), "P011", "plan_steps")  # 8 items, and the two themselves
    project.write("inner.yaml", "steps:\n" + "".join(f"  s{n}: {{run: x}}\n" for n in range(9)))
    answer = checked(project, "steps:\n  a: {uses: plan, run: inner.yaml}\n")
    assert refused(answer, "P011", "plan_steps"), answer
    own(project, plan_steps=10)
    assert project.ok("check").code == 0


def test_a_list_that_makes_millions_of_steps_is_stopped_at_the_first_that_is_too_many(
    project: Project,
) -> None:
    """100 KB that would be 2,000,000 steps; the processor time is bounded, and so is what it prints."""
    listed = ",".join(map(str, range(20_000)))
    steps = "".join(
        f"  s{n}: {{run: [echo], for_each: '${{{{ params.l }}}}'}}\n" for n in range(100)
    )
    answer = checked(project, f"params:\n  l: {{type: list, default: [{listed}]}}\nsteps:\n{steps}")
    assert refused(answer, "P011", "plan_items"), answer
    assert answer.err.count("error[") == 1


def test_a_list_that_a_step_makes_is_counted_when_it_is_known(project: Project) -> None:
    project.plan(
        {
            "list": {"shell": "echo '[1, 2, 3, 4]'"},
            "each": {"run": ["echo", "x"], "for_each": "${{ steps.list.output }}"},
        }
    )
    own(project, items=3)
    answer = project.call("run")
    assert answer.code == 1
    assert "'limits.items'" in answer.out + answer.err
    own(project, items=4)
    again = project.run()
    assert again.code == 0, again.err
    assert len(again.states) == 6


@pytest.mark.parametrize(
    "step",
    [
        {"shell": "head -c 5000 /dev/zero"},
        {"shell": "head -c 5000 /dev/zero > made", "produces": ["made"]},
        {"uses": "python", "run": "long:text"},
    ],
    ids=["stdout", "file", "function"],
)
def test_an_artifact_beyond_its_wall_fails_the_attempt(
    project: Project, step: dict[str, object]
) -> None:
    project.write("long.py", "def text():\n    return 'x' * 5000\n")
    project.plan({"large": {**step, "retries": 0}})
    own(project, artifact=4_000)
    answer = project.call("run")
    assert answer.code == 1
    assert "'limits.artifact' in your config.toml" in answer.out + answer.err
    own(project, artifact="5 KB")
    assert project.run().states == {"large": "done"}
    project.write("pyproject.toml", "[tool.holdfast.limits]\nartifact = 4000\n")
    answer = project.call("run", "--force")
    place = "the project's pyproject.toml [tool.holdfast]"
    assert f"'limits.artifact' in {place}" in answer.out + answer.err


def test_of_a_log_its_end_is_kept_up_to_its_wall(project: Project) -> None:
    project.plan({"talk": {"shell": "seq 1 5000 >&2; echo made"}})
    own(project, log=100)
    assert project.run().code == 0
    said = project.ok("logs", "talk").out
    assert "5000" in said
    assert "\n4000\n" not in said
    own(project, log=1_000_000)
    assert project.run("--force").code == 0
    assert "\n4000\n" in project.ok("logs", "talk").out


def test_a_project_may_lower_a_wall_and_never_raise_it(project: Project) -> None:
    text, code, before, beyond = PLANS["plan_steps"]
    project.write("holdfast.toml", f"[limits]\nplan_steps = {before}\n")
    assert refused(checked(project, text), code, "plan_steps")
    own(project, plan_steps=before)
    project.write("holdfast.toml", f"[limits]\nplan_steps = {beyond}\n")
    answer = project.call("check")
    assert refused(answer, code, "plan_steps")
    assert "your config.toml moves" in answer.err, "what a project cannot lower is not its limit"


@pytest.mark.parametrize(
    "wrong", ["plan_size = 'much'", "plan_steps = 0", "log = '1 TB'", "steps = 3", "items = true"]
)
def test_a_wall_that_is_none_is_told_with_its_file(project: Project, wrong: str) -> None:
    project.plan({"a": {"run": ["echo"]}})
    project.write("holdfast.toml", f"[limits]\n{wrong}\n")
    answer = project.call("check")
    assert answer.code == 2
    assert f"limits.{wrong.partition(' ')[0]}" in answer.err
    assert "holdfast.toml" in answer.err


def test_every_wall_has_a_key_and_a_range(project: Project) -> None:
    assert {*MOST} == {*Walls.__dataclass_fields__}
    assert all(getattr(WALLS, name) <= most for name, most in MOST.items())
    own(project, **dict(MOST))
    env = {"HOME": str(project.home)}
    assert read_walls(str(project.root), env) == Walls(**MOST)
    own(project, log=MOST["log"] + 1)
    with pytest.raises(UsageError, match=r"limits\.log"):
        read_walls(str(project.root), env)


def test_a_ticket_beyond_the_wall_is_refused_with_its_key(project: Project) -> None:
    repository(project, {"a.txt": "one\n"})
    own(project, ticket="1 KB")
    project.write("long.md", "# Long\n" + "x" * 1_000)
    said = project.refused(2, "work", "long.md")
    assert "the ticket has more than 1 KB" in said
    assert "'limits.ticket'" in said
    project.write("short.md", "# Short\n" + "x" * 900)
    assert "limits.ticket" not in project.call("work", "short.md").err


def test_what_is_added_to_a_run_goes_by_the_same_walls(project: Project) -> None:
    more = {"steps": {"more": {"run": "true", "with": {"v": [[[[1]]]]}}}}
    project.write("more.json", json.dumps(more))
    project.plan(
        {
            "a": {"shell": 'cp more.json "$HOLDFAST_ADD"'},
            "waits": {"run": "true", "approve": "always"},
        }
    )
    own(project, plan_depth=6)
    run = project.run()
    assert (run.states["a"], "'limits.plan_depth'" in run.err) == ("failed", True), run.err
    assert refused(project.call("add", "more.json"), "P019", "plan_depth")
    own(project, plan_depth=8)
    project.ok("add", "more.json")


def test_a_version_of_a_person_has_a_size_too(project: Project) -> None:
    project.plan({"a": {"shell": "echo 1"}})
    project.ok("run")
    pipe, most = project.root / "pipe", 5000
    os.mkfifo(pipe)
    for odd in ("/dev/zero", "pipe", "."):
        assert f"'{odd}' is no regular file" in project.refused(2, "amend", "a", odd)
    own(project, artifact=most)
    project.write("whole", "x" * most)
    project.write("large", "x" * (most + 1))
    (project.root / "link").symlink_to("whole")
    large = b"x" * (most + 1)
    assert refused(project.call("amend", "a", "large"), "usage", "artifact")
    assert refused(project.call("amend", "a", "-", stdin=large), "usage", "artifact")
    assert project.shown("a") == b"1\n"
    for given in ("whole", "link"):
        project.ok("amend", "a", given)
        assert project.shown("a") == b"x" * most
    project.ok("amend", "a", "-", stdin=b"mine\n")
    assert project.shown("a") == b"mine\n"
