"""Files of other programs through the front door: check, import, trust, run, export, views."""

import json
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.errors import UsageError
from holdfast.testing.server import Asked, Say
from tests.cli import models
from tests.cli.project import Project
from tests.cli.test_handoffs_of_models import HANDOFF, both

FOREIGN = Path(__file__).parents[1] / "formats" / "foreign"
TIERS = '[tiers]\nsmall = "fake:m"\nmedium = "fake:m"\nlarge = "fake:m"\n'
SIZES = {"UserProtocol", "UserModel", "AuthInterface", "AuthService", "App"}


def put(project: Project, name: str, target: str = "") -> None:
    project.write(target or name, (FOREIGN / name).read_text())


def say(asked: Asked) -> Say:
    """An answer that tells which artifact was asked for."""
    return Say(f"made: {asked.last.splitlines()[-1]}")


def digest(project: Project, file: str) -> str:
    answer = project.ok("import", file, "--json").json
    return str(answer["files"][0]["plan"]["digest"])


def views(project: Project, name: str = "plan") -> dict[str, bytes]:
    store = project.store
    files = {
        "plan": store / "plans" / f"{name}.json",
        "trace": store / "plans" / f"{name}.trace.jsonl",
        "hashes": store / "hashes" / f"{name}.json",
        "tasks": store / "checkpoints" / f"agent-{name}.json",
    }
    return {key: file.read_bytes() for key, file in files.items()}


# --- in ---------------------------------------------------------------------------------------------


@pytest.mark.req("R62", "R64", "R65", "C38")
def test_every_file_gets_its_answer(project: Project) -> None:
    names = ["plan.json", "trace.jsonl", "hashes.json", "plan.verbatim.json"]
    for name in names:
        put(project, name)
    project.write("other.json", '{"colour": "red"}')
    names.append("other.json")
    answer = project.call("import", *names, "--json")
    assert answer.code == 2
    files = answer.json["files"]
    assert [(one["file"], one["format"], one["result"]) for one in files] == [
        ("plan.json", "sunwell", "loaded"),
        ("trace.jsonl", "trace", "loaded"),
        ("hashes.json", "hashes", "loaded"),
        ("plan.verbatim.json", "sunwell", "refused"),
        ("other.json", None, "refused"),
    ]
    assert {*files[0]["plan"]["steps"]} == SIZES
    assert [one["plan"] is None for one in files] == [False, True, True, True, True]
    assert len(files[3]["errors"]) == 4
    assert not project.store.exists()


@pytest.mark.req("R17")
def test_prompts_are_read_with_the_workflow_that_is_named(project: Project) -> None:
    flow = {"name": "tdd", "action_pairs": {"g_test": {"guard": "syntax"}}}
    project.write("flows/workflow.json", json.dumps(flow))
    project.write("other/prompts.json", json.dumps({"g_test": {"task": "Write tests."}}))
    lonely = project.ok("import", "flows/workflow.json", "--json").json["files"][0]
    assert "has no 'prompt'" in lonely["warnings"][0]
    project.ok("import", "flows/workflow.json", "other/prompts.json", "-o", "plan.yaml")
    assert "task: Write tests." in project.read("plan.yaml")
    said = project.refused(2, "import", "other/prompts.json", "-o", "again.yaml")
    assert "holds no plan" in said
    assert not project.has("again.yaml")


def test_a_format_that_is_not_the_file_s_is_refused(project: Project) -> None:
    put(project, "plan.json")
    put(project, "hashes.json")
    said = project.refused(2, "import", "plan.json", "--format", "atomicguard")
    assert "is a sunwell file, not an atomicguard file" in said
    assert "holds hashes, not trace" in project.refused(
        2, "import", "hashes.json", "--format", "trace"
    )
    assert "holds no hashes" in project.refused(2, "import", "plan.json", "--format", "hashes")


