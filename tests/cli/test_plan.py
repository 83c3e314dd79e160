"""The preview: what it says is what a run then does, and a run can be held to it."""

import json
import os
import subprocess
from typing import Any

import pytest

from tests.cli import models
from tests.cli.project import Project, kill
from tests.cli.terminal import at_terminal


def pair(project: Project, text: str = "made", **more: Any) -> None:
    """a writes a file, b reads it."""
    project.plan(
        {
            "a": {"shell": project.sh(f"echo {text} > out.txt"), "produces": "out.txt", **more},
            "b": {"shell": project.sh("cat $HOLDFAST_INPUTS/a"), "needs": ["a"]},
        }
    )


def decisions(project: Project, *words: str) -> dict[str, str]:
    steps = project.ok("plan", "--json", *words).json["steps"]
    return {name: step["decision"] for name, step in steps.items()}


# --- what is said is what is done ---------------------------------------------------------------------


@pytest.mark.req("R107", "R55")
def test_an_edit_is_announced_as_kept_and_what_reads_it_as_running(project: Project) -> None:
    pair(project)
    project.run()
    project.ran()
    project.write("out.txt", "my own\n")
    said = project.ok("plan").out
    assert "~ a     your edit of out.txt is guarded and kept" in said
    assert "~ b     a step it needs changed: a" in said
    data = project.ok("plan", "--json").json
    assert data["changes"]["output_modified"] == ["a"]
    assert data["details"]["a"]["means"] == "adopt"
    run = project.run()
    assert run.codes == {"a": "amended", "b": "upstream_changed"}
    assert project.ran() == ["b"]
    assert project.read("out.txt") == "my own\n"


@pytest.mark.req("R107")
def test_an_edit_in_the_way_of_a_changed_step_is_announced_as_replaced(project: Project) -> None:
    pair(project, "one")
    project.run()
    project.write("out.txt", "mine\n")
    pair(project, "two")
    said = project.ok("plan").out
    assert "its command changed: shell; your edit of out.txt is stored, then replaced" in said
    stopped = project.ok("plan", "--on-drift", "fail").out
    assert "! a     an output was changed by hand: out.txt; --on-drift fail stops here" in stopped
    assert "! b     needs a, which cannot run" in stopped
    failed = project.run("--on-drift", "fail")
    assert failed.states == {"a": "failed", "b": "skipped"}
    run = project.run()
    assert "your 'out.txt' is kept" in run.err
    assert project.read("out.txt") == "two\n"


@pytest.mark.req("R107")
def test_files_that_will_be_written_from_the_store_are_announced(project: Project) -> None:
    pair(project)
    project.run()
    project.ok("amend", "a", "-", stdin=b"better\n")
    said = project.call("plan", "--detailed-exitcode")
    assert said.code == 10
    assert "= a     a person's version stands; writes out.txt from the store" in said.out
    assert "Writes 1 file from the store: out.txt" in said.out
    assert project.run().states == {"a": "reused", "b": "done"}
    assert project.read("out.txt") == "better\n"

    project.root.joinpath("out.txt").chmod(0o755)
    executable = project.call("plan", "--detailed-exitcode")
    assert executable.code == 10
    assert "Runs nothing\n" in executable.out
    assert "Writes 1 file from the store: out.txt" in executable.out
    assert project.run().states == {"a": "reused", "b": "reused"}
    assert not os.access(project.root / "out.txt", os.X_OK)
    calm = project.call("plan", "--detailed-exitcode")
    assert (calm.code, "Nothing to do: all 2 steps stand." in calm.out) == (0, True)


@pytest.mark.req("R107")
def test_what_lay_there_before_and_what_was_undone_is_announced(project: Project) -> None:
    project.write("out.txt", "here first\n")
    pair(project)
    assert "first time; what lies at out.txt is stored, then replaced" in project.ok("plan").out
    assert "your 'out.txt' is kept" in project.run().err
    project.ok("undo", "a")
    steps = project.ok("plan", "--json").json["steps"]
    assert (steps["a"]["decision"], steps["a"]["reason"]["code"]) == ("run", "undone")
    assert steps["b"]["decision"] == "maybe", "the same bytes come out again"
    assert project.run().states == {"a": "done", "b": "reused"}


