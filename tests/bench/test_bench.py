"""The bench measures what it says: right values, a page from any results, drivers for all peers."""

import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench import envs, guard, markdown, plots, promises, shapes
from bench.kill import kill_and_resume, resume_costs
from bench.measure import BARE, FULL, HOLDFAST, Sample, run
from bench.own import million, plans
from bench.results import (
    Beside,
    Cell,
    Claims,
    Contender,
    Kill,
    Own,
    Part,
    Play,
    Promise,
    Results,
    Resume,
    Start,
    merged,
    read,
)
from bench.run import main as bench_run
from holdfast.core.waves import graph_of
from holdfast.formats.planfile import Asked, load_text

PEERS = Path(envs.__file__).parent / "peers"


def results() -> Results:
    """A small run in which everything happens: a figure, a failure, a peer that is not there."""
    cold = Cell("bare", "wide", "cold", 1_000, 1_002, 5, cpu=0.03, wall=0.05, peak_mb=30)
    return Results(
        parts=[Part("2026-01-02 03:04 UTC", 90, "quick=yes", {"Python": "3.x", "cores": "2"})],
        contenders=[
            Contender("bare"),
            Contender("holdfast", "1.2"),
            Contender("doit", missing="could not be installed"),
            Contender("snakemake", "9.27.1"),
        ],
        cells=[
            cold,
            replace(cold, tool="holdfast", cpu=0.06),
            replace(cold, tool="snakemake", cpu=0, steps=0, failed="RecursionError"),
            replace(cold, tool="holdfast", size=10_000, steps=10_002, cpu=1.5),
            replace(cold, tool="bare", size=10_000, steps=10_002, cpu=0.3),
        ],
        kills=[
            Kill("holdfast", "layered", 1_000, 500, 2, 0, 0),
            Kill("doit", "wide", 9, failed="failed"),
        ],
        resumes=[Resume("holdfast", "layered", 100_000, 50_100, 3.9, 3.0, 3)],
        starts=[
            Start("holdfast", "--version", 0.05, 0.06, 5, nothing=0.01),
            Start("doit", "import", failed="ended with 1"),
        ],
        own=[
            Own("stored bytes per step", 2_500, "bytes"),
            Own("`true`, 2 at once", 0.002, "s", 0.001, 5, 0.0015),
        ],
        claims=[Claims("sqlite", 8, 2_000, 900.0, 1_000.0, 200, 300, 0, 900, 0, 3)],
        plays=[Play("sqlite", 2_000, 50, 0, 9, 31.4, 32.25, 12.0, 11.1)],
    )


def promise(found: Results, name: str) -> Promise:
    return next(one for one in promises.judge(found) if one.name.startswith(name))


def test_a_promise_is_held_missed_or_not_measured() -> None:
    found = results()
    held = promise(found, "wide, 1,000 steps, cold")
    assert held.measured == pytest.approx(2.0)
    assert (held.held, held.aim) == (True, 1.6)
    missed = promise(found, "wide, 10,000 steps, cold")
    assert missed.measured == pytest.approx(5.0)
    assert missed.held is False
    unknown = promise(found, "wide, 100,000 steps, cold")
    assert (unknown.measured, unknown.held) == (None, None)
    assert promise(found, "commands `true`, 2 at once").measured == pytest.approx(2.0)
    resumed = promise(found, "kill -9 half way, resume of 100,000 steps")
    assert resumed.measured == pytest.approx(1.3)
    assert resumed.held is True


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
    found.cells += [slow, replace(slow, tool="dagster", steps=334, wall=3.0)]
    judged = promise(found, "wide, 1,000 steps, cold: fewer µs per step than dbos")
    assert judged.measured == pytest.approx(5.0)
    assert judged.held is False
    smaller = promise(found, "wide, 1,000 steps, cold: fewer µs per step than dagster")
    assert smaller.measured == pytest.approx(150.0)  # a third of the steps: three times per step


def test_a_peer_counts_as_careful_by_what_its_kill_showed() -> None:
    found = results()
    assert {"hamilton", "dagster"} <= set(promises.careful(found))
    assert not {"langgraph", "dask", "ninja"} & set(promises.careful(found))
    found.kills += [
        Kill("hamilton", "layered", 1_000, 500, twice=40),
        Kill("redun", "layered", 1_000, 500, twice=2),
    ]
    assert "hamilton" not in promises.careful(found)
    assert "redun" in promises.careful(found)  # two workers


def later() -> Results:
    """A second run: Holdfast and the bare loop again, and nobody else."""
    cold = Cell("bare", "wide", "cold", 1_000, 1_002, 5, cpu=0.04, wall=0.05, peak_mb=30)
    return Results(
        parts=[Part("2026-01-03 03:04 UTC", 30, "only=holdfast")],
        contenders=[Contender("bare"), Contender("holdfast", "1.3")],
        cells=[cold, replace(cold, tool="holdfast", cpu=0.06)],
        starts=[Start("holdfast", "--version", 0.02, 0.03, 5, nothing=0.01)],
    )


