"""Steps that change project files in copies: taken over all or none, reused, put back, undone."""

import hashlib
import json
import os
from typing import Any

import pytest

from tests.cli.project import Project, finish_run, until
from tests.gitrepo.repository import git, inside, repository

SCRATCH = {"workspace": "scratch", "effects": "workspace"}
WORKTREE = {"workspace": "worktree", "effects": "workspace"}


def committed(project: Project, **files: str) -> None:
    repository(project.root, {name.replace("__", "/"): text for name, text in files.items()})


@pytest.mark.req("C27")
@pytest.mark.parametrize("where", [SCRATCH, WORKTREE])
def test_changes_are_taken_over_and_are_the_artifact(project: Project, where: Any) -> None:
    committed(project, a="a\n", gone="gone\n", same="same\n")
    body = "echo b > a; rm gone; mkdir -p new; echo n > new/x.sh; chmod 755 new/x.sh; echo said"
    project.plan({"s": {"shell": body, "inputs": ["a", "gone", "same"], **where}})
    run = project.run()
    assert run.code == 0
    assert project.read("a") == "b\n"
    assert not project.has("gone")
    assert os.access(project.root / "new/x.sh", os.X_OK)
    shown = project.ok("show", "s").out
    assert [line.split()[-1] for line in shown.splitlines()] == ["a", "new/x.sh", "gone"]
    assert shown.splitlines()[-1].startswith("gone")
    assert project.ok("logs", "s").out.strip().endswith("said")
    assert project.ok("verify").code == 0


@pytest.mark.parametrize("where", [SCRATCH, WORKTREE])
def test_the_items_of_a_list_change_files_too(project: Project, where: Any) -> None:
    """Their ids have what no name of a file may have, and may be as long as names are."""
    committed(project, a="a\n")
    keys = ["nl", "b c/d~,é", "k" * 150]
    body = 'echo "$(head -c 2 "$HOLDFAST_WITH/n")" > "$(head -c 2 "$HOLDFAST_WITH/n").txt"'
    each = {"for_each": keys, "with": {"n": "${{ item }}"}, "shell": body, "guards": [], **where}
    project.plan({"each": each})
    assert project.run().code == 0
    assert [project.read(f"{name}.txt") for name in ("nl", "b ", "kk")] == ["nl\n", "b \n", "kk\n"]
    (project.root / "nl.txt").unlink()
    assert set(project.run().states.values()) == {"reused"}
    assert project.read("nl.txt") == "nl\n"
    assert project.ok("verify").code == 0


def test_items_that_change_files_have_a_copy_unless_they_say_otherwise(project: Project) -> None:
    project.write("it/1.txt", "q1\n")
    body = 'f=$(cat "$HOLDFAST_WITH/v"); sed -i s/q/Qq/ "it/$f.txt"'
    each = {"for_each": [1], "with": {"v": "${{ item }}"}, "shell": body, "inputs": "it/1.txt"}
    project.plan({"it": {**each, "effects": "workspace"}})
    assert [project.run().states["it[1]"] for _ in range(2)] == ["done", "reused"]
    assert project.read("it/1.txt") == "Qq1\n"


def test_a_plan_tells_which_files_are_put_back(project: Project) -> None:
    committed(project, a="a\n")
    body = "echo new > a; echo new > b; echo new > c"
    project.plan({"s": {"shell": body, "inputs": "a", **SCRATCH}})
    assert project.run().code == 0
    assert "Nothing to do" in project.ok("plan").out
    project.write("a", "a\n")
    project.write("b", "mine\n")
    (project.root / "c").unlink()
    assert "Writes 2 files from the store: a, c" in project.ok("plan").out
    assert project.run().states == {"s": "reused"}
    assert [project.read(name) for name in "abc"] == ["new\n", "mine\n", "new\n"]


def test_a_plan_tells_which_files_are_removed_again(project: Project) -> None:
    committed(project, a="a\n", x="x\n")
    project.plan({"s": {"shell": "echo new > a; rm x", **WORKTREE}})
    assert project.run().code == 0
    project.write("x", "x\n")
    said = project.call("plan", "--detailed-exitcode")
    assert said.code == 10
    assert "Runs nothing\nRemoves 1 file again: x" in said.out
    assert "removes x again" in project.ok("plan", "-v").out
    details = project.ok("plan", "--json").json["details"]["s"]
    assert (details["removes"], details["writes"]) == (["x"], [])
    assert project.run().states == {"s": "reused"}
    assert not project.has("x")
    assert "Nothing to do" in project.ok("plan").out


@pytest.mark.req("R107")
@pytest.mark.parametrize("command", [{"shell": "cat made.txt"}, {"run": ["cat", "./made.txt"]}])
def test_a_plan_knows_the_files_that_are_put_back_for_commands_below(
    project: Project, command: dict[str, Any]
) -> None:
    make = {"shell": "n=gone.txt; echo made > made.txt; rm $n", "inputs": "gone.txt", **SCRATCH}
    named = {"shell": "test ! -e gone.txt", "needs": [{"step": "make", "type": "sequence"}]}
    committed(project, **{"gone.txt": "g\n"})
    project.plan({"make": make, "low": {"needs": ["make"], **command}, "named": named})
    assert project.run().code == 0
    (project.root / "made.txt").unlink()
    project.write("gone.txt", "g\n")
    assert {decision for decision, _, _ in foretold(project).values()} == {"reuse"}
    assert "Runs nothing" in project.ok("plan").out
    assert set(project.run().states.values()) == {"reused"}
    project.write("made.txt", "my own\n")
    assert foretold(project)["low"][:2] == ("run", "command_changed")
    assert project.run().codes["low"] == "command_changed"


def test_a_plan_tells_what_is_put_back_and_removed_beside_an_edit(project: Project) -> None:
    committed(project, a="old\n", gone="g\n")
    body = project.sh("echo new > a; rm gone; echo o > o.txt")
    step = {"shell": body, "inputs": ["a", "gone"], "produces": "o.txt", **SCRATCH}
    project.plan({"s": step})
    assert project.run().code == 0
    for path, text in {"a": "old\n", "gone": "g\n", "o.txt": "mine\n"}.items():
        project.write(path, text)
    found = project.ok("plan", "--json").json["details"]["s"]
    assert (found["means"], found["writes"], found["removes"]) == ("adopt", ["a"], ["gone"])
    said = project.ok("plan").out
    assert "Writes 1 file from the store: a" in said
    assert "Removes 1 file again: gone" in said
    project.ran()
    assert project.run().codes == {"s": "amended"}
    assert (project.read("a"), project.has("gone"), project.ran()) == ("new\n", False, [])
    assert project.read("o.txt") == "mine\n"
    project.write("a", "old\n")
    project.write("gone", "g\n")
    project.write("o.txt", "mine again\n")
    again = project.ok("plan", "--on-drift", "regenerate", "--json").json["details"]["s"]
    assert (again["means"], again["writes"], again["removes"]) == ("make", [], [])


def test_a_plan_tells_what_is_put_back_where_a_directory_was_a_file(project: Project) -> None:
    committed(project, d__q="q\n", e="e\n")
    project.plan({"s": {"shell": "rm -r d; echo d > d; echo new > e", **WORKTREE}})
    assert project.run().code == 0
    for path in ("d", "e"):
        (project.root / path).unlink()
    project.write("d/q", "q\n")
    project.write("e/x", "e\n")
    details = project.ok("plan", "--json").json["details"]["s"]
    assert (details["removes"], details["writes"]) == (["d/q"], ["d"])
    assert project.run().states == {"s": "reused"}
    assert (project.read("d"), project.read("e/x")) == ("d\n", "e\n")


def test_a_plan_tells_what_steps_in_a_row_leave_of_a_file(project: Project) -> None:
    committed(project, a="a\n", x="x\n")
    after = [{"step": "first", "type": "sequence"}]
    project.plan(
        {
            "first": {"shell": project.sh("echo 1 > a; rm x"), **WORKTREE},
            "then": {"shell": project.sh("rm [a]; n=x; echo 2 > $n"), "needs": after, **WORKTREE},
        }
    )
    assert project.run().code == 0
    project.write("a", "a\n")
    project.write("x", "x\n")
    details = project.ok("plan", "--json").json["details"]
    told = {name: (one["writes"], one["removes"]) for name, one in details.items()}
    assert told == {"first": (["a"], ["x"]), "then": (["x"], ["a"])}
    assert set(project.run().states.values()) == {"reused"}
    assert (project.has("a"), project.read("x")) == (False, "2\n")


