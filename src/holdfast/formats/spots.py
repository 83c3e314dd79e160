"""Where in a plan file a step, its prompt and its guards stand: for whoever points at a line of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import PlanError
from holdfast.formats.heading import python_part
from holdfast.formats.nodes import BOUNDS, Listing, Mapping, Node, Scalar, read
from holdfast.formats.problems import Problems
from holdfast.formats.projectfiles import PROMPT_FILES
from holdfast.model.items import base_of
from holdfast.model.plan import StepId

_NUMBERED = re.compile(r"(.+)-([0-9]+)\Z")
_WORK = ("run", "shell", "prompt", "uses")  # what a step does, the first that it says


class Spot(NamedTuple):
    """A line of a file."""

    file: str
    line: int = 1


@dataclass(frozen=True, slots=True)
class Spots:
    """The places of a plan's steps; all of them are the first line if the file is no plan file."""

    file: str
    steps: dict[str, tuple[Scalar, Node]] = field(default_factory=dict)

    def step(self, step_id: StepId) -> Spot:
        """Where a step begins: that of an item is its step, that of a sub-plan the one which names it."""
        found = self._found(step_id)
        return Spot(self.file, found[0].line if found else 1)

    def work(self, step_id: StepId) -> Spot:
        """Where it says what is done: its command, or its prompt, which may be a file of its own."""
        found = self._found(step_id)
        if found is None or not isinstance(found[1], Mapping):
            return self.step(step_id)
        for key in _WORK:
            if key in found[1].pairs:
                name, value = found[1].pairs[key]
                if key == "prompt" and (own := self._prompt_file(value)):
                    return Spot(own)
                return Spot(self.file, name.line)
        return self.step(step_id)

    def guard(self, step_id: StepId, name: str) -> Spot:
        """Where a guard stands, by the name that verdicts give it; else where the guards begin."""
        found = self._found(step_id)
        if found is None or not isinstance(found[1], Mapping):
            return self.step(step_id)
        listed = found[1].pairs.get("guards")
        if listed is None:
            key = found[1].pairs.get("schema")  # a schema is guarded without being listed
            return Spot(self.file, key[0].line) if key else self.step(step_id)
        key_of, node = listed
        items = node.items if isinstance(node, Listing) else []
        path = name.partition("/")[0]
        for item in items:
            if path in _names(item):
                return Spot(self.file, item.line)
        numbered = _NUMBERED.match(path)
        if numbered and 0 < int(numbered[2]) <= len(items):
            return Spot(self.file, items[int(numbered[2]) - 1].line)
        return Spot(self.file, key_of.line)

    def _found(self, step_id: StepId) -> tuple[Scalar, Node] | None:
        name = str(base_of(step_id) or step_id)
        while name not in self.steps and "." in name:
            name = name.rpartition(".")[0]
        return self.steps.get(name)

    def _prompt_file(self, node: Node) -> str:
        """The file that a prompt names, as it is to be found from here."""
        text = node.value if isinstance(node, Scalar) else None
        if not isinstance(text, str) or not text.endswith(PROMPT_FILES) or os.path.isabs(text):
            return ""
        path = os.path.join(os.path.dirname(self.file), text)
        try:
            return path if os.path.isfile(path) else ""
        except ValueError:
            return ""


def _names(item: Node) -> Iterator[object]:
    """What a guard may be called: its name, else its kind."""
    if isinstance(item, Scalar):
        yield item.value
    elif isinstance(item, Mapping):
        own = item.pairs.get("name")
        if own is not None and isinstance(own[1], Scalar):
            yield own[1].value
        else:
            yield from item.pairs


def spots(path: str) -> Spots:
    """The places in a plan file; of one that is Python, or cannot be read, nothing but its first line."""
    python = python_part(path)[0]
    if python:
        return Spots(python)
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(BOUNDS.size + 1)
        tree = read(content, Problems(path), strict_json=path.endswith(".json"))
    except (OSError, PlanError):
        return Spots(path)
    listed = tree.pairs.get("steps") if isinstance(tree, Mapping) else None
    if listed is None or not isinstance(listed[1], Mapping):
        return Spots(path)
    return Spots(path, listed[1].pairs)
