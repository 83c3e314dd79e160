"""Positions that cannot all stand: found, shown, decided by a person, and what becomes of the loser."""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, finish_run, until
from tests.gitrepo.repository import repository

SCRATCH = {"workspace": "scratch", "effects": "workspace"}
STEPS = 1000


def overlapping(project: Project, **more: Any) -> None:
    """Two steps that change one file in different ways, and each another one; one below the second."""
    project.write("a", "a\n")
    left = project.sh("echo left > a; echo l > l")
    right = project.sh("echo right > a; echo r > r")
    project.plan(
        {
            "left": {"shell": left, "inputs": "a", **SCRATCH},
            "right": {"shell": right, "inputs": "a", **SCRATCH, **more},
            "below": {"shell": project.sh("cat a"), "needs": "right"},
            "other": {"shell": project.sh("echo other"), "needs": "left"},
        }
    )


def the_conflict(run: Any) -> Any:
    (found,) = run.data["conflicts"]
    return found


@pytest.mark.req("C28", "R85", "C27")
def test_two_steps_that_change_one_file_are_a_conflict_and_the_rest_goes_on(
    project: Project,
) -> None:
    overlapping(project)
    run = project.run("-j", "1")
    assert run.code == 3
    assert run.states == {"left": "done", "right": "waiting", "below": "pending", "other": "done"}
    found = the_conflict(run)
    assert (found["kind"], found["steps"], found["paths"]) == ("files", ["left", "right"], ["a"])
    assert (project.read("a"), project.has("r")) == ("left\n", False), "all or nothing"
    assert f"{found['conflict']}: 'left' and 'right' changed a" in project.ok("status").out
    record = json.loads(project.shown(found["record"]))
    assert [position["step"] for position in record["positions"]] == ["left", "right"]
    assert record["winner"] is None


@pytest.mark.req("C28")
@pytest.mark.parametrize(
    ("take", "a", "winner", "dissent"),
    [("right", "right\n", 1, [0]), ("left", "left\n", 0, [1]), ("mine", "left\n", 2, [0, 1])],
)
def test_a_person_says_whose_version_stands(
    project: Project, take: str, a: str, winner: int, dissent: list[int]
) -> None:
    overlapping(project)
    name = the_conflict(project.run("-j", "1"))["conflict"]
    said = project.ok("resolve", name[:6], "--take", take, "--because", "why not", "--json").json
    assert (said["conflict"], said["take"]) == (name, take)
    assert [one["step"] for one in said["kept"]] == [s for s in ("left", "right") if s != take]
    project.ran()
    run = project.resume()
    assert (run.code, run.data["conflicts"]) == (0, [])
    assert project.ran() == ["below"], "what was made is not made again"
    assert (project.read("a"), project.read("r")) == (a, "r\n")
    assert project.shown("below").decode() == a
    resolved = next(e for e in project.events() if e["event"] == "conflict_resolved")
    record = json.loads(project.shown(resolved["record"]))
    assert (record["winner"], record["how"], record["dissent"]) == (winner, "person", dissent)
    for one in record["positions"]:
        assert project.call("show", one["content"][:12]).code == 0, "the loser's result is kept"
    assert set(project.run().states.values()) == {"reused"}
    assert project.read("a") == a
    assert project.ok("verify").code == 0


def test_a_version_that_a_person_put_there_already_can_be_taken(project: Project) -> None:
    overlapping(project)
    name = the_conflict(project.run("-j", "1"))["conflict"]
    project.write("a", "right\n")
    project.write("r", "r\n")
    project.ok("resolve", name, "--take", "right")
    assert project.resume().code == 0
    assert (project.read("a"), project.read("r")) == ("right\n", "r\n")
    project.ok("verify")
    assert set(project.run().states.values()) == {"reused"}
    project.ok("undo", "below")
    project.ok("undo", "right")
    assert (project.read("a"), project.has("r")) == ("left\n", False), "the other version"
    project.ok("verify")


def test_a_decision_stands_when_everything_is_put_in_place_again(project: Project) -> None:
    overlapping(project)
    name = the_conflict(project.run("-j", "1"))["conflict"]
    project.ok("resolve", name, "--take", "right")
    project.resume()
    project.write("a", "a\n")
    for path in ("l", "r"):
        (project.root / path).unlink()
    project.ran()
    assert set(project.run().states.values()) == {"reused"}
    assert (project.read("a"), project.read("l"), project.read("r")) == ("right\n", "l\n", "r\n")
    assert project.ran() == []


