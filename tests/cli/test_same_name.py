"""Who has the name of a dead engine, or comes after its row was taken away; and clocks that jump."""

import collections
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.store.postgres import make_store
from tests.cli.project import finish_run, kill, until
from tests.cli.test_shared import JOINED, Team
from tests.postgres import Server, new_schema

# Less than the clock jumps, more than a busy machine stands still.
PATIENT = (*JOINED, "--lease", "60")


@pytest.fixture
def team(postgres: Server, tmp_path: Path) -> Iterator[Team]:
    url = postgres.url(new_schema())
    make_store(url)
    made = Team(tmp_path, url)
    made.machine()
    yield made
    for machine in made.machines:
        machine.end()


@pytest.mark.req("D17", "I9")
@pytest.mark.parametrize("pruned", [False, True], ids=["its row is there", "its row is gone"])
def test_the_step_of_a_dead_engine_is_taken_over_by_one_of_its_name(
    team: Team, *, pruned: bool
) -> None:
    """The name decides nothing: the new one waits for the lease, and nobody is taken for the dead one."""
    here, there = team.machines[0], team.machine()
    team.plan({"slow": {"shell": here.sh(f"{here.gate('go')}; echo slow")}})
    first = there.elsewhere("worker-1", *JOINED)
    until(lambda: here.begun() == ["slow"], "it begins there")
    kill(first)
    if pruned:
        team.change("DELETE FROM holder")
    second = there.elsewhere("worker-1", *JOINED)
    until(lambda: len(here.begun()) == 2, "it begins again under the same name")
    here.open("go")
    run = finish_run(second)
    assert (run.code, run.states) == (0, {"slow": "done"}), run.err
    assert team.rows("SELECT count(*) FROM claim") == [(0,)]
    assert team.rows("SELECT count(*) FROM holder") == [(0,)]
    assert here.ok("verify").out.endswith("no problems\n")


@pytest.mark.req("D15", "I9")
@pytest.mark.parametrize(("before", "after"), [("+0", "+1h"), ("+1h", "-1d")])
def test_a_clock_that_jumps_while_a_step_runs_decides_nothing(
    team: Team, tmp_path: Path, require_part: Callable[[str], str], before: str, after: str
) -> None:
    faketime = require_part("faketime")
    here, there = team.machines[0], team.machine()
    clock = tmp_path / "clock"
    clock.write_text(f"{before}\n")
    steps: dict[str, dict[str, object]] = {}
    steps["slow"] = {"shell": here.sh(f"{here.gate('go')}; echo slow")}
    steps["end"] = {"shell": here.sh(), "needs": ["slow"]}
    team.plan(steps)
    jumping = there.elsewhere(
        "jumping",
        *PATIENT,
        before=[
            *(faketime, "-f", before, "env", "-u", "FAKETIME", "FAKETIME_NO_CACHE=1"),
            *("FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1"),  # no machine's jumps
            f"FAKETIME_TIMESTAMP_FILE={clock}",
        ],
    )
    until(lambda: here.begun() == ["slow"], "it begins there")
    steady = here.start(*PATIENT)
    until(lambda: team.rows("SELECT count(*) FROM run") == [(2,)], "the other one joins")
    following = tmp_path / "following"
    following.write_text(f"{after}\n")
    following.replace(clock)  # whoever asked for the time of an empty file would get another answer
    beats = team.rows("SELECT min(beat) FROM holder")[0][0]
    until(lambda: team.rows(f"SELECT min(beat) > {beats + 8} FROM holder") == [(True,)], "on")
    here.open("go")
    runs = [finish_run(engine) for engine in (jumping, steady)]
    assert [(run.code, run.data["status"]) for run in runs] == [(0, "completed")] * 2, runs
    assert collections.Counter(here.begun()) == dict.fromkeys(steps, 1), "nobody takes it over"
    times = team.rows("SELECT max(at) - min(at) FROM event")
    assert times[0][0] > 3_000_000, "its clock did jump"
