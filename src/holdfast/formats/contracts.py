"""Steps held to the contracts of their agents.

A plan that says `agents` is held to them: what breaks a contract is an error, and what a step leaves open
(time, outputs, whether a person is asked, how many at once) the contract fills in. In any other plan a
step of an agent that is known is only warned about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace

from holdfast.errors import PlanError, Problem
from holdfast.formats.agentfile import agents_in, read_registry, shipped
from holdfast.formats.nodes import Mapping as Tree
from holdfast.formats.nodes import Node, Scalar
from holdfast.formats.problems import Placed
from holdfast.formats.projectfiles import file_content
from holdfast.formats.reading import Reading
from holdfast.model.agent import (
    NO_STEPS,
    Action,
    Breach,
    Registry,
    agent_name,
    breaches,
    contracts,
    held_to,
    limited,
    voices,
    with_contracts,
)
from holdfast.model.digest import Json
from holdfast.model.fixed import varying
from holdfast.model.plan import Limits, Step, StepId

DEFAULT = "default"  # the word in a plan for: the agents that are known anyway
Own = Callable[[], Registry | None]
_CODES = {
    "agent": "P070",
    "action": "P071",
    "context": "P072",
    "outputs": "P073",
    "timeout": "P074",
    "version": "P075",
}
_KEYS = {"context": "action", "version": "agent"}


@varying
class Contracts:
    """The registry of one load, read when it is first asked for; `binds` if the plan says `agents`.

    A plan that is there already says it by the contracts that were `kept` when it was read. A foreign file
    is warned about everything, and limited as the contracts say.
    """

    reading: Reading
    said: Node | None = None  # `agents` of the plan
    own: Own | None = None  # gives the registry of the person, if there is one
    foreign: bool = False
    kept: Mapping[str, Json] = field(default_factory=dict)  # what a plan that is there is held to
    _known: Registry | None = None
    _below: Registry | None = None  # without what the plan says

    @property
    def voices(self) -> dict[str, Json]:
        """What the plan's own agents count for when they disagree."""
        return voices(self.known, self._below or self.known) if self.binds else {}

    @property
    def to_keep(self) -> dict[str, Json]:
        """What the plan keeps for steps that are added later."""
        if not self.binds:
            return {}
        return {"agents": contracts(self.known, self._below or self.known)}

    @property
    def binds(self) -> bool:
        return self.said is not None or bool(self.kept)

    @property
    def known(self) -> Registry:
        if self._known is None:
            self._known = self._read()
        return self._known

    def _read(self) -> Registry:
        mine = self.own() if self.own is not None else None
        found = shipped() if mine is None else mine.over(shipped())
        self._below = found
        if self.kept:
            return with_contracts(found, self.kept)
        node = self.said
        if isinstance(node, Scalar) and node.value == DEFAULT:
            return found
        if isinstance(node, Scalar) and isinstance(node.value, str):
            return self._file(node, node.value, found)
        if node is not None:
            return Registry(agents_in(self.reading, node), found.rules).over(found)
        return found

    def _file(self, node: Node, name: str, below: Registry) -> Registry:
        content = file_content(self.reading, "agents", node, name)
        if content is None:
            return below
        try:
            return read_registry(content, name, str(self.reading.root), self.reading.walls).over(
                below
            )
        except PlanError as error:
            for item in error.problems:
                message = f"{name}:{item.line}:{item.column}: {item.message}"
                self.reading.problems.add(item.code, node, message, item.hint)
            return below

    def action(self, agent: object, action: object) -> Action | None:
        """How a step is done that says only who does what, if a registry knows."""
        if not isinstance(agent, str) or not isinstance(action, str):
            return None
        found = self.known.action(agent, action)
        return found if found is not None and found.can_run else None

    def hold(
        self,
        steps: Mapping[StepId, Step],
        place_of: Callable[[StepId], Tree],
        limits: Limits,
        given: Iterable[str] = (),
        beside: Mapping[StepId, Step] = NO_STEPS,
    ) -> tuple[dict[StepId, Step], Limits]:
        """Hold steps to their contracts and report what breaks them; `given` is context all have.

        They may need steps that are `beside` them, which stay as they are.
        """
        held = dict(steps)
        asked = {step.id: step for step in steps.values() if step.agent}
        if not asked and self.said is None:
            return held, limits
        known = self.known  # also if no step asks for it: what is wrong with it is told
        if self.binds:
            held |= {step_id: held_to(step, known) for step_id, step in asked.items()}
        if self.binds or self.foreign:
            limits = limited(limits, asked, known)
        for breach in breaches(held, known, given, beside):
            self._report(breach, place_of(breach.step))
        if self.binds or self.foreign:
            named = [step_id for step_id in asked if "@" in held[step_id].agent]
            held |= {
                step_id: replace(held[step_id], agent=agent_name(held[step_id].agent))
                for step_id in named
            }
        return held, limits

    def _report(self, breach: Breach, node: Tree) -> None:
        hint = breach.hint
        if breach.key == "agent":
            if not self.binds and not self.foreign:
                return  # a name that means something to its author
            hint = self.reading.problems.did_you_mean(breach.names[0], self.known.agents)
        keys = (_KEYS.get(breach.key, breach.key), *_KEYS.values())
        at: Placed = next((node.pairs[key][1] for key in keys if key in node.pairs), node)
        if self.binds:
            self.reading.problems.add(_CODES[breach.key], at, breach.message, hint)
        else:
            self.reading.problems.warn("P910", at, breach.message, hint)


def bound(
    steps: Mapping[StepId, Step], limits: Limits, registry: Registry, given: Iterable[str] = ()
) -> tuple[dict[StepId, Step], Limits]:
    """Steps that were made by hand, held to contracts; PlanError if they break one."""
    held = {step_id: held_to(step, registry) for step_id, step in steps.items()}
    broken = [
        Problem(breach.message, hint=breach.hint, code=_CODES[breach.key])
        for breach in breaches(held, registry, given)
    ]
    if broken:
        raise PlanError(tuple(broken))
    return held, limited(limits, held, registry)