def test_the_same_conflict_is_not_asked_about_twice(project: Project) -> None:
    overlapping(project)
    name = the_conflict(project.run("-j", "1"))["conflict"]
    project.ok("resolve", name, "--take", "right")
    project.write("a", "a\n")
    for path in ("l",):
        (project.root / path).unlink()
    run = project.run("--force", "-j", "1", "--yes")
    assert run.code == 0
    assert project.read("a") == "right\n"
    assert [e["event"] for e in project.events()].count("conflict_resolved") == 1


def at_once(project: Project) -> None:
    """Two steps that begin with the same file and change it in different ways; left is done first."""
    project.write("a", "a\n")
    steps: dict[str, Any] = {
        name: {
            "shell": project.sh(f"{project.gate(name)}; echo {name} > a; echo x > {name}-own"),
            "inputs": "a",
            **SCRATCH,
        }
        for name in ("left", "right")
    }
    steps["below"] = {"shell": project.sh("cat a"), "needs": "right"}
    project.plan(steps)
    engine = project.start("run", "-j", "2", "--json")
    until(lambda: sorted(project.begun()) == ["left", "right"])
    project.open("left")
    until(lambda: project.has("left-own"))
    project.open("right")
    assert finish_run(engine).code == 3


@pytest.mark.req("C28", "R85")
@pytest.mark.parametrize(
    ("take", "merged", "again", "a"),
    [
        ("right", "", "", "right\n"),
        ("left", "", "", "left\n"),
        ("mine", "", "", "left\n"),
        ("mine", "merged\n", "", "merged\n"),
        ("right", "merged\n", "right", "right\n"),
        ("right", "merged\n", "mine", "merged\n"),
    ],
)
def test_what_was_settled_stands_in_all_later_runs(
    project: Project, take: str, merged: str, again: str, a: str
) -> None:
    at_once(project)
    if merged:
        project.write("a", merged)
    project.ok("resolve", "right", "--take", take)
    project.resume()
    if again:
        project.ok("resolve", "right", "--take", again)
        assert project.resume().code == 0
    assert project.read("a") == a
    project.ran()
    for _ in range(3):
        run = project.run()
        assert (run.code, set(run.states.values())) == (0, {"reused"})
        assert (project.read("a"), project.ran()) == (a, [])
    if again == "mine" or take == "mine":
        return
    project.write("a", "a\n")
    assert set(project.run().states.values()) == {"reused"}
    assert (project.read("a"), project.ran()) == (a, []), "it is put in place again"


def test_a_plan_tells_that_what_gave_way_is_written_over_again(project: Project) -> None:
    at_once(project)
    project.write("a", "merged\n")
    for _ in range(2):  # the other step's version gives way, then that of a person
        project.ok("resolve", "right", "--take", "right")
        project.resume()
    assert "Nothing to do" in project.ok("plan").out
    project.write("a", "left\n")
    assert "Writes 1 file from the store: a" in project.ok("plan").out
    assert set(project.run().states.values()) == {"reused"}
    assert project.read("a") == "right\n"


@pytest.mark.req("C28")
def test_who_lost_does_not_win_by_being_made_again(project: Project) -> None:
    at_once(project)
    project.ok("resolve", "right", "--take", "right")
    project.resume()
    run = project.run("--force", "-j", "1", "--yes")
    assert (run.code, run.states["left"], project.read("a")) == (3, "waiting", "right\n")
    project.ok("resolve", "left", "--take", "right")
    assert project.resume().code == 0
    project.ran()
    assert set(project.run().states.values()) == {"reused"}
    assert (project.read("a"), project.ran()) == ("right\n", [])


def rewriting(project: Project, **changed: str) -> None:
    """Two steps that read one file and write it each in its own way; `changed` ones by another command."""
    project.plan(
        {
            name: {
                "shell": project.sh(f"{changed.get(name, 'true')}; echo {name} > F"),
                "inputs": "F",
                **SCRATCH,
            }
            for name in ("one", "two")
        }
    )


OTHER = "true; true"