def test_check_and_plan_know_a_saved_plan(project: Project) -> None:
    put(project, "plan.json")
    answer = project.ok("check", "plan.json", "--json").json
    assert answer["steps"] == 5
    assert {item["code"] for item in answer["warnings"]} == {"P913", "P915"}
    assert "5 steps" in project.ok("plan", "plan.json").out
    put(project, "plan.verbatim.json")
    said = project.refused(2, "check", "plan.verbatim.json")
    assert "wave 1 names 'AuthInterface'" in said


# --- running one ------------------------------------------------------------------------------------


def test_what_a_foreign_plan_lacks_is_said_before_anybody_is_asked(project: Project) -> None:
    put(project, "plan.json")
    said = project.refused(2, "run", "plan.json", "--yes")
    assert "nobody said which model 'small' is" in said
    assert '[tiers] small = "provider:model"' in said
    flow = {"name": "w", "provider": "huggingface", "action_pairs": {"a": {"guard": "syntax"}}}
    project.write("workflow.json", json.dumps(flow))
    assert "'a' has nothing to run" in project.refused(2, "run", "workflow.json", "--yes")
    project.write("prompts.json", json.dumps({"a": {"task": "Write."}}))
    said = project.refused(2, "run", "workflow.json", "--yes")
    assert "nobody said who 'huggingface:qwen2.5-coder:7b' is" in said
    assert not project.store.exists()


@pytest.mark.req("R60", "R61", "R62", "R63", "R64", "R65", "C2", "C3", "R75")
def test_a_saved_plan_is_trusted_run_and_seen_as_other_programs_see_it(project: Project) -> None:
    put(project, "plan.json")
    with models.served(project, say, TIERS):
        said = project.refused(2, "run", "plan.json", "--yes")
        assert "comes from elsewhere" in said
        project.ok("run", "plan.json", "--yes", "--trust", digest(project, "plan.json"))
    assert project.read("src/app.py") == "made: Flask application factory"
    project.ok("export", "--views", "-f", "plan.json")
    first = views(project)
    plan = json.loads(first["plan"])
    state = project.status("-f", "plan.json").data["steps"]
    assert plan["version"] == "1.0"
    assert plan["goal"] == "Build a REST API with authentication"
    assert len(plan["goal_hash"]) == 64
    assert plan["graph"]["waves"] == [
        ["AuthInterface", "UserProtocol"],
        ["AuthService", "UserModel"],
        ["App"],
    ]
    assert plan["graph"]["artifacts"]["UserModel"]["domain_type"] == "model"
    execution = plan["execution"]
    assert (execution["status"], execution["failed"], execution["skipped"]) == ("completed", {}, [])
    assert {name: one["content_hash"] for name, one in execution["completed"].items()} == {
        name: step["digest"] for name, step in state.items()
    }
    tiers = {name: one["model_tier"] for name, one in execution["completed"].items()}
    assert tiers["UserProtocol"] == "small"
    assert tiers["App"] == "large"
    assert not any(
        one["verified"] for one in execution["completed"].values()
    )  # nothing guards them
    metrics = plan["metrics"]
    assert metrics["model_distribution"] == {"small": 2, "medium": 2, "large": 1}
    took = sum(one["duration_ms"] for one in execution["completed"].values())
    assert metrics["estimated_sequential_ms"] == took
    assert metrics["parallelization_factor"] == round(took / metrics["total_duration_ms"], 2)
    assert json.loads(first["hashes"]) == plan["content_hashes"]
    assert {*json.loads(first["tasks"])["completed_ids"]} == SIZES
    events = [json.loads(line) for line in first["trace"].splitlines()]
    kinds = [event["event"] for event in events]
    assert kinds[0] == "plan_created"
    assert kinds[-1] == "execution_complete"
    assert kinds.count("wave_start") == kinds.count("wave_complete") == 3
    assert {e["id"] for e in events if e["event"] == "artifact_complete"} == SIZES
    for name in ("plans", "hashes", "checkpoints"):
        for file in (project.store / name).iterdir():
            file.unlink()
    project.ok("export", "--views", "-f", "plan.json")
    assert views(project) == first


