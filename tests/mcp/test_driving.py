"""Agents drive runs from a preview to the end; people decide; nothing that is done is lost with a server."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp.types import ElicitRequestParams, ElicitResult

from holdfast.mcp.answer import MOST_TEXT
from tests.cli.project import COMMAND, DEADLINE, Project, until
from tests.mcp.bare import Bare, text
from tests.web.site import serve

TOOLS = [
    "plan_preview",
    "run_start",
    "run_status",
    "run_control",
    "step_read",
    "why",
    "diff",
    "ledger_query",
    "ledger_add",
    "approval_request_human",
]
ACTING = {"run_start", "run_control", "ledger_add", "approval_request_human"}


def _with_approval(project: Project) -> None:
    project.plan(
        {
            "make": {"shell": project.sh("echo made")},
            "publish": {
                "needs": ["make"],
                "shell": project.sh("echo out"),
                "effects": "external",
                "approve": "always",
            },
        }
    )


@pytest.mark.req("R173", "R183")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_drives_a_run_while_a_person_approves(
    project: Project, mode: str
) -> None:
    _with_approval(project)
    shown: list[str] = []

    async def look(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        del context
        shown.append(params.message)
        return ElicitResult(action="accept", content={"seen": True})

    async def drive() -> dict[str, Any]:
        words = [*COMMAND[1:], "mcp"]
        server = StdioServerParameters(
            command=COMMAND[0], args=words, env=project.environment(), cwd=project.root
        )
        async with Client(server, elicitation_callback=look, mode=mode) as client:

            async def call(tool: str, **arguments: Any) -> dict[str, Any]:
                result = await client.call_tool(tool, arguments)
                assert not result.is_error, result.content
                assert result.structured_content is not None
                return dict(result.structured_content)

            seen = await call("plan_preview")
            begun = await call("run_start", plan_hash=seen["plan_hash"], max_cost_usd=0)
            told: list[str | None] = []

            async def progress(progress: float, total: float | None, message: str | None) -> None:
                del progress, total
                told.append(message)

            await client.call_tool(
                "run_status", {"wait_s": 50, "run_id": begun["run_id"]}, progress_callback=progress
            )
            rests = await call("run_status", run_id=begun["run_id"])
            assert rests["status"] == "waiting"
            assert told
            approval = rests["waiting"][0]["approval"]
            asked = await call("approval_request_human", approval_id=approval)
            assert (asked["state"], asked["shown_to_person"]) == ("open", "accept")
            assert project.ok("approvals", "--json").json["approvals"][0]["state"] == "open"
            await asyncio.to_thread(project.ok, "approve", "publish", "--yes")
            await call("run_status", run_id=begun["run_id"], wait_s=50, since=rests["seq"])
            await call("run_control", run_id=begun["run_id"], action="resume")
            return await call("run_status", run_id=begun["run_id"], wait_s=50)

    ended = asyncio.run(drive())
    assert (ended["status"], ended["exit_code"]) == ("completed", 0)
    assert project.ran() == ["make", "publish"]
    assert "holdfast approve publish" in shown[0]
    assert "digest" in shown[0]


@pytest.mark.req("R173", "R183")
def test_a_client_of_another_make_drives_a_run_while_a_person_approves(
    project: Project, bare: Bare
) -> None:
    _with_approval(project)
    seen = bare.ok("plan_preview")
    assert [(one["step"], one["decision"]) for one in seen["steps"]] == [
        ("make", "run"),
        ("publish", "wait"),
    ]
    run = bare.ok("run_start", plan_hash=seen["plan_hash"], max_cost_usd=0)["run_id"]
    meta = {"progressToken": "p"}
    asked = {"name": "run_status", "arguments": {"run_id": run, "wait_s": 50}, "_meta": meta}
    rests = bare.request("tools/call", asked)["result"]["structuredContent"]
    assert rests["next"] == [
        {
            "tool": "approval_request_human",
            "arguments": {"approval_id": rests["waiting"][0]["approval"]},
        }
    ]
    card = bare.tool("approval_request_human", **rests["next"][0]["arguments"])
    assert "this client cannot show it: tell the person" in text(card)
    assert "holdfast approve publish" in card["structuredContent"]["commands"]
    waits = card["structuredContent"]["next"][0]
    assert waits["arguments"] == {"run_id": run, "wait_s": 50, "since": rests["seq"]}
    bare.send("tools/call", {"name": waits["tool"], "arguments": waits["arguments"]}, id="w")
    project.ok("approve", "publish", "--yes")
    answered = bare.read()
    assert answered["id"] == "w"
    assert answered["result"]["structuredContent"]["next"][0]["tool"] == "run_control"
    bare.ok("run_control", run_id=run, action="resume")
    assert bare.ok("run_status", run_id=run, wait_s=50)["status"] == "completed"
    made = bare.ok("step_read", ref="make", part="result")
    assert made["text"] == "made\n"
    assert all(one["method"] == "notifications/progress" for one in bare.told)


def test_an_approval_names_the_page_that_is_served_and_no_way_into_it(
    project: Project, bare: Bare
) -> None:
    _with_approval(project)
    project.call("run", "--yes")
    approval = project.ok("approvals", "--json").json["approvals"][0]["approval"]
    assert bare.ok("approval_request_human", approval_id=approval)["page"] is None
    page = serve(project)
    shown = bare.tool("approval_request_human", approval_id=approval)
    assert shown["structuredContent"]["page"] == f"{page.base}/approvals"
    assert f"{page.base}/approvals ('holdfast ui' lets a browser in)" in text(shown)
    key = json.loads((project.store / "ui.json").read_text())["key"]
    assert key not in json.dumps(shown)
    assert "code=" not in json.dumps(shown)
    page.process.kill()  # its file stays
    page.process.wait()
    assert bare.ok("approval_request_human", approval_id=approval)["page"] is None


@pytest.mark.req("R183")
def test_a_run_goes_on_when_its_server_is_killed(project: Project) -> None:
    project.plan({"slow": {"shell": project.sh(project.gate("go"))}})
    with Bare(project) as first:
        first.shake_hands()
        digest = first.ok("plan_preview")["plan_hash"]
        start = {"plan_hash": digest, "max_cost_usd": 0, "key": "once"}
        begun = first.ok("run_start", **start)
        project.watch(begun["pid"])
        until(lambda: project.begun() == ["slow"], "the step begins")
        os.killpg(first.process.pid, signal.SIGKILL)  # with all that it did not set free
        first.process.wait()
    with Bare(project) as second:
        second.shake_hands()
        assert second.ok("run_start", **start) == begun, "said again, it is the same run"
        project.open("go")
        ended = second.ok("run_status", run_id=begun["run_id"], wait_s=50)
        over = second.ok("run_start", **start)
    assert ended["status"] == "completed"
    assert (over["run_id"], over["pid"]) == (begun["run_id"], None)
    assert project.ran() == ["slow"]


@pytest.mark.req("R183")
def test_a_stale_preview_starts_nothing_and_says_what_changed(project: Project, bare: Bare) -> None:
    project.plan({"a": {"shell": "echo 1"}})
    digest = bare.ok("plan_preview")["plan_hash"]
    project.plan({"a": {"shell": "echo 1"}, "b": {"shell": "echo 2"}})
    error = bare.refused("run_start", plan_hash=digest, max_cost_usd=1)
    assert (error["code"], error["exit_code"]) == ("stale", 6)
    assert "'b' is new" in error["message"]
    assert not project.store.exists()


@pytest.mark.req("R183")
def test_a_server_that_only_looks_has_no_tool_that_acts(project: Project) -> None:
    project.plan({"a": {"shell": "echo 1"}})
    with Bare(project, "--read-only") as client:
        client.shake_hands()
        tools = client.request("tools/list")["result"]["tools"]
        assert [one["name"] for one in tools] == [name for name in TOOLS if name not in ACTING]
        seen = client.ok("plan_preview")
        assert {one["tool"] for one in seen["next"]}.isdisjoint(ACTING)
        start = {"name": "run_start", "arguments": {"plan_hash": seen["plan_hash"]}}
        assert client.request("tools/call", start)["error"]["code"] == -32602
    assert not project.store.exists()


@pytest.mark.req("R183")
def test_tools_are_told_in_order_with_what_they_do(bare: Bare) -> None:
    tools = bare.request("tools/list")["result"]["tools"]
    assert [one["name"] for one in tools] == TOOLS
    hints = {one["name"]: one["annotations"]["readOnlyHint"] for one in tools}
    assert {name for name, reads in hints.items() if not reads} == ACTING
    assert not any(one["inputSchema"]["additionalProperties"] for one in tools)
    assert not any("approve" in one["name"] or "reject" in one["name"] for one in tools)


@pytest.mark.req("R173")
def test_a_plan_that_an_agent_sends_runs_only_after_a_person_approved_it(
    project: Project, bare: Bare
) -> None:
    project.plan({"own": {"shell": "echo own"}})
    sent = json.dumps({"name": "sent", "steps": {"theirs": {"shell": project.sh()}}})
    seen = bare.ok("plan_preview", plan=sent)
    assert seen["foreign"]
    assert not project.store.exists()
    start = {"plan_hash": seen["plan_hash"], "max_cost_usd": 0}
    error = bare.refused("run_start", **start)
    assert "nobody approved its plan" in error["message"]
    assert project.ran() == []
    file, digest = next((project.store / "received").iterdir()), seen["plan"]["digest"][:12]
    assert f"--trust {digest}" in error["hint"]
    relative = str(file.relative_to(project.root))
    assert "nobody approved" in project.refused(2, "run", relative)
    project.ok("run", relative, "--trust", digest)
    assert project.ran() == ["theirs"]
    again = bare.ok("plan_preview", plan=sent)
    begun = bare.ok("run_start", plan_hash=again["plan_hash"], max_cost_usd=0)
    ended = bare.ok("run_status", run_id=begun["run_id"], wait_s=50)
    assert (ended["status"], ended["plan"]["line"]) == ("completed", "sent")


def test_a_run_is_paused_resumed_and_a_failed_step_tried_again(
    project: Project, bare: Bare
) -> None:
    project.plan(
        {
            "slow": {"shell": project.sh(project.gate("go"))},
            "after": {
                "needs": ["slow"],
                "shell": project.sh("test -e ok || { echo why; exit 3; }"),
            },
        }
    )
    digest = bare.ok("plan_preview")["plan_hash"]
    begun = bare.ok("run_start", plan_hash=digest, max_cost_usd=0)
    run, log = begun["run_id"], Path(begun["log"])
    until(lambda: project.begun() == ["slow"], "the step begins")
    bare.ok("run_control", run_id=run, action="pause")
    until(lambda: "asked to stop" in log.read_text(), "the engine heard it")
    project.open("go")
    assert bare.ok("run_status", run_id=run, wait_s=50)["status"] == "paused"
    bare.ok("run_control", run_id=run, action="resume")
    failed = bare.ok("run_status", run_id=run, wait_s=50)
    assert failed["status"] == "failed"
    assert [one["tool"] for one in failed["next"]] == ["step_read", "run_control"]
    told = bare.ok(failed["next"][0]["tool"], **failed["next"][0]["arguments"])
    assert told["attempts"][0]["ended"] == "command_failed"
    project.write("ok", "")
    bare.ok(failed["next"][1]["tool"], **failed["next"][1]["arguments"])
    assert bare.ok("run_status", run_id=run, wait_s=50)["status"] == "completed"
    assert project.begun() == ["slow", "after", "after"]


def test_no_argument_is_taken_for_an_option(project: Project, bare: Bare) -> None:
    _with_approval(project)
    assert project.run().data["status"] == "waiting"
    assert "no digest" in bare.refused("run_start", plan_hash="--yes", max_cost_usd=0)["message"]
    error = bare.refused("run_control", run_id="--yes", action="resume")
    assert error["message"] == "there is no run '--yes'"
    bare.ok("ledger_add", kind="gap", text="--take-back")
    assert bare.ok("ledger_query", kind="gaps")["entries"][0]["item"] == "--take-back"


def test_an_agent_adds_evidence_and_gaps_once_and_settles_nothing(
    project: Project, bare: Bare
) -> None:
    project.plan({"a": {"shell": "echo 1"}})
    project.run()
    word = {"kind": "evidence", "text": "the river is high", "refs": ["a"]}
    bare.ok("ledger_add", **word)
    before = len(project.ok("ledger", "--json").json["said"])
    assert "entry" in bare.ok("ledger_add", **word)
    assert len(project.ok("ledger", "--json").json["said"]) == before
    assert bare.ok("ledger_query", kind="evidence", text="RIVER")["count"] == 1
    settle = {"name": "ledger_add", "arguments": {**word, "kind": "resolve"}}
    assert bare.request("tools/call", settle)["error"]["code"] == -32602


def test_answers_about_many_steps_are_bounded_and_come_in_pages(
    project: Project, bare: Bare
) -> None:
    names = [f"step-{number:04}" for number in range(300)]
    project.plan({name: {"shell": "true"} for name in names})
    result = bare.tool("plan_preview")
    found: list[str] = []
    while True:
        data = result["structuredContent"]
        assert len(text(result)) <= MOST_TEXT + 500
        assert len(json.dumps(data)) < 40_000
        found += [one["step"] for one in data["steps"]]
        if data["cursor"] is None:
            break
        result = bare.tool("plan_preview", cursor=data["cursor"])
    assert found == names


def test_a_long_result_comes_in_slices_that_add_up(project: Project, bare: Bare) -> None:
    content = "".join(f"{number} ä→😀\n" for number in range(1500))
    project.write("long.txt", content)
    project.plan({"a": {"shell": "cat long.txt", "inputs": "long.txt"}})
    project.run()
    pieces, asked = [], {"ref": "a", "part": "result"}
    while True:
        data = bare.ok("step_read", **asked)
        pieces.append(data["text"])
        if data["cursor"] is None:
            break
        asked["cursor"] = data["cursor"]
    assert "".join(pieces) == content


def test_an_empty_log_leads_to_the_artifact_that_was_printed(project: Project, bare: Bare) -> None:
    project.plan({"a": {"shell": "echo 1"}})
    project.run()
    result = bare.tool("step_read", ref="a", part="logs")
    assert text(result).startswith("what attempt 1 of 'a' printed is its artifact")
    assert result["structuredContent"]["next"][0]["arguments"] == {"ref": "a", "part": "result"}


def test_resources_and_prompts_are_found_by_their_names(project: Project, bare: Bare) -> None:
    project.plan({"a": {"shell": "echo 1"}})
    run = project.run().id
    listed = bare.request("resources/list")["result"]["resources"]
    assert [one["uri"] for one in listed] == ["plan://current", "ledger://gaps", f"run://{run}"]

    def read(uri: str) -> Any:
        return bare.request("resources/read", {"uri": uri})

    assert "name: demo" in read("plan://current")["result"]["contents"][0]["text"]
    assert json.loads(read("run://@")["result"]["contents"][0]["text"])["status"] == "completed"
    assert read(f"step://{run}/a")["result"]["contents"][0]["text"] == "1\n"
    assert json.loads(read("ledger://gaps")["result"]["contents"][0]["text"])["entries"] == []
    assert read("file:///etc/passwd")["error"]["code"] == -32602
    prompts = bare.request("prompts/list")["result"]["prompts"]
    assert [one["name"] for one in prompts] == ["author_plan", "review_run", "close_gaps"]
    asked = {"name": "author_plan", "arguments": {"goal": "a {map}"}}
    written = bare.request("prompts/get", asked)["result"]["messages"][0]["content"]["text"]
    assert "a {map}" in written
    assert bare.request("prompts/get", {"name": "author_plan"})["error"]["code"] == -32602


def test_what_is_wrong_is_said_as_the_command_says_it(project: Project, bare: Bare) -> None:
    project.write("plan.yaml", "name: demo\nsteps:\n  a: {shel: echo}\n")
    error = bare.refused("plan_preview")
    said = project.call("plan", "--json").json["error"]
    assert {**said, "exit_code": 2} == error
    project.plan({"a": {"shell": "echo 1"}})
    assert "'why'" in bare.refused("why", step="why")["message"]
    assert bare.refused("run_status")["message"]


def test_a_server_ends_when_its_client_does(project: Project, bare: Bare) -> None:
    project.plan({"a": {"shell": "echo 1"}})
    bare.ok("plan_preview")
    assert bare.process.stdin is not None
    bare.process.stdin.close()
    assert bare.process.wait(DEADLINE) == 0


def test_a_server_says_at_once_what_is_wrong_with_its_place(project: Project) -> None:
    assert "there is no plan file 'no.yaml'" in project.refused(2, "mcp", "-f", "no.yaml")
    assert "--http" in project.refused(2, "mcp", "--port", "80")


def test_a_run_spends_nothing_that_was_not_agreed_to(project: Project) -> None:
    place = project.home / ".config" / "holdfast"
    place.mkdir(parents=True)
    (place / "config.toml").write_text('[prices."openai:m"]\ninput = 1.0\noutput = 10.0\n')
    model = {"id": "openai:m", "max_tokens": 400}
    project.plan({"ask": {"prompt": "Say something.", "model": model}})
    nobody = {"OPENAI_API_KEY": "sk-nobody", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    with Bare(project, env=nobody) as client:
        client.shake_hands()
        seen = client.ok("plan_preview")
        begun = client.ok("run_start", plan_hash=seen["plan_hash"], max_cost_usd=0)
        rests = client.ok("run_status", run_id=begun["run_id"], wait_s=50)
        assert (rests["status"], rests["exit_code"]) == ("limit", 5)
        assert rests["totals"]["calls"] == 0
        assert any("--max-cost" in command for command in rests["commands"])
        client.ok("run_control", run_id=begun["run_id"], action="resume")
        rests = client.ok("run_status", run_id=begun["run_id"], wait_s=50)
        assert (rests["status"], rests["totals"]["calls"]) == ("limit", 0)
    assert "call_started" not in {event["event"] for event in project.events()}


def test_a_run_that_waits_is_replaced_only_if_that_is_said(project: Project, bare: Bare) -> None:
    _with_approval(project)
    first = project.run()
    assert first.data["status"] == "waiting"
    start = {"plan_hash": bare.ok("plan_preview")["plan_hash"], "max_cost_usd": 0}
    assert "waits for a person" in bare.refused("run_start", **start)["message"]
    begun = bare.ok("run_start", **start, replace_waiting=True)
    rests = bare.ok("run_status", run_id=begun["run_id"], wait_s=50)
    assert (rests["status"], rests["run"] != first.id) == ("waiting", True)
    assert project.begun() == ["make"]
