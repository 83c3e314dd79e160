"""The screens that draw and compare: their paths, for the server."""

from __future__ import annotations

from holdfast.web import compare, cost, graph, ledger, log, plan, timeline

ROUTES = [
    *graph.ROUTES,
    *timeline.ROUTES,
    *log.ROUTES,
    *cost.ROUTES,
    *ledger.ROUTES,
    *compare.ROUTES,
    *plan.ROUTES,
]