@pytest.mark.req("R17", "R35", "R37")
@pytest.mark.parametrize("name", ["workflow.json", "planspec.new.json", "session.json"])
def test_an_imported_plan_runs_once_it_says_what_it_lacks(project: Project, name: str) -> None:
    put(project, name)
    if name == "workflow.json":
        put(project, "prompts.json")
    project.ok("import", name, "-o", "plan.yaml")
    text = project.read("plan.yaml").replace("ollama:qwen2.5-coder:14b", "fake:m")
    text = text.replace("\nsteps:", "\ndefaults: {model: fake:m}\nsteps:")
    text = text.replace("agent: page-maker\n    action: develop", "shell: cat out.json")
    text = text.replace("- python\n      - serve.py\n      - --check", "- 'true'")
    project.write("plan.yaml", text)
    project.write("out.json", '{"findings": 1}')
    handoff = {**HANDOFF, "payload": {"findings": 1}}
    hands_over = both('{"findings": 1}', handoff)  # as the agents of a PlanSpec do
    say = hands_over if name == "planspec.new.json" else Say('{"findings": 1}')
    with models.served(project, lambda _: say):
        answer = project.call("run", "--yes", "--json")
    assert "steps" in answer.json, answer
    states = {step["state"] for step in answer.json["steps"].values()}
    assert states <= {"done", "waiting", "pending"}, answer.json
    assert answer.code == (0 if name == "session.json" else 3)  # a person is asked in the others


PLAN: dict[str, dict[str, Any]] = {
    "a": {"shell": "echo one", "guards": [{"regex": {"pattern": "one"}}], "description": "First"},
    "b": {"shell": "test -f go", "needs": ["a"]},
    "c": {"shell": "echo three", "needs": ["b"]},
}


@pytest.mark.req("R65", "R61", "C9", "C8")
def test_the_trace_of_a_run_that_goes_on_is_appended_to(project: Project) -> None:
    project.plan(PLAN, name="line")
    project.call("run")
    project.ok("export", "@", "--views")
    first = views(project, "line")
    plan = json.loads(first["plan"])
    assert plan["execution"]["status"] == "failed"
    assert plan["execution"]["completed"]["a"]["verified"] is True
    assert plan["execution"]["completed"].keys() == {"a"}
    assert plan["execution"]["failed"].keys() == {"b"}
    trace = [json.loads(line) for line in first["trace"].splitlines()]
    left = [event for event in trace if event["event"] == "artifact_skipped"]
    assert [(e["id"], e["reason"], e["because"]) for e in left] == [("c", "dependency_failed", "b")]
    project.write("go", "")
    project.ok("resume")
    project.ok("export", "@", "--views")
    second = views(project, "line")
    assert second["trace"].startswith(first["trace"])
    assert json.loads(second["plan"])["execution"]["failed"] == {}
    project.ok("run")
    project.ok("export", "@", "--views")
    third = json.loads(views(project, "line")["plan"])
    assert third["execution"]["skipped"] == ["a", "b", "c"]
    assert third["execution"]["completed"].keys() == {"a", "b", "c"}


# --- out --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["sunwell", "tasks", "planspec", "graph"])
def test_a_plan_in_another_format_is_known_again(project: Project, form: str) -> None:
    project.plan(PLAN, name="line")
    said = project.ok("export", f"{form}.json", "--format", form).out
    assert f"{form}.json: {form} of 3 steps" in said
    answer = project.ok("import", f"{form}.json", "--json").json["files"][0]
    assert (answer["format"], answer["plan"]["steps"]) == (form, ["a", "b", "c"])
    assert json.loads(project.ok("export", "-", "--format", form).out)


