"""Small contents that this engine made or read lately, so that the steps below need not read them again."""

from __future__ import annotations

from holdfast.model.digest import Digest

MOST_BYTES = 32 * 2**20
LARGEST = 16 * 1024
_EACH = 200  # what an entry costs beside its content


class Recent:
    """Contents by digest, bounded. What is in here has its digest: it was verified.

    What was not used for longest goes first. What is only read never drives out anything: one step that
    needs more than there is room for would empty it for all the others.
    """

    def __init__(self) -> None:
        self._contents: dict[Digest, bytes] = {}
        self._room = MOST_BYTES

    def get(self, digest: Digest) -> bytes | None:
        """The content, if it is here."""
        content = self._contents.pop(digest, None)
        if content is not None:
            self._contents[digest] = content  # now the last to go
        return content

    def made(self, digest: Digest, content: bytes) -> None:
        """Take a new content in, if it is small: the steps below will ask for it."""
        if len(content) > LARGEST:
            return
        contents = self._contents
        if contents.setdefault(digest, content) is content:
            self._room -= len(content) + _EACH
        while self._room < 0:
            oldest = next(iter(contents))
            self._room += len(contents.pop(oldest)) + _EACH

    def read(self, digest: Digest, content: bytes) -> None:
        """Take a content in that was read from the store, if it is small and there is room."""
        if self._room >= LARGEST + _EACH:
            self.made(digest, content)
