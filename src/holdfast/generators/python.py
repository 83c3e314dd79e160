"""Steps that are functions of the project, called in child processes that are kept."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from holdfast.edits import tree
from holdfast.errors import (
    AttemptError,
    EditError,
    GuardBroken,
    ProcessError,
    StoreError,
    outside_fault,
)
from holdfast.generators import child
from holdfast.generators.contract import collect, fragments, handoff, lay_out
from holdfast.generators.identity import python_identity, target_of
from holdfast.generators.imports import Imports
from holdfast.model.artifact import Form
from holdfast.model.digest import Json
from holdfast.model.plan import Step
from holdfast.model.walls import WALLS, Walls, moved_by
from holdfast.ports import Candidate, Job
from holdfast.process.room import (
    file_name,
    private_folder,
    put_given,
    tail,
)
from holdfast.process.run import Child, Sandbox, out_of_room, probe, probe_whole, without_gone
from holdfast.process.terms import Terms
from holdfast.process.tree import MARK

_FIRST = frozenset({"begun", "stale", "refused"})  # said before a function can say anything
_ANSWERED = frozenset({"done", "failed"})
_CALLED = _ANSWERED | {"begun"}
_GONE: Mapping[str, Json] = {"state": "gone"}

State = Literal["done", "failed", "lost", "timed_out"]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of `module:function`.

    Without `subject` the arguments are `values` and `needs` by name; with it the function gets that
    artifact (form, path) as its first argument, and only those that it asks for beside it. `files` are
    the values in whose place the file of a need is given. `room` is a directory for files that go to
    and fro.
    """

    target: str
    root: str
    folder: str
    room: str
    mark: str
    env: Mapping[str, str]
    values: Mapping[str, Json]
    files: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[tuple[str, Form, str], ...] = ()
    subject: tuple[Form, str] | None = None
    timeout: float | None = None
    walls: Walls = WALLS


@dataclass(frozen=True, slots=True)
class Answer:
    """How a call ended: the result when done, otherwise a message; what was printed in any case."""

    state: State
    result: bytes = b""
    message: str = ""
    log: bytes = b""


class Pool:
    """Child processes, one call at a time each; one that is in doubt is not used again."""

    def __init__(self, terms: Terms | None = None) -> None:
        self._terms = terms
        # By project root, for modules of two do not mix; by what they may touch; and guards apart, which
        # must not run where what they judge could have changed them.
        self._idle: dict[tuple[str, Sandbox | None, bool], list[Child]] = {}

    @property
    def confined(self) -> bool:
        """Whether calls can leave nothing behind, and touch nothing but what the terms name."""
        if self._terms is None:
            return probe().pid_namespace
        return self._terms.sandbox and probe_whole().sandbox

    async def call(self, call: Call) -> Answer:
        """Call a function. Cancelling this ends its process and every descendant first."""
        folder = tempfile.mkdtemp(prefix="call-", dir=call.room)
        try:
            async with asyncio.timeout(call.timeout):
                said = await self._ask(call, folder)
        except TimeoutError:
            message = f"'{call.target}' did not end within {call.timeout} s"
            return Answer("timed_out", message=message, log=_log(folder, call.walls))
        if said["state"] not in _ANSWERED:
            message = (
                f"the process of '{call.target}' ended before it answered{said.get('words', '')}"
            )
            return Answer("lost", message=message, log=_log(folder, call.walls))
        if said["state"] == "done":
            try:
                return Answer("done", _content(folder, call.walls), log=_log(folder, call.walls))
            except EditError as error:
                return Answer(
                    "failed", message=f"its answer: {error}", log=_log(folder, call.walls)
                )
        return Answer("failed", message=str(said.get("message", "")), log=_log(folder, call.walls))

    async def judge(
        self,
        target: str,
        subject: tuple[Form, str],
        job: Job,
        env: Mapping[str, str],
        timeout: float,
    ) -> bytes:
        """Call a function that guards: its answer to one artifact, as JSON."""
        call = Call(
            target=target,
            root=job.root,
            folder=job.folder,
            room=job.room,
            mark=job.mark,
            env=env,
            values=job.step.values,
            files=job.files,
            needs=_laid_out(job),
            subject=subject,
            timeout=timeout,
        )
        answer = await self.call(call)
        if answer.state != "done":
            raise GuardBroken(answer.message)
        return answer.result

    async def close(self) -> None:
        """End every process that waits for a call."""
        idle, self._idle = self._idle, {}
        await asyncio.gather(*(process.kill() for some in idle.values() for process in some))

    async def _ask(self, call: Call, folder: str) -> Mapping[str, Json]:
        """The answer of a process that knows the present source; that it is gone if it died over it."""
        request = _request(call, folder)
        wanted = None
        if self._terms is not None:
            path = call.env.get("PATH", os.defpath)
            wanted = self._terms.sandbox_for(call.root, call.folder, call.room, path)
        idle = self._idle.setdefault((call.root, wanted, call.subject is not None), [])
        said = _GONE
        while idle and said["state"] not in _CALLED:
            said = await _exchange(idle.pop(), request, idle)
        if said["state"] not in _CALLED:
            await self._drop_left()
            said = await _asked_afresh(call, wanted, request, idle)
        return said

    async def _drop_left(self) -> None:
        """End processes that nobody can use again: what they may write is gone."""
        for key in list(self._idle):
            wanted = key[1]
            if wanted is not None and not all(map(os.path.exists, wanted.writable)):
                for process in self._idle.pop(key):
                    await process.kill()


