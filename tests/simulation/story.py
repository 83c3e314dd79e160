"""The person: starts runs, resumes them, meddles, changes the plan; and what must be true afterwards.

In each stage faults fire at their moments while the person does what people do. Then it becomes quiet:
nothing goes wrong any more, the person resumes what is open, and after a bounded time every run has ended
or rests, and every step has the content that the oracle foretold.
"""

import re
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from holdfast.core.state import COMPLETE, State
from holdfast.engine.audit import audit
from holdfast.engine.lines import line_journal, tell_line
from holdfast.engine.runs import resume_run, start_run
from holdfast.errors import FencedError, HeldError, StoreError, UsageError
from holdfast.model.artifact import Artifact
from holdfast.model.line import LineEvent, RunOpened, StopRequested
from holdfast.model.plan import Plan, RunId, Step, StepId
from holdfast.ports import RunRow
from tests.laws.choosing import by_seed
from tests.laws.harness import LINE, Stage, amend, foretell
from tests.laws.oracle import Fate, Oracle
from tests.laws.scenarios import a_scenario
from tests.laws.script import persons_version
from tests.simulation.disk import Seat
from tests.simulation.dress import drawn
from tests.simulation.faults import ASKING, DISK, FAULTS
from tests.simulation.lines import foretold, misplaced, unexplained
from tests.simulation.machine import Killed, Process
from tests.simulation.play import LEASE, POLL, EngineProcess, Result, Simulation
from tests.simulation.sweeping import sweep

MOST_WORK = 1200.0  # virtual seconds that the attempts of a small plan take at most, one by one
KINDS = tuple(FAULTS)
ANY = {**FAULTS, **{fault.__name__: fault for fault in (*DISK, *ASKING)}}
ENOUGH = 10**9  # micro-dollars
MOST_ROUNDS = 12  # of questions about one run
HOURS = 7200.0  # until contents may go that nothing names
MOODS = 0.12  # how many attempts go wrong by themselves while it is rough


def simulate(seed: int, folder: str, template: str) -> Result:
    """Play one seed in an empty folder."""
    place = tempfile.mkdtemp(dir=folder)
    sim = Simulation(seed, place, template)
    try:
        person = Person(sim)
        sim.machine.run(lambda: person.process.is_over)
        error = person.process.error
        if error is not None and not isinstance(error, Killed):
            sim.machine.violated("bug", "".join(traceback.format_exception(error)))
    finally:
        result = sim.close()
        shutil.rmtree(place)
    return result


_FOLDER = re.compile(r"'/[^']*/(?=store-)")  # another one each time


