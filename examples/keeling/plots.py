"""Plots as SVG, without any library: axes with round numbers, lines, points, bars and a legend.

A plot has names of colours alone; the page or the file around it says what they mean in a light and in a
dark room.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

Point = tuple[float, float]

WIDTH, HEIGHT = 720, 380
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 16, 84
STYLE = """
.plot{font:13px system-ui,sans-serif}
.plot text{fill:#333a40}
.plot .grid{stroke:#d9dee2;stroke-width:1}
.plot .axis{stroke:#6b747b;stroke-width:1}
.plot .one{--ink:#0a6a94}.plot .two{--ink:#b4470c}.plot .three{--ink:#5b7a1f}.plot .four{--ink:#6b747b}
.plot .line{fill:none;stroke:var(--ink);stroke-width:2}
.plot .dash{stroke-dasharray:6 4}
.plot .dot,.plot .bar{fill:var(--ink)}
@media (prefers-color-scheme:dark){
.plot text{fill:#d5dbe0}
.plot .grid{stroke:#39424a}
.plot .axis{stroke:#98a3ab}
.plot .one{--ink:#6fc3ea}.plot .two{--ink:#f3a567}.plot .three{--ink:#b5d46a}.plot .four{--ink:#98a3ab}
}
""".strip()


class Series(NamedTuple):
    """Points that belong together: drawn as `line`, `dash`, `dot` or `bar`, in the colour of its name."""

    name: str
    points: Sequence[Point]
    kind: str = "line"
    colour: str = "one"


class Plot(NamedTuple):
    """One plot: what it shows in words, what the axes say, and the series; with bars, their names."""

    name: str
    title: str
    words: str
    across: str
    up: str
    series: Sequence[Series]
    labels: Sequence[str] = ()
    from_zero: bool = False
    mark: float | None = None  # where a line from top to bottom stands


def svg(plot: Plot, *, alone: bool = False) -> str:
    """A plot as SVG; `alone` in a file it brings its colours along."""
    xs = [x for one in plot.series for x, _ in one.points]
    ys = [y for one in plot.series for _, y in one.points]
    x_ticks = (
        [float(x) for x in range(len(plot.labels))] if plot.labels else ticks(min(xs), max(xs), 8)
    )
    y_ticks = ticks(min(0.0, *ys) if plot.from_zero else min(ys), max(ys), 6)
    low = -0.5 if plot.labels else min(x_ticks[0], *xs)
    high = len(plot.labels) - 0.5 if plot.labels else max(x_ticks[-1], *xs)
    frame = Frame(low, high, y_ticks[0], y_ticks[-1])
    space = ' xmlns="http://www.w3.org/2000/svg"' if alone else ""
    parts = [
        f'<svg{space} class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-labelledby="{plot.name}-title {plot.name}-words">',
        f'<title id="{plot.name}-title">{escape(plot.title)}</title>',
        f'<desc id="{plot.name}-words">{escape(plot.words)}</desc>',
        *([f"<style>{STYLE}</style>"] if alone else []),
        *_axes(plot, frame, x_ticks, y_ticks),
        *(piece for one in plot.series for piece in _drawn(one, frame)),
        *_legend(plot.series),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


class Frame(NamedTuple):
    """Where the values of a plot lie on the page."""

    low_x: float
    high_x: float
    low_y: float
    high_y: float

    def across(self, x: float) -> float:
        return LEFT + (x - self.low_x) / (self.high_x - self.low_x) * (WIDTH - LEFT - RIGHT)

    def down(self, y: float) -> float:
        return (
            HEIGHT
            - BOTTOM
            - (y - self.low_y) / (self.high_y - self.low_y) * (HEIGHT - TOP - BOTTOM)
        )


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers from below the lowest value to above the highest, at most so many and two more."""
    rough = (high - low) / most or 1.0
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * by for by in (1, 2, 5, 10) if size * by >= rough)
    first, last = math.floor(low / step), math.ceil(high / step)
    last = max(last, first + 1)  # values that are all the same have an axis too
    return [round(number * step, 10) for number in range(first, last + 1)]


def _axes(
    plot: Plot, frame: Frame, x_ticks: Sequence[float], y_ticks: Sequence[float]
) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for y in y_ticks:
        at = frame.down(y)
        kind = "axis" if y == 0 and y_ticks[0] < 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{y:g}</text>')
    for number, x in enumerate(x_ticks):
        at = frame.across(x)
        text = plot.labels[number] if plot.labels else f"{x:g}"
        parts.append(
            f'<line class="axis" x1="{at:.1f}" x2="{at:.1f}" y1="{bottom}" y2="{bottom + 5}"/>'
        )
        parts.append(
            f'<text x="{at:.1f}" y="{bottom + 20}" text-anchor="middle">{escape(text)}</text>'
        )
    if plot.mark is not None:
        at = frame.across(plot.mark)
        parts.append(f'<line class="axis" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{bottom}"/>')
    middle, side = (LEFT + right) / 2, (TOP + bottom) / 2
    parts += [
        f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>',
        f'<line class="axis" x1="{LEFT}" x2="{LEFT}" y1="{TOP}" y2="{bottom}"/>',
        f'<text x="{middle:.0f}" y="{bottom + 42}" text-anchor="middle">{escape(plot.across)}</text>',
        f'<text transform="translate(16 {side:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(plot.up)}</text>",
    ]
    return parts


def _drawn(one: Series, frame: Frame) -> list[str]:
    places = [(frame.across(x), frame.down(y)) for x, y in one.points]
    if one.kind == "dot":
        return [
            f'<g class="{one.colour}">',
            *(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in places),
            "</g>",
        ]
    if one.kind == "bar":
        wide = (frame.across(1) - frame.across(0)) * 0.6
        floor = frame.down(max(0.0, frame.low_y))
        return [
            f'<g class="{one.colour}">',
            *(
                f'<rect class="bar" x="{x - wide / 2:.1f}" y="{min(y, floor):.1f}" width="{wide:.1f}" '
                f'height="{abs(floor - y):.1f}"/>'
                for x, y in places
            ),
            *(
                f'<text x="{x:.1f}" y="{y - 6:.1f}" text-anchor="middle">{value:.2f}</text>'
                for (x, y), (_, value) in zip(places, one.points, strict=True)
            ),
            "</g>",
        ]
    way = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dash = " dash" if one.kind == "dash" else ""
    return [f'<g class="{one.colour}"><polyline class="line{dash}" points="{way}"/></g>']


def _legend(series: Sequence[Series]) -> list[str]:
    """What the series are, in one row below the plot; one alone needs none."""
    if len(series) == 1:
        return []
    parts, x, y = list[str](), float(LEFT), HEIGHT - 12
    for one in series:
        if one.kind == "dot":
            sign = f'<circle class="dot" cx="{x + 12:.0f}" cy="{y - 4}" r="3.5"/>'
        else:
            dash = " dash" if one.kind == "dash" else ""
            sign = f'<polyline class="line{dash}" points="{x:.0f},{y - 4} {x + 24:.0f},{y - 4}"/>'
        parts.append(f'<g class="{one.colour}">{sign}</g>')
        parts.append(f'<text x="{x + 30:.0f}" y="{y}">{escape(one.name)}</text>')
        x += 44 + 7.2 * len(one.name)
    return parts