@pytest.mark.req("R107", "R56")
def test_a_failure_before_and_the_change_since_are_both_named(project: Project) -> None:
    project.write("in.txt", "1")
    body = project.sh("grep -v bad in.txt")
    project.plan({"s": {"shell": body, "inputs": ["in.txt"]}})
    project.write("in.txt", "bad")
    assert project.run().code == 1
    project.write("in.txt", "better")
    said = project.ok("plan").out
    assert "~ s     its previous attempt failed; since then an input changed: in.txt" in said
    assert project.run().codes == {"s": "never_ran"}, "nothing was accepted before"
    project.write("in.txt", "bad again")
    assert project.run().code == 1
    said = project.ok("plan").out
    assert "~ s     its previous attempt failed, after an input changed: in.txt" in said
    assert project.run().code == 1


@pytest.mark.req("R107")
def test_what_a_killed_step_left_is_not_taken_for_an_edit(project: Project) -> None:
    pair(project)
    project.run()
    body = project.sh(f"echo half > out.txt; {project.gate('on')}; echo whole > out.txt")
    project.plan({"a": {"shell": body, "produces": "out.txt"}})
    process = project.begun_by("run", step="a")
    kill(process)
    said = project.ok("plan").out
    assert "your edit" not in said
    assert "its previous attempt was interrupted" in said
    project.open("on")
    assert project.run().codes == {"a": "previous_interrupted"}


@pytest.mark.req("R107", "R56")
def test_a_command_that_never_ran_did_not_change(project: Project) -> None:
    step = {"uses": "python", "run": "nomod:f"}
    project.plan({"a": step, "b": {**step, "needs": ["a"]}, "c": {"run": ["true"]}})
    steps = project.ok("plan", "--json").json["steps"]
    assert {s: found["reason"]["code"] for s, found in steps.items()} == dict.fromkeys(
        "abc", "never_ran"
    )
    assert project.events(project.run().id)
    begun = [event for event in project.events() if event["event"] == "attempt_started"]
    assert {event["reason"]["code"] for event in begun if event["attempt"] == 1} == {"never_ran"}


@pytest.mark.req("R107")
def test_a_reader_of_files_that_are_still_to_be_made_is_only_maybe(project: Project) -> None:
    steps: dict[str, Any] = {
        "a": {"shell": project.sh("echo made > out.txt"), "produces": "out.txt"},
        "b": {"shell": project.sh("cat out.txt"), "needs": ["a"], "inputs": ["out.txt"]},
    }
    project.plan(steps)
    assert decisions(project) == {"a": "run", "b": "maybe"}
    project.run()
    os.remove(project.root / "out.txt")
    assert decisions(project) == {"a": "reuse", "b": "maybe"}
    assert project.run().states == {"a": "reused", "b": "reused"}
    assert decisions(project) == {"a": "reuse", "b": "reuse"}


@pytest.mark.req("R107")
def test_below_a_result_that_may_not_be_reused_nothing_is_promised(project: Project) -> None:
    seen = project.folder / "seen"  # outside: what the command names inside is part of its key
    once = f"[ -e {seen} ] || {{ echo moved > in.txt; : > {seen}; }}; echo the same"
    project.plan(
        {
            "a": {"shell": project.sh(once), "inputs": ["in.txt"]},
            "b": {"shell": project.sh(), "needs": ["a"]},
        }
    )
    project.write("in.txt", "first\n")
    project.run()
    project.write("in.txt", "first\n")
    assert decisions(project) == {"a": "run", "b": "maybe"}
    assert project.run().states == {"a": "done", "b": "reused"}


@pytest.mark.req("R107")
def test_steps_that_cannot_be_reached_are_said_to_wait(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": project.sh(), "inputs": ["nope*"]},
            "b": {"shell": project.sh(), "needs": [{"step": "a", "type": "sequence"}]},
            "c": {"shell": project.sh()},
        }
    )
    assert decisions(project) == {"a": "wait", "b": "wait", "c": "run"}
    assert "Runs 1 of 3 · 2 cannot run" in project.ok("plan").out
    assert project.run().states == {"a": "failed", "b": "skipped", "c": "done"}


# --- times, changes -------------------------------------------------------------------------------------