class Person:
    """Somebody with a terminal, as a process of the machine that nobody kills."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.source = sim.machine.random
        self.oracle = Oracle()
        self.loose = False  # the oracle cannot know what came of it
        self.unsure: set[StepId] = set()  # nor what came of these, whatever else it knows
        self.quiet = False
        self.persons: set[tuple[StepId, bytes]] = set()
        self.stage = Stage(Plan(LINE, {StepId("a"): Step(StepId("a"))}))
        self.earlier: set[RunId] = set()  # the runs before this stage
        self.key = ""  # under which its runs begin
        self._looked = 0  # at how many processes
        self.process = Process(sim.machine, "person", self._main)

    @property
    def seat(self) -> Seat:
        return Seat(self.process, self.sim.disk, self.sim.watch, self.sim.dark)

    def _main(self, process: Process) -> None:
        choose = by_seed(self.source)
        stages = a_scenario(choose, self.source.choice([3, 5]), 3)
        names = sorted({step for stage in stages for step in stage.plan.steps})
        sim = self.sim
        sim.dress = drawn(self.source, names, apart=sim.apart)
        sim.watch.consent.watched = sim.dress.watched
        self._set_limits()
        for number, stage in enumerate(stages):
            dressed = replace(stage, plan=sim.dress.plan(stage.plan))
            self._play(dressed, number, is_last=stage is stages[-1])
        if not self.sim.machine.violations:
            for problem in audit(self.sim.store).problems:
                self.sim.machine.violated("I5", problem)

    def _set_limits(self) -> None:
        """What a run may cost, and all together; often less than it takes."""
        if self.sim.dress.models:
            self.sim.max_cost = self.source.choice([None, 20_000, 60_000])
            if not self.sim.apart and self.source.random() < 0.4:
                self.sim.watch.money.budget = self.source.choice([25_000, 100_000])

    def _play(self, stage: Stage, number: int, *, is_last: bool) -> None:
        sim = self.sim
        sim.machine.fired["edited"] += number > 0 and stage.plan != self.stage.plan
        self.stage, self.earlier = stage, {row.run for row in sim.store.runs(LINE)}
        self.key = f"key-{number}" if self.source.random() < 0.3 else ""
        forced = bool(stage.options.force or stage.options.force_steps)
        sim.watch.may_repeat = forced or (self.loose and sim.watch.may_repeat)
        for step, content in stage.amended:
            if amend(self.seat, sim.machine.wall, stage.plan, step, content):
                self.persons.add((step, content))
                sim.machine.fired["amended"] += 1
        fates = foretell(self.oracle, sim.dress.foreseen(stage))
        spare = sim.watch.consent.spare()  # whoever makes such a step takes what is there
        sim.nature.salts = stage.salts
        sim.machine.note("person", f"stage {number}: {len(stage.plan.steps)} steps {stage.options}")
        if number and self.source.random() < 0.4:
            if not sim.live():  # who waits for people looks every second
                self.process.sleep(HOURS)
            sweep(sim, keep_runs=self.source.choice([0, 1]))
        self._rough(number)
        if not is_last and self.source.random() < 0.15:  # in a hurry: the plan changes meanwhile
            sim.machine.fired["hurried"] += 1
            self.loose = True
            return
        self._settle()
        self.unsure |= sim.forgot | sim.people.refused | spare
        self._check(fates)

    # --- rough ------------------------------------------------------------------------------------

    def _rough(self, number: int) -> None:
        sim, source = self.sim, self.source
        self.quiet, sim.nature.roughness = False, MOODS
        kinds = [source.choice(KINDS) for _ in range(source.choice([0, 1, 1, 2, 3, 5]))]
        if number == 0:  # so that every kind comes up among few seeds
            kinds.insert(0, KINDS[sim.seed % len(KINDS)])
        if sim.on_disk:
            kinds.append("power")
        if sim.rough_disk and source.random() < 0.9:
            kinds.append(source.choice(DISK).__name__)
        if sim.dress.models and source.random() < 0.7:
            kinds.append(source.choice(ASKING).__name__)
        for kind in kinds:
            latest = 3 if "answer" in kind else 25  # the first answers come soon
            sim.machine.after(source.uniform(0, latest), partial(self._strike, kind))
        joined = source.random() < 0.35
        self._start(joined=joined)
        if joined and source.random() < 0.6:
            self.process.sleep(source.uniform(0, 2))
            self.join()
        for _ in range(source.randrange(2, 5)):
            self.process.sleep(source.uniform(0.5, 20))
            self._look()
            if sim.dress.asks and source.random() < 0.7:
                sim.people.spawn(twice=source.random() < 0.4)
            if not sim.live():
                self._go_on()
            elif source.random() < 0.3:
                self._meddle()

    def _strike(self, kind: str) -> None:
        """A fault finds its victim, or comes again a little later."""
        if self.quiet or self.process.is_over:
            return
        live = self.sim.live()
        if live:
            ANY[kind](self.sim, self, self.source.choice(live))
        else:
            self.sim.machine.after(2.0, lambda: self._strike(kind))

    def _start(self, *, joined: bool) -> EngineProcess:
        stage, key = self.stage, "" if joined else self.key
        options = replace(stage.options, joined=joined, max_cost=self.sim.max_cost)
        what = f"run{' --join' if joined else ''}{f' under {key}' if key else ''}"
        return self.sim.spawn(lambda world: start_run(world, stage.plan, LINE, options, key), what)

    def _resume(self, run: RunId) -> EngineProcess:
        self.sim.machine.fired["resumed"] += 1
        most = self.sim.max_cost
        return self.sim.spawn(lambda world: resume_run(world, run, max_cost=most), f"resume {run}")

    def _retry_one(self, run: RunId) -> EngineProcess:
        """Try only one of the failed steps again."""
        phases = self.sim.watch.books[run].phases
        failed = sorted(step for step, phase in phases.items() if phase == "failed")
        return self._retry(run, [self.source.choice(failed)]) if failed else self._resume(run)

    def _retry(self, run: RunId, only: list[StepId]) -> EngineProcess:
        """Try these steps again, by name."""
        self.sim.machine.fired["retried"] += 1
        engine = self.sim.spawn(
            lambda world: resume_run(world, run, only=only, asked=only), f"retry {only} of {run}"
        )
        self.sim.watch.consent.typed[engine.process.name] = frozenset(only)
        return engine

    def _open(self) -> list[RunId]:
        """The runs of this stage that have not ended, and older ones that nobody drives any more."""
        found = []
        for row in self.sim.store.runs(LINE):
            status = self.sim.watch.books[row.run].status
            rests = status not in {"completed", "superseded"}
            if rests and (row.run not in self.earlier or status == "running"):
                found.append(row.run)
        return found

    def _mine(self) -> list[RunRow]:
        """The runs of this stage."""
        return [row for row in self.sim.store.runs(LINE) if row.run not in self.earlier]

    def _go_on(self) -> None:
        found = self._open()
        self.sim.machine.fired["went_on"] += 1
        if not found or self.source.random() < 0.2:
            self.sim.machine.fired["anew"] += bool(found)
            self._start(joined=self.source.random() < 0.3)
        elif self.source.random() < 0.3:
            self._retry_one(self.source.choice(found))
        else:
            self._resume(self.source.choice(found))

    def _meddle(self) -> None:
        found = self._open()
        match self.source.choice(["resume", "run", "join", "join"]):
            case "resume" if found:
                self._resume(self.source.choice(found))
            case "run":
                self._start(joined=False)
            case _:
                self.join()

    def join(self) -> None:
        """Start another engine beside those that are there."""
        self.sim.machine.fired["joined"] += 1
        self._start(joined=True)

    def ask_to_stop(self, run: RunId, *, now: bool) -> None:
        """Ask a run to stop, as another command does."""
        sim = self.sim

        def say() -> tuple[int, LineEvent, list[Artifact]]:
            return sim.machine.wall(), StopRequested(run, now, "me"), []

        def main(hand: Process) -> None:
            seat = Seat(hand, sim.disk, sim.watch, sim.dark)
            tell_line(seat, "", LINE, say)
            sim.machine.fault("stop_asked", "person", f"{run}{' now' if now else ''}")

        Process(sim.machine, "hand", main)

    def amend_meanwhile(self) -> None:
        """Amend a step while engines work; what comes of it depends on the moment."""
        sim, stage = self.sim, self.stage
        step = self.source.choice(sorted(stage.plan.steps))
        content = persons_version(7, 9)

        def main(hand: Process) -> None:
            seat = Seat(hand, sim.disk, sim.watch, sim.dark)
            self.loose = True
            self.persons.add((step, content))
            if amend(seat, sim.machine.wall, stage.plan, step, content):
                sim.machine.fault("amended_meanwhile", "person", step)

        Process(sim.machine, "hand", main)

    # --- quiet ------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Nothing goes wrong any more: every run comes to rest, in bounded time."""
        sim = self.sim
        self.quiet, sim.nature.roughness = True, 0.0
        sim.calm()
        if sim.max_cost is not None:
            sim.max_cost = ENOUGH
        if sim.watch.money.budget is not None:
            sim.watch.money.budget = ENOUGH
        sim.machine.note("person", "now it is quiet")
        self._wait()
        over = [sim.watch.books[row.run].status == "superseded" for row in self._mine()]
        if all(over):  # also if there is none
            self.key = ""  # under it there is a run already, and it is over
            self._start(joined=False)
            self._wait()
        for run in self._open():
            for _ in range(MOST_ROUNDS):
                if sim.watch.books[run].status == "superseded" or sim.machine.violations:
                    break
                book, asked = sim.watch.books[run], sim.machine.now
                no = sorted(book.rejected & sim.dress.outside)
                engine = self._retry(run, no) if no else self._resume(run)
                self._wait()
                self._in_time(run, asked, engine)
                if not no and book.status != "waiting" and book.refused < asked:
                    break
        for row in sim.store.runs(LINE):
            status = sim.watch.books[row.run].status
            if status == "running":
                sim.machine.violated("I9", f"'{row.run}' still runs, and nobody drives it")

    def _wait(self) -> None:
        sim = self.sim
        start = max(sim.machine.now, sim.until, sim.nature.until)
        while self._beside() and not sim.machine.violations:
            self.process.sleep(3.0)
            self._say_yes()
            if sim.machine.now > start + LEASE + 2 * POLL + MOST_WORK:
                names = [engine.process.name for engine in sim.live()]
                sim.machine.violated("I9", f"{names} do not come to rest")
        self._say_yes()
        self._look()

    def _beside(self) -> bool:
        """Whether anybody else is about something."""
        return any(not p.is_over for p in self.sim.machine.processes if p is not self.process)

    def _say_yes(self) -> None:
        """In quiet times everything that is asked gets a yes."""
        books = self.sim.watch.books.values()
        waits = any("waiting" in book.phases.values() for book in books)
        if self.quiet and waits and not self.sim.machine.violations:
            self.sim.people.all_yes(self.seat)

    def _in_time(self, run: RunId, asked: float, engine: EngineProcess) -> None:
        """Whoever resumes a run that nobody drives has it after a lease and two polls."""
        book = self.sim.watch.books[run]
        if engine.process.error is not None:
            self.sim.machine.violated("I9", f"'{run}' is not resumed: {engine.process.error}")
        elif book.resumed > asked + LEASE + 2 * POLL + 1.0:
            self.sim.machine.violated("I9", f"'{run}' is taken over after {book.resumed - asked} s")

    def _look(self) -> None:
        """How engines ended: refused, overtaken, or by a fault that was injected; nothing else."""
        for engine in self.sim.engines:
            error, process = engine.process.error, engine.process
            if engine.seen or not process.ended or not process.lives:
                continue
            engine.seen = True
            machine = self.sim.machine
            words = f"ended: {error or 'well'}".splitlines()[0]
            machine.note(process.name, _FOLDER.sub("'", words))
            match error:
                case None:
                    continue
                case HeldError():
                    machine.fired["held"] += 1
                case FencedError():
                    machine.fired["fenced"] += 1
                    if process.name not in self.sim.watch.excused:
                        machine.violated("I9", f"{process.name} lived and was overtaken: {error}")
                case StoreError() if error.message.startswith("simulated") or engine.seat.failed:
                    continue
                case UsageError() if "removed meanwhile" in error.message:
                    machine.fired["removed_meanwhile"] += 1
                case _:
                    machine.violated("bug", "".join(traceback.format_exception(error)))
        for beside in self.sim.machine.processes[self._looked :]:
            if not beside.is_over:
                break
            self._looked += 1
            hands = beside.name.rstrip("0123456789") in {"hand", "answer", "gc"}
            if hands and beside.error is not None and beside.lives:
                self.sim.machine.violated("bug", "".join(traceback.format_exception(beside.error)))

    # --- afterwards -------------------------------------------------------------------------------

    def _check(self, fates: Mapping[StepId, Fate]) -> None:
        sim = self.sim
        if sim.machine.violations:
            return
        sim.watch.check_told(sim.store)
        sim.watch.money.check_bill(sim.provider.bill)
        self._once_under_a_key()
        last: State | None = None
        for row in self._mine():
            state = sim.watch.check_state(sim.store, row.run)
            if state is None or sim.machine.violations:
                return
            for problem in unexplained(sim.store, state, self.persons):
                sim.machine.violated("result", problem)
            if state.status != "superseded":
                last = state
                self._foretold(state, fates)
            for engine in sim.engines:
                mine = engine.engine.state if engine.engine and not engine.process.error else None
                last_word = mine and (mine.run, mine.seq) == (row.run, state.seq)
                if last_word and engine.process.ended and mine != state:
                    sim.machine.violated("I3", f"'{row.run}' in memory is not what is stored")
        if last is not None:  # what an escalated run left is made later, of what is then
            left = (step for step, now in last.steps.items() if now.phase == "pending")
            self.unsure.update(step for step in left if fates[step].phase in COMPLETE)
        if last is not None and not self.loose:
            for problem in misplaced(sim.store, last, sim.root, sim.watch.contents):
                sim.machine.violated("I7", problem)

    def _once_under_a_key(self) -> None:
        """However often a run was asked for under one key, it began once."""
        said = (recorded.event for recorded in self.sim.store.read(line_journal("", LINE)))
        opened = (event for event in said if isinstance(event, RunOpened) and event.key)
        gone = self.sim.watch.collected  # a key is forgotten with its run
        keys = Counter(event.key for event in opened if event.run not in gone)
        for key, count in keys.items():
            if count > 1:
                self.sim.machine.violated("D12", f"{count} runs began under '{key}'")

    def _foretold(self, state: State, fates: Mapping[StepId, Fate]) -> None:
        """Every step came to what the oracle says, as far as it can know."""
        if self.loose:
            return
        below = state.graph.below(self.unsure & state.steps.keys())
        for problem in foretold(self.sim.store, state, fates, below):
            self.sim.machine.violated("oracle", problem)
        self.unsure |= below
