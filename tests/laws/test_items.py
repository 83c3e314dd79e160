"""Runs whose items are found while they go on: the same in any order, after any crash, never made twice."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core.state import COMPLETE, State
from holdfast.engine.runs import resume_run, start_run
from holdfast.model.digest import digest_texts
from holdfast.model.event import Options, PlanExtended, Recorded
from holdfast.model.items import base_of, folded, item_id
from holdfast.model.newest import Newest
from holdfast.model.plan import Plan, RunId, Step, StepId
from holdfast.ports import Job, Store
from holdfast.store.memory import MemoryStore
from holdfast.testing import Answer, Crash, CrashingStore, ScriptedExecutor
from tests.laws.harness import LINE, Bed, When, drive
from tests.laws.plans import plan, step
from tests.laws.script import made, mishap
from tests.laws.test_crash import WHENS
from tests.laws.test_growth import check, outcome

pytestmark = pytest.mark.req("R182", "C24")

keys = st.sampled_from(["a", "b", "c/d", "é %", ""])
modes = st.sampled_from(["", "", "", "gone-first", "broken"])
lists = st.lists(st.tuples(keys, st.integers(0, 2), modes), max_size=4, unique_by=lambda x: x[0])
well = st.lists(
    st.tuples(keys, st.integers(0, 2), st.just("")), max_size=5, unique_by=lambda x: x[0]
)


def for_each(one: Step, source: str, **more: object) -> Step:
    """A step that is done for each item of what another one lists."""
    listed = replace(one, for_each=f"${{{{ steps.{source}.output }}}}", **more)  # type: ignore[arg-type]  # fields by their names
    return folded(listed)


def finding(found: list[tuple[str, int, str]], *, optional: bool = False) -> Plan:
    """A step that lists items, what is done for each, what is done for each of that, and one below all."""
    lists_them = replace(step("list"), values={"items": [list(one) for one in found]})
    each = replace(step("each"), values={"text": "${{ item.1 }}", "mode": "${{ item.2 }}"})
    more = replace(step("more"), values={"text": "${{ item.text }}"})
    return plan(
        lists_them,
        for_each(each, "list", key="${{ item.0 }}", retries=1, optional=optional),
        for_each(more, "each", key="${{ item.step }}"),
        replace(step("last", "each", "more"), values={"reads": 1}),
        step("beside"),
    )


class Counting(MemoryStore):
    """Counts what of the newest rows of a line is looked at, and the events that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.looked = 0

    def newest_of_all(self, project: str, line: str) -> Newest:
        found = super().newest_of_all(project, line)
        self.looked += len(found)
        return found

    def read(self, journal: str, after: int = 0) -> Iterator[Recorded]:
        for recorded in super().read(journal, after):
            self.looked += 1
            yield recorded


def executor(seed: int) -> ScriptedExecutor:
    def answer(job: Job) -> Answer:
        if "items" in job.step.values:
            return json.dumps(job.step.values["items"]).encode()
        read = {need: given.content() for need, given in job.given.items()}
        ended = mishap(job.step, job.attempt, 0)
        return ended or made(job.step, read, len(job.feedback), 0)

    return ScriptedExecutor(answer, seed=seed)


def begin(
    bed: Bed, of: Plan, by: ScriptedExecutor, store: Store | None = None, parallel: int = 4
) -> State:
    world = bed.world(by, store, parallel)
    return drive(lambda: start_run(world, of, LINE, Options()))


def whole(store: Store, run: RunId) -> bool:
    """Whether items of a step came all together, once, and after what lists them was complete."""
    done: set[StepId] = set()
    for recorded in store.read(f"run:{run}"):
        event = recorded.event
        if isinstance(event, PlanExtended):
            bases = {base_of(name) for name in event.added}
            if len(bases) != 1 or bases & done or event.step == "":
                return False
            done |= {base for base in bases if base is not None}
    return True


few = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))


