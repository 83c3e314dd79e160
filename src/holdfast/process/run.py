"""Run one command: capped and streamed output, a timeout, and no descendant left behind."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from holdfast.errors import NotBegunError, ProcessError, outside_fault
from holdfast.model.fixed import frozen
from holdfast.model.secret import Striking
from holdfast.process.allow import Rule, allowed
from holdfast.process.child import Child
from holdfast.process.confine import Sandbox, without_gone
from holdfast.process.launch import Confine, Started, check, start
from holdfast.process.limits import Limits, is_spent
from holdfast.process.lookup import Program, Refusal, find
from holdfast.process.output import Ends, Reader, Start, Whole
from holdfast.process.sandbox import Confinement, out_of_room, probe, probe_whole, scratch_file
from holdfast.process.slots import Slots, Tenant
from holdfast.process.tree import sweep, sweep_slots

__all__ = [
    "Child",
    "Command",
    "Completed",
    "Confinement",
    "Limits",
    "Rule",
    "Sandbox",
    "Slots",
    "out_of_room",
    "probe",
    "probe_whole",
    "run",
    "sweep",
    "sweep_slots",
    "without_gone",
]

Ended = Literal[
    "exited",
    "signalled",
    "timed_out",
    "idle",
    "overflow",
    "no_room",
    "not_found",
    "not_executable",
]

_PATIENCE = 0.003
_LOOK_SECONDS = 0.25  # between two looks at the disks
_NOT_EXECUTED = (126, 127)  # what setpriv exits with when it cannot execute a program


@frozen
class Command:
    """One command. `env` is the whole environment but for PWD and HOLDFAST_MARK.

    HOLDFAST_MARK begins with `mark`; a suffix makes it unique to this run. More than `keep` bytes
    of stdout end the command; of stderr the first and the last of `keep_err` bytes stay. With `whole`,
    a path, all that it writes to stdout goes to a file of that name and all of stderr to one with `.err`
    behind it, each up to `most_whole` bytes; of stdout, too, the first and the last are kept then.
    Without `stdin` the command reads /dev/null. It is ended after `timeout` seconds, and after `idle`
    seconds without output. The values of `hide` are struck out of all that it says. With a `sandbox`
    it has no more of the machine than is named there, where the kernel allows it: see `sandboxed` of
    what comes back. With `allow` it is started only if one of these rules allows it.
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
    idle: float | None = None
    whole: str | None = None
    most_whole: int = 2**30
    hide: tuple[str, ...] = ()
    sandbox: Sandbox | None = None
    allow: tuple[Rule, ...] | None = None

    def __post_init__(self) -> None:
        check(self.argv, self.cwd, self.env, self.mark)
        for limit in (self.timeout, self.idle):
            if limit is not None and limit <= 0:
                raise ProcessError(f"a timeout of {limit} s leaves no time")
        if self.keep < 0 or self.keep_err < 0 or self.most_whole < 0:
            raise ProcessError("a limit on output cannot be negative")


@frozen
class Completed:
    """How a command ended. `code` is None if a signal ended it, or it never ran.

    Confined without a slot, exit codes 130 and above that are 128 plus a deadly signal are read as
    that signal. `confined` says that no process of it can be left, `sandboxed` that it had no more of the
    machine than its sandbox named, `restrained` that Landlock held what it can. `short_of_memory` says
    that the kernel killed one of its processes at the limit of its sandbox.
    """

    code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    dropped: int
    duration: float
    ended: Ended
    confined: bool
    sandboxed: bool = False
    restrained: bool = False
    short_of_memory: bool = False

    @property
    def success(self) -> bool:
        return self.ended == "exited" and self.code == 0


