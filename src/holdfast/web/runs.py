"""The runs of the store, newest first: how far each is, what it cost, what failed in it first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
from holdfast.ports import RunRow
from holdfast.web.look import Look
from holdfast.web.screens import address, number, page, screen

PAGE = 50  # runs on a page


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
    rows = [row for row in reversed(look.rows()) if fits(look, row, wanted)]
    first = (at - 1) * PAGE
    values = {
        "shown": list(rows_of(look, rows[first : first + PAGE])),
        "wanted": wanted,
        "number": at,
        "last": max(1, -(-len(rows) // PAGE)),
        "turned": lambda to: address("/", q=wanted, page=to),
    }
    return page(look, request, "runs.html", values)


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


def fits(look: Look, row: RunRow, wanted: str) -> bool:
    """Whether a run is meant by the words of the filter: all of them count, nothing is folded for it.

    `state:failed` is the state of a run, `line:NAME` its line; another word is looked for in its line and
    its id.
    """
    for word in wanted.split():
        kind, sign, rest = word.partition(":")
        if sign and kind == "state":
            if run_end(look.store, row.run)[1] != rest:
                return False
        elif sign and kind == "line":
            if rest not in {row.line, brief(row.line)}:
                return False
        elif word.casefold() not in f"{row.line} {row.run}".casefold():
            return False
    return True


ROUTES = [screen("/", show)]
