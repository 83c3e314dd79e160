"""Several engines on one line: claims keep them apart, nobody sends messages."""

import collections
import os
import signal
from pathlib import Path

import apsw
import pytest

from tests.cli.project import Project, finish, finish_run, kill, until
from tests.cli.test_ledger_words import handoff

QUICK = ("--poll", "0.1", "--beat", "0.3")
LEASE = (*QUICK, "--lease", "2")


def stop(project: Project, pid: int) -> None:
    """Stop an engine, but not in the midst of a write: SQLite lets nobody else write until that is over."""

    def stopped() -> bool:
        os.kill(pid, signal.SIGSTOP)
        until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        database = apsw.Connection(str(project.store / "state.db"))
        try:
            database.execute("BEGIN IMMEDIATE; ROLLBACK")
        except apsw.BusyError:
            os.kill(pid, signal.SIGCONT)
            return False
        finally:
            database.close()
        return True

    until(stopped, "it stands still between two writes")


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


def facts(project: Project) -> list[object]:
    """Every row of the journals and of what was made."""
    tables = ("event", "artifact", "run")
    return [project.database().execute(f"SELECT * FROM {name}").fetchall() for name in tables]


@pytest.mark.req("D14", "R49", "R176", "I3")
@pytest.mark.parametrize("joined", [("--join",), ()])
def test_who_is_stopped_past_its_lease_is_taken_over_on_one_machine(
    project: Project, joined: tuple[str, ...]
) -> None:
    late = f"[ $(grep -c slow {project.log}) -gt 1 ] || {{ {project.gate('late')}; }}"
    project.plan(
        {
            "slow": {"shell": project.sh(f"{late}; echo slow")},
            "end": {"shell": project.sh(), "needs": ["slow"]},
        }
    )
    first = project.begun_by("run", "--json", *joined, *LEASE, step="slow")
    stop(project, first.pid)
    run = finish_run(project.start("run", "--json", "--join", *LEASE))
    assert (run.code, run.data["status"]) == (0, "completed"), run.err
    assert f"process {first.pid} on" in run.err
    assert "stood still for 2 s" in run.err
    assert project.begun() == ["slow", "slow", "end"]
    until(lambda: not project.has_at_gate("late"), "what it had started is ended")
    rows = facts(project)
    os.kill(first.pid, signal.SIGCONT)
    told = finish(first)
    assert told.code != 0
    assert "took this line over" in told.err or "taken over" in told.err
    assert facts(project) == rows
    assert project.begun() == ["slow", "slow", "end"]
    project.ok("verify")


@pytest.mark.req("D14", "I3")
def test_what_was_made_while_its_engine_was_stopped_is_written_nowhere(project: Project) -> None:
    words = f"{project.gate('late')}; grep -c slow {project.log} > out.txt; echo x >> {project.folder}/made"
    project.plan({"slow": {"shell": project.sh(words), "produces": "out.txt"}})
    first = project.begun_by("run", "--json", "--join", *LEASE, step="slow")
    stop(project, first.pid)
    project.open("late")
    until((project.folder / "made").exists, "it is made, and nobody takes it in")
    run = finish_run(project.start("run", "--json", "--join", *LEASE))
    assert (run.code, project.begun(), project.read("out.txt")) == (0, ["slow", "slow"], "2\n")
    os.kill(first.pid, signal.SIGCONT)
    assert finish(first).code != 0
    assert project.read("out.txt") == "2\n"
    project.ok("verify")


def deploying(project: Project) -> None:
    """A plan with an effect outside that may be had only once, and waits at a gate."""
    project.plan(
        {
            "one": {"shell": project.sh()},
            "dep": {
                "shell": project.sh(f"{project.gate('go')}; echo deployed"),
                "needs": ["one"],
                "effects": "external",
            },
            "last": {"shell": project.sh(), "needs": ["dep"]},
        }
    )


@pytest.mark.req("R49")
@pytest.mark.parametrize("joined", [("--join",), ()])
def test_an_effect_that_a_live_engine_has_in_hand_is_waited_for(
    project: Project, joined: tuple[str, ...]
) -> None:
    deploying(project)
    first = project.begun_by("run", "--json", "--yes", *joined, *QUICK, step="dep")
    second = project.start("run", "--json", "--yes", "--join", *QUICK)
    count = "SELECT count(*) FROM run"
    until(lambda: project.database().execute(count).fetchall() == [(2,)], "the other one joins")
    beat = "SELECT min(beat) > 5 FROM holder"
    until(lambda: project.database().execute(beat).fetchall() == [(1,)], "it had time to look")
    assert "waits for a person" in project.refused(2, "approve", "dep", "--yes")
    project.open("go")
    runs = [finish_run(first), finish_run(second)]
    assert [run.code for run in runs] == [0, 0], runs[1].err
    assert sorted(project.begun()) == ["dep", "last", "one"]
    assert runs[1].states["dep"] == "reused"
    assert runs[0].digests == runs[1].digests


@pytest.mark.req("R49", "R74")
def test_the_effect_of_an_engine_that_dies_is_left_to_a_person(project: Project) -> None:
    deploying(project)
    first = project.begun_by("run", "--json", "--yes", "--join", *QUICK, step="dep")
    second = project.start("run", "--json", "--yes", "--join", *QUICK)
    count = "SELECT count(*) FROM run"
    until(lambda: project.database().execute(count).fetchall() == [(2,)], "the other one joins")
    assert second.poll() is None
    kill(first)
    run = finish_run(second)
    assert (run.code, run.codes["dep"]) == (3, "effect_unconfirmed"), run.err
    assert project.begun().count("dep") == 1
    project.open("go")
    one, other = project.ok("approvals").out.split("\n\n")[:2]
    (asked, _) = project.ok("approvals", "--json").json["approvals"]
    same = f"the open effect of {asked['approval']}; one yes for both: holdfast approve dep"
    assert same in other, "two runs are held for one effect"
    assert "same" not in one
    project.ok("approve", "dep", "--yes")
    assert "nothing waits for a person" in project.ok("approvals").out
    again = project.resume("--yes", *QUICK)
    assert (again.code, again.states["dep"]) == (0, "done")
    assert project.begun().count("dep") == 2, "only after a person let it"


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
