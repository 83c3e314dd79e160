"""A transport that tells when a call leaves, and reads no more of its answer than anybody could want."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from functools import partial
from typing import cast

import httpx2

MOST_BYTES = 64 << 20  # of an answer on the wire; most of it is not text
MOST_OF_AN_ERROR = 1 << 20
_ERROR = 400


# Of the call that is made in this context; libraries of vendors pass nothing else on.
LEAVES: ContextVar[Callable[[], None]] = ContextVar("leaves", default=lambda: None)


class TooLarge(Exception):  # noqa: N818 - reads as the fact it is
    """A server sent more than is read."""


class Bounded(httpx2.AsyncBaseTransport):
    """Another transport, with a bound on what comes."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.extensions = {**request.extensions, "trace": partial(_trace, LEAVES.get())}
        response = await self._inner.handle_async_request(request)
        most = MOST_OF_AN_ERROR if response.status_code >= _ERROR else MOST_BYTES
        stream = cast("httpx2.AsyncByteStream", response.stream)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_Counted(stream, most),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _trace(leaves: Callable[[], None], name: str, _: object) -> None:
    """The connection is there and nothing was written to it yet."""
    if name.endswith(".send_request_headers.started"):
        leaves()


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, most: int) -> None:
        self._stream = stream
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise TooLarge(f"more than {self._most >> 20} MB")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
