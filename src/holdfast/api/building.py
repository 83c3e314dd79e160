"""From a plan function to a plan that can be run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, cast

from holdfast.api.plans import Plan, asked_for, plan_of
from holdfast.api.recording import Made
from holdfast.errors import UsageError
from holdfast.formats.made import load_made
from holdfast.formats.params import taken
from holdfast.formats.reading import ParamType
from holdfast.model.digest import Json
from holdfast.model.plan import StepId


class Making(Protocol):
    """A plan function."""

    def __holdfast_params__(self) -> dict[str, dict[str, Json]]: ...
    def __holdfast_made__(self, values: Mapping[str, Json]) -> Made: ...


def built(function: Making, given: Mapping[str, object], module: str, file: str) -> Plan:
    """The plan of a function with these values of its params; only files of the project are read."""
    declared = function.__holdfast_params__()
    values: dict[str, Json] = {}
    for name, value in given.items():
        if value is not None and not isinstance(value, str | int):
            raise UsageError(
                f"the param '{name}' is neither text, a whole number nor a truth value"
            )
        values[name] = taken(name, cast("ParamType", declared[name]["type"]), value)
    made = function.__holdfast_made__(values)
    found = plan_of(load_made(made, file, asked_for(None, values)), made.data)
    found.functions = {StepId(name): function for name, function in made.inline.items()}
    found.types = dict(made.types)
    found.module = module
    return found
