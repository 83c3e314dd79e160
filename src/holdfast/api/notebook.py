"""HTML for notebooks: a table and a picture, without scripts. Whatever comes from a plan is text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from holdfast.model.text import clean

_CELL = "text-align:left;vertical-align:top;padding:2px 10px 2px 0"
MOST = 200  # rows


def table(head: str, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a line above it; of many rows only the first."""
    listed = list(rows)
    top = "".join(f'<th style="{_CELL}">{_safe(title)}</th>' for title in titles)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{_safe(cell)}</td>' for cell in row) + "</tr>"
        for row in listed[:MOST]
    )
    more = f"<p>and {len(listed) - MOST} more</p>" if len(listed) > MOST else ""
    return f"<div><p><b>{_safe(head)}</b></p><table><tr>{top}</tr>{body}</table>{more}</div>"


def lines(text: str) -> str:
    """Lines of text as they are."""
    return f"<pre>{_safe(text)}</pre>"


def _safe(text: str) -> str:
    return escape(clean(text))
