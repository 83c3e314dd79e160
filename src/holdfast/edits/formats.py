r"""Reader of edits in any format: it recognises search/replace blocks, diffs, V4A, whole files and JSON.

The JSON form is our own; it says everything that an edit can:

    {"edits": [
      {"path": "a.py", "base": "SHA-256", "hunks": [{"old": "x\\n", "new": "y\\n", "line": 3}]},
      {"path": "new.sh", "create": "#!/bin/sh\\n", "mode": "755"},
      {"path": "b.py", "move": "c.py", "hunks": []},
      {"path": "d.py", "header": "# licence\\n"},
      {"path": "e.py", "whole": "all of it\\n", "encoding": "latin-1"},
      {"path": "f.py", "delete": true}]}
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from holdfast.edits.blocks import Exists, fence_of, is_blocks, path_in, read_blocks, replacement
from holdfast.edits.effort import check_hunks, check_said
from holdfast.edits.unified import is_unified, read_unified
from holdfast.edits.v4a import is_v4a, read_v4a
from holdfast.edits.wanted import Hunk, Operation, Wanted
from holdfast.errors import EditError

FORMS = ("search-replace", "unified", "v4a", "whole", "json")
_WHOLE = (
    "write the path, a fence, the file, a fence; "
    "around a file that has fences, longer ones than those (````)"
)
_KEYS = {"path", "base", "hunks", "create", "mode", "move", "header", "whole", "delete", "encoding"}
_HUNK_KEYS = {"old", "new", "line"}


def _nothing_exists(_: str) -> bool:
    return False


def read_edit(
    text: str, form: str | None = None, exists: Exists = _nothing_exists
) -> tuple[Wanted, ...]:
    """What an edit wants, one entry for each file; EditError if it cannot be read.

    `exists` says whether there is such a file: it tells a path from prose where the line alone does not.

    The text of an edit may come with any line endings: those that all its lines have are the transport's.
    """
    lines = text.split("\n")
    check_said(len(lines))
    _check_encodable(text, "the edit", "surrogateescape")
    if lines and not lines[-1]:
        lines.pop()
    if lines and all(line.endswith("\r") for line in lines):
        lines = [line[:-1] for line in lines]
        text = "\n".join(lines)
    form = form or recognised(text, lines)
    if form not in FORMS:
        raise EditError(f"there is no edit format '{form}'", hint=f"one of: {', '.join(FORMS)}")
    readers: dict[str, Callable[[], Iterable[Wanted]]] = {
        "search-replace": lambda: read_blocks(lines, exists),
        "unified": lambda: read_unified(lines),
        "v4a": lambda: read_v4a(lines),
        "whole": lambda: _read_whole(lines, exists),
        "json": lambda: _read_json(text),
    }
    wanted = _joined(_counted(readers[form]()))
    if not wanted:
        raise EditError("the edit changes no file", hint=f"write it as one of: {', '.join(FORMS)}")
    return wanted


def _check_encodable(text: str, what: str, errors: str = "strict") -> None:
    """EditError for half a character: no file can hold it. One that stands for a byte may pass."""
    try:
        text.encode("utf-8", errors)
    except UnicodeEncodeError as error:
        half = text[error.start]
        raise EditError(
            f"{what} has half a character, {half!a}", hint="write whole characters, as UTF-8"
        ) from error


def recognised(text: str, lines: Sequence[str]) -> str:
    """The format of a text; EditError if it looks like none."""
    if text.lstrip().startswith(("{", "[")):
        return "json"
    if is_v4a(lines):
        return "v4a"
    if is_blocks(lines):
        return "search-replace"
    if is_unified(lines):
        return "unified"
    if any(fence_of(line) for line in lines):
        return "whole"
    raise EditError("the edit is in no known format", hint=f"one of: {', '.join(FORMS)}")


def _counted(edits: Iterable[Wanted]) -> Iterator[Wanted]:
    """The same, until there are too many: each file counts as a hunk, too."""
    count = 0
    for one in edits:
        count += len(one.hunks) or 1
        check_hunks(count)
        yield _tidy(one)


def _tidy(wanted: Wanted) -> Wanted:
    """Paths as they are compared: without `./` in front."""
    path = _bare(wanted.path)
    to = None if wanted.to is None else _bare(wanted.to)
    if not path or to == "":
        raise EditError("the edit has a file without a path")
    return replace(wanted, path=path, to=None if to == path else to)


def _bare(path: str) -> str:
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return path


def _joined(edits: Iterable[Wanted]) -> tuple[Wanted, ...]:
    """One entry for each file: blocks for the same file are hunks of one change."""
    found: dict[str, Wanted] = {}
    for one in edits:
        first = found.get(one.path)
        if first is None:
            found[one.path] = one
        elif first.operation == one.operation == "change" and not (first.to and one.to):
            found[one.path] = replace(
                first,
                hunks=first.hunks + one.hunks,
                to=first.to or one.to,
                mode=one.mode if first.mode is None else first.mode,
                base=first.base or one.base,
                blob=first.blob if first.blob == one.blob else None,
            )
        else:
            raise EditError(
                f"the edit wants two things of '{one.path}'", hint="say them in one place"
            )
    return tuple(found.values())


def _read_whole(lines: Sequence[str], exists: Exists) -> Iterator[Wanted]:
    """A path, then the whole file in a fence; a longer fence may hold shorter ones.

    Where a fence of the same length stands inside, nobody can tell which one ends the file. Then some fence
    has no path above it, or a file has a fence that opens and does not close: both are refused.
    """
    at, above = 0, ""
    while at < len(lines):
        fence = fence_of(lines[at])
        if not fence:
            above = lines[at] if lines[at].strip() else above
            at += 1
            continue
        path = path_in(above, exists)
        end = next((n for n in range(at + 1, len(lines)) if lines[n].strip() == fence), None)
        if not path or end is None:
            what = "has no end" if path else "names no file"
            raise EditError(f"the fence at line {at + 1} {what}", hint=_WHOLE)
        inside = [n for n in range(at + 1, end) if fence_of(lines[n]).startswith(fence)]
        if inside:
            raise EditError(
                f"the fence at line {inside[0] + 1} is not clear: it may be part of '{path}'",
                hint=_WHOLE,
            )
        text = "".join(f"{line}\n" for line in lines[at + 1 : end])
        content = text.encode("utf-8", "surrogateescape")
        yield Wanted(path, "whole", content=content, says_end=False)
        at, above = end + 1, ""


# JSON.


def _read_json(text: str) -> Iterator[Wanted]:
    check_said(text.count("\n") + text.count("\\n"))
    try:
        said = json.loads(text, object_pairs_hook=_object)
    except ValueError as error:
        raise EditError(f"the edit is not JSON: {error}") from error
    except RecursionError as error:
        raise EditError(
            "the edit is no edit: its JSON is nested too deep", hint='{"edits": [{"path": …}]}'
        ) from error
    edits = said.get("edits") if isinstance(said, dict) else said
    if not isinstance(edits, list):
        raise EditError("the edit has no list 'edits'", hint='{"edits": [{"path": …}]}')
    for number, one in enumerate(edits, start=1):
        where = f"entry {number} of the edit"
        if not isinstance(one, dict):
            raise EditError(f"{where} is not an object")
        yield _entry(one, where)


def _object(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """An object in which each key stands once: of two, one would be dropped without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise EditError(f"the edit has the key '{twice}' twice in one object", hint="say it once")
    return found