async def run(
    command: Command,
    *,
    on_output: Callable[[str, bytes], None] | None = None,
    slots: Slots | None = None,
) -> Completed:
    """Run a command to its end; when this returns or raises, none of its processes is left.

    `slots` are used where commands can be confined. `on_output` is called with "stdout" or "stderr"
    and each chunk as it comes; what it raises ends the command and is raised here. A cancellation
    ends the command first. ProcessError if no rule of `allow` allows the command: nothing was started.
    """
    if command.allow is not None:
        argv = allowed(command.argv, command.allow, command.cwd, command.env)
        command = replace(command, argv=argv, allow=None)
    program = find(command.argv[0], command.cwd, command.env)
    if program.refusal is not None:
        return Completed(None, None, b"", b"", 0, 0.0, program.refusal, confined=False)
    while True:
        try:
            return await _run_once(command, program, on_output, slots)
        except NotBegunError:
            wanted = command.sandbox and without_gone(command.sandbox)
            if wanted is None:
                raise
            command = replace(command, sandbox=wanted)


async def _run_once(
    command: Command,
    program: Program,
    on_output: Callable[[str, bytes], None] | None,
    slots: Slots | None,
) -> Completed:
    """The same; NotBegunError if something that the sandbox hides vanished while it was laid out."""
    began = time.monotonic()
    said = _Said(command, on_output)
    try:
        running = _Running(command, _start(command, program, slots), said)
    except BaseException:
        said.close()
        raise
    try:
        reason = await running.wait()
        return running.completed(reason, time.monotonic() - began)
    finally:
        running.close()


