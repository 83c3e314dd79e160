"""What steps are told of the work before them, for one run."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from holdfast.core.briefing import BUDGET, Quoted, ancestors, briefing, needed_by, quoted
from holdfast.core.ledger import Ledger, folded
from holdfast.core.likeness import Alike
from holdfast.core.premises import standings, statements
from holdfast.core.refs import Upstream
from holdfast.core.said import Said, upheld
from holdfast.core.state import State
from holdfast.core.told import Past, Told
from holdfast.core.waves import Graph
from holdfast.engine.came import Queued
from holdfast.engine.citations import ids_in
from holdfast.engine.handoffs import Handoffs, Read, stored
from holdfast.engine.words import OWN
from holdfast.engine.world import World
from holdfast.errors import IntegrityError
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.event import AttemptAccepted, AttemptStarted
from holdfast.model.handoff import entry_id, handoff_id
from holdfast.model.plan import Plan, RunId, Step, StepId
from holdfast.model.sources import source_name, source_names
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
        self._is_old = True

    def renew(self) -> None:
        """What others told on the line is read again before the next page."""
        self._is_old = True

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
        above: set[StepId] = set()
        if step.needs:
            if self._is_old:
                self._handoffs.refresh()
                self._is_old = False
            if self._handoffs.are_any(self._state):
                above = ancestors(self._state.graph, step.id)
                told = self._handoffs.told_by(self._state, above)
        if not told and not step.hypotheses:
            return b""
        past = self._handoffs.past(self._state.run, above)
        return self._pages.page(self._state.plan, step, told, self._handoffs.said, past)

    def in_ref(self, step: Step) -> Digest | None:
        """The page as a part of the key; None if nothing is told."""
        self.renew()
        page = self.page(step)
        return digest_bytes(page) if page else None


class Pages:
    """Writes pages; steps below the same steps share one fold of what those told."""

    def __init__(self, alike: Alike) -> None:
        self._alike = alike
        self._given: object = None
        self._ledger = Ledger()

    def page(
        self,
        plan: Plan,
        step: Step,
        told: Sequence[Told],
        said: Sequence[Said],
        past: Past | None = None,
    ) -> bytes:
        """What a step is told of what the steps above it told, and of what people said about that."""
        if not told and not step.hypotheses:
            return b""
        ledger = self._folded(plan, told, [one for one in said if one.word not in OWN], past)
        says = statements(plan)
        tested = {name: says.get(name, "") for name in step.hypotheses}
        needs = needed_by(plan.steps, step)
        return briefing(ledger, needs, tested, step.context_tokens or BUDGET).text.encode()

    def _folded(
        self, plan: Plan, told: Sequence[Told], about: Sequence[Said], past: Past | None
    ) -> Ledger:
        given = (plan.premises, {one.step: one for one in told}, about)
        if given != self._given:
            self._given = given
            premises, steps = standings(plan), plan.steps
            self._ledger = folded(told, self._alike, premises, about, steps=steps, past=past)
        return self._ledger


class Foreknown:
    """The pages as a run would give them, as far as what the steps above made is known before it.

    Where steps above have to run first, nobody knows what they will tell. The page that an artifact was made
    with may come again then, unless it names what people contested or answered since: that is on no page any
    more, whoever tells it. If so of all artifacts, the page is taken that comes if the steps above tell once
    more what they told. `unsaid` is what somebody is about to say.
    """

    def __init__(
        self,
        store: Store,
        plan: Plan,
        graph: Graph,
        line: str,
        alike: Alike,
        unsaid: Sequence[Said] = (),
    ) -> None:
        self._store = store
        self._plan = plan
        self._graph = graph
        self._pages = Pages(alike)
        self._place = (plan.project, line)
        self._unsaid = unsaid
        self._handoffs: Handoffs | None = None
        self._gone: Quoted | None = None
        self._made: dict[str, bytes] = {}
        self.known: Mapping[StepId, Upstream] = {}

    def on(self, store: Store) -> Foreknown:
        """The same, read from a store that is open."""
        self._store, self._handoffs, self._gone = store, None, None
        return self

    def page(self, step: Step) -> Digest | None:
        """The page as a part of the key; None if nothing is told."""
        if self._handoffs is None:
            self._handoffs = Handoffs(self._store, *self._place)
            self._handoffs.refresh()
        above = ancestors(self._graph, step.id)
        if not above <= self.known.keys():
            made = [*self._made_with(step)]
            if not made:
                return None
            for digest in made:
                if self._may_come(self._handoffs, digest):
                    return digest
        page = self._folded(self._handoffs, step, above)
        if not page:
            return None
        digest = digest_bytes(page)
        self._made[digest] = page
        return digest

    def text(self, digest: str) -> bytes | None:
        """A page that a run would give, though nobody was given it yet."""
        return self._made.get(digest)

    def _folded(self, handoffs: Handoffs, step: Step, above: Iterable[StepId]) -> bytes:
        made = {name: self.known[name] for name in above if name in self.known}
        told = handoffs.came_with(self._graph, made)
        rest = (self._store.newest(*self._place, name) for name in above if name not in made)
        again = {row.step: Upstream(row.config_ref, row.digest) for row in rest if row is not None}
        said = [*handoffs.said, *self._unsaid]
        told += once_more(handoffs, self._graph, again, said)
        return self._pages.page(self._plan, step, told, said, handoffs.past())

    def _made_with(self, step: Step) -> Iterator[Digest | None]:
        """The pages that the artifacts of a step were made with, of the newest first."""
        project, line = self._place
        rows = [*self._store.artifacts(project=project, line=line, step=step.id, status="accepted")]
        for row in reversed(rows):
            with suppress(IntegrityError):
                yield json.loads(self._store.get(row.own_ref))["ext"].get("context")

    def _may_come(self, handoffs: Handoffs, digest: Digest | None) -> bool:
        if self._gone is None:
            said = [*handoffs.said, *self._unsaid]
            self._gone = off_all_pages(handoffs, said, self._graph.steps)
        if digest is None or not any(self._gone):
            return True
        with suppress(IntegrityError):
            page = quoted(self._store.get(digest).decode())
            return not (page.entries & self._gone.entries or page.summed & self._gone.summed)
        return True


def once_more(
    handoffs: Handoffs, graph: Graph, made: Mapping[StepId, Upstream], said: Sequence[Said]
) -> list[Told]:
    """What came with these artifacts, as if it were told again after all that people said."""
    place = max([handoffs.read_to, *(one.place for one in said)]) + 1
    return [replace(one, place=place) for one in handoffs.came_with(graph, made)]


def off_all_pages(handoffs: Handoffs, said: Sequence[Said], steps: Collection[StepId]) -> Quoted:
    """What no step is told any more, whoever tells it again: answered questions, contested evidence.

    A contested step is answered by its next attempt.
    """
    standing = upheld(said)
    entries = {one.entry for one in standing if one.word == "resolve"}
    doubts = {one.entry for one in standing if one.word == "contest"}.difference(steps)
    sources = {source_name(one) for one in doubts}
    summed = set()
    for _, one in handoffs.ever() if doubts else ():
        for seen in one.handoff.observed:
            name = entry_id("e", one.step, seen.finding, seen.source)
            is_doubted = not doubts.isdisjoint((name, one.id, seen.source))
            named = (source_name(seen.source), *source_names(seen.source))
            if is_doubted or not sources.isdisjoint(named):
                entries.add(name)
                summed.add(one.id)
    return Quoted(frozenset(entries), frozenset(summed))
