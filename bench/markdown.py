"""The results as a page: what was promised, what was measured, how, and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bench import plots, tables
from bench.results import Own, Part, Promise, Results
from bench.tables import NONE, letter, number, parted, table

PAGE = Path(__file__).parent / "page.md"
IMAGES = "images"


def page(found: Results) -> str:
    """The whole page: its text with the tables filled in."""
    drawn = plots.plots(found)
    filled = {
        "about": _about(found),
        "promises": _promises(found.promises),
        "who": tables.who(found),
        "W4": tables.again(found),
        "W5": tables.change(found),
        "W6": tables.kills(found),
        "W6 resume": tables.resumes(found),
        "W7": _starts(found),
        "W8": tables.memory(found),
        "commands": _commands(found),
        "alone": _alone(found),
        "claims": _claims(found),
        "besides": _besides(found),
        "plays": _plays(found),
    }
    filled |= {work: tables.cold(found, work) for work in tables.GRAPH_OF}
    for work in ("W1", "W2", "W3", "W4"):
        name = f"bench-{work.lower()}.svg"
        if name in drawn:
            filled[work] += f"\n\n![{work}: CPU per step of each tool]({IMAGES}/{name})"
    text = PAGE.read_text(encoding="utf-8")
    for name, shown in filled.items():
        text = text.replace("{{" + name + "}}", shown)
    return text


def _about(found: Results) -> str:
    if len(found.parts) == 1:
        return f"{_part(found.parts[0])}."
    rows = (found.cells, found.kills, found.resumes, found.starts, found.own)
    more = (found.claims, found.besides, found.plays)
    used = {row.part for taken in (*rows, *more) for row in taken}
    said = [
        f"- part {letter(place)}: {_part(part)}."
        for place, part in enumerate(found.parts)
        if place in used
    ]
    words = "It was taken in parts; each ratio is one of figures of the same part."
    return "\n".join([words, "", *said])


def _part(part: Part) -> str:
    facts = ", ".join(f"{name} {value}" for name, value in part.environment.items())
    asked = f"; asked for: {part.asked}" if part.asked else ""
    return f"Taken {part.taken} in {part.seconds / 60:.0f} minutes, {facts}{asked}"


def _promises(promises: Iterable[Promise]) -> str:
    words = {True: "held", False: "**missed**", None: "not measured"}
    rows = [
        (
            promise.name,
            f"{promise.relation} {_limit(promise.limit)} {promise.unit}{_aim(promise)}",
            NONE if promise.measured is None else number(promise.measured),
            words[promise.held],
        )
        for promise in promises
    ]
    return table(("what", "limit", "measured", ""), rows)


def _aim(promise: Promise) -> str:
    return "" if promise.aim is None else f" (aim {_limit(promise.aim)})"


def _limit(limit: float) -> str:
    return f"{limit:,.0f}" if limit == int(limit) else f"{limit:g}"


def _starts(found: Results) -> str:
    head = ("tool", "what", "CPU ms", "wall ms", "repeats")
    rows = []
    for start in found.starts:
        cpu, wall = (f"{max(seconds, 0) * 1e3:.0f}" for seconds in (start.cpu, start.wall))
        figures = [start.failed, NONE] if start.failed else [cpu, wall]
        rows.append(([start.tool, start.what, *figures, str(start.repeats)], start.part))
    return parted(found, head, rows)


def _commands(found: Results) -> str:
    """What has the same work by other means beside it."""
    head = [
        "what, in ms wall for each",
        "Holdfast",
        "thread pool, or bare Ray",
        "×",
        "ninja",
        "repeats",
    ]
    rows = []
    for own in found.own:
        if not _is_command(own):
            continue
        known = [own.value, own.reference, own.other]
        ours, theirs, ninja = (NONE if one is None else number(one * 1e3) for one in known)
        times = number(own.value / own.reference) if own.reference else NONE
        row = [own.name, ours, theirs, times, ninja, str(own.repeats)]
        rows.append((row, own.part))
    return parted(found, head, rows)


def _is_command(own: Own) -> bool:
    return own.reference is not None or own.name.startswith("a step ")


def _alone(found: Results) -> str:
    rows = [
        ([own.name, number(own.value), own.unit, str(own.repeats or NONE)], own.part)
        for own in found.own
        if not _is_command(own)
    ]
    return parted(found, ("what", "Holdfast", "", "repeats"), rows)


def _claims(found: Results) -> str:
    head = ["store", "processes", "steps a second", "bare SQL", "× bare", "fewest and most of one"]
    head += ["of bare SQL", "repeats"]
    rows = [
        (
            [
                row.store,
                str(row.processes),
                number(row.per_second),
                number(row.bare),
                number(row.per_second / row.bare),
                f"{row.fewest:,} · {row.most:,}",
                f"{row.bare_fewest:,} · {row.bare_most:,}",
                str(row.repeats),
            ],
            row.part,
        )
        for row in found.claims
    ]
    return parted(found, head, rows)


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
            [
                row.shape,
                f"{row.steps:,}",
                number(row.per_second),
                row.peer,
                number(row.peers),
                number(row.per_second / row.peers),
                str(row.repeats),
            ],
            row.part,
        )
        for row in found.besides
    ]
    return parted(found, head, rows)


def _plays(found: Results) -> str:
    head = ["store", "workers", "steps", "twice or lost", "taken over", "longest takeover s"]
    head += ["limit", "steps a simulated second", "model"]
    rows = [
        (
            [
                play.store,
                str(play.workers),
                f"{play.steps:,}",
                str(play.wrong),
                str(play.overtaken),
                number(play.takeover),
                number(play.limit),
                number(play.per_second),
                number(play.model),
            ],
            play.part,
        )
        for play in found.plays
    ]
    return parted(found, head, rows)
