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
_MOST = 1e9


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
        if not 0 < amount < _MOST:
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


def spent_words(state: State, saved: int = 0, unpriced_saved: int = 0) -> str:
    """What a run spent and saved; nothing if it asked no model and saved nothing."""
    parts = []
    if state.spent.calls:
        parts.append(f"{cost_words(state.spent.cost, state.spent.unpriced)} spent")
    if saved:
        parts.append(f"~{dollars(saved)} saved")
    elif unpriced_saved:
        parts.append(f"saved: {UNKNOWN}")
    return ", ".join(parts)


def step_words(spent: Spent | None) -> str:
    """What a step cost; nothing if it asked no model."""
    return "" if spent is None or not spent.calls else cost_words(spent.cost, spent.unpriced)


def limit_words(state: State) -> str:
    """What a run has spent of what it may; nothing if there is neither."""
    most = cost_limit(state)
    if most is None:
        return step_words(state.spent)
    return f"{cost_words(state.spent.cost, state.spent.unpriced)} of {dollars(most)}"


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
