"""What a step told earlier and tells no more stays to be read, and says that it counts no more."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.project import Project
from tests.cli.test_ledger_words import handoff

OLD = handoff(
    {"finding": "old", "source": "s", "confidence": 0.4},
    {"finding": "both say it", "source": "s"},
    attempted="look once",
    changed=[{"artifact": "notes", "ref": "in my head"}],
    not_done=[{"item": "the map", "reason": "no data"}],
    highest_impact_uncertainty="Why is it so?",
    hypotheses={"H1": "refuted"},
)
NEW = handoff({"finding": "new", "source": "s"}, {"finding": "both say it", "source": "s"})
KINDS = ("evidence", "uncertainties", "artifacts", "gaps", "handoffs")


@pytest.fixture
def twice(project: Project) -> tuple[Project, dict[str, Any]]:
    """A step that told the same twice and then something else, with the ledger before that."""
    project.plan({"a": {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1"}})
    project.write("a.json", OLD)
    project.run()
    project.run("--force-node", "a")
    before = project.ok("ledger", "--json").json
    project.write("a.json", NEW)
    project.run("--force-node", "a")
    return project, before


@pytest.mark.req("R126")
def test_an_earlier_handoff_is_shown_once_with_everything_that_it_told(
    twice: tuple[Project, dict[str, Any]],
) -> None:
    project, before = twice
    name = before["handoffs"][0]["id"]
    ids = {kind: [one["id"] for one in before[kind]] for kind in KINDS}
    old, both = ids["evidence"]
    assert project.ok("ledger", name).out.splitlines() == [
        "evidence (2)",
        f"  old · s · 0.40 · superseded · {old} · from a",
        f"  both say it · s · {both} · from a",
        "uncertain (1)",
        f"  Why is it so? · superseded · {ids['uncertainties'][0]} · from a",
        "artifacts (1)",
        f"  notes: in my head · superseded · {ids['artifacts'][0]} · from a",
        "gaps (1)",
        f"  the map: no data · superseded · {ids['gaps'][0]} · from a",
        "hypotheses (1)",
        "  H1: refuted · 0 for, 0 against · superseded",
        "handoffs (1)",
        f"  look once · superseded · {name} · from a",
        "superseded: its step handed over something else since, or left the plan, so it counts no more",
    ]
    shown = project.ok("ledger", name, "--json").json
    assert {kind: [one["id"] for one in shown[kind]] for kind in KINDS} == {
        **ids,
        "handoffs": [name],
    }
    assert [one["standing"] for one in shown["evidence"]] == ["superseded", "latest"]
    assert shown["hypotheses"]["H1"]["standing"] == "superseded"
    assert {one["standing"] for one in project.ok("ledger", "--json").json["evidence"]} == {
        "latest"
    }


def test_what_is_told_again_is_shown_once(twice: tuple[Project, dict[str, Any]]) -> None:
    project, _ = twice
    project.run("--force-node", "a")
    now = project.ok("ledger", "handoffs", "--json").json["handoffs"][0]
    assert "handoffs (1)" in project.ok("ledger", now["id"]).out
    assert "superseded" not in project.ok("ledger", now["id"]).out


@pytest.mark.req("R126")
@pytest.mark.parametrize("kind", KINDS[:4])
def test_what_counts_no_more_is_found_by_its_id_and_says_so(
    twice: tuple[Project, dict[str, Any]], kind: str
) -> None:
    project, before = twice
    name = before[kind][0]["id"]
    shown = project.ok("ledger", name[:9], "--json").json
    assert {one: len(shown[one]) for one in KINDS if shown[one]} == {kind: 1}
    assert (shown[kind][0]["id"], shown[kind][0]["standing"]) == (name, "superseded")
    assert f" · superseded · {name} · from a" in project.ok("ledger", name).out


@pytest.mark.parametrize(
    ("word", "kind"), [("contest", "evidence"), ("resolve", "gaps"), ("resolve", "uncertainties")]
)
def test_a_word_about_what_counts_no_more_is_refused_with_the_reason(
    twice: tuple[Project, dict[str, Any]], word: str, kind: str
) -> None:
    project, before = twice
    name = before[kind][0]["id"]
    told = project.refused(2, "ledger", word, name, "--because", "no")
    assert f"'{name}' counts no more: its step handed over something else since" in told
    assert f"holdfast ledger {name}" in told
