"""A run that knows at once that a plan stands decides as one that looks at every step."""

import contextlib
import hashlib
import itertools
import os
import shutil
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core.state import State
from holdfast.engine.audit import audit
from holdfast.engine.foresee import Foreseen, foresee
from holdfast.engine.journals import read_state
from holdfast.engine.lines import line_journal
from holdfast.engine.repeat import Repeated, repeat_run
from holdfast.engine.runs import start_run
from holdfast.engine.stamps import stamps_of
from holdfast.engine.survey import SETTLED_NS, Survey
from holdfast.engine.unchanged import Question, read_note
from holdfast.engine.world import World
from holdfast.generators.contract import collect
from holdfast.generators.identity import shell_identity
from holdfast.model.digest import Digest
from holdfast.model.event import Options, Recorded, RunStarted, StepsReused
from holdfast.model.line import RunOpened
from holdfast.model.plan import PARTS, Guard, Input, Limits, Need, Plan, Step, StepId
from holdfast.ports import Candidate, Executor, Job
from holdfast.store.memory import MemoryStore
from holdfast.testing import Crash, CrashingStore, FakeClock, ScriptedExecutor
from tests.laws.harness import LINE, Bed, Stage, drive, foretell, outcome, resume, start
from tests.laws.oracle import Oracle
from tests.laws.plans import chain, plan, step
from tests.laws.scenarios import scenarios
from tests.laws.script import scripted

slow = list(HealthCheck)
PLAIN = Options()
NEEDS = (Need(StepId("a")),)


def repeated(bed: Bed, stage: Stage, executor: Executor) -> Repeated | None:
    return repeat_run(bed.world(executor), stage.plan, LINE, stage.options, dict)


def either(bed: Bed, stage: Stage) -> tuple[State, bool]:
    """A run the short way if that is certain; and whether it was."""
    found = repeated(bed, stage, scripted(stage.salts))
    if found is None:
        return start(bed, stage, scripted(stage.salts)), False
    return found.state(), True


def told(bed: Bed, state: State) -> list[object]:
    """A run's journal without names and times, neighbouring reuse joined."""
    found: list[object] = []
    for recorded in bed.store.read(f"run:{state.run}"):
        event = recorded.event
        if isinstance(event, StepsReused):
            if isinstance(found[-1], StepsReused):
                event = StepsReused((*found.pop().items, *event.items))  # type: ignore[attr-defined]
            found.append(event)
        else:
            found.append(type(event))
    return found


def ahead(bed: Bed, stage: Stage, executor: Executor) -> Foreseen:
    world = bed.world(executor)
    survey = Survey(bed.root, bed.store, executor, stage.plan, world.ignores)
    return foresee(stage.plan, LINE, bed.root, bed.store, survey, stage.options, bed.clock)


def looks(foreseen: Foreseen) -> dict[StepId, object]:
    return {s: (o.decision, o.reason, o.written) for s, o in foreseen.outlooks.items()}


@pytest.mark.req("R54")
@settings(max_examples=30, deadline=None, suppress_health_check=slow)
@given(stages=scenarios(8))
def test_both_ways_lead_to_the_same_journals(root: str, stages: tuple[Stage, ...]) -> None:
    with tempfile.TemporaryDirectory(dir=root) as one, tempfile.TemporaryDirectory(dir=root) as two:
        short, whole, oracle = Bed(MemoryStore(), one), Bed(MemoryStore(), two), Oracle()
        for stage in stages:
            for step_id, content in stage.amended:
                short.amend(stage.plan, step_id, content)
                whole.amend(stage.plan, step_id, content)
                oracle.amend(step_id, content)
            plain = replace(stage, options=PLAIN, amended=())
            for asked in (replace(stage, amended=()), plain, plain, plain):
                fates = foretell(oracle, asked)
                state, was_short = either(short, asked)
                other = start(whole, asked, scripted(asked.salts))
                assert outcome(state) == outcome(other)
                assert told(short, state) == told(whole, other)
                assert read_state(short.store, state.run) == state
                if was_short:
                    assert all(fate.phase == "reused" for fate in fates.values())
                executors = scripted(asked.salts), scripted(asked.salts)
                assert looks(ahead(short, plain, executors[0])) == looks(
                    ahead(whole, plain, executors[1])
                )
        assert audit(short.store).problems == ()


