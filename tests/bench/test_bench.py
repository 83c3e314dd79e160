"""The bench measures what it says: right values, a page from any results, drivers for all peers."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bench import envs, markdown, promises, shapes
from bench.kill import kill_and_resume
from bench.measure import BARE, FULL, HOLDFAST, Sample, run
from bench.own import plans
from bench.results import (
    Beside,
    Cell,
    Claims,
    Contender,
    Kill,
    Own,
    Play,
    Promise,
    Results,
    Start,
    read,
)
from holdfast.core.waves import graph_of
from holdfast.formats.planfile import Asked, load_text

PEERS = Path(envs.__file__).parent / "peers"


def results() -> Results:
    """A small run in which everything happens: a figure, a failure, a peer that is not there."""
    cold = Cell("bare", "wide", "cold", 1_000, 1_002, 5, cpu=0.03, wall=0.05, peak_mb=30)
    return Results(
        environment={"Python": "3.x", "cores": "2"},
        options={"only": "", "quick": "yes"},
        seconds=90,
        contenders=[Contender("bare"), Contender("doit", missing="could not be installed")],
        cells=[
            cold,
            replace(cold, tool="holdfast", cpu=0.09),
            replace(cold, tool="snakemake", cpu=0, steps=0, failed="RecursionError"),
            replace(cold, tool="holdfast", size=10_000, steps=10_002, cpu=1.5),
            replace(cold, tool="bare", size=10_000, steps=10_002, cpu=0.3),
        ],
        kills=[
            Kill("holdfast", "layered", 1_000, 500, 2, 0, 0),
            Kill("doit", "wide", 9, failed="failed"),
        ],
        starts=[
            Start("holdfast", "--version", 0.05, 0.06, 5),
            Start("doit", "import", failed="ended with 1"),
        ],
        own=[
            Own("stored bytes per step", 2_500, "bytes"),
            Own("`true`, 2 at once", 0.002, "s", 0.001, 5),
        ],
        claims=[Claims("sqlite", 8, 2_000, 900.0, 1_000.0, 200, 300, 0, 900, 0, 3)],
        plays=[Play("sqlite", 2_000, 50, 0, 9, 31.4, 32.25, 12.0, 11.1)],
    )


def promise(found: Results, name: str) -> Promise:
    return next(one for one in promises.judge(found) if one.name.startswith(name))


def test_a_promise_is_held_missed_or_not_measured() -> None:
    found = results()
    held = promise(found, "wide, 1,000 steps, cold")
    assert held.measured == pytest.approx(3.0)
    assert held.held is True
    missed = promise(found, "wide, 10,000 steps, cold")
    assert missed.measured == pytest.approx(5.0)
    assert missed.held is False
    unknown = promise(found, "wide, 100,000 steps, cold")
    assert (unknown.measured, unknown.held) == (None, None)
    assert promise(found, "commands `true`, 2 at once").measured == pytest.approx(2.0)


def test_the_floor_is_what_one_step_after_the_other_gives() -> None:
    found = results()
    assert promise(found, "SQLite, a chain").held is None
    found.cells.append(Cell("holdfast", "chain", "cold", 1_000, 1_000, 3, cpu=1.0, wall=4.0))
    found.besides.append(Beside("dbos", "chain", 1_000, 150.0, 100.0, 3))
    assert promise(found, "SQLite, a chain").measured == pytest.approx(250.0)
    assert promise(found, "SQLite, a chain").held is True
    assert promise(found, "PostgreSQL, a chain").held is False


def test_a_peer_counts_per_step_and_by_the_less_favourable_time() -> None:
    found = results()
    slow = Cell("dbos", "wide", "cold", 1_000, 1_002, 3, cpu=3.0, wall=0.25)
    found.cells.append(slow)
    judged = promise(found, "wide, 1,000 steps, cold: fewer µs per step than dbos")
    assert judged.measured == pytest.approx(5.0)
    assert judged.held is False


def test_results_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    found = results()
    found.promises = promises.judge(found)
    found.write(tmp_path / "results.json")
    assert read(tmp_path / "results.json") == found


def test_the_page_shows_every_row_and_leaves_nothing_unfilled() -> None:
    found = results()
    found.promises = promises.judge(found)
    page = markdown.page(found)
    assert "{{" not in page
    for row in (
        "| wide, 1,000 steps, cold: CPU of the run | at most 4 × bare | 3.00 | held |",
        "| wide, 10,000 steps, cold: CPU of the run | at most 4 × bare | 5.00 | **missed** |",
        "| wide, 100,000 steps, cold: CPU of the run | at most 4 × bare | – | not measured |",
        "| doit | could not be installed |",
        "| snakemake |  | RecursionError |",
        "| holdfast | layered | 1,000 | 500 | 2 | 0 | 0 |",
        "| doit | wide | 9 | failed |",
        "| holdfast | --version | 50 | 60 | 5 |",
        "| stored bytes per step | 2,500 |",
        "| `true`, 2 at once | 2.00 | 1.00 | ms wall per command | 5 |",
        "| sqlite, 8 processes: steps claimed and reported a second | at least 0.8 × bare SQL | 0.900 | held |",  # noqa: E501
        "| many workers: steps taken twice, accepted twice or lost | at most 0 steps | 0 | held |",
        "| sqlite | 8 | 900 | 1,000 | 0.900 | 200 · 300 | 0 · 900 | 3 |",
        "| sqlite | 50 | 2,000 | 0 | 9 | 31.4 | 32.2 | 12.0 | 11.1 |",
    ):
        assert row in page


def test_every_row_of_every_table_has_as_many_cells_as_its_head() -> None:
    widths: list[int] = []
    for line in markdown.page(results()).splitlines():
        widths = [*widths, line.count("|")] if line.startswith("|") else []
        assert len(set(widths)) <= 1, line


@pytest.mark.parametrize("name", envs.peers())
def test_every_peer_is_pinned_has_a_driver_and_says_what_it_keeps(name: str) -> None:
    peer = envs.peers()[name]
    source = PEERS / f"{name}.py"
    compile(source.read_text(encoding="utf-8"), str(source), "exec")
    assert peer.keeps
    assert bool(peer.program) != bool(peer.packages)
    assert all("==" in package or "<" in package for package in peer.packages)


def test_a_program_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(envs.MissingError, match="not on this machine"):
        envs.find(envs.Peer("ghost", program="no-such-program"), tmp_path)


@pytest.mark.parametrize("shape", shapes.SHAPES)
def test_a_changed_leaf_affects_two_steps(shape: str) -> None:
    leaf = shapes.leaf(shape, 40)
    graph = shapes.make(shape, 40)
    assert [number for number, needs in graph if leaf in needs] == [graph[-1][0]]
    assert shapes.expected(shape, 40, "salt") != shapes.expected(shape, 40)


@pytest.mark.parametrize("tool", [BARE, HOLDFAST, FULL], ids=lambda tool: tool.name)
def test_drivers_run_what_is_new_and_what_changed(tool: object, tmp_path: Path) -> None:
    chosen = next(one for one in (BARE, HOLDFAST, FULL) if one is tool)
    shape = chosen.shapes[-1]
    steps = len(shapes.make(shape, 30))
    executed = [run(chosen, shape, 30, tmp_path / "x", salt).executed for salt in ("", "", "new")]
    assert executed == [steps, 0, 2]


@pytest.mark.skipif(shutil.which("ninja") is None, reason="ninja is not on this machine")
def test_a_driver_of_a_program_counts_the_files_it_writes(tmp_path: Path) -> None:
    ninja = replace(BARE, name="ninja", module="bench.peers.ninja")
    first, again = (run(ninja, "layered", 40, tmp_path / "x") for _ in range(2))
    assert isinstance(first, Sample)
    assert (first.executed, again.executed) == (41, 0)


def test_a_kill_half_way_is_counted_by_the_log_of_executions(tmp_path: Path) -> None:
    killed = kill_and_resume(FULL, "chain", 300, tmp_path / "kill")
    assert not killed.failed
    assert 150 <= killed.before < 300
    assert (killed.twice <= 1, killed.lost) == (True, 0)


@pytest.mark.req("R69")
def test_the_typical_plan_is_loaded_whole_and_kept_small(tmp_path: Path) -> None:
    for name in ("load", "keep"):
        (tmp_path / name).mkdir()
    loaded = plans.load(tmp_path / "load", 1)  # checks that all 50 steps are there
    assert min(loaded.values()) > 0
    assert 0 < plans.keep(tmp_path / "keep")["bytes"] <= 100 * 1024


@pytest.mark.req("R69", "R149")
def test_promises_about_plans_are_judged_by_what_was_measured() -> None:
    found = results()
    found.own += [
        Own("plan of 50 steps: loaded from its file", 8, "ms"),
        Own("plan of 50 steps: loaded from its store", 25, "ms"),
        Own("plan of 50 steps: kept in", 25, "KB"),
        Own("`plan` of 10,000 steps", 1.9, "s CPU"),
        Own("plan of 50 steps: time saved by reuse", 49, "%"),
    ]
    assert promise(found, "plan of 50 steps: load").held is False
    assert promise(found, "plan of 50 steps: stored").held is True
    assert promise(found, "`plan` of 10,000 steps").held is True
    assert promise(found, "`check` of 10,000 steps").held is None
    assert promise(found, "plan of 50 steps, one prompt changed: time saved").held is False


def test_the_plans_that_are_measured_are_what_they_are_said_to_be(tmp_path: Path) -> None:
    for text, steps, waves in ((plans.typical(), 50, 5), (plans.large(), 10_000, 10)):
        file = tmp_path / "plan.yaml"
        file.write_text(text)
        plan = load_text(file.read_bytes(), "plan.yaml", str(tmp_path), Asked()).plan
        assert (len(plan.steps), len(graph_of(plan).waves())) == (steps, waves)
    changed = plans.typical("Write it anew.")
    assert (
        sum(a != b for a, b in zip(changed.split("\n"), plans.typical().split("\n"), strict=True))
        == 1
    )
