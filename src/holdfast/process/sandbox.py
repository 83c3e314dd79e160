"""Confine a command by bubblewrap: what this machine offers, and the arguments that ask for it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.errors import outside_fault
from holdfast.process.tree import MARK

_TRIAL_SECONDS = 15.0
STATUS_MOST = 4096  # bytes; its report is two short lines
# bubblewrap refuses more words than this, its own and the command's together.
_MOST_WORDS = 9000

# bubblewrap reports a death by signal n as exit code 128 + n, as a shell does. These are read back
# as signals. SIGHUP is not among them: 129 is what git exits with on wrong usage.
_DEADLY = frozenset(
    int(number)
    for number in (
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGILL,
        signal.SIGTRAP,
        signal.SIGABRT,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGKILL,
        signal.SIGUSR1,
        signal.SIGSEGV,
        signal.SIGUSR2,
        signal.SIGPIPE,
        signal.SIGALRM,
        signal.SIGTERM,
        signal.SIGXCPU,
        signal.SIGXFSZ,
        signal.SIGSYS,
    )
)


@dataclass(frozen=True, slots=True)
class Confinement:
    """What this machine offers; `reason` says why there is no pid namespace."""

    pid_namespace: bool
    program: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """What bubblewrap reported: its first process as seen from here, and how the command ended.

    Without a code the command was never executed, or bubblewrap was killed.
    """

    init: int | None = None
    code: int | None = None


@functools.cache
def probe() -> Confinement:
    """Try bubblewrap once, with the very options commands will run under."""
    program = shutil.which("bwrap")
    if program is None:
        return Confinement(pid_namespace=False, reason="bubblewrap (bwrap) is not installed")
    try:
        trial, status = _try(program)
    except (OSError, subprocess.TimeoutExpired) as error:
        if (fault := outside_fault(error)) is not None:  # says nothing about bubblewrap
            raise fault from error
        return Confinement(pid_namespace=False, reason=f"bubblewrap does not run: {error}")
    if trial.returncode != 0 or status.code is None:
        said = trial.stderr.decode(errors="replace").strip() or f"exit code {trial.returncode}"
        return Confinement(pid_namespace=False, reason=f"bubblewrap does not work here: {said}")
    return Confinement(pid_namespace=True, program=program)


def _try(program: str) -> tuple[subprocess.CompletedProcess[bytes], Status]:
    arguments = scratch_file(packed(options({})))
    report, report_end = os.pipe()
    os.set_blocking(report, False)
    words = [program, "--args", str(arguments), "--json-status-fd", str(report_end)]
    try:
        trial = subprocess.run(
            [*words, "--", program, "--version"],
            pass_fds=(arguments, report_end),
            env={**os.environ, MARK: f"slot#{os.getpid()}.0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRIAL_SECONDS,
            check=False,
        )
        status = Status()
        with contextlib.suppress(BlockingIOError):
            status = parse_status(os.read(report, STATUS_MOST))
    finally:
        for descriptor in (arguments, report, report_end):
            os.close(descriptor)
    if status.init is not None:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(status.init, 0)  # ours if orphans come to this process
    return trial, status


def options(env: Mapping[str, str]) -> list[str]:
    """The confinement itself: a pid namespace with its own /proc, the file system as it is.

    `--new-session` gives the command a process group of its own inside the namespace: without it
    `kill 0` in a script would reach bubblewrap. The environment is set from inside, so that a
    variable such as LD_PRELOAD acts on the command and not on bubblewrap.
    """
    words = ["--unshare-pid", "--die-with-parent", "--new-session"]
    words += ["--dev-bind", "/", "/", "--proc", "/proc", "--clearenv"]
    for name, value in env.items():
        words += ["--setenv", name, value]
    return words


def too_long(argv: Sequence[str], env: Mapping[str, str]) -> bool:
    return len(options(env)) + len(argv) + len(("--args", "", "--json-status-fd", "", "--")) >= (
        _MOST_WORDS
    )


def packed(words: Sequence[str]) -> bytes:
    """Words as `--args` reads them from a descriptor; in argv other users could read secrets."""
    return b"".join(os.fsencode(word) + b"\0" for word in words)


def scratch_file(content: bytes) -> int:
    """A descriptor of an unnamed file that holds `content`, at its start; the caller closes it."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("holdfast", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def parse_status(report: bytes) -> Status:
    """Read what `--json-status-fd` wrote so far: one object a line."""
    init: int | None = None
    code: int | None = None
    for line in report.splitlines(keepends=True):
        if line.endswith(b"\n"):
            fields = json.loads(line)
            init = fields.get("child-pid", init)
            code = fields.get("exit-code", code)
    return Status(init=init, code=code)


def outcome(code: int) -> int:
    """A code that bubblewrap reported, in the form of `Popen.returncode`: negative for a signal.

    A command that itself exits with 128 + n cannot be told from one that signal n ended.
    """
    return 128 - code if code - 128 in _DEADLY else code
