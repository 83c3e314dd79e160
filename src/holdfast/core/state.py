"""The state of a run: the one mutable noun. Only `fold` changes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Literal, NamedTuple

from holdfast.core.room import Demands, Thing, demands_of
from holdfast.core.waves import Graph, graph_of
from holdfast.errors import BugError
from holdfast.model.artifact import Form
from holdfast.model.digest import Digest
from holdfast.model.event import (
    Agreed,
    AttemptParked,
    AttemptStarted,
    CallStarted,
    ConflictFound,
    EndStatus,
    Options,
    Reason,
    ReplanWanted,
    RestStatus,
    Used,
)
from holdfast.model.fixed import varying
from holdfast.model.plan import Plan, RunId, StepId

Phase = Literal["pending", "running", "waiting", "done", "reused", "failed", "skipped"]
PHASES: tuple[Phase, ...] = ("pending", "running", "waiting", "done", "reused", "failed", "skipped")
RunStatus = Literal["running"] | RestStatus | EndStatus
COMPLETE = frozenset({"done", "reused"})


class Fed(NamedTuple):
    """What an attempt left for the next one: its candidate, who refused it, the words as a blob.

    Words that say the same have the same `alike`; `code` says why nothing was made, if nothing was.
    """

    digest: Digest | None
    guard: str
    feedback: Digest | None
    alike: Digest | None = None
    code: str = ""


@varying
class StepState:
    """Where one step stands in this run. Budgets count since the last reset, `attempts` for ever."""

    phase: Phase = "pending"
    attempts: int = 0
    rejections: int = 0
    losses: int = 0
    reason: Reason | None = None
    config_ref: Digest | None = None
    digest: Digest | None = None
    form: Form = "bytes"
    verified: bool = False
    running: AttemptStarted | None = None
    parked: AttemptParked | None = None  # a candidate that people decide about; `running` made it
    why: Reason | None = None  # the reason that stands again when it waits no more
    settled: tuple[ConflictFound, ...] = ()  # conflicts of what is parked that were decided
    effect: Digest | None = None  # the key of an effect that was started and not confirmed
    effect_at: int = 0  # the number of the event that started the last effect
    beside: tuple[str, ...] = ()  # attempts of other runs whose effect was open then
    answered: bool = False  # a person gave its result when it was held, and that stands
    effect_failed: bool = False  # its command ended by itself, without a result
    undecided: bool = False  # what its effect made waited for people, who went on without it
    held_at: int = 0  # the number of the event that holds it for a person
    reopened: int = 0  # how often it sent a step above it back
    sent_back: int = 0  # how often a step below sent it back
    asked: bool = False  # a person named it to be tried again, and no attempt began since
    remade: bool = False  # it was sent back and has to be made, whatever stands
    stood: bool = False  # it had an artifact in this run before
    last: Reason | None = None  # how the last attempt ended, if it did not count
    fed: tuple[Fed, ...] = ()
    said: Digest | None = None  # what the last attempt that did not count was ended with, as a blob
    log: Digest | None = None
    handoff: Digest | None = None  # what the accepted attempt of this run tells
    started_at: int = 0
    duration_ms: int = 0  # of the attempt that was accepted
    spent_ms: int = 0  # on all attempts whose end was seen
    calls: dict[int, CallStarted] | None = None  # of the running attempt, without an answer so far
    paid: tuple[Paid, ...] = ()  # answers of attempts that were lost before they acted on them
    heard: tuple[Paid, ...] = ()  # answers of the running attempt
    spent: Spent | None = None  # None until a model was asked
    tools: Tools | None = None  # None until a tool was used for a model
    trying: int = 0  # what the running attempt has spent


class Paid(NamedTuple):
    """An answer that is stored and was not acted on yet."""

    request: Digest
    answer: Digest


@varying
class Tools:
    """Uses of tools that no verdict followed yet: answered, under way, begun by an attempt that was lost."""

    said: dict[Digest, Used] = field(default_factory=dict)
    doing: set[Digest] = field(default_factory=set)
    left: frozenset[Digest] = frozenset()


@varying
class Spent:
    """What calls cost: micro-dollars and tokens, in all and of that in vain.

    `rejected` went into attempts that did not count, `interrupted` into calls that were cut off; of those
    only the most is known. `unpriced` counts the calls whose price nobody knows.
    """

    cost: int = 0
    tokens: int = 0
    calls: int = 0
    unpriced: int = 0
    rejected: int = 0
    interrupted: int = 0
    cut: int = 0  # calls that were interrupted


class Origin(NamedTuple):
    """Where a step that the run did not begin with comes from: another step, or a person's request."""

    step: StepId
    request: int
    at: int
    agreed: bool = False  # somebody said yes to what it costs


class Gap(NamedTuple):
    """A step that a person lets the run go on without: who, why (as a blob), when."""

    by: str
    because: Digest
    at: int


Plans = Callable[[Digest], Plan]


def no_plans(digest: Digest) -> Plan:
    """Stands where nobody said how later plans of a run are found."""
    raise BugError(f"the plan '{digest[:12]}' of a run that grew cannot be found here")


