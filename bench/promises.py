"""The numbers that Holdfast promises, each beside what a run of the bench found."""

from __future__ import annotations

from collections.abc import Iterator

from bench import envs
from bench.alone import (
    FEW_STEPS,
    MANY_STEPS,
    MILLION,
    TYPICAL,
    ledger_row,
    million_row,
    page_row,
)
from bench.own.commands import KINDS
from bench.own.plans import LARGE as LARGE_PLAN
from bench.own.runner import WAYS
from bench.results import Cell, Key, Own, Promise, Results
from bench.scale.places import STORES
from bench.shared import PROCESSES, TAKEOVER

SMALL, MIDDLE, LARGE = 1_000, 10_000, 100_000
GRAPHS = ("wide", "layered")
CAREFUL = ("hamilton", "dbos", "luigi", "burr", "prefect", "dagster", "snakemake")
COMMANDS = 1.2  # × a thread pool
KB = 1024


def judge(found: Results) -> list[Promise]:
    """Every promise: held, missed, or not measured in this run."""
    parts = (_cold, _floor, _peers, _again, _resume, _plans, _ledgers, _page, _start, _shared)
    return [promise for part in parts for promise in part(found)]


def _at_most(
    name: str, limit: float, unit: str, measured: float | None, aim: float | None = None
) -> Promise:
    held = None if measured is None else measured <= limit
    return Promise(name, "at most", limit, unit, measured, held, aim)


def _at_least(name: str, limit: float, unit: str, measured: float | None) -> Promise:
    held = None if measured is None else measured >= limit
    return Promise(name, "at least", limit, unit, measured, held)


def _ratio(found: Results, one: Key, other: Key, field: str = "cpu") -> float | None:
    """One figure over another of the same part."""
    pair = found.pair(one, other)
    if pair is None:
        return None
    above: float = getattr(pair[0], field)
    below: float = getattr(pair[1], field)
    return above / below if below else None


def _over_bare(found: Results, shape: str, size: int) -> float | None:
    return _ratio(found, ("holdfast", shape, "cold", size), ("bare", shape, "cold", size))


def _cold(found: Results) -> Iterator[Promise]:
    for shape in GRAPHS:
        for size in (SMALL, MIDDLE, LARGE):
            name = f"{shape}, {size:,} steps, cold: CPU of the run"
            yield _at_most(name, 2.5, "× bare", _over_bare(found, shape, size), aim=1.6)
        small, large = _over_bare(found, shape, SMALL), _over_bare(found, shape, LARGE)
        growth = large / small if large and small else None
        name = f"{shape}, cold: that ratio at {LARGE:,} steps"
        yield _at_most(name, 1.3, f"× that at {SMALL:,}", growth)
    for size in (SMALL, MIDDLE):
        ours, full = (("holdfast", "chain", "cold", size), ("bare full", "chain", "cold", size))
        wall = _ratio(found, ours, full, "wall")
        yield _at_most(f"chain, {size:,} steps, cold: wall of the run", 1.3, "× bare full", wall)


def _floor(found: Results) -> Iterator[Promise]:
    """One step after the other, each synced before the next one begins."""
    local = found.cell("holdfast", "chain", "cold", SMALL)
    rate = local.steps / local.wall if local is not None and local.wall else None
    yield _at_least("SQLite, a chain: steps accepted a second", 100, "steps", rate)
    chain = next((row for row in found.besides if row.shape == "chain"), None)
    rate = chain.per_second if chain is not None else None
    yield _at_least("PostgreSQL, a chain: steps accepted a second", 200, "steps", rate)


def careful(found: Results) -> list[str]:
    """Python peers that repeat at most one step per worker after kill -9: as seen, else as known."""
    peers = envs.peers()
    seen = {kill.tool: kill.twice for kill in found.kills if not kill.failed}
    return [
        name
        for name, peer in peers.items()
        if peer.packages and (seen[name] <= peer.workers if name in seen else name in CAREFUL)
    ]


