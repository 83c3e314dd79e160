"""Commands without their start-up: real processes, forked from one that has loaded everything.

Most of a short command is the loading of Python modules, and tests start thousands. Each still is a
process of its own with its own session, directory, environment and streams, and is really killed; the
shim, if there is one, is loaded in the process that forks and armed after the fork, so that it counts
from the command's own first call. The command ends as any program does, with all it does at its end,
unless the test only wants its answer. Some are started as anybody would start them: see `is_started`.
"""

import atexit
import ctypes
import fcntl
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

ROOT = Path(__file__).parents[1]
DEADLINE = 120
STARTED = 12  # of so many commands one is started as anybody would; the others are forked
_MOST = 1 << 20
_FAULTS = ("LD_PRELOAD", "FAULT_")
_OWN = ("LANG", "LC_", "PYTHON", "LD_")  # what only a fresh process can take note of

# What a forked process is: one that is asked and answers, one with a session of its own, one with the
# terminal that it is given as its streams, or one that does not hear when that terminal ends.
Kind = Literal["asked", "apart", "terminal", "deaf"]


class Ended(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: bytes
    err: bytes


class Forked:
    """A forked command, used like a `Popen`."""

    def __init__(self, answer: socket.socket) -> None:
        self._answer = answer
        self.stdout: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None
        told, fds, _, _ = socket.recv_fds(answer, 64, 1)
        assert told, "the process that forks commands is gone"
        self.pid = int(told)
        self.pidfd = fds[0]
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._answer.settimeout(timeout)
            try:
                self.returncode = int(self._answer.recv(64))
            except TimeoutError:
                raise subprocess.TimeoutExpired("holdfast", timeout or 0.0) from None
            self._answer.close()
        return self.returncode

    def poll(self) -> int | None:
        readable = self.returncode is None and select.select([self._answer], [], [], 0)[0]
        return self.wait() if readable else self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Wait for the end; all that was written and not read yet."""
        end = time.monotonic() + (timeout or DEADLINE)
        said = {stream: b"" for stream in (self.stdout, self.stderr) if stream is not None}
        reading = list(said)
        while reading:
            ready = select.select(reading, [], [], max(0.0, end - time.monotonic()))[0]
            if not ready:
                raise subprocess.TimeoutExpired("holdfast", timeout or DEADLINE)
            for stream in ready:
                piece = os.read(stream.fileno(), 65536)
                said[stream] += piece
                if not piece:
                    reading.remove(stream)
                    stream.close()
        self.wait(max(0.0, end - time.monotonic()))
        out, err = said.values() if said else (b"", b"")
        return out, err

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __del__(self) -> None:
        self._answer.close()
        os.close(self.pidfd)
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()


Running = subprocess.Popen[bytes] | Forked


class Forge:
    """The end that tests hold."""

    def __init__(self, library: str, env: Mapping[str, str], modules: Sequence[str]) -> None:
        self._lock = threading.Lock()
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = mine
        preload = {"LD_PRELOAD": library} if library else {}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), *modules],
                pass_fds=[theirs.fileno()],
                env={**env, **preload, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
                cwd=ROOT,
            )
        atexit.register(self.close)

    def run(self, words: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: bytes) -> Ended:
        """One command, to its end."""
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write(stdin)
            given.seek(0)
            streams = [given.fileno(), out.fileno(), err.fileno()]
            code = self.start(words, cwd, env, streams, "asked").wait(DEADLINE)
            out.seek(0)
            err.seek(0)
            return Ended(code, out.read(), err.read())

    def begin(self, words: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Forked:
        """A command that goes on; what it says comes through pipes."""
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            forked = self.start(words, cwd, env, (nothing, out_end, err_end))
        finally:
            for handle in (nothing, out_end, err_end):
                os.close(handle)
        forked.stdout, forked.stderr = os.fdopen(out, "rb", 0), os.fdopen(err, "rb", 0)
        return forked

    def start(
        self,
        words: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        streams: Sequence[int],
        kind: Kind = "apart",
    ) -> Forked:
        """A command that reads and writes these streams."""
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        asked = json.dumps([list(words), str(cwd), dict(env), kind]).encode()
        with theirs, self._lock:
            socket.send_fds(self._socket, [asked], [theirs.fileno(), *streams])
        mine.settimeout(DEADLINE)
        return Forked(mine)

    def fileno(self) -> int:
        """Where commands are asked for; a process that inherits it may ask itself."""
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()
        self._process.wait(DEADLINE)


_kept: dict[tuple[str, ...], Forge] = {}
_lock = threading.Lock()


def forge(library: str, env: Mapping[str, str], modules: Sequence[str] = ()) -> Forge:
    """The one of this test process for this library and these modules; it ends when this process does."""
    key = (library, *modules, *sorted(f"{name}={value}" for name, value in env.items()))
    with _lock:
        if key not in _kept:
            _kept[key] = Forge(library, env, modules)
        return _kept[key]


def can_fork(env: Mapping[str, str], extra: Mapping[str, str]) -> bool:
    """Whether a forked command would behave as a fresh one."""
    return env.get("LANG") == "C.UTF-8" and not any(name.startswith(_OWN) for name in extra)


def is_started(*words: str) -> bool:
    """Whether a command is one of those that are started, not forked; always the same ones."""
    return zlib.crc32(" ".join(words).encode()) % STARTED == 0


# --- the other end --------------------------------------------------------------------------------


def load(modules: Sequence[str]) -> None:
    """Everything that a command would load, and these modules."""
    main = importlib.import_module("holdfast.cli.main")
    for target in main.COMMANDS.values():
        importlib.import_module(target.partition(":")[0])
    for name in (
        "asyncio",
        "encodings.ascii",
        "encodings.utf_8_sig",
        "holdfast.config.providers",
        "holdfast.config.sandbox",
        "holdfast.engine.declared",
        "holdfast.engine.loop",
        "holdfast.executors.elsewhere",
        "holdfast.executors.local",
        "holdfast.executors.queue",
        "holdfast.generators.agent",
        "holdfast.generators.gather",
        "holdfast.generators.human",
        "holdfast.generators.llm",
        "holdfast.generators.python",
        "holdfast.generators.shell",
        "holdfast.guards.command",
        "holdfast.guards.compose",
        "holdfast.guards.pattern",
        "holdfast.store.memory",
        "holdfast.store.sqlite",
        "holdfast.gitrepo.former",
        "holdfast.gitrepo.opening",
        "holdfast.worker.validate",
        "ruamel.yaml.mergevalue",
        *modules,
    ):
        importlib.import_module(name)
    gc.freeze()


class Asked(NamedTuple):
    """What a forked process is to be."""

    words: list[str]
    cwd: str
    env: dict[str, str]
    kind: Kind
    streams: list[int]


def serve(asking: socket.socket) -> Asked:
    """Fork whenever asked; returns only in a child, with what was asked of it."""
    awake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake)
    before = signal.signal(signal.SIGCHLD, lambda *_: None)
    children: dict[int, socket.socket] = {}
    while True:
        if awake in select.select([asking.fileno(), awake], [], [])[0]:
            os.read(awake, 4096)
            _reap(children)
            continue
        asked, fds, _, _ = socket.recv_fds(asking, _MOST, 4)
        if not asked:
            os._exit(0)
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, before)
            for handle in (awake, wake, fds[0], asking.detach()):
                os.close(handle)
            for answer in children.values():
                answer.close()
            words, cwd, env, kind = json.loads(asked)
            return Asked(words, cwd, env, kind, fds[1:])
        children[pid] = answer = socket.socket(fileno=fds[0])
        pidfd = os.pidfd_open(pid)
        with suppress(OSError):
            socket.send_fds(answer, [str(pid).encode()], [pidfd])
        for handle in (pidfd, *fds[1:]):
            os.close(handle)


def _reap(children: dict[int, socket.socket]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with children.pop(pid) as answer, suppress(OSError):  # nobody may wait for it
            answer.send(str(os.waitstatus_to_exitcode(status)).encode())


def become(asked: Asked) -> None:
    """Take over session, streams, directory and environment, and arm the shim."""
    if asked.kind != "asked":
        os.setsid()
    for place, handle in enumerate(asked.streams):
        os.dup2(handle, place)
        os.close(handle)
    if asked.kind in {"terminal", "deaf"}:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP, signal.SIG_IGN if asked.kind == "deaf" else signal.SIG_DFL)
    os.chdir(asked.cwd)
    sys.path[0] = os.path.dirname(sys.executable)  # as the installed program has it
    os.environ.clear()
    os.environ.update(asked.env)
    if "FAULT_AT" in asked.env:
        _arm()
    for name in [name for name in os.environ if name.startswith(_FAULTS)]:
        del os.environ[name]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = io.TextIOWrapper(os.fdopen(0, "rb", closefd=False), "utf-8", "surrogateescape")
    sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False), "utf-8", "surrogateescape")
    sys.stderr = io.TextIOWrapper(
        os.fdopen(2, "wb", closefd=False), "utf-8", "backslashreplace", line_buffering=True
    )


def _arm() -> None:
    shim: Any = ctypes.CDLL(None)
    shim.fault_arm()


def _answer() -> None:
    """Be the command, and end without what a program does at its end."""
    try:
        main()
    except SystemExit as leave:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(leave.code if isinstance(leave.code, int) else 0)


if __name__ == "__main__":
    load(sys.argv[2:])
    from holdfast.cli.main import main

    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    sys.argv = ["holdfast", *asked.words]
    become(asked)
    if asked.kind == "asked":
        _answer()
    main()
