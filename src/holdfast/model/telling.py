"""How a model hands over: one answer that holds its result and its handoff together.

A step of a model that must hand over is asked once, for `{"output": …, "handoff": …}`. Its artifact is the
output alone, as text or by the step's own schema; the handoff is read like any other. An answer that does
not have both is kept whole and hands over nothing, so that it is refused. A fence of Markdown around it is
passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.model.digest import Json
from holdfast.model.handoff import STANDINGS
from holdfast.model.plan import Step
from holdfast.model.strict import strict_json

ASKED = frozenset({"llm", "agent"})  # generators whose answer holds the handoff
OUTPUT, HANDOFF = "output", "handoff"
_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*)\n```", re.DOTALL)
_TEXT: Json = {"type": "string"}
_TEXTS: Json = {"type": "array", "items": _TEXT}


class Parted(NamedTuple):
    """The result, and what is told; nothing is told if the answer does not hold both."""

    output: bytes
    handoff: bytes


def tells_in_answer(step: Step) -> bool:
    """Whether the answer of a model holds the handoff of its step."""
    return step.handoff and step.uses in ASKED


def asked_schema(step: Step) -> Json:
    """The schema of the answer that a step asks for; None if it is plain text."""
    if not tells_in_answer(step):
        return step.schema
    output = _TEXT if step.schema is None else _moved(step.schema)
    return _closed({OUTPUT: output, HANDOFF: _handoff(step)})


def _moved(schema: Json) -> Json:
    """A schema that is no longer the root: what refers to the root refers to its new place."""
    if isinstance(schema, Mapping):
        moved = {name: _moved(inner) for name, inner in schema.items()}
        ref = schema.get("$ref")
        if isinstance(ref, str) and ref.startswith("#"):
            moved["$ref"] = f"#/properties/{OUTPUT}{ref[1:]}"
        return moved
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return [_moved(inner) for inner in schema]
    return schema


def parted(step: Step, text: str) -> Parted:
    """The two parts of an answer."""
    if not tells_in_answer(step):
        return Parted(text.encode(), b"")
    fenced = _FENCE.fullmatch(text.strip())
    bare = fenced[1] if fenced else text
    try:
        whole = strict_json(bare)
    except ValueError:  # what is wrong with it is said of the handoff
        is_meant = bare.lstrip().startswith("{")
        return Parted(text.encode(), bare.encode("utf-8", "replace") if is_meant else b"")
    if not isinstance(whole, Mapping) or OUTPUT not in whole:
        return Parted(text.encode(), b"")
    output, told = whole[OUTPUT], whole.get(HANDOFF)
    is_text = step.schema is None and isinstance(output, str)
    made = str(output) if is_text else json.dumps(output, ensure_ascii=False)
    return Parted(
        made.encode("utf-8", "replace"),
        b"" if told is None else json.dumps(told, ensure_ascii=False).encode("utf-8", "replace"),
    )


def _handoff(step: Step) -> Json:
    observed: dict[str, Json] = {
        "finding": _TEXT,
        "source": {"type": "string", "description": "Where it is from; an id of what you know."},
        "confidence": {"type": ["number", "null"], "description": "From 0 to 1."},
        "supports": _TEXTS,
        "refutes": _TEXTS,
    }
    trial = _closed({"status": {"enum": [*STANDINGS]}, "evidence": _TEXTS})
    needed: dict[str, Json] = {
        "attempted": _TEXT,
        "observed": {"type": "array", "items": _closed(observed, ["finding"])},
        "changed": {"type": "array", "items": _closed({"artifact": _TEXT, "ref": _TEXT})},
        "not_done": {
            "type": "array",
            "items": _closed(
                {"item": _TEXT, "reason": _TEXT, "requirement": _TEXT}, ["item", "reason"]
            ),
        },
        "highest_impact_uncertainty": _TEXT,
        "next_agent_should_first": _TEXT,
    }
    more: dict[str, Json] = {
        "resolves": _TEXTS,
        "testing": _TEXTS,
        "hypotheses": {"type": "object", "additionalProperties": trial},
        "replan": {"type": ["string", "null"], "description": "Why another plan is needed."},
        "refers_to": _TEXTS,
    }
    if step.outputs:
        needed["payload"] = {
            "type": "object",
            "properties": {name: {} for name in step.outputs},
            "required": [*step.outputs],
        }
    return _closed({**needed, **more}, [*needed])


def _closed(properties: Mapping[str, Json], required: list[str] | None = None) -> Json:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [*(properties if required is None else required)],
        "additionalProperties": False,
    }
