"""Several engines on one line: claims keep them apart, nobody sends messages."""

import collections

import pytest

from tests.cli.project import Project, finish, finish_run, kill, until
from tests.cli.test_ledger_words import handoff

QUICK = ("--poll", "0.1", "--beat", "0.3")


def layered(project: Project) -> dict[str, list[str]]:
    """Three layers of four, each step reading two of the layer above; what each needs."""
    needs: dict[str, list[str]] = {}
    for layer in range(3):
        for place in range(4):
            above = [f"s{layer - 1}{place}", f"s{layer - 1}{(place + 1) % 4}"] if layer else []
            needs[f"s{layer}{place}"] = above
    read = 'cat /dev/null $(ls -d "$HOLDFAST_INPUTS"/* 2>/dev/null); echo $HOLDFAST_STEP'
    project.plan({s: {"shell": project.sh(read), "needs": above} for s, above in needs.items()})
    return needs


@pytest.mark.req("R49", "R67", "R76", "E7")
def test_every_step_is_executed_once_over_two_engines(project: Project) -> None:
    needs = layered(project)
    engines = [project.start("run", "--json", "--join", "-j", "2", *QUICK) for _ in range(2)]
    runs = [finish_run(engine) for engine in engines]
    names = [f"s{layer}{place}" for layer in range(3) for place in range(4)]
    assert collections.Counter(project.begun()) == dict.fromkeys(names, 1)
    order = project.begun()
    for step, above in needs.items():
        assert all(order.index(need) < order.index(step) for need in above)
    for run in runs:
        assert (run.code, run.data["status"]) == (0, "completed")
        assert set(run.states.values()) <= {"done", "reused"}
    assert runs[0].id != runs[1].id
    assert runs[0].digests == runs[1].digests
    assert runs[0].refs == runs[1].refs
    for name in names:
        assert [run.states[name] for run in runs].count("done") == 1
    assert project.call("verify").code == 0


@pytest.mark.req("R49")
def test_an_engine_joins_one_that_was_started_alone(project: Project) -> None:
    wait = project.gate("go")
    project.plan(
        {
            "a": {"shell": project.sh(f"{wait}; echo a")},
            "b": {"shell": project.sh("echo b"), "needs": [{"step": "a", "type": "sequence"}]},
            **{f"c{n}": {"shell": project.sh(f"echo {n}"), "needs": ["a"]} for n in range(4)},
        }
    )
    first = project.begun_by("run", "--json", "-j", "1", *QUICK, step="a")
    second = project.start("run", "--json", "--join", *QUICK)
    until(lambda: len(project.database().execute("SELECT id FROM run").fetchall()) == 2)
    project.open("go")
    runs = [finish_run(first), finish_run(second)]
    assert [run.code for run in runs] == [0, 0]
    assert sorted(project.begun()) == ["a", "b", "c0", "c1", "c2", "c3"]
    assert runs[0].digests == runs[1].digests
    assert runs[1].codes["a"] == "unchanged", "it waited for the other one's result"


@pytest.mark.req("R49", "R116")
def test_what_a_step_told_in_one_engine_is_known_to_steps_in_the_other(project: Project) -> None:
    project.write("look.json", handoff({"finding": "the gauge read 12"}))
    look = f"{project.gate('go')}; cat look.json > $HOLDFAST_HANDOFF; echo 12"
    read = f"{project.gate('both')}; cat $HOLDFAST_CONTEXT"
    project.plan(
        {
            "look": {"shell": project.sh(look), "inputs": "look.json", "priority": "CRITICAL"},
            "free": {"shell": project.sh()},
            "after": {"shell": project.sh(), "needs": ["free"]},
            **{f"r{n}": {"shell": project.sh(read), "needs": ["look"]} for n in range(2)},
        }
    )
    first = project.begun_by("run", "--json", "--join", "-j", "1", *QUICK, step="look")
    second = project.start("run", "--json", "--join", "-j", "1", *QUICK)
    until(lambda: "after" in project.begun(), "the other one was told what there was by then")
    project.open("go")
    until(lambda: {"r0", "r1"} <= set(project.begun()), "each reads at the same time")
    project.open("both")
    runs = [finish_run(first), finish_run(second)]
    assert [run.code for run in runs] == [0, 0]
    done = [step for run in runs for step, state in run.states.items() if state == "done"]
    assert sorted(done) == ["after", "free", "look", "r0", "r1"]
    for step in ("r0", "r1"):
        assert "the gauge read 12" in project.ok("show", step).out


@pytest.mark.req("R49", "R74")
def test_the_step_of_a_killed_engine_is_taken_over(project: Project) -> None:
    project.plan(
        {
            "slow": {"shell": project.sh(f"{project.gate('go')}; echo slow")},
            "end": {"shell": project.sh("cat $HOLDFAST_INPUTS/slow"), "needs": ["slow"]},
        }
    )
    first = project.begun_by("run", "--json", "--join", *QUICK, step="slow")
    second = project.start("run", "--json", "--join", *QUICK)
    until(lambda: len(project.database().execute("SELECT id FROM run").fetchall()) == 2)
    assert second.poll() is None
    assert project.begun() == ["slow"], "the claim keeps the second one away"
    kill(first)
    until(lambda: len(project.begun()) == 2, "the second one takes it over")
    project.open("go")
    run = finish_run(second)
    assert (run.code, run.data["status"]) == (0, "completed")
    assert project.begun() == ["slow", "slow", "end"]
    assert project.run().data["totals"]["reused"] == 2


def test_a_step_that_works_in_the_project_directory_cannot_join(project: Project) -> None:
    project.plan({"s": {"shell": project.sh(), "workspace": "shared"}})
    assert "scratch" in project.refused(2, "run", "--join")
    assert project.ran() == []


@pytest.mark.req("I7", "D18")
def test_what_a_dead_engine_half_wrote_is_nobodys_version(project: Project) -> None:
    half = f"[ ! -e {project.folder}/slow ] || {{ printf ha > out.txt; {project.gate('go')}; }}"
    words = project.sh(f"{half}; echo whole > out.txt")
    project.plan({"q": {"shell": words, "produces": "out.txt"}})
    assert project.run().code == 0
    (project.folder / "slow").touch()
    first = project.begun_by("run", "--force-node", "q", *QUICK, step="q")
    until(lambda: project.read("out.txt") == "ha", "half of it is there")
    second = project.start("run", "--json", "--join", *QUICK)
    until(lambda: len(project.ok("history", "--json").json["runs"]) == 3, "the other one joined")
    kill(first)
    (project.folder / "slow").unlink()
    told = finish(second)
    project.open("go")
    assert (told.code, told.json["steps"]["q"]["state"]) == (0, "reused"), told.err
    assert project.read("out.txt") == "whole\n"
    assert "what it left is kept" in told.err
    project.ok("verify")
