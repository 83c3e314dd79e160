"""What the simulation found, each as the story of a few engines; many seeds decide who comes first."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.engine.audit import audit
from holdfast.engine.runs import resume_run, start_run
from holdfast.errors import FencedError, HeldError
from holdfast.model.event import EffectStarted, Options
from holdfast.model.plan import Guard, Plan, RunId, Step, StepId
from holdfast.store.sqlite import SqliteStore
from tests.laws.harness import LINE, amend
from tests.laws.plans import plan, step
from tests.laws.script import persons_version
from tests.simulation.consent import EYE
from tests.simulation.disk import Seat
from tests.simulation.machine import Process
from tests.simulation.planted import hearts_unheard
from tests.simulation.play import LEASE, POLL, EngineProcess, Simulation
from tests.simulation.seeds import play, shown

Scene = Callable[[Simulation, Process], None]
SEEDS = range(6)
ONE = plan(step("y"))
RUN = RunId("r-001")


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        SqliteStore.open(f"{folder}/template", create=True).close()
        yield Path(folder)


def played(place: Path, scene: Scene, *, apart: bool, seed: int) -> Simulation:
    """Play a scene to its end; no law may be broken."""
    folder = tempfile.mkdtemp(dir=place)
    sim = Simulation(seed, folder, str(place / "template"), apart=apart)
    try:
        person = Process(sim.machine, "person", lambda process: scene(sim, process))
        sim.machine.run(lambda: person.error is not None or (person.is_over and not sim.live()))
        assert person.error is None, person.error
        assert not sim.machine.violations, "\n".join(sim.machine.trace)
        assert audit(sim.store).problems == ()
    finally:
        sim.close()
    return sim


def start(sim: Simulation, steps: Plan, *, joined: bool = False) -> EngineProcess:
    options = Options(joined=joined)
    return sim.spawn(lambda world: start_run(world, steps, LINE, options), "run")


def resume(sim: Simulation, run: RunId = RUN) -> EngineProcess:
    return sim.spawn(lambda world: resume_run(world, run), "resume")


def retry(sim: Simulation, run: RunId, step_id: StepId) -> EngineProcess:
    names = [step_id]
    found = sim.spawn(lambda world: resume_run(world, run, only=names, asked=names), "retry")
    sim.watch.consent.typed[found.process.name] = frozenset(names)
    return found


def until(sim: Simulation, person: Process, what: Callable[[], bool]) -> None:
    for _ in range(4000):
        if what():
            return
        person.sleep(0.1)
    raise AssertionError("\n".join(sim.machine.trace))


def statuses(sim: Simulation) -> list[str]:
    return [book.status for book in sim.watch.books.values()]


def errors(sim: Simulation) -> list[BaseException]:
    return [e.process.error for e in sim.engines if e.process.error and e.process.lives]


def dies_elsewhere(sim: Simulation, person: Process) -> None:
    """Two engines share a line, and the one that runs the step is killed."""
    engines = [start(sim, ONE, joined=True), start(sim, ONE, joined=True)]
    until(sim, person, lambda: sim.watch.executed.total() > 0)
    until(sim, person, lambda: all(engine.engine is not None for engine in engines))
    for engine in engines:
        assert engine.engine is not None
        if "running" in sim.watch.books[engine.engine.state.run].phases.values():
            sim.machine.kill([engine.process], "it works elsewhere")
    began = sim.machine.now
    until(sim, person, lambda: not sim.live())
    assert sim.machine.now < began + LEASE + 2 * POLL + 20


@pytest.mark.req("D16", "I9")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_claim_of_an_engine_that_died_elsewhere_is_free_after_a_lease(
    place: Path, seed: int
) -> None:
    sim = played(place, dies_elsewhere, apart=True, seed=seed)
    assert "completed" in statuses(sim)


@pytest.mark.req("D16", "I9")
def test_an_engine_that_hears_no_hearts_would_wait_for_ever(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hearts_unheard(monkeypatch)

    def play_all() -> None:
        for seed in SEEDS:
            played(place, dies_elsewhere, apart=True, seed=seed)

    with pytest.raises(AssertionError):
        play_all()


@pytest.mark.req("D16", "I9")
@pytest.mark.parametrize("seed", SEEDS)
def test_an_engine_that_waits_for_others_is_not_taken_for_dead(place: Path, seed: int) -> None:
    def scene(sim: Simulation, person: Process) -> None:
        sim.machine.kill([start(sim, ONE).process], "never began")
        dead = start(sim, ONE, joined=True)
        until(sim, person, lambda: sim.watch.executed.total() > 0)
        sim.machine.kill([dead.process], "leaves its hold behind")
        for _ in range(3):
            start(sim, ONE, joined=True)
            person.sleep(sim.machine.random.uniform(0, 0.5))

    sim = played(place, scene, apart=True, seed=seed)
    assert errors(sim) == []
    assert statuses(sim).count("completed") == 3


def comes_back(sim: Simulation, person: Process) -> None:
    """An engine stands still for longer than a lease, and another one joins meanwhile."""
    first = start(sim, ONE)
    until(sim, person, lambda: sim.watch.executed.total() > 0)
    first.process.stop(3 * LEASE)
    sim.watch.excused.add(first.process.name)
    start(sim, ONE, joined=True)


@pytest.mark.req("D16", "I10")
@pytest.mark.parametrize("seed", SEEDS)
def test_an_engine_that_was_taken_for_dead_writes_no_more(place: Path, seed: int) -> None:
    sim = played(place, comes_back, apart=True, seed=seed)
    assert [type(error) for error in errors(sim)] == [FencedError]
    assert statuses(sim) == ["superseded", "completed"]


@pytest.mark.req("I10")
@pytest.mark.parametrize("seed", SEEDS)
def test_of_two_that_resume_one_run_at_once_one_drives_it(place: Path, seed: int) -> None:
    def scene(sim: Simulation, person: Process) -> None:
        sim.hesitation = 0.0
        dead = start(sim, ONE, joined=True)
        until(sim, person, lambda: sim.watch.executed.total() > 0)
        sim.machine.kill([dead.process], "in the middle")
        sim.hesitation = 0.7
        person.sleep(1.0)
        resume(sim)
        resume(sim)

    sim = played(place, scene, apart=False, seed=seed)
    assert all(isinstance(error, HeldError) for error in errors(sim)), errors(sim)
    assert len(errors(sim)) < 2
    assert statuses(sim) == ["completed"]


@pytest.mark.req("I4")
@pytest.mark.parametrize("seed", SEEDS)
def test_engines_that_join_at_once_end_an_earlier_run_once(place: Path, seed: int) -> None:
    def scene(sim: Simulation, person: Process) -> None:
        sim.hesitation = 0.3
        dead = start(sim, ONE)
        until(sim, person, lambda: sim.watch.executed.total() > 0)
        sim.machine.kill([dead.process], "in the middle")
        person.sleep(1.0)
        for _ in range(3):
            start(sim, ONE, joined=True)

    sim = played(place, scene, apart=False, seed=seed)
    assert errors(sim) == []
    assert statuses(sim) == ["superseded", "completed", "completed", "completed"]


@pytest.mark.req("R75")
@pytest.mark.parametrize("is_refused", [False, True])
def test_the_audit_knows_a_run_that_was_joined_later(place: Path, *, is_refused: bool) -> None:
    """It accepts after what people said about the one that joined it, and began before."""
    found: list[list[str]] = []
    refused = step("z", skill=0, least=9)

    def scene(sim: Simulation, person: Process) -> None:
        start(sim, ONE)
        until(sim, person, lambda: not sim.live())
        changed = plan(step("y", text=2), refused) if is_refused else plan(step("y", text=2))
        start(sim, changed)
        until(sim, person, lambda: sim.watch.executed.total() > 1)
        beside = start(sim, changed, joined=True)
        until(sim, person, lambda: beside.engine is not None)
        seat = Seat(person, sim.disk, sim.watch, sim.dark)
        assert amend(seat, sim.machine.wall, ONE, StepId("y"), persons_version(1, 1))
        until(sim, person, lambda: not sim.live())
        rows = sim.store.artifacts(step=StepId("y"), status="accepted")
        found.append([row.source for row in rows])
        if is_refused:
            start(sim, changed)  # it takes the place of both
            until(sim, person, lambda: not sim.live())

    for seed in SEEDS:
        played(place, scene, apart=False, seed=seed)
    assert ["generated", "human", "generated"] in found


@pytest.mark.req("R75")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_that_another_engine_finished_meanwhile_is_not_given_up(
    place: Path, seed: int
) -> None:
    """Its files are in the way for a moment, and the run that was joined is known to the audit."""
    writes = replace(step("y"), produces=("out/y.txt",))
    steps = Plan(LINE, {StepId("y"): writes})

    def scene(sim: Simulation, person: Process) -> None:
        dead = start(sim, steps)
        until(sim, person, lambda: sim.watch.executed.total() > 0)
        sim.machine.kill([dead.process], "half a file is written")
        beside = start(sim, steps, joined=True)
        until(sim, person, lambda: beside.engine is not None or beside.process.is_over)
        until(sim, person, lambda: not sim.live())

    def joined_in_time(sim: Simulation, person: Process) -> None:
        first = start(sim, steps)
        until(sim, person, lambda: sim.watch.executed.total() > 0)
        beside = start(sim, steps, joined=True)
        until(sim, person, lambda: beside.engine is not None)
        sim.machine.kill([first.process], "half a file is written")
        until(sim, person, lambda: not sim.live())
        resume(sim)

    played(place, scene, apart=False, seed=seed)
    sim = played(place, joined_in_time, apart=False, seed=seed)
    assert errors(sim) == []
    assert set(statuses(sim)) == {"completed"}


@pytest.mark.req("I10", "I11")
@pytest.mark.parametrize("seed", SEEDS)
def test_what_waited_for_a_person_may_be_accepted_after_what_another_engine_made(
    place: Path, seed: int
) -> None:
    """A candidate that is kept for people has no claim: the audit does not miss it."""
    watched = replace(step("y"), guards=(Guard("human", name=EYE),))

    def scene(sim: Simulation, person: Process) -> None:
        sim.stays, sim.watch.consent.watched = False, frozenset({watched.id})
        for _ in range(3):
            start(sim, plan(watched), joined=True)
        until(sim, person, lambda: not sim.live())
        books = sim.watch.books
        runs = sorted(books, key=lambda run: -books[run].started[watched.id].fence)
        for run in runs:
            while books[run].status == "waiting":  # some yeses are for once
                sim.people.all_yes(Seat(person, sim.disk, sim.watch, sim.dark))
                resume(sim, run)
                until(sim, person, lambda: not sim.live())

    sim = played(place, scene, apart=False, seed=seed)
    assert statuses(sim) == ["completed"] * 3


@pytest.mark.req("I17", "D16")
@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_an_effect_that_a_later_run_left_open_is_not_repeated_by_an_earlier_one(
    place: Path, seed: int, *, joined: bool
) -> None:
    """The run that is resumed tried the step itself, and knows how that ended; the later one did not."""
    once = replace(step("y", skill=0, least=9), effects="external", retries=9)

    def scene(sim: Simulation, person: Process) -> None:
        sim.stays = False
        first = start(sim, plan(once), joined=joined)
        until(sim, person, lambda: sim.watch.executed[once.id] > 0)
        beside = start(sim, plan(once), joined=True)
        until(sim, person, lambda: beside.engine is not None)
        first.interrupt(now=False)
        until(sim, person, lambda: first.process.is_over)
        until(sim, person, lambda: sim.watch.books[RunId("r-002")].attempts(once.id) > 1)
        until(sim, person, lambda: sim.watch.books[RunId("r-002")].phases[once.id] == "running")
        sim.machine.kill([beside.process], "in the middle")
        before = sim.watch.executed[once.id]
        resume(sim)
        until(sim, person, lambda: not sim.live())
        assert sim.watch.executed[once.id] == before

    sim = played(place, scene, apart=False, seed=seed)
    assert statuses(sim) == ["waiting", "running"]


def dies_beside(sim: Simulation, person: Process, once: Step) -> None:
    """One of two runs dies in the middle of an effect; the other one is held for it."""
    first = start(sim, plan(once))
    until(sim, person, lambda: sim.watch.executed[once.id] > 0)
    beside = start(sim, plan(once), joined=True)
    until(sim, person, lambda: beside.engine is not None)
    sim.machine.kill([first.process], "in the middle")
    until(sim, person, lambda: not sim.live())


@pytest.mark.req("I17", "R74")
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_a_run_that_is_held_for_the_effect_of_another_one_does_not_hold_that_one(
    place: Path, seed: int
) -> None:
    """One yes is enough: the guard refuses what the repetition makes, and the retries need no other."""
    once = replace(step("y", skill=0, least=9), effects="external", retries=3)

    def scene(sim: Simulation, person: Process) -> None:
        sim.stays = False
        dies_beside(sim, person, once)
        assert statuses(sim) == ["running", "waiting"]
        resume(sim)
        until(sim, person, lambda: not sim.live())
        assert statuses(sim) == ["waiting", "waiting"]
        sim.people.all_yes(Seat(person, sim.disk, sim.watch, sim.dark))
        resume(sim)
        until(sim, person, lambda: not sim.live())

    sim = played(place, scene, apart=False, seed=seed)
    assert statuses(sim) == ["failed", "waiting"]


@pytest.mark.req("I17", "D16")
@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_an_effect_that_an_earlier_run_left_open_later_is_not_repeated_by_the_next_one(
    place: Path, seed: int, *, idempotent: bool
) -> None:
    """The run that joined has done with its own effect; the one that it joined is resumed, and dies."""
    once = replace(
        step("y", skill=0, least=9), effects="external", retries=0, idempotent=idempotent
    )
    keys: list[str] = []

    def scene(sim: Simulation, person: Process) -> None:
        sim.stays = False
        start(sim, plan(once))
        until(sim, person, lambda: sim.watch.executed[once.id] > 0)
        beside = start(sim, plan(once), joined=True)
        until(sim, person, lambda: beside.engine is not None)
        until(sim, person, lambda: not sim.live())
        assert statuses(sim) == ["failed", "failed"]
        before = sim.watch.executed[once.id]
        again = resume(sim)
        until(sim, person, lambda: sim.watch.executed[once.id] > before)
        sim.machine.kill([again.process], "in the middle")
        start(sim, plan(once))
        until(sim, person, lambda: not sim.live())
        assert sim.watch.executed[once.id] == before + 1 + idempotent
        for run in sim.watch.books:
            found = [one.event for one in sim.store.read(f"run:{run}")]
            keys.extend(event.key for event in found if isinstance(event, EffectStarted))

    sim = played(place, scene, apart=False, seed=seed)
    assert statuses(sim)[2] == ("failed" if idempotent else "waiting")
    if idempotent:
        assert keys[-1] == keys[-3], "the same effect has the same key"


@pytest.mark.req("I17", "D16")
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_who_wants_a_step_done_again_knows_nothing_of_what_others_leave_open_later(
    place: Path, seed: int
) -> None:
    once = replace(step("y", skill=0, least=9), effects="external", retries=0)
    wanted = Options(force_steps=(once.id,))

    def forced(sim: Simulation, *, joined: bool) -> EngineProcess:
        options = replace(wanted, joined=joined)
        return sim.spawn(lambda world: start_run(world, plan(once), LINE, options), "run")

    def scene(sim: Simulation, person: Process) -> None:
        sim.stays = False
        first = forced(sim, joined=False)
        until(sim, person, lambda: sim.watch.executed[once.id] > 0)
        beside = forced(sim, joined=True)
        until(sim, person, lambda: first.process.is_over)
        until(sim, person, lambda: sim.watch.executed[once.id] > 1)
        sim.machine.kill([beside.process], "in the middle")
        resume(sim)
        until(sim, person, lambda: not sim.live())
        assert sim.watch.executed[once.id] == 2

    sim = played(place, scene, apart=False, seed=seed)
    assert statuses(sim) == ["waiting", "running"]


@pytest.mark.req("R148", "I5", "I17")
@pytest.mark.parametrize(
    "seed", [30038, 30738, 30901, 42832, 43769, 52099, 52528, 53374, 54125, 54662, 61122, 72675]
)
def test_a_seed_that_found_something_finds_it_no_more(seed: int) -> None:
    (result,) = play(range(seed, seed + 1))
    assert not result.violations, shown(result)


@pytest.mark.req("I17")
@pytest.mark.parametrize("after", [False, True])
def test_what_a_person_gave_before_an_effect_does_not_settle_it(
    place: Path, *, after: bool
) -> None:
    """It stands in a run of the old plan after an attempt of the new one was lost."""
    once = replace(step("y"), effects="external", retries=0)
    other = replace(step("y", text=2), effects="external", retries=0)

    def scene(sim: Simulation, person: Process) -> None:
        sim.stays = False
        seat = Seat(person, sim.disk, sim.watch, sim.dark)

        def give() -> None:
            assert amend(seat, sim.machine.wall, plan(once), once.id, persons_version(1, 9))

        start(sim, plan(once))
        until(sim, person, lambda: not sim.live())
        if not after:
            give()
        lost = start(sim, plan(other))
        until(sim, person, lambda: sim.watch.executed[once.id] > 1)
        sim.machine.kill([lost.process], "in the middle")
        if after:
            give()
        for steps in (plan(once), plan(other)):
            start(sim, steps)
            until(sim, person, lambda: not sim.live())

    sim = played(place, scene, apart=False, seed=0)
    assert statuses(sim)[2:] == ["completed", "completed" if after else "waiting"]


@pytest.mark.req("I17", "D16")
@pytest.mark.parametrize("first_is_forced", [False, True])
@pytest.mark.parametrize("seed", SEEDS[:3])
def test_a_wish_covers_only_what_was_open_when_it_was_said(
    place: Path, seed: int, *, first_is_forced: bool
) -> None:
    """One of two engines was told to do the step again; the other one begins it and dies."""
    once = replace(step("y", "x"), effects="external", retries=0)
    steps = plan(step("x"), once)

    def begun(sim: Simulation, *, forced: bool) -> EngineProcess:
        options = Options(joined=True, force_steps=(once.id,) if forced else ())
        return sim.spawn(lambda world: start_run(world, steps, LINE, options), "run")

    def scene(sim: Simulation, person: Process) -> None:
        sim.stays = False
        first = begun(sim, forced=first_is_forced)
        until(sim, person, lambda: sim.watch.executed[StepId("x")] > 0)
        beside = begun(sim, forced=not first_is_forced)
        until(sim, person, lambda: beside.engine is not None)
        if first_is_forced:
            sim.machine.kill([first.process], "before its effect")
        until(sim, person, lambda: sim.watch.executed[once.id] > 0)
        acts = beside if first_is_forced else first
        sim.machine.kill([acts.process], "in the middle")
        if first_is_forced:
            resume(sim)
        until(sim, person, lambda: not sim.live())
        assert sim.watch.executed[once.id] == 1, "\n".join(sim.machine.trace)

    sim = played(place, scene, apart=False, seed=seed)
    assert "waiting" in statuses(sim)


@pytest.mark.req("I17", "R96")
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_what_a_person_gives_settles_it_for_the_run_that_left_it_open_too(
    place: Path, seed: int
) -> None:
    once = replace(step("y"), effects="external", retries=0)

    def scene(sim: Simulation, person: Process) -> None:
        sim.stays = False
        start(sim, plan(once))
        until(sim, person, lambda: not sim.live())
        other = replace(step("y", text=2), effects="external", retries=0)
        first = start(sim, plan(other))
        until(sim, person, lambda: sim.watch.executed[once.id] > 1)
        beside = start(sim, plan(other), joined=True)
        until(sim, person, lambda: beside.engine is not None)
        sim.machine.kill([first.process], "in the middle")
        until(sim, person, lambda: not sim.live())
        resume(sim, RunId("r-002"))
        until(sim, person, lambda: not sim.live())
        assert statuses(sim)[1:] == ["waiting", "waiting"]
        seat = Seat(person, sim.disk, sim.watch, sim.dark)
        assert amend(seat, sim.machine.wall, plan(other), once.id, persons_version(1, 9))
        for run in ("r-002", "r-003"):
            resume(sim, RunId(run))
            until(sim, person, lambda: not sim.live())
        assert sim.watch.executed[once.id] == 2

    sim = played(place, scene, apart=False, seed=seed)
    assert statuses(sim) == ["completed"] * 3


@pytest.mark.req("I17", "R96")
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_a_yes_is_about_what_was_open_then_and_nobody_is_asked_about_what_is_known(
    place: Path, seed: int
) -> None:
    """Two runs wait for one effect. What one does under its yes, and leaves open, is news to the other."""
    once = replace(step("y"), effects="external", retries=0)
    first, second = RUN, RunId("r-002")

    def scene(sim: Simulation, person: Process) -> None:
        sim.stays = False
        dies_beside(sim, person, once)
        resume(sim, first)
        until(sim, person, lambda: not sim.live())
        assert statuses(sim) == ["waiting", "waiting"]
        seat = Seat(person, sim.disk, sim.watch, sim.dark)
        sim.people.all_yes(seat)
        again = retry(sim, second, once.id)
        until(sim, person, lambda: sim.watch.executed[once.id] > 1)
        sim.machine.kill([again.process], "in the middle of the repetition")
        resume(sim, first)
        until(sim, person, lambda: not sim.live())
        assert sim.watch.executed[once.id] == 2, "the yes knew nothing of that one"
        while statuses(sim)[0] == "waiting":
            sim.people.all_yes(seat)
            resume(sim, first)
            until(sim, person, lambda: not sim.live())
        assert sim.watch.executed[once.id] == 3
        resume(sim, second)
        until(sim, person, lambda: not sim.live())
        assert sim.watch.executed[once.id] == 3

    sim = played(place, scene, apart=False, seed=seed)
    assert statuses(sim)[0] == "completed"


@pytest.mark.req("I17", "R74")
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_who_waits_for_what_another_run_settled_meanwhile_goes_on(place: Path, seed: int) -> None:
    once = replace(step("y"), effects="external", retries=0)

    def scene(sim: Simulation, person: Process) -> None:
        sim.stays = False
        dies_beside(sim, person, once)
        retry(sim, RUN, once.id)
        until(sim, person, lambda: not sim.live())
        assert statuses(sim) == ["completed", "waiting"]
        resume(sim, RunId("r-002"))
        until(sim, person, lambda: not sim.live())
        assert sim.watch.executed[once.id] == 2

    sim = played(place, scene, apart=False, seed=seed)
    assert statuses(sim) == ["completed", "completed"]
