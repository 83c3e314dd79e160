"""The `python` guard: a function of the project looks at the candidate."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Protocol

from holdfast.errors import GuardBroken, ProcessError
from holdfast.guards.candidate import accept, environment, name_of, place_of, reject
from holdfast.guards.command import TIMEOUT
from holdfast.model.artifact import Form, Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard
from holdfast.ports import Candidate, Job


class Caller(Protocol):
    """Calls `module:function` of the project with one artifact, somewhere it can be killed."""

    async def __call__(
        self,
        target: str,
        subject: tuple[Form, str],
        job: Job,
        env: Mapping[str, str],
        timeout: float,
    ) -> bytes:
        """The result as JSON; GuardBroken if there is none."""


class Closure(Protocol):
    """Finds the source files of a module."""

    def __call__(self, module: str, root: str) -> Mapping[str, Json]:
        """The part of a key that the module makes up."""


class PythonGuard:
    """`module:function` gets the artifact as its parameter is annotated and answers.

    True or None accepts, False rejects, text rejects with that feedback, and a mapping says it in
    full: `accept`, `feedback`, `fatal`. After an exception, a timeout or any other answer the guard
    is broken.
    """

    def __init__(
        self, call: Caller, closure: Closure, engine: Mapping[str, str] = os.environ
    ) -> None:
        self._call = call
        self._closure = closure
        self._engine = engine

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        return self._closure(str(guard.config).partition(":")[0], root)

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        await place_of(job)
        env = environment(candidate, job, self._engine)
        subject = (candidate.form, env["HOLDFAST_ARTIFACT"])
        limit = TIMEOUT if guard.timeout is None else guard.timeout
        try:
            result = await self._call(str(guard.config), subject, job, env, limit)
        except ProcessError as error:
            raise GuardBroken(f"'{name_of(guard)}' could not run: {error}") from error
        return _verdict(guard, json.loads(result))


def _verdict(guard: Guard, answer: Json) -> Verdict:
    name = name_of(guard)
    match answer:
        case None | True:
            return accept(guard)
        case False:
            return reject(guard, f"'{name}' said no")
        case str():
            return reject(guard, answer)
        case {"fatal": True}:
            return Verdict("fatal", name, _feedback(answer) or f"'{name}' said never")
        case {"accept": True}:
            return accept(guard)
        case {"accept": False}:
            return reject(guard, _feedback(answer) or f"'{name}' said no")
        case _:
            raise GuardBroken(f"'{name}' answered neither true, false, text nor a verdict")


def _feedback(answer: Json) -> str:
    return str(answer.get("feedback") or "") if isinstance(answer, Mapping) else ""
