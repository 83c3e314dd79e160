"""Steps hand over what they learned; the ledger shows it, and later steps are told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.model.digest import Json
from tests.cli.project import Project

WHOLE: dict[str, Json] = {
    "attempted": "count the stations",
    "observed": [
        {"finding": "12 stations are listed", "source": "stations.csv", "confidence": 0.9}
    ],
    "changed": [],
    "not_done": [{"item": "the map", "reason": "no data"}],
    "highest_impact_uncertainty": "Are all stations online?",
    "next_agent_should_first": "ping the stations",
}

PLAN = """
steps:
  look:
    inputs: look.json
    shell: cp look.json $HOLDFAST_HANDOFF; echo 12
  ping:
    needs: [look]
    inputs: ping.json
    shell: cp ping.json $HOLDFAST_HANDOFF; cat $HOLDFAST_CONTEXT
  other:
    shell: test ! -s "$HOLDFAST_CONTEXT" && echo nothing
"""


def write(project: Project, name: str, **more: Json) -> None:
    project.write(f"{name}.json", json.dumps({**WHOLE, **more}))


@pytest.fixture
def stations(project: Project) -> Project:
    project.write("plan.yaml", PLAN)
    write(project, "look")
    write(
        project,
        "ping",
        attempted="ping",
        observed=[{"finding": "all answer", "source": "look", "confidence": 0.99}],
        not_done=[],
        highest_impact_uncertainty="",
        resolves=["are all stations online"],
    )
    return project


@pytest.mark.req("R112", "R114", "R115", "R128")
def test_the_ledger_tells_what_a_run_learned_and_from_which_step(stations: Project) -> None:
    stations.run()
    told = stations.ok("ledger", "--json").json
    assert told["schema"] == "holdfast.ledger/1"
    look, ping = told["evidence"]
    assert (look["from_step"], look["finding"]) == ("look", "12 stations are listed")
    assert (ping["stands_on"], ping["confidence"], ping["sure"]) == ([look["id"]], 0.99, 0.9)
    assert told["uncertainties"][0]["status"] == "resolved"
    assert told["uncertainties"][0]["resolved_by"] == "ping"
    assert [gap["item"] for gap in told["gaps"]] == ["the map"]
    assert [one["from_step"] for one in told["handoffs"]] == ["look", "ping"]
    text = stations.ok("ledger").out
    assert "12 stations are listed · stations.csv · 0.90 · " in text
    assert "from look" in stations.ok("ledger", "gaps").out
    assert "Are all" not in stations.ok("ledger", "uncertain", "--open").out


def test_a_program_gets_the_part_that_it_asks_for(stations: Project) -> None:
    stations.run()
    lists = ("evidence", "uncertainties", "artifacts", "gaps", "handoffs")

    def sizes(*words: str) -> dict[str, int]:
        told = stations.ok("ledger", *words, "--json").json
        return {name: len(told[name]) for name in lists if told[name]}

    whole = sizes()
    assert (whole["evidence"], whole["uncertainties"], whole["handoffs"]) == (2, 1, 2)
    assert sizes("evidence") == {"evidence": 2}
    assert sizes("evidence", "--step", "ping") == {"evidence": 1}
    assert sizes("uncertain", "--open") == {}
    assert sizes("handoffs", "--step", "look") == {"handoffs": 1}
    assert "uncertainties" not in sizes("--open")


@pytest.mark.req("R117")
def test_a_step_is_told_what_the_steps_above_it_handed_over(stations: Project) -> None:
    stations.run()
    page = stations.ok("show", "ping").out
    assert page.startswith("## Do first, as the steps before advise\n- ping the stations (look) h-")
    assert "- Are all stations online? (open) u-" in page
    assert stations.ok("show", "other").out == "nothing\n"


def test_what_is_reused_is_told_again(stations: Project) -> None:
    stations.run()
    before = stations.ok("ledger", "--json").json
    assert set(stations.run().states.values()) == {"reused"}
    after = stations.ok("ledger", "--json").json
    assert {**after, "run": ""} == {**before, "run": ""}


@pytest.mark.req("E18")
def test_of_a_step_that_ran_again_the_latest_counts_and_the_first_stays_on_record(
    stations: Project,
) -> None:
    stations.run()
    write(stations, "look", observed=[{"finding": "13 stations are listed"}])
    stations.run()
    told = stations.ok("ledger", "--json").json
    assert told["evidence"][0]["finding"] == "13 stations are listed"
    standing = {one["standing"] for one in told["handoffs"] if one["from_step"] == "look"}
    assert standing == {"latest", "superseded"}


@pytest.mark.req("R116", "R125")
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "the handoff is not JSON"),
        ('{"attempted": "x"}', "'observed' is missing; 'changed' is missing"),
        (json.dumps({**WHOLE, "observd": []}), "is no key of a handoff; is 'observed' meant?"),
    ],
)
def test_what_is_no_handoff_is_refused_and_the_step_not_done(
    stations: Project, content: str, words: str
) -> None:
    stations.write("look.json", content)
    run = stations.run()
    assert run.states["look"] == "failed"
    assert run.code == 1
    assert words in run.err
    failed = stations.ok("ledger", "--json").json
    assert failed["handoffs"][0]["failed"] is True
    assert failed["gaps"][0]["item"] == "look"


@pytest.mark.req("R116", "R129")
def test_a_step_that_must_hand_over_is_not_done_without(project: Project) -> None:
    project.write(
        "plan.yaml", "steps: {a: {handoff: true, shell: echo 1}, b: {needs: [a], shell: echo 2}}"
    )
    run = project.run()
    assert (run.code, run.states["a"]) == (1, "failed")
    assert "no handoff was written to the file that HOLDFAST_HANDOFF names" in run.err


def test_a_run_that_told_nothing_says_how(project: Project) -> None:
    project.write("plan.yaml", "steps: {a: {shell: echo 1}}")
    project.run()
    assert project.ok("ledger").out.startswith("nothing was told: a step writes what it learned")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("hypotheses",), "no hypotheses: "),
        (("uncertain", "--open"), "no open questions: "),
        (("gaps", "--step", "ping"), "no gaps from ping: "),
        (("--step", "other"), "no entries from other: "),
        (("evidence", "--step", "other", "--open"), "no evidence from other: "),
    ],
)
def test_what_is_not_there_is_said_of_what_was_asked_for(
    stations: Project, words: tuple[str, ...], said: str
) -> None:
    stations.run()
    assert stations.ok("ledger", *words).out == f"{said}holdfast ledger shows all\n"


def test_a_step_that_the_run_does_not_have_is_refused_with_the_nearest(stations: Project) -> None:
    stations.run()
    said = stations.refused(2, "ledger", "--step", "pign")
    assert "has no step 'pign'" in said
    assert "did you mean 'ping'?" in said
    assert "has no step 'nosuch'" in stations.refused(2, "ledger", "--step", "nosuch", "--json")


def test_of_a_step_the_hypotheses_are_those_that_it_tested(stations: Project) -> None:
    stations.write("plan.yaml", "hypotheses: {grows: {statement: It grows}}\n" + PLAN)
    write(stations, "look", hypotheses={"grows": {"status": "supported"}})
    stations.run()
    assert "grows: supported" in stations.ok("ledger", "hypotheses", "--step", "look").out
    none = stations.ok("ledger", "hypotheses", "--step", "ping").out
    assert none.startswith("no hypotheses from ping: ")


@pytest.mark.req("R126")
def test_an_entry_is_shown_by_its_id_and_a_handoff_with_all_that_it_told(stations: Project) -> None:
    stations.run()
    told = stations.ok("ledger", "--json").json
    look, ping = told["evidence"]
    one = stations.ok("ledger", look["id"]).out
    line = f"  12 stations are listed · stations.csv · 0.90 · {look['id']} · from look"
    assert one.splitlines() == ["evidence (1)", line]
    assert stations.ok("ledger", ping["id"][:6], "--json").json["evidence"] == [ping]
    handoff = stations.ok("ledger", "show", told["handoffs"][0]["id"]).out
    assert [line for line in handoff.splitlines() if line[0] != " "] == [
        "evidence (1)",
        "uncertain (1)",
        "gaps (1)",
        "handoffs (1)",
    ]
    assert "the ledger has no entry 'e-none'" in stations.refused(2, "ledger", "e-none")
    assert "the ledger has no part 'everything'" in stations.refused(2, "ledger", "everything")


@pytest.mark.req("R126")
def test_an_earlier_handoff_stays_to_be_read_by_its_id(stations: Project) -> None:
    stations.run()
    (old, _) = stations.ok("ledger", "--json").json["handoffs"]
    write(stations, "look", attempted="count them again")
    stations.run()
    assert "count the stations · superseded · " in stations.ok("ledger", old["id"]).out
    kept = stations.ok("ledger", old["id"], "--json").json["handoffs"]
    assert [(one["standing"], one["handoff"]) for one in kept] == [("superseded", old["handoff"])]


@pytest.mark.req("R126", "R117")
def test_what_a_step_is_told_beyond_its_budget_is_summed_up_and_found(stations: Project) -> None:
    many: list[Any] = [
        {"finding": f"station {n} reports {n} mm of rain", "source": "a.csv", "confidence": 0.5}
        for n in range(100)
    ]
    write(stations, "look", observed=many)
    stations.write("plan.yaml", "defaults: {context_tokens: 300}" + PLAN)
    stations.run()
    page = stations.ok("show", "ping", "--context").out
    assert len(page.removesuffix("\n")) <= 300 * 4
    *_, summed = page.strip().splitlines()
    assert summed.startswith("- look: ")
    assert "findings about reports, station, rain (surest 0.50)" in summed
    name = summed.split()[-1]
    shown = stations.ok("ledger", name, "--json").json
    assert [one["finding"] for one in shown["evidence"]] == [one["finding"] for one in many]
    assert json.loads(stations.ok("show", "look", "--handoff").out)["observed"] == many
    summed_up = next(one for one in shown["evidence"] if one["id"] not in page)
    stations.ok("ledger", "contest", summed_up["id"], "--because", "counted twice")
    assert summed_up["id"] in stations.ok("ledger", "--json").json["stale_steps"]["ping"]


GATHERED = {
    "items that the plan lists": """
  part: {for_each: [north, south], shell: cp look.json $HOLDFAST_HANDOFF; echo 1}
