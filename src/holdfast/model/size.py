"""Sizes as people write them: 512MB, 4 GB."""

from __future__ import annotations

import re

SIZE = r"[0-9]{1,12} ?(?:B|kB|KB|MB|GB|TB)?"
_SIZE = re.compile(r"([0-9]{1,12}) ?(B|kB|KB|MB|GB|TB)?\Z")
_UNITS = {"": 1, "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def bytes_of(text: str) -> int | None:
    """How many bytes a size is; None if it is none."""
    found = _SIZE.match(text)
    return int(found[1]) * _UNITS[found[2] or ""] if found else None
