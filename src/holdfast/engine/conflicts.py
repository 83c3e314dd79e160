"""The conflicts of a run: their records, what people decided about them, and what agents disagree on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from holdfast.core.conflict import changed_under, decided, find_conflicts, overlap, recommendations
from holdfast.core.state import COMPLETE, State
from holdfast.engine.lines import Line
from holdfast.engine.outputs import Outputs
from holdfast.engine.result import Told
from holdfast.engine.taking import Allowed, Clash
from holdfast.engine.world import World
from holdfast.errors import IntegrityError
from holdfast.model.artifact import tree_entries
from holdfast.model.changeset import changes_in
from holdfast.model.conflict import Conflict, Position, conflict_from_json, record_bytes
from holdfast.model.digest import Digest, Json, digest_bytes
from holdfast.model.event import ConflictFound, ConflictResolved
from holdfast.model.line import ConflictDecided
from holdfast.model.plan import Plan, StepId
from holdfast.ports import Facts

MOST_NAMED = 5


class Conflicts:
    """Finds and settles conflicts for one run; `content` also reads what is still to be committed."""

    def __init__(
        self, world: World, state: State, outputs: Outputs, content: Callable[[Digest], bytes]
    ) -> None:
        self._world = world
        self._state = state
        self._outputs = outputs
        self._content = content
        self._line = Line(world.store, state.project, state.line, world.clock)
        self._decisions: dict[str, ConflictDecided] = {}
        self._records: dict[str, Conflict] = {}
        self._wave = self._settled = 0
        self._graph = state.graph
        self._asked: set[StepId] = set()
        self._known: set[str] | None = None
        self._waves = state.graph.waves() if _has_agents(state.plan) else []

    def refresh(self) -> None:
        """Read what people said on the line since; the first word about a conflict counts."""
        for recorded in self._line.news():
            event = recorded.event
            if isinstance(event, ConflictDecided):
                self._decisions.setdefault(event.conflict, event)

    def decision(self, conflict: str) -> ConflictDecided | None:
        """What a person said of a conflict, in this run or before."""
        return self._decisions.get(conflict)

    # --- files ----------------------------------------------------------------------------------

    def about_files(self, step: StepId, made: Digest, clashes: Sequence[Clash]) -> Told:
        """A step's changes cannot be taken over: one conflict with each who wrote there."""
        told = Told()
        others: dict[StepId, list[Clash]] = {}
        for clash in clashes:
            others.setdefault(clash.by, []).append(clash)
        for other, some in sorted(others.items()):
            paths = tuple(sorted({clash.path for clash in some}))
            if other:
                found = overlap(_scope(paths), [(step, made), (other, some[0].made)])
            else:
                kept = self._outputs.keep_places(paths)
                told.blobs += kept.blobs
                found = changed_under(_scope(paths), step, made, kept.digest)
            self._tell(told, found, paths)
        return told

    def lost_and_won(self, step: StepId, found: ConflictFound) -> tuple[Sequence[str], Allowed]:
        """The paths that a step gives up by what was decided, or what it may replace at them."""
        said = self._decisions[found.conflict]
        if said.take != step:
            return found.paths, {}
        return (), self.of_the_other(step, found)

    def of_the_other(self, step: StepId, found: ConflictFound) -> Allowed:
        """What the other side of a step's conflict wrote at its paths."""
        other = next((one for one in self.record(found).positions if one.step != step), None)
        there: dict[str, Digest | None] = dict.fromkeys(found.paths)
        if other is not None and other.content is not None:
            manifest = self._world.store.get(other.content)
            there |= {entry.path: entry.digest for entry in tree_entries(manifest)}
            there |= {change.path: change.digest for change in changes_in(manifest)}
        return there

    # --- agents ---------------------------------------------------------------------------------

    def among_needs(self, step: StepId) -> Told:
        """What the agents that a step stands on directly disagree about, told once."""
        if not self._waves or step in self._asked:
            return Told()
        self._asked.add(step)
        return self._among(need.step for need in self._state.plan.steps[step].needs)

    def in_waves(self) -> Told:
        """What agents of one wave disagree about, as soon as all steps of the wave are settled."""
        told = Told()
        if self._graph is not self._state.graph:  # steps were added
            self._graph, self._wave, self._settled = self._state.graph, 0, 0
            self._waves = self._graph.waves()
        while self._wave < len(self._waves) and self._is_settled(self._waves[self._wave]):
            found = self._among(self._waves[self._wave])
            told.events += found.events
            told.blobs += found.blobs
            self._wave, self._settled = self._wave + 1, 0
        return told

    def _is_settled(self, steps: Sequence[StepId]) -> bool:
        while self._settled < len(steps):
            if self._state.steps[steps[self._settled]].phase in {"pending", "running"}:
                return False
            self._settled += 1
        return True

    def _among(self, steps: Iterable[StepId]) -> Told:
        told, said = Told(), []
        for step_id in steps:
            agent, here = self._state.plan.steps[step_id].agent, self._state.steps[step_id]
            if (
                agent
                and here.phase in COMPLETE
                and here.digest is not None
                and here.form == "bytes"
            ):
                try:
                    said += recommendations(step_id, agent, self._content(here.digest))
                except IntegrityError:  # purged meanwhile: it has no voice
                    continue
        for found in find_conflicts(said, self._world.registry()) if said else ():
            if found.conflict_id not in self._found_before():
                self._tell(told, found, ())
                if not found.asks:
                    told.events.append(self._resolved(told, found))
        return told

    def _found_before(self) -> set[str]:
        if self._known is None:
            events = (r.event for r in self._world.store.read(f"run:{self._state.run}"))
            self._known = {event.conflict for event in events if isinstance(event, ConflictFound)}
        return self._known

    def blocks(self, step: StepId) -> tuple[str, ...]:
        """The open disagreements between steps that a step needs; who needs one side only goes on with it."""
        if not self._waves:
            return ()
        needs = {need.step for need in self._state.plan.steps[step].needs}
        return tuple(
            name
            for name, found in self._state.conflicts.items()
            if found.kind == "agents" and len(needs.intersection(found.steps)) > 1
        )

    # --- records --------------------------------------------------------------------------------

    def _tell(self, told: Told, found: Conflict, paths: tuple[str, ...]) -> None:
        record = record_bytes(found)
        digest = digest_bytes(record)
        told.blobs.append((digest, record))
        self._records[found.conflict_id] = found
        self._found_before().add(found.conflict_id)
        told.events.append(ConflictFound(found.conflict_id, found.kind, digest, found.steps, paths))

    def record(self, found: ConflictFound) -> Conflict:
        """The whole of a conflict."""
        known = self._records.get(found.conflict)
        if known is None:
            known = self._records[found.conflict] = read_record(self._world.store, found.record)
        return known

    def settled(self, found: ConflictFound) -> Told:
        """The fact that a conflict is settled as a person said."""
        said = self._decisions[found.conflict]
        told = Told()
        record = self.record(found)
        if not said.take and all(one.step for one in record.positions):
            kept = self._outputs.keep_places(found.paths)
            told.blobs += kept.blobs
            mine = Position(StepId(""), action="keep", content=kept.digest)
            record = replace(record, positions=(*record.positions, mine))
        winner = place_of(record, said.take)
        told.events.append(self._resolved(told, decided(record, winner, said.by)))
        return told

    def _resolved(self, told: Told, record: Conflict) -> ConflictResolved:
        content = record_bytes(record)
        digest = digest_bytes(content)
        told.blobs.append((digest, content))
        assert record.winner is not None  # it is settled
        return ConflictResolved(record.conflict_id, digest, record.positions[record.winner].step)


def _has_agents(plan: Plan) -> bool:
    return any(step.agent for step in plan.steps.values())


def place_of(record: Conflict, take: StepId) -> int:
    """Which position a person means: of a step that has several, the weightiest."""
    of_step = [one for one in record.positions if one.step == take]
    if not of_step:
        raise IntegrityError(f"'{take}' has no position in conflict '{record.conflict_id}'")
    return record.positions.index(max(of_step, key=lambda one: one.score))


def read_record(store: Facts, digest: Digest) -> Conflict:
    """A conflict as it was stored."""
    return conflict_from_json(cast("Mapping[str, Json]", json.loads(store.get(digest))))


def _scope(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return ", ".join(paths[:MOST_NAMED]) + more
