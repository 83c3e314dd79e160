"""Runs the real command, breaks it at a chosen call, lets it recover, and says what is wrong then.

Nothing is asserted here: a `Report` collects what was tried, what fired, what was done, and every
violation, so that a test can also show that the checks are able to fail.
"""

import os
import random
import select
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tests.crash.looks import held, left_behind, left_running, marked, unsound
from tests.crash.report import Report
from tests.crash.scene import (
    HUNG,
    KILLED,
    Answer,
    Journal,
    Reference,
    Scene,
    lay,
    read_journal,
    reference_of,
)
from tests.crash.shim import CALLS, NONE, SHIM_CALLS, Fault, Shim, build_shim, by_strace
from tests.forge import Forked, Running

__all__ = [
    "CALLS",
    "HUNG",
    "KILLED",
    "NONE",
    "SHIM_CALLS",
    "Answer",
    "Case",
    "Fault",
    "Journal",
    "Reference",
    "Report",
    "Running",
    "Scene",
    "Shim",
    "build_shim",
    "by_strace",
    "each",
    "handle_of",
    "held",
    "kill_after",
    "lay",
    "left_behind",
    "left_running",
    "marked",
    "pause",
    "read_journal",
    "reference_of",
    "spread",
    "unsound",
    "until",
]

T = TypeVar("T")

FIRST_IS_ENOUGH = "HOLDFAST_PLANTED" in os.environ  # a bug is looked for, not a list of its deeds
ASKED_ALOUD = 4  # of so many cases one also starts the command `verify`


class Case:
    """One fault and what follows: the questions that must have the same answer every time."""

    def __init__(
        self,
        scene: Scene,
        reference: Reference,
        report: Report,
        name: str,
        forced: Collection[str] = (),
    ) -> None:
        self.scene = scene
        self._forced = forced  # steps that were asked for again, whatever stands
        self._reference = reference
        self._report = report
        self._name = name
        self._kept: set[str] = set()
        self._begun: Counter[str] = Counter()
        self._faults = 0
        self.sound = True
        with report.lock:
            report.tried += 1

    def violated(self, what: str) -> None:
        self.sound = False
        text = f"{self._report.name}: {self._name}: {what}"
        with self._report.lock:
            self._report.violations.append(text)
        if FIRST_IS_ENOUGH:
            raise AssertionError(text)

    def renamed(self, name: str) -> None:
        """Say better what it is."""
        self._name = name

    def ended(self, how: str) -> None:
        with self._report.lock:
            self._report.outcomes[how] += 1

    def fired(self) -> None:
        self._faults += 1
        with self._report.lock:
            self._report.fired += 1

    def broken(self, answer: Answer) -> Journal:
        """Right after a fault: the store is whole, and everything that was told is in it."""
        journal = self.scene.journal()
        if journal.runs:
            self.verified()
        elif journal.facts:
            self.violated("a journal without a run")
        self._told(answer, journal)
        self._not_again(journal)
        with self._report.lock:
            self._report.kept += len(journal.steps - self._kept)
        self._kept, self._begun = journal.steps, self.scene.begun()
        return journal

    def verified(self) -> None:
        """Look at a copy, so that looking repairs nothing."""
        copy = self.scene.snapshot()
        for problem in unsound(copy):
            self.violated(f"right after: {problem}")
        if self._report.tried % ASKED_ALOUD == 0:
            self.asked_aloud("--store", str(copy))

    def asked_aloud(self, *words: str) -> None:
        """The command `verify` finds nothing."""
        answer = self.scene.call("verify", "--all", "--json", *words)
        if answer.code != 0:
            self.violated(
                f"verify ended with {answer.code}: {answer.out[-400:]}{answer.err[-400:]}"
            )

    def _told(self, answer: Answer, journal: Journal) -> None:
        if unknown := answer.acknowledged - journal.steps:
            self.violated(f"told as accepted, but not in the journal: {sorted(unknown)}")
        if unknown := answer.runs - set(journal.runs):
            self.violated(f"told as a run, but not in the store: {sorted(unknown)}")
        if answer.code == HUNG:
            self.violated("the command did not end")
        if "Traceback" in answer.err:
            self.violated(f"a traceback: {answer.err[-1500:]}")

    def _not_again(self, journal: Journal) -> None:
        begun = self.scene.begun()
        if again := sorted(s for s in self._kept - {*self._forced} if begun[s] > self._begun[s]):
            self.violated(f"accepted before, and executed again: {again}")
        if lost := sorted(self._kept - journal.steps):
            self.violated(f"accepted before, and no longer: {lost}")

    def recovered(self, *words: str) -> Answer:
        """Go on without a fault, to the end; then everything is as if nothing had happened."""
        journal = self.scene.journal()
        if not words:
            unfinished = journal.runs and journal.ended(journal.runs[-1]) is None
            words = ("resume",) if unfinished else ("run",)
        answer = self.scene.call(*words)
        if answer.code != 0:
            self.violated(f"{' '.join(words)} ended with {answer.code}: {answer.err[-1500:]}")
        self.finished(answer)
        return answer

    def finished(self, answer: Answer) -> None:
        """The end: equal to the undisturbed run, nothing done twice, nothing left behind."""
        scene, wanted = self.scene, self._reference
        journal = scene.journal()
        if not journal.runs:
            self.violated("there is no run")
            return
        self._told(answer, journal)
        self._not_again(journal)
        if (status := journal.ended(journal.runs[-1])) != "completed":
            self.violated(f"the last run is {status}")
        if open_runs := [run for run in journal.runs if journal.ended(run) is None]:
            self.violated(f"runs are left open: {open_runs}")
        if twice := [key for key, count in journal.accepted.items() if count > 1]:
            self.violated(f"accepted twice in one run: {twice}")
        if (results := self.results(journal)) != wanted.results:
            self.violated(f"other artifacts: {_difference(results, wanted.results)}")
        if (files := scene.files()) != wanted.files:
            self.violated(f"other files: {_difference(files, wanted.files)}")
        begun = scene.begun()
        most = {step: count * (1 + self._faults) for step, count in wanted.begun.items()}
        unforced = {step: count for step, count in begun.items() if step not in self._forced}
        if many := [step for step, count in unforced.items() if count > most.get(step, 0)]:
            self.violated(f"executed more often than a fault explains: {many}")
        for run, step, places in journal.befores():
            if len(places) > 1:
                self.violated(f"outputs of {step} were not put back between its attempts in {run}")
        self.at_rest()
        for problem in (*left_behind(scene), *left_running(journal.runs, scene.pids)):
            self.violated(problem)
        with self._report.lock:
            self._report.work += len(results)

    def results(self, journal: Journal) -> dict[str, str]:
        """What was made, to be compared with an undisturbed run."""
        return journal.results()

    def at_rest(self) -> None:
        """Nobody holds the store, and it is sound."""
        if holders := held(self.scene.store):
            self.violated(f"the line is still held: {holders}")
        for problem in unsound(self.scene.store):
            self.violated(problem)

    def close(self) -> None:
        """A scene that showed nothing wrong is not kept."""
        if self.sound:
            self.scene.remove()


