"""The snapshot of a plan that a run keeps."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import BugError, PlanError
from holdfast.model.digest import Json
from holdfast.model.plan import (
    PRIORITIES,
    WORK,
    Guard,
    Input,
    Limits,
    Need,
    Plan,
    Step,
    StepId,
    plan_bytes,
    plan_digest,
    plan_from_json,
    plan_json,
)
from tests.core.builders import plan, sid, step

texts = st.text(st.characters(codec="utf-8"), max_size=5)
words = st.lists(texts, max_size=2).map(tuple)
numbers = st.floats(allow_nan=False, allow_infinity=False)
seconds = st.none() | st.floats(0, 1e6)
keys = texts.filter(lambda key: key != "$decimal")
values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=2),
    max_leaves=4,
)
guards = st.recursive(
    st.builds(
        Guard,
        kind=texts,
        config=values,
        name=texts,
        timeout=seconds,
        fatal_on=st.lists(st.integers(0, 255), max_size=2).map(tuple),
    ),
    lambda inner: st.builds(Guard, kind=texts, items=st.lists(inner, max_size=2).map(tuple)),
    max_leaves=3,
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    steps = []
    names = ["z", "m", "a"][: draw(st.integers(1, 3))]
    for place, name in enumerate(names):
        needs = [
            Need(sid(above), draw(st.sampled_from(["data", "sequence"])), draw(texts))
            for above in names[:place]
            if draw(st.booleans())
        ]
        given = {
            "uses": draw(texts),
            "run": draw(words),
            "shell": draw(texts),
            "prompt": draw(values),
            "model": draw(texts),
            "parameters": draw(st.dictionaries(keys, values, max_size=2)),
            "values": draw(st.dictionaries(keys, values, max_size=2)),
            "needs": tuple(needs),
            "inputs": tuple(Input(draw(texts), draw(st.booleans())) for _ in range(place)),
            "produces": draw(words),
            "outputs": draw(words),
            "schema": draw(values),
            "guards": draw(st.lists(guards, max_size=2).map(tuple)),
            "retries": draw(st.integers(0, 9)),
            "lost_retries": draw(st.integers(0, 9)),
            "timeout": draw(seconds),
            "priority": draw(st.sampled_from(sorted(PRIORITIES))),
            "effects": draw(st.sampled_from(["none", "workspace", "external"])),
            "idempotent": draw(st.booleans()),
            "workspace": draw(st.sampled_from(["", "shared", "scratch"])),
            "reuse": draw(st.sampled_from(["merkle", "content", "strict"])),
            "fresh_for": draw(seconds),
            "share": draw(st.booleans()),
            "env": draw(words),
            "secrets": draw(words),
            "tool_versions": draw(st.dictionaries(keys, words, max_size=2)),
        }
        for field in ("description", "contract", "constraints", "specification", "agent", "action"):
            given[field] = draw(texts)
        steps.append(Step(sid(name), **given))  # type: ignore[arg-type]  # by the names of the fields
    limits = Limits(draw(seconds), draw(st.none() | st.integers(1, 9)), draw(st.none()))
    return replace(plan(*steps, limits=limits), goal=draw(texts), project=draw(texts))


@pytest.mark.req("R10")
@settings(max_examples=150, deadline=None)
@given(plans())
def test_a_plan_is_read_back_as_it_was(of: Plan) -> None:
    assert plan_from_json(plan_json(of)) == of
    kept: dict[str, Json] = json.loads(plan_bytes(of))
    again = plan_from_json(kept)
    assert again == of
    assert plan_digest(again) == plan_digest(of)


@settings(max_examples=100, deadline=None)
@given(plans(), st.data())
def test_steps_that_were_made_from_one_are_kept_as_if_each_stood_alone(
    of: Plan, data: st.DataObject
) -> None:
    whole = next(iter(of.steps.values()))
    made = [replace(whole, id=sid(f"s{number}")) for number in range(4)]
    for place, field in enumerate(data.draw(st.permutations(("values", "prompt", "retries", "")))):
        others: dict[str, Json] = {"values": {"n": place}, "prompt": "p", "retries": place}
        if field:
            other = {field: others[field]}
            made[place] = replace(made[place], **other)  # type: ignore[arg-type]  # one, by its name
    kept = json.loads(plan_bytes(replace(of, steps={one.id: one for one in made})))["steps"]
    for one in made:
        alone = json.loads(plan_bytes(replace(of, steps={one.id: one})))["steps"]
        assert alone[one.id] == kept[one.id]


def test_the_digest_of_a_plan_covers_its_prompts_and_not_the_order_of_its_steps() -> None:
    one = plan(step("a"), step("b"))
    assert plan_digest(plan(step("b"), step("a"))) == plan_digest(one)
    assert plan_digest(plan(step("a"), replace(step("b"), prompt="p"))) != plan_digest(one)


def test_a_snapshot_of_another_kind_is_refused() -> None:
    with pytest.raises(PlanError, match=r"is not 'holdfast\.plan/1'"):
        plan_from_json({"schema": "other/1"})
    strange = plan_json(plan(step("a")))
    strange["steps"] = {"a": {"colour": "red"}}
    with pytest.raises(BugError, match="colour"):
        plan_from_json(strange)


def test_a_cycle_of_a_ticket_asks_a_model_only_if_it_names_one() -> None:
    assert Step(StepId("cycle-1"), uses=WORK, model="fake:m").asks_model
    assert not Step(StepId("cycle-1"), uses=WORK).asks_model
