"""A conflict: positions that cannot all stand, how it was settled, and who disagreed.

Three kinds share one record. `agents`: recommendations about one scope differ. `files`: two steps wrote
the same path or output. `tree`: the project's files changed under a step. The record is kept as a blob
(`record_bytes`); an event names it by digest, because what agents recommend is text from outside.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Literal, cast

from holdfast.model.digest import Digest, Json, digest_json
from holdfast.model.fixed import fixed
from holdfast.model.plan import StepId

ConflictKind = Literal["agents", "files", "tree"]
How = Literal[
    "agreed", "veto", "score", "tie", "high_veto", "vetoes", "overlap", "changed", "person"
]
Severity = Literal["critical", "high", "medium", "low", "info"]
SEVERITIES: tuple[Severity, ...] = ("critical", "high", "medium", "low", "info")
ASKS: frozenset[How] = frozenset({"tie", "high_veto", "vetoes", "overlap", "changed"})
CONFLICT_SCHEMA = "holdfast.conflict/1"
_ID_LENGTH = 12


@fixed
class Position:
    """What one side wants: an action on the scope, or the content that it put there.

    `agent` is empty for a person's own change, `step` too. Confidence and relevance go from 0 to 1. `score`
    is what the position was worth when the conflict was settled by weight. `round` is the round of
    the debate it was said in.
    """

    step: StepId
    agent: str = ""
    action: str = ""
    content: Digest | None = None
    confidence: float = 1.0
    relevance: float = 1.0
    severity: Severity = "info"
    domain: str = ""
    round: int = 1
    score: float = 0.0


@fixed
class Conflict:
    """The record. `winner` and `dissent` are places in `positions`; without a winner a person decides.

    `how` says how it was settled, or why it goes to a person. `by` is the person who decided.
    """

    conflict_id: str
    kind: ConflictKind
    scope: str
    positions: tuple[Position, ...]
    winner: int | None
    dissent: tuple[int, ...]
    rounds: int
    how: How
    by: str = ""

    @property
    def asks(self) -> bool:
        """Whether a person has to decide."""
        return self.winner is None

    @property
    def steps(self) -> tuple[StepId, ...]:
        """The steps that take part, each once."""
        return tuple(dict.fromkeys(one.step for one in self.positions if one.step))


def conflict_id(kind: ConflictKind, scope: str, positions: Sequence[Position]) -> str:
    """The same conflict has the same id in every process; another position is another conflict."""
    sides: list[Json] = [_position_json(one, scored=False) for one in positions]
    covered: Json = {"kind": kind, "scope": scope, "positions": sides}
    return f"c-{digest_json(covered)[:_ID_LENGTH]}"


def conflict_json(conflict: Conflict) -> dict[str, Json]:
    """The record as JSON."""
    return {
        "schema": CONFLICT_SCHEMA,
        "conflict_id": conflict.conflict_id,
        "kind": conflict.kind,
        "scope": conflict.scope,
        "positions": [_position_json(one) for one in conflict.positions],
        "winner": conflict.winner,
        "dissent": list(conflict.dissent),
        "rounds": conflict.rounds,
        "how": conflict.how,
        "by": conflict.by,
    }


def record_bytes(conflict: Conflict) -> bytes:
    """The record as a blob; equal records give equal bytes."""
    return json.dumps(conflict_json(conflict), ensure_ascii=False, sort_keys=True).encode()


def conflict_from_json(data: Mapping[str, Json]) -> Conflict:
    """Read what `conflict_json` gives."""
    positions = cast("Sequence[Mapping[str, Json]]", data["positions"])
    return Conflict(
        conflict_id=str(data["conflict_id"]),
        kind=cast("ConflictKind", data["kind"]),
        scope=str(data["scope"]),
        positions=tuple(
            Position(**cast("Mapping[str, str]", one))  # type: ignore[arg-type]  # as _position_json writes
            for one in positions
        ),
        winner=cast("int | None", data["winner"]),
        dissent=tuple(cast("Sequence[int]", data["dissent"])),
        rounds=cast("int", data["rounds"]),
        how=cast("How", data["how"]),
        by=str(data.get("by", "")),
    )


def _position_json(position: Position, *, scored: bool = True) -> dict[str, Json]:
    data = asdict(position)
    if not scored:
        del data["score"]
    return data