@pytest.mark.req("R52", "R53", "R55")
def test_the_plan_is_compared_with_that_of_an_earlier_run(project: Project) -> None:
    project.plan(
        {
            "keep": {"shell": "echo 1"},
            "shape": {"shell": "echo 1 > s.txt", "produces": "s.txt"},
            "below": {"shell": "echo 1", "needs": ["keep"]},
            "old": {"shell": "echo 1 > old.txt", "produces": "old.txt"},
        }
    )
    first = project.run().id
    new: dict[str, Any] = {
        "keep": {"shell": "echo 1"},
        "shape": {"shell": "echo 1 > s.txt", "produces": "s.txt", "contract": "one line"},
        "below": {"shell": "echo 1", "needs": ["keep", "fresh"]},
        "fresh": {"shell": "echo 1"},
    }
    project.plan(new)
    data = project.ok("plan", "--json").json
    assert data["changes"] == {
        "added": ["fresh"],
        "removed": ["old"],
        "contract_changed": ["shape"],
        "deps_changed": ["below"],
        "output_modified": [],
    }
    assert data["against"] == first
    assert data["totals"]["without_history"] == 1
    took = data["steps"]["shape"]["duration_ms"]
    assert 0 < took["p50"] <= took["p90"] <= data["totals"]["duration_ms"]["p90"]
    assert data["steps"]["fresh"]["duration_ms"] == {"p50": 0, "p90": 0}
    diff = project.ok("run", "--diff-plan").out
    assert " + fresh: added\n - old: removed\n ~ below: needs (+fresh) changed\n" in diff
    project.run()
    assert project.ok("plan", "--json").json["changes"]["added"] == []
    assert project.ok("plan", "--json", "--against", first).json["changes"]["added"] == ["fresh"]
    assert project.ok("plan", "--json", "--against", "@-1").json["changes"]["removed"] == ["old"]
    assert "'nope' is neither a run nor a git revision" in project.refused(
        2, "plan", "--against", "nope"
    )


@pytest.mark.req("R52")
def test_the_plan_is_compared_with_that_of_a_git_revision(project: Project) -> None:
    def git(*words: str) -> None:
        name = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *name, *words], cwd=project.root, check=True, capture_output=True)

    git("init", "-q", "-b", "trunk")
    project.plan({"a": {"shell": "echo a"}, "b": {"shell": "echo b"}})
    git("add", "plan.yaml")
    git("commit", "-q", "-m", "first")
    project.plan({"a": {"shell": "echo a"}, "c": {"shell": "echo c"}})
    data = project.ok("plan", "--json", "--against", "trunk").json
    assert (data["changes"]["added"], data["changes"]["removed"]) == (["c"], ["b"])
    assert "compared with git trunk" in project.ok("plan", "--against", "trunk").out
    assert "git revision" in project.refused(2, "plan", "--against", "--help-all")


@pytest.mark.req("R99")
def test_without_an_earlier_plan_there_is_nothing_to_compare(project: Project) -> None:
    pair(project)
    assert "No previous plan to compare" in project.ok("run", "--diff-plan").out
    assert not project.store.exists()
    assert project.ok("run", "--diff-plan", "--json").json["before"] is None


# --- files of steps that left -----------------------------------------------------------------------------


@pytest.mark.req("R53")
def test_files_of_removed_steps_are_listed_kept_or_pruned_by_choice(project: Project) -> None:
    steps: dict[str, Any] = {
        name: {"shell": project.sh(f"echo {name} > {name}.txt"), "produces": f"{name}.txt"}
        for name in ("stay", "old", "mine", "read")
    }
    project.plan(steps)
    project.run()
    project.write("mine.txt", "changed by hand\n")
    left = {**steps["stay"], "inputs": ["read*.txt"]}
    project.plan({"stay": left})
    preview = project.ok("plan").out
    assert (
        "- old   left the plan; old.txt is kept (delete: holdfast run --removed prune)" in preview
    )
    assert "old.txt" not in project.run("--removed", "keep").err
    listed = project.run().err
    assert "old.txt: kept, though its step 'old' left the plan" in listed
    assert "mine.txt" not in listed, "a person wrote that"
    assert project.has("old.txt")
    pruned = project.run("--removed", "prune").err
    assert "old.txt: deleted" in pruned
    assert [project.has(f"{name}.txt") for name in steps] == [True, False, True, True]
    assert "old.txt" not in project.run().err


def test_many_removed_steps_are_told_in_one_row(project: Project) -> None:
    here = {"s": {"shell": "true"}}
    project.plan({**here, **{f"old-{n}": {"shell": "true"} for n in range(31)}})
    project.run("-s", "s")
    project.plan(here)
    assert "- 31 steps  left the plan (list: -v)" in project.ok("plan").out
    assert project.ok("-v", "plan").out.count("left the plan") == 31


def test_a_file_that_somebody_changed_is_said_to_be_kept(project: Project) -> None:
    steps = {
        name: {"shell": f"echo {name} > {name}.txt", "produces": f"{name}.txt"} for name in "ab"
    }
    project.plan({**steps, "c": {"shell": "echo c"}})
    project.run()
    project.write("a.txt", "mine")
    project.plan({"c": {"shell": "echo c"}})
    assert "a.txt" not in project.run().err
    pruned = project.run("--removed", "prune").err
    assert "- a.txt: kept, somebody changed it since 'a' made it" in pruned
    assert "- b.txt: deleted" in pruned
    assert project.read("a.txt") == "mine"
    assert not project.has("b.txt")


