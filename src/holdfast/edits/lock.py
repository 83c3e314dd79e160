"""A lock for whoever changes files of one project: engines that share it take turns."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.edits.tree import open_root, opened, outside_world, quoted


@contextmanager
def exclusive(folder: str) -> Iterator[None]:
    """Have the lock of a directory, which is made if it is not there; it ends with the process."""
    with outside_world(f"lock {quoted(folder)}"):
        os.makedirs(folder, 0o700, exist_ok=True)
        descriptor = open_root(folder)
    with opened(descriptor):
        with outside_world(f"lock {quoted(folder)}"):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
