"""Money as people read it. A price that nobody knows is said to be unknown, never nothing."""

from __future__ import annotations

import click

from holdfast.cli.measure import count
from holdfast.core.estimate import Estimate
from holdfast.core.state import Spent, State
from holdfast.core.views import cost_limit
from holdfast.model.call import MICRO
from holdfast.model.money import dollars

UNKNOWN = "price unknown"
MOST = 1e9  # dollars, so that micro-dollars of many runs add up in any number


class Dollars(click.ParamType[int]):
    """A number of dollars; gives micro-dollars."""

    name = "USD"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read an amount; a number that was read already is taken as it is."""
        if isinstance(value, int):
            return value
        try:
            amount = float(str(value).strip().removeprefix("$"))
        except ValueError:
            amount = -1.0
        if not 0 < amount < MOST:
            self.fail(f"'{value}' is not a number of dollars above 0, such as 2.50", param, ctx)
        return max(1, int(amount * MICRO))


def exact(micro: int) -> str:
    """An amount as a person types it in a command."""
    text = f"{micro / MICRO:.6f}".rstrip("0")
    whole, _, part = text.partition(".")
    return f"{whole}.{part:0<2}"


def cost_words(cost: int, unpriced: int) -> str:
    """What calls cost: what is known of it, and how many have a price that nobody knows."""
    if not unpriced:
        return dollars(cost)
    if not cost:
        return f"{UNKNOWN} ({count(unpriced, 'call')})"
    return f"{dollars(cost)} and {count(unpriced, 'call')} of unknown price"


def most_words(spent: Spent, reserved: int) -> str:
    """The same with calls that were cut off: nobody knows more than what they may have cost."""
    words = cost_words(spent.cost + reserved, spent.unpriced)
    return f"up to {words}" if reserved else words


def spent_words(
    state: State, saved: int = 0, unpriced_saved: int = 0, *, driven: bool = True
) -> str:
    """What a run spent and saved; nothing if it asked no model and saved nothing.

    Calls that were under way when its engine died may have cost all that was reserved for them.
    """
    parts = []
    if state.spent.calls:
        parts.append(f"{most_words(state.spent, 0 if driven else state.reserved)} spent")
    if saved:
        parts.append(f"~{dollars(saved)} saved")
    elif unpriced_saved:
        parts.append(f"saved: {UNKNOWN}")
    return ", ".join(parts)


def step_words(spent: Spent | None, cut_off: int = 0) -> str:
    """What a step cost, with calls that were cut off; nothing if it asked no model."""
    return "" if spent is None or not spent.calls else most_words(spent, cut_off)


def limit_words(state: State) -> str:
    """What a run that nobody drives has spent of what it may; nothing if there is neither."""
    most = cost_limit(state)
    if most is None:
        return step_words(state.spent, state.reserved)
    return f"{most_words(state.spent, state.reserved)} of {dollars(most)}"


def estimate_words(found: Estimate) -> str:
    """A cell of the preview: typical to high, the bound, or that nobody knows."""
    low, high = found.p50, found.p90
    if low is None or high is None:
        return f"? ({UNKNOWN})"
    if found.refused:
        return "$0: no call fits its budget"
    if found.basis == "price":
        top = max(found.costs)
        sign = "≤ " if found.bounded else "~"
        return f"no history: {sign}{dollars(top)}" if top else "$0"
    if dollars(low) == dollars(high):
        return dollars(low)
    return f"{dollars(low)}–{dollars(high).removeprefix('$')}"
