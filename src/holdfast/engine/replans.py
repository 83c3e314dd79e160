"""Whether the plan of a run still holds: looked at when all steps of a wave are settled.

What speaks against it is a fact of the run (`ReplanWanted`), which holds it: what runs ends, nothing more
starts. It goes on when somebody answered on the line, or when the ledger no longer says so. A trigger that
was answered once, in this run or in an earlier one of the line, is not asked about again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, cast

from holdfast.core.likeness import Alike
from holdfast.core.premises import premises_of, rules_of, standings, substance
from holdfast.core.replan import (
    Premises,
    Rules,
    Trigger,
    may_matter,
    may_matter_besides,
    triggers,
)
from holdfast.core.state import State
from holdfast.engine.came import Queued
from holdfast.engine.handoffs import Handoffs, Read
from holdfast.engine.journals import has_ended, is_complete, read_state, runs_of, start_of
from holdfast.engine.ledgers import ledger_up_to
from holdfast.engine.lines import Line, tell_line
from holdfast.engine.result import Told
from holdfast.engine.versions import kept_plan
from holdfast.engine.world import World
from holdfast.errors import IntegrityError
from holdfast.model.digest import Digest, Json, digest_bytes
from holdfast.model.event import ReplanDecided, ReplanWanted, RunStarted
from holdfast.model.line import ReplanAnswered
from holdfast.model.plan import Plan, RunId, StepId, plan_digest
from holdfast.ports import Store

_SETTLED = frozenset({"done", "reused", "failed", "skipped"})
GO_ON: Final = "go_on"
PLANNED: Final = "planned"
PREPARED: Final = "prepared"
_MOST_LEFT = 20  # runs that are looked at for what was left open


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
        self._heard = -1  # words of people that were looked at

    def look(self) -> Told:
        """What has to be recorded now: that the plan is doubted, or that this is settled."""
        wanted = self._state.replan
        if wanted is None:
            return self._in_waves()
        self._refresh()
        self._handoffs.refresh()
        answers = standing(self._world.store, self._state, self._answers)
        left = {one.id for one in self._found(wanted.wave)}
        if any(name in left and name not in answers for name in wanted.triggers):
            return Told()
        self._waves = None  # what comes up again later is looked at anew
        said = [answers[name] for name in wanted.triggers if name in answers]
        if not said:
            return Told([ReplanDecided(wanted.triggers, "withdrawn")])
        return Told([ReplanDecided(wanted.triggers, "approved", said[0].by)])

    def _in_waves(self) -> Told:
        """Whether all steps of further waves are settled, and what speaks against the plan then.

        Waves that were settled at once are looked at one after the other, as if they had been in turn: which
        of their steps ended first decides nothing.
        """
        if not self._state.plan.premises and not self._handoffs.are_any(self._state):
            return Told()
        if (
            self._graph is not self._state.graph or self._waves is None
        ):  # first, or steps were added
            self._graph, self._plan = self._state.graph, self._state.plan
            self._waves, self._rules = [tuple(wave) for wave in self._graph.waves()], None
            self._wave = self._settled = 0
            self._heard = -1
        first = self._wave
        while self._wave < len(self._waves) and self._is_settled(self._waves[self._wave]):
            self._wave, self._settled = self._wave + 1, 0
        if self._wave > first:
            self._handoffs.refresh()
        for number, wave in enumerate(self._waves[first : self._wave], first + 1):
            if (self._besides() or self._may_matter(wave)) and (found := self._unanswered(number)):
                words = triggers_bytes(found)
                digest = digest_bytes(words)
                event = ReplanWanted(tuple(one.id for one in found), number, digest)
                return Told([event], [(digest, words)])
        return Told()

    def _unanswered(self, waves: int) -> list[Trigger]:
        """What speaks against the plan after so many waves, and nobody answered."""
        self._refresh()
        answers = standing(self._world.store, self._state, self._answers)
        known = answers.keys() | self._state.answered
        return [one for one in self._found(waves) if one.id not in known]

    def _is_settled(self, steps: Sequence[StepId]) -> bool:
        while self._settled < len(steps):
            if self._state.steps[steps[self._settled]].phase not in _SETTLED:
                return False
            self._settled += 1
        return True

    def _may_matter(self, steps: Sequence[StepId]) -> bool:
        """Whether the steps of a wave told anything that could speak against the plan."""
        premises, rules = self._read()
        told = self._handoffs.told_by(self._state, steps)
        return any(may_matter(one.handoff, premises, rules) for one in told)

    def _besides(self) -> bool:
        """Whether the plan says anything of the kind itself, or people did since that was looked at."""
        said = self._handoffs.said
        if self._heard == len(said):
            return False
        self._heard = len(said)
        return may_matter_besides(said, standings(self._plan), *self._read())

    def _read(self) -> tuple[Premises, Rules]:
        if self._rules is None:
            self._rules = rules_of(self._plan)
            self._premises = premises_of(self._plan, self._graph)
        return self._premises, self._rules

    def _found(self, waves: int) -> list[Trigger]:
        return _against(self._state, self._handoffs, self._world.alike, waves)

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
        found = successor(self._world.store, self._state, self._answers, self._world.ready)
        return found is not None and found.is_as_it_was


def _against(state: State, handoffs: Handoffs, alike: Alike, waves: int) -> list[Trigger]:
    """What speaks against the plan of a run, as far as its first waves are looked at."""
    graph, plan = state.graph, state.plan
    steps = [step for wave in [*graph.waves()][:waves] for step in wave]
    handoffs.refresh()
    ledger = ledger_up_to(state, handoffs, alike, steps, handoffs.said)
    return triggers(ledger, premises_of(plan, graph), rules_of(plan))


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


def held(store: Store, project: str, line: str, alike: Alike) -> Held | None:
    """The run of a line that waits for somebody to say what becomes of its plan."""
    state = doubted(store, project, line)
    return None if state is None else held_in(store, state, alike)


def doubted(store: Store, project: str, line: str) -> State | None:
    """The unfinished run of a line, if its plan is doubted; perhaps that was answered since."""
    for row in reversed(runs_of(store, project, line)):
        state = None if has_ended(store, row.run) else read_state(store, row.run)
        if state is not None:
            return None if state.replan is None else state
    return None


def held_in(store: Store, state: State, alike: Alike) -> Held | None:
    """What a run waits for whose plan is doubted; None if that was answered, or holds no more."""
    if state.replan is None or not (left := unanswered(store, state, alike)):
        return None
    found = [one for one in doubts(store.get(state.replan.words)) if one.id in left]
    return Held(state.run, state.replan, found, state.plan)


def unanswered(store: Store, state: State, alike: Alike) -> set[str]:
    """What a run is held for and nobody has answered, as far as the ledger still says so."""
    if state.replan is None:
        return set()
    answers = standing(store, state, answers_on(store, state.project, state.line))
    left = {name for name in state.replan.triggers if name not in answers}
    if not left:
        return left
    handoffs = Handoffs(store, state.project, state.line)
    return left.intersection(one.id for one in _against(state, handoffs, alike, state.replan.wave))


def answers_on(store: Store, project: str, line: str) -> list[ReplanAnswered]:
    """How it was answered on a line, again and again, that something speaks against its plan."""
    return [event for _, event in answers_at(store, project, line)]


def answers_at(store: Store, project: str, line: str) -> list[tuple[int, ReplanAnswered]]:
    """The same, with when that was."""
    told = Line(store, project, line, lambda: 0).news()
    return [(one.at, one.event) for one in told if isinstance(one.event, ReplanAnswered)]


def was_doubted(store: Store, answer: ReplanAnswered) -> list[Doubt]:
    """What an answer was about, as far as its run and those words are still there."""
    for recorded in store.read(f"run:{answer.run}"):
        event = recorded.event
        if isinstance(event, ReplanWanted) and event.triggers == answer.triggers:
            with suppress(IntegrityError):
                return doubts(store.get(event.words))
    return []


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


# --- plans that answer ----------------------------------------------------------------------------


class Footing(NamedTuple):
    """A plan as a run begins with it, and the answers by which it took the place of others."""

    plan: Plan
    base: Digest
    way: Sequence[ReplanAnswered] = ()


def footing(store: Store, state: State, answers: Sequence[ReplanAnswered]) -> Footing:
    """What the plan of a run came from."""
    return Footing(begun_with(store, state), state.base, _way(store, state, answers))


def standing(
    store: Store, state: State, answers: Sequence[ReplanAnswered]
) -> dict[str, ReplanAnswered]:
    """The triggers that do not speak against the plan of a run any more, with the last answer to each."""
    return answered(store, footing(store, state, answers), answers) if answers else {}


def answered(
    store: Store, here: Footing, answers: Sequence[ReplanAnswered]
) -> dict[str, ReplanAnswered]:
    """The same of a plan, whether it runs already or not.

    Another plan is no answer for the one that was doubted: whoever comes back to that is asked again. That a
    prepared plan took its place is none either for a plan that names one: it takes its place again. It is
    one for the plan that came of it, and for those that came of that one.
    """
    led_here = [*here.way, *(one for one in answers if one.plan == here.base)]
    known = {name for one in led_here for name in one.triggers}
    names_one, own, found = bool(rules_of(here.plan).to), "", dict[str, ReplanAnswered]()
    for one in answers:
        if one.choice != GO_ON:
            own = own or substance(here.plan)
            if own == _substance_of(store, one.run):
                continue
        counts = one.choice != PREPARED or not names_one
        found |= {name: one for name in one.triggers if counts or name in known}
    return found


def answers_by(
    store: Store, previous: RunId, plan: Plan, taken_by: str | None = None
) -> list[ReplanAnswered]:
    """What a plan answers that begins after the `previous` run: what spoke against that, and was left open.

    It must be another plan than the one that was doubted, and than those whose place that one took: who
    begins with them again comes to the same. `taken_by` is who let it take the place of the previous one.
    """
    found: list[ReplanAnswered] = []
    digest = Digest("")
    answers: list[ReplanAnswered] | None = None
    for state in _left_open(store, previous):
        if answers is None:
            digest, answers = plan_digest(plan), answers_on(store, state.project, state.line)
        names = cast("ReplanWanted", state.replan).triggers
        if state.run == previous and taken_by is not None:
            if state.base != digest:
                found.append(ReplanAnswered(state.run, names, PREPARED, taken_by, plan=digest))
        elif not any(set(names) <= {*one.triggers} for one in found) and _is_new(
            store, state, answers, plan
        ):
            found.append(ReplanAnswered(state.run, names, PLANNED, plan=digest))
    return found


def _left_open(store: Store, previous: RunId) -> Iterator[State]:
    """The previous run if its plan is doubted, and those before it that were left so and never answered.

    Of those only the latest are looked at, and only after a plan that takes the place of another: with any
    other the line goes on where it was left.
    """
    run: RunId | None = previous
    answered_runs: set[RunId] = set()
    for _ in range(_MOST_LEFT):
        start = None if run is None or is_complete(store, run) else start_of(store, run)
        if start is None:  # nothing spoke against one that came to its end
            return
        was_doubted = any(store.told([f"run:{start.run}"], {ReplanWanted}))
        state = read_state(store, start.run) if was_doubted else None
        is_open = state is not None and state.replan is not None and not state.replanned
        if state is not None and is_open and run not in answered_runs:
            yield state
        if run == previous:
            said = answers_on(store, start.project, start.line)
            answered_runs = {one.run for one in said}
            if not any(one.choice == PREPARED for one in said):
                return
        run = start.previous


def _is_new(store: Store, state: State, answers: Sequence[ReplanAnswered], plan: Plan) -> bool:
    """Whether a plan is neither the one of a run nor one of those whose place that took."""
    way = {_substance_of(store, one.run) for one in _way(store, state, answers)}
    return substance(plan) not in {substance(begun_with(store, state)), *way}


def begun_with(store: Store, state: State) -> Plan:
    """The plan of a run without what was added to it meanwhile."""
    try:
        return kept_plan(store, state.base)
    except IntegrityError:  # removed since
        return state.plan


def _substance_of(store: Store, run: RunId) -> Digest | None:
    """What the plan of a run does and stands on; None if nobody knows any more."""
    begun = _start_of(store, run)
    with suppress(IntegrityError):
        return None if begun is None else substance(kept_plan(store, begun.plan))
    return None


def _start_of(store: Store, run: RunId) -> RunStarted | None:
    begun = next(iter(store.read(f"run:{run}")), None)
    return begun.event if begun is not None and isinstance(begun.event, RunStarted) else None


# --- plans that were prepared ---------------------------------------------------------------------


class Successor(NamedTuple):
    """The file of the plan that takes the place of another without asking, unless somebody changed it."""

    file: str
    is_as_it_was: bool


def successor(
    store: Store,
    state: State,
    answers: Sequence[ReplanAnswered],
    ready: Callable[[Plan], Digest | None],
) -> Successor | None:
    """The plan that takes the place of a held run's plan; None if a person has to say so.

    Written beforehand is what was there when the run began: a step may have written what is there now, and
    no step says what is run next. Who selected steps asked for those alone.
    """
    rules = rules_of(state.plan)
    if state.replan is None or state.ended or not rules.to or state.options.select:
        return None
    way = _way(store, state, answers)
    if not takes_over(rules, state.replan.triggers, way, answers):
        return None
    return Successor(rules.to, ready(state.plan) == state.prepared)


def takes_over(
    rules: Rules,
    names: Sequence[str],
    way: Sequence[ReplanAnswered],
    answers: Sequence[ReplanAnswered],
) -> bool:
    """Whether the plan that is ready takes the place of one that these triggers speak against.

    The plan says so, for so many rounds, or a person let it take its place before.
    """
    if not rules.to:
        return False
    taken = [one for one in answers if one.choice == PREPARED]
    if {name for one in taken if one.by for name in one.triggers}.issuperset(names):
        return True
    before = {name for one in taken for name in one.triggers}
    return (not rules.ask or before.issuperset(names)) and len(way) < rules.rounds


def led_to(store: Store, state: State) -> ReplanAnswered | None:
    """The answer by which the plan of a run took the place of another, if it did."""
    if state.previous is None:
        return None
    answers = answers_on(store, state.project, state.line)
    found = [one for one in answers if (one.run, one.plan) == (state.previous, state.base)]
    return found[-1] if found else None


def last_file(store: Store, line: str) -> str:
    """The plan file of the last run of a line; empty if there is none, or nobody knows."""
    rows = store.runs(line)
    return first_file(store, rows[-1].run) if rows else ""


def first_file(store: Store, run: RunId) -> str:
    """The plan file of a run; if its plan took the place of others, that of the first of them."""
    begun = _start_of(store, run)
    if begun is None:
        return ""
    answers = answers_on(store, begun.project, begun.line)
    led = {(one.run, one.plan) for one in answers}
    while begun.previous is not None and (begun.previous, begun.plan) in led:
        before = _start_of(store, begun.previous)
        if before is None:  # collected since
            return ""
        begun = before
    return begun.file


def _way(store: Store, state: State, answers: Sequence[ReplanAnswered]) -> list[ReplanAnswered]:
    """The answers by which the plan of a run took the place of others, one after the other."""
    by = {(one.run, one.plan): one for one in answers if one.choice == PREPARED}
    found: list[ReplanAnswered] = []
    previous, plan = state.previous, state.base
    while previous is not None and (answer := by.get((previous, plan))) is not None:
        found.append(answer)
        if (begun := _start_of(store, previous)) is None:  # collected since
            break
        previous, plan = begun.previous, begun.plan
    return found
