"""What people are asked on a line, and how they decide it: exactly once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from holdfast.core.approvals import Approval, Book, allowed_scopes, usual_scope
from holdfast.core.effects import is_cut_off, is_in_hand
from holdfast.core.state import State
from holdfast.engine.elsewhere import brought_in
from holdfast.engine.journals import has_ended, read_state, runs_of
from holdfast.engine.lines import Line
from holdfast.engine.opened import asked_about
from holdfast.engine.overtaken import differing, overtaken, replaced_by
from holdfast.engine.questions import HELD
from holdfast.engine.unkept import Hidden, check_words
from holdfast.errors import PurgedError, UsageError
from holdfast.model.artifact import Form, tree_entries
from holdfast.model.digest import Digest, Json, canonical
from holdfast.model.event import AttemptParked
from holdfast.model.fixed import frozen
from holdfast.model.line import (
    ApprovalDecided,
    ApprovalRequested,
    ApprovalRevoked,
    LineEvent,
    Scope,
)
from holdfast.model.plan import Plan, RunId, Step, StepId
from holdfast.model.policy import Rule, ruling
from holdfast.ports import Store


@frozen
class Person:
    """Who decides: the user of this system, the names that it holds, and who holds any at all."""

    user: str
    terminal: bool = False
    people: Mapping[str, Sequence[str]] | None = None

    def names_for(self, asked: Sequence[str]) -> tuple[str, ...]:
        """The names under which this person may answer; UsageError if somebody else has to.

        A name that nobody holds may be answered for by anybody; both names are recorded.
        """
        people = self.people or {}
        held = tuple(name for name in asked if self.user in people.get(name, ()))
        if held or not asked or not any(people.get(name) for name in asked):
            return held or tuple(asked)
        holders = ", ".join(sorted({user for name in asked for user in people.get(name, ())}))
        raise UsageError(
            f"this needs '{' or '.join(asked)}', and '{self.user}' does not hold that name",
            hint=f"it is held by {holders}",
        )


class Wanted(NamedTuple):
    """A step that waits, and the question it waits for."""

    run: RunId
    step: StepId
    approval: Approval
    blocks: tuple[StepId, ...]


class Given(NamedTuple):
    """What a person says: how far a yes goes, why, and the content that was asked for."""

    scope: Scope | None = None
    until: int = 0
    because: str = ""
    content: Digest | None = None
    form: Form = "bytes"
    handoff: Digest | None = None


class Begun(NamedTuple):
    """What is known of an effect that was begun and never confirmed."""

    run: RunId
    attempt: int
    key: Digest | None
    at: int


@frozen
class Policy:
    """A person's own rules, and the person in whose name they decide."""

    rules: tuple[Rule, ...]
    person: Person

    def decision(
        self, store: Store, line: str, approval: Approval, run: RunId
    ) -> ApprovalDecided | None:
        """What the first rule that fits says about an open question; None leaves it to people."""
        document = document_of(store, approval)
        rule = ruling(self.rules, line, approval.request, document)
        if rule is None:
            return None
        given = Given(rule.scope, because=rule.because)
        kept = store.put(canonical(rule.json()))
        try:
            return decision(store, approval, self.person, given, yes=rule.yes, run=run, rule=kept)
        except UsageError:  # somebody else's to say, or for longer than may be said
            return None


def document_of(store: Store, approval: Approval) -> Mapping[str, Json]:
    """Everything that an approval covers."""
    return cast("Mapping[str, Json]", json.loads(store.get(approval.request.subject)))


def decision(
    store: Store,
    approval: Approval,
    person: Person,
    given: Given,
    *,
    yes: bool,
    run: RunId,
    rule: Digest | None = None,
) -> ApprovalDecided:
    """The fact that a person decides; UsageError if this one may not, or not so."""
    request = approval.request
    names = person.names_for(request.names)
    approve = str(document_of(store, approval).get("approve", ""))
    scope = given.scope or usual_scope(request.gate, approve)
    allowed = allowed_scopes(request.gate, approve)
    if yes and scope not in allowed:
        raise UsageError(
            f"'{request.step}' is to be asked about each time, so a yes cannot be for '{scope}'",
            hint=f"--scope {' or '.join(allowed)}",
        )
    return ApprovalDecided(
        approval=approval.id,
        subject=request.subject,
        yes=yes,
        by=person.user,
        scope=scope if yes else "once",
        until=given.until if yes else 0,
        names=names,
        because=store.put(given.because.encode()) if given.because else None,
        content=given.content,
        form=given.form,
        terminal=person.terminal,
        run=run if yes and scope == "run" else RunId(""),
        rule=rule,
        handoff=given.handoff,
    )


