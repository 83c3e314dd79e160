"""Bars as small SVG files: a figure of each tool on a logarithmic scale, the limit and ours in colour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

from bench import tables
from bench.results import Results

ROW, LEFT, WIDTH, TOP = 22, 190, 420, 34
COLOURS = {"bare": "#7a8793", "holdfast": "#2f7d5b"}
OTHERS = "#b9c4cc"
Bar = tuple[str, float]


def plots(found: Results) -> dict[str, str]:
    """The files by name; none of what was not measured."""
    base = min(tables.sizes(found), default=0)
    graphs = {
        "w1": ("W1 wide", "wide", "cold"),
        "w2": ("W2 chain", "chain", "cold"),
        "w3": ("W3 layered", "layered", "cold"),
        "w4": ("W4 nothing changed", "layered", "noop"),
    }
    files = {}
    for name, (title, shape, phase) in graphs.items():
        bars = _bars(found, shape, phase, base)
        if bars:
            said = f"{title}, {base:,} steps: CPU µs per step, logarithmic"
            files[f"bench-{name}.svg"] = svg(said, bars)
    return files


def write(found: Results, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in plots(found).items():
        (folder / name).write_text(text, encoding="utf-8")


def _bars(found: Results, shape: str, phase: str, size: int) -> list[Bar]:
    lost = {row.name for row in found.contenders if not row.durable}
    cells = [found.cell(tool, shape, phase, size) for tool in tables.tools(found)]
    bars = [
        (
            f"{cell.tool} (not durable)" if cell.tool in lost else cell.tool,
            cell.cpu / cell.steps * 1e6,
        )
        for cell in cells
        if cell and cell.cpu
    ]
    return sorted(bars, key=lambda bar: bar[1])


def svg(title: str, bars: Sequence[Bar]) -> str:
    """Bars from the least to the most; each says its figure."""
    low = math.floor(math.log10(min(value for _, value in bars)))
    high = math.log10(max(value for _, value in bars))
    height, wide = TOP + ROW * len(bars) + 8, LEFT + WIDTH + 80
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {height}" role="img">',
        f"<title>{escape(title)}</title><style>text{{font:13px sans-serif}}</style>",
        f'<rect width="{wide}" height="{height}" fill="#ffffff"/>',
        f'<text x="8" y="20" font-weight="bold">{escape(title)}</text>',
    ]
    for place, (name, value) in enumerate(bars):
        y = TOP + ROW * place
        long = max(2.0, WIDTH * (math.log10(value) - low) / max(high - low, 1e-9))
        colour = COLOURS.get(name, OTHERS)
        lines += [
            f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{LEFT}" y="{y + 3}" width="{long:.0f}" height="{ROW - 6}" fill="{colour}"/>',
            f'<text x="{LEFT + long + 6:.0f}" y="{y + 15}">{tables.number(value)}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])
