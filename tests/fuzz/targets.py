"""What strangers send, one function for each door: bytes in; nothing but a typed error may come out.

A target says whether the bytes were taken as they are, or refused as they should be, and raises for whatever
breaks its promise. Each also checks what it promises of bytes that are taken: read back they are the same, no
control code is left, no path leads out.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import shutil
import tempfile
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from urllib.parse import unquote_to_bytes

from starlette.types import Receive, Send

from holdfast.config.providers import read_market
from holdfast.config.sandbox import read_terms
from holdfast.config.settings import read_people, read_planner, read_rules, read_settings
from holdfast.edits.formats import read_edit
from holdfast.edits.tree import split_path
from holdfast.errors import BugError, HoldfastError
from holdfast.formats.planfile import load_text
from holdfast.mcp.frames import Refused, read_frame
from holdfast.model.text import clean, one_line
from holdfast.store.codec import decode, encode
from holdfast.web.door import Door, Keys, Session

Target = Callable[[bytes], bool]
HOST = "127.0.0.1:8000"
_SEEN = "\n\t\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"  # signs


def plan(data: bytes) -> bool:
    """A plan file."""
    return _typed(lambda: load_text(data, "plan.yaml", "/nowhere"))


def event(data: bytes) -> bool:
    """An event as a row of the store has it: its kind, a blank, its body."""
    kind, _, body = data.decode("utf-8", "surrogateescape").partition(" ")

    def read() -> None:
        again = encode(decode(kind, body))
        assert decode(*again) == decode(kind, body), "an event is not what it was"

    return _typed(read)


def config(data: bytes) -> bool:
    """A person's configuration, and a project's."""
    room = _room()
    (room / "holdfast" / "config.toml").write_bytes(data)
    (room / "holdfast.toml").write_bytes(data)
    own, nobody = {"XDG_CONFIG_HOME": str(room)}, {"XDG_CONFIG_HOME": "/nowhere"}
    readers: list[Callable[[], object]] = [
        partial(read, own) for read in (read_people, read_rules, read_planner, read_terms)
    ]
    for env, root in ((own, "/nowhere"), (nobody, str(room))):
        readers += [partial(read_settings, root, env), partial(read_market, root, env)]
    refused = sum(not _typed(read) for read in readers)  # each of them, whatever the first one says
    return not refused


@cache
def _room() -> Path:
    """A directory for configurations, gone with this process."""
    made = Path(tempfile.mkdtemp(prefix="holdfast-fuzz-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    (made / "holdfast").mkdir()
    return made


def edit(data: bytes) -> bool:
    """An edit in any format."""
    return _typed(lambda: read_edit(data.decode("utf-8", "surrogateescape")))


def frame(data: bytes) -> bool:
    """A frame of the Model Context Protocol."""
    try:
        found = read_frame(data)
    except Refused:
        return False
    assert isinstance(found, Mapping), "a frame that is no object was taken"
    return True


def http(data: bytes) -> bool:
    """A request at the door of the page: a line, headers, a body; whoever has no session stays outside."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, path = first.decode("latin-1").partition(" ")
    method = method or "GET"
    headers = [(b"host", HOST.encode())] if not data.startswith(b"\x00") else []
    for line in lines:
        name, _, value = line.partition(b":")
        headers.append((name.strip().lower(), value.strip()))
    said: list[int] = []
    is_in = asyncio.run(_knock(method, f"/{path.lstrip('/')}", headers, body, said))
    assert said, "the door said nothing"
    assert all(400 <= status < 500 or status in {200, 303} for status in said), said
    plain = unquote_to_bytes(data)
    if is_in:
        assert b"Cookie7" in plain, "somebody came in without a session"
        assert method in {"GET", "HEAD"} or b"Token7" in plain, "a change without the token"
    elif said[0] < 400:
        assert any(word in plain for word in (b"Cookie7", b"Code7", b"Key7")), (
            "a way in for nothing"
        )
    return said[0] < 400


async def _knock(
    method: str, path: str, headers: list[tuple[bytes, bytes]], body: bytes, said: list[int]
) -> bool:
    """Whether the request came in. There are a session, a code that nobody used yet, and the key."""
    came: list[object] = []

    async def inside(scope: object, receive: Receive, send: Send) -> None:
        came.append(scope)
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Mapping[str, object]) -> None:
        if message["type"] == "http.response.start":
            said.append(int(str(message["status"])))

    scope = {
        "type": "http",
        "method": method,
        "path": path.partition("?")[0],
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": path.partition("?")[2].encode("utf-8", "replace"),
        "headers": headers,
        "http_version": "1.1",
        "scheme": "http",
        "server": ("127.0.0.1", 8000),
        "client": ("127.0.0.1", 50000),
    }
    keys = Keys(lambda: 0, "Key7", {"Code7": 1}, [Session("Cookie7", "Token7")])
    await Door(inside, keys, [HOST])(scope, receive, send)
    return bool(came)


def terminal(data: bytes) -> bool:
    """Text on its way to a terminal, a page or a log."""
    text = data.decode("utf-8", "surrogateescape")
    for shown in (clean(text), one_line(text)):
        bad = [
            c for c in shown if c not in "\n\t" and unicodedata.category(c) in {"Cc", "Cf", "Cs"}
        ]
        assert not bad, f"left in what is shown: {bad[:3]}"
    assert "\n" not in one_line(text)
    return clean(text) == text


def path(data: bytes) -> bool:
    """A path that an edit, an artifact or a plan names."""
    given = data.decode("utf-8", "surrogateescape")
    try:
        parts = split_path(given)
    except BugError:
        raise
    except HoldfastError:
        return False
    joined = os.path.normpath("/".join(parts))
    assert joined == given
    assert not os.path.isabs(joined)
    assert ".." not in parts
    assert "\0" not in joined
    return True


TARGETS: Mapping[str, Target] = {
    target.__name__: target for target in (plan, event, config, edit, frame, http, terminal, path)
}


def _typed(read: Callable[[], object]) -> bool:
    """Whether it was read. Let a typed error pass; a bug of ours is none."""
    try:
        read()
    except BugError:
        raise
    except HoldfastError:
        return False
    return True
