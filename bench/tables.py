"""The tables of W1 to W8: one row for each tool, the sizes side by side, the bare loop first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bench.results import Cell, Key, Kill, Results, Resume

NONE = "–"
WHOLE = "holdfast, as a whole"
GRAPH_OF = {"W1": "wide", "W2": "chain", "W3": "layered"}
LONGEST_CHAIN = 10_000
Show = Callable[[Cell], list[str]]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def parted(found: Results, head: Sequence[str], rows: Iterable[tuple[Sequence[str], int]]) -> str:
    """A table whose rows say in which part they were taken, if there are several."""
    if len(found.parts) < 2:
        return table(head, [row for row, _ in rows])
    return table([*head, "part"], [[*row, letter(part)] for row, part in rows])


def number(value: float) -> str:
    """Three digits that count, and thousands apart."""
    if value >= 100 or value == 0:
        return f"{value:,.0f}"
    digits = 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f}"


def letter(part: int) -> str:
    return chr(ord("A") + part % 26)


def sizes(found: Results) -> list[int]:
    return sorted({cell.size for cell in found.cells})


def tools(found: Results) -> list[str]:
    """Who was measured: the bare loops, Holdfast, then the others as they are pinned."""
    measured = {cell.tool for cell in found.cells}
    order = ["bare", "bare full", "holdfast", *(row.name for row in found.contenders)]
    return [name for name in dict.fromkeys([*order, *sorted(measured)]) if name in measured]


def who(found: Results) -> str:
    """Everybody, in which version, as what, or why not; with what each one keeps."""
    rows = [
        (row.name, row.missing or row.version or NONE, row.note or NONE, row.keeps)
        for row in found.contenders
    ]
    return table(("tool", "version", "measured as", "keeps"), rows)


def cold(found: Results, work: str) -> str:
    """W1, W2 or W3: the first run."""
    shape = GRAPH_OF[work]

    def show(cell: Cell) -> list[str]:
        cpu, wall = (number(each / cell.steps * 1e6) for each in (cell.cpu, cell.wall))
        return [cpu, wall, _times(found, cell, "bare")]

    columns = ("CPU µs/step", "wall", "× bare")
    rows = [(name, name, "cold") for name in tools(found)]
    return _by_size(found, shape, rows, columns, show)


def again(found: Results) -> str:
    """W4: nothing changed."""

    def show(cell: Cell) -> list[str]:
        return [*_millis(cell), _times(found, cell, "bare"), _times(found, cell, "ninja")]

    columns = ("CPU ms", "wall", "× bare", "× ninja")
    return _by_size(found, "layered", _with_whole(found, "noop"), columns, show)


def change(found: Results) -> str:
    """W5: one leaf changed."""

    def show(cell: Cell) -> list[str]:
        noop = found.cell(cell.tool, cell.shape, "noop", cell.size, cell.part)
        over = number(cell.cpu / noop.cpu) if noop and noop.cpu else NONE
        return [*_millis(cell), _times(found, cell, "bare"), over]

    rows = [(name, name, "change") for name in tools(found)]
    return _by_size(
        found, "layered", rows, ("CPU ms", "wall", "× bare", "× its nothing changed"), show
    )


def memory(found: Results) -> str:
    """W8: the most memory that a process held."""

    def show(cell: Cell) -> list[str]:
        return [number(cell.peak_mb), _times(found, cell, "bare", "peak_mb")]

    rows = [(name, name, "cold") for name in tools(found)]
    rows += [
        (f"{name}, nothing changed", name, "noop")
        for name in ("bare", "holdfast")
        if name in tools(found)
    ]
    return _by_size(found, "layered", rows, ("peak MB", "× bare"), show)


def kills(found: Results) -> str:
    """W6: what is done twice."""
    keeps = {contender.name: contender.keeps for contender in found.contenders}
    keeps["holdfast shell"] = "the same; its steps are commands"
    head = ["tool", "graph", "steps", "begun before", "executed twice", "finished again", "lost"]
    rows = [(_kill_row(kill, keeps.get(kill.tool, "")), kill.part) for kill in found.kills]
    return parted(found, [*head, "it keeps"], rows)


def _kill_row(kill: Kill, keeps: str) -> list[str]:
    if kill.failed:
        return [kill.tool, kill.shape, f"{kill.size:,}", kill.failed, NONE, NONE, NONE, keeps]
    known = NONE if kill.finished_again is None else str(kill.finished_again)
    figures = [str(kill.before), str(kill.twice), known, str(kill.lost)]
    return [kill.tool, kill.shape, f"{kill.size:,}", *figures, keeps]


def resumes(found: Results) -> str:
    """W6: what it costs until the first step begins."""
    head = ["tool", "steps", "begun before", "CPU ms before the first step"]
    head += ["nothing changed CPU ms", "×", "repeats"]
    return parted(found, head, [(_resume_row(row), row.part) for row in found.resumes])


def _resume_row(row: Resume) -> list[str]:
    if row.failed:
        return [row.tool, f"{row.size:,}", row.failed, *[NONE] * 4]
    figures = [number(row.first * 1e3), number(row.noop * 1e3), number(row.first / row.noop)]
    return [row.tool, f"{row.size:,}", f"{row.before:,}", *figures, str(row.repeats)]


# --- by size ----------------------------------------------------------------------------------------


def _with_whole(found: Results, phase: str) -> list[tuple[str, str, str]]:
    """Every tool in a phase, and Holdfast once more where it decides for the plan as a whole."""
    rows = []
    for name in tools(found):
        rows.append((name, name, phase))
        if name == "holdfast":
            rows[-1] = ("holdfast, step by step", name, phase)
            rows.append((WHOLE, name, "shortcut"))
    return rows


def _by_size(
    found: Results,
    shape: str,
    rows: Sequence[tuple[str, str, str]],
    columns: Sequence[str],
    show: Show,
) -> str:
    """One row for each tool: its label, and the columns for each size."""
    taken = sorted({cell.size for cell in found.cells if cell.shape == shape})
    labels = {row.name: row.label for row in found.contenders}
    head = ["tool", *(f"{size:,}: {name}" for size in taken for name in columns), "repeats"]
    lines = []
    for label, tool, phase in rows:
        if not any(found.look(tool, shape, phase, size) for size in taken):
            continue
        line = [label.replace(tool, labels.get(tool, tool), 1)]
        for size in taken:
            cell = found.look(tool, shape, phase, size)
            line += _shown(found, cell, (tool, shape, phase, size), len(columns), show)
        cells = [cell for size in taken if (cell := found.look(tool, shape, phase, size))]
        repeats = [str(cell.repeats) for cell in cells if not cell.failed]
        line.append(", ".join(dict.fromkeys(repeats)) or NONE)
        lines.append((line, cells[-1].part))
    notes = _notes(found, shape, {tool for _, tool, _ in rows})
    return "\n".join([parted(found, head, lines), *(["", *notes] if notes else [])])


def _shown(found: Results, cell: Cell | None, key: Key, width: int, show: Show) -> list[str]:
    """The figures, or why there are none."""
    if cell is not None:
        return [cell.failed, *[NONE] * (width - 1)] if cell.failed else show(cell)
    tool, shape, phase, size = key
    smaller = [found.cell(tool, shape, phase, less) for less in sizes(found) if less < size]
    known = [one for one in smaller if one is not None]
    first = found.cell(tool, shape, "cold", known[-1].size) if known else None
    if first is None or shape == "chain":
        return [NONE] * width
    about = first.wall / first.steps * size
    there = found.look(tool, "layered", "cold", size)
    why = "layered only" if there else f"skipped: about {about:,.0f} s"
    return [why, *[NONE] * (width - 1)]


def _notes(found: Results, shape: str, names: set[str]) -> list[str]:
    notes = [
        f"{row.name} got a graph of {row.steps:,} steps: it is too slow for more."
        for row in found.contenders
        if row.steps and not row.missing and row.name in names
    ]
    if shape == "chain":
        notes.append(
            f"Chains of more than {LONGEST_CHAIN:,} steps are left out: they only wait for the disk."
        )
    return notes


def _millis(cell: Cell) -> list[str]:
    return [number(cell.cpu * 1e3), number(cell.wall * 1e3)]


def _times(found: Results, cell: Cell, tool: str, field: str = "cpu") -> str:
    """A figure over that of another tool, per step, if both were taken in one part."""
    phase = "noop" if cell.phase == "shortcut" else cell.phase
    other = found.cell(tool, cell.shape, phase, cell.size, cell.part)
    if other is None:
        return NONE
    above: float = getattr(cell, field)
    below: float = getattr(other, field)
    per_step = other.steps / cell.steps if field == "cpu" else 1.0
    return number(above / below * per_step) if below else NONE
