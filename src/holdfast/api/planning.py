"""A function that calls steps becomes a plan."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    ParamSpec,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from holdfast.api.calling import Function, functional
from holdfast.api.homes import root_of
from holdfast.api.recording import Made, recorded_into, under_way
from holdfast.api.references import as_param
from holdfast.api.typed import hints_of, plain
from holdfast.errors import UsageError
from holdfast.generators.child import signature
from holdfast.model.digest import Json

if TYPE_CHECKING:
    from holdfast.api.plans import Plan

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_PARAMS = {str: "string", int: "int", bool: "bool"}


class PlanKeys(TypedDict, total=False):
    """What a plan may be told beside its steps; the keys of a plan file. `root` is its project."""

    name: str
    goal: str
    description: str
    project: str
    defaults: Mapping[str, Json]
    limits: Mapping[str, Json]
    root: str


class PlanFunction(Generic[P, R_co]):
    """A function that calls steps: `build` gives its plan, and runs none of them."""

    def __init__(self, function: Callable[P, R_co], keys: PlanKeys) -> None:
        self.function = functional(function, "plan")
        self.keys = keys
        functools.update_wrapper(self, self.function)
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise UsageError(
                f"the plan '{self.function.__name__}' is no plain function: nothing awaits it",
                hint="leave out async and yield; steps may be async",
            )

    def __call__(self, *args: P.args, **named: P.kwargs) -> R_co:
        """Inside another plan function, the steps of this one become steps of that."""
        if under_way() is None:
            name = self.function.__name__
            raise UsageError(f"'{name}' is a plan", hint=f"{name}.build(…) gives it, to be run")
        return cast("R_co", self.function(*args, **named))

    def __reduce__(self) -> str:
        return self.function.__qualname__  # under which its module has it

    def build(self, *args: P.args, **named: P.kwargs) -> Plan:
        """The plan, as `load` gives one from a file. Nothing is run, read from a store or written."""
        try:
            bound = signature(self.function).bind_partial(*args, **named)
        except TypeError as error:
            raise UsageError(
                f"the plan '{self.function.__name__}' cannot be built so: {error}"
            ) from error
        from holdfast.api.building import built  # noqa: PLC0415 - a child that calls a step needs none

        return built(self, bound.arguments, self.function.__module__, self._file())

    def _file(self) -> str:
        code = getattr(self.function, "__code__", None)
        return code.co_filename if code is not None else self.function.__name__

    # --- for whoever finds it in a file: see holdfast.formats.pyplan

    def __holdfast_params__(self) -> dict[str, dict[str, Json]]:
        """The params that the function takes, as a plan file declares them."""
        hints = hints_of(self.function)
        found: dict[str, dict[str, Json]] = {}
        for name, parameter in signature(self.function).parameters.items():
            if parameter.kind not in _NAMED:
                raise UsageError(
                    f"the parameter '{name}' of the plan '{self.function.__name__}' cannot be given by name",
                    hint="a param has one name and one value",
                )
            has_default = parameter.default is not parameter.empty
            kind = hints.get(name, type(parameter.default) if has_default else str)
            if kind not in _PARAMS:
                raise UsageError(
                    f"the param '{name}' of the plan '{self.function.__name__}' is neither str, int nor bool"
                )
            found[name] = {"type": _PARAMS[kind]}
            if has_default:
                found[name]["default"] = parameter.default
        return found

    def __holdfast_made__(self, values: Mapping[str, Json]) -> Made:
        """The plan that the function makes with these values of its params."""
        params = self.__holdfast_params__()
        whole = {name: param["default"] for name, param in params.items() if "default" in param}
        whole |= {name: value for name, value in values.items() if name in params}
        for name in params:
            if name not in whole:
                raise UsageError(
                    f"the param '{name}' has no default and was not given",
                    hint=f"--param {name}=…, or build({name}=…)",
                )
        root = os.path.abspath(self.keys.get("root") or root_of(self.function))
        made = Made(self._head(params), root, whole)
        with recorded_into(made):
            given = {name: as_param(name, whole[name]) for name in params}
            try:
                self.function(**given)
            except RecursionError:
                message = f"the plan '{self.function.__name__}' calls itself, and never ends"
                raise UsageError(message) from None
        if not made.steps:
            raise UsageError(f"the plan '{self.function.__name__}' calls no step")
        return made

    def _head(self, params: Mapping[str, Json]) -> dict[str, Json]:
        head: dict[str, Json] = {"schema": "holdfast.plan/1", "name": self.function.__name__}
        words = inspect.getdoc(self.function)
        head |= {"description": words.partition("\n")[0]} if words else {}
        head |= {key: plain(value) for key, value in self.keys.items() if key != "root"}  # type: ignore[misc]
        return {**head, "params": params} if params else head


@overload
def plan(function: Callable[P, R], /) -> PlanFunction[P, R]: ...
@overload
def plan(**keys: Unpack[PlanKeys]) -> Callable[[Callable[P, R]], PlanFunction[P, R]]: ...
def plan(
    function: Function | None = None, /, **keys: Unpack[PlanKeys]
) -> PlanFunction[Any, Any] | Callable[[Function], PlanFunction[Any, Any]]:
    """Make a plan of a function that calls steps. Its parameters are the params of the plan."""
    if function is not None:
        return PlanFunction(function, {})
    return lambda found: PlanFunction(found, keys)
