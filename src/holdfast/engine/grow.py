"""Lets a run grow: what its steps or people want to add is checked, and becomes facts.

Steps come in four ways: an accepted attempt left fragments, an artifact is reused whose attempt did, a
person asked for them in the line's journal, or a step is complete that lists the items of another. All end
in one event of the run, with the snapshot of the plan that it goes on with; so nothing is ever half added.
The first three are in the transaction of what caused them. Items follow from the state: whoever looks at a
step whose list is complete and whose items are not there adds them, however the engine before it ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from holdfast.core.growth import after, is_same, lost_need, with_steps
from holdfast.core.refs import structure
from holdfast.core.state import State
from holdfast.engine.additions import Additions
from holdfast.engine.journals import read_plan
from holdfast.engine.lines import Line, line_journal
from holdfast.engine.outputs import SMALL
from holdfast.engine.whole import assure_plan
from holdfast.engine.world import World
from holdfast.errors import PlanError, Problem
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.event import AttemptAccepted, AttemptStarted, PlanExtended, Recorded
from holdfast.model.items import source_of, unopened
from holdfast.model.line import (
    AdditionRequested,
    LineEvent,
    PlanVersioned,
    SkipRequested,
    StepsAdded,
)
from holdfast.model.plan import Plan, Step, StepId, fragment_steps, plan_bytes
from holdfast.ports import File, Fragments, Store

Steps = Mapping[StepId, Step]
Request = AdditionRequested | SkipRequested
NOTHING: Steps = MappingProxyType({})
_SUFFIXES = (".yaml", ".yml", ".json")


class Extension(NamedTuple):
    """What makes a plan grow: the run's event if there is anything new, what it names, the line's events."""

    event: PlanExtended | None
    blobs: Sequence[tuple[Digest, bytes]]
    said: Sequence[LineEvent]


class Grower:
    """The growth of one run."""

    def __init__(self, world: World, state: State, heard: int) -> None:
        self.world = world
        self.state = state
        self._line = Line(world.store, state.project, state.line, world.clock, heard)
        self._plans: dict[Digest, Plan] = {}
        self.additions = Additions(world.store, state.project, state.line)
        state.plans = self._plan

    def _plan(self, digest: Digest) -> Plan:
        """A plan of this run: what was just made is not stored yet."""
        return self._plans.get(digest) or read_plan(self.world.store, digest)

    # --- what is asked for -----------------------------------------------------------------------------

    def requests(self) -> Iterator[tuple[int, Request]]:
        """What people asked of this run and nobody answered yet, in order."""
        return _asked(self._line.news(), self.state)

    def requested(self, event: AdditionRequested) -> Steps:
        """The steps that a person wants to add; PlanError if they do not fit."""
        steps = fragment_steps(self.world.store.get(event.fragment))
        return self.checked(steps)

    def brought(self, step_id: StepId, fragments: Sequence[File]) -> dict[StepId, Step]:
        """The steps that an attempt wants to add, each after its own step; PlanError if they do not fit."""
        steps: dict[StepId, Step] = {}
        for file in fragments:
            steps |= self._read(step_id, file, steps)
        return self.again(step_id, steps)

    def _read(self, step_id: StepId, file: File, before: Steps) -> Steps:
        if not file.path.endswith(_SUFFIXES):
            raise _refused(
                f"'{file.path}' in HOLDFAST_ADD is no fragment",
                "let its name end in .yaml or .json",
            )
        fresh = {name: step for name, step in before.items() if name not in self.state.steps}
        plan = with_steps(self.state.plan, fresh)
        assert self.world.fragments is not None  # checked before anything is read
        found = after(self.world.fragments.read(file.content, file.path, plan), step_id)
        for name in found.keys() & before.keys():
            raise _refused(f"'{name}' stands in two fragments", "keep one of them")
        return found

    def again(self, step_id: StepId, steps: Steps) -> dict[StepId, Step]:
        """The steps, if all that are new can be added now; PlanError if not."""
        fresh = fitting(self.state.plan, step_id, steps, self.world.fragments)
        self._check_run(fresh)
        return dict(steps)

    def checked(self, steps: Steps) -> Steps:
        """These steps, all of them new, as their contracts want them; PlanError if they do not fit."""
        if self.world.fragments is None:
            raise _refused("steps cannot be added here")
        self.world.fragments.check(self.state.plan, steps)
        held, _ = self.world.fragments.held(self.state.plan, steps)
        self._check_run(held, "holdfast stop, add it again, then ")
        return held

    def _check_run(self, steps: Steps, first: str = "") -> None:
        """See that the run lets these steps start one day, and may show them what they ask for.

        `first` is what a person does before he can allow it.
        """
        lost = lost_need(self.state, steps)
        if lost is not None:
            phase = self.state.steps[lost[1]].phase
            what = "failed" if phase == "failed" else "was skipped"
            raise _refused(
                f"'{lost[0]}' needs '{lost[1]}', which {what} in this run",
                f"holdfast retry {lost[1]}",
            )
        for name, step in steps.items():
            for secret in step.secrets:
                if secret not in self.world.secrets:
                    raise _refused(
                        f"'{name}' asks for the secret '{secret}', which nobody allowed",
                        f"{first}holdfast resume --secret {secret}",
                    )

    # --- what follows ----------------------------------------------------------------------------------

    def of_attempt(
        self, steps: Steps, started: AttemptStarted, accepted: AttemptAccepted
    ) -> Extension:
        """An accepted attempt adds steps; that is remembered with its artifact."""
        event, blobs = self._extend(steps, started.step)
        said: list[LineEvent] = []
        if event is not None:
            said.append(self._version(event, "added_by_step", started.step))
        plan = self.state.plan_digest if event is None else event.plan
        added = tuple(sorted(steps))
        said.append(
            StepsAdded(
                run=self.state.run,
                step=started.step,
                attempt=started.attempt,
                input_ref=started.input_ref,
                digest=accepted.digest,
                plan=plan,
                added=added,
            )
        )
        return Extension(event, blobs, said)

    def of_reuse(self, steps: Steps, artifact: Artifact) -> Extension:
        """An artifact is reused whose attempt added steps: they are added again, which is nothing new."""
        event, blobs = self._extend(steps, artifact.step)
        return Extension(event, blobs, ())

    def of_items(self, steps: Steps, base: StepId, *, agreed: bool) -> Extension:
        """The items of a step are known: they are added, and it gathers them."""
        source = source_of(steps[base].for_each)
        assert source is not None  # the others are opened when the plan is read
        items = tuple(sorted(step_id for step_id in steps if step_id != base))
        event, blobs = self._extended(with_steps(self.state.plan, steps), items, source)
        return Extension(replace(event, agreed=agreed), blobs, ())

    def of_request(self, steps: Steps, seq: int, asked: AdditionRequested) -> Extension:
        """A person adds steps."""
        event, blobs = self._extend(steps, StepId(""), seq)
        assert event is not None  # a request with nothing new is refused
        said = self._version(event, "added_by_person", by=asked.by, because=asked.because)
        return Extension(event, blobs, (said,))

    def _extend(
        self, steps: Steps, origin: StepId, request: int = 0
    ) -> tuple[PlanExtended | None, list[tuple[Digest, bytes]]]:
        fresh = {name: step for name, step in steps.items() if name not in self.state.steps}
        if not fresh:
            return None, []
        assert self.world.fragments is not None  # checked before anything is added
        plan = with_steps(self.state.plan, *self.world.fragments.held(self.state.plan, fresh))
        return self._extended(plan, tuple(sorted(fresh)), origin, request)

    def _extended(
        self, plan: Plan, added: tuple[StepId, ...], origin: StepId, request: int = 0
    ) -> tuple[PlanExtended, list[tuple[Digest, bytes]]]:
        self._check_known(plan, added)
        blobs: list[tuple[Digest, bytes]] = []
        digest, ref = (self._put(blobs, part) for part in (plan_bytes(plan), structure(plan)))
        self._plans = {digest: plan}
        parent = self.state.plan_digest
        return PlanExtended(digest, ref, parent, added, origin, request), blobs

    def _check_known(self, plan: Plan, added: tuple[StepId, ...]) -> None:
        """IntegrityError if steps come whose effects may be forgotten; with others nobody looked before."""
        if any(plan.steps[name].done_once for name in added) and not any(
            step.done_once for step in self.state.plan.steps.values()
        ):
            assure_plan(self.world.store, plan, self.state.line)

    def _put(self, blobs: list[tuple[Digest, bytes]], content: bytes) -> Digest:
        if len(content) > SMALL:
            return self.world.store.put(content)
        blobs.append((digest_bytes(content), content))
        return blobs[-1][0]

    def _version(
        self,
        event: PlanExtended,
        reason: str,
        step: StepId = StepId(""),  # noqa: B008 - an id is text
        by: str = "",
        because: Digest | None = None,
    ) -> PlanVersioned:
        run = self.state.run
        return PlanVersioned(event.plan, event.w_ref, event.parent, reason, run, step, by, because)


def fitting(
    plan: Plan, origin: StepId, steps: Steps, fragments: Fragments | None
) -> dict[StepId, Step]:
    """Those of the steps that `origin` adds which the plan does not have, as their contracts want them.

    PlanError if they do not fit. One that is there already must be the same; it may have been kept before
    it was held to a contract.
    """
    others = {name: step for name, step in steps.items() if not _stands(plan, step, origin)}
    if others and fragments is not None:
        others, _ = fragments.held(plan, others)
    fresh = {name: step for name, step in others.items() if name not in plan.steps}
    for name, step in others.items():
        if name not in fresh and not _stands(plan, step, origin):
            raise _refused(f"the plan has another step '{name}' already", "use another id")
    if fresh and fragments is None:
        raise _refused("steps cannot be added here")
    if fresh and fragments is not None:
        fragments.check(plan, fresh)
    for name, step in fresh.items():
        if step.effects == "external" and step.approve != "always":
            raise _refused(
                f"'{name}' has external effects, and nobody was shown it",
                "say 'approve: always' for it",
            )
    return fresh


def _stands(plan: Plan, step: Step, origin: StepId) -> bool:
    """Whether the plan has the very step; which items were found for it meanwhile is no difference."""
    known = plan.steps.get(step.id)
    return known is not None and is_same(unopened(known), unopened(step), origin)


def words_of(error: PlanError) -> str:
    """What keeps steps from being added, in one text: the first problem, and how many more there are."""
    first = error.problems[0]
    place = f"{first.file}:{first.line}:{first.column}: " if first.line else ""
    hint = f" (hint: {first.hint})" if first.hint else ""
    rest = len(error.problems) - 1
    return f"{place}{first.message}{hint}" + (f"; and {rest} more" if rest else "")


def unanswered(store: Store, state: State) -> list[tuple[int, Request]]:
    """What people asked of a run that it did not answer yet, with the numbers in the line's journal."""
    journal = line_journal(state.project, state.line)
    return list(_asked(store.read(journal, state.heard), state))


def _asked(events: Iterable[Recorded], state: State) -> Iterator[tuple[int, Request]]:
    for recorded in events:
        event = recorded.event
        if not isinstance(event, AdditionRequested | SkipRequested):
            continue
        if event.run == state.run and recorded.seq > state.heard:
            yield recorded.seq, event


def _refused(message: str, hint: str = "") -> PlanError:
    return PlanError((Problem(message, hint=hint, code="P059"),))
