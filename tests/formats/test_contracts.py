"""Plans are held to the contracts of agents: the shipped registry, a file, a plan's own."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import api
from holdfast.errors import PlanError
from holdfast.formats.agentfile import read_registry, shipped
from holdfast.formats.planfile import Asked, Loaded, load_text
from holdfast.model.agent import Action, Agent, Registry, is_compatible, with_voices
from holdfast.model.plan import Step, StepId, plan_bytes, plan_digest, plan_from_json

MAIN = {
    "orchestrator": ("plan_workflow", "resolve_conflict", "merge_findings"),
    "system-architect": ("create_spec", "design_review", "investigate"),
    "security-analyst": ("threat_model", "security_review", "audit"),
    "devops-engineer": ("infra_design", "deployment_review", "monitoring_setup"),
    "dev-python": ("implement", "review", "refactor"),
    "dev-go": ("implement", "review", "refactor"),
    "dev-cpp": ("implement", "review", "refactor"),
    "dev-react": ("implement", "review", "refactor"),
    "reviewer": ("code_review", "doc_review", "config_review"),
    "qa-engineer": ("create_test_plan", "verify_coverage", "review_tests"),
    "techwriter": ("create_docs", "create_changelog"),
    "knowledge-manager": ("query", "capture", "generate_brief"),
    "incident-responder": ("diagnose", "classify"),
    "log-analyst": ("analyze_logs", "detect_anomalies"),
    "code-health-analyst": ("analyze",),
    "dependency-manager": ("scan", "check_updates"),
}
REVIEWERS = {
    "claude-compliance",
    "bug-scanner",
    "git-history",
    "prev-pr",
    "comment-checker",
    "test-quality",
}
WRITER = {
    "version": "1.2",
    "input_schema": {"actions": {"write": {"required_context": ["topic"]}}},
    "output_schema": {"actions": {"write": {"required_outputs": ["text"]}}},
    "constraints": {"timeout_ms": 90000, "max_concurrent": 2},
}


def load(steps: dict[str, Any], own: Registry | None = None, **top: Any) -> Loaded:
    data = {"name": "demo", **top, "steps": steps}
    return load_text(json.dumps(data).encode(), "plan.yaml", "/nowhere", Asked(own=lambda: own))


def wrong(steps: dict[str, Any], **top: Any) -> list[str]:
    with pytest.raises(PlanError) as caught:
        load(steps, **top)
    return [item.code for item in caught.value.problems]


def writing(**more: Any) -> dict[str, Any]:
    return {"run": "x", "agent": "writer", "action": "write", "with": {"topic": "t"}, **more}


# --- the shipped registry -----------------------------------------------------------------------


@pytest.mark.req("R34")
def test_the_shipped_registry_has_sixteen_agents_and_six_reviewers_that_differ() -> None:
    agents = shipped().agents.values()
    main = {agent.name: tuple(agent.actions) for agent in agents if agent.roll == "agents"}
    assert main == MAIN
    assert {agent.name for agent in agents if agent.roll == "reviewers"} == REVIEWERS
    assert len(agents) == 22


@pytest.mark.req("R31")
def test_the_shipped_contracts_have_the_documented_limits_weights_and_vetoes() -> None:
    agents = shipped().agents
    assert {
        name: (agents[name].timeout, agents[name].max_concurrent)
        for name in ("orchestrator", "system-architect", "dev-go", "knowledge-manager")
    } == {
        "orchestrator": (60.0, 1),
        "system-architect": (300.0, 2),
        "dev-go": (600.0, 1),
        "knowledge-manager": (60.0, 3),
    }
    assert agents["incident-responder"].timeout == 120.0
    assert agents["dependency-manager"].timeout == 180.0
    assert agents["reviewer"].max_concurrent == 3
    assert agents["security-analyst"].veto_domains == (
        "security",
        "auth",
        "crypto",
        "data_exposure",
    )
    assert agents["devops-engineer"].veto_domains == ("deployment", "infrastructure")
    order = (
        "security-analyst",
        "system-architect",
        "devops-engineer",
        "dev-python",
        "reviewer",
        "qa-engineer",
        "techwriter",
        "knowledge-manager",
    )
    assert [agents[name].weight for name in order] == [1.0, 0.9, 0.8, 0.8, 0.7, 0.7, 0.6, 0.5]
    rules = shipped().rules
    assert (rules.rounds, rules.tie, rules.similarity, rules.confidence) == (3, 0.1, 0.8, 0.8)


# --- plans that are held to contracts ------------------------------------------------------------


@pytest.mark.req("R31")
def test_a_contract_fills_in_what_a_step_leaves_open() -> None:
    plan = load({"a": writing()}, agents={"writer": WRITER}).plan
    step = plan.steps[StepId("a")]
    assert (step.timeout, step.outputs, step.approve) == (90.0, ("text",), "")
    assert plan.limits.agents == {"writer": 2}


@pytest.mark.req("R31")
def test_what_a_step_says_itself_stands_and_the_smaller_limit_wins() -> None:
    own = writing(timeout="60s", outputs=["text", "notes"])
    plan = load({"a": own}, agents={"writer": WRITER}, limits={"agents": {"writer": 1}}).plan
    step = plan.steps[StepId("a")]
    assert (step.timeout, step.outputs) == (60.0, ("text", "notes"))
    assert plan.limits.agents == {"writer": 1}


@pytest.mark.req("R31")
def test_an_agent_that_needs_a_yes_makes_its_steps_ask() -> None:
    asks = {**WRITER, "constraints": {"requires_human_approval": True}}
    plan = load({"a": writing(), "b": writing(approve="on_change")}, agents={"writer": asks}).plan
    assert [step.approve for step in plan.steps.values()] == ["always", "on_change"]


@pytest.mark.req("R31")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"agent": "wrter"}, "P070"),
        ({"action": "sing"}, "P071"),
        ({"with": {}}, "P072"),
        ({"outputs": ["notes"]}, "P073"),
        ({"timeout": "91s"}, "P074"),
        ({"agent": "writer@1.3"}, "P075"),
        ({"agent": "writer@2.0"}, "P075"),
    ],
)
def test_a_step_that_breaks_a_contract_is_an_error(change: dict[str, Any], code: str) -> None:
    assert wrong({"a": writing(**change)}, agents={"writer": WRITER}) == [code]


@pytest.mark.req("R31")
@pytest.mark.parametrize("version", ["writer@1", "writer@1.2", "writer@1.0"])
def test_a_version_that_fits_is_no_part_of_the_step(version: str) -> None:
    step = load({"a": writing(agent=version)}, agents={"writer": WRITER}).plan.steps[StepId("a")]
    assert step.agent == "writer"
    assert not is_compatible("2", "1.2")


@pytest.mark.req("R31")
@pytest.mark.parametrize(
    "more",
    [
        {"with": {"topic": "t"}},
        {"with": {}, "needs": ["topic"]},
        {"with": {}, "needs": ["source"]},
        {"with": {}, "needs": [{"step": "source", "key": "topic"}]},
    ],
    ids=["value", "step", "output", "key"],
)
def test_context_comes_from_values_and_from_data_needs(more: dict[str, Any]) -> None:
    steps = {"topic": {"run": "x"}, "source": {"run": "x", "outputs": ["topic"]}}
    load({**steps, "a": writing(**more)}, agents={"writer": WRITER})


@pytest.mark.req("R31")
def test_a_need_that_only_orders_gives_no_context() -> None:
    steps = {
        "topic": {"run": "x"},
        "a": writing(**{"with": {}, "needs": [{"step": "topic", "type": "sequence"}]}),
    }
    assert wrong(steps, agents={"writer": WRITER}) == ["P072"]


@pytest.mark.req("R31")
def test_a_plan_that_does_not_ask_for_contracts_is_warned_and_otherwise_unchanged() -> None:
    steps = {"a": {"run": "x", "agent": "reviewer", "action": "code_review"}}
    loaded = load(steps)
    assert [item.code for item in loaded.warnings] == ["P910", "P910"]
    step = loaded.plan.steps[StepId("a")]
    assert step == Step(StepId("a"), run=("x",), agent="reviewer", action="code_review")
    assert loaded.plan.limits.agents == {}
    assert load({"a": {"run": "x", "agent": "ada"}}).warnings == ()


# --- where contracts come from --------------------------------------------------------------------


@pytest.mark.req("R34")
def test_a_plan_goes_before_the_persons_registry_and_that_before_the_shipped_one() -> None:
    mine = Registry({"writer": Agent("writer", {"write": Action()}, max_concurrent=7)})
    steps = {"a": writing()}
    assert load(steps, mine, agents="default").plan.limits.agents == {"writer": 7}
    assert load(steps, mine, agents={"writer": WRITER}).plan.limits.agents == {"writer": 2}
    assert wrong(steps, agents="default") == ["P070"]


@pytest.mark.req("R34")
def test_both_registries_come_from_a_file_that_the_plan_names(tmp_path: Path) -> None:
    both = {
        "schema": "holdfast.agents/1",
        "agents": {"writer": WRITER},
        "reviewers": {"critic": {"input_schema": {"actions": {"read": {"run": "./critic"}}}}},
        "conflicts": {"rounds": 2},
    }
    (tmp_path / "agents.json").write_text(json.dumps(both))
    steps = {"a": writing(), "b": {"agent": "critic", "action": "read"}}
    data = {"agents": "agents.json", "steps": steps}
    plan = load_text(json.dumps(data).encode(), "plan.yaml", str(tmp_path)).plan
    assert plan.steps[StepId("b")].run == ("./critic",)
    found = read_registry(json.dumps(both).encode(), "agents.json", ".")
    assert {agent.name: agent.roll for agent in found.agents.values()} == {
        "writer": "agents",
        "critic": "reviewers",
    }
    assert found.rules.rounds == 2


def test_what_is_wrong_with_a_named_registry_is_told_where_the_plan_names_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "agents.yaml").write_text("agents:\n  writer: {tier: boss}\n")
    data = b"agents: agents.yaml\nsteps: {a: {run: x}}\n"
    with pytest.raises(PlanError) as caught:
        load_text(data, "plan.yaml", str(tmp_path))
    (found,) = caught.value.problems
    assert (found.code, found.line) == ("P034", 1)
    assert found.message.startswith("agents.yaml:2:18: ")


def test_one_name_cannot_stand_in_both_registries() -> None:
    both = b"agents: {a: {}}\nreviewers: {a: {}}\n"
    with pytest.raises(PlanError, match="stands in 'agents' and in 'reviewers'"):
        read_registry(both, "agents.yaml", ".")


@pytest.mark.req("R31", "R34")
def test_a_plan_made_in_python_is_held_to_the_agents_it_is_given() -> None:
    writer = Agent("writer", {"write": Action(required_outputs=("text",))}, max_concurrent=2)
    plan = api.Plan("demo", agents={"writer": writer})
    plan.add(Step(StepId("a"), run=("x",), agent="writer", action="write"))
    built = plan.build()
    assert built.steps[StepId("a")].outputs == ("text",)
    assert built.limits.agents == {"writer": 2}
    plan.add(Step(StepId("b"), run=("x",), agent="writer", action="sing"))
    with pytest.raises(PlanError, match="'b' asks 'writer' for 'sing'"):
        plan.build()


@pytest.mark.req("R34", "C28")
def test_a_plan_keeps_what_its_own_agents_count_for_and_nothing_else() -> None:
    quiet = load({"a": writing()}, agents={"writer": WRITER}).plan
    assert quiet.voices == {}
    loud = load({"a": writing()}, agents={"writer": {**WRITER, "weight": 0.9}}).plan
    known = with_voices(shipped(), loud.voices)
    assert known.agents["writer"].weight == 0.9
    assert known.agents["reviewer"] == shipped().agents["reviewer"]
    tamed = load({"a": {"run": "x"}}, agents={"security-analyst": {}}).plan
    assert with_voices(shipped(), tamed.voices).agents["security-analyst"].veto_domains == ()
    assert plan_from_json(json.loads(plan_bytes(loud))) == loud


def test_plans_without_agents_have_the_digest_they_always_had() -> None:
    digest = plan_digest(load({"a": {"run": "x"}}).plan)
    assert digest == "ce1ab97108a583afee03e9fcbd4dcf762d76a7b4b6907a4c494bf2adb1583eef"
