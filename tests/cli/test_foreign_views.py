"""Views of a run for other programs: every field that the documents name, made from the journal alone."""

import json
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.formats.planfolder import PlanFolder
from tests.cli.project import COMMAND, Project

HEX = re.compile(r"[0-9a-f]{64}\Z")
TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]+)?Z\Z")
FOLDERS = ("plans", "hashes", "checkpoints")
STEPS: dict[str, dict[str, Any]] = {
    "base": {
        "shell": "echo base > base.txt",
        "produces": "base.txt",
        "description": "What all stand on",
        "contract": "One line",
        "guards": [{"regex": {"pattern": "base"}}],
    },
    "left": {"shell": "echo left", "needs": ["base"], "description": "One side"},
    "right": {"shell": "test -f go", "needs": ["base"]},
    "top": {"shell": "echo top", "needs": ["left", "right"]},
}


def views(project: Project) -> dict[str, bytes]:
    """All files that were written, by their place in the store."""
    return {
        str(file.relative_to(project.store)): file.read_bytes()
        for folder in FOLDERS
        for file in sorted((project.store / folder).glob("*"))
        if file.is_file()
    }


def forget(project: Project) -> None:
    for folder in FOLDERS:
        shutil.rmtree(project.store / folder, ignore_errors=True)


def saved(project: Project) -> dict[str, Any]:
    plan: dict[str, Any] = json.loads((project.store / "plans" / "line.json").read_bytes())
    return plan


def traced(project: Project) -> list[dict[str, Any]]:
    content = (project.store / "plans" / "line.trace.jsonl").read_text()
    return [json.loads(line) for line in content.splitlines()]


@pytest.fixture
def failed(project: Project) -> Project:
    """A run with a step that failed, one that waits for it, and others that are done."""
    project.plan(STEPS, name="line", goal="Stand up")
    assert project.call("run").code == 1
    project.ok("export", "--views")
    return project


# --- field by field ---------------------------------------------------------------------------------


@pytest.mark.req("R60")
def test_the_files_are_where_other_programs_look_for_them(failed: Project) -> None:
    assert [*views(failed)] == [
        "plans/line.json",
        "plans/line.trace.jsonl",
        "hashes/line.json",
        "checkpoints/agent-line.json",
    ]
    answer = failed.ok("export", "--views", "--json").json
    assert (answer["kind"], answer["line"]) == ("views", "line")
    assert all(Path(file).is_file() for file in answer["files"].values())


@pytest.mark.req("R61", "R62", "R18", "C2", "C3")
def test_the_saved_plan_has_every_field_of_its_document(failed: Project) -> None:
    plan = saved(failed)
    assert plan["version"] == "1.0"
    assert plan["goal"] == "Stand up"
    assert HEX.match(plan["goal_hash"])
    assert TIME.match(plan["created_at"])
    assert TIME.match(plan["updated_at"])
    assert plan["created_at"] <= plan["updated_at"]
    assert plan["graph"]["waves"] == [["base"], ["left", "right"], ["top"]]
    spec = plan["graph"]["artifacts"]["base"]
    assert spec == {
        "id": "base",
        "description": "What all stand on",
        "contract": "One line",
        "requires": [],
        "produces_file": "base.txt",
    }
    execution = plan["execution"]
    assert execution["status"] == "failed"
    assert execution["completed"].keys() == {"base", "left"}
    for name, one in execution["completed"].items():
        assert HEX.match(one["content_hash"])
        assert one["content_hash"] == plan["content_hashes"][name]
        assert one["model_tier"] == "none"
        assert isinstance(one["duration_ms"], int)
        assert TIME.match(one["completed_at"])
    assert execution["completed"]["base"]["verified"] is True
    assert execution["completed"]["left"]["verified"] is False
    assert execution["failed"].keys() == {"right"}
    assert execution["failed"]["right"]
    assert execution["skipped"] == []
    assert execution["current_wave"] == 1