class _Running:
    """What is held while a command runs: its processes, its readers, its timers."""

    def __init__(
        self,
        command: Command,
        started: Started | Tenant,
        said: _Said,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._command = command
        self._started = started
        self._said = said
        self._reason: asyncio.Future[str] = self._loop.create_future()
        self._readers = (
            Reader(started.stdout, self._take_stdout, self._fail),
            Reader(started.stderr, self._take_stderr, self._fail),
        )
        self._timers: dict[str, asyncio.TimerHandle] = {}
        if command.timeout is not None:
            self._later("timed_out", command.timeout, self._settle, "timed_out")
        if command.idle is not None:
            self._later("idle", command.idle, self._settle, "idle")
        if command.sandbox is not None and command.sandbox.limits.spare is not None:
            self._later("disk", _LOOK_SECONDS, self._look)
        # Most commands in slots end before it pays to watch their output; a pipe holds it till then.
        if isinstance(started, Tenant):
            self._later("patience", _PATIENCE, self._listen)
        else:
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
        self._said.finish()
        return "overflow" if self._said.is_over else reason

    def completed(self, reason: str, duration: float) -> Completed:
        stderr, dropped = self._said.stderr()
        code = self._started.returncode
        ended: Ended
        match reason:
            case "timed_out" | "overflow" | "idle" | "no_room":
                ended, code = reason, -signal.SIGKILL
            case _ if code < 0:
                ended = "signalled"
            case _:
                ended = _never_executed(self._started, code, stderr) or "exited"
        return Completed(
            code=code if ended == "exited" else None,
            signal=-code if code < 0 else None,
            stdout=self._said.stdout(),
            stderr=stderr,
            dropped=dropped,
            duration=duration,
            ended=ended,
            confined=self._started.confined,
            sandboxed=self._started.sandboxed,
            restrained=self._started.restrained,
            short_of_memory=code != 0 and self._started.was_short_of_memory,
        )

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        for reader in self._readers:
            reader.stop()
        self._started.close()
        self._said.close()

    def _later(self, name: str, seconds: float, call: Callable[..., None], *args: object) -> None:
        self._timers[name] = self._loop.call_later(seconds, call, *args)

    def _look(self) -> None:
        """See that the command leaves something of the disks that it writes to."""
        sandbox = self._command.sandbox
        assert sandbox is not None  # only then this is called
        if is_spent(sandbox.writable, sandbox.limits.spare or 0):
            self._settle("no_room")
        else:
            self._later("disk", _LOOK_SECONDS, self._look)

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

    def _heard(self) -> None:
        if self._command.idle is not None and not self._reason.done():
            self._timers["idle"].cancel()
            self._later("idle", self._command.idle, self._settle, "idle")

    def _take_stdout(self, chunk: bytes) -> None:
        self._heard()
        self._said.add_stdout(chunk)
        if self._said.is_over:
            self._readers[0].stop()
            self._settle("overflow")

    def _take_stderr(self, chunk: bytes) -> None:
        self._heard()
        self._said.add_stderr(chunk)
        if self._said.is_over:
            self._readers[1].stop()
            self._settle("overflow")


class _Said:
    """What a command says: kept as far as it was asked to, without secrets, passed on as it comes."""

    def __init__(self, command: Command, on_output: Callable[[str, bytes], None] | None) -> None:
        self._on_output = on_output
        self._start = None if command.whole else Start(command.keep)
        self._ends = Ends(command.keep)
        self._errors = Ends(command.keep_err)
        hides = ("stdout", "stderr") if command.hide else ()
        self._striking = {name: Striking(command.hide) for name in hides}
        self._whole: dict[str, Whole] = {}
        if command.whole is not None:
            try:
                for name, suffix in (("stdout", ""), ("stderr", ".err")):
                    self._whole[name] = Whole(command.whole + suffix, command.most_whole)
            except ProcessError:
                self.close()
                raise

    @property
    def is_over(self) -> bool:
        whole = any(file.is_over for file in self._whole.values())
        return whole or (self._start is not None and self._start.is_over)

    def add_stdout(self, chunk: bytes) -> None:
        self._take_out(self._striking["stdout"].add(chunk) if self._striking else chunk)

    def add_stderr(self, chunk: bytes) -> None:
        self._take_err(self._striking["stderr"].add(chunk) if self._striking else chunk)

    def finish(self) -> None:
        """Nothing more comes."""
        if self._striking:
            self._take_out(self._striking["stdout"].rest())
            self._take_err(self._striking["stderr"].rest())

    def stdout(self) -> bytes:
        return self._ends.content()[0] if self._start is None else self._start.content()

    def stderr(self) -> tuple[bytes, int]:
        """What was kept, and how many bytes were dropped."""
        return self._errors.content()

    def close(self) -> None:
        for file in self._whole.values():
            file.close()
        self._whole = {}

    def _take_out(self, chunk: bytes) -> None:
        if self._start is not None:
            chunk = self._start.add(chunk)
        else:
            self._ends.add(chunk)
        self._pass_on("stdout", chunk)

    def _take_err(self, chunk: bytes) -> None:
        self._errors.add(chunk)
        self._pass_on("stderr", chunk)

    def _pass_on(self, stream: str, chunk: bytes) -> None:
        if not chunk:
            return
        if stream in self._whole:
            self._whole[stream].add(chunk)
        if self._on_output is not None:
            self._on_output(stream, chunk)


def _start(command: Command, program: Program, slots: Slots | None) -> Started | Tenant:
    stdin = None if command.stdin is None else scratch_file(command.stdin)
    argv, cwd, env, mark = command.argv, command.cwd, command.env, command.mark
    try:
        if slots is not None and command.confine == "auto":
            tenant = slots.start(
                program.path, argv, cwd, env, mark=mark, stdin=stdin, wanted=command.sandbox
            )
            if tenant is not None:
                return tenant
        given = subprocess.DEVNULL if stdin is None else stdin
        return start(
            argv,
            cwd,
            env,
            mark=mark,
            stdin=given,
            confine=command.confine,
            wanted=command.sandbox,
        )
    finally:
        if stdin is not None:
            os.close(stdin)


def _never_executed(started: Started | Tenant, code: int, stderr: bytes) -> Refusal | None:
    """Why the program could not be executed (its loader may be missing), if so."""
    if isinstance(started, Tenant):
        return _refused(started.refusal) if started.refusal else None
    if started.flaw:
        raise ProcessError(f"the command was not begun: {started.flaw}")
    if started.wrapper == "bwrap" and not (started.restrained and started.was_executed):
        if started.was_executed:
            return None
        if not stderr.startswith(b"bwrap: execvp "):
            said = stderr.decode(errors="replace").strip()
            fault = out_of_room(said)
            raise fault or NotBegunError(f"bubblewrap could not start the command: {said}")
        return "not_found" if stderr.endswith(b"No such file or directory\n") else "not_executable"
    told = started.wrapper == "setpriv" or started.restrained
    if told and code in _NOT_EXECUTED and stderr.startswith(b"setpriv: "):
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