@pytest.mark.req("R54")
def test_the_third_run_of_what_stands_is_short_and_so_is_every_further_one(root: str) -> None:
    with tempfile.TemporaryDirectory(dir=root) as place:
        bed, stage = Bed(MemoryStore(), place), Stage(plan(*chain("a", "b", "c")))
        ways = [either(bed, stage) for _ in range(5)]
        assert [short for _, short in ways] == [False, False, True, True, True]
        first, *others = [state for state, _ in ways]
        assert first.counts["done"] == 3
        assert all(state.counts["reused"] == 3 for state in others)
        assert [state.previous for state in others] == [state.run for state, _ in ways[:-1]]
        assert len({state.run for state, _ in ways}) == len(ways)
        journal = bed.store.read(line_journal("", LINE))
        opened = [r.event.run for r in journal if isinstance(r.event, RunOpened)]
        assert opened == [state.run for state, _ in ways]


@pytest.mark.req("R54")
@pytest.mark.parametrize(
    "options",
    [
        Options(force=True),
        Options(force_steps=(StepId("a"),)),
        Options(cutoff=True),
        Options(on_drift="fail"),
        Options(select=(StepId("a"),)),
        Options(joined=True),
    ],
)
def test_a_run_that_is_asked_for_more_looks_at_every_step(root: str, options: Options) -> None:
    with tempfile.TemporaryDirectory(dir=root) as place:
        bed, stage = Bed(MemoryStore(), place), Stage(plan(*chain("a", "b")))
        for _ in range(3):
            either(bed, stage)
        assert repeated(bed, replace(stage, options=options), scripted({})) is None
        assert repeated(bed, stage, scripted({})) is not None, "asked plainly it is short"


@pytest.mark.req("R54")
def test_another_plan_an_amendment_or_a_failure_is_looked_at(root: str) -> None:
    with tempfile.TemporaryDirectory(dir=root) as place:
        bed, stage = Bed(MemoryStore(), place), Stage(plan(*chain("a", "b")))
        for _ in range(3):
            either(bed, stage)
        other = Stage(plan(*chain("a", "b", "c")))
        assert repeated(bed, other, scripted({})) is None
        bed.amend(stage.plan, StepId("a"), b'{"quality": 3}')
        assert repeated(bed, stage, scripted({})) is None
        broken = Stage(plan(*chain("a", "b"), step("x", mode="broken")))
        assert [either(bed, broken)[1] for _ in range(4)] == [False] * 4


@pytest.mark.req("R54")
def test_a_plan_that_differs_in_any_part_is_another_one(root: str) -> None:
    """The journal of a run names the plan that was asked for, also if every step decides as before."""
    both = Plan(LINE, {StepId("a"): step("a"), StepId("b"): replace(step("b"), needs=NEEDS)})
    parts: list[dict[str, Any]] = [
        *({part: {"other": 1}} for part in PARTS),
        *({"goal": "other"}, {"description": "other"}, {"limits": Limits(parallel=1)}),
    ]
    needs: list[dict[str, Any]] = [{"type": "sequence"}, {"key": "x"}, {"approver": "me"}]
    other = [replace(both, **part) for part in parts]
    for need in (*needs, {"optional": True}):
        after = replace(both.steps[StepId("b")], needs=(replace(NEEDS[0], **need),))
        other.append(replace(both, steps={**both.steps, StepId("b"): after}))
    with tempfile.TemporaryDirectory(dir=root) as place:
        bed = Bed(MemoryStore(), place)
        assert [either(bed, Stage(both))[1] for _ in range(3)] == [False, False, True]
        for changed in other:
            assert repeated(bed, Stage(changed), scripted({})) is None, changed


