"""A long ledger leaves a snapshot, which may go or be damaged at any time."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.project import Project
from tests.cli.test_ledger import WHOLE

MANY = 1_100


@pytest.fixture
def long(project: Project) -> Project:
    """A line with so many findings that its ledger leaves a snapshot."""
    found = [
        {"finding": f"station {n} reports {n} mm of rain", "source": "a.csv"} for n in range(MANY)
    ]
    project.write("look.json", json.dumps({**WHOLE, "observed": found}))
    project.plan(
        {
            "look": {"shell": "cp look.js* $HOLDFAST_HANDOFF; echo 12"},
            "tell": {"needs": ["look"], "shell": "cat $HOLDFAST_CONTEXT"},
        }
    )
    project.run()
    return project


def snapshot(project: Project) -> Path:
    (one,) = (project.store / "ledgers").iterdir()
    return one


def cut(place: Path) -> None:
    place.write_bytes(place.read_bytes()[:-100])


def flip(place: Path) -> None:
    content = bytearray(place.read_bytes())
    content[len(content) // 2] ^= 1
    place.write_bytes(content)


def empty(place: Path) -> None:
    place.write_bytes(b"")


def nonsense(place: Path) -> None:
    key = place.read_bytes().split()[0].decode()
    body = b'{"handoffs": [[1]]}'
    place.write_bytes(f"{key} {hashlib.sha256(body).hexdigest()}\n".encode() + body)


def of_another_version(place: Path) -> None:
    place.write_bytes(b"0" * 64 + place.read_bytes()[64:])


def pipe(place: Path) -> None:
    place.unlink()
    os.mkfifo(place)


def directory(place: Path) -> None:
    place.unlink()
    place.mkdir()


@pytest.mark.req("R126")
@pytest.mark.parametrize(
    "damage", [Path.unlink, cut, flip, empty, nonsense, of_another_version, directory, pipe]
)
def test_a_snapshot_that_is_gone_or_damaged_changes_nothing(
    long: Project, damage: Callable[[Path], None]
) -> None:
    first = long.ok("ledger", "--json").out
    assert json.loads(first)["evidence"][0]["finding"] == "station 0 reports 0 mm of rain"
    assert long.ok("ledger", "--json").out == first
    damage(snapshot(long))
    assert long.ok("ledger", "--json").out == first
    assert long.ok("ledger", "--json").out == first


def test_a_snapshot_is_used_and_another_word_makes_it_old(long: Project) -> None:
    long.ok("ledger")
    place = snapshot(long)
    head, _, body = place.read_bytes().partition(b"\n")
    other = body.replace(b"station 7 reports", b"station 7 tells")
    digest = hashlib.sha256(other).hexdigest().encode()
    place.write_bytes(head.split()[0] + b" " + digest + b"\n" + other)
    assert "station 7 tells 7 mm" in long.ok("ledger", "evidence").out
    long.ok("ledger", "add", "gap", "the map", "--because", "no data")
    told = long.ok("ledger").out
    assert "the map: no data" in told
    assert "station 7 reports 7 mm" in told
    assert "  the map: no data" in long.ok("ledger", "gaps").out


def test_a_short_ledger_leaves_none(project: Project) -> None:
    project.write("look.json", json.dumps(WHOLE))
    project.plan({"look": {"shell": "cp look.js* $HOLDFAST_HANDOFF; echo 12"}})
    project.run()
    project.ok("ledger")
    assert not project.has(".holdfast/ledgers")


def test_clearing_removes_snapshots_and_nothing_else(long: Project) -> None:
    first = long.ok("ledger", "--json").out
    long.ok("gc", "--keep", "0d", "--yes")
    assert not long.has(".holdfast/ledgers")
    assert long.ok("ledger", "--json").out == first
    assert long.call("verify").code == 0


FOUND = json.loads(json.dumps(WHOLE))["observed"][0]["finding"]


def test_a_purge_names_the_pages_that_quote_a_handoff(project: Project) -> None:
    project.write("look.json", json.dumps(WHOLE))
    project.plan(
        {
            "look": {"shell": "cp look.js* $HOLDFAST_HANDOFF; echo 12"},
            "then": {"needs": ["look"], "shell": "echo 1"},
            "later": {"needs": ["then"], "shell": "echo 2"},
        }
    )
    project.run()
    rows = project.database().execute("SELECT body FROM event WHERE kind = 'handoff_given'")
    (digest,) = {json.loads(str(body))["handoff"] for (body,) in rows}
    gone = project.ok("purge", digest, "--because", "private", "--yes", "--json").json
    pages = {one["step"]: one["digest"] for one in gone["quoted_in"]}
    assert [*pages] == ["then", "later"]
    for step, page in pages.items():
        assert FOUND in project.ok("show", step, "--context").out
        project.ok("purge", page, "--because", "private", "--yes")
        assert FOUND not in project.call("show", step, "--context").out


def test_what_is_purged_stays_in_no_snapshot(long: Project) -> None:
    long.ok("ledger")
    rows = long.database().execute("SELECT body FROM event WHERE kind = 'handoff_given'")
    (digest,) = {json.loads(str(body))["handoff"] for (body,) in rows}
    long.ok("purge", digest, "--because", "private", "--yes")
    assert not long.has(".holdfast/ledgers")
    assert "station 7" not in long.ok("ledger").out
