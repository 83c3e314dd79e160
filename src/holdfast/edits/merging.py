"""Three-way merges of an edit with what others made of the file since its author read it.

The edit is placed in what its author saw. What comes of it and what is there now are merged by git, by their
lines without endings; then only the lines that the merge changed are written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from holdfast.edits.compare import spans
from holdfast.edits.lines import Text
from holdfast.edits.placing import Board
from holdfast.edits.splice import rewritten, spliced
from holdfast.gitrepo.merge import merged


def merge_edit(board: Board, present: Text, base: Text) -> Text | None:
    """The file with an edit merged into it, which the board has in its base; None if that is not clean."""
    if board.troubles:
        return None
    wanted = spliced(base, [board.placed[number] for number in range(len(board.hunks))])
    return merge_whole(wanted, present, base)


def merge_whole(wanted: Text, present: Text, base: Text) -> Text | None:
    """The same for all lines as they are wanted; blanks at line ends count only if need be."""
    found = _merge(wanted, present, base, _itself)
    if found is not None:
        return found
    texts = (wanted, present, base)
    new, _, old = bare = [[line.rstrip() for line in text.lines] for text in texts]
    if all(one == text.lines for one, text in zip(bare, texts, strict=True)):
        return None  # there are no such blanks
    if spans(old, new) != spans(base.lines, wanted.lines):
        return None  # a change of such blanks is part of the edit, and would be lost
    return _merge(wanted, present, base, str.rstrip)


def _itself(line: str) -> str:
    return line


def _merge(wanted: Text, present: Text, base: Text, key: Callable[[str], str]) -> Text | None:
    ours, old, theirs = ([key(line) for line in text.lines] for text in (present, base, wanted))
    found = merged(_bytes(ours), _bytes(old), _bytes(theirs))
    if found is None:
        return None
    lines = found.decode("utf-8", "surrogateescape").split("\n")[:-1]
    full = {key(line): line for line in wanted.lines}  # with what the key leaves out
    new = replace(wanted, lines=[full.get(line, line) for line in lines])
    return rewritten(present, new, spans(ours, lines))


def _bytes(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
