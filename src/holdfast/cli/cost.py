"""cost: what models were paid, what of it was in vain, and what reuse saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import NamedTuple

import click

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.measure import Duration, age_words, count
from holdfast.cli.money import UNKNOWN, cost_words
from holdfast.cli.place import Place, file_option, json_option, place, place_options
from holdfast.cli.say import out, out_json, short
from holdfast.cli.view import view
from holdfast.core.estimate import Looked, looked_back
from holdfast.core.outlay import Account, Outlay, Reuse, Totals, summed
from holdfast.core.views import usd
from holdfast.engine.lines import line_journal
from holdfast.engine.outlays import account, lines_of, paid_in, spent_in
from holdfast.model.digest import Json
from holdfast.model.money import dollars
from holdfast.model.plan import RunId
from holdfast.model.text import cells, cut, one_line, wrap
from holdfast.ports import Store

COST_SCHEMA = "holdfast.cost/1"
BY = ("step", "model", "day", "run")
_NOT_ASKED = "(reused)"  # whoever made what was reused
_NO_RUN = "(guard, amend)"  # what was asked outside of runs


@dataclass(frozen=True, slots=True)
class Bill:
    """Everything that is shown."""

    by: str
    rows: Mapping[str, Totals]
    whole: Totals
    runs: int
    account: Account
    looked: Mapping[RunId, Looked]
    budgets: Sequence[tuple[str, int, int]]  # name, spent, most


@click.command(
    epilog="\b\nExample:\n  holdfast cost\n  holdfast cost --by model --since 7d\n"
    "  holdfast cost --by run --json"
)
@click.option("--by", type=click.Choice(BY), default="step", help="One row for each (step).")
@click.option("--since", type=Duration(), help="Only what was paid within this time (7d).")
@click.option("--all", "every_line", is_flag=True, help="Runs of all lines of the store.")
@file_option
@place_options
@json_option
def cost(
    by: str,
    since: int | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    every_line: bool,
    as_json: bool,
) -> int:
    """Show what models were paid: spent, lost in rejected and in interrupted attempts, saved by reuse.

    A call that was cut off counts with the most that it may have cost. By run, the estimate that earlier
    runs gave for the same steps stands beside what they cost.
    """
    where = place(plan, store, plan_id)
    now = wire.now_ms()
    with_store = where.open(readonly=True)
    try:
        line = None if every_line else where.line()
        bill = bill_of(where, with_store, by, line, 0 if since is None else now - since)
    finally:
        with_store.close()
    if as_json:
        out_json(_json(bill, since))
        return 0
    _print(bill, now)
    return 0


def bill_of(
    where: Place,
    store: Store,
    by: str,
    line: str | None,
    oldest: int = 0,
    only: RunId | None = None,
) -> Bill:
    """What was paid by the runs of a line, of all lines if none is named, or by one run alone."""
    beside = lines_of(store)
    whole = account(store, [row.run for row in store.runs()], beside)
    live = wire.live_runs(store)
    costs = whole.saved()
    runs = {run for run, begun in whole.runs.items() if line is None or begun.line == line}
    projects = {"", *(whole.runs[run].project for run in runs)}
    own = beside if line is None else {line_journal(project, line) for project in projects}
    if only is not None:
        runs, own = runs & {only}, set()
    asides = {RunId(journal) for journal in own}
    shown = Account(
        calls=[
            call
            for call in whole.calls
            if call.run in asides
            or (call.run in runs and not (call.fate == "open" and call.run in live))
        ],
        made=[made for made in whole.made if made.run in runs],
        reused=[reuse for reuse in whole.reused if reuse.run in runs],
        runs=whole.runs,
    )
    makers = {(made.step, made.digest): made.model for made in whole.made}
    marks: dict[str, Callable[[Outlay | Reuse], str]] = {
        "step": lambda item: item.step,
        "model": lambda item: (
            item.model
            if isinstance(item, Outlay)
            else makers.get((item.step, item.digest), _NOT_ASKED)
        ),
        "day": lambda item: _day(item.at),
        "run": lambda item: item.run if item.run in whole.runs else _NO_RUN,
    }
    rows = summed(shown, marks[by], costs, oldest)
    return Bill(
        by=by,
        rows={name: rows[name] for name in _ordered(by, rows, whole)},
        whole=_sum(rows),
        runs=sum(whole.runs[run].at >= oldest for run in runs),
        account=whole,
        looked=_looked(shown) if by == "run" else {},
        budgets=_budgets(where, store, projects),
    )


def _looked(shown: Account) -> dict[RunId, Looked]:
    """Estimates are of one line: what another one calls by the same name may be something else."""
    lines: dict[str, Account] = {}
    for made in shown.made:
        lines.setdefault(shown.runs[made.run].line, Account()).made.append(made)
    return {run: looked for one in lines.values() for run, looked in looked_back(one).items()}


def _ordered(by: str, rows: Mapping[str, Totals], whole: Account) -> list[str]:
    """The dearest first; days and runs newest first."""
    if by == "day":
        return sorted(rows, reverse=True)
    if by == "run":
        begun = {run: whole.runs[RunId(run)].at for run in rows if run != _NO_RUN}
        return sorted(rows, key=lambda run: begun.get(run, 0), reverse=True)
    return sorted(rows, key=lambda name: (-rows[name].cost, -rows[name].calls, name))


def _sum(rows: Mapping[str, Totals]) -> Totals:
    whole = Totals()
    for item in fields(Totals):
        setattr(whole, item.name, sum(getattr(row, item.name) for row in rows.values()))
    return whole


def _day(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).astimezone().strftime("%Y-%m-%d")


def _budgets(where: Place, store: Store, projects: Iterable[str]) -> list[tuple[str, int, int]]:
    """What is spent of the person's budgets; all of the store counts for a day."""
    found, budgets = [], wire.market.budgets(where.root)
    if (day := wire.market.micro(budgets.day)) is not None:
        today = wire.market.day_began()
        found.append(("day", spent_in(store, paid_in(store), today), day))
    if (most := wire.market.micro(budgets.project)) is not None:
        own = {journal for project in projects for journal in paid_in(store, project)}
        found.append(("project", spent_in(store, sorted(own), 0), most))
    return found