def test_what_a_person_put_back_is_stored_before_it_is_removed_again(project: Project) -> None:
    """Who removed it meanwhile, too, left nothing to be stored when the step was taken over."""
    committed(project, x="theirs\n")
    project.plan({"s": {"shell": project.sh(f"{project.gate('go')}; rm [x]"), **WORKTREE}})
    run = project.begun_by("run", "--json", step="s")
    (project.root / "x").unlink()
    project.open("go")
    assert finish_run(run).code == 0
    project.write("x", "theirs\n")
    assert project.run().states == {"s": "reused"}
    assert not project.has("x")
    digest = hashlib.sha256(b"theirs\n").hexdigest()
    assert project.ok("show", digest).out == "theirs\n"


@pytest.mark.parametrize("where", [SCRATCH, WORKTREE])
def test_a_step_that_changes_what_it_reads_stands(project: Project, where: Any) -> None:
    committed(project, VERSION="1\n")
    shell = project.sh("n=$(cat VERSION); echo $((n+1)) > VERSION")
    below = {"shell": project.sh("cat VERSION"), "inputs": "VERSION", "needs": "bump"}
    project.plan({"bump": {"shell": shell, "inputs": "VERSION", **where}, "below": below})
    project.run()
    assert project.read("VERSION") == "2\n"
    assert project.ran() == ["below", "bump"]
    assert set(project.run().states.values()) == {"reused"}
    assert project.ok("plan", "--json").json["totals"]["run"] == 0
    assert project.ran() == []
    project.write("VERSION", "7\n")
    project.run()
    assert project.read("VERSION") == "8\n"


@pytest.mark.parametrize("where", [SCRATCH, WORKTREE])
def test_a_new_guard_makes_no_change_a_second_time(project: Project, where: Any) -> None:
    committed(project, VERSION="1\n")
    bump: dict[str, Any] = {
        "shell": project.sh("n=$(cat VERSION); echo $((n+1)) > VERSION"),
        "inputs": "VERSION",
        **where,
    }
    project.plan({"bump": bump})
    project.run()
    project.plan({"bump": {**bump, "guards": [{"command": ["true"]}]}})
    assert project.ok("plan", "--json").json["steps"]["bump"]["reason"]["code"] == "guard_changed"
    assert project.run().codes == {"bump": "reguarded"}
    assert (project.ran(), project.read("VERSION")) == (["bump"], "2\n")
    assert set(project.run().states.values()) == {"reused"}


@pytest.mark.parametrize("where", [SCRATCH, WORKTREE, {}])
def test_a_new_guard_makes_nothing_again_where_steps_below_changed_files(
    project: Project, where: Any
) -> None:
    """It begins with what lies there now, and none of that is changed meanwhile."""
    committed(project, **{"a.txt": "x\n"})
    needs = [{"step": "first", "type": "sequence"}]
    first: dict[str, Any] = {
        "shell": project.sh("cat a.txt > /dev/null"),
        "inputs": "*.txt",
        **where,
    }
    then = {"shell": "echo y >> a.txt; echo new > new.txt", "inputs": "a.txt", "needs": needs}
    for guards in ([], [{"command": ["true"]}]):
        project.plan({"first": {**first, "guards": guards}, "then": {**then, **SCRATCH}})
        project.run()
    for _ in range(2):
        assert set(project.run().states.values()) == {"reused"}
    assert (project.ran(), project.read("a.txt")) == (["first"], "x\ny\n")


@pytest.mark.parametrize("where", [SCRATCH, WORKTREE])
def test_a_new_guard_looks_at_a_step_that_removed_what_it_reads(
    project: Project, where: Any
) -> None:
    committed(project, a="a\n", b="b\n")
    for guards in ([], [{"command": ["test", "!", "-e", "a"]}]):
        project.plan({"s": {"shell": project.sh("rm a"), "inputs": "a", "guards": guards, **where}})
        project.run()
    assert project.status().codes == {"s": "reguarded"}
    assert set(project.run().states.values()) == {"reused"}
    assert (project.ran(), project.has("a")) == (["s"], False)


@pytest.mark.parametrize("where", [SCRATCH, WORKTREE])
def test_another_branch_does_not_make_changes_again(project: Project, where: Any) -> None:
    """Each branch has its own file, and what a step made of it; the newest artifact is of one of them."""
    committed(project, VERSION="1\n", gone="one\n")
    shell = project.sh("n=$(cat VERSION); echo $((n+1)) > VERSION; rm -f gone")
    above = {"shell": project.sh("cat VERSION gone"), "inputs": ["VERSION", "gone"]}
    needs = [{"step": "above", "type": "sequence"}]
    bump = {"shell": shell, "inputs": "VERSION", "needs": needs, **where}
    project.plan({"above": above, "bump": bump})
    project.run()
    project.write("VERSION", "5\n")
    project.write("gone", "five\n")
    project.run()
    assert project.ran() == ["above", "above", "bump", "bump"]
    for version in ("2\n", "6\n", "2\n"):
        project.write("VERSION", version)
        assert project.ok("plan", "--json").json["totals"]["run"] == 0
        assert set(project.run().states.values()) == {"reused"}
        assert project.read("VERSION") == version
    project.write("VERSION", "7\n")
    project.write("gone", "seven\n")
    project.run()
    assert (project.ran(), project.read("VERSION")) == (["above", "bump"], "8\n")


@pytest.mark.parametrize("where", [SCRATCH, WORKTREE])
def test_what_stood_stands_though_another_result_began_with_what_it_left(
    project: Project, where: Any
) -> None:
    """Neither is the newest one, and nobody touches the file between two runs."""
    committed(project, a="2\n", b="one\n")
    above = {"shell": project.sh("cat a"), "inputs": "a"}
    tenfold = project.sh("n=$(cat a); echo $((n*10)) > a")
    needs = [{"step": "above", "type": "sequence"}]
    times = {"shell": tenfold, "inputs": ["a", "b"], "needs": needs, **where}
    project.plan({"above": above, "times": times})
    project.run()
    project.write("b", "two\n")
    for a, left in ((None, "200\n"), ("2\n", "20\n"), ("6\n", "60\n"), ("2\n", "20\n")):
        project.write("a", a) if a else None
        project.run()
        assert project.read("a") == left
    project.ran()
    for _ in range(2):
        assert "Nothing to do" in project.ok("plan").out
        assert set(project.run().states.values()) == {"reused"}
        assert (project.read("a"), project.ran()) == ("20\n", [])
    project.write("a", "200\n")
    assert set(project.run().states.values()) == {"reused"}
    assert project.read("a") == "200\n"


def test_a_result_whose_changes_lie_there_no_more_is_made_again(project: Project) -> None:
    """An earlier command comes back, and what another one made since lies there."""
    for letter in ("A", "B", "A"):
        project.plan({"s": {"shell": project.sh(f"t=f; echo {letter} > $t"), **SCRATCH}})
        assert project.ok("plan", "--json").json["totals"]["run"] == 1
        project.run()
        assert project.read("f") == f"{letter}\n"
    assert project.ran() == ["s", "s", "s"]
    for _ in range(2):
        assert project.ok("plan", "--json").json["totals"]["run"] == 0
        assert project.run().states == {"s": "reused"}
    assert project.read("f") == "A\n"


def test_an_earlier_result_does_not_stand_on_what_another_command_left(project: Project) -> None:
    """Nor is the file put back to what it was: the command of now goes on from what lies there."""
    project.write("f", "x\n")
    for letter in ("A", "B", "A"):
        project.plan({"s": {"shell": f"echo {letter} >> f", "inputs": "f", **SCRATCH}})
        project.write("f", "x\n") if letter == "B" else None
        assert project.ok("plan", "--json").json["totals"]["run"] == 1
        project.run()
    assert project.read("f") == "x\nB\nA\n"
    assert project.run().states == {"s": "reused"}


