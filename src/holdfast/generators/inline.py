"""Steps that are functions of this very process, given through the Python API."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
import os
import types
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import cast

from holdfast.errors import AttemptError, IntegrityError, StoreError, outside_fault
from holdfast.generators.captured import Spelling, innermost, undecorated
from holdfast.generators.child import CallError, decoded, encoded, parameters, story
from holdfast.generators.contract import collect
from holdfast.generators.imports import Imports
from holdfast.model.digest import Json
from holdfast.model.plan import Step, StepId
from holdfast.ports import Candidate, Given, Job
from holdfast.process.room import file_name, put_given

Function = Callable[..., object]


class InlineFunctions:
    """Functions by step id.

    They take arguments as Python steps do, cannot be killed, and block the engine while they run,
    unless they are coroutine functions.
    """

    def __init__(
        self, functions: Mapping[StepId, Function], imports: Imports | None = None
    ) -> None:
        self._functions = functions
        self._imports = imports or Imports()
        self._identities: dict[int, Mapping[str, Json]] = {}
        self._outsiders: dict[str, dict[str, Json]] = {}

    def __contains__(self, step: StepId) -> bool:
        return step in self._functions

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        """The function's compiled code and its module's source.

        If the module is in the project, so is the source of every project module that it imports.
        Defaults and captured values enter if they are constants, functions or classes, with all that
        these hold in turn and what is wrapped around them; any other object is named as unresolved,
        which disables reuse: give it as a value instead. Of a function that is in no file, as in a
        notebook, the global names that it reads count as captured. What is loaded does not change
        while a run lasts, so each function is looked at once.
        """
        function = self._functions[step.id]
        found = self._identities.get(id(function))
        if found is None:
            found = self._identities[id(function)] = self._identity(function, root)
        return found

    def _identity(self, function: Function, root: str) -> Mapping[str, Json]:
        plain = undecorated(function)
        code = getattr(innermost(plain), "__code__", None)
        mine: dict[str, Json] = {}
        if code is not None:
            inside = self._imports.of_file(code.co_filename, root)
            mine.update(inside if inside is not None else self._outside(code))
        spelling = Spelling("" if code is None else code.co_filename)
        mine["function"] = spelling.digest(plain)
        untold = {f"{name} in '{_name(plain)}'" for name in spelling.unspelled}
        files: dict[str, Json] = {}
        known = [self._imports.of_module(module, root) for module in sorted(spelling.modules)]
        places = sorted(f for f in spelling.files if "site-packages" not in f.split(os.sep))
        known += filter(None, (self._imports.of_file(place, root) for place in places))
        for found in known:
            files |= cast("dict[str, Json]", found["code"])
            untold.update(cast("list[str]", found.get("unresolved", [])))
        if files:
            mine["code"] = {**cast("dict[str, Json]", mine.get("code", {})), **files}
        if untold:
            mine["unresolved"] = cast("Json", sorted(untold))
        return mine

    def _outside(self, code: types.CodeType) -> dict[str, Json]:
        """The source of a module outside the project, under its name: paths differ between machines."""
        if code.co_filename in self._outsiders:
            return self._outsiders[code.co_filename]
        path = Path(code.co_filename)
        found: dict[str, Json] = {}
        if path.is_file():
            found = {"code": {path.name: hashlib.sha256(path.read_bytes()).hexdigest()}}
        self._outsiders[code.co_filename] = found
        return found

    def at_once(self, job: Job) -> Candidate | None:
        """The candidate of a plain function; None if there is none, or it needs `generate`."""
        step = job.step
        function = self._functions.get(step.id)
        if function is None or _is_async(function):
            return None
        try:
            arguments = _arguments(function, job)
            if arguments is None:
                return None
            result = function(**step.values, **arguments)
            if result.__class__ is str and not step.produces:  # most of them
                return Candidate("bytes", result.encode())
            return _candidate(job, result)
        except (AttemptError, IntegrityError, StoreError):
            raise
        except Exception as error:  # whatever the user's function may raise
            raise _failed(error) from error

    async def generate(self, job: Job) -> Candidate:
        candidate = self.at_once(job)
        if candidate is not None:
            return candidate
        function = self._functions[job.step.id]
        limit = asyncio.timeout(job.step.timeout)
        try:
            async with limit:
                arguments = _arguments(function, job)
                assert arguments is not None  # what is awaited has a room
                result = await cast("Awaitable[object]", function(**job.step.values, **arguments))
            return _candidate(job, result)
        except (AttemptError, IntegrityError, StoreError):
            raise
        except Exception as error:  # as above
            if limit.expired():
                message = f"the function did not end within {job.step.timeout} s"
                raise AttemptError(message, reason="timed_out") from error
            raise _failed(error) from error

    async def close(self) -> None:
        """Nothing is kept between attempts."""


@functools.lru_cache(maxsize=256)
def _is_async(function: Function) -> bool:
    return inspect.iscoroutinefunction(function)


def _arguments(function: Function, job: Job) -> dict[str, object] | None:
    """The artifacts it is called with; None if one must be put on disk and there is no room for that."""
    step = job.step
    try:
        taken = parameters(function, step.values, job.given)
    except (CallError, ValueError, TypeError) as error:
        message = f"the function of '{step.id}': {error}"
        raise AttemptError(message, reason="command_failed") from error
    arguments: dict[str, object] = {}
    for name, (need, how) in taken.items():
        given = job.given[StepId(need)]
        if how != "path" and given.form != "tree":
            arguments[name] = decoded(how, given.content(), need)
        elif not job.room:
            return None
        else:
            path = Path(job.room, f"need-{file_name(need)}")
            arguments[name] = Path(_put(str(path), given))
    return arguments


def _put(path: str, given: Given) -> str:
    """Write an artifact for a function; a disk that refuses is not what the function did."""
    try:
        return put_given(path, given)
    except OSError as error:
        if (fault := outside_fault(error)) is not None:
            raise fault from error
        raise


def _candidate(job: Job, result: object) -> Candidate:
    if job.step.produces:
        return collect(job.folder, job.step.produces, job.walls)
    return Candidate("bytes", encoded(result))


def _failed(error: Exception) -> AttemptError:
    message = str(error) if isinstance(error, CallError) else story(error)
    return AttemptError(message, reason="command_failed")


def _name(function: object) -> str:
    return str(getattr(innermost(function), "__name__", type(function).__name__))