@pytest.mark.req("C28", "I7")
@pytest.mark.parametrize(
    ("take", "changed", "text", "sides"),
    [
        ("mine", {"two": OTHER}, "hand\n", ["two"]),
        ("mine", {"one": OTHER}, "hand\n", ["one"]),
        ("one", {"one": OTHER, "two": OTHER}, "one\n", ["one", "two"]),
        ("two", {"one": OTHER, "two": OTHER}, "two\n", ["one", "two"]),
    ],
)
def test_who_lost_is_asked_about_again_whoever_won(
    project: Project, take: str, changed: dict[str, str], text: str, sides: list[str]
) -> None:
    project.write("F", "old\n")
    rewriting(project)
    assert project.run("-j", "1").code == 3
    if take == "mine":
        project.write("F", text)
    project.ok("resolve", "two", "--take", take)
    assert project.resume().code == 0
    assert set(project.run().states.values()) == {"reused"}
    rewriting(project, **changed)
    run = project.run("-j", "1")
    assert (run.code, project.read("F")) == (3, text)
    assert the_conflict(run)["steps"] == sides
    project.ok("resolve", the_conflict(run)["conflict"], "--take", "mine")
    assert project.resume().code == 0
    run = project.run()
    assert (set(run.states.values()), project.read("F")) == ({"reused"}, text)


@pytest.mark.req("C28")
def test_who_lost_does_not_win_by_failing_first(project: Project) -> None:
    project.write("F", "old\n")
    rewriting(project)
    project.run("-j", "1")
    project.ok("resolve", "two", "--take", "one")
    project.resume()
    rewriting(project, two=f"test -e {project.folder}/go || exit 1")
    assert project.run("-j", "1").states["two"] == "failed"
    (project.folder / "go").touch()
    run = project.resume()
    assert (run.code, run.states["two"], project.read("F")) == (3, "waiting", "one\n")


@pytest.mark.req("C28")
def test_who_lost_is_asked_about_what_the_winner_made_since(project: Project) -> None:
    project.write("F", "old\n")
    rewriting(project)
    project.run("-j", "1")
    project.ok("resolve", "two", "--take", "one")
    project.resume()
    rewriting(project, one="one() { echo ONE; }; trap 'one > F' EXIT")
    assert (project.run().code, project.read("F")) == (0, "ONE\n"), "the winner goes on alone"
    rewriting(project, one="true; one() { echo ONE; }; trap 'one > F' EXIT", two=OTHER)
    run = project.run("-j", "1")
    assert (run.code, project.read("F")) == (3, "ONE\n")
    assert the_conflict(run)["steps"] == ["one", "two"]


def test_equal_content_is_no_conflict(project: Project) -> None:
    same = {"shell": "echo same > f", **SCRATCH}
    project.plan({"a": same, "b": same, "c": {"shell": "rm x", "inputs": "x", **SCRATCH}})
    project.write("x", "x\n")
    assert project.run().code == 0


def test_steps_in_a_row_may_change_one_file(project: Project) -> None:
    project.write("a", "a\n")
    needs = [{"step": "one", "type": "sequence"}]
    project.plan(
        {
            "one": {"shell": "echo 1 >> a", "inputs": "a", **SCRATCH},
            "two": {"shell": "echo 2 > a", "needs": needs, **SCRATCH},
        }
    )
    assert project.run().code == 0
    assert project.read("a") == "2\n"


WORKTREE = {"workspace": "worktree", "effects": "workspace"}
TO_FILE, IN_IT = "rm -r d; echo file > d", "echo n > d/n; echo new > d/two"


@pytest.mark.req("C28")
@pytest.mark.parametrize(
    ("first", "second", "then", "before"),
    [
        (TO_FILE, IN_IT, {"d/n": "n\n", "d/two": "new\n"}, {"d": "file\n"}),
        (
            IN_IT,
            TO_FILE,
            {"d": "file\n"},
            {"d/n": "n\n", "d/one": "1\n", "d/two": "new\n"},
        ),
    ],
)
def test_a_file_and_a_directory_in_one_place_are_settled_either_way(
    project: Project, first: str, second: str, then: dict[str, str], before: dict[str, str]
) -> None:
    repository(project.root, {"d/one": "1\n", "d/two": "2\n"})
    project.plan({"a": {"shell": first, **WORKTREE}, "b": {"shell": second, **WORKTREE}})

    def there() -> dict[str, str]:
        names = ("d", "d/n", "d/one", "d/two")
        return {name: project.read(name) for name in names if (project.root / name).is_file()}

    name = the_conflict(project.run("-j", "1"))["conflict"]
    assert there() == before
    project.ok("resolve", name, "--take", "b")
    assert project.resume().states == {"a": "done", "b": "done"}
    assert there() == then
    assert project.run().states == {"a": "reused", "b": "reused"}
    assert there() == then
    project.ok("undo", "b")
    assert there() == before
    project.ok("verify")


def test_a_file_where_a_directory_must_be_is_a_conflict(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": "echo x > f", **SCRATCH},
            "b": {"shell": "d=f; mkdir $d; echo x > $d/x", **SCRATCH},
            "c": {"shell": "echo x > F", **SCRATCH},
        }
    )
    run = project.run("-j", "1")
    assert [found["steps"] for found in run.data["conflicts"]] == [["a", "b"], ["a", "c"]]


