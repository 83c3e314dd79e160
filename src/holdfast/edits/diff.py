"""What an edit does to one file: its lines counted, and shown as git shows them."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from holdfast.edits.compare import spans
from holdfast.edits.lines import Unreadable, decoded
from holdfast.edits.render import Lines, hunks_of, numbered

_NAMED_APART = re.compile(r'["\\\x00-\x1f\x7f]')
_NO_FILE = "/dev/null"
_NAME = 12  # digits of a name


def blob_name(content: bytes) -> str:
    """How git names a content."""
    whole = b"blob %d\0%b" % (len(content), content)
    return hashlib.sha1(whole, usedforsecurity=False).hexdigest()


class Stat(NamedTuple):
    """How many lines an edit adds to a file and takes from it."""

    added: int
    removed: int


class Difference(NamedTuple):
    """The change of one file as a unified diff, and counted."""

    text: str
    stat: Stat


def difference(
    path: str,
    old: bytes | None,
    new: bytes | None,
    modes: tuple[int, int] = (0o644, 0o644),
    source: str | None = None,
) -> Difference:
    """The change of one file; None is a file that is not there.

    With a `source`, `old` is what stood there, and the file was moved from there. Bytes that are no text are
    lone surrogates in the diff; UTF-16 is shown as the text that it is.
    """
    head = _head(path, old, new, modes, source)
    if old is not None and old == new:
        return Difference("\n".join(head) + "\n", Stat(0, 0))
    came_from = path if source is None else source
    names = [
        _NO_FILE if content is None else _quoted(f"{side}/{name}")
        for side, name, content in (("a", came_from, old), ("b", path, new))
    ]
    shown = [_shown_lines(content or b"") for content in (old, new)]
    before, after = (
        one if one is not None else _raw_lines(content or b"")
        for one, content in zip(shown, (old, new), strict=True)
    )
    found = spans(before, after)
    stat = Stat(sum(d - c for _, _, c, d in found), sum(b - a for a, b, _, _ in found))
    if None in shown:
        head.append(f"Binary files {names[0]} and {names[1]} differ")
        return Difference("\n".join(head) + "\n", stat)
    head.append(f"index {_shortened(old)}..{_shortened(new)}")
    if found:
        ends = ["\t" if " " in name else "" for name in names]
        head += [f"--- {names[0]}{ends[0]}", f"+++ {names[1]}{ends[1]}"]
    return Difference("\n".join(head) + "\n" + numbered(hunks_of(before, after, found)), stat)


def _head(
    path: str, old: bytes | None, new: bytes | None, modes: tuple[int, int], source: str | None
) -> list[str]:
    """What git says before the names of a diff."""
    came_from = path if source is None else source
    head = [f"diff --git {_quoted(f'a/{came_from}')} {_quoted(f'b/{path}')}"]
    if old is None:
        head.append(f"new file mode 100{modes[1]:o}")
    elif new is None:
        head.append(f"deleted file mode 100{modes[0]:o}")
    elif modes[0] != modes[1]:
        head += [f"old mode 100{modes[0]:o}", f"new mode 100{modes[1]:o}"]
    if source is not None:
        head += [f"rename from {_quoted(source)}", f"rename to {_quoted(path)}"]
    return head


def _shortened(content: bytes | None) -> str:
    """The beginning of git's name of a content: who reads the diff can tell whether the file is that one."""
    return "0" * _NAME if content is None else blob_name(content)[:_NAME]


def _quoted(name: str) -> str:
    """A name as git writes it: in quotes if it has signs that would end it, or nobody sees."""
    if not _NAMED_APART.search(name):
        return name
    signs = (
        f"\\{c}" if c in '"\\' else f"\\{ord(c):03o}" if c < " " or c == "\x7f" else c for c in name
    )
    return f'"{"".join(signs)}"'


def _shown_lines(content: bytes) -> Lines | None:
    """The lines with their endings as they are; those of UTF-16 as text; None if it is no text."""
    if b"\0" not in content:
        return _raw_lines(content)
    text = decoded(content)
    if isinstance(text, Unreadable):
        return None
    return list(zip(text.lines, text.endings, strict=True))


def _raw_lines(content: bytes) -> Lines:
    """The lines as git knows them: only a line feed ends one."""
    *lines, last = content.decode("utf-8", "surrogateescape").split("\n")
    return [(line, "\n") for line in lines] + ([(last, "")] if last else [])
