"""Which models a plan asks, and by which word a step says who does it.

Nobody but the plan chooses a tier: it is the word that the plan says, whatever the place of the step in the
graph, and what that word stands for was settled when the plan was read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from holdfast.core.estimate import asked_models
from holdfast.model.plan import Step
from holdfast.model.provider import TIERS


class Mix(NamedTuple):
    """How many steps ask one model, and the tiers by which they name it, the smallest first."""

    steps: int = 0
    tiers: tuple[str, ...] = ()


def tier_of(step: Step) -> str:
    """The tier that the plan says for a step; nothing if it names the model, or asks none."""
    return step.tier if step.asks_model and step.tier in TIERS else ""


def doer(step: Step) -> str:
    """Who does a step, in one word: its tier, else its model without the provider, else what it uses."""
    if not step.asks_model:
        return step.uses
    return tier_of(step) or step.model.partition(":")[2] or step.model or step.uses


def models_of(made: Iterable[Step], adopted: Iterable[Step] = ()) -> dict[str, Mix]:
    """Which models steps ask, for what they make or as judges of it; the most asked first.

    Of a step whose content a person gave, only the judges are asked.
    """
    counts = Counter(model for step in adopted for model in asked_models(step, about_it=True))
    tiers: dict[str, set[str]] = {}
    for step in made:
        counts.update(asked_models(step))
        if tier := tier_of(step):
            tiers.setdefault(step.model, set()).add(tier)
    return {
        model: Mix(counts[model], tuple(t for t in TIERS if t in tiers.get(model, ())))
        for model in sorted(counts, key=lambda model: (-counts[model], model))
    }
