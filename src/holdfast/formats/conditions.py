"""The condition of a step: comparisons of what steps made with values, joined by all and any."""

from __future__ import annotations

from holdfast.formats.nodes import Listing, Mapping, Node, Scalar
from holdfast.formats.problems import Placed, quoted
from holdfast.formats.reading import Reading, Use
from holdfast.formats.shapes import Shape, plain
from holdfast.model.condition import JOINS, OPERATORS, referred
from holdfast.model.digest import Json
from holdfast.model.expression import Reference

_FORM = "{steps.ID.output.FIELD: {equals: VALUE}}"


def _when(reading: Reading, key: str, node: Node) -> Json:
    if not isinstance(node, Mapping):
        reading.wrong_type(key, node, f"comparisons like {_FORM}")
        return None
    if not node.pairs:
        return _empty(reading, key, node, f"comparisons like {_FORM}")
    found: dict[str, Json] = {}
    for name, (place, value) in node.pairs.items():
        if name in JOINS:
            found[name] = _joined(reading, name, value)
        else:
            _note(reading, key, name, place)
            found[name] = _tests(reading, key, value)
    return found


def _joined(reading: Reading, key: str, node: Node) -> Json:
    if not isinstance(node, Listing):
        reading.wrong_type(key, node, "a list of conditions")
        return []
    if not node.items:
        return _empty(reading, key, node, f"conditions like {_FORM}")
    return [_when(reading, key, item) for item in node.items]


def _empty(reading: Reading, key: str, node: Node, wanted: str) -> Json:
    message = f"{reading.label(key)} has an empty condition, which says nothing"
    reading.problems.add("P032", node, message, f"write {wanted}")
    return {}


def _note(reading: Reading, key: str, path: str, place: Scalar) -> None:
    """The step that is compared comes first."""
    reference = referred(path)
    if reference is None:
        message = f"{quoted(path)} in {reading.label(key)} is no path of a step"
        reading.problems.add("P094", place, message, f"write {_FORM}, all or any")
        return

    def spot(_start: int, _length: int) -> Placed:
        return place

    at: Reference = reference
    reading.conditions.append(Use(at, spot))


def _tests(reading: Reading, key: str, node: Node) -> Json:
    if not isinstance(node, Mapping):
        reading.wrong_type(key, node, f"a comparison: {', '.join(OPERATORS)}")
        return {}
    if not node.pairs:
        return _empty(reading, key, node, f"a comparison: {', '.join(OPERATORS)}")
    found: dict[str, Json] = {}
    for name, (place, value) in node.pairs.items():
        if name not in OPERATORS:
            guess = reading.problems.did_you_mean(name, OPERATORS)
            message = f"{quoted(name)} in {reading.label(key)} compares nothing"
            reading.problems.add("P094", place, message, guess or f"known: {', '.join(OPERATORS)}")
            continue
        found[name] = plain(reading, key, value)
        if wanted := _misfit(name, found[name]):
            message = f"'{name}' in {reading.label(key)} is compared with {wanted}"
            reading.problems.add("P094", value, message)
    return found


def _misfit(operator: str, value: Json) -> str:
    """What the value of a comparison should be; empty if it is."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if operator in {"at_least", "at_most"} and not is_number:
        return "a number"
    if operator == "in" and not isinstance(value, list):
        return "a list"
    return "true or false" if operator == "exists" and not isinstance(value, bool) else ""


WHEN: Shape[Json] = Shape(_when, {"type": "object", "minProperties": 1})