# --- for programs ---------------------------------------------------------------------------------------


def _json(bill: Bill, since: int | None) -> dict[str, Json]:
    rows: list[Json] = []
    for name, row in bill.rows.items():
        data: dict[str, Json] = {bill.by: name, **_totals(row)}
        if bill.by == "run":
            begun, looked = bill.account.runs.get(RunId(name)), bill.looked.get(RunId(name))
            data |= {
                "line": begun.line if begun else None,
                "started_at": begun.at if begun else None,
                "expected_usd": usd(looked.expected) if looked else None,
                "of_these_usd": usd(looked.actual) if looked else None,
            }
        rows.append(data)
    return {
        "schema": COST_SCHEMA,
        "by": bill.by,
        "since_ms": since,
        "runs": bill.runs,
        "rows": rows,
        "totals": _totals(bill.whole),
        "budgets": {
            name: {"spent_usd": usd(spent), "limit_usd": usd(most)}
            for name, spent, most in bill.budgets
        },
    }


def _totals(row: Totals) -> dict[str, Json]:
    return {
        "calls": row.calls,
        "tokens": row.tokens,
        "input_tokens": row.input,
        "output_tokens": row.output,
        "cost_usd": None if row.unpriced else usd(row.cost),
        "known_usd": usd(row.cost),
        "price": "unknown" if row.unpriced else "known",
        "unpriced": row.unpriced,
        "rejected_usd": usd(row.rejected),
        "interrupted_usd": usd(row.interrupted),
        "interrupted": row.cut,
        "saved_usd": None if row.unpriced_saved else usd(row.saved),
    }


# --- for people -------------------------------------------------------------------------------------------


def _print(bill: Bill, now: int) -> None:
    if not bill.rows:
        out("no model was asked" if bill.runs else "there is no run yet")
        for line in _of_budgets(bill) if any(spent for _, spent, _ in bill.budgets) else ():
            out(line)
        out_next("holdfast plan    holdfast run")
        return
    for line in _table(bill, now):
        out(line)
    out()
    for line in sums(bill):
        for piece in wrap(line, view().width):
            out(piece)
    other = next(by for by in ("run", "model") if by != bill.by)
    out_next(f"holdfast cost --by {other}    holdfast history")


class Table(NamedTuple):
    """A bill as a table: a name and cells for each row; only the columns that say something."""

    heads: Sequence[str]
    names: Sequence[str]
    cells: Sequence[Sequence[str]]


