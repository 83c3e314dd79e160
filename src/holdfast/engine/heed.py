"""What people decided, carried out: steps that wait go on, are refused, or are taken as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from holdfast.core.approvals import Approval
from holdfast.core.decide import reset
from holdfast.core.effects import RECEIPT_GONE, made_none
from holdfast.core.moves import IN_CONFLICT
from holdfast.core.state import State, StepState
from holdfast.engine.conflicts import Conflicts
from holdfast.engine.decisions import check_there
from holdfast.engine.finish import Finisher
from holdfast.engine.gate import Answer, Gatekeeper
from holdfast.engine.grow import Steps
from holdfast.engine.growth import Growth
from holdfast.engine.handoffs import with_approvals
from holdfast.engine.hold import Hold
from holdfast.engine.look import Look
from holdfast.engine.questions import HELD
from holdfast.engine.result import Result
from holdfast.engine.scribe import Scribe
from holdfast.engine.settling import Settler
from holdfast.engine.world import World
from holdfast.errors import EditError, IntegrityError, PurgedError
from holdfast.model.event import (
    AttemptParked,
    AttemptStarted,
    Reason,
    StepHeld,
    StepsReleased,
)
from holdfast.model.plan import RunId, Step, StepId
from holdfast.ports import Outcome

Settle = Callable[[Result, Steps, AttemptStarted], None]
FREE = Answer(True, ())


class People:
    """Stands between the people and the steps of one run; `settle` takes in how an attempt ended."""

    def __init__(
        self,
        world: World,
        state: State,
        hold: Hold,
        scribe: Scribe,
        finisher: Finisher,
        growth: Growth,
        settle: Settle,
        beside: Callable[[StepId], Mapping[RunId, int]],
    ) -> None:
        self._world = world
        self._state = state
        self._hold = hold
        self._scribe = scribe
        self._finisher = finisher
        self._growth = growth
        self._settle = settle
        self._beside = beside  # the runs that are held with this one, and since when
        self._gates = Gatekeeper(world, state)
        self.conflicts: Conflicts = finisher.conflicts
        self._settler = Settler(state, finisher)
        self._said_waiting: set[StepId] = set()
        self._inherited: set[StepId] = set()
        self._kept: list[StepId] = []  # those with a candidate that an earlier engine kept
        if state.counts["waiting"]:
            steps = state.steps.items()  # who is held for another run looks again at that one
            found = (s for s, here in steps if _asked_before(here) or made_none(state, s))
            self._inherited = set(found)
            self._kept = [s for s, here in steps if here.parked is not None]

    # --- asking -----------------------------------------------------------------------------------

    def may_begin(self, step: Step, look: Look, *, pays: bool = False) -> Answer:
        """Whether people let this attempt begin; what only guards something that exists needs nobody.

        With `pays` it costs money that nobody agreed to.
        """
        if look.choice.action == "reguard" or look.choice.reason.code == "output_modified":
            return FREE
        attempt = self._state.steps[step.id].attempts + 1
        questions = self._gates.before(step, look.probed, pays=pays)
        if self._gates.repeats(step.id, attempt):  # whoever let it be done again let this be done
            questions = [one for one in questions if not self._gates.was_let(one)]
        answer = self._gates.ask(step, questions, attempt)
        if not answer.granted:
            self._scribe.append(StepHeld(step.id, answer.reason))
            self._hold.has_news = True  # a policy may have said no
        return answer

    def may_add(self, base: Step, items: Sequence[Step]) -> bool:
        """Whether people let the items of a step be added, which cost money that nobody agreed to."""
        answer = self._gates.ask(base, self._gates.of_items(base, items), 0)
        if not answer.granted:
            self._scribe.append(StepHeld(base.id, answer.reason))
            self._hold.has_news = True  # as above
        return answer.granted

    def asked(self, started: AttemptStarted, outcome: Outcome) -> tuple[Outcome, tuple[str, ...]]:
        """Guards leave a candidate to people: accepted if they said yes to the same content before."""
        step = self._state.plan.steps[started.step]
        assert outcome.candidate is not None  # there is nothing to ask about otherwise
        digest, form = self._finisher.contents.stored(step, outcome.candidate)
        questions = self._gates.about(step, outcome.asks, digest, form)
        answer = self._gates.ask(step, questions, started.attempt)
        if answer.granted:
            accepted = outcome._replace(ended="accepted", verified=True)
            return self.told_with(accepted, answer.ids), ()
        self._hold.has_news = True  # as above
        return outcome, answer.ids

    def told_with(self, outcome: Outcome, approvals: Sequence[str]) -> Outcome:
        """An outcome that tells, too, what those handed over who let its attempt run or stand."""
        made = outcome.candidate
        if not approvals or made is None or outcome.ended not in {"accepted", "asked"}:
            return outcome
        found = [
            self._gates.book.by_id[name] for name in approvals if name in self._gates.book.by_id
        ]
        told = with_approvals(made.handoff, found, self._world.store.get)
        return outcome._replace(candidate=replace(made, handoff=told))

    def say_waiting(self) -> None:
        """Nothing goes on but the waiting: say once for which steps."""
        state = self._state
        waiting = {s for s, here in state.steps.items() if here.phase == "waiting"}
        waiting |= {StepId(name) for name in state.replan.triggers} if state.replan else set()
        is_open = state.running or (state.ready and state.replan is None)
        if is_open or waiting == self._said_waiting:
            return
        self._said_waiting = waiting
        names = sorted(waiting, key=lambda name: state.graph.rank.get(name, -1))
        self._world.say(f"waiting for a person: {', '.join(names)}; Ctrl-C stops, resume goes on")

    # --- decisions --------------------------------------------------------------------------------

    def heed(self) -> None:
        """Do what people decided about the steps that wait for them."""
        self._hold.has_news = False
        while self._kept:
            self._look_for(self._kept.pop(0))
        if self._state.conflicts:
            self._settle_conflicts()
        self._gates.refresh()
        for step_id in [s for s, here in self._state.steps.items() if here.phase == "waiting"]:
            here = self._state.steps[step_id]
            if here.phase == "waiting":  # not moved by what was decided about another one
                self._heed_step(step_id, here)
        self._inherited.clear()

    def _heed_step(self, step_id: StepId, here: StepState) -> None:
        is_held = here.reason is not None and here.reason.code in HELD
        began = here.effect_at if here.effect is not None else 0
        since = {**self._beside(step_id), self._state.run: began or here.held_at} if is_held else {}
        if is_held and self._gates.was_given(step_id, since):
            self._scribe.record(reset(self._state, [step_id], "answered"))
            return
        asked = self._gates.decided_for(step_id, here)
        if asked is None:
            if (
                step_id in self._inherited and here.parked is None
            ):  # it may ask about another thing now
                self._scribe.append(StepsReleased((step_id,), "resumed"))
            return
        no = self._gates.rejection(asked)
        if here.parked is not None and not is_held:
            self._decide(step_id, no)
        elif no is not None:
            assert no.decision is not None  # it was rejected; what the person said is kept
            who = no.decision.by if no.decision.rule is None else f"a rule of {no.decision.by}"
            reason = Reason("rejected_by_person", (who,))
            self._scribe.fail(step_id, reason, no.decision.because)
        elif is_held:
            if self._gates.use(asked[0], step_id, here.attempts + 1):
                self._scribe.record(reset(self._state, [step_id], "retried", [step_id]))
        else:
            code = "answered" if self._state.plan.steps[step_id].uses == "human" else "approved"
            self._scribe.append(StepsReleased((step_id,), code))

    def _decide(self, step_id: StepId, no: Approval | None) -> None:
        """A candidate was kept for people, and they decided."""
        step, here = self._state.plan.steps[step_id], self._state.steps[step_id]
        started, parked = here.running, here.parked
        assert started is not None  # it made the candidate
        assert parked is not None
        said: tuple[Approval, ...] = ()
        if no is None:
            questions = self._gates.about(step, parked.guards, parked.digest, parked.form)
            answer = self._gates.ask(step, questions, parked.attempt)
            if not answer.granted:  # a yes was taken back, or ended, before it was heard
                self._scribe.append(StepHeld(step_id, answer.reason))
                return
            said = answer.approvals
        more, unfit = self._growth.kept_with(parked) if no is None else ({}, "")
        result = self._finisher.decided(step_id, no, self._world.clock(), unfit, said)
        self._end(result, more, started)

    def _look_for(self, step_id: StepId) -> None:
        """Go on without a kept candidate that was purged since; under an engine nothing is.

        Its step fails; what it did outside is done, so that it is held for a person instead.
        """
        here = self._state.steps[step_id]
        is_held = here.reason is not None and here.reason.code in HELD
        if here.phase != "waiting" or here.parked is None or is_held:
            return
        try:
            check_there(self._world.store, here.parked)
        except PurgedError as error:
            if self._state.plan.steps[step_id].done_once:
                self._scribe.append(StepHeld(step_id, Reason(RECEIPT_GONE)))
            else:
                self._scribe.fail(step_id, Reason("output_missing", (error.message,)))
        except IntegrityError as error:
            self._world.remind(f"{step_id}: {error.message}; holdfast repair, then resume")

    def _end(self, result: Result, more: Steps, started: AttemptStarted) -> None:
        """A kept candidate is accepted or refused, or goes on being kept because of a new conflict."""
        if isinstance(result.ending, AttemptParked):
            self._scribe.take(result)
            self._scribe.record(result.after)
        else:
            self._settle(result, more, started)

    # --- conflicts --------------------------------------------------------------------------------

    def is_in_conflict(self, step_id: StepId) -> bool:
        """Whether a step has to wait because agents above it disagree."""
        self._scribe.tell(self.conflicts.among_needs(step_id))
        names = self.conflicts.blocks(step_id)
        if names:
            self._scribe.append(StepHeld(step_id, Reason(IN_CONFLICT, names)))
        return bool(names)

    def _settle_conflicts(self) -> None:
        """Do what people decided about conflicts. Files wait until no other change of them is under way."""
        for told in self._settler.agreed():
            self._scribe.tell(told)
        if self._scribe.places_files:
            self._hold.has_news = True
            return
        for step_id, told in self._settler.decided():
            self._scribe.tell(told)
            try:
                self._take_over(step_id)
            except EditError as error:
                self._scribe.fail(step_id, Reason("command_failed", (error.message,)))

    def _take_over(self, step_id: StepId) -> None:
        """The changes of a kept candidate may be taken over; refused if its steps no longer fit."""
        here, now = self._state.steps[step_id], self._world.clock()
        started, parked = here.running, here.parked
        assert started is not None  # it made the candidate
        assert parked is not None
        more, unfit = self._growth.kept_with(parked)
        if unfit:
            self._end(self._finisher.decided(step_id, None, now, unfit), {}, started)
        else:
            self._end(self._settler.taken(step_id, now), more, started)


def under(started: AttemptStarted, step: Step, answer: Answer) -> AttemptStarted:
    """An attempt under approvals; what a person gave is only guarded."""
    started = replace(started, approvals=answer.ids)
    given = [found.decision for found in answer.approvals if found.request.gate == "answer"]
    if step.uses != "human" or not given or given[0] is None or given[0].content is None:
        return started
    return replace(
        started,
        reguard=given[0].content,
        form=given[0].form,
        source="human",
        before=None,
        edited=(),
        handoff=given[0].handoff,
    )


def _asked_before(here: StepState) -> bool:
    """Whether a step waits for an answer before an attempt, as an earlier engine left it."""
    if here.phase != "waiting" or here.parked is not None or here.reason is None:
        return False
    return here.reason.code not in HELD
