"""Short histories told one by one: what a person does, and what must follow."""

import asyncio

import pytest

from holdfast.engine.journals import read_state
from holdfast.engine.rebuilt import rebuilt_index
from holdfast.engine.runs import resume_run, start_run
from holdfast.errors import IntegrityError
from holdfast.model.digest import digest_bytes
from holdfast.model.event import AttemptStarted, Options, Reason, RunEnded, RunStarted
from holdfast.model.plan import Limits, Plan, RunId, StepId, plan_bytes
from holdfast.ports import Append, Batch, Job
from holdfast.store.memory import MemoryStore
from holdfast.testing import Answer, FakeClock, ScriptedExecutor, failed, lost, rejected
from tests.laws.harness import LINE, Bed, Stage, drive, play, resume, start
from tests.laws.plans import chain, plan, step
from tests.laws.script import persons_version, scripted
from tests.laws.test_crash import crash_everywhere

Z, M, A, B = StepId("z"), StepId("m"), StepId("a"), StepId("b")


@pytest.fixture
def bed(root: str) -> Bed:
    return Bed(MemoryStore(), root)


@pytest.mark.req("R42", "R43", "R44")
def test_everything_runs_once_then_nothing_then_all_of_it_by_force(bed: Bed) -> None:
    steps = plan(*chain("z", "m", "a"))
    play(bed, (Stage(steps), Stage(steps), Stage(steps, Options(force=True))))


@pytest.mark.req("R46", "E4")
def test_a_change_reaches_what_the_alphabet_puts_first(bed: Bed) -> None:
    executor = scripted({})
    start(bed, Stage(plan(*chain("z", "m", "a"))), scripted({}))
    start(bed, Stage(plan(step("z", text=2), *chain("z", "m", "a")[1:])), executor)
    assert executor.executed == {"z": 1, "m": 1, "a": 1}


@pytest.mark.req("R48", "E5")
def test_a_persons_version_stands_and_what_reads_it_runs_again(bed: Bed) -> None:
    steps = plan(*chain("z", "m", "a"))
    amended = ((M, persons_version(1, 0)),)
    crash_everywhere(bed.root, (Stage(steps), Stage(steps, amended=amended), Stage(steps)), 0)
    play(bed, (Stage(steps), Stage(steps, amended=amended), Stage(steps)))
    newest = bed.store.newest("", LINE, M)
    assert newest is not None
    assert newest.source == "human"
    assert bed.store.get(newest.digest) == persons_version(1, 0)


@pytest.mark.req("R48", "E5")
def test_a_persons_version_given_while_the_run_goes_on_counts(bed: Bed) -> None:
    steps = plan(step("z"), step("m", "z", kind="sequence"))
    start(bed, Stage(steps), scripted({}))

    def answer(_: Job) -> Answer:
        bed.amend(steps, M, persons_version(1, 0))
        return b"z again"

    state = start(bed, Stage(steps, Options(force_steps=(Z,))), ScriptedExecutor(answer))
    assert state.steps[M].reason == Reason("amended")
    assert state.steps[M].digest == digest_bytes(persons_version(1, 0))


@pytest.mark.req("E9")
def test_other_content_under_the_same_key_runs_what_is_below(bed: Bed) -> None:
    steps, salted = plan(*chain("z", "m", "a")), {Z: 1}
    executor = scripted(salted)
    start(bed, Stage(steps), scripted({}))
    state = start(bed, Stage(steps, Options(force_steps=(Z,)), salted), executor)
    assert executor.executed == {"z": 1, "m": 1, "a": 1}
    assert state.steps[M].reason == Reason("upstream_changed", ("z",))


@pytest.mark.req("R58")
def test_with_cutoff_equal_content_stops_the_change(bed: Bed) -> None:
    before, after = chain("z", "m", "a"), (step("z", noise=1), *chain("z", "m", "a")[1:])
    executor = scripted({})
    start(bed, Stage(plan(*before)), scripted({}))
    state = start(bed, Stage(plan(*after), Options(cutoff=True)), executor)
    assert executor.executed == {"z": 1}
    codes = {name: found.reason.code for name, found in state.steps.items() if found.reason}
    assert codes == {Z: "parameters_changed", M: "unchanged_content", A: "unchanged_content"}


