"""What changes, as it changes: server-sent events that go on where a browser left off.

The number of each event is that of the run's journal. A page says up to which one it was made (`after`), a
browser that comes back says which one it saw last (`Last-Event-ID`); both get what came since. An event holds
the head of the page and the rows of the steps that changed, as they are now; a browser takes those that it
shows. So nothing is missed and nothing is told twice, whatever was lost on the way.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast import wire
from holdfast.core.state import State
from holdfast.engine.lines import line_journal
from holdfast.errors import HoldfastError, UsageError
from holdfast.model.event import Recorded
from holdfast.model.plan import RunId, StepId
from holdfast.web.look import Look
from holdfast.web.run import Asked, strip_of
from holdfast.web.runs import rows_of as run_rows
from holdfast.web.screens import desk_of, number, rendered
from holdfast.web.steps import kept_tree, rows_of

PAUSE = 0.3  # seconds between two looks at the journal
MOST_ROWS = 200  # that are sent at once; of more the browser asks for its list again
PING = 15
_HELD = ", and its engine is still there"


@dataclass(frozen=True, slots=True)
class News:
    """What a page is sent: the number that it has then seen, and elements that take the place of theirs."""

    seq: int
    html: str
    words: str
    word: str = ""  # the state of the run
    whole: bool = False  # too much changed: the list is to be asked for again

    def message(self) -> ServerSentEvent:
        """The same as an event; `over` if nothing will change any more by itself."""
        over = self.word not in {"", "running"} and not self.word.endswith(_HELD)
        data = {"html": self.html, "words": self.words, "whole": self.whole, "over": over}
        return ServerSentEvent(json.dumps(data), event="news", id=str(self.seq))


def touched(events: Iterable[Recorded]) -> dict[StepId, None]:
    """The steps that events are about, in their order."""
    found: dict[StepId, None] = {}
    for recorded in events:
        event = recorded.event
        one = getattr(event, "step", None)
        if isinstance(one, str) and one:
            found[StepId(one)] = None
        for name in ("steps", "added"):
            found |= dict.fromkeys(getattr(event, name, ()))
        for item in getattr(event, "items", ()):
            found[item.step] = None
    return found


def news_of(run: RunId, after: int, word: str, look: Look) -> News | None:
    """What a page that has seen `after` and shows the run as `word` does not know yet."""
    with look.speaking():
        state = look.state(run)
        if state is None:
            raise UsageError(f"there is no run '{run}'")
    now = _word(look, state)  # before all else: what changes while this is drawn is news again
    if state.seq <= after and word in {"", now}:
        return None
    with look.speaking(state.line, state.file):
        strip = strip_of(look, state)
        changed = touched(look.store.read(f"run:{run}", after))
        steps = _with_groups(look, state, [*changed, *look.answered(state)])
        whole = len(steps) > MOST_ROWS
        found = [] if whole else [(step, 0) for step in steps]
        context = {
            "look": look,
            "state": state,
            "strip": strip,
            "asked": Asked(run),
            "rows": list(rows_of(look, state, found)),
            "waiting": look.waiting(),
        }
        html = rendered("news.html", context)
        return News(state.seq, html, strip.line, now, whole)


def _word(look: Look, state: State) -> str:
    """The state of a run that can change; an engine lets go a moment after its run came to rest."""
    driven = look.is_driven(state)
    if answered := len(look.answered(state)):
        return f"{state.status}, {answered} answered{_HELD if driven else ''}"
    if state.status != "running":
        return f"{state.status}{_HELD}" if driven else str(state.status)
    return "running" if driven else "interrupted"


def _with_groups(look: Look, state: State, steps: Iterable[StepId]) -> dict[StepId, None]:
    """The steps and the groups that they stand in: their counts changed too."""
    tree = kept_tree(look, state)
    found: dict[StepId, None] = {}
    for step in steps:
        here: StepId | None = step if step in state.steps else None
        while here is not None and here not in found:
            found[here] = None
            here = tree.above.get(here)
    return found


async def follow_run(request: Request) -> Response:
    """The events of one run."""
    desk = desk_of(request)
    try:
        state = await desk.do(lambda look: look.find(request.path_params["run"]))
    except HoldfastError:
        return Response(status_code=404)
    given = request.headers.get("last-event-id") or request.query_params.get("after")
    after = number(given, 0)
    word = request.query_params.get("word", "")

    async def stream() -> AsyncIterator[ServerSentEvent]:
        seen, known = after, word
        with suppress(HoldfastError):  # the run was removed, or its store is broken: no more news
            while True:
                news = await desk.do(partial(news_of, state.run, seen, known))
                if news is not None:
                    seen, known = news.seq, news.word
                    yield news.message()
                await asyncio.sleep(PAUSE)

    return EventSourceResponse(stream(), ping=PING)


Stands = dict[RunId, tuple[int, int, bool]]


def _runs_now(look: Look) -> Stands:
    """Where the last run of each line, and the line itself, stand: only those can change."""
    live = wire.live_runs(look.store)
    last = {(row.project, row.line): row.run for row in look.store.runs()}
    ends = look.store.last
    return {
        run: (ends(f"run:{run}"), ends(line_journal(*line)), run in live)
        for line, run in last.items()
    }


def runs_news(known: Stands, look: Look) -> tuple[Stands, str, bool]:
    """Where runs stand, the rows of those that changed, and whether there is one that was not known."""
    with look.speaking():
        found = _runs_now(look)
        changed = {run for run, stand in found.items() if known.get(run) != stand}
        rows = [row for row in look.rows() if row.run in changed & known.keys()]
        context = {"look": look, "shown": list(run_rows(look, rows)), "waiting": look.waiting()}
        html = rendered("runnews.html", context) if changed else ""
        return found, html, not found.keys() <= known.keys()


async def follow_runs(request: Request) -> Response:
    """The rows of all runs that change."""
    desk = desk_of(request)

    async def stream() -> AsyncIterator[ServerSentEvent]:
        known = await desk.do(_runs_now)
        if request.headers.get("last-event-id"):  # it was away, and nobody knows what it missed
            yield News(1, "", "", whole=True).message()
        with suppress(HoldfastError):
            while True:
                known, html, more = await desk.do(partial(runs_news, known))
                if html or more:
                    yield News(1, html, "", whole=more).message()
                await asyncio.sleep(PAUSE)

    return EventSourceResponse(stream(), ping=PING)


ROUTES = [Route("/live/runs", follow_runs), Route("/live/runs/{run}", follow_run)]
