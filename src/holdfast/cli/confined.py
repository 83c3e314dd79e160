"""Whether what a step made was made in a sandbox, as the journal tells it."""

from __future__ import annotations

from holdfast.model.event import AttemptAccepted, AttemptParked
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Store


def was_confined(store: Store, run: RunId, step: StepId, attempt: int = 0) -> bool | None:
    """Of one attempt, or of the last one; None if the journal names none."""
    found: bool | None = None
    for recorded in store.read(f"run:{run}", 0):
        event = recorded.event
        if not isinstance(event, AttemptAccepted | AttemptParked) or event.step != step:
            continue
        if attempt in {0, event.attempt}:
            found = event.confined
    return found