# --- a run that is held to a preview ------------------------------------------------------------------------


@pytest.mark.req("R98")
def test_a_saved_preview_is_run_as_it_was_shown_or_not_at_all(project: Project) -> None:
    project.write("in.txt", "1")
    steps: dict[str, Any] = {
        "a": {"shell": project.sh("cat in.txt"), "inputs": ["in.txt"]},
        "send": {"shell": project.sh(), "needs": ["a"], "effects": "external"},
    }
    project.plan(steps)
    saved = project.ok("plan", "-o", "sub.json").out
    assert "next: holdfast run sub.json" in saved
    data = json.loads(project.read("sub.json"))
    assert (data["schema"], data["file"]) == ("holdfast.preview/1", "plan.yaml")
    assert len(data["digest"]) == 64
    assert not project.store.exists()
    project.write("in.txt", "2")
    stale = project.refused(6, "run", "sub.json")
    assert "'sub.json' is stale: 'a' stands on something else than before" in stale
    assert project.ran() == []
    assert not project.store.exists(), "refused before anything was created"
    project.write("in.txt", "1")
    run = project.run("sub.json", env={})
    assert run.code == 0, "a saved preview is the consent"
    assert project.ran() == ["a", "send"]
    again = project.refused(6, "run", "sub.json")
    assert "'a' was 'run', is 'reuse'" in again
    assert "no --force" in project.refused(2, "run", "sub.json", "--force")


@pytest.mark.req("R55")
def test_who_asks_what_changed_looks_at_it_before_it_runs(project: Project) -> None:
    pair(project)
    code, seen = at_terminal(project, "n", "run", "--incremental", "--verbose")
    assert (code, "Proceed? [Y/n]" in seen) == (130, True)
    assert "nothing was begun" in seen
    assert not project.store.exists()
    code, seen = at_terminal(project, "", "run", "-i", "-v")
    assert code == 0, seen
    code, seen = at_terminal(project, "", "run", "-i", "-v")
    assert (code, "Proceed?" in seen) == (0, False), "nothing is to be done"
    assert project.call("run", "-i", "-v", "--force-node", "a").code == 0, "nobody is there"


@pytest.mark.req("R98")
def test_a_preview_is_saved_over_nothing_else(project: Project) -> None:
    pair(project)
    before = project.read("plan.yaml")
    assert "no saved preview" in project.refused(2, "plan", "-o", "plan.yaml")
    assert project.read("plan.yaml") == before
    assert "cannot write" in project.refused(2, "plan", "-o", "nowhere/x.json")
    project.ok("plan", "-o", "p.json", "--force-node", "b")
    project.ok("plan", "-o", "p.json", "--force-node", "a")
    assert json.loads(project.read("p.json"))["options"]["force_steps"] == ["a"]
    project.write("torn.json", '{"schema": "holdfast.preview/1"}')
    assert "not one that was saved whole" in project.refused(2, "run", "torn.json")
    whole = project.read("p.json")
    for torn in (whole[:300], whole.replace('"line": "demo"', '"row": "demo"')):
        project.write("torn.json", torn)
        told = project.refused(2, "run", "torn.json")
        assert "not one that was saved whole" in told
        assert "hint: holdfast plan -o torn.json" in told


@pytest.mark.parametrize("part", ["step", "model", "price", "waves", "models", "totals"])
def test_a_saved_preview_is_held_to_what_it_says(project: Project, part: str) -> None:
    """Who reads it agrees to that: a copy that hides what costs money is no consent to it."""
    project.plan({"a": {"shell": project.sh()}, "b": models.step()})
    with models.served(project, "x") as server:
        project.ok("plan", "-o", "r.json")
        data = json.loads(project.read("r.json"))
        paid = data["steps"]["b"]
        if part == "step":
            data["steps"].pop("b")
            data["details"].pop("b")
        elif part == "model":
            paid["model"] = None
        elif part == "price":
            paid["cost_usd"] = data["steps"]["a"]["cost_usd"]
        else:
            data[part] = {}
        project.write("e.json", json.dumps(data))
        assert "'e.json' is stale" in project.refused(6, "run", "e.json")
        assert not server.requests
        assert project.run("r.json").code == 0


@pytest.mark.parametrize("command", ["plan", "check", "graph"])
def test_a_saved_preview_is_no_plan(project: Project, command: str) -> None:
    pair(project)
    project.ok("plan", "-o", "r.json")
    said = project.refused(2, command, "r.json")
    assert "'r.json' is a saved preview, no plan" in said
    assert "hint: holdfast run r.json" in said
    project.write(
        "x.json", project.read("r.json").replace("holdfast.preview/1", "holdfast.preview/9")
    )
    for words in ((command, "x.json"), ("run", "x.json")):
        assert "a saved preview of the unknown version 9" in project.refused(2, *words)


