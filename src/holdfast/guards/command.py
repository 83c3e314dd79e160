"""The `command` guard: a program looks at the candidate and answers with its exit code."""

from __future__ import annotations

import os
from collections.abc import Mapping

from holdfast.errors import GuardBroken, ProcessError
from holdfast.guards.candidate import accept, environment, name_of, place_of, reject
from holdfast.guards.identity import argv_of, command_identity
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard
from holdfast.ports import Candidate, Job
from holdfast.process.reports import failures, read_report
from holdfast.process.room import tail
from holdfast.process.run import Command, Slots, run
from holdfast.process.terms import Terms

TIMEOUT = 60.0
_COULD_NOT_RUN = frozenset({126, 127})
_MOST_REPORT = 2**20  # bytes; a report of tests stands at the end


class CommandGuard:
    """Exit code 0 accepts, one of `fatal_on` is fatal, any other rejects with the last output.

    What a test program reported as failed stands before that, since its names are often cut off.
    126, 127, a signal or a timeout mean that the guard broke. HOLDFAST_ARTIFACT names a copy of the
    candidate: a file, or a directory of files. The command runs where the step ran.
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

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        return command_identity(guard, root)

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        name = name_of(guard)
        limit = TIMEOUT if guard.timeout is None else guard.timeout
        output = bytearray()
        await place_of(job)
        try:
            env = environment(candidate, job, self._engine)
            terms = self._terms
            command = Command(
                argv=argv_of(guard),
                cwd=job.folder,
                env=env,
                timeout=limit,
                mark=job.mark,
                sandbox=None
                if terms is None
                else terms.sandbox_for(job.root, job.folder, job.room, env["PATH"]),
            )
            completed = await run(
                command, on_output=lambda _, chunk: output.extend(chunk), slots=self._slots
            )
        except ProcessError as error:
            raise GuardBroken(f"'{name}' could not run: {error}") from error
        match completed.ended:
            case "exited":
                return _verdict(guard, completed.code or 0, bytes(output))
            case "timed_out" | "idle":
                raise GuardBroken(f"'{name}' gave no verdict within {limit} s")
            case "signalled":
                raise GuardBroken(f"'{name}' was ended by signal {completed.signal}")
            case "overflow" | "no_room":
                raise GuardBroken(f"'{name}' wrote too much")
            case "not_found" | "not_executable":
                problem = completed.ended.replace("_", " ")
                raise GuardBroken(f"'{command.argv[0]}' of '{name}' is {problem}")


def _verdict(guard: Guard, code: int, output: bytes) -> Verdict:
    if code == 0:
        return accept(guard)
    said = tail(output)
    if code in _COULD_NOT_RUN and code not in guard.fatal_on:
        problem = f"'{name_of(guard)}' could not run: exit code {code}"
        raise GuardBroken(f"{problem}\n{said}" if said else problem)
    report = read_report(output[-_MOST_REPORT:])
    if report is not None and (failed := failures(report)):
        said = f"{failed}\n\n{said}"
    if code in guard.fatal_on:
        return Verdict("fatal", name_of(guard), said)
    return reject(guard, said or f"'{name_of(guard)}' ended with exit code {code}")
