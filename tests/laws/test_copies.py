"""Steps that change files in copies, under crashes at any change of the store.

The law: what lies in the project is what the accepted steps changed, each set whole; a step is kept back if
and only if a step that is not ordered with it was accepted with other content for the same path; and what a
person decides is carried out once, wherever the process dies. Once it is, the plan stands as it is: a
further run executes nothing and leaves the project alone. Steps that are made again do not reverse it.
"""

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core.state import COMPLETE, State
from holdfast.engine.audit import audit
from holdfast.engine.decisions import Person
from holdfast.engine.journals import read_state
from holdfast.engine.resolve import Desk
from holdfast.engine.runs import resume_run, start_run
from holdfast.model.artifact import tree_entries
from holdfast.model.changeset import changes_in
from holdfast.model.digest import digest_bytes
from holdfast.model.event import AttemptLost, Options
from holdfast.model.plan import Input, Need, Plan, RunId, Step, StepId
from holdfast.ports import Job
from holdfast.store.memory import MemoryStore
from holdfast.testing import Crash, CrashingStore, ScriptedExecutor
from tests.laws.harness import LINE, Bed, When, drive

Writes = Mapping[str, Mapping[str, str | None]]  # for each step, content by path; None removes
FILES = {"p": "old\n", "q": "old\n"}
PATHS = ("p", "q", "d/r")


@st.composite
def plans(draw: st.DrawFn, *, declared: bool = False) -> tuple[Plan, Writes]:
    """A plan and what its steps write; with `declared`, they read what they write."""
    names = [f"s{number}" for number in range(draw(st.integers(2, 4)))]
    writes: dict[str, dict[str, str | None]] = {}
    steps: dict[StepId, Step] = {}
    for place, name in enumerate(names):
        above = draw(st.sets(st.sampled_from(names[:place]), max_size=1)) if place else set()
        content = st.sampled_from(["one\n", "two\n", None])
        if declared:  # each its own: who finds nothing to change only reads
            content = st.sampled_from([f"{name}\n", *([] if place else [None])])
        writes[name] = draw(st.dictionaries(st.sampled_from(PATHS), content, max_size=2))
        if declared:
            writes[name] = {p: t for p, t in writes[name].items() if t is not None or p in FILES}
        writes[name][f"own-{name}"] = name
        steps[StepId(name)] = Step(
            StepId(name),
            uses="script",
            needs=tuple(Need(StepId(need), "sequence") for need in above),
            workspace="scratch",
            effects="workspace",
            inputs=tuple(
                Input(path, optional=True) for path in writes[name] if declared and path in PATHS
            ),
        )
    return Plan("copies", steps), writes


def executor(writes: Writes, seed: int) -> ScriptedExecutor:
    def change(job: Job) -> bytes:
        """What the step changes, on top of the files that lie in its copy."""
        for path, text in writes[job.step.id].items():
            place = Path(job.folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                place.unlink(missing_ok=True)
            else:
                place.write_text(text)
        return b"log"

    return ScriptedExecutor(change, seed=seed)


def files(root: str) -> dict[str, str]:
    found = {}
    for place, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in {"scratch", "apply", "unchanged"}]
        for name in names:
            path = Path(place, name)
            found[str(path.relative_to(root))] = path.read_text()
    return found


def ordered(plan: Plan, one: str, other: str) -> bool:
    def above(step: str) -> set[str]:
        reached: set[str] = set()
        pending = [step]
        while pending:
            for need in plan.steps[StepId(pending.pop())].needs:
                if need.step not in reached:
                    reached.add(need.step)
                    pending.append(need.step)
        return reached

    return one in above(other) or other in above(one)


def effective(writes: Mapping[str, str | None]) -> dict[str, str]:
    """What a step leaves: a scratch directory is empty, so removing there removes nothing."""
    return {path: text for path, text in writes.items() if text is not None}