def test_a_step_stands_over_which_a_later_one_wrote(project: Project) -> None:
    """Also where its own earlier result was the same as what the later one left."""
    committed(project, conf="level=0\n")
    for first, then in ((1, 9), (2, 9), (2, 1)):
        project.write("cfg", f"{first}\n")
        project.write("cfg2", f"{then}\n")
        needs = [{"step": "s1", "type": "sequence"}]
        one = {"shell": f"echo level={first} > conf", "inputs": "cfg", **WORKTREE}
        two = {"shell": f"echo level={then} > conf", "inputs": "cfg2", "needs": needs, **WORKTREE}
        project.plan({"s1": one, "s2": two})
        project.run()
        assert project.read("conf") == f"level={then}\n"
    for _ in range(2):
        assert project.ok("plan", "--json").json["totals"]["run"] == 0
        assert {*project.run().states.values()} == {"reused"}
        assert project.read("conf") == "level=1\n"


def test_a_step_that_goes_on_from_its_own_result_repeats_nothing_above(project: Project) -> None:
    """An effect outside read the file before it was changed, and changed again by another command."""
    project.write("f", "x\n")
    pay = {"shell": project.sh("cat f"), "inputs": "f", "effects": "external"}
    needs = [{"step": "pay", "type": "sequence"}]
    for letter in ("A", "B", "C"):
        fix = {"shell": project.sh(f"echo {letter} >> f"), "inputs": "f", "needs": needs, **SCRATCH}
        project.plan({"pay": pay, "fix": fix})
        project.run("--yes")
        assert "pay" not in project.ran() or letter == "A"
        for _ in range(2):
            assert project.ok("plan", "--json").json["totals"]["run"] == 0
            assert {*project.run("--yes").states.values()} == {"reused"}
    assert (project.ran(), project.read("f")) == ([], "x\nA\nB\nC\n")


def test_a_step_saw_what_lay_there_when_it_ran(project: Project) -> None:
    """An effect outside was made anew over what steps below had left; then one of these changes."""
    project.write("f", "x\n")
    project.write("g", "y\n")
    needs = [{"step": "pay", "type": "sequence"}]
    for number, letter in ((1, "A"), (2, "A"), (2, "B"), (2, "A")):
        pay = {"shell": project.sh(f"cat f g; : {number}"), "inputs": ["f", "g"]}
        steps: dict[str, Any] = {"pay": {**pay, "effects": "external"}}
        for name, path, word in (("one", "f", letter), ("two", "g", "C")):
            body = {"shell": project.sh(f"echo {word} >> {path}"), "inputs": path}
            steps[name] = {**body, "needs": needs, **SCRATCH}
        project.plan(steps)
        project.run("--yes")
        for _ in range(2):
            assert project.ok("plan", "--json").json["totals"]["run"] == 0
            assert {*project.run("--yes").states.values()} == {"reused"}
    assert project.ran() == ["one", "one", "one", "pay", "pay", "two"]
    assert (project.read("f"), project.read("g")) == ("x\nA\nB\nA\n", "y\nC\n")


def test_a_new_guard_repeats_nothing_in_the_run_after(project: Project) -> None:
    """It passes over what was made before a step below changed the same file."""
    project.write("f", "x\n")
    pay = {"shell": project.sh("cat f"), "inputs": "f", "effects": "external"}
    needs = [{"step": "pay", "type": "sequence"}]
    one = {"shell": project.sh("echo A >> f"), "inputs": "f", "needs": needs, **SCRATCH}
    needs = [{"step": "one", "type": "sequence"}]
    two = {"shell": project.sh("echo B >> f"), "inputs": "f", "needs": needs, **SCRATCH}
    project.plan({"pay": pay, "one": one, "two": two})
    project.run("--yes")
    guards = [{"command": ["true"]}]
    project.plan({"pay": {**pay, "guards": guards}, "one": {**one, "guards": guards}, "two": two})
    run = project.run("--yes")
    assert run.codes == {"pay": "reguarded", "one": "reguarded", "two": "unchanged"}
    assert project.ok("plan", "--json").json["totals"]["run"] == 0
    assert {*project.run("--yes").states.values()} == {"reused"}
    assert (project.ran(), project.read("f")) == (["one", "pay", "two"], "x\nA\nB\n")


def test_another_branch_and_another_command_repeat_nothing_above(project: Project) -> None:
    """The newest results are of the other branch, and the one of here went on from older ones."""
    project.write("f", "x\none\ntwo\n")
    pay = {"shell": project.sh("cat f"), "inputs": "f", "effects": "external"}

    def planned(one: str) -> None:
        steps: dict[str, Any] = {"pay": pay}
        for name, letter in (("one", one), ("two", "A")):
            needs = [{"step": above, "type": "sequence"} for above in [*steps][-1:]]
            body = project.sh(f"sed -i s/^{name}.*/{name}{letter}/ f")
            steps[name] = {"shell": body, "inputs": "f", "needs": needs, **SCRATCH}
        project.plan(steps)

    planned("A")
    project.run("--yes")
    project.write("f", "y\none\ntwo\n")
    project.run("--yes")
    project.write("f", "x\noneA\ntwoA\n")
    assert {*project.run("--yes").states.values()} == {"reused"}
    planned("B")
    project.run("--yes")
    for _ in range(2):
        assert project.ok("plan", "--json").json["totals"]["run"] == 0
        assert {*project.run("--yes").states.values()} == {"reused"}
    assert (project.ran().count("pay"), project.read("f")) == (2, "x\noneB\ntwoA\n")


def test_early_cutoff_counts_no_change_of_the_plan_itself(project: Project) -> None:
    """What a step above brings is the same, though it ran; an effect outside reads the file too."""
    project.write("f", "x\n")
    project.write("old", "o\n")
    content = {"needs": ["words"], "reuse": "content"}
    pay = {"shell": project.sh("cat f old"), "inputs": ["f", "old"], "effects": "external"}
    fix = {"shell": project.sh("echo A >> f; rm old"), "inputs": ["f", "old"], **SCRATCH}
    words = {"shell": project.sh("wc -w < text"), "inputs": "text"}
    more = {"needs": ["words", {"step": "pay", "type": "sequence"}]}
    project.plan({"words": words, "pay": {**pay, **content}, "fix": {**fix, **content, **more}})
    project.write("text", "one\n")
    project.run("--yes")
    assert len(project.ran()) == 3
    project.write("text", "two\n")
    told = project.ok("plan", "--json").json["steps"]
    assert {name: one["decision"] for name, one in told.items()} == {
        "words": "run",
        "pay": "maybe",
        "fix": "maybe",
    }
    run = project.run("--yes")
    assert run.states == {"words": "done", "pay": "reused", "fix": "reused"}
    assert project.ran() == ["words"]
    assert {*project.run("--yes").states.values()} == {"reused"}


@pytest.mark.parametrize("kind", ["data", "sequence"])
def test_the_middle_of_a_row_is_made_anew_and_nothing_else_twice(
    project: Project, kind: str
) -> None:
    """The last step changes nothing then: what it changed before is what led there."""
    project.write("f", "a0\nb0\nc0\n")
    for middle in (1, 2):
        steps: dict[str, Any] = {}
        for name, number in (("a", 1), ("b", middle), ("c", 1)):
            needs = [{"step": above, "type": kind} for above in [*steps][-1:]]
            body = project.sh(f"sed -i s/{name}.*/{name}{number}/ f")
            steps[name] = {"shell": body, "inputs": "f", "needs": needs, **SCRATCH}
        project.plan(steps)
        project.run()
        project.ran()
        assert {*project.run().states.values()} == {"reused"}
        assert (project.ran(), project.read("f")) == ([], f"a1\nb{middle}\nc1\n")


def test_what_steps_below_had_changed_before_is_not_taken_back(project: Project) -> None:
    """Another command of the first step reads what the second one wrote in an earlier run."""
    project.write("a", "a\n")
    project.write("b", "b\n")
    needs = [{"step": "first", "type": "sequence"}]
    then = {"shell": project.sh("echo more >> b"), "inputs": "b", "needs": needs, **SCRATCH}
    for number in (1, 2):
        body = project.sh(f"echo {number} >> a")
        project.plan({"first": {"shell": body, "inputs": ["a", "b"], **SCRATCH}, "then": then})
        project.run()
    for _ in range(2):
        assert project.ok("plan", "--json").json["totals"]["run"] == 0
        assert set(project.run().states.values()) == {"reused"}
    assert (project.ran(), project.read("a")) == (["first", "first", "then"], "a\n1\n2\n")


