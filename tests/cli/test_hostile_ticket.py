"""Signs of a ticket, of file names and of commit messages: no terminal obeys them, wherever they are told."""

import json

import pytest

from tests.cli.project import Project
from tests.cli.terminal import Terminal
from tests.cli.test_hostile import FORBIDDEN, SHOWN, TEXT
from tests.cli.tickets import block, edit, finish, repository, script, ticket

NAME = "no\u202etes\x1b]0;t\x07\x9b31m.txt"


def tame(text: str) -> None:
    """Nothing but what the command itself sends to a terminal: colours, and the cursor."""
    own = text.replace("\x1b[", "")
    found = sorted({hex(ord(letter)) for letter in own if letter in FORBIDDEN})
    assert found == [], found
    assert "\x1b[2J" not in text
    assert "52;c;" not in text or "\x1b]52" not in text


@pytest.mark.req("D36")
def test_a_ticket_full_of_signs_is_told_without_them(project: Project) -> None:
    repository(project, {NAME: "a\n", "notes.md": "a\n"})
    words = f"---\nid: sly\nacceptance: [{json.dumps(TEXT)}]\n---\n# {TEXT}\n\n{TEXT}\n"
    turns = [
        edit(block("notes.md", "a\n", "b\n")),
        ("run", {"command": 'for one in *.txt; do echo b > "$one"; done'}),
        ("commit", {"message": TEXT, "nodes": []}),
        finish(summary=TEXT, message=TEXT, reflections=[{"type": "decision", "message": TEXT}]),
    ]
    given = [ticket(project, words), "--unverified", "--script", script(project, turns)]
    terminal = Terminal(project, "work", *given, columns=200, rows=50)
    terminal.finish()
    said = terminal.bytes.decode()
    tame(said)
    assert terminal.process.wait() == 0, said
    seen = said
    for command in (["status"], ["trace"], ["show", "deliver-1"], ["logs", "cycle-1"]):
        shown = Terminal(project, *command, columns=120)
        shown.finish()
        tame(shown.bytes.decode())
        seen += shown.bytes.decode()
        if command[0] != "show":  # a pipe gets the bytes of a content
            piped = project.call(*command)
            tame(piped.out + piped.err)
    assert "\\u{1b}" in seen
    assert "\\u{202e}" in seen
    assert SHOWN[:20] in seen or "\\u{9b}" in seen