def test_a_preview_against_another_version_is_run_as_it_was_shown(project: Project) -> None:
    project.plan({"a": {"shell": project.sh()}})
    project.run()
    project.plan({"a": {"shell": project.sh()}, "b": {"shell": project.sh()}})
    project.run()
    project.plan({"c": {"shell": project.sh()}})
    project.ok("plan", "--against", "@-1", "-o", "r.json")
    assert project.run("r.json").code == 0


@pytest.mark.req("R98")
def test_a_run_is_held_to_the_digest_of_a_preview(project: Project) -> None:
    pair(project)
    digest = project.ok("plan", "--json").json["digest"]
    assert project.ok("plan", "--json").json["digest"] == digest, "in another process"
    assert "no digest of a preview" in project.refused(2, "run", "--preview", digest[:11])
    stale = project.refused(6, "run", "--preview", "0" * 12)
    assert f"the preview is {digest[:12]} now, not 000000000000" in stale
    assert project.ran() == []
    assert project.run("--preview", digest[:12]).code == 0
    project.refused(6, "run", "--preview", digest)


@pytest.mark.req("R98")
@pytest.mark.parametrize("flag", ["--show-plan", "--dry-run"])
def test_a_run_only_shows_its_plan_if_nobody_can_answer(project: Project, flag: str) -> None:
    pair(project)
    shown = project.ok("run", flag)
    assert ("Runs 2 of 2" if flag == "--dry-run" else "Steps: 2 (2 run)") in shown.out
    assert "Execute?" not in shown.out + shown.err
    assert not project.store.exists()
    assert project.ran() == []


@pytest.mark.req("R98")
def test_a_run_shows_its_plan_and_asks_at_a_terminal(project: Project) -> None:
    pair(project)
    code, seen = at_terminal(project, "n", "run", "--show-plan")
    assert (code, project.ran()) == (0, [])
    assert "Execute? [Y/n]" in seen
    assert not project.store.exists()
    code, seen = at_terminal(project, "", "run", "--dry-run")
    assert (code, project.ran(), "Execute?" in seen) == (0, [], False)
    code, seen = at_terminal(project, "", "run", "--show-plan")
    assert (code, project.ran()) == (0, ["a", "b"])


@pytest.mark.req("R55")
def test_before_an_outside_effect_the_preview_is_shown_and_a_person_asked(project: Project) -> None:
    project.plan({"send": {"shell": project.sh(), "effects": "external"}})
    code, seen = at_terminal(project, "n", "run")
    assert (code, project.ran()) == (130, [])
    assert "first time · external effect" in seen
    assert "Proceed? [y/N]" in seen
    code, seen = at_terminal(project, "", "run")
    assert (code, project.ran()) == (130, []), "Enter alone is no consent"
    code, seen = at_terminal(project, "", "run", "--show-plan")
    assert (code, project.ran(), "Execute? [y/N]" in seen) == (0, [], True)
    code, seen = at_terminal(project, "y", "run")
    assert (code, project.ran()) == (0, ["send"])
    code, seen = at_terminal(project, "", "run")
    assert (code, "Proceed?" in seen) == (0, False), "nothing goes outside: the receipt stands"


def test_a_selection_is_previewed_as_it_is_run(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": project.sh()},
            "b": {"shell": project.sh(), "needs": ["a"]},
            "c": {"shell": project.sh(), "needs": ["b"]},
        }
    )
    assert decisions(project, "-s", "b+") == {"a": "wait", "b": "wait", "c": "wait"}
    assert "needs a, which is not selected" in project.ok("plan", "-s", "b+").out
    assert project.run("-s", "b+").codes == {
        "a": "not_selected",
        "b": "dependency_skipped",
        "c": "dependency_skipped",
    }
    assert decisions(project, "-s", "+b") == {"a": "run", "b": "run", "c": "wait"}
    assert project.run("-s", "+b").states == {"a": "done", "b": "done", "c": "skipped"}


def test_a_look_loads_nothing_heavy(project: Project) -> None:
    pair(project)
    project.run()
    lines = project.call("plan", env={"PYTHONPROFILEIMPORTTIME": "1"}).err
    loaded = {line.rpartition("|")[2].strip() for line in lines.splitlines()}
    heavy = {"asyncio", "rich", "jsonschema", "pathspec", "subprocess"}
    assert not loaded & heavy
