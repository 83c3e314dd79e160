"""A project in a temporary folder, driven by the real command in processes of its own."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw

import holdfast
from tests.forge import Ended, Running, can_fork, forge, is_started

DEADLINE = 60.0
COMMAND = [sys.executable, "-m", "holdfast"]
T = TypeVar("T")


def until(condition: Callable[[], T], what: str = "", deadline: float = DEADLINE) -> T:
    """Ask again and again until the answer is true; the answer. Fails after the deadline."""
    end = time.monotonic() + deadline
    pause = threading.Event()
    while not (found := condition()):
        assert time.monotonic() < end, f"it never came to: {what or condition}"
        pause.wait(0.02)
    return found


def _library() -> dict[str, str]:
    """How a child process finds the package, if it is not installed."""
    try:
        distribution("holdfast")
    except PackageNotFoundError:
        return {"PYTHONPATH": str(Path(holdfast.__file__).parents[1])}
    return {}


LIBRARY = _library()


class Answer(NamedTuple):
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on stdout: anything else there is an error."""
        return json.loads(self.out)


class Run(NamedTuple):
    """A run as `--json` tells it, and the exit code."""

    code: int
    data: Any
    err: str

    @property
    def id(self) -> str:
        return str(self.data["run"])

    def field(self, name: str) -> dict[str, Any]:
        """One field of every step."""
        return {step: value[name] for step, value in self.data["steps"].items()}

    @property
    def states(self) -> dict[str, str]:
        return self.field("state")

    @property
    def codes(self) -> dict[str, str | None]:
        """The code of each step's reason."""
        reasons = self.field("reason")
        return {step: reason and reason["code"] for step, reason in reasons.items()}

    def because(self, step: str) -> list[str]:
        return list(self.data["steps"][step]["reason"]["because"])

    @property
    def refs(self) -> dict[str, str]:
        return self.field("config_ref")

    @property
    def digests(self) -> dict[str, str | None]:
        return self.field("digest")


