"""A store that many machines share: each step runs once, whoever dies, waits or comes back late."""

import collections
import json
import random
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from holdfast.store.postgres import make_store
from tests.cli.project import Run, finish, finish_run, kill, until
from tests.cli.team import QUICK, Machine
from tests.cli.test_join_copies import is_done_once, planned
from tests.crash.report import Report
from tests.postgres import Server, new_schema, programs, server

HOURS = 4 * 3600.0
JOINED = ("run", "--json", "-j", "2", *QUICK)


class Team:
    """Machines that share a store."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.machines: list[Machine] = []

    def machine(self) -> Machine:
        log = self.machines[0].log if self.machines else None
        made = Machine(self.folder / f"m{len(self.machines)}", self.url, log)
        self.machines.append(made)
        return made

    def plan(self, steps: dict[str, dict[str, Any]]) -> None:
        for machine in self.machines:
            machine.plan(steps, project="shop")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        base, _, schema = self.url.partition("&schema=")
        with psycopg.connect(base, options=f"-csearch_path={schema}") as connection:
            return connection.execute(query).fetchall()

    def change(self, query: str) -> None:
        base, _, schema = self.url.partition("&schema=")
        with psycopg.connect(base, options=f"-csearch_path={schema}") as connection:
            connection.execute(query)


@pytest.fixture
def team(postgres: Server, tmp_path: Path) -> Iterator[Team]:
    url = postgres.url(new_schema())
    make_store(url)
    made = Team(tmp_path, url)
    made.machine()
    yield made
    for machine in made.machines:
        machine.end()


def document(machine: Machine) -> dict[str, dict[str, Any]]:
    """The plan of the document on incremental execution: tests, code, docs, a review."""
    read = 'cat /dev/null $(ls -d "$HOLDFAST_INPUTS"/* 2>/dev/null); echo $HOLDFAST_STEP'
    needs = {"spec": [], "tests": ["spec"], "impl": ["spec", "tests"], "docs": ["spec"]}
    needs |= {"lint": ["impl"], "review": ["tests", "impl", "docs"], "release": ["review", "lint"]}
    return {step: {"shell": machine.sh(read), "needs": above} for step, above in needs.items()}


@pytest.mark.req("R49", "R67", "R94", "R153", "C26", "E7")
def test_four_engines_execute_each_step_once_and_send_no_message(team: Team) -> None:
    machines = [team.machines[0], *(team.machine() for _ in range(3))]
    steps = document(machines[0])
    team.plan(steps)
    runs = [finish_run(engine) for engine in [one.start(*JOINED) for one in machines]]
    assert collections.Counter(machines[0].begun()) == dict.fromkeys(steps, 1)
    for run in runs:
        assert (run.code, run.data["status"]) == (0, "completed")
        assert run.digests == runs[0].digests
        assert run.refs == runs[0].refs
    for step in steps:
        assert [run.states[step] for run in runs].count("done") == 1
    assert machines[3].run().data["totals"]["reused"] == len(steps)
    assert machines[2].ok("verify").out.endswith("no problems\n")
    assert team.rows("SELECT count(*) FROM claim") == [(0,)]


@pytest.mark.req("R49", "R67")
@pytest.mark.parametrize("time", range(3))
def test_two_engines_in_one_directory_change_each_file_once(team: Team, time: int) -> None:
    (machine,) = team.machines
    planned(machine, "ar")
    engines = [machine.start("run", "--json", "-j", "1", *QUICK) for _ in range(2)]
    until(lambda: len(machine.begun()) == 2, f"each has a step, for the {time}. time")
    machine.open("go")
    is_done_once(machine, "ar", *map(finish_run, engines))


@pytest.mark.req("R49", "R74", "R176")
def test_the_step_of_an_engine_killed_elsewhere_is_taken_over_after_its_lease(team: Team) -> None:
    here, there = team.machines[0], team.machine()
    team.plan({"slow": {"shell": here.sh(f"{here.gate('go')}; echo slow")}})
    first = there.elsewhere("there", *JOINED)
    until(lambda: here.begun() == ["slow"], "it begins there")
    second = here.start(*JOINED)
    until(lambda: team.rows("SELECT count(*) FROM run") == [(2,)], "the other one joins")
    kill(first)
    until(lambda: len(here.begun()) == 2, "it begins here")
    here.open("go")
    run = finish_run(second)
    assert (run.code, run.states) == (0, {"slow": "done"})


@pytest.mark.req("D15", "R49")
def test_two_machines_of_one_name_do_not_take_each_other_for_dead(team: Team) -> None:
    here, there = team.machines[0], team.machine()
    team.plan({"slow": {"shell": here.sh(f"{here.gate('go')}; echo slow")}})
    first = there.twin(*JOINED)
    until(lambda: here.begun() == ["slow"], "it begins there")
    second = here.start(*JOINED)
    until(lambda: team.rows("SELECT count(*) FROM run") == [(2,)], "the other one joins")
    until(lambda: team.rows("SELECT min(beat) > 3 FROM holder") == [(True,)], "both live")
    here.open("go")
    assert [finish_run(one).code for one in (first, second)] == [0, 0]
    assert here.begun() == ["slow"]


@pytest.mark.req("D14", "R176", "I3")
def test_who_stood_still_past_its_lease_changes_nothing_when_it_wakes(team: Team) -> None:
    here, there = team.machines[0], team.machine()
    late = f"[ $(grep -c slow {here.log}) -lt 2 ] && {{ {here.gate('late')}; }}"
    words = f"{late}; echo slow"
    team.plan({"slow": {"shell": here.sh(words)}, "end": {"shell": here.sh(), "needs": ["slow"]}})
    first = there.elsewhere("there", *JOINED)
    until(lambda: here.begun() == ["slow"], "it begins there")
    first.send_signal(signal.SIGSTOP)
    run = finish_run(here.start(*JOINED))
    assert (run.code, run.data["status"]) == (0, "completed")
    rows = team.rows("SELECT count(*) FROM artifact")
    first.send_signal(signal.SIGCONT)
    told = finish(first)
    assert told.code != 0
    assert "took this line over" in told.err or "taken over" in told.err or "taken for" in told.err
    assert not here.has_at_gate("late"), "its children are gone"
    assert team.rows("SELECT count(*) FROM artifact") == rows
    assert here.begun() == ["slow", "slow", "end"]
    here.ok("verify")


def has_begun(machine: Machine, count: int) -> bool:
    return len(machine.begun()) >= count


@pytest.mark.req("D19")
@pytest.mark.parametrize("how", [signal.SIGQUIT, signal.SIGKILL])
def test_a_server_that_dies_and_comes_back_loses_nothing(
    tmp_path: Path, how: signal.Signals
) -> None:
    from tests.postgres import server

    with server() as running:
        url = running.url("holdfast")
        make_store(url)
        team = Team(tmp_path, url)
        machines = [team.machine(), team.machine()]
        names = [f"s{number:02}" for number in range(60)]
        team.plan(
            {
                name: {"shell": machines[0].sh(), "needs": [names[place - 8]] if place >= 8 else []}
                for place, name in enumerate(names)
            }
        )
        engines = [one.start(*JOINED) for one in machines]
        for count in (12, 24, 36):
            until(partial(has_begun, machines[0], count), "steps run")
            running.crash(how)
            running.start()
        runs = [finish_run(engine) for engine in engines]
        for run in runs:
            assert (run.code, run.data["status"]) == (0, "completed"), run.err
            assert run.digests == runs[0].digests
        accepted = team.rows(
            "SELECT step, count(*) FROM artifact WHERE status = 'accepted' GROUP BY 1"
        )
        assert dict(accepted) == dict.fromkeys(names, 1)
        machines[0].ok("verify")
        for one in machines:
            one.end()


@pytest.mark.soak("server")
@pytest.mark.req("D19")
def test_a_server_that_dies_every_few_seconds_strands_nothing(
    tmp_path: Path, sweep: Callable[[Report], None]
) -> None:
    rng, steps, deaths = random.Random(7), 10_000, 0
    with server() as running:
        url = running.url("holdfast")
        make_store(url)
        team = Team(tmp_path, url)
        machines = [team.machine(), team.machine()]
        names = [f"s{number:05}" for number in range(steps)]
        team.plan(
            {
                name: {"run": "true", "needs": [names[place - 50]] if place >= 50 else []}
                for place, name in enumerate(names)
            }
        )
        engines = [one.start(*JOINED, "-q") for one in machines]
        said: dict[int, bytes] = {}  # read while it is written: a pipe holds little

        def listen(number: int) -> None:
            said[number], _ = engines[number].communicate(timeout=HOURS)

        readers = [threading.Thread(target=listen, args=(number,)) for number in range(2)]
        for reader in readers:
            reader.start()
        pause = threading.Event()
        while any(reader.is_alive() for reader in readers):
            pause.wait(rng.uniform(5, 20))
            running.crash(rng.choice([signal.SIGQUIT, signal.SIGKILL]))
            deaths += 1
            pause.wait(rng.uniform(0, 5))
            running.start()
            if rng.random() < 0.5:  # while it recovers what it had
                running.crash(signal.SIGKILL)
                running.start()
        runs = [Run(engine.wait(), json.loads(said[n]), "") for n, engine in enumerate(engines)]
        for run in runs:
            assert (run.code, run.data["status"]) == (0, "completed")
        done = collections.Counter(s for run in runs for s, p in run.states.items() if p == "done")
        assert done == dict.fromkeys(names, 1), "each in one of them, once"
        assert deaths >= 3
        machines[0].ok("verify")
        report = Report("a server that dies every 5 to 20 s", "server", tried=deaths, fired=deaths)
        report.work = steps
        sweep(report)
        for one in machines:
            one.end()


@pytest.mark.req("D15")
def test_clocks_that_are_wrong_decide_nothing(
    team: Team, require_part: Callable[[str], str]
) -> None:
    faketime = require_part("faketime")
    ahead, behind = team.machines[0], team.machine()
    steps = document(ahead)
    team.plan(steps)
    engines = [
        ahead.elsewhere("ahead", *JOINED, before=[faketime, "-f", "+1h"]),
        behind.elsewhere("behind", *JOINED, before=[faketime, "-f", "-1d"]),
    ]
    for engine in engines:
        run = finish_run(engine)
        assert (run.code, run.data["status"]) == (0, "completed"), run.err
    assert collections.Counter(ahead.begun()) == dict.fromkeys(steps, 1)


def test_a_role_with_few_rights_runs_plans_and_changes_no_event(
    postgres: Server, tmp_path: Path
) -> None:
    schema = new_schema()
    role = f"runner_{schema}"
    with psycopg.connect(postgres.url(), autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN")
    url = postgres.url(schema, user=role)
    machine = Machine(tmp_path / "m", url)
    told = machine.call("store", "init", postgres.url(schema), "--role", role, "--json")
    assert (told.code, told.json["made"]) == (0, True)
    machine.plan({"a": {"shell": machine.sh("head -c 100000 /dev/zero")}}, project="shop")
    assert machine.run().code == 0
    machine.ok("gc", "--yes")
    with psycopg.connect(postgres.url(user=role), options=f"-csearch_path={schema}") as runner:
        for statement in (
            "UPDATE event SET body = ''",
            "TRUNCATE event",
            "DELETE FROM event",
            "ALTER TABLE event DISABLE TRIGGER ALL",
            "DROP TABLE artifact",
            "CREATE TABLE more(a int)",
        ):
            with pytest.raises(psycopg.Error), runner.transaction():
                runner.execute(statement)
    machine.ok("verify")
    machine.end()


def test_what_is_wrong_with_a_shared_store_is_said_in_one_line(
    postgres: Server, tmp_path: Path
) -> None:
    machine = Machine(tmp_path / "m", "")
    machine.plan({"a": {"shell": machine.sh()}})
    secret = "postgresql://me:pass-word-1@127.0.0.1:1/x"
    theirs = new_schema()
    make_store(postgres.url(theirs))
    runner, limited = f"runner_{theirs}", f"limited_{theirs}"
    with psycopg.connect(postgres.url(), autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {runner} LOGIN")
        owner.execute(f"CREATE ROLE {limited} LOGIN CONNECTION LIMIT 0")
    closed, barred = postgres.url(theirs, user=runner), postgres.url(theirs, user=limited)
    said = machine.refused(2, "run", "--store", secret)
    assert "never given on the command line" in said
    for url, words in (
        (secret, "cannot be reached"),
        (postgres.url(new_schema()), "holdfast store init"),
        (postgres.url(new_schema(), user="nobody_knows"), "PGPASSWORD"),
        (barred, "have more"),
        (closed, f"'{runner}' may not use the store"),
        ("mysql://x/y", "no stores at 'mysql://…'"),
        ("postgresql://x/y?schema=a-b", "cannot be the name of a schema"),
        ("postgresql://x/y?nonsense=1", "the address of the store is not right"),
    ):
        answer = machine.call("run", env={"HOLDFAST_STORE": url})
        assert answer.code in {2, 74}, answer
        assert words in answer.err
        assert ("is the server running" in answer.err) == (url == secret)
        assert "pass-word-1" not in answer.err
        assert "Traceback" not in answer.err
    made = postgres.url(new_schema())
    make_store(made)
    answer = machine.call("run", env={"HOLDFAST_STORE": made})
    assert answer.code == 2
    assert "project: NAME" in answer.err
    assert machine.begun() == []


def move_timeline(team: Team) -> None:
    """As a restore to a point in time does, or a standby that takes over."""
    team.rows("UPDATE meta SET timeline = timeline - 1 RETURNING 1")


def dump_and_restore(team: Team) -> None:
    base, _, schema = team.url.partition("&schema=")
    dump = subprocess.run(
        [programs() / "pg_dump", "-d", base, "-n", schema], check=True, capture_output=True
    ).stdout
    subprocess.run(
        [programs() / "psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", base],
        input=f"DROP SCHEMA {schema} CASCADE;\n".encode() + dump,
        check=True,
        capture_output=True,
    )


@pytest.mark.parametrize("restore", [move_timeline, dump_and_restore])
@pytest.mark.req("R179")
def test_a_database_that_was_restored_lets_nobody_write_who_was_there_before(
    team: Team, restore: Callable[[Team], None]
) -> None:
    here = team.machines[0]
    team.plan({"slow": {"shell": here.sh(f"{here.gate('go')}; echo slow")}})
    first = here.begun_by(*JOINED, step="slow")
    team.rows("INSERT INTO errand(queue, parcel, engine) VALUES('far', '', 'gone') RETURNING 1")
    restore(team)
    assert "was restored" in here.call("status").err + here.call("pin", "@").err
    here.open("go")
    told = finish(first)
    assert told.code != 0
    assert team.rows("SELECT count(*) FROM artifact") == [(0,)]
    assert team.rows("SELECT count(*) FROM errand") == [(0,)]


def test_doctor_and_repair_know_a_store_that_is_elsewhere(team: Team) -> None:
    (machine,) = team.machines
    machine.plan({"a": {"shell": "echo a"}}, project="shop")
    machine.ok("run")
    checks = {one["name"]: one for one in machine.ok("doctor", "--json").json["checks"]}
    assert checks["store"]["grade"] == "ok"
    assert checks["store"]["words"].startswith("postgresql://")
    assert "1 run" in checks["store"]["words"]
    assert abs(checks["clock skew"]["facts"]["skew_ms"]) < 60_000
    assert checks["clock skew"]["words"].startswith("that of the database")
    assert machine.ok("repair").out == "nothing is damaged\n"
    assert "others share" in machine.refused(2, "repair", "--start-over", "--yes")
    nobody = machine.call("doctor", env={"HOLDFAST_STORE": f"{team.url}_of_nobody"})
    assert (nobody.code, "holdfast store init" in nobody.out) == (1, True), nobody
