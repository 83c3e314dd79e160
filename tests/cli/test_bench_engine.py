"""The bench of the engine: real runs beside a bare loop, checked, told as text and as JSON."""

import asyncio
import os
from contextlib import closing
from pathlib import Path

import pytest

from bench import bare, shapes
from bench.case import Case
from holdfast.cli import benchengine
from holdfast.errors import BugError
from holdfast.model.plan import StepId
from tests.cli.project import Project


def test_it_tells_every_run_beside_the_bare_loop_and_leaves_nothing_behind(
    project: Project,
) -> None:
    told = project.call("bench", "engine", "--steps", "40", "--rounds", "2", "--dir", ".", "--json")
    assert told.code == 0, told.err
    assert (told.json["steps"], told.json["rounds"]) == (41, 2)
    runs = {(run["tool"], run["run"]): run for run in told.json["runs"]}
    assert list(runs) == [
        ("bare loop", "first run"),
        ("holdfast", "first run"),
        ("bare loop", "nothing changed"),
        ("holdfast", "nothing changed"),
        ("holdfast", "nothing changed, as a whole"),
    ]
    ours, limit = runs["holdfast", "first run"], runs["bare loop", "first run"]
    assert ours["times_bare"] == pytest.approx(ours["cpu_s"] / limit["cpu_s"])
    assert ours["cpu_us_per_step"] == pytest.approx(ours["cpu_s"] / 41 * 1e6)
    assert [name for name in os.listdir(project.folder) if "bench" in name] == []


def test_a_directory_that_is_not_there_is_refused(project: Project) -> None:
    told = project.call("bench", "engine", "--dir", "nowhere")
    assert told.code == 2
    assert "cannot write in 'nowhere'" in told.err


def test_a_run_that_made_something_else_is_no_measurement(tmp_path: Path) -> None:
    graph = benchengine.graph_of(30)
    plan, functions = benchengine.plan_of(graph)
    wrong = {**functions, StepId("s30"): lambda **_: "something else"}
    with pytest.raises(BugError, match="gave 'something else', not '"):
        list(benchengine.measured(graph, plan, wrong, str(tmp_path)))


def test_its_graph_and_its_limit_are_those_of_the_bench(tmp_path: Path) -> None:
    graph = benchengine.graph_of(60)
    assert list(graph.items()) == shapes.make("layered", 60)
    mine = benchengine.Loop(graph, str(tmp_path / "mine.db"))
    theirs = bare.Loop(Case("layered", 60, str(tmp_path / "theirs")))
    with closing(mine.rows), closing(theirs.db):
        asyncio.run(mine.run())
        asyncio.run(theirs.run())
        rows = "SELECT id, key, value FROM step ORDER BY id"
        assert list(mine.rows.execute(rows)) == list(theirs.db.execute(rows))
