"""Globs over paths inside a project: `*` and `?` stay inside one name, `**` crosses directories."""

from __future__ import annotations

import re
from functools import lru_cache

_WILD = re.compile(r"[*?\[]")


def is_literal(pattern: str) -> bool:
    """Whether a glob names exactly one path."""
    return not _WILD.search(pattern)


@lru_cache(maxsize=1024)
def glob_regex(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression over whole relative paths with `/`.

    A pattern without wildcards also stands for everything beneath the directory it names.
    """
    parts = [part for part in pattern.strip("/").split("/") if part not in {"", "."}]
    text = ""
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        if part == "**":
            text += ".+" if last else "(?:[^/]+/)*"
        else:
            text += _name(part) + ("" if last else "/")
    return re.compile(f"{text}(?:/.*)?" if is_literal(pattern) else text, re.DOTALL)


def literal_base(pattern: str) -> str:
    """The directory above the first wildcard: where a search has to begin."""
    base: list[str] = []
    for part in pattern.strip("/").split("/")[:-1]:
        if _WILD.search(part):
            break
        base.append(part)
    return "/".join(base)


def _name(part: str) -> str:
    text = ""
    place = 0
    while place < len(part):
        sign = part[place]
        place += 1
        if sign == "*":
            text += "[^/]*"
        elif sign == "?":
            text += "[^/]"
        elif sign == "[" and (end := part.find("]", place + 1)) > 0:
            inside = part[place:end].replace("\\", "\\\\").replace("[", "\\[")
            text += f"[^/{inside[1:]}]" if inside[0] in "!^" else f"[{inside}]"
            place = end + 1
        else:
            text += re.escape(sign)
    return text
