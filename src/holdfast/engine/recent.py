"""Small contents that this engine made or read lately, so that the steps below need not read them again."""

from __future__ import annotations

from holdfast.model.digest import Digest

MOST_BYTES = 16 * 2**20
LARGEST = 16 * 1024
_EACH = 200  # what an entry costs beside its content


class Recent:
    """Contents by digest, bounded; the oldest go first. What is in here has its digest: it was verified."""

    def __init__(self) -> None:
        self._contents: dict[Digest, bytes] = {}
        self._room = MOST_BYTES

    def get(self, digest: Digest) -> bytes | None:
        """The content, if it is here."""
        return self._contents.get(digest)

    def add(self, digest: Digest, content: bytes) -> None:
        """Take a content in, if it is small."""
        contents = self._contents
        if len(content) > LARGEST or digest in contents:
            return
        contents[digest] = content
        self._room -= len(content) + _EACH
        while self._room < 0:
            oldest = next(iter(contents))
            self._room += len(contents.pop(oldest)) + _EACH
