"""Which files a directory has: what git knows or does not ignore, or everything `.gitignore` allows.

Names only; nothing is opened but `.gitignore` files and, where there is a repository, what git reads.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from pathspec import GitIgnoreSpec

from holdfast.errors import ProcessError, UsageError
from holdfast.gitrepo.git import git
from holdfast.model.glob import is_steep
from holdfast.process.gitplaces import top_of
from holdfast.process.inside import open_regular

NEVER = frozenset({".git", ".holdfast"})
_DEEPEST = 8  # submodules within submodules
_LARGEST_RULES = 1 << 20
_SOON, _SECONDS = 3.0, 60.0  # for git
_RULES = frozenset({".gitignore", ".ignore", ".rgignore"})

Rules = list[tuple[str, Callable[[str], bool | None]]]


class Listing(NamedTuple):
    """Paths relative to the directory, sorted; and what was left out, with the reason."""

    paths: list[str]
    left_out: list[tuple[str, str]]
    by_git: bool


def listed(root: str) -> Listing:
    """All files of a directory that belong to its code base."""
    if not os.path.isdir(root):
        raise UsageError(f"there is no directory '{root}'")
    left_out: list[tuple[str, str]] = []
    if top_of(os.path.realpath(root)):
        try:
            names = _by_git_in_time(root, left_out)
            return Listing(sorted(names, key=os.fsencode), left_out, by_git=True)
        except ProcessError as error:
            left_out[:] = [("", f"git does not list the files here: {error.message}")]
    names = set(_walk(root, left_out))
    return Listing(sorted(names, key=os.fsencode), left_out, by_git=False)


def _by_git_in_time(root: str, left_out: list[tuple[str, str]]) -> set[str]:
    """Git waits for ever where a `.gitignore` is a pipe: if it is slow, that is looked for."""
    try:
        return set(_by_git(root, "", left_out, 0, _SOON))
    except ProcessError:
        if odd := odd_rules(root):
            raise ProcessError(f"'{odd}' is no file of rules") from None
        left_out.clear()
        return set(_by_git(root, "", left_out, 0, _SECONDS))


def _by_git(
    root: str, prefix: str, left_out: list[tuple[str, str]], depth: int, seconds: float
) -> Iterator[str]:
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    said = git(os.path.join(root, prefix), *words, seconds=seconds)
    for name in dict.fromkeys(said.split(b"\0")):
        path = prefix + os.fsdecode(name)
        if not name or NEVER.intersection(path.split("/")):
            continue
        if name.endswith(b"/"):
            left_out.append((path.rstrip("/"), "a repository of its own"))
            continue
        if not _is_folder(os.path.join(root, path)):
            yield path
        elif os.path.lexists(os.path.join(root, path, ".git")) and depth < _DEEPEST:
            try:
                yield from list(_by_git(root, f"{path}/", left_out, depth + 1, seconds))
            except ProcessError as error:
                left_out.append((path, f"git does not list its files: {error.message}"))
        else:
            left_out.append((path, "a submodule that is not checked out"))


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


# --- without git ----------------------------------------------------------------------------------


def _walk(root: str, left_out: list[tuple[str, str]]) -> Iterator[str]:
    """Files beneath a directory that no `.gitignore` leaves out; links are named, never entered."""
    waiting: list[tuple[str, Rules]] = [("", [])]
    while waiting:
        place, above = waiting.pop()
        rules = above + _rules_in(root, place, left_out)
        try:
            with os.scandir(os.path.join(root, place)) as entries:
                found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError as error:
            left_out.append((place, f"cannot be read: {(error.strerror or '').lower()}"))
            continue
        for name, is_folder in found:
            path = f"{place}/{name}" if place else name
            if name in NEVER or _ignored(rules, f"{path}/" if is_folder else path):
                continue
            if is_folder:
                waiting.append((path, rules))
            else:
                yield path


def _rules_in(root: str, place: str, left_out: list[tuple[str, str]]) -> Rules:
    path = os.path.join(root, place, ".gitignore")
    try:
        with open_regular(path) as file:
            lines = file.read(_LARGEST_RULES).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    steep = [line for line in lines if is_steep(line)]
    if steep:
        left_out.append((f"{place}/.gitignore" if place else ".gitignore", "rules with many stars"))
    spec = GitIgnoreSpec.from_lines(line for line in lines if not is_steep(line))
    return [(place, lambda inside: spec.check_file(inside).include)]


def odd_rules(root: str) -> str:
    """A file of rules, at any depth or above, that is too large or no file at all; '' if there is none.

    A program that reads such rules would wait for ever, or read without end.
    """
    for place in (os.path.join(above, name) for above in Path(root).parents for name in _RULES):
        if _is_odd(place):
            return place
    waiting = [root]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in NEVER:
                            waiting.append(entry.path)
                    elif entry.name in _RULES and _is_odd(entry.path):
                        return os.path.relpath(entry.path, root)
        except OSError:
            continue
    return ""


def _is_odd(path: str) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST_RULES


def _ignored(rules: Rules, path: str) -> bool:
    """The innermost `.gitignore` that says something about a path decides."""
    for place, says in reversed(rules):
        verdict = says(_as_text(path[len(place) + 1 :] if place else path))
        if verdict is not None:
            return verdict
    return False


def _as_text(path: str) -> str:
    """A path as the rules are read: what is no UTF-8 stands there as a sign for that."""
    return os.fsencode(path).decode("utf-8", "replace")
