"""Steps that run once for each item: reading their list, and opening those whose list is known."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Mapping as Table
from dataclasses import replace
from typing import cast

from holdfast.errors import EditError, PlanError, Problem
from holdfast.formats.expressions import template
from holdfast.formats.nodes import FORBIDDEN_VALUE, Listing, Mapping, Node, Scalar
from holdfast.formats.problems import Placed, quoted
from holdfast.formats.reading import Find, Listed, Reading, Use
from holdfast.formats.records import Key, record, record_schema
from holdfast.formats.shapes import GLOB, Shape, pairs
from holdfast.model.digest import EncodingError, Json, canonical
from holdfast.model.expression import Reference, Wrong, fill, is_template, parse
from holdfast.model.items import folded, items_of, opened
from holdfast.model.plan import Step, StepId
from holdfast.model.walls import moved_by

_FILES: dict[str, Key] = {
    "files": Key(
        GLOB, words="A glob; each file that it matches is an item, and an input of its step."
    )
}
_FORMS = "a list, {files: GLOB}, ${{ params.NAME }} or ${{ steps.ID.output.FIELD }}"
_NOT_WITH = {
    "produces": "leave it out: what the items make is gathered for whoever needs the step",
}


def _for_each(reading: Reading, key: str, node: Node) -> Json:
    if isinstance(node, Listing):
        values = [_literal(reading, key, item) for item in node.items]
        reading.listed = Listed(values, node)
        return values
    if isinstance(node, Mapping):
        glob = (record(reading, key, node, _FILES) or {}).get("files")
        if "files" not in node.pairs:
            reading.problems.add("P033", node, f"{reading.label(key)} has no 'files'")
        reading.listed = Listed(None, node)
        return None if glob is None else {"files": str(glob)}
    if isinstance(node.value, str):
        return _referred(reading, key, node, node.value)
    reading.wrong_type(key, node, _FORMS)
    return None


def _literal(reading: Reading, key: str, node: Node) -> Json:
    """An item of a list in the plan; params are filled in, and nothing else can be."""
    if isinstance(node, Mapping):
        return {name: _literal(reading, key, item) for name, item in pairs(reading, node)}
    if isinstance(node, Listing):
        return [_literal(reading, key, item) for item in node.items]
    if not isinstance(node.value, str) or not is_template(node.value):
        return node.value
    if not _has_only(reading, key, node, "params"):
        return None
    return fill(template(reading, key, node), lambda _: None)


def _has_only(reading: Reading, key: str, node: Scalar, root: str) -> bool:
    """Whether all expressions of a text begin with this word; says so if not."""
    for part in parse(str(node.value)):
        if isinstance(part, Reference) and part.root not in {root, "params"}:
            at = reading.spot(node, str(node.value), part.begin, part.at, len(part.path))
            message = f"'{part.path}' cannot be filled into {reading.label(key)}"
            hint = {"item": "read a field of the item: ${{ item.FIELD }}"}.get(
                root, f"write {_FORMS}"
            )
            reading.problems.add("P060", at, message, hint)
            return False
    return True


def _referred(reading: Reading, key: str, node: Scalar, text: str) -> Json:
    parts = parse(text) if is_template(text) else []
    part = parts[0] if len(parts) == 1 else None
    if isinstance(part, Wrong):
        template(reading, key, node)  # says what is wrong
        return None
    if not isinstance(part, Reference) or part.root == "item":
        message = f"{reading.label(key)} must be {_FORMS}"
        reading.problems.add("P090", node, message)
        return None

    def spot(start: int, length: int) -> Placed:
        return reading.spot(node, text, part.begin, start, length)

    if part.root == "steps":
        reading.from_step = Use(part, spot)
        return text
    return _param(reading, key, node, part, spot(*part.place(0)))


def _param(reading: Reading, key: str, node: Scalar, part: Reference, at: Placed) -> Json:
    param = reading.params.get(part.name)
    if param is None:
        template(reading, key, node)  # says that it is not declared
        return None
    if param.given is None:
        return None  # reported
    if param.type == "files":
        paths = param.value if isinstance(param.value, list) else []
        reading.listed = Listed(paths, node)
        return {"files": param.glob}
    if param.type != "list":
        message = f"{reading.label(key)} reads the param '{part.name}', which is no list"
        reading.problems.add("P090", at, message, "a param of type list or files is one")
        return None
    reading.listed = Listed(param.value, node)
    return param.value


def _key(reading: Reading, key: str, node: Node) -> str | None:
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        reading.wrong_type(key, node, "an expression over 'item'")
        return None
    if not _has_only(reading, key, node, "item"):
        return None
    made = template(reading, key, node)
    if not isinstance(made, str) or "item" not in made:
        message = f"{reading.label(key)} is the same for all items"
        reading.problems.add("P091", node, message, "write ${{ item }} or ${{ item.FIELD }}")
        return None
    return made


FOR_EACH: Shape[Json] = Shape(
    _for_each,
    {"anyOf": [{"type": "array"}, {"type": "string"}, record_schema(_FILES, ("files",))]},
)
KEY: Shape[str] = Shape(_key, {"type": "string"})


def check_items(reading: Reading, node: Mapping) -> None:
    """Keys that a step with items cannot have, or that only such a step can have."""
    if "for_each" not in node.pairs:
        if "key" in node.pairs:
            message = f"'key' of {quoted(reading.step)} says nothing: it has no 'for_each'"
            reading.problems.warn("P903", node.pairs["key"][0], message)
        return
    for key, hint in _NOT_WITH.items():
        if key in node.pairs:
            message = f"step {quoted(reading.step)} has 'for_each': every item would have '{key}'"
            reading.problems.add("P093", node.pairs[key][0], message, hint)


def going_on(steps: Table[StepId, Step]) -> dict[StepId, Step]:
    """The steps, each of which goes on without those that say that they are optional."""
    free = {step_id for step_id, step in steps.items() if step.optional}
    if not free:
        return dict(steps)
    return {step_id: _without(step, free) for step_id, step in steps.items()}


def _without(step: Step, free: Collection[StepId]) -> Step:
    if not any(need.step in free and not need.optional for need in step.needs):
        return step
    needs = (replace(n, optional=True) if n.step in free else n for n in step.needs)
    return replace(step, needs=tuple(needs))


def unfolded(
    reading: Reading, steps: Table[StepId, Step], listed: Table[str, Listed], find: Find | None
) -> dict[StepId, Step]:
    """The steps, those with items opened as far as their lists are known."""
    if not any(step.for_each is not None and step.template is None for step in steps.values()):
        return dict(steps)
    found: dict[StepId, Step] = {}
    count = 0
    for step_id, step in steps.items():
        if step.for_each is None or step.template is not None:
            found[step_id] = step
            continue
        base = folded(step)
        if step_id not in listed:
            found[step_id] = base
            continue
        known = listed[step_id]
        try:
            values = _values(reading, base, known, find)
            canonical(values)
            items = items_of(step_id, values, step.key, reading.walls)
            count += len(items)
            _check_count(reading, count)
            found |= opened(base, items)
        except PlanError as error:
            for problem in error.problems:
                reading.problems.add(problem.code, known.node, problem.message, problem.hint)
        except EncodingError as error:
            reading.problems.add("P091", known.node, f"the items of '{step_id}': {error.message}")
        if count > reading.walls.plan_items:  # and no list after this one is opened
            break
    reading.problems.stop()
    return found


def _check_count(reading: Reading, count: int) -> None:
    """Refuse the list that makes a small file a plan that nobody can hold."""
    most = reading.walls.plan_items
    if count > most:
        message = f"the lists of the plan have {count:,} items so far, and {most:,} are the most"
        raise PlanError((Problem(message, hint=moved_by("plan_items", most), code="P011"),))


def _values(reading: Reading, base: Step, listed: Listed, find: Find | None) -> Json:
    if listed.values is not None:
        return listed.values
    glob = str(cast("Table[str, Json]", base.for_each)["files"])
    paths: list[str] = []
    try:
        paths = find(str(reading.root), glob) if find else []
    except EditError as error:
        reading.problems.add("P045", listed.node, f"'for_each' of '{base.id}': {error.message}")
    odd = next((path for path in paths if FORBIDDEN_VALUE.search(path)), None)
    if odd is not None:
        message = f"'for_each' of '{base.id}' matches {quoted(odd)}, a name that a plan cannot hold"
        reading.problems.add("P045", listed.node, message, "rename the file")
        return []
    return paths
