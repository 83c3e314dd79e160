"""A handoff counts only if what it claims is there; a step that failed says what was not done."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import pytest

from holdfast.model.digest import Json
from holdfast.model.handoff import entry_id
from holdfast.model.plan import StepId
from tests.cli.project import Project, kill
from tests.cli.test_ledger_words import entry, handoff

NOBODY = "e-0123456789ab"


@pytest.fixture
def pair(project: Project) -> Project:
    """A step that tells, and one below it whose handoff the test writes."""
    project.plan(
        {
            "a": {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1"},
            "b": {"needs": ["a"], "shell": "cat b.js* > $HOLDFAST_HANDOFF; echo 2"},
        }
    )
    project.write(
        "a.json",
        handoff({"finding": "12 stations", "source": "a.csv"}, highest_impact_uncertainty="All?"),
    )
    project.write("b.json", handoff())
    project.run()
    return project


def test_what_was_accepted_is_read_again_however_large_it_is_spelled(pair: Project) -> None:
    """Stored with spaces between its words, it is larger than what a step may write."""
    finding: Json = {"finding": "still told", "source": "b.csv"}
    body = json.loads(handoff(finding, payload={"many": [1] * 450_000}))
    text = json.dumps(body, separators=(",", ":"))
    assert len(text) < 2**20 < len(json.dumps(body))
    pair.write("b.json", text)
    assert pair.run("--force-node", "b").states["b"] == "done"
    assert entry(pair, "evidence", "b")["finding"] == "still told"


@pytest.mark.req("R125")
@pytest.mark.parametrize("wrong", [{"replan": "x" * 100_001}, {"resolves": ["u"] * 10_001}])
def test_what_is_too_long_is_refused_and_not_cut(pair: Project, wrong: dict[str, Any]) -> None:
    pair.write("b.json", handoff(**wrong))
    run = pair.run("--force-node", "b")
    assert run.states["b"] == "failed"
    assert "is longer than 100,000" in run.err or "10,001 entries; at most 10,000" in run.err


@pytest.mark.req("R124", "R125")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_a_step_beside_it_told_is_known_from_the_next_run_on(
    project: Project, jobs: str
) -> None:
    """Which of two came first is a matter of time: the same is refused, however many work at once."""
    project.plan(
        {
            "a": {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1"},
            "b": {
                "shell": "cat b.js* > $HOLDFAST_HANDOFF; echo 2",
                "needs": [{"step": "z", "type": "sequence"}],
            },
            "z": {"shell": "true"},
        }
    )
    project.write("a.json", handoff(highest_impact_uncertainty="Does gauge 2 leak?"))
    project.write("b.json", handoff(resolves=[entry_id("u", StepId("a"), "Does gauge 2 leak?")]))
    run = project.run("-j", jobs)
    assert run.states == {"a": "done", "b": "failed", "z": "done"}
    assert "which nobody told" in run.err
    assert project.run().states == {"a": "reused", "b": "done", "z": "reused"}


@pytest.mark.req("R125", "R129")
def test_what_a_handoff_refers_to_was_told(pair: Project) -> None:
    found = pair.ok("ledger", "--json").json
    ids = {kind: found[kind][0]["id"] for kind in ("evidence", "uncertainties", "handoffs")}
    one: Json = {"finding": "they are a dozen", "source": ids["evidence"]}
    other: Json = {"finding": "so it is", "source": "a.csv", "supports": [ids["evidence"]]}
    pair.write(
        "b.json",
        handoff(one, other, resolves=[ids["uncertainties"]], refers_to=[ids["handoffs"], "a"]),
    )
    assert pair.run("--force-node", "b").states == {"a": "reused", "b": "done"}
    assert entry(pair, "evidence", "b")["stands_on"] == [ids["evidence"]]
    assert entry(pair, "uncertainties", "a")["status"] == "resolved"


@pytest.mark.req("R125", "R129")
@pytest.mark.parametrize(
    ("told", "place"),
    [
        (handoff({"finding": "x", "source": NOBODY}), "observed[0].source"),
        (handoff({"finding": "x", "supports": [NOBODY]}), "observed[0].supports"),
        (handoff({"finding": "x", "refutes": [NOBODY]}), "observed[0].refutes"),
        (handoff(refers_to=[NOBODY.replace("e-", "h-")]), "refers_to"),
        (handoff(refers_to=["anything"]), "refers_to"),
        (handoff(refers_to=[NOBODY.replace("e-", "g-")]), "refers_to"),
        (handoff(resolves=[NOBODY.replace("e-", "u-")]), "resolves"),
        (handoff(testing=[NOBODY.replace("e-", "u-")]), "testing"),
        (
            handoff(hypotheses={"H": {"status": "supported", "evidence": [NOBODY]}}),
            "hypotheses.H.evidence",
        ),
        (
            handoff(hypotheses={"H": {"status": "supported", "evidence": ["e-0123"]}}),
            "hypotheses.H.evidence",
        ),
    ],
)
def test_what_nobody_told_cannot_be_referred_to(pair: Project, told: str, place: str) -> None:
    pair.write("b.json", told)
    run = pair.run("--force-node", "b")
    assert run.states["b"] == "failed"
    assert f"'{place}' names '" in run.err
    assert "which nobody told" in run.err
    pair.write("mine.txt", "2\n")
    said = pair.refused(2, "amend", "a", "mine.txt", "--handoff", "b.json")
    assert f"'{place}' names '" in said


@pytest.mark.req("R124", "R125")
@pytest.mark.parametrize("name", ["side", "the moon"])
def test_a_verdict_leans_on_what_was_told_above_it(project: Project, name: str) -> None:
    """In whatever order the two ended, and also if the other one told something in an earlier run."""
    steps = {"a": {}, "b": {"needs": ["a"]}, "side": {}}
    project.plan(
        {
            step: {**more, "shell": f"cat {step}.js* > $HOLDFAST_HANDOFF; echo 1"}
            for step, more in steps.items()
        }
    )
    for step in steps:
        project.write(f"{step}.json", handoff({"finding": f"{step} saw it", "source": "t.csv"}))
    project.run()
    verdict = {"g": {"status": "supported", "evidence": [name]}}
    project.write("b.json", handoff(hypotheses=verdict))
    run = project.run("--force-node", "b")
    assert run.states == {"a": "reused", "b": "failed", "side": "reused"}
    assert "'hypotheses.g.evidence' names " in run.err
    verdict["g"]["evidence"] = ["a", "b"]
    project.write("b.json", handoff(hypotheses=verdict))
    assert project.run("--force-node", "b").states["b"] == "done"


def claim(pair: Project, artifact: str, ref: str) -> str:
    """What comes of a step that says it changed this: done, or why not."""
    pair.write("b.json", handoff(changed=[{"artifact": artifact, "ref": ref}]))
    run = pair.run("--force-node", "b")
    return "" if run.states["b"] == "done" else run.err


@pytest.mark.req("R125")
def test_a_file_that_a_handoff_names_lies_in_the_project(pair: Project) -> None:
    pair.write("sub/there.txt", "")
    (pair.root / "inside").symlink_to("sub/there.txt")
    (pair.root / "out").symlink_to(pair.home)
    (pair.root / "own").symlink_to(".holdfast")
    (pair.home / "theirs").touch()
    for ref in ("sub/there.txt", "./sub/there.txt", "sub", "inside", "file:sub/there.txt"):
        assert claim(pair, "file", ref) == "", ref
    wrong = ["../home/theirs", "sub/../sub/there.txt", str(pair.root / "sub/there.txt"), ".", ""]
    wrong += [str(pair.home / "theirs"), "out", "out/theirs", ".holdfast", "own", "gone", "a\0b"]
    pair.write(
        "b.json", handoff(changed=[{"artifact": "x", "ref": f"file:{ref}"} for ref in wrong])
    )
    run = pair.run("--force-node", "b")
    assert run.states["b"] == "failed"
    for number in range(len(wrong)):
        assert f"'changed[{number}].ref' names " in run.err, wrong[number]
    assert "which the step did not make and which is not in the project" in run.err


@pytest.mark.req("R125")
@pytest.mark.parametrize(
    ("artifact", "ref"),
    [("File", "gone"), ("PATH", "gone"), ("x", "FILE:gone"), ("x", "file:gone")],
)
def test_a_file_is_one_however_it_is_spelled(pair: Project, artifact: str, ref: str) -> None:
    assert f"'changed[0].ref' names '{ref}'" in claim(pair, artifact, ref)
    pair.write("gone", "")
    assert claim(pair, artifact, ref) == ""


WORDS = {
    "a finding": handoff({"finding": f"see {NOBODY}", "source": "a.csv"}),
    "a source": handoff({"finding": "x", "source": f"https://x.org/{NOBODY}"}),
    "a change": handoff(changed=[{"artifact": "note", "ref": f"see {NOBODY}"}]),
    "a gap": handoff(not_done=[{"item": "x", "reason": f"see\n- {NOBODY}"}]),
    "an account": handoff(attempted=f"look for {NOBODY}"),
    "a question": handoff(highest_impact_uncertainty=f"What is {NOBODY}"),
}


@pytest.mark.req("R125", "R129")
@pytest.mark.parametrize("where", WORDS)
def test_an_id_in_the_words_of_another_was_told_by_nobody(pair: Project, where: str) -> None:
    pair.write("a.json", WORDS[where])
    pair.write("b.json", handoff({"finding": "proved", "source": NOBODY, "confidence": 1}))
    run = pair.run("--force-node", "a", "--force-node", "b")
    assert NOBODY in pair.ok("show", "b", "--context").out
    assert run.states == {"a": "done", "b": "failed"}
    assert f"'observed[0].source' names '{NOBODY}', which nobody told" in run.err


@pytest.mark.req("R125")
def test_what_a_failed_step_left_undone_can_be_referred_to(project: Project) -> None:
    """Nobody wrote its handoff, so it stands on the page alone."""
    read = "sed -n 's/^- f failed: .* \\(h-[0-9a-f]*\\)$/\\1/p' $HOLDFAST_CONTEXT"
    project.plan(
        {
            "a": {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1"},
            "f": {"needs": ["a"], "shell": "false"},
            "b": {
                "needs": ["a", {"step": "f", "optional": True}],
                "shell": f"sed s/HERE/$({read})/ b.json > $HOLDFAST_HANDOFF; echo 2",
            },
        }
    )
    project.write("a.json", handoff())
    project.write("b.json", handoff(refers_to=["HERE"]))
    assert project.run().states["b"] == "done"
    assert entry(project, "handoffs", "b")["handoff"]["refers_to"][0].startswith("h-")


@pytest.mark.req("R125")
def test_a_content_that_a_handoff_names_is_stored_or_its_own(pair: Project) -> None:
    own = hashlib.sha256(b"2\n").hexdigest()
    pair.write("b.json", handoff(changed=[{"artifact": "all", "ref": own}]))
    assert pair.run("--force-node", "b").states["b"] == "done"
    pair.write("b.json", handoff(changed=[{"artifact": "all", "ref": "0" * 64}]))
    run = pair.run("--force-node", "b")
    assert run.states["b"] == "failed"
    assert "'changed[0].ref' names the content '000000000000', which is not stored" in run.err


@pytest.mark.req("R129")
def test_the_payload_covers_the_declared_outputs(project: Project) -> None:
    step = {"shell": 'cat a.js* > $HOLDFAST_HANDOFF; echo \'{"n": 1, "m": 2}\''}
    project.plan({"a": {**step, "outputs": ["n", "m"], "handoff": True}})
    project.write("a.json", handoff(payload={"n": 1}))
    run = project.run()
    assert run.states["a"] == "failed"
    assert "'payload.m' is missing: the step declares it among its outputs" in run.err
    project.write("a.json", handoff(payload={"n": 1, "m": 2}))
    assert project.run().states["a"] == "done"


@pytest.mark.req("R129")
def test_a_person_who_must_hand_over_covers_the_outputs_too(project: Project) -> None:
    step = {"uses": "human", "prompt": "how many?", "outputs": ["n"], "handoff": True}
    project.plan({"a": step})
    project.write("a.txt", '{"n": 1}')
    project.write("told.json", handoff())
    assert project.run().states["a"] == "waiting"
    words = ("answer", "a", "a.txt", "--handoff", "told.json")
    assert "'payload.n' is missing" in project.refused(2, *words)
    assert project.status().states["a"] == "waiting"
    project.write("told.json", handoff(payload={"n": 1}))
    project.ok(*words)
    assert project.resume().states["a"] == "done"
    assert entry(project, "handoffs", "a")["handoff"]["payload"] == {"n": 1}


@pytest.mark.req("R129")
def test_a_step_that_failed_stands_in_the_ledger_with_its_reason(project: Project) -> None:
    project.plan(
        {
            "draw": {"shell": "exit 3", "description": "draw the map", "produces": "map.svg"},
            "check": {"shell": "echo no", "guards": [{"regex": {"pattern": "yes"}}]},
            "fine": {"shell": "echo 1"},
            "after": {"needs": ["draw"], "shell": "echo 1"},
        }
    )
    assert project.run("--keep-going").code == 1
    found = project.ok("ledger", "--json").json
    failed = {one["from_step"]: one for one in found["handoffs"]}
    assert sorted(failed) == ["check", "draw"], "what was never tried told nothing"
    assert all(one["failed"] for one in failed.values())
    assert failed["draw"]["handoff"]["attempted"] == "draw the map"
    gaps = {one["from_step"]: (one["item"], one["reason"]) for one in found["gaps"]}
    assert gaps["draw"][0] == "map.svg"
    assert "failed" in gaps["draw"][1]
    assert "regex" in gaps["check"][1]
    text = project.ok("ledger", "handoffs").out
    assert "draw the map · failed: " in text
    assert "map.svg: " in project.ok("ledger", "gaps", "--step", "draw").out
    project.plan({"draw": {"shell": "echo x > map.svg", "produces": "map.svg"}})
    project.run()
    assert project.ok("ledger", "--json").json["gaps"] == []


# --- from strangers -------------------------------------------------------------------------------


def one_step(project: Project, shell: str, **more: Any) -> Any:
    project.plan({"a": {"shell": shell, **more}})
    return project.run()


HOSTILE: dict[str, tuple[str, str]] = {
    "huge": ("head -c 10000000 /dev/zero > $HOLDFAST_HANDOFF", "HOLDFAST_HANDOFF"),
    "link": ("ln -s /etc/hostname $HOLDFAST_HANDOFF", "HOLDFAST_HANDOFF"),
    "directory": ("mkdir $HOLDFAST_HANDOFF", "HOLDFAST_HANDOFF"),
    "pipe": ("mkfifo $HOLDFAST_HANDOFF", "HOLDFAST_HANDOFF"),
    "bytes": ("printf '\\377\\376' > $HOLDFAST_HANDOFF", "the handoff is not JSON"),
    "half": ('printf \'{"attempted": "lo\' > $HOLDFAST_HANDOFF', "the handoff is not JSON"),
}


@pytest.mark.req("R116")
@pytest.mark.parametrize("what", HOSTILE)
def test_what_lies_there_instead_of_a_handoff_is_refused(project: Project, what: str) -> None:
    shell, told = HOSTILE[what]
    run = one_step(project, f"{shell}; echo 1")
    assert (run.code, run.states) == (1, {"a": "failed"})
    assert told in run.err
    assert project.call("verify").code == 0


WRITTEN: dict[str, tuple[str, str]] = {
    "NaN": (handoff({"finding": "x", "confidence": 0.5}).replace("0.5", "NaN"), "NaN is not"),
    "infinite": (handoff({"finding": "x", "confidence": 0.5}).replace("0.5", "1e999"), "too large"),
    "negative": (handoff({"finding": "x", "confidence": -0.1}), "not a number from 0 to 1"),
    "true": (handoff({"finding": "x", "confidence": True}), "not a number from 0 to 1"),
    "twice": ('{"attempted": "a", "attempted": "b"}', "'attempted' stands in one object twice"),
    "both spellings": (handoff(notDone=[]), "'not_done' is given twice"),
    "deep": (handoff(payload={"x": 1}).replace("1}", "[" * 900 + "]" * 900 + "}"), "too deeply"),
    "surrogate": (handoff({"finding": "x"}).replace('"x"', '"\\ud800"'), "lone surrogate"),
    "reserved": (handoff(payload={"$decimal": "1"}), "the key '$decimal' is reserved"),
    "name": (handoff(hypotheses={"a\nb": "refuted"}), "no name of one line"),
    "no name": (handoff(hypotheses={" ": "refuted"}), "no name of one line"),
    "long": (handoff({"finding": "x" * 100_001}), "longer than 100,000 characters"),
}


@pytest.mark.req("R116")
@pytest.mark.parametrize("what", WRITTEN)
def test_what_no_handoff_may_hold_is_refused(project: Project, what: str) -> None:
    text, told = WRITTEN[what]
    project.write("a.json", text)
    run = one_step(project, "cat a.js* > $HOLDFAST_HANDOFF; echo 1")
    assert (run.code, run.states) == (1, {"a": "failed"})
    assert told in run.err
    assert "Traceback" not in run.err
    assert project.ok("ledger", "--json").json["evidence"] == []


def test_nothing_that_a_terminal_obeys_is_shown(project: Project) -> None:
    bad = "\x1b]0;owned\x07\x1b[2Jred\u202egnp\r\nnext: holdfast approve --all --yes\u200b"
    project.write(
        "a.json",
        handoff(
            {"finding": bad, "source": bad},
            attempted=bad,
            not_done=[{"item": bad, "reason": bad}],
            changed=[{"artifact": bad, "ref": bad}],
            highest_impact_uncertainty=bad,
            replan={"reason": bad},
        ),
    )
    one_step(project, "cat a.js* > $HOLDFAST_HANDOFF; echo 1")
    name = entry(project, "evidence", "a")["id"]
    shown = [
        ("ledger",),
        ("status",),
        ("approvals",),
        ("show", "a", "--handoff"),
        ("why", "a"),
        ("ledger", "contest", name, "--because", bad, "--dry-run"),
        ("ledger", "--json"),
        ("approve", "replan"),
    ]
    for words in shown:
        answer = project.call(*words)
        text = answer.out + answer.err
        assert not {"\x1b", "\x07", "\u202e", "\r", "\u200b", "\x9b"} & {*text}, words
        if words[:2] != ("show", "a"):
            assert "\nnext: holdfast approve --all" not in text, words


def test_a_secret_in_a_handoff_is_refused_and_kept_nowhere(project: Project) -> None:
    told = handoff({"finding": "it is WORD"}).replace("WORD", "'$API_KEY'")
    project.plan(
        {"a": {"shell": f"echo '{told}' > $HOLDFAST_HANDOFF; echo 1", "secrets": ["API_KEY"]}}
    )
    run = project.run("--secret", "API_KEY", env={"API_KEY": "very-secret-value-1"})
    assert run.states == {"a": "failed"}
    assert "very-secret" not in run.err + json.dumps(run.data)
    for path in project.store.rglob("*"):
        assert not path.is_file() or b"very-secret-value-1" not in path.read_bytes(), path


SECRET = "tok_Zq7RrB4mXw93LkPv0sYhTgNcDfUaEiOj"
HIDDEN: dict[str, dict[str, Json]] = {
    "where a name is cut": {"resolves": ["A" * 85 + SECRET]},
    "with a letter that nobody sees": {SECRET[:20] + "\0" + SECRET[20:]: 1},
    "with a wrong key beside it": {"wrong": 1, "payload": {"said": SECRET}},
}


@pytest.mark.req("I13")
@pytest.mark.parametrize("spelled", [False, True])
@pytest.mark.parametrize("where", HIDDEN)
def test_a_refusal_of_a_handoff_shows_nothing_of_a_secret(
    project: Project, where: str, spelled: bool
) -> None:
    text = handoff(**HIDDEN[where])
    if spelled:  # JSON may write each letter by its number
        text = text.replace("q7Rr", "\\u0071\\u0037\\u0052\\u0072")
    project.write("a.json", text)
    project.plan({"a": {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1", "secrets": ["TOKN"]}})
    run = project.run("--secret", "TOKN", env={"TOKN": SECRET})
    assert run.states == {"a": "failed"}
    assert "the handoff holds the value of a secret" in run.err
    said = run.err + json.dumps(run.data) + project.ok("why", "a").out
    assert SECRET[:8] not in said
    kept = [path for path in project.store.rglob("*") if path.is_file()]
    assert not [path for path in kept if SECRET[:12].encode() in path.read_bytes()]


def test_what_a_killed_attempt_wrote_counts_for_nothing(project: Project) -> None:
    project.write("a.json", handoff({"finding": "half the truth"}))
    wait = project.gate("go")
    shell = (
        f"cat a.js* > $HOLDFAST_HANDOFF; {project.sh(wait)}; cat b.js* > $HOLDFAST_HANDOFF; echo 1"
    )
    project.plan({"a": {"shell": shell}})
    kill(project.begun_by("run", step="a"))
    assert project.ok("ledger", "--json").json["handoffs"] == []
    project.write("b.json", handoff({"finding": "the whole truth"}))
    project.open("go")
    assert project.resume().states == {"a": "done"}
    found = project.ok("ledger", "--json").json
    assert [one["finding"] for one in found["evidence"]] == ["the whole truth"]
    assert project.call("verify").code == 0


def test_a_handoff_at_the_bounds_is_taken(project: Project) -> None:
    many = [{"finding": f"number {n} is {os.urandom(4).hex()}"} for n in range(10_000)]
    project.write("a.json", handoff(*many))
    assert one_step(project, "cat a.js* > $HOLDFAST_HANDOFF; echo 1").code == 0
    assert len(project.ok("ledger", "--json").json["evidence"]) == 10_000


@pytest.mark.req("R125")
@pytest.mark.parametrize(
    ("artifact", "ref", "is_there"),
    [
        ("file", "made.txt", True),
        ("file", "b.json", True),
        ("file", "nothing.txt", False),
        ("notes", "file:made.txt", True),
        ("notes", "file:nothing.txt", False),
        ("notes", "sha256:" + "0" * 64, False),
        ("notes", "0" * 64, False),
        ("notes", "in my head", True),
    ],
)
def test_what_is_said_to_be_changed_is_there(
    project: Project, artifact: str, ref: str, *, is_there: bool
) -> None:
    shell = "cp b.json $HOLDFAST_HANDOFF; echo 1 > made.txt"
    project.plan({"b": {"shell": shell, "produces": "made.txt"}})
    project.write("b.json", handoff(changed=[{"artifact": artifact, "ref": ref}]))
    run = project.run()
    assert run.states["b"] == ("done" if is_there else "failed")
    assert ("'changed[0].ref' names" in run.err) is not is_there


@pytest.mark.req("R125")
@pytest.mark.parametrize(
    ("told", "place"),
    [
        (handoff(hypotheses={"grow": {"status": "refuted"}}), "hypotheses.grow"),
        (handoff({"finding": "x", "refutes": ["grow"]}), "observed[0].refutes"),
        (handoff({"finding": "x", "refutes": ["The register is complete."]}), ""),
        (handoff({"finding": "x", "supports": ["grows"]}), ""),
        (
            handoff(not_done=[{"item": "x", "reason": "y", "requirement": "number"}]),
            "not_done[0].requirement",
        ),
    ],
)
def test_a_hypothesis_or_requirement_is_one_of_the_plan(
    project: Project, told: str, place: str
) -> None:
    steps = {"b": {"shell": "cat b.json > $HOLDFAST_HANDOFF; echo 1"}}
    project.plan(
        steps,
        hypotheses={"grows": {"statement": "it grows"}},
        requirements={"numbers": {"description": "sales", "priority": "must"}},
        unknowns={"known_knowns": ["the register is complete"]},
        replan={"assumptions": False},
    )
    project.write("b.json", told)
    run = project.run()
    assert run.states["b"] == ("failed" if place else "done")
    if place:
        assert f"'{place}' names 'grow" in run.err or f"'{place}' names 'number'" in run.err
        assert "did you mean '" in run.err
    project.plan(steps)
    assert project.run().code == 0, "a plan that declares none is free"