def _entry(said: Mapping[str, object], where: str) -> Wanted:
    _check_keys(said, _KEYS, where)
    path = _text(said, "path", where)
    given = [key for key in ("create", "whole", "header", "delete", "hunks") if key in said]
    operations: list[Operation] = [
        "change" if key == "hunks" else key  # type: ignore[misc]  # the keys are the operations' names
        for key in given
    ]
    if len(operations) > 1 or (not operations and "move" not in said and "mode" not in said):
        raise EditError(
            f"{where} ('{path}') must say one of create, whole, header, delete, hunks",
            hint="or only 'move', or only 'mode'",
        )
    operation = operations[0] if operations else "change"
    content = _text(said, operation, where) if operation in {"create", "whole", "header"} else ""
    mode = _text(said, "mode", where) if "mode" in said else ""
    if mode and not re.fullmatch(r"0?[0-7]{3}", mode):
        raise EditError(f"{where} has the mode '{mode}'", hint='as in: "755"')
    return Wanted(
        path,
        operation,
        hunks=tuple(_hunks(said, where)),
        content=content.encode(),
        to=_text(said, "move", where) if "move" in said else None,
        mode=int(mode, 8) if mode else None,
        base=_text(said, "base", where) if said.get("base") is not None else None,
        encoding=_text(said, "encoding", where) if "encoding" in said else "",
    )


def _hunks(said: Mapping[str, object], where: str) -> Iterator[Hunk]:
    given = said.get("hunks", [])
    if not isinstance(given, list):
        raise EditError(f"the hunks of {where} are not a list")
    for number, one in enumerate(given, start=1):
        check_hunks(number)
        what = f"hunk {number} of {where}"
        if not isinstance(one, dict):
            raise EditError(f"{what} is not an object")
        _check_keys(one, _HUNK_KEYS, what)
        line = one.get("line", 0)
        if not isinstance(line, int) or isinstance(line, bool) or line < 0:
            raise EditError(f"{what} has a line that is no number", hint="lines count from 1")
        old, new = (_lines(_text(one, key, what)) for key in ("old", "new"))
        yield replace(replacement(old, new), line=line)


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _check_keys(said: Mapping[str, object], known: set[str], where: str) -> None:
    for key in said:
        if key not in known:
            raise EditError(
                f"{where} has an unknown key '{key}'", hint=f"known: {', '.join(sorted(known))}"
            )


def _text(said: Mapping[str, object], key: str, where: str) -> str:
    value = said.get(key)
    if not isinstance(value, str):
        raise EditError(f"'{key}' of {where} must be a text")
    _check_encodable(value, f"'{key}' of {where}")
    return value
