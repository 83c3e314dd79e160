"""The screens of agents, graphs, checkpoints and disagreement."""

import json
from pathlib import Path

from tests.cli.project import Project
from tests.cli.screens import Screen

GRAPHS = Path(__file__).parents[1] / "formats" / "graphs"


def test_what_a_graph_shows(project: Project, screen: Screen) -> None:
    project.write("graph.json", (GRAPHS / "enrich.json").read_text())
    screen("agents", modes=("80",))
    screen("agents", "security-analyst", name="agent", modes=("80",))
    screen("import", "graph.json", "-o", "plan.yaml", name="import-graph")
    screen("check", "graph.json", name="check-graph", modes=("80",))
    screen("run", "graph.json", name="run-idle", modes=("80",))
    graph = json.loads((GRAPHS / "enrich.json").read_text())
    graph["nodes"][1]["dependencies"] = []
    project.write("graph.json", json.dumps(graph, indent=1))
    screen("check", "graph.json", name="check-disagrees")


def test_what_checkpoints_and_conflicts_show(project: Project, screen: Screen) -> None:
    said = {"scope": "tokens", "confidence": 95}
    project.plan(
        {
            name: {
                "agent": agent,
                "shell": f"echo '{json.dumps({'recommendations': [{**said, 'action': action}]})}'",
            }
            for name, agent, action in (
                ("audit", "security-analyst", "use cookies"),
                ("page", "techwriter", "use localStorage"),
            )
        }
    )
    project.run("--checkpoints", "cps")
    screen("conflicts")
    screen("checkpoint", "--checkpoints", "cps", modes=("80",))
    screen("checkpoint", "--list", "--checkpoints", "cps", name="checkpoint-list", modes=("80",))