def test_a_step_that_finds_its_change_made_repeats_nothing_above(project: Project) -> None:
    """Made again, it goes on from two earlier results of its own, and its newest one holds no change."""
    project.write("f", "x\n")
    pay = {"shell": project.sh("cat f"), "inputs": "f", "effects": "external"}
    needs = [{"step": "pay", "type": "sequence"}]
    for letter in ("A", "B"):
        body = project.sh(f"echo {letter} > f")
        project.plan({"pay": pay, "set": {"shell": body, "inputs": "f", "needs": needs, **SCRATCH}})
        project.run("--yes")
    project.run("--yes", "--force-node", "set")
    for _ in range(2):
        assert project.ok("plan", "--json").json["totals"]["run"] == 0
        assert set(project.run("--yes").states.values()) == {"reused"}
    assert (project.ran(), project.read("f")) == (["pay", "set", "set", "set"], "B\n")
    project.write("f", "mine\n")
    assert project.run("--yes").states == {"pay": "done", "set": "done"}


@pytest.mark.req("R107")
@pytest.mark.parametrize("command", [{"shell": "cat a"}, {"run": ["cat", "a"]}])
def test_a_plan_does_not_promise_to_reuse_what_names_a_file_that_a_step_above_changes(
    project: Project, command: dict[str, Any]
) -> None:
    project.write("a", "a\n")
    needs = [{"step": "change", "type": "sequence"}]

    def foretold_for(word: str) -> str:
        change = {"shell": f"t=a; echo {word} > $t", "inputs": "a", **SCRATCH}
        project.plan({"change": change, "look": {**command, "needs": needs}})
        return foretold(project)["look"][0]

    assert foretold_for("1") == "run"
    project.run()
    assert foretold_for("2") == "maybe"
    assert project.run().states == {"change": "done", "look": "done"}
    project.ok("undo", "change")
    assert foretold_for("2") == "maybe"
    assert project.run().states == {"change": "done", "look": "reused"}
    assert foretold_for("2") == "reuse"


@pytest.mark.req("R107")
@pytest.mark.parametrize("body", ["echo more >> a", "rm a"])
def test_a_plan_does_not_promise_to_change_files_again_below_what_runs(
    project: Project, body: str
) -> None:
    project.write("a", "a\n")
    first = {"shell": project.sh("echo said")}
    then = {"shell": project.sh(body), "inputs": "a", "needs": ["first"], **SCRATCH}
    project.plan({"first": first, "then": then})
    project.run()
    for guards in ([], [{"command": ["true"]}]):
        project.plan({"first": first, "then": {**then, "guards": guards}})
        told = project.ok("plan", "--force-node", "first", "--json").json["steps"]
        assert {name: one["decision"] for name, one in told.items()} == {
            "first": "run",
            "then": "maybe",
        }
        assert project.run("--force-node", "first").states == {"first": "done", "then": "reused"}
    project.plan({"first": {"shell": project.sh("echo other")}, "then": then})
    told = project.ok("plan", "--json").json["steps"]
    assert told["then"]["decision"] == ("wait" if body == "rm a" else "run")  # its input is gone


def test_a_step_may_make_the_same_as_it_made_before(project: Project) -> None:
    """What it goes on from is looked for once: an older result may be equal to the newest."""
    project.write("f", "v0\n")
    project.write("g", "g0\n")
    needs = [{"step": "look", "type": "sequence"}]
    for more in ("", "; sed -i s/g0/g2/ g", ""):
        project.write("f", "v0\n")
        look = {"shell": "cat f g", "inputs": ["f", "g"]}
        body = project.sh(f"sed -i s/v.*/v1/ f{more}")
        project.plan(
            {"look": look, "s": {"shell": body, "inputs": ["f", "g"], "needs": needs, **SCRATCH}}
        )
        assert project.run().code == 0
    assert (project.read("f"), project.read("g")) == ("v1\n", "g2\n")
    assert {*project.run().states.values()} == {"reused"}


def test_a_result_of_one_branch_is_none_of_the_other(project: Project) -> None:
    """Here lies what the step made on one branch, beside what the other branch reads."""
    committed(project, VERSION="1\n", conf="next=0\n")
    publish = {"shell": project.sh("cat conf VERSION"), "inputs": ["conf", "VERSION"]}
    needs = [{"step": "publish", "type": "sequence"}]
    shell = project.sh('sed -i "s/.*/next=$(cat VERSION)/" conf')
    bump = {"shell": shell, "inputs": ["conf", "VERSION"], "needs": needs, **WORKTREE}
    project.plan({"publish": {**publish, "effects": "external"}, "bump": bump})
    for version in ("1\n", "2\n"):
        project.write("conf", "next=0\n")
        project.write("VERSION", version)
        project.run("--yes")
    project.ran()
    project.write("conf", "next=1\n")
    assert project.ok("plan", "--json").json["totals"]["run"] == 2
    project.run("--yes")
    assert (project.ran(), project.read("conf")) == (["bump", "publish"], "next=2\n")


def test_runs_that_made_nothing_do_not_hide_a_branch(project: Project) -> None:
    committed(project, f="x\n")
    project.plan({"s": {"shell": project.sh("echo A >> f"), "inputs": "f", **SCRATCH}})
    project.run()
    project.write("f", "y\n")
    for _ in range(22):
        project.run()
    project.write("f", "x\nA\n")
    assert project.run().states == {"s": "reused"}
    assert (project.ran(), project.read("f")) == (["s", "s"], "x\nA\n")


def test_contested_evidence_does_not_stand_with_a_new_guard(project: Project) -> None:
    project.write("f", "x\n")
    project.write("list.csv", "1\n")
    handoff = {
        "attempted": "to count",
        "observed": [{"finding": "one", "source": "list.csv"}],
        "changed": [],
        "notDone": [],
        "highestImpactUncertainty": "none",
        "nextAgentShouldFirst": "go on",
    }
    body = f"echo A >> f; printf %s '{json.dumps(handoff)}' > $HOLDFAST_HANDOFF"
    step = {"shell": project.sh(body), "inputs": ["f", "list.csv"], **SCRATCH}
    project.plan({"s": {**step, "handoff": True}})
    assert project.run().code == 0
    project.ok("ledger", "contest", "list.csv", "--because", "old")
    project.plan({"s": {**step, "handoff": True, "guards": [{"command": ["true"]}]}})
    foretold = project.ok("plan", "--json").json["steps"]["s"]
    assert foretold["reason"]["code"] == "evidence_contested"
    assert project.run().codes == {"s": "evidence_contested"}


@pytest.mark.parametrize("path", ["link", "place/VERSION"])
def test_a_step_that_changes_what_it_reads_through_a_link_stands(
    project: Project, path: str
) -> None:
    committed(project, here__VERSION="1\n")
    (project.root / "link").symlink_to("here/VERSION")
    (project.root / "place").symlink_to("here")
    bump = project.sh("n=$(cat here/VERSION); echo $((n+1)) > here/VERSION")
    inputs = ["here/VERSION", path]
    pay = {"run": ["sh", "pay.sh", path], "effects": "external"}
    project.write("pay.sh", project.sh(f"cat {path}"))
    needs = [{"step": "pay", "type": "sequence"}]
    project.plan({"pay": pay, "bump": {"shell": bump, "inputs": inputs, "needs": needs, **SCRATCH}})
    assert project.run("--yes").code == 0
    assert len(project.ran()) == 2
    for _ in range(2):
        assert set(project.run("--yes").states.values()) == {"reused"}
    assert (project.ran(), project.read("here/VERSION")) == ([], "2\n")


