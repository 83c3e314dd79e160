"""Files that say everything a format can say: each field is known, is used or kept, and comes back."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.refs import w_ref
from holdfast.formats.atomicguardout import workflow_documents
from holdfast.formats.planfile import Loaded, load_plan
from holdfast.formats.planspecout import planspec_document
from holdfast.formats.sunwellout import tasks_document
from holdfast.model.plan import Need, StepId, plan_digest

FOREIGN = Path(__file__).parent / "foreign"


def load(name: str) -> Loaded:
    return load_plan(str(FOREIGN / name))


def data(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOREIGN / name).read_text())
    return found


def codes(loaded: Loaded) -> set[str]:
    return {item.code for item in loaded.warnings}


@pytest.mark.req("R17", "R2", "R3", "R4")
def test_a_workflow_with_every_field_is_read_whole() -> None:
    loaded = load("workflow.json")
    assert codes(loaded) == set()
    test, code = loaded.plan.steps.values()
    assert (test.id, code.id, code.needs) == ("g_test", "g_impl", (Need(StepId("g_test")),))
    assert test.model == code.model == "ollama:qwen2.5-coder:14b"
    assert test.parameters == {"temperature": 0.2}
    assert test.specification == code.specification == "A stack with push, pop and peek."
    assert test.constraints == "Only the standard library."
    assert test.prompt == data("prompts.json")["g_test"]
    assert [(guard.kind, guard.name) for guard in test.guards] == [
        ("syntax", "syntax"),
        ("human", "Are these the right tests?"),
    ]
    assert (code.retries, code.patience, code.escalate, code.rounds) == (2, 2, ("g_test",), 1)
    assert workflow_documents(loaded.plan) == (data("workflow.json"), data("prompts.json"))


@pytest.mark.req("C14", "R9")
def test_other_prompts_make_another_plan_of_the_same_structure(tmp_path: Path) -> None:
    (tmp_path / "workflow.json").write_text((FOREIGN / "workflow.json").read_text())
    found = []
    for task in ("Write the stack.", "Write the stack again."):
        prompts = data("prompts.json")
        prompts["g_impl"]["task"] = task
        (tmp_path / "prompts.json").write_text(json.dumps(prompts))
        found.append(load_plan(str(tmp_path / "workflow.json")).plan)
    assert w_ref(found[0]) == w_ref(found[1])
    assert plan_digest(found[0]) != plan_digest(found[1])


@pytest.mark.req("R35", "R36")
@pytest.mark.parametrize("name", ["planspec.old.json", "planspec.new.json"])
def test_a_planspec_with_every_field_is_read_whole(name: str) -> None:
    loaded = load(name)
    assert codes(loaded) == {"P910", "P912", "P913"}  # a tool nobody knows, and no model
    steps = loaded.plan.steps
    assert {str(s): {*(need.step for need in step.needs)} for s, step in steps.items()} == {
        "S1": set(),
        "S2": {"S1"},
        "S3": {"S1", "S2"},
        "S4": {"S3"},
    }
    assert [step.uses for step in steps.values()] == ["llm", "human", "llm", "agent"]
    asked = " ".join(json.dumps(step.prompt, ensure_ascii=False) for step in steps.values())
    for words in (
        *("How do kettles boil?", "Three sources", "Boil each three times", "Flat is faster"),
        *("Ten seconds apart", "No run is dropped", "Use the same cup", "Is it clear?"),
        *("It is answered", "It is not", "You are literature-searcher."),
    ):
        assert words in asked
    assert steps[StepId("S4")].specification == "A page with the answer"
    assert steps[StepId("S1")].outputs == ("findings",)
    assert loaded.plan.goal == "Find out which kettle boils fastest"
    assert planspec_document(loaded.plan) == data(name)


@pytest.mark.req("R91", "R60")
def test_a_session_with_every_field_is_read_whole() -> None:
    loaded = load("session.json")
    assert [item.message for item in loaded.warnings] == [
        "step 'shape' has no model, and 2 more like it",
        "1 task is said to be complete; the file does not hold what they made",
    ]
    steps = loaded.plan.steps
    assert steps[StepId("serve")].needs == (Need(StepId("shape")),)
    assert steps[StepId("serve")].produces == ("serve.py",)
    assert [guard.config for guard in steps[StepId("serve")].guards] == [
        ["python", "serve.py", "--check"]
    ]
    assert steps[StepId("shape")].contract == "A class Page"
    assert tasks_document(loaded.plan) == data("session.json")
