"""Patterns that are compiled when they are first used: most commands use few of those they load."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any


class Pattern:
    """As `re.Pattern` for text; each way to use it is that of the compiled one from its first use on."""

    match: Callable[..., re.Match[str] | None]
    fullmatch: Callable[..., re.Match[str] | None]
    search: Callable[..., re.Match[str] | None]
    finditer: Callable[..., Iterator[re.Match[str]]]
    findall: Callable[..., list[Any]]
    split: Callable[..., list[Any]]
    sub: Callable[..., str]
    subn: Callable[..., tuple[str, int]]
    pattern: str

    def __init__(self, written: str, flags: int = 0) -> None:
        self._written = written
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):  # asked for by those who copy or show things
            raise AttributeError(name)
        found = getattr(re.compile(self._written, self._flags), name)
        self.__dict__[name] = found
        return found
