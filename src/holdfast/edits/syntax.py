"""Syntax errors that an edit brings: the count of what a parser cannot read must not rise.

A file may have errors before, and a parser may not know the newest grammar: so the counts are compared,
and nobody is asked for a clean file. The parsers are an extra (`holdfast[code]`).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

_TYPESCRIPT = ("tree_sitter_typescript", "language_typescript")
_SCRIPT = ("tree_sitter_javascript", "language")
_GRAMMARS = {
    ".py": ("tree_sitter_python", "language"),
    ".pyi": ("tree_sitter_python", "language"),
    ".js": _SCRIPT,
    ".jsx": _SCRIPT,
    ".mjs": _SCRIPT,
    ".cjs": _SCRIPT,
    ".ts": _TYPESCRIPT,
    ".mts": _TYPESCRIPT,
    ".cts": _TYPESCRIPT,
    ".tsx": ("tree_sitter_typescript", "language_tsx"),
    ".go": ("tree_sitter_go", "language"),
    ".rs": ("tree_sitter_rust", "language"),
    ".java": ("tree_sitter_java", "language"),
}
MOST_BYTES = 4 << 20  # of a file that is parsed


class Broken(NamedTuple):
    """A file with more syntax errors than before, and the line of the first one."""

    path: str
    before: int
    after: int
    line: int

    @property
    def message(self) -> str:
        was = f", it had {self.before}" if self.before else ""
        errors = "1 syntax error" if self.after == 1 else f"{self.after} syntax errors"
        return f"'{self.path}' would have {errors}{was}; the first is in line {self.line}"


class Checked(NamedTuple):
    """What was found, and the files of known languages whose parser is not installed."""

    broken: tuple[Broken, ...] = ()
    unread: tuple[str, ...] = ()


def check_syntax(files: Iterable[tuple[str, bytes | None, bytes | None]]) -> Checked:
    """Compare each file before and after an edit; None is a file that is not there."""
    broken: list[Broken] = []
    unread: list[str] = []
    for path, before, after in files:
        grammar = _GRAMMARS.get(os.path.splitext(path)[1].lower())
        if grammar is None or after is None or max(len(after), len(before or b"")) > MOST_BYTES:
            continue
        parse = _parser(*grammar)
        if parse is None:
            unread.append(path)
            continue
        new = _errors(parse(after).root_node)
        old = _errors(parse(before).root_node) if new and before else []
        if len(new) > len(old):
            broken.append(Broken(path, len(old), len(new), min(set(new) - set(old) or new)))
    return Checked(tuple(broken), tuple(unread))


@cache
def _parser(module: str, language: str) -> Callable[[bytes], Any] | None:  # types of an extra
    try:
        library = importlib.import_module("tree_sitter")
        grammar = getattr(importlib.import_module(module), language)
    except ImportError:
        return None
    parse: Callable[[bytes], Any] = library.Parser(library.Language(grammar())).parse
    return parse


def _errors(root: Any) -> list[int]:  # noqa: ANN401 - a node of a library that may not be there
    """The lines of what could not be read, or is missing; below an error nothing is counted."""
    found: list[int] = []
    pending = [root]
    while pending:
        node = pending.pop()
        if node.is_error or node.is_missing:
            found.append(node.start_point[0] + 1)
        elif node.has_error:
            pending += node.children
    return found