@pytest.mark.parametrize("form", ["sunwell", "tasks", "planspec"])
def test_what_a_format_has_no_word_for_is_named(project: Project, form: str) -> None:
    steps = {"a": {"shell": "echo one", "timeout": "5m", "guards": ["human"]}}
    project.plan(steps, name="line", limits={"parallel": 2})
    answer = project.ok("export", "x.json", "--format", form, "--json").json
    lost = answer["left_out"]
    assert (lost["shell"], lost["timeout"], lost["limits"]) == (["a"], ["a"], ["the plan"])
    said = project.ok("export", "y.json", "--format", form).out
    assert "there is no word for 'timeout' of a: it is left out" in said
    streamed = project.ok("export", "-", "--format", form)
    assert "there is no word for 'timeout' of a" in streamed.err
    assert json.loads(streamed.out)


def test_two_files_are_written_or_none(project: Project) -> None:
    project.plan({"d": {"prompt": "Say it.", "model": "ollama:m"}}, name="line")
    project.write("workflow.json", "mine")
    said = project.refused(2, "export", "workflow.json", "--format", "atomicguard")
    assert "is there already" in said
    assert not project.has("prompts.json")
    assert project.read("workflow.json") == "mine"


def test_a_workflow_is_two_files_and_names_what_it_leaves_out(project: Project) -> None:
    steps = {**PLAN, "d": {"prompt": "Say it.", "model": "ollama:m", "produces": "d.txt"}}
    project.plan(steps, name="line")
    said = project.ok("export", "workflow.json", "--format", "atomicguard")
    assert "there is no word for 'produces' of d: it is left out" in said.out
    prompts = json.loads(project.read("prompts.json"))
    assert prompts == {"d": {"task": "Say it."}}
    answer = project.ok("import", "workflow.json", "--json").json["files"][0]
    assert (answer["format"], answer["warnings"]) == ("atomicguard", [])
    assert "two files" in project.refused(2, "export", "-", "--format", "atomicguard")


def test_what_only_a_run_has_is_not_exported_of_a_plan(project: Project) -> None:
    project.plan(PLAN, name="line")
    said = project.refused(2, "export", "x.jsonl", "--format", "trace")
    assert "'trace' is of a run" in said
    assert "takes a run and nothing else" in project.refused(2, "export", "@", "x", "--views")
    project.call("run")
    project.ok("export", "@", "x.jsonl", "--format", "trace")
    assert project.ok("import", "x.jsonl", "--json").json["files"][0]["format"] == "trace"
    project.ok("export", "@", "h.json", "--format", "hashes")
    answer = project.ok("import", "h.json", "--json").json["files"][0]
    assert answer["claims"]["hashes"].keys() == {"a"}


@pytest.mark.req("R91")
def test_the_checkpoint_of_a_session_cannot_be_resumed_and_can_be_imported(
    project: Project,
) -> None:
    project.plan(PLAN, name="line")
    project.call("run")
    project.ok("export", "@", "tasks.json", "--format", "tasks")
    said = project.refused(2, "resume", "--checkpoint", "tasks.json")
    assert "holdfast import" in said
    answer = project.ok("import", "tasks.json", "--json").json["files"][0]
    assert answer["format"] == "tasks"
    assert "1 task is said to be complete" in " ".join(answer["warnings"])


# --- from Python ------------------------------------------------------------------------------------


@pytest.mark.req("R19", "R21")
def test_any_plan_says_what_depends_on_a_step_and_in_which_waves_it_runs(project: Project) -> None:
    project.plan(PLAN, name="line")
    plan = holdfast.load(str(project.root / "plan.yaml"))
    assert plan.get_dependents("a") == {"b"}
    assert plan.get_dependents("c") == set()
    assert plan.execution_waves() == [["a"], ["b"], ["c"]]
    part = plan.subgraph(["a", "c"])
    assert part.execution_waves() == [["a", "c"]]
    assert [*plan.steps] == ["a", "b", "c"]
    with pytest.raises(UsageError, match="no step 'x'"):
        plan.subgraph(["x"])
