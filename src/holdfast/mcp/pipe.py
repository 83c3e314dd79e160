"""Standard input and output as a transport: one frame a line, each answered or passed on.

A thread reads, so that any kind of file will do. Nothing is read ahead of the server: it takes one message,
then the next is read. What else is printed in this process goes to standard error, never between frames.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server import Server
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCMessage, JSONRPCResponse, jsonrpc_message_adapter
from pydantic import ValidationError

from holdfast.mcp.frames import (
    BUSY,
    INVALID_REQUEST,
    Id,
    Message,
    Refused,
    id_of,
    is_request,
    read_frame,
    too_long,
)
from holdfast.model.digest import Json

MOST_OPEN = 64  # requests that are not answered yet
_PIECE = 64 * 1024
_SAID_OF_ALL = "Invalid request parameters"  # by the library, of whatever it cannot read
_HEARD = frozenset(
    f"notifications/{name}"
    for name in ("initialized", "cancelled", "progress", "roots/list_changed")
)
Inbox = MemoryObjectSendStream[SessionMessage | Exception]
Outbox = MemoryObjectReceiveStream[SessionMessage]


async def serve(server: Server[dict[str, object]], most: int) -> None:
    """Serve whoever is at the other end of standard input and output, until it is closed.

    A frame has at most so many bytes.
    """
    source, sink = _claimed()
    inbox, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outbox = anyio.create_memory_object_stream[SessionMessage](0)
    pipe = Pipe(source, sink, inbox, most)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pipe.send_all, outbox)
        tasks.start_soon(pipe.read_all)
        await server.run(read, write, server.create_initialization_options())
        tasks.cancel_scope.cancel()


def _claimed() -> tuple[int, int]:
    """Both ends for us alone: whatever is printed by mistake misses the frames."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


class Pipe:
    """Frames in, frames out, and which requests are open."""

    def __init__(self, source: int, sink: int, inbox: Inbox, most: int) -> None:
        self._source = source
        self._most = most
        self._sink = sink
        self._inbox = inbox
        self._open: set[Id] = set()
        self._greeted = False
        self._turn = anyio.Lock()

    async def read_all(self) -> None:
        """Read frames until there are no more, one after the other."""
        loop, ended = asyncio.get_running_loop(), anyio.Event()

        def read() -> None:
            try:
                for found in messages(self._source, self._most):
                    asyncio.run_coroutine_threadsafe(self._take(found), loop).result()
            except (OSError, RuntimeError, asyncio.CancelledError):  # it ends, or we do
                pass
            loop.call_soon_threadsafe(ended.set)

        # As a daemon it cannot keep the process alive in a read that never ends.
        threading.Thread(target=read, daemon=True, name="frames").start()
        async with self._inbox:
            await ended.wait()

    async def send_all(self, outbox: Outbox) -> None:
        """Write what the server says, as it comes."""
        async with outbox:
            async for item in outbox:
                message = item.message
                if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
                    self._open.discard(_same(message.id))
                if isinstance(message, JSONRPCError) and not self._greeted:
                    message = _ungreeted(message)
                await self._write(message.model_dump_json(by_alias=True, exclude_unset=True))

    async def _take(self, found: Message | Refused) -> None:
        """Pass a message on, or answer what is none."""
        try:
            if isinstance(found, Refused):
                raise found
            checked = _typed(found)
            self._greeted |= found.get("method") == "initialize"
            admit(self._open, found)
        except Refused as refused:
            await self._write(json.dumps(refused.answer()))
        else:
            await self._inbox.send(SessionMessage(checked))

    async def _write(self, text: str) -> None:
        async with self._turn:
            try:
                await anyio.to_thread.run_sync(_write_whole, self._sink, text.encode() + b"\n")
            except OSError:  # nobody listens any more: that is the end of the connection
                await self._inbox.aclose()


def _ungreeted(message: JSONRPCError) -> JSONRPCError:
    """An answer to somebody who has not begun: the library says only that something is wrong."""
    if message.error.message != _SAID_OF_ALL:
        return message
    words = (
        f"{_SAID_OF_ALL}: send 'initialize' first, or the protocol's version in '_meta' of 'params'"
    )
    error = message.error.model_copy(update={"message": words})
    return message.model_copy(update={"error": error})


def _typed(message: Message) -> JSONRPCMessage:
    """A message as the library has it."""
    try:
        return jsonrpc_message_adapter.validate_python(message, by_name=False)
    except ValidationError as error:
        words = "the frame is no message of JSON-RPC"
        raise Refused(INVALID_REQUEST, words, id_of(message)) from error


def admit(opened: set[Id], message: Message) -> None:
    """Note a request as open; Refused if it cannot be told from one that is, or if there are too many."""
    if message.get("method") == "notifications/cancelled":
        params = message.get("params")
        gone = id_of({"id": _at(params, "requestId")})
        if gone is not None:
            opened.discard(_same(gone))
    found = id_of(message)
    if not is_request(message) or found is None:
        return
    if _same(found) in opened:
        raise Refused(INVALID_REQUEST, f"the id '{found}' is that of an open request")
    if len(opened) >= MOST_OPEN:
        raise Refused(BUSY, f"{MOST_OPEN} requests are open: wait for an answer", found)
    opened.add(_same(found))


def _at(value: Json, name: str) -> Json:
    return value.get(name) if isinstance(value, dict) else None


def _same(found: Id) -> Id:
    """Ids that a client may mean the same by: 7 and "7"."""
    return int(found) if isinstance(found, str) and found.isdecimal() and found.isascii() else found


def messages(source: int, most: int) -> Iterator[Message | Refused]:
    """What comes in, frame by frame; news that nobody here listens to are left out."""
    for line in lines(source, most):
        try:
            if line is None:
                raise too_long(most)
            if not line.strip():
                continue
            found = read_frame(line, most)
        except Refused as refused:
            yield refused
            continue
        method = found.get("method")
        if is_request(found) or method is None or method in _HEARD:
            yield found


def lines(source: int, most: int) -> Iterator[bytes | None]:
    """Whole lines of a file; None for one that is too long, as soon as that is known."""
    kept, is_too_long = bytearray(), False
    while piece := os.read(source, _PIECE):
        *ends, rest = piece.split(b"\n")
        for end in ends:
            if not is_too_long:
                yield bytes(kept + end)
            kept, is_too_long = bytearray(), False
        if not is_too_long:
            kept += rest
        if len(kept) > most:
            yield None
            kept, is_too_long = bytearray(), True
    if kept and not is_too_long:
        yield bytes(kept)


def _write_whole(sink: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(sink, view) :]
