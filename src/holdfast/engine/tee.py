"""What a running attempt writes, in a file beside its private directory, for whoever looks on.

The file is no history: it is removed with the attempt's directory, and the log is stored with the fact.
If the engine dies first, the next one takes what is in the file for the log.
A full disk or a vanished directory only means that there is less to look at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress

from holdfast.model.plan import RunId, StepId
from holdfast.model.secret import Striking

MOST_BYTES = 64 * 2**20
MOST_KEPT = 16 * 2**20  # of an attempt that was broken off


def tee_path(scratch: str, run: RunId, step: StepId, attempt: int) -> str:
    """Where the output of a running attempt is."""
    return f"{scratch}/{run}/{step}.{attempt}.out"


def said_so_far(scratch: str, run: RunId, step: StepId, attempt: int) -> bytes:
    """What an attempt had written whose engine died; nothing if it wrote nothing, or knew secrets."""
    try:
        place = os.open(tee_path(scratch, run, step, attempt), os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return b""
    with os.fdopen(place, "rb") as file, suppress(OSError):
        return file.read(MOST_KEPT)
    return b""


class Onlooking:
    """Passes output on to the file and to whoever listens, without secrets, however it is cut into pieces."""

    def __init__(
        self,
        path: str,
        tell: Callable[[str, bytes], None] | None,
        hidden: Callable[[], Sequence[str]],
    ) -> None:
        self._tee = Tee(path)
        self._tell = tell
        self._hidden = hidden
        self._streams: dict[str, Striking] = {}

    def add(self, stream: str, data: bytes) -> None:
        """Take a chunk."""
        if stream not in self._streams:  # only now: who answers may have had to look for its key
            self._streams[stream] = Striking(self._hidden())
        if shown := self._streams[stream].add(data):
            self._pass_on(stream, shown)

    def close(self) -> None:
        """The attempt is over."""
        for stream, striking in self._streams.items():
            if rest := striking.rest():
                self._pass_on(stream, rest)
        self._tee.close()

    def _pass_on(self, stream: str, data: bytes) -> None:
        self._tee.add(data)
        if self._tell is not None:
            self._tell(stream, data)


class Tee:
    """Appends to the file as output comes; opened at the first byte."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None
        self._room = MOST_BYTES

    def add(self, data: bytes) -> None:
        """Take a chunk."""
        if self._room <= 0:
            return
        try:
            if self._file is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
                self._file = os.open(self._path, flags, 0o600)
            os.write(self._file, data[: self._room])
            self._room -= len(data)
        except OSError:
            self._room = 0

    def close(self) -> None:
        """The attempt is over."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            with suppress(OSError):
                os.unlink(self._path)
        self._room = 0
