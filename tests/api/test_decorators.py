"""Decorated functions make the plan that a plan file makes."""

import functools
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import holdfast
from holdfast.api import Guarded, StepFunction
from holdfast.errors import PlanError, UsageError
from holdfast.model.plan import StepId, plan_digest
from tests.api.flows import AS_YAML, FLOW, imported


@pytest.fixture
def flow(tmp_path: Path) -> Iterator[ModuleType]:
    (tmp_path / "flow.py").write_text(FLOW)
    with imported(tmp_path, "flow") as module:
        yield module


@pytest.mark.req("R181")
def test_functions_and_a_plan_file_make_the_same_plan(flow: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(AS_YAML)
    made, loaded = flow.shore.build(), holdfast.load(str(tmp_path / "plan.yaml"))
    assert made.build() == loaded.build()
    assert plan_digest(made.build()) == plan_digest(loaded.build())
    assert made.root == loaded.root == str(tmp_path)


@pytest.mark.req("R181")
def test_a_plan_that_is_written_and_loaded_is_the_same(flow: ModuleType, tmp_path: Path) -> None:
    made = flow.shore.build("dulse", loud=False)
    (tmp_path / "again.yaml").write_text(made.to_yaml())
    again = holdfast.load(str(tmp_path / "again.yaml"))
    assert again.build() == made.build()
    assert again.params == {"topic": "dulse", "loud": False}
    assert "${{ params.topic }}" in made.to_yaml()


def test_building_does_nothing(flow: ModuleType, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    made = flow.shore.build()
    assert str(made.preview()).splitlines()[0].startswith("shore · 4 steps · plan ")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_step_is_still_a_function(flow: ModuleType) -> None:
    assert flow.fetch("kelp") == "tide rock kelp"
    assert flow.count("a b") == flow.Count(2, ["a", "b"])
    assert flow.long_enough(flow.Count(1, ["a"]), "a") == Guarded.reject("only 1 of 2 words")
    assert isinstance(flow.fetch, StepFunction)
    assert flow.fetch.__doc__ == "Get the text."


def test_a_param_keeps_its_value_and_its_name(flow: ModuleType) -> None:
    @holdfast.plan
    def both(topic: str, times: int = 2) -> None:
        for number in range(times):
            flow.fetch.named(f"fetch-{number}")(topic)
        if topic.startswith("k"):
            flow.fetch.named("more")([topic, times])

    data = both.__holdfast_made__({"topic": "kelp"}).data
    assert data["params"] == {
        "topic": {"type": "string", "default": "kelp"},
        "times": {"type": "int", "default": 2},
    }
    steps = data["steps"]
    assert isinstance(steps, dict)
    assert list(steps) == ["fetch-0", "fetch-1", "more"]
    assert steps["more"]["with"] == {"topic": ["${{ params.topic }}", "${{ params.times }}"]}
    with pytest.raises(UsageError, match="'topic' has no default"):
        both.build()  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="'times' is a whole number"):
        both.build("kelp", "many")  # type: ignore[arg-type]


def test_a_second_call_is_a_second_step_and_order_alone_can_be_asked_for(flow: ModuleType) -> None:
    @holdfast.plan
    def twice() -> None:
        first = flow.fetch("a")
        second = flow.fetch("b")
        flow.fetch.named("last").after(first, second, first)("${{ no expression }}")

    steps = twice.build().build().steps
    assert list(steps) == ["fetch", "fetch-2", "last"]
    last = steps[StepId("last")]
    assert [(need.step, need.type) for need in last.needs] == [
        ("fetch", "sequence"),
        ("fetch-2", "sequence"),
    ]
    assert last.values == {"topic": "$${{ no expression }}"}


def test_a_plan_inside_a_plan_adds_its_steps(flow: ModuleType) -> None:
    @holdfast.plan
    def outer() -> None:
        flow.fetch.named("note")(flow.shore("dulse"))

    assert list(outer.build().steps) == ["fetch", "count", "report", "size", "note"]
    with pytest.raises(UsageError, match=r"'shore' is a plan\nhint: shore.build"):
        flow.shore()


@pytest.mark.parametrize(
    ("use", "how"),
    [
        (bool, "decided on"),
        (lambda x: [*x], "counted through"),
        (lambda x: x == 1, "compared"),
        (lambda x: x.total + 1, r"'steps.count.output.total' cannot be computed with"),
        (len, "counted"),
        (lambda x: x(), "called"),
        (lambda x: "a" in x, "searched"),
        (lambda x: f"{x:>10}", "formatted"),
        (lambda x: x["a b"], "cannot be read at 'a b'"),
        (lambda x: x.words[-1], "cannot be read at -1"),
    ],
)
def test_what_is_not_there_yet_cannot_be_used(flow: ModuleType, use: object, how: str) -> None:
    @holdfast.plan
    def wrong() -> None:
        assert callable(use)
        use(flow.count("a b"))

    with pytest.raises(UsageError, match=how):
        wrong.build()


def test_a_reference_inside_a_text_must_stay_whole(flow: ModuleType) -> None:
    @holdfast.plan
    def wrong() -> None:
        flow.fetch(f"{flow.fetch('a')}"[:5])

    @holdfast.plan
    def shown() -> None:
        flow.fetch(f"all of {[flow.fetch('a')]}")

    @holdfast.plan
    def keyed() -> None:
        flow.fetch({flow.fetch("a"): 1})

    for one in (wrong, shown):
        with pytest.raises(UsageError, match="cut apart"):
            one.build()
    with pytest.raises(UsageError, match="a reference is a key of a mapping"):
        keyed.build()


def test_calls_that_cannot_be_are_refused(flow: ModuleType) -> None:
    @holdfast.plan
    def missing() -> None:
        flow.report(flow.count("a"))

    @holdfast.plan
    def odd() -> None:
        flow.fetch(object())

    @holdfast.plan
    def nothing() -> None:
        pass

    @holdfast.plan
    def same() -> None:
        flow.fetch.named("x")("a")
        flow.fetch.named("x")("b")

    with pytest.raises(UsageError, match=r"'report' cannot be called so: missing .*'title'"):
        missing.build()
    with pytest.raises(UsageError, match="type 'object' cannot be given"):
        odd.build()
    with pytest.raises(UsageError, match="calls no step"):
        nothing.build()
    with pytest.raises(UsageError, match="a step 'x' already"):
        same.build()


@pytest.mark.parametrize("thing", [functools.partial(max, 1), 3, int, holdfast.guard(len)])
def test_decorators_belong_before_functions(thing: Any) -> None:
    with pytest.raises(UsageError, match=r"@step belongs before a function, and '.*' is none"):
        holdfast.step(thing)
    with pytest.raises(UsageError, match="@plan belongs before a function"):
        holdfast.plan(thing)


def test_a_plan_function_is_plain_and_ends(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'later' is no plain function"):

        @holdfast.plan
        async def later() -> None: ...

    @holdfast.plan
    def many(*all_of_them: str) -> None: ...

    @holdfast.plan
    def around() -> None:
        around()

    with pytest.raises(
        UsageError, match="'all_of_them' of the plan 'many' cannot be given by name"
    ):
        many.build()
    with pytest.raises(UsageError, match="'around' calls itself, and never ends"):
        around.build()


def test_a_step_in_a_class_is_a_method_outside_of_plans() -> None:
    class Shore:
        def __init__(self) -> None:
            self.tide = 2

        @holdfast.step
        def level(self, more: int) -> int:
            return self.tide + more

    @holdfast.plan
    def wrong() -> None:
        Shore().level(1)

    assert Shore().level(1) == 3
    with pytest.raises(
        UsageError, match="'level' is a method, and no other process has its object"
    ):
        wrong.build()


def test_a_parameter_without_a_type_gets_no_guess(flow: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text(
        "from holdfast import plan, step\nfrom flow import fetch\n\n\n"
        "@step\ndef parts(text): return text.split()\n\n\n"
        "@step\ndef first(found): return found[0]\n\n\n"
        "@plan\ndef text(): return parts(fetch('a'))\n\n\n"
        "@plan\ndef guess(): first(text())\n\n\n"
        "@plan\ndef known(): first(text()[0])\n"
    )
    with imported(tmp_path, "bare") as bare:
        assert list(bare.text.build().steps) == ["fetch", "parts"]
        assert list(bare.known.build().steps) == ["fetch", "parts", "first"]
        with pytest.raises(
            UsageError, match="'found' of 'first' has no type, and gets what 'parts'"
        ):
            bare.guess.build()


def test_guards_that_could_never_judge_are_refused(flow: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "idle.py").write_text("from holdfast import guard\n\n\n@guard\ndef idle(): ...\n")

    def refusal(guards: Any) -> str:
        fetch = holdfast.step(inline=True, guards=guards)(flow.fetch.function)
        with pytest.raises(UsageError) as caught:
            holdfast.plan(lambda: fetch("a")).build()
        return caught.value.message

    with imported(tmp_path, "idle") as module:
        assert refusal([module.idle]) == "the guard 'idle' of 'fetch' takes no artifact"
    assert refusal([flow.fetch]) == "'fetch' is a step, and guards nothing"
    assert refusal(flow.long_enough) == "'guards' is a list"
    words = "the guard 'long_enough' of 'fetch' asks for 'text', which the step is not given"
    assert refusal([flow.long_enough]) == words


def test_decorated_functions_are_pickled_by_their_names(flow: ModuleType) -> None:
    for thing in (flow.fetch, flow.long_enough, flow.shore):
        assert pickle.loads(pickle.dumps(thing)) is thing


def test_a_function_that_no_process_can_find_is_refused_unless_inline(tmp_path: Path) -> None:
    def add(a: int, b: int = 1) -> int:
        return a + b

    @holdfast.plan(root=str(tmp_path))
    def lost() -> None:
        holdfast.step(add)(1)

    @holdfast.plan(root=str(tmp_path))
    def here() -> None:
        one = holdfast.step(inline=True)(add).named("one")(1)
        holdfast.step(inline=True)(lambda one: f"<{one}>").named("two")(one)

    with pytest.raises(UsageError, match=r"no other process can find 'add'.*\nhint: .*inline=True"):
        lost.build()
    result = here.build().run()
    assert (result["one"].value, result["two"].value) == (2, "<2>")
    assert here.build().run().state.counts["reused"] == 2


def test_a_plan_with_a_function_of_this_process_alone_cannot_be_written(tmp_path: Path) -> None:
    @holdfast.plan(root=str(tmp_path))
    def here() -> None:
        holdfast.step(inline=True)(lambda: "x").named("a")()

    made = here.build()
    made.steps[StepId("a")] = holdfast.load(_file(tmp_path)).steps[StepId("a")]
    with pytest.raises(UsageError, match="cannot be written"):
        made.to_yaml()


def _file(folder: Path) -> str:
    (folder / "plan.yaml").write_text("steps: {a: {uses: python, run: '__main__:x'}}")
    return str(folder / "plan.yaml")


def test_a_problem_is_told_with_the_line_of_the_call(flow: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(
        "from flow import fetch\nfrom holdfast import plan, step\n\n\n"
        "@step(timeout='soon', retries=-1)\ndef late() -> None: ...\n\n\n"
        "@plan\ndef wrong():\n    fetch('a')\n    late()\n"
    )
    with imported(tmp_path, "wrong") as module, pytest.raises(PlanError) as caught:
        module.wrong.build()
    places = {(Path(item.file).name, item.line) for item in caught.value.problems}
    assert places == {("wrong.py", 12)}
    assert len(caught.value.problems) == 2
    assert caught.value.__suppress_context__  # what was read in between is in no file


def test_map_makes_a_step_for_each_item(flow: ModuleType) -> None:
    @holdfast.plan
    def each() -> None:
        found = flow.count("a b")
        flow.report.map(found.words, key=lambda word: word.name, title="all")

    made = each.__holdfast_made__({})
    assert made.steps["report"] == {
        "uses": "python",
        "run": "flow:report",
        "produces": "report.md",
        "effects": "workspace",
        "for_each": "${{ steps.count.output.words }}",
        "key": "${{ item.name }}",
        "with": {"counted": "${{ item }}", "title": "all"},
    }
    with pytest.raises(PlanError, match="every item would have 'produces'"):
        each.build()


def test_decorators_load_little() -> None:
    code = (
        "import sys\nfrom holdfast import Guarded, guard, plan, step\n"
        "heavy = {'apsw', 'asyncio', 'click', 'yaml', 'holdfast.engine', 'holdfast.store'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
