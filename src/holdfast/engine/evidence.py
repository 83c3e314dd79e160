"""Keeps the text of small files that decide a step, so that a change can later be shown with its content.

Nothing depends on it: such contents are named only by the own parts of a key, and one that is not there
any more is never an error. Files that hold secrets, or usually do, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from holdfast.core.causes import FILE_PARTS, Mark, Piece, counted, files_in, only, pieces_of
from holdfast.core.changes import Change
from holdfast.core.preview import Outlook
from holdfast.core.reasons import sentence
from holdfast.errors import HoldfastError, IntegrityError
from holdfast.model.artifact import Form, tree_entries
from holdfast.model.digest import Digest, Json, digest_bytes
from holdfast.model.event import Reason
from holdfast.model.plan import Step
from holdfast.model.secret import holds
from holdfast.ports import Store
from holdfast.process.inside import read_inside

EACH = 64 * 1024
TOGETHER = 1024 * 1024
MOST_FILES = 500  # that are looked at for one step
MOST_COUNTED = 5
MOST_DONE = 100
_PRIVATE = re.compile(
    r"(^|/)(\.env(\.[^/]*)?|\.netrc|\.npmrc|\.pypirc|id_(rsa|dsa|ecdsa|ed25519)"
    r"|(credentials?|secrets?)(\.[^/]*)?|[^/]*\.(pem|key|p12|pfx|jks|kdbx))\Z",
    re.IGNORECASE,
)

Said = Callable[[str], bytes | None]


def _silent(_: str) -> bytes | None:
    return None


class Keeper:
    """Gives the contents that are worth keeping when an attempt starts; each one once."""

    def __init__(
        self,
        root: str,
        store: Store,
        said: Said = _silent,
        hidden: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._root = root
        self._store = store
        self._said = said
        self._hidden = hidden
        self._sizes: dict[str, int] = {}  # by digest: what was looked at already
        self._last: Mapping[str, Json] | None = None
        self._done: dict[int, Json] = {}  # by identity: parts whose files were all looked at

    def keep(self, seen: Mapping[str, Json]) -> list[tuple[Digest, bytes]]:
        """The contents behind observed parts of a key: files, and what tools said their version is.

        Steps of one function share the very same parts, so those are gone through once (5 µs a step).
        """
        if seen is self._last:
            return []
        if all(id(part) in self._done for part in seen.values()):
            self._last = seen
            return []
        blobs: list[tuple[Digest, bytes]] = []
        total = looked = 0
        for path, mark in files_in(seen):
            if mark.digest is None:
                continue
            if mark.digest not in self._sizes:
                looked += 1
                self._look(path, mark.digest, TOGETHER - total, blobs)
            total += self._sizes.get(mark.digest, 0)
            if total >= TOGETHER or looked >= MOST_FILES:
                break
        else:
            if not looked and len(self._done) < MOST_DONE:
                self._done.update((id(part), part) for part in seen.values())
        tools = seen.get("tools")
        for digest in tools.values() if isinstance(tools, Mapping) else ():
            if isinstance(digest, str) and digest not in self._sizes:
                self._sizes[digest] = 0
                text = self._said(digest)
                if text is not None and self._can_be_shown(text) and len(text) <= EACH:
                    blobs.append((Digest(digest), text))
        return blobs

    def _look(
        self, path: str, digest: Digest, room: int, blobs: list[tuple[Digest, bytes]]
    ) -> None:
        content = None if _PRIVATE.search(path) else read_small(self._root, path)
        if content is None or digest_bytes(content) != digest or not self._can_be_shown(content):
            self._sizes[digest] = 0
        elif len(content) <= room:  # else a later step may have room for it
            self._sizes[digest] = len(content)
            if not self._store.has(digest):
                blobs.append((digest, content))

    def _can_be_shown(self, content: bytes) -> bool:
        return is_text(content) and not holds([content], self._hidden())


class Texts:
    """The texts behind digests: what was kept, and what lies in the project now."""

    def __init__(self, store: Store, root: str, said: Said = _silent) -> None:
        self._store = store
        self._root = root
        self._said = said

    def kept(self, _: str, digest: Digest) -> str | None:
        """From the store alone."""
        try:
            if not self._store.has(digest):
                return None
            content = self._store.get(digest)
        except IntegrityError:
            return None
        return content.decode() if len(content) <= EACH and is_text(content) else None

    def now(self, path: str, digest: Digest) -> str | None:
        """From the project if it is still the same there, else from the store."""
        content = self._said(digest)
        if content is None and not _PRIVATE.search(path):
            content = read_small(self._root, path)
        if content is not None and digest_bytes(content) == digest and is_text(content):
            return content.decode()
        return self.kept(path, digest)

    def artifact(self, step: Step, digest: Digest, form: Form) -> dict[str, Mark]:
        """The files of an artifact, or its bytes under the path or the id of its step."""
        if form != "tree":
            name = step.produces[0] if step.produces else f"artifact of {step.id}"
            return {name: Mark(digest, form == "program")}
        try:
            entries = tree_entries(self._store.get(digest))
        except IntegrityError:
            return {f"artifact of {step.id}": Mark(digest)}
        return {entry.path: Mark(entry.digest, entry.executable) for entry in entries}

    def behind(self, change: Change) -> tuple[Piece, ...]:
        """What is behind a change between an earlier key and the present one."""
        return pieces_of(change, self.kept, self.now)

    def counted(self, outlook: Outlook) -> str:
        """The reason in words, with how much of each file differs; nothing if no file is behind it."""
        reason = outlook.reason
        named = reason.because[:MOST_COUNTED]
        changes = outlook.probe.changes if outlook.probe else ()
        told = {
            piece.name: counted(piece)
            for change in changes
            if change.code == reason.code and change.part in FILE_PARTS
            for piece in self.behind(only(change, named))
        }
        if not told:
            return ""
        words = tuple(told.get(name, name) for name in named)
        return sentence(Reason(reason.code, (*words, *reason.because[MOST_COUNTED:])))


def read_small(root: str, path: str) -> bytes | None:
    """A small file of the project; None if it is large, special, elsewhere, or not there."""
    try:
        return read_inside(root, path, EACH).content
    except (HoldfastError, OSError):
        return None


def is_text(content: bytes) -> bool:
    """Whether lines of it can be shown."""
    if b"\0" in content:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