class PythonGenerator:
    """Calls `run` ("module:function") under the command contract.

    Arguments are the values of `with` by name, and for a parameter named like a data need (`-` and
    `.` as `_`) its artifact: as `bytes` or `str` if annotated so, as text if not annotated, as
    `Path` of the file, or with any other annotation as the value that it is in JSON (its text, if
    it is none). Several files are always the `Path` of a directory. Text is stored as UTF-8, bytes
    as they are, any other result as JSON with sorted keys; with `produces` only the files count.
    """

    def __init__(
        self,
        pool: Pool | None = None,
        imports: Imports | None = None,
        engine: Mapping[str, str] = os.environ,
    ) -> None:
        self._pool = pool or Pool()
        self._imports = imports or Imports()
        self._engine = engine

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        """The source of the module and of every project module that it imports."""
        return python_identity(self._imports)(step, root)

    async def generate(self, job: Job) -> Candidate:
        env = lay_out(job, self._engine)
        inputs = env["HOLDFAST_INPUTS"]
        call = Call(
            target=target_of(job.step),
            root=job.root,
            folder=job.folder,
            room=job.room,
            mark=job.mark,
            env=env,
            values=job.step.values,
            files=job.files,
            needs=tuple(
                (need, given.form, f"{inputs}/{file_name(need)}")
                for need, given in job.given.items()
            ),
            timeout=job.step.timeout,
            walls=job.walls,
        )
        try:
            answer = await self._pool.call(call)
        except ProcessError as error:
            raise AttemptError(str(error), reason="command_failed") from error
        if job.on_output is not None and answer.log:
            job.on_output("stdout", answer.log)
        return replace(_candidate(job, answer), confined=self._pool.confined)

    async def close(self) -> None:
        await self._pool.close()


def _laid_out(job: Job) -> tuple[tuple[str, Form, str], ...]:
    """The needs of a step as files, for its guards.

    A step that a model does, and one whose kept artifact is guarded again, has none of them in its room yet.
    """
    places = {need: f"{job.room}/inputs/{file_name(need)}" for need in job.given}
    for need, place in places.items():
        if not os.path.exists(place):
            private_folder(job.room, "inputs")
            put_given(place, job.given[need])
    return tuple((need, job.given[need].form, place) for need, place in places.items())


def _candidate(job: Job, answer: Answer) -> Candidate:
    if answer.state != "done":
        reason = "command_failed" if answer.state == "failed" else answer.state
        # An exception tells its own story; of a process that gave none, what it printed last does.
        said = "" if answer.state == "failed" else tail(answer.log).strip()
        message = f"{answer.message}\n{said}" if said else answer.message
        raise AttemptError(message, reason=reason, log=answer.log)
    try:
        added, told = fragments(job.room), handoff(job.room)
        if job.step.produces:
            candidate = collect(job.folder, job.step.produces, job.walls)
        else:
            candidate = Candidate("bytes", answer.result)
    except AttemptError as error:
        raise AttemptError(error.message, reason=error.reason, log=answer.log) from error
    return replace(candidate, log=answer.log, fragments=added, handoff=told)


