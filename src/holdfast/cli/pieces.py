"""How the contents of two sides differ, file by file: as text, as JSON, or only by size."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Literal, NamedTuple, cast

from holdfast.cli.measure import size_words
from holdfast.core.compare import ValueChange, line_counts, text_change, value_changes
from holdfast.errors import IntegrityError, UsageError
from holdfast.model.artifact import Entry
from holdfast.model.digest import Digest, Json
from holdfast.model.plan import StepId
from holdfast.ports import Store

How = Literal["text", "json", "binary", "long", "mode", "added", "removed", "gone"]
LARGEST = 16 * 2**20  # bytes; larger contents are told apart, not compared


class Piece(NamedTuple):
    """One file of a step that is not the same on both sides; a path of '' is what the step printed."""

    step: StepId
    path: str
    how: How
    before: Digest | None
    after: Digest | None
    sizes: tuple[int, int] = (0, 0)
    lines: tuple[str, ...] = ()
    changes: tuple[ValueChange, ...] = ()

    @property
    def name(self) -> str:
        """The file, or the step itself if it writes none."""
        return self.path or self.step

    def words(self) -> str:
        """The difference in one phrase."""
        old, new = (size_words(size) for size in self.sizes)
        match self.how:
            case "text":
                added, removed = line_counts(self.lines)
                return f"+{added} −{removed} lines"
            case "json":
                count = len(self.changes)
                return f"{count} value{'s' if count != 1 else ''} changed"
            case "binary":
                return f"binary, {old} → {new}"
            case "long":
                return f"too long to compare, {old} → {new}"
            case "mode":
                return "only the executable bit differs"
            case "added":
                return f"added, {new}"
            case "removed":
                return f"removed, {old}"
            case "gone":
                return "differs; its content is no longer kept"


class Contents:
    """Gives the content of an entry: from the store, or from the project if it lies there."""

    def __init__(self, store: Store, root: str = "") -> None:
        self._store = store
        self._root = root

    def get(self, entry: Entry) -> bytes | None:
        """The bytes; None if they are no longer kept."""
        if not self._root:
            try:
                return self._store.get(entry.digest)
            except IntegrityError:
                return None
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(os.path.join(self._root, entry.path), flags)
            with open(descriptor, "rb") as file:
                return file.read()
        except OSError as error:
            raise UsageError(f"cannot read '{entry.path}': {error.strerror}") from error


def pieces(
    step: StepId,
    before: Mapping[str, Entry],
    after: Mapping[str, Entry],
    contents: tuple[Contents, Contents],
    names: tuple[str, str],
) -> list[Piece]:
    """The files of one step that differ."""
    found = []
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        same = old is not None and new is not None and old.digest == new.digest
        if same and old is not None and new is not None:
            if old.executable != new.executable:
                found.append(Piece(step, path, "mode", old.digest, new.digest))
            continue
        found.append(_piece(step, path, old, new, contents, names))
    return found


def _piece(
    step: StepId,
    path: str,
    old: Entry | None,
    new: Entry | None,
    contents: tuple[Contents, Contents],
    names: tuple[str, str],
) -> Piece:
    one = contents[0].get(old) if old is not None else b""
    two = contents[1].get(new) if new is not None else b""
    before, after = old.digest if old else None, new.digest if new else None
    if one is None or two is None:
        return Piece(step, path, "gone", before, after)
    sizes = (len(one), len(two))
    if old is None or new is None:
        return Piece(step, path, "removed" if new is None else "added", before, after, sizes)
    if max(sizes) > LARGEST:
        return Piece(step, path, "long", before, after, sizes)
    values = _json(one), _json(two)
    if values[0] is not None and values[1] is not None:
        changes = tuple(value_changes(values[0], values[1]))
        if changes:
            return Piece(step, path, "json", before, after, sizes, changes=changes)
    texts = _text(one), _text(two)
    if texts[0] is None or texts[1] is None:
        return Piece(step, path, "binary", before, after, sizes)
    name = path or step
    lines = text_change(texts[0], texts[1], (f"{name} ({names[0]})", f"{name} ({names[1]})"))
    if lines is None:
        return Piece(step, path, "long", before, after, sizes)
    return Piece(step, path, "text", before, after, sizes, tuple(lines))


def _json(content: bytes) -> Json:
    """An object or a list; None for anything else, also for what merely looks like it."""
    if content[:1] not in {b"{", b"["} and content.lstrip()[:1] not in {b"{", b"["}:
        return None
    try:
        return cast("Json", json.loads(content))
    except (ValueError, RecursionError):
        return None


def _text(content: bytes) -> str | None:
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