def test_a_part_replaces_what_it_took_anew_and_ratios_stay_within_parts() -> None:
    first = results()
    peer = Cell("dbos", "wide", "cold", 1_000, 1_002, 3, cpu=3.0, wall=3.0)
    first.cells.append(peer)
    both = merged(first, later())
    assert both.cell("holdfast", "wide", "cold", 1_000) == replace(later().cells[1], part=1)
    assert promise(both, "wide, 1,000 steps, cold: CPU").measured == pytest.approx(1.5)
    assert promise(both, "wide, 10,000 steps, cold: CPU").measured == pytest.approx(5.0)
    fewer = promise(both, "wide, 1,000 steps, cold: fewer µs per step than dbos")
    assert fewer.measured == pytest.approx(50)  # than Holdfast took in the part of the peer
    assert [start.what for start in both.starts if start.tool == "holdfast"] == ["--version"]
    assert [row.version for row in both.contenders][:2] == ["", "1.3"]
    page = markdown.page(both)
    assert "- part B: Taken 2026-01-03 03:04 UTC" in page
    assert "| dbos | 2,994 | 2,994 | 100 |" in page  # over the bare loop of its own part, not 75
    assert "| holdfast 1.3 | 59.9 | 49.9 | 1.50 |" in page
    assert merged(Results(), later()) == later()


def test_the_guard_names_what_got_worse_and_nothing_else() -> None:
    before, now = results(), results()
    assert guard.worse(before, now)[0] == []
    now.cells[1] = replace(now.cells[1], cpu=0.09)
    now.starts[0] = replace(now.starts[0], cpu=0.06)  # by a fifth: within the tolerance
    now.claims[0] = replace(now.claims[0], per_second=450.0)
    found, count = guard.worse(before, now)
    assert [row.name for row in found] == [
        "sqlite, 8 processes: bare SQL × claims",
        "wide, 1,000 steps, cold: CPU per step × bare",
    ]
    assert str(found[1]) == "wide, 1,000 steps, cold: CPU per step × bare: 3, was 2 (+50 %)"
    assert count == len(guard.ratios(before))
    assert len(guard.worse(before, now, tolerance=10)[0]) == 3
    assert guard.worse(now, before) == ([], count)  # better is not worse
    assert guard.worse(before, Results()) == ([], 0)


def test_a_guarded_run_ends_by_what_the_committed_table_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    committed, slower = results(), results()
    slower.cells[1] = replace(slower.cells[1], cpu=0.09)
    committed.write(tmp_path / "committed.json")
    slower.write(tmp_path / "slower.json")
    same, worse = (
        bench_run(
            [
                "--guard",
                "--against",
                str(tmp_path / "committed.json"),
                "--from",
                str(tmp_path / name),
            ]
        )
        for name in ("committed.json", "slower.json")
    )
    assert (same, worse) == (0, 1)
    assert (
        "worse: wide, 1,000 steps, cold: CPU per step × bare: 3, was 2" in capsys.readouterr().err
    )
    assert (
        bench_run(["--guard", "--against", "nowhere", "--from", str(tmp_path / "slower.json")]) == 2
    )


def test_drawings_have_a_bar_for_each_tool_that_was_measured() -> None:
    drawn = plots.plots(results())
    assert list(drawn) == ["bench-w1.svg"]
    root = ET.fromstring(drawn["bench-w1.svg"])
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words[1:] == ["bare", "29.9", "holdfast", "59.9"]


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
        "| wide, 1,000 steps, cold: CPU of the run | at most 2.5 × bare (aim 1.6) | 2.00 | held |",
        "| wide, 10,000 steps, cold: CPU of the run | at most 2.5 × bare (aim 1.6) | 5.00 | **missed** |",
        "| wide, 100,000 steps, cold: CPU of the run | at most 2.5 × bare (aim 1.6) | – | not measured |",
        "| doit | could not be installed |",
        "| holdfast 1.2 | 59.9 | 49.9 | 2.00 | 150 |",
        "| snakemake 9.27.1 | RecursionError |",
        "| holdfast | 100,000 | 50,100 | 3,900 | 3,000 | 1.30 | 3 |",
        "| holdfast | layered | 1,000 | 500 | 2 | 0 | 0 |",
        "| doit | wide | 9 | failed |",
        "| holdfast | --version | 50 | 60 | 5 |",
        "| stored bytes per step | 2,500 |",
        "| `true`, 2 at once | 2.00 | 1.00 | 2.00 | 1.50 | 5 |",
        "![W1: CPU per step of each tool](images/bench-w1.svg)",
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


def test_nobody_is_left_out() -> None:
    named = "redun doit langgraph dbos hamilton luigi snakemake prefect dagster dask ninja make"
    assert set(named.split()) <= envs.peers().keys()
    assert [name for name, peer in envs.peers().items() if not peer.durable] == ["dask"]


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


def test_a_resume_says_what_it_costs_until_a_step_begins(tmp_path: Path) -> None:
    cost = resume_costs(HOLDFAST, "layered", 300, tmp_path / "kill", 1)
    assert not cost.failed
    assert 150 <= cost.before < 301
    assert (cost.first > 0, cost.noop > 0, cost.repeats) == (True, True, 1)


def test_a_kill_half_way_is_counted_by_the_log_of_executions(tmp_path: Path) -> None:
    killed = kill_and_resume(FULL, "chain", 3_000, tmp_path / "kill")
    assert not killed.failed
    assert 1_500 <= killed.before < 3_000
    assert (killed.twice <= 1, killed.lost) == (True, 0)


def test_very_many_steps_are_made_once_and_then_stand(tmp_path: Path) -> None:
    found = million.both(200, tmp_path)
    assert (found["cold_done"], found["done"]) == (201, 0)
    assert min(found["cpu"], found["load_cpu"], found["peak_mb"]) > 0


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
