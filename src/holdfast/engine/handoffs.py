"""Handoffs of a line: whether one counts, and which one came with an artifact that is reused."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from holdfast.core.approvals import Approval
from holdfast.core.moves import WAIVED
from holdfast.core.reasons import sentence
from holdfast.core.refs import Upstream
from holdfast.core.said import Said
from holdfast.core.state import Gap, State
from holdfast.core.told import Past, Tellings, Told
from holdfast.core.waves import Graph
from holdfast.engine.came import Came, Given, Queued
from holdfast.engine.lines import Line
from holdfast.engine.words import said_in
from holdfast.errors import IntegrityError, UsageError
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.event import AttemptAccepted, AttemptStarted, Reason, Recorded
from holdfast.model.handoff import (
    MOST_TOLD,
    Handoff,
    Undone,
    handoff_id,
    handoff_json,
    joined,
    read_handoff,
)
from holdfast.model.line import HandoffGiven, StepAccepted, StepAmended
from holdfast.model.plan import RunId, Step, StepId
from holdfast.model.strict import strict_json
from holdfast.model.telling import tells_in_answer
from holdfast.ports import Candidate, Outcome, Store

HANDOFF = "handoff"  # who refuses an attempt whose handoff is not one
REMOVED = "what it told was removed"
UNREADABLE = "what it told cannot be read"
NO_RUN = RunId("")
_STORED = 16  # times the size of one that is taken in
Read = Callable[[Digest], bytes]
Checked = Callable[[Handoff], tuple[Handoff, list[str]]]  # as it is kept, and what is wrong with it
CheckedAttempt = Callable[[Handoff, AttemptStarted, Candidate], tuple[Handoff, list[str]]]


# --- before it counts -----------------------------------------------------------------------------


def sound(
    step: Step,
    outcome: Outcome,
    started: AttemptStarted,
    checked: CheckedAttempt = lambda handoff, *_: (handoff, []),
) -> Outcome:
    """The outcome with its handoff in canonical form; one that is none, or missing, rejects the attempt.

    `checked` says what it refers to and nobody told. What was made before and is only guarded has told
    already what there is to tell.
    """
    candidate = outcome.candidate
    if candidate is None or outcome.ended not in {"accepted", "asked"}:
        return outcome
    is_made = started.reguard is None or step.uses == "human"
    if not candidate.handoff and not (step.handoff and is_made):
        return outcome
    handoff, wrong = _read(candidate.handoff, _nothing(step))
    if handoff is not None:
        handoff, unknown = checked(handoff, started, candidate)
        wrong = [*_uncovered(step, handoff), *unknown]
    if handoff is None or wrong:
        return _refused(outcome, wrong)
    return outcome._replace(candidate=replace(candidate, handoff=written(handoff)))


def given_by_person(step: Step, content: bytes | None, checked: Checked) -> bytes:
    """What a person hands over with a step, in canonical form; UsageError if it is no handoff, or lacks."""
    if content is None:
        if not step.handoff:
            return b""
        raise UsageError(
            f"'{step.id}' is done only with a handoff", hint="write one and name it: --handoff FILE"
        )
    return _of_person(step, content, checked, complete=True)


def added_by_person(step: Step, content: bytes, checked: Checked) -> bytes:
    """What a person who approves adds to what the attempt tells; the attempt covers its outputs itself."""
    return _of_person(step, content, checked, complete=False)


def _of_person(step: Step, content: bytes, checked: Checked, *, complete: bool) -> bytes:
    handoff, wrong = _read(content)
    if handoff is not None:
        handoff, unknown = checked(handoff)
        wrong = [*(_uncovered(step, handoff) if complete else ()), *unknown]
    if handoff is None or wrong:
        raise UsageError(f"the handoff for '{step.id}' is none: {'; '.join(wrong)}")
    return written(handoff)


def with_approvals(told: bytes, approvals: Iterable[Approval], read: Read) -> bytes:
    """What an attempt tells, with what was added by those under whose approvals it stands.

    An answer is the content itself: its handoff is that of the attempt already.
    """
    own, _ = _read(told, slack=_STORED)
    found = own or Handoff(attempted="")
    for approval in approvals:
        said = approval.decision
        if said is None or said.handoff is None or approval.request.gate == "answer":
            continue
        with suppress(IntegrityError):  # a person had it removed
            more, _ = _read(read(said.handoff), slack=_STORED)
            assert more is not None  # it was read before it was kept
            found = joined(found, more, said.by)
    return told if found is own or not found.attempted else written(found)


def added_to(told: Digest | None, approvals: Sequence[Approval], read: Read) -> bytes | None:
    """The same for a handoff that is stored; None if nothing is added to it."""
    if not any(one.decision is not None and one.decision.handoff for one in approvals):
        return None
    own = b""
    if told is not None:
        with suppress(IntegrityError):  # as above
            own = read(told)
    return with_approvals(own, approvals, read) or None


def written(handoff: Handoff) -> bytes:
    """A handoff as it is stored: the same bytes for the same words."""
    body = json.dumps(handoff_json(handoff), ensure_ascii=False, sort_keys=True)
    return body.encode()


def _nothing(step: Step) -> str:
    """What is wrong if nothing is handed over."""
    if tells_in_answer(step):
        return "the answer hands over nothing: it must be JSON with 'output' and 'handoff'"
    return "no handoff was written to the file that HOLDFAST_HANDOFF names"


def _read(
    content: bytes, nothing: str = "it is empty", slack: int = 1
) -> tuple[Handoff | None, list[str]]:
    if not content:
        return None, [nothing]
    if len(content) > MOST_TOLD * slack:
        return None, [f"the handoff is larger than {MOST_TOLD // 1024:,} KB"]
    try:
        given = strict_json(content.decode("utf-8-sig"))
    except ValueError as error:
        return None, [f"the handoff is not JSON: {error}"]
    return read_handoff(given, slack)


def stored(content: bytes) -> Handoff | None:
    """A handoff that counted, from the store; None if it cannot be read."""
    return _read(content, slack=_STORED)[0]


def _uncovered(step: Step, handoff: Handoff) -> Iterator[str]:
    """The declared outputs that a required handoff says nothing of."""
    if step.handoff:
        for name in step.outputs:
            if name not in handoff.payload:
                yield f"'payload.{name}' is missing: the step declares it among its outputs"


def _refused(outcome: Outcome, wrong: list[str]) -> Outcome:
    words = "; ".join(wrong)
    return outcome._replace(
        ended="rejected",
        code="guard_rejected",
        verdict=Verdict("reject", HANDOFF, words),
        feedback=words,
    )


# --- what was told --------------------------------------------------------------------------------


class Handoffs:
    """The handoffs of one line.

    What an attempt of the run told stands in its state. What came with an artifact that is reused is known
    from the journal of the line, by the attempt that made it.
    """

    def __init__(
        self,
        store: Store,
        project: str,
        line: str,
        read: Read | None = None,
        queued: Queued = tuple,
        alone: RunId | None = None,
    ) -> None:
        self._line = Line(store, project, line, lambda: 0)
        self._content = store.get if read is None else read
        self._given: list[Given] = []
        self._came = Came(store, project, line, queued, alone)
        self._read: dict[Digest, Handoff] = {}
        self._versions: dict[tuple[RunId, StepId], tuple[Digest, Given | None]] = {}
        self._is_read = False
        self._read_to = 0
        self.said: list[Said] = []  # by people, in the order of the journal
        self._tellings = Tellings(self._untold)
        self._listed = 0

    def refresh(self) -> None:
        """Read what was told since; other engines may tell something on the line too."""
        self.take(self._line.news())

    def take(self, news: Iterable[Recorded]) -> None:
        """Take in what a line tells."""
        for recorded in news:
            self._read_to = recorded.seq
            if isinstance(recorded.event, HandoffGiven):
                given = Given(recorded.seq, recorded.at, recorded.event)
                self._given.append(given)
                self._came.add(given)
            elif isinstance(recorded.event, StepAmended):
                self._amended(recorded.seq, recorded.at, recorded.event)
            elif isinstance(recorded.event, StepAccepted):
                self._accepted(recorded.seq, recorded.at, recorded.event)
            elif (said := said_in(recorded, self._content)) is not None:
                self.said.append(said)
        self._is_read = True

    def _amended(self, seq: int, at: int, event: StepAmended) -> None:
        """A person's version tells what the person hands over with it, and nothing else."""
        self._versions[event.after_run, event.step] = (event.digest, None)
        if event.handoff is None:
            return
        given = self._by_person(seq, at, event, event.handoff)
        self._versions[event.after_run, event.step] = (event.digest, given)

    def _accepted(self, seq: int, at: int, event: StepAccepted) -> None:
        """What a person lets stand tells what it told; what came from elsewhere brings that along."""
        if event.handoff is not None:
            self._by_person(seq, at, event, event.handoff)

    def _by_person(
        self, seq: int, at: int, event: StepAmended | StepAccepted, handoff: Digest
    ) -> Given:
        told = HandoffGiven(event.after_run, event.step, 0, event.input_ref, event.digest, handoff)
        given = Given(seq, at, told)
        self._given.append(given)
        self._came.add(given)
        return given

    def are_any(self, state: State) -> bool:
        """Whether anything was ever told on this line; a step that a person skipped leaves a gap, too."""
        if not self._is_read:
            self.refresh()
        return bool(self._given) or state.told or bool(state.gaps)

    def told_by(self, state: State, steps: Collection[StepId]) -> list[Told]:
        """What these steps of a run tell as it stands, failed and skipped ones too."""
        found = (self._now(state, step_id) for step_id in steps)
        return [told for told in found if told is not None]

    def told_since(self, state: State, steps: Collection[StepId]) -> list[Told]:
        """The same, and of a step whose version a person replaced after the run, what came with that."""
        since = {
            step: given
            for (run, step), (digest, given) in self._versions.items()
            if run == state.run and step in steps and self._came.is_newest(step, digest)
        }
        told = self.told_by(state, [step for step in steps if step not in since])
        return told + [self._told(state, one) for one in since.values() if one is not None]

    def given(self, step: StepId, config_ref: Digest, digest: Digest) -> Given | None:
        """That something came with the artifact that stands under a ref."""
        return self._came.stands(step, config_ref, digest)

    def prefer(self, told: Iterable[HandoffGiven]) -> None:
        """Of several that came with one content, and where no row tells which, let the last of these tell."""
        self._came.prefer(told)

    def came(self, state: State, step_id: StepId) -> Digest | None:
        """The content of what a step of a run handed over, or that came with what it reused."""
        here = state.steps[step_id]
        if here.handoff is not None or here.digest is None:
            return here.handoff
        given = self._came.stands(step_id, here.config_ref, here.digest, here.attempts)
        return None if given is None else given.event.handoff

    def all_of(self, state: State) -> list[Given]:
        """All that steps of a run ever told, in the order of the journal."""
        return [one for one in self._given if one.event.step in state.steps]

    def ever(self, after: int = 0) -> Iterator[tuple[RunId, Told]]:
        """Everything that was ever told on the line, but for the first so many, with the run it is of."""
        for one in self._given[after:]:
            run, step, content = one.event.run, one.event.step, one.event.handoff
            name = handoff_id(step, content)
            told = Told(name, step, 0, self._kept(content), at=one.at, run=run, place=one.seq)
            yield run, told

    def past(self, run: RunId = NO_RUN, steps: Collection[StepId] | None = None) -> Past:
        """What was ever told, as far as these steps of a run know of it; without them all of it."""
        return Past(self._tellings, run, steps)

    def _untold(self) -> list[Told]:
        """What was told since this was last asked."""
        fresh = [told for _, told in self.ever(self._listed)]
        self._listed += len(fresh)
        return fresh

    @property
    def read_to(self) -> int:
        """The place in the journal of the line up to which all is known."""
        return self._read_to

    def came_with(self, graph: Graph, made: Mapping[StepId, Upstream]) -> list[Told]:
        """What came with these artifacts, whatever run made them, each at its place in the journal."""
        found = ((step, self._came.stands(step, *one)) for step, one in made.items())
        return [
            Told(
                handoff_id(step, given.event.handoff),
                step,
                graph.wave[step],
                self._kept(given.event.handoff),
                at=given.at,
                place=given.seq,
                tests=graph.steps[step].hypotheses,
                serves=graph.steps[step].requirements,
            )
            for step, given in found
            if given is not None
        ]

    def before(self, state: State, now: Iterable[Told]) -> list[Told]:
        """What the steps of a run told earlier and tell no more."""
        stands = {one.place for one in now}
        return [
            self._told(state, given)
            for given in self._given
            if given.event.step in state.steps and given.seq not in stands
        ]

    def _now(self, state: State, step_id: StepId) -> Told | None:
        here = state.steps[step_id]
        if here.phase == "failed":
            reason = sentence(here.reason) if here.reason is not None else "it failed"
            return replace(_undone(state, step_id, reason), failed=True)
        if step_id in state.gaps:
            gap = state.gaps[step_id]
            return replace(_undone(state, step_id, self._skipped(gap)), at=gap.at)
        if here.phase not in {"done", "reused"} or here.digest is None:
            return None
        if here.handoff is None:
            given = self._came.stands(step_id, here.config_ref, here.digest, here.attempts)
            return None if given is None else self._told(state, given)
        own = self._came.own(state.run, step_id, here.attempts)
        if own is not None and own.event.handoff == here.handoff:
            return self._told(state, own)
        # not yet in the journal of the line: it will come after all that was said there
        return replace(self._made(state, step_id, here.handoff), place=self._read_to + 1)

    def _skipped(self, gap: Gap) -> str:
        """Why a person lets a run go on without a step."""
        text = sentence(Reason(WAIVED))
        with suppress(IntegrityError):  # a person had the words removed
            text = f"{text}: {self._content(gap.because).decode('utf-8', 'replace')}"
        return text

    def _told(self, state: State, given: Given) -> Told:
        event = given.event
        told = self._made(state, event.step, event.handoff)
        return replace(told, at=given.at, run=event.run, attempt=event.attempt, place=given.seq)

    def _made(self, state: State, step_id: StepId, content: Digest) -> Told:
        name = handoff_id(step_id, content)
        told = self._kept(content)
        step = state.plan.steps[step_id]
        return Told(
            name,
            step_id,
            state.graph.wave[step_id],
            told,
            run=state.run,
            tests=step.hypotheses,
            serves=step.requirements,
        )

    def _kept(self, content: Digest) -> Handoff:
        if content not in self._read:
            self._read[content] = self._stored(content)
        return self._read[content]

    def _stored(self, content: Digest) -> Handoff:
        """A handoff that counts; one that a person had removed, or that a stranger's run has, tells that."""
        try:
            handoff, _ = _read(self._content(content), slack=_STORED)
        except IntegrityError:
            return Handoff(attempted=REMOVED)
        return Handoff(attempted=UNREADABLE) if handoff is None else handoff


def _undone(state: State, step_id: StepId, reason: str) -> Told:
    """What a step tells that did not come about: what it was to do, and why it is not done."""
    step = state.plan.steps[step_id]
    items = step.outputs or step.produces or (step_id,)
    handoff = Handoff(
        attempted=step.description or step_id,
        not_done=tuple(Undone(item, reason) for item in items),
    )
    name = handoff_id(step_id, digest_bytes(written(handoff)))
    wave = state.graph.wave[step_id]
    return Told(name, step_id, wave, handoff, run=state.run, serves=step.requirements)


def given(run: RunId, started: AttemptStarted, ending: object) -> HandoffGiven | None:
    """The fact that an attempt told something: only if it was accepted, and stands."""
    if not isinstance(ending, AttemptAccepted) or not ending.stands or ending.handoff is None:
        return None
    return HandoffGiven(
        run=run,
        step=ending.step,
        attempt=ending.attempt,
        input_ref=started.input_ref,
        digest=ending.digest,
        handoff=ending.handoff,
    )
