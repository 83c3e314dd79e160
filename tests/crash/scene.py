"""A project in which the real command runs, what it says, and what its store holds."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple

import apsw

import holdfast
from tests.crash import plans
from tests.crash.shim import NONE, Fault, built
from tests.forge import Running, forge, is_started
from tests.gitrepo.repository import repository

KILLED = -signal.SIGKILL
HUNG = 1000
PATIENCE = 120.0
ACCEPTED = re.compile(r"^✓ ([\w.-]+): .*\n", re.MULTILINE)
REUSED = re.compile(r"^= \d+ reused: (.*?)(?: and \d+ more)?\n", re.MULTILINE)
RUN_ID = re.compile(r"r-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def library() -> dict[str, str]:
    """How a child process finds the package, if it is not installed, or not the one that is tested."""
    try:
        distribution("holdfast")
        is_found = "HOLDFAST_PLANTED" not in os.environ
    except PackageNotFoundError:
        is_found = False
    return {} if is_found else {"PYTHONPATH": str(Path(holdfast.__file__).parents[1])}


LIBRARY = library()
FORGE = {"PYTHONDONTWRITEBYTECODE": "1", **LIBRARY}
COMMAND = (sys.executable, "-m", "holdfast")  # never a shell shim: it is what runs this test


class Answer(NamedTuple):
    """What a command said until its end, or until it was ended."""

    code: int
    out: str
    err: str

    @property
    def acknowledged(self) -> set[str]:
        """The steps that it told somebody are accepted; a line that was cut short says nothing."""
        listed = (name for names in REUSED.findall(self.err) for name in names.split(", "))
        return {*ACCEPTED.findall(self.err), *listed}

    @property
    def runs(self) -> set[str]:
        return set(RUN_ID.findall(self.out + self.err))


@dataclass(frozen=True)
class Journal:
    """What a store holds, read with plain SQL: runs in order, and the facts of every journal."""

    runs: tuple[str, ...] = ()
    facts: Mapping[str, list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)

    @cached_property
    def accepted(self) -> Counter[tuple[str, str]]:
        """How often each step was accepted in each run."""
        return Counter(
            (name.removeprefix("run:"), body["step"])
            for name, facts in self.facts.items()
            for kind, body in facts
            if kind == "attempt_accepted"
        )

    @cached_property
    def steps(self) -> set[str]:
        """The steps that were accepted in any run."""
        return {step for _, step in self.accepted}

    @property
    def opened(self) -> list[tuple[str, str]]:
        """Runs and their keys, as the line's journal has them."""
        return [
            (body["run"], body["key"])
            for name, facts in self.facts.items()
            for kind, body in facts
            if name.startswith("line:") and kind == "run_opened"
        ]

    def ended(self, run: str) -> str | None:
        """How a run ended; None if it goes on, or rests and can be resumed."""
        kind, body = self.facts[f"run:{run}"][-1]
        return str(body["status"]) if kind == "run_ended" else None

    def befores(self) -> Iterator[tuple[str, str, set[str]]]:
        """For each run and step, what its attempts found at its output paths."""
        for name, facts in self.facts.items():
            found: dict[str, set[str]] = {}
            for kind, body in facts:
                if kind == "attempt_started" and body.get("before"):
                    found.setdefault(body["step"], set()).add(body["before"])
            for step, places in found.items():
                yield name, step, places

    def results(self) -> dict[str, str]:
        """The digest of each step's artifact in the last run."""
        found: dict[str, str] = {}
        for kind, body in self.facts[f"run:{self.runs[-1]}"]:
            if kind == "attempt_accepted":
                found[body["step"]] = body["digest"]
            elif kind == "steps_reused":
                found.update(_reused(body))
        return found


def _reused(body: dict[str, Any]) -> dict[str, str]:
    items = body["items"]
    return {
        (item["step"] if isinstance(item, dict) else item[0]): (
            item["digest"] if isinstance(item, dict) else item[2]
        )
        for item in items
    }


def read_journal(store: Path) -> Journal:
    """Read a store that may have been left in any state; call it on a copy."""
    if not (store / "state.db").is_file():
        return Journal()
    connection = apsw.Connection(str(store / "state.db"))
    try:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
        if "event" not in tables:
            return Journal()
        runs = tuple(
            str(row[0]) for row in connection.execute("SELECT id FROM run ORDER BY number")
        )
        facts: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        query = (
            "SELECT name, kind, body FROM event JOIN journal ON journal.id = place >> 40"
            " ORDER BY place"
        )
        for name, kind, body in connection.execute(query):
            facts.setdefault(str(name), []).append((str(kind), json.loads(str(body))))
        return Journal(runs, facts)
    finally:
        connection.close()