""",
    "items that a step finds": """
  list: {shell: 'echo "[1, 2]"'}
  part: {for_each: "${{ steps.list.output }}", shell: cp look.json $HOLDFAST_HANDOFF; echo 1}
""",
    "a sub-plan": """
  part: {uses: plan, run: inner.yaml}
""",
    "a sub-plan in another": """
  part: {uses: plan, run: outer.yaml}
""",
    "what is gathered": """
  north: {shell: cp look.json $HOLDFAST_HANDOFF; echo 1}
  south: {shell: cp look.json $HOLDFAST_HANDOFF; echo 1}
  part: {uses: gather, needs: [north, south]}
""",
}
INNER = """
name: inner
steps:
  first: {shell: cp first.json $HOLDFAST_HANDOFF; echo 0}
  north: {needs: [first], shell: cp look.json $HOLDFAST_HANDOFF; echo 1}
  south: {needs: [first], shell: cp look.json $HOLDFAST_HANDOFF; echo 1}
"""


@pytest.mark.req("R117")
@pytest.mark.parametrize("about", GATHERED)
def test_who_needs_a_step_that_gathers_is_told_what_those_told_whose_work_it_gathers(
    project: Project, about: str
) -> None:
    write(project, "look", changed=[{"artifact": "note", "ref": "https://example.org/1"}])
    write(project, "first", attempted="find a way", next_agent_should_first="begin at the top")
    project.write("inner.yaml", INNER)
    project.write("outer.yaml", "name: o\nsteps: {deep: {uses: plan, run: inner.yaml}}")
    after = "  after: {needs: [part], shell: cat $HOLDFAST_CONTEXT}\n"
    project.write("plan.yaml", f"name: p\nsteps:{GATHERED[about]}{after}")
    assert project.run().code == 0
    page = project.ok("show", "after", "--context").out
    told = (
        "ping the stations (",
        ": count the stations",
        "  - changed note",
        "  - not done the map",
    )
    for text in told:
        assert page.count(text) == 2, text
    assert "begin at the top" not in page


@pytest.mark.req("R117", "R126")
@pytest.mark.parametrize("tokens", [1, 20, 60])
def test_a_small_budget_is_kept_and_says_how_much_there_is(stations: Project, tokens: int) -> None:
    many: list[Any] = [{"finding": f"station {n} reports {n} mm of rain"} for n in range(80)]
    write(stations, "look", observed=many)
    stations.write("plan.yaml", f"defaults: {{context_tokens: {tokens}}}" + PLAN)
    stations.run()
    page = stations.ok("show", "ping", "--context").out.removesuffix("\n")
    assert len(page) <= max(tokens, 13) * 4
    assert "`holdfast ledger`" in page