@varying
class WaveFailures:
    """A wave in which steps failed: where it lies in the order of the graph, and how many ran and failed.

    Up to `settled` none of its steps is open, and none was made.
    """

    first: int
    end: int
    failed: int = 0
    settled: int = 0


@varying
class State:
    """A run, folded.

    `ready_log` names steps in the order they became ready, possibly more than once; `ready` holds
    those that are ready now: pending, with every need complete. A run may grow: events only name the
    plans that it goes on with, and `plans` finds them. A plan it gives must have at least the steps
    that the event says were added; steps never change in a run.
    """

    plan: Plan
    graph: Graph
    run: RunId = RunId("")
    line: str = ""
    project: str = ""
    plan_digest: Digest = Digest("")
    w_ref: Digest = Digest("")
    base: Digest = Digest("")  # the plan that it began with
    base_ref: Digest = Digest("")  # and its structure: what people approve is bound to that
    file: str = ""  # of that plan, as seen from the project; empty if nobody knows
    previous: RunId | None = None
    forked: RunId | None = None
    forked_at: StepId = StepId("")
    options: Options = Options()
    status: RunStatus | None = None
    rest: Reason | None = None
    seq: int = 0
    started_at: int = 0
    since: int = 0  # when it was last started or resumed; limits count from here
    ended_at: int = 0
    last_at: int = 0  # when an engine last had something to tell
    worked: int = 0  # milliseconds of starts that came to an end or a rest, or were cut off
    attempts: int = 0  # since then
    steps: dict[StepId, StepState] = field(default_factory=dict)
    missing: dict[StepId, int] = field(default_factory=dict)
    selected: frozenset[StepId] | None = None  # the steps that may run; None is all of them
    unselected: int = 0  # steps left out because of that
    told: bool = False  # whether an attempt handed something over
    alone: frozenset[StepId] = frozenset()  # steps that run beside no other
    ready: set[StepId] = field(default_factory=set)
    ready_log: list[StepId] = field(default_factory=list)
    running: dict[StepId, AttemptStarted] = field(default_factory=dict)
    counts: dict[Phase, int] = field(default_factory=lambda: dict.fromkeys(PHASES, 0))
    escalation: Reason | None = None  # why nothing more may start until a person looked
    failures: dict[int, WaveFailures] = field(default_factory=dict)  # waves in which steps failed
    conflicts: dict[str, ConflictFound] = field(default_factory=dict)  # those nobody settled yet
    replan: ReplanWanted | None = None  # what speaks against the plan, until that is decided
    prepared: Digest | None = None  # what was to take its place when the run began
    replanned: Digest | None = None  # the plan that took the place of this one
    answered: set[str] = field(default_factory=set)  # triggers that were, in this run
    reopening: dict[StepId, StepId] = field(default_factory=dict)  # who sends whom back, and waits
    frozen: frozenset[StepId] = frozenset()  # what stands on those; nothing of it starts meanwhile
    demands: Mapping[StepId, Demands] = field(default_factory=dict)  # of steps that ask for any
    taken: dict[Thing, int] = field(default_factory=dict)  # by attempts that are running
    added: dict[StepId, Origin] = field(default_factory=dict)  # steps it did not begin with
    gaps: dict[StepId, Gap] = field(default_factory=dict)  # steps it goes on without
    spent: Spent = field(default_factory=Spent)
    reserved: int = 0  # micro-dollars of calls under way
    reserved_tokens: int = 0
    max_cost: int | None = None  # what a person lets it spend in all
    agreed: Agreed | None = None  # to pay for; None if a version wrote it that did not say
    short: Reason | None = None  # the limit that a call would have gone over
    wanted: int = 0  # what the largest of such calls may use: micro-dollars, or tokens
    heard: int = 0  # the last request of the line's journal that was answered
    refused: dict[int, Digest] = field(
        default_factory=dict
    )  # requests it did not do; why, as a blob
    plans: Plans = field(default=no_plans, compare=False, repr=False)

    @property
    def complete(self) -> bool:
        """Whether every step that was asked for has its artifact."""
        done = self.counts["done"] + self.counts["reused"]
        return done + self.unselected == len(self.steps)

    def may_run(self, step_id: StepId) -> bool:
        """Whether the person selected this step, or named none."""
        return self.selected is None or step_id in self.selected

    @property
    def ended(self) -> bool:
        """Whether this run can never change again."""
        return self.status in {"completed", "superseded"}


def empty_state(plan: Plan, graph: Graph | None = None, plans: Plans = no_plans) -> State:
    """A run before its first event."""
    graph = graph or graph_of(plan)
    state = State(plan=plan, graph=graph, plans=plans)
    state.steps = {step_id: StepState() for step_id in graph.order}
    state.missing = {step_id: len(plan.steps[step_id].needs) for step_id in graph.order}
    state.counts["pending"] = len(graph.order)
    state.alone = frozenset(s for s, step in plan.steps.items() if step.runs_alone)
    state.demands = demands_of(plan)
    return state
