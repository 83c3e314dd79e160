"""A transport that tells when a call leaves, and reads no more of its answer than anybody could want.

Nothing is to be packed. Whoever packs an answer all the same has it unpacked here, piece by piece, so that
the bound holds for what is kept in memory and not only for what came over the wire.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from contextvars import ContextVar
from functools import partial
from typing import cast

import httpx2

MOST_BYTES = 64 << 20  # of an answer, packed or not; most of it is not text
MOST_OF_AN_ERROR = 1 << 20
_ERROR = 300
_OF_PACKED = ("content-encoding", "content-length")  # headers that do not hold once it is unpacked


# Of the call that is made in this context; libraries of vendors pass nothing else on.
LEAVES: ContextVar[Callable[[], None]] = ContextVar("leaves", default=lambda: None)


class TooLarge(Exception):  # noqa: N818 - reads as the fact it is
    """A server sent more than is read."""


class Bound:
    """How much may still come of an answer with this status."""

    def __init__(self, status: int) -> None:
        self._most = MOST_OF_AN_ERROR if status >= _ERROR else MOST_BYTES
        self._left = self._most

    def take(self, piece: bytes) -> bytes:
        """A piece that came; TooLarge if it is one too many."""
        self._left -= len(piece)
        if self._left < 0:
            raise TooLarge(f"more than {self._most >> 20} MB")
        return piece


class Bounded(httpx2.AsyncBaseTransport):
    """Another transport, with a bound on what comes."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.extensions = {**request.extensions, "trace": partial(_trace, LEAVES.get())}
        request.headers["accept-encoding"] = "identity"
        came = await self._inner.handle_async_request(request)
        status = came.status_code
        wire = _Counted(cast("httpx2.AsyncByteStream", came.stream), Bound(status))
        packed = httpx2.Response(status, headers=came.headers, stream=wire)
        headers = httpx2.Headers(came.headers)
        for name in _OF_PACKED:
            headers.pop(name, None)
        return httpx2.Response(
            status,
            headers=headers,
            stream=_Unpacked(packed, Bound(status)),
            extensions=came.extensions,
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _trace(leaves: Callable[[], None], name: str, _: object) -> None:
    """The connection is there and nothing was written to it yet."""
    if name.endswith(".send_request_headers.started"):
        leaves()


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, bound: Bound) -> None:
        self._stream = stream
        self._bound = bound

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield self._bound.take(piece)

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Unpacked(httpx2.AsyncByteStream):
    def __init__(self, packed: httpx2.Response, bound: Bound) -> None:
        self._packed = packed
        self._bound = bound

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(self._packed.aiter_bytes()) as pieces:
            async for piece in pieces:
                yield self._bound.take(piece)

    async def aclose(self) -> None:
        await self._packed.aclose()
