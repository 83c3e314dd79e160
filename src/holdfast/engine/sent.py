"""Which calls of models have left this machine, for whoever settles them after their engine was killed.

A line is written before the first byte of a call and not synced: it outlasts the death of its writer, but not
that of the machine. So the notes say something only on the machine that wrote them, since it was started, and
only once their writer is gone, which a lock tells. Otherwise any call may have been sent.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import NamedTuple, Protocol

from holdfast.model.event import AttemptStarted
from holdfast.model.plan import RunId, StepId

NOTES = "calls.sent"  # in the private directory of a run
_UNKNOWN = "unknown"


class Call(NamedTuple):
    """One call of a run."""

    step: StepId
    attempt: int
    number: int


class Sent(Protocol):
    """Knows which calls were sent."""

    def unsent(self, started: AttemptStarted, numbers: Iterable[int]) -> tuple[int, ...]:
        """Those calls of an attempt that certainly never left."""


class Notes:
    """The notes of an engine that drives a run."""

    def __init__(self, scratch: str, run: RunId, boot: str) -> None:
        self._path = _path(scratch, run)
        self._boot = boot
        self._sent: set[Call] = set()
        self._file: int | None = None
        self._has_begun = boot.startswith(_UNKNOWN)

    def begin(self) -> None:
        """A call is about to be stored: from now on a missing line says something."""
        if self._has_begun:
            return
        self._has_begun = True
        with suppress(OSError):  # then nobody will know which calls were sent
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            self._file = _begun(self._path, self._boot)

    def sending(self, call: Call) -> None:
        """A call is about to leave; if that cannot be noted, the notes are worth nothing any more."""
        self._sent.add(call)
        if self._file is None:
            return
        try:
            os.write(self._file, _line(call))
        except OSError:
            os.unlink(self._path)
            self.close()

    def unsent(self, started: AttemptStarted, numbers: Iterable[int]) -> tuple[int, ...]:
        """As Sent has it."""
        return _without(self._sent, started, numbers)

    def close(self) -> None:
        """The run rests."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class Left:
    """What the notes of a dead engine say; nothing, if there is any doubt."""

    def __init__(self, scratch: str, run: RunId, boot: str) -> None:
        self._sent: set[Call] | None = None
        with suppress(OSError, ValueError):
            self._sent = _read(_path(scratch, run), boot)

    def unsent(self, started: AttemptStarted, numbers: Iterable[int]) -> tuple[int, ...]:
        """As Sent has it."""
        return () if self._sent is None else _without(self._sent, started, numbers)


def _path(scratch: str, run: RunId) -> str:
    return os.path.join(scratch, run, NOTES)


def _begun(path: str, boot: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(path, flags, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(file, f"{boot}\n".encode())
    except OSError:
        os.close(file)
        raise
    return file


def _read(path: str, boot: str) -> set[Call] | None:
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(file, encoding="utf-8") as notes:
        fcntl.flock(notes, fcntl.LOCK_SH | fcntl.LOCK_NB)  # refused while the writer lives
        first, *lines = notes.read().split("\n")
    if first != boot:
        return None
    return {_call(line) for line in lines if line}


def _line(call: Call) -> bytes:
    return f"{call.attempt} {call.number} {call.step}\n".encode()


def _call(line: str) -> Call:
    attempt, number, step = line.split(" ", 2)
    return Call(StepId(step), int(attempt), int(number))


def _without(
    sent: Collection[Call], started: AttemptStarted, numbers: Iterable[int]
) -> tuple[int, ...]:
    step, attempt = started.step, started.attempt
    return tuple(n for n in numbers if Call(step, attempt, n) not in sent)
