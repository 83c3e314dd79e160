"""The examples: each stands in the gallery, tells its story to the end, and refuses what it should."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.project import Project
from tests.docs.session import TOP, read_page

EXAMPLES = sorted(place.parent for place in (TOP / "examples").glob("*/README.md"))
GALLERY = (TOP / "docs" / "gallery.md").read_text(encoding="utf-8")


def put(project: Project, name: str) -> Project:
    """The example as it ships, in a place of its own."""
    left = shutil.ignore_patterns(".holdfast", "__pycache__", "repo", "public")
    shutil.copytree(TOP / "examples" / name, project.root, ignore=left, dirs_exist_ok=True)
    return project


def test_there_are_five() -> None:
    assert [place.name for place in EXAMPLES] == [
        "keeling",
        "pipeline",
        "release-notes",
        "ticket",
        "translation",
    ]


@pytest.mark.req("R157")
@pytest.mark.parametrize("place", EXAMPLES, ids=lambda place: place.name)
def test_an_example_is_in_the_gallery_and_shows_a_second_run_with_its_reason(place: Path) -> None:
    assert f"](../examples/{place.name}/README.md)" in GALLERY
    typed = [one.text for one in read_page((place / "README.md").read_text()).commands]
    runs = [text for text in typed if text.startswith(("holdfast run", "holdfast work"))]
    reasons = [text for text in typed if text.startswith(("holdfast why", "holdfast plan"))]
    assert len(runs) >= 2, "a run, and one after a change"
    assert reasons


@pytest.mark.req("R157")
@pytest.mark.parametrize(
    ("line", "put_there", "said"),
    [
        ("2026-06-11,", "", "nothing between 2026-06-10 and 2026-06-12"),
        ("2026-06-11,", "2026-06-11,99999\n", "2026-06-11: 99999 bicycles"),
        ("2026-06-30,", "2026-06-29,1500\n", "2026-06-29 is there twice"),
    ],
)
def test_the_pipeline_refuses_a_file_that_cannot_be_true(
    project: Project, line: str, put_there: str, said: str
) -> None:
    put(project, "pipeline")
    lines = project.read("later/park.csv").splitlines(keepends=True)
    changed = [put_there if row.startswith(line) else row for row in lines]
    project.write("data/park.csv", "".join(changed))
    run = project.run()
    assert run.code == 1
    assert said in run.err
    assert "park" in project.read("report.md").rpartition("Not counted")[2]


@pytest.mark.req("R157")
def test_notes_that_somebody_rejects_are_not_published(project: Project) -> None:
    put(project, "release-notes")
    subprocess.run(["sh", "history.sh"], cwd=project.root, check=True)
    run = project.run()
    assert (run.code, run.states["notes"], run.states["publish"]) == (3, "done", "waiting")
    project.ok("reject", "publish", "--because", "not on a Friday")
    assert project.resume().code == 1
    assert not project.has("public")
    assert project.has("notes.md")
