"""Mistakes about models, people, effects and old runs, to be found as well."""

from collections.abc import Callable, Sequence

from holdfast.core import approvals, decide
from holdfast.core.state import State
from holdfast.engine import allowance, calls, collect, decisions, look
from holdfast.model.call import Answer, Request
from holdfast.model.event import (
    AttemptFailed,
    AttemptLost,
    AttemptRejected,
    CallStarted,
    Reason,
    RunEvent,
)
from tests.simulation.planted import Patch


def answers_forgotten(patch: Patch) -> None:
    """What a model answered to an attempt that was lost is asked for again."""
    whole = calls.Asker.ask

    async def ask(
        self: calls.Asker, request: Request, listen: Callable[[str], None] | None = None
    ) -> Answer:
        self._paid = []
        return await whole(self, request, listen)

    patch.setattr(calls.Asker, "ask", ask)


def a_limit_unheeded(patch: Patch) -> None:
    """Nobody looks at what a run may cost."""
    patch.setattr(allowance.Allowance, "_lack_of_money", lambda *_: None)


def asked_before_stored(patch: Patch) -> None:
    """A model is asked while the commit that says so is under way."""
    whole = calls.Switchboard.record

    async def record(self: calls.Switchboard, event: RunEvent, *contents: bytes) -> None:
        if not isinstance(event, CallStarted):
            await whole(self, event, *contents)
            return
        for content in contents:
            self._contents.put(self._scribe.pending.blobs, content)
        self._scribe.append(event)
        self._wake()

    patch.setattr(calls.Switchboard, "record", record)


def unsent_calls_are_free(patch: Patch) -> None:
    """Every call that a dead engine left open is taken for one that never left."""
    patch.setattr("holdfast.engine.sent.Left.unsent", lambda _, __, numbers: tuple(numbers))


def a_yes_for_whatever_it_does(patch: Patch) -> None:
    """A yes to a step stands for it, whatever it is about to do."""

    def granted(
        self: approvals.Book, _: str, use: approvals.Use, now: int
    ) -> approvals.Approval | None:
        fits = [found for found in self if found.request.step == use.step]
        return next((found for found in reversed(fits) if found.covers(use, now)), None)

    patch.setattr(approvals.Book, "granted", granted)


def a_no_is_heard_as_yes(patch: Patch) -> None:
    """Whatever a person said, it counts as said."""
    whole = approvals.Approval.stand

    def stand(self: approvals.Approval, now: int) -> approvals.Stand:
        found = whole(self, now)
        return "approved" if found == "rejected" else found

    patch.setattr(approvals.Approval, "stand", stand)


def once_is_always(patch: Patch) -> None:
    """A yes for one attempt covers every other."""

    def covers(self: approvals.Approval, _: approvals.Use, now: int) -> bool:
        return self.decision is not None and self.stand(now) in {"approved", "used"}

    patch.setattr(approvals.Approval, "covers", covers)


def decided_by_an_old_look(patch: Patch) -> None:
    """Whoever decides trusts what he saw when he looked."""

    def check(_: decisions.Decisions, __: approvals.Approval) -> None:
        """Says yes."""

    patch.setattr(decisions.Decisions, "_check_open", check)


def effects_repeated(patch: Patch) -> None:
    """What may have happened outside is simply done again: neither the rule nor the look holds it."""
    whole = decide._give_up

    def give_up(
        state: State, ending: AttemptRejected | AttemptFailed | AttemptLost
    ) -> Reason | None:
        reason = whole(state, ending)
        return None if reason is not None and reason.code == "effect_unconfirmed" else reason

    patch.setattr(decide, "_give_up", give_up)
    patch.setattr(look.Looker, "held_for", lambda *_: None)


def old_runs_that_stand(patch: Patch) -> None:
    """Runs go although something stands on them."""
    patch.setattr(collect, "_fixed", lambda *_: {})


def lines_name_nothing(patch: Patch) -> None:
    """What only people and lines name is taken for garbage."""
    patch.setattr(collect, "_line_roots", lambda *_: set())


PEOPLE: Sequence[Callable[[Patch], None]] = (
    *(answers_forgotten, a_limit_unheeded, asked_before_stored, unsent_calls_are_free),
    *(a_yes_for_whatever_it_does, a_no_is_heard_as_yes, once_is_always, decided_by_an_old_look),
    *(effects_repeated, old_runs_that_stand, lines_name_nothing),
)
