"""How much one call of a model may use: every limit that holds for it, and what was used up already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from holdfast.core.moves import LIMIT
from holdfast.core.outlay import Short
from holdfast.core.reserve import LEAST_OUTPUT, Seen, input_bound, output_bound
from holdfast.errors import AttemptError
from holdfast.model.call import MICRO, Cap, Request, Usage
from holdfast.model.fixed import fixed
from holdfast.model.money import dollars
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
        own, most, room, taken = self.step.budget.get("usd"), self.most, self.room, self.taken.cost
        price = f"another call may cost {dollars(cost)}"
        if own is not None and self.spent.cost + cost > float(str(own)) * MICRO:
            return AttemptError(f"its budget is ${own}, and {price}", reason="budget_spent")
        if most is not None and taken + cost > most:
            return self._short("cost", dollars(most), most - taken, price)
        if room is not None and taken + cost > room.left:
            whole = f"your {dollars(room.most)} for the {room.name}"
            mend = f"{price}; raise [budgets] {room.name} in your own configuration"
            return self._short(room.budget, whole, room.left - taken, mend)
        return None

    def _short(self, limit: Short, whole: str, left: int, price: str) -> AttemptError:
        words = f"of {whole} {self.whose} {dollars(max(0, left))} left, and {price}"
        return AttemptError(words, reason=LIMIT, limit=limit)

    def _lack_of_tokens(self, wanted: int) -> AttemptError | None:
        own, most, used = self.step.budget.get("tokens"), self.tokens, self.taken.tokens
        more = f"and another call may use {wanted}"
        if own is not None and self.spent.tokens + wanted > int(str(own)):
            return AttemptError(f"its budget is {own} tokens, {more}", reason="budget_spent")
        if most is not None and used + wanted > most:
            words = f"of {most} tokens {self.whose} {max(0, most - used)} left, {more}"
            return AttemptError(words, reason=LIMIT, limit="tokens")
        return None


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

    def bound(said: int) -> Bound:
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
