"""The order of a plan."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.waves import graph_of, rebuild_set
from holdfast.errors import PlanError
from holdfast.model.plan import Plan, StepId
from tests.core.builders import graph, plan, sid, step

CASES = [
    ("config>add>coder config>bdd>coder", "config add bdd coder"),
    ("z>m>a z>b>a", "z m b a"),  # the alphabet is not the order
    ("a>b>d a>c>d", "a b c d"),
]


@pytest.mark.req("R46", "R45", "E4")
@pytest.mark.parametrize("text, names", CASES)
def test_a_change_at_the_top_invalidates_everything(text: str, names: str) -> None:
    top, *_ = names.split()
    assert rebuild_set(graph_of(graph(text)), changed=[sid(top)]) == set(names.split())


@pytest.mark.req("R46", "R45", "E4")
@pytest.mark.parametrize("text, names", CASES)
def test_a_change_half_way_spares_its_sibling(text: str, names: str) -> None:
    _, left, _, bottom = names.split()
    assert rebuild_set(graph_of(graph(text)), changed=[sid(left)]) == {left, bottom}


@pytest.mark.req("R54")
def test_what_is_rebuilt_is_changed_incomplete_failed_and_below_and_nothing_else() -> None:
    of = graph_of(graph("z>m>a z>b y>x w>v u"))
    found = rebuild_set(of, changed=[sid("m")], incomplete=[sid("y")], failed=[sid("w")])
    assert found == {"m", "a", "y", "x", "w", "v"}
    assert rebuild_set(of, changed=[]) == set()


@pytest.mark.req("R16")
@pytest.mark.parametrize(
    "text, path",
    [
        ("a>b>c>a", "a → c → b → a"),
        ("a>a", "a → a"),
        ("x>z>m>z y>x", "m → z → m"),
        ("b>a>b c>a>c", "a → b → a"),  # of two the first
    ],
)
def test_a_circle_is_refused_with_its_path(text: str, path: str) -> None:
    with pytest.raises(PlanError) as caught:
        graph_of(graph(text))
    (problem,) = caught.value.problems
    assert problem.message == f"the steps need each other in a circle: {path}"


@pytest.mark.req("R16")
def test_an_unknown_need_is_refused() -> None:
    with pytest.raises(PlanError, match="'a' needs 'ghost', which is no step"):
        plan(step("a", "ghost"))


@pytest.mark.parametrize("wrong", ["", "1a", "a b", "a/b", "a" * 129, "ä", "a\n"])
def test_an_id_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(PlanError, match="is not a step id"):
        plan(step(wrong))


def test_a_need_said_twice_and_a_plan_without_steps_are_refused() -> None:
    with pytest.raises(PlanError, match="needs 'a' twice"):
        plan(step("a"), step("b", "a", "~a"))
    with pytest.raises(PlanError, match="no steps"):
        plan()


def test_waves_are_levels_in_the_order_of_ids() -> None:
    of = graph_of(graph("z>m>a z>b y>a"))
    assert of.waves() == [["y", "z"], ["b", "m"], ["a"]]
    assert list(of.order) == ["y", "z", "b", "m", "a"]
    assert of.dependents == {"z": ("b", "m"), "m": ("a",), "y": ("a",)}


def test_a_need_of_order_counts_for_the_order() -> None:
    assert graph_of(plan(step("a", "~z"), step("z"))).order == ("z", "a")


def test_a_very_deep_plan_needs_no_recursion() -> None:
    names = [f"s{number}" for number in range(100_000)]
    steps = [step(name, *names[max(0, at - 1) : at]) for at, name in enumerate(names)]
    of = graph_of(plan(*steps))
    assert of.order[-1] == names[-1]
    assert of.wave[sid(names[-1])] == 99_999
    assert len(of.below([sid("s0")])) == 100_000
    with pytest.raises(PlanError, match="circle: s0 → s99999 → s99998"):
        graph_of(plan(step("s0", "s99999"), *steps[1:]))


@st.composite
def acyclic(draw: st.DrawFn) -> Plan:
    names = draw(st.permutations([f"n{number}" for number in range(draw(st.integers(1, 9)))]))
    steps = []
    for place, name in enumerate(names):
        above = draw(st.lists(st.sampled_from(names[:place]), unique=True)) if place else []
        steps.append(step(name, *above))
    return plan(*draw(st.permutations(steps)))


@pytest.mark.req("R16", "R45")
@given(acyclic(), st.data())
def test_order_and_reach_are_what_the_definition_says(of: Plan, data: st.DataObject) -> None:
    found = graph_of(of)
    assert sorted(found.order) == sorted(of.steps)
    for one in of.steps.values():
        assert all(found.rank[need.step] < found.rank[one.id] for need in one.needs)
        highest = max((found.wave[need.step] for need in one.needs), default=-1)
        assert found.wave[one.id] == highest + 1
    changed = data.draw(st.sets(st.sampled_from(sorted(of.steps))))

    def reached(name: StepId) -> bool:
        return name in changed or any(reached(need.step) for need in of.steps[name].needs)

    assert found.below(changed) == {name for name in of.steps if reached(name)}


def shown() -> list[list[str]]:
    text = "z>m>a z>b>a y>a x>w>v x>u q>a k>m"
    return [list(wave) for wave in graph_of(graph(text)).waves()]


@pytest.mark.req("R38", "E14")
@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_the_order_does_not_depend_on_the_process(seed: str) -> None:
    root = Path(__file__).parents[2]
    code = "import json; from tests.core.test_waves import shown; print(json.dumps(shown()))"
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{root / 'src'}:{root}"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
    assert json.loads(done.stdout) == shown()
    assert shown()[1] == ["b", "m", "u", "w"]
