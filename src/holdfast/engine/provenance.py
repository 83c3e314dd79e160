"""Where an artifact comes from, as an in-toto statement: what the journals and the store say, and no more.

The subject are the files of the artifact, the predicate is that of SLSA provenance 1.0 with fields of our own
(`holdfast_…`, as it asks for). Nothing of this machine or of this moment enters it: the same journals always
give the same statement, so it can be made again and compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from holdfast.engine.lines import line_journal
from holdfast.engine.maker import Made, decision_on, maker_of
from holdfast.errors import IntegrityError, UsageError
from holdfast.model.artifact import Artifact, tree_entries
from holdfast.model.call import MICRO
from holdfast.model.changeset import changes_in
from holdfast.model.digest import Digest, Json, digest_bytes, digest_json
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    AttemptStarted,
    CallAnswered,
    CallStarted,
    Recorded,
    ToolUsed,
)
from holdfast.model.line import (
    ApprovalDecided,
    ApprovalRequested,
    ApprovalUsed,
    StepAccepted,
    StepAmended,
)
from holdfast.model.plan import Guard, guard_json
from holdfast.ports import Store

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD = "urn:holdfast:step:1"
BUILDER = "urn:holdfast:engine"
_DIGEST = re.compile("[0-9a-f]{64}$")
_Object = Mapping[str, Json]
_Finished = AttemptAccepted | AttemptRejected | AttemptFailed | AttemptLost | AttemptParked


def statement(store: Store, row: Artifact) -> dict[str, Json]:
    """The statement of an accepted artifact; UsageError if nobody knows any more how it was made."""
    made, decision = maker_of(store, row), decision_on(store, row)
    if made is None and decision is None:
        raise UsageError(
            f"how '{row.step}' was made is not in this store any more",
            hint="its run was removed, or came without it",
        )
    decided = made is None or decision is not None  # what stands, stands by the word of a person
    own = _own(store, row.own_ref if decided or made is None else made.attempt.own_ref)
    produces = made.step.produces if made else tuple(cast("list[str]", _ext(own, "produces") or ()))
    return {
        "_type": STATEMENT,
        "subject": _subject(store, row, produces),
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD,
                "externalParameters": _asked(row, own, made),
                "internalParameters": _refs(row, own, None if decided else made),
                "resolvedDependencies": _materials(own, made),
            },
            "runDetails": {
                "builder": {"id": BUILDER},
                "metadata": _metadata(row, made, decision),
                "byproducts": _byproducts(made),
            },
            "holdfast_removed": removed_by(store, row),
            "holdfast_source": row.source,
            "holdfast_verified": row.verified,
            "holdfast_guards": _guards(own, made),
            "holdfast_attempts": [] if made is None else [*_attempts(made)],
            "holdfast_calls": [] if made is None else [*_calls(made)],
            "holdfast_approvals": [] if made is None else [*_approvals(store, made)],
            "holdfast_decision": _decision_json(decision),
            "holdfast_journal": _journal(store, row, made, decision),
        },
    }


def _own(store: Store, ref: Digest) -> _Object:
    """The parts of a step's key that are its own; nothing if they were removed."""
    try:
        return cast("_Object", json.loads(store.get(ref)))
    except (IntegrityError, ValueError):
        return {}


def _ext(own: _Object, part: str) -> Json:
    return cast("_Object", own.get("ext") or {}).get(part)


# --- subject and materials ------------------------------------------------------------------------


def _subject(store: Store, row: Artifact, produces: Sequence[str]) -> list[Json]:
    """Each file of an artifact; one that is no file goes by the name of its step."""
    if row.form != "tree":
        name = produces[0] if len(produces) == 1 else f"step:{row.step}"
        return [_resource(name, row.digest)]
    content = store.get(row.digest)
    return [
        _resource(entry.path, entry.digest)
        for entry in sorted(tree_entries(content), key=lambda entry: entry.path)
    ] or [_resource(f"step:{row.step}", row.digest)]


def _resource(name: str, digest: str, **annotations: Json) -> dict[str, Json]:
    found: dict[str, Json] = {"name": name, "digest": {"sha256": digest}}
    return {**found, "annotations": annotations} if annotations else found


