"""why: the content behind a change, the root cause, what else stayed, and what would be otherwise."""

from typing import Any

import pytest

from tests.cli.here import run_here
from tests.cli.project import Project, kill

ROOT = """\
  root cause  extract: an input changed
                sources/nl.md:2
                  - sales rose 24 %
                  + sales rose 34 %
  chain       publish
                because brief changed
                  because size changed
                    because extract changed
                      because sources/nl.md changed
"""
NL = "Sales in Q1\nsales rose 24 %\nend\n"


def chain(project: Project, **more: Any) -> dict[str, dict[str, Any]]:
    """extract → size → brief → publish; extract reads sources/."""
    project.write("sources/nl.md", NL)
    project.write("sources/de.md", "nothing\n")
    project.write("check.sh", "exit 0\n")
    steps: dict[str, dict[str, Any]] = {
        "extract": {"shell": "cat sources/*.md", "inputs": ["sources/*.md"]},
        "size": {
            "shell": "wc -l < $HOLDFAST_INPUTS/extract",
            "needs": ["extract"],
            "with": {"unit": "lines"},
        },
        "brief": {
            "shell": "cat $HOLDFAST_INPUTS/size",
            "needs": ["size"],
            "prompt": "Write.\nKeep it under 300 words.\n",
            "guards": [{"command": ["sh", "check.sh"], "name": "short"}],
        },
        "publish": {"shell": "cat $HOLDFAST_INPUTS/brief", "needs": ["brief"], **more},
    }
    project.plan(steps)
    return steps


def said(project: Project, *words: str) -> str:
    return project.ok("why", *words).out


@pytest.mark.req("R169")
def test_a_changed_file_is_shown_with_its_lines_and_what_stayed(project: Project) -> None:
    chain(project)
    run = run_here(project).run
    project.write("sources/nl.md", NL.replace("24", "34") + "more\n")
    answer = project.why("extract")
    (change,) = answer["changed"]
    (piece,) = change["content"]
    assert (change["part"], change["names"]) == ("inputs", ["sources/nl.md"])
    assert (piece["name"], piece["added"], piece["removed"]) == ("sources/nl.md", 2, 1)
    assert piece["edits"][0] == {
        "line": 2,
        "removed": ["sales rose 24 %"],
        "added": ["sales rose 34 %"],
    }
    assert answer["unchanged"] == ["uses", "shell", "guards"]
    assert answer["after"] == ["size"]
    expected = f"with sources/nl.md as before this would be reused from {run[:10]}"
    assert answer["otherwise"].startswith(expected)
    text = said(project, "extract")
    assert text.startswith("extract will run again: an input changed: sources/nl.md.\n")
    assert "  changed     sources/nl.md:2  (+2 −1)\n" in text
    assert "                - sales rose 24 %\n                + sales rose 34 %\n" in text
    assert "  unchanged   generator · command · 1 of 2 inputs\n" in text
    assert "  After it: size.\n" in text


@pytest.mark.req("R169")
def test_the_root_cause_comes_first_with_its_chain_and_content(project: Project) -> None:
    steps = chain(project)
    run_here(project)
    project.write("sources/nl.md", NL.replace("24", "34"))
    text = said(project, "publish")
    assert ROOT in text
    answer = project.why("publish")
    assert [link["step"] for link in answer["root"]] == ["extract", "size", "brief", "publish"]
    assert {link["reason"]["code"] for link in answer["root"][1:]} == {"upstream_changed"}

    steps["size"]["with"] = {"unit": "words"}
    steps["brief"]["prompt"] = "Write.\nKeep it under 200 words.\n"
    project.plan(steps)
    answer = project.why("publish")
    assert [root["step"] for root in answer["roots"]] == ["brief", "size", "extract"]
    assert all(root["changed"] for root in answer["roots"])
    text = said(project, "publish")
    assert text.startswith(
        "publish will run again: 3 steps above it changed: brief, size, extract."
    )
    assert "with.unit: lines → words" in text
    assert "prompt:2\n                  - Keep it under 300 words." in text
    own = said(project, "brief")
    assert own.index("changed     prompt:2") < own.index("also above  size")

    run_here(project)
    project.write("sources/nl.md", "all new\n")
    past = said(project, "publish", "--run", "@")
    assert "+ sales rose 34 %" in past, "the run is told from what it saw, not from the disk"
    assert "all new" not in past
    assert "artifact of" not in past, "brief gave the same"
    compared = project.why("extract", "--run", "@", "--against", "@-1")
    assert compared["changed"][0]["content"][0]["edits"][0]["added"] == ["sales rose 34 %"]
    now = said(project, "extract", "--against", "@-1")
    assert "extract differs from what it was in r-" in now
    assert "- sales rose 24 %" in now
    assert "+ all new" in now
    assert "is as it was in" not in now


