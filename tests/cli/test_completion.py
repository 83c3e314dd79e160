"""Completion in real shells: what a person types, and the key."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.project import DEADLINE, Project

SHELLS = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}
READY = {"bash": "", "zsh": "autoload -U compinit; compinit -u -D; setopt no_beep;"}


@pytest.fixture
def words(project: Project) -> Project:
    project.plan(
        {"summary": {"shell": "echo x", "description": "the end"}, "read": {"shell": "echo"}}
    )
    project.write("other.yaml", project.read("plan.yaml"))
    return project


def environment(project: Project) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**project.environment(), "PATH": path, "TERM": "dumb", "PS1": "ready> ", "HISTFILE": ""}


class Shell:
    """An interactive shell on a terminal of its own."""

    def __init__(self, file: int) -> None:
        self._file = file

    def say(self, text: str) -> None:
        os.write(self._file, text.encode())

    def hear(self, wanted: str) -> str:
        """What comes until something does."""
        found, end = "", time.monotonic() + DEADLINE
        while not re.search(wanted, found):
            assert time.monotonic() < end, f"never came to {wanted!r}: {found!r}"
            if select.select([self._file], [], [], 0.2)[0]:
                found += os.read(self._file, 65536).decode("utf-8", "replace")
        return found


@contextmanager
def shell(name: str, project: Project) -> Iterator[Shell]:
    file, other = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", name, *SHELLS[name]],
        cwd=project.root,
        env=environment(project),
        stdin=other,
        stdout=other,
        stderr=other,
    )
    os.close(other)
    try:
        opened = Shell(file)
        load = f'eval "$(holdfast completion {name} 2>/dev/null)"'
        opened.say(f"{READY[name]} {load}; echo up-$((40+2))\n")
        opened.hear(r"up-42\r?\n")
        yield opened
    finally:
        process.kill()
        process.wait()
        os.close(file)


@pytest.mark.parametrize("name", ["bash", "zsh"])
def test_what_is_typed_is_completed(words: Project, name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    words.run()
    with shell(name, words) as opened:
        for typed, whole in (
            ("holdfast hist", "history"),
            ("holdfast why su", "summary"),
            ("holdfast run --force-node re", "read"),
            ("holdfast ci report --aga", "--against"),
            ("holdfast check oth", "other.yaml"),
        ):
            opened.say(typed + "\t")
            rest = re.escape(whole[len(typed.split()[-1]) :])
            opened.hear(rest)
            opened.say("\x15")  # take the line back


def test_fish_completes_with_what_each_thing_is(words: Project) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    words.run()

    def found(typed: str) -> list[str]:
        load = "holdfast completion fish 2>/dev/null | source"
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"{load}; complete -C '{typed}'"],
            cwd=words.root,
            env=environment(words),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()

    assert found("holdfast why s") == ["summary\tthe end"]
    assert [line.split("\t")[0] for line in found("holdfast ci ")] == ["key", "report"]
    assert "@\tthe last run" in found("holdfast ci report @")
    assert found("holdfast check oth") == ["other.yaml"]


def test_templates_are_completed_with_those_of_the_project(project: Project) -> None:
    project.write("holdfast.toml", 'templates = "mine"\n')
    project.write("mine/tide.yaml", "steps: {a: {shell: echo}}\n")
    asked = {
        "_HOLDFAST_COMPLETE": "bash_complete",
        "COMP_WORDS": "holdfast init --template ",
        "COMP_CWORD": "3",
    }
    done = subprocess.run(
        [str(Path(sys.executable).parent / "holdfast")],
        cwd=project.root,
        env=project.environment(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    found = [line.partition(",")[2] for line in done.stdout.splitlines()]
    assert found == ["tide", "basic", "python", "minimal", "goal"]


def test_completion_says_nothing_where_there_is_nothing(project: Project) -> None:
    for shell_name in ("bash", "zsh", "fish"):
        asked = {
            "_HOLDFAST_COMPLETE": f"{shell_name}_complete",
            "COMP_WORDS": "holdfast why x",
            "COMP_CWORD": "2" if shell_name != "fish" else "x",
        }
        done = subprocess.run(
            [str(Path(sys.executable).parent / "holdfast")],
            cwd=project.root,
            env=project.environment(asked),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout.strip(), done.stderr) == ("", "")
    assert not project.store.exists()
