"""Find a command's processes, wherever they went, and end them.

A process belongs to a command by descent, by its session, or by the mark in its environment. Only
one that did all three of these escapes: left the session, lost its parents, cleared its
environment. A pid namespace has no such gap; this is what is left where there is none.

Processes are told apart by pid and start time, and signalled through a pidfd, so that a reused pid
is never hit. Linux only: without /proc nothing is found, and the process group is all there is.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable

from holdfast.errors import ProcessError
from holdfast.model.fixed import frozen

MARK = "HOLDFAST_MARK"

_SET_CHILD_SUBREAPER = 36  # from linux/prctl.h
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of linux/sched.h
_DEAD = frozenset({b"Z", b"X"})
_POLL_SECONDS = 0.01
_LOOKS, _LOOK_SECONDS = 500, 0.001  # at a process that becomes another program
# Descriptors held at once while waiting for killed processes; a fork bomb leaves thousands.
BATCH = 64
_SLOT = re.compile(r"slot#([0-9]*):([0-9]+)\.")

# The processes this one started itself: whoever started them takes their exit status. Process-wide,
# as the table of children is.
roots: set[int] = set()


@frozen
class Entry:
    """One line of the process table."""

    pid: int
    parent: int
    session: int
    start: int
    is_zombie: bool


def clock() -> int:
    """A little before now in the unit of `Entry.start`: what starts later is not older."""
    if sys.platform != "linux":
        return 0
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")) - 1


def look(pid: int) -> Entry | None:
    try:
        fields = _stat(pid)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    return Entry(
        pid=pid,
        parent=int(fields[1]),
        session=int(fields[3]),
        start=int(fields[19]),
        is_zombie=fields[0] in _DEAD,
    )


def _stat(pid: int) -> list[bytes]:
    """What the kernel tells of a process, from its state on."""
    with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
        line = file.read(4096)
    # The name in brackets may itself hold spaces and brackets.
    return line[line.rindex(b")") + 2 :].split()


def environ_of(pid: int) -> bytes:
    """The environment that a process was started with; nothing if it has none, or is not ours to read.

    While a process becomes another program it has none for a moment. That one is waited for: whoever took it
    for a stranger then would let it live.
    """
    for _ in range(_LOOKS):
        try:
            with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
                if content := file.read():
                    return content
            if _has_none(_stat(pid)):
                break
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            break
        time.sleep(_LOOK_SECONDS)
    return b""


def _has_none(fields: list[bytes]) -> bool:
    """Whether a process has an empty environment, and not only none yet: it has been given its place."""
    state, flags, start, end = fields[0], int(fields[6]), int(fields[47]), int(fields[48])
    return state in _DEAD or bool(flags & _KERNEL_THREAD) or start == end != 0


def mark_of(pid: int) -> str | None:
    content = b"\0" + environ_of(pid)
    name = f"\0{MARK}=".encode()
    at = content.find(name)
    if at < 0:
        return None
    return os.fsdecode(content[at + len(name) :].split(b"\0", 1)[0])


def snapshot() -> dict[int, Entry]:
    if sys.platform != "linux":
        return {}
    entries = (look(int(name)) for name in os.listdir("/proc") if name.isdecimal())
    return {entry.pid: entry for entry in entries if entry is not None}


@functools.cache
def adopt_orphans(_pid: int) -> bool:
    """Make this process the parent of every orphan below it, instead of the machine's init.

    Called with the own pid, because a fork does not inherit the setting.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def adopted() -> list[int] | None:
    """The children of this process's main thread, where the kernel puts orphans; None if unknown.

    One read instead of the whole process table: this runs after every command.
    """
    own = os.getpid()
    try:
        with open(f"/proc/{own}/task/{own}/children", "rb") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return None


def open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where there is no such thing.

    A process that is gone raises `ProcessLookupError`.
    """
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:
        return None


def signal_entry(entry: Entry, number: signal.Signals) -> bool:
    """Signal exactly that process; False if it is not ours to signal or already gone."""
    try:
        descriptor = open_pidfd(entry.pid)
    except ProcessLookupError:
        return False
    try:
        now = look(entry.pid)
        if now is None or now.start != entry.start:
            return False
        if descriptor is None:
            os.kill(entry.pid, number)
        else:
            signal.pidfd_send_signal(descriptor, number)
    except (ProcessLookupError, PermissionError):
        return False
    else:
        return True
    finally:
        if descriptor is not None:
            os.close(descriptor)


def reap(pid: int) -> bool:
    """Take the exit status of an adopted child; True unless it is a child that still runs."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