@pytest.mark.req("R63")
def test_the_measures_follow_from_what_was_measured(failed: Project) -> None:
    plan = saved(failed)
    metrics = plan["metrics"]
    assert metrics.keys() == {
        *("total_duration_ms", "model_distribution"),
        *("parallelization_factor", "estimated_sequential_ms"),
    }
    assert metrics["model_distribution"] == {"small": 0, "medium": 0, "large": 0}
    total, sequential = metrics["total_duration_ms"], metrics["estimated_sequential_ms"]
    assert sequential >= sum(one["duration_ms"] for one in plan["execution"]["completed"].values())
    assert metrics["parallelization_factor"] == round(sequential / total, 2)


@pytest.mark.req("R64", "C2")
def test_the_hashes_are_those_of_what_was_made(failed: Project) -> None:
    hashes = json.loads(views(failed)["hashes/line.json"])
    state = failed.status().data["steps"]
    assert hashes == {name: state[name]["digest"] for name in ("base", "left")}


@pytest.mark.req("R65")
def test_every_event_of_the_trace_says_when_and_what(failed: Project) -> None:
    events = traced(failed)
    assert all(TIME.match(event["ts"]) for event in events)
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)
    said = [{k: v for k, v in event.items() if k not in {"ts", "duration_ms"}} for event in events]
    assert said[:4] == [
        {"event": "plan_created", "artifact_count": 4},
        {"event": "wave_start", "wave": 0, "artifacts": ["base"]},
        {"event": "artifact_complete", "id": "base"},
        {"event": "wave_complete", "wave": 0},
    ]
    assert said[4] == {"event": "wave_start", "wave": 1, "artifacts": ["left", "right"]}
    assert {"event": "artifact_complete", "id": "left"} in said
    (broken,) = [event for event in said if event["event"] == "artifact_failed"]
    assert broken["id"] == "right"
    assert broken["error"]
    (left,) = [event for event in said if event["event"] == "artifact_skipped"]
    assert (left["id"], left["because"]) == ("top", "right")
    assert said[-1] == {"event": "execution_complete", "status": "failed"}


@pytest.mark.req("R60", "R91")
def test_the_session_is_a_flat_list_of_tasks(failed: Project) -> None:
    session = json.loads(views(failed)["checkpoints/agent-line.json"])
    assert session["goal"] == "Stand up"
    assert session["completed_ids"] == ["base", "left"]
    assert session["artifacts"] == ["base.txt"]
    assert {task["id"]: task["status"] for task in session["tasks"]} == {
        "base": "completed",
        "left": "completed",
        "right": "failed",
        "top": "skipped",
    }
    assert session["tasks"][3]["depends_on"] == ["left", "right"]
    assert {"execution_config", "parallel_config", "phase", "working_directory"} <= session.keys()


def test_every_view_is_read_again_by_import(failed: Project) -> None:
    names = [str(Path(".holdfast") / name) for name in views(failed)]
    answer = failed.ok("import", *names, "--json").json
    assert [one["format"] for one in answer["files"]] == ["sunwell", "trace", "hashes", "tasks"]
    assert {one["result"] for one in answer["files"]} == {"loaded"}


# --- nothing but views ------------------------------------------------------------------------------


@pytest.mark.req("R60", "R75", "C3")
def test_deleted_views_are_written_again_to_the_byte(failed: Project) -> None:
    first = views(failed)
    forget(failed)
    assert failed.status().data["steps"]["base"]["state"] == "done"
    failed.ok("export", "--views")
    assert views(failed) == first
    failed.write(".holdfast/plans/line.json", "{ half")
    failed.ok("export", "--views")
    assert views(failed) == first


def test_views_change_nothing_and_nobody_reads_them(failed: Project) -> None:
    before = failed.status().data
    for name in views(failed):
        failed.write(f".holdfast/{name}", "{}")
    failed.ok("verify")
    assert failed.status().data == before
    failed.write("go", "")
    failed.ok("resume")