def table_of(bill: Bill, now: int) -> Table:
    """The rows of a bill in words."""
    whole = bill.whole
    columns: list[tuple[str, Callable[[str, Totals], str]]] = [
        ("CALLS", lambda _, row: str(row.calls)),
        ("TOKENS", lambda _, row: f"{row.tokens:,}"),
        ("SPENT", lambda _, row: _known(row.cost, row.unpriced)),
    ]
    if whole.rejected or whole.unpriced_rejected:
        columns.append(("REJECTED", lambda _, row: _known(row.rejected, row.unpriced_rejected)))
    if whole.cut:
        columns.append(
            ("INTERRUPTED", lambda _, row: _known(row.interrupted, row.unpriced_cut, "≤ "))
        )
    if whole.saved or whole.unpriced_saved:
        columns.append(("SAVED", lambda _, row: _known(row.saved, row.unpriced_saved)))
    if bill.looked:
        columns.append(("EXPECTED", lambda name, _: _expected(bill.looked.get(RunId(name)))))
    return Table(
        heads=[head for head, _ in columns],
        names=[_name(bill, name, now) for name in bill.rows],
        cells=[[cell(name, row) for _, cell in columns] for name, row in bill.rows.items()],
    )


def _table(bill: Bill, now: int) -> list[str]:
    table = table_of(bill, now)
    first = max(cells(bill.by), *(cells(name) for name in table.names))
    if width := view().width:
        first = min(first, max(12, width // 2))
    grid = [table.heads, *table.cells]
    widths = [max(cells(row[at]) for row in grid) for at in range(len(table.heads))]
    lines = []
    for name, row in zip([bill.by.upper(), *table.names], grid, strict=True):
        told = cut(one_line(name), first) if view().width else one_line(name)
        parts = [f"{cell:>{size}}" for cell, size in zip(row, widths, strict=True)]
        lines.append("  ".join([told + " " * max(0, first - cells(told)), *parts]).rstrip())
    return lines


def _name(bill: Bill, name: str, now: int) -> str:
    if bill.by != "run":
        return name or UNKNOWN
    if name == _NO_RUN:
        return name
    return f"{short(name)} ({age_words(now - bill.account.runs[RunId(name)].at)})"


def _known(cost: int, unpriced: int, sign: str = "") -> str:
    """A cell: what is known, and whether there is more that nobody knows."""
    if not cost:
        return "?" if unpriced else dollars(cost)
    return f"{sign}{dollars(cost)}" + (" + ?" if unpriced else "")


def _expected(looked: Looked | None) -> str:
    if looked is None:
        return "no history"
    off = "!" if looked.is_off else ""
    partly = f" of {dollars(looked.actual)}" if looked.partly else ""
    return f"{off}{dollars(looked.expected)}{partly}"


def expected_words(looked: Looked | None) -> str:
    """What earlier runs let expect of a run, beside what it cost."""
    if looked is None:
        return "no earlier run says what to expect"
    partly = " for what ran before" if looked.partly else ""
    off = ", off by more than twice" if looked.is_off else ""
    return f"expected {dollars(looked.expected)}{partly}, cost {dollars(looked.actual)}{off}"


def sums(bill: Bill) -> list[str]:
    """What was spent, saved and lost in all, in sentences."""
    whole = bill.whole
    spent = cost_words(whole.cost, whole.unpriced)
    tokens = f"{whole.tokens:,} tokens"
    parts = [
        f"{spent} spent in {count(whole.calls, 'call')} ({tokens}) of {count(bill.runs, 'run')}"
    ]
    if whole.saved:
        parts.append(f"~{dollars(whole.saved)} saved by reuse")
    elif whole.unpriced_saved:
        parts.append(f"saved by reuse: {UNKNOWN}")
    lines = [" · ".join(parts)]
    lost = []
    if whole.rejected or whole.unpriced_rejected:
        lost.append(f"{cost_words(whole.rejected, whole.unpriced_rejected)} in rejected attempts")
    if whole.cut:
        most = "up to " if whole.interrupted else ""
        most += cost_words(whole.interrupted, whole.unpriced_cut)
        lost.append(f"{most} in {count(whole.cut, 'interrupted call')}")
    if lost:
        lines.append(f"lost: {', '.join(lost)}")
    return [*lines, *_of_budgets(bill)]


def _of_budgets(bill: Bill) -> list[str]:
    """What is spent of them, also by runs that are gone."""
    words = {"day": "today", "project": "this project"}
    told = [f"{words[n]} {dollars(spent)} of {dollars(most)}" for n, spent, most in bill.budgets]
    return [" · ".join(told)] if told else []
