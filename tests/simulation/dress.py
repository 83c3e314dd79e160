"""How the steps of a scenario are done: by processes, by models, by people, under approvals, with effects.

It is drawn once for a seed and holds for every stage, so the oracle need not know of it: whoever does a step
makes of it what `tests.laws.script` says.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace

from holdfast.model.plan import Approve, Guard, Need, Plan, Step, StepId
from tests.laws.harness import Stage
from tests.simulation.consent import EYE
from tests.simulation.models import MODEL

Names = frozenset[StepId]
NONE: Names = frozenset()


@dataclass(frozen=True)
class Dress:
    """Names of steps: functions of the engine, those that write, that models or people do, and so on."""

    inline: Names = NONE
    writes: Names = NONE
    models: Names = NONE
    people: Names = NONE  # what they make comes from a person
    approved: Names = NONE  # a person is asked before each attempt
    edges: Names = NONE  # a person is asked about what they need
    watched: Names = NONE  # a person has to accept what they make
    outside: Names = NONE  # what they do is done once

    @property
    def asks(self) -> bool:
        """Whether people may be asked anything."""
        return bool(self.people | self.approved | self.edges | self.watched | self.outside)

    def plan(self, plan: Plan) -> Plan:
        return replace(plan, steps={name: self.step(step) for name, step in plan.steps.items()})

    def foreseen(self, stage: Stage) -> Stage:
        """As the oracle is told of it: a person who accepts is no guard to it."""
        steps = {
            name: replace(step, guards=tuple(g for g in step.guards if g.kind != "human"))
            for name, step in stage.plan.steps.items()
        }
        return replace(stage, plan=replace(stage.plan, steps=steps))

    def step(self, step: Step) -> Step:
        name = step.id
        if name in self.writes:
            step = replace(step, produces=(f"out/{name}.txt",))
        if name in self.models:
            words = {"role": f"This is step {name}.", "task": step.prompt or "do it"}
            step = replace(step, uses="llm", model=MODEL, prompt=words)
        if name in self.people:
            step = replace(_steady(step), uses="human", guards=())
        if name in self.outside:
            step = replace(_steady(step), effects="external")
        if name in self.approved:
            often: Approve = "always" if ord(name[0]) % 2 else "on_change"
            step = replace(step, approve=often)
        if name in self.edges:
            step = replace(step, needs=tuple(map(_asking, step.needs)))
        if name in self.watched:
            step = replace(step, guards=(*step.guards, Guard("human", name=EYE)))
        return step


def _steady(step: Step) -> Step:
    """Without mishaps of its own."""
    return replace(step, values={**step.values, "mode": ""})


def _asking(need: Need) -> Need:
    return (
        replace(need, type="approval") if need.type == "sequence" else replace(need, approver="me")
    )


def drawn(source: random.Random, names: Iterable[StepId], *, apart: bool) -> Dress:
    """What the seed says; most seeds have some of it, none has all."""
    left = list(names)
    flavours = {*source.choice(FLAVOURS)}

    def some(rate: float, flavour: str = "") -> Names:
        found = frozenset(n for n in left if source.random() < rate)
        found = found if not flavour or flavour in flavours else NONE
        left[:] = [name for name in left if name not in found]
        return found

    inline = some(0.15)
    outside, people = some(0.4, "effects"), some(0.3, "people")
    approved, edges, watched = some(0.4, "people"), some(0.3, "people"), NONE
    if "people" in flavours:
        watched = frozenset(n for n in sorted({*left, *outside}) if source.random() < 0.25)
    free = [n for n in sorted({*left, *approved, *edges}) if "models" in flavours]
    models = frozenset(n for n in free if source.random() < 0.75)
    writes = frozenset(n for n in left if source.random() < 0.6 and not apart) - watched
    return Dress(inline, writes, models, people, approved, edges, watched, outside)


FLAVOURS = (
    *((), (), ("models",), ("models",), ("people",), ("people", "models")),
    *(("effects",), ("effects", "people"), ("effects", "models")),
)
