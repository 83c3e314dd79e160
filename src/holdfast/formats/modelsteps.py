"""Steps of models made by a program: read by the grammar of plan files, so that both mean the same."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypedDict

from holdfast.errors import UsageError
from holdfast.formats.planfile import Asked, load_text
from holdfast.formats.planout import guard_data
from holdfast.model.digest import Json
from holdfast.model.expression import Wrong, parts
from holdfast.model.plan import Guard, Step, StepId


class ModelKeys(TypedDict, total=False):
    """What a step of a model may be told beside its prompt; as in a plan file, `values` are its `with`."""

    model: str | Mapping[str, Json]
    needs: Iterable[str]
    values: Mapping[str, Json]
    inputs: Iterable[str]
    produces: str
    schema: Json
    outputs: Iterable[str]
    guards: Iterable[Guard]
    budget: Mapping[str, Json]
    retries: int
    timeout: str
    tools: Iterable[str]
    turns: int
    description: str
    constraints: str
    specification: str


_LISTS = ("needs", "inputs", "outputs", "tools")


@dataclass(frozen=True, slots=True)
class Around:
    """What a step is made in: the project, steps that are there already, who knows more."""

    root: str
    steps: Collection[str]
    asked: Asked


def model_step(name: str, uses: str, prompt: Json, keys: ModelKeys, around: Around) -> Step:
    """The step; PlanError says what a plan file with it would be told.

    A prompt that is a file may refer to steps that are there already.
    """
    given: dict[str, Json] = {"uses": uses, "prompt": prompt}
    for key, value in keys.items():
        if key == "guards":
            given[key] = [guard_data(guard) for guard in keys["guards"]]
        elif key in _LISTS:
            given[key] = list(value)  # type: ignore[call-overload]  # as ModelKeys says
        else:
            given["with" if key == "values" else key] = value  # type: ignore[assignment]  # as above
    names = {*around.steps, *keys.get("needs", ()), *_read((prompt, keys.get("values", {})))}
    others: dict[str, Json] = {other: {"run": ["true"]} for other in names if other != name}
    plan = {"name": "made", "steps": {**others, name: given}}
    try:
        content = json.dumps(plan, default=dict).encode()
    except TypeError as error:
        raise UsageError(f"a value of '{name}' is not JSON: {error}") from error
    return load_text(content, f"{name}.json", around.root, around.asked).plan.steps[StepId(name)]


def _read(value: Json) -> set[str]:
    """The steps that a prompt and values refer to."""
    found: set[str] = set()
    for part in parts(value):
        if isinstance(part, Wrong):
            raise UsageError(part.message, hint=part.hint)
        if part.root == "steps":
            found.add(part.name)
    return found
