"""Steps that are added to a run are held to the contracts of its agents, as steps of the plan are."""

import json
from typing import Any

import pytest

import holdfast
from holdfast.errors import PlanError
from holdfast.model.plan import Step, StepId
from tests.cli.project import Project
from tests.cli.test_add import Steps, adds, fragment

pytestmark = pytest.mark.req("R31", "R32", "C24")

OK = "echo '{\"ok\": 1}'"
TIGHT = {"timeout_ms": 1500, "max_concurrent": 1, "requires_human_approval": True}


def contract(outputs: list[str], **constraints: Any) -> dict[str, Any]:
    """What `dep` promises: it can ship, and the registry knows how."""
    return {
        "input_schema": {"actions": {"ship": {"shell": OK}}},
        "output_schema": {"actions": {"ship": {"required_outputs": outputs}}},
        "constraints": constraints,
    }


def growing(project: Project, more: Steps, agents: object, **top: Any) -> None:
    """A plan with these agents, whose one step adds these steps."""
    project.plan({"scan": {"shell": adds(project, more)}}, agents=agents, **top)


def grown_plan(project: Project) -> Any:
    """The plan with which the last run goes on."""
    events = [one for one in project.events() if one["event"] == "plan_extended"]
    return json.loads(project.shown(events[-1]["plan"]))


def resting(project: Project, agents: object) -> None:
    """A run that waits for a person before its second step."""
    steps = {"a": {"shell": project.sh()}, "b": {"shell": "echo", "approve": "always"}}
    project.plan(steps, agents=agents)
    assert project.run().code == 3


SHIP = {"agent": "dep", "action": "ship"}


def test_what_a_step_adds_waits_for_the_approval_that_its_contract_asks_for(
    project: Project,
) -> None:
    growing(project, {"d": {**SHIP, "shell": OK}}, {"dep": contract(["ok"], **TIGHT)})
    run = project.run("--yes")
    assert (run.code, run.states) == (3, {"scan": "done", "d": "waiting"})
    later = grown_plan(project)
    held = later["steps"]["d"]
    assert (held["approve"], held["outputs"], held["timeout"]) == (
        "always",
        ["ok"],
        {"$decimal": "1.5"},
    )
    assert later["limits"]["agents"] == {"dep": 1}
    project.ok("verify")


@pytest.mark.parametrize(
    "more, words",
    [
        ({**SHIP, "action": "fly", "shell": OK}, "'fly', which is not in its contract"),
        ({"agent": "dap", "action": "ship", "shell": OK}, "'dap', whom no registry knows"),
        ({**SHIP, "shell": OK, "timeout": "9s"}, "allows 1.5 s"),
        ({**SHIP, "shell": OK, "outputs": ["no"]}, "does not promise the outputs 'ok'"),
        ({**SHIP, "agent": "dep@2.0", "shell": OK}, "wants version 2.0"),
    ],
)
def test_what_breaks_a_contract_cannot_be_added(
    project: Project, more: dict[str, Any], words: str
) -> None:
    agents = {"dep": contract(["ok"], timeout_ms=1500)}
    growing(project, {"d": more}, agents)
    run = project.run()
    assert (run.code, run.states) == (1, {"scan": "failed"})
    assert words in run.err
    resting(project, agents)
    name = fragment(project, {"d": more})
    assert words in project.refused(2, "add", name)


def test_the_python_api_holds_added_steps_to_contracts_too(project: Project) -> None:
    resting(project, {"dep": contract(["ok"], **TIGHT)})
    run, root = project.status().id, str(project.root)
    with pytest.raises(PlanError, match="'fly', which is not in its contract"):
        holdfast.add([Step(StepId("d"), agent="dep", action="fly", shell=OK)], run, root=root)
    name = str(project.root / fragment(project, {"d": {**SHIP, "action": "fly"}}))
    with pytest.raises(PlanError, match="'fly', which is not in its contract"):
        holdfast.add(name, run, root=root)
    loaded = holdfast.load(str(project.root / "plan.yaml"))
    loaded.add(Step(StepId("d"), agent="dep", action="ship", shell=OK))
    assert loaded.build().steps[StepId("d")].approve == "always"
    loaded.add(Step(StepId("e"), agent="dep", action="fly", shell=OK))
    with pytest.raises(PlanError, match="'fly', which is not in its contract"):
        loaded.build()


def test_an_added_step_must_give_what_its_contract_promises(project: Project) -> None:
    wrong = {**SHIP, "shell": "echo '{\"no\": 1}'"}
    growing(project, {"right": SHIP, "wrong": wrong}, {"dep": contract(["ok"])})
    run = project.run()
    assert (run.code, run.states) == (1, {"scan": "done", "right": "done", "wrong": "failed"})


