"""Steps that are commands: an argv list, or one line for /bin/sh."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace

from holdfast.errors import AttemptError, ProcessError
from holdfast.generators.contract import collect, fragments, handoff, lay_out
from holdfast.generators.identity import shell_identity
from holdfast.model.digest import Json
from holdfast.model.plan import Step
from holdfast.model.walls import WALLS, moved_by, size_of
from holdfast.ports import Candidate, File, Job
from holdfast.process.room import tail
from holdfast.process.run import Command, Completed, Slots, run
from holdfast.process.terms import Terms

_SLACK = 1 << 20  # bytes beyond what is kept before the rest is dropped
_SIGNALLED = 128  # exit codes above it are signals, as shells count


class ShellGenerator:
    """Runs `run` without a shell, or `shell` with one, under the command contract.

    Without `produces` the candidate is stdout, byte for byte, and the log is stderr; with it the
    candidate is what lies at those paths afterwards, and both streams are the log. So they are of an
    attempt that failed: there is no candidate then that would hold what it printed. Without `terms` the
    command has a pid namespace and the file system as it is.
    """

    def __init__(
        self,
        engine: Mapping[str, str] = os.environ,
        slots: Slots | None = None,
        terms: Terms | None = None,
    ) -> None:
        self._engine = engine
        self._slots = slots
        self._terms = terms

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        """The project files that the command names, except those that it makes."""
        return shell_identity(step, root)

    async def generate(self, job: Job) -> Candidate:
        step = job.step
        log = Log(job.on_output, job.walls.log)
        try:
            env = lay_out(job, self._engine)
            terms = self._terms
            command = Command(
                argv=step.run or ("/bin/sh", "-c", step.shell),
                cwd=job.folder,
                env=env,
                timeout=step.timeout,
                mark=job.mark,
                keep=job.walls.artifact,
                keep_err=job.walls.log,
                sandbox=None
                if terms is None
                else terms.sandbox_for(job.root, job.folder, job.room, env["PATH"]),
            )
            completed = await run(command, on_output=log.add, slots=self._slots)
        except ProcessError as error:
            raise AttemptError(str(error), reason="command_failed", log=log.content()) from error
        both = log.content()
        _check(completed, job, both)
        made = collected(job, both) if step.produces else None
        added, told = _added(job, both)
        confined = completed.confined and (terms is None or completed.sandboxed)
        swept = completed.confined
        if made is not None:
            return replace(made, confined=confined, fragments=added, handoff=told, swept=swept)
        return Candidate(
            "bytes",
            completed.stdout,
            log=completed.stderr[-job.walls.log :],
            confined=confined,
            fragments=added,
            handoff=told,
            swept=swept,
        )

    async def close(self) -> None:
        """End what is kept between attempts."""
        if self._slots is not None:
            await self._slots.close()


class Log:
    """The end of both streams in the order they came, passed on to whoever listens."""

    def __init__(
        self, listener: Callable[[str, bytes], None] | None, most: int = WALLS.log
    ) -> None:
        self._listener = listener
        self._most = most
        self._kept = bytearray()

    def add(self, stream: str, chunk: bytes) -> None:
        self._kept += chunk
        if len(self._kept) > self._most + max(_SLACK, self._most // 4):
            del self._kept[: -self._most]
        if self._listener is not None:
            self._listener(stream, chunk)

    def content(self) -> bytes:
        return bytes(self._kept[-self._most :])


def collected(job: Job, log: bytes) -> Candidate:
    """What a step made at its paths, with its log; AttemptError if it made something else."""
    try:
        return replace(collect(job.folder, job.step.produces, job.walls), log=log)
    except AttemptError as error:
        raise AttemptError(error.message, reason=error.reason, log=log) from error


def _added(job: Job, log: bytes) -> tuple[tuple[File, ...], bytes]:
    try:
        return fragments(job.room), handoff(job.room)
    except AttemptError as error:
        raise AttemptError(error.message, reason=error.reason, log=log) from error


def _check(completed: Completed, job: Job, log: bytes) -> None:
    """Raise unless the command ended with exit code 0."""
    step = job.step
    name = step.run[0] if step.run else step.shell
    what, reason = f"'{name}' cannot be executed", "command_failed"
    match completed.ended:
        case "exited" if completed.code == 0:
            return
        case "exited":
            what = f"'{name}' ended with exit code {completed.code}"
            if completed.short_of_memory:
                what += "; a process of it was killed at the sandbox's limit on memory"
            killed = (completed.code or 0) > _SIGNALLED  # so a shell tells of a kill beneath it
            reason = "lost" if step.done_once and killed else reason
        case "signalled" if completed.short_of_memory:
            what, reason = f"'{name}' was killed at the sandbox's limit on memory", "lost"
        case "signalled" if completed.signal == signal.SIGXFSZ:
            what, reason = (
                f"'{name}' was ended at the sandbox's limit on the size of a file",
                "lost",
            )
        case "signalled":
            what, reason = f"'{name}' was ended by signal {completed.signal}", "lost"
        case "no_room":
            what = f"'{name}' was ended because it left too little room on the disk"
            reason = "lost" if step.done_once else reason
        case "idle":
            what, reason = f"'{name}' said nothing for too long", "timed_out"
        case "timed_out":
            what, reason = f"'{name}' did not end within {step.timeout} s", "timed_out"
        case "overflow":
            most = job.walls.artifact
            hint = moved_by("artifact", most)
            what = f"'{name}' wrote more than {size_of(most)} to stdout; {hint}"
            reason = "lost" if step.done_once else reason
        case "not_found":
            where = "" if "/" in name else " on PATH"
            what = f"'{name}' was not found{where}"
        case "not_executable":
            pass
    said = tail(completed.stderr).strip() or tail(completed.stdout).strip()
    if completed.ended in {"overflow", "no_room"}:
        said = ""  # what it was told last is no reason: the log has it
    raise AttemptError(f"{what}\n{said}" if said else what, reason=reason, log=log)
