"""Whether this process comes from a step or from an engine, wherever it went since.

A process comes from a step if it, or a process above it, carries the mark of an attempt in its
environment or is a slot; and from an engine if a process above it, or this one itself, drives a run: it
is one of those that a store names, or keeps the lock of a line open. A process that lost its parents
is a child of its slot, or without one of its engine, so neither `env -i` nor `setsid` nor a second fork
hides it. What lives in a pid namespace of its own sees nobody above it: then the engine cannot be seen
either, and `sees` tells that.

Where the system has no /proc there is only the own environment; where it should have one and it
cannot be read, nobody can tell.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterator

from holdfast.process.tree import MARK, Entry, environ_of, look

STEP = "HOLDFAST_STEP"
_LOCK = re.compile(r"/locks/[0-9a-f]{64}\.lock\Z")
_SLOT = os.path.join("holdfast", "process", "slot.py")


def comes_from(engines: Collection[tuple[int, str]] = ()) -> str:
    """What this process comes from, in words; empty if from neither a step nor an engine.

    `engines` are processes that are known to drive runs: pid and start time, as the kernel says it.
    """
    if STEP in os.environ:
        return f"step '{os.environ[STEP]}'"
    if MARK in os.environ:
        return "a step"
    if sys.platform == "linux" and not own_space():
        return "a place without /proc"
    for entry in _line_of(_self()):
        if _is_of_step(entry.pid):
            return "a step"
        if (entry.pid, str(entry.start)) in engines or _keeps_lock(entry.pid):
            return "an engine"
    return ""


def sees(space: str) -> bool:
    """Whether any process of this pid namespace, named as the kernel does, can be seen from here."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return False
    return any(_space_of(name) == space for name in names if name.isdecimal())


def own_space() -> str:
    """The name of the pid namespace that this process lives in; empty where nobody can tell."""
    return _space_of("self")


def _self() -> int:
    """This process as /proc knows it, which may be that of an outer pid namespace."""
    try:
        return int(os.readlink("/proc/self"))
    except (OSError, ValueError):
        return os.getpid()


def _space_of(name: str) -> str:
    try:
        return os.readlink(f"/proc/{name}/ns/pid")
    except OSError:
        return ""


def _line_of(pid: int) -> Iterator[Entry]:
    """This process, its parent, and so on; the first process of the namespace in any case."""
    if sys.platform != "linux":
        return
    seen: set[int] = set()
    while pid > 0 and pid not in seen and (entry := look(pid)) is not None:
        seen.add(pid)
        yield entry
        pid = entry.parent
    if 1 not in seen and (first := look(1)) is not None:
        yield first


def _is_of_step(pid: int) -> bool:
    words = _read(f"/proc/{pid}/cmdline").split(b"\0")
    if any(word.endswith(_SLOT.encode()) for word in words[:6]):
        return True
    names = {item.partition(b"=")[0] for item in environ_of(pid).split(b"\0")}
    return not names.isdisjoint({MARK.encode(), STEP.encode()})


def _keeps_lock(pid: int) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        return any(_LOCK.search(os.readlink(f"{folder}/{name}")) for name in os.listdir(folder))
    except OSError:  # not ours to look into, or gone meanwhile
        return False


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
