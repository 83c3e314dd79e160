"""The server of the page: screens behind the door, on this machine alone."""

from __future__ import annotations

import asyncio
import importlib.resources
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import cast

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from holdfast.errors import BugError, UsageError
from holdfast.model.walls import WALLS, Walls, moved_by
from holdfast.web import doing, drawer, inbox, live, run, runs
from holdfast.web.charts import ROUTES as CHARTS
from holdfast.web.door import HEADERS, Door, Keys
from holdfast.web.look import Look
from holdfast.web.screens import Desk, page, rendered

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_GRACE = 2  # seconds for requests that are under way when the server ends


@dataclass(frozen=True, slots=True)
class Bound:
    """Where the server listens, and by which names it may be asked."""

    socket: socket.socket
    host: str
    port: int

    @property
    def hosts(self) -> tuple[str, ...]:
        """The `Host` headers that are ours."""
        names = ("[::1]",) if ":" in self.host else ("127.0.0.1", "localhost")
        return tuple(f"{name}:{self.port}" for name in names)

    @property
    def address(self) -> str:
        """What a browser is given."""
        return f"http://{self.hosts[0]}"


def bind(host: str, port: int) -> Bound:
    """A socket on this machine that no other machine can reach."""
    if host not in LOOPBACK:
        raise UsageError(
            f"the page is for this machine alone, and '{host}' is not an address of it",
            hint="from another machine use a tunnel: ssh -L 8000:127.0.0.1:PORT",
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1" if host == "localhost" else host, port))
    except OSError as error:
        found.close()
        raise UsageError(
            f"port {port} of '{host}' cannot be had: {error.strerror}", hint="--port 0 takes any"
        ) from error
    return Bound(found, host, found.getsockname()[1])


def routes() -> list[BaseRoute]:
    """Every path that the page has."""
    static = str(importlib.resources.files("holdfast.web") / "static")
    return [
        *runs.ROUTES,
        *run.ROUTES,
        *drawer.ROUTES,
        *doing.ROUTES,
        *inbox.ROUTES,
        *live.ROUTES,
        *CHARTS,
        Mount("/static", StaticFiles(directory=static)),
    ]


def application(look: Look, keys: Keys, hosts: tuple[str, ...], walls: Walls = WALLS) -> ASGIApp:
    """The page as an ASGI application."""
    desk = Desk(look)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        warming = asyncio.create_task(desk.do(_warm))
        yield
        warming.cancel()
        desk.close()

    handlers = {404: _missing, 500: _broken}
    app = Starlette(routes=routes(), lifespan=lifespan, exception_handlers=handlers)
    app.state.desk = desk
    return Door(app, keys, hosts, walls)


def _warm(look: Look) -> None:
    """Fold the newest runs before somebody asks for them."""
    with look.speaking():
        for row in [*reversed(look.rows())][: runs.PAGE]:
            look.state(row.run)


async def _missing(request: Request, _: Exception) -> Response:
    error = UsageError(f"there is no page '{request.url.path}'", hint="holdfast ui")
    desk: Desk = request.app.state.desk
    return await desk.do(
        lambda look: page(look, request, "failed.html", {"error": error, "hint": ""}, status=404)
    )


async def _broken(request: Request, error: Exception) -> Response:
    """A screen broke: it says so, and what is known of it is on stderr."""
    del request
    found = BugError(f"the page broke: {type(error).__name__}: {error}")
    context = {"error": found, "hint": "what 'holdfast ui' printed says where"}
    return HTMLResponse(rendered("refused.html", context), 500)


class Protocol(H11Protocol):
    """HTTP as ever; what cannot be read as a request is refused like anything else, without a word."""

    def send_400_response(self, msg: str) -> None:
        """Refuse: no `Host`, two of them, or no HTTP at all."""
        del msg
        named = {**HEADERS, "Content-Length": "0", "Connection": "close"}
        headers = [(name.encode(), value.encode()) for name, value in named.items()]
        for event in (h11.Response(status_code=421, headers=headers), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as theirs
        """Take a connection; beyond the wall one that asks for nothing ends, else the new one."""
        super().connection_made(transport)
        self.since = self.loop.time()
        open_ones = [one for one in self._others() if not one.transport.is_closing()]
        self.limit_concurrency = None  # theirs gives no reason
        most = self.config.limit_concurrency or WALLS.connections
        if len(open_ones) < most:
            return
        idle = [one for one in open_ones if one.is_idle()]
        if idle:
            min(idle, key=lambda one: one.since).transport.close()
        else:
            self._refuse(most)

    def is_idle(self) -> bool:
        """Whether nothing is asked for just now."""
        asked = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        return asked is None or asked.response_complete

    def _others(self) -> list[Protocol]:
        return [one for one in self.connections if isinstance(one, Protocol) and one is not self]

    def _refuse(self, most: int) -> None:
        hint = moved_by("connections", most)
        words = f"the page has {most} connections already\nhint: {hint}\n".encode()
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(words)).encode()),
            (b"connection", b"close"),
        ]
        said = (
            h11.Response(status_code=503, headers=headers),
            h11.Data(data=words),
            h11.EndOfMessage(),
        )
        for event in said:
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


@dataclass(frozen=True, slots=True)
class Moments:
    """What is done when the page can be asked, and when it cannot any more."""

    ready: Callable[[], None]
    over: Callable[[], None]


def serve(bound: Bound, look: Look, keys: Keys, moments: Moments, walls: Walls = WALLS) -> None:
    """Serve the page until somebody ends this process."""
    config = uvicorn.Config(
        application(look, keys, bound.hosts, walls),
        http=cast("type[asyncio.Protocol]", Protocol),
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE,
        limit_concurrency=walls.connections,
    )
    with suppress(KeyboardInterrupt):
        _Server(config, moments).run([bound.socket])


class _Server(uvicorn.Server):
    """Says when it can be asked, and when not any more."""

    def __init__(self, config: uvicorn.Config, moments: Moments) -> None:
        super().__init__(config)
        self._moments = moments

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        if self.started:
            self._moments.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening."""
        self._moments.over()
        await super().shutdown(sockets)
