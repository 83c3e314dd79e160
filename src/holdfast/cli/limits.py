"""What is said about the money of a run when it rests or ends: what is left to do, how to go on."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.cli.measure import count
from holdfast.cli.money import cost_words, exact
from holdfast.core.estimate import Looked, asked_models
from holdfast.core.outlay import Saved
from holdfast.core.state import COMPLETE, State
from holdfast.core.views import cost_limit
from holdfast.model.call import MICRO
from holdfast.model.money import dollars
from holdfast.model.plan import StepId
from holdfast.model.text import first_line

NAMED = 6  # steps that are named
_CENT = MICRO // 100


class Money(NamedTuple):
    """What is known beside the run itself: what reuse saved, what was expected, why it stopped."""

    saved: Saved = Saved()
    looked: Looked | None = None
    why: str = ""


NO_MONEY = Money()


def money_lines(state: State, money: Money) -> list[str]:
    """Why a run stopped at a limit of money and what is left; an estimate that was far off."""
    lines = []
    if state.status == "limit" and money.why:
        left = _left(state)
        names = ", ".join(left[:NAMED]) + (f" and {len(left) - NAMED} more" if left[NAMED:] else "")
        lines.append(f"! {first_line(money.why)}")
        lines.append(f"  spent {_spent(state)}; {count(len(left), 'step')} left to do: {names}")
    looked = money.looked
    if looked is not None and looked.is_off and max(looked.expected, looked.actual) >= _CENT:
        partly = " for those with a history" if looked.partly else ""
        lines.append(
            f"! the estimate was far off: {dollars(looked.expected)} expected{partly},"
            f" {dollars(looked.actual)} spent"
        )
    return lines


def _spent(state: State) -> str:
    most = cost_limit(state)
    of = "" if most is None else f" of {dollars(most)}"
    return f"{cost_words(state.spent.cost, state.spent.unpriced)}{of}"


def _left(state: State) -> list[StepId]:
    return [
        step_id
        for step_id in state.graph.order
        if state.steps[step_id].phase not in COMPLETE and state.may_run(step_id)
    ]


def raise_words(state: State) -> str:
    """The amount that would probably let a run come to its end; nothing if its own limit is not in the way.

    Each step that is left is taken for what those before it cost.
    """
    most, rest = cost_limit(state), state.rest
    if most is None or rest is None or rest.because != ("cost",):
        return ""
    left = sum(bool(asked_models(state.plan.steps[s])) for s in _left(state))
    paid = [s.spent.cost for s in state.steps.values() if s.phase == "done" and s.spent is not None]
    each = -(-sum(paid) // len(paid)) if paid else most
    wanted = max(state.spent.cost + left * each, most) * 5 // 4 + 1
    step = _CENT if wanted >= _CENT else _CENT // 100
    return exact(-(-wanted // step) * step)