def _materials(own: _Object, made: Made | None) -> list[Json]:
    """Everything that decided the result, by digest."""
    found = [] if made is None else [_resource("plan", made.plan_ref)]
    if own.get("prompt") is not None:
        found.append(_resource("prompt", digest_json(own["prompt"])))
    for part in ("inputs", "files"):
        named = _ext(own, part)
        found += _files("file", named)
    found += _files("env", _ext(own, "env")) + _files("tool", _ext(own, "tools"))
    guards = cast("_Object", own.get("guard_config") or {}).get("observed")
    for seen in cast("list[_Object]", guards or []):
        found += _files("guard", seen.get("files"))
    if made is not None:
        found += [
            _resource(f"step:{need}", brought.digest, config_ref=brought.config_ref)
            for need, brought in sorted(made.above.items())
        ]
        if made.attempt.context is not None:
            found.append(_resource("context", made.attempt.context))
    return cast("list[Json]", found)


def _files(kind: str, named: Json) -> list[dict[str, Json]]:
    """Files, tools or names of the environment, with their digests."""
    if not isinstance(named, Mapping):
        return []
    return [_material(f"{kind}:{path}", value) for path, value in sorted(named.items())]


def _material(name: str, value: Json) -> dict[str, Json]:
    """One of them: a digest, with whether it may be executed if so; else a digest of the value."""
    match value:
        case str() if _DIGEST.match(value):
            return _resource(name, value)
        case [str(digest), bool(executable)] if _DIGEST.match(digest):
            return (
                _resource(name, digest, executable=True) if executable else _resource(name, digest)
            )
        case _:
            return _resource(name, digest_json(value))


# --- what was asked -------------------------------------------------------------------------------


def _asked(row: Artifact, own: _Object, made: Made | None) -> dict[str, Json]:
    model = cast("_Object", own.get("model") or {})
    return {
        "project": made.start.project if made else row.project,
        "line": made.start.line if made else row.line,
        "step": row.step,
        "plan": made.plan_ref if made else None,
        "structure": made.start.w_ref if made else None,
        "uses": _ext(own, "uses"),
        "produces": list(made.step.produces) if made else _ext(own, "produces"),
        "model": model.get("id"),
        "parameters": _plain(model.get("parameters") or {}),
        "tools": _ext(own, "may_use") or [],
        "command": _digest_of(_ext(own, "run") or _ext(own, "shell")),
        "values": _digest_of(_ext(own, "with")),
    }


def _digest_of(value: Json) -> Json:
    return digest_json(_plain(value)) if value else None


def _plain(value: Json) -> Json:
    """The same with numbers as JSON has them."""
    if isinstance(value, Mapping):
        if value.keys() == {"$decimal"}:
            return float(str(value["$decimal"]))
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _refs(row: Artifact, own: _Object, made: Made | None) -> dict[str, Json]:
    """The refs; of an attempt also why it ran."""
    if made is None:
        refs: dict[str, Json] = {"config_ref": row.config_ref, "input_ref": row.input_ref}
        refs |= {"own_ref": row.own_ref, "key_version": _ext(own, "v"), "reason": None}
        return {**refs, "kept": None}
    begun = made.attempt
    return {
        "config_ref": begun.config_ref,
        "input_ref": begun.input_ref,
        "own_ref": begun.own_ref,
        "key_version": _ext(own, "v"),
        "reason": begun.reason.code,
        "kept": begun.reguard,  # content that was there already and was only guarded
    }


# --- what happened --------------------------------------------------------------------------------


def _metadata(row: Artifact, made: Made | None, decision: Recorded | None) -> dict[str, Json]:
    if made is None:
        at = _moment(decision.at) if decision else None
        return {"invocationId": f"{row.line}/{row.step}", "startedOn": at, "finishedOn": at}
    begun = made.attempt
    return {
        "invocationId": f"{made.start.run}/{begun.step}@{begun.attempt}",
        "startedOn": _moment(made.begun.at),
        "finishedOn": _moment(made.accepted.at),
    }


def _moment(at: int) -> str:
    found = datetime.fromtimestamp(at / 1000, UTC)
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _byproducts(made: Made | None) -> list[Json]:
    if made is None:
        return []
    named = {"log": made.verdict.log, "handoff": made.verdict.handoff}
    return [_resource(name, digest) for name, digest in named.items() if digest is not None]


def _guards(own: _Object, made: Made | None) -> list[Json]:
    """Each guard and what it said. Accepted as verified means that every one of them said yes."""
    if made is None:
        listed = cast("_Object", own.get("guard_config") or {}).get("guards")
        return [
            {"name": one.get("name") or one.get("kind"), "kind": one.get("kind"), "verdict": None}
            for one in cast("list[_Object]", listed or [])
        ]
    said = "accept" if made.verdict.verified else None
    return [_guard(guard, said, made.verdict.score) for guard in made.step.guards]


