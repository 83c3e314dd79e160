"""Finds the files of a project beneath a directory, as its `.gitignore` files allow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from holdfast.errors import EditError, HoldfastError, outside_fault
from holdfast.model.glob import components, fixed_part, glob_regex, is_plain
from holdfast.ports import IgnoreRules
from holdfast.process.inside import SpecialFileError, open_regular, place_inside

NEVER = frozenset({".git", ".holdfast"})
RULES = ".gitignore"
Ignores = Callable[[Iterable[str]], IgnoreRules]
Instead = Mapping[str, bytes | None]  # by path, what a `.gitignore` is to say; None for no file
_AS_IT_LIES: Instead = {}
_LARGEST_RULES = 1 << 20


def matching(root: str, glob: str, ignores: Ignores, instead: Instead = _AS_IT_LIES) -> list[str]:
    """The files that a glob matches, sorted; a path without wildcards is itself, or all below it."""
    if is_plain(glob):
        path = os.path.normpath(glob)
        full = os.path.join(root, path)
        if os.path.isfile(full) or os.path.islink(full):
            return [path]
        is_folder = os.path.isdir(full)
        return sorted(walk(root, path, ignores, instead=instead)) if is_folder else []
    matches = glob_regex(glob).match
    parts = components(glob)
    deep = None if "**" in parts else len(parts)
    found = walk(root, "/".join(fixed_part(glob)), ignores, deep, instead=instead)
    return sorted(path for path in found if matches(path))


def read_by(root: str, glob: str, ignores: Ignores) -> Iterator[str]:
    """Everything whose state decides what a glob matches: files, directories, `.gitignore` files."""
    yield from matching(root, glob, ignores)
    base = os.path.normpath(glob) if is_plain(glob) else "/".join(fixed_part(glob))
    yield base or "."
    if not os.path.isdir(os.path.join(root, base)):
        return
    parts, above = components(glob), components(base)
    entered: list[str] = []
    deep = None if is_plain(glob) or "**" in parts else len(parts)
    for _ in walk(root, base, ignores, deep, entered.append):
        pass
    yield from (place or "." for place in entered)
    over = ["/".join(above[:count]) for count in range(len(above))]
    yield from (f"{place}/.gitignore" if place else ".gitignore" for place in (*over, *entered))


def walk(
    root: str,
    base: str,
    ignores: Ignores,
    deep: int | None = None,
    enter: Callable[[str], None] = lambda _: None,
    *,
    instead: Instead = _AS_IT_LIES,
) -> Iterator[str]:
    """Relative paths of files beneath a directory, as `.gitignore` files allow; links are not entered.

    With `deep`, only paths of so many components. Devices, sockets and pipes are no files. `enter` is
    told each directory that is looked into. EditError if the directory is none of the project.
    """
    place_inside(root, base)
    rules = _rules_above(root, base, ignores, instead)
    pending = [(base, rules)]
    while pending:
        place, rules = pending.pop()
        enter(place)
        rules = [*rules, *_rules_in(root, place, ignores, instead)]
        try:
            entries = list(os.scandir(os.path.join(root, place)))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise _unreadable(place, error) from error
        inner = deep is None or (place.count("/") + 1 if place else 0) < deep - 1
        for entry in entries:
            path = f"{place}/{entry.name}" if place else entry.name
            if entry.name in NEVER:
                continue
            if entry.is_dir(follow_symlinks=False):
                if inner and not _ignored(rules, path + "/"):
                    pending.append((path, rules))
            elif (entry.is_file() or entry.is_symlink()) and not _ignored(rules, path):
                yield path


def is_ignored(root: str, path: str, ignores: Ignores) -> bool:
    """Whether the `.gitignore` files of a project leave out a path, or a directory it lies in."""
    rules: _Rules = []
    place = ""
    parts = path.split("/")
    for depth, part in enumerate(parts, start=1):
        rules += _rules_in(root, place, ignores)
        place = f"{place}/{part}" if place else part
        if _ignored(rules, place if depth == len(parts) else f"{place}/"):
            return True
    return False


_Rules = list[tuple[str, IgnoreRules]]


def _rules_above(root: str, base: str, ignores: Ignores, instead: Instead) -> _Rules:
    rules: _Rules = []
    place = ""
    for part in base.split("/") if base else []:
        rules += _rules_in(root, place, ignores, instead)
        place = f"{place}/{part}" if place else part
    return rules


def _rules_in(root: str, place: str, ignores: Ignores, instead: Instead = _AS_IT_LIES) -> _Rules:
    """What a `.gitignore` says; nothing if it is a link or a pipe, as git has it."""
    path = os.path.join(place, RULES)
    if path in instead:
        given = instead[path]
        return [] if given is None else [(place, ignores(_lines(given)))]
    try:
        with open_regular(os.path.join(root, path)) as file:
            return [(place, ignores(_lines(file.read(_LARGEST_RULES))))]
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, SpecialFileError):
        return []
    except OSError as error:
        raise _unreadable(place, error) from error


def _lines(content: bytes) -> list[str]:
    return content[:_LARGEST_RULES].decode("utf-8", "replace").splitlines()


def _unreadable(place: str, error: OSError) -> HoldfastError:
    return outside_fault(error) or EditError(f"cannot read directory '{place}': {error.strerror}")


def _ignored(rules: _Rules, path: str) -> bool:
    """The innermost `.gitignore` that says something about a path decides."""
    for place, spec in reversed(rules):
        inside = path[len(place) + 1 :] if place else path
        verdict = spec(inside)
        if verdict is not None:
            return verdict
    return False
