"""Find a command's program, and say before the start whether it can be executed at all."""

from __future__ import annotations

import functools
import os
import stat
import time
from collections.abc import Mapping
from typing import Literal, NamedTuple

from holdfast.errors import ProcessError

Refusal = Literal["not_found", "not_executable"]

# What the kernel reads of a file to learn how to execute it.
_HEAD = 256
# The kernel follows a script whose interpreter is a script this far.
_DEPTH = 4
# A file younger than this could change once more without its stamp telling.
_SETTLED_NS = 100_000_000


class Program(NamedTuple):
    """Where a program is; or, if it cannot be executed, why."""

    path: str
    refusal: Refusal | None = None


def find(name: str, cwd: str, env: Mapping[str, str]) -> Program:
    """Look for `name` from `cwd` with the PATH of `env`.

    A text file without `#!` is refused: some ways of starting hand it to `/bin/sh`, others fail,
    and a step must not depend on which of them a machine has.
    """
    if not os.path.isdir(cwd):
        raise ProcessError(f'the working directory "{cwd}" does not exist')
    if "/" in name:
        return Program(name, _examine(os.path.join(cwd, name), cwd, _DEPTH))
    places = _places(name, env.get("PATH", os.defpath))
    for path in places:
        whole = path if path.startswith("/") else os.path.join(cwd, path)
        if os.access(whole, os.X_OK) and _examine(whole, cwd, _DEPTH) is None:
            return Program(path)
    reasons = {_examine(os.path.join(cwd, path), cwd, _DEPTH) for path in places}
    return Program(name, "not_executable" if "not_executable" in reasons else "not_found")


@functools.lru_cache(maxsize=256)
def _places(name: str, path: str) -> tuple[str, ...]:
    return tuple(os.path.join(folder, name) for folder in path.split(os.pathsep))


def _examine(path: str, cwd: str, depth: int) -> Refusal | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return "not_found"
    if not stat.S_ISREG(found.st_mode) or not os.access(path, os.X_OK):
        return "not_executable"
    interpreter = _interpreter(path, found)
    if not interpreter or depth == 0:
        return None if interpreter is None else "not_executable"
    return _examine(os.path.join(cwd, interpreter), cwd, depth - 1)


def _interpreter(path: str, found: os.stat_result) -> str | None:
    """What a script names after `#!`, empty if it should and does not; None for a program."""
    if time.time_ns() - found.st_ctime_ns < _SETTLED_NS:
        return _first_line(path)
    return _known_line(path, found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns)


@functools.lru_cache(maxsize=256)
def _known_line(path: str, *_stamp: int) -> str | None:
    return _first_line(path)


def _first_line(path: str) -> str | None:
    try:
        with open(path, "rb", buffering=0) as file:
            head = file.read(_HEAD)
    except PermissionError:
        return None  # executable but not readable: a program, for a script must be readable
    if not head.startswith(b"#!"):
        return None if b"\0" in head else ""
    words = head[2:].split(b"\n", 1)[0].split()
    return os.fsdecode(words[0]) if words else ""
