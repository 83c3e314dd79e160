"""The results as a page: what was promised, what was measured, how, and how to repeat it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench.results import Cell, Kill, Promise, Results

PAGE = Path(__file__).parent / "page.md"
GRAPHS = ("wide", "chain", "layered")
NONE = "–"


def page(found: Results) -> str:
    """The whole page: its text with the tables filled in."""
    filled = {
        "about": _about(found),
        "promises": _promises(found.promises),
        "tools": _main(found, _base(found)),
        "larger": _larger(found, _base(found)),
        "kills": _kills(found),
        "starts": _starts(found),
        "alone": _alone(found),
        "claims": _claims(found),
        "besides": _besides(found),
        "plays": _plays(found),
    }
    text = PAGE.read_text(encoding="utf-8")
    for name, table in filled.items():
        text = text.replace("{{" + name + "}}", table)
    return text


def _base(found: Results) -> int:
    return min((cell.size for cell in found.cells), default=0)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(value: float) -> str:
    """Three digits that count, and thousands apart."""
    if value >= 100 or value == 0:
        return f"{value:,.0f}"
    digits = 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f}"


def _about(found: Results) -> str:
    facts = ", ".join(f"{name} {value}" for name, value in found.environment.items())
    took = f"The run took {found.seconds / 60:.0f} minutes."
    asked = " ".join(f"{name}={value}" for name, value in found.options.items() if value)
    return f"{facts}. {took}{f' Asked for: {asked}.' if asked else ''}"


def _promises(promises: Iterable[Promise]) -> str:
    words = {True: "held", False: "**missed**", None: "not measured"}
    rows = [
        (
            promise.name,
            f"{promise.relation} {_limit(promise.limit)} {promise.unit}",
            NONE if promise.measured is None else _number(promise.measured),
            words[promise.held],
        )
        for promise in promises
    ]
    return _table(("what", "limit", "measured", ""), rows)


def _limit(limit: float) -> str:
    return f"{limit:,.0f}" if limit == int(limit) else f"{limit:g}"


def _tools(found: Results, size: int) -> list[str]:
    """The tools of a size, in the order in which they were measured."""
    return list(dict.fromkeys(cell.tool for cell in found.cells if cell.size == size))


def _micro(cell: Cell, seconds: float) -> str:
    return _number(seconds / cell.steps * 1e6)


def _look(found: Results, tool: str, shape: str, phase: str, size: int) -> Cell | None:
    """The cell, also a failed one."""
    wanted = (tool, shape, phase, size)
    cells = found.cells
    return next((c for c in cells if (c.tool, c.shape, c.phase, c.size) == wanted), None)


def _shown(cell: Cell | None, show: Callable[[Cell], str]) -> str:
    if cell is None:
        return NONE
    return cell.failed or show(cell)


def _times_bare(found: Results, cell: Cell) -> str:
    bare = found.cell("bare", cell.shape, cell.phase, cell.size)
    return NONE if bare is None else _number(cell.cpu / bare.cpu)


def _main(found: Results, size: int) -> str:
    head = ["tool", "version"]
    for graph in GRAPHS:
        head += [f"{graph} CPU µs/step", "wall", "× bare"]
    head += ["nothing changed CPU ms", "one leaf CPU ms", "peak MB", "repeats"]
    rows = [_tool_row(found, tool, size) for tool in _tools(found, size)]
    missing = [
        [contender.name, contender.missing, *[NONE] * (len(head) - 2)]
        for contender in found.contenders
        if contender.missing
    ]
    notes = [f"- {c.name}: {c.note}" for c in found.contenders if c.note and not c.missing]
    return "\n".join([f"Graphs of {size:,} steps.\n", _table(head, [*rows, *missing]), "", *notes])


def _tool_row(found: Results, tool: str, size: int) -> list[str]:
    versions = {contender.name: contender.version for contender in found.contenders}
    row = [tool, versions.get(tool, "")]
    for graph in GRAPHS:
        cell = _look(found, tool, graph, "cold", size)
        row.append(_shown(cell, lambda c: _micro(c, c.cpu)))
        row.append(NONE if cell is None or cell.failed else _micro(cell, cell.wall))
        row.append(NONE if cell is None or cell.failed else _times_bare(found, cell))
    again = [_look(found, tool, "layered", phase, size) for phase in ("noop", "change")]
    row += [_shown(cell, lambda c: _number(c.cpu * 1e3)) for cell in again]
    cells = [c for c in found.cells if c.tool == tool and c.size == size and not c.failed]
    row.append(_number(max((c.peak_mb for c in cells), default=0.0)))
    row.append(str(max((c.repeats for c in cells), default=0)))
    return row


def _larger(found: Results, base: int) -> str:
    head = ["tool", "graph", "steps", "cold CPU µs/step", "wall", "× bare"]
    head += ["nothing changed CPU s", "× bare", "one leaf CPU s", "peak MB", "repeats"]
    cold = [cell for cell in found.cells if cell.phase == "cold" and cell.size > base]
    rows = [_larger_row(found, cell) for cell in cold]
    whole = [cell for cell in found.cells if cell.phase == "shortcut" and not cell.failed]
    said = [
        f"Holdfast, nothing changed, {cell.size:,} steps, decided for the plan as a whole:"
        f" {_number(cell.cpu)} s CPU, {cell.peak_mb:.0f} MB."
        for cell in whole
    ]
    return "\n".join([_table(head, rows), "", *said])


def _larger_row(found: Results, cold: Cell) -> list[str]:
    again = [_look(found, cold.tool, cold.shape, phase, cold.size) for phase in ("noop", "change")]
    cells = [cell for cell in (cold, *again) if cell is not None and not cell.failed]
    noop = again[0]
    return [
        cold.tool,
        cold.shape,
        f"{cold.size:,}",
        _shown(cold, lambda c: _micro(c, c.cpu)),
        NONE if cold.failed else _micro(cold, cold.wall),
        NONE if cold.failed else _times_bare(found, cold),
        _shown(noop, lambda c: _number(c.cpu)),
        NONE if noop is None or noop.failed else _times_bare(found, noop),
        _shown(again[1], lambda c: _number(c.cpu)),
        _number(max((cell.peak_mb for cell in cells), default=0.0)),
        ", ".join(dict.fromkeys(str(cell.repeats) for cell in cells)),
    ]


def _kills(found: Results) -> str:
    keeps = {contender.name: contender.keeps for contender in found.contenders}
    keeps["holdfast shell"] = "the same; its steps are commands"
    head = (
        "tool",
        "graph",
        "steps",
        "begun before",
        "executed twice",
        "finished again",
        "lost",
        "it keeps",
    )
    return _table(head, [_kill_row(kill, keeps.get(kill.tool, "")) for kill in found.kills])


def _kill_row(kill: Kill, keeps: str) -> list[str]:
    if kill.failed:
        return [kill.tool, kill.shape, f"{kill.size:,}", kill.failed, NONE, NONE, NONE, keeps]
    known = NONE if kill.finished_again is None else str(kill.finished_again)
    figures = [str(kill.before), str(kill.twice), known, str(kill.lost)]
    return [kill.tool, kill.shape, f"{kill.size:,}", *figures, keeps]


def _starts(found: Results) -> str:
    head = ("tool", "what", "CPU ms", "wall ms", "repeats")
    rows = []
    for start in found.starts:
        cpu, wall = (f"{max(seconds, 0) * 1e3:.0f}" for seconds in (start.cpu, start.wall))
        figures = [start.failed, NONE] if start.failed else [cpu, wall]
        rows.append([start.tool, start.what, *figures, str(start.repeats)])
    return _table(head, rows)


def _alone(found: Results) -> str:
    head = ("what", "Holdfast", "thread pool", "", "repeats")
    rows = []
    for own in found.own:
        if own.reference is None:
            rows.append([own.name, _number(own.value), NONE, own.unit, str(own.repeats or NONE)])
        else:
            ours, theirs = (_number(seconds * 1e3) for seconds in (own.value, own.reference))
            rows.append([own.name, ours, theirs, "ms wall per command", str(own.repeats)])
    return _table(head, rows)


def _claims(found: Results) -> str:
    head = ["store", "processes", "steps a second", "bare SQL", "× bare", "fewest and most of one"]
    head += ["of bare SQL", "repeats"]
    rows = [
        (
            row.store,
            str(row.processes),
            _number(row.per_second),
            _number(row.bare),
            _number(row.per_second / row.bare),
            f"{row.fewest:,} · {row.most:,}",
            f"{row.bare_fewest:,} · {row.bare_most:,}",
            str(row.repeats),
        )
        for row in found.claims
    ]
    return _table(head, rows)


def _besides(found: Results) -> str:
    head = [
        "graph",
        "steps",
        "holdfast, steps a second",
        "peer",
        "its steps a second",
        "×",
        "repeats",
    ]
    rows = [
        (
            row.shape,
            f"{row.steps:,}",
            _number(row.per_second),
            row.peer,
            _number(row.peers),
            _number(row.per_second / row.peers),
            str(row.repeats),
        )
        for row in found.besides
    ]
    return _table(head, rows)


def _plays(found: Results) -> str:
    head = ["store", "workers", "steps", "twice or lost", "taken over", "longest takeover s"]
    head += ["limit", "steps a simulated second", "model"]
    rows = [
        (
            play.store,
            str(play.workers),
            f"{play.steps:,}",
            str(play.wrong),
            str(play.overtaken),
            _number(play.takeover),
            _number(play.limit),
            _number(play.per_second),
            _number(play.model),
        )
        for play in found.plays
    ]
    return _table(head, rows)