@pytest.mark.req("C28", "R85")
@pytest.mark.parametrize(("take", "text"), [("mine", "mine\n"), ("theirs", "step\n")])
def test_a_file_that_somebody_edits_meanwhile_is_never_overwritten(
    project: Project, take: str, text: str
) -> None:
    project.write("a", "a\n")
    shell = project.sh(f"{project.gate('go')}; echo step > a; echo b > b")
    project.plan({"s": {"shell": shell, "inputs": "a", **SCRATCH}})
    engine = project.start("run", "--json")
    until(lambda: project.begun() == ["s"])
    project.write("a", "mine\n")
    project.open("go")
    run = finish_run(engine)
    assert (run.code, run.states) == (3, {"s": "waiting"})
    found = the_conflict(run)
    assert (found["kind"], found["paths"]) == ("tree", ["a"])
    assert (project.read("a"), project.has("b")) == ("mine\n", False)
    project.ok("resolve", "s", "--take", take)
    assert project.resume().code == 0
    assert (project.read("a"), project.read("b")) == (text, "b\n")
    assert len(project.begun()) == 1
    resolved = next(e for e in project.events() if e["event"] == "conflict_resolved")
    record = json.loads(project.shown(resolved["record"]))
    contents = [one["content"] for one in record["positions"]]
    assert all(project.call("show", content[:12]).code == 0 for content in contents)
    assert resolved["winner"] == ("" if take == "mine" else "s")


def test_a_file_that_nobody_declared_is_not_overwritten_either(project: Project) -> None:
    project.write("mine", "a year of work\n")
    project.plan({"s": {"shell": "echo x > mine", **SCRATCH}})
    run = project.run()
    assert (run.code, the_conflict(run)["kind"]) == (3, "tree")
    assert project.read("mine") == "a year of work\n"


def test_an_edit_after_the_decision_is_a_conflict_of_its_own(project: Project) -> None:
    overlapping(project)
    first = the_conflict(project.run("-j", "1"))["conflict"]
    project.ok("resolve", first, "--take", "right")
    project.write("a", "edited since\n")
    run = project.resume()
    assert run.code == 3
    second = the_conflict(run)
    assert (second["conflict"] != first, second["kind"]) == (True, "tree")
    assert project.read("a") == "edited since\n"
    project.ok("resolve", second["conflict"], "--take", "right")
    assert project.resume().code == 0
    assert project.read("a") == "right\n"


def test_a_step_in_conflict_can_be_made_again_on_what_is_there(project: Project) -> None:
    project.write("a", "a\n")
    add = {"inputs": "a", **SCRATCH}
    project.plan({n: {"shell": project.sh(f"echo {n} >> a"), **add} for n in ("left", "right")})
    project.run("-j", "2")
    (waiting,) = (s for s, state in project.status().states.items() if state == "waiting")
    run = project.retry(waiting)
    assert (run.code, run.data["conflicts"]) == (0, [])
    assert sorted(project.read("a").split()) == ["a", "left", "right"]


def test_what_is_wrong_with_a_word_is_told_and_changes_nothing(project: Project) -> None:
    assert "no run yet" in project.refused(2, "resolve", "c-1", "--take", "mine")
    overlapping(project)
    name = the_conflict(project.run("-j", "1"))["conflict"]
    assert "is no side" in project.refused(2, "resolve", name, "--take", "nobody")
    assert "is no side" in project.refused(2, "resolve", name, "--take", "theirs")
    assert "no open conflict" in project.refused(2, "resolve", "c-none", "--take", "left")
    project.ok("resolve", name, "--take", "left")
    assert "settled" in project.refused(2, "resolve", name, "--take", "right")
    project.resume()
    assert "no conflict is open" in project.refused(2, "resolve", name, "--take", "left")
    assert project.read("a") == "left\n"


def test_a_step_cannot_resolve_a_conflict(project: Project) -> None:
    overlapping(project)
    name = the_conflict(project.run("-j", "1"))["conflict"]
    env = {"HOLDFAST_STEP": "s", "HOLDFAST_MARK": "r-1/s/1"}
    said = project.call("resolve", name, "--take", "left", env=env)
    assert said.code == 2
    assert project.resume().code == 3


def test_a_candidate_that_a_person_approves_may_still_be_in_conflict(project: Project) -> None:
    overlapping(project, guards=["human"])
    run = project.run("-j", "1")
    assert run.code == 3
    assert run.data["conflicts"] == []
    project.ok("approve", "right", "--yes")
    run = project.resume()
    assert (run.code, the_conflict(run)["kind"]) == (3, "files")
    project.ok("resolve", "right", "--take", "right")
    assert project.resume().code == 0
    assert project.read("a") == "right\n"