@pytest.mark.req("R59", "E10")
def test_nothing_below_a_failure_runs_or_is_reused_and_later_it_does(bed: Bed) -> None:
    good = plan(*chain("z", "m", "a"))
    bad = plan(step("z", mode="broken", retries=0), *chain("z", "m", "a")[1:])
    play(bed, (Stage(good), Stage(bad), Stage(good), Stage(bad), Stage(bad)))


@pytest.mark.req("R93", "E12", "E13")
def test_resume_with_only_failures_left_tries_them_again(bed: Bed) -> None:
    steps = plan(step("z"), step("m", "z", retries=0), step("a", "m"))
    executor = scripted({})
    executor.mishap("m", failed())
    first = start(bed, Stage(steps), executor)
    assert (first.status, first.steps[M].phase, first.steps[A].phase) == (
        "failed",
        "failed",
        "skipped",
    )
    again = scripted({})
    second = resume(bed, first.run, again)
    assert second.run == first.run
    assert second.status == "completed"
    assert second.counts["failed"] == 0
    assert again.executed == {"m": 1, "a": 1}
    given = {need: item.content() for need, item in again.jobs[0].given.items()}
    digest = second.steps[Z].digest
    assert digest is not None
    assert given == {Z: bed.store.get(digest)}


@pytest.mark.req("R77", "E6")
def test_feedback_accumulates_and_retries_are_tries_after_the_first(bed: Bed) -> None:
    executor = ScriptedExecutor(lambda _: b"never reached")
    executor.mishap("z", *(rejected(f"no {n}", b"%d" % n, guard="g") for n in range(3)))
    state = start(bed, Stage(plan(step("z", retries=2))), executor)
    assert executor.executed == {"z": 3}
    heard = [[fed.text for fed in job.feedback] for job in executor.jobs]
    assert heard == [[], ["no 0"], ["no 0", "no 1"]]
    assert state.steps[Z].reason == Reason("guard_rejected", ("g",))
    kept = [bed.store.get(row.digest) for row in bed.store.artifacts(status="rejected")]
    assert kept == [b"0", b"1", b"2"]


@pytest.mark.req("R77")
def test_lost_attempts_and_refused_ones_have_budgets_of_their_own(bed: Bed) -> None:
    executor = ScriptedExecutor(lambda _: b"made")
    executor.mishap("z", rejected("no"), lost(), rejected("no"))
    state = start(bed, Stage(plan(step("z", retries=2))), executor)
    assert (state.status, executor.executed) == ("completed", {"z": 4})
    executor.mishap("m", lost(), lost(code="timed_out"))
    state = start(bed, Stage(plan(step("m", retries=2))), executor)
    assert executor.executed["m"] == 2
    assert state.steps[M].reason == Reason("timed_out")


@pytest.mark.req("R41")
def test_a_rejected_artifact_is_kept_and_never_reused(bed: Bed) -> None:
    refused = plan(step("z", least=3, skill=0, retries=1))
    play(bed, (Stage(refused), Stage(refused)))
    assert {row.status for row in bed.store.artifacts()} == {"rejected"}


@pytest.mark.req("R50", "R51")
def test_what_was_accepted_tells_its_refs_and_where_it_came_from(bed: Bed) -> None:
    state = start(bed, Stage(plan(*chain("z", "m"))), scripted({}))
    (row,) = bed.store.artifacts(step=M, status="accepted", source="generated")
    assert (row.config_ref, row.digest) == (state.steps[M].config_ref, state.steps[M].digest)
    assert (row.run, row.line, row.attempt) == (state.run, LINE, 1)


@pytest.mark.req("E15")
def test_two_lines_with_a_step_of_the_same_name_do_not_meet(bed: Bed) -> None:
    one, other = plan(step("z")), plan(step("z"))
    for name, steps in (("one", one), ("two", other), ("one", one)):
        executor = scripted({})
        world = bed.world(executor)
        state = drive(lambda: start_run(world, steps, name, Options()))  # noqa: B023 - called now
        assert state.line == name
        assert executor.executed["z"] == (1 if len(bed.store.runs(name)) == 1 else 0)


