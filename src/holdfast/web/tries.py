"""The attempts of every step of a run, gathered from its journal once and kept up with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.cli.logs import Ended, Past, take, words_of
from holdfast.cli.money import step_words
from holdfast.cli.pieces import Contents, Piece, pieces
from holdfast.cli.say import seconds
from holdfast.cli.sides import entries_of
from holdfast.core.reasons import sentence
from holdfast.core.state import Spent, State
from holdfast.errors import IntegrityError
from holdfast.model.artifact import Entry, Form
from holdfast.model.digest import Digest
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    AttemptStarted,
    CallAnswered,
    Reason,
)
from holdfast.model.plan import Step, StepId
from holdfast.ports import Store
from holdfast.web.look import Look

MOST_FEEDBACK = 32 * 1024  # characters that are shown of what was said of an attempt


@dataclass(slots=True)
class Tries:
    """What the journal tells of attempts, up to one of its events."""

    seq: int = 0
    found: dict[StepId, dict[int, Past]] = field(default_factory=dict)
    parked: dict[tuple[StepId, int], AttemptParked] = field(default_factory=dict)
    spent: dict[tuple[StepId, int], Spent] = field(default_factory=dict)
    reasons: dict[tuple[StepId, int], Reason] = field(default_factory=dict)

    def read(self, store: Store, run: str) -> None:
        """Take in what came since."""
        for recorded in store.read(f"run:{run}", self.seq):
            self.seq, event = recorded.seq, recorded.event
            if isinstance(event, AttemptStarted):
                take(self.found.setdefault(event.step, {}), event.step, recorded)
                self.reasons[event.step, event.attempt] = event.reason
            elif isinstance(event, Ended):
                take(self.found.setdefault(event.step, {}), event.step, recorded)
            elif isinstance(event, AttemptParked):
                self.parked[event.step, event.attempt] = event
            elif isinstance(event, CallAnswered):
                spent = self.spent.setdefault((event.step, event.attempt), Spent())
                spent.calls += 1
                spent.cost += event.cost or 0
                spent.tokens += event.input + event.output
                spent.unpriced += event.cost is None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one guard said of an attempt: `accepted`, `rejected`, or nothing that is known."""

    guard: str
    word: str


@dataclass(frozen=True, slots=True)
class Shown:
    """One attempt as the drawer shows it."""

    number: int
    word: str
    why: str
    began: int
    took: str
    spent: str
    verdicts: tuple[Verdict, ...]
    feedback: str
    digest: Digest | None
    diff: tuple[Piece, ...] = ()

    @property
    def is_running(self) -> bool:
        """Whether it goes on."""
        return self.word == "running"


def tries_of(look: Look, state: State) -> Tries:
    """The attempts of a run as its journal is now."""
    found = look.made(state, "tries", Tries, until=0)
    found.read(look.store, state.run)
    return found


def shown_tries(look: Look, state: State, step_id: StepId) -> list[Shown]:
    """The attempts of a step in a run, oldest first, each with what changed since the one before."""
    known, step = tries_of(look, state), state.plan.steps[step_id]
    shown: list[Shown] = []
    before: tuple[int, Mapping[str, Entry]] | None = None
    for past in known.found.get(step_id, {}).values():
        parked = known.parked.get((step_id, past.attempt))
        digest, form = _made(past, parked)
        files = _files(look.store, step, digest, form)
        diff: Sequence[Piece] = ()
        if files is not None and before is not None:
            names = (f"attempt {before[0]}", f"attempt {past.attempt}")
            contents = (Contents(look.store), Contents(look.store))
            diff = pieces(step_id, before[1], files, contents, names)
        before = before if files is None else (past.attempt, files)
        shown.append(
            Shown(
                number=past.attempt,
                word=_word(past, parked),
                why=_why(known, step_id, past.attempt),
                began=past.began,
                took=seconds(past.at - past.began) if past.ended is not None else "",
                spent=_spent(known.spent.get((step_id, past.attempt))),
                verdicts=_verdicts(step, past),
                feedback=_said(look.store, past),
                digest=digest,
                diff=tuple(diff),
            )
        )
    return shown


def _files(
    store: Store, step: Step, digest: Digest | None, form: Form
) -> Mapping[str, Entry] | None:
    """What an attempt made, by path; None if it made nothing, or that was removed since."""
    if digest is None:
        return None
    try:
        return entries_of(store, step, digest, form)
    except IntegrityError:
        return None


def _made(past: Past, parked: AttemptParked | None) -> tuple[Digest | None, Form]:
    ended = past.ended
    if isinstance(ended, AttemptAccepted | AttemptRejected):
        return ended.digest, ended.form
    if ended is None and parked is not None:
        return parked.digest, parked.form
    return None, "bytes"


def _word(past: Past, parked: AttemptParked | None) -> str:
    """How an attempt ended, in a word or a sentence."""
    match past.ended:
        case None:
            return "waiting" if parked is not None else "running"
        case AttemptAccepted(verified=True):
            return "accepted"
        case AttemptAccepted():
            return "accepted, unverified"
        case AttemptRejected(fatal=True):
            return "refused for good"
        case AttemptRejected():
            return "rejected"
        case AttemptFailed() | AttemptLost():
            return sentence(Reason(past.ended.code))


def _why(known: Tries, step_id: StepId, attempt: int) -> str:
    reason = known.reasons.get((step_id, attempt))
    return "" if reason is None else sentence(reason)


def _spent(spent: Spent | None) -> str:
    return "" if spent is None else f"{step_words(spent)}, {spent.tokens:,} tokens"


def _verdicts(step: Step, past: Past) -> tuple[Verdict, ...]:
    """What the guards said: all accept what was accepted; of what was rejected one name is known."""
    names = [guard.name or guard.kind for guard in step.guards]
    match past.ended:
        case AttemptAccepted():
            return tuple(Verdict(name, "accepted") for name in names)
        case AttemptRejected():
            return (Verdict(past.ended.guard, "rejected"),)
        case _:
            return ()


def _said(store: Store, past: Past) -> str:
    """What an attempt was refused with, which the next one is told; its end if it is long."""
    try:
        return words_of(store, past)[1][-MOST_FEEDBACK:]
    except IntegrityError:  # removed since
        return ""
