"""What the path of a plan tells, and the name of its line without reading all of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import yaml

from holdfast.errors import PlanError
from holdfast.formats.nodes import (
    BOUNDS,
    FASTEST,
    Bounds,
    ParserEvent,
    as_yaml,
    decode,
    reads_as_text,
)
from holdfast.formats.problems import Problems
from holdfast.model.expression import OPEN

_LONGEST = 255
_NAMES = frozenset({"name", "graph_id"})  # of a plan, of an execution graph
_CHECK_EVERY = 2047


def plan_name(path: str, bounds: Bounds = BOUNDS) -> str | None:
    """The name that a load would give the line; None if only a load can tell, or say what is wrong."""
    if python_part(path)[0]:
        return None
    try:
        with Path(path).open("rb") as stream:
            text = decode(stream.read(bounds.size + 1), Problems(path), bounds)
        events = FASTEST((as_yaml(text) if path.endswith(".json") else text).encode())
        found = _under(_NAMES, events.get_event)
    except (OSError, PlanError, yaml.YAMLError, ValueError, RecursionError, MemoryError):
        return None
    if found is None:
        return None
    name = found or Path(path).stem
    usable = name.strip() and name.isprintable() and len(name) <= _LONGEST and OPEN not in name
    return name if usable else None


def python_part(path: str) -> tuple[str, str]:
    """The Python file that a path names, and the plan in it if it says which; nothing for other files."""
    file, sign, name = path.rpartition(":")
    if sign and file.endswith(".py") and name.isidentifier():
        return file, name
    return (path, "") if path.endswith(".py") else ("", "")


def _under(keys: frozenset[str], following: Callable[[], ParserEvent]) -> str | None:
    """The text under the first of some keys of the top mapping; empty if none of them is there."""
    started = time.thread_time()
    depth = count = 0
    is_key = False
    while True:
        event = following()
        kind: type[object] = type(event)
        count += 1
        if kind is yaml.StreamEndEvent:
            return ""
        if depth > BOUNDS.depth or (
            not count & _CHECK_EVERY and time.thread_time() - started > BOUNDS.seconds
        ):
            return None
        if kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            if not depth and kind is yaml.SequenceStartEvent:
                return None
            depth += 1
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            depth -= 1
        elif depth == 1 and is_key and kind is yaml.ScalarEvent and event.value in keys:
            return _text(following())
        if depth == 1:
            is_key = not is_key


def _text(event: ParserEvent) -> str | None:
    kind: type[object] = type(event)
    is_text = kind is yaml.ScalarEvent and event.tag is None
    return event.value or None if is_text and (event.style or reads_as_text(event.value)) else None
