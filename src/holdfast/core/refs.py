"""The refs of a step: digests of everything that decides its result.

    config_ref = sha256 of {artifact_hashes, ext, guard_config, model, prompt, upstream_refs}
    input_ref  = the same without upstream_refs: content only

`artifact_hashes` and `upstream_refs` cover the data needs; a step without needs has `{}` in both. The
four parts in the middle are the step's own; their encoding is kept as a blob under `own_ref`, so that
a change can later be shown with its content. `ext` is versioned and sparse: a part that is not there
leaves no trace, so a new part never changes the refs of steps that do not use it.

What is deliberately absent: description, retries, timeouts, priority, effects (unless the result is the
set of changes that a step makes in a copy), fresh_for, values of secrets, the history of feedback. W_ref
covers structure only and is used for the integrity of a snapshot, never for reuse.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Mapping
from itertools import compress
from operator import attrgetter, is_
from typing import NamedTuple

from holdfast.errors import BugError
from holdfast.model.digest import Digest, Json, digest_bytes, digest_parts, encoded, spelled
from holdfast.model.plan import GATHER, Plan, Step, StepId, guard_json, need_spelled

KEY_VERSION = 1
MANY = 1_000  # needs of one step


class Upstream(NamedTuple):
    """What a data need brings into the key: its own config ref, and the content it really has."""

    config_ref: Digest
    digest: Digest


class Refs(NamedTuple):
    """The keys of a step in one situation."""

    config_ref: Digest
    input_ref: Digest
    own_ref: Digest


class Spelled(NamedTuple):
    """What the world adds to a key, encoded: parts of `ext`, and what guards stand on."""

    ext: tuple[str, ...]
    guards: str


def spell(observed: Mapping[str, Json]) -> Spelled:
    """Encode what was observed; many steps may share it. A part that is empty leaves no trace."""
    parts = {name: spelled(seen) for name, seen in observed.items() if seen}
    guards = parts.pop("guards", "")
    return Spelled(tuple([f'"{name}":{part}' for name, part in parts.items()]), guards)


def encode_own(step: Step, observed: Mapping[str, Json]) -> bytes:
    """The canonical encoding of a step's own parts; stored as a blob, named by `own_ref`."""
    return encode_with(step, spell(observed))


def encode_with(step: Step, observed: Spelled) -> bytes:
    """The own parts, given those that the world adds: files, tools, environment, source.

    Ids need no escaping.
    """
    return _put_together(step, _around(step, observed))


class Encoder:
    """Encodes the own parts of one step after the other, each as `encode_with` does.

    Steps of one function or one `for_each` are made of the very same parts, but for their needs, their
    values and their prompt: what a step shares with the one before it is encoded once.
    """

    def __init__(self) -> None:
        self._observed: Spelled | None = None
        self._shared: tuple[object, ...] = ()
        self._around = _Around("", "", "")

    def encode(self, step: Step, observed: Spelled) -> bytes:
        """The own parts of a step, given those that the world adds."""
        shared = _shared_of(step)
        if observed is not self._observed or not all(map(is_, shared, self._shared)):
            self._observed, self._shared = observed, shared
            self._around = _around(step, observed)
        return _put_together(step, self._around)


class _Around(NamedTuple):
    """What stands before the needs, between them and the values, and between these and the prompt."""

    before: str
    between: str
    after: str


def _put_together(step: Step, around: _Around) -> bytes:
    before, between, after = around
    needs = ""
    if step.needs and (names := step.data_needs):
        listed = names if step.uses == GATHER else sorted(names)  # items have an order
        needs = f'"needs":["{_BETWEEN.join(listed)}"],'
    values = f',"with":{spelled(step.values)}' if step.values else ""
    prompt = "null" if step.prompt is None else spelled(step.prompt)
    return encoded(f"{before}{needs}{between}{values}{after}{prompt}}}")


def _around(step: Step, observed: Spelled) -> _Around:
    ext = [*observed.ext, f'"uses":{spelled(step.uses)}', _V]
    own = _own_values(step)
    for name, value in compress(zip(_OWN, own, strict=True), own):  # few have much to say
        ext.append(f'"{name}":{spelled(value)}')
    if step.changes_copy:
        ext.append('"effects":"workspace"')
    if step.schema is not None:
        ext.append(f'"schema":{spelled(step.schema)}')
    ext.sort()  # by name: each ends with a quotation mark, which comes before all that names have
    guards, model = "[]", "null"
    if step.guards:
        guards = spelled([guard_json(guard, limits=False) for guard in step.guards])
    if observed.guards:
        guards += f',"observed":{observed.guards}'
    if step.model or step.parameters:
        model = spelled({"id": step.model, "parameters": step.parameters})
    needs, values = bisect(ext, _NEEDS), bisect(ext, _WITH)
    later = "".join([f",{part}" for part in ext[values:]])
    return _Around(
        '{"ext":{' + "".join([f"{part}," for part in ext[:needs]]),
        ",".join(ext[needs:values]),  # at least `uses` and `v`
        f'{later}}},"guard_config":{{"guards":{guards}}},"model":{model},"prompt":',
    )