def check(bed: Bed, state: State, plan: Plan, writes: Writes) -> None:
    assert read_state(bed.store, state.run) == state
    assert audit(bed.store).problems == ()
    done = [s for s, here in state.steps.items() if here.phase in COMPLETE]
    waiting = [s for s, here in state.steps.items() if here.phase == "waiting"]
    there = files(bed.root)
    for step in plan.steps:
        mine = there.get(f"own-{step}") == step
        assert mine == (step in done), (step, there)
    for found in state.conflicts.values():
        if found.kind == "files":
            one, other = found.steps
            assert not ordered(plan, one, other)
            for path in found.paths:
                assert effective(writes[one])[path] != effective(writes[other])[path]
    for step in waiting:
        assert any(step in found.steps for found in state.conflicts.values())
    taken: dict[str, set[str | None]] = {}
    for step in done:
        digest = state.steps[step].digest
        assert digest is not None
        for change in changes_in(bed.store.get(digest)):
            text = None if change.digest is None else bed.store.get(change.digest).decode()
            taken.setdefault(change.path, set()).add(text)
    for path, texts in taken.items():
        assert there.get(path) in texts


def resumed(bed: Bed, run: RunId, script: ScriptedExecutor, store: CrashingStore) -> None:
    drive(lambda: resume_run(bed.world(script, store), run))


def settled(bed: Bed, run: RunId) -> None:
    """A person takes what lies in the project, for every conflict that is open."""
    desk = Desk(bed.store, "", LINE, bed.clock)
    for conflict in desk.open():
        if conflict.run == run:
            desk.decide(conflict, StepId(""), Person("me"), "")


@pytest.mark.req("C27", "C28")
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    drawn=plans(),
    seed=st.integers(0, 100),
    at=st.integers(1, 14),
    later=st.integers(1, 8),
    when=st.sampled_from(["before", "after"]),
)
def test_changes_are_whole_and_conflicts_true_wherever_the_process_dies(
    root: str, drawn: tuple[Plan, Writes], seed: int, at: int, later: int, when: When
) -> None:
    plan, writes = drawn
    with tempfile.TemporaryDirectory(dir=root) as folder:
        for path, text in FILES.items():
            Path(folder, path).write_text(text)
        bed = Bed(MemoryStore(), folder)
        script = executor(writes, seed)
        with suppress(Crash):
            world = bed.world(script, CrashingStore(bed.store, at=at, when=when))
            drive(lambda: start_run(world, plan, LINE, Options()))
        if not bed.store.runs(LINE):
            world = bed.world(script)
            drive(lambda: start_run(world, plan, LINE, Options()))
        run = bed.store.runs(LINE)[-1].run
        state = drive(lambda: resume_run(bed.world(script), run))
        check(bed, state, plan, writes)
        for _ in range(8):
            if state.status == "completed":
                break
            settled(bed, run)
            with suppress(Crash):
                resumed(bed, run, script, CrashingStore(bed.store, at=later, when=when))
            state = drive(lambda: resume_run(bed.world(script), run))
            check(bed, state, plan, writes)
        assert state.status == "completed"


def decided(
    folder: str, plan: Plan, writes: Writes, seed: int, data: st.DataObject
) -> tuple[Bed, set[str]]:
    """A run whose conflicts a person settled, one way or the other; the paths they were about."""
    for path, text in FILES.items():
        Path(folder, path).write_text(text)
    bed = Bed(MemoryStore(), folder)
    world = bed.world(executor(writes, seed))
    state = drive(lambda: start_run(world, plan, LINE, Options()))
    about: set[str] = set()
    for _ in range(12):
        if state.status == "completed":
            break
        desk = Desk(bed.store, "", LINE, bed.clock)
        for conflict in desk.open():
            about |= {*conflict.found.paths}
            if data.draw(st.integers(0, 3)) == 0:
                merge(folder, conflict.found.paths[0])
            sides = [StepId(""), *(step for step in conflict.record.steps if step)]
            desk.decide(conflict, data.draw(st.sampled_from(sides)), Person("me"), "")
        run = state.run
        state = drive(lambda: resume_run(bed.world(executor(writes, seed)), run))  # noqa: B023 - called right here
    assert state.status == "completed"
    return bed, about


