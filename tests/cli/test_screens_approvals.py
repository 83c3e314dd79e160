"""The screens of what waits for people, and of what they decided."""

import os
from typing import Any

from tests.cli.project import Project
from tests.cli.screens import Screen

PLAN: dict[str, dict[str, Any]] = {
    "draft": {"shell": "cat words.txt > draft.md", "inputs": "words.txt", "produces": "draft.md"},
    "text": {
        "shell": "echo kelp > text.md",
        "produces": "text.md",
        "guards": ["human"],
        "needs": [
            {"step": "draft", "type": "sequence"}
        ],  # one after the other, so that screens agree
    },
    "note": {
        "uses": "human",
        "description": "Somebody reads the draft.",
        "prompt": "Is it fit to be seen?\nSay yes or no.",
        "needs": ["draft"],
    },
    "send": {
        "run": [
            "sh",
            "send.sh",
            "--to",
            "the harbour master",
            "\u202eevil",
            "--quietly",
            "--today",
        ],
        "description": "Sends it out.",
        "needs": [{"step": "draft", "type": "approval", "from": "lead"}],
        "effects": "external",
        "env": ["LANG"],
    },
    "after": {"shell": "true", "needs": ["send"]},
}


def lay(project: Project) -> None:
    project.plan(PLAN)
    project.write("words.txt", "tide\n")
    project.write("text.md", "rock\n")
    project.write("send.sh", "true\n")


def test_what_waits_is_shown(project: Project, screen: Screen) -> None:
    lay(project)
    screen("check")
    screen("plan")
    screen("run", "-j", "1", name="run")
    screen("approvals", modes=("plain",))  # it names the directory, however long that is
    narrow = {"COLUMNS": "60", "LINES": "24"}
    card = project.call("--output", "rich", "--color", "never", "approvals", env=narrow).out
    assert max(map(len, card.splitlines())) <= 60
    assert "--today" in card, "nothing of a command is left out"
    screen("approve", name="approve-which")
    screen("approve", "send", name="approve-nobody-there", modes=("plain",))
    screen("approve", "note", "--yes", name="approve-content")
    screen("why", "send", "--wait", name="why-wait")
    screen("why", "text")
    screen("graph", modes=("plain",))
    for word in ("mermaid", "dot"):
        screen("graph", "--format", word, name=f"graph-{word}", modes=("plain",))


def test_what_was_decided_is_shown(project: Project, screen: Screen) -> None:
    lay(project)
    project.run("-j", "1")
    os.unlink(project.root / "send.sh")
    screen("approve", "send", "--yes", "--because", "looked at it", name="approve")
    screen("reject", "text", "--because", "not this one", name="reject")
    screen("answer", "note", "words.txt", name="answer")
    screen("approvals", "--all", name="approvals-all")
    screen("resume", "-j", "1", name="resume")
