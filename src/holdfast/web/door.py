"""The door of the page: who may ask, and from where. It stands before every route, static files included.

A page on this machine has three kinds of strangers: other sites that the browser shows, names that point
here although they are not ours, and other users of the machine. So a request passes only if

- its `Host` is exactly ours, with the port, and its target is a path        (else 421)
- its `Origin` is absent or exactly ours, and the browser calls it our own    (else 403)
- it brings the cookie that a one-time code was exchanged for                 (else 403)
- and, if it may change something, also the token of that cookie in a header,
  as JSON                                                                     (else 403)

What is refused gets no body, so nothing is said to a stranger; only who typed an address of ours into a
browser without the cookie reads how to come in. The code works once and for a minute. The
key of the server itself lies in a file that only its user can read; it buys another code, nothing else.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.model.walls import WALLS, Walls, moved_by, size_of
from holdfast.web.knock import CODE, KEY_HEADER, OPEN

CODE_MS = 60_000  # how long a code may be exchanged
MOST_SESSIONS = 64
TOKEN, TOKEN_HEADER = "/door/token", b"x-holdfast-token"
_READS = frozenset({"GET", "HEAD"})
_OWN_SITES = frozenset({b"same-origin", b"none"})
_CLOSED = (
    "This browser is not let in: the address was used already, or its minute is over.\n"
    "Type 'holdfast ui' once more in the same folder for another one.\n"
)
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that came in: its cookie, and the token that its changing requests bring as well."""

    cookie: str
    token: str


@dataclass(slots=True)
class Keys:
    """What opens the door: the server's own key, codes that were not exchanged yet, and sessions."""

    clock: Callable[[], int]
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    codes: dict[str, int] = field(default_factory=dict)
    sessions: list[Session] = field(default_factory=list)

    def new_code(self) -> str:
        """A code that works once, within a minute."""
        now = self.clock()
        self.codes = {code: until for code, until in self.codes.items() if until > now}
        code = secrets.token_urlsafe(24)
        self.codes[code] = now + CODE_MS
        return code

    def exchange(self, code: str) -> Session | None:
        """A session for a code; None if it was used, is too old or was never given."""
        found = next((known for known in self.codes if _same(known, code)), None)
        if found is None or self.codes.pop(found) <= self.clock():
            return None
        session = Session(secrets.token_urlsafe(32), secrets.token_urlsafe(32))
        self.sessions = [*self.sessions, session][-MOST_SESSIONS:]
        return session

    def session(self, cookie: str) -> Session | None:
        """The session of a cookie, if there is one."""
        return next((one for one in self.sessions if _same(one.cookie, cookie)), None)


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode("utf-8", "replace"))


class Door:
    """Lets in who may come in; an ASGI application around another one."""

    def __init__(
        self, app: ASGIApp, keys: Keys, hosts: Iterable[str], walls: Walls = WALLS
    ) -> None:
        self._app = app
        self._most = walls.body
        self._keys = keys
        self._hosts = frozenset(host.encode() for host in hosts)
        self._cookie = f"holdfast-{next(iter(hosts)).rpartition(':')[2]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer at the door, or pass the request on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # nothing here speaks anything else
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = self._answer(scope)
        if answer is not None:
            await answer(scope, receive, _guarded(send))
            return
        if (size := _announced(scope["headers"])) > self._most:
            await _too_large(size, self._most)(scope, receive, _guarded(send))
            return
        await self._app(scope, _bounded(receive, self._most), _guarded(send))

    def _answer(self, scope: Scope) -> Response | None:
        """What is said at the door; None lets the request pass."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts = _all(headers, b"host")
        if len(hosts) != 1 or hosts[0] not in self._hosts or not scope["path"].startswith("/"):
            return Response(status_code=421)
        if not _is_own(headers, hosts[0]):
            return Response(status_code=403)
        path, method = scope["path"], scope["method"]
        if path == OPEN and method == "GET":
            return self._open(scope)
        if path == CODE and method == "POST":
            return self._code(headers)
        session = self._session(headers)
        if session is None:
            typed = method == "GET" and _all(headers, b"sec-fetch-mode") == [b"navigate"]
            return _closed() if typed else Response(status_code=403)
        if method not in _READS and not _may_change(method, headers, session):
            return Response(status_code=403)
        if path == TOKEN:
            return JSONResponse({"token": session.token})
        return None

    def _open(self, scope: Scope) -> Response:
        """Exchange a code for a cookie; the address with the code leads nowhere afterwards."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("code", [""])[0]
        session = self._keys.exchange(given)
        if session is None:
            return _closed()
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(self._cookie, session.cookie, httponly=True, samesite="strict", path="/")
        return answer

    def _code(self, headers: Iterable[tuple[bytes, bytes]]) -> Response:
        """Another code for whoever can read the server's key: a second `holdfast ui` of the same user."""
        given = _all(headers, KEY_HEADER.lower().encode())
        if len(given) != 1 or not _same(self._keys.key, given[0].decode("latin-1")):
            return Response(status_code=403)
        return JSONResponse({"code": self._keys.new_code()})

    def _session(self, headers: Iterable[tuple[bytes, bytes]]) -> Session | None:
        cookies = SimpleCookie()
        try:
            for line in _all(headers, b"cookie"):
                cookies.load(line.decode("latin-1"))
        except CookieError:
            return None
        found = cookies.get(self._cookie)
        return self._keys.session(found.value) if found is not None else None


def _closed() -> Response:
    """What a person reads who has no cookie: how to come in."""
    return PlainTextResponse(_CLOSED, status_code=403)


def _all(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for known, value in headers if known == name]


def _is_own(headers: list[tuple[bytes, bytes]], host: bytes) -> bool:
    """Whether a request comes from a page of ours or from no page at all.

    Another port of this machine is the same site to a browser, which sends cookies along; so what it
    says about the site of a request has to be the same origin.
    """
    origins, sites = _all(headers, b"origin"), _all(headers, b"sec-fetch-site")
    if len(origins) > 1 or any(origin != b"http://" + host for origin in origins):
        return False
    return all(site in _OWN_SITES for site in sites)


def _may_change(method: str, headers: list[tuple[bytes, bytes]], session: Session) -> bool:
    tokens, types = _all(headers, TOKEN_HEADER), _all(headers, b"content-type")
    is_json = len(types) == 1 and types[0].partition(b";")[0].strip() == b"application/json"
    is_known = len(tokens) == 1 and _same(session.token, tokens[0].decode("latin-1"))
    return method == "POST" and is_json and is_known


def _guarded(send: Send) -> Send:
    """Every answer says what a browser may do with it, and that is little."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sent


def _announced(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """How many bytes a request says that it brings; one that lies about it ends at the wall."""
    found = [int(value[:20]) for value in _all(headers, b"content-length") if value.isdigit()]
    return max(found, default=0)


def _too_large(size: int, most: int) -> Response:
    hint = moved_by("body", most)
    words = f"the body has {size:,} bytes, and {size_of(most)} are the most\nhint: {hint}\n"
    return PlainTextResponse(words, status_code=413, headers={"Connection": "close"})


def _bounded(receive: Receive, most: int) -> Receive:
    """A body that is too long ends early, as if whoever sends it had gone away."""
    seen = 0

    async def received() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        return message if seen <= most else {"type": "http.disconnect"}

    return received
