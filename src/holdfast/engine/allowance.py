"""How much one call of a model may use: every limit that holds for it, and what was used up already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.core.moves import LIMIT
from holdfast.core.reserve import LEAST_OUTPUT, Seen, input_bound, output_bound
from holdfast.errors import AttemptError
from holdfast.model.call import MICRO, Cap, Request, Usage
from holdfast.model.fixed import fixed
from holdfast.model.money import dollars, dollars_left, dollars_needed
from holdfast.model.plan import Step

if TYPE_CHECKING:  # it is made by whoever has budgets
    from holdfast.engine.purse import Room

Price = Callable[[str, Usage], int | None]  # of a model's tokens, in micro-dollars


class Bound(NamedTuple):
    """The most that a call may use: tokens, and micro-dollars unless its price is not known."""

    tokens: int
    cost: int | None


class Taken(NamedTuple):
    """Micro-dollars and tokens that were spent, or are reserved."""

    cost: int = 0
    tokens: int = 0


@fixed
class Allowance:
    """The limits of a step and of whoever does it, and what each of the two has taken; None is no limit."""

    step: Step
    spent: Taken  # by the step
    taken: Taken  # by all
    most: int | None  # micro-dollars
    tokens: int | None
    room: Room | None  # what budgets leave that hold over more
    whose: str  # who has something left

    @property
    def is_in_money(self) -> bool:
        """Whether a price has to be known."""
        limits = (self.step.budget.get("usd"), self.most, self.room)
        return any(limit is not None for limit in limits)

    @property
    def kept(self) -> list[str]:
        """What bounds what is used, in words."""
        found = []
        if (usd := self.step.budget.get("usd")) is not None:
            found.append(f"its budget of ${usd}")
        if (tokens := self.step.budget.get("tokens")) is not None:
            found.append(f"its budget of {tokens} tokens")
        if self.most is not None:
            found.append(f"{dollars(self.most)} in all")
        if self.tokens is not None:
            found.append(f"{self.tokens} tokens in all")
        if self.room is not None:
            found.append(f"your {dollars(self.room.most)} for the {self.room.name}")
        return found

    def lack(self, model: str, bound: Bound) -> AttemptError | None:
        """The limit that leaves no room for a call, if one does not."""
        if bound.cost is None and self.is_in_money:
            return _no_price(model)
        return self._lack_of_money(bound.cost or 0) or self._lack_of_tokens(bound.tokens)

    def _lack_of_money(self, cost: int) -> AttemptError | None:
        own, most, room, taken = self._own_dollars, self.most, self.room, self.taken.cost
        if own is not None and self.spent.cost + cost > own:
            left = dollars_left(max(0, own - self.spent.cost))
            of_it = f", of which {left} is left" if self.spent.cost else ""
            words = f"its budget is {dollars(own)}{of_it}, and {_price_words(cost)}"
            return AttemptError(words, reason="budget_spent")
        if most is not None and taken + cost > most:
            words = cost_words(most, most - taken, cost, self.whose)
            return AttemptError(words, reason=LIMIT, limit="cost", wanted=cost)
        if room is not None and taken + cost > room.left:
            whole = f"the {dollars(room.most)} for the {room.name}"
            words = _money_words(whole, room.left - taken, cost, self.whose)
            words += f"; raise [budgets] {room.name} in {room.file or 'your own configuration'}"
            return AttemptError(words, reason=LIMIT, limit=room.budget, wanted=cost)
        return None

    @property
    def _own_dollars(self) -> int | None:
        """The step's own budget in micro-dollars."""
        own = self.step.budget.get("usd")
        return None if own is None else int(float(str(own)) * MICRO)

    def _lack_of_tokens(self, wanted: int) -> AttemptError | None:
        own, most, used = self.step.budget.get("tokens"), self.tokens, self.taken.tokens
        if own is not None and self.spent.tokens + wanted > int(str(own)):
            left = max(0, int(str(own)) - self.spent.tokens)
            of_it = f", of which {left} are left" if self.spent.tokens else ""
            words = f"its budget is {own} tokens{of_it}, and another call may use {wanted}"
            return AttemptError(words, reason="budget_spent")
        if most is not None and used + wanted > most:
            words = token_words(most, most - used, wanted, self.whose)
            return AttemptError(words, reason=LIMIT, limit="tokens", wanted=wanted)
        return None


