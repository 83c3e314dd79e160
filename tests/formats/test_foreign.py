"""Files of other programs become plans, and come back word for word."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import CyclicDependencyError, PlanError, UsageError
from holdfast.formats.artifacts import ArtifactGraph, ArtifactSpec
from holdfast.formats.atomicguardout import workflow_documents
from holdfast.formats.foreignrecords import record_in
from holdfast.formats.planfile import Asked, Loaded, load_plan, load_text
from holdfast.formats.planfolder import PlanFolder, Views
from holdfast.formats.planout import plan_yaml
from holdfast.formats.planspec import CODES, EXECUTORS
from holdfast.formats.planspecout import planspec_document
from holdfast.formats.problems import CODES as PROBLEMS
from holdfast.formats.sunwellout import goal_hash, sunwell_document, tasks_document
from holdfast.model.agent import Action, Agent, Registry
from holdfast.model.plan import Guard, Need, Plan, Step, StepId, plan_digest

FOREIGN = Path(__file__).parent / "foreign"
HEX = "0123456789abcdef"

# --- helpers --------------------------------------------------------------------------------------


def load(data: object, root: Path | str = "/nowhere", own: Registry | None = None) -> Loaded:
    content = json.dumps(data, indent=1).encode()
    return load_text(content, "foreign.json", str(root), Asked(own=lambda: own))


def problems(data: object, root: Path | str = "/nowhere") -> list[str]:
    with pytest.raises(PlanError) as caught:
        load(data, root)
    return [f"{item.code} {item.message}" for item in caught.value.problems]


def warned(loaded: Loaded) -> list[str]:
    return [f"{item.code} {item.message}" for item in loaded.warnings]


def workflow(**pairs: Any) -> dict[str, Any]:
    return {"name": "w", "rmax": 2, "action_pairs": pairs}


def step_of(data: dict[str, Any], name: str = "a", root: Path | str = "/nowhere") -> Step:
    return load(data, root).plan.steps[StepId(name)]


def saved(*specs: dict[str, Any], **more: Any) -> dict[str, Any]:
    graph = {"artifacts": {spec["id"]: spec for spec in specs}}
    return {"version": "1.0", "goal": "Build it", "graph": graph, **more}


def spec(name: str, *requires: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "description": f"The {name}", "requires": list(requires), **more}


# --- saved plans of artifacts ---------------------------------------------------------------------


@pytest.mark.req("R62", "R18", "C38")
def test_the_documented_plan_loads_once_it_is_corrected() -> None:
    loaded = load_plan(str(FOREIGN / "plan.json"))
    plan = loaded.plan
    assert loaded.foreign == "sunwell"
    assert plan.goal == "Build a REST API with authentication"
    app = plan.steps[StepId("App")]
    assert [need.step for need in app.needs] == ["UserModel", "AuthService"]
    assert app.contract == "create_app() that registers all routes"
    assert app.produces == ("src/app.py",)
    assert app.prompt == {"task": "Flask application factory"}
    tiers = {name: step.model for name, step in plan.steps.items()}
    assert tiers == {
        "UserProtocol": "small",
        "UserModel": "medium",
        "AuthInterface": "small",
        "AuthService": "medium",
        "App": "large",
    }
    assert "P915 2 artifacts are said to be complete" in "\n".join(warned(loaded))


@pytest.mark.req("C38", "C2")
def test_the_documented_plan_as_printed_is_refused_with_all_that_is_wrong() -> None:
    with pytest.raises(PlanError) as caught:
        load_plan(str(FOREIGN / "plan.verbatim.json"))
    found = [(item.code, item.line, item.message) for item in caught.value.problems]
    assert found == [
        ("P083", 28, "wave 1 names 'AuthInterface', which no artifact is called"),
        ("P083", 29, "wave 2 names 'AuthService', which no artifact is called"),
        ("P083", 30, "wave 3 names 'App', which no artifact is called"),
        ("P088", 44, "the hash of 'UserModel' is 'e5f6g7h8'; 'g' is no hexadecimal digit"),
    ]


def test_the_flat_dialect_is_read() -> None:
    flat = {
        "version": "1.0",
        "goal": "Build it",
        "artifacts": [spec("A", wave=1), spec("B", "A", wave=2, produces_file="b.py")],
        "waves": [{"wave": 1, "artifacts": ["A"]}, {"wave": 2, "artifacts": ["B"]}],
        "statistics": {"total_artifacts": 2},
    }
    loaded = load(flat)
    assert loaded.foreign == "sunwell"
    assert loaded.plan.steps[StepId("B")].produces == ("b.py",)
    assert sunwell_document(loaded.plan) == flat


@pytest.mark.req("R68")
@pytest.mark.parametrize("version", ["2.0", "1", 1.0, None, [1]])
def test_another_version_is_refused_and_the_known_one_named(version: Any) -> None:
    with pytest.raises(PlanError) as caught:
        load({**saved(spec("A")), "version": version})
    (problem,) = caught.value.problems
    assert problem.code == "P085"
    assert 'reads "1.0"' in problem.hint


def test_the_tier_that_was_used_wins_over_the_shape_of_the_graph() -> None:
    done = {"A": {"content_hash": "ab12", "model_tier": "large"}}
    loaded = load(saved(spec("A"), spec("B", "A"), execution={"completed": done}))
    assert [step.model for step in loaded.plan.steps.values()] == ["large", "medium"]


@pytest.mark.parametrize(
    "data",
    [
        saved(spec("a", description=" \t")),
        {"goal": "g", "tasks": [{"id": "a", "description": " "}], "completed_ids": []},
    ],
)
def test_a_description_of_blanks_is_none(data: dict[str, Any]) -> None:
    prompt = step_of(data).prompt
    assert prompt in ({"task": "Make a."}, {"task": "a"})


def test_text_of_a_foreign_file_is_never_an_expression() -> None:
    loaded = load(saved(spec("A") | {"description": "say $" + "{{ steps.B.output }}"}, spec("B")))
    assert not loaded.plan.steps[StepId("A")].needs


NAMES = st.sampled_from([f"A{number}" for number in range(8)])
TEXTS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), max_size=30).filter(
    lambda text: "{{" not in text
)
LINES = TEXTS.filter(lambda text: bool(text.strip()) and text.isprintable())


@st.composite
def specs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Artifacts in any order; what one requires has a smaller number."""
    names = sorted(draw(st.sets(NAMES, min_size=1)))
    found = []
    for number, name in enumerate(names):
        above = sorted(draw(st.sets(st.sampled_from(names[:number])))) if number else []
        one: dict[str, Any] = {
            "id": name,
            "description": draw(TEXTS),
            "contract": draw(TEXTS),
            "requires": above,
        }
        if draw(st.booleans()):
            one["produces_file"] = f"out/{name}.py"
        if draw(st.booleans()):
            one["domain_type"] = draw(st.sampled_from(["protocol", "model", "service"]))
        if draw(st.booleans()):
            one["metadata"] = draw(st.dictionaries(LINES, TEXTS, max_size=2))
        found.append(one)
    return draw(st.permutations(found))


