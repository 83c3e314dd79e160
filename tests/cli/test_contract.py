"""The machine-readable contract: keys, types and closed lists of every `--json` answer."""

import json
import re
from typing import Any

import pytest

from holdfast.core.reasons import CODES
from tests.cli.project import Project, finish, until

HEX = re.compile(r"[0-9a-f]{64}\Z")
RUN_ID = re.compile(r"r-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
STATES = {"pending", "running", "waiting", "done", "reused", "failed", "skipped"}
RESTED = {"completed", "failed", "waiting", "paused", "limit", "escalated"}
STATUSES = RESTED | {"running", "superseded", "blocked"}


def is_reason(value: Any) -> None:
    assert set(value) == {"code", "text", "because"}
    assert value["code"] in CODES
    assert isinstance(value["text"], str)
    assert value["text"]
    assert all(isinstance(item, str) for item in value["because"])


def is_number(value: Any) -> None:
    assert isinstance(value, int | float)
    assert not isinstance(value, bool)
    assert value >= 0


def is_head(value: Any) -> None:
    assert set(value) - {"digest"} == {"line", "ref", "file"}  # a preview also names the version
    assert HEX.match(value["ref"])
    assert value["file"] == "plan.yaml"
    assert value["line"] == "demo"


def is_run(data: Any) -> None:
    """Exactly the object of the contract."""
    more = {"reason", "conflicts", "gaps", "additions", "forked", "replan", "replaces"}
    assert set(data) == {"schema", "run", "status", "plan", "steps", "waiting", "totals", *more}
    assert data["schema"] == "holdfast.run/1"
    assert RUN_ID.match(data["run"])
    assert data["status"] in STATUSES
    is_head(data["plan"])
    keys = {"state", "reason", "attempts", "config_ref", "digest", "cost_usd", "duration_ms"}
    for step in data["steps"].values():
        assert set(step) == {*keys, "added", "price", "calls", "tokens"}
        assert step["state"] in STATES
        assert type(step["attempts"]) is int
        assert type(step["duration_ms"]) is int
        assert type(step["cost_usd"]) is float
        if step["state"] not in {"pending", "skipped"}:
            is_reason(step["reason"])
        assert step["config_ref"] is None or HEX.match(step["config_ref"])
        assert (step["digest"] is not None) == (step["state"] in {"done", "reused"})
        assert step["digest"] is None or HEX.match(step["digest"])
    totals = data["totals"]
    counted = {"steps", "done", "reused", "failed", "skipped"}
    money = {"cost_usd", "saved_usd", "known_usd", "rejected_usd", "interrupted_usd"}
    more = {"price", "calls", "interrupted_calls", "tokens", "max_cost_usd", "duration_ms"}
    assert set(totals) == counted | money | more
    for name in counted | money | {"calls", "interrupted_calls", "tokens", "duration_ms"}:
        is_number(totals[name])
    assert (totals["price"], totals["max_cost_usd"]) == ("known", None)
    states = [step["state"] for step in data["steps"].values()]
    assert totals["steps"] == len(states)
    for name in counted - {"steps"}:
        assert totals[name] == states.count(name)
    for item in data["waiting"]:
        assert set(item) == {"approval", "step", "from", "subject"}
        assert data["steps"][item["step"]]["state"] == "waiting"


def mixed(project: Project) -> None:
    """A step that is done, one that fails until a file is there, and one below it."""
    project.plan(
        {
            "good": {"shell": project.sh("echo good")},
            "bad": {"shell": project.sh(f"test -e {project.folder}/fixed && echo fixed")},
            "below": {"shell": project.sh("cat $HOLDFAST_INPUTS/bad"), "needs": ["bad"]},
        }
    )


@pytest.mark.req("R56", "R170")
def test_run_resume_retry_and_status_print_one_object_of_the_same_shape(project: Project) -> None:
    mixed(project)
    failed = project.run()
    assert (failed.code, failed.data["status"]) == (1, "failed")
    is_run(failed.data)
    assert failed.states == {"good": "done", "bad": "failed", "below": "skipped"}

    still = project.retry("bad")
    assert still.code == 1
    is_run(still.data)
    assert still.id == failed.id
    assert project.status().data == still.data
    is_run(project.status("@").data)

    (project.folder / "fixed").touch()
    resumed = project.resume()
    assert resumed.code == 0
    is_run(resumed.data)
    assert resumed.data["status"] == "completed"
    again = project.run()
    is_run(again.data)
    assert again.states == dict.fromkeys(["good", "bad", "below"], "reused")
    shown = project.ok("show", "@-1", "--json").json
    is_run(shown)
    assert shown["run"] == resumed.id


def test_talk_goes_to_stderr_and_the_result_to_stdout(project: Project) -> None:
    mixed(project)
    said = project.call("run", "--json")
    json.loads(said.out)
    assert "good" in said.err
    quiet = project.call("run", "--json", "--quiet")
    assert json.loads(quiet.out)["status"] == "failed"
    assert "▸" not in quiet.err
    plain = project.call("run")
    assert re.match(r"r-[0-9a-f-]+ failed · 1 of 3 done", plain.out)
    assert "next: " in plain.out
    assert plain.code == 1
    error = project.call("run", "--json", "no-such-plan.yaml")
    assert error.code == 2
    body = error.json["error"]
    assert {"code", "message", "hint"} <= set(body)
    assert "no-such-plan.yaml" in body["message"]
    assert "no-such-plan.yaml" in error.err


@pytest.mark.req("R38", "R56")
def test_the_preview_has_the_shape_of_the_contract(project: Project) -> None:
    project.plan(
        {
            "z": {"shell": project.sh("echo 1")},
            "y": {"shell": project.sh("echo 1")},
            "a": {"shell": project.sh("cat $HOLDFAST_INPUTS/*"), "needs": ["z", "y"]},
        }
    )
    before = project.call("plan", "--json", "--detailed-exitcode")
    assert before.code == 10
    data = before.json
    assert set(data) >= {"schema", "plan", "waves", "models", "steps", "totals", "changes"}
    assert data["schema"] == "holdfast.preview/1"
    is_head(data["plan"])
    assert data["waves"] == [["y", "z"], ["a"]]
    for step in data["steps"].values():
        told = {"decision", "reason", "cost_usd", "tokens", "duration_ms", "model", "tier"}
        assert set(step) == {*told, "recorded", "added_by"}
        assert step["decision"] in {"run", "reuse", "maybe", "wait"}
        is_reason(step["reason"])
        assert set(step["cost_usd"]) == {"p50", "p90", "basis", "price"}
        assert step["cost_usd"]["basis"] in {"history", "price", "none"}
        assert set(step["duration_ms"]) == {"p50", "p90"}
    changes = {"added", "removed", "contract_changed", "deps_changed", "output_modified"}
    assert set(data["changes"]) == changes
    assert {s["decision"] for s in data["steps"].values()} == {"run"}
    assert project.call("plan").code == 0, "without the flag there is nothing to signal"

    run = project.run()
    after = project.call("plan", "--json", "--detailed-exitcode")
    assert after.code == 0
    assert after.json["waves"] == data["waves"], "in another process, with another hash seed"
    assert {s["decision"] for s in after.json["steps"].values()} == {"reuse"}
    assert after.json["plan"]["ref"] == run.data["plan"]["ref"]
    forced = project.ok("plan", "--json", "--force-node", "z").json["steps"]
    assert {name: step["decision"] for name, step in forced.items()} == {
        "y": "reuse",
        "z": "run",
        "a": "maybe",
    }


@pytest.mark.req("R56")
def test_why_names_what_changed_with_its_content_and_the_root_cause(project: Project) -> None:
    def plan(word: str) -> None:
        project.plan(
            {
                "a": {"shell": "echo a", "prompt": word},
                "b": {"shell": "cat $HOLDFAST_INPUTS/a", "needs": ["a"]},
            }
        )

    plan("before")
    project.run()
    same = project.why("b")
    assert same["decision"] == "reuse"
    assert same["reason"]["code"] == "unchanged"
    plan("after")
    own = project.why("a")
    assert {"step", "decision", "reason", "changed", "unchanged", "root", "otherwise"} <= set(own)
    assert own["decision"] == "run"
    is_reason(own["reason"])
    assert own["reason"]["code"] == "prompt_changed"
    (change,) = own["changed"]
    assert (change["part"], change["before"], change["after"]) == ("prompt", "before", "after")
    assert "shell" in own["unchanged"]
    assert "prompt" not in own["unchanged"]
    assert own["otherwise"]

    below = project.why("b")
    assert below["reason"]["code"] == "upstream_changed"
    assert [link["step"] for link in below["root"]] == ["a", "b"]
    is_reason(below["root"][0]["reason"])
    assert "before" in project.ok("why", "a").out
    project.run()
    recorded = project.why("b", "--run", "@")
    assert recorded["reason"]["code"] == "upstream_changed"
    assert [link["step"] for link in recorded["root"]] == ["a", "b"]


def test_the_journal_is_one_event_a_line(project: Project) -> None:
    mixed(project)
    project.run()
    events = project.events()
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    stamp = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z\Z")
    assert all(stamp.match(event["ts"]) for event in events)
    kinds = [event["event"] for event in events]
    assert kinds[0] == "run_started"
    assert kinds[-1] == "run_rested"
    assert {"attempt_started", "attempt_accepted", "attempt_failed", "step_failed"} < set(kinds)
    assert {"steps_skipped"} < set(kinds)


def test_a_limit_ends_with_five_and_can_be_resumed(project: Project) -> None:
    steps = {name: {"shell": project.sh()} for name in "abc"}
    project.plan(steps, limits={"attempts": 2})
    stopped = project.run("-j", "1")
    assert (stopped.code, stopped.data["status"]) == (5, "limit")
    is_run(stopped.data)
    assert project.ran() == ["a", "b"]
    resumed = project.resume()
    assert (resumed.code, resumed.data["status"]) == (0, "completed")
    assert project.ran() == ["c"]


def test_status_shows_a_run_under_way(project: Project) -> None:
    project.plan({"a": {"shell": project.sh(project.gate("go"))}})
    engine = project.begun_by("run", step="a")
    now = project.status()
    is_run(now.data)
    assert now.data["status"] == "running"
    assert now.states == {"a": "running"}
    project.open("go")
    assert finish(engine).code == 0
    until(lambda: project.status().data["status"] == "completed")


def test_the_help_names_every_exit_code_and_command(project: Project) -> None:
    text = project.ok("--help").out
    for code in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 70, 130):
        assert re.search(rf"(^|\s){code} ", text), code
    for name in ("check", "plan", "run", "resume", "retry", "why", "status", "show", "amend"):
        assert re.search(rf"^  {name} ", text, re.MULTILINE)
