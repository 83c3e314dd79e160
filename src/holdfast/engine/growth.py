"""The part of the loop that lets a run grow: it hears requests, and takes in what attempts bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from holdfast.core.consent import is_unasked, items_unasked
from holdfast.core.decide import cut_off, free, stop, waive
from holdfast.core.moves import LOST
from holdfast.engine.gathering import opened_by
from holdfast.engine.grow import Extension, Grower, Steps, fitting, words_of
from holdfast.engine.result import Result
from holdfast.engine.scribe import Scribe
from holdfast.errors import PlanError
from holdfast.model.artifact import Artifact, Verdict
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.event import (
    AttemptAccepted,
    AttemptParked,
    AttemptStarted,
    Reason,
    RequestRefused,
)
from holdfast.model.items import base_of, source_of, unopened
from holdfast.model.line import AdditionRequested, SkipRequested
from holdfast.model.plan import Step, StepId, fragment_bytes, fragment_steps
from holdfast.ports import Outcome

ADDING = "add"  # who refuses an attempt whose fragments do not fit


class Growth:
    """Lets one run grow. Whatever it does is queued with the facts that caused it."""

    def __init__(
        self,
        grower: Grower,
        scribe: Scribe,
        grown: Callable[[], None],
        would_run: Callable[[Step, StepId], bool],
    ) -> None:
        self._grower = grower
        self._state = grower.state
        self._world = grower.world
        self._scribe = scribe
        self._grown = grown
        self._would_run = would_run
        self.comes_with = grower.additions.of  # the steps that an artifact adds when it is reused
        self._carried: dict[StepId, Steps] = {}  # what came with content that is only guarded
        self._fitting: dict[StepId, tuple[Digest | None, frozenset[StepId]]] = {}  # by their list
        self.unasked: list[Step] = []  # added steps whose tools have not been asked

    def take_unasked(self) -> list[Step]:
        """The added steps whose tools have to be asked for their versions; nobody is told again."""
        steps, self.unasked = self.unasked, []
        return steps

    # --- what people ask for ---------------------------------------------------------------------------

    def hear(self) -> bool:
        """Do what people asked of this run, or say why not; whether there was anything."""
        heard = False
        for seq, asked in self._grower.requests():
            heard = True
            if isinstance(asked, AdditionRequested):
                self._add(seq, asked)
            else:
                self._skip(seq, asked)
        return heard

    def _add(self, seq: int, asked: AdditionRequested) -> None:
        try:
            steps = self._grower.requested(asked)
        except PlanError as error:
            self._refuse(seq, words_of(error))
            return
        self._grow(self._grower.of_request(steps, seq, asked))

    def _skip(self, seq: int, asked: SkipRequested) -> None:
        """Go on without a step."""
        here = self._state.steps.get(asked.step)
        phase = "no step of this run" if here is None else here.phase
        if here is None or phase in {"done", "reused", "running"}:
            self._refuse(seq, f"'{asked.step}' is {phase}")
            return
        for event in free(self._state, asked.step):
            self._scribe.append(event)
        waived, content = waive(self._state, seq, asked)
        self._scribe.pending.blobs.append((waived.digest, content))
        self._scribe.append(waived)

    def _refuse(self, seq: int, words: str) -> None:
        content = words.encode("utf-8", "replace")
        self._scribe.pending.blobs.append((digest_bytes(content), content))
        self._scribe.append(RequestRefused(seq, digest_bytes(content)))
        self._world.say(f"a request was refused: {words}")

    # --- what attempts bring ---------------------------------------------------------------------------

    def brought(self, started: AttemptStarted, outcome: Outcome) -> tuple[Outcome, Steps]:
        """The steps that an attempt adds if it counts; if they do not fit, it is rejected for that."""
        candidate, step_id = outcome.candidate, started.step
        carried = self._carried.pop(step_id, {}) if self._carried else {}
        fragments = candidate.fragments if candidate is not None else ()
        if outcome.ended not in {"accepted", "asked"} or not (carried or fragments):
            return outcome, {}
        try:
            if fragments:
                return outcome, self._grower.brought(step_id, fragments)
            return outcome, self._grower.again(step_id, carried)
        except PlanError as error:
            words = words_of(error)
            refused = outcome._replace(
                ended="rejected",
                code="guard_rejected",
                verdict=Verdict("reject", ADDING, words),
                feedback=words,
            )
            return refused, {}

    def keep(self, steps: Steps, result: Result) -> None:
        """A candidate is kept for people: so are the steps that it would add."""
        assert isinstance(result.ending, AttemptParked)
        content = fragment_bytes(steps)
        result.blobs.append((digest_bytes(content), content))
        result.ending = replace(result.ending, fragment=digest_bytes(content))

    def kept_with(self, parked: AttemptParked) -> tuple[Steps, str]:
        """The steps that a kept candidate adds, or why they no longer fit."""
        if parked.fragment is None:
            return {}, ""
        try:
            kept = fragment_steps(self._world.store.get(parked.fragment))
            return self._grower.again(parked.step, kept), ""
        except PlanError as error:
            return {}, words_of(error)

    def carry(self, step_id: StepId, artifact: Artifact | None) -> None:
        """Content that is only guarded brings what its own attempt added."""
        more = self._grower.additions.of(artifact) if artifact is not None else {}
        if more:
            self._carried[step_id] = more

    def of_attempt(self, steps: Steps, started: AttemptStarted, accepted: AttemptAccepted) -> None:
        """An attempt was accepted: it adds its steps."""
        self._grow(self._grower.of_attempt(steps, started, accepted))

    # --- what artifacts come with ----------------------------------------------------------------------

    def unfit(self, artifact: Artifact) -> str:
        """Why what an artifact would add if it were reused does not fit the plan; nearly always nothing."""
        more = self.comes_with(artifact)
        if not more:
            return ""
        try:
            fitting(self._state.plan, artifact.step, more, self._world.fragments)
        except PlanError as error:
            return error.problems[0].message
        return ""

    def again(self, steps: Steps, artifact: Artifact) -> None:
        """An artifact is reused: it adds its steps. Those that need what did not get through are skipped."""
        self._grow(self._grower.of_reuse(steps, artifact))
        if (cut := cut_off(self._state, steps)) is not None:
            self._scribe.append(cut)

    # --- items -----------------------------------------------------------------------------------------

    def has_items(self, base: Step, may_add: Callable[[Step, Sequence[Step]], bool]) -> bool:
        """Whether a step that is looked at can gather: its items are those that are listed now.

        If they are not there they are added, and it waits for them; `may_add` asks people first, if they cost
        money and nobody knew how many they are. A list that is none fails it; so does one that is another
        than its items were made from, because the step that lists them was made again. Without a list there
        is nothing to go on with, also where that need is optional; what a person skipped lists nothing.
        """
        source = source_of(base.for_each)
        if source is None or source in self._state.gaps:
            return True
        if self._state.steps[source].phase in LOST:
            self._scribe.append(stop(self._state, base.id, source))
            return False
        try:
            steps = self._opened(base, source)
        except PlanError as error:
            self._scribe.fail(base.id, Reason("command_failed", (words_of(error),)))
            return False
        if base.has_items:
            here = self._state.plan.steps
            if all(here.get(step_id) == step for step_id, step in steps.items()):
                return True
            self._scribe.fail(base.id, _listed_otherwise(source))
            return False
        if len(steps) == 1:
            return True
        asks = items_unasked(self._state, source)
        items = [step for step in steps.values() if step.id != base.id]
        paid = [item for item in items if self._is_paid(item, base.id)] if asks else []
        if not paid or may_add(base, paid):
            self._grow(self._grower.of_items(steps, base.id, agreed=bool(paid)))
        return False

    def is_listed(self, item: Step) -> bool:
        """Whether an item that is looked at is still what its list says; it fails if not.

        That can be only if the step that lists it was made again in this run, after it came.
        """
        base = self._state.plan.steps[base_of(item.id) or item.id]
        source = source_of(base.for_each)
        if source is None or not self._state.steps[source].stood:
            return True
        digest = self._state.steps[source].digest
        if self._fitting.get(base.id, (None,))[0] != digest:
            self._fitting[base.id] = digest, self._still_listed(base, source)
        if item.id in self._fitting[base.id][1]:
            return True
        self._scribe.fail(item.id, _listed_otherwise(source))
        return False

    def _still_listed(self, base: Step, source: StepId) -> frozenset[StepId]:
        """The items of a step that are what is listed now."""
        try:
            steps = self._opened(base, source)
        except PlanError:
            return frozenset()
        here = self._state.plan.steps
        return frozenset(name for name, step in steps.items() if here.get(name) == step)

    def _opened(self, base: Step, source: StepId) -> Steps:
        """The items of a step, and last itself, as they are listed now; PlanError if that is no list."""
        listing = self._state.steps[source]
        assert listing.digest is not None  # what is looked at has its needs
        return opened_by(
            unopened(base),
            self._state.plan.steps,
            self._scribe.content,
            listing.digest,
            listing.form,
            self._world.walls,
        )

    def _is_paid(self, item: Step, base: StepId) -> bool:
        """Whether an item costs money: one of which an artifact stands does not."""
        return self._world.paid(item) and self._would_run(item, base)

    def may_know(self, step: Step) -> bool:
        """Whether an added step may have its secrets; it fails if not. Those of the plan were asked for."""
        if step.id not in self._state.added:
            return True
        for name in step.secrets:
            if name not in self._world.secrets:
                words = f"it asks for the secret '{name}', which nobody allowed"
                self._scribe.fail(step.id, Reason("command_failed", (words,)))
                return False
        return True

    def costs_unasked(self, step: Step) -> bool:
        """Whether a step was added that costs money, and nobody agreed to that."""
        return is_unasked(self._state, step.id) and self._world.paid(step)

    def _grow(self, more: Extension) -> None:
        """Go on with a plan that has further steps."""
        pending, at = self._scribe.pending, self._world.clock()
        pending.blobs += more.blobs
        pending.said += [(at, event) for event in more.said]
        if more.event is None:
            return
        self._scribe.append(more.event)
        self._grown()
        steps = self._state.plan.steps
        self.unasked += [steps[s] for s in more.event.added if steps[s].tool_versions]


def _listed_otherwise(source: StepId) -> Reason:
    return Reason("items_changed", (source,))
