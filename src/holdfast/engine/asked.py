"""What the waiting steps of a run asked people."""

from __future__ import annotations

from holdfast.core.approvals import Book
from holdfast.core.state import State
from holdfast.engine.lines import line_journal
from holdfast.model.line import ApprovalRequested
from holdfast.model.plan import StepId
from holdfast.ports import Store


def asked_in(store: Store, state: State) -> dict[StepId, list[ApprovalRequested]]:
    """What each waiting step of a run asked people, as far as the line has it."""
    if not state.counts["waiting"]:
        return {}
    book = Book()
    for recorded in store.read(line_journal(state.project, state.line)):
        book.take(recorded)
    return {
        step_id: [
            book.by_id[name].request
            for name in (here.reason.because if here.reason else ())
            if name in book.by_id
        ]
        for step_id, here in state.steps.items()
        if here.phase == "waiting"
    }
