"""Read a process's pipes as data comes, and keep no more of it than allowed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from holdfast.errors import ProcessError, outside_fault

_CHUNK = 2**16  # what a pipe holds
# A pipe whose writers are all gone holds little; this bounds one that a stranger still feeds.
_DRAIN_READS = 1024


class Reader:
    """Hands every chunk of a non-blocking pipe to `take` until its end, from `listen` on.

    What `take` raises stops the reading and is kept as `error`; `failed` is called then.
    """

    def __init__(
        self, descriptor: int, take: Callable[[bytes], None], failed: Callable[[], None]
    ) -> None:
        self._descriptor = descriptor
        self._take = take
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._reading = True
        self._listening = False
        self.error: Exception | None = None

    def listen(self) -> None:
        if self._reading and not self._listening:
            self._listening = True
            self._loop.add_reader(self._descriptor, self._read)

    def stop(self) -> None:
        self._reading = False
        if self._listening:
            self._listening = False
            if not self._loop.is_closed():
                self._loop.remove_reader(self._descriptor)

    def drain(self) -> None:
        """Take what the pipe still holds, without waiting, and stop."""
        for _ in range(_DRAIN_READS):
            if not self._reading or not self._read():
                break
        self.stop()

    def _read(self) -> bool:
        try:
            chunk = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self.stop()
            return False
        try:
            self._take(chunk)
        except Exception as error:  # noqa: BLE001 - the caller's own; raised again where he waits
            self.error = error
            self.stop()
            self._failed()
        return True


class Start:
    """The first `most` bytes."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._chunks: list[bytes] = []
        self.is_over = False

    def add(self, chunk: bytes) -> bytes:
        """Keep what fits, and return it."""
        fits = chunk if len(chunk) <= self._left else chunk[: self._left]
        self.is_over = self.is_over or len(fits) < len(chunk)
        self._left -= len(fits)
        if fits:
            self._chunks.append(fits)
        return fits

    def content(self) -> bytes:
        return b"".join(self._chunks)


class Whole:
    """All of a stream in a file that is made for it and readable by its owner alone, up to `most` bytes."""

    def __init__(self, path: str, most: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            raise outside_fault(error) or ProcessError(
                f'"{path}" cannot be made for the output: {error.strerror}'
            ) from error
        self._left = most
        self.is_over = False

    def add(self, chunk: bytes) -> None:
        view = memoryview(chunk)[: self._left]
        self.is_over = self.is_over or len(view) < len(chunk)
        self._left -= len(view)
        while view:
            view = view[os.write(self._file, view) :]

    def close(self) -> None:
        os.close(self._file)


class Ends:
    """The first and the last bytes, `most` together; counts what fell out between them."""

    def __init__(self, most: int) -> None:
        self._first = Start(most // 2)
        self._most_last = most - most // 2
        self._last = bytearray()
        self._dropped = 0

    def add(self, chunk: bytes) -> None:
        self._last += chunk[len(self._first.add(chunk)) :]
        # Trimmed only at twice the size, so that each byte is moved once on average.
        if len(self._last) > 2 * self._most_last:
            self._trim()

    def content(self) -> tuple[bytes, int]:
        """What was kept, and how many bytes were dropped."""
        self._trim()
        return self._first.content() + bytes(self._last), self._dropped

    def _trim(self) -> None:
        excess = len(self._last) - self._most_last
        if excess > 0:
            del self._last[:excess]
            self._dropped += excess
