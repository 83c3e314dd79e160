"""Every command has a screen that is compared whole, and the main ones one for a voice."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from holdfast.cli.main import COMMANDS
from tests.cli.project import Project
from tests.cli.screens import Screen

SHOTS = Path(__file__).parent / "__snapshots__"
ALL = ("plain", "80", "120", "a11y")
LINES = ("plain", "a11y")  # what names long paths, which nothing can cut
ELSEWHERE = {
    "attest": "a document for programs",
    "repair": "needs damage; test_verify",
    "bench": "takes minutes; test_bench_worker",
    "ci": "speaks to CI; its tests compare what it writes",
    "completion": "a script for a shell; test_shells",
    "demo": "what other commands say; test_demo",
    "doctor": "says what this machine has; test_doctor",
    "mcp": "speaks a protocol",
    "trace": "events with their times; tests/cli/test_contract",
    "schema": "a document for programs; test_schema",
    "ui": "a server; its screens are pages",
    "worker": "works until it is ended; test_workers",
}


def test_every_command_has_a_screen() -> None:
    firsts = [file.read_text(encoding="utf-8").partition("\n")[0] for file in SHOTS.rglob("*.txt")]
    shown = {found[1] for line in firsts if (found := re.match(r"\$ holdfast ([a-z]+)", line))}
    assert not set(COMMANDS) - shown - set(ELSEWHERE), "neither a screen nor a reason to have none"


def _told(project: Project) -> None:
    """Two steps that hand over what they found, and an approval that nobody gave."""
    found = {
        "attempted": "counted the kelp",
        "observed": [{"finding": "there are 12 plants", "confidence": 0.9}],
        "changed": [],
        "not_done": [],
        "highest_impact_uncertainty": "whether the tide matters",
        "next_agent_should_first": "look at low water",
    }
    project.write("found.json", json.dumps(found))
    project.plan(
        {
            "count": {"shell": "cp found.json $HOLDFAST_HANDOFF; echo 12", "inputs": "found.json"},
            "report": {"shell": "cat $HOLDFAST_INPUTS/count", "needs": ["count"]},
            "send": {"shell": "echo sent", "needs": ["report"], "approve": "on_change"},
        },
        description="How much kelp there is.",
    )
    project.call("run", "-q", "-j", "1")


def test_looking_into_a_run(project: Project, screen: Screen) -> None:
    _told(project)
    screen("plans", "list", name="plans-list", modes=ALL)
    screen("plans", "show", name="plans-show", modes=ALL)
    screen("cost", name="cost-nothing", modes=ALL)
    screen("ledger", name="ledger", modes=ALL)
    screen("ledger", "gaps", name="ledger-gaps", modes=ALL)
    screen("attach", name="attach-at-rest", modes=ALL)


def test_taking_back_and_bringing_elsewhere(project: Project, screen: Screen) -> None:
    _told(project)
    project.ok("approve", "send", "--yes", "--scope", "content")
    (given,) = project.ok("approvals", "--all", "--json").json["approvals"]
    screen("revoke", given["approval"], name="revoke", modes=ALL)
    project.call("resume")  # asks again
    project.ok("approve", "send", "--yes")
    project.ok("resume")
    screen("push", "other", "--dry-run", name="push-dry", modes=LINES)
    screen("push", "other", name="push", modes=("plain",))
    screen("pull", "other", name="pull", modes=LINES)
    screen("store", "status", name="store", modes=LINES)
    screen("auth", "list", name="auth-list", modes=ALL)


def test_hands_for_code(project: Project, screen: Screen) -> None:
    project.write("kelp.py", "def holdfast(rock):\n    return rock\n")
    project.write(
        "change.txt",
        "kelp.py\n<<<<<<< SEARCH\n    return rock\n=======\n    return [rock]\n>>>>>>> REPLACE\n",
    )
    screen("code", "search", "def", name="code-search", modes=ALL)
    screen("code", "symbols", "kelp.py", name="code-symbols", modes=ALL)
    screen("edit", "preview", "change.txt", name="edit-preview", modes=ALL)
    screen("edit", "apply", "change.txt", name="edit-apply", modes=ALL)
    screen("edit", "list", name="edit-list", modes=ALL)


def test_tickets(project: Project, screen: Screen) -> None:
    screen("tickets", "list", name="no-repository", modes=ALL)
    subprocess.run(["git", "init", "-q", "-b", "main", "."], cwd=project.root, check=True)
    screen("tickets", "list", name="no-tickets", modes=ALL)
    screen("work", "Count the kelp", name="work-by-nobody", modes=ALL)


@pytest.mark.req("R110")
def test_the_main_screens_for_a_voice(project: Project, screen: Screen) -> None:
    _told(project)
    for words in (
        ["status"],
        ["plan"],
        ["why", "report"],
        ["history"],
        ["approvals"],
        ["check"],
        ["graph"],
        ["diff", "@"],
        ["logs", "count"],
        ["explain", "never_ran"],
    ):
        screen(*words, name=f"voice-{words[0]}", modes=("a11y",))
    project.write("found.json", project.read("found.json").replace("12", "13"))
    screen("run", "--yes", name="voice-run", modes=("a11y",))
