"""What people said, as somebody beside the engine writes it up: nothing guarded happens without a yes.

The yes is for the exact content: what the attempt is really given is compared with the document that the
person was asked about. Effects outside are counted where they happen: what may have happened and was never
confirmed is not done again, unless a person let this very attempt do it. Whoever says yes to a repetition,
or has a step tried again by name, means what happened until then.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptRejected,
    AttemptStarted,
    EffectConfirmed,
    Event,
    RunStarted,
    StepsReset,
)
from holdfast.model.line import (
    ApprovalDecided,
    ApprovalRequested,
    ApprovalRevoked,
    ApprovalUsed,
    StepAmended,
)
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Job, Store
from tests.simulation.machine import Machine

Use = tuple[RunId, StepId, int]
EYE = "eye"  # the guard that is a person
SLACK = 1_000  # ms between looking at the clock and writing it down


@dataclass
class Asked:
    """One question: what was said to it, and what was done under that."""

    request: ApprovalRequested
    decision: ApprovalDecided | None = None
    revoked: bool = False
    about: frozenset[Use] = frozenset()  # what may have happened when it was asked
    uses: set[Use] = field(default_factory=set)

    @property
    def is_yes(self) -> bool:
        return self.decision is not None and self.decision.yes


@dataclass
class Consent:
    """All questions of a line, and every effect that began outside."""

    machine: Machine
    watched: frozenset[StepId] = frozenset()  # steps whose result a person has to accept
    asked: dict[str, Asked] = field(default_factory=dict)
    outside: dict[StepId, list[Use]] = field(default_factory=dict)  # the sink, by step
    settled: set[Use] = field(default_factory=set)
    typed: dict[str, frozenset[StepId]] = field(
        default_factory=dict
    )  # by engine: to be tried again
    forced: set[Use] = field(default_factory=set)  # what a person wants done, whatever happened
    wanted: dict[tuple[RunId, StepId], set[Use]] = field(
        default_factory=dict
    )  # by the next attempt
    covered: dict[Use, set[Use]] = field(default_factory=dict)  # what each may do again

    def spare(self) -> set[StepId]:
        """Steps with an answer of a person that nobody has used: it came when another one stood."""
        answers = [one for one in self.asked.values() if one.request.gate == "answer"]
        return {one.request.step for one in answers if one.is_yes and not one.uses}

    # --- what the journals say --------------------------------------------------------------------

    def line(self, event: Event, at: int, store: Store) -> None:
        match event:
            case ApprovalRequested():
                if not store.has(event.subject):
                    self._violated(f"'{event.approval}' asks about what is not stored")
                asked = Asked(event, about=frozenset(self.outside.get(event.step, ())))
                self.asked.setdefault(event.approval, asked)
            case ApprovalDecided():
                self._decided(event)
            case ApprovalUsed():
                self._used(event, at)
            case ApprovalRevoked():
                self.asked[event.approval].revoked = True
            case StepAmended():
                self.settled.update(self.outside.get(event.step, ()))
            case _:
                pass

    def _decided(self, event: ApprovalDecided) -> None:
        found = self.asked[event.approval]
        if found.decision is not None:
            self._violated(f"'{event.approval}' is decided twice")
        elif found.request.subject != event.subject:
            self._violated(f"'{event.approval}' is decided about something else")
        found.decision = event

    def _used(self, event: ApprovalUsed, at: int) -> None:
        found, use = self.asked[event.approval], (event.run, event.step, event.attempt)
        said = found.decision
        if said is None or not said.yes or found.revoked:
            self._violated(f"'{event.approval}' is used by {use} without a yes")
            return
        others = found.uses - {use}
        if said.scope == "once" and others:
            self._violated(f"'{event.approval}' is for once, and used by {use} and {others}")
        if said.scope == "run" and said.run != event.run:
            self._violated(f"'{event.approval}' is for '{said.run}', and used by {use}")
        if said.until and at > said.until + SLACK:
            self._violated(f"'{event.approval}' had ended when {use} used it")
        found.uses.add(use)
        if found.request.gate == "effect":
            self.covered.setdefault(use, set()).update(found.about)

    def run(self, run: RunId, event: Event, store: Store, engine: str) -> None:
        match event:
            case RunStarted():  # whoever names a step there lets it be done again
                self.forced.update((run, step, 1) for step in event.options.force_steps)
            case StepsReset():  # and so does who has it tried again by name
                for step in self.typed.get(engine, frozenset()).intersection(event.asked):
                    self.wanted[run, step] = {*self.outside.get(step, ())}
            case AttemptStarted():
                if event.source == "human" and event.approvals:
                    self._given(run, event)
                words = self.wanted.pop((run, event.step), set())
                self.covered.setdefault((run, event.step, event.attempt), set()).update(words)
            case AttemptAccepted():
                self.settled.add((run, event.step, event.attempt))
                if event.step in self.watched:
                    self._accepted(run, event, store)
            case AttemptRejected() | EffectConfirmed():
                self.settled.add((run, event.step, event.attempt))
            case AttemptFailed(code="command_failed"):
                self.settled.add((run, event.step, event.attempt))
            case _:
                pass

    def _given(self, run: RunId, event: AttemptStarted) -> None:
        """What a person gave is what the attempt guards."""
        found = [self.asked[name] for name in event.approvals]
        given = [one.decision.content for one in found if one.is_yes and one.decision is not None]
        if event.reguard not in given:
            self._violated(f"'{event.step}' of '{run}' has what nobody gave")

    def _accepted(self, run: RunId, event: AttemptAccepted, store: Store) -> None:
        """A person accepted this very content."""
        for one in self.asked.values():
            same = (one.request.gate, one.request.step) == ("guard", event.step)
            if same and one.is_yes and any(use[:2] == (run, event.step) for use in one.uses):
                document = json.loads(store.get(one.request.subject))
                if document["artifact"] == event.digest:
                    return
        self._violated(f"'{event.step}' of '{run}' is accepted, and nobody said yes to it")

    # --- what happens -----------------------------------------------------------------------------

    def begins(self, run: RunId, job: Job, started: AttemptStarted, store: Store) -> None:
        """An attempt is carried out: somebody said yes to just that, if anybody has to."""
        step, use = job.step, (run, job.step.id, job.attempt)
        again = any(use in one.uses for one in self.asked.values() if one.request.gate == "effect")
        if step.asks_first and not again:
            wanted = bool(step.approve) + sum(need.asks for need in step.needs)
            if len(started.approvals) < wanted:
                self._violated(f"{use} runs under {started.approvals}, of {wanted}")
            for name in started.approvals:
                self._check(use, self.asked[name], job, store)

    def _check(self, use: Use, found: Asked, job: Job, store: Store) -> None:
        if not found.is_yes or use not in found.uses:
            self._violated(f"{use} runs under '{found.request.approval}', which is no yes to it")
            return
        document: Mapping[str, object] = json.loads(store.get(found.request.subject))
        needs = {
            need: hashlib.sha256(given.content()).hexdigest() for need, given in job.given.items()
        }
        now = {"step": job.step.id, "needs": needs, "with": dict(job.step.values)}
        said = {name: document[name] for name in now}
        if said != now:
            self._violated(f"{use} is not what a person said yes to: {said}, but {now}")

    def effect(self, use: Use, *, late: bool) -> None:
        """Something changes outside, and nobody can take it back; `late` by who was taken for dead."""
        before = self.outside.setdefault(use[1], [])
        may = {*before} if use in self.forced else self.covered.get(use, set())
        for earlier in before:
            if earlier not in self.settled and earlier not in may and not late:
                self.machine.violated("I17", f"{use} does again what {earlier} may have done")
        self.settled.update(may)
        before.append(use)
        self.machine.fired["effect"] += 1

    def _violated(self, what: str) -> None:
        self.machine.violated("I11", what)
