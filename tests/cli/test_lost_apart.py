"""Whatever a run would make again is made again by the short way too: contents that are gone, limits."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.model.walls import WALLS
from tests.cli.project import Project
from tests.cli.tomorrow import run_tomorrow

LARGE = "seq 1 60000"


def contents(project: Project) -> list[Path]:
    """Those that are files."""
    return [path for path in (project.store / "blobs").glob("??/*") if path.stat().st_size]


def stand(project: Project) -> None:
    """Run until it is known that all stands."""
    ways = [run_tomorrow(project)[1] for _ in range(3)]
    assert ways == [False, False, True]


@pytest.mark.req("R54")
@pytest.mark.parametrize("body", [LARGE, f"{LARGE} > out.txt"], ids=["printed", "produced"])
@pytest.mark.parametrize("cut", [None, 9], ids=["gone", "cut"])
def test_what_is_lost_is_made_again(project: Project, body: str, cut: int | None) -> None:
    produces = {"produces": "out.txt"} if ">" in body else {}
    project.plan({"big": {"shell": project.sh(body), **produces}, "small": {"shell": "echo 1"}})
    stand(project)
    project.ran()
    (content,) = contents(project)
    if cut is None:
        content.unlink()
    else:
        content.chmod(0o600)
        os.truncate(content, cut)
    state, was_short = run_tomorrow(project)
    assert not was_short
    assert project.ran() == ["big"]
    assert state.status == "completed"
    assert project.ok("verify").code == 0
    assert not run_tomorrow(project)[1]
    assert run_tomorrow(project)[1]


@pytest.mark.req("R54")
def test_what_went_into_quarantine_was_looked_at_since(project: Project) -> None:
    project.plan({"small": {"shell": "echo 1"}})
    stand(project)
    (project.store / "blobs/quarantine").mkdir(parents=True)
    assert not run_tomorrow(project)[1]


@pytest.mark.req("R54", "R182")
def test_a_lower_limit_holds_for_what_stands(project: Project) -> None:
    project.write("list.json", json.dumps(["a", "b"]))
    each = {"for_each": "${{ steps.list.output }}", "shell": "echo 1"}
    project.plan({"list": {"shell": "cat list.json"}, "each": each})
    stand(project)
    state, was_short = run_tomorrow(project, replace(WALLS, items=1))
    assert not was_short
    assert state.status == "failed"