@pytest.mark.req("R20", "C3")
@given(specs())
def test_a_saved_plan_comes_back_word_for_word(found: list[dict[str, Any]]) -> None:
    document = saved(*found)
    plan = load(document).plan
    assert sunwell_document(plan) == document
    written = load_text(plan_yaml(plan).encode(), "plan.yaml", "/nowhere").plan
    assert sunwell_document(written) == document
    assert plan_digest(written) == plan_digest(
        Plan("foreign", plan.steps, goal=plan.goal, origin=plan.origin)
    )


@given(specs())
def test_a_plan_of_ones_own_is_the_same_graph_as_a_saved_plan(found: list[dict[str, Any]]) -> None:
    made = {StepId(s["id"]): _own(s) for s in found}
    again = load(sunwell_document(Plan("own", made))).plan
    assert again.steps.keys() == made.keys()
    for name, step in made.items():
        other = again.steps[name]
        assert {need.step for need in other.needs} == {need.step for need in step.needs}
        assert other.contract == step.contract
        assert other.description == step.description
        assert other.produces == step.produces


def _own(said: dict[str, Any]) -> Step:
    file = said.get("produces_file")
    return Step(
        StepId(said["id"]),
        run=("make", said["id"]),
        needs=tuple(Need(StepId(name)) for name in said["requires"]),
        description=said["description"],
        contract=said["contract"],
        produces=(file,) if file else (),
    )


