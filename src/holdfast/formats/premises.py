"""What a plan stands on: hypotheses, requirements, what is known and what is not, and when to plan again.

None of it decides the result of a step. The ledger begins with it, steps are told of it, and it says when the
plan no longer holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from collections.abc import Mapping as Table

from holdfast.formats.nodes import Listing, Mapping, Node, Scalar
from holdfast.formats.problems import Placed, quoted
from holdfast.formats.reading import Reading
from holdfast.formats.records import Key, record, record_schema
from holdfast.formats.shapes import (
    FLAG,
    LINE,
    PATH,
    PROSE,
    Shape,
    each,
    list_of,
    prose,
    whole,
    word,
)
from holdfast.model.digest import Json
from holdfast.model.plan import Plan

TYPES = ("research", "synthesize", "experiment", "develop")
MODES = {
    "exploratory": "experiment",
    "confirmatory": "experiment",
    "integrative": "synthesize",
    "evaluative": "synthesize",
}
STANDINGS = ("untested", "testing", "supported", "refuted", "inconclusive")
PROSES = list_of(prose, PROSE.schema)

HYPOTHESIS: dict[str, Key] = {
    "statement": Key(PROSE, words="What is held to be so."),
    "assumptions": Key(PROSES, words="What it takes for granted."),
    "testable_via": Key(PROSE, words="How it can be tested."),
    "status": Key(word(*STANDINGS), words="How it stands before the plan runs; else untested."),
    "critical": Key(
        FLAG,
        words="Whether the plan stands on it; else only if a step that develops comes after its test.",
    ),
}
REQUIREMENT: dict[str, Key] = {
    "description": Key(PROSE, words="What is required."),
    "priority": Key(word("must", "should", "could"), words="How much it is; else should."),
}


def _surprises(reading: Reading, key: str, node: Node) -> tuple[Json, ...]:
    """Texts, or mappings of texts such as what may come and how it would be noticed."""
    found: list[Json] = []
    for item in each(node):
        value = (
            _texts(reading, key, item) if isinstance(item, Mapping) else prose(reading, key, item)
        )
        if value is not None:
            found.append(value)
    return tuple(found)


def _texts(reading: Reading, key: str, node: Mapping) -> Json:
    found: dict[str, Json] = {}
    for name, (place, value) in node.pairs.items():
        told = prose(reading, key, value)
        if LINE.read(reading, key, place) is not None and told is not None:
            found[name] = told
    return found


_SURPRISE: Json = {
    "anyOf": [PROSE.schema, {"type": "object", "additionalProperties": PROSE.schema}]
}
UNKNOWNS: dict[str, Key] = {
    "known_knowns": Key(
        PROSES, words="What the plan takes for known; a finding that refutes it speaks against it."
    ),
    "known_unknowns": Key(PROSES, words="Questions that are known to be open."),
    "unknown_unknowns": Key(
        Shape(_surprises, {"anyOf": [_SURPRISE, {"type": "array", "items": _SURPRISE}]}),
        words="Where surprises may come from, and how they would be noticed.",
    ),
    "community_check": Key(PROSE, words="Whom or what to ask for what nobody here thinks of."),
}


def _gaps(reading: Reading, key: str, node: Node) -> Json:
    if isinstance(node, Scalar) and node.value is False:
        return False
    return whole(0).read(reading, key, node)


REPLAN: dict[str, Key] = {
    "assumptions": Key(FLAG, words="Whether a finding or question against a known fact counts."),
    "gaps": Key(
        Shape(_gaps, {"anyOf": [whole(0).schema, {"const": False}]}),
        words="How many critical things may be left undone, or false; else 3.",
    ),
    "hypotheses": Key(FLAG, words="Whether a critical hypothesis that is refuted counts."),
    "requests": Key(FLAG, words="Whether a handoff may ask for another plan."),
    "rounds": Key(
        whole(0), words="How many other plans are made before a person is asked; else 1."
    ),
    "ask": Key(
        FLAG, words="Whether a person says yes before another plan takes its place; else true."
    ),
    "to": Key(
        PATH,
        words="A plan file beside this one that the line goes on with when it no longer holds.",
    ),
}


def _by_id(
    what: str, table: dict[str, Key], required: str
) -> Callable[..., dict[str, Json] | None]:
    def read(reading: Reading, key: str, node: Node) -> dict[str, Json] | None:
        if not isinstance(node, Mapping):
            reading.wrong_type(key, node, f"a mapping of ids to {what}")
            return None
        found: dict[str, Json] = {}
        for name, (place, value) in node.pairs.items():
            given = record(reading, key, value, table)
            if LINE.read(reading, key, place) is None or given is None:
                continue
            if isinstance(value, Mapping) and required not in value.pairs:
                message = f"{quoted(name)} of '{key}' has no '{required}'"
                reading.problems.add("P033", place, message)
            found[name] = _json(given)
        return found

    return read


def _part(table: dict[str, Key]) -> Callable[..., dict[str, Json] | None]:
    def read(reading: Reading, key: str, node: Node) -> dict[str, Json] | None:
        given = record(reading, key, node, table)
        return None if given is None else _json(given)

    return read


def _json(given: Table[str, object]) -> dict[str, Json]:
    """Lists for tuples: as a stored plan has them."""
    return {
        key: list(value) if isinstance(value, tuple) else value  # type: ignore[misc]  # as the tables read
        for key, value in given.items()
    }


def _ids_of(name: str) -> Json:
    return {"type": "object", "additionalProperties": {"$ref": f"#/$defs/{name}"}}


PREMISES: dict[str, Key] = {
    "requirements": Key(
        Shape(_by_id("requirements", REQUIREMENT, "description"), _ids_of("requirement")),
        words="What has to be reached, by ids.",
    ),
    "hypotheses": Key(
        Shape(_by_id("hypotheses", HYPOTHESIS, "statement"), _ids_of("hypothesis")),
        words="What the plan tests, by ids.",
    ),
    "unknowns": Key(
        Shape(_part(UNKNOWNS), {"$ref": "#/$defs/unknowns"}),
        words="What is known, what is known to be open, and where surprises may come from.",
    ),
    "replan": Key(
        Shape(_part(REPLAN), {"$ref": "#/$defs/replan"}),
        words="What makes another plan wanted, and who decides that.",
    ),
}

DEFS: dict[str, Json] = {
    "requirement": record_schema(REQUIREMENT, ("description",)),
    "hypothesis": record_schema(HYPOTHESIS, ("statement",)),
    "unknowns": record_schema(UNKNOWNS),
    "replan": record_schema(REPLAN),
}

STEP_PREMISES: dict[str, Key] = {
    "type": Key(
        word(*TYPES), words="What kind of step it is for the ledger and for other formats."
    ),
    "mode": Key(
        word(*MODES),
        words="How an experiment (exploratory, confirmatory) or a synthesis "
        "(integrative, evaluative) is meant.",
    ),
    "hypotheses": Key(
        list_of(LINE.read, LINE.schema), words="The hypotheses that it tests, by id."
    ),
    "requirements": Key(
        list_of(LINE.read, LINE.schema), words="The requirements that it serves, by id."
    ),
    "preregistered": Key(
        PROSES, words="What a confirmatory experiment commits to before any outcome is seen."
    ),
    "evaluate_against": Key(PROSES, words="What an evaluative synthesis judges by."),
}


def taken(given: dict[str, object], inner: Collection[Plan]) -> dict[str, Json]:
    """What a plan stands on, with what the plans stand on that it takes over; its own word counts."""
    found: dict[str, Json] = {}
    for key in PREMISES:
        if own := given.get(key):
            found[key] = own  # type: ignore[assignment]  # as the tables read
    for key in ("requirements", "hypotheses"):
        for plan in inner:
            more = plan.premises.get(key)
            if isinstance(more, Table):
                own = found.get(key)
                found[key] = {**more, **(own if isinstance(own, Table) else {})}
    return found


# --- what goes together ---------------------------------------------------------------------------


def check_premises(reading: Reading, given: Table[str, object]) -> None:
    """Report steps that name what is not there, or leave out what their mode asks for."""
    steps = given.get("steps")
    if not isinstance(steps, Mapping):
        return
    for name, (_, node) in steps.pairs.items():
        if isinstance(node, Mapping) and not node.pairs.keys().isdisjoint(STEP_PREMISES):
            reading.step = name
            _check_step(reading, name, node, given)
    reading.step = ""


_NAMED = {"hypotheses": ("hypothesis", "P103"), "requirements": ("requirement", "P104")}


def _check_step(reading: Reading, step: str, node: Mapping, given: Table[str, object]) -> None:
    for key, (what, code) in _NAMED.items():
        known = given.get(key)
        names = known if isinstance(known, Table) else {}
        for item in each(node.pairs[key][1]) if key in node.pairs else ():
            if isinstance(item, Scalar) and isinstance(item.value, str) and item.value not in names:
                message = (
                    f"{quoted(step)} names the {what} {quoted(item.value)}, which is not there"
                )
                near = reading.problems.did_you_mean(item.value, names)
                reading.problems.add(code, item, message, near or f"say it in '{key}' of the plan")
    kind, mode = _word(node, "type"), _word(node, "mode")
    if mode in MODES and kind != MODES[mode]:
        message = f"'mode: {mode}' of {quoted(step)} says nothing: it is for type: {MODES[mode]}"
        reading.problems.warn("P903", node.pairs["mode"][0], message)
    elif mode == "confirmatory" and not _says(node, "preregistered"):
        no_commitments(reading, step, node.pairs["mode"][1], "P107", "preregistered")
    elif mode == "evaluative" and not _says(node, "evaluate_against"):
        no_criteria(reading, step, node.pairs["mode"][1], "P108", "evaluate_against")


def no_commitments(
    reading: Reading, step: str, at: Placed, code: str, key: str, note: str = ""
) -> None:
    """A confirmatory experiment says nothing beforehand."""
    message = f"the confirmatory experiment {quoted(step)} commits to nothing beforehand"
    hint = f"say what is decided before any outcome is seen: {key}"
    reading.problems.add(code, at, message, hint, note=note)


def no_criteria(
    reading: Reading, step: str, at: Placed, code: str, key: str, note: str = ""
) -> None:
    """An evaluative synthesis has nothing to judge by."""
    message = f"the evaluative step {quoted(step)} has nothing to judge by"
    reading.problems.add(code, at, message, f"name criteria: {key}", note=note)


def _word(node: Mapping, key: str) -> str:
    value = node.pairs[key][1] if key in node.pairs else None
    return value.value if isinstance(value, Scalar) and isinstance(value.value, str) else ""


def _says(node: Mapping, key: str) -> bool:
    value = node.pairs[key][1] if key in node.pairs else None
    if isinstance(value, Listing):
        return bool(value.items)
    return isinstance(value, Scalar) and value.value not in (None, "")
