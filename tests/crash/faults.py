"""Runs the real command, breaks it at a chosen call, lets it recover, and says what is wrong then.

Two ways to break it. `strace` injects a signal or an error into one kind of call; it counts the calls
of each thread for itself, so the calls of one thread hide those of another with the same number. The
shim (`shim.c`) counts all calls of the process together, so it reaches every one of them.

Nothing is asserted here: a `Report` collects what was tried, what fired, what was done, and every
violation, so that a test can also show that the checks are able to fail.
"""

import hashlib
import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw

import holdfast
from holdfast.engine.audit import audit
from holdfast.store.sqlite import SqliteStore
from tests.crash import plans

T = TypeVar("T")

CALLS = (
    *("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "sendto"),
    *("rename", "renameat", "renameat2", "link", "linkat"),
    *("unlink", "unlinkat", "mkdir", "mkdirat"),
)
SHIM_CALLS = (*CALLS, "ftruncate64", "rmdir")
KILLED = -signal.SIGKILL
ASKED_ALOUD = 4  # of so many cases one also starts the command `verify`
PATIENCE = 120.0
ACCEPTED = re.compile(r"^✓ ([\w.-]+): .*\n", re.MULTILINE)
REUSED = re.compile(r"^= reused \d+: (.*)\n", re.MULTILINE)
RUN_ID = re.compile(r"r-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def library() -> dict[str, str]:
    """How a child process finds the package, if it is not installed."""
    try:
        distribution("holdfast")
    except PackageNotFoundError:
        return {"PYTHONPATH": str(Path(holdfast.__file__).parents[1])}
    return {}


LIBRARY = library()
COMMAND = (sys.executable, "-m", "holdfast")  # never a shell shim: it is what runs this test


class Fault(NamedTuple):
    """One way to break a command: what stands before it, and what its environment has more."""

    name: str
    before: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


NONE = Fault("nothing")


def by_strace(strace: str, call: str, number: int, what: str = "signal=KILL") -> Fault:
    """The Nth call of one kind in any thread of the engine; programs it starts are left alone."""
    rule = f"inject={call}:{what}:when={number}"
    trace = ("-f", "-b", "execve", "-qq", "-o", os.devnull, "-e", f"trace={call}", "-e", rule)
    return Fault(f"{call} {number} {what}", (strace, *trace))


@dataclass(frozen=True)
class Shim:
    """The built library of `shim.c`."""

    library: str
    calls: tuple[str, ...] = SHIM_CALLS

    def fault(self, number: int, how: str = "kill", under: str = "", log: str = "") -> Fault:
        """Something happens at the Nth of the calls, over all threads."""
        env = {
            "LD_PRELOAD": self.library,
            "FAULT_AT": str(number),
            "FAULT_HOW": how,
            "FAULT_CALLS": f",{','.join(self.calls)},",
            "FAULT_UNDER": under,
            "FAULT_LOG": log,
        }
        return Fault(f"call {number} {how}", (), env)

    def count(self, scene: "Scene", *words: str, how: str = "kill", under: str = "") -> list[str]:
        """The names of the calls of an undisturbed command, in their order."""
        log = scene.folder / "calls.txt"
        answer = scene.call(*words, fault=self.fault(0, how, under, str(log)))
        assert answer.code == 0, answer.err
        return log.read_text().split()


def build_shim(compiler: str, folder: Path) -> Shim:
    target = folder / "shim.so"
    source = str(Path(__file__).with_name("shim.c"))
    words = [compiler, "-O1", "-shared", "-fPIC", source, "-o", str(target), "-ldl"]
    subprocess.run(words, check=True, capture_output=True)
    return Shim(str(target))


class Answer(NamedTuple):
    """What a command said until its end, or until it was ended."""

    code: int
    out: str
    err: str

    @property
    def acknowledged(self) -> set[str]:
        """The steps that it told somebody are accepted; a line that was cut short says nothing."""
        listed = (name for names in REUSED.findall(self.err) for name in names.split(", "))
        return {*ACCEPTED.findall(self.err), *(name.removesuffix(" …") for name in listed)}

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
        return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **LIBRARY, **more}

    def start(self, *words: str, fault: Fault = NONE) -> "subprocess.Popen[bytes]":
        """A command whose words go into files: what it said before a kill is never lost in a pipe."""
        with (
            open(self.folder / "out.txt", "wb") as out,
            open(self.folder / "err.txt", "wb") as err,
        ):
            return subprocess.Popen(
                [*fault.before, *self.command, *words],
                cwd=self.root,
                env=self.environment(fault.env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def said(self, code: int) -> Answer:
        out, err = ((self.folder / name).read_bytes() for name in ("out.txt", "err.txt"))
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
        return self.said(process.returncode)

    def copied(self, name: str) -> "Scene":
        target = self.folder.with_name(f"{self.folder.name}-{name}")
        shutil.copytree(self.folder, target, symlinks=True)
        return Scene(target, self.command)

    def remove(self) -> None:
        shutil.rmtree(self.folder)

    def files(self) -> dict[str, tuple[bool, str]]:
        """What the project holds beside the store: whether it is a program, and its digest."""
        found = {}
        for place, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in {".holdfast", "__pycache__"}]
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


HUNG = 1000


def lay(folder: Path, plan: str = "reference", command: Sequence[str] = COMMAND) -> Scene:
    """A fresh project of one of the plans."""
    made = {
        "reference": (plans.reference, plans.REFERENCE_FILES),
        "small": (plans.small, plans.SMALL_FILES),
        "tiny": (plans.tiny, {}),
    }
    build, files = made[plan]
    scene = Scene(folder, command)
    plans.write_project(scene.root, build(), files)
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


@dataclass
class Report:
    """What a sweep tried and found."""

    name: str
    tried: int = 0
    fired: int = 0
    kept: int = 0  # steps that were accepted before a fault and had to stay
    work: int = 0  # steps accepted in the end
    outcomes: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def line(self) -> str:
        """One line for a table."""
        outcomes = ", ".join(f"{name} {count}" for name, count in sorted(self.outcomes.items()))
        return (
            f"{self.name}: {self.tried} tried, {self.fired} fired, {self.kept} kept, "
            f"{self.work} accepted, {len(self.violations)} violations ({outcomes})"
        )


class Case:
    """One fault and what follows: the questions that must have the same answer every time."""

    def __init__(
        self,
        scene: Scene,
        reference: Reference,
        report: Report,
        name: str,
        forced: Collection[str] = (),
    ) -> None:
        self.scene = scene
        self._forced = forced  # steps that were asked for again, whatever stands
        self._reference = reference
        self._report = report
        self._name = name
        self._kept: set[str] = set()
        self._begun: Counter[str] = Counter()
        self._faults = 0
        self.sound = True
        with report.lock:
            report.tried += 1

    def violated(self, what: str) -> None:
        self.sound = False
        with self._report.lock:
            self._report.violations.append(f"{self._report.name}: {self._name}: {what}")

    def ended(self, how: str) -> None:
        with self._report.lock:
            self._report.outcomes[how] += 1

    def fired(self) -> None:
        self._faults += 1
        with self._report.lock:
            self._report.fired += 1

    def broken(self, answer: Answer) -> Journal:
        """Right after a fault: the store is whole, and everything that was told is in it."""
        copy, journal = self.scene.snapshot(), self.scene.journal()
        if journal.runs:
            self._verify(copy)
        elif (copy / "state.db").is_file() and journal.facts:
            self.violated("a journal without a run")
        self._told(answer, journal)
        self._not_again(journal)
        with self._report.lock:
            self._report.kept += len(journal.steps - self._kept)
        self._kept, self._begun = journal.steps, self.scene.begun()
        return journal

    def _verify(self, copy: Path) -> None:
        for problem in unsound(copy):
            self.violated(f"right after: {problem}")
        if self._report.tried % ASKED_ALOUD:
            return
        answer = self.scene.call("verify", "--json", "--store", str(copy))
        if answer.code != 0:
            self.violated(
                f"verify ended with {answer.code}: {answer.out[-400:]}{answer.err[-400:]}"
            )

    def _told(self, answer: Answer, journal: Journal) -> None:
        if unknown := answer.acknowledged - journal.steps:
            self.violated(f"told as accepted, but not in the journal: {sorted(unknown)}")
        if unknown := answer.runs - set(journal.runs):
            self.violated(f"told as a run, but not in the store: {sorted(unknown)}")
        if answer.code == HUNG:
            self.violated("the command did not end")
        if "Traceback" in answer.err:
            self.violated(f"a traceback: {answer.err[-1500:]}")

    def _not_again(self, journal: Journal) -> None:
        begun = self.scene.begun()
        if again := sorted(s for s in self._kept - {*self._forced} if begun[s] > self._begun[s]):
            self.violated(f"accepted before, and executed again: {again}")
        if lost := sorted(self._kept - journal.steps):
            self.violated(f"accepted before, and no longer: {lost}")

    def recovered(self, *words: str) -> Answer:
        """Go on without a fault, to the end; then everything is as if nothing had happened."""
        journal = self.scene.journal()
        if not words:
            unfinished = journal.runs and journal.ended(journal.runs[-1]) is None
            words = ("resume",) if unfinished else ("run",)
        answer = self.scene.call(*words)
        if answer.code != 0:
            self.violated(f"{' '.join(words)} ended with {answer.code}: {answer.err[-1500:]}")
        self.finished(answer)
        return answer

    def finished(self, answer: Answer) -> None:
        """The end: equal to the undisturbed run, nothing done twice, nothing left behind."""
        scene, wanted = self.scene, self._reference
        journal = scene.journal()
        if not journal.runs:
            self.violated("there is no run")
            return
        self._told(answer, journal)
        self._not_again(journal)
        if (status := journal.ended(journal.runs[-1])) != "completed":
            self.violated(f"the last run is {status}")
        if open_runs := [run for run in journal.runs if journal.ended(run) is None]:
            self.violated(f"runs are left open: {open_runs}")
        if twice := [key for key, count in journal.accepted.items() if count > 1]:
            self.violated(f"accepted twice in one run: {twice}")
        if (results := journal.results()) != wanted.results:
            self.violated(f"other artifacts: {_difference(results, wanted.results)}")
        if (files := scene.files()) != wanted.files:
            self.violated(f"other files: {_difference(files, wanted.files)}")
        begun = scene.begun()
        most = {step: count * (1 + self._faults) for step, count in wanted.begun.items()}
        unforced = {step: count for step, count in begun.items() if step not in self._forced}
        if many := [step for step, count in unforced.items() if count > most.get(step, 0)]:
            self.violated(f"executed more often than a fault explains: {many}")
        for run, step, places in journal.befores():
            if len(places) > 1:
                self.violated(f"outputs of {step} were not put back between its attempts in {run}")
        if holders := held(scene.store):
            self.violated(f"the line is still held: {holders}")
        for problem in (*left_behind(scene), *left_running(journal.runs), *unsound(scene.store)):
            self.violated(problem)
        with self._report.lock:
            self._report.work += len(results)

    def close(self) -> None:
        """A scene that showed nothing wrong is not kept."""
        if self.sound:
            self.scene.remove()


def _difference(found: Mapping[str, object], wanted: Mapping[str, object]) -> str:
    names = sorted(
        name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name)
    )
    return ", ".join(f"{name} is {found.get(name)}" for name in names)


def left_behind(scene: Scene) -> Iterator[str]:
    """Temporary files, journals of edits, and rooms of attempts that nobody needs any more."""
    for place, _, names in os.walk(scene.root):
        for name in names:
            path = str(Path(place, name).relative_to(scene.root))
            if name.startswith(".holdfast-") and name.endswith(".tmp"):
                yield f"a temporary file is left: {path}"
            elif path.startswith(".holdfast/apply/"):
                yield f"a journal of an edit is left: {path}"
    for kind in ("apply", "scratch"):
        for room in (scene.store / kind).glob("*/*"):
            yield f"a directory is left: {room.relative_to(scene.root)}"


def marked(runs: Sequence[str]) -> Iterator[int]:
    """Processes that carry the mark of one of these runs in their environment."""
    names = [run.encode() for run in runs]
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            environment = (place / "environ").read_bytes()
            state = (place / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in {"Z", "X"} and any(
            part.startswith(b"HOLDFAST_MARK=") and name in part
            for part in environment.split(b"\0")
            for name in names
        ):
            yield int(place.name)


def left_running(runs: Sequence[str]) -> list[str]:
    return [f"a process is left: {pid}" for pid in marked(runs)]


def unsound(store: Path) -> list[str]:
    """What `verify` finds, asked in this process: a command costs its start."""
    with SqliteStore.open(str(store), create=False, readonly=True) as opened:
        return [f"verify: {problem}" for problem in audit(opened).problems]


def held(store: Path) -> list[str]:
    """Engines that say they hold a line."""
    connection = apsw.Connection(str(store / "state.db"))
    try:
        return [str(row[0]) for row in connection.execute("SELECT engine FROM holder")]
    finally:
        connection.close()


def spread(calls: Sequence[str], size: int, seed: int) -> list[int]:
    """Numbers of calls, chosen by lot, the same share of each kind so that rare ones are among them."""
    dice = random.Random(seed)
    by_kind: dict[str, list[int]] = {}
    for number, name in enumerate(calls, 1):
        by_kind.setdefault(name, []).append(number)
    for numbers in by_kind.values():
        dice.shuffle(numbers)
    chosen: list[int] = []
    while len(chosen) < min(size, len(calls)):
        for numbers in by_kind.values():
            if numbers and len(chosen) < size:
                chosen.append(numbers.pop())
    return sorted(chosen)


def each(work: Callable[[T], None], items: Iterable[T], threads: int = 2) -> None:
    """Do the work for every item, some at once; the first error is raised."""
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, items):
            pass


def until(condition: Callable[[], T], process: "subprocess.Popen[bytes]") -> T:
    """Ask again and again until the answer is true, while the process lives; the last answer."""
    ended = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        while not (found := condition()) and not poll.poll(10):
            pass
        return found
    finally:
        os.close(ended)


def kill_after(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    """Kill a process after a while unless it ends before; tells whether it was killed."""
    ended = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        if poll.poll(max(0.0, seconds) * 1000):
            process.wait()
            return False
        process.kill()
        return process.wait() == KILLED
    finally:
        os.close(ended)
