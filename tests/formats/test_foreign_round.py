"""There and back: what a format has words for comes back the same, and what it has none for is named."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.formats.atomicguardout import workflow_documents
from holdfast.formats.leftout import THE_PLAN, left_out
from holdfast.formats.planfile import Asked, load_text
from holdfast.formats.planout import plan_data
from holdfast.formats.planspecout import planspec_document
from holdfast.formats.sunwellout import sunwell_document, tasks_document
from holdfast.model.digest import Json
from holdfast.model.plan import Guard, Input, Limits, Need, Plan, Step, StepId

PROMPTS = "prompts.json"
FOLDER = Path("/nowhere")
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
TEXTS = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x24F, categories=["L", "N", "P", "Z"])
)
SAID = TEXTS.filter(str.strip)


def load(
    data: Mapping[str, Json], prompts: Mapping[str, Json] | None = None, root: Path = FOLDER
) -> Plan:
    asked = Asked(name="line")
    if prompts:
        (root / PROMPTS).write_text(json.dumps(prompts))
        asked = Asked(name="line", prompts=str(root / PROMPTS))
    return load_text(json.dumps(data).encode(), "made.json", str(root), asked).plan


FORMATS: dict[str, Callable[[Plan], dict[str, Json]]] = {
    "sunwell": sunwell_document,
    "tasks": tasks_document,
    "planspec": planspec_document,
}


# --- word for word ----------------------------------------------------------------------------------


@st.composite
def workflows(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """A workflow with all that the format may say, and prompts for some of its pairs."""
    names = sorted(draw(st.sets(NAMES, min_size=1, max_size=4)))
    guards = st.sampled_from(["syntax", "human", "dynamic_test", "import"])
    nested = st.recursive(
        guards | st.builds(lambda kind: {"type": kind, "config": {"x": 1}}, guards),
        lambda inner: st.builds(
            lambda items, policy, order: {"compose": order, "policy": policy, "guards": items},
            st.lists(inner, min_size=1, max_size=2),
            st.sampled_from(["all_pass", "any_pass", "majority_pass"]),
            st.sampled_from(["sequential", "parallel"]),
        ),
        max_leaves=4,
    )
    pairs: dict[str, Any] = {}
    for number, name in enumerate(names):
        above = draw(st.lists(st.sampled_from(names[:number]), unique=True)) if number else []
        more = draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "generator": st.sampled_from(["OllamaGenerator", "HumanGenerator", "Own"]),
                    "generator_config": st.dictionaries(NAMES, TEXTS | st.integers(), max_size=2),
                    "description": TEXTS,
                    "guards": st.lists(nested, min_size=1, max_size=2),
                    "guard_config": st.dictionaries(NAMES, st.booleans(), max_size=1),
                    "output_type": TEXTS,
                    "r_patience": st.integers(1, 3),
                    "unknown": st.integers(),
                },
            )
        )
        pairs[name] = {
            "guard": "composite" if "guards" in more else "syntax",
            "requires": above,
            **more,
        }
    head = draw(
        st.fixed_dictionaries(
            {"name": SAID.filter(str.isprintable)},
            optional={
                "description": TEXTS,
                "specification": TEXTS | st.builds(lambda t: {"type": "inline", "ref": t}, TEXTS),
                "constraints": TEXTS,
                "model": st.just("m"),
                "provider": st.sampled_from(["ollama", "openai"]),
                "rmax": st.integers(0, 5),
                "$schema": st.just("x"),
            },
        )
    )
    told = {
        name: {"role": draw(TEXTS), "task": draw(SAID), "feedback_wrapper": "{feedback}"}
        for name in draw(st.sets(st.sampled_from(names)))
    }
    return {**head, "action_pairs": pairs}, told


@pytest.mark.req("R17", "C3")
@given(workflows())
def test_a_workflow_and_its_prompts_come_back_word_for_word(
    tmp_path_factory: pytest.TempPathFactory, found: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    workflow, prompts = found
    plan = load(workflow, prompts, tmp_path_factory.mktemp("w") if prompts else FOLDER)
    assert workflow_documents(plan) == (workflow, prompts)


@st.composite
def sessions(draw: st.DrawFn) -> dict[str, Any]:
    """The checkpoint of a session."""
    names = sorted(draw(st.sets(NAMES, min_size=1, max_size=5)))
    tasks = []
    for number, name in enumerate(names):
        above = draw(st.lists(st.sampled_from(names[:number]), unique=True)) if number else []
        more = {
            "mode": draw(st.sampled_from(["generate", "modify", "execute", "research"])),
            "contract": draw(st.none() | TEXTS),
            "target_path": draw(st.none() | st.just(f"out/{name}.txt")),
            "verification_command": draw(st.none() | st.just("true")),
            "status": draw(st.sampled_from(["pending", "completed", "failed"])),
        }
        tasks.append({"id": name, "description": draw(TEXTS), "depends_on": above, **more})
    done = [task["id"] for task in tasks if task["status"] == "completed"]
    return {"goal": draw(SAID), "tasks": tasks, "completed_ids": done, "context": {"a": [1, None]}}


@pytest.mark.req("C3", "R91")
@given(sessions())
def test_the_checkpoint_of_a_session_comes_back_word_for_word(session: dict[str, Any]) -> None:
    assert tasks_document(load(session)) == session


# --- what there is no word for ----------------------------------------------------------------------

ODD: dict[str, Any] = {
    "inputs": (Input("src/*.py"),),
    "produces": ("one.txt", "two.txt"),
    "outputs": ("score",),
    "schema": {"type": "object"},
    "guards": (Guard("regex", {"pattern": "a", "must": "match"}, "regex"),),
    "retries": 4,
    "timeout": 90.0,
    "priority": "high",
    "effects": "external",
    "approve": "always",
    "budget": {"attempts": 3},
    "patience": 2,
    "resources": {"gpu": 1},
    "runs_on": "lab",
    "reuse": "content",
    "fresh_for": 3600.0,
    "env": ("HOME",),
    "secrets": ("KEY",),
    "tool_versions": {"make": ("make", "--version")},
    "contract": "It works.",
    "constraints": "Keep it short.",
    "specification": "As agreed.",
    "values": {"depth": 3},
    "description": "What it is for",
}


@st.composite
def own_plans(draw: st.DrawFn) -> Plan:
    """Plans that say all kinds of things, each of which some format has no word for."""
    names = sorted(draw(st.sets(NAMES, min_size=1, max_size=4)))
    steps = {}
    for number, name in enumerate(names):
        needs = tuple(
            Need(StepId(one), draw(st.sampled_from(["data", "sequence"])))
            for one in names[:number]
            if draw(st.booleans())
        )
        said = {key: ODD[key] for key in draw(st.sets(st.sampled_from(sorted(ODD)), max_size=5))}
        if "produces" in said:
            said["produces"] = tuple(f"{name}/{path}" for path in said["produces"])
        steps[StepId(name)] = Step(StepId(name), shell="make", needs=needs, **said)
    limits = draw(st.sampled_from([Limits(), Limits(parallel=2)]))
    return Plan("line", steps, goal=draw(TEXTS), limits=limits)


@pytest.mark.req("C3", "R35", "R62")
@pytest.mark.parametrize("form", ["atomicguard", *FORMATS])
@given(plan=own_plans())
def test_a_plan_comes_back_but_for_what_is_named(form: str, plan: Plan) -> None:
    made = workflow_documents(plan)[0] if form == "atomicguard" else FORMATS[form](plan)
    again = load(made)
    lost = left_out(plan, again)
    assert [*again.steps] == [*plan.steps]
    before, after = plan_data(plan)["steps"], plan_data(again)["steps"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    for name, step in before.items():
        gone = {key for key, names in lost.items() if name in names}
        assert gone <= step.keys()
        assert {k: v for k, v in step.items() if k not in gone} == {
            k: after[name].get(k) for k in step if k not in gone
        }
        edges = {need.step for need in plan.steps[StepId(name)].needs}
        assert {need.step for need in again.steps[StepId(name)].needs} == edges
    if plan.limits != Limits():
        assert lost["limits"] == [THE_PLAN]


@pytest.mark.parametrize("form", ["atomicguard", *FORMATS])
def test_each_thing_that_only_a_plan_file_can_say_is_named(form: str) -> None:
    bare = Step(StepId("a"), shell="make")
    said: dict[str, Any] = {
        "fresh_for": 60.0,
        "inputs": (Input("x"),),
        "effects": "external",
        "secrets": ("K",),
    }
    for key, value in said.items():
        plan = Plan("line", {StepId("a"): replace(bare, **{key: value})})
        made = workflow_documents(plan)[0] if form == "atomicguard" else FORMATS[form](plan)
        assert left_out(plan, load(made))[key] == ["a"]


def test_what_is_added_to_a_plan_from_elsewhere_is_named_too() -> None:
    spec = {"id": "a", "description": "Do it.", "requires": []}
    plan = load({"version": "1.0", "goal": "g", "graph": {"artifacts": {"a": spec}}})
    assert left_out(plan, load(sunwell_document(plan))) == {}
    step = replace(plan.steps[StepId("a")], guards=(Guard("syntax", "python", "syntax"),))
    changed = replace(plan, steps={StepId("a"): step})
    assert left_out(changed, load(sunwell_document(changed))) == {"guards": ["a"]}