def _peers(found: Results) -> Iterator[Promise]:
    """The less favourable of CPU and wall time counts."""
    for peer in careful(found):
        for shape in GRAPHS:
            theirs = (peer, "chain" if peer == "burr" else shape, "cold", SMALL)
            pair = found.pair(("holdfast", shape, "cold", SMALL), theirs)
            ratios = (
                [_per_step(pair[1], pair[0], field) for field in ("cpu", "wall")] if pair else []
            )
            known = [ratio for ratio in ratios if ratio is not None]
            than = f"{peer}, which only has chains" if peer == "burr" else peer
            what = f"{shape}, {SMALL:,} steps, cold: fewer µs per step than {than}"
            yield _at_least(what, 25, "× fewer", min(known, default=None))


def _per_step(one: Cell, other: Cell, field: str) -> float | None:
    above: float = getattr(one, field)
    below: float = getattr(other, field)
    return above / below * other.steps / one.steps if below else None


def _again(found: Results) -> Iterator[Promise]:
    noop = ("holdfast", "layered", "noop", LARGE)
    shortcut = ("holdfast", "layered", "shortcut", LARGE)
    change = ("holdfast", "layered", "change", LARGE)
    ninja = ("ninja", "layered", "noop", LARGE)
    what = f"nothing changed, {LARGE:,} steps"
    by_step = _ratio(found, noop, ninja)
    yield _at_most(f"{what}, step by step: CPU of the run", 3, "× ninja", by_step)
    whole = _ratio(found, shortcut, ninja)
    yield _at_most(f"{what}, as a whole: CPU of the run", 1, "× ninja", whole)
    pair = found.pair(noop, ("holdfast", "layered", "noop", MIDDLE))
    linear = _per_step(*pair, "cpu") if pair else None
    yield _at_most(f"{what}: CPU per step (linear)", 1.3, f"× that at {MIDDLE:,}", linear)
    changed = _ratio(found, change, noop)
    name = f"one leaf changed, {LARGE:,} steps: CPU of the run"
    yield _at_most(name, 1.1, "× nothing changed", changed)
    for shape, phase in (("wide", "cold"), ("layered", "cold"), ("layered", "noop")):
        memory = _ratio(
            found, ("holdfast", shape, phase, LARGE), ("bare", shape, phase, LARGE), "peak_mb"
        )
        words = {"cold": "cold", "noop": "nothing changed"}[phase]
        yield _at_most(f"{shape}, {LARGE:,} steps, {words}: peak memory", 3, "× bare", memory)
    million = million_row(MILLION, "nothing changed")
    for what, limit, unit in (("load and run", 40, "s CPU"), ("peak memory", 3, "GB")):
        name = f"{million}: {what}"
        yield _at_most(name, limit, unit, _value(found.own_of(name)))


def _resume(found: Results) -> Iterator[Promise]:
    kills = [kill for kill in found.kills if kill.finished_again is not None and not kill.failed]
    again = float(sum(kill.finished_again or 0 for kill in kills)) if kills else None
    lost = float(sum(kill.lost for kill in kills)) if kills else None
    yield _at_most("kill -9 half way, resume: finished steps run again", 0, "steps", again)
    yield _at_most("kill -9 half way, resume: steps lost", 0, "steps", lost)
    resumed = next(
        (row for row in found.resumes if (row.tool, row.size) == ("holdfast", LARGE)), None
    )
    before = resumed.first / resumed.noop if resumed is not None and resumed.noop else None
    name = f"kill -9 half way, resume of {LARGE:,} steps: CPU before the first step begins"
    yield _at_most(name, 1.3, "× nothing changed", before)
    name = "reopening 50,000 events"
    yield _at_most(f"{name} until the next step runs: wall", 2, "s", _value(found.own_of(name)))
    stored = _value(found.own_of("stored bytes per step"))
    yield _at_most("stored for a step with an artifact of 1 KB", 3 * KB, "bytes", stored)