def check_there(store: Store, parked: AttemptParked) -> None:
    """PurgedError if a person had something of a kept candidate removed; IntegrityError if it is lost."""
    wanted = [d for d in (parked.digest, parked.handoff, parked.fragment) if d is not None]
    if parked.form == "tree":
        wanted += [entry.digest for entry in tree_entries(store.get(parked.digest))]
    for digest in sorted(store.absent(wanted)):
        store.get(digest)  # it says why there is none


def _ways_on(step: Step) -> str:
    if not step.done_once:
        return (
            f"make it again: holdfast retry {step.id}; or holdfast reject {step.id} --because '…'"
        )
    return f"its effect was done: holdfast resume, then holdfast amend {step.id} FILE, or retry, or reject"


class Decisions:
    """The approvals of one line, as somebody who decides sees them.

    `drives` says whether a live engine has a run: what a dead one was doing outside waits for a person.
    Words that hold a secret of `hidden` are refused. `read` folds a run; who has it folded says so.
    """

    def __init__(
        self,
        store: Store,
        project: str,
        line: str,
        clock: Callable[[], int],
        drives: Callable[[State], bool] = lambda _: True,
        hidden: Hidden = tuple,
        read: Callable[[Store, RunId], State | None] = read_state,
    ) -> None:
        self._store = store
        self._read = read
        self._hidden = hidden
        self._drives = drives
        self._project = project
        self._name = line
        self._clock = clock
        self._line = Line(store, project, line, clock)
        self.book = Book()
        self.refresh()

    def refresh(self) -> None:
        """Read what was said since."""
        for recorded in self._line.news():
            self.book.take(recorded)

    def wanted(self, run: RunId | None = None) -> list[Wanted]:
        """What steps of unfinished runs wait for and nobody decided, in the order of the plan."""
        now = self._clock()
        return [
            wanted
            for state in self._unfinished(run)
            for wanted in self._of(state)
            if wanted.approval.stand(now) == "open"
        ]

    def called(self, name: str) -> list[Wanted]:
        """The open questions of a step, or the one with this id; UsageError if there is none."""
        wanted = self.wanted()
        by_id = name.startswith("a-")
        fits = [w for w in wanted if name in {w.step, w.approval.id}]
        fits = fits or [w for w in wanted if by_id and w.approval.id.startswith(name)]
        if len({w.approval.id for w in fits}) > 1 and not any(w.step == name for w in fits):
            raise UsageError(f"'{name}' fits {len(fits)} approvals", hint="holdfast approvals")
        if fits:
            return fits
        known = [a for a in self.book if a.id.startswith(name)] if by_id else []
        if known:
            message, hint = self._gone(known[0])
            raise UsageError(message, hint=hint)
        raise UsageError(f"nothing called '{name}' waits for a person", hint="holdfast approvals")

    def _gone(self, found: Approval) -> tuple[str, str]:
        """Why a question cannot be decided any more, and where to look."""
        stand = found.stand(self._clock())
        if stand not in {"open", "approved"}:
            return f"'{found.id}' is {stand} already", "holdfast approvals --all"
        other = replaced_by(self._store, self.book, found)
        if other is not None and any(w.approval is other for w in self.wanted()):
            parts = ", ".join(differing(self.document(found), self.document(other)))
            was = "approved already, and" if stand == "approved" else "out of date:"
            words = f"'{found.id}' is {was} '{found.request.step}' asks about something else now"
            return f"{words} ({parts})", f"holdfast approve {other.id}"
        words = "waited for by no step any more" if stand == "open" else f"{stand} already"
        return f"'{found.id}' is {words}", "holdfast approvals --all"

    def answerable(self, name: str) -> Wanted:
        """The question for the content of a step; UsageError if there is none."""
        for wanted in self.called(name):
            if wanted.approval.request.gate == "answer":
                return wanted
        raise UsageError(f"'{name}' does not wait for content", hint="holdfast approvals")

    def plan_of(self, wanted: Wanted) -> Plan:
        """The plan of the step that waits, as its run has it."""
        return self.state_of(wanted).plan

    def state_of(self, wanted: Wanted) -> State:
        """The run of the step that waits."""
        state = self._read(self._store, wanted.run)
        assert state is not None  # it was read to find the question
        return state

    def abandoned(self) -> list[Approval]:
        """Questions that nobody answered and no step waits for any more."""
        waiting = {wanted.approval.id for wanted in self.wanted()}
        return [
            found for found in self.book if found.stand(0) == "open" and found.id not in waiting
        ]

    def overtaken(self) -> set[str]:
        """The ids of yeses whose step asked about something else before they were used."""
        return overtaken(self._store, self.book)

    def _unfinished(self, run: RunId | None) -> Iterator[State]:
        for row in runs_of(self._store, self._project, self._name):
            if run is not None and row.run != run:
                continue
            if has_ended(self._store, row.run):
                continue
            state = self._read(self._store, row.run)
            if state is not None and not state.ended:
                yield state

    def _of(self, state: State) -> Iterator[Wanted]:
        cut_off = {s for s in state.running if is_cut_off(state, s)}
        if cut_off and self._drives(state):
            cut_off = set()
        if not state.counts["waiting"] and not cut_off:
            return
        for step_id in state.graph.order:
            if state.steps[step_id].phase == "waiting" or step_id in cut_off:
                below = state.graph.below([step_id]) - {step_id}
                blocks = tuple(sorted(below, key=state.graph.rank.__getitem__))
                for approval in self._asked(state, step_id):
                    yield Wanted(state.run, step_id, approval, blocks)

    def _asked(self, state: State, step_id: StepId) -> list[Approval]:
        here = state.steps[step_id]
        if here.phase == "running":
            return [self._about_held(state, step_id)]
        if here.reason is None:
            return []
        if here.reason.code in HELD:
            return [self._about_held(state, step_id)]
        found = (self.book.by_id.get(name) for name in here.reason.because)
        return [approval for approval in found if approval is not None]

    def _about_held(self, state: State, step_id: StepId) -> Approval:
        """Whether to try again; nobody wrote the question down before somebody answers it."""
        here = state.steps[step_id]
        question = asked_about(self._store, state, step_id)
        asked = self.book.by_subject.get(question.subject)
        if asked and asked[-1].stand(self._clock()) not in {"revoked", "expired"}:
            return asked[-1]
        name = self.book.next_id(question.subject)
        request = ApprovalRequested(name, question.gate, step_id, state.run, question.subject)
        return Approval(request, here.started_at or state.since)

    def begun(self, wanted: Wanted) -> Begun:
        """What is known of the effect that a step is held for, perhaps from an earlier run."""
        for state in self._back_from(wanted.run):
            here = state.steps.get(wanted.step)
            if here is not None and here.attempts:
                return Begun(state.run, here.attempts, here.effect, here.started_at)
        return Begun(wanted.run, 0, None, wanted.approval.at)

    def _back_from(self, run: RunId | None) -> Iterator[State]:
        """A run and those before it, then those that were brought to the line; newest first."""
        while run is not None and (state := self._read(self._store, run)) is not None:
            yield state
            run = state.previous
        for other in reversed(brought_in(self._store, self._project, self._name)):
            if (state := self._read(self._store, other)) is not None:
                yield state

    def asked_before(self, wanted: Wanted) -> Wanted | None:
        """The first question of another run about the very effect that a step is held for."""
        key = self.begun(wanted).key
        for other in self.wanted():
            if other.run == wanted.run:
                return None
            held = other.step == wanted.step and other.approval.request.gate == "effect"
            if held and key is not None and self.begun(other).key == key:
                return other
        return None

    def document(self, approval: Approval) -> Mapping[str, Json]:
        """Everything that an approval covers; of a held step, which one it is."""
        request = approval.request
        if request.gate in {"effect", "stuck"} and request.approval not in self.book.by_id:
            return {"gate": request.gate, "step": request.step, "run": request.run}
        return document_of(self._store, approval)

    def words(self, digest: Digest | None) -> str:
        """What a person said, as it was kept."""
        return "" if digest is None else self._store.get(digest).decode("utf-8", "replace")

    def decide(self, wanted: Wanted, person: Person, given: Given, *, yes: bool) -> Approval:
        """Decide a question; UsageError if somebody was faster, or if this person may not."""
        check_words(given.because, self._hidden)
        if yes and wanted.approval.request.gate == "effect":
            self._check_in_nobodys_hand(wanted.step)
        if yes:
            self.check_is_there(wanted)
        approval = self._written(wanted)
        said = decision(self._store, approval, person, given, yes=yes, run=wanted.run)

        def say() -> LineEvent:
            self._check_open(approval)
            return said

        self._line.tell(say, self.refresh)
        return approval

    def _check_in_nobodys_hand(self, step_id: StepId) -> None:
        """UsageError if a live engine has the effect under way: nobody knows yet what to say of it."""
        for state in self._unfinished(None):
            if is_in_hand(state, step_id) and self._drives(state):
                raise UsageError(
                    f"the effect of '{step_id}' is under way in run '{state.run}'",
                    hint="wait until that has ended; then it is known, or you are asked",
                )

    def check_is_there(self, wanted: Wanted) -> None:
        """UsageError if what a person is to let stand was purged: nothing would stand."""
        if wanted.approval.request.gate != "guard":
            return
        state = self.state_of(wanted)
        parked = state.steps[wanted.step].parked
        try:
            if parked is not None:
                check_there(self._store, parked)
        except PurgedError as error:
            words = f"what '{wanted.step}' made is gone, so there is nothing to approve"
            raise UsageError(
                f"{words}: {error.message}", hint=_ways_on(state.plan.steps[wanted.step])
            ) from error

    def _written(self, wanted: Wanted) -> Approval:
        """The question as the line has it."""
        request = wanted.approval.request
        if request.approval in self.book.by_id:  # by now, perhaps, and decided
            return self.book.by_id[request.approval]
        state = self.state_of(wanted)
        if request not in [now.approval.request for now in self._of(state)]:
            raise UsageError(
                f"'{wanted.step}' of run '{wanted.run}' waits for that no more",
                hint="holdfast approvals",
            )
        self._store.put(asked_about(self._store, state, wanted.step).document)
        self._line.tell(
            lambda: None if request.approval in self.book.by_id else request, self.refresh
        )
        return self.book.by_id[request.approval]

    def revoke(self, approval: Approval, person: Person, because: str) -> Approval:
        """Take a yes back; UsageError if there is none to take back."""
        check_words(because, self._hidden)
        words = self._store.put(because.encode()) if because else None
        person.names_for(approval.request.names)

        def say() -> LineEvent:
            stand = approval.stand(self._clock())
            if stand == "open":
                raise UsageError(
                    f"'{approval.id}' is not decided yet", hint=f"holdfast reject {approval.id}"
                )
            if stand == "used":
                use = approval.uses[0]
                raise UsageError(
                    f"'{approval.id}' was used by attempt {use.attempt} of '{use.step}': "
                    "there is nothing left to take back"
                )
            if stand != "approved":
                raise UsageError(f"'{approval.id}' is {stand}: there is no yes to take back")
            return ApprovalRevoked(approval.id, person.user, words)

        self._line.tell(say, self.refresh)
        return approval

    def _check_open(self, approval: Approval) -> None:
        stand = approval.stand(self._clock())
        if stand == "open":
            return
        by = approval.decision.by if approval.decision is not None else ""
        word = {"used": "approved", "expired": "approved"}.get(stand, stand)
        raise UsageError(
            f"'{approval.id}' was {word} already" + (f" by '{by}'" if by else ""),
            hint="holdfast approvals --all",
        )