OTHER: dict[str, tuple[object, ...]] = {
    "inputs": ((Input("x"),), (Input("x", optional=True),)),
    "guards": ((Guard("regex"),), (Guard("regex", 1),), (Guard("regex", True),)),
    "template": (Step(StepId("t")), Step(StepId("t"), retries=1)),
    "needs": ((), (Need(StepId("a")), Need(StepId("b")))),
    "id": (StepId("d"),),
    "env": (("X",), ("X", "Y"), ("Y",)),
}


def others(noun: object, name: str) -> tuple[object, ...]:
    """Values of a field that all say something else; some of them are equal for Python."""
    if name in OTHER:
        return OTHER[name]
    match getattr(noun, name):
        case bool() | int() | float() | None:
            return (7, 7.0, "7", True, 0.0, None, False, 0, 1, 1.0)
        case tuple():
            return ((), ("x",), (1,), (True,), (1.0,), ("x", ""), ("",))
        case Mapping():
            return ({}, {"x": 1}, {"x": True}, {"x": 1.0}, {"y": 1}, {"x": {}}, {"x": None})
        case _:
            return ("other", "", None, "more")


@pytest.mark.req("R54")
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_step_that_differs_in_any_field_makes_another_question(root: str, place: int) -> None:
    steps = [step("a"), replace(step("b"), needs=NEEDS), replace(step("c"), needs=NEEDS)]
    world = Bed(MemoryStore(), root).world(scripted({}))
    own: Any = steps[place]
    edge: Any = NEEDS[0]

    def asked(step: Step) -> str:
        known = [step if number == place else one for number, one in enumerate(steps)]
        whole = plan(*steps)
        whole.steps = {one.id: one for one in known}  # type: ignore[misc]  # unchecked: not all is legal
        return Question(whole, LINE, PLAIN, {}).digest(world)

    for item in fields(Step):
        values = [getattr(own, item.name), *others(own, item.name)]
        made = {repr(value): asked(replace(own, **{item.name: value})) for value in values}
        assert len(set(made.values())) == len(made), item.name
    for item in fields(Need):
        edges = [replace(edge, **{item.name: value}) for value in others(edge, item.name)]
        made = {repr(one): asked(replace(own, needs=(one,))) for one in edges}
        assert len(set(made.values())) == len(made), item.name


@pytest.mark.req("R54")
@pytest.mark.parametrize("name", ["timeout", "context", "produces", "parameters"])
def test_values_that_are_only_equal_make_another_question(root: str, name: str) -> None:
    world, made = Bed(MemoryStore(), root).world(scripted({})), {}
    for numbers in itertools.product((1, 1.0, True), repeat=2):
        values: list[Any] = [*numbers]
        if name in {"produces", "parameters"}:
            values = [(n,) if name == "produces" else {"x": n} for n in numbers]
        steps = [replace(step(one), **{name: v}) for one, v in zip("ab", values, strict=True)]
        question = Question(plan(*steps), LINE, PLAIN, {})
        made[repr(values)] = question.digest(world)
    assert len(set(made.values())) == len(made) == 9


def test_a_result_that_grew_too_old_is_looked_at(root: str) -> None:
    with tempfile.TemporaryDirectory(dir=root) as place:
        bed = Bed(MemoryStore(), place)
        stage = Stage(plan(replace(step("a"), fresh_for=60), step("b")))
        assert [either(bed, stage)[1] for _ in range(3)] == [False, False, True]
        bed.clock.advance(60_000)
        state, short = either(bed, stage)
        assert not short
        assert (state.counts["done"], state.counts["reused"]) == (1, 1)


@pytest.mark.req("R54")
def test_a_result_from_a_time_that_has_not_come_yet_is_looked_at(root: str) -> None:
    """A clock that was set back by more than clocks differ, as a key of a single step sees it."""
    with tempfile.TemporaryDirectory(dir=root) as place:
        bed = Bed(MemoryStore(), place)
        bed.clock.advance(10_000_000)
        stage = Stage(plan(replace(step("a"), fresh_for=60), step("b")))
        assert [either(bed, stage)[1] for _ in range(3)] == [False, False, True]
        bed.clock.advance(-30_000)
        assert either(bed, stage)[1], "clocks differ by as much"
        bed.clock.advance(-60_000)
        state, short = either(bed, stage)
        assert not short
        assert (state.counts["done"], state.counts["reused"]) == (1, 1)


