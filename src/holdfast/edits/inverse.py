"""The edit that undoes what an edit comes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from holdfast.edits.lines import Unreadable, decoded
from holdfast.edits.outcome import Outcome, Planned
from holdfast.edits.places import digest
from holdfast.edits.render import hunks_between
from holdfast.edits.wanted import Wanted


def inverted(outcome: Outcome, read: Callable[[str], bytes | None]) -> tuple[Wanted, ...]:
    """What brings the files back; `read` gives them as they were before the edit.

    Files that keep their path are brought back by hunks: what others change elsewhere in them stays.
    """
    moved = {file.moved_from for file in outcome.files if file.moved_from is not None}
    there = {file.path: file for file in outcome.files}
    found = []
    for file in outcome.files:
        if file.moved_from is not None and file.before is None:
            back = _hunks(file, read(file.moved_from) or b"")
            found.append(replace(back, to=file.moved_from))
        elif file.after is None and file.path not in moved:
            found.append(Wanted(file.path, "create", content=read(file.path) or b""))
        elif file.before is None:
            assert file.after is not None  # nothing becomes nothing in no edit
            found.append(Wanted(file.path, "delete", base=digest(file.after)))
        elif file.after is not None:
            found.append(_hunks(file, read(file.path) or b""))
    return tuple(one for one in found if one.path in there)


def _hunks(file: Planned, old: bytes) -> Wanted:
    """What makes the new content the old one again."""
    assert file.after is not None
    base = digest(file.after)
    before, after = decoded(old), decoded(file.after)
    is_text = not isinstance(before, Unreadable) and not isinstance(after, Unreadable)
    if not is_text or (before.encoding, before.mark) != (after.encoding, after.mark):  # type: ignore[union-attr]
        return Wanted(file.path, "replace", content=old, base=base)
    assert not isinstance(before, Unreadable)
    assert not isinstance(after, Unreadable)
    if not after.lines:
        return Wanted(file.path, "replace", content=old, base=base)
    return Wanted(file.path, hunks=tuple(hunks_between(after, before)), base=base)
