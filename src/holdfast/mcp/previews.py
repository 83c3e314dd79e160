"""plan_preview: what a run would do, and the digest that a run is held to."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from holdfast.cli.ahead import is_selected, preview_json
from holdfast.cli.course import Seen, looked
from holdfast.cli.outlook import table
from holdfast.cli.place import Place, received
from holdfast.cli.saved import TOLD, differences
from holdfast.cli.say import plain
from holdfast.cli.selection import selected_steps
from holdfast.cli.view import View
from holdfast.formats.planfile import Loaded
from holdfast.mcp.answer import Answer, Next, offset, page
from holdfast.mcp.desk import Desk
from holdfast.mcp.given import Given
from holdfast.model.digest import Digest, Json
from holdfast.model.event import Options

MOST_KEPT = 8
_HASH = 64


@dataclass(frozen=True, slots=True)
class Shown:
    """A preview that was shown: how it was asked for, and what it said, packed."""

    select: tuple[str, ...]
    text: str  # of a plan that came with the question; empty if it lies in a file
    packed: bytes

    def data(self) -> Mapping[str, Json]:
        """What it said."""
        return cast("Mapping[str, Json]", json.loads(zlib.decompress(self.packed)))


@dataclass(slots=True)
class Previews:
    """The last previews that were shown here, by their digest."""

    kept: dict[str, Shown] = field(default_factory=dict)

    def keep(self, digest: str, shown: Shown) -> None:
        """Remember one; the oldest is forgotten."""
        self.kept.pop(digest, None)
        self.kept[digest] = shown
        while len(self.kept) > MOST_KEPT:
            del self.kept[next(iter(self.kept))]

    def find(self, given: str) -> Shown | None:
        """The one that is meant by a digest, or by its first digits."""
        found = [shown for digest, shown in self.kept.items() if digest.startswith(given.lower())]
        return found[-1] if found else None


def plan_preview(desk: Desk, previews: Previews, given: Given) -> Answer:
    """Look ahead; nothing is run, created or written."""
    text, select = given.maybe("plan") or "", given.texts("select")
    with desk.here() as here:
        where, loaded = asked_plan(here, text)
        options = Options(select=selected_steps(where, loaded, select, ()))
        seen = looked(where, loaded, options, against=given.maybe("against"), follows=False)
        cursor = given.maybe("cursor")
        if not offset(cursor):
            data = json.dumps(preview_json(seen.ahead)).encode()
            shown = Shown(select, text if loaded.foreign else "", zlib.compress(data))
            previews.keep(seen.digest, shown)
        return _answer(seen, loaded, cursor)


def asked_plan(where: Place, text: str) -> tuple[Place, Loaded]:
    """The plan of this place, or the one that came as text."""
    if not text:
        return where, where.load()
    there = received(where, text)
    return there, there.load_received(text.encode())


def changed_since(desk: Desk, shown: Shown) -> str:
    """What is other now than it was in a preview, in words."""
    with desk.here() as here:
        where, loaded = asked_plan(here, shown.text)
        options = Options(select=selected_steps(where, loaded, shown.select, ()))
        now = looked(where, loaded, options, follows=False)
        told = differences(shown.data(), json.loads(json.dumps(preview_json(now.ahead))))
    more = f" and {len(told) - TOLD} more" if len(told) > TOLD else ""
    return f"{'; '.join(told[:TOLD])}{more}"


def _answer(seen: Seen, loaded: Loaded, cursor: str | None) -> Answer:
    ahead = seen.ahead
    whole = preview_json(ahead)
    steps = cast("Mapping[str, Mapping[str, Json]]", whole["steps"])
    rows: list[Json] = [
        {"step": name, **_brief(steps[name])}
        for name, outlook in ahead.outlooks.items()
        if (outlook.is_work or outlook.decision != "reuse") and is_selected(ahead.options, name)
    ]
    part = page(rows, cursor)
    lines = [plain(line) for line in [*seen.lines(0), *table(ahead, View())]]
    if offset(cursor):
        lines = [plain(_row_words(cast("Mapping[str, Json]", row))) for row in part.rows]
    lines.append(f"plan_hash {seen.digest}")
    if loaded.foreign:
        lines.append("this plan came from elsewhere: it runs only after a person approved it")
    data: dict[str, Json] = {
        "plan_hash": seen.digest,
        "plan": whole["plan"],
        "totals": whole["totals"],
        "changes": {
            name: list(cast("list[Json]", listed))[:_HASH]
            for name, listed in cast("Mapping[str, Json]", whole["changes"]).items()
        },
        "steps": list(part.rows),
        "cursor": part.cursor,
        "foreign": bool(loaded.foreign),
    }
    return Answer(lines, data, _next(seen, seen.digest, part.cursor))


def _brief(step: Mapping[str, Json]) -> dict[str, Json]:
    keys = ("decision", "reason", "cost_usd", "duration_ms", "model")
    return {key: step[key] for key in keys}


def _row_words(row: Mapping[str, Json]) -> str:
    reason = cast("Mapping[str, Json]", row["reason"] or {})
    return f"{row['step']}: {row['decision']}, {reason.get('text')}"


def _next(seen: Seen, digest: Digest, cursor: str | None) -> list[Next]:
    ahead = seen.ahead
    first = next((s for s, o in ahead.outlooks.items() if o.decision != "reuse"), None)
    found = []
    if ahead.is_work:
        most = max(ahead.money.p90, 0) / 1_000_000
        found.append(Next("run_start", {"plan_hash": digest, "max_cost_usd": round(most, 6)}))
    if first is not None:
        found.append(Next("why", {"step": str(first)}))
    if cursor is not None:
        found.append(Next("plan_preview", {"cursor": cursor}))
    if not found:
        found.append(Next("run_status", {}))
    return found
