"""Commands without their start-up: real processes, forked from one that has loaded everything.

Most of a short command is the loading of Python modules, and a sweep starts thousands. Each still is a
process of its own with its own session, directory, environment and streams, and is really killed; the
shim, if there is one, is loaded in the process that forks and armed after the fork, so that it counts
from the command's own first call. The command ends as any program does, with all it does at its end.
"""

import atexit
import ctypes
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
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
DEADLINE = 120
_MOST = 1 << 20
_FAULTS = ("LD_PRELOAD", "FAULT_")


class Forked:
    """A forked command, used like a `Popen`."""

    def __init__(self, answer: socket.socket) -> None:
        self._answer = answer
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

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __del__(self) -> None:
        self._answer.close()
        os.close(self.pidfd)


class Forge:
    """The end that tests hold."""

    def __init__(self, library: str, env: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = mine
        preload = {"LD_PRELOAD": library} if library else {}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={**env, **preload, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
                cwd=ROOT,
            )
        atexit.register(self.close)

    def start(
        self, words: Sequence[str], cwd: Path, env: Mapping[str, str], streams: Sequence[int]
    ) -> Forked:
        """A command that reads and writes these streams; it leads its own session."""
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        asked = json.dumps([list(words), str(cwd), dict(env)]).encode()
        with theirs, self._lock:
            socket.send_fds(self._socket, [asked], [theirs.fileno(), *streams])
        mine.settimeout(DEADLINE)
        return Forked(mine)

    def close(self) -> None:
        self._socket.close()
        self._process.wait(DEADLINE)


_kept: dict[tuple[str, ...], Forge] = {}
_lock = threading.Lock()


def forge(library: str, env: Mapping[str, str]) -> Forge:
    """The one of this test process for this library; it ends when this process does."""
    key = (library, *sorted(f"{name}={value}" for name, value in env.items()))
    with _lock:
        if key not in _kept:
            _kept[key] = Forge(library, env)
        return _kept[key]


# --- the other end --------------------------------------------------------------------------------


def load() -> None:
    """Everything that a command would load."""
    main = importlib.import_module("holdfast.cli.main")
    for target in main.COMMANDS.values():
        importlib.import_module(target.partition(":")[0])
    for name in (
        "asyncio",
        "holdfast.engine.loop",
        "holdfast.executors.local",
        "holdfast.generators.python",
        "holdfast.generators.shell",
        "holdfast.guards.command",
        "holdfast.guards.compose",
        "holdfast.store.sqlite",
    ):
        importlib.import_module(name)
    gc.freeze()


class Asked(NamedTuple):
    """What a forked process is to be."""

    words: list[str]
    cwd: str
    env: dict[str, str]
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
            words, cwd, env = json.loads(asked)
            return Asked(words, cwd, env, fds[1:])
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
    os.setsid()
    for place, handle in enumerate(asked.streams):
        os.dup2(handle, place)
        os.close(handle)
    os.chdir(asked.cwd)
    sys.path[0] = asked.cwd
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


if __name__ == "__main__":
    load()
    from holdfast.cli.main import main

    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    sys.argv = ["holdfast", *asked.words]
    become(asked)
    main()
