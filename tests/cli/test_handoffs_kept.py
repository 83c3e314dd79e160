"""Handoffs outlive what is cleared, copied and taken elsewhere; a purged one leaves the ledger readable."""

from __future__ import annotations

import hashlib
import json
import zipfile
from typing import Any

import pytest

from holdfast.model.digest import Json
from tests.cli.project import Project, finish_run, until
from tests.cli.test_ledger_words import entry, handoff


@pytest.fixture
def told(project: Project) -> Project:
    project.plan(
        {
            "a": {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1"},
            "b": {"needs": ["a"], "shell": "cat $HOLDFAST_CONTEXT"},
        }
    )
    project.write("a.json", handoff({"finding": "12 stations", "source": "a.csv"}))
    project.run()
    project.ok("ledger", "add", "gap", "the map", "--because", "no data")
    project.ok("ledger", "contest", "a.csv", "--because", "it is old")
    return project


def ledger(project: Project, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = project.ok("ledger", "--json", *words).json
    return {**found, "run": ""}


def events(project: Project, name: str, field: str) -> list[str]:
    rows = project.database().execute("SELECT body FROM event WHERE kind = ?", (name,))
    return [str(json.loads(str(body))[field]) for (body,) in rows]


def test_clearing_keeps_what_was_handed_over_and_said(told: Project) -> None:
    before = ledger(told)
    for _ in range(3):
        told.ok("ledger", "contest", "a.csv", "--because", "it is old still")
        told.run()
    kept = ledger(told)
    told.ok("gc", "--keep", "0d", "--yes")
    assert ledger(told) == kept
    assert kept["evidence"] == [
        {**one, "contested": "it is old still"} for one in before["evidence"]
    ]
    assert told.call("verify").code == 0
    assert set(told.run().states.values()) == {"reused"}


def test_a_purged_handoff_leaves_the_ledger_readable(told: Project) -> None:
    (digest,) = set(events(told, "handoff_given", "handoff"))
    told.ok("purge", digest, "--because", "private", "--yes")
    found = ledger(told)
    assert found["evidence"] == []
    (one,) = found["handoffs"]
    assert one["handoff"]["attempted"] == "what it told was removed"
    assert "what it told was removed" in told.ok("ledger").out
    assert told.call("verify").code == 0
    told.run()


def test_purged_words_of_a_person_leave_the_ledger_readable(told: Project) -> None:
    text, because = (
        [one for one in events(told, "ledger_said", field) if one] for field in ("word", "because")
    )
    assert text == ["gap", "contest"]
    for digest in because:
        told.ok("purge", digest, "--because", "private", "--yes")
    assert entry(told, "evidence", "a")["contested"] == "the words were removed"
    assert told.call("verify").code == 0


def test_the_index_made_again_is_the_same(told: Project) -> None:
    told.run()
    before = ledger(told)
    told.ok("rebuild")
    assert ledger(told) == before
    assert told.call("verify").code == 0
    assert set(told.run().states.values()) == {"reused"}


def test_a_back_up_brings_handoffs_and_words_back(told: Project) -> None:
    before = ledger(told)
    told.ok("export", "--all", "all.holdfast")
    told.ok("import", "all.holdfast", "--store", "other", "--yes")
    assert ledger(told, "--store", "other") == before
    assert told.call("verify", "--store", "other").code == 0
    assert told.run("--store", "other").states == {"a": "done", "b": "reused"}


def test_an_exported_run_has_what_its_steps_handed_over(told: Project) -> None:
    told.ok("export", "@", "one.holdfast")
    told.ok("import", "one.holdfast", "--store", "other", "--yes")
    run = told.status().id
    found = ledger(told, "--store", "other", "--run", run)
    assert [one["finding"] for one in found["evidence"]] == ["12 stations"]
    assert told.call("verify", "--store", "other").code == 0


@pytest.mark.req("R72")
def test_an_imported_run_tells_its_whole_ledger(told: Project) -> None:
    told.ok("ledger", "contest", "a.csv", "--take-back", "--because", "no")
    told.write("a.json", handoff({"finding": "13 stations", "source": "a.csv"}))
    told.run("--force-node", "a")
    told.ok("ledger", "add", "evidence", "7 is shut", "--because", "I called")
    run = told.run().id
    assert set(told.status().states.values()) == {"reused"}
    before = ledger(told)
    state = told.ok("export", "@", "-", "--format", "execution-state").out
    told.ok("export", "@", "one.holdfast")
    told.ok("import", "one.holdfast", "--store", "other", "--yes")
    other = ("--store", "other", "--run", run)
    assert ledger(told, *other) == before
    there = told.ok("export", run, "-", "--format", "execution-state", "--store", "other").out
    assert json.loads(there) == json.loads(state)
    told.ok("export", run, "two.holdfast", "--store", "other")
    told.ok("import", "two.holdfast", "--store", "third", "--yes")
    assert ledger(told, "--store", "third", "--run", run) == before
    told.ok("gc", "--keep", "30d", "--yes", "--store", "third")
    assert ledger(told, "--store", "third", "--run", run) == before
    for store in ("other", "third"):
        assert told.call("verify", "--store", store).code == 0
    told.ok("rebuild", "--store", "third")
    assert ledger(told, "--store", "third", "--run", run) == before


def test_what_an_imported_run_learned_counts_for_no_other_run(told: Project) -> None:
    told.ok("export", "@", "one.holdfast")
    told.ok("import", "one.holdfast", "--store", "other", "--yes")
    told.write("a.json", handoff({"finding": "13 stations", "source": "a.csv"}))
    run = told.run("--store", "other")
    assert run.states["a"] == "done"
    found = ledger(told, "--store", "other")
    assert [(one["finding"], one["contested"]) for one in found["evidence"]] == [
        ("13 stations", None)
    ]
    assert found["said"] == []


@pytest.mark.req("R72")
def test_what_is_accepted_of_an_imported_run_tells_what_it_told(told: Project) -> None:
    told.ok("export", "@", "one.holdfast")
    told.ok("import", "one.holdfast", "--store", "other", "--yes")
    run = told.status().id
    for step in ("a", "b"):
        word = ("accept", step, "--from", run, "--because", "ok", "--store", "other")
        told.ok(*word)
    assert told.run("--store", "other").states == {"a": "reused", "b": "reused"}
    found = ledger(told, "--store", "other")
    assert [one["finding"] for one in found["evidence"]] == ["12 stations"]
    told.ok("gc", "--keep", "30d", "--yes", "--store", "other")
    told.ok("rebuild", "--store", "other")
    assert ledger(told, "--store", "other")["evidence"] == found["evidence"]
    assert told.call("verify", "--store", "other").code == 0


def test_a_fork_tells_what_stands_in_it(told: Project) -> None:
    told.ok("fork", "@", "--from", "b", "--as", "again")
    found = ledger(told, "--plan-id", "again")
    assert [one["finding"] for one in found["evidence"]] == ["12 stations"]


def test_a_fork_takes_what_people_said_along(told: Project) -> None:
    told.ok("ledger", "add", "evidence", "7 is shut", "--because", "I called")
    before = ledger(told)
    told.ok("fork", "@", "--from", "b", "--as", "again")
    found = ledger(told, "--plan-id", "again")
    assert found["said"] == before["said"]
    for part in ("evidence", "gaps"):
        assert found[part] == before[part]
    run = told.run("--plan-id", "again")
    assert run.states["a"] == "done", "what is contested is made again"
    assert run.codes["a"] == "evidence_contested"
    told.ok("ledger", "contest", "a.csv", "--take-back", "--because", "no", "--plan-id", "again")
    assert entry(told, "evidence", "a")["contested"] == "it is old", "the other line is its own"
    assert told.call("verify").code == 0


def test_in_a_fork_too_a_step_that_was_made_again_is_no_longer_contested(told: Project) -> None:
    told.ok("ledger", "contest", "a.csv", "--take-back", "--because", "no")
    told.ok("ledger", "contest", "a", "--because", "I doubt it")
    told.run()
    assert entry(told, "evidence", "a")["contested"] is None
    told.ok("fork", "@", "--from", "b", "--as", "again")
    (found,) = ledger(told, "--plan-id", "again")["evidence"]
    assert found["contested"] is None
    assert set(told.run("--plan-id", "again").states.values()) == {"reused"}


def test_a_fork_does_not_ask_again_whether_the_plan_holds(project: Project) -> None:
    project.write("told.json", handoff(replan={"reason": "there is a better way"}))
    project.plan(
        {
            "a": {"shell": "cp told.json $HOLDFAST_HANDOFF", "inputs": "told.json"},
            "b": {"needs": ["a"], "shell": "echo b"},
        }
    )
    assert project.run().code == 3
    project.ok("approve", "replan", "--yes")
    assert project.resume().code == 0
    project.ok("fork", "@", "--from", "b", "--as", "again")
    assert project.status("--plan-id", "again").data["status"] == "completed"


def test_two_engines_tell_their_steps_what_the_other_one_learned(project: Project) -> None:
    wait = project.gate("go")
    project.write("a.json", handoff({"finding": "12 stations"}))
    told = f"{wait}; cat a.js* > $HOLDFAST_HANDOFF; echo 1"
    below = {f"b{n}": {"needs": ["a"], "shell": "cat $HOLDFAST_CONTEXT"} for n in range(6)}
    keyed = {f"c{n}": {**one, "context": "in-ref"} for n, one in enumerate(below.values())}
    project.plan({"a": {"shell": project.sh(told)}, **below, **keyed})
    quick = ("--poll", "0.1", "--beat", "0.3")
    first = project.begun_by("run", "--json", "-j", "1", *quick, step="a")
    second = project.start("run", "--json", "--join", "-j", "1", *quick)
    until(lambda: len(project.database().execute("SELECT id FROM run").fetchall()) == 2)
    project.open("go")
    runs = [finish_run(first), finish_run(second)]
    assert [run.code for run in runs] == [0, 0]
    assert runs[0].refs == runs[1].refs
    for name in (*below, *keyed):
        assert b"12 stations" in project.shown(name)
    one, other = (ledger(project, "--run", run.id) for run in runs)
    assert one == other
    assert set(project.run().states.values()) == {"reused"}


def test_a_run_of_a_stranger_whose_handoff_is_none_is_readable(told: Project) -> None:
    told.ok("export", "@", "one.holdfast")
    archive = told.root / "one.holdfast"
    with zipfile.ZipFile(archive) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    head = json.loads(entries["holdfast.json"])
    body = json.loads(head["learned"])
    digest = hashlib.sha256(b"no handoff").hexdigest()
    entries[f"contents/{digest[:2]}/{digest}"] = b"no handoff"
    body["told"] = [[*row[:-1], digest] for row in body["told"]]
    head["learned"] = json.dumps(body)
    entries["holdfast.json"] = json.dumps(head).encode()
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in entries.items():
            file.writestr(name, content)
    told.ok("import", "one.holdfast", "--store", "other", "--yes")
    found = ledger(told, "--store", "other", "--run", told.status().id)
    assert [one["finding"] for one in found["evidence"]] == ["12 stations"], (
        "its own attempt told it"
    )
    (earlier,) = [one for one in found["handoffs"] if one["standing"] == "superseded"]
    assert earlier["handoff"]["attempted"] == "what it told cannot be read"


@pytest.mark.req("R126", "E18")
def test_a_page_is_short_and_the_trail_behind_it_is_whole(project: Project) -> None:
    every: list[Json] = [
        {
            "finding": f"station {number} of the valley {'measured rain ' * 12}",
            "source": f"s{number}",
        }
        for number in range(200)
    ]
    project.plan(
        {
            "a": {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1"},
            "b": {"needs": ["a"], "shell": "cat $HOLDFAST_CONTEXT"},
        }
    )
    project.write("a.json", handoff(*every))
    project.run()
    page = project.ok("show", "b", "--context").out
    assert project.shown("b").decode() in {page, page.removesuffix("\n")}, "as it was given"
    assert 1_000 < len(page) < 4_000 * 5
    assert sum(f"station {number} of" in page for number in range(200)) < 200
    found = ledger(project)
    assert len(found["evidence"]) == 200
    assert found["handoffs"][0]["id"] in page, "it says where the rest is found"
    project.write("a.json", handoff({"finding": "it was the wrong valley"}))
    project.run("--force-node", "a")
    again = ledger(project)
    assert [one["finding"] for one in again["evidence"]] == ["it was the wrong valley"]
    (earlier,) = [one for one in again["handoffs"] if one["standing"] == "superseded"]
    assert len(earlier["handoff"]["observed"]) == 200
    assert len(ledger(project, "--run", "@-1")["evidence"]) == 200, "a run tells what it told"
    assert project.ok("show", "b", "--context").out == page


SAME = """
name: same
hypotheses:
  grows: {statement: it grows, critical: true}
replan: {to: second.yaml, ask: false}
steps:
  test:
    hypotheses: [grows]
    inputs: told.json
    shell: if [ -s told.json ]; then cp told.json "$HOLDFAST_HANDOFF"; fi; echo done
  report: {needs: [test], shell: echo it grows}
"""
SECOND = SAME.replace("replan: {to: second.yaml, ask: false}\n", "").replace(
    "it grows}", "it fell}"
)


def _verdict(project: Project, status: str) -> None:
    body = {**json.loads(handoff()), "hypotheses": {"grows": {"status": status}}} if status else ""
    project.write("told.json", json.dumps(body) if body else "")


@pytest.fixture
def same(project: Project) -> Project:
    project.write("plan.yaml", SAME)
    project.write("second.yaml", SECOND)
    return project


def _stands(project: Project, *where: str) -> str:
    return str(ledger(project, *where)["hypotheses"]["grows"]["status"])


def test_what_is_reused_tells_what_its_own_attempt_told(same: Project) -> None:
    for status, report in (("refuted", "it fell"), ("supported", "it grows")) * 2:
        _verdict(same, status)
        same.run()
        assert (_stands(same), same.ok("show", "report").out) == (status, f"{report}\n")
    _verdict(same, "refuted")
    run = same.run().id
    assert same.status().states["test"] == "reused"
    same.ok("export", "@", "one.holdfast")
    same.ok("import", "one.holdfast", "--store", "other", "--yes")
    assert _stands(same, "--store", "other", "--run", run) == "refuted"
    same.call("fork", "@", "--from", "report", "--as", "aside")
    assert _stands(same, "--plan-id", "aside") == "refuted"


def test_an_attempt_that_made_the_same_and_told_nothing_tells_nothing(same: Project) -> None:
    _verdict(same, "refuted")
    same.run()
    _verdict(same, "")
    same.run()
    assert _stands(same) != "refuted"
    same.run()
    assert same.status().states["test"] == "reused"
    assert _stands(same) != "refuted"


def test_what_is_guarded_again_tells_what_was_guarded(same: Project) -> None:
    for status in ("refuted", "supported", "refuted"):
        _verdict(same, status)
        same.run()
    for name in ("plan.yaml", "second.yaml"):
        text = SAME if name == "plan.yaml" else SECOND
        same.write(
            name, text.replace("echo done\n", "echo done\n    guards: [{command: 'true'}]\n")
        )
    same.run()
    assert _stands(same) == "refuted"


@pytest.mark.req("R72")
@pytest.mark.parametrize("before", ["A A", "A B A", "A -"])
@pytest.mark.parametrize("here", ["A", "B -"])
def test_an_imported_run_tells_the_same_whatever_the_line_here_told(
    project: Project, before: str, here: str
) -> None:
    project.plan(
        {
            "a": {
                "inputs": "told.json",
                "shell": "if [ -s told.json ]; then cp told.json $HOLDFAST_HANDOFF; fi; echo same",
            },
            "b": {"needs": ["a"], "shell": "cat $HOLDFAST_CONTEXT"},
        }
    )

    def run(values: str, *where: str) -> None:
        for value in values.split():
            body = handoff({"finding": f"value {value}", "source": "s"}) if value != "-" else ""
            project.write("told.json", body)
            assert project.run(*where).code == 0

    run(before)
    whole, name = ledger(project), project.status().id
    project.ok("export", "@", "one.holdfast")
    run(here, "--store", "other")
    there = ledger(project, "--store", "other")
    project.ok("import", "one.holdfast", "--store", "other", "--yes")
    assert ledger(project, "--store", "other", "--run", name) == whole
    assert ledger(project, "--store", "other") == there
    run(here, "--store", "other")
    assert ledger(project, "--store", "other", "--run", name) == whole


@pytest.mark.req("R72")
def test_which_steps_were_told_what_fell_goes_along_with_a_run(told: Project) -> None:
    told.ok("ledger", "contest", "a.csv", "--take-back", "--because", "no")
    run = told.run().id
    assert set(told.status().states.values()) == {"reused"}
    told.ok("ledger", "contest", "a.csv", "--because", "it is old")
    stale = ledger(told)["stale_steps"]
    assert [*stale] == ["b"]
    told.ok("export", "@", "one.holdfast")
    told.ok("import", "one.holdfast", "--store", "other", "--yes")
    assert ledger(told, "--store", "other", "--run", run)["stale_steps"] == stale
    assert told.call("verify", "--store", "other").code == 0
    told.ok("export", run, "two.holdfast", "--store", "other")
    told.ok("import", "two.holdfast", "--store", "third", "--yes")
    assert ledger(told, "--store", "third", "--run", run)["stale_steps"] == stale


def test_which_steps_were_told_what_fell_goes_along_with_a_fork(told: Project) -> None:
    steps: dict[str, dict[str, Any]] = {
        "a": {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1"},
        "b": {"needs": ["a"], "shell": "cat $HOLDFAST_CONTEXT > b; echo b"},
        "c": {"needs": ["b"], "shell": "echo c"},
    }
    told.ok("ledger", "contest", "a.csv", "--take-back", "--because", "no")
    told.plan(steps)
    told.run()
    told.ok("ledger", "contest", "a.csv", "--because", "it is old")
    told.ok("fork", "@", "--from", "c", "--as", "again")
    told.ok("fork", "@", "--from", "c", "--as", "third", "--plan-id", "again")
    for line in ("again", "third"):
        assert [*ledger(told, "--plan-id", line)["stale_steps"]] == ["b"], line
