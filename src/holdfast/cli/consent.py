"""What a run may touch and pay for: what the flags say, who is asked, what is agreed to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from holdfast.cli.ask import consent_to
from holdfast.cli.gates import is_paid, needs_consent
from holdfast.cli.place import Place
from holdfast.cli.provisions import can_bound
from holdfast.cli.recording import asks_nobody
from holdfast.core.consent import not_agreed
from holdfast.core.state import COMPLETE, State
from holdfast.model.event import Agreed
from holdfast.model.plan import StepId


def said_of_money(manner: Mapping[str, object]) -> Agreed:
    """What the flags of a command agree to pay for; where all answers are recorded, nobody is paid."""
    told = bool(manner["yes"]) or manner["max_cost"] is not None
    return "anything" if told and not asks_nobody() else "nothing"


def agreed_with(told: Agreed, paid: Sequence[StepId]) -> Agreed:
    """What is agreed to, after somebody said yes to the steps that cost money."""
    return "shown" if paid and told == "nothing" else told


def consent_within(
    where: Place, state: State, steps: Collection[StepId], manner: Mapping[str, object]
) -> Agreed:
    """Ask before these steps of an unfinished run touch the outside world or cost money.

    Who said yes to some of what a run may pay for is asked again about the rest.
    """
    told = said_of_money(manner)
    asked = not_agreed(state) if told == "nothing" else []
    whole = [s for s in asked if is_paid(where.root, state.plan.steps[s])]
    paid = [s for s in whole if s in steps]
    touched = [s for s in _still_outside(state) if s in steps]
    bounds = can_bound(where.root, map(state.plan.steps.__getitem__, paid))
    consent_to(touched, yes=bool(manner["yes"]), paid=paid, bounds=bounds)
    return agreed_with(told, paid if paid == whole else ())


def _still_outside(state: State) -> list[StepId]:
    """The steps of an unfinished run that would still touch the outside world."""
    return [
        step_id
        for step_id in state.graph.order
        if needs_consent(state.plan.steps[step_id]) and state.steps[step_id].phase not in COMPLETE
    ]
