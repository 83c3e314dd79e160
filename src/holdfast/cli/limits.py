"""What is said about the money of a run when it rests or ends: what is left to do, how to go on."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from holdfast import wire
from holdfast.cli.measure import count
from holdfast.cli.money import cost_words, exact
from holdfast.cli.place import root_of
from holdfast.core.estimate import Looked, asked_models
from holdfast.core.moves import LIMIT
from holdfast.core.outlay import Saved
from holdfast.core.state import COMPLETE, State
from holdfast.core.views import cost_limit
from holdfast.engine import allowance
from holdfast.errors import IntegrityError, UsageError
from holdfast.model.call import MICRO
from holdfast.model.money import dollars
from holdfast.model.plan import StepId
from holdfast.model.text import clean, first_line
from holdfast.ports import Store

NAMED = 6  # steps that are named
_CENT = MICRO // 100
_BUDGETS = {"day budget": "day", "project budget": "project"}  # why a run rests -> its key


class Own(NamedTuple):
    """What a person lets a run, a day or the project spend in micro-dollars, and the file that says so."""

    most: int | None = None
    file: str = ""
    name: str = "run"


class Money(NamedTuple):
    """What is known beside the run itself: what reuse saved, what was expected, why it stopped."""

    saved: Saved = Saved()
    looked: Looked | None = None
    why: str = ""
    own: Own = Own()


NO_MONEY = Money()


def own_of(state: State, file: str | None) -> Own:
    """The person's budget that bounds a run of this plan file, if it rests at a limit."""
    if state.status == "limit" and state.rest is not None:
        name = next((_BUDGETS[why] for why in state.rest.because if why in _BUDGETS), "run")
        with suppress(UsageError):  # said by whoever has to keep it
            root = root_of(file)
            budgets = wire.market.budgets(root)
            given = {"run": budgets.run, "day": budgets.day, "project": budgets.project}[name]
            return Own(wire.market.micro(given), wire.market.budget_file(root, name), name)
    return Own()


def limit_words(store: Store, state: State) -> str:
    """Why there was no room for a call; nothing if a run rests for another reason."""
    if state.status != "limit" or state.rest is None:
        return ""
    most, tokens, spent = cost_limit(state), state.plan.limits.tokens, state.spent
    if state.wanted and state.rest.because == ("cost",) and most is not None:
        return allowance.cost_words(most, most - spent.cost, state.wanted)
    if state.wanted and state.rest.because == ("tokens",) and tokens is not None:
        return allowance.token_words(tokens, tokens - spent.tokens, state.wanted)
    short = next((s for s in state.steps.values() if s.last and s.last.code == LIMIT), None)
    if short is not None and short.said is not None:
        with suppress(IntegrityError):
            return clean(store.get(short.said).decode("utf-8", "replace"))
    return ""


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


# --- how to go on -------------------------------------------------------------------------------


def going_on(state: State, own: Own) -> list[str]:
    """What lets a run go on that came to a limit; what bounds it beside the command is to be raised first."""
    because = state.rest.because if state.rest is not None else ()
    if because == ("tokens",):
        return [_more_tokens(state), "holdfast status"]
    if because == ("cost",) and cost_limit(state) is not None:
        return [_more_money(state, own), "holdfast cost", "holdfast status"]
    if own.most is not None and any(why in _BUDGETS for why in because):
        amount = exact(own.most + _needed(state))
        raised = f"raise [budgets] {own.name} in {own.file} to {amount}, then holdfast resume"
        return [raised, "holdfast cost", "holdfast status"]
    asks = any(asked_models(state.plan.steps[s]) for s in _left(state))
    said_yes = state.spent.cost or state.max_cost is not None or not asks
    return ["holdfast resume" if said_yes else "holdfast resume --yes", "holdfast status"]


def _more_money(state: State, own: Own) -> str:
    wanted = _wanted(state)
    amount, planned = exact(wanted), wire.market.micro(state.plan.limits.usd)
    is_planned = planned is not None and planned < wanted
    places = ["limits.usd in the plan"] if is_planned else []
    places += [f"[budgets] run in {own.file}"] if own.most is not None and own.most < wanted else []
    command = (
        f"holdfast {'run' if is_planned else 'resume'} --max-cost {amount}"  # it keeps its plan
    )
    return f"raise {' and '.join(places)} to {amount}, then {command}" if places else command


def _wanted(state: State) -> int:
    """The micro-dollars that leave room for the call that was refused, and probably for the whole run.

    Each step that is left is taken for what those before it cost.
    """
    spent, most = state.spent.cost + state.reserved, cost_limit(state) or 0
    left, each = _to_pay(state, most)
    likely = max(spent + left * each, most) * 5 // 4 + 1
    return _round(max(likely, spent + max(0, left - 1) * each + state.wanted))


def _needed(state: State) -> int:
    """The micro-dollars that the rest of a run probably costs, and the call that was refused for certain."""
    left, each = _to_pay(state, 0)
    return _round(max(left * each * 5 // 4 + 1, max(0, left - 1) * each + state.wanted))


def _to_pay(state: State, most: int) -> tuple[int, int]:
    """How many steps are left that cost money, and what each probably costs; `most` if nothing is known."""
    left = sum(bool(asked_models(state.plan.steps[s])) for s in _left(state))
    paid = [s.spent.cost for s in state.steps.values() if s.phase == "done" and s.spent is not None]
    return left, -(-sum(paid) // len(paid)) if paid else state.wanted or most


def _round(wanted: int) -> int:
    step = _CENT if wanted >= _CENT else _CENT // 100
    return -(-wanted // step) * step


def _more_tokens(state: State) -> str:
    """A run keeps its plan, so only a new one goes on; it takes what is made."""
    left = sum(bool(asked_models(state.plan.steps[s])) for s in _left(state))
    used = state.spent.tokens + state.reserved_tokens
    amount = used + max(1, left) * state.wanted
    how_much = f" to {amount}" if state.wanted else ""
    return f"raise limits.tokens in the plan{how_much}, then holdfast run --yes"
