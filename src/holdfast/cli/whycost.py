"""why --cost: every call that a step took, with its price and what became of it."""

from __future__ import annotations

from dataclasses import replace

from holdfast.cli.measure import count
from holdfast.cli.money import UNKNOWN, cost_words
from holdfast.cli.place import Place
from holdfast.cli.say import short
from holdfast.cli.whytext import Told
from holdfast.core.outlay import Outlay, Totals
from holdfast.engine.outlays import MOST_RUNS, account
from holdfast.model.money import dollars
from holdfast.model.plan import RunId

MOST_CALLS = 20
_FATES = {
    "used": "used",
    "answered": "answered, kept",
    "rejected": "the attempt did not count",
    "failed": "refused, nothing charged",
}


def with_cost(where: Place, told: Told) -> Told:
    """The answer with the calls of the run it is about, else of the last run that asked for the step."""
    if not where.exists():
        return told
    store = where.open(readonly=True)
    try:
        runs = (
            [told.run] if told.run else [row.run for row in store.runs(where.line())][-MOST_RUNS:]
        )
        found = [call for call in account(store, runs).calls if call.step == told.step.id]
    finally:
        store.close()
    if not found:
        return replace(told, rows=(*told.rows, ("cost", "no model was asked for it")))
    return replace(told, rows=(*told.rows, *_rows([c for c in found if c.run == found[-1].run])))


def _rows(calls: list[Outlay]) -> list[tuple[str, str]]:
    whole = Totals()
    for call in calls:
        whole.add(call)
    run: RunId = calls[0].run
    spent = cost_words(whole.cost, whole.unpriced)
    told = f"{spent} in {short(run)}: {count(whole.calls, 'call')}, {whole.tokens:,} tokens"
    rows = [("cost", told)]
    rows += [(f"call {n}", _words(call)) for n, call in enumerate(calls[:MOST_CALLS], 1)]
    if len(calls) > MOST_CALLS:
        rows.append(("calls", f"and {len(calls) - MOST_CALLS} more"))
    return rows


def _words(call: Outlay) -> str:
    price = UNKNOWN if call.cost is None else dollars(call.cost)
    fate = _FATES.get(call.fate)
    if fate is None:
        price, fate = f"up to {price}" if call.cost else price, "cut off"
    used = f"{call.input:,} + {call.output:,} tokens, " if call.input or call.output else ""
    return f"attempt {call.attempt}, {call.model}: {used}{price}, {fate}"
