"""The refs of a step: digests of everything that decides its result.

    config_ref = sha256 of {artifact_hashes, ext, guard_config, model, prompt, upstream_refs}
    input_ref  = the same without upstream_refs: content only

`artifact_hashes` and `upstream_refs` cover the data needs; a step without needs has `{}` in both. The
four parts in the middle are the step's own; their encoding is kept as a blob under `own_ref`, so that
a change can later be shown with its content. `ext` is versioned and sparse: a part that is not there
leaves no trace, so a new part never changes the refs of steps that do not use it.

What is deliberately absent: description, retries, timeouts, priority, effects, fresh_for, values of
secrets, the history of feedback. W_ref covers structure only and is used for the integrity of a
snapshot, never for reuse.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from holdfast.errors import BugError
from holdfast.model.digest import Digest, Json, canonical, digest_bytes, digest_json
from holdfast.model.plan import Plan, Step, StepId, guard_json

KEY_VERSION = 1

_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


class Upstream(NamedTuple):
    """What a data need brings into the key: its own config ref, and the content it really has."""

    config_ref: Digest
    digest: Digest


class Refs(NamedTuple):
    """The keys of a step in one situation."""

    config_ref: Digest
    input_ref: Digest
    own_ref: Digest


def own_parts(step: Step, observed: Mapping[str, Json]) -> dict[str, Json]:
    """The step's own parts of the key. `observed` is what the world adds: files, tools, environment."""
    guards: list[Json] = [guard_json(guard, limits=False) for guard in step.guards]
    guard_config: dict[str, Json] = {"guards": guards}
    if observed.get("guards"):
        guard_config["observed"] = observed["guards"]
    ext: dict[str, Json] = {"v": KEY_VERSION, "uses": step.uses}
    named: tuple[tuple[str, Json], ...] = (
        ("needs", sorted(step.data_needs)),
        ("run", list(step.run)),
        ("shell", step.shell),
        ("with", step.values),
        ("produces", list(step.produces)),
        ("outputs", list(step.outputs)),
        ("workspace", step.workspace),
        ("contract", step.contract),
        ("constraints", step.constraints),
        ("specification", step.specification),
        ("agent", step.agent),
        ("action", step.action),
    )
    ext.update((name, value) for name, value in named if value)
    ext.update((name, seen) for name, seen in observed.items() if seen and name != "guards")
    if step.schema is not None:
        ext["schema"] = step.schema
    model: Json = None
    if step.model or step.parameters:
        model = {"id": step.model, "parameters": step.parameters}
    return {"ext": ext, "guard_config": guard_config, "model": model, "prompt": step.prompt}


def refs_of(step: Step, own: bytes, upstream: Mapping[StepId, Upstream]) -> Refs:
    """The refs of a step, given the encoding of its own parts and what its data needs brought.

    A data need that is missing from `upstream` is an error, never an omission: the ref without it would
    equal the ref of a step that does not have the need.
    """
    hashes: dict[str, str] = {}
    above: dict[str, str] = {}
    for need in step.needs:
        if need.type == "data":
            found = upstream.get(need.step)
            if found is None:
                raise BugError(f"'{step.id}' has no artifact of '{need.step}' to make its ref from")
            hashes[need.step] = found.digest
            above[need.step] = found.config_ref
    head = b'{"artifact_hashes":' + _encode(hashes).encode() + b"," + own[1:-1]
    return Refs(
        config_ref=digest_bytes(head + b',"upstream_refs":' + _encode(above).encode() + b"}"),
        input_ref=digest_bytes(head + b"}"),
        own_ref=digest_bytes(own),
    )


def encode_own(step: Step, observed: Mapping[str, Json]) -> bytes:
    """The canonical encoding of a step's own parts; stored as a blob, named by `own_ref`."""
    return canonical(own_parts(step, observed))


def structure(plan: Plan) -> dict[str, Json]:
    """What W_ref covers: ids, needs with their types, retries, constraints."""
    return {
        "steps": {
            step_id: {
                "needs": [[need.step, need.type, need.key] for need in step.needs],
                "retries": step.retries,
                "constraints": step.constraints,
            }
            for step_id, step in plan.steps.items()
        }
    }


def w_ref(plan: Plan) -> Digest:
    """Digest of the plan's structure: equal after an edit of a prompt, different after one of a need."""
    return digest_json(structure(plan))