@pytest.mark.req("R10")
def test_a_snapshot_of_another_structure_is_refused_on_resume(bed: Bed) -> None:
    state = start(bed, Stage(plan(step("z", retries=0, mode="broken"))), scripted({}))
    journal = "run:r-forged"
    fake = RunStarted(
        run=RunId("r-forged"),
        line=LINE,
        project="",
        plan=bed.store.put(plan_bytes(plan(step("z"), step("m")))),
        w_ref=state.w_ref,
        options=Options(),
        engine="e",
    )
    batch = Batch([Append(journal, 0, [(1, fake)], 1)])
    bed.store.open_run(fake.run, "", LINE, batch)
    with pytest.raises(IntegrityError, match="structure"):
        resume_run(bed.world(scripted({})), fake.run)


# --- guards that change, and a death meanwhile ---------------------------------------------------


def test_a_kept_artifact_is_guarded_again_also_after_a_crash(root: str) -> None:
    crash_everywhere(root, (Stage(plan(step("z", least=2))), Stage(plan(step("z", least=1)))), 0)


def test_what_the_changed_guard_refuses_is_made_again_also_after_a_crash(root: str) -> None:
    crash_everywhere(root, (Stage(plan(step("z", least=1))), Stage(plan(step("z", least=3)))), 0)


def test_a_persons_version_that_a_changed_guard_refuses_is_feedback_too(root: str) -> None:
    version = ((Z, persons_version(1, 1)),)
    later = Stage(plan(step("z", least=3)), amended=version)
    crash_everywhere(root, (Stage(plan(step("z", least=0))), later), 0)


# --- the index follows from the journals -----------------------------------------------------------


@pytest.mark.req("R75")
def test_reuse_by_content_of_a_persons_version_can_be_rebuilt(root: str) -> None:
    below = step("b", "a", reuse="content")
    version = ((B, persons_version(1, 1)),)
    stages = (
        Stage(plan(step("a"), below)),
        Stage(plan(step("a", noise=1), below), amended=version),
    )
    crash_everywhere(root, stages, 0)


@pytest.mark.req("R75")
def test_reuse_by_content_is_rebuilt_under_the_right_inputs(bed: Bed) -> None:
    below = step("b", "a", reads=0, reuse="content")
    above = (step("a"), step("a", text=2), step("a", noise=1))
    play(bed, tuple(Stage(plan(a, below)) for a in above))
    rows = list(bed.store.artifacts())
    bed.store.replace_artifacts(lambda: rebuilt_index(bed.store))
    assert list(bed.store.artifacts()) == rows


# --- limits and stops ------------------------------------------------------------------------------


def limited(bed: Bed, steps: Plan) -> tuple[str | None, int]:
    executor = scripted({})
    world = bed.world(executor, parallel=1)
    state = drive(lambda: start_run(world, steps, LINE, Options()))
    return state.status, executor.executed.total()


def test_no_attempt_begins_when_the_time_is_up(bed: Bed) -> None:
    bed.clock = FakeClock(0, tick=300)
    status, executed = limited(bed, plan(*map(step, "zmaqkb"), limits=Limits(time=5)))
    assert status == "limit"
    assert executed < 6


def test_no_attempt_begins_beyond_the_number_of_attempts(bed: Bed) -> None:
    assert limited(bed, plan(*map(step, "zmaqkb"), limits=Limits(attempts=2))) == ("limit", 2)


def test_a_run_that_is_stopped_while_it_looks_comes_to_rest(bed: Bed) -> None:
    steps = plan(*(step(f"s{n}") for n in range(2000)))
    _, engine = start_run(bed.world(scripted({}), parallel=1), steps, LINE, Options())

    async def stopped() -> str | None:
        driving = asyncio.create_task(engine.drive())
        await asyncio.sleep(0)  # the first steps have been looked at, most have not
        await asyncio.sleep(0)
        engine.stop()
        async with asyncio.timeout(60):
            await driving
        return engine.state.status

    assert asyncio.run(stopped()) == "paused"


@pytest.mark.req("R88")
def test_a_resumed_run_does_only_what_is_left(bed: Bed) -> None:
    steps = plan(*map(step, "zmaq"), limits=Limits(attempts=2))
    assert limited(bed, steps) == ("limit", 2)
    run = bed.store.runs(LINE)[-1].run
    left = scripted({})
    state = resume(bed, run, left)
    assert state.status == "completed"
    assert left.executed.total() == 2
    journal = [recorded.event for recorded in bed.store.read(f"run:{run}")]
    assert sum(isinstance(event, AttemptStarted) for event in journal) == 4
    assert isinstance(journal[-1], RunEnded)
    assert read_state(bed.store, run) == state