def _plans(found: Results) -> Iterator[Promise]:
    def own(name: str) -> float | None:
        return _value(found.own_of(name))

    loaded = [own(f"{TYPICAL}: loaded from its {place}") for place in ("file", "store")]
    known = [value for value in loaded if value is not None]
    yield _at_most(f"{TYPICAL}: load, the slower of both", 20, "ms", max(known, default=None))
    yield _at_most(f"{TYPICAL}: stored", 100, "KB", own(f"{TYPICAL}: kept in"))
    for word, limit in (("check", 1.5), ("plan", 2.5)):
        name = f"`{word}` of {LARGE_PLAN:,} steps"
        yield _at_most(f"{name}, start-up apart", limit, "s CPU", own(name))
    for name in ("time", "cost"):
        saved = own(f"{TYPICAL}: {name} saved by reuse")
        yield _at_least(f"{TYPICAL}, one prompt changed: {name} saved", 50, "%", saved)


def _ledgers(found: Results) -> Iterator[Promise]:
    middle, large = (_value(found.own_of(ledger_row(size))) for size in (MIDDLE, LARGE))
    yield _at_most(f"{ledger_row(MIDDLE)}: the fold", 1, "s CPU", middle)
    growth = large / middle * MIDDLE / LARGE if large and middle else None
    name = f"{ledger_row(LARGE)}: CPU per handoff (linear)"
    yield _at_most(
        name, 2, f"× that at {MIDDLE:,}", growth
    )  # memory, and fuller lists up to their bound


def _page(found: Results) -> Iterator[Promise]:
    """A page of many steps is useful nearly as soon as one of few."""
    for screen in ("steps", "graph", "timeline"):
        for what in ("first useful paint", "a click on a step"):
            few, many = (
                _value(found.own_of(page_row(steps, f"{screen}: {what}")))
                for steps in (FEW_STEPS, MANY_STEPS)
            )
            name = page_row(MANY_STEPS, f"{screen}: {what}")
            ratio = many / few if many is not None and few else None
            yield _at_most(name, 3, f"× that of {FEW_STEPS}", ratio)


def _start(found: Results) -> Iterator[Promise]:
    starts = {start.what: start for start in found.starts if start.tool == "holdfast"}
    for what, limit in (("--version", 40), ("status of 10 steps", 200), ("plan of 10 steps", 200)):
        start = starts.get(what)
        cpu = start.cpu * 1000 if start is not None and not start.failed else None
        yield _at_most(f"`holdfast` {what}: CPU over `python -c pass`", limit, "ms", cpu)
    for kind in KINDS:
        for jobs in (2, 4):
            name = f"`{kind}`, {jobs} at once"
            own = found.own_of(name)
            ratio = own.value / own.reference if own is not None and own.reference else None
            yield _at_most(f"commands {name}: wall", COMMANDS, "× thread pool", ratio)
    for way, most in WAYS.items():
        own = found.own_of(f"`true` {way}")
        over = (own.value - own.reference) * 1000 if own is not None and own.reference else None
        yield _at_most(f"process runner {way}: over `subprocess.run`", most, "ms", over)


def _shared(found: Results) -> Iterator[Promise]:
    rows = {(row.store, row.processes): row for row in found.claims}
    for store in STORES:
        for processes in PROCESSES:
            row = rows.get((store, processes))
            who = "1 process" if processes == 1 else f"{processes} processes"
            name = f"{store}, {who}: steps claimed and reported a second"
            yield _at_least(name, 0.8, "× bare SQL", row.per_second / row.bare if row else None)
    wide = next((row for row in found.besides if row.shape == "wide"), None)
    name = "PostgreSQL, one engine, steps side by side: steps a second"
    yield _at_least(name, 5, "× dbos", wide.per_second / wide.peers if wide else None)
    wrong = [float(row.wrong) for row in found.claims]
    wrong += [float(play.wrong) for play in found.plays]
    name = "many workers: steps taken twice, accepted twice or lost"
    yield _at_most(name, 0, "steps", sum(wrong) if wrong else None)
    longest = max((play.takeover for play in found.plays), default=None)
    name = "many workers: longest takeover after a last beat (lease, two polls)"
    yield _at_most(name, TAKEOVER, "simulated s", longest)


def _value(own: Own | None) -> float | None:
    return None if own is None else own.value
