"""What an edit comes to, said again: in another format, or the other way round.

What is said is read and worked out once more before it is given: it makes of the files exactly what the edit
does, or the format has no words for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from holdfast.edits.diff import difference
from holdfast.edits.formats import read_edit
from holdfast.edits.lines import Unreadable, decoded
from holdfast.edits.places import work_out
from holdfast.edits.render import added, deleted, hunks_between, search_replace, updated, v4a
from holdfast.edits.tree import quoted
from holdfast.edits.wanted import Hunk
from holdfast.edits.write import FileEdit
from holdfast.errors import EditError

_USUAL_MODE = 0o644


class _Told(NamedTuple):
    """One file before and after; `source` is where it was, if it was elsewhere."""

    path: str
    source: str | None
    old: bytes | None
    new: bytes | None
    modes: tuple[int, int]

    @property
    def place(self) -> str:
        return self.path if self.source is None else self.source


def retold(files: Iterable[FileEdit], form: str, *, reverse: bool = False) -> str:
    """The edit in a format; with `reverse` the one that takes it back. EditError if it cannot be said."""
    told = [
        _Told(file.path, file.moved_from, *file.contents, file.modes)
        for file in files
        if file.moved_to is None
    ]
    if reverse:
        told = [_turned(one) for one in told]
    said = _WRITERS[form](told) if told else ""
    _check(said, form, told)
    return said


def _turned(one: _Told) -> _Told:
    back = None if one.source is None else one.path
    return _Told(one.place, back, one.new, one.old, (one.modes[1], one.modes[0]))


def _unified(told: Sequence[_Told]) -> str:
    return "".join(
        difference(one.path, one.old, one.new, one.modes, one.source).text for one in told
    )


def _search_replace(told: Sequence[_Told]) -> str:
    return "\n".join(search_replace(one.place, _hunks(one)) for one in told)


def _v4a(told: Sequence[_Told]) -> str:
    return v4a(*map(_section, told))


def _section(one: _Told) -> str:
    if one.new is None:
        return deleted(one.path)
    if one.old is None:
        return added(one.path, [row for hunk in _hunks(one) for row in hunk.new])
    return updated(one.place, _hunks(one), None if one.source is None else one.path)


def _hunks(one: _Told) -> list[Hunk]:
    old, new = (decoded(content or b"") for content in (one.old, one.new))
    for text in (old, new):
        if isinstance(text, Unreadable):
            raise EditError(f"{quoted(one.path)} {text.message}")
    assert not isinstance(old, Unreadable)
    assert not isinstance(new, Unreadable)
    return hunks_between(old, new, unique=True)


_WRITERS: Mapping[str, Callable[[Sequence[_Told]], str]] = {
    "unified": _unified,
    "search-replace": _search_replace,
    "v4a": _v4a,
}
RETOLD = tuple(_WRITERS)


def _check(said: str, form: str, told: Sequence[_Told]) -> None:
    """EditError if what is said does not come to the same files, bytes and modes."""
    files = {one.place: one.old for one in told}
    made: Mapping[str, tuple[bytes | None, int | None]] = {}
    with suppress(EditError):  # what cannot even be read says nothing
        outcome = work_out(read_edit(said, form, files.__contains__), files.get)
        made = {file.path: (file.after, file.mode) for file in outcome.files}
    for one in told:
        content, mode = made.get(one.path, (one.old, None))
        usual = _USUAL_MODE if one.old is None else one.modes[0]
        has_mode = one.new is None or (mode or usual) == one.modes[1]
        is_left = one.source is None or one.source in made
        if content != one.new or not has_mode or not is_left:
            raise EditError(
                f"what becomes of {quoted(one.path)} cannot be said as {form}",
                hint=f"say it in another format: {', '.join(name for name in RETOLD if name != form)}",
            )
