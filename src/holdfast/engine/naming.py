"""Which contents a store has, and which of them each one names.

A store may have millions of contents. As text a digest takes a hundred bytes and more in every set that has
it: here digests lie side by side, each content is a number, and what is said of contents is a byte for each.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator

from holdfast.model.digest import Digest
from holdfast.ports import Store, Stored

_QUOTED = re.compile(rb'"([0-9a-f]{64})"')
_BYTES = 32  # of a digest


class Listed:
    """Contents as they were listed once, each with a number: the first is 0."""

    def __init__(self, stored: Iterable[Stored] = ()) -> None:
        self.sizes = array("Q")
        self.at = array("q")
        self._digests = bytearray()
        self._places = array("I", bytes(4 << 10))  # by hash: a number and 1, or 0
        for item in stored:
            self._add(item)

    def __len__(self) -> int:
        return len(self.sizes)

    def _add(self, item: Stored) -> None:
        raw = bytes.fromhex(item.digest)
        place = self._place(raw)
        if number := self._places[place]:  # a row and a file: they come and go together
            self.at[number - 1] = max(self.at[number - 1], item.at)
            return
        self.sizes.append(item.size)
        self.at.append(item.at)
        self._digests += raw
        self._places[place] = len(self)
        if 2 * len(self) > len(self._places):
            self._widen()

    def _widen(self) -> None:
        self._places = array("I", bytes(8 * len(self._places)))
        for number in range(len(self)):
            self._places[self._place(self._raw(number))] = number + 1

    def _place(self, raw: bytes) -> int:
        """Where a digest stands in the table, or would."""
        mask = len(self._places) - 1
        place = hash(raw) & mask
        while (number := self._places[place]) and self._raw(number - 1) != raw:
            place = (place + 1) & mask
        return place

    def _raw(self, number: int) -> bytes:
        return bytes(self._digests[_BYTES * number : _BYTES * (number + 1)])

    def number(self, digest: str) -> int:
        """The number of a content; -1 if it is not there."""
        try:
            raw = bytes.fromhex(digest)
        except ValueError:
            return -1
        return self._places[self._place(raw)] - 1

    def digest(self, number: int) -> Digest:
        """The digest of a content."""
        return Digest(self._raw(number).hex())

    def numbers(self, digests: Iterable[str]) -> Iterator[int]:
        """The numbers of those digests that are of contents."""
        for digest in digests:
            if (number := self.number(digest)) >= 0:
                yield number


class Chosen:
    """Some of the contents that were listed, in that order; `marks` has a 1 for each of them."""

    def __init__(self, listed: Listed, marks: bytearray) -> None:
        self._listed = listed
        self._marks = marks

    def __len__(self) -> int:
        return self._marks.count(1)

    def __contains__(self, digest: str) -> bool:
        number = self._listed.number(digest)
        return number >= 0 and self._marks[number] == 1

    def _numbers(self) -> Iterator[int]:
        number = self._marks.find(1)
        while number >= 0:
            yield number
            number = self._marks.find(1, number + 1)

    def digests(self) -> Iterator[Digest]:
        """The digest of each."""
        return map(self._listed.digest, self._numbers())

    @property
    def size(self) -> int:
        """The bytes of all of them."""
        return sum(self._listed.sizes[number] for number in self._numbers())


NO_CONTENTS = Chosen(Listed(), bytearray())


class Names:
    """What contents name: manifests and keys are JSON objects with digests in them."""

    def __init__(self, store: Store, listed: Listed) -> None:
        self._store = store
        self._listed = listed
        self._is_read = bytearray(len(listed))
        self._known: dict[int, tuple[int, ...]] = {}  # those that name any

    def closure(self, roots: Iterable[Digest]) -> set[Digest]:
        """The stored contents among the roots, and all that they name."""
        found = self.reached(self._listed.numbers(roots), bytearray(len(self._listed)))
        return set(map(self._listed.digest, found))

    def reached(self, roots: Iterable[int], seen: bytearray) -> Iterator[int]:
        """The roots and all that they name, but for what is marked as seen; marks each of them."""
        for root in roots:
            pending = [root]
            while pending:
                number = pending.pop()
                if not seen[number]:
                    seen[number] = 1
                    yield number
                    pending.extend(self._below(number))

    def mark(self, roots: Iterable[int], seen: bytearray) -> None:
        """Mark the roots as seen, and all that they name."""
        for _ in self.reached(roots, seen):
            pass

    def _below(self, number: int) -> tuple[int, ...]:
        if not self._is_read[number]:
            if found := self._read(self._listed.digest(number)):
                self._known[number] = found
            self._is_read[number] = 1
        return self._known.get(number, ())

    def _read(self, digest: Digest) -> tuple[int, ...]:
        first = next(self._store.chunks(digest), b"")
        if not first.startswith(b"{"):
            return ()
        quoted = _QUOTED.findall(self._store.get(digest))
        return tuple(set(self._listed.numbers(name.decode() for name in quoted)))
