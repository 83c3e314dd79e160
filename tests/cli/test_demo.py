"""demo: every act is real, and what it leaves can be used."""

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.cli.project import COMMAND, Project

ACTS = (
    "1. Before anything runs",
    "2. It runs, and half way the engine is killed",
    "3. Resume",
    "4. One note changes",
    "5. Edit a result by hand",
    "6. Nothing changed",
    "7. Every byte",
)


def together(project: Project, *words: str) -> str:
    """What a person would see: both streams in order."""
    done = subprocess.run(
        [*COMMAND, *words],
        cwd=project.root,
        env=project.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    said = done.stdout.decode()
    assert done.returncode == 0, said
    return said


def acts(said: str) -> list[str]:
    """The text of each act, in order."""
    places = [said.index(title) for title in ACTS]
    assert places == sorted(places)
    return [said[a:b] for a, b in zip(places, [*places[1:], len(said)], strict=True)]


@pytest.mark.req("R74")
def test_the_demo_shows_each_act_and_leaves_a_project_that_works(project: Project) -> None:
    said = together(project, "demo")
    first, crash, resume, change, edit, nothing, whole = acts(said)
    assert "runs 8 of 8" in first or "8 of 8" in first
    assert "kill -9" in crash
    assert "running" in crash
    kept = project.status("-f", "holdfast-demo/plan.yaml", "@-3")
    assert set(kept.states.values()) == {"done"}
    assert "interrupted" in resume
    assert "notes/otters.txt" in change
    for step in ("otters", "count", "report", "page"):
        assert f"▸ {step}" in change or f"✓ {step}" in change
    for step in ("tides", "storms", "roots", "forests"):
        assert f"▸ {step}" not in change
    assert "report.md" in edit
    assert "▸ count" not in edit
    assert "▸" not in nothing
    assert "no problems" in whole
    assert "kelp is not a plant" in project.read("holdfast-demo/page.html")
    last = project.status("-f", "holdfast-demo/plan.yaml")
    assert set(last.states.values()) == {"reused"}
    assert all(len(line) <= 120 for line in said.splitlines())


def test_a_crash_alone_leaves_a_run_to_resume(project: Project) -> None:
    said = together(project, "demo", "--crash", "here")
    assert "cd here" in said
    assert "holdfast resume" in said
    before = project.status("-f", "here/plan.yaml")
    done = {step for step, state in before.states.items() if state == "done"}
    assert 2 <= len(done) < 8
    after = project.resume("-f", "here/plan.yaml")
    assert set(after.states.values()) == {"done"}
    assert all(after.field("attempts")[step] == 1 for step in done)
    # now it holds something that the demo did not leave: it is not taken again
    assert "here" in project.refused(2, "demo", "--crash", "here")


def test_a_directory_of_somebody_else_is_left_alone(project: Project, tmp_path: Path) -> None:
    project.write("mine/thesis.tex", "years of work")
    project.refused(2, "demo", "mine")
    assert [p.name for p in (project.root / "mine").iterdir()] == ["thesis.tex"]


def test_a_killed_demo_gives_the_cursor_back_and_a_touched_one_is_never_lost(
    project: Project,
) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "demo", "--crash"],
        cwd=project.root,
        env=project.environment({"TERM": "xterm", "COLUMNS": "80"}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        if not piece:
            break
        said += piece
    assert process.wait(60) == 0, said.decode()
    os.close(ours)
    assert said.rfind(b"\x1b[?25h") >= said.rfind(b"\x1b[?25l")
    assert b"\x1b[?25h" in said
    mine = project.write("holdfast-demo/notes/mine.txt", "do not lose me")
    assert "holdfast-demo-2/plan.yaml" in together(project, "demo", "--crash")
    assert mine.read_text() == "do not lose me"