class Scene:
    """A project, its home, and beside it the file in which its steps note that they ran."""

    def __init__(self, folder: Path, command: Sequence[str] = COMMAND) -> None:
        self.folder = folder
        self.root = folder / "project"
        self.store = self.root / ".holdfast"
        self.log = folder / "ran.txt"
        self.command = tuple(command)
        self.pids: list[int] = []  # of the commands it started
        self.loaded: tuple[str, ...] = ()  # modules that its commands load besides
        self.env: dict[str, str] = {}

    def lines(self) -> int:
        """How often a step was begun or ended."""
        return self.log.read_bytes().count(b"\n") if self.log.exists() else 0

    def begun(self) -> Counter[str]:
        """How often each step was begun."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return Counter(line.removeprefix("begin ") for line in lines if line.startswith("begin "))

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        kept = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(home)}
        kept["HOLDFAST_WRITABLE"] = str(self.folder)  # steps note there that they ran
        return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **LIBRARY, **self.env, **more}

    def start(self, *words: str, fault: Fault = NONE, voice: str = "") -> Running:
        """A command whose words go into files: what it said before a kill is never lost in a pipe.

        Commands that run at the same time need different voices.
        """
        process = self._start(words, fault, voice)
        self.pids.append(process.pid)
        return process

    def _start(self, words: Sequence[str], fault: Fault, voice: str) -> Running:
        env = self.environment(fault.env)
        with (
            open(self.folder / f"out{voice}.txt", "wb") as out,
            open(self.folder / f"err{voice}.txt", "wb") as err,
            open(os.devnull, "rb") as nothing,
        ):
            streams = (nothing.fileno(), out.fileno(), err.fileno())
            as_anybody = fault.before or self.command != COMMAND
            is_forked = self.loaded or not is_started(self.folder.name, *words)
            if not as_anybody and is_forked:  # what is loaded besides takes seconds
                return forge(built(), FORGE, self.loaded).start(words, self.root, env, streams)
            return subprocess.Popen(
                [*fault.before, *self.command, *words],
                cwd=self.root,
                env=env,
                stdin=nothing,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def said(self, code: int, voice: str = "") -> Answer:
        names = (f"out{voice}.txt", f"err{voice}.txt")
        out, err = ((self.folder / name).read_bytes() for name in names)
        return Answer(code, out.decode(errors="replace"), err.decode(errors="replace"))

    def call(self, *words: str, fault: Fault = NONE) -> Answer:
        """One command to its end; one that does not end is a violation of its own."""
        process = self.start(*words, fault=fault)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return self.said(0)._replace(code=HUNG)
        return self.said(process.wait())

    def copied(self, name: str) -> "Scene":
        target = self.folder.with_name(f"{self.folder.name}-{name}")
        shutil.copytree(self.folder, target, symlinks=True)
        return self.at(target)

    def at(self, folder: Path) -> "Scene":
        """The like of it in another directory."""
        made = Scene(folder, self.command)
        made.loaded, made.env = self.loaded, self.env
        return made

    def remove(self) -> None:
        shutil.rmtree(self.folder)

    def files(self) -> dict[str, tuple[bool, str]]:
        """What the project holds beside the store: whether it is a program, and its digest."""
        found = {}
        for place, folders, names in os.walk(self.root):
            folders[:] = [
                name for name in folders if name not in {".holdfast", ".git", "__pycache__"}
            ]
            for name in names:
                path = Path(place, name)
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                found[str(path.relative_to(self.root))] = (os.access(path, os.X_OK), content)
        return found

    def snapshot(self) -> Path:
        """A copy of the store's files as they lie there, so that looking at it does not repair it."""
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        for place, _, names in os.walk(self.store):
            folder = copy / Path(place).relative_to(self.store)
            for name in names:
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(Path(place, name), folder)
        return copy

    def journal(self) -> Journal:
        """What the store holds, read from a copy of the database alone."""
        copy = self.folder / "read"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for name in ("state.db", "state.db-wal"):
            if (self.store / name).exists():
                shutil.copy(self.store / name, copy)
        return read_journal(copy)


def lay(folder: Path, plan: str = "reference", command: Sequence[str] = COMMAND) -> Scene:
    """A fresh project of one of the plans."""
    made = {
        "reference": (plans.reference, plans.REFERENCE_FILES),
        "small": (plans.small, plans.SMALL_FILES),
        "tiny": (plans.tiny, {}),
        "joint": (plans.joint, {}),
        "copies": (plans.copies, plans.COPIES_FILES),
    }
    build, files = made[plan]
    scene = Scene(folder, command)
    plans.write_project(scene.root, build(), files)
    if plan == "copies":
        repository(scene.root, {})
    return scene


class Reference(NamedTuple):
    """What an undisturbed run leaves: files, artifacts, how often each step began."""

    files: dict[str, tuple[bool, str]]
    results: dict[str, str]
    begun: Counter[str]


def reference_of(scene: Scene, *words: str) -> Reference:
    answer = scene.call("run", *words)
    assert answer.code == 0, answer.err
    journal = scene.journal()
    assert set(journal.results()) == journal.steps == answer.acknowledged
    return Reference(scene.files(), journal.results(), scene.begun())
