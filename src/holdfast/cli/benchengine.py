"""bench engine: what a step costs on this machine, beside a bare loop that does nothing but keep its rows."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import os
import platform
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from statistics import median
from typing import NamedTuple

import click

from holdfast import wire
from holdfast.cli.measure import count
from holdfast.cli.place import json_option
from holdfast.cli.say import out, out_json, talk
from holdfast.core.state import State
from holdfast.engine.runs import start_run
from holdfast.engine.world import World
from holdfast.errors import BugError, UsageError
from holdfast.model.digest import Json
from holdfast.model.event import Options
from holdfast.model.plan import Need, Plan, Step, StepId
from holdfast.model.text import one_line
from holdfast.model.version import VERSION

SCHEMA = "holdfast.bench.engine/1"
LAYERS, NEEDS, FEWEST = 10, 3, 30
BARE, OURS = "bare loop", "holdfast"
FIRST, AGAIN, WHOLE = "first run", "nothing changed", "nothing changed, as a whole"
Graph = Mapping[int, tuple[int, ...]]
Functions = Mapping[StepId, Callable[..., object]]


class Took(NamedTuple):
    """CPU and wall seconds of one run."""

    cpu: float
    wall: float


class Row(NamedTuple):
    """The medians of all rounds; `limit` is the CPU of the bare loop at the same work."""

    who: str
    what: str
    cpu: float
    wall: float
    limit: float


@click.command(
    "engine",
    epilog="\b\nExample:\n  holdfast bench engine\n"
    "  holdfast bench engine --steps 100000 --rounds 5 --dir /srv/project --json",
)
@click.option(
    "--steps", type=click.IntRange(FEWEST, 1_000_000), default=10_000, help="Of the plan (10000)."
)
@click.option("--rounds", type=click.IntRange(1, 100), default=3, help="Medians are shown (3).")
@click.option(
    "--dir", "place", metavar="DIR", help="On the disk of this directory, not of temporary files."
)
@json_option
def engine(steps: int, rounds: int, place: str | None, *, as_json: bool) -> int:
    """Measure what the engine costs on this machine, beside a bare loop. Needs nothing, asks nobody.

    The plan has ten layers; each step needs three of the layer above and is a function of some microseconds
    in this process, so what is measured is the engine. The bare loop does the same steps and writes one
    SQLite row for each, without waiting for the disk. Both run the plan, then again with nothing changed:
    Holdfast looks at it step by step, and as a whole. Only ratios of one call are worth comparing.
    """
    graph = graph_of(steps)
    plan, functions = plan_of(graph)
    found: dict[tuple[str, str], list[Took]] = {}
    _warm_up(place)
    for number in range(rounds):
        talk(f"round {number + 1} of {rounds}")
        with _folder(place) as folder:
            for key, took in measured(graph, plan, functions, folder):
                found.setdefault(key, []).append(took)
    rows = _rows(found)
    if as_json:
        out_json(_told(rows, len(graph), rounds))
    else:
        _show(rows, len(graph), rounds)
    return 0


def _warm_up(place: str | None) -> None:
    """Loads what a run loads when it begins: start-up is not the run."""
    few = graph_of(FEWEST)
    with _folder(place) as folder:
        for _ in measured(few, *plan_of(few), folder):
            pass


def measured(
    graph: Graph, plan: Plan, functions: Functions, folder: str
) -> Iterator[tuple[tuple[str, str], Took]]:
    """One round: every run in a directory of its own, all of them checked for what they made."""
    wanted = value_of(graph)
    for what in (FIRST, AGAIN):
        loop = Loop(graph, os.path.join(folder, "bare.db"))
        with closing(loop.rows):
            yield (BARE, what), _timed(lambda: asyncio.run(loop.run()))  # noqa: B023 - called at once
            _same(wanted, loop.values[max(graph)])
    location = os.path.join(folder, ".holdfast")
    for what, reused in ((FIRST, 0), (AGAIN, len(graph)), (WHOLE, len(graph))):
        found: list[Callable[[], State]] = []
        run = _as_a_whole if what == WHOLE else _run
        yield (OURS, what), _timed(lambda: found.append(run(plan, functions, folder)))  # noqa: B023 - as above
        state = found[0]()
        ran = state.counts["done"]
        if (ran, state.counts["reused"]) != (len(graph) - reused, reused):
            raise BugError(f"{what}: {ran} steps ran, not {len(graph) - reused}")
        _same(wanted, _artifact(location, state, max(graph)))


def _timed(run: Callable[[], object]) -> Took:
    """What was there before is no garbage of theirs."""
    gc.collect()
    gc.freeze()
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        run()
        return Took(time.process_time() - cpu, time.perf_counter() - wall)
    finally:
        gc.unfreeze()


def _run(plan: Plan, functions: Functions, folder: str) -> Callable[[], State]:
    with _world(plan, functions, folder) as world:
        state = wire.drive(lambda: start_run(world, plan, plan.name, Options()), world=world)
    return lambda: state


def _as_a_whole(plan: Plan, functions: Functions, folder: str) -> Callable[[], State]:
    with _world(plan, functions, folder) as world:
        repeated = wire.repeat(world, plan, Options())
    if repeated is None:
        raise BugError("the plan does not stand as a whole, though nothing changed")
    return repeated.state


@contextmanager
def _world(plan: Plan, functions: Functions, folder: str) -> Iterator[World]:
    location = os.path.join(folder, ".holdfast")
    with closing(wire.open_store(location, create=True)) as store:
        yield wire.world_for(plan, folder, location, store, wire.Wishes(functions=functions))


def _artifact(location: str, state: State, number: int) -> str:
    digest = state.steps[StepId(f"s{number}")].digest
    with closing(wire.open_store(location, readonly=True)) as store:
        return "" if digest is None else store.get(digest).decode()


def _same(wanted: str, found: str) -> None:
    if wanted != found:
        raise BugError(f"the last step gave '{found}', not '{wanted}'")


@contextmanager
def _folder(place: str | None) -> Iterator[str]:
    try:
        made = tempfile.TemporaryDirectory(prefix=".holdfast-bench-", dir=place)
    except OSError as error:
        raise UsageError(f"cannot write in '{one_line(place or '')}': {error.strerror}") from error
    with made as folder:
        yield os.path.realpath(folder)


# --- the plan, and the limit ------------------------------------------------------------------------


def graph_of(steps: int) -> Graph:
    """Ten layers, each step with three needs of the layer above; a last one needs all loose ends."""
    chance, width = random.Random(1), steps // LAYERS  # noqa: S311 - the same graph each time
    graph: dict[int, tuple[int, ...]] = {}
    for number in range(width * LAYERS):
        above = (number // width - 1) * width
        drawn = chance.sample(range(above, above + width), NEEDS) if above >= 0 else ()
        graph[number] = tuple(sorted(drawn))
    used = {need for needs in graph.values() for need in needs}
    graph[len(graph)] = tuple(number for number in graph if number not in used)
    return graph


def work(number: int, **needs: str) -> str:
    """What a step does: a short digest of its number and its needs."""
    return hashlib.sha256(f"{number}|{'|'.join(needs.values())}".encode()).hexdigest()[:16]


def value_of(graph: Graph) -> str:
    """The right value of the last step."""
    values: dict[int, str] = {}
    for number, needs in graph.items():
        values[number] = work(number, **{f"s{need}": values[need] for need in needs})
    return values[max(graph)]


def plan_of(graph: Graph) -> tuple[Plan, Functions]:
    """The plan, and the functions of this process that are its steps."""
    steps = {}
    for number, needs in graph.items():
        name = StepId(f"s{number}")
        steps[name] = Step(
            id=name,
            uses="python",
            run=(f"{__name__}:work",),
            needs=tuple(Need(StepId(f"s{need}")) for need in needs),
            values={"number": number},
        )
    return Plan("bench", steps, project="bench"), dict.fromkeys(steps, work)


class Loop:
    """The limit: an asyncio loop over the graph with one SQLite row for each step, and nothing else."""

    def __init__(self, graph: Graph, path: str) -> None:
        self.graph, self.values = graph, dict[int, str]()
        self.rows = sqlite3.connect(path, isolation_level=None)
        self.rows.execute("PRAGMA journal_mode=WAL")
        self.rows.execute("PRAGMA synchronous=NORMAL")
        self.rows.execute(
            "CREATE TABLE IF NOT EXISTS step(id INTEGER PRIMARY KEY, key TEXT, value TEXT)"
        )
        kept = self.rows.execute("SELECT id, key, value FROM step")
        self.known: dict[int, tuple[str, str]] = {row[0]: (row[1], row[2]) for row in kept}

    async def run(self) -> None:
        """Layer by layer; rows that are there under the same key are taken."""
        missing = {number: len(needs) for number, needs in self.graph.items()}
        below: dict[int, list[int]] = {}
        for number, needs in self.graph.items():
            for need in needs:
                below.setdefault(need, []).append(number)
        ready = [number for number, count in missing.items() if not count]
        while ready:
            await asyncio.gather(*(self._one(*new) for new in self._new(ready)))
            following = []
            for number in ready:
                for dependent in below.get(number, ()):
                    missing[dependent] -= 1
                    if not missing[dependent]:
                        following.append(dependent)
            ready = following

    def _new(self, ready: Sequence[int]) -> list[tuple[int, str]]:
        found = []
        for number in ready:
            inputs = "|".join(self.values[need] for need in self.graph[number])
            key = hashlib.sha256(f"{number}|{inputs}".encode()).hexdigest()
            known = self.known.get(number)
            if known is not None and known[0] == key:
                self.values[number] = known[1]
            else:
                found.append((number, key))
        return found

    async def _one(self, number: int, key: str) -> None:
        needs = {f"s{need}": self.values[need] for need in self.graph[number]}
        value = work(number, **needs)
        self.rows.execute("INSERT OR REPLACE INTO step VALUES(?, ?, ?)", (number, key, value))
        self.values[number] = value


# --- telling ----------------------------------------------------------------------------------------


def _rows(found: Mapping[tuple[str, str], Sequence[Took]]) -> list[Row]:
    """Work by work, the limit first."""
    rows = []
    for who, what in ((BARE, FIRST), (OURS, FIRST), (BARE, AGAIN), (OURS, AGAIN), (OURS, WHOLE)):
        took, limit = found[who, what], found[BARE, FIRST if what == FIRST else AGAIN]
        cpu, wall = median(one.cpu for one in took), median(one.wall for one in took)
        rows.append(Row(who, what, cpu, wall, median(one.cpu for one in limit)))
    return rows


def _told(rows: Sequence[Row], steps: int, rounds: int) -> dict[str, Json]:
    told: list[Json] = [
        {
            "tool": row.who,
            "run": row.what,
            "cpu_s": row.cpu,
            "wall_s": row.wall,
            "cpu_us_per_step": row.cpu / steps * 1e6,
            "times_bare": row.cpu / row.limit,
        }
        for row in rows
    ]
    return {
        "schema": SCHEMA,
        "holdfast": VERSION,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "steps": steps,
        "rounds": rounds,
        "runs": told,
    }


def _show(rows: Sequence[Row], steps: int, rounds: int) -> None:
    out(f"{steps:,} steps in {LAYERS} layers, medians of {count(rounds, 'round')}")
    lines: list[tuple[str, ...]] = [("", "CPU µs a step", "CPU ms", "wall ms", "× bare")]
    for row in rows:
        figures = [f"{row.cpu / steps * 1e6:.1f}", f"{row.cpu * 1e3:.0f}", f"{row.wall * 1e3:.0f}"]
        lines.append((f"{row.who}, {row.what}", *figures, f"{row.cpu / row.limit:.1f}"))
    first = max(len(line[0]) for line in lines)
    for name, *figures in lines:
        out(f"{name.ljust(first)}  {'  '.join(one.rjust(13) for one in figures)}".rstrip())
