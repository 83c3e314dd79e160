"""Run one command: capped and streamed output, a timeout, and no descendant left behind."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from holdfast.errors import ProcessError, outside_fault
from holdfast.process.child import Child
from holdfast.process.launch import Confine, Started, check, start
from holdfast.process.lookup import Program, Refusal, find
from holdfast.process.output import Ends, Reader, Start
from holdfast.process.sandbox import Confinement, probe, scratch_file
from holdfast.process.slots import Slots, Tenant
from holdfast.process.tree import sweep, sweep_slots

__all__ = [
    "Child",
    "Command",
    "Completed",
    "Confinement",
    "Slots",
    "probe",
    "run",
    "sweep",
    "sweep_slots",
]

Ended = Literal["exited", "signalled", "timed_out", "overflow", "not_found", "not_executable"]

_PATIENCE = 0.003
_NOT_EXECUTED = (126, 127)  # what setpriv exits with when it cannot execute a program


@dataclass(frozen=True, slots=True)
class Command:
    """One command. `env` is the whole environment but for PWD and HOLDFAST_MARK.

    HOLDFAST_MARK begins with `mark`; a suffix makes it unique to this run. More than `keep` bytes
    of stdout end the command; of stderr the first and the last of `keep_err` bytes stay. Without
    `stdin` the command reads /dev/null.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    timeout: float | None = None
    mark: str = ""
    keep: int = 256 * 2**20
    keep_err: int = 16 * 2**20
    stdin: bytes | None = None
    confine: Confine = "auto"

    def __post_init__(self) -> None:
        check(self.argv, self.cwd, self.env, self.mark)
        if self.timeout is not None and self.timeout <= 0:
            raise ProcessError(f"a timeout of {self.timeout} s leaves no time")
        if self.keep < 0 or self.keep_err < 0:
            raise ProcessError("a limit on output cannot be negative")


@dataclass(frozen=True, slots=True)
class Completed:
    """How a command ended. `code` is None if a signal ended it, or it never ran.

    Confined without a slot, exit codes 130 and above that are 128 plus a deadly signal are read as
    that signal.
    """

    code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    dropped: int
    duration: float
    ended: Ended
    confined: bool


async def run(
    command: Command,
    *,
    on_output: Callable[[str, bytes], None] | None = None,
    slots: Slots | None = None,
) -> Completed:
    """Run a command to its end; when this returns or raises, none of its processes is left.

    `slots` are used where commands can be confined. `on_output` is called with "stdout" or "stderr"
    and each chunk as it comes; what it raises ends the command and is raised here. A cancellation
    ends the command first.
    """
    program = find(command.argv[0], command.cwd, command.env)
    if program.refusal is not None:
        return Completed(None, None, b"", b"", 0, 0.0, program.refusal, confined=False)
    began = time.monotonic()
    running = _Running(command, _start(command, program, slots), on_output)
    try:
        reason = await running.wait()
        return running.completed(reason, time.monotonic() - began)
    finally:
        running.close()


class _Running:
    """What is held while a command runs: its processes, its readers, its timer."""

    def __init__(
        self,
        command: Command,
        started: Started | Tenant,
        on_output: Callable[[str, bytes], None] | None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._started = started
        self._on_output = on_output
        self._stdout = Start(command.keep)
        self._stderr = Ends(command.keep_err)
        self._reason: asyncio.Future[str] = loop.create_future()
        self._readers = (
            Reader(started.stdout, self._take_stdout, self._fail),
            Reader(started.stderr, self._take_stderr, self._fail),
        )
        self._timer = (
            None
            if command.timeout is None
            else loop.call_later(command.timeout, self._settle, "timed_out")
        )
        # Most commands in slots end before it pays to watch their output; a pipe holds it till then.
        self._patience = (
            loop.call_later(_PATIENCE, self._listen) if isinstance(started, Tenant) else None
        )
        if self._patience is None:
            self._listen()
        started.when_ended(self._exited)

    async def wait(self) -> str:
        try:
            reason = await self._reason
        except asyncio.CancelledError:
            await self._started.finish()
            raise
        await self._started.finish()
        for reader in self._readers:
            reader.drain()
            if reader.error is not None:
                raise reader.error
        return "overflow" if self._stdout.is_over else reason

    def completed(self, reason: str, duration: float) -> Completed:
        stderr, dropped = self._stderr.content()
        code = self._started.returncode
        ended: Ended
        match reason:
            case "timed_out" | "overflow":
                ended, code = reason, -signal.SIGKILL
            case _ if code < 0:
                ended = "signalled"
            case _:
                ended = _never_executed(self._started, code, stderr) or "exited"
        return Completed(
            code=code if ended == "exited" else None,
            signal=-code if code < 0 else None,
            stdout=self._stdout.content(),
            stderr=stderr,
            dropped=dropped,
            duration=duration,
            ended=ended,
            confined=self._started.confined,
        )

    def close(self) -> None:
        for timer in (self._timer, self._patience):
            if timer is not None:
                timer.cancel()
        for reader in self._readers:
            reader.stop()
        self._started.close()

    def _listen(self) -> None:
        for reader in self._readers:
            reader.listen()

    def _exited(self) -> None:
        self._settle("exited")

    def _settle(self, reason: str) -> None:
        if not self._reason.done():
            self._reason.set_result(reason)

    def _fail(self) -> None:
        self._settle("failed")

    def _take_stdout(self, chunk: bytes) -> None:
        kept = self._stdout.add(chunk)
        if self._stdout.is_over:
            self._readers[0].stop()
            self._settle("overflow")
        if kept and self._on_output is not None:
            self._on_output("stdout", kept)

    def _take_stderr(self, chunk: bytes) -> None:
        self._stderr.add(chunk)
        if self._on_output is not None:
            self._on_output("stderr", chunk)


def _start(command: Command, program: Program, slots: Slots | None) -> Started | Tenant:
    stdin = None if command.stdin is None else scratch_file(command.stdin)
    argv, cwd, env, mark = command.argv, command.cwd, command.env, command.mark
    try:
        if slots is not None and command.confine == "auto":
            tenant = slots.start(program.path, argv, cwd, env, mark=mark, stdin=stdin)
            if tenant is not None:
                return tenant
        given = subprocess.DEVNULL if stdin is None else stdin
        return start(argv, cwd, env, mark=mark, stdin=given, confine=command.confine)
    finally:
        if stdin is not None:
            os.close(stdin)


def _never_executed(started: Started | Tenant, code: int, stderr: bytes) -> Refusal | None:
    """Why the program could not be executed (its loader may be missing), if so."""
    if isinstance(started, Tenant):
        return _refused(started.refusal) if started.refusal else None
    if started.wrapper == "bwrap":
        if started.was_executed:
            return None
        if not stderr.startswith(b"bwrap: execvp "):
            said = stderr.decode(errors="replace").strip()
            raise ProcessError(f"bubblewrap could not start the command: {said}")
        return "not_found" if stderr.endswith(b"No such file or directory\n") else "not_executable"
    if started.wrapper == "setpriv" and code in _NOT_EXECUTED and stderr.startswith(b"setpriv: "):
        return "not_executable" if code == _NOT_EXECUTED[0] else "not_found"
    return None


def _refused(number: int) -> Refusal:
    if number in {errno.ENOENT, errno.ENOTDIR}:
        return "not_found"
    if number in {errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.ELIBBAD, errno.EISDIR}:
        return "not_executable"
    words = os.strerror(number)
    raise outside_fault(OSError(number, words)) or ProcessError(
        f"the command could not be started: {words}"
    )
