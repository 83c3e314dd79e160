"""What was learned, paid, planned and taken back, on screen."""

import json

from holdfast.testing.server import Say
from tests.cli.market import asking, market
from tests.cli.project import Project
from tests.cli.screens import Screen

TOLD = {
    "attempted": "count the stations",
    "observed": [{"finding": "12 stations", "source": "stations.csv", "confidence": 0.9}],
    "changed": [{"artifact": "map", "ref": "map.svg"}],
    "not_done": [{"item": "the north", "reason": "no data"}],
    "highest_impact_uncertainty": "Are all of them online?",
    "next_agent_should_first": "ping them",
}


def test_what_a_run_learned(project: Project, screen: Screen) -> None:
    project.write("told.json", json.dumps(TOLD))
    project.plan({"look": {"inputs": "told.json", "shell": "cp told.json $HOLDFAST_HANDOFF; echo"}})
    screen("ledger", name="ledger-no-run")
    project.run()
    screen("ledger")
    screen("ledger", "gaps", "--open", name="ledger-gaps")
    screen("ledger", "add", "gap", "the south too", "--because", "asked", name="ledger-add")


def test_what_was_paid(project: Project, screen: Screen) -> None:
    project.plan({"one": asking("say one"), "two": asking("say two")})
    screen("cost", name="cost-nothing")
    with market(project, lambda _: Say("good", input=1000, output=500)):
        project.run("--yes")
        screen("cost")
        screen("cost", "--by", "model", name="cost-by-model")


def test_which_plans_there_were_and_a_yes_that_is_taken_back(
    project: Project, screen: Screen
) -> None:
    project.plan({"a": {"shell": "echo 1", "approve": "always"}})
    project.run()
    project.ok("approve", "a", "--yes")
    screen("revoke", "a", "--because", "too early", name="revoke")
    project.plan({"a": {"shell": "echo 2"}, "b": {"shell": "echo 3"}})
    project.run("--yes")
    screen(
        "plans", "list", name="plans-list", modes=("plain", "120")
    )  # how old is in its last words
    screen("plans", "show", name="plans-show")
    screen("plans", "diff", name="plans-diff")
