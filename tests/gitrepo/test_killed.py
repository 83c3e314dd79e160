"""Killed anywhere, git or whoever called it: nothing is lost, and the same again comes to the same end."""

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from holdfast import gitrepo
from tests.crash.report import Report
from tests.gitrepo.play import play
from tests.gitrepo.repository import git
from tests.gitrepo.scene import Scene, copied, scene

TOP = Path(__file__).resolve().parents[2]
SOURCE = str(Path(holdfast.__file__).parents[1])
# Put before git: counts the calls, and at one of them ends whoever calls, git before it begins, after it
# ended, or at the first name that it changes.
KILLER = """#!/bin/sh
folder=$1 at=$2 how=$3 strace=$4; shift 4
n=$(($(cat "$folder/count" 2>/dev/null || echo 0) + 1)); echo $n > "$folder/count"
[ $n = $at ] || exec "$@"
case $how in
  before) ;;
  after) "$@" ;;
  torn) "$strace" -f -qq -o /dev/null -e trace=rename,renameat,renameat2,link,linkat,unlink,unlinkat \\
    -e inject=rename,renameat,renameat2,link,linkat,unlink,unlinkat:signal=KILL:when=1 "$@" ;;
esac
kill -9 $PPID
"""
CALLS = ("rename", "mkdir", "unlink", "unlinkat", "rmdir", "write", "fsync")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return scene(tmp_path_factory.mktemp("prepared") / "scene")


@pytest.fixture
def strace(require_part: Callable[[str], str]) -> str:
    return require_part("strace")


def run(at: Scene, *before: str, wrapper: tuple[str, ...] = ()) -> int:
    command = [*wrapper, sys.executable, "-P", "-B", "-m", "tests.gitrepo.play", str(at.folder)]
    env = {**os.environ, "PYTHONPATH": f"{SOURCE}:{TOP}"}
    done = subprocess.run(
        [*command, *before], cwd=TOP, env=env, capture_output=True, check=False, timeout=120
    )
    assert done.returncode in {0, -9}, done.stderr.decode()
    return done.returncode


def killer(at: Scene, number: int, how: str, strace: str) -> tuple[str, ...]:
    place = at.folder / "killer.sh"
    place.write_text(KILLER)
    place.chmod(0o755)
    return (str(place), str(at.folder), str(number), how, strace)


def count(at: Scene, strace: str) -> int:
    """How many calls of git the story takes."""
    assert run(at, *killer(at, 0, "never", strace)) == 0
    check(at)
    return int((at.folder / "count").read_text())


def whole(at: Scene) -> None:
    """At any moment: each file of the person is as it was, or as the new commit has it."""
    a = at.root / "a.txt"
    new, old = b"ours\n", git(at.root, "show", "two:a.txt").encode()
    assert not a.exists() or a.read_bytes() in {new, old}
    assert (at.root / "x.trap").read_text() == "of main\n"
    git(at.root, "fsck", "--strict")


def check(at: Scene) -> None:
    """At the end: everything is where it should be, and no lock or word is left."""
    assert git(at.root, "show", "main:a.txt") == "ours\n"
    assert git(at.root, "status", "--porcelain") == ""
    assert git(at.root, "log", "--format=%s", "done").split() == ["new", "main", "first"]
    home = at.folder / "home"
    assert not (home / "busy").exists()
    assert not (home / "following.json").exists()
    assert os.listdir(home / "worktrees") == []
    left = [path for top in (at.root / ".git", home) for path in top.rglob("*.lock")]
    assert left == []
    client = at.client()
    for store in (client.work, client.store):
        git(at.folder, "--git-dir", store, "fsck", "--strict")
    for snapshot in gitrepo.list_snapshots(client):
        gitrepo.find_snapshot(client, snapshot.oid)


def kill_once(at: Scene, number: int, how: str, strace: str) -> str:
    ended = run(at, *killer(at, number, how, strace))
    whole(at)
    play(at.folder)
    check(at)
    return "killed" if ended == -9 else "too late"


def kill_caller(at: Scene, call: str, number: int, strace: str) -> str:
    rule = f"inject={call}:signal=KILL:when={number}"
    words = (strace, "-qq", "-o", os.devnull, "-e", f"trace={call}", "-e", rule)
    ended = run(at, wrapper=words)
    whole(at)
    play(at.folder)
    check(at)
    return "killed" if ended == -9 else "too late"


@pytest.mark.req("R143", "R145", "C27")
def test_killed_at_calls_of_git_the_story_ends_the_same(
    prepared: Scene, tmp_path: Path, strace: str
) -> None:
    calls = count(copied(prepared, tmp_path / "whole"), strace)
    seed = random.Random(5)
    seen: Counter[str] = Counter()
    for how in ("before", "after", "torn"):
        number = seed.randint(1, calls)
        seen[kill_once(copied(prepared, tmp_path / f"{how}-{number}"), number, how, strace)] += 1
    assert seen == {"killed": 3}


@pytest.mark.req("R143", "R145", "C27")
@pytest.mark.parametrize(
    "call, number", [("rename", 14), ("mkdir", 20), ("fsync", 40), ("unlinkat", 40)]
)
def test_killed_at_its_own_calls_the_story_ends_the_same(
    prepared: Scene, tmp_path: Path, strace: str, call: str, number: int
) -> None:
    assert kill_caller(copied(prepared, tmp_path / "scene"), call, number, strace) == "killed"


@pytest.mark.soak("kill")
@pytest.mark.req("R143", "R145", "C27")
@pytest.mark.parametrize("how", ["before", "after", "torn"])
def test_killed_at_every_call_of_git_the_story_ends_the_same(
    prepared: Scene, tmp_path: Path, strace: str, how: str, sweep: Callable[[Report], None]
) -> None:
    calls = count(copied(prepared, tmp_path / "whole"), strace)
    seen: Counter[str] = Counter()
    for number in range(1, calls + 1):
        seen[kill_once(copied(prepared, tmp_path / str(number)), number, how, strace)] += 1
    killed = seen["killed"]
    sweep(Report(f"git killed, {how}", tried=calls, fired=killed, work=killed, outcomes=seen))
    assert killed == calls


@pytest.mark.soak("kill")
@pytest.mark.req("R143", "R145", "C27")
@pytest.mark.parametrize("call", CALLS)
def test_killed_at_every_call_of_its_own_the_story_ends_the_same(
    prepared: Scene, tmp_path: Path, strace: str, call: str, sweep: Callable[[Report], None]
) -> None:
    seen: Counter[str] = Counter()
    number = 1
    while seen["too late"] == 0:
        at = copied(prepared, tmp_path / f"{number}")
        seen[kill_caller(at, call, number, strace)] += 1
        number += 3
    killed = seen["killed"]
    sweep(
        Report(
            f"git's caller killed, {call}", tried=killed, fired=killed, work=killed, outcomes=seen
        )
    )
    assert killed > 0
