"""Words of models, commands and strangers: shown whole, obeyed by no terminal."""

import json

from tests.cli.project import Project
from tests.cli.terminal import Terminal
from tests.model.test_text import HOSTILE

TEXT = " ".join(text for text, _ in HOSTILE.values() if "\udc9b" not in text)
SHOWN = " ".join(shown for text, shown in HOSTILE.values() if "\udc9b" not in text)
FORBIDDEN = "\x1b\x07\x9b\u202e\u200b\U000e0041"


def harmless(text: str) -> None:
    assert not set(text) & set(FORBIDDEN)
    assert "\r" not in text.replace("\r\n", "\n")


def test_logs_feedback_and_artifacts(project: Project) -> None:
    (project.root / "words.txt").write_text(TEXT)
    guard = {"command": ["sh", "-c", "cat words.txt; exit 1"], "name": "strict"}
    project.plan(
        {
            "a": {"shell": "cat words.txt; cat words.txt >&2"},
            "b": {"shell": "echo b", "guards": [guard], "inputs": ["words.txt"]},
        }
    )
    run = project.call("run")
    harmless(run.out + run.err)
    assert f"guard 'strict' rejected attempt 1: {SHOWN}" in run.err
    assert SHOWN in run.out
    logs = project.ok("logs", "a")
    harmless(logs.out)
    assert logs.out == SHOWN + "\n"
    assert project.shown("a").decode() == TEXT  # a pipe gets the bytes
    terminal = Terminal(project, "show", "a", columns=300)
    screen = terminal.finish()
    harmless(terminal.bytes.decode().replace("\r\n", "\n"))
    assert screen.text[0] == SHOWN
    status = project.ok("status")
    harmless(status.out)
    assert SHOWN in status.out
    project.write("mine.txt", "mine")
    project.ok("amend", "a", "mine.txt", "--because", TEXT)
    harmless(project.ok("why", "a").out)
    data = project.ok("logs", "a", "--json").json
    assert data["log"] == TEXT  # whole for programs; JSON escapes what it must


def test_names_of_files_and_the_text_of_plans(project: Project) -> None:
    name = "safe\x1b[2J\u202e\n✓ a: done.yaml"
    told = project.refused(2, "check", name)
    harmless(told)
    assert not any(line.startswith("✓") for line in told.splitlines())
    (project.root / "plan.yaml").write_text(
        f"name: demo\nsteps:\n  a: {{ {json.dumps(TEXT)}: 1 }}\n"
    )
    told = project.refused(2, "check")
    harmless(told)
    project.plan({"a": {"shell": "cat in/*", "inputs": ["in/*"]}})
    (project.root / "in").mkdir()
    (project.root / "in" / "x\x1b]0;t\x07\ny").write_text("1")
    project.run()
    (project.root / "in" / "x\x1b]0;t\x07\ny").write_text("2")
    said = project.call("run")
    harmless(said.out + said.err)
    assert r"an input changed: in/x\u{1b}]0;t\u{7}\u{a}y" in said.err