# part of `ext` -> field of a step; one that is empty leaves no trace. `needs` and `with` come apart
_FIELDS: Mapping[str, str] = {
    "run": "run",
    "shell": "shell",
    "produces": "produces",
    "outputs": "outputs",
    "workspace": "workspace",
    "contract": "contract",
    "constraints": "constraints",
    "specification": "specification",
    "agent": "agent",
    "action": "action",
    "may_use": "tools",
    "within": "within",
    "handoff": "handoff",
}
_OWN = tuple(_FIELDS)
_V = f'"v":{KEY_VERSION}'
_NEEDS, _WITH = '"needs":', '"with":'
_BETWEEN = '","'
_own_values: Callable[[Step], tuple[Json, ...]] = attrgetter(*_FIELDS.values())
_shared_of: Callable[[Step], tuple[object, ...]] = attrgetter(
    *("uses", "effects", "schema", "guards", "model", "parameters"), *_FIELDS.values()
)


def refs_of(step: Step, own: bytes, upstream: Mapping[StepId, Upstream]) -> Refs:
    """The refs of a step, given the encoding of its own parts and what its data needs brought.

    A data need that is missing from `upstream` is an error, never an omission: the ref without it would
    equal the ref of a step that does not have the need.
    """
    head, above = halves(step, own, upstream)
    return refs_from(digest_parts(head, above), head, own)


def refs_from(config_ref: Digest, head: bytes, own: bytes) -> Refs:
    """All refs, given the one that decides about reuse and the first half of what it was made from."""
    return Refs(config_ref, digest_parts(head, b"}"), digest_bytes(own))


def halves(step: Step, own: bytes, upstream: Mapping[StepId, Upstream]) -> tuple[bytes, bytes]:
    """The preimage of the config ref: up to the refs above, and these. Ids and digests need no escaping."""
    if len(step.needs) > MANY:
        return _halves_of_many(step, own, upstream)
    hashes, above = [], []
    for need in step.needs:
        if need.type == "data":
            name = need.step
            found = upstream.get(name)
            if found is None and need.optional:  # it goes on without
                hashes.append(f'"{name}":null')
                above.append(f'"{name}":null')
                continue
            if found is None:
                raise BugError(f"'{step.id}' has no artifact of '{name}' to make its ref from")
            hashes.append(f'"{name}":"{found.digest}"')
            above.append(f'"{name}":"{found.config_ref}"')
    hashes.sort()
    above.sort()
    head = f'{{"artifact_hashes":{{{",".join(hashes)}}},'.encode() + own[1:-1]
    return head, f',"upstream_refs":{{{",".join(above)}}}}}'.encode()


def _halves_of_many(
    step: Step, own: bytes, upstream: Mapping[StepId, Upstream]
) -> tuple[bytes, bytes]:
    """The same for a step that may gather a million others: never are all their texts there at once."""
    names = sorted(need.step for need in step.needs if need.type == "data")
    free = {need.step for need in step.needs if need.optional}
    lost = next((name for name in names if name not in upstream and name not in free), None)
    if lost is not None:
        raise BugError(f"'{step.id}' has no artifact of '{lost}' to make its ref from")

    def spelled_out(place: int) -> bytes:
        pieces = []
        for start in range(0, len(names), MANY):
            some = ((name, upstream.get(name)) for name in names[start : start + MANY])
            texts = [
                f'"{name}":null' if found is None else f'"{name}":"{found[place]}"'
                for name, found in some
            ]
            pieces.append(",".join(texts).encode())
        return b",".join(pieces)

    refs, digests = (Upstream._fields.index(name) for name in ("config_ref", "digest"))
    head = b"".join((b'{"artifact_hashes":{', spelled_out(digests), b"},", own[1:-1]))
    return head, b"".join((b',"upstream_refs":{', spelled_out(refs), b"}}"))


def structure(plan: Plan) -> bytes:
    """The canonical encoding of what W_ref covers: ids, needs with types, gates, retries, constraints."""
    steps = []
    for step_id in sorted(plan.steps):
        step = plan.steps[step_id]
        needs = ",".join([need_spelled(need) for need in step.needs])
        gate = f'"approve":"{step.approve}",' if step.approve else ""
        said = spelled(step.constraints) if step.constraints else '""'
        parts = f'{gate}"constraints":{said},"needs":[{needs}]'
        steps.append(f'"{step_id}":{{{parts},"retries":{step.retries}}}')
    return encoded(f'{{"steps":{{{",".join(steps)}}}}}')


def w_ref(plan: Plan) -> Digest:
    """Digest of the plan's structure: equal after an edit of a prompt, different after one of a need."""
    return digest_bytes(structure(plan))