def _difference(found: Mapping[str, object], wanted: Mapping[str, object]) -> str:
    names = sorted(
        name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name)
    )
    return ", ".join(f"{name} is {found.get(name)}" for name in names)


def spread(calls: Sequence[str], size: int, seed: int) -> list[int]:
    """Numbers of calls, chosen by lot, the same share of each kind so that rare ones are among them."""
    dice = random.Random(seed)
    by_kind: dict[str, list[int]] = {}
    for number, name in enumerate(calls, 1):
        by_kind.setdefault(name, []).append(number)
    for numbers in by_kind.values():
        dice.shuffle(numbers)
    chosen: list[int] = []
    while len(chosen) < min(size, len(calls)):
        for numbers in by_kind.values():
            if numbers and len(chosen) < size:
                chosen.append(numbers.pop())
    return sorted(chosen)


def each(work: Callable[[T], None], items: Iterable[T], threads: int = 2) -> None:
    """Do the work for every item, some at once; the first error is raised."""
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, items):
            pass


def handle_of(process: Running) -> int:
    """A descriptor that can be read once the process ended; whoever asks closes it."""
    return os.dup(process.pidfd) if isinstance(process, Forked) else os.pidfd_open(process.pid)


def until(condition: Callable[[], T], process: Running) -> T:
    """Ask again and again until the answer is true, while the process lives; the last answer."""
    if process.poll() is not None:  # its number may be another's by now
        return condition()
    ended = handle_of(process)
    try:
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        while not (found := condition()) and not poll.poll(10):
            pass
        return found
    finally:
        os.close(ended)


def pause(process: Running, seconds: float) -> bool:
    """Wait a while, or until the process ended; tells whether it did."""
    if process.poll() is not None:  # its number may be another's by now
        return True
    ended = handle_of(process)
    try:
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        return bool(poll.poll(max(0.0, seconds) * 1000))
    finally:
        os.close(ended)


def kill_after(process: Running, seconds: float) -> bool:
    """Kill a process after a while unless it ends before; tells whether it was killed."""
    if not pause(process, seconds):
        process.kill()
    return process.wait() == KILLED