@pytest.mark.req("R54", "R47")
def test_a_run_that_was_taken_up_leaves_no_note(root: str) -> None:
    """What its first engine decided stood on what that found, which may have changed in between."""
    taken_up = 0
    for at in itertools.count(1):
        with tempfile.TemporaryDirectory(dir=root) as place:
            bed, stage = Bed(MemoryStore(), place), Stage(plan(*chain("a", "b", "c")))
            either(bed, stage)
            dying = CrashingStore(bed.store, at=at, when="after")
            with contextlib.suppress(Crash):
                start(bed, stage, scripted({}), dying)
            if not dying.crashed:
                break
            state = read_state(bed.store, bed.store.runs(LINE)[-1].run)
            if state is None or state.status != "running":
                continue
            taken_up += 1
            assert resume(bed, state.run, scripted({})).counts["reused"] == 3
            assert read_note(bed.world(scripted({})), "", LINE) is None
    assert taken_up


@pytest.mark.req("R54")
def test_a_run_that_is_repeated_says_where_its_own_plan_came_from(root: str) -> None:
    with tempfile.TemporaryDirectory(dir=root) as place:
        bed, stage = Bed(MemoryStore(), place), Stage(plan(*chain("a", "b")))
        either(bed, stage)
        either(bed, stage)
        world = replace(
            bed.world(scripted({})), file="moved.yaml", ready=lambda _: Digest("f" * 64)
        )
        found = repeat_run(world, stage.plan, LINE, PLAIN, dict)
        assert found is not None
        (begun, *_) = [r.event for r in bed.store.read(f"run:{found.state().run}")]
        assert isinstance(begun, RunStarted)
        assert (begun.file, begun.ready) == ("moved.yaml", "f" * 64)


def test_a_note_that_was_cut_short_is_none(root: str) -> None:
    with tempfile.TemporaryDirectory(dir=root) as place:
        bed, stage = Bed(MemoryStore(), place), Stage(plan(*chain("a", "b")))
        either(bed, stage)
        either(bed, stage)
        (note,) = Path(place, "unchanged").iterdir()
        whole = note.read_bytes()
        for odd in (
            b"null",
            b"7",
            b'["r","1:0","1:0","a","soon",[],"s"]',
            b'[1,2,3,4,5,["a\\u0000"],7]',
        ):
            note.write_bytes(hashlib.sha256(odd).hexdigest().encode() + b"\n" + odd)
            assert read_note(bed.world(scripted({})), "", LINE) is None
        note.write_bytes(whole[:-1])
        assert read_note(bed.world(scripted({})), "", LINE) is None
        assert either(bed, stage)[1] is False
        assert either(bed, stage)[1] is True


def test_a_run_that_does_not_end_as_the_note_says_is_not_repeated(root: str) -> None:
    with tempfile.TemporaryDirectory(dir=root) as place:
        store = MemoryStore()
        bed, stage = Bed(store, place), Stage(plan(*chain("a", "b")))
        run = [either(bed, stage)[0].run for _ in range(2)][-1]
        journal = store._journals[f"run:{run}"]
        for at, told in enumerate(journal):
            if isinstance(told.event, StepsReused):
                journal[at] = told._replace(event=StepsReused(told.event.items[:-1]))
        state, short = either(bed, stage)
        assert not short
        assert state.counts["reused"] == 2


# --- with files ----------------------------------------------------------------------------------


