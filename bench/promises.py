"""The numbers that Holdfast promises, each beside what a run of the bench found."""

from __future__ import annotations

from collections.abc import Iterator

from bench.alone import FEW_STEPS, MANY_STEPS, TYPICAL, ledger_row, page_row
from bench.own.commands import KINDS
from bench.own.plans import LARGE as LARGE_PLAN
from bench.own.runner import WAYS
from bench.results import Cell, Own, Promise, Results
from bench.scale.places import STORES
from bench.shared import PROCESSES, TAKEOVER

SMALL, MIDDLE, LARGE = 1_000, 10_000, 100_000
GRAPHS = ("wide", "layered")
CAREFUL = ("hamilton", "dbos", "luigi", "burr", "prefect")  # lose at most one step per worker
KB = 1024


def judge(found: Results) -> list[Promise]:
    """Every promise: held, missed, or not measured in this run."""
    parts = (_cold, _floor, _peers, _again, _resume, _plans, _ledgers, _page, _start, _shared)
    return [promise for part in parts for promise in part(found)]


def _at_most(name: str, limit: float, unit: str, measured: float | None) -> Promise:
    held = None if measured is None else measured <= limit
    return Promise(name, "at most", limit, unit, measured, held)


def _at_least(name: str, limit: float, unit: str, measured: float | None) -> Promise:
    held = None if measured is None else measured >= limit
    return Promise(name, "at least", limit, unit, measured, held)


def _ratio(one: Cell | None, other: Cell | None, field: str = "cpu") -> float | None:
    if one is None or other is None:
        return None
    below: float = getattr(other, field)
    above: float = getattr(one, field)
    return above / below if below else None


def _over_bare(found: Results, shape: str, size: int) -> float | None:
    ours = found.cell("holdfast", shape, "cold", size)
    return _ratio(ours, found.cell("bare", shape, "cold", size))


def _cold(found: Results) -> Iterator[Promise]:
    for shape in GRAPHS:
        for size in (SMALL, MIDDLE, LARGE):
            measured = _over_bare(found, shape, size)
            yield _at_most(f"{shape}, {size:,} steps, cold: CPU of the run", 4, "× bare", measured)
        small, large = _over_bare(found, shape, SMALL), _over_bare(found, shape, LARGE)
        growth = large / small if large and small else None
        name = f"{shape}, cold: that ratio at {LARGE:,} steps"
        yield _at_most(name, 1.3, f"× that at {SMALL:,}", growth)
    for size in (SMALL, MIDDLE):
        ours = found.cell("holdfast", "chain", "cold", size)
        wall = _ratio(ours, found.cell("bare full", "chain", "cold", size), "wall")
        yield _at_most(f"chain, {size:,} steps, cold: wall of the run", 1.3, "× bare full", wall)


def _floor(found: Results) -> Iterator[Promise]:
    """One step after the other, each synced before the next one begins."""
    local = found.cell("holdfast", "chain", "cold", SMALL)
    rate = local.steps / local.wall if local is not None and local.wall else None
    yield _at_least("SQLite, a chain: steps accepted a second", 100, "steps", rate)
    chain = next((row for row in found.besides if row.shape == "chain"), None)
    rate = chain.per_second if chain is not None else None
    yield _at_least("PostgreSQL, a chain: steps accepted a second", 200, "steps", rate)


def _peers(found: Results) -> Iterator[Promise]:
    """The less favourable of CPU and wall time counts."""
    for peer in CAREFUL:
        for shape in GRAPHS:
            theirs = found.cell(peer, "chain" if peer == "burr" else shape, "cold", SMALL)
            ours = found.cell("holdfast", shape, "cold", SMALL)
            ratios = [_per_step(theirs, ours, field) for field in ("cpu", "wall")]
            known = [ratio for ratio in ratios if ratio is not None]
            than = f"{peer}, which only has chains" if peer == "burr" else peer
            what = f"{shape}, {SMALL:,} steps, cold: fewer µs per step than {than}"
            yield _at_least(what, 10, "× fewer", min(known, default=None))


def _per_step(theirs: Cell | None, ours: Cell | None, field: str) -> float | None:
    ratio = _ratio(theirs, ours, field)
    if ratio is None or theirs is None or ours is None:
        return None
    return ratio * ours.steps / theirs.steps


def _again(found: Results) -> Iterator[Promise]:
    noop = found.cell("holdfast", "layered", "noop", LARGE)
    shortcut = found.cell("holdfast", "layered", "shortcut", LARGE)
    ninja = found.cell("ninja", "layered", "noop", LARGE)
    what = f"nothing changed, {LARGE:,} steps"
    yield _at_most(f"{what}, step by step: CPU of the run", 6, "× ninja", _ratio(noop, ninja))
    yield _at_most(f"{what}, as a whole: CPU of the run", 1.5, "× ninja", _ratio(shortcut, ninja))
    smaller = found.cell("holdfast", "layered", "noop", MIDDLE)
    linear = _per_step(noop, smaller, "cpu")
    yield _at_most(f"{what}: CPU per step (linear)", 1.3, f"× that at {MIDDLE:,}", linear)
    bare = found.cell("bare", "layered", "noop", LARGE)
    yield _at_most(f"{what}: peak memory", 4, "× bare", _ratio(noop, bare, "peak_mb"))
    change = found.cell("holdfast", "layered", "change", LARGE)
    name = f"one leaf changed, {LARGE:,} steps: CPU of the run"
    yield _at_most(name, 1.1, "× nothing changed", _ratio(change, noop))


def _resume(found: Results) -> Iterator[Promise]:
    kills = [kill for kill in found.kills if kill.finished_again is not None and not kill.failed]
    again = float(sum(kill.finished_again or 0 for kill in kills)) if kills else None
    lost = float(sum(kill.lost for kill in kills)) if kills else None
    yield _at_most("kill -9 half way, resume: finished steps run again", 0, "steps", again)
    yield _at_most("kill -9 half way, resume: steps lost", 0, "steps", lost)
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
    for what, limit in (("--version", 90), ("plan of 10 steps", 250)):
        start = starts.get(what)
        cpu = start.cpu * 1000 if start is not None and not start.failed else None
        yield _at_most(f"`holdfast` {what}: CPU over `python -c pass`", limit, "ms", cpu)
    for kind in KINDS:
        for jobs in (2, 4):
            name = f"`{kind}`, {jobs} at once"
            own = found.own_of(name)
            ratio = own.value / own.reference if own is not None and own.reference else None
            yield _at_most(f"commands {name}: wall", 1.4, "× thread pool", ratio)
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