@few
@given(lists, st.booleans(), st.integers(0, 99))
def test_the_result_does_not_depend_on_the_order_in_which_items_end(
    tmp_path_factory: pytest.TempPathFactory,
    found: list[tuple[str, int, str]],
    optional: bool,
    seed: int,
) -> None:
    of, root = finding(found, optional=optional), str(tmp_path_factory.mktemp("items"))
    first = begin(Bed(MemoryStore(), root), of, executor(seed))
    for other, parallel in ((seed + 1, 4), (seed + 2, 1), (seed + 3, 64)):
        bed = Bed(MemoryStore(), root)
        again = begin(bed, of, executor(other), parallel=parallel)
        check(bed.store, again)
        assert whole(bed.store, again.run)
        assert outcome(again) == outcome(first)
    names = {item_id(StepId("each"), key) for key, _, _ in found}
    assert {s for s in first.steps if base_of(s) == "each"} == names
    broken = {key for key, _, mode in found if mode == "broken"}
    escalates = len(found) > 1 and len(broken) == len(found)  # a whole wave failed
    assert (first.status == "escalated") == escalates
    here = first.steps[StepId("each")].phase
    if broken and not optional:
        assert here == "skipped"
    else:
        assert here == ("pending" if escalates else "done")


@few
@given(lists, st.booleans(), st.integers(0, 99))
def test_a_crash_at_any_point_leaves_no_items_half_added_and_repeats_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    found: list[tuple[str, int, str]],
    optional: bool,
    seed: int,
) -> None:
    of, root = finding(found, optional=optional), str(tmp_path_factory.mktemp("items"))
    bed = Bed(MemoryStore(), root)
    counting = CrashingStore(bed.store)
    expected = outcome(begin(bed, of, executor(seed), counting))
    for at in range(1, counting.changes + 1):
        for when in WHENS:
            other = Bed(MemoryStore(), root)
            assert outcome(after_a_crash(other, of, seed, at, when)) == expected


def after_a_crash(bed: Bed, of: Plan, seed: int, at: int, when: When) -> State:
    try:
        return begin(bed, of, executor(seed), CrashingStore(bed.store, at=at, when=when))
    except Crash:
        rows = bed.store.runs(LINE)
        if not rows:
            return begin(bed, of, executor(seed))
        run = rows[-1].run
        assert whole(bed.store, run)
        by = executor(seed)
        world = bed.world(by)
        state = drive(lambda: resume_run(world, run))
        check(bed.store, state)  # nothing is accepted twice
        assert whole(bed.store, run)
        return state


@few
@given(well, well, st.integers(0, 99))
def test_what_comes_back_is_reused_and_what_left_is_gone(
    tmp_path_factory: pytest.TempPathFactory,
    one: list[tuple[str, int, str]],
    two: list[tuple[str, int, str]],
    seed: int,
) -> None:
    bed = Bed(MemoryStore(), str(tmp_path_factory.mktemp("items")))
    first = begin(bed, finding(one), executor(seed))
    by = executor(seed + 1)
    second = begin(bed, finding(two), by)
    check(bed.store, second)
    known = {item_id(StepId("each"), key): text for key, text, _ in one}
    wanted = {item_id(StepId("each"), key): text for key, text, _ in two}
    fresh = {s for s, text in wanted.items() if known.get(s) != text}
    assert {s for s in by.executed if base_of(StepId(s)) == "each"} == fresh
    assert {s for s in second.steps if base_of(s) == "each"} == wanted.keys()
    third_by = executor(seed + 2)
    third = begin(bed, finding(one), third_by)
    check(bed.store, third)
    assert not third_by.executed
    assert third.plan == first.plan
    assert {s: h.digest for s, h in third.steps.items()} == {
        s: h.digest for s, h in first.steps.items()
    }
    assert all(here.phase in COMPLETE for here in third.steps.values())


@pytest.mark.parametrize("joined", [False, True])
def test_items_that_change_files_are_taken_over_in_a_row_without_looking_at_all_each_time(
    tmp_path: Path, joined: bool
) -> None:
    def change(job: Job) -> bytes:
        if "items" in job.step.values:
            return json.dumps(job.step.values["items"]).encode()
        Path(job.folder, f"own-{digest_texts(job.step.id)}").write_text("mine\n")
        return b"log"

    def looked(many: int) -> int:
        root = tmp_path / str(many)
        root.mkdir()
        store = Counting()
        bed = Bed(store, str(root))
        lists_them = replace(step("list"), values={"items": [*range(many)]})
        each = replace(step("each"), workspace="scratch", effects="workspace")
        of = plan(lists_them, for_each(each, "list", key="${{ item }}"))
        world = bed.world(ScriptedExecutor(change), parallel=1)
        ended = drive(lambda: start_run(world, of, LINE, Options(joined=joined)))
        assert ended.status == "completed"
        assert len([*root.glob("own-*")]) == many
        return store.looked

    few, more = looked(10), looked(80)
    assert more < 12 * few
