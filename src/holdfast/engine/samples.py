"""Samples: several accepted artifacts of a step under one key, and which of them stands.

The best score of the step's judges stands; without scores, the newest. A person decides otherwise by
accepting the one of another run.
"""

from __future__ import annotations

from holdfast.model.artifact import Artifact
from holdfast.model.event import AttemptAccepted, AttemptStarted
from holdfast.ports import Outcome, Store

_THOUSAND = 1000


def score_of(outcome: Outcome) -> int | None:
    """What judges gave, the mean of them in thousandths; None if none of them gave a score."""
    scores = outcome.verdict.scores if outcome.verdict is not None else ()
    return round(sum(scores) / len(scores) * _THOUSAND) if scores else None


def recorded_score(store: Store, artifact: Artifact) -> int | None:
    """What judges gave an artifact when it was accepted."""
    for _, recorded in store.told([f"run:{artifact.run}"], [AttemptAccepted]):
        event = recorded.event
        if isinstance(event, AttemptAccepted) and _made(event, artifact):
            return event.score
    return None


def stands_better(
    store: Store, project: str, line: str, started: AttemptStarted, score: int | None
) -> bool:
    """Whether judges gave no less to what stands under the same key than to one more sample of it."""
    if score is None:
        return False
    found = store.find(project, line, started.step, started.config_ref)
    before = None if found is None else recorded_score(store, found)
    return before is not None and before >= score


def samples(store: Store, stands: Artifact) -> list[Artifact]:
    """Every accepted artifact of a step under one key, in their order."""
    rows = store.artifacts(project=stands.project, line=stands.line, step=stands.step)
    return [
        row
        for row in rows
        if row.config_ref == stands.config_ref and row.status in {"accepted", "superseded"}
    ]


def _made(event: AttemptAccepted, artifact: Artifact) -> bool:
    return (event.step, event.attempt) == (artifact.step, artifact.attempt)
