"""init: a project that runs as it is, and nothing of anybody else's touched."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from holdfast.cli import templates
from tests.cli.project import Project
from tests.cli.screens import Screen


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_a_goal_is_planned_and_done_from_recorded_answers(project: Project) -> None:
    """As a stranger does it: no key, no network, an empty home."""
    said = project.ok("init", "kelp", "--template", "goal", "--json").json
    assert said["next"] == [f"cd kelp && holdfast {templates.NEXT['goal']}"]
    assert not project.has("kelp/plan.yaml")
    words = ("-C", "kelp")
    shown = project.ok(*words, "plan", templates.GOAL, "--provider", "recorded", "--json").json
    digest = shown["plan"]["digest"][:12]
    trusted = ("--provider", "recorded", "--trust", digest)
    ran = project.ok(*words, "run", templates.GOAL, *trusted, "--json").json
    assert {step["state"] for step in ran["steps"].values()} == {"done"}
    assert project.read("kelp/guide.md").startswith("# Kelp\n")


@pytest.mark.parametrize("template", ["basic", "python", "minimal"])
def test_every_template_runs_as_it_is_and_a_second_run_has_nothing_to_do(
    project: Project, template: str
) -> None:
    project.ok("init", "--template", template)
    assert "nothing wrong" in project.ok("check").out
    assert not (project.store / "state.db").exists()
    first = project.run()
    assert set(first.states.values()) == {"done"}
    assert set(project.run().states.values()) == {"reused"}
    schema = json.loads(project.read(".holdfast/schema/plan-1.json"))
    assert schema["title"] == "holdfast.plan/1"
    assert project.read("plan.yaml").startswith(
        "# yaml-language-server: $schema=.holdfast/schema/plan-1.json\n"
    )


def test_a_directory_with_only_a_schema_is_no_store(project: Project) -> None:
    project.ok("init")
    project.ok("plan")
    project.refused(2, "status")
    assert sorted(p.name for p in project.store.iterdir()) == [".gitignore", "schema"]


def test_files_in_the_way_are_all_named_and_nothing_is_written(project: Project) -> None:
    project.write("plan.json", "{}")
    project.write("words.sh", "mine")
    project.write("notes", "a file where a directory must be")
    before = tree(project.root)
    said = project.refused(2, "init")
    assert all(name in said for name in ("plan.json", "words.sh", "notes"))
    assert tree(project.root) == before
    assert not project.store.exists()


def test_a_link_to_nowhere_is_in_the_way_too(project: Project) -> None:
    os.symlink(project.folder / "elsewhere", project.root / "plan.yaml")
    assert "plan.yaml" in project.refused(2, "init")
    assert not (project.folder / "elsewhere").exists()


def test_a_directory_that_cannot_be_written_keeps_nothing_half_done(project: Project) -> None:
    (project.root / ".holdfast").write_text("not a directory")
    assert "Traceback" not in project.call("init").err
    assert [p.name for p in project.root.iterdir()] == [".holdfast"]


def test_a_new_directory_gets_a_plan_of_its_name(project: Project) -> None:
    answer = project.ok("init", "sub/kelp", "--json").json
    assert answer["schema"] == "holdfast.init/1"
    assert answer["name"] == "kelp"
    assert answer["next"] == ["cd sub/kelp && holdfast plan"]
    assert all(project.has(f"sub/kelp/{path}") for path in answer["files"])
    assert project.ok("-C", "sub/kelp", "plan", "--json").json["plan"]["line"] == "kelp"


@pytest.mark.parametrize("name", ["no", 'ä: "quoted" # name'])
def test_any_name_of_one_line_survives_the_plan_file(project: Project, name: str) -> None:
    project.ok("init", "--template", "minimal", "--name", name)
    assert project.ok("plan", "--json").json["plan"]["line"] == name


@pytest.mark.parametrize("name", ["two\nlines", "${{ x }}"])
def test_a_name_that_no_plan_may_have_is_refused(project: Project, name: str) -> None:
    project.refused(2, "init", "--name", name)
    assert not list(project.root.iterdir())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, ".holdfast/\n"),
        ("*.log", "*.log\n.holdfast/\n"),
        ("/.holdfast\n", "/.holdfast\n"),
    ],
)
def test_where_git_is_used_the_store_is_ignored(
    project: Project, before: str | None, after: str
) -> None:
    (project.root / ".git").mkdir()
    if before is not None:
        project.write(".gitignore", before)
    project.ok("init")
    assert project.read(".gitignore") == after


def test_without_git_there_is_no_ignore_file(project: Project) -> None:
    project.ok("init")
    assert not project.has(".gitignore")


def test_screens(project: Project, screen: Screen) -> None:
    screen("init", "fresh", name="init")
    project.write("taken/plan.yaml", "mine")
    screen("init", "taken", name="init-taken")


def test_the_wheel_carries_every_file_of_every_template(tmp_path: Path) -> None:
    top = Path(__file__).resolve().parents[2]
    build = ["-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run([sys.executable, *build], cwd=top, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for template in (*templates.NAMES, templates.DEMO):
        files = templates.files_of(template)
        assert ("plan.yaml" in files) == (template != "goal")
        assert {f"holdfast/cli/templates/{template}/{path}" for path in files} <= names
