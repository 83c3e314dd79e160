"""Execution graphs become plans: the documented examples, and what a graph can say."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import CyclicDependencyError, PlanError
from holdfast.formats.graph import create_batches
from holdfast.formats.planfile import Asked, Loaded, load_plan, load_text
from holdfast.model.agent import Action, Agent, Registry
from holdfast.model.plan import Need, Step, StepId, plan_bytes, plan_from_json

GRAPHS = Path(__file__).parent / "graphs"


def document(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"graph_id": "GRAPH-20250114-a3f2", "nodes": list(nodes), **more}


def node(name: str, *dependencies: str, **more: Any) -> dict[str, Any]:
    base = {"id": name, "agent": "someone", "action": "something"}
    return {**base, "dependencies": list(dependencies), **more}


def edge(start: str, end: str, kind: str = "sequence", **more: Any) -> dict[str, Any]:
    return {"from": start, "to": end, "type": kind, **more}


def load(data: dict[str, Any], own: Registry | None = None) -> Loaded:
    asked = Asked(own=lambda: own)
    return load_text(json.dumps(data, indent=1).encode(), "graph.json", "/nowhere", asked)


def steps(data: dict[str, Any], own: Registry | None = None) -> dict[str, Step]:
    return {str(name): step for name, step in load(data, own).plan.steps.items()}


def codes(data: dict[str, Any]) -> list[str]:
    with pytest.raises(PlanError) as caught:
        load(data)
    return [item.code for item in caught.value.problems]


def batches(loaded: Loaded) -> list[list[str]]:
    needs = {name: [n.step for n in step.needs] for name, step in loaded.plan.steps.items()}
    return create_batches({str(name): [str(n) for n in found] for name, found in needs.items()})


# --- the documented examples --------------------------------------------------------------------


@pytest.mark.req("R22", "R33", "C10", "C38")
@pytest.mark.parametrize("name", ["enrich", "review"])
def test_an_example_of_the_document_gives_exactly_its_printed_batches(name: str) -> None:
    path = GRAPHS / f"{name}.json"
    printed = json.loads(path.read_bytes())["batches"]
    loaded = load_plan(str(path))
    assert loaded.foreign == "graph"
    assert loaded.plan.name == json.loads(path.read_bytes())["graph_id"]
    made = [{"batch_id": number, "tasks": tasks} for number, tasks in enumerate(batches(loaded), 1)]
    assert made == printed


@pytest.mark.req("R31", "R33")
def test_the_contract_violations_of_the_examples_are_reported_with_their_places() -> None:
    enrich = load_plan(str(GRAPHS / "enrich.json")).warnings
    found = {(item.line, item.message) for item in enrich if item.code == "P910"}
    assert (
        10,
        (
            "'investigate' does not promise the outputs 'root_cause', 'affected_components' that the"
            " contract asks of 'system-architect' for 'investigate'"
        ),
    ) in found
    assert (
        22,
        (
            "'create_test_plan' does not give 'qa-engineer' for 'create_test_plan' the context"
            " 'issue', 'spec'"
        ),
    ) in found
    assert len(found) == 9
    review = load_plan(str(GRAPHS / "review.json")).warnings
    told = [item.message for item in review if item.code == "P910"]
    assert len(told) == 7
    assert told[-1] == (
        "'merge' does not give 'orchestrator' for 'merge_findings' the context 'findings_list'"
    )


@pytest.mark.req("C38")
@pytest.mark.parametrize(
    ("name", "code", "line"), [("schema.verbatim", "P034", 4), ("checkpoint.verbatim", "P015", 8)]
)
def test_what_is_printed_only_to_show_a_shape_is_refused_with_its_place(
    name: str, code: str, line: int
) -> None:
    with pytest.raises(PlanError) as caught:
        load_plan(str(GRAPHS / f"{name}.json"))
    assert (caught.value.problems[0].code, caught.value.problems[0].line) == (code, line)


# --- nodes --------------------------------------------------------------------------------------


@pytest.mark.req("R23", "R24")
def test_a_node_says_who_does_what_and_the_rest_has_defaults() -> None:
    (step,) = load(document({"id": "a", "agent": "someone", "action": "x"})).plan.steps.values()
    assert step == Step(
        StepId("a"), uses="agent", retries=2, timeout=300.0, agent="someone", action="x"
    )


@pytest.mark.req("R23")
@pytest.mark.parametrize("missing", ["id", "agent", "action"])
def test_a_node_without_one_of_the_three_is_refused(missing: str) -> None:
    data = node("a")
    del data[missing]
    assert codes(document(data)) == ["P033"]


@pytest.mark.req("R24", "R26")
def test_priority_time_and_outputs_of_a_node_are_those_of_the_step() -> None:
    (step,) = steps(
        document(node("a", priority="CRITICAL", timeout_ms=1500, outputs=["x", "y"]))
    ).values()
    assert (step.priority, step.timeout, step.outputs) == ("critical", 1.5, ("x", "y"))


@pytest.mark.req("R24", "R31")
def test_what_a_node_leaves_open_its_contract_fills_in() -> None:
    found = load(document(node("a", agent="knowledge-manager", action="generate_brief"))).plan
    step = found.steps[StepId("a")]
    assert (step.outputs, step.timeout) == (("context_brief",), 60.0)
    assert found.limits.agents == {"knowledge-manager": 3}


@pytest.mark.req("R25")
def test_every_documented_status_is_read_and_no_other() -> None:
    for status in ("pending", "queued", "running", "complete", "failed", "skipped"):
        load(document(node("a", status=status)))
    assert codes(document(node("a", status="done"))) == ["P034"]


def test_unknown_keys_are_kept_and_warned_about() -> None:
    data = document(node("a", colour="red"), mood="good", edges=[], issue_number=None)
    loaded = load(data)
    told = [item.message for item in loaded.warnings if item.code == "P911"]
    assert told == [
        "'colour' of a node means nothing here and is only kept",
        "'mood' of a graph means nothing here and is only kept",
    ]
    assert loaded.plan.origin == {"graph": data}
    assert plan_from_json(json.loads(plan_bytes(loaded.plan))) == loaded.plan


def test_a_step_that_nobody_can_do_says_so() -> None:
    (told,) = [item.message for item in load(document(node("a"))).warnings if item.code == "P912"]
    assert told == "'a' has nothing to run: nobody said how 'someone' does it"


@pytest.mark.req("R34")
def test_a_registry_of_ones_own_says_how_an_action_is_done() -> None:
    own = Registry({"someone": Agent("someone", {"something": Action(run=("./do.sh",))})})
    found = steps(document(node("a")), own)["a"]
    assert (found.uses, found.run, found.retries) == ("shell", ("./do.sh",), 0)


def test_the_line_is_the_graph_unless_another_name_is_asked_for() -> None:
    assert load(document(node("a"))).plan.name == "GRAPH-20250114-a3f2"
    assert load({"nodes": [node("a")]}).plan.name == "graph"


# --- edges --------------------------------------------------------------------------------------


@pytest.mark.req("R27", "R28", "R29", "R39", "C11")
def test_edges_become_needs_of_their_type() -> None:
    found = steps(
        document(
            node("a", outputs=["spec"]),
            node("b"),
            node("c"),
            node("d", "a", "b", "c"),
            edges=[
                edge("a", "d", "data", data_key="spec"),
                edge("b", "d"),
                edge("c", "d", "approval", approval_required_from="security-analyst"),
            ],
        )
    )
    assert found["d"].needs == (
        Need(StepId("a"), "data", "spec"),
        Need(StepId("b"), "sequence"),
        Need(StepId("c"), "approval", "", "security-analyst"),
    )


@pytest.mark.req("R39", "C11")
def test_dependencies_alone_and_edges_alone_are_enough() -> None:
    by_list = steps(document(node("a"), node("b", "a")))
    bare = {"id": "b", "agent": "someone", "action": "something"}
    by_edge = steps(document(node("a"), bare, edges=[edge("a", "b")]))
    assert by_list == by_edge
    assert by_list["b"].needs == (Need(StepId("a"), "sequence"),)


@pytest.mark.req("R39", "C11")
def test_where_both_lists_differ_both_places_are_shown() -> None:
    data = document(
        node("a"), node("b", "a"), node("c"), edges=[edge("a", "c", "data")], batches=[]
    )
    with pytest.raises(PlanError) as caught:
        load(data)
    lines = json.dumps(data, indent=1).splitlines()
    both = [(item.code, item.line, item.message, item.note) for item in caught.value.problems]
    listed = lines.index('    "a"') + 1
    arrow = lines.index('   "from": "a",')
    empty = [n for n, text in enumerate(lines, 1) if text == '   "dependencies": []'][-1]
    assert both == [
        (
            "P081",
            listed,
            "'b' depends on 'a', and no edge leads there",
            f"line {listed} names it; no edge goes from 'a' to 'b'",
        ),
        (
            "P081",
            arrow,
            "an edge leads from 'a' to 'c', which does not depend on it",
            f"the edge is in line {arrow}; the dependencies of 'c' in line {empty} do not name 'a'",
        ),
    ]


@pytest.mark.req("C11")
@pytest.mark.parametrize("end", ["from", "to"])
def test_an_edge_with_an_unknown_end_is_refused(end: str) -> None:
    both = {"from": "a", "to": "b", end: "nobody"}
    bare = [{"id": name, "agent": "x", "action": "y"} for name in "ab"]
    assert codes(document(*bare, edges=[{**both, "type": "sequence"}])) == ["P080"]


@pytest.mark.req("R27", "R29")
def test_edges_between_the_same_nodes_are_joined_if_nothing_is_lost() -> None:
    bare = {"id": "b", "agent": "someone", "action": "something"}

    def joined(*edges: dict[str, Any]) -> Need:
        (need,) = steps(document(node("a", outputs=["x", "y"]), bare, edges=list(edges)))["b"].needs
        return need

    data, other = edge("a", "b", "data", data_key="x"), edge("a", "b", "data", data_key="y")
    ask = edge("a", "b", "approval", approval_required_from="ada")
    assert joined(data, edge("a", "b")) == Need(StepId("a"), "data", "x")
    assert joined(data, ask) == Need(StepId("a"), "data", "x", "ada")
    assert joined(data, ask).asks
    assert joined(data, other) == Need(StepId("a"), "data")  # its outputs promise both
    assert joined(edge("a", "b"), ask) == Need(StepId("a"), "approval", "", "ada")


def test_a_key_that_the_node_does_not_promise_is_refused() -> None:
    data = document(
        node("a", outputs=["x"]), node("b", "a"), edges=[edge("a", "b", "data", data_key="z")]
    )
    assert codes(data) == ["P012"]


# --- batches ------------------------------------------------------------------------------------


@pytest.mark.req("R30")
def test_batches_are_levels_with_sorted_ids_whatever_the_order_of_nodes() -> None:
    graph = {"z": [], "b": ["z"], "a": ["z"], "m": ["a", "b"], "k": []}
    assert create_batches(graph) == [["k", "z"], ["a", "b"], ["m"]]
    assert create_batches(dict(reversed(graph.items()))) == create_batches(graph)


@pytest.mark.req("R30")
def test_a_circle_has_no_batches() -> None:
    with pytest.raises(CyclicDependencyError, match="'a', 'b'"):
        create_batches({"a": ["b"], "b": ["a"], "c": []})
    with pytest.raises(CyclicDependencyError, match="a → b → a"):
        load(document(node("a", "b"), node("b", "a")))


@pytest.mark.req("R30")
@pytest.mark.parametrize(
    "wrong",
    [
        [{"batch_id": 1, "tasks": ["a", "b"]}],
        [{"batch_id": 1, "tasks": ["a"]}],
        [{"batch_id": 1, "tasks": ["a"]}, {"batch_id": 3, "tasks": ["b"]}],
        [{"batch_id": 1, "tasks": ["a"]}, {"batch_id": 2, "tasks": ["b"]}] * 2,
    ],
    ids=["one level", "too few", "other number", "too many"],
)
def test_batches_that_the_dependencies_do_not_give_are_refused(wrong: list[Any]) -> None:
    assert set(codes(document(node("a"), node("b", "a"), batches=wrong))) == {"P083"}


@pytest.mark.req("R30")
def test_a_large_graph_is_read_without_recursion() -> None:
    nodes = [node("s0"), *(node(f"s{n}", f"s{n - 1}") for n in range(1, 3000))]
    assert len(batches(load(document(*nodes)))) == 3000
