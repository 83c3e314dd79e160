"""Stores as earlier versions left them: read as they are, brought forward, and nothing runs again."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast.store.migrate import VERSION
from tests.cli.project import Project

STORES = sorted((Path(__file__).parent / "stores").glob("*.json"))


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.end()


def lay(project: Project, kept: dict[str, Any]) -> Path:
    """The project as it was, its database made again from its text."""
    for path, content in kept["files"].items():
        place = project.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(base64.b64decode(content))
    database = project.store / "state.db"
    connection = apsw.Connection(str(database))
    for statement in kept["sql"]:
        connection.execute(statement)
    connection.pragma("journal_mode", "WAL")
    connection.close()
    return database


def standing(data: dict[str, Any]) -> dict[str, Any]:
    """What every version tells of a run; a later one may tell more."""
    keys = ("state", "attempts", "config_ref", "digest")
    steps = {
        step: {key: found[key] for key in keys if key in found}
        for step, found in data["steps"].items()
    }
    return {"run": data["run"], "status": data["status"], "steps": steps}


@pytest.fixture(params=STORES, ids=lambda path: path.stem)
def kept(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(request.param.read_text())
    return found


def test_every_released_format_is_kept() -> None:
    formats = [json.loads(path.read_text())["format"] for path in STORES]
    assert sorted(formats) == list(range(1, VERSION + 1))


@pytest.mark.req("R152", "R186")
def test_an_older_store_is_read_as_it_is(project: Project, kept: dict[str, Any]) -> None:
    database = lay(project, kept)
    before = database.read_bytes()
    for run, then in kept["states"].items():
        assert standing(project.ok("status", run, "--json").json) == standing(then)
    assert project.ok("verify", "--json").json["ok"] is True
    ahead = project.ok("plan", "--json").json
    assert {step["decision"] for step in ahead["steps"].values()} == {"reuse"}
    assert project.ok("show", "large").out == "mine\n"
    assert database.read_bytes() == before


@pytest.mark.req("R152", "R186")
def test_an_older_store_is_brought_forward_and_nothing_runs_again(
    project: Project, kept: dict[str, Any]
) -> None:
    lay(project, kept)
    run = project.run()
    assert run.code == 0
    assert set(run.states.values()) == {"reused"}
    project.ok("verify")
    for name, then in kept["states"].items():
        assert standing(project.ok("status", name, "--json").json) == standing(then)
    with project.database() as connection:
        assert connection.pragma("user_version") == VERSION
    project.write("in.txt", "kelp\n")
    changed = project.run().states
    assert [step for step, state in changed.items() if state == "done"] == ["read", "count", "pair"]


@pytest.mark.req("R152", "R186")
def test_a_newer_store_is_refused_and_left_alone(project: Project, kept: dict[str, Any]) -> None:
    database = lay(project, kept)
    with apsw.Connection(str(database)) as connection:
        connection.pragma("user_version", VERSION + 1)
        connection.pragma("wal_checkpoint(TRUNCATE)")
    connection.close()
    before = database.read_bytes()
    for words in (("status",), ("plan",), ("run",), ("verify",), ("resume",)):
        answer = project.call(*words)
        assert answer.code in {2, 74}, answer
        assert (
            f"has format {VERSION + 1}, this Holdfast knows formats up to {VERSION}" in answer.err
        )
        assert "upgrade holdfast" in answer.err
        assert "Traceback" not in answer.err
    assert database.read_bytes() == before
