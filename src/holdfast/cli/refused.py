"""The attempts of a step that were refused before one held: which guard refused them, and its first words."""

from __future__ import annotations

from holdfast.errors import IntegrityError
from holdfast.model.digest import Digest
from holdfast.model.event import AttemptFailed, AttemptRejected
from holdfast.model.plan import RunId, StepId
from holdfast.model.text import cut, one_line
from holdfast.ports import Store

MOST = 8
_WIDEST = 200  # columns of one


def refused_rows(store: Store, run: RunId, step_id: StepId) -> list[tuple[str, str]]:
    """A row for each attempt of a run that made nothing that holds, oldest first; of many, the last."""
    rows = []
    for recorded in store.read(f"run:{run}"):
        event = recorded.event
        if isinstance(event, AttemptRejected | AttemptFailed) and event.step == step_id:
            who = f"{event.guard} refused it" if isinstance(event, AttemptRejected) else "failed"
            rows.append((f"attempt {event.attempt}", f"{who}{_words(store, event.feedback)}"))
    return rows[-MOST:]


def _words(store: Store, feedback: Digest | None) -> str:
    if feedback is None:
        return ""
    try:
        said = store.get(feedback).decode("utf-8", "replace")
    except IntegrityError:  # it may have been removed since
        return ""
    words = " ".join(said.split()).removeprefix("- ")
    return f": {cut(one_line(words), _WIDEST)}" if words else ""
