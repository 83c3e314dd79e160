"""kill -9 at any moment of a ticket: it goes on to the same files, once; the person's tree never changes."""

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.project import Answer, Project
from tests.cli.tickets import block, edit, files_at, finish, git, repository, script
from tests.crash.faults import kill_after
from tests.crash.report import Report

FILES = {"src/a.py": "a = 1\n", "src/b.py": "b = 1\n", ".gitignore": "*.log\n"}
NEW = block("src/c.py", "", "c = 1\n")
CYCLES = (
    [
        ("plan", {"steps": ["one", "two"]}),
        ("read", {"path": "src/a.py"}),
        edit(block("src/a.py", "a = 1\n", "a = 2\n"), NEW),
        ("commit", {"message": "first", "nodes": ["n-1"]}),
        ("run", {"command": "echo x >> src/c.py; echo y >> src/c.py; echo z >> side.log"}),
        edit(block("src/b.py", "b = 1\n", "b = 2\n")),
        ("commit", {"message": "second", "nodes": ["n-2"]}),
        ("tree", {"nodes": [{"id": "n-2", "title": "second", "parent": "n-1"}]}),
        finish(ready=False, summary="first cycle"),
    ],
    [
        [("run", {"command": "sed -i s/2/3/ src/a.py"}), finish(summary="refused")],
        [("run", {"command": "sed -i s/3/4/ src/a.py"}), finish(summary="second cycle")],
    ],
)
CHECK = "! grep -q 3 src/a.py"
MOST = 4  # kills of one ticket
WORDS = ("work", "Change things", "--id", "chg", "--validate", CHECK, "--quiet")


def laid(folder: Path) -> tuple[Project, tuple[str, ...]]:
    folder.mkdir()
    project = Project(folder)
    repository(project, FILES)
    project.write("src/b.py", "the person's, not committed\n")
    project.write("mine.txt", "untracked\n")
    return project, (*WORDS, "--script", script(project, *CYCLES))


def mine(project: Project) -> list[str]:
    words = (("status", "--porcelain"), ("stash", "list"), ("rev-parse", "HEAD"), ("diff",))
    return [git(project, *word) for word in words]


def came_of(project: Project) -> tuple[str, list[str]]:
    """The files of the branch, and what its commits say."""
    return files_at(project, "holdfast/chg"), git(
        project, "log", "--format=%s", "main..holdfast/chg"
    ).splitlines()


def used_twice(project: Project) -> list[str]:
    """Tools that changed something and were answered twice for one use."""
    seen: set[tuple[str, str]] = set()
    twice = []
    for event in project.events("@"):
        if event["event"] == "tool_used" and event["name"] in {"edit", "run"}:
            key = (event["step"], event["use"])
            twice += [str(key)] if key in seen else []
            seen.add(key)
    return twice


def swept(folder: Path, kills: int, seed: int, report: Report) -> None:
    dice = random.Random(seed)
    project, words = laid(folder / "whole")
    began = time.monotonic()
    assert project.call(*words).code == 0
    whole, wanted = time.monotonic() - began, came_of(project)
    project.end()
    number = 0
    while report.fired < kills:
        number += 1
        project, words = laid(folder / f"case-{number}")
        before = mine(project)
        for _ in range(MOST):
            process = project.start(*words)
            if kill_after(process, dice.uniform(0.05, 1.0) * whole):
                report.fired += 1
            else:
                break
        answer = project.call(*words)
        report.tried += 1
        _judge(project, report, f"seed {seed}, ticket {number}", before, wanted, answer)
        project.end()


def _judge(
    project: Project,
    report: Report,
    name: str,
    before: list[str],
    wanted: tuple[str, list[str]],
    answer: Answer,
) -> None:
    found = came_of(project) if answer.code == 0 else answer
    if found != wanted:
        report.violations.append(f"{name}: {found}")
    if mine(project) != before:
        report.violations.append(f"{name}: the person's tree changed")
    if twice := used_twice(project):
        report.violations.append(f"{name}: answered twice: {twice}")
    report.work += 1


@pytest.mark.req("R130", "R134", "I9")
def test_a_ticket_that_is_killed_goes_on_to_the_same_files(
    tmp_path: Path, sweep: Callable[[Report], None]
) -> None:
    report = Report("tickets killed", "random-kill", total=2)
    swept(tmp_path, 2, 1, report)
    sweep(report)
    assert not report.violations


@pytest.mark.soak("random-kill")
@pytest.mark.parametrize("part", range(4))
def test_tickets_killed_at_random_moments(
    tmp_path: Path, sweep: Callable[[Report], None], part: int
) -> None:
    report = Report(f"tickets killed {part}", "random-kill", total=50)
    swept(tmp_path, 50, 100 + part, report)
    sweep(report)
    assert not report.violations
