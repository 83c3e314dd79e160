"""The HTTP door: loopback alone, a token, and nothing that a web page could send.

Every request is looked at before the library sees it, whatever it asks for: its Host, exactly; its Origin, if
it has one; its token; then its frame. A browser that was tricked into another name for this machine fails at
the first, a page of another site at the second, another user of this machine at the third. There are no
sessions, so there is none that another client could use.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
import socket
import stat
from collections.abc import Sequence

import uvicorn
from mcp.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.errors import UsageError
from holdfast.mcp.frames import BUSY, INVALID_REQUEST, Refused, read_frame, too_long

HERE = "127.0.0.1"
PATH = "/mcp"
MOST_OPEN = 64
PATIENCE = 30.0  # seconds for a frame to arrive
_DIGITS = 64
_DENIED = -32001
Headers = Sequence[tuple[bytes, bytes]]


def bound(port: int) -> socket.socket:
    """A socket on loopback; port 0 takes any that is free."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HERE, port))
        made.listen()  # who reads the address may come before somebody answers
    except OSError as error:
        made.close()
        raise UsageError(f"cannot listen on port {port}: {error.strerror}") from error
    return made


def token_in(path: str, *, fresh: bool = False) -> str:
    """The token that is kept in a file which only its owner can read; made if there is none."""
    if not fresh and (kept := _kept(path)):
        return kept
    token = secrets.token_hex(_DIGITS // 2)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    draft = f"{path}.{os.getpid()}.tmp"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(draft, flags, 0o600), "w", encoding="ascii") as file:
            file.write(f"{token}\n")
        os.replace(draft, path)
    except OSError as error:
        raise UsageError(f"cannot write the token to '{path}': {error.strerror}") from error
    return token


def _kept(path: str) -> str:
    """The token of a file that nobody else could have read or written; else nothing."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="ascii") as file:
            found = os.fstat(file.fileno())
            text = file.read(2 * _DIGITS).strip()
    except (OSError, UnicodeDecodeError):
        return ""
    is_ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid()
    is_private = not found.st_mode & 0o077
    return text if is_ours and is_private and len(text) == _DIGITS else ""


async def serve(
    server: Server[dict[str, object]], listening: socket.socket, token: str, most: int
) -> None:
    """Serve until a signal comes; a frame has at most so many bytes."""
    port = listening.getsockname()[1]
    hosts = [f"{name}:{port}" for name in (HERE, "localhost")]
    origins = [f"http://{host}" for host in hosts]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        max_request_body_size=most,
        transport_security=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins),
    )
    # Of the parsers only this one leaves an address in absolute form as it was sent.
    config = uvicorn.Config(
        Door(app, hosts, origins, token, most),
        http="h11",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
    )
    await uvicorn.Server(config).serve([listening])


class Door:
    """Lets in who may come in."""

    def __init__(
        self, app: ASGIApp, hosts: Sequence[str], origins: Sequence[str], token: str, most: int
    ) -> None:
        self._app = app
        self._hosts = frozenset(host.encode() for host in hosts)
        self._origins = frozenset(origin.encode() for origin in origins)
        self._token = token.encode()
        self._most = most
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the beginning and the end of all of them."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        if status := self._refused(scope):
            await _answer(send, status)
            return
        self._open += 1
        try:
            frame = await self._frame(scope, receive)
        except Refused as refused:
            status = 401 if refused.code == _DENIED else 503 if refused.code == BUSY else 400
            await _answer(send, status, refused)
        else:
            await self._app(scope, _replayed(frame, receive), send)
        finally:
            self._open -= 1

    def _refused(self, scope: Scope) -> int:
        """The status of what is refused without a word: another host, another site, another address."""
        headers: Headers = scope["headers"]
        hosts = _all(headers, b"host")
        if len(hosts) != 1 or hosts[0] not in self._hosts or not scope["path"].startswith("/"):
            return 421
        origins = _all(headers, b"origin")
        if len(origins) > 1 or any(origin not in self._origins for origin in origins):
            return 403
        return 0

    async def _frame(self, scope: Scope, receive: Receive) -> bytes:
        """The frame of somebody who may send one."""
        headers: Headers = scope["headers"]
        given = _all(headers, b"authorization")
        expected = b"Bearer " + self._token
        if len(given) != 1 or not hmac.compare_digest(given[0], expected):
            raise Refused(_DENIED, "the token is missing or wrong")
        if scope["path"] != PATH or scope["method"] != "POST":
            raise Refused(INVALID_REQUEST, f"send frames by POST to {PATH}")
        kinds = _all(headers, b"content-type")
        if [kind.partition(b";")[0].strip().lower() for kind in kinds] != [b"application/json"]:
            raise Refused(INVALID_REQUEST, "a frame is application/json")
        if _all(headers, b"mcp-session-id"):
            raise Refused(INVALID_REQUEST, "this server keeps no sessions")
        if self._open > MOST_OPEN:
            raise Refused(BUSY, f"{MOST_OPEN} requests are open: wait for an answer")
        try:
            frame = await asyncio.wait_for(_body(receive, self._most), PATIENCE)
        except TimeoutError as error:
            raise Refused(INVALID_REQUEST, "the frame did not arrive in time") from error
        read_frame(frame, self._most)
        return frame


def _all(headers: Headers, name: bytes) -> list[bytes]:
    return [value for key, value in headers if key == name]


async def _body(receive: Receive, most: int) -> bytes:
    found = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Refused(INVALID_REQUEST, "the frame was cut")
        found += message.get("body", b"")
        if len(found) > most:
            raise too_long(most)
        if not message.get("more_body"):
            return bytes(found)


def _replayed(frame: bytes, receive: Receive) -> Receive:
    """What the library reads: the frame that was read already, then whatever comes."""
    pending = [frame]

    async def replay() -> Message:
        if pending:
            return {"type": "http.request", "body": pending.pop(), "more_body": False}
        return await receive()

    return replay


async def _answer(send: Send, status: int, refused: Refused | None = None) -> None:
    body = b"" if refused is None else json.dumps(refused.answer()).encode()
    headers = [(b"content-length", str(len(body)).encode()), (b"connection", b"close")]
    if body:
        headers.append((b"content-type", b"application/json"))
    if status == 401:  # noqa: PLR2004 - the token is missing
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
