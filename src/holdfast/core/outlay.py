"""What was paid: every call of any number of runs with what became of it, and what reuse saved.

A call that was answered is used once its attempt is accepted, and spent in vain if that is rejected or
fails; an answer whose attempt was lost waits for the next one. A call without an end was cut off, and
counts with all that it had reserved, because nobody knows better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Final, Literal, NamedTuple

from holdfast.core.reasons import UNANSWERED
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
    Recorded,
    RunStarted,
    StepsReused,
    StepsTaken,
)
from holdfast.model.fixed import varying
from holdfast.model.line import PaidThen, RunCollected
from holdfast.model.plan import RunId, StepId

_QUARTER = 15 * 60 * 1000  # ms
Short = Literal["cost", "tokens", "day budget", "project budget"]  # what leaves a run no more calls
Fate = Literal["open", "answered", "used", "rejected", "interrupted", "failed"]
CALLS: Final[tuple[type[Event], ...]] = (
    *(CallStarted, CallAnswered, CallFailed, AttemptLost),
    RunCollected,  # what a run paid that is gone
)
KINDS: Final[tuple[type[Event], ...]] = (
    *CALLS,
    AttemptAccepted,
    AttemptRejected,
    AttemptFailed,
    StepsReused,
    StepsTaken,
    RunStarted,
)


@varying
class Outlay:
    """One call: whose it was, what it cost in micro-dollars (None is not known), what became of it."""

    run: RunId
    step: StepId
    attempt: int
    model: str
    request: Digest
    at: int
    cost: int | None
    tokens: int  # of which nobody knows more than the most, if it was cut off
    input: int = 0
    output: int = 0
    fate: Fate = "open"


class Made(NamedTuple):
    """What it took to make one accepted artifact: all calls of its step since the last one."""

    run: RunId
    step: StepId
    at: int
    digest: Digest
    calls: tuple[Outlay, ...]

    @property
    def cost(self) -> int | None:
        """Micro-dollars; None if a price is not known."""
        return total_cost(self.calls)

    @property
    def tokens(self) -> int:
        """Those that were read and written; of a call that was cut off, the most it may have used."""
        return sum(call.tokens for call in self.calls)

    @property
    def model(self) -> str:
        """Who made it: the first that was asked."""
        return self.calls[0].model


class Reuse(NamedTuple):
    """One artifact that a run did not have to make."""

    run: RunId
    step: StepId
    at: int
    digest: Digest


class Saved(NamedTuple):
    """What reuse saved in micro-dollars, and of how many artifacts nobody knows the price."""

    cost: int = 0
    unpriced: int = 0


class Begun(NamedTuple):
    """A run as it began."""

    at: int
    line: str
    project: str
    plan: Digest


def total_cost(calls: Iterable[Outlay]) -> int | None:
    """What calls cost together; None if a price is not known."""
    whole = 0
    for call in calls:
        if call.cost is None:
            return None
        whole += call.cost
    return whole


_Call = tuple[RunId, StepId, int, int]  # run, step, attempt, number
_Step = tuple[RunId, StepId]


@varying
class Account:
    """All that was paid, in the order of the journals it was read from."""

    calls: list[Outlay] = field(default_factory=list)
    made: list[Made] = field(default_factory=list)
    reused: list[Reuse] = field(default_factory=list)
    runs: dict[RunId, Begun] = field(default_factory=dict)
    _open: dict[_Call, Outlay] = field(default_factory=dict)
    _since: dict[_Step, list[Outlay]] = field(default_factory=dict)
    _waiting: dict[_Step, list[Outlay]] = field(default_factory=dict)  # answers not acted on

    def take(self, run: RunId, recorded: Recorded) -> None:
        """One event of a run's journal; others than KINDS say nothing here."""
        event, at = recorded.event, recorded.at
        match event:
            case CallStarted():
                call = Outlay(
                    run=run,
                    step=event.step,
                    attempt=event.attempt,
                    model=event.model,
                    request=event.request,
                    at=at,
                    cost=event.reserved,
                    tokens=event.tokens,
                )
                self.calls.append(call)
                self._open[run, event.step, event.attempt, event.call] = call
                self._since.setdefault((run, event.step), []).append(call)
            case CallAnswered():
                self._answered(run, event, at)
            case CallFailed():
                failed = self._ended(run, event, at)
                failed.cost, failed.tokens = event.cost, event.tokens
                failed.fate = "failed" if event.cost == 0 else "interrupted"
            case AttemptAccepted():
                self._cut_off(run, event.step, event.attempt)
                self._acted_on(run, event.step, "used")
                if calls := self._since.pop((run, event.step), []):
                    self.made.append(Made(run, event.step, at, event.digest, tuple(calls)))
            case AttemptFailed(code=code) if code in UNANSWERED:
                self._cut_off(run, event.step, event.attempt)
            case AttemptRejected() | AttemptFailed():
                self._cut_off(run, event.step, event.attempt)
                self._acted_on(run, event.step, "rejected")
            case AttemptLost():
                for number in event.unsent:
                    self._never_sent((run, event.step, event.attempt, number))
                self._cut_off(run, event.step, event.attempt)
            case StepsReused() | StepsTaken():
                self.reused += [Reuse(run, item.step, at, item.digest) for item in event.items]
            case RunStarted():
                self.runs[run] = Begun(at, event.line, event.project, event.plan)
            case _:
                pass

    def _answered(self, run: RunId, event: CallAnswered, at: int) -> None:
        call = self._ended(run, event, at)
        call.cost, call.fate = event.cost, "answered"
        call.input, call.output, call.tokens = event.input, event.output, event.input + event.output
        self._waiting.setdefault((run, event.step), []).append(call)

    def _ended(self, run: RunId, event: CallAnswered | CallFailed, at: int) -> Outlay:
        """The call that has an end now; it counts at that time."""
        call = self._open.pop((run, event.step, event.attempt, event.call), None)
        if call is None:  # it began before the time that is looked at
            call = Outlay(run, event.step, event.attempt, "", Digest(""), at, None, 0)
            self.calls.append(call)
        call.at = at
        return call

    def _never_sent(self, key: _Call) -> None:
        if (call := self._open.pop(key, None)) is not None:
            _drop(self.calls, call)
            _drop(self._since.get(key[:2], []), call)

    def _acted_on(self, run: RunId, step: StepId, fate: Fate) -> None:
        for call in self._waiting.pop((run, step), ()):
            call.fate = fate

    def _cut_off(self, run: RunId, step: StepId, attempt: int) -> None:
        """An attempt is over: calls of it that have no end were cut off."""
        for key in [key for key in self._open if key[:3] == (run, step, attempt)]:
            self._open.pop(key).fate = "interrupted"

    def saved(self) -> dict[tuple[StepId, Digest], int | None]:
        """What the making of each artifact cost: what whoever takes it saves."""
        return {(made.step, made.digest): made.cost for made in self.made}