def _guard(guard: Guard, said: str | None, score: int | None) -> dict[str, Json]:
    return {
        "name": guard.name or guard.kind,
        "kind": guard.kind,
        "config": digest_json(guard_json(guard, limits=False)),
        "verdict": said,
        "score": score / 1000 if score is not None and guard.asks_model else None,
    }


def _attempts(made: Made) -> Iterator[dict[str, Json]]:
    """Every attempt at the step in that run, up to the one that was accepted."""
    began: dict[int, int] = {}
    for recorded in made.story:
        event = recorded.event
        if isinstance(event, AttemptStarted):
            began[event.attempt] = recorded.at
        elif isinstance(event, _Finished):
            refused = event.guard if isinstance(event, AttemptRejected) else None
            yield {
                "attempt": event.attempt,
                "startedOn": _moment(began.get(event.attempt, recorded.at)),
                "finishedOn": _moment(recorded.at),
                "outcome": type(event).__name__.removeprefix("Attempt").lower(),
                "guard": refused,
                "code": event.code if isinstance(event, AttemptFailed | AttemptLost) else None,
                "digest": getattr(event, "digest", None),
                "feedback": getattr(event, "feedback", None),
            }


def _calls(made: Made) -> Iterator[dict[str, Json]]:
    """What models and tools were asked in the attempt, by digest."""
    asked: dict[int, CallStarted] = {}
    for recorded in made.story:
        event = recorded.event
        if getattr(event, "attempt", None) != made.attempt.attempt:
            continue
        if isinstance(event, CallStarted):
            asked[event.call] = event
        elif isinstance(event, CallAnswered) and event.call in asked:
            begun = asked[event.call]
            yield {
                "model": begun.model,
                "request": begun.request,
                "answer": event.answer,
                "response": event.id or None,
                "inputTokens": event.input,
                "outputTokens": event.output,
                "cost_usd": None if event.cost is None else event.cost / MICRO,
            }
        elif isinstance(event, ToolUsed):
            yield {
                "tool": event.name,
                "arguments": event.arguments,
                "answer": event.answer,
                "ok": event.ok,
            }


# --- people ---------------------------------------------------------------------------------------


def _approvals(store: Store, made: Made) -> Iterator[dict[str, Json]]:
    """Every yes under which the attempt began or was accepted: who gave it, when, to what."""
    asked: dict[str, ApprovalRequested] = {}
    given: dict[str, tuple[int, ApprovalDecided]] = {}
    used: dict[str, None] = {}
    for recorded in store.read(line_journal(made.start.project, made.start.line)):
        event = recorded.event
        if isinstance(event, ApprovalRequested):
            asked.setdefault(event.approval, event)
        elif isinstance(event, ApprovalDecided):
            given.setdefault(event.approval, (recorded.at, event))
        elif isinstance(event, ApprovalUsed) and made.is_used_by(event):
            used[event.approval] = None
    for name in used:
        if name in given and name in asked:
            at, yes = given[name]
            yield {
                "approval": name,
                "gate": asked[name].gate,
                "subject": yes.subject,
                "by": yes.by,
                "at": _moment(at),
                "as": list(yes.names),
                "scope": yes.scope,
                "terminal": yes.terminal,
                "rule": yes.rule,
                "because": yes.because,
            }


def _decision_json(recorded: Recorded | None) -> Json:
    event = recorded.event if recorded else None
    if recorded is None or not isinstance(event, StepAmended | StepAccepted):
        return None
    return {
        "what": "amended" if isinstance(event, StepAmended) else "accepted",
        "by": event.by,
        "at": _moment(recorded.at),
        "because": event.because,
        "replaces": event.replaces,
        "from": event.origin if isinstance(event, StepAccepted) else None,
    }


def _journal(
    store: Store, row: Artifact, made: Made | None, decision: Recorded | None
) -> dict[str, Json]:
    """The event that made it stand: the journal, its place there, and a digest of it."""
    if decision is not None:
        name, seq = line_journal(row.project, row.line), decision.seq
    else:
        assert made is not None  # one of both is there
        name, seq = f"run:{made.start.run}", made.accepted.seq
    for raw in store.raw(name):
        if raw.seq == seq:
            event = digest_bytes(f"{raw.seq}\n{raw.at}\n{raw.kind}\n{raw.body}".encode())
            return {"journal": name, "seq": seq, "event": event}
    raise IntegrityError(f"the journal '{name}' has no event {seq}")


def removed_by(store: Store, row: Artifact) -> list[str]:
    """The files that an artifact removes: no digest can name them."""
    if row.form != "tree":
        return []
    return [change.path for change in changes_in(store.get(row.digest)) if change.digest is None]
