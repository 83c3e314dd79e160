"""Resources: a run, what a step made, the open gaps and the plan, by their addresses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import unquote

from mcp.types import Resource, ResourceTemplate

from holdfast.errors import UsageError
from holdfast.formats.planout import plan_yaml
from holdfast.mcp.answer import small
from holdfast.mcp.asking import ledger_query
from holdfast.mcp.desk import Desk
from holdfast.mcp.given import Given
from holdfast.mcp.reading import step_read
from holdfast.mcp.statuses import run_status
from holdfast.model.digest import Json

MOST_RUNS = 10  # that are listed
MOST_BYTES = 256 * 1024
JSON, TEXT, YAML = "application/json", "text/plain", "application/yaml"
_STEP = re.compile(r"step://(?P<run>[^/]+)/(?P<step>.+)\Z")
_RUN = re.compile(r"run://(?P<run>[^/]+)\Z")


class Content(NamedTuple):
    """What a resource holds, what that is, and for how many milliseconds it may be kept."""

    text: str
    kind: str
    fresh_ms: int


def templates() -> list[ResourceTemplate]:
    """The addresses that have something to fill in."""
    return [
        ResourceTemplate(
            name="run",
            uri_template="run://{id}",
            description="Where a run stands; @ is the last.",
            mime_type=JSON,
        ),
        ResourceTemplate(
            name="step",
            uri_template="step://{run}/{step}",
            description="What a step made in a run.",
            mime_type=TEXT,
        ),
    ]


def resources(desk: Desk) -> list[Resource]:
    """The plan, the gaps, and the last runs."""
    found = [
        Resource(
            name="plan",
            uri="plan://current",
            description="The plan as a run would take it.",
            mime_type=YAML,
        ),
        Resource(
            name="gaps",
            uri="ledger://gaps",
            description="What is missing, as far as anybody said.",
            mime_type=JSON,
        ),
    ]
    with desk.here() as where:
        if not where.exists():
            return found
        store = where.open(readonly=True)
        try:
            rows = store.runs(where.line())[-MOST_RUNS:]
        finally:
            store.close()
    return found + [
        Resource(name=row.run, uri=f"run://{row.run}", mime_type=JSON) for row in reversed(rows)
    ]


def read(desk: Desk, uri: str) -> Content:
    """What an address holds now; UsageError if there is no such one."""
    known: dict[str, Callable[[Desk], Content]] = {"plan://current": _plan, "ledger://gaps": _gaps}
    if uri in known:
        return known[uri](desk)
    if found := _RUN.match(uri):
        answer = run_status(desk, Given({"run_id": unquote(found["run"])}))
        return Content(_printed(dict(answer.data)), JSON, 1_000)
    if found := _STEP.match(uri):
        asked: dict[str, Json] = {"run_id": unquote(found["run"]), "part": "result"}
        answer = step_read(desk, Given({**asked, "ref": unquote(found["step"])}))
        return Content("\n".join(answer.lines), TEXT, 1_000)
    raise UsageError(f"there is no resource '{uri:.80}'", hint="run://ID or step://RUN/STEP")


def _plan(desk: Desk) -> Content:
    with desk.here() as where:
        text = plan_yaml(where.load().plan)
    if len(text) > MOST_BYTES:
        text = f"{text[:MOST_BYTES]}\n# … it goes on: {len(text):,} characters in all\n"
    return Content(text, YAML, 5_000)


def _gaps(desk: Desk) -> Content:
    answer = ledger_query(desk, Given({"kind": "gaps", "open_only": True}))
    return Content(_printed(dict(answer.data)), JSON, 1_000)


def _printed(value: Json) -> str:
    return json.dumps(small(value), ensure_ascii=False, indent=1)