# --- the graph of artifacts -----------------------------------------------------------------------


@pytest.mark.req("R20", "R21")
@given(specs())
def test_a_graph_of_artifacts_comes_back_whole(found: list[dict[str, Any]]) -> None:
    graph = ArtifactGraph(ArtifactSpec.from_dict(one) for one in found)
    assert ArtifactGraph.from_dict(graph.to_dict()) == graph
    assert ArtifactGraph.of(load(saved(*found)).plan) == graph
    placed = [name for wave in graph.execution_waves() for name in wave]
    for name in graph:
        assert all(placed.index(one) < placed.index(name) for one in graph[name].requires)
        assert graph.get_dependents(name) == {o for o in graph if name in graph[o].requires}


@pytest.mark.req("R19")
def test_what_depends_on_an_artifact_is_a_copy() -> None:
    graph = ArtifactGraph([ArtifactSpec("a"), ArtifactSpec("b", requires=frozenset({"a"}))])
    graph.get_dependents("a").add("c")
    assert graph.get_dependents("a") == {"b"}
    assert graph.get_dependents("b") == set()
    assert graph.leaves() == ["a"]
    assert graph.roots() == ["b"]
    assert graph["a"].is_contract
    assert not graph["b"].is_contract


@pytest.mark.req("R21")
def test_a_part_of_a_graph_requires_only_what_is_in_it() -> None:
    graph = ArtifactGraph.from_dict(json.loads((FOREIGN / "plan.json").read_text())["graph"])
    part = graph.subgraph(["UserModel", "App"])
    assert part.execution_waves() == [["UserModel"], ["App"]]
    assert graph.execution_waves()[0] == ["AuthInterface", "UserProtocol"]
    with pytest.raises(PlanError, match="there is no artifact 'X'"):
        graph.subgraph(["X"])


@pytest.mark.req("R21")
def test_waves_of_a_circle_or_of_what_is_not_there_are_errors() -> None:
    one, two = (
        ArtifactSpec("a", requires=frozenset({"b"})),
        ArtifactSpec("b", requires=frozenset("a")),
    )
    with pytest.raises(CyclicDependencyError):
        ArtifactGraph([one, two]).execution_waves()
    with pytest.raises(PlanError, match="requires 'b', which is no artifact"):
        ArtifactGraph([one]).execution_waves()
    with pytest.raises(PlanError, match="is there already"):
        ArtifactGraph([one, one])


# --- workflows of action pairs --------------------------------------------------------------------


@pytest.mark.req("R17", "C10")
def test_an_action_pair_is_a_step(tmp_path: Path) -> None:
    prompts = {
        "a": {"role": "You test.", "task": "Write tests.", "feedback_wrapper": "No: {feedback}"}
    }
    (tmp_path / "prompts.json").write_text(json.dumps(prompts))
    pair = {
        "guard": "syntax",
        "r_patience": 2,
        "escalation": ["b"],
        "e_max": 1,
        "requires": ["b"],
        "generator_config": {"temperature": 0.5, "style": "short"},
    }
    data = workflow(a=pair, b={"guard": "human"}) | {
        "constraints": "No network.",
        "provider": "openai",
    }
    loaded = load(data | {"model": "gpt-x", "specification": "A stack."}, tmp_path)
    step = loaded.plan.steps[StepId("a")]
    assert (step.uses, step.model, step.parameters) == ("llm", "openai:gpt-x", {"temperature": 0.5})
    assert step.prompt == prompts["a"]
    assert step.guards == (Guard("syntax", "python", "syntax"),)
    assert (step.retries, step.patience, step.escalate, step.rounds) == (2, 2, ("b",), 1)
    assert (step.constraints, step.specification) == ("No network.", "A stack.")
    assert step.values == {"style": "short"}
    assert step.needs == (Need(StepId("b")),)
    assert loaded.plan.steps[StepId("b")].is_idle
    assert warned(loaded) == ["P912 step 'b' is done by a model and has no 'prompt'"]


