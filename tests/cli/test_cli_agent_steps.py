"""Steps of a plan that a coding agent of the command line does."""

import pytest

from tests.cli.coders import PROTOCOL, program
from tests.cli.project import Project
from tests.cli.tickets import git, repository

AGENT = (
    "import os, pathlib, sys\n"
    "prompt = pathlib.Path(sys.argv[1]).read_text()\n"
    "pathlib.Path('made.txt').write_text(prompt)\n"
    "print('I wrote made.txt')\n"
)


def step(**keys: object) -> dict[str, object]:
    return {
        "uses": "cli-agent",
        "run": ["python3", "agent.py", "{prompt_file}"],
        "prompt": "write it",
        "inputs": ["agent.py"],
        **keys,
    }


@pytest.mark.req("R184")
def test_what_an_agent_changed_in_its_worktree_comes_into_the_project(project: Project) -> None:
    project.plan(
        {
            "first": {"shell": "echo the tide is high"},
            "change": step(prompt="say: ${{ steps.first.output }}", effects="workspace"),
        }
    )
    repository(project, {"agent.py": AGENT, "old.txt": "old\n"})
    run = project.run()
    assert run.states == {"first": "done", "change": "done"}
    assert "say: the tide is high" in project.read("made.txt")
    assert git(project, "status", "--porcelain").split() == ["??", "made.txt"]
    assert "I wrote made.txt" in project.ok("logs", "change").out
    assert project.run().codes == {"first": "unchanged", "change": "unchanged"}


def test_the_artifact_is_what_it_produces_or_its_last_words(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.plan({"file": step(produces="made.txt"), "words": step()})
    assert project.run().states == {"file": "done", "words": "done"}
    assert "write it" in project.read("made.txt")
    assert project.shown("words").decode().strip() == "I wrote made.txt"


def test_an_agent_hears_what_guards_said(project: Project) -> None:
    body = AGENT + "print('high' if 'is low' in prompt else 'low')\n"
    project.write("agent.py", body)
    guard = "grep -q high $HOLDFAST_ARTIFACT || { echo the tide is low; exit 1; }"
    project.plan({"a": step(guards=[{"command": ["sh", "-c", guard]}])})
    assert project.run().states == {"a": "done"}
    assert project.shown("a").endswith(b"high")


@pytest.mark.req("R184")
def test_another_version_of_the_agent_is_another_result(project: Project) -> None:
    body = (
        "assert '--message-file' in sys.argv and '--no-auto-commits' in sys.argv\n"
        "print(pathlib.Path(sys.argv[sys.argv.index('--message-file') + 1]).read_text())\n"
        "print('Tokens: 1.2k sent, 30 received. Cost: $0.01 message, $0.01 session.')\n"
    )
    env = {"PATH": program(project, "aider", body, "0.1")}
    project.plan({"a": {"uses": "cli-agent", "run": "aider --model small", "prompt": "write it"}})
    first = project.run(env=env)
    assert first.states == {"a": "done"}
    assert "it says that it used 1200 tokens in, 30 out, $0.01" in project.ok("logs", "a").out
    assert project.run(env=env).field("attempts") == {"a": 0}
    program(project, "aider", body, "0.2")
    second = project.run(env=env)
    assert second.field("attempts") == {"a": 1}
    assert second.refs != first.refs


@pytest.mark.req("R184")
def test_a_plan_cannot_give_an_agent_a_key(project: Project) -> None:
    body = "print(os.environ.get('OPENAI_API_KEY', 'no key'), os.environ['OPENAI_BASE_URL'])\n"
    env = {
        "PATH": program(project, "aider", body),
        "OPENAI_API_KEY": "sk-abcdefgh",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    }
    plain = {"uses": "cli-agent", "run": "aider", "prompt": "write it"}
    project.plan({"a": plain, "b": {**plain, "secrets": ["OPENAI_API_KEY"]}})
    assert "--secret OPENAI_API_KEY" in project.refused(2, "run", env=env)
    project.plan({"a": plain})
    assert project.run(env=env).states == {"a": "done"}
    assert project.shown("a").decode() == "no key http://127.0.0.1:9/v1"


def test_an_agent_of_the_protocol_does_a_step(project: Project) -> None:
    body = (
        "top, prompt, number = begin()\n"
        "assert 'write it' in prompt\n"
        "refused = ask('fs/write_text_file', path=f'{top}/.vscode/tasks.json', content='x')\n"
        "ask('fs/write_text_file', path=f'{top}/made.txt', content=refused['message'])\n"
        "end(number)\n"
    )
    project.write("agent.py", f"import json, sys\n{PROTOCOL}\n{body}")
    project.plan({"a": step(run=["acp:python3", "agent.py"], produces="made.txt")})
    assert project.run().states == {"a": "done"}
    assert project.read("made.txt") == '".vscode/tasks.json" is protected: its part ".vscode"'


def test_an_agent_that_fails_tells_its_last_words_and_lacks_a_network(project: Project) -> None:
    project.write(
        "agent.py", "import sys\nprint('getaddrinfo ENOTFOUND api.example')\nsys.exit(2)\n"
    )
    project.plan({"a": step(retries=0)})
    run = project.run()
    assert run.states == {"a": "failed"}
    told = project.ok("logs", "a").out
    assert "ended with exit code 2" in told
    assert "the sandbox has no network; a person gives it one with --network" in told


BAD: dict[str, tuple[dict[str, object], str]] = {
    "no agent": ({"run": None}, "does not say which coding agent"),
    "no prompt": ({"prompt": None}, "has no 'prompt'"),
    "unknown": ({"run": "nobody"}, "nothing says how 'nobody' is told what to do"),
    "shell": ({"shell": "true", "run": None}, "cannot have 'shell'"),
    "model": ({"model": "small"}, "cannot have 'model'"),
    "shared": ({"workspace": "shared"}, "works in a copy of the project"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_step_that_no_agent_could_do_is_refused(project: Project, case: str) -> None:
    keys, words = BAD[case]
    project.write("agent.py", AGENT)
    given = {key: value for key, value in step(**keys).items() if value is not None}
    project.plan({"a": given})
    assert words in project.refused(2, "check")
