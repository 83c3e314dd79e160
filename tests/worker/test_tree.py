"""The task tree: what people wrote stays, what was delivered is computed."""

import pytest

from holdfast.errors import UsageError
from holdfast.worker.ticket import Ticket
from holdfast.worker.tree import Evidence, attribute, find, load_or_create, tell
from holdfast.worker.written import text_of

TICKET = Ticket("t-1", "The whole", acceptance=("compiles", "tests pass"))
OWN = """# ours
id: t-1
title: The whole
nodes:
  # the first part
  - id: n-1
    title: "first"   # quoted
    acceptance: [a, b]
    owner: Ann
    children:
      - id: n-2
        title: inner
        notes: |
          two
          lines
extra: {kept: yes}
"""


@pytest.mark.req("R131", "R132", "E19")
def test_a_new_tree_has_the_ticket_as_its_first_node() -> None:
    tree = load_or_create("", TICKET)
    attribute(tree, {})
    assert (tree["id"], tree["title"]) == ("t-1", "The whole")
    [node] = tree["nodes"]
    assert set(node) == {
        "id", "title", "deps", "status", "coverage_pct", "acceptance", "evidence", "notes", "children",
    }  # fmt: skip
    assert (node["status"], node["coverage_pct"], node["acceptance"]) == (
        "unchanged",
        0,
        ["compiles", "tests pass"],
    )
    again = load_or_create(text_of(tree), TICKET)
    assert again == tree, "a round trip, nested or not"


@pytest.mark.req("R131", "C29", "E19")
def test_what_people_wrote_stays_as_they_wrote_it() -> None:
    tree = load_or_create(OWN, TICKET)
    tell(
        tree,
        [{"id": "n-3", "title": "new", "parent": "n-2", "deps": ["n-1"], "notes": "by the agent"}],
    )
    attribute(tree, {"n-3": Evidence(["c1"], ["f.py"], finished=True)})
    text = text_of(tree)
    for kept in (
        "# ours",
        "# the first part",
        '"first"',
        "# quoted",
        "owner: Ann",
        "kept: yes",
        "two\n",
    ):
        assert kept in text
    again = load_or_create(text, TICKET)
    inner = find(again, "n-3")
    assert inner is not None
    assert (inner["status"], inner["coverage_pct"], inner["notes"]) == ("done", 100, "by the agent")
    assert find(again, "n-2")["status"] == "done", "all that is in it is"  # type: ignore[index] # it is there
    first = find(again, "n-1")
    assert first is not None
    assert (first["status"], first["coverage_pct"]) == ("done", 100)


@pytest.mark.req("R131", "C31")
def test_status_and_coverage_follow_from_commits_and_checks() -> None:
    tree = load_or_create(OWN, TICKET)
    tell(tree, [{"id": "solo", "title": "alone", "acceptance": ["x", "y", "z"]}, {"id": "bare"}])
    attribute(
        tree,
        {"solo": Evidence(["c1"], ["f"], met=["x", "nothing"]), "bare": Evidence(["c2"], ["g"])},
    )
    found = {name: find(tree, name) for name in ("solo", "bare", "n-1")}
    standing = {
        name: (node["status"], node["coverage_pct"]) for name, node in found.items() if node
    }
    assert standing == {"solo": ("partial", 33), "bare": ("partial", 50), "n-1": ("unchanged", 0)}
    attribute(tree, {"solo": Evidence(["c3"], ["f"], finished=True)})
    solo = find(tree, "solo")
    assert solo is not None
    assert solo["evidence"] == {"commits": ["c1", "c3"], "files": ["f"], "met": ["x", "nothing"]}
    assert (solo["status"], solo["coverage_pct"]) == ("done", 100)
    claimed = load_or_create("", TICKET)
    attribute(claimed, {"n-1": Evidence(finished=True)})
    assert claimed["nodes"][0]["status"] == "unchanged", "a claim without a commit is none"


@pytest.mark.req("R131")
def test_what_was_met_in_earlier_cycles_counts() -> None:
    tree = load_or_create("", TICKET)
    attribute(tree, {"n-1": Evidence(["c1"], ["f"], met=["compiles"])})
    tree = load_or_create(text_of(tree), TICKET)
    attribute(tree, {"n-1": Evidence(["c2"], ["f"])})
    assert (tree["nodes"][0]["status"], tree["nodes"][0]["coverage_pct"]) == ("partial", 50)
    attribute(tree, {"n-1": Evidence(["c3"], ["f"], met=["tests pass"])})
    assert tree["nodes"][0]["coverage_pct"] == 100


@pytest.mark.parametrize("text", ["[]", "nodes: 7", "a: [", "- x\n", "nodes: {a: b}"])
def test_what_is_no_tree_is_refused_and_not_written_over(text: str) -> None:
    with pytest.raises(UsageError, match="task_tree"):
        load_or_create(text, TICKET)