@pytest.mark.req("R17")
def test_a_specification_is_inline_a_file_or_a_folder(tmp_path: Path) -> None:
    (tmp_path / "spec").mkdir()
    (tmp_path / "spec" / "b.md").write_text("second")
    (tmp_path / "spec" / "a.md").write_text("first")
    (tmp_path / "spec" / "c.txt").write_text("not asked for")

    def said(source: object) -> str:
        data = workflow(a={"guard": "human"}) | {"specification": source}
        return step_of(data, root=tmp_path).specification

    assert said("inline") == "inline"
    assert said({"type": "inline", "ref": "inline, too"}) == "inline, too"
    assert said({"type": "file", "ref": "spec/a.md"}) == "first"
    folder = {"type": "folder", "ref": "spec", "glob": "*.md"}
    assert said(folder) == "## spec/a.md\nfirst\n\n## spec/b.md\nsecond"


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ({"type": "service", "ref": "jira://P-1"}, "P087"),
        ({"type": "file", "ref": "absent.md"}, "P045"),
        ({"type": "file", "ref": "../out.md"}, "P043"),
        ({"type": "folder", "ref": "/etc"}, "P043"),
        ({"type": "folder", "ref": "absent"}, "P045"),
        ({"type": "cloud", "ref": "x"}, "P034"),
        ({"type": "file"}, "P033"),
        (7, "P032"),
    ],
)
def test_a_specification_that_cannot_be_read_is_an_error(
    tmp_path: Path, source: object, code: str
) -> None:
    data = workflow(a={"guard": "human"}) | {"specification": source}
    assert [item.split()[0] for item in problems(data, tmp_path)] == [code]


def composite(policy: str, *guards: Any) -> dict[str, Any]:
    return {"compose": "parallel", "policy": policy, "guards": list(guards)}


@pytest.mark.req("R17")
def test_composite_guards_are_nested_as_they_are() -> None:
    regex = {"type": "regex", "config": {"value": {"pattern": "x", "must": "match"}}}
    inner = composite("any_pass", "syntax", regex)
    pair = {"guard": "composite", "guards": composite("all_pass", "human", inner)}
    asks, held = step_of(workflow(a=pair)).guards
    assert (asks.kind, asks.name) == ("human", "human")
    assert held.kind == "any"
    assert [item.kind for item in held.items] == ["syntax", "regex"]


def test_a_guard_that_is_not_known_is_left_to_a_person() -> None:
    pair = {"guard": "composite", "guards": ["syntax", "dynamic_test"], "guard_config": {"min": 3}}
    loaded = load(workflow(a=pair))
    _, person = loaded.plan.steps[StepId("a")].guards
    assert (person.kind, person.name) == ("human", "dynamic_test (min=3)")
    assert any(text.startswith("P914 the guard 'dynamic_test (min=3)'") for text in warned(loaded))


def test_people_are_not_counted_against_guards() -> None:
    pair = {"guard": "composite", "guards": composite("majority_pass", "syntax", "type", "import")}
    (guard,) = step_of(workflow(a=pair)).guards
    assert (guard.kind, guard.name) == ("human", "majority of syntax, type, import")


def test_two_equal_composites_that_a_person_judges_are_told_apart() -> None:
    one = {"policy": "majority_pass", "guards": ["syntax", "human"]}
    step = step_of(workflow(a={"guard": "composite", "guards": [one, one], "prompt": "Do it."}))
    names = [guard.name for guard in step.guards]
    assert names == ["majority of syntax, human", "majority of syntax, human 2"]


def test_the_configuration_of_an_unknown_guard_decides_about_reuse() -> None:
    one, two = (
        step_of(workflow(a={"guard": "patch", "guard_config": {"strict": strict}})).guards
        for strict in (True, False)
    )
    assert one != two


def test_earlier_names_of_escalation_are_read() -> None:
    pair = {"guard": "human", "escalate_feedback_to": ["b"], "e_max": 2, "requires": ["b"]}
    step = step_of(workflow(a=pair, b={"guard": "human"}))
    assert (step.escalate, step.rounds) == (("b",), 2)


def test_one_workflow_in_a_file_for_several_is_read() -> None:
    data = {"version": "1", "workflows": {"w": workflow(a={"guard": "human"})}}
    assert load(data).foreign == "atomicguard"
    assert problems({"one": workflow(), "two": workflow()}) == [
        "P086 this is a collection of 2 workflows: 'one', 'two'"
    ]


