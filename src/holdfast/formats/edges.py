"""What a step needs, reads and makes, as a plan file says it, with the places."""

from __future__ import annotations

from typing import NamedTuple, cast

from holdfast.formats.nodes import Mapping, Node
from holdfast.formats.problems import Placed, quoted
from holdfast.formats.reading import Reading
from holdfast.formats.records import Key, record
from holdfast.formats.shapes import FLAG, GLOB, LINE, PATH, TEXT, each, text, twice, word
from holdfast.model.glob import parents
from holdfast.model.plan import Input, Need, NeedType, StepId


class At(NamedTuple):
    """A part of a step and its place, kept until the whole graph is known."""

    value: str
    node: Node


class NeedAt(NamedTuple):
    """A need, the place of its step, and that of its key if it has one."""

    need: Need
    node: Placed
    key_node: Placed | None = None


class InputAt(NamedTuple):
    input: Input
    node: Placed


NEED: dict[str, Key] = {
    "step": Key(TEXT, words="The step that comes first."),
    "type": Key(
        word("data", "sequence", "approval"),
        words="data is delivered and decides the result; sequence only orders; approval also asks.",
    ),
    "key": Key(LINE, words="A key that the artifact of the step must have."),
    "from": Key(LINE, words="The name that the approver must hold; data with it asks, too."),
    "optional": Key(FLAG, words="Whether to go on without it if it fails or is left out."),
}


def read_needs(reading: Reading, _key: str, node: Node) -> list[NeedAt] | None:
    found = []
    for item in each(node):
        need = _need(reading, item)
        if need is not None:
            found.append(need)
    return found


def _need(reading: Reading, node: Node) -> NeedAt | None:
    if not isinstance(node, Mapping):
        step = text(reading, "needs", node)
        return None if step is None else NeedAt(Need(StepId(step)), node)
    given = record(reading, "needs", node, NEED) or {}
    step_node = node.pairs.get("step")
    if step_node is None:
        reading.problems.add("P033", node, "an item of 'needs' has no 'step'")
        return None
    if "step" not in given:
        return None
    kind = cast("NeedType", given.get("type", "data"))
    key, approver = str(given.get("key", "")), str(given.get("from", ""))
    if key and kind != "data":
        message = f"a need of type '{kind}' hands nothing over and can have no 'key'"
        reading.problems.add("P035", node.pairs["key"][0], message)
    if approver and kind == "sequence":
        message = f"a need of type '{kind}' asks nobody and can have no 'from'"
        reading.problems.add("P035", node.pairs["from"][0], message, "say type: approval")
    if approver and kind != "sequence":
        reading.approvers.append((approver, node.pairs["from"][1]))
    key_node = node.pairs["key"][1] if key else None
    optional = given.get("optional") is True
    need = Need(StepId(str(given["step"])), kind, key, approver, optional)
    return NeedAt(need, step_node[1], key_node)


INPUT: dict[str, Key] = {
    "glob": Key(GLOB, words="Files that the step reads; * ? [ ] and ** work."),
    "optional": Key(FLAG, words="Whether it may match nothing."),
}


def read_inputs(reading: Reading, key: str, node: Node) -> list[InputAt] | None:
    found: list[InputAt] = []
    seen: dict[str, Node] = {}
    for item in each(node):
        place, optional = item, False
        if isinstance(item, Mapping):
            given = record(reading, key, item, INPUT) or {}
            if "glob" not in item.pairs:
                reading.problems.add("P033", item, "an item of 'inputs' has no 'glob'")
                continue
            place, optional = item.pairs["glob"][1], given.get("optional") is True
            value = given.get("glob")
        else:
            value = GLOB.read(reading, key, item)
        if isinstance(value, str):
            twice(reading, key, value, place, seen)
            found.append(InputAt(Input(value, optional), place))
    return found


def read_produces(reading: Reading, key: str, node: Node) -> list[At] | None:
    found: dict[str, Node] = {}
    for item in each(node):
        value = PATH.read(reading, key, item)
        if value is not None:
            twice(reading, key, value, item, found)
    if len(found) > 1:
        for value, item in found.items():
            outer = next((parent for parent in parents(value) if parent in found), None)
            if outer is not None:
                both = f"{reading.label(key)} names both"
                message = f"{quoted(value)} lies in {quoted(outer)}, and {both}"
                reading.problems.add("P044", item, message, "keep the directory")
    return [At(value, item) for value, item in found.items()]
