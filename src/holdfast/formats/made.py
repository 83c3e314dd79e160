"""Plans that a program made: read by the grammar of plan files, so that both mean the same.

Each step stands on a line of its own in the text that is read, so that what is wrong with one can be
told with the place in the program where it was called.
"""

from __future__ import annotations

import json
import linecache
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from holdfast.errors import PlanError, Problem, UsageError
from holdfast.formats.planfile import Asked, Loaded, load_text
from holdfast.model.digest import Json

_HEAD = 1  # the line before the first step


class Made(Protocol):
    """What a program made: the data of a plan file, and where in the program each step was called."""

    @property
    def head(self) -> Mapping[str, Json]: ...
    @property
    def steps(self) -> Mapping[str, Mapping[str, Json]]: ...
    @property
    def places(self) -> Mapping[str, tuple[str, int]]: ...
    @property
    def inline(self) -> Mapping[str, object]: ...
    @property
    def root(self) -> str: ...


def load_made(made: Made, file: str, asked: Asked) -> Loaded:
    """The plan; a PlanError names the places of the program. `file` is what is called wrong as a whole."""
    places = list(made.places.values())

    def moved(problem: Problem) -> Problem:
        step = problem.line - _HEAD - 1
        if not problem.line or not 0 <= step < len(places):
            return replace(problem, file=file, line=0, column=0, width=0)
        where = places[step]
        line, column = placed(*where)
        return replace(problem, file=where[0], line=line, column=column, width=0)

    try:
        loaded = load_text(_content(made), f"{file}.json", made.root, asked)
    except PlanError as error:
        raise PlanError(tuple(moved(problem) for problem in error.problems)) from None
    warnings = tuple(moved(problem) for problem in loaded.warnings)
    return replace(loaded, file=file, warnings=warnings)


def placed(file: str, line: int) -> tuple[int, int]:
    """A line of a program, and the column where its code begins; 0 if there is no such line."""
    linecache.checkcache(file)
    text = linecache.getline(file, line)
    return line, len(text) - len(text.lstrip()) + 1 if line else 0


def _content(made: Made) -> bytes:
    head = _json("the plan", made.head)[:-1]
    steps = [f"{json.dumps(name)}: {_json(name, step)}" for name, step in made.steps.items()]
    return "\n".join([f'{head}, "steps": {{', ",\n".join(steps), "}}"]).encode()


def _json(name: str, value: Mapping[str, Json]) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"a value of '{name}' is not JSON: {error}") from error