class Project:
    """A directory with a plan; beside it, outside, a file in which steps note that they ran."""

    def __init__(self, folder: Path) -> None:
        self.folder = self.granted = folder  # steps note beside the project that they ran
        self.root = folder / "project"
        self.root.mkdir()
        self.home = folder / "home"
        self.home.mkdir()
        self.log = folder / "ran.txt"
        self.log.touch()
        self.gates = folder / "gates"
        self.gates.mkdir()
        self.loaded: tuple[str, ...] = ()  # modules that commands find loaded, to start faster
        self._read = 0
        self._started: list[Running] = []
        self._strays: list[int] = []  # handles of processes that must be gone by themselves

    # --- files ------------------------------------------------------------------------------------

    def write(self, path: str, text: str, *, executable: bool | None = None) -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        if executable is not None:
            place.chmod(0o755 if executable else 0o644)
        return place

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def has(self, path: str) -> bool:
        return (self.root / path).exists()

    def plan(
        self, steps: Mapping[str, Mapping[str, Any]], *, file: str = "plan.yaml", **top: Any
    ) -> None:
        """Write the plan. JSON is YAML, and cannot be indented wrongly."""
        body = {"name": "demo", **top, "steps": steps}
        self.write(file, json.dumps(body, indent=1))

    @property
    def store(self) -> Path:
        return self.root / ".holdfast"

    # --- what steps do ----------------------------------------------------------------------------

    def sh(self, body: str = "echo $HOLDFAST_STEP") -> str:
        """A shell line that notes the execution first."""
        return f"echo $HOLDFAST_STEP >> {self.log}; {body}"

    def gate(self, name: str) -> str:
        """A piece of shell that waits until the test opens the gate (or half a minute is over)."""
        place = self.gates / name
        ask = f"until [ -e {place} ]; do n=$((n+1)); [ $n -lt 900 ] || exit 99; sleep 0.03; done"
        return f"n=0; {ask}"

    def has_at_gate(self, name: str) -> bool:
        """Whether a process waits at a gate: one of a killed engine is ended a moment later."""
        place = os.fsencode(self.gates / name)
        for pid in filter(str.isdigit, os.listdir("/proc")):  # they may go while they are looked at
            with suppress(OSError):
                if place in Path("/proc", pid, "cmdline").read_bytes():
                    return True
        return False

    def open(self, name: str) -> None:
        (self.gates / name).touch()

    def ran(self) -> list[str]:
        """The steps that were executed since the last call, sorted."""
        lines = self.log.read_text().split()
        fresh = lines[self._read :]
        self._read = len(lines)
        return sorted(fresh)

    def begun(self) -> list[str]:
        """All that was ever executed, in order."""
        return self.log.read_text().split()

    # --- commands ---------------------------------------------------------------------------------

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        kept = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(self.home)}
        kept["HOLDFAST_WRITABLE"] = str(self.granted)
        return {**kept, **LIBRARY, **(extra or {})}

    def call(
        self,
        *words: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: bytes = b"",
    ) -> Answer:
        """One command, to its end."""
        ended = self.ended(*words, env=env, cwd=cwd, stdin=stdin)
        return Answer(ended.code, ended.out.decode(), ended.err.decode())

    def ended(
        self,
        *words: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: bytes = b"",
    ) -> Ended:
        """One command, to its end; what it said as it is."""
        whole = self.environment(env)
        if can_fork(whole, env or {}):
            return forge("", LIBRARY, self.loaded).run(words, cwd or self.root, whole, stdin)
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=cwd or self.root,
            env=whole,
            input=stdin,
            capture_output=True,
            timeout=120,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def _as_run(self, words: Iterable[str], env: Mapping[str, str] | None) -> Run:
        answer = self.call(*words, "--json", env=env)
        assert answer.out, answer.err
        data = answer.json
        assert "error" not in data, answer.err
        return Run(answer.code, data, answer.err)

    def run(self, *words: str, env: Mapping[str, str] | None = None) -> Run:
        return self._as_run(["run", *words], env)

    def resume(self, *words: str, env: Mapping[str, str] | None = None) -> Run:
        return self._as_run(["resume", *words], env)

    def retry(self, *words: str) -> Run:
        return self._as_run(["retry", *words], None)

    def status(self, *words: str) -> Run:
        return self._as_run(["status", *words], None)

    def refused(self, code: int, *words: str, env: Mapping[str, str] | None = None) -> str:
        """A command that must end with this code; what it said about it."""
        answer = self.call(*words, env=env)
        assert answer.code == code, (answer.code, answer.out, answer.err)
        assert "Traceback" not in answer.err
        return answer.err

    def ok(self, *words: str, stdin: bytes = b"") -> Answer:
        answer = self.call(*words, stdin=stdin)
        assert answer.code == 0, (answer.code, answer.out, answer.err)
        return answer

    def why(self, step: str, *words: str) -> Any:
        return self.ok("why", step, *words, "--json").json

    def events(self, run: str = "@") -> list[Any]:
        return [json.loads(line) for line in self.ok("trace", run, "--json").out.splitlines()]

    def shown(self, ref: str) -> bytes:
        """The bytes of an artifact or of any stored content that `show` finds."""
        ended = self.ended("show", ref)
        assert ended.code == 0, ended.err.decode()
        return ended.out

    # --- engines in the background ------------------------------------------------------------------

    def start(self, *words: str, env: Mapping[str, str] | None = None) -> Running:
        """A command that goes on beside the test; ended with the test if it has not ended itself.

        It leads a session, as in a shell: a signal to its group is its own affair.
        """
        whole = self.environment(env)
        process: Running
        if self.may_fork(words, whole, env or {}):
            process = forge("", LIBRARY, self.loaded).begin(words, self.root, whole)
        else:
            process = subprocess.Popen(
                [*COMMAND, *words],
                cwd=self.root,
                env=whole,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def may_fork(
        self, words: Sequence[str], whole: Mapping[str, str], extra: Mapping[str, str]
    ) -> bool:
        return can_fork(whole, extra) and not is_started(self.folder.name, *words)

    def begun_by(self, *words: str, step: str) -> Running:
        """An engine that has just begun a step."""
        before = self.begun().count(step)
        process = self.start(*words)
        until(
            lambda: self.begun().count(step) > before or process.poll() is not None,
            f"'{step}' begins",
        )
        assert self.begun().count(step) > before, finish(process)
        return process

    def end(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            with suppress(ValueError):  # its pipes were read already
                process.communicate()
        for handle in self._strays:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.close(handle)

    def watch(self, *pids: int) -> None:
        """End these with the test if they are still there; unlike a number, a handle is never another's."""
        for pid in pids:
            with suppress(ProcessLookupError):
                self._strays.append(os.pidfd_open(pid))

    # --- the store from outside ---------------------------------------------------------------------

    def database(self) -> apsw.Connection:
        return apsw.Connection(str(self.store / "state.db"))


def finish(process: Running, within: float = DEADLINE) -> Answer:
    """Wait for a command that was started."""
    out, err = process.communicate(timeout=within)
    return Answer(process.wait(), out.decode(), err.decode())


def finish_run(process: Running, within: float = DEADLINE) -> Run:
    """Wait for a `run --json` that was started."""
    answer = finish(process, within)
    assert answer.out, answer.err
    data = answer.json
    assert "error" not in data, answer.err
    return Run(answer.code, data, answer.err)


def kill(process: Running) -> None:
    """End an engine as a power failure would."""
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=DEADLINE)


def alive(pid: int) -> bool:
    """Whether a process is there and not just waiting to be forgotten."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}
