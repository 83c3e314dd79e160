"""The files of a project as a planner is shown them: paths alone, sorted, and no more than it may cost.

The same files always give the same text. Where there are too many, whole folders become one line each,
the deepest first. Files whose names say that they hold keys are left out.
"""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterable, Sequence

MOST_TOKENS = 2000
_CHARACTERS = 4  # of a token, about
_SECRET = (
    ".env",
    ".env.*",
    "*.env",
    "*.key",
    "*.pem",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "id_rsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    "*credentials*",
    "*secret*",
)


def listing(paths: Iterable[str], tokens: int = MOST_TOKENS) -> str:
    """One line for each file, or for each folder with the number of files below it; empty for no files."""
    shown = sorted(path for path in paths if not _is_secret(path))
    most = tokens * _CHARACTERS
    for depth in range(max((path.count("/") for path in shown), default=0), -1, -1):
        text = "\n".join(_folded(shown, depth))
        if len(text) <= most:
            return text
    return _cut(_folded(shown, 0), most)


def _is_secret(path: str) -> bool:
    parts = path.lower().split("/")
    return any(fnmatch.fnmatchcase(part, pattern) for part in parts for pattern in _SECRET)


def _folded(paths: Sequence[str], depth: int) -> list[str]:
    """Paths, with everything in folders that are deeper than this told as one line for each."""
    lines: Counter[str] = Counter()
    for path in paths:
        parts = path.split("/")
        lines[path if len(parts) <= depth + 1 else "/".join(parts[: depth + 1]) + "/"] += 1
    return [_line(name, number) for name, number in sorted(lines.items())]


def _line(name: str, number: int) -> str:
    return f"{name} ({number} file{'' if number == 1 else 's'})" if name.endswith("/") else name


def _cut(lines: Sequence[str], most: int) -> str:
    kept: list[str] = []
    room = most - len(f"… and {len(lines)} more")
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join([*kept, f"… and {len(lines) - len(kept)} more"])
