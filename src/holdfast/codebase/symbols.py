"""Symbols by name, the beginning of a name, kind or file."""

from __future__ import annotations

import os
from collections.abc import Sequence

from holdfast.codebase.facts import Symbol
from holdfast.codebase.index import Index
from holdfast.model.glob import glob_regex


def find_symbols(
    index: Index,
    name: str | None = None,
    *,
    prefix: bool = False,
    kind: str | None = None,
    files: Sequence[str] = (),
) -> list[tuple[str, Symbol]]:
    """Symbols with their files, sorted by file and line.

    A name may have a scope before it: `Session.open`. A name all in small letters also finds capitals.
    """
    name = name and os.fsencode(name).decode("utf-8", "replace")  # as names are kept
    scope, dot, last = (name or "").rpartition(".")
    globs = [glob_regex(glob) for glob in files]
    return [
        (path, symbol)
        for path, symbol in index.symbols(last)
        if (not globs or any(glob.match(path) for glob in globs))
        and (kind is None or symbol.kind == kind)
        and (not dot or symbol.scope == scope or symbol.scope.endswith(f".{scope}"))
        and (not name or _fits(symbol.name, last, prefix=prefix))
    ]


def _fits(name: str, wanted: str, *, prefix: bool) -> bool:
    seen = name.lower() if wanted.islower() else name
    return seen.startswith(wanted) if prefix else seen == wanted
