"""What a plan function did: which steps it called, with what, and in which order."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol, cast

from holdfast.api.calling import Function
from holdfast.api.references import Later, LaterList, as_value, whole_of
from holdfast.api.typed import hints_of, wants_file
from holdfast.core.values import INPUTS
from holdfast.errors import UsageError
from holdfast.generators.child import signature
from holdfast.model.digest import Json
from holdfast.model.expression import Reference, literals, parts

Place = tuple[str, int]  # file and line


class Recordable(Protocol):
    """A step as it was decorated."""

    function: Function
    uses: str
    inline: bool
    step_id: str
    after_ids: tuple[str, ...]

    def spelled(self, root: str) -> dict[str, Json]:
        """What the plan says of it beside its arguments; UsageError if nobody could call it."""

    def check_guards(self, names: Container[str]) -> None:
        """UsageError if a guard asks for something that the step is not given."""


@dataclass(slots=True)
class Made:
    """A plan as a function made it: the data of a plan file, and what such a file cannot hold."""

    head: dict[str, Json]
    root: str
    values: dict[str, Json] = field(default_factory=dict)  # of its params
    steps: dict[str, dict[str, Json]] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    inline: dict[str, Function] = field(default_factory=dict)
    types: dict[str, object] = field(default_factory=dict)

    @property
    def data(self) -> dict[str, Json]:
        """What a plan file would say; the values of params are its defaults, so that it is this plan."""
        declared = cast("dict[str, dict[str, Json]]", self.head.get("params", {}))
        params = {
            name: {**declared[name], "default": literals(self.values[name])} for name in declared
        }
        return {**self.head, **({"params": params} if params else {}), "steps": self.steps}


_now: ContextVar[Made | None] = ContextVar("holdfast_plan", default=None)


def under_way() -> Made | None:
    """The plan that is being made just now."""
    return _now.get()


@contextmanager
def recorded_into(made: Made) -> Iterator[None]:
    """Calls of steps are noted, not made."""
    token = _now.set(made)
    try:
        yield
    finally:
        _now.reset(token)


def record(
    made: Made, step: Recordable, call: tuple[tuple[object, ...], Mapping[str, object]]
) -> Later:
    """Note the call of a step; gives what it will have made."""
    bound = arguments_of(step, *call)
    for name, value in bound.items():
        _refuse_untyped(made, step, name, whole_of(value))
    data = step.spelled(made.root)
    values = wired(step, data, bound)
    read = {part.name for part in parts(values) if isinstance(part, Reference)}
    read |= {whole_of(value) for value in bound.values()}
    step.check_guards({*values, *map(_parameter_of, read)})
    return note(made, step, data, values)


def note(made: Made, step: Recordable, data: dict[str, Json], values: dict[str, Json]) -> Later:
    """Put a step into the plan that is being made."""
    step_id = _free_id(made, step)
    if values:
        data["with"] = values
    made.steps[step_id] = data
    made.places[step_id] = _caller()
    made.types[step_id] = hints_of(step.function).get("return", object)
    if step.inline:
        made.inline[step_id] = getattr(step, "__holdfast_call__", step.function)
    return Later(f"steps.{step_id}.output", step_id)


def arguments_of(
    step: Recordable, args: tuple[object, ...], named: Mapping[str, object]
) -> dict[str, object]:
    """The arguments by name. Defaults of a function are its own affair; a model is told them."""
    name = step.function.__name__
    shape = signature(step.function)
    try:
        bound = shape.bind(*args, **named)
    except TypeError as error:
        raise UsageError(f"the step '{name}' cannot be called so: {error}") from error
    if step.uses != "python":
        bound.apply_defaults()
    found: dict[str, object] = {}
    for key, value in bound.arguments.items():
        kind = shape.parameters[key].kind
        if kind in {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL}:
            raise UsageError(
                f"the parameter '{key}' of '{name}' cannot be given by name",
                hint="a step gets all its arguments by name",
            )
        if kind is inspect.Parameter.VAR_KEYWORD:
            found.update(value)
        else:
            found[key] = value
    return found


def _refuse_untyped(made: Made, step: Recordable, name: str, need: str) -> None:
    """Refuse to hand over as text what was none: without a type nobody knows what to make of it."""
    parameter = signature(step.function).parameters.get(name)
    if not need or parameter is None or parameter.annotation is not parameter.empty:
        return
    is_lambda = not step.function.__name__.isidentifier()
    if step.uses != "python" or is_lambda or _gives_text(made, need):
        return
    raise UsageError(
        f"the parameter '{name}' of '{step.function.__name__}' has no type, and gets what '{need}' gives",
        hint=f"say what it is, as in '{name}: dict' or '{name}: str'",
    )


def _gives_text(made: Made, step_id: str) -> bool:
    """Whether the artifact of a step is text for whoever reads it."""
    data, kind = made.steps[step_id], made.types[step_id]
    if "produces" in data or kind is str or wants_file(kind):
        return True
    return data["uses"] != "python" and "schema" not in data


def wired(
    step: Recordable, data: dict[str, Json], arguments: Mapping[str, object]
) -> dict[str, Json]:
    """Arguments as values of the step; what is needed beside them is added to `data`."""
    needs: list[Json] = []
    values: dict[str, Json] = {}
    hints = hints_of(step.function)
    for name, value in arguments.items():
        need = whole_of(value)
        is_file = wants_file(hints.get(name))
        is_list = isinstance(value, LaterList) and not is_file
        if step.uses != "python" or not need or is_list:
            values[name] = as_value(value)
        elif name == _parameter_of(need):
            needs.append(need)  # delivered as the parameter is annotated
        elif is_file:
            if step.inline:
                raise UsageError(
                    f"the parameter '{name}' of '{step.function.__name__}' wants the file of '{need}'",
                    hint=f"call it '{_parameter_of(need)}', or leave out inline=True",
                )
            needs.append(need)
            values[name] = f"{INPUTS}{need}"
        else:
            values[name] = as_value(value)
    read = {str(need) for need in needs}
    read |= {part.name for part in parts(values) if isinstance(part, Reference)}
    needs += [{"step": s, "type": "sequence"} for s in step.after_ids if s not in read]
    if needs:
        data["needs"] = needs
    return values


def _parameter_of(step_id: str) -> str:
    """The parameter that gets the artifact of a step by its name."""
    return step_id.replace("-", "_").replace(".", "_")


def _free_id(made: Made, step: Recordable) -> str:
    """The name of the function; from its second call on with a number."""
    if step.step_id:
        if step.step_id in made.steps:
            raise UsageError(f"the plan has a step '{step.step_id}' already")
        return step.step_id
    name, number = step.function.__name__, 1
    name = name if name.isidentifier() else "step"
    found = name
    while found in made.steps:
        number += 1
        found = f"{name}-{number}"
    return found


def _caller() -> Place:
    """Where the program called the step."""
    frame = sys._getframe()  # noqa: SLF001 - a line for messages
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        "holdfast.api"
    ):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
