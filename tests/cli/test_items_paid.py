"""Items that cost money: nobody pays for more of them than somebody agreed to."""

import json
from typing import Any

import pytest

from holdfast.testing.server import Asked, Reply, Say
from tests.cli.market import asking, market
from tests.cli.project import Project, until
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.req("R165", "R182")


def answer(_: Asked) -> Reply:
    return Say("good", input=10, output=5)  # $0.0005


def plan(project: Project, *items: str, **more: Any) -> None:
    project.write("hits.json", json.dumps(items))
    project.plan(
        {
            "search": {"shell": project.sh("cat hits.json"), "inputs": ["hits.json"]},
            "each": asking(
                "say ${{ item }}", for_each="${{ steps.search.output }}", key="${{ item }}", **more
            ),
            "last": {"needs": ["each"], "shell": project.sh("ls $HOLDFAST_INPUTS/each")},
        }
    )


def agreed(project: Project) -> list[bool]:
    return [one.get("agreed", False) for one in project.events() if one["event"] == "plan_extended"]


def test_the_preview_says_that_the_number_is_open_and_what_one_costs(project: Project) -> None:
    with market(project, answer):
        plan(project, "a", "b")
        told = project.ok("plan").out
        assert "+ each[…]  as many as search finds  no history: ≤ $0.0005 each" in told
        assert "Runs 3 of 3 · no history: ≤ $0.0005 for each item of each" in told
        assert "! how many items each has, search finds out: you are asked again" in told
        assert "$0 typical" not in told
        assert project.ok("plan", "--json").json["totals"]["cost_usd"]["unknown"] == 1
        refused = project.refused(2, "run")
        assert "these steps cost money: each (no history: ≤ $0.0005 for each item" in refused
        assert project.run("--yes").code == 0
        plan(project, "a", "b", "c")
        assert "$0.0005 each" in project.ok("plan").out
        project.ok("run", "--yes")
        plan(project, "a", "b", "c", "d")
        project.ok("run", "--yes", "-s", "search")
        told = project.ok("plan").out
        assert "+ each[d]" in told
        assert "$0.0005 typical" in told, "what the others took is what it will take"


def test_a_yes_to_an_open_number_is_asked_again_when_it_is_known(project: Project) -> None:
    with market(project, answer) as shop:
        plan(project, "a", "b")
        project.ok("plan", "-o", "review.json")
        assert project.call("run", "review.json").code == 3
        assert shop.asked == []
        assert project.status().states == {"search": "done", "each": "waiting", "last": "pending"}
        assert (
            "its items cost money, and nobody knew how many there are" in project.ok("status").out
        )
        card = project.ok("approvals").out
        assert "items     2 that are new or changed" in card
        assert "asks fake:m for each, which costs money" in card
        assert project.resume().code == 3
        assert shop.asked == []
        project.ok("approve", "each", "--yes")
        told = project.ok("status").out
        assert "approved: it goes on with holdfast resume" in told
        assert "next: holdfast resume" in told
        assert set(project.resume().states.values()) == {"done"}
        assert len(shop.asked) == 2
        assert agreed(project) == [True]
        assert project.ok("verify").code == 0


def test_a_no_fails_the_step_and_nothing_is_paid(project: Project) -> None:
    with market(project, answer) as shop:
        plan(project, "a", "b")
        project.ok("plan", "-o", "review.json")
        assert project.call("run", "review.json").code == 3
        project.ok("reject", "each", "--because", "too many")
        found = project.resume()
        assert found.states == {"search": "done", "each": "failed", "last": "skipped"}
        assert found.codes["each"] == "rejected_by_person"
        assert shop.asked == []
        assert project.ok("verify").code == 0


def test_only_items_that_would_be_paid_for_are_asked_about(project: Project) -> None:
    with market(project, answer) as shop:
        plan(project, "a", "b")
        assert project.run("--yes").code == 0
        plan(project, "b", "a")  # the list is made again, and no item is new
        project.ok("plan", "-o", "review.json")
        assert project.call("run", "review.json").code == 0
        assert len(shop.asked) == 2
        assert agreed(project) == [False]
        plan(project, "b", "a", "c")
        project.ok("plan", "-o", "review.json")
        assert project.call("run", "review.json").code == 3
        assert "items     1 that are new or changed" in project.ok("approvals").out
        project.ok("approve", "each", "--yes")
        assert project.resume().states["each[c]"] == "done"
        assert shop.asked[2:] == ["say c"] or len(shop.asked) == 3


