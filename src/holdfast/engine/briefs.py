"""What steps are told of the work before them, for one run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from holdfast.core.briefing import BUDGET, ancestors, briefing, needed_by
from holdfast.core.ledger import Ledger, Told, folded
from holdfast.core.likeness import Alike
from holdfast.core.premises import standings, statements
from holdfast.core.refs import Upstream
from holdfast.core.said import Said
from holdfast.core.state import State
from holdfast.core.waves import Graph
from holdfast.engine.came import Queued
from holdfast.engine.citations import ids_in
from holdfast.engine.handoffs import Handoffs, Read, stored
from holdfast.engine.words import OWN
from holdfast.engine.world import World
from holdfast.errors import IntegrityError
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.event import AttemptAccepted, AttemptStarted
from holdfast.model.handoff import handoff_id
from holdfast.model.plan import Plan, RunId, Step, StepId
from holdfast.ports import Store

Blob = tuple[Digest, bytes]


def quoting(store: Store, digest: Digest) -> dict[Digest, tuple[RunId, StepId]]:
    """The pages that tell something of a handoff, with a step that was given each: found by its ids."""
    journals = [name for name in store.journals() if name.startswith("run:")]
    events = [(name, one.event) for name in journals for one in store.read(name)]
    tellers = {
        event.step
        for _, event in events
        if isinstance(event, AttemptAccepted) and event.handoff == digest
    }
    ids = {handoff_id(step, digest).encode() for step in tellers}
    if tellers and (told := stored(store.get(digest))) is not None:
        ids |= {name.encode() for step in tellers for name in ids_in(told, step)}
    found: dict[Digest, tuple[RunId, StepId]] = {}
    for name, event in events if ids else ():
        if isinstance(event, AttemptStarted) and event.context is not None:
            with suppress(IntegrityError):  # removed since
                page = store.get(event.context)
                if any(one in page for one in ids):
                    found.setdefault(event.context, (RunId(name[4:]), event.step))
    return found


class Briefs:
    """Makes the page that a step is given: a function of the plan and of what steps above it told."""

    def __init__(self, world: World, state: State, read: Read, queued: Queued) -> None:
        self._world = world
        self._state = state
        self._handoffs = Handoffs(world.store, state.project, state.line, read, queued)
        self._pages = Pages(world.alike)

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
        told: list[Told] = []
        if step.needs:
            self._handoffs.refresh()
            if self._handoffs.are_any(self._state):
                told = self._handoffs.told_by(self._state, ancestors(self._state.graph, step.id))
        return self._pages.page(self._state.plan, step, told, self._handoffs.said)

    def in_ref(self, step: Step) -> Digest | None:
        """The page as a part of the key; None if nothing is told."""
        page = self.page(step)
        return digest_bytes(page) if page else None


class Pages:
    """Writes pages; steps below the same steps share one fold of what those told."""

    def __init__(self, alike: Alike) -> None:
        self._alike = alike
        self._given: object = None
        self._ledger = Ledger()

    def page(self, plan: Plan, step: Step, told: Sequence[Told], said: Sequence[Said]) -> bytes:
        """What a step is told of what the steps above it told, and of what people said about that."""
        if not told and not step.hypotheses:
            return b""
        ledger = self._folded(plan, told, [one for one in said if one.word not in OWN])
        says = statements(plan)
        tested = {name: says.get(name, "") for name in step.hypotheses}
        needs = needed_by(plan.steps, step)
        return briefing(ledger, needs, tested, step.context_tokens or BUDGET).text.encode()

    def _folded(self, plan: Plan, told: Sequence[Told], about: Sequence[Said]) -> Ledger:
        given = (plan.premises, {one.step: one for one in told}, about)
        if given != self._given:
            self._given = given
            self._ledger = folded(told, self._alike, standings(plan), about)
        return self._ledger


class Foreknown:
    """The pages as a run would give them, as far as what the steps above made is known before it.

    Of the others the page is taken that their last artifact was made with.
    """

    def __init__(self, store: Store, plan: Plan, graph: Graph, line: str, alike: Alike) -> None:
        self._store = store
        self._plan = plan
        self._graph = graph
        self._pages = Pages(alike)
        self._place = (plan.project, line)
        self._handoffs: Handoffs | None = None
        self.known: Mapping[StepId, Upstream] = {}

    def on(self, store: Store) -> Foreknown:
        """The same, read from a store that is open."""
        self._store, self._handoffs = store, None
        return self

    def page(self, step: Step) -> Digest | None:
        """The page as a part of the key; None if nothing is told."""
        if self._handoffs is None:
            self._handoffs = Handoffs(self._store, *self._place)
            self._handoffs.refresh()
        above = ancestors(self._graph, step.id)
        if not above <= self.known.keys():
            return self._before(step)
        made = {name: self.known[name] for name in above}
        told = self._handoffs.came_with(self._graph, made)
        page = self._pages.page(self._plan, step, told, self._handoffs.said)
        return digest_bytes(page) if page else None

    def _before(self, step: Step) -> Digest | None:
        newest = self._store.newest(*self._place, step.id)
        if newest is None:
            return None
        with suppress(IntegrityError):
            own = json.loads(self._store.get(newest.own_ref))
            return own["ext"].get("context")  # type: ignore[no-any-return]  # a digest, as it was written
        return None
