"""Reader of unified diffs, as git and diff write them and as people and models do: counts may be wrong.

A hunk ends where a line can no longer be part of it, whatever its header promised. The counts decide only
where a removed line looks like the header of the next file, and whether the end of the text cut a hunk off:
then lines are missing, and on neither side are there more than promised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from holdfast.edits.wanted import KINDS, Hunk, Row, Wanted, row_of
from holdfast.errors import EditError

_HUNK = re.compile(r"@@+ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@+ ?(.*)$")
_DIGITS = 18  # of a number that a file could have
_LOOSE = re.compile(r"@@(?: *\.\.\. *|[-+\d, ]*)(?:@@ ?(.*))?$")
_INDEX = re.compile(r"index ([0-9a-f]{7,64})\.\.")
_GIT = "diff --git "
_LEFT_OUT = re.compile(r"Only in [^:]+: \S+$|(?:Binary files|Files) .+ and .+ differ$")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_LAST = "377"  # the highest byte, in octal digits
_NOTHING = "/dev/null"
_LETTERS = frozenset("abciow12")  # that git puts before the two names of a file, each with a slash
_LEAVE_OUT = "write it with diff -N, or with git; binary files are given another way"
_EXECUTABLE, _PLAIN = 0o755, 0o644


@dataclass(slots=True)
class _File:
    """A file while its headers and hunks are read. `is_headed`: git named it, and `---` may still come.

    `prefixes` are what its two names begin with, as far as the header of git tells.
    """

    is_headed: bool = False
    prefixes: tuple[str, str] | None = None
    old: str = ""
    new: str = ""
    source: str = ""  # of `rename from`, without a prefix
    target: str = ""
    mode: int | None = None
    blob: str | None = None
    binary: bool = False
    created: bool = False
    deleted: bool = False
    hunks: list[Hunk] = field(default_factory=list)


def is_unified(lines: Sequence[str]) -> bool:
    return any(
        line.startswith(_GIT)
        or _HUNK.match(line.rstrip("\r"))
        or (line.startswith("--- ") and after.startswith("+++ "))
        for line, after in zip_longest(lines, lines[1:], fillvalue="")
    )


def read_unified(lines: Sequence[str]) -> Iterator[Wanted]:
    """Each file of the diff."""
    file: _File | None = None
    at = 0
    while at < len(lines):
        line = lines[at].rstrip("\r")
        if line.startswith(_GIT):
            if file is not None:
                yield _finished(file)
            file = _headed(line)
        elif _is_header(lines, at):
            if file is None or not file.is_headed:
                if file is not None:
                    yield _finished(file)
                file = _File()
            file.is_headed = False
            file.old, file.new = _path(line[4:]), _path(lines[at + 1].rstrip("\r")[4:])
            at += 1
        elif line.startswith("@@") and file is not None:
            hunk, at = _read_hunk(lines, at)
            if hunk.rows:
                file.hunks.append(hunk)
            continue
        elif line.startswith("@@") and _HUNK.match(line):
            raise EditError(
                f"line {at + 1} of the diff belongs to no file", hint="add '--- PATH', '+++ PATH'"
            )
        elif file is not None and not file.hunks:
            _extend(file, line)
        elif _LEFT_OUT.match(line):
            raise EditError(f"the diff leaves something out: '{line[:80]}'", hint=_LEAVE_OUT)
        at += 1
    if file is None:
        raise EditError("the diff names no file", hint="begin with '--- PATH' and '+++ PATH'")
    yield _finished(file)


def _is_header(lines: Sequence[str], at: int) -> bool:
    return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


def _extend(file: _File, line: str) -> None:
    """The lines that git puts between the names and the hunks."""
    if line.startswith("copy "):
        raise EditError(f"the diff copies '{_plain(file)[0]}'", hint="create the copy instead")
    if line.startswith("rename from "):
        file.source = _unquoted(line.removeprefix("rename from "))
    elif line.startswith("rename to "):
        file.target = _unquoted(line.removeprefix("rename to "))
    elif line.startswith(("new file mode ", "deleted file mode ", "new mode ")):
        digits = line.rsplit(" ", 1)[1]
        if digits.startswith(("120", "160")):
            raise EditError(f"the diff makes '{_plain(file)[1]}' a link or a submodule")
        file.created |= line.startswith("new file")
        file.deleted |= line.startswith("deleted")
        if not file.deleted:
            file.mode = _EXECUTABLE if digits.endswith("755") else _PLAIN
    elif named := _INDEX.match(line):
        file.blob = named[1]
    elif line.startswith(("Binary files ", "GIT binary patch")):
        file.binary = True


# Paths.


def _headed(line: str) -> _File:
    """A file that begins with `diff --git`: two names, which may hold spaces if both say the same."""
    rest = line.removeprefix(_GIT)
    if rest.startswith('"'):
        names = [_path(part) for part in re.findall(r'"(?:[^"\\]|\\.)*"|\S+', rest)]
    else:
        middle = len(rest) // 2
        names = [rest[:middle], rest[middle + 1 :]]
        if rest[middle : middle + 1] != " " or not _are_one(*names):
            old, found, new = rest.partition(" b/")
            names = [old, f"b/{new}"] if found else rest.split(" ")
    if len(names) != 2:  # noqa: PLR2004 - the lines below must name it
        return _File(is_headed=True)
    prefixes = _prefixes(*names) or ("", "")
    return _File(is_headed=True, prefixes=prefixes, old=names[0], new=names[1])


def _are_one(old: str, new: str) -> bool:
    """Whether two names of a header say the same, with prefixes or without."""
    return old == new or (_prefixes(old, new) is not None and old[2:] == new[2:])


def _prefixes(old: str, new: str) -> tuple[str, str] | None:
    """What two names begin with if git put it there: `a/` and `b/`, or other letters; None if it did not."""
    if old[1:2] == new[1:2] == "/" and {old[0], new[0]} <= _LETTERS and old[0] != new[0]:
        return old[:2], new[:2]
    return None


def _path(said: str) -> str:
    """A path as a header has it: a tab ends it, quotes may stand around it."""
    if said.startswith('"'):
        return _unquoted(said.split("\t", maxsplit=1)[0].rstrip())
    return said.split("\t", maxsplit=1)[0].rstrip()


def _unquoted(said: str) -> str:
    """As git quotes it: with escapes, and bytes as octal numbers."""
    if len(said) < 2 or not (said[0] == said[-1] == '"'):  # noqa: PLR2004
        return said
    raw = bytearray()
    for part in re.finditer(r"\\([0-7]{3})|\\(.)|([^\\]+)", said[1:-1]):
        if part[1] and part[1] > _LAST:
            raise EditError(
                f"the path {said[:80]} has '{part[0]}', which is no byte",
                hint=f"bytes go up to '\\{_LAST}'",
            )
        if part[1]:
            raw.append(int(part[1], 8))
        else:
            text = _ESCAPES.get(part[2], part[2]) if part[2] else part[3]
            raw += text.encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "surrogateescape")


def _plain(file: _File) -> tuple[str, str]:
    """Both names without the prefixes of git, if both have theirs."""
    names = (file.old, file.new)
    prefixes = file.prefixes
    if prefixes is None:
        prefixes = ("a/", "b/") if _NOTHING in names else _prefixes(*names) or ("", "")
    both = list(zip(names, prefixes, strict=True))
    if all(name == _NOTHING or name.startswith(prefix) for name, prefix in both):
        old, new = (name if name == _NOTHING else name[len(prefix) :] for name, prefix in both)
        return old, new
    return names


def _finished(file: _File) -> Wanted:
    old, new = _plain(file)
    old, new = file.source or old, file.target or new
    if file.binary:
        raise EditError(f"the diff of '{new}' is binary", hint="give the whole file another way")
    if old == _NOTHING or file.created:
        text = "".join(row.text + (row.ending or "") for h in file.hunks for row in h.new)
        content = text.encode("utf-8", "surrogateescape")
        return Wanted(new, "create", content=content, mode=file.mode)
    if new == _NOTHING or file.deleted:
        return Wanted(old, "delete", hunks=tuple(file.hunks), blob=file.blob)
    to = new if new != old else None
    if to and (file.old, file.new) == (old, new) and not file.source:
        raise EditError(
            f"the diff names two files, '{old}' and '{new}': is it about one?",
            hint="write the same name in both lines, or begin them with a/ and b/ to move the file",
        )
    if not file.hunks and to is None and file.mode is None:
        raise EditError(f"the diff changes nothing in '{old}'", hint="a hunk begins with '@@'")
    return Wanted(old, hunks=tuple(file.hunks), to=to, mode=file.mode, blob=file.blob)


# Hunks.


def _read_hunk(lines: Sequence[str], at: int) -> tuple[Hunk, int]:
    """The hunk whose header stands at `at`, and the line after it."""
    header = lines[at].rstrip("\r")
    said = _HUNK.match(header)
    start, heading = 0, ""
    left = (0, 0)
    if said:
        if any(len(number or "") > _DIGITS for number in said.groups()[:4]):
            raise EditError(
                f"line {at + 1} of the diff has a number that no file reaches: '{header[:40]}…'",
                hint="give the hunk the line that it begins at, or no numbers: '@@ @@'",
            )
        left = (int(said[2] or 1), int(said[4] or 1))
        start, heading = int(said[1]) + (left[0] == 0), said[5]
    elif loose := _LOOSE.match(header):
        heading = loose[1] or ""
    else:
        heading = header[2:].strip()
    rows: list[Row] = []
    at += 1
    while at < len(lines) and not _is_over(lines, at, left):
        row = _row(lines[at], rows)
        if row is not None:
            rows.append(row)
            left = (left[0] - (row.kind != "+"), left[1] - (row.kind != "-"))
        at += 1
    while rows and rows[-1] == Row(" ", "", None) and (left[0] < 0 or not said):
        rows.pop()  # an empty line before what comes next, not promised by the header
        left = (left[0] + 1, left[1] + 1)
    if at == len(lines) and min(left) >= 0 and max(left) > 0:
        raise EditError(
            f"the diff is cut off: its last hunk, '{header[:60]}', has fewer lines than it says",
            hint="give the whole hunk, or the counts of its lines",
        )
    whole = tuple(
        Row(row.kind, row.text, "\n" if row.ending is None else row.ending) for row in rows
    )
    return Hunk(whole, line=start, heading=heading.strip()), at


def _is_over(lines: Sequence[str], at: int, left: tuple[int, int]) -> bool:
    """Whether a line is no longer part of a hunk, of which so many old and new lines are left."""
    line = lines[at]
    if line.startswith(("@@", "diff --git ", "```", "~~~")):
        return True
    if left == (0, 0) and (line.rstrip() == "--" or (line and line[0] not in " +-\\")):
        return True  # a mail's signature, or what somebody wrote below
    follows = lines[at + 2] if at + 2 < len(lines) else ""
    return _is_header(lines, at) and follows.startswith("@@") and left != (1, 1)


def _row(line: str, rows: list[Row]) -> Row | None:
    """One line of a hunk; a note about the final newline is about the row before.

    A carriage return there is part of the line: without a newline it ends nothing.
    """
    if not line.rstrip("\r"):
        return Row(" ", "", None)
    if line[0] == "\\":
        if rows:
            last = rows[-1]
            rows[-1] = Row(last.kind, last.text + (last.ending or "").rstrip("\n"), "")
        return None
    return row_of(KINDS[line[0]], line[1:]) if line[0] in KINDS else row_of(" ", line)
