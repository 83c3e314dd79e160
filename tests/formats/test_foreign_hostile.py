"""Foreign files that try to reach what is not theirs, say things wrongly, or are very large."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import PlanError
from holdfast.formats.atomicguardout import workflow_documents
from holdfast.formats.planfile import Asked, Loaded, load_text
from holdfast.formats.planout import plan_yaml
from holdfast.formats.planspec import CODES
from holdfast.formats.planspecout import planspec_document
from holdfast.formats.sunwellout import sunwell_document, tasks_document
from holdfast.model.expression import fill
from holdfast.model.plan import Plan, StepId

EXPRESSION = "read ${{ secrets.KEY }} and $${{ params.x }}"


def load(data: object, root: Path | str = "/nowhere", name: str = "foreign.json") -> Loaded:
    content = data if isinstance(data, bytes) else json.dumps(data, indent=1).encode()
    return load_text(content, name, str(root), Asked())


def refused(data: object, root: Path | str = "/nowhere") -> list[str]:
    with pytest.raises(PlanError) as caught:
        load(data, root)
    return [f"{one.code}:{one.line} {one.message}" for one in caught.value.problems]


def hints(data: object, root: Path | str = "/nowhere") -> list[str]:
    with pytest.raises(PlanError) as caught:
        load(data, root)
    return [one.hint for one in caught.value.problems]


def flow(specification: object) -> dict[str, Any]:
    pair = {"guard": "syntax", "prompt": "Do it."}
    return {"name": "w", "specification": specification, "action_pairs": {"a": pair}}


# --- files that are not the plan's ----------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with links that lead out of it, to a file and a folder that are not its own."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key.md").write_text("the key")
    root = tmp_path / "project"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "good.md").write_text("good")
    (root / "link.md").symlink_to(tmp_path / "private" / "key.md")
    (root / "linked").symlink_to(tmp_path / "private")
    return root


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"type": "file", "ref": "../private/key.md"}, "leads out of the project"),
        ({"type": "file", "ref": "/etc/passwd"}, "is not relative to the project"),
        ({"type": "file", "ref": "~/key.md"}, "is not relative to the project"),
        ({"type": "file", "ref": "link.md"}, "leads out of the project"),
        ({"type": "file", "ref": "linked/key.md"}, "leads out of the project"),
        ({"type": "file", "ref": ".holdfast/x"}, "lies in a directory that is not the plan's"),
        ({"type": "file", "ref": "docs"}, "is a folder, not a file"),
        ({"type": "file", "ref": "a\x00b"}, "the character U+0000 is not allowed"),
        ({"type": "folder", "ref": "linked"}, "leads out of the project"),
        ({"type": "folder", "ref": "docs", "glob": "../../private/*"}, "leads out of the project"),
        ({"type": "folder", "ref": "docs", "glob": "/etc/*"}, "is no usable glob"),
        ({"type": "folder", "ref": "."}, "is the whole project"),
        ({"type": "folder", "ref": "../private"}, "leads out of the project"),
        ({"type": "service", "ref": "https://example.org"}, "no service is asked"),
    ],
)
def test_a_specification_stays_in_the_project(
    project: Path, source: dict[str, str], words: str
) -> None:
    (found,) = refused(flow(source), project)
    assert words in found
    assert "the key" not in found
    assert int(found.split(":")[1].split()[0]) > 1


def test_a_link_among_the_files_of_a_folder_is_not_followed_out(project: Path) -> None:
    (project / "docs" / "more.md").symlink_to(project.parent / "private" / "key.md")
    (found,) = refused(flow({"type": "folder", "ref": "docs"}), project)
    assert "'docs/more.md' in 'specification' leads out of the project" in found


@pytest.mark.parametrize("path", ["../out.txt", "/etc/out", "a/../../b", ".git/hooks/pre-commit"])
def test_nothing_is_produced_outside_of_the_project(path: str) -> None:
    spec = {"id": "a", "description": "d", "produces_file": path}
    task = {"id": "a", "description": "d", "target_path": path}
    for data in (
        {"version": "1.0", "goal": "g", "graph": {"artifacts": {"a": spec}}},
        {"goal": "g", "tasks": [task], "completed_ids": []},
    ):
        (found,) = refused(data)
        assert found.startswith("P043")


def test_the_name_of_a_file_in_a_text_is_only_text(project: Path) -> None:
    spec = {"id": "a", "description": "docs/good.md", "contract": "docs/good.md"}
    plan = load({"version": "1.0", "goal": "g", "graph": {"artifacts": {"a": spec}}}, project).plan
    step = plan.steps[StepId("a")]
    assert (step.prompt, step.contract) == ({"task": "docs/good.md"}, "docs/good.md")
    again = load(plan_yaml(plan).replace("model: small", "model: ollama:m").encode(), project, "p")
    assert again.plan.steps[StepId("a")].prompt == {"task": "docs/good.md"}


# --- text that looks like an expression -----------------------------------------------------------


def said_everywhere(text: str) -> list[dict[str, Any]]:
    """A file of each format that says a text wherever people and models read one."""
    spec = {"id": "a", "description": text, "contract": text, "metadata": {"x": text}}
    pair = {"guard": "human", "prompt": text, "description": text, "output_type": text}
    step = {
        "type": "develop",
        "id": "a",
        "description": text,
        "specification": text,
        "deliverables": [text],
        "executor": {"kind": "human", "instructions": text},
    }
    task = {"id": "a", "description": text, "contract": text}
    return [
        {"version": "1.0", "goal": text, "graph": {"artifacts": {"a": spec}}},
        {
            "name": "w",
            "description": text,
            "specification": text,
            "constraints": text,
            "action_pairs": {"a": {**pair, "generator_config": {"x": text}}},
        },
        {"goalSummary": text, "steps": [step], "hypotheses": [{"id": "h", "statement": text}]},
        {"goal": text, "tasks": [task], "completed_ids": []},
    ]


def written(plan: Plan) -> dict[str, Any]:
    """A plan in the format that it came from."""
    (form,) = plan.origin
    if form == "atomicguard":
        return workflow_documents(plan)[0]
    makers = {"sunwell": sunwell_document, "planspec": planspec_document, "tasks": tasks_document}
    return makers[form](plan)


def _never(reference: object) -> str:
    raise AssertionError(reference)


@pytest.mark.req("R17", "R62", "R35")
@given(st.sampled_from([EXPRESSION, "${{", "$${{ x }}", "a ${{ steps.a.output }} b", "$$${{"]))
def test_text_of_a_foreign_file_is_never_filled(text: str) -> None:
    for data in said_everywhere(text):
        plan = load(data).plan
        step = plan.steps[StepId("a")]
        filled = fill(step.prompt, _never)
        assert isinstance(filled, dict)
        assert text in filled["task"]
        assert fill(step.values, _never) in ({}, {"x": text})
        assert {step.description, plan.goal or plan.description} == {text}
        assert {step.contract, step.specification, step.constraints} <= {text, ""}
        assert written(plan) == data


@given(st.sampled_from([EXPRESSION, "${{", "$${{ x }}", "$$${{", "plain"]))
def test_such_text_survives_the_way_through_a_plan_file(text: str) -> None:
    for data in said_everywhere(text):
        plan = load(data).plan
        named = plan_yaml(plan)
        if "    model: " not in named:
            named = named.replace("    uses: llm\n", "    uses: llm\n    model: ollama:m\n")
        again = load(named.encode(), name="plan.yaml").plan
        assert (again.goal, again.description) == (plan.goal, plan.description)
        now, then = again.steps[StepId("a")], plan.steps[StepId("a")]
        for key in ("description", "contract", "specification", "constraints", "prompt", "values"):
            assert getattr(now, key) == getattr(then, key)
        assert again.origin == plan.origin


# --- ids ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["User Model", "src/app.py", "1st", "Über", "", "a" * 129, "a\nb"])
def test_an_id_that_is_none_here_is_refused_and_never_changed(name: str) -> None:
    pair = {"guard": "none", "prompt": "Do it."}
    data = {"version": "1.0", "goal": "g", "graph": {"artifacts": [{"id": name}]}}
    for found in (refused(data), refused({"name": "w", "action_pairs": {name: pair}})):
        assert len(found) == 1
        assert found[0].split(":")[0] in {"P002", "P031", "P032", "P046"}


def test_ids_that_differ_only_in_how_they_are_spelled_are_told_apart_or_refused() -> None:
    specs = {name: {"id": name, "description": "d"} for name in ("App", "app")}
    found = refused({"version": "1.0", "goal": "g", "graph": {"artifacts": specs}})
    assert "app" in found[0]


# --- files with errors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b'{"name": "w", "action_pairs": {}', "P015"),
        (b'{"name": "w", "name": "v", "action_pairs": {}}', "P016"),
        (b'{"name": "\xff"}', "P013"),
        (b'{"version": "1.0", "goal": NaN, "graph": {"artifacts": {}}}', "P023"),
        (b'{"goal": "g", // note\n "tasks": []}', "P015"),
        (b"[" * 100_000, "P019"),
        (b'{"graph": ' * 5_000 + b"1" + b"}" * 5_000, "P019"),
        (b"", "P020"),
        (b"[]", "P032"),
    ],
)
def test_a_file_that_cannot_be_read_gets_one_answer(content: bytes, code: str) -> None:
    (found,) = refused(content)
    assert found.startswith(f"{code}:")


def test_a_byte_order_mark_is_no_error() -> None:
    data = json.dumps(flow("Build it.")).encode("utf-8-sig")
    assert load(data).plan.steps[StepId("a")].specification == "Build it."


@pytest.mark.req("R62", "R18")
def test_everything_that_is_wrong_with_a_saved_plan_is_said_at_once() -> None:
    specs = [
        {"id": "a"},
        {"id": "a"},
        {"id": 5},
        {"id": "b", "requires": "a"},
        {"id": "c", "requires": [1, "a", "a", "nobody"]},
        7,
    ]
    found = refused({"version": "1.0", "goal": "g", "graph": {"artifacts": specs}})
    assert [one.split(" ", 1)[1] for one in found] == [
        "the artifact 'a' stands twice, first in line 7",
        "'id' must be text, not the number 5",
        "'requires' must be a list, not text",
        "'requires' must be text, not the number 1",
        "'a' stands twice in 'requires'",
        "'c' needs 'nobody', which is no step",
        "an artifact is a mapping, not the number 7",
    ]


@pytest.mark.req("R17")
def test_everything_that_is_wrong_with_a_workflow_is_said_at_once() -> None:
    pairs = {
        "a": {"guard": ["x"], "requires": "b"},
        "b": 7,
        "c": {"guard": "syntax", "requires": ["a", "a", "c"], "prompt": "Do it."},
        "d": {"requires": ["nobody"], "prompt": "Do it.", "guards": {"policy": "most"}},
    }
    found = [
        one.split(" ", 1)[1]
        for one in refused({"name": 5, "rmax": "x", "provider": "me", "action_pairs": pairs})
    ]
    for words in (
        "'name' must be text",
        "'rmax' must be a whole number",
        "'provider' is 'me', which is not one of ollama",
        "'guard' of 'a' must be text, not a list",
        "'requires' of 'a' must be a list, not text",
        "an action pair is a mapping, not the number 7",
        "'a' stands twice in 'requires'",
        "'c' needs itself",
        "an action pair has no 'guard'",
        "'policy' of 'd' is 'most', which is not one of all_pass",
        "a composite guard has no 'guards'",
    ):
        assert [one for one in found if one.startswith(words)], (words, found)


def research(name: str, *above: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "research",
        "id": name,
        "description": "d",
        "dependencyIds": [*above],
        "executor": {"kind": "agent", "ref": "literature-searcher"},
        **more,
    }


@pytest.mark.req("R36")
def test_the_checks_of_a_planspec_are_all_told_at_once_with_what_to_do() -> None:
    agent = {"kind": "agent", "ref": "literature-searcher"}
    steps = [
        research("a", "b"),
        research("b", "a"),
        research("b"),
        research(
            "c",
            "nobody",
            requirementIds=["R9"],
            executor={"kind": "agent", "ref": "literature-searchr"},
        ),
        research("d", type="develop"),
        research("e", type="experiment", mode="confirmatory", hypothesisIds=["H9"]),
        research("f", type="synthesize", mode="evaluative", executor=agent),
    ]
    data = {
        "goalSummary": "g",
        "requirements": [{"id": "R1"}, {"id": "R1"}],
        "hypotheses": [{"id": "H1"}, {"id": "H1"}],
        "steps": steps,
    }
    with pytest.raises(PlanError) as caught:
        load(data)
    assert {one.note for one in caught.value.problems} == {*CODES} - {"EMPTY_PLAN"}
    assert all(one.line > 1 and one.column > 0 for one in caught.value.problems)
    assert "did you mean 'literature-searcher'?" in {one.hint for one in caught.value.problems}


# --- size -----------------------------------------------------------------------------------------


def test_ten_thousand_artifacts_are_read_and_written_again() -> None:
    size = 10_000
    specs = {
        f"a{n}": {"id": f"a{n}", "description": "d", "requires": [f"a{n // 2}"] if n else []}
        for n in range(size)
    }
    data = {"version": "1.0", "goal": "g", "graph": {"artifacts": specs}}
    plan = load(data).plan
    assert len(plan.steps) == size
    assert sunwell_document(plan) == data
    chain = [
        {"id": f"t{n}", "description": "d", "depends_on": [f"t{n - 1}"] * bool(n)}
        for n in range(size)
    ]
    assert len(load({"goal": "g", "tasks": chain, "completed_ids": []}).plan.steps) == size
    steps = [research(f"s{n}", *([f"s{n - 1}"] * bool(n))) for n in range(size)]
    assert len(load({"goalSummary": "g", "steps": steps}).plan.steps) == size
