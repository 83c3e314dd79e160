"""The engines: ours in three formats, programs of the system, and peers in environments of their own."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from bench.edits.disturb import Case
from bench.edits.drivers.talk import cpu
from bench.envs import Found
from bench.measure import REPOSITORY
from holdfast.edits.formats import read_edit
from holdfast.edits.places import work_out
from holdfast.edits.render import search_replace, unified, updated, v4a
from holdfast.errors import EditError


class Answer(NamedTuple):
    """The file as the engine left it, whether it says that it is done, how long it took and computed."""

    after: bytes
    done: bool
    seconds: float
    cpu: float = 0.0


class Watch:
    """Wall time and CPU, children's too, from when it is made."""

    def __init__(self) -> None:
        self._began, self._used = time.perf_counter(), cpu()

    def answer(self, after: bytes, *, done: bool) -> Answer:
        return Answer(after, done, time.perf_counter() - self._began, cpu() - self._used)


class Engine(Protocol):
    def __call__(self, case: Case) -> Answer: ...


def diff_of(case: Case) -> str:
    """The diff as git writes it, headers and all; the hunks are those of the case."""
    head = case.change.diff.split("\n--- ", 1)[0]
    return f"{head}\n{unified(case.change.path, case.numbered)}"


def blocks_of(case: Case) -> str:
    return search_replace(case.change.path, case.unique)


def patch_of(case: Case) -> str:
    return v4a(updated(case.change.path, case.unique))


@dataclass(frozen=True, slots=True)
class Ours:
    """Holdfast, in memory; `knows_base` hands it what the author of the edit saw."""

    text: Callable[[Case], str]
    form: str
    knows_base: bool

    def __call__(self, case: Case) -> Answer:
        path, text = case.change.path, self.text(case)
        files = {path: case.target}
        bases = {path: case.change.before} if self.knows_base else {}
        watch = Watch()
        try:
            found = work_out(read_edit(text, self.form), files.get, bases)
        except EditError:
            return watch.answer(case.target, done=False)
        after = [file.after for file in found.files if file.path == path]
        whole = (after[0] or b"") if after else case.target
        return watch.answer(whole, done=not found.refusals)


def exactly(case: Case) -> Answer:
    """What most tools do: each block stands there once, to the byte, or nothing is done."""
    watch = Watch()
    text = case.target.decode()
    for hunk in case.unique:
        old, new = ("".join(f"{row.text}\n" for row in rows) for rows in (hunk.old, hunk.new))
        if not old or text.count(old) != 1:
            return watch.answer(case.target, done=False)
        text = text.replace(old, new)
    return watch.answer(text.encode(), done=True)


@dataclass(frozen=True, slots=True)
class Program:
    """A program that applies a diff in a directory; with `base`, git knows what the author saw."""

    words: tuple[str, ...]
    base: bool = False

    def __call__(self, case: Case) -> Answer:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, case.change.path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(case.target)
            diff = Path(folder, ".holdfast-bench.diff")
            diff.write_bytes(diff_of(case).encode())
            env = {"PATH": os.environ["PATH"], "HOME": folder, "GIT_CEILING_DIRECTORIES": "/"}

            def run(*words: str, given: bytes = b"") -> int:
                done = subprocess.run(
                    words, cwd=folder, env=env, input=given, capture_output=True, check=False
                )
                return done.returncode

            if self.base:
                run("git", "init", "-q")
                run("git", "hash-object", "-w", "--stdin", given=case.change.before)
                run("git", "add", "--", case.change.path)
            watch = Watch()
            code = run(*self.words, diff.name)
            timed = watch.answer(b"", done=code == 0)
            after = file.read_bytes() if file.exists() else b""
            if self.base and code != 0:
                after = case.target  # it leaves conflict markers and says so
            return timed._replace(after=after)


class Peer:
    """An engine in another environment, kept running."""

    def __init__(self, found: Found, driver: str, text: Callable[[Case], str]) -> None:
        self._text = text
        env = {**os.environ, "PYTHONPATH": f"{REPOSITORY}", "AIDER_ANALYTICS": "false"}
        self._process = subprocess.Popen(
            [found.python, "-m", f"bench.edits.drivers.{driver}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=REPOSITORY,
            env=env,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def __call__(self, case: Case) -> Answer:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {
            "path": case.change.path,
            "target": base64.b64encode(case.target).decode(),
            "edit": self._text(case),
        }
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline())
        after = base64.b64decode(said["after"])
        return Answer(after, said["done"], said["seconds"], said["cpu"])


OURS: dict[str, Engine] = {
    "holdfast search/replace": Ours(blocks_of, "search-replace", knows_base=True),
    "holdfast unified diff": Ours(diff_of, "unified", knows_base=True),
    "holdfast V4A": Ours(patch_of, "v4a", knows_base=True),
    "holdfast search/replace, base not known": Ours(blocks_of, "search-replace", knows_base=False),
    "holdfast unified diff, base not known": Ours(diff_of, "unified", knows_base=False),
}
PROGRAMS: dict[str, Engine] = {
    "exact, unique string": exactly,
    "git apply": Program(("git", "apply")),
    "git apply --3way": Program(("git", "apply", "--3way"), base=True),
    "patch": Program(("patch", "-p1", "-f", "-s", "-r", "-", "-i")),
    "patch -l -F3": Program(("patch", "-p1", "-f", "-s", "-r", "-", "-l", "-F3", "-i")),
}
DRIVERS: dict[str, tuple[str, str, Callable[[Case], str]]] = {
    "aider search/replace": ("aider", "aider_blocks", blocks_of),
    "aider udiff": ("aider", "aider_udiff", diff_of),
    "codex-apply-patch": ("codex-apply-patch", "codex", patch_of),
}


def programs() -> dict[str, Engine]:
    """Those that this machine has."""
    return {
        name: engine
        for name, engine in PROGRAMS.items()
        if not isinstance(engine, Program) or shutil.which(engine.words[0])
    }