class Family:
    """The processes for which `belongs` holds, and their descendants, also once orphaned."""

    def __init__(self, belongs: Callable[[Entry], bool]) -> None:
        self._belongs = belongs
        self._known: set[tuple[int, int]] = set()
        self._beyond: set[tuple[int, int]] = set()  # not ours to signal
        self.ended: set[tuple[int, int]] = set()

    def strike(self) -> list[Entry]:
        """Kill every member; return those killed now, which may take a moment to be gone.

        All are stopped before any is killed: a stopped process forks no more and its children
        still name it as their parent. Repeat until nothing is returned.
        """
        stopped: set[tuple[int, int]] = set()
        while True:
            living = self._living()
            fresh = [entry for entry in living if (entry.pid, entry.start) not in stopped]
            if not fresh:
                break
            for entry in fresh:
                stopped.add((entry.pid, entry.start))
                if not signal_entry(entry, signal.SIGSTOP):
                    self._beyond.add((entry.pid, entry.start))
        for entry in living:
            signal_entry(entry, signal.SIGKILL)
            self.ended.add((entry.pid, entry.start))
        return living

    def _living(self) -> list[Entry]:
        table = snapshot()
        spared = _ancestors(table, os.getpid())
        seeds = {
            entry.pid
            for entry in table.values()
            if entry.pid not in spared
            and ((entry.pid, entry.start) in self._known or self._belongs(entry))
        }
        living = []
        for pid in _descendants(table, seeds) - spared:
            entry = table[pid]
            self._known.add((entry.pid, entry.start))
            if not entry.is_zombie:
                if (entry.pid, entry.start) not in self._beyond:
                    living.append(entry)
            elif entry.parent == os.getpid() and entry.pid not in roots:
                reap(entry.pid)
        return living


def _ancestors(table: dict[int, Entry], pid: int) -> set[int]:
    found: set[int] = set()
    while pid in table and pid not in found:
        found.add(pid)
        pid = table[pid].parent
    return found


def _descendants(table: dict[int, Entry], seeds: Iterable[int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for entry in table.values():
        children.setdefault(entry.parent, []).append(entry.pid)
    found: set[int] = set()
    waiting = list(seeds)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting.extend(children.get(pid, ()))
    return found


@functools.cache
def namespace() -> str:
    """The pid namespace of this process; empty where there is none."""
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return ""


def owner() -> str:
    """How this engine is named in the marks of what it starts."""
    return f"{namespace()}:{os.getpid()}"


def is_gone(there: str, pid: str) -> bool:
    """Whether a process of this very namespace is no more; of others nothing is known."""
    return there == namespace() and not os.path.exists(f"/proc/{pid}")


def sweep(mark_prefix: str) -> int:
    """End every process whose mark starts so, with its descendants; return how many there were.

    This process and its ancestors are spared. End the prefix with a separator if one mark may be
    the beginning of another. A no-op where there is no /proc.
    """
    if not mark_prefix:
        raise ProcessError("a sweep needs a mark", hint="an empty one would match every command")
    return _end(Family(lambda entry: (mark_of(entry.pid) or "").startswith(mark_prefix)))


def sweep_slots() -> int:
    """End what is left of slots whose engine is gone; return how many processes there were.

    Bubblewrap ends with its engine, but a process that it had just made, and not yet let begin, waits for
    ever. A number that is in use again is spared: it may be another engine's. So is whatever an engine in
    another pid namespace started, as in a container: its number means nothing here.
    """

    def is_left(entry: Entry) -> bool:
        engine = _SLOT.match(mark_of(entry.pid) or "")
        return engine is not None and is_gone(engine[1], engine[2])

    return _end(Family(is_left))


def _end(family: Family) -> int:
    while struck := family.strike():
        for entry in struck[:BATCH]:
            _wait_gone(entry)
    return len(family.ended)


def _wait_gone(entry: Entry) -> None:
    try:
        descriptor = open_pidfd(entry.pid)
    except ProcessLookupError:
        return
    if descriptor is None:
        time.sleep(_POLL_SECONDS)  # the next strike looks again
        return
    try:
        now = look(entry.pid)
        if now is not None and now.start == entry.start:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll()
    finally:
        os.close(descriptor)
