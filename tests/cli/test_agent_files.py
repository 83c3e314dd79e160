"""init --agents: coding agents find Holdfast, and nothing that was there is lost."""

import json
import tomllib
from pathlib import Path

import pytest

from tests.cli.project import Project

AGENTS = ("init", "--agents", "claude,cursor,codex")
SERVER = {"command": "holdfast", "args": ["mcp"]}


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.mark.req("R183")
def test_agents_are_told_how_to_start_the_server_and_how_to_work_with_it(project: Project) -> None:
    said = project.ok(*AGENTS, "--json").json
    assert {".mcp.json", ".cursor/mcp.json", ".codex/config.toml", "AGENTS.md"} <= {*said["files"]}
    for path in (".mcp.json", ".cursor/mcp.json"):
        assert json.loads(project.read(path)) == {"mcpServers": {"holdfast": SERVER}}
    assert tomllib.loads(project.read(".codex/config.toml"))["mcp_servers"]["holdfast"] == SERVER
    for folder in (".claude", ".cursor", ".agents"):
        head = project.read(f"{folder}/skills/holdfast/SKILL.md").split("---")[1]
        assert "name: holdfast" in head
    assert "holdfast why" in project.read("AGENTS.md")
    assert "nothing wrong" in project.ok("check").out


@pytest.mark.req("R183")
def test_what_was_there_stays_and_a_second_time_changes_nothing(project: Project) -> None:
    project.plan({"a": {"shell": "true"}})
    old = {"mcpServers": {"other": {"command": "x", "env": {"K": "ä"}}}, "more": [1, None]}
    project.write(".mcp.json", json.dumps(old, indent=4))
    project.write(".codex/config.toml", '# mine\nmodel = "m"\n\n[mcp_servers.other]\ncommand = "x"')
    project.write("AGENTS.md", "# Ours\n\nDo not shout.")
    plan = project.read("plan.yaml")
    out = project.ok(*AGENTS).out
    assert "merged  .mcp.json" in out
    assert "claude mcp add holdfast -- holdfast mcp" in out
    merged = json.loads(project.read(".mcp.json"))
    assert merged["mcpServers"].pop("holdfast") == SERVER
    assert merged == old
    assert '    "mcpServers"' in project.read(".mcp.json")
    assert project.read(".codex/config.toml").startswith('# mine\nmodel = "m"\n')
    assert {*tomllib.loads(project.read(".codex/config.toml"))["mcp_servers"]} == {
        "other",
        "holdfast",
    }
    assert project.read("AGENTS.md").startswith("# Ours\n\nDo not shout.\n")
    assert project.read("plan.yaml") == plan
    once = tree(project.root)
    assert "kept    AGENTS.md" in project.ok(*AGENTS).out
    assert tree(project.root) == once


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (".mcp.json", "// a comment\n{}"),
        (".mcp.json", '{"mcpServers": [], "a": 1}'),
        (".cursor/mcp.json", '{"a": 1, "a": 2}'),
        (".codex/config.toml", "mcp_servers = {other = {}}\n"),
        (".codex/config.toml", "not toml"),
    ],
)
def test_a_file_that_cannot_be_added_to_stops_everything(
    project: Project, path: str, content: str
) -> None:
    project.write(path, content)
    before = tree(project.root)
    err = project.refused(2, *AGENTS)
    assert f"nothing was written, because '{path}' cannot be added to" in err
    assert "add this by hand" in err
    assert tree(project.root) == before


def test_an_agent_that_nobody_knows_is_named(project: Project) -> None:
    assert "'emacs'" in project.refused(2, "init", "--agents", "claude,emacs")
    assert not project.has("plan.yaml")


def test_what_a_person_changed_in_our_files_is_theirs(project: Project) -> None:
    project.ok(*AGENTS)
    project.write(".claude/skills/holdfast/SKILL.md", "mine")
    project.write("AGENTS.md", project.read("AGENTS.md").replace("Never approve", "NEVER approve"))
    project.ok(*AGENTS)
    assert project.read(".claude/skills/holdfast/SKILL.md") == "mine"
    assert "NEVER approve" in project.read("AGENTS.md")
