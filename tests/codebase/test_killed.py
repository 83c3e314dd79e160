"""An index is a cache: killed while it is made, damaged or of another kind, it is right the next time."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from holdfast.codebase.index import Index
from tests.cli.project import LIBRARY
from tests.codebase import languages
from tests.codebase.repository import commit, fresh, repository, told, write

MAKE = "import sys; from holdfast.codebase.index import Index; Index(*sys.argv[1:]).update()"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = repository(tmp_path / "root")
    for number in range(60):
        write(root, f"app/part{number}.py", languages.PYTHON + f"\ndef part{number}(): pass\n")
        write(root, f"lib/part{number}.ts", languages.TYPESCRIPT + f"\nlet x{number} = 1\n")
    commit(root, "open the session")
    return root


def traced(strace: str, root: Path, place: Path, *options: str) -> "subprocess.Popen[bytes]":
    calls = "trace=pwrite64,write,ftruncate,fdatasync,unlink"
    command = [strace, "-f", "-qq", "-e", calls, *options]
    command += [sys.executable, "-c", MAKE, str(root), str(place)]
    return subprocess.Popen(command, env={**os.environ, **LIBRARY}, stderr=subprocess.PIPE)


@pytest.mark.req("R138")
def test_a_kill_at_any_write_leaves_what_the_next_one_puts_right(
    root: Path, tmp_path: Path, require_part: Callable[[str], str]
) -> None:
    strace = require_part("strace")
    process = traced(strace, root, tmp_path / "whole.db", "-P", str(tmp_path / "whole.db-wal"))
    writes = (process.communicate()[1] or b"").count(b"pwrite64(")
    assert writes > 10
    expected = fresh(root)
    for part in range(5):
        place = tmp_path / f"{part}.db"
        when = 1 + part * (writes - 1) // 5
        inject = f"inject=pwrite64:signal=KILL:when={when}"
        process = traced(strace, root, place, "-P", f"{place}-wal", "-e", inject)
        process.communicate()
        assert process.returncode in {-signal.SIGKILL, 128 + signal.SIGKILL}
        with Index(str(root), str(place)) as index:
            index.update()
            assert told(index) == expected


@pytest.mark.parametrize(
    "damage", ["garbage", "one byte", "torn", "foreign", "another version", "pages"]
)
def test_a_damaged_index_is_made_again_with_a_word(root: Path, tmp_path: Path, damage: str) -> None:
    place = tmp_path / ".holdfast/code.db"
    place.parent.mkdir()
    with Index(str(root), str(place)) as index:
        index.update()
    content = place.read_bytes()
    match damage:
        case "garbage":
            place.write_bytes(b"no database at all" * 100)
        case "one byte":
            place.write_bytes(b"x")
        case "torn":
            place.write_bytes(content[: len(content) // 2])
        case "foreign":
            place.unlink()
            apsw.Connection(str(place)).execute("CREATE TABLE mine (x)")
        case "another version":
            apsw.Connection(str(place)).execute("PRAGMA user_version = 99")
        case "pages":
            place.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
        case _:
            pytest.fail(damage)
    said: list[str] = []
    with Index(str(root), str(place), say=said.append) as index:
        index.update()
        assert told(index) == fresh(root)
    assert len(said) == 1
    assert "it is made again" in said[0]


@pytest.mark.parametrize("damage", ["torn", "another version", "pages", "empty"])
def test_an_index_elsewhere_is_made_again_if_it_says_that_it_is_one(
    root: Path, tmp_path: Path, damage: str
) -> None:
    place = tmp_path / "elsewhere.db"
    with Index(str(root), str(place)) as index:
        index.update()
    content = place.read_bytes()
    match damage:
        case "torn":
            place.write_bytes(content[: len(content) // 2])
        case "another version":
            apsw.Connection(str(place)).execute("PRAGMA user_version = 99")
        case "pages":
            place.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
        case _:
            place.write_bytes(b"")
    with Index(str(root), str(place)) as index:
        index.update()
        assert told(index) == fresh(root)


def test_several_processes_at_once_come_to_one_index(root: Path, tmp_path: Path) -> None:
    place = tmp_path / "code.db"
    env = {**os.environ, **LIBRARY}
    command = [sys.executable, "-c", MAKE, str(root), str(place)]
    processes = [subprocess.Popen(command, env=env) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    with Index(str(root), str(place)) as index:
        assert index.update().parsed == 0
        assert told(index) == fresh(root)
