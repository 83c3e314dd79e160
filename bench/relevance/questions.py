"""Questions with known answers, made from a git history: a message, its commit's files, the parent.

Paths, numbers, addresses and trailers are taken out of a message. Merges, version bumps, dependency bots and
commits of more than 15 files are left out. The answer is what the commit changed among the files that its
parent has, so that nothing later is needed to find it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

MOST_FILES = 15
LEAST_WORDS = 3
_LOG = (
    *("git", "log", "--no-merges", "--no-renames", "--raw", "--abbrev=40", "-z"),
    "--format=%x01%H%x02%P%x02%an%x02%B%x03",
)
_TRAILER = re.compile(
    r"^\s*(?:[A-Z][\w-]*-by|Cc|Fixes|Closes|Refs?|Bug|Change-Id|Backport of|cherry[- ]picked)\b.*$",
    re.IGNORECASE | re.MULTILINE,
)
_BUMP = re.compile(
    r"^\W*(?:bump|release|prepare|version|v?\d+\.\d+|upgrade|update .*(?:dependenc|requirement|version|hook)"
    r"|chore\(deps|build\(deps|\[?pre-commit|start version|back to development|revert|merge)\b",
    re.IGNORECASE,
)
_BOT = re.compile(r"dependabot|renovate|pre-commit-ci|github-actions|\[bot\]", re.IGNORECASE)
_ADDRESS = re.compile(r"\w+://\S+|\S+@\S+")
_PATH = re.compile(r"\S*/\S*|\b[\w.-]+\.[a-zA-Z]{1,5}\b(?!\()|\b\w*\d\w*\b|#\d+")


class Question(NamedTuple):
    """What is asked of the parent commit, and the files that are the answer."""

    commit: str
    parent: str
    text: str
    answer: frozenset[str]


def questions(folder: str, most: int, among: int) -> list[Question]:
    """So many questions, evenly spread over the newest eligible commits, oldest first."""
    found = list(_eligible(folder, among))
    step = max(1.0, len(found) / most)
    chosen = [found[int(number * step)] for number in range(min(most, len(found)))]
    return chosen[::-1]


def stripped(message: str) -> str:
    """A message without what would give the answer away, or is no question."""
    text = _ADDRESS.sub(" ", _TRAILER.sub(" ", message))
    return " ".join(_PATH.sub(" ", text).split())


def _eligible(folder: str, among: int) -> Iterator[Question]:
    said = subprocess.run(
        [*_LOG, f"--max-count={among}", "HEAD"],
        cwd=folder,
        capture_output=True,
        check=True,
    ).stdout.decode("utf-8", "surrogateescape")
    for part in said.split("\1")[1:]:
        head, _, rest = part.partition("\3")
        commit, parents, author, message = head.split("\2", 3)
        fields = [field for field in rest.strip("\n\0").split("\0") if field]
        changes = list(zip(fields[::2], fields[1::2], strict=False))
        there = {path for about, path in changes if not about.rstrip().endswith("A")}
        text = stripped(message)
        if (
            parents
            and there
            and len(changes) <= MOST_FILES
            and not _BUMP.match(message)
            and not _BOT.search(author + message)
            and len(re.findall(r"[A-Za-z]{2,}", text)) >= LEAST_WORDS
        ):
            yield Question(commit, parents.split()[0], text, frozenset(there))