@pytest.mark.req("R65")
def test_the_trace_of_a_run_that_grows_is_only_appended_to(project: Project) -> None:
    more = {"late": {"shell": "echo late", "needs": ["base"]}}
    project.plan(STEPS, name="line")
    project.call("run")
    project.ok("export", "--views")
    first = views(project)["plans/line.trace.jsonl"]
    project.write("more.json", json.dumps({"steps": more}))
    project.ok("add", "more.json")
    project.write("go", "")
    project.ok("resume")
    project.ok("export", "--views")
    assert views(project)["plans/line.trace.jsonl"].startswith(first)
    events = traced(project)
    assert events[0]["artifact_count"] == 4
    assert "late" in {event.get("id") for event in events}
    assert "late" in saved(project)["graph"]["artifacts"]


_KILLER = """
import os, signal, sys

left = int(sys.argv[1])

def dying(handle):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    os.fsync(handle)

from holdfast.formats import planfolder

planfolder.os = type("Os", (), {"getpid": os.getpid, "kill": os.kill, "fsync": dying})
sys.argv = ["holdfast", "export", "--views"]
from holdfast.cli.main import main

main()
"""


@pytest.mark.req("R60", "R67")
@pytest.mark.parametrize("number", range(4))
def test_a_killed_export_leaves_each_file_whole_or_absent(failed: Project, number: int) -> None:
    whole = views(failed)
    forget(failed)
    killed = subprocess.run(
        [COMMAND[0], "-c", _KILLER, str(number)],
        cwd=failed.root,
        env=failed.environment(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    found = {name: text for name, text in views(failed).items() if not name.endswith(".tmp")}
    assert found.items() <= whole.items()
    assert len(found) == number
    failed.ok("export", "--views")
    assert views(failed) == whole


def test_a_place_that_cannot_be_written_is_said(failed: Project) -> None:
    forget(failed)
    failed.write(".holdfast/hashes", "in the way")
    said = failed.refused(2, "export", "--views")
    assert "cannot write to" in said


def test_a_line_with_any_name_has_its_own_files(project: Project) -> None:
    for name in ("a/b", "a%2Fb", "größe 1", "../up"):
        project.plan({"a": {"shell": "echo one"}}, name=name)
        project.ok("run")
        project.ok("export", "--views")
        plan = PlanFolder(str(project.store)).load(name)
        assert plan is not None
        assert plan["goal"] == name
    assert len([*(project.store / "plans").glob("*.json")]) == 4
    assert not [*project.root.glob("*up*")]


@pytest.mark.req("R182")
@pytest.mark.parametrize("form", ["graph", "atomicguard", "sunwell", "tasks", "planspec"])
@pytest.mark.parametrize("listed", ["${{ steps.search.output }}", ["b", "b/c", "B", ""]])
def test_items_stand_under_ids_that_every_format_has(
    project: Project, form: str, listed: object
) -> None:
    project.plan(
        {
            "search": {"shell": """echo '["b", "b/c", "B", ""]'"""},
            "each": {"needs": ["search"], "for_each": listed, "shell": "echo 1"},
            "each.b_c": {"shell": "true"},
            "last": {"needs": ["each"], "shell": "true"},
        }
    )
    assert project.run().code == 0
    told = project.ok("export", "@", "o.json", "--format", form).out
    assert "there are no items: each[" in told
    assert "each[b/c] as each.b_c-2" in told
    assert "there is no word for 'for_each' of each: it is left out" in told
    project.ok("check", "o.json")
    names = project.ok("export", "@", "again.json", "--format", form, "--json").json["steps"]
    assert {"each.B", "each.b-2", "each.b_c-2", "each._", "each", "last"} <= set(names)
    assert "each.b_c-2" in project.read("o.json")
