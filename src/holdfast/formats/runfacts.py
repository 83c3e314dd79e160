"""How a run stands, as those formats tell it that keep more than a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.model.digest import Json
from holdfast.model.plan import Plan, Step, StepId
from holdfast.model.provider import TIERS

NO_MODEL = "none"


class StepFacts(NamedTuple):
    """What is known of a step: its state in our words, what it made, how long that took."""

    state: str = "pending"
    digest: str = ""
    completed_at: str = ""
    duration_ms: int = 0
    verified: bool = False
    error: str = ""

    @property
    def is_complete(self) -> bool:
        return self.state in {"done", "reused"}


class RunFacts(NamedTuple):
    """What is known of a run; without one, of a plan that nobody ran."""

    status: str = "planned"
    started_at: str = ""
    updated_at: str = ""
    duration_ms: int = 0
    steps: Mapping[StepId, StepFacts] = {}
    trace: Sequence[Mapping[str, Json]] = ()

    def of(self, step_id: str) -> StepFacts:
        """A step of it."""
        return self.steps.get(StepId(step_id), StepFacts())


NO_RUN = RunFacts()


def doer(step: Step) -> str:
    """The tier of the model that does a step, else its name; `none` if it asks none."""
    if not step.asks_model:
        return NO_MODEL
    return step.tier if step.tier in TIERS else step.model or NO_MODEL


def mix(plan: Plan, run: RunFacts) -> dict[str, Json]:
    """How many steps each tier did; the three tiers stand there always."""
    found = dict.fromkeys(TIERS, 0)
    for step_id, step in plan.steps.items():
        who = doer(step)
        if who != NO_MODEL and run.of(step_id).state == "done":
            found[who] = found.get(who, 0) + 1
    return dict(found)
