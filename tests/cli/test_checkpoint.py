"""Checkpoints: written when waves are settled, kept by kind, checked before they are used."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.nodes import restored
from holdfast.errors import UsageError
from holdfast.formats.checkpoint import RETENTION, Folder, parse, retained, sealed
from tests.cli.project import Project, kill

pytestmark = pytest.mark.req("R70", "R71")

FAILS = "test -e go || exit 3"


def lay(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": project.sh("echo one > a.txt"), "produces": "a.txt"},
            "b": {"shell": project.sh(FAILS), "needs": ["a"]},
            "c": {"shell": project.sh(), "needs": ["b"]},
        }
    )


def kept(project: Project, folder: str = "cps") -> list[Any]:
    return list(
        project.ok("checkpoint", "--list", "--checkpoints", folder, "--json").json["checkpoints"]
    )


def states(data: Any) -> dict[str, str]:
    return {name: node["status"] for name, node in data["graph_state"]["node_states"].items()}


def test_a_run_writes_one_whenever_a_wave_is_settled_and_at_its_end(project: Project) -> None:
    lay(project)
    project.call("run", "--checkpoints", "cps")
    entries = kept(project)
    assert [one["trigger"] for one in entries] == ["batch_complete", "session_end"]
    first = json.loads(project.read(f"cps/{entries[0]['checkpoint_id']}.json"))
    assert states(first) == {"a": "complete", "b": "running", "c": "pending"}  # one commit
    assert first["graph_state"]["completed_batches"] == [1]
    assert first["graph_state"]["current_batch"] == 2
    assert first["graph_state"]["graph_id"].startswith("GRAPH-")
    last = json.loads(project.read(f"cps/{entries[1]['checkpoint_id']}.json"))
    assert states(last) == {"a": "complete", "b": "failed", "c": "skipped"}
    skipped = last["graph_state"]["node_states"]["c"]
    assert skipped["result"] == {"skipped_reason": "Dependency b failed"}
    assert project.read("cps/latest").strip() == entries[1]["checkpoint_id"]
    index = json.loads(project.read("cps/index.json"))
    assert (index["latest"], index["total_checkpoints"]) == (entries[1]["checkpoint_id"], 2)


def test_disagreement_is_a_reason_to_write_one(project: Project) -> None:
    says = {"scope": "x", "confidence": 90}
    steps: dict[str, Any] = {
        name: {
            "agent": agent,
            "shell": f"echo '{json.dumps({'recommendations': [{**says, 'action': name}]})}'",
        }
        for name, agent in (("a", "security-analyst"), ("b", "techwriter"))
    }
    project.plan({**steps, "c": {"shell": "echo", "needs": ["a", "b"]}})
    project.call("run", "--checkpoints", "cps")
    assert "conflict_resolved" in [one["trigger"] for one in kept(project)]


def test_a_checkpoint_is_named_by_phase_time_and_hash(project: Project) -> None:
    lay(project)
    project.call("run")
    made = project.ok("checkpoint", "--json").json["checkpoint"]
    phase, stamp, digest = made["checkpoint_id"].removeprefix("CP-").split("-")
    assert phase == "run"
    assert stamp == made["created_at"].translate({ord(c): None for c in "-:TZ."})[:14]
    assert len(digest) == 8
    assert made["trigger"] == "manual"


@pytest.mark.req("R86", "R108")
def test_a_run_is_taken_up_from_a_checkpoint_and_nothing_is_lost_with_it(project: Project) -> None:
    lay(project)
    project.call("run", "--checkpoints", "cps")
    first = kept(project)[0]["checkpoint_id"]
    project.ran()
    project.write("go", "")
    run = project.resume("--checkpoint", f"cps/{first}.json")
    assert run.states == {"a": "done", "b": "done", "c": "done"}
    assert project.ran() == ["b", "c"]
    assert "went on since" in run.err  # the journal is the truth, not the file


@pytest.mark.req("E17", "R86")
def test_what_ran_when_the_engine_died_runs_again(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": project.sh()},
            "b": {"shell": project.sh(project.gate("b")), "needs": ["a"]},
        }
    )
    engine = project.begun_by("run", "--checkpoints", "cps", step="b")
    made = project.ok("checkpoint", "--checkpoints", "cps", "--json").json["checkpoint"]
    assert states(made)["b"] == "running"
    kill(engine)
    project.open("b")
    run = project.resume("--checkpoint", made["checkpoint_id"], "--checkpoints", "cps")
    assert run.states == {"a": "done", "b": "done"}


@pytest.mark.req("E17")
def test_a_restart_resets_what_ran_failed_or_was_skipped_in_one_pass_in_any_order() -> None:
    dependencies = {"z": [], "a": ["m"], "m": ["z"], "k": ["a"], "q": []}
    said = {"z": "failed", "m": "skipped", "a": "skipped", "k": "skipped", "q": "running"}
    assert restored(said, dependencies) == dict.fromkeys(dependencies, "pending")
    assert restored({"z": "complete", "m": "running", "a": "complete"}, dependencies) == {
        "z": "complete",
        "m": "pending",
        "a": "pending",
        "k": "pending",
        "q": "pending",
    }


def test_a_damaged_latest_falls_back_to_the_one_before(project: Project) -> None:
    lay(project)
    project.call("run", "--checkpoints", "cps")
    first, last = (one["checkpoint_id"] for one in kept(project))
    place = project.root / "cps" / f"{last}.json"
    place.write_text(place.read_text().replace('"failed"', '"complete"'))
    listed = project.ok("checkpoint", "--list", "--checkpoints", "cps", "--json").json
    assert listed["latest"] == first
    assert [one["checkpoint_id"] for one in listed["damaged"]] == [last]
    project.write("go", "")
    run = project.resume("--checkpoint", "latest", "--checkpoints", "cps")
    assert f"{last} is passed over" in run.err
    assert run.code == 0
    place.write_text("{")
    assert "damaged" in project.refused(2, "resume", "--checkpoint", f"cps/{last}.json")


def test_a_lost_index_is_made_again_from_the_files(project: Project) -> None:
    lay(project)
    project.call("run", "--checkpoints", "cps")
    before = kept(project)
    (project.root / "cps" / "index.json").write_text("nonsense")
    assert kept(project) == before
    for file in (project.root / "cps").iterdir():
        file.unlink()
    assert kept(project) == []
    assert project.status().states["a"] == "done"


def test_what_changed_since_is_told_and_a_lost_branch_ends_it(project: Project) -> None:
    git = project.root / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/topic\n")
    (git / "refs" / "heads" / "topic").write_text("0" * 40 + "\n")
    lay(project)
    project.call("run", "--checkpoints", "cps")
    first = kept(project)[0]["checkpoint_id"]
    show = ("checkpoint", "--show", f"cps/{first}.json", "--json")
    assert project.ok(*show).json["freshness"] == {"can_resume": True, "warnings": []}
    project.write("a.txt", "by hand")
    plan = project.root / "plan.yaml"
    plan.write_text(plan.read_text().replace('echo $HOLDFAST_STEP"', 'echo other"'))
    assert project.ok(*show).json["freshness"] == {
        "can_resume": True,
        "warnings": ["the plan changed; the run keeps its own", "files changed: a.txt"],
    }
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "refs" / "heads" / "topic").rename(git / "refs" / "heads" / "main")
    fresh = project.ok(*show).json["freshness"]
    assert (fresh["can_resume"], fresh["warnings"][0]) == (False, "the branch 'topic' is gone")
    said = project.refused(2, "resume", "--checkpoint", f"cps/{first}.json")
    assert "cannot be resumed: the branch 'topic' is gone" in said


def test_the_run_of_a_checkpoint_must_be_in_the_store(project: Project) -> None:
    lay(project)
    project.call("run", "--checkpoints", "cps")
    name = kept(project)[0]["checkpoint_id"]
    data = json.loads(project.read(f"cps/{name}.json"))
    data["holdfast"]["run"] = "r-elsewhere"
    project.write("other.json", json.dumps(sealed(data)))
    said = project.refused(2, "resume", "--checkpoint", "other.json")
    assert "is not in this store" in said


# --- retention ------------------------------------------------------------------------------------


def entries(trigger: str, phase: str, count: int) -> list[dict[str, Any]]:
    return [
        {"checkpoint_id": f"{trigger}-{phase}-{number}", "trigger": trigger, "phase": phase}
        for number in range(count)
    ]


@pytest.mark.parametrize("trigger", RETENTION)
def test_each_kind_is_kept_as_long_as_it_says(trigger: str) -> None:
    both = [*entries(trigger, "enrich", 5), *entries(trigger, "validation", 5)]
    stay, gone = retained(both)
    most = 5 if RETENTION[trigger] < 0 else RETENTION[trigger]
    assert len(stay) == 2 * most
    assert stay[-1] == both[-1]  # the newest stay
    assert sorted(map(str, [*stay, *gone])) == sorted(map(str, both))


def test_the_documented_retention_is_the_shipped_one() -> None:
    documented = ("phase_transition", "batch_complete", "agent_complete")
    more = ("conflict_resolved", "user_interrupt", "manual")
    assert [RETENTION[kind] for kind in (*documented, *more)] == [-1, 3, 1, -1, 1, -1]


def test_a_folder_removes_what_is_no_longer_kept(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    for number in range(5):
        folder.write(
            {
                "checkpoint_id": f"CP-run-2025011410300{number}-a3f2",
                "created_at": f"2025-01-14T10:30:0{number}Z",
                "trigger": "batch_complete",
                "phase": "run",
                "graph_state": {"node_states": {}},
            }
        )
    names = [f"CP-run-2025011410300{number}-a3f2" for number in (2, 3, 4)]
    assert [one["checkpoint_id"] for one in folder.entries()] == names
    assert sorted(file.stem for file in tmp_path.glob("CP-*")) == names
    found, broken = folder.latest()
    assert found is not None
    assert (found.id, broken) == (names[-1], [])


@pytest.mark.parametrize("name", ["../x", "CP-x", "CP-run-20250114-../../x", "latest/../x"])
def test_a_name_cannot_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="not the id of a checkpoint"):
        Folder(str(tmp_path)).read(name)


@pytest.mark.req("C38")
def test_the_corrected_checkpoint_of_the_document_is_read() -> None:
    graphs = Path(__file__).parents[1] / "formats" / "graphs"
    verbatim = (graphs / "checkpoint.verbatim.json").read_bytes()
    with pytest.raises(UsageError, match="not JSON"):
        parse(verbatim, "checkpoint.json")
    found = parse((graphs / "checkpoint.json").read_bytes(), "checkpoint.json")
    assert found.id == "CP-20250114-a3f2"
    assert found.graph_state["completed_batches"] == [1, 2]
    assert found.statuses() == {
        "task-001": "complete",
        "task-002": "complete",
        "task-003": "running",
    }


def test_two_of_one_moment_for_two_reasons_are_two(project: Project) -> None:
    lay(project)
    project.call("run")
    for trigger in ("manual", "session_end"):
        project.ok("checkpoint", "--checkpoints", "cps", "--trigger", trigger)
    assert {one["trigger"] for one in kept(project)} == {"manual", "session_end"}


@pytest.mark.req("R91")
def test_the_checkpoint_of_an_agents_session_is_told_apart(project: Project) -> None:
    lay(project)
    project.call("run")
    session = {"goal": "g", "tasks": [{"id": "1"}], "completed_ids": ["1"], "artifacts": []}
    project.write("agent.json", json.dumps(session))
    said = project.refused(2, "resume", "--checkpoint", "agent.json")
    assert "the checkpoint of an agent's session" in said
    assert "holdfast import agent.json -o plan.yaml" in said
    project.write("other.json", "{}")
    assert "has no 'checkpoint_id'" in project.refused(2, "resume", "--checkpoint", "other.json")
