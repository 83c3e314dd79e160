"""A long-lived child process that answers over its pipes, in frames or in lines.

A frame is four bytes of length, most significant first, and that many bytes. The child reads
frames from its standard input and writes frames, and nothing else, to its standard output; or lines.
"""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
from collections.abc import Callable, Mapping, Sequence

from holdfast.errors import ProcessError
from holdfast.process.confine import Sandbox
from holdfast.process.launch import Confine, Started, check, start
from holdfast.process.lookup import find
from holdfast.process.output import Ends, Reader

_LENGTH = struct.Struct(">I")
_MOST = 2**32 - 1
_CHUNK = 2**18


class Child:
    """Owned by one event loop: started, used and killed there. One exchange at a time."""

    def __init__(
        self,
        started: Started,
        *,
        on_stderr: Callable[[bytes], None] | None,
        keep_err: int,
        most: int,
    ) -> None:
        self._started = started
        self._loop = asyncio.get_running_loop()
        self._on_stderr = on_stderr
        self._errors = Ends(keep_err)
        self._most = min(most, _MOST)
        self._received = bytearray()
        self._cut = False  # a frame was sent in part: the child can no longer tell where one begins
        self._closing: asyncio.Future[None] | None = None
        self._is_over = False  # its pipe has ended: the system says so of it a moment later
        self.was_begun = True  # false once it is gone and its sandbox could not even be made
        self._reader = Reader(started.stderr, self._take_stderr, started.strike)
        self._reader.listen()

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        mark: str,
        *,
        on_stderr: Callable[[bytes], None] | None = None,
        keep_err: int = 2**20,
        most: int = 256 * 2**20,
        confine: Confine = "auto",
        wanted: Sandbox | None = None,
    ) -> Child:
        """Start a child; frames longer than `most` are refused in both directions."""
        check(argv, cwd, env, mark)
        refused = find(argv[0], cwd, env).refusal
        if refused is not None:
            raise ProcessError(f'"{argv[0]}" is {refused.replace("_", " ")}')
        started = start(
            argv, cwd, env, mark=mark, stdin=subprocess.PIPE, confine=confine, wanted=wanted
        )
        return cls(started, on_stderr=on_stderr, keep_err=keep_err, most=most)

    @property
    def alive(self) -> bool:
        return self._closing is None and not self._is_over and not self._started.ended.done()

    @property
    def pid(self) -> int:
        """The direct child: the process itself, or bubblewrap."""
        return self._started.pid

    @property
    def stderr(self) -> bytes:
        """The first and the last of what the child wrote there."""
        return self._errors.content()[0]

    async def send(self, frame: bytes) -> None:
        """Write one frame whole. A cancellation in the middle leaves a child fit only to kill."""
        if len(frame) > self._most:
            raise ProcessError(f"a frame of {len(frame)} bytes is over the limit of {self._most}")
        if self._cut:
            raise ProcessError("an earlier frame was sent only in part", hint="kill the child")
        self._check_open()
        await self._write(_LENGTH.pack(len(frame)) + frame)

    async def send_line(self, line: bytes) -> None:
        """Write one line to a child that speaks in lines; it has no line break of its own."""
        self._check_open()
        await self._write(line + b"\n")

    async def receive_line(self) -> bytes:
        """The next line of such a child, without its end."""
        seen = 0
        while (end := self._received.find(b"\n", seen)) < 0:
            seen = len(self._received)
            if seen > self._most:
                raise ProcessError(f"a line of more than {self._most} bytes is over the limit")
            await self._fill(seen + 1)
        line = bytes(memoryview(self._received)[:end])
        del self._received[: end + 1]
        return line

    async def _write(self, content: bytes) -> None:
        self._cut = True
        view = memoryview(content)
        while view:
            try:
                view = view[os.write(self._started.stdin, view[:_CHUNK]) :]
            except BlockingIOError:
                await self._ready(self._started.stdin, write=True)
                self._check_open()
            except BrokenPipeError:
                raise self._gone() from None
        self._cut = False

    async def receive(self) -> bytes:
        """The next frame. A cancellation loses nothing: the next call goes on from there."""
        await self._fill(_LENGTH.size)
        (length,) = _LENGTH.unpack_from(self._received)
        if length > self._most:
            raise ProcessError(f"a frame of {length} bytes is over the limit of {self._most}")
        whole = _LENGTH.size + length
        await self._fill(whole)
        frame = bytes(memoryview(self._received)[_LENGTH.size : whole])
        del self._received[:whole]
        return frame

    async def kill(self) -> None:
        """End the child with every descendant; returns when all are gone. May be called again.

        Also to be called when the child ended by itself: its descendants may live, and the pipes
        are held until then.
        """
        if self._closing is not None:
            await asyncio.shield(self._closing)
            return
        self._closing = self._loop.create_future()
        try:
            await self._started.finish()
            self.was_begun = self._started.was_executed
        finally:
            self._reader.drain()
            # Before the close: the loop must not keep a number that names another pipe later.
            self._loop.remove_reader(self._started.stdout)
            self._loop.remove_writer(self._started.stdin)
            self._started.close()
            self._closing.set_result(None)

    async def _fill(self, size: int) -> None:
        while len(self._received) < size:
            self._check_open()
            # Looked at before the read: what an ended child wrote is in the pipe by then.
            has_ended = self._started.ended.done()
            try:
                chunk = os.read(self._started.stdout, _CHUNK)
            except BlockingIOError:
                if has_ended:  # a descendant holds the pipe open
                    raise self._gone() from None
                await self._ready(self._started.stdout)
                continue
            if not chunk:
                raise self._gone()
            self._received += chunk
            await asyncio.sleep(0)  # a child that never pauses must not keep others from their turn

    async def _ready(self, descriptor: int, *, write: bool = False) -> None:
        """Wait until the pipe can be used, the child has ended, or `kill` was called."""
        ready: asyncio.Future[None] = self._loop.create_future()

        def settle(*_: object) -> None:
            if not ready.done():
                ready.set_result(None)

        add = self._loop.add_writer if write else self._loop.add_reader
        remove = self._loop.remove_writer if write else self._loop.remove_reader
        add(descriptor, settle)
        self._started.ended.add_done_callback(settle)
        try:
            await ready
        finally:
            self._started.ended.remove_done_callback(settle)
            if self._closing is None or not self._closing.done():
                remove(descriptor)

    def _check_open(self) -> None:
        if self._closing is not None:
            raise ProcessError("the child was killed")
        if self._reader.error is not None:
            raise self._reader.error

    def _gone(self) -> ProcessError:
        self._is_over = True
        said = self.stderr[-2000:].decode(errors="replace").strip()
        return ProcessError("the child process ended before it answered", hint=said or None)

    def _take_stderr(self, chunk: bytes) -> None:
        self._errors.add(chunk)
        if self._on_stderr is not None:
            self._on_stderr(chunk)
