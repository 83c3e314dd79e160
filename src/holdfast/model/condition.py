"""Conditions of steps: comparisons of what steps made with values, and nothing else; nothing is computed.

    when:
      steps.check.output.score: {at_least: 7}        holds if all comparisons of the mapping do
      any:                                           or if one of these does
        - steps.check.output.kind: {in: [a, b]}
        - all: [...]

A value that is not there equals nothing, is in no list and is compared with no number; so only `not` and
`exists: false` hold for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from holdfast.model.digest import EncodingError, Json, spelled
from holdfast.model.expression import CLOSE, OPEN, Reference, parse

OPERATORS = ("equals", "not", "in", "at_least", "at_most", "exists")
JOINS = ("all", "any")
_LONGEST = 60  # characters of a number that a reason names


class Absent(NamedTuple):
    """Stands where a value is not there."""


ABSENT = Absent()
Found = Json | Absent


def referred(path: str) -> Reference | None:
    """What the path of a condition refers to; None if it is no path of a step."""
    parts = parse(f"{OPEN} {path} {CLOSE}")
    part = parts[0] if len(parts) == 1 else None
    return part if isinstance(part, Reference) and part.root == "steps" else None


def references(when: Json) -> Iterator[Reference]:
    """Every reference of a condition."""
    for key, value in cast("Mapping[str, Json]", when).items():
        if key in JOINS:
            for item in cast("Sequence[Json]", value):
                yield from references(item)
        elif (reference := referred(key)) is not None:
            yield reference


def unmet(when: Json, find: Callable[[Reference], Found]) -> str:
    """The first comparison that keeps a condition from holding, in words; empty if it holds."""
    for key, value in cast("Mapping[str, Json]", when).items():
        if key == "any":
            wrong = [unmet(item, find) for item in cast("Sequence[Json]", value)]
            failed = "" if not all(wrong) else " and ".join(wrong)
        elif key == "all":
            found = (unmet(item, find) for item in cast("Sequence[Json]", value))
            failed = next((words for words in found if words), "")
        else:
            reference = referred(key)
            assert reference is not None  # checked when the plan was read
            failed = _compared(key, cast("Mapping[str, Json]", value), find(reference))
        if failed:
            return failed
    return ""


def _compared(path: str, tests: Mapping[str, Json], found: Found) -> str:
    for operator, value in tests.items():
        if not _holds(operator, found, value):
            told = "" if operator == "exists" else f": {_told(found)}"
            return f"{path} {operator} {json.dumps(value, ensure_ascii=False)}{told}"
    return ""


def _told(found: Found) -> str:
    """What was found: a number as it is; of anything else only what it is, because events hold no content."""
    match found:
        case Absent():
            return "nothing is there"
        case None | bool() | int() | float():
            text = json.dumps(found)
            return f"it is {text if len(text) <= _LONGEST else 'a long number'}"
        case str():
            return "it is text"
        case Mapping():
            return "it is an object"
        case _:
            return "it is a list"


def _holds(operator: str, found: Found, value: Json) -> bool:
    if operator == "exists":
        return (not isinstance(found, Absent)) == value
    if isinstance(found, Absent):
        return operator == "not"
    if operator in {"equals", "not"}:
        return _is_same(found, value) == (operator == "equals")
    if operator == "in":
        return any(_is_same(found, item) for item in cast("Sequence[Json]", value))
    if not _is_number(found) or not _is_number(value):
        return False
    number, bound = cast("float", found), cast("float", value)
    return number >= bound if operator == "at_least" else number <= bound


def _is_same(found: Json, value: Json) -> bool:
    """Whether two values are equal; one that has no spelling is equal to none of a plan."""
    try:
        return spelled(found) == spelled(value)
    except EncodingError:
        return False


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