def test_many_causes_and_long_chains_stay_readable(project: Project) -> None:
    steps: dict[str, dict[str, Any]] = {
        f"root{n}": {"shell": "true", "with": {"n": 1}} for n in range(6)
    }
    above = list(steps)
    for n in range(12):
        steps[f"s{n}"] = {"shell": "true", "needs": above}
        above = [f"s{n}"]
    project.plan(steps)
    run_here(project)
    steps["root0"]["with"] = {"n": 2}
    project.plan(steps)
    text = said(project, "s11")
    assert "… through 5 more steps …" in text
    assert len(text.splitlines()) < 22
    for n in range(6):
        steps[f"root{n}"]["with"] = {"n": 2}
    project.plan(steps)
    text = said(project, "s11")
    assert text.count("n: 1 → 2") == 3
    assert "root cause  and 3 more: root3, root4, root5" in text
    assert len(project.why("s11")["roots"]) == 6


@pytest.mark.req("R169")
def test_why_not_says_what_stands_and_what_would_make_it_run(project: Project) -> None:
    steps = chain(project)
    steps["extract"]["fresh_for"] = "7d"
    project.plan(steps)
    run = run_here(project).run
    answer = project.why("extract", "--not")
    assert (answer["decision"], answer["reason"]["code"]) == ("reuse", "unchanged")
    assert answer["notes"]["fresh"] == "for another 6 days"
    assert run[:10] in answer["notes"]["last made"]
    assert "sources/de.md, sources/nl.md" in answer["notes"]["would run"]
    text = said(project, "brief", "--not")
    assert text.startswith("brief is reused: all 6 parts of its key are equal.")
    assert "for as long as nothing that decides it changes" in text
    assert "holdfast run --force-node brief" in text
    project.write("sources/nl.md", "new\n")
    text = said(project, "extract", "--not")
    assert text.startswith("extract is not reused: an input changed: sources/nl.md.")
    for wrong in (("--not", "--wait"), ("--not", "--run", "@"), ("--wait", "--against", "@")):
        project.refused(2, "why", "extract", *wrong)


@pytest.mark.req("R169")
def test_why_wait_names_what_is_unfinished(project: Project) -> None:
    steps = chain(project, effects="external")
    assert "there is none yet" in said(project, "brief", "--wait")
    steps["extract"]["shell"] = project.sh(f"{project.gate('go')}; echo x")
    steps["publish"]["shell"] = project.sh(f"{project.gate('sent')}; echo sent")
    project.plan(steps)
    engine = project.begun_by("run", "--yes", step="extract")
    waiting = project.why("brief", "--wait")
    assert (waiting["decision"], waiting["reason"]) == ("wait", None)
    assert waiting["notes"]["waits for"] == "size: pending"
    assert waiting["notes"]["behind it"].startswith("extract: running for")
    assert "does not wait" in said(project, "extract", "--wait")
    project.open("go")
    kill(engine)
    assert "the engine of r-" in said(project, "brief", "--wait")

    engine = project.begun_by("run", "--yes", step="publish")
    kill(engine)
    project.open("sent")
    assert project.resume("--yes").code == 3
    held = project.why("publish", "--wait")
    assert (held["decision"], held["reason"]["code"]) == ("wait", "effect_unconfirmed")
    assert "holdfast retry publish" in held["next"][0]
    assert "look whether it happened" in said(project, "publish", "--wait")


def test_a_limit_and_a_failure_are_told_as_what_is_waited_for(project: Project) -> None:
    project.plan({name: {"shell": "echo x"} for name in "ab"}, limits={"attempts": 1})
    assert project.run("-j", "1").code == 5
    text = said(project, "b", "--wait")
    assert "is limit: a limit was reached: attempts" in text
    assert "1 of 1 attempts are used" in text
    assert "next: holdfast resume" in text
    project.plan({"a": {"shell": "exit 1"}, "b": {"shell": "true", "needs": ["a"]}})
    run_here(project)
    assert "it is skipped, Dependency 'a' failed" in said(project, "b", "--wait")
    root = said(project, "b", "--run", "@")
    assert "root cause  a: its command failed" in root
    assert "because a failed" in root


def test_of_several_failed_steps_the_logs_of_the_one_asked_about_are_named(
    project: Project,
) -> None:
    project.plan({"a": {"shell": "exit 1"}, "b": {"shell": "exit 1"}})
    run_here(project)
    assert "next: holdfast logs b\n" in said(project, "b", "--run", "@")


@pytest.mark.req("R169")
def test_a_failed_step_is_told_with_its_last_words_and_what_it_blocks(project: Project) -> None:
    steps = chain(project)
    project.write("check.sh", "echo too long: 340 words; exit 1\n")
    steps["brief"]["retries"] = 2
    project.plan(steps)
    run_here(project)
    text = said(project, "brief", "--run", "@")
    assert text.startswith("brief failed in r-")
    assert "guard 'short' rejected 3 of 3 attempts." in text
    assert "  attempt 3   too long: 340 words\n" in text
    assert "  blocked     publish      (2 others are done and kept)\n" in text
    assert "next: holdfast logs brief\n      holdfast retry brief\n" in text