def test_items_of_a_list_that_stands_were_seen_and_are_not_asked_about_again(
    project: Project,
) -> None:
    with market(project, answer) as shop:
        plan(project, "a", "b")
        assert project.run("-s", "search").states["search"] == "done"
        assert "+ each[a]" in project.ok("plan").out
        project.ok("plan", "-o", "review.json")
        assert project.call("run", "review.json").code == 0
        assert len(shop.asked) == 2


@pytest.mark.parametrize("said", [["--yes"], ["--max-cost", "1"], ["--yes", "--max-cost", "1"]])
def test_who_says_how_much_or_that_nobody_is_asked_is_not_asked(
    project: Project, said: list[str]
) -> None:
    with market(project, answer) as shop:
        plan(project, "a", "b", "c")
        assert project.run(*said).code == 0
        assert len(shop.asked) == 3


def test_a_bound_stops_before_it_is_passed_and_more_goes_on(project: Project) -> None:
    with market(project, answer) as shop:
        plan(project, *"abcdef")
        found = project.run("--max-cost", "0.0012", "-j", "1")
        assert found.code == 5
        assert len(shop.asked) == 2
        assert project.resume("--max-cost", "1").code == 0
        assert len(shop.asked) == 6, "nothing is paid for twice"
        assert project.ok("verify").code == 0


def test_a_person_at_a_terminal_is_asked_twice(project: Project) -> None:
    with market(project, answer) as shop:
        plan(project, "a", "b")
        terminal = Terminal(project, "run")
        terminal.read(until=lambda text: "Proceed?" in text)
        terminal.press(b"y\n")
        terminal.read(until=lambda text: "each waits for an approval" in text)
        assert shop.asked == []
        terminal.press(b"y\n")
        terminal.finish()
        until(lambda: "completed" in project.ok("status").out, "the items are made")
        assert len(shop.asked) == 2


def unsure(project: Project) -> None:
    """A list of four that only might be made anew: what it needs is made again."""
    listing = project.sh("""echo '["l1","l2","l3","l4"]'""")
    project.plan(
        {
            "u": {"shell": project.sh("cat word.txt"), "inputs": ["word.txt"]},
            "search": {"needs": ["u"], "shell": listing},
            "each": asking("say ${{ item }}", for_each="${{ steps.search.output }}"),
        }
    )


def test_a_list_that_only_might_be_reused_was_not_seen_and_its_items_are_asked_about(
    project: Project,
) -> None:
    with market(project, answer) as shop:
        project.write("word.txt", "same\n")
        unsure(project)
        project.ok("run", "-s", "u", "-s", "search")
        project.ok("plan", "--force-node", "u", "-o", "review.json")
        assert "as many as search finds" in project.ok("plan", "--force-node", "u").out
        assert project.call("run", "review.json").code == 3
        assert project.status().states == {"u": "done", "search": "reused", "each": "waiting"}
        assert shop.asked == []
        project.ok("approve", "each", "--yes")
        assert project.resume().code == 0
        assert len(shop.asked) == 4
        assert project.ok("verify").code == 0


def test_who_saw_the_items_is_not_asked_again_in_the_background(project: Project) -> None:
    with market(project, answer) as shop:
        plan(project, "a", "b")
        project.ok("run", "-s", "search")
        project.ok("plan", "-o", "review.json")
        project.ok("run", "review.json", "--detach")
        until(lambda: "completed" in project.ok("status").out, "the items are made")
        assert len(shop.asked) == 2


def test_an_item_that_the_list_has_no_more_is_not_asked_for_again(project: Project) -> None:
    def script(asked: Asked) -> Reply:
        return Say("bad" if "FAILME" in asked.last else "good", input=10, output=5)

    lists = """[ -e again ] && echo '["x1","x3"]' || echo '["x1","FAILME"]'; touch again"""
    with market(project, script) as shop:
        project.plan(
            {
                "search": {"shell": lists, "workspace": "shared"},
                "each": {
                    **asking("say ${{ item }}", for_each="${{ steps.search.output }}"),
                    "guards": [{"regex": {"pattern": "good"}}],
                    "escalate": ["search"],
                    "retries": 1,
                },
            }
        )
        found = project.run("--yes")
        assert found.states == {
            "search": "done",
            "each[x1]": "reused",
            "each[FAILME]": "failed",
            "each": "skipped",
        }
        assert found.code == 1
        assert (
            "its items were made from another list than search has now" in project.ok("status").out
        )
        assert len(shop.asked) == 3, "one for x1 and two for what failed"
        found = project.run("--yes")
        assert found.states == dict.fromkeys(["search", "each[x1]", "each[x3]", "each"], "done") | {
            "search": "reused",
            "each[x1]": "reused",
        }
