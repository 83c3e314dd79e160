"""Real changes of one file from git histories, and which lines they keep, remove and add."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.edits.compare import Span
from holdfast.edits.unified import read_unified
from holdfast.edits.wanted import Hunk

LARGEST = 200_000
FEWEST, MOST_CHANGED = 8, 200


@dataclass(frozen=True, slots=True)
class Change:
    """One file before and after a commit; `entries` are all lines of both, each kept, removed or added."""

    repository: str
    commit: str
    path: str
    before: bytes
    after: bytes
    diff: str
    entries: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        return f"{self.repository}@{self.commit[:10]}:{self.path}"


def changes(folder: str, count: int) -> Iterator[Change]:
    """Up to `count` changes of a history, spread over it by the digests of its commits.

    Taken: commits that modify exactly one file, which is text in UTF-8 with line feeds, ends with one before
    and after, has at least 8 lines and at most 200,000 bytes, and of which at most 200 lines change.
    """
    listed = _git(folder, "log", "--no-merges", "--format=%H", "--raw", "--no-abbrev", "-z", "HEAD")
    found = sorted(_single(listed), key=lambda row: hashlib.sha256(row[0].encode()).digest())
    name = Path(folder).parent.name if Path(folder).name in {"repo", ".git"} else Path(folder).stem
    taken = 0
    for commit, old, new, path in found:
        if taken == count:
            return
        change = _change(folder, name, commit, old, new, path)
        if change is not None:
            taken += 1
            yield change


def _single(listed: bytes) -> Iterator[tuple[str, str, str, str]]:
    """Commits that modify one file: the commit, both contents, the path."""
    parts = listed.decode("utf-8", "replace").split("\0")
    commit, rows = "", []
    for at, part in enumerate(parts):
        words = part.strip()
        if words.startswith(":"):
            rows.append((words[1:].split(" "), parts[at + 1]))
        elif len(words) == 40 and all(c in "0123456789abcdef" for c in words):
            yield from _row(commit, rows)
            commit, rows = words, []
        elif "\n" in part:
            head, _, raw = part.partition("\n")
            if len(head) == 40:
                yield from _row(commit, rows)
                commit, rows = head, []
                if raw.startswith(":"):
                    rows.append((raw[1:].split(" "), parts[at + 1]))
    yield from _row(commit, rows)


def _row(commit: str, rows: list[tuple[list[str], str]]) -> Iterator[tuple[str, str, str, str]]:
    if len(rows) == 1:
        (old_mode, new_mode, old, new, status), path = rows[0]
        if status == "M" and old_mode == new_mode and old_mode.startswith("100"):
            yield commit, old, new, path


def _change(folder: str, name: str, commit: str, old: str, new: str, path: str) -> Change | None:
    before, after = (_git(folder, "cat-file", "blob", blob) for blob in (old, new))
    if not all(_is_plain(content) for content in (before, after)):
        return None
    said = _git(folder, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "-U3", old, new)
    body = said.decode().split("\n@@ ", 1)
    if len(body) != 2 or "\t" in path or '"' in path or "\n" in path or not path.isascii():
        return None
    head = f"diff --git a/{path} b/{path}\nindex {old[:10]}..{new[:10]} 100644\n--- a/{path}\n+++ b/{path}"
    diff = f"{head}\n@@ {body[1]}"
    (wanted,) = read_unified(diff.split("\n")[:-1])
    entries = _entries(before.decode().split("\n")[:-1], wanted.hunks)
    changed = sum(kind != " " for kind, _ in entries)
    if not 0 < changed <= MOST_CHANGED:
        return None
    return Change(name, commit, path, before, after, diff, tuple(entries))


def _is_plain(content: bytes) -> bool:
    if not content.endswith(b"\n") or len(content) > LARGEST or content.count(b"\n") < FEWEST:
        return False
    if b"\r" in content or b"\0" in content or content.startswith(b"\xef\xbb\xbf"):
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _entries(before: list[str], hunks: tuple[Hunk, ...]) -> list[tuple[str, str]]:
    entries: list[tuple[str, str]] = []
    done = 0
    for hunk in hunks:
        start = hunk.line - 1
        entries += [(" ", line) for line in before[done:start]]
        entries += [(row.kind, row.text) for row in hunk.rows]
        done = start + len(hunk.old)
    return entries + [(" ", line) for line in before[done:]]


def spans_of(entries: tuple[tuple[str, str], ...]) -> list[Span]:
    """Which lines differ, as the rest of Holdfast says it."""
    found: list[Span] = []
    old = new = 0
    open_span = False
    for kind, _ in entries:
        if kind == " ":
            open_span = False
        elif not open_span:
            found.append((old, old, new, new))
            open_span = True
        old, new = old + (kind != "+"), new + (kind != "-")
        if open_span:
            found[-1] = (found[-1][0], old, found[-1][2], new)
    return found


def _git(folder: str, *words: str) -> bytes:
    return subprocess.run(
        ["git", "--no-pager", f"--git-dir={folder}", *words], check=True, capture_output=True
    ).stdout
