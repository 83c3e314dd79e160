"""Screens: what a command prints, compared whole, at 80 and 120 columns, plain, and for a voice."""

import getpass
import platform
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from holdfast.cli.say import SIGNS
from tests.cli.project import Project

MODES: Mapping[str, tuple[list[str], dict[str, str]]] = {
    "plain": (["--output", "plain"], {}),
    "80": (["--output", "rich", "--color", "never"], {"COLUMNS": "80", "LINES": "24"}),
    "120": (["--output", "rich", "--color", "never"], {"COLUMNS": "120", "LINES": "40"}),
    "a11y": (["--output", "a11y"], {}),
}
_SIGNED = {f"{sign} " for sign in SIGNS.values() if sign != "="}
_VARYING: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"r-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), lambda _: "r-RUN"),
    (re.compile(r"r-[0-9a-f]{8}\b"), lambda _: "r-00000000"),
    (
        re.compile(r"CP-(\w+)-\d{14}-[0-9a-f]{8}"),
        lambda found: f"CP-{found[1]}-{'0' * 14}-{'0' * 8}",
    ),
    (re.compile(r"\b[0-9a-f]{64}\b"), lambda _: "0" * 64),
    (re.compile(r"\b[0-9a-f]{12}\b"), lambda _: "0" * 12),
    (re.compile(r"\b\d+(\.\d+)? [KM]B\b"), lambda _: "0 KB"),
    (re.compile(r"^bytes +\d+$", re.MULTILINE), lambda _: "bytes     0"),
    (re.compile(r"\b\d+\.\d s\b"), lambda _: "0.0 s"),
    (re.compile(r"~\d+(\.\ds|s|m \d\ds)(, high \d+(s|m \d\ds))?"), lambda _: "~0.0s"),
    (re.compile(r"\b\d\.\ds\b"), lambda _: "0.0s"),
    (re.compile(r"\bplan [0-9a-f]{12}\b"), lambda _: "plan 000000000000"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?\b"), lambda found: _zeros(found.group())),
    (re.compile(r"\b\d+ (?:s|min|h)(\s+)ago"), lambda found: f"0 s{found[1]}ago"),
)


def _zeros(text: str) -> str:
    return re.sub(r"\d", "0", text)


def steady(text: str, project: Project) -> str:
    """What is printed, without what differs from day to day: ids, digests, times, places."""
    text = text.replace(str(project.root), "/project").replace(str(project.home), "/home")
    text = text.replace(f"{platform.node()}:/", "machine:/")
    text = re.sub(rf"(\bby '?|\w \(){re.escape(getpass.getuser())}\b", r"\1somebody", text)
    for pattern, put in _VARYING:
        text = pattern.sub(put, text)
    return text


class TextFile(SingleFileSnapshotExtension):
    """One readable file for each screen."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


def _as_it_was(project: Project, saved: Path, *, first: bool) -> None:
    """Keep the project as it is, or put it back."""
    source, target = (project.root, saved) if first else (saved, project.root)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)


class Screen(Protocol):
    """Runs a command in each mode and compares stdout, stderr and the exit code."""

    def __call__(self, *words: str, name: str = "", modes: tuple[str, ...] = ...) -> None: ...


def screen_of(project: Project, snapshot: SnapshotAssertion) -> Screen:
    """The `screen` of a test. A command that changes things finds the project as it was in every mode.

    Not so with `modes` of one word: for formats and modes that have no width, and beside a live engine.
    """
    files = snapshot.use_extension(TextFile)
    saved = project.folder / "saved"

    def screen(
        *words: str, name: str = "", modes: tuple[str, ...] = ("plain", "80", "120")
    ) -> None:
        for mode in modes:
            if len(modes) > 1:
                _as_it_was(project, saved, first=mode == modes[0])
            before, env = MODES[mode]
            answer = project.call(*before, *words, env=env)
            shown = (
                f"$ holdfast {' '.join(words)}\nexit {answer.code}\n"
                f"--- stdout\n{answer.out}--- stderr\n{answer.err}"
            )
            assert "\x1b" not in shown
            if mode == "a11y":
                assert not [line for line in shown.splitlines() if line.lstrip()[:2] in _SIGNED], (
                    shown
                )
            for line in answer.out.splitlines() if mode.isdigit() else []:
                assert len(line) <= int(mode), f"wider than {mode} columns: {line}"
            assert steady(shown, project) == files(name=f"{name or words[0]}-{mode}")

    return screen
