"""A picture of a plan in the languages that other programs draw: Mermaid, DOT, SVG.

Whatever comes from a plan is text to these languages, never syntax: boxes have names of our own, and
every letter that a language gives a meaning to is spelled as a number or escaped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.cli.say import SIGNS
from holdfast.core.layout import Box, Layout, Picture, layout
from holdfast.model.items import spelled_out
from holdfast.model.plan import Step, StepId
from holdfast.model.text import clean

MERMAID_BOXES, MERMAID_ARROWS, MERMAID_LETTERS = 280, 500, 50_000
SVG_BOXES, SVG_ARROWS = 300, 3000
COLOURS = {
    "pending": ("#f4f4f5", "#71717a"),
    "running": ("#dbeafe", "#1d4ed8"),
    "waiting": ("#fef3c7", "#b45309"),
    "done": ("#dcfce7", "#15803d"),
    "reused": ("#e0f2fe", "#0369a1"),
    "failed": ("#fee2e2", "#b91c1c"),
    "skipped": ("#f5f5f4", "#57534e"),
    "": ("#ffffff", "#52525b"),
}
_WORST = ("failed", "waiting", "running", "pending", "skipped", "done", "reused")
_PLAIN = frozenset(" .,:_-/()·×" + "".join(SIGNS.values()))
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Drawn:
    """What is drawn: a picture, the steps in it, and the state of each as far as one is known."""

    title: str
    picture: Picture
    steps: Mapping[StepId, Step]
    states: Mapping[StepId, str]


def state_of(box: Box, states: Mapping[StepId, str]) -> str:
    """The state that matters most among the steps of a box; nothing if none is known."""
    found = {states[step] for step in box.steps if step in states}
    return next((word for word in _WORST if word in found), "")


def words_of(box: Box, states: Mapping[StepId, str]) -> str:
    """The states of a box in words, with numbers if it holds several steps."""
    counts = Counter(states[step] for step in box.steps if step in states)
    if len(box.steps) == 1:
        return next(iter(counts), "")
    return ", ".join(f"{counts[word]} {word}" for word in _WORST if counts[word])


def about(box: Box, steps: Mapping[StepId, Step]) -> str:
    """The first line of a step's description."""
    if len(box.steps) != 1:
        return ""
    lines = clean(steps[box.steps[0]].description).strip().splitlines()
    return lines[0] if lines else ""


def labels(drawn: Drawn) -> dict[tuple[int, int], str]:
    """The arrows that stand for approvals only, and what they are called: who is asked."""
    box = {step: place for place, found in enumerate(drawn.picture.boxes) for step in found.steps}
    named: dict[tuple[int, int], dict[str, None]] = {}
    others = set()
    for step, place in box.items():
        for need in drawn.steps[step].needs:
            if need.step not in box:
                continue
            arrow = (box[need.step], place)
            if need.asks:
                named.setdefault(arrow, {}).update({need.approver: None} if need.approver else {})
            else:
                others.add(arrow)
    return {
        arrow: f"approval: {', '.join(names)}" if names else "approval"
        for arrow, names in named.items()
        if arrow not in others
    }


def cut(text: str, most: int) -> str:
    """At most so many letters, the last one saying that there are more. Keys of items count as they are."""
    text = spelled_out(text)
    return text if len(text) <= most else text[: most - 1] + "…"


# --- Mermaid ------------------------------------------------------------------------------------------


def mermaid(drawn: Drawn) -> str:
    """A flowchart within the limits that GitHub and others draw."""
    text = _mermaid(drawn, name=128, words=60)
    for name, words in ((128, 0), (40, 0)):
        if len(text) > MERMAID_LETTERS:
            text = _mermaid(drawn, name, words)
    return text


def _mermaid(drawn: Drawn, name: int, words: int) -> str:
    lines = ["flowchart LR"]
    used: dict[str, None] = {}
    for index, box in enumerate(drawn.picture.boxes):
        state = state_of(box, drawn.states)
        sign = f"{SIGNS[state]} " if state else ""
        label = _mermaid_text(sign + cut(box.name, name))
        for part in (words_of(box, drawn.states), cut(about(box, drawn.steps), words or 1)):
            if part and part != "…":
                label += f"<br>{_mermaid_text(part)}"
        kind = f":::{state}" if state else ""
        lines.append(f'  n{index}["{label}"]{kind}')
        used |= {state: None} if state else {}
    asked = labels(drawn)
    for one, other in drawn.picture.arrows:
        label = asked.get((one, other), "")
        arrow = f'-. "{_mermaid_text(cut(label, name))}" .->' if label else "-->"
        lines.append(f"  n{one} {arrow} n{other}")
    for state in used:
        fill, line = COLOURS[state]
        lines.append(f"  classDef {state} fill:{fill},stroke:{line},color:#18181b")
    return "\n".join(lines)


def _mermaid_text(text: str) -> str:
    return "".join(c if c.isalnum() or c in _PLAIN else f"#{ord(c)};" for c in text)


# --- DOT ----------------------------------------------------------------------------------------------


def dot(drawn: Drawn) -> str:
    """A graph for Graphviz; it has no limit of its own."""
    lines = [
        f"digraph {_dot_text(drawn.title)} {{",
        "  rankdir=LR;",
        '  node [shape=box, style="rounded,filled", fontname="sans-serif"];',
    ]
    for index, box in enumerate(drawn.picture.boxes):
        state = state_of(box, drawn.states)
        fill, line = COLOURS[state]
        sign = f"{SIGNS[state]} " if state else ""
        words = words_of(box, drawn.states)
        label = _dot_text(sign + box.name + (f"\n{words}" if words else ""))
        hover = _dot_text(about(box, drawn.steps) or box.name)
        lines.append(
            f'  n{index} [label={label}, tooltip={hover}, fillcolor="{fill}", color="{line}"];'
        )
    asked = labels(drawn)
    for one, other in drawn.picture.arrows:
        label = asked.get((one, other), "")
        how = f" [style=dashed, label={_dot_text(label)}]" if label else ""
        lines.append(f"  n{one} -> n{other}{how};")
    return "\n".join([*lines, "}"])


