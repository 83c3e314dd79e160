"""Workers take steps of a queue; whoever dies, hangs or is not wanted any more loses nothing of it."""

import collections
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from holdfast.store.postgres import make_store
from tests.cli.project import Project, finish, finish_run, kill, until
from tests.cli.team import QUICK, Machine
from tests.cli.test_process_tree import GONE, free_port, is_free
from tests.postgres import Server, new_schema

RUN = ("run", "--json", *QUICK)
WORKER = ("worker", "--queue", "far", "--poll", "0.1", "--beat", "0.3")


@pytest.fixture(params=["sqlite", "postgres"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    url = str(tmp_path / "m" / "store")
    if request.param == "postgres":
        running: Server = request.getfixturevalue("postgres")
        url = running.url(new_schema())
        make_store(url)
    made = Machine(tmp_path / "m", url)
    yield made
    made.end()


@pytest.mark.req("R177")
def test_steps_run_where_their_queue_is_served_and_nowhere_else(machine: Machine) -> None:
    place = "uname -n"
    machine.write("words.txt", "one two\n")
    machine.plan(
        {
            "far": {"shell": f"{place}; cat words.txt", "inputs": "words.txt", "runs_on": "far"},
            "files": {
                "shell": "cat $HOLDFAST_INPUTS/far; mkdir -p out; echo x > out/a; echo y > b; chmod +x b",
                "needs": ["far"],
                "runs_on": "far",
                "produces": ["out/a", "b"],
                "guards": [{"command": "grep -q x out/a"}],
            },
            "here": {"shell": place, "needs": ["files"]},
        },
        project="shop",
    )
    worker = machine.elsewhere("faraway", *WORKER, "-j", "2")
    run = finish_run(machine.start(*RUN))
    assert (run.code, run.data["status"]) == (0, "completed"), run.err
    assert machine.shown("far") == b"faraway\none two\n"
    assert machine.shown("here") != b"faraway\n"
    assert (machine.read("out/a"), machine.read("b")) == ("x\n", "y\n")
    assert (machine.root / "b").stat().st_mode & 0o100
    worker.send_signal(signal.SIGTERM)
    told = finish(worker)
    assert (told.code, told.out) == (0, "2 errands done\n")
    machine.ok("verify")


LISTENS = (
    'import os, socket, sys; taken = socket.create_server(("127.0.0.1", int(sys.argv[1])));'
    " os.set_inheritable(taken.fileno(), True); os.execvp(sys.argv[2], sys.argv[2:])"
)


@pytest.mark.req("R74", "R176", "D20")
def test_the_step_of_a_killed_worker_is_made_again(machine: Machine) -> None:
    gate, port = machine.gate("go"), free_port()
    listens = f"{sys.executable} -c '{LISTENS}' {port}"
    tree = f"setsid sh -c '{gate}' & (sh -c '{gate}' &); {listens} sh -c '{gate}'"
    words = machine.sh(f"[ $(grep -c s {machine.log}) -gt 1 ] || {{ {tree}; }}; {listens} echo s")
    machine.plan({"s": {"shell": words, "runs_on": "far"}}, project="shop")
    first = machine.elsewhere("one", *WORKER, "--network")
    engine = machine.start(*RUN, "--network")
    until(lambda: not is_free(port), "all of it is up")
    kill(first)
    until(lambda: not machine.has_at_gate("go"), "nothing of it is left", GONE)
    until(lambda: is_free(port), "the port is free", GONE)
    second = machine.elsewhere("two", *WORKER, "--network")
    run = finish_run(engine)
    assert (run.code, run.states) == (0, {"s": "done"}), run.err
    assert machine.begun() == ["s", "s"]
    assert not machine.has_at_gate("go")
    kill(second)


@pytest.mark.req("D14", "I10")
def test_a_worker_that_stood_still_past_its_lease_reports_to_nobody(machine: Machine) -> None:
    gates = f"{machine.gate('go')}; touch {machine.gates}/made; {machine.gate('end')}"
    late = f"[ $(grep -c s {machine.log}) -gt 1 ] || {{ {gates}; }}"
    words = machine.sh(f"{late}; grep -c s {machine.log} > out.txt")
    machine.plan({"s": {"shell": words, "runs_on": "far", "produces": "out.txt"}}, project="shop")
    first = machine.elsewhere("one", *WORKER)
    engine = machine.start(*RUN)
    until(lambda: machine.begun() == ["s"], "it begins")
    first.send_signal(signal.SIGSTOP)
    machine.open("go")  # what it started goes on, and comes to its end
    until((machine.gates / "made").exists, "it is made")
    machine.open("end")
    machine.elsewhere("two", *WORKER)
    run = finish_run(engine)
    assert (run.code, run.states, machine.read("out.txt")) == (0, {"s": "done"}, "2\n"), run.err
    events = machine.events()
    first.send_signal(signal.SIGCONT)
    until(lambda: not machine.has_at_gate("end"), "nothing of it is left")
    first.send_signal(signal.SIGTERM)
    told = finish(first)
    assert "this worker was taken for dead" in told.err, told.err
    assert told.out == "0 errands done\n"
    assert machine.events() == events
    assert machine.read("out.txt") == "2\n"
    assert machine.run(*QUICK).data["totals"]["reused"] == 1


@pytest.mark.req("D16", "D20")
def test_a_step_that_hangs_behind_a_live_worker_is_timed_out(machine: Machine) -> None:
    words = machine.sh(f"setsid sh -c '{machine.gate('go')}' & {machine.gate('go')}")
    step = {"shell": words, "runs_on": "far", "timeout": "1s"}
    machine.plan({"s": step}, project="shop")
    machine.elsewhere("one", *WORKER)
    run = finish_run(machine.start(*RUN))
    assert run.code == 1
    assert run.codes["s"] == "timed_out"
    until(lambda: not machine.has_at_gate("go"), "its processes are gone")


@pytest.mark.req("D20")
def test_what_is_stopped_now_ends_on_the_worker_too(machine: Machine) -> None:
    words = machine.sh(machine.gate("go"))
    machine.plan({"s": {"shell": words, "runs_on": "far"}}, project="shop")
    machine.elsewhere("one", *WORKER)
    engine = machine.begun_by(*RUN, step="s")
    machine.ok("stop", "--now")
    finish(engine)
    until(lambda: not machine.has_at_gate("go"), "its processes are gone")
    machine.open("go")
    assert machine.resume(*QUICK).code == 0
    assert machine.begun() == ["s", "s"]


@pytest.mark.req("R74")
def test_a_worker_ends_what_a_killed_engine_wanted(machine: Machine) -> None:
    late = f"[ $(grep -c s {machine.log}) -gt 1 ] || {{ {machine.gate('go')}; }}; echo s"
    machine.plan({"s": {"shell": machine.sh(late), "runs_on": "far"}}, project="shop")
    machine.elsewhere("one", *WORKER)
    kill(machine.begun_by(*RUN, step="s"))
    assert machine.resume(*QUICK).states == {"s": "done"}
    assert machine.begun() == ["s", "s"]
    until(lambda: not machine.has_at_gate("go"), "its processes are gone")


def test_many_steps_over_several_workers_run_once_each(machine: Machine) -> None:
    names = [f"s{number:02}" for number in range(24)]
    machine.plan({n: {"shell": machine.sh(), "runs_on": "far"} for n in names}, project="shop")
    for name in ("one", "two", "three"):
        machine.elsewhere(name, *WORKER, "-j", "2")
    run = finish_run(machine.start(*RUN))
    assert (run.code, run.data["status"]) == (0, "completed"), run.err
    assert collections.Counter(machine.begun()) == dict.fromkeys(names, 1)


def test_who_waits_for_a_worker_is_told(project: Project) -> None:
    project.plan({"s": {"shell": project.sh(), "runs_on": "far"}})
    engine = project.start("run", *QUICK)
    assert engine.stderr is not None
    words = b"no worker takes from 'far' (holdfast worker --queue far)"
    assert any(words in line for line in engine.stderr)
    told = project.call(*WORKER, "--once", "--json")
    assert (told.code, told.json["done"]) == (0, 1)
    assert finish(engine).code == 0
    assert project.begun() == ["s"]


def test_secrets_on_a_worker_are_seen_before_anything_runs(project: Project) -> None:
    project.plan({"s": {"shell": project.sh(), "runs_on": "far", "secrets": ["TOKEN"]}})
    told = project.ok("check")
    assert "P916" in told.out + told.err
    assert "secrets" in project.refused(2, "run", "--secret", "TOKEN")
    assert project.begun() == []


REFUSE_ONCE = """
    CREATE SEQUENCE {schema}.refusals;
    GRANT ALL ON SEQUENCE {schema}.refusals TO PUBLIC;
    CREATE FUNCTION {schema}.refuse_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.report IS NOT NULL AND nextval('{schema}.refusals') = 1 THEN
        RAISE EXCEPTION 'no room for a report';
      END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER refuse_once BEFORE UPDATE ON {schema}.errand
      FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_once();
"""


@pytest.mark.req("R74")
def test_what_a_worker_cannot_report_is_given_back(postgres: Server, tmp_path: Path) -> None:
    schema = new_schema()
    url = postgres.url(schema)
    make_store(url)
    with psycopg.connect(postgres.url(), autocommit=True) as owner:
        owner.execute(REFUSE_ONCE.replace("{schema}", schema).encode())
    machine = Machine(tmp_path / "m", url)
    try:
        machine.plan({"s": {"shell": machine.sh(), "runs_on": "far"}}, project="shop")
        worker = machine.elsewhere("one", *WORKER)
        run = finish_run(machine.start(*RUN))
        assert (run.code, run.states) == (0, {"s": "done"}), run.err
        assert machine.begun() == ["s", "s"]
        worker.send_signal(signal.SIGTERM)
        told = finish(worker)
        assert (told.code, told.out) == (0, "1 errand done\n")
        assert "cannot be carried out: the database" in told.err
    finally:
        machine.end()
