"""The shapes of what commands print for programs, as JSON Schema.

Keys that are listed are always there. More of them may be added without a step of the version, so
nothing is closed; what exists keeps its meaning.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Literal, NewType, Union, get_args, get_origin, get_type_hints

from holdfast.core.reasons import SENTENCES
from holdfast.core.state import PHASES
from holdfast.core.views import RUN_SCHEMA, AdditionState
from holdfast.model.conflict import ConflictKind
from holdfast.model.digest import Json
from holdfast.model.event import EndStatus, RestStatus
from holdfast.model.provider import TIERS
from holdfast.store.codec import CLASSES, KINDS

DRAFT = "https://json-schema.org/draft/2020-12/schema"
PREVIEW_SCHEMA = "holdfast.preview/1"
EVENT_SCHEMA = "holdfast.event/1"

_TEXT: Json = {"type": "string"}
_COUNT: Json = {"type": "integer", "minimum": 0}
_MONEY: Json = {"type": "number", "minimum": 0}
_DIGEST: Json = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_TEXTS: Json = {"type": "array", "items": _TEXT}


def _object(
    keys: Mapping[str, Json], optional: Iterable[str] = (), words: str = ""
) -> dict[str, Json]:
    schema: dict[str, Json] = {"type": "object", "properties": keys}
    if words:
        schema["description"] = words
    schema["required"] = [key for key in keys if key not in set(optional)]
    return schema


def _or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


def _by_step(schema: Json) -> Json:
    return {"type": "object", "additionalProperties": schema}


def _totals(counts: Iterable[str], **more: Json) -> Json:
    keys: dict[str, Json] = dict.fromkeys(counts, _COUNT)
    return _object({**keys, **more})


_SPENT: Mapping[str, Json] = {
    "cost_usd": {
        "anyOf": [_MONEY, {"type": "null"}],
        "description": "What calls of models cost; null if the price of one is not known.",
    },
    "price": {"enum": ["known", "unknown"]},
    "calls": _COUNT,
    "tokens": _COUNT,
}
_REASON = _object(
    {
        "code": {"enum": sorted(SENTENCES)},
        "text": _TEXT,
        "because": {"type": "array", "items": _TEXT, "description": "What is behind it."},
    },
    words="Why a step runs, is reused, waits or failed.",
)


def run_schema() -> dict[str, Json]:
    """What `run`, `resume`, `retry` and `status` print with --json."""
    states = sorted({"running", *get_args(RestStatus), *get_args(EndStatus)})
    step = _object(
        {
            "state": {"enum": list(PHASES)},
            "reason": _or_null({"$ref": "#/$defs/reason"}),
            "attempts": _COUNT,
            "config_ref": _or_null(_DIGEST),
            "digest": {
                "anyOf": [_DIGEST, {"type": "null"}],
                "description": "The artifact, if the step is complete.",
            },
            **_SPENT,
            "duration_ms": _COUNT,
            "added": _or_null(
                _object(
                    {
                        "step": _or_null(_TEXT),
                        "request": _or_null(_COUNT),
                        "at": _COUNT,
                        "by": _or_null(_TEXT),
                        "because": _or_null(_TEXT),
                    },
                    words="Where it comes from, if the run did not begin with it.",
                )
            ),
        }
    )
    gap = _object(
        {"step": _TEXT, "by": _TEXT, "because": _DIGEST, "at": _COUNT},
        words="A step that a person goes on without; 'holdfast show DIGEST' prints why.",
    )
    addition = _object(
        {
            "request": _COUNT,
            "steps": _TEXTS,
            "secrets": _TEXTS,
            "by": _TEXT,
            "because": _or_null(_TEXT),
            "state": {"enum": list(get_args(AdditionState))},
            "said": _or_null(_TEXT),
        },
        words="Steps that a person asked to add, and what became of that.",
    )
    fork = _object({"run": _TEXT, "step": _TEXT}, words="The run it was forked from, and where.")
    waiting = _object(
        {
            "approval": _or_null(_TEXT),
            "step": _TEXT,
            "from": _or_null(_TEXT),
            "subject": _or_null(_DIGEST),
        }
    )
    conflict = _object(
        {
            "conflict": {"type": "string", "pattern": "^c-"},
            "kind": {"enum": list(get_args(ConflictKind))},
            "steps": _TEXTS,
            "paths": _TEXTS,
            "record": _DIGEST,
        }
    )
    plan = _object({"line": _TEXT, "ref": _DIGEST, "file": _or_null(_TEXT)})
    counts = ("steps", "done", "reused", "failed", "skipped")
    money: dict[str, Json] = {
        **_SPENT,
        "known_usd": _MONEY,
        "saved_usd": _or_null(_MONEY),
        "rejected_usd": _MONEY,
        "interrupted_usd": _MONEY,
        "max_cost_usd": _or_null(_MONEY),
        "duration_ms": _COUNT,
    }
    keys: dict[str, Json] = {
        "schema": {"const": RUN_SCHEMA},
        "run": {"type": "string", "pattern": "^r-"},
        "status": {"enum": states},
        "reason": {
            "anyOf": [{"$ref": "#/$defs/reason"}, {"type": "null"}],
            "description": "Why the run rests where it does.",
        },
        "plan": plan,
        "steps": _by_step({"$ref": "#/$defs/step"}),
        "waiting": {"type": "array", "items": waiting},
        "gaps": {"type": "array", "items": gap},
        "additions": {"type": "array", "items": addition},
        "forked": _or_null(fork),
        "conflicts": {"type": "array", "items": conflict},
        "totals": _totals(counts, **money),
    }
    return _document(RUN_SCHEMA, _object(keys), {"reason": _REASON, "step": step})


def preview_schema() -> dict[str, Json]:
    """What `plan` prints with --json."""
    millis: dict[str, Json] = {"p50": _or_null(_COUNT), "p90": _or_null(_COUNT)}
    money: dict[str, Json] = {"p50": _or_null(_MONEY), "p90": _or_null(_MONEY)}
    basis: Json = {"enum": ["history", "price", "none"]}
    totals: dict[str, Json] = {
        "cost_usd": _object({**money, "unknown": _COUNT}),
        "tokens": _object({"p50": _COUNT, "p90": _COUNT}),
        "saved_usd": _or_null(_MONEY),
        "budget_usd": _or_null(_MONEY),
    }
    decisions = ("run", "reuse", "maybe", "wait")
    step = _object(
        {
            "decision": {"enum": list(decisions)},
            "reason": {"$ref": "#/$defs/reason"},
            "cost_usd": _object({**money, "basis": basis, "price": {"enum": ["known", "unknown"]}}),
            "tokens": _object(
                {"p50": _COUNT, "p90": _COUNT, "basis": {"enum": ["history", "size", "none"]}}
            ),
            "duration_ms": _object(millis),
            "model": _or_null(_TEXT),
            "tier": _or_null({"enum": list(TIERS)}),
            "recorded": {"type": ["boolean", "null"]},
        }
    )
    model = _object(
        {"tiers": {"type": "array", "items": {"enum": list(TIERS)}}, "steps": _COUNT},
        words="How many steps of those that may run ask it, and the tiers by which they name it.",
    )
    plan = _object({"line": _TEXT, "ref": _DIGEST, "digest": _DIGEST, "file": _or_null(_TEXT)})
    parts = ("added", "removed", "contract_changed", "deps_changed", "output_modified")
    keys: dict[str, Json] = {
        "schema": {"const": PREVIEW_SCHEMA},
        "plan": plan,
        "waves": {"type": "array", "items": _TEXTS},
        "models": {"type": "object", "additionalProperties": model},
        "steps": _by_step({"$ref": "#/$defs/step"}),
        "totals": _totals(("steps", *decisions), **totals),
        "changes": _object(dict.fromkeys(parts, _TEXTS)),
    }
    return _document(PREVIEW_SCHEMA, _object(keys), {"reason": _REASON, "step": step})


def events_schema() -> dict[str, Json]:
    """One line of `trace --json`; written from the classes of events, so it cannot differ."""
    named = dict(zip(KINDS, CLASSES, strict=True))
    kinds: list[Json] = [{"$ref": f"#/$defs/{kind}"} for kind in named]
    return _document(
        EVENT_SCHEMA, {"oneOf": kinds}, {kind: _event(kind, noun) for kind, noun in named.items()}
    )


def _event(kind: str, noun: type) -> Json:
    head: dict[str, Json] = {
        "seq": {"type": "integer", "minimum": 1},
        "ts": {"type": "string", "format": "date-time"},
        "event": {"const": kind},
    }
    words = (noun.__doc__ or "").strip().partition("\n")[0]
    return _object({**head, **_fields(noun)}, words=words)


def _fields(noun: type) -> dict[str, Json]:
    hints = get_type_hints(noun)
    if is_dataclass(noun):
        return {item.name: _hinted(hints[item.name]) for item in fields(noun)}
    return {name: _hinted(hint) for name, hint in hints.items()}


def _hinted(hint: object) -> Json:
    """The JSON that a field with this annotation is shown as."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in {Union, types.UnionType}:
        return {"anyOf": [_hinted(item) for item in inner]}
    if origin is tuple:
        return {"type": "array", "items": _hinted(inner[0])}
    if isinstance(hint, NewType):
        digest: Json = {"type": "string", "pattern": "^([0-9a-f]{64})?$"}
        return digest if hint.__name__ == "Digest" else _hinted(hint.__supertype__)
    if isinstance(hint, type):
        simple = {str: "string", bool: "boolean", int: "integer", float: "number"}
        if hint in simple:
            return {"type": simple[hint]}
        if hint is type(None):
            return {"type": "null"}
        return _object(_fields(hint))
    return {}


def _document(title: str, body: Mapping[str, Json], defs: Mapping[str, Json]) -> dict[str, Json]:
    return {"$schema": DRAFT, "title": title, **body, "$defs": defs}