GUARDS = st.recursive(
    st.sampled_from(
        [
            Guard("syntax", "python", "syntax"),
            Guard("syntax", "json", "is json"),
            Guard("human", {}, "human"),
            Guard("human", {"from": "boss"}, "the boss"),
            Guard("command", ["true"], "command", timeout=5.0, fatal_on=(3,)),
            Guard("regex", {"pattern": "a", "must": "absent"}, "no a"),
            Guard("file", {"min_bytes": 3}, "file"),
        ]
    ),
    lambda inner: st.lists(inner, min_size=1, max_size=3, unique_by=lambda one: one.name).map(
        lambda items: Guard("all", None, "all", items=tuple(items))
    ),
    max_leaves=5,
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Plans that the format has words for."""
    names = sorted(draw(st.sets(NAMES, min_size=1)))
    shared: dict[str, Any] = {"constraints": draw(TEXTS), "specification": draw(TEXTS)}
    steps = {}
    for number, name in enumerate(names):
        above = sorted(draw(st.sets(st.sampled_from(names[:number])))) if number else []
        guards = draw(st.lists(GUARDS, max_size=3, unique_by=lambda one: one.name))
        steps[StepId(name)] = Step(
            StepId(name),
            needs=tuple(Need(StepId(one)) for one in above),
            guards=tuple(guards),
            retries=draw(st.integers(0, 4)),
            description=draw(TEXTS),
            values=draw(st.dictionaries(LINES, TEXTS | st.integers(), max_size=2)),
            patience=draw(st.none() | st.integers(1, 3)),
            **draw(HOW),
            **shared,
        )
    return Plan(draw(LINES), steps)


HOW: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"uses": "shell", "run": ("make", "all")},
        {"uses": "shell", "shell": "make | tee log"},
        {"uses": "python", "run": ("module:function",)},
        {"uses": "human"},
        {"uses": "llm", "prompt": {"task": "Do it."}, "model": "fake:m", "workspace": "scratch"},
        {
            "uses": "agent",
            "prompt": {"task": "Do it.", "role": "You do."},
            "model": "fake:m",
            "parameters": {"temperature": 0.5},
            "workspace": "scratch",
        },
    ]
)


@pytest.mark.req("C3")
@given(plans())
def test_a_plan_of_ones_own_comes_back_from_a_workflow(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan
) -> None:
    made, prompts = workflow_documents(plan)
    folder = tmp_path_factory.mktemp("w") if prompts else Path("/nowhere")
    if prompts:
        (folder / "prompts.json").write_text(json.dumps(prompts))
    again = load(made, folder).plan
    assert again.name == plan.name
    assert dict(again.steps) == dict(plan.steps)
    assert workflow_documents(again) == (made, prompts)


# --- PlanSpec -------------------------------------------------------------------------------------


def research(name: str, **more: Any) -> dict[str, Any]:
    base = {
        "type": "research",
        "id": name,
        "description": f"Look into {name}",
        "query": "What is known?",
        "stoppingRule": "three papers",
        "executor": {"kind": "agent", "ref": "literature-searcher"},
    }
    return {**base, **more}


def planspec(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "p",
        "goalSummary": "Find out",
        "requirements": [{"id": "R1", "description": "It works", "priority": "must"}],
        "hypotheses": [{"id": "H1", "statement": "S", "assumptions": [], "testableVia": "doing"}],
        "steps": list(steps),
        "unknownsMap": {"knownKnowns": [], "knownUnknowns": [], "communityCheck": ""},
        **more,
    }


@pytest.mark.req("R36")
def test_every_check_of_a_planspec_has_its_code() -> None:
    assert len(CODES) == 12
    assert all(name in PROBLEMS[code] for name, code in CODES.items())
    found = []
    for file in sorted((Path(__file__).parent / "bad").glob("planspec_*.json")):
        with pytest.raises(PlanError) as caught:
            load_plan(str(file))
        (problem,) = caught.value.problems
        assert problem.code == CODES[problem.note]
        found.append(problem.note)
    assert sorted(found) == sorted(CODES)


@pytest.mark.req("R35", "C10")
@pytest.mark.parametrize(
    "said",
    [
        {"dependsOn": ["A", "B"], "parallelizable": True},
        {"dependencyIds": ["A", "B"], "concurrent": True},
        {"dependsOn": ["A"], "inputs": [{"name": "x", "description": "", "fromStepId": "B"}]},
    ],
)
def test_both_generations_of_fields_say_what_a_step_depends_on(said: dict[str, Any]) -> None:
    plan = load(planspec(research("A"), research("B"), research("C", **said))).plan
    assert plan.steps[StepId("C")].data_needs == ("A", "B")
    assert plan.goal == "Find out"


@pytest.mark.req("R35")
def test_what_a_step_is_to_do_is_its_prompt() -> None:
    criteria = {"successCondition": "it is known", "failureCondition": "nobody knows"}
    step = load(
        planspec(
            research(
                "A", evalCriteria=criteria, outputs=[{"name": "papers", "description": "found"}]
            )
        )
    ).plan.steps[StepId("A")]
    assert step.outputs == ("papers",)
    assert step.prompt == {
        "role": "You are literature-searcher.",
        "task": "Look into A\n\nFind out: What is known?\n\nDone when: three papers\n\n"
        "Success: it is known\n\nFailure: nobody knows\n\n"
        "Answer with a JSON object that has: papers",
    }


@pytest.mark.req("R36")
def test_who_does_a_step_decides_how_it_is_done() -> None:
    human = {"kind": "human", "instructions": "Ask around."}
    steps = load(
        planspec(
            research("A", executor=human),
            research("B", executor={"kind": "tool", "ref": "grep"}),
            research("C", executor={"kind": "workflow", "ref": "w"}),
        )
    ).plan.steps
    assert steps[StepId("A")].uses == "human"
    assert "Ask around." in str(steps[StepId("A")].prompt)
    assert steps[StepId("B")].is_idle
    assert steps[StepId("C")].is_idle


@pytest.mark.req("R35", "R36", "R113")
def test_what_a_planspec_stands_on_is_what_the_plan_stands_on() -> None:
    experiment = research(
        "E",
        type="experiment",
        executor={"kind": "tool", "ref": "lab:measure"},
        mode="confirmatory",
        hypothesisIds=["H1"],
        requirementIds=["R1"],
        preregisteredCommitments=["once, ${{ no more }}"],
    )
    plan = load(
        planspec(
            experiment,
            unknownsMap={
                "knownKnowns": ["water is wet"],
                "unknownUnknowns": [{"potentialSurprise": "ice", "detectionSignal": "cold"}],
            },
        )
    ).plan
    assert plan.premises == {
        "requirements": {"R1": {"description": "It works", "priority": "must"}},
        "hypotheses": {"H1": {"statement": "S", "assumptions": [], "testable_via": "doing"}},
        "unknowns": {
            "known_knowns": ["water is wet"],
            "unknown_unknowns": [{"potentialSurprise": "ice", "detectionSignal": "cold"}],
        },
    }
    step = plan.steps[StepId("E")]
    assert (step.type, step.mode, step.uses) == ("experiment", "confirmatory", "python")
    assert (step.hypotheses, step.requirements) == (("H1",), ("R1",))
    assert step.preregistered == ("once, ${{ no more }}",)


@pytest.mark.req("R36")
def test_an_executor_of_ones_own_registry_is_known() -> None:
    action = Action(shell="echo {}")
    own = Registry({"librarian": Agent("librarian", {"research": action})})
    loaded = load(planspec(research("A", executor={"kind": "agent", "ref": "librarian"})), own=own)
    step = loaded.plan.steps[StepId("A")]
    assert (step.uses, step.shell, step.agent) == ("shell", "echo {}", "librarian")


def test_the_executors_that_are_shipped_do_four_types() -> None:
    assert len(EXECUTORS) == 12
    assert {kind for kinds in EXECUTORS.values() for kind in kinds} == {
        *("research", "synthesize", "experiment", "develop")
    }


@st.composite
def planspecs(draw: st.DrawFn) -> dict[str, Any]:
    names = sorted(draw(st.sets(NAMES, min_size=1)))
    steps = []
    for number, name in enumerate(names):
        above = sorted(draw(st.sets(st.sampled_from(names[:number])))) if number else []
        key = draw(st.sampled_from(["dependsOn", "dependencyIds"]))
        steps.append(research(name, **{key: above}, description=draw(TEXTS), query=draw(TEXTS)))
    aim = draw(st.sampled_from([{}, {"aimType": "explain"}, {"estimatedComplexity": "very-high"}]))
    return planspec(*draw(st.permutations(steps)), **aim)


@pytest.mark.req("C3", "R35")
@given(planspecs())
def test_a_planspec_comes_back_word_for_word(document: dict[str, Any]) -> None:
    plan = load(document).plan
    assert planspec_document(plan) == document
    written = plan_yaml(plan).replace("model: ''\n", "")
    assert "steps:" in written


@given(plans())
def test_a_plan_of_ones_own_is_the_same_graph_as_a_planspec(plan: Plan) -> None:
    again = load(planspec_document(plan)).plan
    assert {name: step.data_needs for name, step in again.steps.items()} == {
        name: step.data_needs for name, step in plan.steps.items()
    }


def test_a_changed_planspec_keeps_what_did_not_change() -> None:
    document = planspec(research("A"), research("B", dependsOn=["A"]))
    plan = load(document).plan
    kept = Plan(plan.name, {StepId("A"): plan.steps[StepId("A")]}, origin=plan.origin)
    assert planspec_document(kept) == {**document, "steps": [research("A")]}


# --- sessions, traces, hashes ---------------------------------------------------------------------


@pytest.mark.req("R91", "C10")
def test_the_tasks_of_a_session_become_steps() -> None:
    document = {
        "goal": "Build an app",
        "tasks": [
            {"id": "t1", "description": "Look", "mode": "research", "produces": ["notes"]},
            {
                "id": "t2",
                "description": "Write",
                "mode": "generate",
                "target_path": "app.py",
                "requires": ["notes"],
                "verification_command": "python -m py_compile app.py",
            },
            {"id": "t3", "description": "All", "depends_on": ["t2"], "mode": "composite"},
        ],
        "completed_ids": ["t1"],
    }
    loaded = load(document)
    steps = loaded.plan.steps
    assert loaded.foreign == "tasks"
    assert {name: step.data_needs for name, step in steps.items()} == {
        "t1": (),
        "t2": ("t1",),
        "t3": ("t2",),
    }
    assert steps[StepId("t2")].produces == ("app.py",)
    command = steps[StepId("t2")].guards[0]
    assert command.config == ["python", "-m", "py_compile", "app.py"]
    assert any(text.startswith("P915 1 task is said") for text in warned(loaded))
    assert tasks_document(loaded.plan) == document


def test_subtasks_come_before_their_task() -> None:
    inner = {"id": "part", "description": "A part"}
    document = {
        "goal": "g",
        "tasks": [{"id": "whole", "description": "All", "subtasks": [inner]}],
        "completed_ids": [],
    }
    assert load(document).plan.steps[StepId("whole")].data_needs == ("part",)


@pytest.mark.req("R65", "R64", "C38")
def test_records_are_read_and_stay_claims() -> None:
    trace = record_in(str(FOREIGN / "trace.jsonl"))
    assert trace is not None
    assert trace.data["artifacts"] == {"UserProtocol": "complete", "AuthInterface": "complete"}
    hashes = record_in(str(FOREIGN / "hashes.json"))
    assert hashes is not None
    assert (hashes.format, len(hashes.data["hashes"])) == ("hashes", 2)  # type: ignore[arg-type]  # a mapping


@pytest.mark.req("C38", "C2")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ((FOREIGN / "trace.verbatim.jsonl").read_text(), "line 7 is not JSON: '...'"),
        ('{"event": "wave_start", "ts": "t"}', "'wave_start' in line 1 has no 'wave'"),
        ('{"event": "wave_complete", "wave": 1}', "line 1 has no 'ts'"),
        ("[1]", "line 1 has no 'event'"),
        ("\n", "the trace has no events"),
    ],
)
def test_a_trace_that_is_none_is_refused_with_its_line(
    tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "x.trace.jsonl").write_text(text)
    with pytest.raises(PlanError) as caught:
        record_in(str(tmp_path / "x.trace.jsonl"))
    assert words in [item.message for item in caught.value.problems]


@pytest.mark.req("C2", "C38")
def test_made_up_hashes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "hashes.json").write_text('{"A": "a1b2c3d4e5f6g7h8", "B": "0123456789abcdef"}')
    with pytest.raises(PlanError, match="'g' is no hexadecimal digit"):
        record_in(str(tmp_path / "hashes.json"))


@pytest.mark.req("R66", "R60", "R68")
def test_a_folder_of_saved_plans_keeps_finds_and_lists_them(tmp_path: Path) -> None:
    folder = PlanFolder(str(tmp_path / "store"))
    assert folder.load("a/b") is None
    assert folder.recent() == []
    files = folder.files("a/11")
    for number in range(12):
        goal = f"goal {number}"
        plan = {
            "version": "1.0",
            "goal": goal,
            "goal_hash": goal_hash(goal),
            "updated_at": f"2026-01-19T10:30:{number:02}Z",
        }
        folder.save(f"a/{number}", Views(plan, [], {}, {}))
    assert files["plan"] == tmp_path / "store" / "plans" / "a%2F11.json"
    assert [plan["goal"] for plan in folder.recent()] == [f"goal {n}" for n in range(11, 1, -1)]
    found = folder.find_by_goal("goal 3")
    assert found is not None
    assert found == folder.load("a/3")
    assert folder.find_by_goal("goal") is None
    files["plan"].write_text('{"version": "9"}')
    with pytest.raises(UsageError, match="has version '9'"):
        folder.load("a/11")
    files["plan"].write_text("{")
    with pytest.raises(UsageError, match="is damaged"):
        folder.load("a/11")
    assert len(folder.recent(None)) == 11


# --- files that are no plans ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"$schema": "x", "properties": {}}, "a JSON Schema"),
        ({"artifacts": {}, "action_pairs": {}, "workflows": {}}, "the index of a repository"),
        ({"artifact_id": "1", "action_pair_id": "a", "content": ""}, "one artifact of a workflow"),
        ({"checkpoint_id": "1", "workflow_id": "2"}, "the checkpoint of a workflow"),
        ({"checkpoint_id": "1", "graph_state": {}}, "the checkpoint of an execution graph"),
        ({"artifacts": {}, "success": True, "failed_step": None}, "the record of a run"),
        ({"a": {"role": "x", "task": "y"}}, "the prompts of a workflow"),
        ({"id": "t", "nodes": [{"id": "n", "title": "T"}]}, "a task tree"),
        ({"initial_state": [], "goal_state": [], "steps": []}, "a catalogue entry"),
        ({"phases": {"a": {"generator": "g", "guard": "h"}}}, "a list of phases"),
        ({"artifacts": {"1": {"path": "x"}}, "action_pairs": {}}, "the index of a repository"),
        ({"amendment_id": "1", "checkpoint_id": "2", "amendment_type": "skip"}, "a person's amend"),
        ({"a": {"guard": "syntax", "requires": []}}, "a list of action pairs without their"),
        ({"plan_id": "1", "artifacts": ["a"], "reason": "edited"}, "one version of a saved plan"),
        ({"goal_hash": "1", "run_id": "r", "artifacts": {}}, "what a run left to recover from"),
        ({"task_id": "t", "specification": "Write it."}, "the description of one task"),
        ({"a": "Model the domain of it."}, "a list of texts by name"),
    ],
)
def test_a_file_that_is_known_and_no_plan_is_called_by_its_name(data: object, words: str) -> None:
    (found,) = problems(data)
    assert found.startswith(f"P086 this is {words}")


def test_a_file_with_nothing_of_a_plan_gets_one_answer() -> None:
    (found,) = problems({"metadata": {"model": "m"}, "summary": {}, "results": [1, 2]})
    assert found == (
        "P001 this is no plan and no file that is known: it has 'metadata', 'summary', 'results'"
    )
    assert problems({"name": "x", "step": {}})[0].startswith("P001 the plan has no steps")
    assert problems({"name": "x"}) == ["P001 the plan has no steps"]
