"""Control groups: one for a command, where this process may make any.

Version 1 has one tree for each controller, version 2 one tree for all. In version 2 a group that holds
processes cannot pass controllers on, so ours is made beside the group that this process is in.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.model.fixed import frozen
from holdfast.process.limits import Limits
from holdfast.process.tree import is_gone, namespace

_NAME = re.compile(r"holdfast-([0-9]*)-([0-9]+)\.[0-9]+\Z")
_CONTROLLERS = ("pids", "memory")
_SETTINGS = {1: "memory.limit_in_bytes", 2: "memory.max"}
_KILLS = {1: "memory.oom_control", 2: "memory.events"}

_numbers = itertools.count(1)


@frozen
class Tree:
    """Where groups with one or more controllers can be made."""

    folder: str
    version: int
    controllers: tuple[str, ...]


@dataclass(slots=True)
class Group:
    """The groups of one command, one in each tree."""

    made: list[tuple[Tree, str]] = field(default_factory=list)
    _killed: int = 0

    @property
    def controllers(self) -> tuple[str, ...]:
        return tuple(name for tree, _ in self.made for name in tree.controllers)

    def add(self, pid: int) -> None:
        """Take a process in; its children follow it."""
        for _, folder in self.made:
            _write(f"{folder}/cgroup.procs", str(pid))

    def was_short_of_memory(self) -> bool:
        """Whether a process was killed for want of memory since this was last asked."""
        kills = sum(_kills(tree, folder) for tree, folder in self.made)
        before, self._killed = self._killed, kills
        return kills > before

    def remove(self) -> None:
        """Remove the groups; one that is not empty yet stays for the next sweep."""
        while self.made:
            _, folder = self.made.pop()
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def make(limits: Limits) -> Group | None:
    """A group with these limits, empty; None where none can be made."""
    wanted = {"pids": limits.processes, "memory": limits.memory}
    group = Group()
    for tree in trees():
        bounds = {name: wanted[name] for name in tree.controllers if wanted[name] is not None}
        if not bounds:
            continue
        folder = _named(tree.folder, next(_numbers))
        try:
            os.mkdir(folder)
            group.made.append((tree, folder))
            for name, most in bounds.items():
                file = "pids.max" if name == "pids" else _SETTINGS[tree.version]
                _write(f"{folder}/{file}", str(most))
        except OSError:
            group.remove()
            return None
    return group if group.made else None


@functools.cache
def trees() -> tuple[Tree, ...]:
    """Where this process can make groups; tried once, and what dead engines left is removed."""
    found = tuple(tree for tree in _known() if _can_make(tree))
    for tree in found:
        _sweep(tree.folder)
    return found


def _known() -> Iterator[Tree]:
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            own = [line.rstrip("\n").split(":", 2) for line in file]
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            mounts = list(_mounts(file.read()))
    except (OSError, UnicodeDecodeError, ValueError):
        return
    for _, names, path in own:
        controllers = tuple(name for name in _CONTROLLERS if name in names.split(","))
        if controllers:
            for point, kind, options in mounts:
                if kind == "cgroup" and set(controllers) <= options:
                    yield Tree(_beneath(point, path), 1, controllers)
                    break
        elif not names:
            for point, kind, _ in mounts:
                if kind == "cgroup2":
                    yield from _second(_beneath(point, os.path.dirname(path)))
                    break


def _second(folder: str) -> Iterator[Tree]:
    try:
        with open(f"{folder}/cgroup.subtree_control", encoding="utf-8") as file:
            passed = file.read().split()
    except OSError:
        return
    controllers = tuple(name for name in _CONTROLLERS if name in passed)
    if controllers:
        yield Tree(folder, 2, controllers)


def _mounts(text: str) -> Iterator[tuple[str, str, set[str]]]:
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        yield before.split(" ")[4], kind, set(options.split(","))


def _beneath(point: str, path: str) -> str:
    return os.path.normpath(f"{point}/{path}")


def _named(folder: str, number: int) -> str:
    return os.path.join(folder, f"holdfast-{namespace()}-{os.getpid()}.{number}")


def _can_make(tree: Tree) -> bool:
    trial = _named(tree.folder, 0)
    try:
        os.mkdir(trial)
        os.rmdir(trial)
    except OSError:
        return False
    return True


def _sweep(folder: str) -> None:
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            owner = _NAME.match(name)
            if owner is not None and is_gone(owner[1], owner[2]):
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.join(folder, name))


def _kills(tree: Tree, folder: str) -> int:
    if "memory" not in tree.controllers:
        return 0
    try:
        with open(f"{folder}/{_KILLS[tree.version]}", encoding="utf-8") as file:
            words = file.read().split()
    except OSError:
        return 0
    return int(words[words.index("oom_kill") + 1]) if "oom_kill" in words else 0


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