@pytest.mark.req("C27", "C28")
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=plans(declared=True), seed=st.integers(0, 100), data=st.data())
def test_after_a_settled_conflict_the_unchanged_plan_stands(
    root: str, drawn: tuple[Plan, Writes], seed: int, data: st.DataObject
) -> None:
    plan, writes = drawn
    with tempfile.TemporaryDirectory(dir=root) as folder:
        bed, _ = decided(folder, plan, writes, seed, data)
        there = files(folder)
        for _ in range(2):
            script = executor(writes, seed)
            state = drive(lambda: start_run(bed.world(script), plan, LINE, Options()))  # noqa: B023 - called right here
            assert (state.status, script.executed) == ("completed", {})
            assert files(folder) == there


@pytest.mark.req("C28", "I7")
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=plans(declared=True), seed=st.integers(0, 100), data=st.data())
def test_a_settled_conflict_is_not_reversed_by_making_steps_again(
    root: str, drawn: tuple[Plan, Writes], seed: int, data: st.DataObject
) -> None:
    plan, writes = drawn
    beside = {name: replace(step, needs=()) for name, step in plan.steps.items()}
    plan = replace(plan, steps=beside)  # who comes after another may go on from what was decided
    with tempfile.TemporaryDirectory(dir=root) as folder:
        bed, about = decided(folder, plan, writes, seed, data)
        there = files(folder)
        script = executor(writes, seed + 1)
        state = drive(lambda: start_run(bed.world(script), plan, LINE, Options(force=True)))
        for _ in range(12):  # what is asked about is left as it is
            if state.status == "completed":
                break
            run = state.run
            settled(bed, run)
            state = drive(lambda: resume_run(bed.world(script), run))  # noqa: B023 - called right here
        assert state.status == "completed"
        now = files(folder)
        assert {path: now.get(path) for path in about} == {path: there.get(path) for path in about}


def merge(folder: str, path: str) -> None:
    """A person writes where steps are in conflict."""
    place = Path(folder, path)
    place.parent.mkdir(exist_ok=True)
    place.write_text(f"{place.read_text() if place.exists() else ''}merged\n")


@pytest.mark.req("C27", "I7")
@pytest.mark.parametrize("at", range(1, 9))
def test_an_edit_after_a_crash_within_a_take_over_is_kept_for_the_person(
    root: str, at: int
) -> None:
    step = Step(
        StepId("s"),
        uses="script",
        workspace="scratch",
        effects="workspace",
        inputs=(Input("p"),),
    )
    plan, writes = Plan("copies", {step.id: step}), {"s": {"p": "new\n"}}
    with tempfile.TemporaryDirectory(dir=root) as folder:
        place = Path(folder, "p")
        place.write_text("old\n")
        bed = Bed(MemoryStore(), folder)
        with suppress(Crash):
            world = bed.world(executor(writes, 0), CrashingStore(bed.store, at=at, when="before"))
            drive(lambda: start_run(world, plan, LINE, Options()))
        runs = bed.store.runs(LINE)
        state = read_state(bed.store, runs[-1].run) if runs else None
        if state is None or not state.running or place.read_text() == "old\n":
            return  # it died before the file was written, or after that was recorded
        place.write_text("mine\n")
        said: list[str] = []
        world = replace(bed.world(executor(writes, 0)), say=said.append)
        state = drive(lambda: resume_run(world, runs[-1].run))
        assert state.status == "completed"
        mine = digest_bytes(b"mine\n")
        told = f"'p' was changed by hand meanwhile and is kept: holdfast show {mine[:12]}"
        assert any(word.startswith(told) for word in said)
        events = [recorded.event for recorded in bed.store.read(f"run:{state.run}")]
        (lost,) = (event for event in events if isinstance(event, AttemptLost))
        assert lost.kept is not None
        assert [entry.digest for entry in tree_entries(bed.store.get(lost.kept))] == [mine]
        assert bed.store.get(mine) == b"mine\n"
        assert not Path(folder, "apply", state.run).exists()
        assert audit(bed.store).problems == (), "the index tells of it too"
