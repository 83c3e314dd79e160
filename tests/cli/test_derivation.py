"""What a handoff names as a source is looked up, and falls when a person contests it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.model.digest import Json
from tests.cli.project import Project
from tests.cli.test_ledger_words import entry, handoff

EACH = """
steps:
  each:
    for_each: [n, s]
    with: {site: "${{ item }}"}
    shell: 'sed "s/SITE/$(cat $HOLDFAST_WITH/site)/g" each.tmpl > $HOLDFAST_HANDOFF; echo 1'
  sub:
    uses: plan
    run: inner.yaml
  syn:
    needs: [each, sub]
    shell: cat syn.js* > $HOLDFAST_HANDOFF; cat $HOLDFAST_CONTEXT
"""
INNER = """
name: inner
steps:
  first:
    shell: cat first.js* > $HOLDFAST_HANDOFF; echo 1
  last:
    needs: [first]
    shell: echo 2
"""


def found(project: Project) -> list[tuple[Any, ...]]:
    return [
        (one["from_step"], one["sure"], one["contested"], one["stale"])
        for one in project.ok("ledger", "--json").json["evidence"]
    ]


@pytest.fixture
def sites(project: Project) -> Project:
    project.write("plan.yaml", EACH)
    project.write("inner.yaml", INNER)
    visit: Json = {"finding": "SITE has water", "source": "visit of SITE", "confidence": 0.2}
    project.write("each.tmpl", handoff(visit))
    project.write("first.json", handoff({"finding": "rain", "source": "map", "confidence": 0.3}))
    claims: list[Json] = [
        {"finding": f"wet by {name}", "source": name, "confidence": 0.99}
        for name in ("each", "sub")
    ]
    project.write("syn.json", handoff(*claims))
    project.run()
    return project


@pytest.mark.req("R128")
def test_a_contest_of_a_step_that_gathers_is_one_of_all_whose_work_it_gathers(
    sites: Project,
) -> None:
    own = [("each[n]", 0.2, None, False), ("each[s]", 0.2, None, False)]
    rest = [("sub.first", 0.3, None, False), ("syn", pytest.approx(0.36), None, False)]
    whole = [*own, *rest, ("syn", 0.3, None, False)]
    assert found(sites) == whole
    shown = sites.ok("ledger", "--step", "each", "--json").json
    assert [one["from_step"] for one in shown["evidence"]] == ["each[n]", "each[s]"]
    word = ("ledger", "contest", "each", "--because", "no", "--json")
    before, after = sites.ok(*word, "--dry-run").json, sites.ok(*word).json
    for fall in (before, after):
        assert fall["steps"] == ["each[n]", "each[s]"]
        again = {one["step"]: one["decision"] for one in fall["again"]}
        assert (again["each[n]"], again["each[s]"]) == ("run", "run")
        assert len(fall["stale"]["evidence"]) == 1
    doubted = [(step, None, "no", False) for step, *_ in own]
    assert found(sites) == [*doubted, rest[0], ("syn", 0.0, None, True), whole[-1]]
    shown = sites.ok("ledger", "--step", "each", "--json").json
    assert [one["entry"] for one in shown["said"]] == ["each"]
    run = sites.run()
    assert {step for step, state in run.states.items() if state == "done"} == {"each[n]", "each[s]"}
    assert found(sites) == whole
    assert sites.ok(*word, "--dry-run").json["already"] is None
    assert sites.ok("ledger", "contest", "sub", "--because", "no", "--json").json["steps"] == [
        "sub.last",
        "sub.first",
    ]


@pytest.fixture
def pair(project: Project) -> Project:
    project.plan(
        {
            "a": {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1"},
            "b": {"needs": ["a"], "shell": "cat b.js* > $HOLDFAST_HANDOFF; echo 2"},
            "z": {"needs": ["b"], "shell": "echo 3"},
        }
    )
    seen: list[Json] = [
        {"finding": text, "source": f"{text}.csv", "confidence": 0.2} for text in ("rain", "heat")
    ]
    project.write("a.json", handoff(*seen))
    project.write("b.json", handoff())
    project.run()
    return project


def claims(project: Project, source: str) -> Any:
    project.write("b.json", handoff({"finding": "both", "source": source, "confidence": 0.99}))
    return project.run("--force-node", "b")


@pytest.mark.req("R125", "R128")
def test_each_of_several_that_a_source_names_is_looked_up(pair: Project) -> None:
    ids = [one["id"] for one in pair.ok("ledger", "--json").json["evidence"]]
    assert claims(pair, f"{ids[0][:8]}, {ids[1]}").states["b"] == "done"
    told = entry(pair, "evidence", "b")
    assert (told["source"], told["stands_on"]) == (", ".join(ids), ids)
    assert told["sure"] == pytest.approx(0.36)
    run = claims(pair, f"{ids[0]}, e-0123456789ab")
    assert run.states["b"] == "failed"
    assert "'observed[0].source' names 'e-0123456789ab', which nobody told" in run.err


@pytest.mark.req("R128")
@pytest.mark.parametrize("by", ["id", "handoff", "step"])
def test_a_corrected_finding_does_not_heal_what_was_concluded_from_it(
    pair: Project, by: str
) -> None:
    first = pair.ok("ledger", "--json").json
    name = first["evidence"][0]["id"]
    handed = next(one["id"] for one in first["handoffs"] if one["from_step"] == "a")
    claims(pair, {"id": name, "handoff": handed, "step": "a"}[by])
    pair.ok("ledger", "contest", "rain.csv", "--because", "misread")
    before = pair.ok("ledger", "--json").json
    pair.write("a.json", handoff({"finding": "dry", "source": "new.csv", "confidence": 0.2}))
    assert pair.run().states["b"] == "reused"
    after = pair.ok("ledger", "--json").json
    assert after["stale_steps"] == before["stale_steps"] == {"b": [name], "z": [name]}
    stale = [(one["sure"], one["stale"]) for one in after["evidence"] if one["from_step"] == "b"]
    assert stale == [(0.0 if by == "id" else pytest.approx(0.2), True)]
    assert pair.run().states == dict.fromkeys("abz", "reused")
    assert entry(pair, "evidence", "b")["stale"]
    word = ("ledger", "contest", "heat.csv", "--because", "no", "--dry-run", "--json")
    if by != "id":  # nobody tells it any more: who stands on it is asked again
        assert pair.ok(*word).json["steps"] == ["b"]
    claims(pair, "new.csv")
    assert pair.ok("ledger", "--json").json["stale"] == []


@pytest.mark.req("R128")
def test_a_finding_of_a_step_that_left_the_plan_bounds_and_can_be_contested(pair: Project) -> None:
    name = pair.ok("ledger", "--json").json["evidence"][0]["id"]
    alone: dict[str, Json] = {"shell": "cat b.js* > $HOLDFAST_HANDOFF; echo 2"}
    pair.plan({"a": {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1"}, "b": alone})
    assert claims(pair, name).states["b"] == "done"
    pair.plan({"b": alone})
    pair.run()
    told = entry(pair, "evidence", "b")
    assert (told["sure"], told["stands_on"]) == (0.2, [name])
    assert f"superseded · {name} · from a" in pair.ok("ledger", name).out
    fall = pair.ok("ledger", "contest", "rain.csv", "--because", "no", "--json").json
    assert (fall["steps"], fall["stale"]["evidence"]) == (["b"], [told["id"]])
    assert pair.run().states == {"b": "done"}
    log = pair.ok("export", "@", "-", "--format", "execution-state").json["handoffLog"]
    assert {one["stepId"] for one in log} == {"b"}


@pytest.mark.req("R125", "R128")
def test_a_source_is_read_part_by_part_and_a_contest_reaches_each(pair: Project) -> None:
    name = pair.ok("ledger", "--json").json["evidence"][0]["id"]
    source = f"{name.upper()}, {name[:8].upper()}, s1, s2"
    assert claims(pair, source).states["b"] == "done"
    told = entry(pair, "evidence", "b")
    assert (told["source"], told["sure"]) == (f"{name}, {name}, s1, s2", 0.2)
    assert told["id"] in pair.ok("ledger", told["id"].upper()).out
    for contested in ("s2", told["id"][:9].upper()):
        word = ("ledger", "contest", contested, "--because", "no", "--json")
        assert pair.ok(*word, "--dry-run").json["steps"] == ["b"]
    pair.ok("ledger", "contest", "s2", "--because", "no")
    assert entry(pair, "evidence", "b")["contested"] == "no"
    assert pair.run().states == {"a": "reused", "b": "done", "z": "reused"}
    assert "names 'E-0123456789AB', which nobody told" in claims(pair, "E-0123456789AB, s1").err


@pytest.mark.req("R125")
def test_an_id_in_the_words_of_a_source_is_looked_up_and_spelled_out(pair: Project) -> None:
    name = pair.ok("ledger", "--json").json["evidence"][0]["id"]
    for made_up in ("see e-0123456789ab", "(E-0123456789AB)", "gauge.csv, as in e-0123456789ab."):
        assert "0123456789" in (refused := claims(pair, made_up)).err
        assert "which nobody told" in refused.err
    assert claims(pair, f"see {name[:8].upper()}, and bus e-1234").states["b"] == "done"
    told = entry(pair, "evidence", "b")
    assert (told["source"], told["sure"]) == (f"see {name}, and bus e-1234", 0.2)
    assert claims(pair, "https://x.org/e-0123456789ab").states["b"] == "done"


@pytest.mark.req("R129")
def test_a_contest_reaches_a_source_however_it_is_written_and_names_those_like_it(
    pair: Project,
) -> None:
    assert claims(pair, "`./Gauge.csv` (row 3)").states["b"] == "done"
    seen: list[Json] = [
        {"finding": text, "source": text} for text in ("old/gauge.csv", "engauge.csv", "2 gauges")
    ]
    pair.write("a.json", handoff(*seen))
    pair.run("--force-node", "a")
    word = ("ledger", "contest", "gauge.csv", "--because", "no")
    fall = pair.ok(*word, "--json", "--dry-run").json
    assert (fall["steps"], fall["near"]) == (["b"], ["old/gauge.csv"])
    assert "sources like it that stand: old/gauge.csv" in pair.ok(*word).out
    assert entry(pair, "evidence", "b")["contested"] == "no"
    back = pair.ok("ledger", "contest", "./gauge.csv", "--because", "yes", "--take-back", "--json")
    assert back.json["entry"] == "gauge.csv"
    assert entry(pair, "evidence", "b")["contested"] is None
    missing = pair.call("ledger", "contest", "gauge", "--because", "no")
    assert (missing.code, "sources like it: " in missing.err) == (2, True)


@pytest.mark.req("R125")
@pytest.mark.parametrize("source", ["z", "a, z", "z, s1", "step z"])
def test_a_source_that_is_a_step_is_one_above(pair: Project, source: str) -> None:
    run = claims(pair, source)
    assert run.states["b"] == "failed"
    assert "'observed[0].source' names the step 'z', which is not above 'b'" in run.err
    assert claims(pair, "what z is").states["b"] == "done"


@pytest.mark.req("R125")
@pytest.mark.parametrize("ref", ["A" * 64, "SHA256:" + "A" * 64, "sha256:" + "A" * 64])
def test_a_digest_is_looked_up_in_capital_letters_too(pair: Project, ref: str) -> None:
    pair.write("b.json", handoff(changed=[{"artifact": "x", "ref": ref}]))
    run = pair.run("--force-node", "b")
    assert run.states["b"] == "failed"
    assert "names the content 'aaaaaaaaaaaa', which is not stored" in run.err


def test_what_many_stand_on_is_written_once(pair: Project) -> None:
    many = 150
    pair.write("a.json", handoff(*({"finding": f"{n} mm", "source": f"{n}"} for n in range(many))))
    pair.write("b.json", handoff(*({"finding": f"{n} cm", "source": "a"} for n in range(many))))
    pair.run("--force")
    shown = pair.ok("ledger", "--json").json
    ids = [one["id"] for one in shown["evidence"] if one["from_step"] == "a"]
    assert shown["found_by"] == {"a": ids}
    assert {json.dumps(one["stands_on"]) for one in shown["evidence"]} == {"[]", '["a"]'}