@pytest.mark.parametrize("reads", [{}, {"inputs": "*.txt"}], ids=["by name", "by a pattern"])
def test_what_is_gone_from_the_project_is_not_in_a_worktree(
    project: Project, reads: dict[str, str]
) -> None:
    """HEAD still has the file that the step removed."""
    committed(project, **{"one.txt": "aaaa\n", "two.txt": "b\n"})
    shell = (
        "sed -i s/a/A/ one.txt; rm -f *two.txt" if reads else "sed -i s/a/A/ one.txt; rm -f two.txt"
    )
    project.plan({"s": {"shell": project.sh(shell), **WORKTREE, **reads}})
    assert [project.run().states["s"] for _ in range(2)] == ["done", "reused"]
    project.write("one.txt", "Aaaa\nmine\n")
    assert [project.run().states["s"] for _ in range(3)] == ["done", "reused", "reused"]
    assert project.read("one.txt") == "AAaa\nmine\n"
    assert not project.has("two.txt")


def test_a_link_that_is_gone_from_the_project_is_not_in_a_worktree(project: Project) -> None:
    committed(project, **{"real.txt": "real\n"})
    (project.root / "conf").symlink_to("real.txt")
    git(project.root, "add", "-A")
    git(project.root, "commit", "-q", "-m", "link")
    (project.root / "conf").unlink()
    project.plan({"s": {"shell": "cat conf || echo none", **WORKTREE, "guards": []}})
    project.run()
    assert project.shown("s") in {b"", b"none\n"}
    assert "none" in project.ok("logs", "s").out


WAYS: list[tuple[dict[str, str], list[str], str]] = [
    ({"conf": "real.txt"}, ["real.txt"], "conf"),
    ({"conf": "other", "other": "./real.txt"}, ["other"], "conf"),
    ({"conf": "one/other", "one/other": "../real.txt"}, ["real.txt"], "conf"),
    ({"d": "one/deep"}, ["d", "one/deep/x.txt"], "d/x.txt"),
    ({"d": "one/deep"}, ["one/deep/x.txt"], "d/x.txt"),
    ({"d": "one/deep"}, ["d"], "d/x.txt"),
    ({"d": "one/deep"}, ["one/mid.txt"], "d/../mid.txt"),
]


@pytest.mark.parametrize(
    ("links", "gone", "path", "declared"),
    [
        (*way, declared)
        for way in WAYS
        for declared in (False, True)
        if not (declared and ".." in way[2])
    ],
)
def test_what_a_way_over_links_does_not_lead_to_any_more_is_not_in_a_worktree(
    project: Project, links: dict[str, str], gone: list[str], path: str, *, declared: bool
) -> None:
    texts = {"real.txt": "real\n", "one/deep/x.txt": "x\n", "one/mid.txt": "m\n"}
    repository(project.root, {**texts, "kept": "k\n"})
    for link, target in links.items():
        (project.root / link).symlink_to(target)
    git(project.root, "add", "-A")
    git(project.root, "commit", "-q", "-m", "links")
    for name in gone:
        (project.root / name).unlink()
    step: dict[str, Any] = {"shell": f"cat {path} > out.new || echo none > out.new", **WORKTREE}
    if declared:
        step["shell"] = f"n={path}; cat $n > out.new || echo none > out.new"
        step["inputs"] = {"glob": path, "optional": True}
    project.plan({"s": step})
    assert project.run().code == 0
    assert project.read("out.new") == "none\n"
    assert git(project.root, "diff", "--name-only").split() == sorted(gone)


def test_a_guard_in_a_worktree_has_no_script_that_is_gone_from_the_project(
    project: Project,
) -> None:
    committed(project, **{"check.sh": "true\n", "kept": "k\n"})
    (project.root / "check.sh").unlink()
    project.plan(
        {"s": {"shell": "echo x > kept", "guards": [{"command": "sh check.sh"}], **WORKTREE}}
    )
    assert project.run().states == {"s": "failed"}
    assert project.read("kept") == "k\n"


def test_a_guard_among_others_in_a_copy_has_its_script(project: Project) -> None:
    """What a guard in `all` names lies in a scratch directory as what any guard names."""
    project.write("check.sh", "true\n")
    both = {"all": [{"command": "sh check.sh"}, {"any": [{"command": "sh check.sh"}]}]}
    project.plan({"s": {"shell": "echo x > new", "guards": [both], **SCRATCH}})
    assert project.run().states == {"s": "done"}
    assert project.read("new") == "x\n"


def test_an_edit_of_an_output_goes_with_the_changes_that_stand(project: Project) -> None:
    """Not with those that the step made last, from what is not there any more."""
    committed(project, a="0\n")
    step = {"inputs": ["in", "a"], "produces": "out.txt", **SCRATCH}
    project.plan({"s": {"shell": "t=a; cat in > $t; echo o > out.txt", **step}})
    for version in ("A\n", "B\n"):
        git(project.root, "checkout", "-q", "a")
        project.write("in", version)
        assert project.run().states == {"s": "done"}
    git(project.root, "checkout", "-q", "a")
    project.write("in", "A\n")
    project.write("out.txt", "mine\n")
    assert project.run().codes == {"s": "amended"}
    assert (project.read("a"), project.read("out.txt")) == ("A\n", "mine\n")


def test_a_file_that_is_named_out_of_a_link_may_be_removed(project: Project) -> None:
    committed(project, **{"one/mid": "m\n", "one/deep/x": "x\n"})
    (project.root / "link").symlink_to("one/deep")
    shell = project.sh("cat link/../mid > new; n=one; rm -f $n/mid")
    project.plan({"s": {"shell": shell, **WORKTREE}})
    assert project.run().states == {"s": "done"}
    assert not project.has("one/mid")
    assert project.run().states == {"s": "reused"}


@pytest.mark.parametrize(
    ("command", "inputs", "left"),
    [
        ("rm Z", ["Z"], ["A"]),
        ("rm Z", ["*"], ["A"]),
        ("rm [Z]", ["Z"], ["A"]),
        ("mv A B", ["A", "Z"], ["B", "Z"]),
    ],
)
def test_a_step_that_removes_what_it_reads_stands(
    project: Project, command: str, inputs: list[str], left: list[str]
) -> None:
    project.write("A", "a\n")
    project.write("Z", "z\n")
    project.plan({"s": {"shell": command, "inputs": inputs, **SCRATCH}})
    assert project.run().code == 0
    assert [path for path in ("A", "B", "Z") if project.has(path)] == left
    assert project.ok("plan").code == 0
    assert project.run().states == {"s": "reused"}
    project.write("A" if "B" in left else "Z", "other\n")
    assert project.run().states == {"s": "done"}, "somebody else changed it"


def test_what_a_step_below_changed_does_not_run_the_steps_above(project: Project) -> None:
    committed(project, a="a\n")
    project.plan(
        {
            "look": {"shell": project.sh("cat a"), "inputs": "a"},
            "mend": {"shell": project.sh("echo mended > a"), "needs": "look", **WORKTREE},
        }
    )
    project.run()
    project.ran()
    assert set(project.run().states.values()) == {"reused"}
    assert project.read("a") == "mended\n"


def test_a_change_that_is_gone_is_put_in_place_and_one_that_went_on_stays(project: Project) -> None:
    committed(project, a="a\n", b="b\n")
    project.plan({"s": {"shell": "echo 2 >> a; echo 2 >> b; echo c > c", **WORKTREE}})
    project.run()
    git(project.root, "checkout", "-q", "b")
    (project.root / "c").unlink()
    project.write("a", "my own\n")
    again = project.run()
    assert again.states == {"s": "reused"}
    assert (project.read("a"), project.read("b")) == ("my own\n", "b\n2\n")
    assert project.read("c") == "c\n"
    assert project.run().states == {"s": "reused"}


def test_a_step_is_made_again_if_one_above_wrote_anew_where_it_began(project: Project) -> None:
    committed(project, a="a\n", word="1\n")
    upper = {"shell": project.sh("cat word > a"), "inputs": "word", **WORKTREE}
    after = [{"step": "upper", "type": "sequence"}]
    lower = {"shell": project.sh("echo more >> a"), "needs": after, **WORKTREE}
    project.plan({"upper": upper, "lower": lower})
    project.run()
    assert project.read("a") == "1\nmore\n"
    project.write("word", "2\n")
    run = project.run()
    assert project.read("a") == "2\nmore\n"
    assert run.codes["lower"] == "upstream_changed"


def foretold(project: Project) -> dict[str, tuple[str, str, list[str]]]:
    """What a plan says of each step: decision, code, and the names behind it."""
    found = project.ok("plan", "--json").json["steps"]
    return {
        name: (one["decision"], one["reason"]["code"], one["reason"]["because"])
        for name, one in found.items()
    }


