"""Guards that are functions of the program."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from holdfast.api.calling import Function, called, functional
from holdfast.api.homes import target_of
from holdfast.api.typed import plain
from holdfast.errors import UsageError
from holdfast.generators.child import signature
from holdfast.model.digest import Json

_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Guarded:
    """What a guard says: accept, reject with words for the next attempt, or never."""

    accept: bool
    feedback: str = ""
    is_fatal: bool = False

    @classmethod
    def ok(cls) -> Guarded:
        """The artifact is good."""
        return cls(accept=True)

    @classmethod
    def reject(cls, feedback: str) -> Guarded:
        """It is not; `feedback` is told to whoever tries again."""
        return cls(accept=False, feedback=feedback)

    @classmethod
    def fatal(cls, feedback: str) -> Guarded:
        """It is not, and trying again would not help."""
        return cls(accept=False, feedback=feedback, is_fatal=True)

    def json(self) -> dict[str, Json]:
        """The verdict as a guard function of a plan file gives it."""
        return {"accept": self.accept, "feedback": self.feedback, "fatal": self.is_fatal}


class GuardFunction(Generic[P, R_co]):
    """A function that looks at an artifact. Its further parameters get the values of the guarded step."""

    def __init__(self, function: Callable[P, R_co], name: str = "", timeout: str = "") -> None:
        self.function = functional(function, "guard")
        self.name = name or self.function.__name__
        self.timeout = timeout
        functools.update_wrapper(self, self.function)

    @functools.cached_property
    def __holdfast_call__(self) -> Function:
        """The function as an engine calls it; made when all its module is there."""
        return called(self.function, _verdict)

    def __call__(self, *args: P.args, **named: P.kwargs) -> R_co:
        return cast("R_co", self.function(*args, **named))

    def __reduce__(self) -> str:
        return self.function.__qualname__  # under which its module has it

    def check(self, step: str, names: Container[str]) -> None:
        """UsageError if it takes no artifact, or asks for what the step is not given under these names."""
        of_it = f"the guard '{self.function.__name__}' of '{step}'"
        parameters = list(signature(self.function).parameters.values())
        if not parameters:
            raise UsageError(f"{of_it} takes no artifact", hint="its first parameter gets it")
        for item in parameters[1:]:
            optional = item.default is not item.empty or item.kind in _REST
            if not optional and item.name not in names:
                raise UsageError(
                    f"{of_it} asks for '{item.name}', which the step is not given",
                    hint="name it like an argument of the step, or give it a default",
                )

    def spelled(self, root: str) -> dict[str, Json]:
        """The guard with the keys of a plan file."""
        found: dict[str, Json] = {"python": target_of(self, root), "name": self.name}
        return {**found, "timeout": self.timeout} if self.timeout else found


def _verdict(result: object) -> object:
    return result.json() if isinstance(result, Guarded) else plain(result)


@overload
def guard(function: Callable[P, R], /) -> GuardFunction[P, R]: ...
@overload
def guard(
    *, name: str = "", timeout: str = ""
) -> Callable[[Callable[P, R]], GuardFunction[P, R]]: ...
def guard(
    function: Function | None = None, /, *, name: str = "", timeout: str = ""
) -> GuardFunction[Any, Any] | Callable[[Function], GuardFunction[Any, Any]]:
    """Make a guard of a function: it gets the artifact as annotated and gives a `Guarded`.

    True and None accept as well, False and a text reject.
    """
    if function is not None:
        return GuardFunction(function)
    return lambda found: GuardFunction(found, name, timeout)
