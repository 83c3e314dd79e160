"""What happens in a run, one line for each change, in words that stay the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from holdfast.cli.again import again
from holdfast.cli.gates import ASKED, commands, conflict_words, held_words
from holdfast.cli.money import step_words
from holdfast.cli.say import SIGNS, named, seconds
from holdfast.cli.since import Waits
from holdfast.core.moves import INTERRUPTED
from holdfast.core.reasons import sentence
from holdfast.core.state import Spent, State
from holdfast.core.views import cost_limit
from holdfast.errors import HoldfastError
from holdfast.model.digest import Digest
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    AttemptStarted,
    CallAnswered,
    CallFailed,
    ConflictFound,
    ConflictResolved,
    GapClosed,
    OutputsPlaced,
    PlanExtended,
    Reason,
    Recorded,
    ReplanDecided,
    ReplanWanted,
    Skipped,
    StepFailed,
    StepHeld,
    StepsReleased,
    StepsReopened,
    StepsReset,
    StepsReused,
    StepsSkipped,
    StepsTaken,
    StepWaived,
)
from holdfast.model.money import dollars
from holdfast.model.plan import StepId
from holdfast.model.text import first_line, one_line
from holdfast.ports import Store

MOST_NAMES = 6
MOST_SKIPPED = 20
MOST_WORDS = 64 * 1024


class Teller:
    """Turns events into lines. Knows the plan for "of 3", and the store for the words of guards."""

    def __init__(self, store: Store, *, voice: bool = False, verbose: bool = False) -> None:
        self._store = store
        self._voice = voice
        self._verbose = verbose
        self._state: State | None = None
        self._project = self._line = ""
        self._tries: dict[StepId, int] = {}  # refused so far, since the step was last reset
        self._started: dict[StepId, AttemptStarted] = {}
        self._waits: Waits | None = None
        self._calls: dict[StepId, Spent] = {}  # what each step has cost in this run
        self._spent = 0

    def began(self, state: State) -> None:
        """What is known before the first event."""
        self._state, self._project, self._line = state, state.project, state.line
        self._started.update(state.running)
        self._spent = state.spent.cost
        for step_id, step in state.steps.items():
            if step.rejections:
                self._tries[step_id] = step.rejections
            if step.spent is not None:
                self._calls[step_id] = replace(step.spent)

    def lines(self, recorded: Recorded) -> list[str]:
        """The lines of one event; often none."""
        return [one_line(line) for line in self._lines(recorded)]

    def _lines(self, recorded: Recorded) -> list[str]:
        event = recorded.event
        match event:
            case AttemptStarted():
                return [self._begins(event)]
            case AttemptAccepted():
                return [self._done(event)]
            case AttemptRejected():
                return [self._rejected(event)]
            case AttemptFailed() | AttemptLost():
                return self._ended(event)
            case StepFailed():
                return [
                    f"{SIGNS['failed']} {event.step}: {sentence(event.reason)}",
                    *choices(event.reason),
                ]
            case StepHeld():
                return [f"{SIGNS['waiting']} {event.step}: {self._held(event)}"]
            case AttemptParked():
                return [self._parked(event)] if event.guards else []
            case ConflictFound():
                return [f"! {event.conflict}: {conflict_words(event)}"]
            case ConflictResolved():
                whose = f"the version of '{event.winner}'" if event.winner else "what lies there"
                return [f"  {event.conflict}: settled, {whose} stands"]
            case ReplanWanted():
                named = ", ".join(event.triggers)
                return [f"! what was learned speaks against the plan: {named}"]
            case ReplanDecided(plan=str()):  # whoever lets it take its place says so
                return []
            case ReplanDecided():
                whose = f", says {event.by}" if event.by else ""
                return [f"  the plan stands as it is{whose}: {', '.join(event.triggers)}"]
            case StepsReleased(code="resumed"):  # it asks again at once
                return []
            case StepsReleased():
                word = sentence(Reason(event.code))
                return [f"{SIGNS['pending']} {step}: {word}" for step in event.steps]
            case StepsReused():
                return self._reused(event)
            case StepsSkipped():
                return _skipped(event)
            case StepsReset():
                return [self._again(event)]
            case StepsReopened():
                return [self._reopened(event)]
            case StepsTaken():
                taken = [item.step for item in event.items]
                return [f"{SIGNS['reused']} {len(taken)} as in the run it forks: {_few(taken)}"]
            case PlanExtended():
                return [self._added(event)]
            case StepWaived():
                words = self._words(event.because, first_line)
                return [f"{SIGNS['skipped']} {event.step}: skipped by {event.by}{words}; a gap"]
            case GapClosed():
                return [
                    f"{SIGNS['pending']} {event.step}: made after all, {_few(event.steps)} again"
                ]
            case CallAnswered() | CallFailed():
                self._paid(event)
                return self._asks_again(event) if isinstance(event, CallFailed) else []
            case OutputsPlaced():
                return [_placed(event)] if event.paths else []
            case _:
                return []

    def _held(self, event: StepHeld) -> str:
        """What it waits for, and the command for whoever decides elsewhere."""
        step = self._state.plan.steps.get(event.step) if self._state else None
        if step is None or event.reason.code not in ASKED:
            return sentence(event.reason)
        words = [held_words(step, event.reason), self._since(event.reason)]
        return again("; ".join([*filter(None, words), commands(step, event.reason)[0]]))

    def _since(self, reason: Reason) -> str:
        """Why an earlier yes does not count."""
        if self._waits is None:
            self._waits = Waits(self._store, self._project, self._line)
        return self._waits.words(reason)

    def _parked(self, event: AttemptParked) -> str:
        took = seconds(event.duration_ms)
        command = again(f"holdfast approve {named(event.step)}")
        return f"{SIGNS['waiting']} {event.step}: made in {took}, needs an approval; {command}"

    def _begins(self, event: AttemptStarted) -> str:
        self._started[event.step] = event
        if event.reguard is not None and event.approvals:
            return f"{SIGNS['running']} {event.step}: guarding what a person gave"
        if event.reguard is not None:
            whose = "a person's version" if event.source == "human" else "the kept artifact"
            return f"{SIGNS['running']} {event.step}: {sentence(event.reason)}; guarding {whose}"
        again = "" if event.attempt == 1 else f"{self._which(event.step, event.attempt)}: "
        return f"{SIGNS['running']} {event.step}: {again}{sentence(event.reason)}"

    def _which(self, step: StepId, attempt: int) -> str:
        """Which attempt of how many; after a reset or an interruption the two counts differ."""
        steps = self._state.plan.steps if self._state else {}  # it may grow
        most = 1 + (steps[step].retries if step in steps else 0)
        at = self._tries.get(step, 0) + 1
        if at > most or most == 1:
            return f"attempt {attempt}"
        if at == attempt:
            return f"attempt {attempt} of {most}"
        return f"attempt {attempt}, try {at} of {most}"

    def _done(self, event: AttemptAccepted) -> str:
        began = self._started.pop(event.step, None)
        self._tries.pop(event.step, None)
        notes = [seconds(event.duration_ms)]
        if event.attempt > 1:
            notes.append(f"on attempt {event.attempt}")
        if cost := step_words(self._calls.get(event.step)):
            notes.append(cost + self._of_all())
        if began is not None and began.reguard is not None and began.approvals:
            return f"{SIGNS['done']} {event.step}: a person gave it"
        if began is not None and began.reguard is not None:
            kept = "a person's version stands" if event.source == "human" else "kept"
            return f"{SIGNS['reused']} {event.step}: {kept}, its guards accept it"
        if began is not None and self._is_same(began, event.digest):
            notes.append("output unchanged")
        if event.score is not None:
            notes.append(f"score {event.score / 1000:g}")
        if not event.stands:
            notes.append("kept as a sample: what stands has a better score")
        if not event.verified:
            notes.append("unverified")
        if not event.reusable:
            notes.append(f"not reusable: {self._why_not(event.step, began)}")
        return f"{SIGNS['done']} {event.step}: {', '.join(notes)}"

    def _of_all(self) -> str:
        """What the run has spent of what it may."""
        most = cost_limit(self._state) if self._state else None
        return "" if most is None else f" ({dollars(self._spent)} of {dollars(most)})"

    def _paid(self, event: CallAnswered | CallFailed) -> None:
        self._spent += event.cost or 0
        spent = self._calls.setdefault(event.step, Spent())
        spent.calls += 1
        spent.cost += event.cost or 0
        spent.unpriced += event.cost is None

    def _asks_again(self, event: CallFailed) -> list[str]:
        """What kept a model from answering, if it is asked again; else the end of the attempt says it."""
        if event.wait_ms is None:
            return []
        words = self._words(event.feedback, first_line)
        wait = -(-event.wait_ms // 1000)
        return [f"  {event.step}{words}; asks again in {wait} s, nothing is lost"]

    def _is_same(self, began: AttemptStarted, digest: Digest) -> bool:
        """Whether this is what the step made before. A step that never ran is not looked up."""
        if began.reason.code == "never_ran":
            return False
        rows = [
            row.digest
            for row in self._store.artifacts(
                project=self._project, line=self._line, step=began.step, status="accepted"
            )
        ]
        return len(rows) > 1 and rows[-2] == digest

    def _why_not(self, step: StepId, began: AttemptStarted | None) -> str:
        if began is not None and not began.reusable:
            return again(f"a part of its key cannot be computed (holdfast why {named(step)})")
        return "something it reads changed under way"

    def _rejected(self, event: AttemptRejected) -> str:
        began = self._started.pop(event.step, None)
        which = self._which(event.step, event.attempt)
        if began is not None and began.reguard is not None:
            which = "what is there"
        else:
            self._tries[event.step] = self._tries.get(event.step, 0) + 1
        words = self._words(event.feedback, first_line)
        return f"  {event.step}: guard '{event.guard}' rejected {which}{words}"

    def _ended(self, event: AttemptFailed | AttemptLost) -> list[str]:
        began = self._started.pop(event.step, None)
        which = self._which(event.step, event.attempt)
        if event.code == INTERRUPTED:  # long ago, if it did not run here: resuming says so
            return [f"  {event.step}: {which} was interrupted"] if began is not None else []
        if isinstance(event, AttemptFailed):
            self._tries[event.step] = self._tries.get(event.step, 0) + 1
        said_by_us = event.code not in {"command_failed", "timed_out", "lost"}  # a hint may follow
        words = self._words(event.feedback, _with_hint if said_by_us else _last_said)
        return [f"  {event.step}: {which} failed: {sentence(Reason(event.code))}{words}"]

    def _words(self, digest: Digest | None, pick: Callable[[str], str]) -> str:
        """One line of what a guard or a command said."""
        if digest is None:
            return ""
        try:
            text = self._store.get(digest)[-MOST_WORDS:].decode("utf-8", "replace")
        except HoldfastError:
            return ""
        words = pick(text)
        return f": {words}" if words else ""

    def _reused(self, event: StepsReused) -> list[str]:
        names = [item.step for item in event.items]
        if self._verbose:
            return [
                f"{SIGNS['reused']} {item.step}: {sentence(Reason(item.code))}"
                for item in event.items
            ]
        rest = len(names) - MOST_NAMES
        shown = ", ".join(names[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
        count = f"{len(names)} steps" if self._voice else f"{len(names)} reused"
        return [f"{SIGNS['reused']} {count}: {shown}"]

    def _added(self, event: PlanExtended) -> str:
        by = f"'{event.step}'" if event.step else "a person"
        return f"{SIGNS['pending']} added by {by}: {_few(event.added)}"

    def _again(self, event: StepsReset) -> str:
        for step in event.steps:
            self._tries.pop(step, None)
        return f"{SIGNS['pending']} trying again: {_few(event.steps)}"

    def _reopened(self, event: StepsReopened) -> str:
        for step in event.steps:
            self._tries.pop(step, None)
        return f"{SIGNS['pending']} {event.step}: sent back, '{event.by}' could not get through"


def _few(steps: Sequence[StepId]) -> str:
    rest = len(steps) - MOST_NAMES
    return ", ".join(steps[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def _skipped(event: StepsSkipped) -> list[str]:
    lines = [
        f"{SIGNS['skipped']} {item.step}: not selected"
        if item.code == "not_selected"
        else f"{SIGNS['skipped']} {item.step}: skipped, {_why_skipped(item)}"
        for item in event.items[:MOST_SKIPPED]
    ]
    rest = len(event.items) - MOST_SKIPPED
    return [*lines, f"{SIGNS['skipped']} {rest} more skipped"] if rest > 0 else lines


def _why_skipped(item: Skipped) -> str:
    return sentence(Reason(item.code, (item.because,) if item.because else ()))


def _placed(event: OutputsPlaced) -> str:
    rest = len(event.paths) - MOST_NAMES
    more = f" and {rest} more" if rest > 0 else ""
    return f"  {event.step}: wrote {', '.join(event.paths[:MOST_NAMES])}{more} from the store"


def choices(reason: Reason) -> list[str]:
    """What a person can do about an output that was changed by hand and does not stand."""
    if reason.code != "output_modified":
        return []
    offers = (
        "  to keep it: make it pass the guards; with nothing else changed, holdfast run adopts it",
        "  to have it made again: holdfast run --on-drift regenerate (what is there is stored first)",
        "  to leave it as it is: holdfast run --on-drift fail (the step fails, the rest goes on)",
    )
    return [again(offer) for offer in offers]


def _last_said(text: str) -> str:
    """The last line of what was said; if that is a hint, after what it is about."""
    told = [line.strip() for line in text.splitlines() if line.strip()]
    is_hint = len(told) > 1 and told[-1].startswith("hint: ")
    return "; ".join(told[-2:] if is_hint else told[-1:])


def _with_hint(text: str) -> str:
    """What went wrong and what to do about it, in one line."""
    told = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(told[:1] + [line for line in told[1:] if line.startswith("hint: ")][:1])
