"""How something is changed: a POST with a JSON object, done in a thread of its own, answered with words.

    ROUTES = [act("/approvals/decide", decide)]      # decide(look, body) -> Response

`do` runs beside the thread of the look, so it opens the store for itself and takes nothing of the look but
its place and its words. A page that only shows refuses all of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from holdfast.cli.again import again
from holdfast.errors import HoldfastError, UsageError
from holdfast.web.look import Look
from holdfast.web.screens import desk_of, rendered


@dataclass(frozen=True, slots=True)
class Body:
    """What a request brings, and the parts of its address."""

    values: Mapping[str, str]
    path: Mapping[str, str]

    def text(self, name: str) -> str:
        """One value; empty if it is not there."""
        return self.values.get(name, "")


Do = Callable[[Look, Body], Response]


def act(path: str, do: Do) -> Route:
    """The route of something that changes."""

    def done(look: Look, body: Body) -> Response:
        with look.speaking():
            try:
                if look.read_only:
                    raise UsageError(
                        "this page only shows", hint="holdfast ui, without --read-only"
                    )
                return do(look, body)
            except HoldfastError as error:
                return refused(error)

    async def endpoint(request: Request) -> Response:
        try:
            values = _strings(await request.body())
        except (ValueError, ClientDisconnect):
            return Response(status_code=400)
        body = Body(values, {key: str(value) for key, value in request.path_params.items()})
        return await run_in_threadpool(done, desk_of(request).look, body)

    return Route(path, endpoint, methods=["POST"])


def _strings(content: bytes) -> dict[str, str]:
    """An object with texts of whole letters; ValueError if it is anything else."""
    try:
        found = json.loads(content)
    except RecursionError as error:
        raise ValueError("too deep") from error
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise ValueError("not an object with texts")
    "".join(
        chain.from_iterable(found.items())
    ).encode()  # half a letter can be neither kept nor shown
    return found


def said(lines: Sequence[str], *, run: str = "", status: int = 200) -> Response:
    """What came of it, with the way to resume a run that waits for that."""
    return HTMLResponse(rendered("said.html", {"lines": lines, "run": run}), status)


def refused(error: HoldfastError) -> Response:
    """Why nothing was done."""
    context = {"error": error, "hint": again(error.hint)}
    return HTMLResponse(rendered("refused.html", context), 409)
