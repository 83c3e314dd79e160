"""demo: every act is real, and what it leaves can be used."""

import json
import os
import pty
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.generators.recorded import key_of
from holdfast.model.call import Message, Request
from tests.cli.project import COMMAND, Project

ACTS = (
    "1. Before anything runs",
    "2. It runs, and half way the engine is killed",
    "3. Resume",
    "4. One note changes",
    "5. The prompt changes",
    "6. Edit a result by hand",
    "7. Nothing changed",
    "8. Every byte",
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
    first, crash, resume, change, prompt, edit, nothing, whole = acts(said)
    assert "9 of 9" in first
    assert "kill -9" in crash
    assert "running" in crash
    kept = project.status("-f", "holdfast-demo/plan.yaml", "@-4")
    assert set(kept.states.values()) == {"done"}
    assert "interrupted" in resume
    assert "guard 'quoted' rejected attempt 1 of 2: no note says" in resume
    assert "notes/otters.txt" in change
    for step in ("otters", "count", "report", "title", "page"):
        assert f"▸ {step}" in change or f"✓ {step}" in change
    for step in ("tides", "storms", "roots", "forests"):
        assert f"▸ {step}" not in change
    assert "its prompt changed" in prompt
    assert "▸ count" not in prompt
    assert "▸ title" in prompt
    assert "report.md" in edit
    assert "▸ count" not in edit
    assert "▸" not in nothing
    assert "no problems" in whole
    page = project.read("holdfast-demo/page.html")
    assert "kelp is not a plant" in page
    assert "Sea otters wrap themselves" in page
    last = project.status("-f", "holdfast-demo/plan.yaml")
    assert set(last.states.values()) == {"reused"}
    assert all(len(line) <= 120 for line in said.splitlines())
    assert asked_in(project) == shipped_in(project)


def asked_in(project: Project) -> set[str]:
    """What the runs of the demo asked, by what it is recorded under."""
    return {
        key_of(Request(**{**request, "messages": _messages(request["messages"])}))
        for run in ("@-4", "@-3", "@-2", "@-1", "@")
        for request in _requests(project, run)
    }


def shipped_in(project: Project) -> set[str]:
    return {path.stem for path in (project.root / "holdfast-demo/recorded").iterdir()}


def _messages(given: list[dict[str, Any]]) -> tuple[Message, ...]:
    return tuple(Message(**message) for message in given)


def _requests(project: Project, run: str) -> list[Any]:
    events = project.ok("trace", run, "--json", "-f", "holdfast-demo/plan.yaml").out.splitlines()
    started = [event for line in events if (event := json.loads(line))["event"] == "call_started"]
    shown = [project.ok("show", "-f", "holdfast-demo/plan.yaml", e["request"]) for e in started]
    return [answer.json for answer in shown]


def test_other_settings_of_the_shell_do_not_reach_the_demo(project: Project) -> None:
    shell = {"HOLDFAST_PROVIDER": "nobody", "HOLDFAST_RECORDED": "/nowhere"}
    answer = project.call("demo", "--crash", env=shell)
    assert answer.code == 0, answer.err


def test_the_demo_with_a_real_model_shows_its_tokens(project: Project, local_model: None) -> None:
    said = together(project, "demo", "--local", "real")
    (tokens,) = re.findall(r"(\d+) tokens, for nothing", said)
    assert int(tokens) > 100
    assert "9 of 9 done · 9 reused" in said
    assert "local:smollm2" in project.read("real/plan.yaml")
    project.refused(2, "demo", "--local", "--crash", "both")
    assert not project.has("both")


def test_a_crash_alone_leaves_a_run_to_resume(project: Project) -> None:
    said = together(project, "demo", "--crash", "here")
    assert "cd here" in said
    assert "holdfast resume" in said
    before = project.status("-f", "here/plan.yaml")
    done = {step for step, state in before.states.items() if state == "done"}
    assert 2 <= len(done) < 9
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
