"""Reader of the V4A patch format: sections of files, `@@` anchors instead of line numbers.

*** Begin Patch
*** Update File: path/of/file
*** Move to: new/path
@@ def above():
 a line that stays
-a line that goes
+a line that comes
*** End of File
*** End Patch
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.edits.wanted import KINDS, Hunk, Row, Wanted, row_of
from holdfast.errors import EditError

_SECTION = re.compile(r"\*\*\* (Update|Add|Delete) File:(.*)$")
_MOVE = "*** Move to:"
_NUMBERS = re.compile(r"(?:-\d[\d, +]*(?:@@.*)?|\.\.\.)?$")  # as in diffs; they say nothing here
_BEGIN, _END, _EOF = "*** Begin Patch", "*** End Patch", "*** End of File"


@dataclass(slots=True)
class _Section:
    """A file while its lines are read."""

    verb: str
    path: str
    to: str | None = None
    hunks: list[Hunk] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def close(self, *, at_end: bool = False) -> None:
        """What was read so far is a hunk."""
        while self.rows and not at_end and self.rows[-1] == Row(" ", "", None):
            self.rows.pop()  # an empty line before the next section belongs to nobody
        if self.rows:
            rows = tuple(Row(row.kind, row.text, row.ending or "\n") for row in self.rows)
            self.hunks.append(Hunk(rows, anchors=tuple(self.anchors), at_end=at_end))
            self.rows, self.anchors = [], []


def is_v4a(lines: Sequence[str]) -> bool:
    return any(line.strip() == _BEGIN or _SECTION.match(line) for line in lines)


def read_v4a(lines: Sequence[str]) -> Iterator[Wanted]:
    """Each section as an edit of its own, of one patch or several; between patches anything may stand."""
    section: _Section | None = None
    is_open = names_file = False
    for number, line in enumerate(lines, start=1):
        bare = line.rstrip("\r")
        opened = _SECTION.match(bare)
        if opened or bare.rstrip() == _END:
            if section is not None:
                yield _finished(section)
            section = _Section(opened[1], opened[2].strip()) if opened else None
            is_open, names_file = is_open and bool(opened), names_file or bool(opened)
        elif bare.strip() == _BEGIN:
            is_open = True
        elif section is not None:
            _take(section, line, number)
    if not names_file:
        raise EditError("the patch names no file", hint="begin with '*** Update File: PATH'")
    if is_open:
        raise EditError("the patch is cut off: it has no end", hint=f"end it with '{_END}'")
    if section is not None:
        yield _finished(section)


def _take(section: _Section, line: str, number: int) -> None:
    bare = line.rstrip("\r")
    if bare.startswith(_MOVE):
        section.to = bare.removeprefix(_MOVE).strip()
    elif bare.rstrip() == _EOF:
        if section.verb == "Update":
            section.close(at_end=True)
    elif section.verb == "Add":
        if bare and not line.startswith("+"):
            raise EditError(
                f"line {number} of the patch is not part of the new file '{section.path}'",
                hint="begin each line of a new file with '+'",
            )
        section.rows.append(row_of("+", line[1:]) if bare else Row("+", "", None))
    elif bare.startswith("@@"):
        section.close()
        anchor = bare[2:].removesuffix("@@").strip()
        section.anchors += [] if _NUMBERS.match(anchor) else [anchor]
    elif not bare:
        section.rows.append(Row(" ", "", None))
    elif line[0] in KINDS:
        section.rows.append(row_of(KINDS[line[0]], line[1:]))
    elif section.verb == "Update":
        raise EditError(
            f"line {number} of the patch is neither kept, added nor removed: '{bare[:60]}'",
            hint="begin each line with ' ', '+' or '-'",
        )


def _finished(section: _Section) -> Wanted:
    if section.verb == "Delete":
        return Wanted(section.path, "delete")
    if section.verb == "Add":
        while section.rows and section.rows[-1].ending is None:
            section.rows.pop()  # an empty line below the file belongs to nobody
        text = "".join(row.text + (row.ending or "\n") for row in section.rows)
        return Wanted(section.path, "create", content=text.encode("utf-8", "surrogateescape"))
    section.close()
    if not section.hunks and section.to is None:
        raise EditError(
            f"the patch changes nothing in '{section.path}'", hint="add lines with '+' or '-'"
        )
    return Wanted(section.path, hunks=tuple(section.hunks), to=section.to)