def _dot_text(text: str) -> str:
    escaped = clean(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


# --- SVG ----------------------------------------------------------------------------------------------

HEIGHT, _ROW, _GAP, _EDGE, _LETTER, _TOP = 40, 56, 70, 20, 7.3, 44
LONGEST = 30


def svg(drawn: Drawn) -> str:
    """A picture that needs nothing else: no script, no font, nothing from elsewhere."""
    grid = grid_of(drawn.picture)
    width = max(grid.width, int(len(drawn.title) * _LETTER * 1.2) + 2 * _EDGE)
    size = f'width="{width}" height="{grid.height}"'
    font = 'font-family="ui-sans-serif, system-ui, sans-serif" font-size="13"'
    title = _xml(drawn.title)
    view_box = f'viewBox="0 0 {width} {grid.height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {view_box} {size} role="img" {font}>',
        f"<title>{title}</title>",
        f'<rect {size} fill="#ffffff"/>',
        f'<text x="{_EDGE}" y="26" font-size="15" font-weight="600" fill="#18181b">{title}</text>',
        '<g fill="none" stroke="#a1a1aa" stroke-width="1.2">',
    ]
    asked = labels(drawn)
    for (one, other), path in zip(drawn.picture.arrows, grid.placed.paths, strict=True):
        line = arrow(grid, (grid.placed.at[one], *path, grid.placed.at[other]))
        curve = f'<path d="{line}"/>'
        if label := asked.get((one, other)):
            dashed = curve.replace("<path ", '<path stroke="#b45309" stroke-dasharray="5 4" ')
            curve = f"<g><title>{_xml(label)}</title>{dashed}</g>"
        lines.append(curve)
    lines.append("</g>")
    for box, place in zip(drawn.picture.boxes, grid.placed.at, strict=True):
        lines += _box(drawn, box, grid, place)
    return "\n".join([*lines, "</svg>"])


@dataclass(frozen=True, slots=True)
class Grid:
    """Ranks as columns: how wide each is and where it begins."""

    placed: Layout
    widths: list[int]
    lefts: list[int]

    @property
    def width(self) -> int:
        """Of all columns."""
        return self.lefts[-1] + self.widths[-1] + _EDGE

    @property
    def height(self) -> int:
        """Of the longest column."""
        return _TOP + max(self.placed.sizes) * _ROW + _EDGE

    def top(self, place: tuple[int, int]) -> int:
        """Where a box begins; short columns stand in the middle."""
        rank, position = place
        free = max(self.placed.sizes) - self.placed.sizes[rank]
        return _TOP + position * _ROW + free * _ROW // 2


def grid_of(drawn: Picture) -> Grid:
    """Where boxes stand; nothing but their names and arrows decides it."""
    placed = layout(drawn)
    widths = [90] * len(placed.sizes)
    for box, (rank, _) in zip(drawn.boxes, placed.at, strict=True):
        letters = min(len(box.name), LONGEST) + 3
        widths[rank] = max(widths[rank], int(letters * _LETTER) + 16)
    lefts, left = [], _EDGE
    for width in widths:
        lefts.append(left)
        left += width + _GAP
    return Grid(placed, widths, lefts)


def arrow(grid: Grid, points: Sequence[tuple[int, int]]) -> str:
    """A curve from box to box; in between it crosses whole columns, beside their boxes."""
    first, *between, last = points
    x = grid.lefts[first[0]] + grid.widths[first[0]]
    y = grid.top(first) + HEIGHT // 2
    drawn = [f"M{x} {y}"]
    for point in (*between, last):
        end, middle = grid.lefts[point[0]], grid.top(point) + HEIGHT // 2
        end -= 6 if point is last else 0
        bend = (end - x) // 2
        drawn.append(f"C{x + bend} {y} {end - bend} {middle} {end} {middle}")
        if point is not last:
            x, y = end + grid.widths[point[0]], middle
            drawn.append(f"L{x} {y}")
    return f"{' '.join(drawn)} m-5 -4 l7 4 l-7 4"


def _box(drawn: Drawn, box: Box, grid: Grid, place: tuple[int, int]) -> list[str]:
    x, y, width = grid.lefts[place[0]], grid.top(place), grid.widths[place[0]]
    state = state_of(box, drawn.states)
    fill, line = COLOURS[state]
    words = words_of(box, drawn.states)
    name = (f"{SIGNS[state]} " if state else "") + cut(box.name, LONGEST)
    hover = " · ".join(part for part in (box.name, words, about(box, drawn.steps)) if part)
    shape = f'width="{width}" height="{HEIGHT}" rx="6" fill="{fill}" stroke="{line}"'
    first = y + (17 if words else 25)
    lines = [
        f"<g><title>{_xml(hover)}</title>",
        f'<rect x="{x}" y="{y}" {shape}/>',
        f'<text x="{x + 10}" y="{first}" fill="#18181b">{_xml(name)}</text>',
    ]
    if words:
        shown = _xml(cut(words, int(width / 6)))
        lines.append(f'<text x="{x + 10}" y="{y + 32}" font-size="11" fill="{line}">{shown}</text>')
    return [*lines, "</g>"]


def of_xml(text: str) -> str:
    """Text with nothing in it that XML does not have; what it would give a meaning to is still there."""
    return _NOT_XML.sub("�", clean(text))


def _xml(text: str) -> str:
    text = of_xml(text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
