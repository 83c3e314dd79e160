"""A decorated function as an engine calls it, and as a person does."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.api.typed import given, hints_of

Function = Callable[..., object]


def called(function: Function, answer: Callable[[object], object]) -> Function:
    """The function as an engine calls it: arguments from JSON, the result for JSON."""
    hints: dict[str, Any] | None = None

    def converted(args: tuple[object, ...], named: Mapping[str, object]) -> inspect.BoundArguments:
        nonlocal hints
        hints = hints_of(function) if hints is None else hints
        bound = inspect.signature(function).bind(*args, **named)
        for name, value in bound.arguments.items():
            bound.arguments[name] = given(hints.get(name), value)
        return bound

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def later(*args: object, **named: object) -> object:
            bound = converted(args, named)
            return answer(await function(*bound.args, **bound.kwargs))

        return later

    @functools.wraps(function)
    def call(*args: object, **named: object) -> object:
        bound = converted(args, named)
        return answer(function(*bound.args, **bound.kwargs))

    return call