@pytest.mark.req("R107")
@pytest.mark.parametrize("between", [False, True])
def test_a_plan_promises_no_reuse_where_a_step_above_writes_anew(
    project: Project, *, between: bool
) -> None:
    committed(project, a="0\n", b="0\n")

    def written(word: str) -> None:
        after = [{"step": "middle" if between else "first", "type": "sequence"}]
        steps: dict[str, dict[str, Any]] = {
            "first": {"shell": project.sh(f"n=a; echo {word} > $n"), **WORKTREE},
            "then": {"shell": project.sh("n=a; echo 2 >> $n"), "needs": after, **WORKTREE},
            "beside": {"shell": project.sh("n=b; echo 2 >> $n"), "needs": after, **WORKTREE},
        }
        if between:
            needs = [{"step": "first", "type": "sequence"}]
            steps["middle"] = {"shell": project.sh(), "needs": needs}
        project.plan(steps)

    written("1")
    project.run()
    assert {decision for decision, _, _ in foretold(project).values()} == {"reuse"}
    project.ran()
    written("11")
    told = foretold(project)
    assert told["first"][0] == "run"
    assert told["then"] == ("maybe", "upstream_changed", ["first"])
    assert told["beside"][0] == "reuse", "it goes on from another file"
    project.ok("plan", "-o", "review.plan.json")
    run = project.run("review.plan.json")
    assert project.ran() == ["first", "then"]
    assert run.codes["then"] == "upstream_changed"


def test_a_worktree_has_declared_inputs_and_what_the_steps_above_left(project: Project) -> None:
    committed(project, a="old\n", b="old\n", c="old\n")
    project.write("a", "edited\n")
    project.write("b", "edited\n")
    needs = [{"step": "change", "type": "sequence"}, "make"]
    project.plan(
        {
            "change": {"shell": "echo changed > c; rm b", "inputs": "b", **WORKTREE},
            "make": {"shell": "echo made > made.txt", "produces": "made.txt"},
            "look": {
                "shell": 'cat a c made.txt; [ -e b ] || echo "no b"; git rev-parse --abbrev-ref HEAD',
                "inputs": {"glob": "x", "optional": True},
                "needs": needs,
                "workspace": "worktree",
            },
        }
    )
    project.run()
    # of 'a' only the committed version is there: no glob names it, and the command names 'a' itself
    assert project.shown("look").decode().split() == [
        "edited",
        "changed",
        "made",
        "no",
        "b",
        "HEAD",
    ]


def test_the_users_index_branches_and_head_stay_as_they_are(project: Project) -> None:
    committed(project, a="a\n", b="b\n")
    project.write("b", "staged\n")
    git(project.root, "add", "b")
    project.write("b", "on top\n")
    project.plan({"s": {"shell": "git checkout -q --detach; echo x > a", **WORKTREE}})
    before = inside(project.root)
    project.run()
    assert inside(project.root) == before
    assert git(project.root, "worktree", "list").count("\n") == 1
    assert project.read("b") == "on top\n"
    assert git(project.root, "show", ":b") == "staged\n"


def test_a_project_inside_a_repository_changes_only_itself(project: Project) -> None:
    top = project.folder
    (project.root / "a").write_text("a\n")
    (top / "outside").write_text("outside\n")
    git(top, "init", "-q")
    git(top, "add", "outside", "project/a")
    git(top, "commit", "-q", "-m", "first")
    project.plan({"s": {"shell": "cat ../outside > a", **WORKTREE}})
    assert project.run().code == 0
    assert project.read("a") == "outside\n"
    project.plan({"t": {"shell": "echo x > ../outside", **WORKTREE}})
    assert project.run().code == 1
    assert (top / "outside").read_text() == "outside\n"
    assert "outside the project" in project.ok("logs", "t").out + project.call("status").out


def test_new_files_that_gitignore_leaves_out_are_not_taken(project: Project) -> None:
    committed(project, a="a\n", **{".gitignore": "*.pyc\ncache/\n"})
    body = "echo x > x.pyc; mkdir cache; echo y > cache/y; echo z > z; "
    body += "mkdir .holdfast; echo q > .holdfast/q"
    project.plan(
        {"tree": {"shell": body, **WORKTREE}, "dir": {"shell": f"{body}; mv z zz", **SCRATCH}}
    )
    assert project.run().code == 0
    assert sorted(p.name for p in project.root.iterdir() if not p.name.startswith(".")) == [
        "a",
        "plan.yaml",
        "z",
        "zz",
    ]
    assert not (project.store / "q").exists()


@pytest.mark.parametrize("where", [SCRATCH, WORKTREE])
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("ln -s /etc/passwd evil", "symbolic link"),
        ("rm -r src; ln -s /etc src", "symbolic link"),
        ("rm link; echo x > link", "symbolic link"),
        ("rm link", "symbolic link"),
        ("printf x > \"$(printf 'a\\nb')\"", "control character"),
        ("mkdir .GIT; echo x > .GIT/config", "protected"),
        ("echo x > A.txt; echo y > a.TXT", "name one file"),
        ("echo x > 'back\\slash'", "backslash"),
        ("echo x > out.txt", "output of 'maker'"),
    ],
)
def test_what_cannot_be_taken_over_is_refused_whole(
    project: Project, where: Any, body: str, words: str
) -> None:
    committed(project, src__x="x\n", a="a\n")
    (project.root / "link").symlink_to("a")
    git(project.root, "add", "link")
    git(project.root, "commit", "-q", "-m", "link")
    if "link" in body and where is SCRATCH:
        pytest.skip("a scratch directory has no link that nobody put there")
    before = sorted(p.name for p in project.root.iterdir())
    maker = {"shell": "echo made > out.txt", "produces": "out.txt", "needs": "s"}
    shell = f"echo mine > a; mkdir -p src; {body}"
    steps = {"s": {"shell": shell, "inputs": "a", **where}, "maker": maker}
    project.plan(steps)
    run = project.run()
    assert (run.code, run.states) == (1, {"s": "failed", "maker": "skipped"})
    assert project.read("a") == "a\n", "nothing of it is taken over"
    after = {p.name for p in project.root.iterdir()} - {".holdfast", "plan.yaml"}
    assert sorted(after) == before
    told = project.ok("why", "s", "--run", "@").out + project.ok("logs", "s").out + run.err
    assert words in told, told


@pytest.mark.req("C27")
@pytest.mark.parametrize("where", [SCRATCH, WORKTREE])
@pytest.mark.parametrize(
    ("body", "then"),
    [
        ("rm -r d; echo file > d", {"d": "file\n", "e": "e\n"}),
        ("rm e; mkdir -p e/f; echo g > e/f/g", {"d/q": "q\n", "e/f/g": "g\n"}),
    ],
)
def test_a_file_takes_the_place_of_a_directory_or_a_directory_that_of_a_file(
    project: Project, where: Any, body: str, then: dict[str, str]
) -> None:
    committed(project, d__q="q\n", e="e\n")
    project.plan({"s": {"shell": body, "inputs": ["d/q", "e"], **where}})

    def there() -> dict[str, str]:
        names = ("d", "d/q", "e", "e/f/g")
        return {name: project.read(name) for name in names if (project.root / name).is_file()}

    for state in ("done", "reused"):
        assert project.run().states == {"s": state}
        assert there() == then
    project.ok("undo", "s")
    assert there() == {"d/q": "q\n", "e": "e\n"}
    project.write("e" if "d" in then else "d/q", "other\n")
    project.run()
    assert there().keys() == then.keys()
    assert project.ok("verify").code == 0


@pytest.mark.parametrize(
    ("body", "then"),
    [
        ("echo more >> d", {"d": "file\nmore\n"}),
        ("rm d; echo z > z", {"z": "z\n"}),
        ("rm d; mkdir d; echo n > d/n", {"d/n": "n\n"}),
    ],
)
def test_a_worktree_has_the_file_that_a_step_above_put_in_the_place_of_a_directory(
    project: Project, body: str, then: dict[str, str]
) -> None:
    committed(project, d__q="q\n")
    project.plan(
        {
            "above": {"shell": "rm -r d; echo file > d", **WORKTREE},
            "below": {"shell": body, "needs": "above", **WORKTREE},
        }
    )

    def there() -> dict[str, str]:
        names = ("d", "d/n", "d/q", "z")
        return {name: project.read(name) for name in names if (project.root / name).is_file()}

    for state in ("done", "reused"):
        assert project.run().states == {"above": state, "below": state}
        assert there() == then
    project.ok("undo", "below")
    assert there() == {"d": "file\n"}
    assert project.ok("verify").code == 0