@pytest.mark.req("R169")
def test_scripts_tools_outputs_and_people_are_shown_with_their_content(project: Project) -> None:
    version = project.folder / "version"
    version.write_text("tool 1\n")
    project.write("make.sh", "echo one > out.txt\n")
    project.write("work.py", "from part import WORD\n\n\ndef make():\n    return WORD\n")
    project.write("part.py", "WORD = 'one'\n")
    project.plan(
        {
            "script": {"run": ["sh", "make.sh"], "produces": "out.txt"},
            "tool": {"shell": "true", "tool_versions": {"tool": ["cat", str(version)]}},
            "code": {"uses": "python", "run": "work:make"},
            "env": {"shell": "true", "env": ["COLOUR"]},
            "top": {"shell": "echo made"},
            "low": {"shell": "cat $HOLDFAST_INPUTS/top", "needs": ["top"]},
        }
    )
    assert project.run().code == 0
    project.write("out.txt", "by hand\n")
    assert "out.txt:1\n                - one\n                + by hand" in said(project, "script")
    project.write("make.sh", "echo two > out.txt\n")
    version.write_text("tool 2\n")
    project.write("part.py", "WORD = 'two'\n")
    project.ok("amend", "top", "-", stdin=b"mine\n")
    assert "make.sh:1\n                - echo one > out.txt" in said(project, "script")
    assert "- tool 1\n                + tool 2" in said(project, "tool")
    assert "part.py:1\n                - WORD = 'one'" in said(project, "code")
    assert "artifact of top:1\n                - made\n                + mine" in said(
        project, "low"
    )
    blue = project.call("why", "env", env={"COLOUR": "blue"}).out
    assert "COLOUR: its value changed (values are never kept)" in blue
    assert "blue" not in blue


@pytest.mark.req("R169")
def test_content_that_is_gone_is_never_an_error(project: Project) -> None:
    chain(project)
    project.write("sources/.env", "TOKEN=hunter2\n")
    project.write("sources/big.md", "x" * 70_000)
    steps = {"s": {"shell": "true", "inputs": ["sources/*", "sources/.env"]}}
    project.plan(steps)
    run_here(project)
    stored = b"".join(p.read_bytes() for p in project.store.rglob("*") if p.is_file())
    assert b"hunter2" not in stored, "files that usually hold secrets are not kept"
    project.write("sources/.env", "TOKEN=other\n")
    project.write("sources/nl.md", "new\n")
    project.write("sources/big.md", "y" * 70_000)
    text = said(project, "s")
    assert text.count("(content not kept)") == 2
    with project.database() as database:
        database.execute("DELETE FROM blob WHERE content = ?", (NL.encode(),))
    assert said(project, "s").count("(content not kept)") == 3
    assert project.ok("verify")
    project.ok("rebuild")
    assert project.run().code == 0


def in_pairs(project: Project, a: str, b: str) -> None:
    project.write("a.txt", f"{a}\n")
    project.write("b.txt", f"{b}\n")


@pytest.mark.req("R169", "R56")
def test_what_was_tried_and_taken_back_is_no_cause(project: Project) -> None:
    below = {"shell": project.sh("cat b.txt"), "needs": ["a"], "inputs": ["b.txt"]}
    project.plan({"a": {"run": ["cat", "a.txt"]}, "b": below})
    in_pairs(project, "a1", "b1")
    first = project.run()
    in_pairs(project, "a1", "b2")
    project.run()
    in_pairs(project, "a1", "b1")
    assert set(project.run().codes.values()) == {"unchanged"}

    in_pairs(project, "a2", "b1")
    below_a = {"code": "upstream_changed", "because": ["a"], "text": "a step it needs changed: a"}
    assert project.call("plan", "--json").json["steps"]["b"]["reason"] == below_a
    told = project.why("b")
    assert told["reason"] == below_a
    assert [item["part"] for item in told["changed"]] == ["upstream"]
    assert "inputs" in told["unchanged"]
    assert told["otherwise"].startswith("with a.txt as before this would be reused from")
    assert first.id[:10] in told["otherwise"]
    run = project.run()
    assert (run.codes["b"], run.because("b")) == ("upstream_changed", ["a"])
    past = project.why("b", "--run", "@")
    assert [item["part"] for item in past["changed"]] == ["upstream"]

    in_pairs(project, "a1", "b1")
    project.run()
    in_pairs(project, "a1", "b3")
    told = project.why("b")
    assert [item["part"] for item in told["changed"]] == ["inputs"], "a is as in the last run"
    assert project.run().because("b") == ["b.txt"]
    past = project.why("b", "--run", "@")
    assert [item["part"] for item in past["changed"]] == ["inputs"]
    (piece,) = past["changed"][0]["content"]
    assert piece["edits"] == [{"line": 1, "removed": ["b1"], "added": ["b3"]}]