@pytest.mark.req("C28", "R85")
def test_agents_that_disagree_hold_back_what_stands_on_them(project: Project) -> None:
    def says(action: str, confidence: float) -> str:
        said = {"scope": "db", "action": action, "confidence": confidence}
        return f"echo '{json.dumps({'recommendations': [said]})}'"

    project.plan(
        {
            "one": {"shell": says("sqlite", 0.8), "agent": "reviewer"},
            "two": {"shell": says("postgres", 0.8), "agent": "reviewer"},
            "three": {"shell": "echo free"},
            "both": {"shell": project.sh("echo both"), "needs": ["one", "two"]},
            "free": {"shell": project.sh("echo free"), "needs": "three"},
        }
    )
    run = project.run()
    found = the_conflict(run)
    assert (run.code, found["kind"], found["steps"]) == (3, "agents", ["one", "two"])
    assert run.states["both"] == "waiting"
    assert run.states["free"] == "done"
    assert project.ran() == ["free"]
    assert "recommend different things" in project.ok("status").out
    project.ok("resolve", found["conflict"], "--take", "two")
    run = project.resume()
    assert (run.code, run.states["both"]) == (0, "done")
    resolved = next(e for e in project.events() if e["event"] == "conflict_resolved")
    assert resolved["winner"] == "two"
    assert project.run().code == 0, "the next run finds it again, and asks nobody: it was decided"


def test_agents_whose_weight_settles_it_hold_nobody_back(project: Project) -> None:
    def says(action: str, confidence: float) -> str:
        said = {"scope": "db", "action": action, "confidence": confidence}
        return f"echo '{json.dumps({'recommendations': [said]})}'"

    project.plan(
        {
            "one": {"shell": says("sqlite", 0.9), "agent": "x"},
            "two": {"shell": says("postgres", 0.2), "agent": "y"},
            "both": {"shell": "echo both", "needs": ["one", "two"]},
        }
    )
    assert project.run().code == 0
    kinds = [e["event"] for e in project.events()]
    assert (kinds.count("conflict_found"), kinds.count("conflict_resolved")) == (1, 1)


def thousand(planted: bool) -> dict[str, dict[str, Any]]:
    steps: dict[str, dict[str, Any]] = {
        f"s{n:04}": {"shell": f"mkdir -p out; echo {n} > out/f{n:04}", **SCRATCH}
        for n in range(STEPS)
    }
    if planted:
        steps["s0500"]["shell"] = "mkdir -p out; echo planted > out/f0007"
    return steps


@pytest.fixture
def quick() -> Iterator[Project]:
    """A project in memory: a thousand changes of files are a thousand times ten waits for a disk."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        made = Project(Path(folder))
        yield made
        made.end()


@pytest.mark.req("C27", "C28")
def test_a_thousand_steps_in_parallel_and_exactly_the_one_overlap(quick: Project) -> None:
    project = quick
    project.plan(thousand(planted=False))
    run = project.run()
    assert (run.code, run.data["conflicts"]) == (0, [])
    names = sorted(path.name for path in (project.root / "out").iterdir())
    assert names == [f"f{n:04}" for n in range(STEPS)]
    project.plan(thousand(planted=True))
    run = project.run()
    assert run.code == 3
    found = the_conflict(run)
    assert (found["steps"], found["paths"]) == (["s0007", "s0500"], ["out/f0007"])
    assert project.read("out/f0007") == "7\n"


@pytest.mark.soak("conflicts")
@pytest.mark.req("C27", "C28")
def test_a_thousand_steps_with_one_overlap_from_nothing(quick: Project) -> None:
    project = quick
    project.plan(thousand(planted=True))
    run = project.run()
    assert run.code == 3
    found = the_conflict(run)
    assert (found["steps"], found["paths"]) == (["s0007", "s0500"], ["out/f0007"])
    assert run.data["totals"]["done"] == STEPS - 1


def test_a_worktree_step_and_a_scratch_step_meet_in_one_record(project: Project) -> None:
    repository(project.root, {"a": "a\n"})
    project.plan(
        {
            "one": {"shell": "echo one > a", "workspace": "worktree", "effects": "workspace"},
            "two": {"shell": "echo two > a", "inputs": "a", **SCRATCH},
        }
    )
    run = project.run("-j", "1")
    assert the_conflict(run)["steps"] == ["one", "two"]
