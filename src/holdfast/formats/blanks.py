"""Templates: plan files whose params are filled in when a project is made from them.

The text of the file stays as it is, comments and all; only `params` is written anew, with the values as
defaults. A file in which `params` does not stand on lines of its own is written anew as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping as Table
from collections.abc import Sequence
from typing import NamedTuple, cast

import yaml

from holdfast.formats.nodes import Mapping, Node, Scalar, read
from holdfast.formats.params import taken
from holdfast.formats.problems import BEGIN, Problems
from holdfast.formats.reading import ParamType, Reading
from holdfast.formats.shapes import plain
from holdfast.model.digest import Json
from holdfast.model.expression import literals


class Blank(NamedTuple):
    """A param of a template: what it is, and what it is unless something else is said."""

    name: str
    type: ParamType
    has_default: bool
    default: Json


def blanks(content: bytes, file: str, reading: Reading) -> dict[str, Blank]:
    """The params that a template declares; PlanError if it is no plan file at all."""
    declared = _declared(_tree(content, file, reading.problems))
    found: dict[str, Blank] = {}
    for name, (_, value) in declared.items():
        given = cast("Table[str, Json]", plain(reading, "params", value))
        kind = cast("ParamType", given.get("type", "string"))
        found[name] = Blank(name, kind, "default" in given, given.get("default"))
    return found


def filled_in(content: bytes, file: str, reading: Reading, values: Table[str, Json]) -> bytes:
    """The template with these values as the defaults of its params; UsageError if one is of another type."""
    known = blanks(content, file, reading)
    if not values:
        return content
    made: dict[str, Json] = {}
    for name, blank in known.items():
        made[name] = {"type": blank.type}
        if name in values:
            value = taken(name, blank.type, values[name])
            made[name] = {"type": blank.type, "default": literals(value)}
        elif blank.has_default:
            made[name] = {"type": blank.type, "default": blank.default}
    tree = _tree(content, file, reading.problems)
    lines = content.decode("utf-8-sig").splitlines(keepends=True)
    place = _lines_of(tree, "params", lines)
    if place is None or file.endswith(".json"):
        whole = cast("dict[str, Json]", plain(reading, "plan", tree))
        return _dumped({**whole, "params": made}, file).encode()
    first, last = place
    written = _dumped({"params": made}, "plan.yaml")
    return "".join([*lines[:first], written, *lines[last:]]).encode()


def _tree(content: bytes, file: str, problems: Problems) -> Mapping:
    tree = read(content, problems, strict_json=file.endswith(".json"))
    if not isinstance(tree, Mapping):
        raise problems.fatal("P032", tree, "a plan is a mapping with 'steps'", BEGIN)
    return tree


def _declared(tree: Mapping) -> Table[str, tuple[Scalar, Node]]:
    given = tree.pairs.get("params")
    if given is None or not isinstance(given[1], Mapping):
        return {}
    pairs = given[1].pairs
    return {name: pair for name, pair in pairs.items() if isinstance(pair[1], Mapping)}


def _lines_of(tree: Mapping, key: str, lines: Sequence[str]) -> tuple[int, int] | None:
    """The lines that a key of the plan has for itself, from and up to; None if it shares them.

    Comments between it and the next key belong to that one.
    """
    places = sorted((place.line, place.column, name) for name, (place, _) in tree.pairs.items())
    for number, (line, column, name) in enumerate(places):
        if name != key:
            continue
        is_last = number + 1 == len(places)
        after = (len(lines) + 1, 1, "") if is_last else places[number + 1]
        if column != 1 or after[1] != 1 or after[0] == line:
            return None
        end = after[0] - 1
        while end > line and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
            end -= 1
        return line - 1, end
    return None


def _dumped(data: Table[str, Json], file: str) -> str:
    if file.endswith(".json"):
        return json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