def _start(call: Call, wanted: Sandbox | None) -> Child:
    """A fresh process: isolated from the engine's variables and folder, writing no byte code."""
    env = {name: call.env[name] for name in ("PATH", "LANG", "HOME", "TMPDIR") if name in call.env}
    argv = (sys.executable, "-I", "-B", "-X", "utf8", child.__file__)
    return Child.start(argv, call.root, env, call.mark, wanted=wanted)


async def _asked_afresh(
    call: Call, wanted: Sandbox | None, request: bytes, idle: list[Child]
) -> Mapping[str, Json]:
    """The answer of a fresh process; of another one if the sandbox of the first could not be made."""
    while True:
        process = _start(call, wanted)
        said = await _exchange(process, request, idle)
        if (fault := _without_room(process, said)) is not None:
            raise fault
        wanted = None if process.was_begun or wanted is None else without_gone(wanted)
        if wanted is None:
            return said


def _without_room(process: Child, said: Mapping[str, Json]) -> StoreError | None:
    """What a machine refused to a fresh process before it began with a call; None if it was not that."""
    if said["state"] == "refused":
        return outside_fault(RuntimeError(said.get("message")))
    return None if process.was_begun else out_of_room(str(said.get("words", "")))


async def _exchange(process: Child, request: bytes, idle: list[Child]) -> Mapping[str, Json]:
    """The last answer to a call; if it broke off there, with what the process or its sandbox said of it.

    Afterwards the process is idle, or gone with all it started.
    """
    said = _GONE
    try:
        await process.send(request)
        said = _frame(await process.receive(), _FIRST)
        if said["state"] == "begun":
            said = _frame(await process.receive(), _ANSWERED)
    except ProcessError as error:
        return {**said, "words": f"\n{error.hint}" if error.hint else ""}
    finally:
        if said["state"] in _ANSWERED and said.get("again"):
            idle.append(process)
        else:
            await process.kill()
    return said


def _frame(content: bytes, states: Collection[str]) -> Mapping[str, Json]:
    """What a process says; ProcessError if it is none of these: the function may have written it."""
    try:
        said = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ProcessError(f"a Python process said what nobody understands: {error}") from error
    state = said.get("state") if isinstance(said, dict) else None
    if not isinstance(state, str) or state not in states:
        raise ProcessError("a Python process said what nobody understands")
    return cast("Mapping[str, Json]", said)


def _request(call: Call, folder: str) -> bytes:
    mark = f"{call.mark}#{os.getpid()}.{os.path.basename(folder)}"
    request = {
        "target": call.target,
        "root": call.root,
        "folder": call.folder,
        "env": {**call.env, "PWD": call.folder, MARK: mark},
        "values": call.values,
        "files": call.files,
        "needs": call.needs,
        "subject": call.subject,
        "as_json": call.subject is not None,
        "log": f"{folder}/log",
        "result": f"{folder}/result",
    }
    return json.dumps(request, default=dict).encode()


def _content(folder: str, walls: Walls) -> bytes:
    """The answer of a call; EditError if it is no file, or too large: the function may have put it there."""
    room, name = os.path.split(folder)
    hint = moved_by("artifact", walls.artifact)
    found = tree.read_contents(room, [f"{name}/result"], walls.artifact, hint)
    if not found:
        raise EditError("there is none")
    return found[0].content


def _log(folder: str, walls: Walls) -> bytes:
    """The end of what was printed; nothing, if the function put something else in its place."""
    room, name = os.path.split(folder)
    with suppress(EditError, OSError), tree.opened(tree.open_root(room)) as top:
        with tree.opened(tree.open_directory(top, (name,))) as here:
            descriptor = tree.open_file(here, "log", "log")
        if descriptor is not None:
            with open(descriptor, "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - walls.log))
                return file.read()
    return b""
