"""A decorated function as an engine calls it, and as a person does."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.api.typed import given, hints_of, manner_of
from holdfast.errors import UsageError
from holdfast.generators.child import signature

Function = Callable[..., object]


def called(function: Function, answer: Callable[[object], object]) -> Function:
    """The function as an engine calls it: arguments from JSON, the result for JSON."""
    hints, shape = hints_of(function), signature(function)

    def converted(args: tuple[object, ...], named: Mapping[str, object]) -> inspect.BoundArguments:
        bound = shape.bind(*args, **named)
        for name, value in bound.arguments.items():
            if shape.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                fitted = {key: _fitted(function, name, hints, item) for key, item in value.items()}
                bound.arguments[name] = fitted
            else:
                bound.arguments[name] = _fitted(function, name, hints, value)
        return bound

    def answered(result: object) -> object:
        try:
            return answer(result)
        except RecursionError:
            message = (
                f"the result of '{name_of(function)}' is no JSON: it contains itself, or has no end"
            )
            raise ValueError(message) from None

    call: Function
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def later(*args: object, **named: object) -> object:
            bound = converted(args, named)
            return answered(await function(*bound.args, **bound.kwargs))

        call = later
    else:

        @functools.wraps(function)
        def at_once(*args: object, **named: object) -> object:
            bound = converted(args, named)
            return answered(function(*bound.args, **bound.kwargs))

        call = at_once
    # What is annotated as one thing or another is text here, and converted above.
    taken = [
        parameter.replace(annotation=manner_of(hints.get(name, str)))
        for name, parameter in shape.parameters.items()
    ]
    vars(call)["__signature__"] = shape.replace(parameters=taken)  # where inspect looks first
    return call


def functional(thing: object, what: str) -> Function:
    """A function that was decorated; UsageError if it is something else that can be called, or cannot."""
    if isinstance(thing, staticmethod):
        thing = thing.__func__
    is_ours = any(hasattr(type(thing), f"__holdfast_{part}__") for part in ("call", "made"))
    if (
        callable(thing)
        and hasattr(thing, "__name__")
        and not is_ours
        and not isinstance(thing, type)
    ):
        return thing
    shown = getattr(thing, "__name__", type(thing).__name__)
    raise UsageError(
        f"@{what} belongs before a function, and '{shown}' is none", hint="write a def"
    )


def name_of(function: object) -> str:
    """What a function is called; some callables have no name."""
    return str(getattr(function, "__name__", type(function).__name__))


def _fitted(function: Function, name: str, hints: Mapping[str, Any], value: object) -> object:
    try:
        return given(hints.get(name), value)
    except (TypeError, ValueError, KeyError) as error:
        kind = getattr(hints[name], "__name__", hints[name])
        message = f"the argument '{name}' of '{name_of(function)}' is no '{kind}': {error}"
        raise TypeError(message) from None
