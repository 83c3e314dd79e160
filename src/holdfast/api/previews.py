"""What a run would do, shown to a program and in a notebook as `holdfast plan` shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypedDict

from holdfast.api import notebook
from holdfast.api.homes import stop_import
from holdfast.api.ready import Ready
from holdfast.api.told import Named, options_of, refuse_wrong
from holdfast.cli.ahead import Ahead, gather, preview_json
from holdfast.cli.cause import sign, why
from holdfast.cli.drawings import SVG_ARROWS, SVG_BOXES, Drawn, svg
from holdfast.cli.outlook import table
from holdfast.cli.place import Place
from holdfast.cli.view import View
from holdfast.core.layout import picture
from holdfast.core.waves import graph_of
from holdfast.formats.planfile import Loaded
from holdfast.model.digest import Json
from holdfast.model.event import Drift
from holdfast.model.plan import Plan, StepId


class Looking(TypedDict, total=False):
    """What a preview may be told; as a run is told it."""

    store: str | None
    jobs: int
    force: bool
    force_steps: Iterable[Named]
    cutoff: bool
    on_drift: Drift


@dataclass(frozen=True, slots=True)
class Preview:
    """What a run would do now. Printed, it is the table of `holdfast plan`."""

    ahead: Ahead = field(repr=False)

    @property
    def decisions(self) -> Mapping[str, str]:
        """run, reuse, maybe or wait for each step."""
        return {str(name): found.decision for name, found in self.ahead.outlooks.items()}

    @property
    def is_work(self) -> bool:
        """Whether a run would do anything."""
        return self.ahead.is_work

    @property
    def cost_usd(self) -> float:
        """What models may cost, typically; steps without a known price are not in it."""
        return self.ahead.money.p50 / 1_000_000

    @property
    def digest(self) -> str:
        """What a saved preview is held to."""
        return str(self.ahead.foreseen.digest)

    def json(self) -> dict[str, Json]:
        """The preview as `holdfast plan --json` prints it."""
        return preview_json(self.ahead)

    def __str__(self) -> str:
        return "\n".join(table(self.ahead, View()))

    def _repr_mimebundle_(self, **_: object) -> dict[str, object]:
        rows = [
            (sign(found), str(name), why(self.ahead, name, found))
            for name, found in self.ahead.outlooks.items()
        ]
        title, _blank, *rest = str(self).split("\n\n")
        html = notebook.table(title, ("", "step", "why"), rows)
        html += notebook.lines(rest[-1] if rest else "") + drawing(self.ahead.plan)
        return {"text/plain": str(self), "text/html": html, "application/json": self.json()}


def preview(ready: Ready, wishes: Looking) -> Preview:
    """Look ahead; nothing is run or written."""
    refuse_wrong(wishes, Looking)
    stop_import()
    options = options_of(ready, wishes)
    where = Place(None, ready.root, ready.location(wishes.get("store")), ready.plan.name)
    loaded = Loaded(ready.plan, "", ready.root)

    def look() -> Preview:
        jobs = wishes.get("jobs", 0)
        return Preview(gather(where, loaded, options, parallel=jobs, functions=ready.functions))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return look()
    with ThreadPoolExecutor(1) as beside:  # a look may need a loop of its own
        return beside.submit(look).result()


def invalidated(ready: Ready, changed: Iterable[str], store: str | None) -> frozenset[str]:
    """Steps that have to be made: changed, incomplete, failed, and whatever depends on one of them."""
    found = preview(ready, {"force_steps": tuple(changed), "store": store})
    graph = graph_of(ready.plan)
    first = [s for s, outlook in found.ahead.outlooks.items() if outlook.decision != "reuse"]
    return frozenset(str(name) for name in {*first, *graph.below(first)})


def drawing(plan: Plan, states: Mapping[StepId, str] | None = None) -> str:
    """The graph of a plan as SVG."""
    graph = graph_of(plan)
    drawn = picture(graph, graph.order, most_boxes=SVG_BOXES, most_arrows=SVG_ARROWS)
    return svg(Drawn(plan.name, drawn, plan.steps, states or {}))
