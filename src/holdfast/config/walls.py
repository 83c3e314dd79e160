"""The walls as they stand here: `[limits]` of the person's own file, which a project may only lower."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, replace

from holdfast.config.settings import Files, read_files, section
from holdfast.errors import UsageError
from holdfast.model.size import bytes_of
from holdfast.model.walls import TABLE, WALLS, Lowered, Walls, key_of

SIZES = frozenset({"plan_size", "log", "artifact", "body", "frame", "ticket"})
# Beyond these the reader's own recursion, a process's memory or its file handles would be the wall.
MOST: Mapping[str, int] = {
    "plan_size": 1_000_000_000,
    "plan_steps": 10_000_000,
    "plan_depth": 200,
    "plan_aliases": 1_000_000,
    "plan_items": 10_000_000,
    "items": 10_000_000,
    "log": 256_000_000,
    "artifact": 100_000_000_000,
    "body": 1_000_000_000,
    "connections": 10_000,
    "frame": 1_000_000_000,
    "ticket": 100_000_000,
}


def read_walls(root: str, env: Mapping[str, str] = os.environ) -> Walls:
    """The walls for a project directory; UsageError names the file and the key that is wrong."""
    return walls_in(read_files(root, env))


def walls_in(files: Files) -> Walls:
    found = replace(WALLS, **_given(files.own, files.personal))
    file = f"the project's {os.path.basename(files.place)}"
    lower = {
        name: Lowered(value, file)
        for name, value in _given(files.project, files.place).items()
        if value < getattr(found, name)
    }
    return replace(found, **lower)


def _given(given: Mapping[str, object], place: str) -> dict[str, int]:
    known = {field.name for field in fields(Walls)}
    return {
        name: _amount(name, value, place)
        for name, value in section(given, TABLE, known, place).items()
    }


def _amount(name: str, value: object, place: str) -> int:
    amount = bytes_of(value) if isinstance(value, str) and name in SIZES else value
    if not isinstance(amount, int) or isinstance(amount, bool) or not 1 <= amount <= MOST[name]:
        example = " or a size such as '4 MB'" if name in SIZES else ""
        raise UsageError(
            f"'{key_of(name)}' in '{place}' must be a whole number from 1 to {MOST[name]:,}{example}"
        )
    return amount