class Shop:
    """A project directory with commands that read and write files, and the runs of its plan."""

    def __init__(self, root: str, now: int) -> None:
        self.bed = Bed(MemoryStore(), root)
        self.bed.clock = FakeClock(now, tick=1)
        self.root = Path(root, "project")
        self.root.mkdir()
        link = Path(root, "link")  # as people often name a project
        link.symlink_to("project")
        self.bed.root = str(link)
        self.edits = itertools.count()
        for name in ("tool.sh", "src/a.txt", "src/deep/b.txt", "src/c.md"):
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"first {name}")

    def executor(self) -> ScriptedExecutor:
        root = str(self.root)
        return ScriptedExecutor(self.make, identity=lambda step: shell_identity(step, root))

    def world(self) -> World:
        home = self.root / ".holdfast"
        return replace(self.bed.world(self.executor()), home=str(home))

    def make(self, job: Job) -> Candidate:
        """What a step writes is a function of all that it may read."""
        read = [path for path in self.files() if not path.startswith("out")]
        whole = hashlib.sha256(repr([(p, Path(job.root, p).read_bytes()) for p in read]).encode())
        for path in job.step.produces:
            place = Path(job.folder, path)
            if path == "out/tree":
                (place / "deep").mkdir(parents=True, exist_ok=True)
                (place / "one").write_text("one")
                place = place / "deep" / "two"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"{job.step.id} {whole.hexdigest()}")
        if not job.step.produces:
            return Candidate("bytes", whole.hexdigest().encode())
        return collect(job.folder, job.step.produces)

    def files(self) -> list[str]:
        found = (path for path in self.root.rglob("*") if path.is_file())
        names = (str(path.relative_to(self.root)) for path in found)
        return sorted(name for name in names if not name.startswith(".holdfast"))

    def run(self) -> tuple[State, bool]:
        """One run, the short way if that is certain, after a look at what every step would do."""
        stage = Stage(PROJECT)
        foreseen = ahead(self.bed, stage, self.executor())
        found = repeat_run(self.world(), PROJECT, LINE, PLAIN, dict)
        if found is None:
            return drive(lambda: start_run(self.world(), PROJECT, LINE, PLAIN)), False
        work = {s: o for s, o in foreseen.outlooks.items() if o.is_work or o.is_edited}
        assert work == {}, "the short way overlooked this"
        return found.state(), True

    def write(self, name: str, text: str) -> None:
        """Write until the file system's clock has moved on: only then it can tell a change."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.stat().st_ctime_ns if path.exists() else 0
        path.write_text(text)
        while path.stat().st_ctime_ns == before:
            path.write_text(text)


PROJECT = Plan(
    LINE,
    {
        one.id: one
        for one in (
            Step(StepId("made"), run=("./tool.sh", "maybe.txt"), produces=("out/made.txt",)),
            Step(
                StepId("all"),
                shell="cat src/a.txt > out/all.txt",
                inputs=(Input("src/**/*.txt"), Input("conf", optional=True)),
                produces=("out/all.txt",),
                needs=(Need(StepId("made")),),
            ),
            Step(StepId("tree"), run=("build",), produces=("out/tree",), inputs=(Input("src"),)),
            Step(StepId("said"), run=("echo",), env=("HOLDFAST_LAW",)),
            Step(StepId("linked"), run=("cat", "../project/src/c.md")),
        )
    },
)


def changed(name: str) -> Callable[[Shop], None]:
    return lambda shop: shop.write(name, f"edit {next(shop.edits):09}")


def in_disguise(shop: Shop) -> None:
    """Other content of the same size under the same time of change."""
    path = shop.root / "src/a.txt"
    if path.exists():
        before = path.stat()
        shop.write("src/a.txt", path.read_text()[::-1])
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def removed(name: str) -> Callable[[Shop], None]:
    def remove(shop: Shop) -> None:
        path = shop.root / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    return remove


def a_program(shop: Shop) -> None:
    path = shop.root / "tool.sh"
    if path.exists():
        path.chmod(0o755 if path.stat().st_mode & 0o100 == 0 else 0o644)


def environment(shop: Shop) -> None:
    os.environ["HOLDFAST_LAW"] = str(next(shop.edits))


EDITS: dict[str, Callable[[Shop], None]] = {
    "nothing": lambda _: None,
    "input": changed("src/a.txt"),
    "deep input": changed("src/deep/b.txt"),
    "new input": changed("src/deep/new.txt"),
    "no input": changed("src/c.md"),
    "optional input": changed("conf"),
    "script": changed("tool.sh"),
    "a word becomes a file": changed("maybe.txt"),
    "a command becomes a file": changed("build"),
    "ignored": lambda shop: shop.write("src/.gitignore", f"new.txt\n# {next(shop.edits)}\n"),
    "elsewhere": changed("notes/unrelated.txt"),
    "output": changed("out/made.txt"),
    "output of several": changed("out/tree/deep/two"),
    "more output": changed("out/tree/three"),
    "input removed": removed("src/deep/new.txt"),
    "word removed": removed("maybe.txt"),
    "output removed": removed("out/all.txt"),
    "outputs removed": removed("out"),
    "in disguise": in_disguise,
    "mode": a_program,
    "environment": environment,
}
TOMORROW = 24 * 3600 * 1000


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_LAW", "first")


@pytest.mark.req("R54")
@settings(max_examples=20, deadline=None, suppress_health_check=slow)
@given(edits=st.lists(st.sampled_from(sorted(EDITS)), min_size=1, max_size=6))
def test_no_change_on_disk_is_overlooked(root: str, edits: list[str]) -> None:
    with tempfile.TemporaryDirectory(dir=root) as place:
        shop = Shop(place, time.time_ns() // 1_000_000 + TOMORROW)
        for edit in ("nothing", "nothing", *edits):
            EDITS[edit](shop)
            shop.run()
            state, _ = shop.run()
            if state.status != "completed":  # an input is gone, or an edit was refused
                continue
            _, short = shop.run()
            assert short or state.counts["done"], "nothing was touched since everything stood"
        assert audit(shop.bed.store).problems == ()


@pytest.mark.req("R54")
@pytest.mark.parametrize("edit", [name for name in EDITS if name not in {"nothing", "elsewhere"}])
def test_each_kind_of_change_is_seen(root: str, edit: str) -> None:
    with tempfile.TemporaryDirectory(dir=root) as place:
        shop = Shop(place, time.time_ns() // 1_000_000 + TOMORROW)
        for name in ("src/deep/new.txt", "maybe.txt"):
            shop.write(name, "there")
        assert [shop.run()[1] for _ in range(3)] == [False, False, True]
        EDITS[edit](shop)
        assert shop.run()[1] is False


@pytest.mark.req("R54")
def test_what_happens_elsewhere_does_not_matter(root: str) -> None:
    with tempfile.TemporaryDirectory(dir=root) as place:
        shop = Shop(place, time.time_ns() // 1_000_000 + TOMORROW)
        assert [shop.run()[1] for _ in range(3)] == [False, False, True]
        EDITS["elsewhere"](shop)
        assert shop.run()[1] is True


Turn = Callable[[], object]


def _lead(link: Path, there: str) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(there)


def _move(*moves: tuple[Path, Path]) -> None:
    for here, there in moves:
        if there.is_symlink():
            there.unlink()
        here.rename(there)


def _link(top: Path) -> Turn:
    way = top / "way"
    _lead(way, "one")
    return partial(_move, (top / "two", way))


def _directory(top: Path) -> Turn:
    one, way = top / "one", top / "way"
    one.rename(way)
    return partial(_move, (way, one), (top / "two", way))


def _link_over_link(top: Path) -> Turn:
    """The link that is turned is neither the first one nor the end."""
    (top / "far").mkdir()
    _lead(top / "far" / "turned", "../one")
    _lead(top / "way", "far/turned")
    return partial(_lead, top / "far" / "turned", "../two")


def _to_nothing(top: Path) -> Turn:
    """Behind the way there is nothing any more, not even the directory."""
    (top / "two" / "b" / "x.txt").unlink()
    (top / "two" / "b").rmdir()
    _lead(top / "way", "one")
    return partial(_lead, top / "way", "two")


def _end_removed(top: Path) -> Turn:
    """The file is a link; what it leads to goes, the link stays."""
    (top / "way" / "b").mkdir(parents=True)
    _lead(top / "way" / "b" / "x.txt", "../../one/b/x.txt")
    return (top / "one" / "b" / "x.txt").unlink


WAYS: dict[str, Callable[[Path], Turn]] = {
    "link": _link,
    "directory": _directory,
    "link over link": _link_over_link,
    "to nothing": _to_nothing,
    "end removed": _end_removed,
}


@pytest.mark.req("R54")
@pytest.mark.parametrize("turns", [False, True], ids=["stays", "turns"])
@pytest.mark.parametrize("what", WAYS)
def test_a_way_that_is_turned_while_a_run_looks_leaves_no_note(
    root: str, what: str, *, turns: bool
) -> None:
    """The file at its end is as old as the one that was looked at."""
    with tempfile.TemporaryDirectory(dir=root) as place, tempfile.TemporaryDirectory() as home:
        top = Path(place)
        for name in ("one", "two"):
            (top / "all" / name / "b").mkdir(parents=True)
            (top / "all" / name / "b" / "x.txt").write_text(name)
        turn = WAYS[what](top / "all")
        written = time.time_ns()
        while time.time_ns() < written + 2 * SETTLED_NS:
            os.sched_yield()
        now = time.time_ns() // 1_000_000

        def on_events(events: list[Recorded]) -> None:
            if turns and any(isinstance(recorded.event, StepsReused) for recorded in events):
                turn()

        bed = Bed(MemoryStore(), place)
        cat = Plan(LINE, {StepId("a"): Step(StepId("a"), run=("cat", "all/way/b/x.txt"))})

        def world(**more: Any) -> World:
            executor = ScriptedExecutor(
                lambda _: b"made", identity=lambda step: shell_identity(step, place)
            )
            return replace(bed.world(executor), home=home, clock=lambda: now, **more)

        assert drive(lambda: start_run(world(), cat, LINE, PLAIN)).counts["done"] == 1
        state = drive(lambda: start_run(world(on_events=on_events), cat, LINE, PLAIN))
        assert state.counts["reused"] == 1
        found = repeat_run(world(), cat, LINE, PLAIN, dict)
        assert (found is not None) == (not turns)


@pytest.mark.req("R54")
@pytest.mark.parametrize("what", ["nothing", "link", "directory"])
def test_a_way_that_is_turned_after_a_run_is_looked_at(root: str, what: str) -> None:
    """The file at its end is the very one that was looked at, under another name."""
    with tempfile.TemporaryDirectory(dir=root) as place:
        shop = Shop(place, time.time_ns() // 1_000_000 + TOMORROW)
        for name in ("one", "two"):
            (shop.root / "all" / name).mkdir(parents=True)
        shop.write("all/one/x.txt", "same")
        os.link(shop.root / "all/one/x.txt", shop.root / "all/two/x.txt")
        way = shop.root / "all/way"
        way.symlink_to("one") if what != "directory" else (shop.root / "all/one").rename(way)
        cat = Plan(LINE, {StepId("a"): Step(StepId("a"), run=("cat", "all/way/x.txt"))})

        def go() -> bool:
            if repeat_run(shop.world(), cat, LINE, PLAIN, dict) is not None:
                return True
            drive(lambda: start_run(shop.world(), cat, LINE, PLAIN))
            return False

        assert [go() for _ in range(3)] == [False, False, True]
        if what == "link":
            way.unlink()
            way.symlink_to("two")
        elif what == "directory":
            way.rename(shop.root / "all/one")
            (shop.root / "all/two").rename(way)
        assert go() == (what == "nothing")


@pytest.mark.req("R54")
@pytest.mark.parametrize("word", ["way/../x.txt", "{root}/way/../x.txt", "no/../way/../x.txt"])
@pytest.mark.parametrize("what", ["nothing", "file", "link"])
def test_a_way_that_leads_out_of_a_link_is_looked_at(root: str, what: str, word: str) -> None:
    with tempfile.TemporaryDirectory(dir=root) as place:
        shop = Shop(place, time.time_ns() // 1_000_000 + TOMORROW)
        for name in ("one", "two"):
            (shop.root / name / "deep").mkdir(parents=True)
        shop.write("one/x.txt", "same")
        os.link(shop.root / "one/x.txt", shop.root / "two/x.txt")
        _lead(shop.root / "way", "one/deep")
        name = word.format(root=shop.root)
        cat = Plan(LINE, {StepId("a"): Step(StepId("a"), run=("cat", name))})

        def go() -> bool:
            if repeat_run(shop.world(), cat, LINE, PLAIN, dict) is not None:
                return True
            drive(lambda: start_run(shop.world(), cat, LINE, PLAIN))
            return False

        assert [go() for _ in range(3)] == [False, False, True]
        if what == "file":
            shop.write("one/x.txt", "other")
        elif what == "link":
            _lead(shop.root / "way", "two/deep")
        assert go() == (what == "nothing")


@pytest.mark.req("R54")
def test_a_word_that_is_too_long_for_a_name_is_no_file(root: str) -> None:
    with tempfile.TemporaryDirectory(dir=root) as place:
        shop = Shop(place, time.time_ns() // 1_000_000 + TOMORROW)
        say = Plan(LINE, {StepId("a"): Step(StepId("a"), run=("echo", "x" * 300))})
        for expected in (False, False, True):
            found = repeat_run(shop.world(), say, LINE, PLAIN, dict)
            assert (found is not None) == expected
            if found is None:
                drive(lambda: start_run(shop.world(), say, LINE, PLAIN))


@pytest.mark.req("R54")
@pytest.mark.parametrize("changes", [False, True])
def test_a_guard_of_functions_that_changes_while_a_run_looks_leaves_no_note(
    root: str, changes: bool
) -> None:
    with tempfile.TemporaryDirectory(dir=root) as place:
        bed, source = Bed(MemoryStore(), place), ["accepts"]
        judged = plan(replace(step("a"), guards=(Guard("python", "checks:ok"),)))

        def world(**more: Any) -> World:
            executor = ScriptedExecutor(
                lambda _: b"made",
                identity=lambda one: {"guards": source[-1]} if one.guards else {},
            )
            return replace(bed.world(executor), inline={StepId("a"): len}, **more)

        def turn(events: list[Recorded]) -> None:
            if changes and any(isinstance(recorded.event, StepsReused) for recorded in events):
                source.append("refuses")

        assert drive(lambda: start_run(world(), judged, LINE, PLAIN)).counts["done"] == 1
        state = drive(lambda: start_run(world(on_events=turn), judged, LINE, PLAIN))
        assert state.counts["reused"] == 1
        assert (repeat_run(world(), judged, LINE, PLAIN, dict) is None) == changes


@pytest.mark.req("R54")
def test_files_that_are_too_young_are_not_trusted(root: str) -> None:
    """By a clock that stands where the files were written, nothing is ever old enough."""
    with tempfile.TemporaryDirectory(dir=root) as place:
        shop = Shop(place, time.time_ns() // 1_000_000)
        assert [shop.run()[1] for _ in range(3)] == [False, False, False]


@pytest.mark.req("R54")
def test_what_a_shared_store_lost_meanwhile_is_missed(root: str) -> None:
    """Small contents too: another machine may have found one damaged and removed it."""
    with tempfile.TemporaryDirectory(dir=root) as place:
        shop = Shop(place, time.time_ns() // 1_000_000 + TOMORROW)
        assert [shop.run()[1] for _ in range(3)] == [False, False, True]
        state, _ = shop.run()
        lost = next(here.digest for here in state.steps.values() if here.digest is not None)
        shop.bed.store.forget([lost], 1 << 60)
        assert shop.run()[1] is False


@pytest.mark.req("R54")
def test_words_that_look_like_long_ways_take_no_room(root: str) -> None:
    """As text in base64 does, that a command is given."""
    with tempfile.TemporaryDirectory(dir=root) as place:
        words = [f"{number}/" + "ab/" * 1_000 for number in range(200)]
        words += [f"/{'ab/' * 10}", f"{'a/' * 20_000}b"]
        tracemalloc.start()
        try:
            assert stamps_of(place, words) is not None
            assert tracemalloc.get_traced_memory()[1] < 8 * 1024 * 1024
        finally:
            tracemalloc.stop()
