"""Symbols by name, the beginning of a name, kind or file."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.codebase.database import Value
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
    conditions, values = ["1"], list[Value]()
    scope, dot, last = (name or "").rpartition(".")
    if name:
        if prefix:
            conditions.append("name LIKE ? ESCAPE '!'")
            values.append(_literal(last) + "%")
        else:
            conditions.append("name = ? COLLATE NOCASE")
            values.append(last)
    if kind is not None:
        conditions.append("kind = ?")
        values.append(kind)
    globs = [glob_regex(glob) for glob in files]
    return [
        (path, symbol)
        for path, symbol in index.symbols(" AND ".join(conditions), values)
        if (not globs or any(glob.match(path) for glob in globs))
        and (not dot or symbol.scope == scope or symbol.scope.endswith(f".{scope}"))
        and (name is None or last.islower() or _begins(symbol.name, last, prefix=prefix))
    ]


def _begins(name: str, wanted: str, *, prefix: bool) -> bool:
    return name.startswith(wanted) if prefix else name == wanted


def _literal(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
