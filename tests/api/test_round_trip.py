"""Any plan that functions make is the same plan when it is written and loaded again."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.errors import PlanError
from holdfast.model.plan import StepId, plan_digest
from tests.api import parts

pytestmark = pytest.mark.req("R180", "R181")

ALLOWED = {"P012", "P053"}  # a field that a type does not have, two that write the same file
letters = st.characters(exclude_categories=["C"])
texts = st.text(letters, max_size=12) | st.sampled_from(
    ["no", "1e3", "${{ x }}", "$${{", "a\nb", "$", "~"]
)
constants = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-2, 2) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=5,
)
arguments = st.one_of(
    constants.map(lambda value: ("constant", value)),
    st.integers(0, 9).map(lambda at: ("whole", at)),
    st.tuples(st.integers(0, 9), st.sampled_from(["facts", "kind", "0"])).map(
        lambda x: ("field", x)
    ),
    st.tuples(st.integers(0, 9), texts, texts).map(lambda x: ("text", x)),
    st.just(("param", None)),
)
calls = st.tuples(st.sampled_from(parts.STEPS), arguments, arguments, st.booleans())


def _value(kind: str, what: object, made: list[Any], topic: str) -> object:
    if kind == "constant":
        return what
    if kind == "param":
        return [topic]
    if not made:
        return "nothing yet"
    if kind == "whole":
        assert isinstance(what, int)
        return made[what % len(made)]
    assert isinstance(what, tuple)
    earlier = made[what[0] % len(made)]
    if kind == "field":
        return earlier[what[1]]
    return f"{what[1]}{earlier}{what[2]}"


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(wanted=st.lists(calls, min_size=1, max_size=6), topic=texts)
def test_what_is_written_is_loaded_as_it_was(
    wanted: list[tuple[Any, tuple[str, object], tuple[str, object], bool]], topic: str
) -> None:
    @holdfast.plan(goal="any")
    def any_plan(topic: str = "") -> None:
        made: list[Any] = []
        for step, one, two, last in wanted:
            chosen = step.after(made[-1]) if last and made else step
            chosen = chosen.named(f"s{len(made)}")
            made.append(chosen(_value(*one, made, topic), other=_value(*two, made, topic)))

    try:
        built = any_plan.build(topic)
    except PlanError as error:
        if {problem.code for problem in error.problems} <= ALLOWED:
            return
        raise
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "plan.yaml")
        file.write_text(built.to_yaml(), encoding="utf-8")
        again = holdfast.load(str(file))
    event("compared")
    assert again.build() == built.build()
    assert plan_digest(again.build()) == plan_digest(built.build())


def test_params_come_back_as_params(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    text = "params: {x: {type: string, default: a}}\nsteps: {s: {with: {v: '${{ params.x }}'}, shell: cat}}\n"
    file.write_text(text)
    loaded = holdfast.load(str(file))
    (tmp_path / "again.yaml").write_text(loaded.to_yaml())
    again = holdfast.load(str(tmp_path / "again.yaml"))
    assert again.build() == loaded.build()
    other = holdfast.load(str(tmp_path / "again.yaml"), params={"x": "b"})
    assert other.build() == holdfast.load(str(file), params={"x": "b"}).build()
    assert other.steps[StepId("s")].values == {"v": "b"}
    assert holdfast.load(str(file), params={"x": "b"}).to_yaml().count("params") == 0
    loaded.goal = "another"
    assert "another" in loaded.to_yaml()
