"""Whether files really have the lines that a program says they have, if no link is followed."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import BinaryIO, NamedTuple

from holdfast.codebase.sources import Handles

_MARK = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")


class Record(NamedTuple):
    """A line that a program told: which one it is, whether it matched, and its text."""

    number: int
    is_match: bool
    text: bytes


def untrue(root: str, told: Mapping[str, Sequence[Record]]) -> list[str]:
    """The paths of which something was told that is not there; they changed, or links led to others."""
    lost = []
    with Handles(root) as handles:
        for path in sorted(told):
            try:
                with handles.file(path) as file:
                    is_true = _has(file, told[path])
            except (OSError, UnicodeError):
                is_true = False
            if not is_true:
                lost.append(path)
    return lost


def _has(file: BinaryIO, records: Sequence[Record]) -> bool:
    wanted = sorted({record.number: _bare(record.text) for record in records}.items())
    lines = _lines(file)
    before = 0
    for number, text in wanted:
        line = next(islice(lines, number - before - 1, None), None)
        if line is None or _bare(line) != text:
            return False
        before = number
    return True


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines as ripgrep reads them: UTF-16 that says so is text, too."""
    head = file.read(2)
    file.seek(0)
    return _narrow(file) if head in _WIDE else iter(file)


def _narrow(file: BinaryIO) -> Iterator[bytes]:
    with io.TextIOWrapper(file, "utf-16", errors="replace", newline="\n") as text:
        for line in text:
            yield line.encode("utf-8", "replace")


def _bare(line: bytes) -> bytes:
    return line.removeprefix(_MARK).rstrip(b"\r\n")