def test_a_file_of_a_person_keeps_its_directory(project: Project) -> None:
    project.write("d/q", "q\n")
    project.write("d/mine", "mine\n")
    project.plan({"s": {"shell": "rm -r d; echo file > d", "inputs": "d/q", **SCRATCH}})
    run = project.run()
    assert (run.code, run.states) == (3, {"s": "waiting"})
    assert (project.read("d/q"), project.read("d/mine")) == ("q\n", "mine\n")


def test_files_whose_names_differ_by_case_are_two_where_they_lie(project: Project) -> None:
    committed(project, D="D\n", d__q="q\n")
    if (project.root / "d").is_file():
        pytest.skip("this file system folds case")
    project.plan({"s": {"shell": "echo y >> D; echo y >> d/q", **WORKTREE}})
    assert project.run().code == 0
    assert (project.read("D"), project.read("d/q")) == ("D\ny\n", "q\ny\n")


def test_a_link_in_the_project_is_never_written_through(project: Project) -> None:
    committed(project, a="a\n")
    outside = project.folder / "outside"
    outside.mkdir()
    (project.root / "out").symlink_to(outside)
    project.plan({"s": {"shell": "mkdir out; echo x > out/x", **SCRATCH}})
    assert project.run().code == 1
    assert list(outside.iterdir()) == []


def test_a_submodule_is_not_changed(project: Project) -> None:
    lib = repository(project.folder / "lib", {"x": "x\n"})
    committed(project, a="a\n")
    allow = ("-c", "protocol.file.allow=always")
    git(project.root, *allow, "submodule", "--quiet", "add", str(lib), "lib")
    git(project.root, "commit", "-q", "-m", "lib")
    project.plan({"s": {"shell": "echo y > lib/y", **WORKTREE}})
    assert project.run().code == 1
    assert not project.has("lib/y")
    project.plan({"t": {"shell": "mkdir lib; echo y > lib/y", **SCRATCH}})
    assert project.run().code == 1
    assert not project.has("lib/y")


def test_permissions_of_a_file_stay_and_the_executable_bit_is_taken(project: Project) -> None:
    committed(project, a="a\n", b="b\n")
    (project.root / "a").chmod(0o600)
    project.plan({"s": {"shell": "echo x > a; chmod 755 b", **WORKTREE}})
    project.run()
    assert (project.root / "a").stat().st_mode & 0o777 == 0o600
    assert (project.root / "b").stat().st_mode & 0o777 == 0o755


def test_undo_takes_changes_back_and_leaves_what_went_on(project: Project) -> None:
    committed(project, a="a\n", b="b\n", c="c\n")
    project.plan({"s": {"shell": "echo 2 > a; echo 2 > b; rm c; echo 2 > d", **WORKTREE}})
    project.run()
    project.write("b", "mine\n")
    undone = project.ok("undo", "s", "--json").json
    step = undone["steps"][0] if "steps" in undone else undone
    assert (project.read("a"), project.read("b"), project.read("c")) == ("a\n", "mine\n", "c\n")
    assert not project.has("d")
    assert "b" in json.dumps(step)
    assert project.ok("verify").code == 0


def test_outputs_and_changes_of_one_step_go_together(project: Project) -> None:
    committed(project, a="a\n")
    shell = project.sh("echo out > out.txt; echo b > a")
    project.plan({"s": {"shell": shell, "produces": "out.txt", **WORKTREE}})
    project.run()
    assert (project.read("out.txt"), project.read("a")) == ("out\n", "b\n")
    (project.root / "out.txt").unlink()
    git(project.root, "checkout", "-q", "a")
    assert project.run().states == {"s": "reused"}
    assert (project.read("out.txt"), project.read("a")) == ("out\n", "b\n")
    project.write("out.txt", "mine\n")
    assert project.run().codes == {"s": "amended"}
    assert (project.read("out.txt"), project.read("a")) == ("mine\n", "b\n")
    assert project.ran() == ["s"]
    project.ok("undo", "s")
    project.ok("undo", "s")
    assert project.read("a") == "a\n"


def test_a_file_that_a_removed_step_changed_is_not_offered_for_removal(project: Project) -> None:
    committed(project, a="a\n")
    project.plan({"s": {"shell": "echo b > a", **WORKTREE}, "t": {"shell": "true"}})
    project.run()
    project.plan({"t": {"shell": "true"}})
    assert "a" not in project.ok("plan").out.split()
    project.run()
    assert project.read("a") == "b\n"


@pytest.mark.parametrize("command", ["plan", "run"])
def test_without_git_a_worktree_is_refused_before_anything_begins(
    project: Project, command: str
) -> None:
    project.plan({"s": {"shell": "true", **WORKTREE}})
    said = project.refused(2, command)
    assert "not a git repository" in said
    assert "hint: say git init and commit something, or say workspace: scratch" in said
    git(project.root, "init", "-q")
    said = project.refused(2, command)
    assert "nothing is committed yet\nhint: commit something" in said
    assert not project.store.exists()


def test_such_steps_run_beside_others(project: Project) -> None:
    """Each says that it began, and ends when the other has."""
    both = {
        name: {
            "shell": f"touch {project.gates}/{name}; {project.gate(other)}; echo {name} > {name}",
            **SCRATCH,
        }
        for name, other in (("one", "two"), ("two", "one"))
    }
    project.plan(both)
    assert project.run("-j", "2").code == 0
    assert (project.read("one"), project.read("two")) == ("one\n", "two\n")


def test_two_engines_take_changes_over_in_turn(project: Project) -> None:
    steps = {
        f"s{n}": {"shell": f"{project.gate('go')}; echo {n} > f{n}", **SCRATCH} for n in range(4)
    }
    project.plan(steps)
    engines = [project.start("run", "--join", "-j", "1") for _ in range(2)]
    until(lambda: len(list((project.store / "scratch").glob("*/*/work"))) >= 2)
    project.open("go")
    assert [engine.wait(60) for engine in engines] == [0, 0]
    assert [project.read(f"f{n}") for n in range(4)] == ["0\n", "1\n", "2\n", "3\n"]
    assert project.ok("verify").code == 0


def test_what_another_engine_took_over_since_the_last_look_is_known(project: Project) -> None:
    """Two names that are one file to some file systems are in conflict, though neither lies in the way."""
    right = {"shell": project.sh(f"{project.gate('right')}; echo right > A"), **SCRATCH}
    first = {"shell": project.sh("echo first > f"), **SCRATCH}
    left = {"shell": project.sh(f"{project.gate('left')}; echo left > a"), **SCRATCH}
    project.plan({"right": right, "first": first, "left": {**left, "needs": "first"}})
    quick = ("--join", "--json", "-j", "1", "--poll", "0.1", "--beat", "0.3")
    other = project.begun_by("run", "-s", "right", *quick, step="right")
    one = project.begun_by("run", *quick, step="left")  # it looked when it took 'first' over
    project.open("right")
    assert finish_run(other).code == 0
    project.open("left")
    run = finish_run(one)
    assert (run.code, [found["steps"] for found in run.data["conflicts"]]) == (
        3,
        [["left", "right"]],
    )
    assert (project.read("A"), project.has("a")) == ("right\n", False)


def test_a_step_that_changes_the_project_in_place_cannot_be_joined(project: Project) -> None:
    project.plan({"s": {"shell": "true", "effects": "workspace"}})
    assert "cannot run beside another engine" in project.refused(2, "run", "--join")


def test_leftover_worktrees_are_seen_by_gc(project: Project) -> None:
    committed(project, a="a\n")
    project.plan({"s": {"shell": project.sh(project.gate("never")), **WORKTREE}})
    engine = project.begun_by("run", step="s")
    engine.kill()
    engine.wait(30)
    assert git(project.root, "worktree", "list").count("\n") == 2
    project.plan({"s": {"shell": "echo x > a", **WORKTREE}})
    assert project.run().code == 0
    assert git(project.root, "worktree", "list").count("\n") == 1
    assert not list((project.store / "worktrees").glob("r-*"))


