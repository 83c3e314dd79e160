"""The command without its start-up: a process that has loaded everything and forks for each call.

Most of what a short command costs is loading Python modules. Tests that call hundreds of commands get
a process of their own for each, with the arguments, directory, environment and streams they ask for,
but forked from one that is loaded already. Commands in the background, commands that are killed and
commands under another locale are started as anybody would start them: see `Project.start`.
"""

import atexit
import gc
import importlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

DEADLINE = 120
_MOST = 1 << 20
_OWN = ("LANG", "LC_", "PYTHON", "LD_")  # what only a fresh process can take note of


class Ended(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: bytes
    err: bytes


class Zygote:
    """The end that tests hold."""

    def __init__(self, modules: Sequence[str] = ()) -> None:
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        mine.settimeout(DEADLINE)
        self._socket = mine
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno()), *modules],
            pass_fds=[theirs.fileno()],
            cwd=Path(__file__).parents[2],
        )
        theirs.close()
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
            asked = json.dumps([list(words), str(cwd), dict(env)]).encode()
            fds = [given.fileno(), out.fileno(), err.fileno()]
            socket.send_fds(self._socket, [asked], fds)
            answer = self._socket.recv(64)
            assert answer, "the process that forks commands is gone"
            out.seek(0)
            err.seek(0)
            return Ended(int(answer), out.read(), err.read())

    def close(self) -> None:
        self._socket.close()
        self._process.wait(DEADLINE)


_kept: dict[tuple[str, ...], Zygote] = {}


def can_fork(env: Mapping[str, str], extra: Mapping[str, str]) -> bool:
    """Whether a forked command would behave as a fresh one."""
    return env.get("LANG") == "C.UTF-8" and not any(name.startswith(_OWN) for name in extra)


def zygote(*modules: str) -> Zygote:
    """The one of this test process that has loaded these modules too."""
    if modules not in _kept:
        _kept[modules] = Zygote(modules)
    return _kept[modules]


# --- the other end --------------------------------------------------------------------------------


def serve(fd: int, modules: Sequence[str] = ()) -> None:
    """Load everything, then fork whenever asked."""
    from holdfast.cli.main import COMMANDS, main

    for target in COMMANDS.values():
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
        *modules,
    ):
        importlib.import_module(name)
    gc.freeze()
    asking = socket.socket(fileno=fd)
    while True:
        asked, fds, _, _ = socket.recv_fds(asking, _MOST, 3)
        if not asked:
            return
        pid = os.fork()
        if not pid:
            asking.close()
            words, cwd, env = json.loads(asked)
            _become(cwd, env, fds)
            sys.argv = ["holdfast", *words]
            os._exit(_call(main))
        for handle in fds:
            os.close(handle)
        _, status = os.waitpid(pid, 0)
        asking.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(cwd: str, env: dict[str, str], fds: Sequence[int]) -> None:
    """Take over streams, directory, environment and signals."""
    for place, handle in enumerate(fds):
        os.dup2(handle, place)
        os.close(handle)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = io.TextIOWrapper(os.fdopen(0, "rb"), "utf-8", "surrogateescape")
    sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb"), "utf-8", "surrogateescape")
    sys.stderr = io.TextIOWrapper(
        os.fdopen(2, "wb"), "utf-8", "backslashreplace", line_buffering=True
    )


def _call(main: Callable[[], NoReturn]) -> int:
    """Be the command; its exit code."""
    try:
        main()
    except SystemExit as leave:
        sys.stdout.flush()
        sys.stderr.flush()
        return leave.code if isinstance(leave.code, int) else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    serve(int(sys.argv[1]), sys.argv[2:])
