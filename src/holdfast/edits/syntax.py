"""The syntax gate: an edit must not add errors of syntax to a file that a parser knows.

Needs the parsers of the extra `code`; whoever asks for the gate imports this module.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import tree_sitter_go
import tree_sitter_java
import tree_sitter_javascript
import tree_sitter_python
import tree_sitter_rust
import tree_sitter_typescript
from tree_sitter import Language, Node, Parser

from holdfast.edits.outcome import Outcome, Planned, Refusal

_LANGUAGES: dict[str, Callable[[], object]] = {
    ".py": tree_sitter_python.language,
    ".pyi": tree_sitter_python.language,
    ".js": tree_sitter_javascript.language,
    ".mjs": tree_sitter_javascript.language,
    ".cjs": tree_sitter_javascript.language,
    ".jsx": tree_sitter_javascript.language,
    ".ts": tree_sitter_typescript.language_typescript,
    ".mts": tree_sitter_typescript.language_typescript,
    ".cts": tree_sitter_typescript.language_typescript,
    ".tsx": tree_sitter_typescript.language_tsx,
    ".go": tree_sitter_go.language,
    ".rs": tree_sitter_rust.language,
    ".java": tree_sitter_java.language,
}
_FEW = 3


def checked(
    outcome: Outcome, read: Callable[[str], bytes | None], *, refuse: bool = False
) -> Outcome:
    """The outcome with a warning for each file that has more errors than before; or a refusal."""
    warnings, refusals = [], []
    for file in outcome.files:
        before = read(file.moved_from or file.path) if _was_there(file) else None
        found = _worse(file, before)
        if found is not None:
            message, line = found
            warnings.append(f"'{file.path}' {message}")
            hint = "look at these lines; to take them as they are, leave the check out"
            refusals.append(Refusal(file.path, "syntax", message, line=line, guidance=hint))
    if refuse and refusals:
        return replace(outcome, files=(), refusals=outcome.refusals + tuple(refusals))
    return replace(outcome, warnings=outcome.warnings + tuple(warnings))


def _was_there(file: Planned) -> bool:
    return file.before is not None or file.moved_from is not None


def _worse(file: Planned, before: bytes | None) -> tuple[str, int] | None:
    if file.after is None or file.after == before:
        return None
    now = error_lines(file.path, file.after)
    if not now:
        return None
    count = len(error_lines(file.path, before) or ()) if before is not None else 0
    if len(now) <= count:
        return None
    lines = ", ".join(map(str, now[:_FEW]))
    where = f"the error is at line {lines}" if len(now) == 1 else f"errors are at the lines {lines}"
    more = len(now) - count
    what = "error" if more == 1 else "errors"
    return f"would have {more} more {what} of syntax; {where}", now[0]


def error_lines(path: str, content: bytes) -> list[int] | None:
    """The lines with errors of syntax, one for each error; None if nobody knows the language."""
    parser = _parser(os.path.splitext(path)[1].lower())
    if parser is None:
        return None
    found: list[int] = []
    pending = [parser.parse(content).root_node]
    while pending:
        node: Node = pending.pop()
        if node.is_error or node.is_missing:
            found.append(node.start_point[0] + 1)
        if node.has_error:
            pending.extend(node.children)
    return sorted(found)


@cache
def _parser(suffix: str) -> Parser | None:
    language = _LANGUAGES.get(suffix)
    return None if language is None else Parser(Language(language()))
