"""Whether the plan of a run still holds: looked at when all steps of a wave are settled.

What speaks against it is a fact of the run (`ReplanWanted`), which holds it: what runs ends, nothing more
starts. It goes on when somebody answered on the line, or when the ledger no longer says so. A trigger that
was answered once, in this run or in an earlier one of the line, is not asked about again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, cast

from holdfast.core.premises import premises_of, rules_of
from holdfast.core.replan import Premises, Rules, Trigger, may_matter, triggers
from holdfast.core.state import State
from holdfast.engine.came import Queued
from holdfast.engine.handoffs import Handoffs, Read
from holdfast.engine.journals import has_ended, read_state, runs_of
from holdfast.engine.ledgers import ledger_up_to
from holdfast.engine.lines import Line, tell_line
from holdfast.engine.result import Told
from holdfast.engine.world import World
from holdfast.model.digest import Json, digest_bytes
from holdfast.model.event import ReplanDecided, ReplanWanted, RunStarted
from holdfast.model.line import ReplanAnswered
from holdfast.model.plan import Plan, RunId, StepId
from holdfast.ports import Store

_SETTLED = frozenset({"done", "reused", "failed", "skipped"})
GO_ON: Final = "go_on"
PLANNED: Final = "planned"
PREPARED: Final = "prepared"


class Replans:
    """Looks after the plan of one run."""

    def __init__(
        self,
        world: World,
        state: State,
        read: Read,
        queued: Queued,
    ) -> None:
        self._world = world
        self._state = state
        self._handoffs = Handoffs(world.store, state.project, state.line, read, queued)
        self._line = Line(world.store, state.project, state.line, world.clock)
        self._answers: list[ReplanAnswered] = []
        self._graph = state.graph
        self._waves: list[tuple[StepId, ...]] | None = None
        self._wave = self._settled = 0
        self._plan = state.plan
        self._rules: Rules | None = None
        self._premises = Premises()

    def look(self) -> Told:
        """What has to be recorded now: that the plan is doubted, or that this is settled."""
        wanted = self._state.replan
        if wanted is None:
            return self._in_waves()
        self._refresh()
        self._handoffs.refresh()
        left = {one.id for one in self._found(wanted.wave)}
        answers = standing(self._world.store, self._state, self._answers)
        if any(name in left and name not in answers for name in wanted.triggers):
            return Told()
        self._waves = None  # what comes up again later is looked at anew
        said = [answers[name] for name in wanted.triggers if name in answers]
        if not said:
            return Told([ReplanDecided(wanted.triggers, "withdrawn")])
        return Told([ReplanDecided(wanted.triggers, "approved", said[0].by)])

    def _in_waves(self) -> Told:
        """Whether all steps of further waves are settled, and what speaks against the plan then."""
        fails = bool(self._state.counts["failed"]) and bool(self._state.plan.premises)
        if not fails and not self._handoffs.are_any(self._state):
            return Told()
        if (
            self._graph is not self._state.graph or self._waves is None
        ):  # first, or steps were added
            self._graph, self._plan = self._state.graph, self._state.plan
            self._waves, self._rules = [tuple(wave) for wave in self._graph.waves()], None
            self._wave = self._settled = 0
        first = self._wave
        while self._wave < len(self._waves) and self._is_settled(self._waves[self._wave]):
            self._wave, self._settled = self._wave + 1, 0
        if self._wave == first or not self._may_matter(first):
            return Told()
        self._refresh()
        answers = standing(self._world.store, self._state, self._answers)
        known = answers.keys() | self._state.answered
        found = [one for one in self._found(self._wave) if one.id not in known]
        if not found:
            return Told()
        words = triggers_bytes(found)
        digest = digest_bytes(words)
        event = ReplanWanted(tuple(one.id for one in found), self._wave, digest)
        return Told([event], [(digest, words)])

    def _is_settled(self, steps: Sequence[StepId]) -> bool:
        while self._settled < len(steps):
            if self._state.steps[steps[self._settled]].phase not in _SETTLED:
                return False
            self._settled += 1
        return True

    def _may_matter(self, first: int) -> bool:
        """Whether the waves that were settled just now told anything that could speak against the plan."""
        if self._rules is None:
            self._rules = rules_of(self._plan)
            self._premises = premises_of(self._plan, self._graph)
        self._handoffs.refresh()
        steps = [step for wave in (self._waves or ())[first : self._wave] for step in wave]
        told = self._handoffs.told_by(self._state, steps)
        return any(may_matter(one.handoff, self._premises, self._rules) for one in told)

    def _found(self, waves: int) -> list[Trigger]:
        graph, plan = self._state.graph, self._state.plan
        steps = [step for wave in [*graph.waves()][:waves] for step in wave]
        self._handoffs.refresh()
        said = self._handoffs.said
        ledger = ledger_up_to(self._state, self._handoffs, self._world.alike, steps, said)
        return triggers(ledger, premises_of(plan, graph), rules_of(plan))

    def _refresh(self) -> None:
        for recorded in self._line.news():
            if isinstance(recorded.event, ReplanAnswered):
                self._answers.append(recorded.event)

    @property
    def goes_over(self) -> bool:
        """Whether the run is held and another plan takes its place without a person."""
        if self._state.replan is None or not rules_of(self._state.plan).to:
            return False
        self._refresh()
        return successor(self._world.store, self._state, self._answers) is not None


# --- words ----------------------------------------------------------------------------------------


class Doubt(NamedTuple):
    """A trigger as it was stored."""

    id: str
    cause: str
    step: str
    words: str
    entries: tuple[str, ...]


def triggers_bytes(found: Sequence[Trigger]) -> bytes:
    """What speaks against a plan, as a blob."""
    rows: list[Json] = [
        {
            "id": one.id,
            "cause": one.cause,
            "step": one.step,
            "words": one.words,
            "entries": list(one.entries),
        }
        for one in found
    ]
    return json.dumps(rows, ensure_ascii=False, sort_keys=True).encode()


def doubts(content: bytes) -> list[Doubt]:
    """What `triggers_bytes` wrote."""
    rows = cast("list[dict[str, Json]]", json.loads(content))
    return [
        Doubt(
            str(row["id"]),
            str(row["cause"]),
            str(row["step"]),
            str(row["words"]),
            tuple(str(item) for item in cast("list[Json]", row["entries"])),
        )
        for row in rows
    ]


# --- people ---------------------------------------------------------------------------------------


class Held(NamedTuple):
    """A run that is held because its plan is doubted."""

    run: RunId
    event: ReplanWanted
    doubts: list[Doubt]
    plan: Plan


def held(store: Store, project: str, line: str) -> Held | None:
    """The run of a line that waits for somebody to say what becomes of its plan."""
    for row in reversed(runs_of(store, project, line)):
        state = None if has_ended(store, row.run) else read_state(store, row.run)
        if state is None:
            continue
        if state.replan is None:
            return None
        answers = standing(store, state, answers_on(store, project, line))
        if state.replan.triggers[0] in answers:
            return None
        found = doubts(store.get(state.replan.words))
        return Held(row.run, state.replan, found, state.plan)
    return None


def answers_on(store: Store, project: str, line: str) -> list[ReplanAnswered]:
    """How it was answered on a line, again and again, that something speaks against its plan."""
    told = Line(store, project, line, lambda: 0).news()
    return [recorded.event for recorded in told if isinstance(recorded.event, ReplanAnswered)]


def go_on(
    store: Store,
    project: str,
    line: str,
    found: Held,
    by: str,
    because: str,
    clock: Callable[[], int],
    *,
    terminal: bool,
) -> ReplanAnswered:
    """A person lets a run go on with its plan as it is."""
    why = store.put(because.encode()) if because else None
    event = ReplanAnswered(
        found.run, found.event.triggers, GO_ON, by, because=why, terminal=terminal
    )
    tell_line(store, project, line, lambda: (clock(), event, []))
    return event


def rounds_made(store: Store, project: str, line: str) -> int:
    """How many other plans were made on a line because of what was learned."""
    return len(
        {
            (answer.run, answer.plan)
            for answer in answers_on(store, project, line)
            if answer.choice == PLANNED
        }
    )


# --- plans that were prepared ---------------------------------------------------------------------


def standing(
    store: Store, state: State, answers: Sequence[ReplanAnswered]
) -> dict[str, ReplanAnswered]:
    """The triggers that do not speak against the plan of a run any more, with the last answer to each.

    That a prepared plan took its place is no answer for a plan that names one: it takes its place again.
    It is one for the plan that came of it, and for those that came of that one.
    """
    found = {name: answer for answer in answers for name in answer.triggers}
    if not rules_of(state.plan).to:
        return found
    led_here = [*_way(store, state, answers), *(one for one in answers if one.plan == state.base)]
    known = {name for one in led_here for name in one.triggers}
    return {
        name: answer for name, answer in found.items() if answer.choice != PREPARED or name in known
    }


def successor(store: Store, state: State, answers: Sequence[ReplanAnswered]) -> str | None:
    """The file of the plan that takes the place of a held run's plan without asking; None if none does.

    The plan says so, or a person let it take its place before. Who selected steps asked for those alone.
    """
    rules = rules_of(state.plan)
    if state.replan is None or state.ended or not rules.to or state.options.select:
        return None
    taken = {name for one in answers if one.choice == PREPARED for name in one.triggers}
    if rules.ask and not taken.issuperset(state.replan.triggers):
        return None
    return rules.to if len(_way(store, state, answers)) < rules.rounds else None


def led_to(store: Store, state: State) -> ReplanAnswered | None:
    """The answer by which the plan of a run took the place of another, if it did."""
    if state.previous is None:
        return None
    answers = answers_on(store, state.project, state.line)
    found = [one for one in answers if (one.run, one.plan) == (state.previous, state.base)]
    return found[-1] if found else None


def _way(store: Store, state: State, answers: Sequence[ReplanAnswered]) -> list[ReplanAnswered]:
    """The answers by which the plan of a run took the place of others, one after the other."""
    by = {(one.run, one.plan): one for one in answers if one.choice == PREPARED}
    found: list[ReplanAnswered] = []
    previous, plan = state.previous, state.base
    while previous is not None and (answer := by.get((previous, plan))) is not None:
        found.append(answer)
        begun = next(iter(store.read(f"run:{previous}")), None)
        if begun is None or not isinstance(begun.event, RunStarted):  # collected since
            break
        previous, plan = begun.event.previous, begun.event.plan
    return found
