"""What steps are told of the work before them, for one run."""

from __future__ import annotations

from dataclasses import replace

from holdfast.core.briefing import ancestors, briefing
from holdfast.core.ledger import folded
from holdfast.core.premises import standings, statements
from holdfast.core.state import State
from holdfast.engine.handoffs import Handoffs, Read
from holdfast.engine.world import World
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.event import AttemptStarted
from holdfast.model.plan import Step

Blob = tuple[Digest, bytes]


class Briefs:
    """Makes the page that a step is given: a function of the plan and of what steps above it told."""

    def __init__(self, world: World, state: State, read: Read) -> None:
        self._world = world
        self._state = state
        self._handoffs = Handoffs(world.store, state.project, state.line, read)

    def told(self, step: Step, started: AttemptStarted) -> tuple[AttemptStarted, list[Blob]]:
        """The start of an attempt that names its page, and the page."""
        page = self.page(step) if started.reguard is None else b""
        if not page:
            return started, []
        return replace(started, context=digest_bytes(page)), [(digest_bytes(page), page)]

    def page(self, step: Step) -> bytes:
        """What a step is told; of most steps nothing, because nothing was handed over above them."""
        if step.context is False:
            return b""
        told = []
        if step.needs and self._handoffs.are_any(self._state):
            above = ancestors(self._state.graph, step.id)
            told = self._handoffs.told_by(self._state, above)
        if not told and not step.hypotheses:
            return b""
        plan = self._state.plan
        ledger = folded(told, self._world.alike, standings(plan))
        needs = {need.step for need in step.needs}
        says = statements(plan)
        tested = {name: says.get(name, "") for name in step.hypotheses}
        return briefing(ledger, needs, tested).text.encode()