def _drop(calls: list[Outlay], call: Outlay) -> None:
    """Take out this very one; it is near the end."""
    for place in reversed(range(len(calls))):
        if calls[place] is call:
            del calls[place]
            return


def account_of(events: Iterable[tuple[str, Recorded]]) -> Account:
    """The account of events as a store tells them: the name of a run's journal, and what it says."""
    account = Account()
    for journal, recorded in events:
        account.take(RunId(journal.removeprefix("run:")), recorded)
    return account


@varying
class Tally:
    """What the calls of one journal cost in micro-dollars that ended since a moment, or are under way."""

    since: int = 0
    spent: int = 0
    _open: dict[tuple[StepId, int, int], int] = field(default_factory=dict)

    def take(self, recorded: Recorded) -> None:
        """One more event; others than CALLS say nothing here."""
        event, at = recorded.event, recorded.at
        match event:
            case CallStarted(reserved=cost):
                self._open[event.step, event.attempt, event.call] = cost or 0
                self.spent += cost or 0
            case CallAnswered(cost=cost) | CallFailed(cost=cost):
                self._close((event.step, event.attempt, event.call), cost or 0, at)
            case AttemptLost(unsent=unsent):
                for key in [k for k in self._open if k[:2] == (event.step, event.attempt)]:
                    self._close(key, 0 if key[2] in unsent else self._open[key], at)
            case RunCollected(paid=paid):
                self.spent += sum(then.cost for then in paid if then.at >= self.since)
            case _:
                pass

    def _close(self, key: tuple[StepId, int, int], cost: int, at: int) -> None:
        self.spent -= self._open.pop(key, 0)
        if at >= self.since:
            self.spent += cost


def paid_then(calls: Iterable[Outlay]) -> tuple[PaidThen, ...]:
    """What calls cost, by quarters of an hour: a day begins with one, wherever it does."""
    found: dict[int, int] = {}
    for call in calls:
        if call.cost:
            at = call.at - call.at % _QUARTER
            found[at] = found.get(at, 0) + call.cost
    return tuple(PaidThen(at, cost) for at, cost in sorted(found.items()))


@varying
class Totals:
    """Sums over calls, in micro-dollars, of those whose price is known; how many others there are."""

    calls: int = 0
    input: int = 0
    output: int = 0
    tokens: int = 0
    cost: int = 0
    unpriced: int = 0
    rejected: int = 0
    unpriced_rejected: int = 0
    interrupted: int = 0
    unpriced_cut: int = 0
    cut: int = 0  # calls that were interrupted
    saved: int = 0
    unpriced_saved: int = 0

    def add(self, call: Outlay) -> None:
        """One more call."""
        self.calls += 1
        self.input, self.output = self.input + call.input, self.output + call.output
        self.tokens += call.tokens
        self.cost += call.cost or 0
        self.unpriced += call.cost is None
        if call.fate == "rejected":
            self.rejected += call.cost or 0
            self.unpriced_rejected += call.cost is None
        elif call.fate in {"interrupted", "open"}:
            self.interrupted += call.cost or 0
            self.unpriced_cut += call.cost is None
            self.cut += 1

    def save(self, cost: int | None) -> None:
        """One more artifact that was not made again."""
        self.saved += cost or 0
        self.unpriced_saved += cost is None


def summed(
    account: Account,
    mark: Callable[[Outlay | Reuse], str],
    costs: Mapping[tuple[StepId, Digest], int | None],
    since: int = 0,
) -> dict[str, Totals]:
    """Sums by whatever `mark` names them, in the order of the first of each; `costs` are what was saved."""
    found: dict[str, Totals] = {}
    for call in account.calls:
        if call.at >= since:
            found.setdefault(mark(call), Totals()).add(call)
    for reuse in account.reused:
        key = (reuse.step, reuse.digest)
        if reuse.at >= since and key in costs:
            found.setdefault(mark(reuse), Totals()).save(costs[key])
    return found