RUN: Final = "the run has"


def cost_words(most: int, left: int, wanted: int, whose: str = RUN) -> str:
    """That a bound in dollars leaves no room for a call."""
    return _money_words(dollars(most), left, wanted, whose)


def token_words(most: int, left: int, wanted: int, whose: str = RUN) -> str:
    """That a bound of tokens leaves no room for a call."""
    return f"of {most} tokens {whose} {max(0, left)} left, and another call may use {wanted}"


def _money_words(whole: str, left: int, wanted: int, whose: str) -> str:
    return f"of {whole} {whose} {dollars_left(max(0, left))} left, and {_price_words(wanted)}"


def _price_words(cost: int) -> str:
    return f"another call may cost {dollars_needed(cost)}"


def bounded(
    request: Request, size: int, seen: Seen, allowed: Allowance, price: Price, *, alone: bool
) -> tuple[Request, Bound] | AttemptError:
    """The request to send and what it may use, or the limit that leaves no room for it now.

    Whoever is `alone` waits for nobody's reservation: an answer that the plan does not bound is then bounded
    by what is left, unless that is not worth it.
    """
    given = request.parameters.get("max_tokens")
    asked = given if isinstance(given, int) else None
    read = input_bound(size, seen)
    kept = allowed.kept
    most = output_bound(asked, request.enough, limited=bool(kept))
    is_capped = asked is None and bool(kept)  # else nothing holds the answer to it

    def bound(said: int, read: int = read) -> Bound:
        cost = price(request.model, Usage(input=read, output=said))
        return Bound(read + said, cost)

    def fits(said: int) -> bool:
        return allowed.lack(request.model, bound(said)) is None

    lack = allowed.lack(request.model, bound(most))
    if lack is None:
        cap = Cap(most, _cut_by_all(request, most, kept)) if is_capped else None
        return replace(request, cap=cap), bound(most)
    if is_capped and alone and (fewer := _longest(most, fits)) >= LEAST_OUTPUT:
        return replace(request, cap=Cap(fewer, _cut_by_one(fewer, lack))), bound(fewer)
    if lack.wanted:  # whoever asks it again may not have seen how the model counts
        afresh = bound(most, input_bound(size, Seen()))
        may_use = afresh.tokens if lack.limit == "tokens" else afresh.cost or 0
        lack.wanted = max(lack.wanted, may_use)
    return lack


def _cut_by_all(request: Request, most: int, kept: list[str]) -> str:
    """Why an answer is cut that the plan does not bound."""
    mend = "say max_tokens for its model, and it may have as many"
    if request.enough is not None:  # there is no place to say so
        mend = "ask a model that says less, or without a limit"
    limits = " and ".join(kept)
    return f"at {most:,} tokens, the most that it may have while a limit is kept ({limits}); {mend}"


def _cut_by_one(most: int, lack: AttemptError) -> str:
    """Why an answer is cut that a limit leaves less room for."""
    mends = {
        "cost": "; raise it with --max-cost",
        "tokens": "; raise tokens in 'limits' of the plan",
        "": "; raise 'budget' of the step",
    }
    words = f"{lack.message}{mends.get(lack.limit, '')}"
    return f"at {most:,} tokens, all that is left for it: {words}"


def _longest(most: int, fits: Callable[[int], bool]) -> int:
    """How long an answer may be so that it fits; by halving, as a price may have steps."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _no_price(model: str) -> AttemptError:
    return AttemptError(
        f"the price of '{model}' is not known, so no budget can be kept;"
        " give it in [prices] of your configuration",
        reason="call_refused",
    )
