"""How a screen is made: a function of a `Look` and a request that gives a page; its route; its tabs.

A screen module has `ROUTES`, a list of what `screen(path, show)` gives, and `server` puts them together:

    def show(look: Look, request: Request) -> Response:
        state = look.find(request.path_params["run"])
        values = {"tab": "graph", **run.values_of(look, request, state)}
        return page(look, request, "graph.html", values)  # which extends runbase.html

    ROUTES = [screen("/runs/{run}/graph", show)]

`show` runs in the one thread that owns the look; it may read the store at leisure but must not wait for
anything. A HoldfastError that it raises becomes a page with its message and hint. `page` renders a template
of `templates/` inside `base.html`, or only the block `main` of it if htmx asks for that. Whatever stands in
`{{ … }}` is first cleaned (nothing that hides or reorders text) and then escaped, so a template has nothing
to remember; the id of a step that a program reads again is written as `{{ id|exact }}`. Never use `|safe`;
text that is Markdown goes through `markdown.rendered`.

Nothing is written into `style=` and no script stands in a page: the policy of the door refuses both. Sizes
of drawings are attributes of SVG; behaviour is in `static/page.js`, by `data-` attributes. What lies there as
`htmx.min.js` is htmx 4.0.1 as it is published, without the line that names its source map.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeVar
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from holdfast.cli.again import again, possible
from holdfast.cli.measure import age_words, count, iso, moment, size_words
from holdfast.cli.say import SIGNS, clock, named, seconds, short
from holdfast.core.reasons import sentence
from holdfast.errors import HoldfastError, UsageError
from holdfast.model.items import spelled_out
from holdfast.model.money import dollars
from holdfast.model.secret import struck_text
from holdfast.model.text import clean
from holdfast.web.look import Look

Show = Callable[[Look, Request], Response]
T = TypeVar("T")
_LONGEST = 12  # digits of a number in an address


@dataclass(frozen=True, slots=True)
class Tab:
    """One way to look at a run: under which name, in which word, at which path below the run's own."""

    name: str
    title: str
    path: str = ""


TABS = (
    Tab("steps", "Steps"),
    Tab("graph", "Graph", "/graph"),
    Tab("timeline", "Timeline", "/timeline"),
    Tab("log", "Log", "/log"),
    Tab("cost", "Cost", "/cost"),
)
SCREENS = (  # beside the runs, in the head of every page
    ("/approvals", "Approvals"),
    ("/ledger", "Ledger"),
    ("/compare", "Compare"),
    ("/plan", "Plan"),
    ("/cost", "Cost"),
)


class Desk:
    """The one thread in which screens look and read."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="look")

    async def do(self, work: Callable[[Look], T]) -> T:
        """Let the thread do something."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self.look)

    def close(self) -> None:
        """End when nothing is under way any more."""
        self._thread.submit(self.look.close)
        self._thread.shutdown()


def desk_of(request: Request) -> Desk:
    """Where this request is worked on."""
    found = request.app.state.desk
    assert isinstance(found, Desk)
    return found


def screen(path: str, show: Show, *, method: str = "GET") -> Route:
    """The route of a screen."""

    def shown(request: Request, look: Look) -> Response:
        with look.speaking():
            try:
                return show(look, request)
            except HoldfastError as error:
                return failed(look, request, error)

    async def endpoint(request: Request) -> Response:
        return await desk_of(request).do(partial(shown, request))

    return Route(path, endpoint, methods=[method])


def failed(look: Look, request: Request, error: HoldfastError) -> Response:
    """What went wrong, in the words of the command."""
    status = 404 if isinstance(error, UsageError) and request.method == "GET" else 409
    values = {"error": error, "hint": again(error.hint)}
    return page(look, request, "failed.html", values, status=status)


def page(
    look: Look, request: Request, template: str, values: Mapping[str, object], *, status: int = 200
) -> Response:
    """A whole page; for htmx only what stands in its `main`."""
    asked = request.headers.get("hx-request-type") == "partial"
    here = {"look": look, "here": request.url.path, "waiting": look.waiting(), "bare": asked}
    return HTMLResponse(rendered(template, {**here, **values}), status)


def rendered(
    template: str, context: Mapping[str, object], *, secrets: Sequence[str] = ()
) -> Markup:
    """A template: HTML of ours, which another template may hold.

    Secrets that are given are struck out of whatever is put into it.
    """
    kept = _environment()
    if secrets:
        kept = kept.overlay(finalize=lambda value: _shown(_struck(value, secrets)))
    return Markup(kept.get_template(template).render(context))  # noqa: S704 - escaped by the template


def _struck(value: object, secrets: Sequence[str]) -> object:
    if isinstance(value, str) and not isinstance(value, Markup):
        return struck_text(value, secrets)
    return value


def address(path: str, **query: object) -> str:
    """A path of ours with a query; what is empty is left out."""
    given = {key: str(value) for key, value in query.items() if value not in {None, "", 0}}
    return path + (f"?{urlencode(given)}" if given else "")


def number(text: str | None, usual: int) -> int:
    """A whole number of an address; what is none counts as the usual one."""
    return int(text) if text and text.isdecimal() and len(text) <= _LONGEST else usual


def run_path(run: str, rest: str = "") -> str:
    """Where a run is shown."""
    return f"/runs/{quote(run, safe='')}{rest}"


def _shown(value: object) -> object:
    """Everything that is put into a page: spelled out where it would hide or reorder; ours stays."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return clean(spelled_out(value))
    return "" if value is None else value


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("holdfast.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["exact"] = (
        escape  # ids of steps hold nothing but plain signs; spelled out they are others
    )
    found.globals.update(
        address=address,
        again=again,
        age=age_words,
        clock=clock,
        count=count,
        dollars=dollars,
        iso=iso,
        moment=moment,
        named=named,
        possible=possible,
        run_path=run_path,
        seconds=seconds,
        sentence=sentence,
        short=short,
        signs=SIGNS,
        size=size_words,
        screens=SCREENS,
        tabs=TABS,
    )
    return found