def test_paths_of_a_case_that_another_system_folds_are_refused_at_check(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": "echo a > Out.txt", "produces": "Out.txt"},
            "b": {"shell": "echo b > out.TXT", "produces": "out.TXT"},
            "c": {"shell": "mkdir dir; echo c > dir/x", "produces": "Dir"},
            "d": {"shell": "mkdir dir; echo c > dir/x", "produces": "dir/x", **WORKTREE},
        }
    )
    answer = project.call("check")
    assert answer.code == 2
    assert (answer.out + answer.err).count("P053") == 2


def test_check_tells_of_a_worktree_whose_changes_are_thrown_away(project: Project) -> None:
    project.plan({"s": {"shell": "true", "workspace": "worktree"}})
    answer = project.call("check")
    assert "P909" in answer.out + answer.err
    assert answer.code == 0


def test_many_files_are_taken_over(project: Project) -> None:
    project.plan(
        {"s": {"shell": "mkdir d; for n in $(seq 100); do echo $n > d/$n; done", **SCRATCH}}
    )
    assert project.run().code == 0
    assert len(list((project.root / "d").iterdir())) == 100


@pytest.mark.req("C27")
def test_a_mode_that_a_person_sets_meanwhile_stays(project: Project) -> None:
    project.write("tool", "old\n")
    shell = project.sh(f"{project.gate('go')}; echo new > tool")
    project.plan({"s": {"shell": shell, "inputs": "tool", **SCRATCH}})
    engine = project.start("run", "--json")
    until(lambda: project.begun() == ["s"])
    (project.root / "tool").chmod(0o755)
    project.open("go")
    assert finish_run(engine).code == 0
    assert project.read("tool") == "new\n"
    assert (project.root / "tool").stat().st_mode & 0o777 == 0o755
    assert project.run().states == {"s": "reused"}
    assert list((project.root / ".holdfast" / "apply").glob("*/")) == [], "nothing is left behind"


def appending(project: Project) -> str:
    """A step that appended to a file; the digest of what the file was before."""
    project.write("src.txt", "base\n")
    body = project.sh("echo more >> src.txt")
    project.plan({"w": {"shell": body, "inputs": "src.txt", **SCRATCH}})
    assert project.run().code == 0
    project.ran()
    return hashlib.sha256(b"base\n").hexdigest()


@pytest.mark.req("I5")
def test_a_step_is_not_undone_whose_files_cannot_be_as_they_were(project: Project) -> None:
    base = appending(project)
    with project.database() as connection:
        connection.execute("DELETE FROM blob WHERE digest = ?", (bytes.fromhex(base),))
    named = f"content '{base}' of the file 'src.txt' as it was before 'w' is missing"
    said = project.refused(9, "verify")
    assert (named in said, "hint: holdfast repair\n" in said) == (True, True)
    assert project.call("verify", "--json").json["bits"] == 1
    for words in (("undo", "w", "--dry-run"), ("undo", "w"), ("undo", "@"), ("undo", "w")):
        assert f"content '{base}' is missing\nhint: holdfast repair" in project.refused(9, *words)
    assert (project.run().states, project.ran()) == ({"w": "reused"}, [])
    assert "1 content gone: recorded as lost" in project.ok("repair").out
    project.ok("verify")
    assert "left      src.txt: what it was before is gone" in project.ok("undo", "w").out
    assert project.read("src.txt") == "base\nmore\n"


def test_what_a_file_was_before_a_step_is_kept_and_may_be_purged(project: Project) -> None:
    base = appending(project)
    project.ok("gc", "--keep", "0s", "--yes")
    assert project.shown(base) == b"base\n"
    project.ok("purge", base, "--because", "it goes", "--yes")
    project.ok("verify")
    project.ok("repair")
    assert "what it was before is gone" in project.ok("undo", "w", "--dry-run").out


@pytest.mark.req("I5")
def test_what_a_step_in_a_copy_made_and_is_lost_is_not_to_be_amended(project: Project) -> None:
    project.write("src.txt", "base\n")
    body = project.sh("head -c 40000 /dev/zero | tr '\\0' v > big; echo more >> src.txt")
    made = {"shell": body, "inputs": "src.txt", "produces": "big", **SCRATCH}
    reads = {"shell": "wc -c < big", "needs": ["wsp"]}
    project.plan({"wsp": made, "low": reads})
    assert project.run().code == 0
    (content,) = (p for p in (project.store / "blobs").glob("??/*") if p.stat().st_size > 16384)
    content.unlink()
    project.plan({"wsp": made, "low": {**reads, "shell": "wc -c < big; echo again"}})
    said = project.refused(1, "run")
    assert ("--force-node wsp makes it again" in said, "amend" in said) == (True, False)
    assert project.run("--force-node", "wsp").code == 0
    project.ok("verify")


@pytest.mark.parametrize("where", [SCRATCH, WORKTREE])
@pytest.mark.parametrize(
    ("rules", "body"),
    [
        (None, "echo out/ > .gitignore"),
        ("*.log\n", "echo out/ >> .gitignore"),
        ("out/\n", "echo '# nothing' > .gitignore"),
        ("out/\n", "rm -f .gitignore"),
    ],
)
def test_a_step_that_changes_what_its_globs_match_stands(
    project: Project, where: Any, rules: str | None, body: str
) -> None:
    """Which files it reads is told by the rules that it began with, for those above it too."""
    committed(project, a="a\n", out__x="x\n", **({".gitignore": rules} if rules else {}))
    top = {"shell": project.sh("echo top"), "inputs": "**"}
    narrow = {"shell": project.sh("echo narrow"), "inputs": {"glob": "out/*", "optional": True}}
    change = {"shell": project.sh(body), "inputs": "**", "needs": ["top", "narrow"], **where}
    after = {"shell": project.sh("echo after"), "inputs": "**", "needs": ["change"]}
    project.plan({"top": top, "narrow": narrow, "change": change, "after": after})
    assert project.run().code == 0
    project.ran()
    assert "Nothing to do" in project.ok("plan").out
    assert (set(project.run().states.values()), project.ran()) == ({"reused"}, [])
    project.write("out/x", "other\n")
    assert project.run().code == 0
    seen = {"top", "narrow", "change"} if "out" not in (rules or "") else set()
    assert seen <= set(project.ran())
    project.write(".gitignore", "mine\n")
    assert {"change", "top"} <= {name for name, row in foretold(project).items() if row[0] == "run"}


@pytest.mark.parametrize("rule", ["[s-b]x", "!", "[[:nothing:]]", "a\\"])
def test_a_rule_that_is_no_pattern_matches_nothing(project: Project, rule: str) -> None:
    committed(project, a="a\n", x="x\n", hidden="h\n", **{".gitignore": f"{rule}\nhidden\n"})
    change = {"shell": project.sh("echo b >> a; echo '# more' >> .gitignore"), "inputs": "**"}
    project.plan({"s": {**change, **SCRATCH}})
    assert project.run().states == {"s": "done"}
    project.write("hidden", "other\n")
    assert project.run().states == {"s": "reused"}
    project.write("x", "other\n")
    assert project.run().states == {"s": "done"}
    assert project.ran() == ["s", "s"]


def test_what_is_done_once_waits_where_the_rules_that_it_began_with_are_gone(
    project: Project,
) -> None:
    """Nobody can tell which files its globs matched then."""
    committed(project, src__a="a\n", src__out__x="x\n", **{".gitignore": "# none\n"})
    pay = {"shell": project.sh("echo paid"), "inputs": "src/**", "effects": "external"}
    hide = project.sh("echo out/ > .gitignore")
    hides = {"shell": hide, "inputs": ["src/**", ".gitignore"], "needs": "pay", **SCRATCH}
    project.plan({"pay": pay, "hide": hides})
    assert project.run("--yes").code == 0
    base = hashlib.sha256(b"# none\n").hexdigest()
    project.ok("purge", base, "--because", "it goes", "--yes")
    assert foretold(project)["pay"][0] == "wait"
    assert project.run("--yes").states["pay"] == "waiting"
    assert project.ran() == ["hide", "pay"]
