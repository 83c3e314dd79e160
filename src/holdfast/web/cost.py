"""What was paid: by a run, or by a whole line; the figures and the sentences of `holdfast cost`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from holdfast.cli.cost import BY, Bill, Table, bill_of, expected_words, sums, table_of
from holdfast.core.outlay import Totals
from holdfast.core.state import State
from holdfast.model.money import dollars
from holdfast.model.plan import RunId
from holdfast.web.look import Look
from holdfast.web.run import values_of
from holdfast.web.screens import address, number, page, run_path, screen

PAGE = 200  # rows on a page


@dataclass(frozen=True, slots=True)
class Share:
    """What of a row was useful, lost and saved, as places of one bar of a hundred."""

    spent: float
    lost: float
    saved: float
    words: str


@dataclass(frozen=True, slots=True)
class Shown:
    """One page of a bill."""

    by: str
    table: Table
    shares: tuple[Share, ...]
    lines: tuple[str, ...]
    first: int
    known: int

    @property
    def pages(self) -> int:
        """How many pages of rows there are."""
        return max(1, -(-self.known // PAGE))

    @property
    def number(self) -> int:
        """Which of them this is."""
        return self.first // PAGE + 1


def shown(bill: Bill, now: int, wanted: int = 1, most: int = PAGE) -> Shown:
    """A page of a bill as it is drawn."""
    table, known = table_of(bill, now), len(bill.rows)
    first = min(max(0, wanted - 1) * most, max(0, (known - 1) // most * most))
    end = first + most
    rows = [*bill.rows.values()][first:end]
    top = max((row.cost + row.saved for row in bill.rows.values()), default=0)
    return Shown(
        by=bill.by,
        table=Table(table.heads, table.names[first:end], table.cells[first:end]),
        shares=tuple(_share(row, top) for row in rows),
        lines=tuple(sums(bill)),
        first=first,
        known=known,
    )


def _share(row: Totals, top: int) -> Share:
    lost = row.rejected + row.interrupted
    scale = 100 / top if top else 0
    words = f"{dollars(row.cost - lost)} useful, {dollars(lost)} lost, {dollars(row.saved)} saved"
    return Share(
        round((row.cost - lost) * scale, 2),
        round(lost * scale, 2),
        round(row.saved * scale, 2),
        words,
    )


def run_bill(look: Look, state: State, by: str) -> Bill:
    """What one run paid."""
    return look.made(
        state,
        f"bill by {by}",
        lambda: bill_of(look.where, look.store, by, state.line, only=RunId(state.run)),
    )


def expected(look: Look, state: State) -> str:
    """What earlier runs of the line let expect of this one, beside what it cost."""
    looked = look.made(
        state, "expected", lambda: bill_of(look.where, look.store, "run", state.line).looked
    )
    return expected_words(looked.get(state.run))


def _by(request: Request, known: tuple[str, ...]) -> str:
    given = request.query_params.get("by", "")
    return given if given in known else known[0]


def show_run(look: Look, request: Request) -> Response:
    """What one run paid."""
    state = look.find(request.path_params["run"])
    with look.speaking(state.line, state.file):
        by, path = _by(request, BY[:-1]), run_path(state.run, "/cost")
        bill = shown(
            run_bill(look, state, by), look.now, number(request.query_params.get("page"), 1)
        )
        values = {
            "tab": "cost",
            "expected": expected(look, state) if bill.known else "",
            **_values(bill, path, BY[:-1]),
            **values_of(look, request, state),
        }
        return page(look, request, "runcost.html", values)


def show_all(look: Look, request: Request) -> Response:
    """What all runs of the page's line paid, or those of all lines."""
    every = request.query_params.get("all", "") == "1"
    with look.speaking():
        by, line = _by(request, BY), None if every else look.where.line()
        bill = shown(
            bill_of(look.where, look.store, by, line),
            look.now,
            number(request.query_params.get("page"), 1),
        )
        values = {**_values(bill, "/cost", BY), "line": line, "every": every}
        return page(look, request, "cost.html", values)


def _values(bill: Shown, path: str, known: tuple[str, ...]) -> Mapping[str, object]:
    def turned(wanted: int) -> str:
        return address(path, by=bill.by, page=wanted)

    return {
        "bill": bill,
        "turned": turned,
        "ways": [(by, address(path, by=by)) for by in known],
    }


ROUTES = [screen("/runs/{run}/cost", show_run), screen("/cost", show_all)]
