"""Find a command's program, and say before the start whether it can be executed at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import Literal, NamedTuple

from holdfast.errors import ProcessError

Refusal = Literal["not_found", "not_executable"]

# What the kernel reads of a file to learn how to execute it.
_HEAD = 256
# The kernel follows a script whose interpreter is a script this far.
_DEPTH = 4


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
    found: Refusal = "not_found"
    for folder in env.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        match _examine(os.path.join(cwd, path), cwd, _DEPTH):
            case None:
                return Program(path)
            case "not_executable":
                found = "not_executable"
            case "not_found":
                pass
    return Program(name, found)


def _examine(path: str, cwd: str, depth: int) -> Refusal | None:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return "not_found"
    if not stat.S_ISREG(mode) or not os.access(path, os.X_OK):
        return "not_executable"
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except PermissionError:
        return None  # executable but not readable: a program, for a script must be readable
    if not head.startswith(b"#!"):
        return None if b"\0" in head else "not_executable"
    words = head[2:].split(b"\n", 1)[0].split()
    if not words or depth == 0:
        return "not_executable"
    return _examine(os.path.join(cwd, os.fsdecode(words[0])), cwd, depth - 1)
