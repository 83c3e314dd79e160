"""The synthesis and the report of the example: every sentence names the evidence it stands on."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments import hand_over, rows

_EVIDENCE = re.compile(r"^- (?P<text>.*?)(?: \([^()]*\))? (?P<id>e-[0-9a-f]{12})$", re.MULTILINE)
_WIDTH, _HEIGHT, _EDGE = 640, 320, 40


def conclude() -> str:
    """Say what follows from the evidence that was handed over, and cite it."""
    known = Path(os.environ["HOLDFAST_CONTEXT"]).read_text(encoding="utf-8")
    found = {match["id"]: match["text"] for match in _EVIDENCE.finditer(known)}
    cited = [f"- {text} [{name}]" for name, text in found.items()]
    hand_over(
        "put the findings together",
        observed=[
            {"finding": "the yearly mean grows, and grows faster", "source": name, "confidence": 0.9}
            for name in list(found)[:1]
        ],
    )
    return "\n".join(["Carbon dioxide over Mauna Loa grows faster than by a straight line.", "", *cited]) + "\n"


def write(conclude: str, straight: dict[str, Any], curve: dict[str, Any]) -> Path:
    """Write report.md and report.html, with plots."""
    table = rows()
    plots = [
        ("Yearly means", plot([(float(y), ppm) for y, ppm in table])),
        ("What a straight line leaves", plot(_left(table, straight["left"]))),
        ("What a parabola leaves", plot(_left(table, curve["left"]))),
    ]
    folder = Path("report")
    folder.mkdir(exist_ok=True)
    text = ["# How carbon dioxide grows", "", conclude]
    for number, (title, drawing) in enumerate(plots, 1):
        (folder / f"plot-{number}.svg").write_text(drawing, encoding="utf-8")
        text += [f"## {title}", "", f"![{title}](plot-{number}.svg)", ""]
    (folder / "report.md").write_text("\n".join(text), encoding="utf-8")
    body = "".join(f"<h2>{html.escape(title)}</h2>{drawing}" for title, drawing in plots)
    said = "".join(f"<p>{html.escape(line)}</p>" for line in conclude.splitlines() if line)
    page = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>How carbon dioxide grows</title>{said}{body}</html>\n'
    (folder / "report.html").write_text(page, encoding="utf-8")
    return folder


def _left(table: Sequence[tuple[int, float]], left: Sequence[float]) -> list[tuple[float, float]]:
    return [(float(year), value) for (year, _), value in zip(table, left, strict=True)]


def plot(points: Sequence[tuple[float, float]]) -> str:
    """A line through the points, with the ends of both axes named."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    wide, high = max(xs) - min(xs), max(ys) - min(ys)

    def place(x: float, y: float) -> str:
        across = _EDGE + (x - min(xs)) / wide * (_WIDTH - 2 * _EDGE)
        down = _HEIGHT - _EDGE - (y - min(ys)) / high * (_HEIGHT - 2 * _EDGE)
        return f"{across:.1f},{down:.1f}"

    line = " ".join(place(x, y) for x, y in points)
    words = [
        (_EDGE, _HEIGHT - 12, f"{min(xs):.0f}"),
        (_WIDTH - _EDGE, _HEIGHT - 12, f"{max(xs):.0f}"),
        (18, _HEIGHT - _EDGE, f"{min(ys):.1f}"),
        (18, _EDGE, f"{max(ys):.1f}"),
    ]
    labels = "".join(
        f'<text x="{x}" y="{y}" font-size="11" text-anchor="middle">{text}</text>' for x, y, text in words
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">'
        f'<polyline fill="none" stroke="#1f6f8b" stroke-width="2" points="{line}"/>{labels}</svg>\n'
    )