@pytest.mark.parametrize("said, most", [(None, 1), (2, 1)])
def test_added_steps_of_an_agent_run_no_more_at_once_than_it_can(
    project: Project, said: int | None, most: int
) -> None:
    more = {name: {**SHIP, "shell": f"sleep 0.2; {OK}"} for name in "xyz"}
    top = {} if said is None else {"limits": {"agents": {"dep": said}}}
    growing(project, more, {"dep": contract(["ok"], max_concurrent=1)}, **top)
    assert project.run("--jobs", "4").code == 0
    at_once, peak = 0, 0
    for event in project.events():
        if event.get("step") in more:
            at_once += {"attempt_started": 1, "attempt_accepted": -1}.get(event["event"], 0)
            peak = max(peak, at_once)
    assert (peak, grown_plan(project)["limits"]["agents"]) == (most, {"dep": most})
    project.ok("verify")


def test_a_smaller_limit_of_the_plan_stays(project: Project) -> None:
    agents = {"dep": contract(["ok"], max_concurrent=3)}
    growing(project, {"d": SHIP}, agents, limits={"agents": {"dep": 2}})
    assert project.run().code == 0
    assert grown_plan(project)["limits"]["agents"] == {"dep": 2}


def test_a_resumed_run_holds_what_is_added_to_the_contracts_it_began_with(
    project: Project,
) -> None:
    project.write("agents.json", json.dumps({"agents": {"dep": contract(["ok"], **TIGHT)}}))
    resting(project, "agents.json")
    (project.root / "agents.json").unlink()
    project.ok("add", fragment(project, {"d": SHIP, "e": {**SHIP, "needs": ["a"]}}))
    by_hand = Step(StepId("f"), agent="dep", action="ship", shell=OK)
    holdfast.add([by_hand], project.status().id, root=str(project.root))
    run = project.resume()
    assert (run.code, run.states) == (3, {"a": "done"} | dict.fromkeys("bdef", "waiting"))
    later = grown_plan(project)
    assert {later["steps"][name]["approve"] for name in "def"} == {"always"}
    assert later["limits"]["agents"] == {"dep": 1}
    project.ok("verify")


def test_the_agents_of_a_persons_own_registry_bind_what_is_added(project: Project) -> None:
    place = project.home / ".config" / "holdfast"
    place.mkdir(parents=True)
    (place / "config.toml").write_text('agents = "agents.json"\n')
    (place / "agents.json").write_text(json.dumps({"agents": {"dep": contract(["ok"], **TIGHT)}}))
    growing(project, {"d": SHIP}, "default")
    run = project.run()
    assert (run.code, run.states) == (3, {"scan": "done", "d": "waiting"})


def test_a_plan_that_binds_nobody_adds_steps_as_they_are(project: Project) -> None:
    project.plan({"scan": {"shell": adds(project, {"d": {**SHIP, "shell": OK, "timeout": "9s"}})}})
    assert project.run().code == 0
    assert "agents" not in grown_plan(project)["limits"]


def test_what_was_added_before_is_held_to_the_contracts_of_today(project: Project) -> None:
    """As what was added by a version that held it to none, or before the plan had agents."""
    more = {"d": {**SHIP, "shell": project.sh(OK)}}
    project.plan({"scan": {"shell": adds(project, more)}})
    assert project.run().code == 0
    assert project.ran() == ["d", "scan"]
    growing(project, more, {"dep": contract(["ok"], max_concurrent=1)})
    seen = project.ok("plan", "--json").json["steps"]
    assert {name: step["decision"] for name, step in seen.items()} == {"scan": "reuse", "d": "run"}
    run = project.run()
    assert (run.code, run.states) == (0, {"scan": "reused", "d": "done"})
    assert project.ran() == ["d"]
    assert grown_plan(project)["limits"]["agents"] == {"dep": 1}
    again = project.run()
    assert (again.code, set(again.states.values())) == (0, {"reused"})
    after = {**more["d"], "needs": [{"step": "scan", "type": "sequence"}]}
    both: Steps = {"scan": {"shell": adds(project, more)}, "d": after}
    project.plan(both, agents={"dep": contract(["ok"], max_concurrent=1)})
    last = project.run()
    assert (last.code, set(last.states.values())) == (0, {"reused"}), "it is the same step"
    project.ok("verify")


def test_what_was_added_follows_its_contract_and_what_no_longer_fits_is_added_anew(
    project: Project,
) -> None:
    more = {"d": {**SHIP, "shell": project.sh(OK)}}
    growing(project, more, {"dep": contract(["ok"], timeout_ms=9000)})
    assert project.run().code == 0
    project.ran()
    for milliseconds in (5000, 8000):
        growing(project, more, {"dep": contract(["ok"], timeout_ms=milliseconds)})
        assert project.run().states == {"scan": "reused", "d": "reused"}
        assert grown_plan(project)["steps"]["d"]["timeout"] == milliseconds // 1000
    growing(project, more, {"dep": contract([], timeout_ms=8000)})
    assert project.run().states == {"scan": "reused", "d": "done"}, "it promises nothing any more"
    assert project.ran() == ["d"]
    growing(project, more, {"dep": {"input_schema": {"actions": {"sail": {}}}}})
    run = project.run()
    assert (run.code, run.states) == (1, {"scan": "failed"})
    assert "'ship', which is not in its contract" in run.err
    project.ok("verify")
