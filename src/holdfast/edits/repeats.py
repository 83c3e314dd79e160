"""A digest of an edit and of all it looked at: the same edit on the same files fails in the same way."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from holdfast.edits.wanted import Wanted


def attempt_digest(wanted: Sequence[Wanted], read: Callable[[str], bytes | None]) -> str:
    """Who keeps the digests of refused edits can refuse the next one like it without another look."""
    hasher = hashlib.sha256()
    for one in wanted:
        hasher.update(repr(one).encode("utf-8", "surrogatepass"))
        for path in (one.path, one.to):
            content = None if path is None else read(path)
            state = "-" if content is None else hashlib.sha256(content).hexdigest()
            hasher.update(f"\0{state}\0".encode())
    return hasher.hexdigest()
