"""Real processes: killed, racing, and on a disk whose sync fails."""

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from holdfast.errors import LockedError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.event import RunResumed
from holdfast.model.plan import StepId
from holdfast.ports import Append, Batch
from holdfast.store.sqlite import SqliteStore

WRITER = str(Path(__file__).with_name("writer.py"))
PYTHON = os.path.realpath(sys.executable)
ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def start(place: Path, run: str, count: int, *mode: str) -> "subprocess.Popen[str]":
    argv = [PYTHON, WRITER, str(place), run, str(count), *mode]
    return subprocess.Popen(argv, env=ENV, stdout=subprocess.PIPE, text=True)


def stored(lines: list[str]) -> list[tuple[int, Digest]]:
    """What a writer said was acknowledged."""
    words = [line.split() for line in lines]
    return [(int(line[1]), Digest(line[2])) for line in words if line[:1] == ["stored"]]


def assert_kept(store: SqliteStore, run: str, acknowledged: list[tuple[int, Digest]]) -> None:
    events = {item.seq for item in store.read(f"run:{run}")}
    for number, digest in acknowledged:
        assert number + 1 in events
        rows = [row for row in store.artifacts(step=StepId(f"s{number}")) if row.run == run]
        assert [row.digest for row in rows] == [digest]
        assert store.get(digest).startswith(f"{run} {number} ".encode())


@pytest.mark.req("D01", "D11")
def test_what_was_acknowledged_survives_kill_at_any_point(tmp_path: Path) -> None:
    place = tmp_path / "store"
    dice = random.Random(7)
    acknowledged = {}
    for turn in range(20):
        run = f"r-{turn}"
        with start(place, run, 1000) as child:
            assert child.stdout is not None
            lines = [child.stdout.readline() for _ in range(dice.randint(1, 25))]
            child.kill()
            lines += child.stdout.readlines()
        acknowledged[run] = stored([line for line in lines if line.endswith("\n")])
    assert sum(len(items) for items in acknowledged.values()) > 100
    with SqliteStore.open(str(place), create=False) as store:
        for run, items in acknowledged.items():
            assert_kept(store, run, items)
        assert list(store.check()) == []


@pytest.mark.req("E7", "R67", "D13")
def test_two_processes_that_store_at_once_lose_nothing(tmp_path: Path) -> None:
    place, count = tmp_path / "store", 300
    children = {run: start(place, run, count, "race") for run in ("r-a", "r-b")}
    said = {run: child.communicate()[0].splitlines() for run, child in children.items()}
    with SqliteStore.open(str(place), create=False) as store:
        for run, lines in said.items():
            assert lines[-1] == "closed"
            assert len(stored(lines)) == count
            assert_kept(store, run, stored(lines))
        assert len(list(store.artifacts())) == 2 * count
        assert [item.seq for item in store.read("line:shared")] == list(range(1, 2 * count + 1))
        assert list(store.check()) == []


@pytest.mark.req("R67", "D13")
def test_a_transaction_has_the_lock_before_it_reads(tmp_path: Path) -> None:
    place = str(tmp_path / "store")
    asked = Batch(appends=[Append("line:one", 0, [(1, RunResumed("e"))])])
    opened = partial(SqliteStore.open, place, create=True)
    with opened() as one, opened() as other:

        def rows() -> list[Artifact]:
            with pytest.raises(LockedError):
                other.commit(asked, wait=False)
            return []

        one.replace_artifacts(rows)
        other.commit(asked, wait=False)


@pytest.mark.req("D04")
def test_after_a_failed_sync_nothing_is_acknowledged_or_believed(
    tmp_path: Path, require_part: Callable[[str], str]
) -> None:
    log = tmp_path / "log"
    tracing = [require_part("strace"), "-f", "-qq", "-y", "-o", str(log)]

    def run(place: Path, *fault: str) -> list[str]:
        argv = [*tracing, "-e", "trace=fsync,fdatasync", *fault]
        argv += [PYTHON, WRITER, str(place), "r-1", "5"]
        done = subprocess.run(argv, env=ENV, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        return done.stdout.splitlines()

    assert outcome_of(run(tmp_path / "sound")) == "clean"
    calls = log.read_text()
    outcomes = []
    for name in ("fsync", "fdatasync"):  # ours and SQLite's
        for call in range(1, calls.count(f" {name}(") + 1):
            place = tmp_path / f"{name}-{call}"
            lines = run(place, "-e", f"inject={name}:error=EIO:when={call}")
            assert log.read_text().count("(INJECTED)") == 1
            outcomes.append(outcome_of(lines))
            if "open" in lines:
                with SqliteStore.open(str(place), create=False) as store:
                    assert_kept(store, "r-1", stored(lines))
                    assert list(store.check()) == []
    assert outcomes.count("refused") > 0  # while the store was made
    assert outcomes.count("poisoned") >= 5 + 3  # each fact, and the large content


def outcome_of(lines: list[str]) -> str:
    """How a writer ended; one that failed must have been refused the second time."""
    words = [line.split() for line in lines]
    if any(line[0] == "refused" for line in words):
        return "refused"
    failed = [line for line in lines if line.startswith("failed store")]
    if not failed:
        assert lines[-1] == "closed"
        return "clean"
    again = [line for line in lines if line.startswith("again store")]
    assert len(again) == 1
    assert "can no longer be trusted; start again" in again[0]
    return "poisoned"


CALL = re.compile(r"^\d+ +(\w+)\((.*)$")


@pytest.mark.req("D02")
def test_bytes_are_synced_before_the_name_and_the_name_before_the_fact(
    tmp_path: Path, require_part: Callable[[str], str]
) -> None:
    """A kill never shows a missing sync; the order of the system calls does."""
    strace, log = require_part("strace"), tmp_path / "log"
    calls = "trace=write,pwrite64,fsync,fdatasync,rename"
    tracing = [strace, "-f", "-qq", "-y", "-s", "400", "-o", str(log), "-e", calls]
    argv = [*tracing, PYTHON, WRITER, str(tmp_path / "store"), "r-1", "10"]
    done = subprocess.run(argv, env=ENV, capture_output=True, text=True, check=True)
    assert len(stored(done.stdout.splitlines())) == 10
    dirty: set[str] = set()  # files and directories with changes that a power loss could take
    acknowledged = renamed = 0
    for call, rest in (
        match.groups() for match in map(CALL.match, log.read_text().splitlines()) if match
    ):
        paths = re.findall(r"<([^>]*)>", rest)
        if call in {"fsync", "fdatasync"}:
            dirty.discard(paths[0])
        elif call == "rename":
            source, target = re.findall(r'"([^"]*)"', rest)
            assert source not in dirty
            dirty.add(os.path.dirname(target))
            renamed += 1
        elif call == "write" and '"stored ' in rest:
            # What the log has, and what only says how far it was.
            assert not {path for path in dirty if not path.endswith(("state.db", "state.end"))}
            acknowledged += 1
        elif paths and "/store/" in paths[0] and not paths[0].endswith(("-shm", ".TAG", "ignore")):
            if paths[0].endswith("-wal"):
                assert not {path for path in dirty if "/blobs/" in path}
            dirty.add(paths[0])
    assert (acknowledged, renamed) == (10, 2)
