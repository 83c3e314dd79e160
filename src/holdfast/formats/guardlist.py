"""The guards of a step: a list whose items hold one kind each, or further guards."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from holdfast.formats.nodes import Listing, Mapping, Node, Scalar
from holdfast.formats.problems import quoted
from holdfast.formats.projectfiles import json_schema, rubric_text
from holdfast.formats.reading import Reading, kind_of
from holdfast.formats.records import RESERVED, Key, key_schema, record, record_schema
from holdfast.formats.shapes import (
    COMMAND,
    DURATION,
    FUNCTION,
    LINE,
    PATH,
    TEXT,
    Shape,
    decimal,
    each,
    text,
    whole,
    word,
)
from holdfast.formats.soundness import check_value
from holdfast.model.digest import Json
from holdfast.model.plan import Guard

COMPOSED = {
    "all": "Every guard of the list accepts.",
    "any": "At least one guard of the list accepts.",
    "majority": "More than half of the guards of the list accept.",
}
_MOST_CODE = 255

_REGEX = {
    "pattern": Key(TEXT, words="The pattern, in RE2 syntax."),
    "must": Key(word("match", "absent"), words="Whether the text must match or must not."),
}
_FILE = {
    "path": Key(PATH, words="The file; the artifact itself if left out."),
    "min_bytes": Key(whole(0), words="The least size."),
    "max_bytes": Key(whole(0), words="The largest size."),
}


def _regex(reading: Reading, key: str, node: Node) -> Json:
    given = record(reading, key, node, _REGEX)
    if given is None:
        return None
    pattern = given.get("pattern")
    if not isinstance(pattern, str):
        if isinstance(node, Mapping) and "pattern" not in node.pairs:
            reading.problems.add("P033", node, f"{reading.label(key)} has no 'pattern'")
        return None
    check_value(reading, "regex", {"pattern": pattern}, node)
    return {"pattern": pattern, "must": str(given.get("must", "match"))}


def _file(reading: Reading, key: str, node: Node) -> Json:
    given = record(reading, key, node, _FILE)
    if given is None or not isinstance(node, Mapping):
        return None
    if not node.pairs:
        hint = "give 'path', 'min_bytes' or 'max_bytes'"
        reading.problems.add("P033", node, f"{reading.label(key)} says nothing to check", hint)
        return None
    least, most = given.get("min_bytes"), given.get("max_bytes")
    if isinstance(least, int) and isinstance(most, int) and least > most:
        message = f"'min_bytes' is larger than 'max_bytes' in {reading.label(key)}"
        reading.problems.add("P037", node, message, "swap them")
        return None
    return {name: value for name, value in given.items() if isinstance(value, str | int)}


_HUMAN = {"from": Key(LINE, words="The name that the approver must hold.")}


def _human(reading: Reading, key: str, node: Node) -> Json:
    given = record(reading, key, node, _HUMAN)
    if given is None or not isinstance(node, Mapping):
        return None
    if "from" in given:
        reading.approvers.append((str(given["from"]), node.pairs["from"][1]))
    return {name: str(value) for name, value in given.items()}


_CITES = {
    "each": Key(LINE, words="Where the quotes are in the artifact, as a path of keys."),
    "field": Key(LINE, words="The key that holds a quote; else 'quote'."),
    "in": Key(LINE, words="Where they come from: a needed step, with.NAME, or files as a glob."),
}


def _cites(reading: Reading, key: str, node: Node) -> Json:
    given = record(reading, key, node, _CITES)
    if given is None or not isinstance(node, Mapping):
        return None
    if "in" not in node.pairs:
        reading.problems.add("P033", node, f"{reading.label(key)} has no 'in'")
    if "in" not in given:
        return None
    return {"field": "quote", **{name: str(value) for name, value in given.items()}}


_VOTES = (1, 3, 5)
_MOST_VOTES = max(_VOTES)


def _votes(reading: Reading, key: str, node: Node) -> int | None:
    value = whole(1).read(reading, key, node)
    if value is not None and value not in _VOTES:
        message = f"{reading.label(key)} must be 1, 3 or {_MOST_VOTES}: a majority is wanted"
        near = min(_VOTES, key=lambda votes: abs(votes - value))
        reading.problems.add("P037", node, message, f"the nearest is {near}")
        return None
    return value


_JUDGE = {
    "rubric": Key(Shape(rubric_text, TEXT.schema), words="What to look for: a text or a file."),
    "min": Key(decimal(0, 1), words="The least score, from 0 to 1, that accepts; else 0.8."),
    "model": Key(LINE, words="Who judges, as provider:name or by tier; else the step's model."),
    "votes": Key(
        Shape(_votes, {"enum": list(_VOTES)}),
        words="How many judges are asked; more than half decide.",
    ),
}


def _judge(reading: Reading, key: str, node: Node) -> Json:
    given = record(reading, key, node, _JUDGE)
    if given is None or not isinstance(node, Mapping):
        return None
    if "rubric" not in node.pairs:
        reading.problems.add("P033", node, f"{reading.label(key)} has no 'rubric'")
    rubric = given.get("rubric")
    if not isinstance(rubric, str):
        return None
    if not rubric.strip():
        reading.problems.add("P046", node, f"the rubric of {reading.label(key)} is empty")
        return None
    config: dict[str, Json] = {"min": 0.8, "votes": 1}
    return {**config, **given}  # type: ignore[dict-item]  # the table reads text and numbers


def _argv(reading: Reading, key: str, node: Node) -> Json:
    argv = COMMAND.read(reading, key, node)
    return None if argv is None else list(argv)


def _codes(reading: Reading, key: str, node: Node) -> tuple[int, ...] | None:
    """Exit codes that end the step at once."""
    codes: dict[int, Node] = {}
    for item in each(node):
        value = item.value if isinstance(item, Scalar) else None
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST_CODE:
            message = f"{reading.label(key)} must hold exit codes from 1 to {_MOST_CODE}"
            hint = "write whole numbers, as [2, 70]"
            reading.problems.add("P037", item, message, hint)
            return None
        codes[value] = item
    return tuple(codes)


_SCHEMA_FILE: Json = {"anyOf": [{"type": "string"}, {"type": "object"}]}
GUARD_KINDS: dict[str, Key] = {
    "command": Key(
        Shape(_argv, COMMAND.schema),
        words="A command that exits 0; HOLDFAST_ARTIFACT names the candidate.",
    ),
    "python": Key(FUNCTION, words="A function that returns True or nothing; text is the feedback."),
    "json-schema": Key(
        Shape(json_schema, _SCHEMA_FILE),
        words="The artifact is JSON under this schema, inline or a file.",
    ),
    "regex": Key(
        Shape(_regex, record_schema(_REGEX, ("pattern",))),
        words="The text matches a pattern, or does not.",
    ),
    "syntax": Key(word("python", "json", "yaml"), words="The artifact can be parsed."),
    "file": Key(Shape(_file, record_schema(_FILE)), words="A file is there and has a size."),
    "human": Key(Shape(_human, record_schema(_HUMAN)), words="A person accepts the artifact."),
    "judge": Key(
        Shape(_judge, record_schema(_JUDGE, ("rubric",))),
        words="A model gives the artifact a score by a rubric.",
    ),
    "cites": Key(
        Shape(_cites, record_schema(_CITES, ("in",))),
        words="Every quote of the artifact is found in its source.",
    ),
    "has": RESERVED,
    "handoff": RESERVED,
}
BESIDE: dict[str, Key] = {
    "name": Key(LINE, words="How verdicts call this guard."),
    "timeout": Key(DURATION, words="How long it may take."),
    "fatal_on": Key(
        Shape(_codes, {"type": "array", "items": {"type": "integer"}}),
        words="Exit codes that end the step at once.",
    ),
}
_ITEM = {**GUARD_KINDS, **dict.fromkeys(COMPOSED, RESERVED), **BESIDE}


def guards(reading: Reading, key: str, node: Node) -> tuple[Guard, ...] | None:
    """Guards in their order, each with a name that no other one of the list has."""
    if not isinstance(node, Listing):
        reading.wrong_type(key, node, "a list")
        return None
    found = [(_guard(reading, item), item) for item in node.items]
    made = [(guard, item) for guard, item in found if guard is not None]
    return _named(reading, key, made)


def _guard(reading: Reading, node: Node) -> Guard | None:
    if isinstance(node, Scalar):
        return _word(reading, node)
    if not isinstance(node, Mapping):
        message = f"a guard is a mapping with one kind, not {kind_of(node)}"
        reading.problems.add("P047", node, message)
        return None
    kinds = [name for name in node.pairs if name in GUARD_KINDS or name in COMPOSED]
    if len(kinds) > 1:
        message = f"a guard has one kind, not {len(kinds)}: {', '.join(kinds)}"
        hint = "make each an item of its own, or put them under 'all'"
        reading.problems.add("P047", node.pairs[kinds[1]][0], message, hint)
        return None
    composed = next((name for name in kinds if name in COMPOSED), None)
    if composed is not None:
        return _composed(reading, node, composed)
    given = record(reading, "guards", node, _ITEM)
    if not kinds:
        if node.pairs.keys() <= BESIDE.keys():
            hint = f"one of {', '.join(name for name in _ITEM if name not in BESIDE)}"
            reading.problems.add("P047", node, "a guard has no kind", hint)
        return None
    kind = kinds[0]
    if given is None or kind not in given:
        return None
    if "fatal_on" in given and kind != "command":
        message = f"'fatal_on' names exit codes, and a '{kind}' guard has none"
        reading.problems.add("P035", node.pairs["fatal_on"][0], message)
    if "timeout" in given and kind == "human":
        message = "a 'human' guard has no 'timeout': a person takes the time it takes"
        reading.problems.add("P035", node.pairs["timeout"][0], message)
    return _made(kind, given)


def _made(kind: str, given: dict[str, object], items: tuple[Guard, ...] = ()) -> Guard:
    config = given.get(kind)
    return Guard(
        kind=kind,
        config=config,  # type: ignore[arg-type]  # every kind in the table reads JSON
        name=str(given.get("name", "")),
        timeout=given.get("timeout"),  # type: ignore[arg-type]  # DURATION reads a float
        fatal_on=given.get("fatal_on", ()),  # type: ignore[arg-type]  # _codes reads a tuple of int
        items=items,
    )


def _word(reading: Reading, node: Scalar) -> Guard | None:
    value = text(reading, "guards", node)
    if value is None:
        return None
    if value == "human":
        return Guard("human")
    if value in GUARD_KINDS:
        if GUARD_KINDS[value].shape is None:
            message = f"the guard '{value}' is not available in this version"
            reading.problems.add("P031", node, message)
        else:
            message = f"the guard '{value}' needs a value"
            reading.problems.add("P047", node, message, f"write it as '{value}: …'")
        return None
    guess = reading.problems.did_you_mean(value, GUARD_KINDS)
    reading.problems.add("P034", node, f"{quoted(value)} is not a kind of guard", guess)
    return None


def _composed(reading: Reading, node: Mapping, kind: str) -> Guard | None:
    rest = Mapping({k: v for k, v in node.pairs.items() if k != kind}, node.line, node.column)
    given = record(reading, "guards", rest, _ITEM) or {}
    for name in ("timeout", "fatal_on"):
        if name in given:
            message = f"'{name}' belongs to the guards inside '{kind}'"
            reading.problems.add("P035", node.pairs[name][0], message)
    place, inner = node.pairs[kind]
    items = guards(reading, kind, inner)
    if items is None:
        return None
    if not items and isinstance(inner, Listing) and not inner.items:
        reading.problems.add("P047", place, f"'{kind}' holds no guards")
    _check_people(reading, kind, items, place)
    return _made(kind, {"name": given.get("name", "")}, items)


def _check_people(reading: Reading, kind: str, items: tuple[Guard, ...], place: Scalar) -> None:
    """People are asked about what the other guards leave open, all of them at once: each must agree."""
    asking = [item.name for item in items if item.asks]
    if kind == "majority" and asking:
        message = "'majority' holds a 'human' guard, and people are not counted against guards"
        reading.problems.add("P047", place, message, "put the human guard beside it, or use 'any'")
    elif kind == "any" and len(asking) > 1:
        message = f"'any' holds {len(asking)} guards that ask a person: {', '.join(asking)}"
        hint = "keep one of them: a 'human' guard without 'from' may be answered by anybody"
        reading.problems.add("P047", place, message, hint)


def _named(reading: Reading, key: str, made: list[tuple[Guard, Node]]) -> tuple[Guard, ...]:
    """A guard without a name is called by its kind, with its position if that is not enough."""
    kinds = Counter(guard.kind for guard, _ in made if not guard.name)
    taken: dict[str, Node] = {}
    for guard, node in made:
        if guard.name and guard.name in taken:
            message = f"two guards of {reading.label(key)} are called {quoted(guard.name)}"
            reading.problems.add("P038", node, message)
        elif guard.name:
            taken[guard.name] = node
    named = []
    for position, (guard, _) in enumerate(made, 1):
        name = guard.name or guard.kind
        if not guard.name and (kinds[guard.kind] > 1 or name in taken):
            name = f"{guard.kind}-{position}"
        while not guard.name and name in taken:
            name += "'"
        named.append(replace(guard, name=name) if name != guard.name else guard)
    return tuple(named)


def guard_schema() -> Json:
    """An item of `guards`, for the definitions of the JSON Schema."""
    beside = {name: key_schema(key) for name, key in BESIDE.items()}
    forms: list[Json] = [
        {
            "type": "object",
            "properties": {name: key_schema(key), **beside},
            "required": [name],
            "additionalProperties": False,
        }
        for name, key in GUARD_KINDS.items()
        if key.shape
    ]
    inner: dict[str, Json] = {
        "type": "array",
        "items": {"$ref": "#/$defs/guard"},
        "minItems": 1,
    }
    forms.extend(
        {
            "type": "object",
            "properties": {name: {**inner, "description": words}, "name": beside["name"]},
            "required": [name],
            "additionalProperties": False,
        }
        for name, words in COMPOSED.items()
    )
    return {"anyOf": [{"const": "human"}, *forms]}


GUARDS = Shape(guards, {"type": "array", "items": {"$ref": "#/$defs/guard"}})
