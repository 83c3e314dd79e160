"""What calls of models cost, as somebody beside the engine writes it up: never more than a person let it be.

A call counts with all that it reserved until it is known what it cost. What was answered and not acted on
is not asked for again. At the end the provider's bill is compared with these books.
"""

from collections import Counter
from dataclasses import dataclass, field

from holdfast.core.reasons import UNANSWERED
from holdfast.core.state import State
from holdfast.model.digest import Digest
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptRejected,
    CallAnswered,
    CallFailed,
    CallStarted,
    Event,
    RunResumed,
    RunStarted,
)
from holdfast.model.plan import RunId, StepId
from tests.simulation.machine import Machine, Process

Key = tuple[StepId, int, int]  # step, attempt, call


@dataclass
class Account:
    """What one run spent, what it has reserved, and what somebody let it spend."""

    limit: int | None = None
    spent: int = 0
    by_step: Counter[StepId] = field(default_factory=Counter)
    under_way: dict[Key, CallStarted] = field(default_factory=dict)
    begun: set[tuple[StepId, Digest]] = field(default_factory=set)

    @property
    def reserved(self) -> int:
        return sum(call.reserved or 0 for call in self.under_way.values())

    def spend(self, step: StepId, cost: int) -> None:
        self.spent += cost
        self.by_step[step] += cost


class Money:
    """The accounts of all runs, and the answers that nobody acted on yet."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.accounts: dict[RunId, Account] = {}
        self.budget: int | None = None  # for all runs together
        self.answers: dict[str, int] = {}  # what each cost, by the provider's own name for it
        self._waiting: dict[tuple[StepId, Digest], tuple[RunId, int]] = {}

    @property
    def total(self) -> int:
        return sum(account.spent + account.reserved for account in self.accounts.values())

    def take(self, run: RunId, event: Event) -> None:
        account = self.accounts.setdefault(run, Account())
        match event:
            case RunStarted():
                account.limit = event.options.max_cost
            case RunResumed():
                account.limit = account.limit if event.max_cost is None else event.max_cost
            case CallStarted():
                self._begins(run, account, event)
            case CallAnswered():
                self._answered(run, account, event)
            case CallFailed():
                self._closed(account, event)
                account.spend(event.step, event.cost or 0)
            case AttemptLost():
                self._ends(account, event.step, event.attempt, event.unsent)
                self._machine.fired["limit_reached"] += event.code == "limit_reached"
                self._machine.fired["call_unsent"] += bool(event.unsent)
            case AttemptFailed(code=code) if code in UNANSWERED:
                self._ends(account, event.step, event.attempt)
            case AttemptAccepted() | AttemptRejected() | AttemptFailed():
                self._ends(account, event.step, event.attempt)
                self._acted_on(event.step, (run, event.attempt))
            case _:
                pass

    def _acted_on(self, step: StepId, by: tuple[RunId, int]) -> None:
        """An attempt ended with a verdict on what was answered, to it or to one that was lost."""
        for key, asker in list(self._waiting.items()):
            if key[0] == step:
                del self._waiting[key]
                self._machine.fired["answer_kept"] += asker != by

    def _begins(self, run: RunId, account: Account, event: CallStarted) -> None:
        paid = self._waiting.get((event.step, event.request))
        if paid is not None:
            self._machine.violated(
                "paid", f"'{event.step}' of '{run}' asks for what was answered to {paid}"
            )
        account.under_way[event.step, event.attempt, event.call] = event
        account.begun.add((event.step, event.request))
        total = account.spent + account.reserved
        if account.limit is not None and total > account.limit:
            self._machine.violated("money", f"'{run}' may cost {total}, not {account.limit}")
        if self.budget is not None and self.total > self.budget:
            self._machine.violated("money", f"all may cost {self.total}, not {self.budget}")

    def _answered(self, run: RunId, account: Account, event: CallAnswered) -> None:
        started = self._closed(account, event)
        account.spend(event.step, event.cost or 0)
        if event.cost != self.answers.get(event.id):
            self._machine.violated("money", f"'{event.id}' cost {self.answers.get(event.id)}")
        if started is not None:
            self._waiting[event.step, started.request] = (run, event.attempt)

    def _closed(self, account: Account, event: CallAnswered | CallFailed) -> CallStarted | None:
        started = account.under_way.pop((event.step, event.attempt, event.call), None)
        if started is None:
            self._machine.violated("I4", f"call {event.call} of '{event.step}' never began")
        return started

    @staticmethod
    def _ends(account: Account, step: StepId, attempt: int, unsent: tuple[int, ...] = ()) -> None:
        for key, started in list(account.under_way.items()):
            if key[:2] == (step, attempt):
                del account.under_way[key]
                account.spend(step, 0 if key[2] in unsent else started.reserved or 0)

    # --- beside the journal -----------------------------------------------------------------------

    def sent(
        self, process: Process, run: RunId, step: StepId, request: Digest, *, late: bool
    ) -> None:
        """A model is asked: that this call may be made is stored already.

        Who stood still before it left, and was taken for dead, asks `late`: all that it had reserved counts.
        """
        account = self.accounts.get(run, Account())
        if late and (step, request) in account.begun:
            self._machine.fired["sent_late"] += 1
        elif not any(
            (started.step, started.request) == (step, request)
            for started in account.under_way.values()
        ):
            self._machine.violated("I3", f"{process.name} asks for '{step}' before that is stored")

    def check_bill(self, bill: Counter[tuple[RunId, StepId]]) -> None:
        """The provider charged no more than the books say."""
        for (run, step), cost in bill.items():
            account = self.accounts.get(run, Account())
            open_calls = (c.reserved or 0 for c in account.under_way.values() if c.step == step)
            known = account.by_step[step] + sum(open_calls)
            if cost > known:
                self._machine.violated("money", f"'{step}' of '{run}' cost {cost}, not {known}")

    def check_state(self, state: State) -> None:
        """The fold has the same sums."""
        account = self.accounts.get(state.run, Account())
        mine = (account.spent, account.reserved)
        if mine != (state.spent.cost, state.reserved):
            self._machine.violated("money", f"'{state.run}': {state.spent.cost}, not {mine}")
