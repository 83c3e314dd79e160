"""What a run may cost, in the words of a preview."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.cli.ahead import Ahead
from holdfast.cli.measure import count
from holdfast.cli.money import UNKNOWN, estimate_words
from holdfast.cli.provisions import unpriced, unpriced_words
from holdfast.cli.say import short
from holdfast.core.estimate import Total
from holdfast.model.money import dollars, dollars_left, dollars_needed


def total_words(found: Total) -> str:
    """What steps may cost together, in few words."""
    low, high = dollars(found.p50), dollars(found.p90)
    span = low if low == high else f"{low}–{high.removeprefix('$')}"
    if not found.unknown:
        return span
    return f"? ({UNKNOWN})" if not found.p90 else f"{span} and ?"


def price_words(ahead: Ahead) -> str:
    """What a run may cost: typical, high, and how many steps or items nobody knows the price of."""
    found, parts = ahead.money, []
    if found.p90 or not (found.unknown or ahead.opened):
        low, high = dollars(found.p50), dollars(found.p90)
        parts.append(f"{low} typical" + (f", {high} high" if high != low else ""))
    if found.unknown:
        parts.append(f"{UNKNOWN} for {count(found.unknown, 'step')}")
    parts += [f"{estimate_words(cost)} for each item of {s}" for s, cost in ahead.opened.items()]
    return ", ".join(parts)


def unpriced_lines(ahead: Ahead) -> Iterable[str]:
    """That a run would be refused, as nobody knows what its bound is to be compared with."""
    if ahead.costs and (unknown := unpriced(ahead.where.root, ahead.foreseen)):
        yield f"! {unpriced_words(unknown)}: give it in [prices] of your own config.toml"


def bound_lines(ahead: Ahead) -> Iterable[str]:
    """The bounds that a run may come to and that are not its own budget: of tokens, a day, the project."""
    tokens, room = ahead.plan.limits.tokens, ahead.room
    if ahead.costs and tokens is not None and ahead.used.p90 > tokens:
        yield f"! limits.tokens is {tokens}, and this may use {ahead.used.p90}"
    if room is not None and ahead.money.p90 > room.left:
        name = room.budget.partition(" ")[0]
        yield (
            f"! of the {dollars(room.most)} for the {name} {dollars_left(max(0, room.left))} is left,"
            f" and this may cost {dollars_needed(ahead.money.p90)}"
        )


def far_off(ahead: Ahead) -> Iterable[str]:
    """A warning that these estimates may be as wrong as the last."""
    if ahead.looked is not None and ahead.costs and ahead.looked[1].is_off:
        run, looked = ahead.looked
        yield (
            f"The last estimate was far off: {dollars(looked.expected)} expected,"
            f" {dollars(looked.actual)} spent in {short(run)}."
        )


def price_parts(ahead: Ahead) -> list[str]:
    if not ahead.costs:
        return []
    budget = [f"budget {dollars(ahead.budget)}"] if ahead.budget is not None else []
    tokens = ahead.plan.limits.tokens
    limit = [f"limit {tokens} tokens"] if tokens is not None else []
    return [price_words(ahead), *budget, *limit]


def open_lines(ahead: Ahead) -> Iterable[str]:
    """That nobody knows yet how many items are to be paid for, and when that is asked about."""
    for step_id in ahead.opened:
        source = " and ".join(ahead.outlooks[step_id].reason.because)
        told = f"! how many items {step_id} has, {source} finds out: you are asked again when it is known"
        yield f"{told}, unless you say --max-cost"
