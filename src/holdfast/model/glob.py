"""Globs over paths of a project, and the comparison of paths with each other.

`*`, `?` and `[…]` match inside one component as in fnmatch; `**` as a whole component stands for
any number of directories, at the end for everything below. Nothing in `.git` or `.holdfast` ever
matches.
Every star is atomic, so a hostile glob costs no more than one pass per component.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

PRIVATE = frozenset({".git", ".holdfast"})
COMPILED = 400  # what a new expression costs, in comparisons
MOST_STARS = 3  # of one component, or of `**`, that cost little even so
_STARS = re.compile(r"\*+")
_MAGIC = re.compile(r"[*?\[]")
_NEVER = r"(?!(?:[^/]+/)*(?i:\.git|\.holdfast)(?:/|\Z))"


def glob_regex(pattern: str) -> re.Pattern[str]:
    """Matches a whole relative path with `/` between its components."""
    chunks: list[list[str]] = [[]]
    for part in components(pattern):
        if part == "**":
            if chunks[-1] or len(chunks) == 1:
                chunks.append([])
        else:
            chunks[-1].append(_component(part))
    first, *rest = ["/".join(chunk) for chunk in chunks]
    text = first
    if not rest:
        return re.compile(rf"{_NEVER}{text}\Z", re.DOTALL)
    if first:
        text += "/"
    for chunk in rest[:-1]:
        # As early as possible leaves most for what follows, which starts with `**` again.
        text += rf"(?>(?:[^/]+/)*?{chunk}/)"
    text += rf"(?:[^/]+/)*?{rest[-1]}" if rest[-1] else ".+"
    return re.compile(rf"{_NEVER}{text}\Z", re.DOTALL)


def components(path: str) -> list[str]:
    """The parts of a path; empty ones and `.` say nothing."""
    return [part for part in path.split("/") if part not in {"", "."}]


def fixed_part(pattern: str) -> list[str]:
    """The leading components that hold no wildcard."""
    fixed = []
    for part in components(pattern):
        if _MAGIC.search(part):
            break
        fixed.append(part)
    return fixed


def literal(path: str) -> str:
    """The glob that matches this path alone."""
    return _MAGIC.sub(r"[\g<0>]", path)


def is_plain(pattern: str) -> bool:
    """Whether the glob names one path."""
    return not _MAGIC.search(pattern)


def parents(path: str) -> Iterator[str]:
    """The directories a path lies in, the nearest first."""
    cut = path.rfind("/")
    while cut > 0:
        path = path[:cut]
        yield path
        cut = path.rfind("/")


def is_steep(line: str) -> bool:
    """Whether a matcher that tries again and again could take for ever over a line of `.gitignore`."""
    parts = line.split("/")
    stars = max(len(_STARS.findall(part)) for part in parts)
    return not line.startswith("#") and max(stars, parts.count("**")) > MOST_STARS


class Paths:
    """A sorted set of paths that globs are matched against."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._known = frozenset(paths)
        self._sorted = sorted(self._known)
        self._by_name: dict[str, list[str]] = {}
        for path in self._sorted:
            self._by_name.setdefault(path.rsplit("/", 1)[-1], []).append(path)
        self.compared = 0  # what the matching has cost so far

    def matching(self, pattern: str) -> list[str]:
        """Paths that the glob matches, and directories that its fixed part lies in."""
        fixed = "/".join(fixed_part(pattern))
        found = [path for path in (fixed, *parents(fixed)) if path in self._known]
        if is_plain(pattern):
            return found
        near = self._near(fixed, pattern)
        if not near:
            return found
        self.compared += len(near) + COMPILED
        matches = glob_regex(pattern).match
        return found + [path for path in near if matches(path)]

    def _near(self, fixed: str, pattern: str) -> list[str]:
        last = pattern.rsplit("/", 1)[-1]
        if last and is_plain(last):
            return self._by_name.get(last, [])
        if not fixed:
            return self._sorted
        low = bisect_left(self._sorted, fixed + "/")
        return self._sorted[low : bisect_left(self._sorted, fixed + "0")]


def _component(part: str) -> str:
    """One component as a regular expression; each star but the last is atomic."""
    pieces = [""]
    index = 0
    while index < len(part):
        char = part[index]
        index += 1
        if char == "*":
            if len(pieces) == 1 or pieces[-1]:
                pieces.append("")
        elif char == "?":
            pieces[-1] += "[^/]"
        elif char == "[":
            text, index = _set(part, index)
            pieces[-1] += text
        else:
            pieces[-1] += re.escape(char)
    first, *rest = pieces
    if not rest:
        return first
    inner = "".join(f"(?>[^/]*?{piece})" for piece in rest[:-1])
    # A component is never empty: a star alone needs one character.
    some = "[^/]+" if not first and not inner and not rest[-1] else "[^/]*"
    return first + inner + some + rest[-1]


def _set(part: str, start: int) -> tuple[str, int]:
    """`[abc]`, `[!a-z]`; a bracket that never closes stands for itself."""
    end = start
    if part[end : end + 1] == "!":
        end += 1
    if part[end : end + 1] == "]":
        end += 1
    end = part.find("]", end)
    if end < 0:
        return r"\[", start
    negated = part[start] == "!"
    members = _members(part[start + negated : end])
    if not members:
        return ("[^/]" if negated else "(?!)"), end + 1
    return f"[{'^/' if negated else ''}{members}]", end + 1


def _members(text: str) -> str:
    members = ""
    index = 0
    while index < len(text):
        if text[index + 1 : index + 2] == "-" and index + 2 < len(text):
            low, high = text[index], text[index + 2]
            if low <= high:
                members += f"{re.escape(low)}-{re.escape(high)}"
            index += 3
        else:
            members += re.escape(text[index])
            index += 1
    return members
