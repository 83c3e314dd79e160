"""The edit that undoes what an edit comes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from holdfast.edits.lines import Unreadable, decoded
from holdfast.edits.outcome import Outcome
from holdfast.edits.places import digest
from holdfast.edits.render import hunks_between
from holdfast.edits.wanted import Wanted


def inverted(outcome: Outcome, read: Callable[[str], bytes | None]) -> tuple[Wanted, ...]:
    """What brings the files back; `read` gives them as they were before the edit.

    Text is brought back by hunks: what others change elsewhere in the file stays. Modes are not known here.
    """
    moved = {file.moved_from for file in outcome.files}
    found = []
    for file in outcome.files:
        if file.after is None:
            if file.path not in moved:
                found.append(Wanted(file.path, "create", content=read(file.path) or b""))
        elif file.before is not None:
            found.append(_back(file.path, file.after, read(file.path) or b""))
        elif file.moved_from is not None:
            back = _back(file.path, file.after, read(file.moved_from) or b"")
            found.append(replace(back, to=file.moved_from))
        else:
            found.append(Wanted(file.path, "delete", base=digest(file.after)))
    return tuple(found)


def _back(path: str, content: bytes, old: bytes) -> Wanted:
    """What makes a content the old one again: by hunks if it is text, and the same kind of text."""
    after, before = decoded(content), decoded(old)
    if isinstance(after, Unreadable) or isinstance(before, Unreadable):
        return Wanted(path, "replace", content=old, base=digest(content))
    if not after.lines or (before.encoding, before.mark) != (after.encoding, after.mark):
        return Wanted(path, "replace", content=old, base=digest(content))
    return Wanted(path, hunks=tuple(hunks_between(after, before)), base=digest(content))
