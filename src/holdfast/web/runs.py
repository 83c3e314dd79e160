"""The runs of the store, newest first: how far each is, what it cost, what failed in it first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import get_args

from starlette.requests import Request
from starlette.responses import Response

from holdfast import wire
from holdfast.cli.ending import saved_of
from holdfast.cli.history import Seen, run_end, seen_run
from holdfast.cli.money import spent_words
from holdfast.cli.titles import brief, line_title
from holdfast.core.state import State
from holdfast.core.views import worked_ms
from holdfast.engine.elsewhere import Brought, brought_in
from holdfast.errors import UsageError
from holdfast.model.event import EndStatus, RestStatus
from holdfast.model.plan import RunId
from holdfast.ports import RunRow
from holdfast.web.look import Look
from holdfast.web.screens import address, number, page, screen

PAGE = 50  # runs on a page
STATES = ("running", "interrupted", *get_args(RestStatus), *get_args(EndStatus), "imported")


@dataclass(frozen=True, slots=True)
class Shown:
    """One row of the screen."""

    seen: Seen
    title: str
    spent: str
    took: int
    done: int
    waiting: int

    @property
    def state(self) -> State:
        """The run itself."""
        return self.seen.state


def show(look: Look, request: Request) -> Response:
    """The screen; `q` filters it, `page` turns its pages."""
    wanted = request.query_params.get("q", "").strip()
    at = max(1, number(request.query_params.get("page"), 1))
    meant, live = meant_by(wanted), wire.live_runs(look.store)
    rows = [row for row in reversed(look.rows()) if fits(look, row, meant, live)]
    first = (at - 1) * PAGE
    values = {
        "shown": _one_by_one(rows_of(look, rows[first : first + PAGE])),
        "wanted": wanted,
        "number": at,
        "last": max(1, -(-len(rows) // PAGE)),
        "turned": lambda to: address("/", q=wanted, page=to),
    }
    return page(look, request, "runs.html", values)


def _one_by_one(found: Iterator[Shown]) -> Iterable[Shown]:
    """The same, empty if there is none. Never are the states of all there: one may take gigabytes."""
    for first in found:
        return chain((first,), found)
    return ()


def rows_of(look: Look, rows: list[RunRow]) -> Iterator[Shown]:
    """Runs as rows of the screen."""
    live = wire.live_runs(look.store)
    lines = dict.fromkeys((row.project, row.line) for row in rows if row.imported)
    brought = {run: one for line in lines for run, one in brought_in(look.store, *line).items()}
    for row in rows:
        found = shown_run(look, row, driven=row.run in live, brought=brought.get(row.run))
        if found is not None:
            yield found


def shown_run(
    look: Look, row: RunRow, *, driven: bool, brought: Brought | None = None
) -> Shown | None:
    """One run as a row; None if its journal is gone."""
    state = look.state(row.run)
    if state is None:
        return None
    last_at = run_end(look.store, row.run)[0]
    seen = seen_run(look.store, row, state, last_at, driven=driven, brought=brought)
    saved = look.made(state, "saved", lambda: saved_of(look.store, state))
    return Shown(
        seen,
        line_title(row.line, state.plan.goal),
        spent_words(state, saved.cost, saved.unpriced, driven=driven),
        worked_ms(state, look.now if driven else 0),
        state.counts["done"] + state.counts["reused"],
        look.waiting_in(state),
    )


@dataclass(frozen=True, slots=True)
class Meant:
    """What the words of the filter ask for; a run must fit all of them."""

    states: tuple[str, ...]
    lines: tuple[str, ...]
    parts: tuple[str, ...]


def meant_by(wanted: str) -> Meant:
    """Read the filter: `state:failed`, `line:NAME`, and parts of a line or an id."""
    states, lines, parts = [], [], []
    for word in wanted.split():
        kind, sign, rest = word.partition(":")
        if sign and kind == "state":
            states.append(rest)
        elif sign and kind == "line":
            lines.append(rest)
        elif sign:
            raise UsageError(f"'{kind}:' means nothing here", hint="state:failed, line:NAME, words")
        else:
            parts.append(word.casefold())
    if unknown := [one for one in states if one not in STATES]:
        raise UsageError(f"'{unknown[0]}' is no state of a run", hint=", ".join(STATES))
    return Meant(tuple(states), tuple(lines), tuple(parts))


def fits(look: Look, row: RunRow, meant: Meant, live: Collection[RunId]) -> bool:
    """Whether a run is meant; nothing is folded for it."""
    if any(name not in {row.line, brief(row.line)} for name in meant.lines):
        return False
    if any(part not in f"{row.line} {row.run}".casefold() for part in meant.parts):
        return False
    if not meant.states:
        return True
    word = "imported" if row.imported else run_end(look.store, row.run)[1]
    word = "interrupted" if word == "running" and row.run not in live else word
    return all(state == word for state in meant.states)


ROUTES = [screen("/", show)]
