"""The shapes of handoffs and of ledgers, as JSON Schema.

A handoff is closed: a key that is not in it is refused, because it is nearly always a slip. Keys of what is
printed are always there, and more may be added.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.cli.answers import DRAFT
from holdfast.model.digest import Json
from holdfast.model.handoff import HANDOFF_SCHEMA, LONGEST, MOST_ENTRIES, REQUIRED, STANDINGS

LEDGER_SCHEMA = "holdfast.ledger/1"
_TEXT: Json = {"type": "string"}
_PROSE: dict[str, Json] = {"type": "string", "maxLength": LONGEST}
_SAID: dict[str, Json] = {"type": "string", "maxLength": LONGEST, "pattern": r"\S"}
_NAMES: Json = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_TEXTS: dict[str, Json] = {"type": "array", "items": _TEXT}
_SHARE: dict[str, Json] = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
_MAYBE: Json = {"type": ["string", "null"]}
_FLAG: Json = {"type": "boolean"}
_TIME: Json = {"type": ["integer", "null"], "description": "Milliseconds since 1970."}


def handoff_schema() -> dict[str, Json]:
    """What a step writes to HOLDFAST_HANDOFF, and a person names with --handoff."""
    return {
        "$schema": DRAFT,
        "title": HANDOFF_SCHEMA,
        "description": "Keys in camel case are read as well.",
        **_handoff(),
    }


def ledger_schema() -> dict[str, Json]:
    """What `ledger --json` prints."""
    standing: Json = {"enum": [*STANDINGS]}
    counts: Json = {"enum": ["latest", "superseded"]}
    evidence = _entry(
        standing=counts,
        finding=_TEXT,
        source=_MAYBE,
        confidence=_SHARE,
        sure={**_SHARE, "description": "Bounded by what it stands on."},
        stands_on={**_TEXTS, "description": "Ids of evidence, or names in 'found_by'."},
        same_as=_MAYBE,
        alike=_SHARE,
        contested=_MAYBE,
        stale=_FLAG,
    )
    question = _entry(
        standing=counts,
        question=_TEXT,
        status={"enum": ["open", "testing", "resolved"]},
        raised_by={**_TEXTS, "description": "Steps, or 'a person'."},
        same=_TEXTS,
        merged=_list(_entry(question=_TEXT, alike=_SHARE)),
        tested_by=_MAYBE,
        resolved_by={"type": ["string", "null"], "description": "A step, or 'a person'."},
        because=_MAYBE,
    )
    hypothesis = _open(
        id=_TEXT,
        standing=counts,
        status=standing,
        tested_by=_TEXTS,
        evidence_steps=_TEXTS,
        supporting=_TEXTS,
        refuting=_TEXTS,
        contested=_TEXTS,
        confidence_for=_SHARE,
        confidence_against=_SHARE,
        stale=_FLAG,
    )
    told = _entry(
        standing=counts,
        failed=_FLAG,
        contested=_MAYBE,
        run=_MAYBE,
        attempt={"type": "integer"},
        at=_TIME,
        handoff={"$ref": "#/$defs/handoff"},
    )
    artifact = _entry(standing=counts, artifact=_TEXT, ref=_TEXT)
    gap = _entry(
        standing=counts,
        item=_TEXT,
        reason=_TEXT,
        requirement={"type": ["string", "null"], "description": "The first of 'requirements'."},
        requirements=_TEXTS,
        closed=_MAYBE,
    )
    said = _open(word=_TEXT, entry=_MAYBE, text=_MAYBE, because=_MAYBE, by=_TEXT, at=_TIME)
    body = _open(
        schema={"const": LEDGER_SCHEMA},
        run={"type": "string", "pattern": "^r-"},
        evidence=_list(evidence),
        uncertainties=_list(question),
        artifacts=_list(artifact),
        gaps=_list(gap),
        hypotheses={"type": "object", "additionalProperties": hypothesis},
        handoffs=_list(told),
        found_by={
            "type": "object",
            "additionalProperties": _TEXTS,
            "description": "The evidence of each step or handoff that evidence stands on.",
        },
        stale=_TEXTS,
        stale_steps={"type": "object", "additionalProperties": _TEXTS},
        said=_list(said),
    )
    return {"$schema": DRAFT, "title": LEDGER_SCHEMA, **body, "$defs": {"handoff": _handoff()}}


def _handoff() -> dict[str, Json]:
    observed = _closed(
        ["finding"],
        finding={**_SAID, "description": "What was found."},
        source={
            **_PROSE,
            "description": "Where it is from: a name, or ids of evidence or steps above.",
        },
        confidence=_SHARE,
        supports=_NAMES,
        refutes=_NAMES,
    )
    trial = _closed(["status"], status={"enum": [*STANDINGS]}, evidence=_NAMES)
    return _closed(
        REQUIRED,
        schema=_TEXT,
        attempted=_SAID,
        observed=_few(observed),
        changed=_few(_closed(["artifact", "ref"], artifact=_SAID, ref=_SAID)),
        not_done=_few(_closed(["item", "reason"], item=_SAID, reason=_SAID, requirement=_PROSE)),
        highest_impact_uncertainty={"type": ["string", "null"], "maxLength": LONGEST},
        next_agent_should_first={"type": ["string", "null"], "maxLength": LONGEST},
        payload={"type": ["object", "null"]},
        resolves=_NAMES,
        testing=_NAMES,
        hypotheses={
            "type": ["object", "null"],
            "additionalProperties": {"anyOf": [{"enum": [*STANDINGS]}, trial]},
        },
        replan={
            "anyOf": [_closed(["reason"], reason=_SAID), _TEXT, {"const": False}, {"type": "null"}]
        },
        refers_to=_NAMES,
    )


def _entry(**keys: Json) -> Json:
    return _open(id=_TEXT, from_step=_TEXT, **keys)


def _open(**keys: Json) -> dict[str, Json]:
    return {"type": "object", "properties": keys, "required": [*keys]}


def _closed(required: Sequence[str], **keys: Json) -> dict[str, Json]:
    return {**_open(**keys), "required": [*required], "additionalProperties": False}


def _list(item: Json) -> Json:
    return {"type": "array", "items": item}


def _few(item: Json) -> Json:
    return {"type": "array", "items": item, "maxItems": MOST_ENTRIES}
