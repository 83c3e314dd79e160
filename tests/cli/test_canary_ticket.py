"""Planted secrets and a ticket: no object of git holds them, nor what is said and kept of the work."""

import subprocess

import pytest

from holdfast.testing.server import Asked, ModelServer, Say
from tests.cli.models import LOADED
from tests.cli.project import Project
from tests.cli.test_canaries import forms_of, planted, texts_of
from tests.cli.tickets import block, edit, finish, git, repository, ticket

TICKET = "---\nid: keys\nacceptance: [it is there]\n---\n# Note the key\n\nWrite down how one signs in.\n"


def objects(project: Project) -> bytes:
    """Every object of the repository as it is, wherever it lies."""
    found = b""
    for place in sorted({path.parent for path in project.folder.rglob("HEAD") if path.is_file()}):
        words = ["git", f"--git-dir={place}", "cat-file", "--batch-all-objects", "--batch"]
        done = subprocess.run(words, capture_output=True, check=False)
        found += done.stdout if done.returncode == 0 else b""
    return found


@pytest.mark.req("D39", "I13")
def test_no_planted_secret_is_in_an_object_of_git(project: Project) -> None:
    canaries = planted()
    key = canaries.values["FAKE_CREDS"]
    repository(project, {"notes.md": "begin\n", ".gitignore": ".env\n"})
    project.write(".env", canaries.values[".env"])
    with (project.root / ".git/config").open("a") as file:
        file.write(canaries.values[".git/config"])
    (project.home / ".netrc").write_text(canaries.values[".netrc"])

    def reply(asked: Asked) -> Say:
        """A provider that puts the key it was sent into all that a model can cause."""
        messages = asked.body["messages"]
        assert isinstance(messages, list)
        told = asked.headers["authorization"].removeprefix("Bearer ")
        turns = [
            ("run", {"command": "env; cat .env; git config --list; cat ~/.netrc"}),
            edit(block("notes.md", "begin\n", f"begin\nkey: {told}\n")),
            ("commit", {"message": f"Sign in with {told}", "nodes": ["n-1"]}),
            edit(block("notes.md", "begin\n", "begin\nnobody needs one\n")),
            finish(summary=f"one signs in with {told}", message=f"Say {told}"),
        ]
        number = sum(message["role"] == "assistant" for message in messages)
        return Say(tools=[turns[min(number, len(turns) - 1)]])

    with ModelServer(reply) as server:
        project.loaded = LOADED
        place = project.home / ".config" / "holdfast"
        place.mkdir(parents=True, exist_ok=True)
        (place / "config.toml").write_text(
            f'[providers.fake]\nkind = "openai"\nbase_url = "{server.url}"\napi_key_env = "FAKE_CREDS"\n'
            '[prices."fake:m"]\ninput = 1\noutput = 2\n'
        )
        words = [
            ticket(project, TICKET),
            "--model",
            "fake:m",
            "--yes",
            "--validate",
            "env; grep -q nobody notes.md",
        ]
        answer = project.call("work", *words, "--json", env={"FAKE_CREDS": key})
        assert len(server.requests) >= 4
    kept = objects(project)
    assert b"nobody needs one" in kept, (answer.code, answer.err)
    assert "holdfast/keys" in git(project, "branch", "--list", "--all"), answer.err
    contents = {"objects of git": kept, "answer": (answer.out + answer.err).encode()}
    planted_at = {project.root / ".env", project.root / ".git/config", project.home / ".netrc"}
    for path in project.folder.rglob("*"):
        if path.is_file() and path not in planted_at:
            contents[str(path)] = path.read_bytes()
    wrong = [
        f"{word} in {name}"
        for name, content in contents.items()
        for word in canaries.words
        for form in forms_of(word)
        if any(form in text for text in texts_of(content))
    ]
    assert wrong == [], sorted(set(wrong))
    assert b"[secret]" in kept, "the key was said, and struck out"
