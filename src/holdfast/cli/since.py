"""Why a step waits although somebody said yes: what is other than it was then."""

from __future__ import annotations

from holdfast import wire
from holdfast.cli.ask import who
from holdfast.cli.gates import ASKED
from holdfast.core.state import State
from holdfast.engine.decisions import Decisions
from holdfast.engine.opened import asked_about
from holdfast.engine.overtaken import Since, since
from holdfast.engine.questions import HELD
from holdfast.model.event import Reason
from holdfast.model.plan import StepId
from holdfast.ports import Store

MOST_PARTS = 8


class Waits:
    """What waiting steps of one line say about an earlier yes; reads only what is new on the line."""

    def __init__(self, store: Store, project: str, line: str) -> None:
        self._store = store
        self._decisions = Decisions(store, project, line, wire.now_ms)

    def words(self, reason: Reason | None) -> str:
        """What differs from what was approved before; empty if nothing was, or nothing does."""
        if reason is None or reason.code != "awaiting_approval":
            return ""
        self._decisions.refresh()
        book = self._decisions.book
        asked = [book.by_id[name] for name in reason.because if name in book.by_id]
        found = (since(self._store, book, approval) for approval in asked)
        return next((words for words in map(since_words, found) if words), "")

    def stand(self, reason: Reason | None) -> str:
        """What was said to all that a step asks: `approved`, `rejected`; empty if something is open."""
        if reason is None or reason.code not in ASKED:
            return ""
        self._decisions.refresh()
        book, now = self._decisions.book, wire.now_ms()
        asked = [book.by_id[name] for name in reason.because if name in book.by_id]
        stands = {approval.stand(now) for approval in asked}
        if "rejected" in stands:
            return "rejected"
        return "approved" if stands == {"approved"} and len(asked) == len(reason.because) else ""

    def said_of(self, state: State, step_id: StepId) -> str:
        """What was said to a step that waits, also whether it may be tried again if it is held."""
        reason = state.steps[step_id].reason
        if reason is None or reason.code not in HELD:
            return self.stand(reason)
        self._decisions.refresh()
        subject = asked_about(self._store, state, step_id).subject
        asked = self._decisions.book.by_subject.get(subject, [])[-1:]
        stands = {str(approval.stand(wire.now_ms())) for approval in asked}
        return next(iter(stands & {"approved", "rejected"}), "")


def since_words(found: Since | None) -> str:
    """What is other than when somebody said yes to the same; empty if nobody did."""
    return f"changed since {_whose(found)}: {_parts(found)}" if found is not None else ""


def since_row(found: Since) -> tuple[str, str]:
    """The same as a row of a card."""
    return "changed", f"{_parts(found)} (since {_whose(found)})"


def _whose(found: Since) -> str:
    return "your yes" if found.by == who() else f"the yes of {found.by}"


def _parts(found: Since) -> str:
    more = len(found.parts) - MOST_PARTS
    return ", ".join(found.parts[:MOST_PARTS]) + (f" and {more} more" if more > 0 else "")


def waiting_since(store: Store, state: State) -> dict[StepId, str]:
    """The same for every step of a run that waits."""
    if not state.counts["waiting"]:
        return {}
    waits = Waits(store, state.project, state.line)
    found = {
        step_id: waits.words(here.reason)
        for step_id, here in state.steps.items()
        if here.phase == "waiting"
    }
    return {step_id: words for step_id, words in found.items() if words}


def answered_in(store: Store, state: State) -> dict[StepId, str]:
    """The steps of a run that wait although somebody has decided: approved or rejected.

    They go on when an engine drives the run again; in one that ended, never.
    """
    if not state.counts["waiting"] or state.ended:
        return {}
    waits = Waits(store, state.project, state.line)
    found = {
        s: waits.said_of(state, s) for s, here in state.steps.items() if here.phase == "waiting"
    }
    return {step_id: said for step_id, said in found.items() if said}
