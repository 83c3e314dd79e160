"""A guard that takes long holds nobody else up: not the other steps, and not a person who stops the run."""

import os
import random
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.project import Project, finish, until

LETTERS = (
    random.Random(35).randbytes(16_000_000).translate(b"ab" * 128).decode()
)  # three minutes of searching


@pytest.mark.req("D35")
def test_a_pattern_that_runs_away_elsewhere_is_answered(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": f"printf %s {'a' * 26}!", "guards": [{"regex": {"pattern": "^(a+)+$"}}]},
            "b": {"shell": "echo b"},
        }
    )
    run = project.run()
    assert (run.code, run.states) == (1, {"a": "failed", "b": "done"})
    assert run.codes["a"] == "guard_rejected"
    project.ok("verify", "--all")


def judges(root: Path) -> list[int]:
    """The processes that judge something of this project."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):  # they may go while they are looked at
        with suppress(OSError):
            is_one = b"holdfast.guards import alone" in Path("/proc", pid, "cmdline").read_bytes()
            if is_one and os.path.samefile(f"/proc/{pid}/cwd", root):
                found.append(int(pid))
    return found


@pytest.mark.req("D35", "I12")
def test_a_run_can_be_stopped_while_a_guard_takes_its_time(project: Project) -> None:
    project.write("letters.txt", LETTERS)
    unlucky = {"regex": {"pattern": "a[ab]{900}c"}, "timeout": "1h"}
    project.plan({"a": {"run": ["cat", "letters.txt"], "guards": [unlucky]}})
    engine = project.start("run", "--json")
    found = until(lambda: judges(project.root), "it is judged")
    project.watch(*found)
    project.ok("stop", "--now")
    assert finish(engine).code == 130
    until(lambda: not judges(project.root), "nobody judges any more")
