"""Looks on at every commit, every report and every attempt, and says which law was broken.

It keeps its own books: what was told to people, which fence is the highest, which phase a step is in.
None of it is asked of the engine or worked out by the product's fold.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from holdfast.core.state import State
from holdfast.engine.journals import read_state
from holdfast.model.digest import Digest
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    AttemptStarted,
    Event,
    Recorded,
    RunEnded,
    RunRested,
    RunResumed,
    StepFailed,
    StepHeld,
    StepsReleased,
    StepsReset,
    StepsReused,
    StepsSkipped,
)
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Batch, ClaimKey, Job, Store, event_of
from tests.simulation.consent import Consent
from tests.simulation.machine import Machine, Process
from tests.simulation.money import Money

RUN = "run:"


@dataclass
class Book:
    """A run as the watch has it: where each step stands, and how the run stands."""

    phases: dict[StepId, str] = field(default_factory=dict)
    started: dict[StepId, AttemptStarted] = field(default_factory=dict)
    begun: set[tuple[StepId, int]] = field(default_factory=set)
    accepted: set[StepId] = field(default_factory=set)
    parked: set[StepId] = field(default_factory=set)  # candidates that are kept for people
    rejected: set[StepId] = field(default_factory=set)  # failed by a person's no
    status: str = "running"
    resumed: float = 0.0
    refused: float = -1.0  # when a person's no last ended a step

    def attempts(self, step: StepId) -> int:
        return self.started[step].attempt if step in self.started else 0


@dataclass
class Execution:
    """A process that a step started: who did, and whether it still runs."""

    process: Process
    run: RunId
    started: AttemptStarted
    over: bool = False


class Watch:
    """The invariants, kept beside the store. `line` is where all runs belong."""

    def __init__(self, machine: Machine, project: str, line: str) -> None:
        self._machine = machine
        self._project = project
        self._line = line
        self.books: dict[RunId, Book] = {}
        self.told: list[tuple[RunId, Recorded]] = []
        self.executed: Counter[StepId] = Counter()
        self.accepted = 0
        self.contents: dict[StepId, set[Digest]] = {}  # that each step was ever accepted with
        self.commits = 0
        self.buried: set[str] = set()  # engines that another one removed from the line
        self.excused: set[str] = set()  # engines that others may have taken for dead
        self.collected: set[RunId] = set()  # runs that a person removed
        self.may_repeat = False  # the run was told to make it again
        self.outlives: Callable[[str, str], bool] = lambda _engine, _mark: False
        self.money = Money(machine)
        self.consent = Consent(machine)
        self._lengths: Counter[str] = Counter()
        self._fences: dict[str, int] = {}
        self._claims: dict[ClaimKey, dict[str, int]] = {}  # the latest fence of each engine
        # Engines that had claimed what another then accepted from a candidate that it kept for people.
        self._beside: dict[tuple[RunId, StepId], frozenset[str]] = {}
        self._executions: list[Execution] = []

    # --- fences -----------------------------------------------------------------------------------

    def fenced(self, run: RunId, fence: int) -> None:
        """A fence was given out; it must be higher than any before."""
        if fence <= self._fences.get(run, 0):
            self._machine.violated("I10", f"fence {fence} of '{run}' was given out before")
        self._fences[run] = fence

    def fence_of(self, run: RunId) -> int:
        return self._fences.get(run, 0)

    def claimed(self, key: ClaimKey, fence: int, engine: str) -> None:
        if fence < self._highest(key):
            self._machine.violated("I10", f"claim fence {fence} of '{key.step}' is older")
        self._claims.setdefault(key, {})[engine] = fence

    def _highest(self, key: ClaimKey) -> int:
        return max(self._claims.get(key, {}).values(), default=0)

    # --- commits ----------------------------------------------------------------------------------

    def committed(self, process: Process, batch: Batch, store: Store) -> None:
        """A batch became true."""
        self.commits += 1
        for append in batch.appends:
            if append.expected != self._lengths[append.journal]:
                self._machine.violated(
                    "I4", f"{append.journal} ends at {self._lengths[append.journal]}: {append}"
                )
            if not append.events:
                continue
            names = " ".join(_short(event_of(told)) for _, told in append.events)
            self._machine.note(process.name, f"{append.journal} {append.expected}+ {names}")
            self._lengths[append.journal] += len(append.events)
            if append.journal.startswith(RUN):
                run = RunId(append.journal.removeprefix(RUN))
                if process.name in self.buried:
                    self._machine.violated("I10", f"{process.name} wrote after its lease was taken")
                if append.fence is not None and append.fence != self._fences.get(run, 1):
                    self._machine.violated(
                        "I10", f"{process.name} wrote to '{run}' under fence {append.fence}"
                    )
                for _, told in append.events:
                    event = event_of(told)
                    self._take(run, event, process.name)
                    self.money.take(run, event)
                    self.consent.run(run, event, store, process.name)
            else:
                for at, told in append.events:
                    self.consent.line(event_of(told), at, store)
        for key, fence in batch.held:
            if self._highest(key) != fence:
                self._machine.violated("I10", f"{process.name} wrote under claim {fence} of {key}")
        for row in batch.artifacts:
            if not store.has(row.digest):
                self._machine.violated("I5", f"'{row.step}' names {row.digest}, which is not there")

    def removed(self, run: RunId) -> None:
        """A run is removed with its journal: only one that has ended, and not the newest."""
        book = self.books[run]
        if book.status not in {"completed", "superseded"}:
            self._machine.violated("I5", f"'{run}' is removed, and it is {book.status}")
        if run == list(self.books)[-1]:
            self._machine.violated("I5", f"'{run}' is removed, and it is the newest")
        self.collected.add(run)

    def _take(self, run: RunId, event: Event, engine: str) -> None:
        book = self.books.setdefault(run, Book())
        if book.status in {"completed", "superseded"}:
            self._machine.violated("I4", f"'{run}' has ended, then {_short(event)}")
        match event:
            case AttemptStarted():
                self._from(run, book, event.step, {"pending"}, event)
                book.rejected.discard(event.step)
                book.started[event.step] = event
                book.begun.add((event.step, event.attempt))
                book.phases[event.step] = "running"
            case AttemptAccepted():
                self._accept(run, book, event, engine)
            case AttemptRejected() | AttemptFailed() | AttemptLost():
                self._from(run, book, event.step, _ending(book, event.step), event)
                if self.outlives(engine, f"{run}/{event.step}/{event.attempt}"):
                    self._machine.violated("I12", f"what {_short(event)} of '{run}' started lives")
                book.phases[event.step] = "pending"
                book.parked.discard(event.step)
            case AttemptParked():
                self._from(run, book, event.step, {"running"}, event)
                book.phases[event.step] = "waiting"
                book.parked.add(event.step)
            case StepsReleased():
                for step in event.steps:
                    self._from(run, book, step, {"waiting"}, event)
                    book.phases[step] = "pending"
            case StepFailed() | StepHeld():
                self._from(run, book, event.step, {"pending", "waiting"}, event)
                failed = isinstance(event, StepFailed)
                if event.reason.code in {"rejected_by_person", "model_refused"}:
                    book.refused = self._machine.now  # perhaps said in rough times
                if event.reason.code == "rejected_by_person":
                    book.rejected.add(event.step)
                book.phases[event.step] = "failed" if failed else "waiting"
            case StepsSkipped():
                for skipped in event.items:
                    self._from(run, book, skipped.step, {"pending"}, event)
                    book.phases[skipped.step] = "skipped"
            case StepsReused():
                for item in event.items:
                    self._from(run, book, item.step, {"pending"}, event)
                    book.phases[item.step] = "reused"
            case StepsReset():
                for step in event.steps:
                    self._from(run, book, step, {"failed", "skipped", "waiting"}, event)
                    book.phases[step] = "pending"
                    book.parked.discard(step)
            case RunRested() | RunEnded():
                book.status = event.status
            case RunResumed():
                book.status, book.resumed = "running", self._machine.now
            case _:
                pass

    def _from(
        self, run: RunId, book: Book, step: StepId, phases: Iterable[str], event: Event
    ) -> None:
        now = book.phases.get(step, "pending")
        if now not in phases:
            self._machine.violated("I4", f"'{step}' of '{run}' is {now}, then {_short(event)}")

    def _accept(self, run: RunId, book: Book, event: AttemptAccepted, engine: str) -> None:
        self._from(run, book, event.step, _ending(book, event.step), event)
        was_kept = event.step in book.parked  # for a person, without a claim
        book.parked.discard(event.step)
        self.contents.setdefault(event.step, set()).add(event.digest)
        self.accepted += 1
        if event.step in book.accepted:
            self._machine.violated("I2", f"'{event.step}' of '{run}' is accepted twice")
        book.accepted.add(event.step)
        started = book.started.get(event.step)
        if started is None or started.attempt != event.attempt:
            self._machine.violated("I4", f"attempt {event.attempt} of '{event.step}' never began")
            return
        is_made = started.reguard is None or bool(started.approvals)  # now, also by a person
        book.phases[event.step] = "done" if is_made else "reused"
        key = ClaimKey(self._project, self._line, event.step, started.config_ref)
        mine = self._claims.get(key, {}).get(engine, started.fence)
        if was_kept:
            self._beside[run, event.step] = frozenset(self._claims.get(key, {}))
        if mine and mine < self._highest(key) and not was_kept:
            self._machine.violated("I10", f"{engine}: '{event.step}' of '{run}' under a lost claim")

    # --- reports ----------------------------------------------------------------------------------

    def told_to(self, process: Process, events: list[Recorded], run: RunId, store: Store) -> None:
        """An engine told people; it must be true already."""
        for recorded in events:
            self.told.append((run, recorded))
            if recorded.seq > self._lengths[f"{RUN}{run}"]:
                self._machine.violated(
                    "I1", f"{process.name} told {_short(recorded.event)} before it was stored"
                )

    # --- attempts ---------------------------------------------------------------------------------

    def begins(self, process: Process, job: Job, store: Store) -> Execution:
        """A step starts a process: allowed only once, and only after the commit that names it."""
        run, step = RunId(job.mark.split("/")[0]), job.step.id
        self.executed[step] += 1
        book = self.books.get(run, Book())
        if (step, job.attempt) not in book.begun:
            message = f"attempt {job.attempt} of '{step}' runs before it was stored"
            self._machine.violated("I3", f"{process.name}: {message}")
            raise AssertionError(message)
        execution = Execution(process, run, book.started[step])
        if process.name not in self.excused:
            if (book.started[step].attempt, book.phases[step]) != (job.attempt, "running"):
                self._machine.violated("I3", f"{process.name} runs '{step}', which has ended")
            self._check_once(process, execution, store)
            self.consent.begins(run, job, book.started[step], store)
        self._executions = [item for item in self._executions if not item.over]
        self._executions.append(execution)
        if job.step.done_once:
            late = process.name in self.excused
            self.consent.effect((run, step, job.attempt), late=late)
        return execution

    def _check_once(self, process: Process, mine: Execution, store: Store) -> None:
        ref, step = mine.started.config_ref, mine.started.step
        for other in self._executions:
            same = (other.started.step, other.started.config_ref) == (step, ref)
            lives = not other.over and other.process.lives and other.process is not process
            if same and lives and other.process.name not in self.excused:
                self._machine.violated(
                    "once", f"{process.name} and {other.process.name} both run '{step}'"
                )
        row = store.find(self._project, self._line, step, ref)
        if row is None or self.may_repeat or mine.started.reguard is not None:
            return
        if process.name not in self._beside.get((row.run, step), ()):
            self._machine.violated("once", f"{process.name} runs '{step}', accepted in '{row.run}'")

    # --- at rest ----------------------------------------------------------------------------------

    def check_told(self, store: Store) -> None:
        """Everything that people were told is there, with its content."""
        journals: dict[RunId, list[Recorded]] = {}
        self.told = [item for item in self.told if item[0] not in self.collected]
        for run, recorded in self.told:
            if run not in journals:
                journals[run] = list(store.read(f"{RUN}{run}"))
            if journals[run][recorded.seq - 1 : recorded.seq] != [recorded]:
                self._machine.violated("I1", f"told and gone: {_short(recorded.event)} of '{run}'")
            event = recorded.event
            if isinstance(event, AttemptAccepted) and not store.has(event.digest):
                self._machine.violated("I1", f"told and gone: the content of '{event.step}'")

    def check_state(self, store: Store, run: RunId) -> State | None:
        """The fold of the journal says what the books say."""
        state, book = read_state(store, run), self.books.get(run)
        if state is None or book is None:
            self._machine.violated("I3", f"'{run}' has no journal")
            return None
        phases = {step: now.phase for step, now in state.steps.items() if now.phase != "pending"}
        mine = {step: phase for step, phase in book.phases.items() if phase != "pending"}
        if (phases, state.status) != (mine, book.status):
            self._machine.violated("I3", f"'{run}' is {phases} {state.status}, not {mine}")
        self.money.check_state(state)
        return state


def _ending(book: Book, step: StepId) -> set[str]:
    """In which phases an attempt may end: it runs, or its candidate is kept for people."""
    return {"running", "waiting"} if step in book.parked else {"running"}


def _short(event: Event) -> str:
    name = type(event).__name__
    match event:
        case AttemptStarted() | AttemptAccepted() | AttemptRejected() | AttemptFailed():
            return f"{name}({event.step}#{event.attempt})"
        case AttemptLost():
            return f"{name}({event.step}#{event.attempt} {event.code})"
        case StepsReused() | StepsSkipped():
            return f"{name}({' '.join(item.step for item in event.items)})"
        case StepsReset():
            return f"{name}({' '.join(event.steps)})"
        case StepFailed() | StepHeld():
            return f"{name}({event.step} {event.reason.code})"
        case RunRested() | RunEnded():
            return f"{name}({event.status})"
        case _:
            return name
