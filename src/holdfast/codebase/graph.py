"""How files hang together: who imports whom, and which tests test which file."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast.codebase.index import Index
from holdfast.codebase.resolve import Resolver, manifests

_MANIFESTS = frozenset({"go.mod", "package.json", "Cargo.toml"})
_TEST_FOLDERS = frozenset({"test", "tests", "__tests__", "testing", "spec", "specs", "testdata"})
_MOST_SUBJECTS = 3
_MARK = re.compile(r"(?:^(?:test|tests|spec)[_.-])|(?:[_.-](?:test|tests|spec)$)", re.IGNORECASE)
_JAVA = re.compile(r"(?:^Test(?=[A-Z]))|(?:(?:Tests?|IT|TestCase)$)")


@dataclass(frozen=True, slots=True)
class Graph:
    """Files with those they import, those that import them, and the tests of each with the reason."""

    imports: Mapping[str, frozenset[str]]
    importers: Mapping[str, frozenset[str]]
    tests: Mapping[str, Mapping[str, str]]


def is_test(path: str) -> bool:
    """Whether a file tests others, told by its name or where it lies."""
    place, name = posixpath.split(path)
    stem = posixpath.splitext(name)[0]
    return (
        bool(_MARK.search(stem))
        or (name.endswith((".java", ".kt")) and bool(_JAVA.search(stem)))
        or not _TEST_FOLDERS.isdisjoint(place.lower().split("/"))
    )


def graph_of(index: Index) -> Graph:
    """The graph of all files in an index that is up to date."""
    paths = [file.path for file in index.files()]
    resolver = Resolver(paths, manifests(_texts(index, paths)))
    imports: dict[str, set[str]] = {}
    importers: dict[str, set[str]] = {}
    for path, wanted in index.imports():
        for target in resolver.files(path, wanted):
            imports.setdefault(path, set()).add(target)
            importers.setdefault(target, set()).add(path)
    return Graph(
        {path: frozenset(found) for path, found in imports.items()},
        {path: frozenset(found) for path, found in importers.items()},
        tests_of(paths, imports),
    )


def _texts(index: Index, paths: Iterable[str]) -> list[tuple[str, str]]:
    wanted = [path for path in paths if posixpath.basename(path) in _MANIFESTS]
    entries = index.entries_of(wanted)
    return [
        (read.entry.path, read.content.decode("utf-8", "replace"))
        for read in index.source.read(entries)
        if read.content is not None
    ]


def tests_of(
    paths: Iterable[str], imports: Mapping[str, Iterable[str]]
) -> dict[str, dict[str, str]]:
    """The tests of each file: those that are named after it, and those that import it."""
    found: dict[str, dict[str, str]] = {}
    by_stem: dict[str, list[str]] = {}
    tests = []
    for path in paths:
        if is_test(path):
            tests.append(path)
        else:
            by_stem.setdefault(_subject(path), []).append(path)
    for test in tests:
        for path in _nearest(test, by_stem.get(_subject(test), ())):
            found.setdefault(path, {})[test] = "named after it"
        for path in imports.get(test, ()):
            if not is_test(path):
                found.setdefault(path, {}).setdefault(test, "imports it")
    return found


def _subject(path: str) -> str:
    """What a file is about by its name: that of the file, without the mark of a test."""
    stem = posixpath.splitext(posixpath.basename(path))[0]
    return _MARK.sub("", _JAVA.sub("", stem)).lower().strip("_.-")


def _nearest(test: str, candidates: Iterable[str]) -> list[str]:
    """Of files with one name, those of the test's language, the nearest by their directories.

    Where many have the name, one that lies in an unrelated place is not meant.
    """
    end = posixpath.splitext(test)[1]
    fits = [path for path in candidates if posixpath.splitext(path)[1][:3] == end[:3]]
    words = _places(test)
    near = {path: len(words & _places(path)) for path in fits}
    best = max(near.values(), default=0)
    if not best and len(fits) > 1:
        return []
    return sorted(path for path in fits if near[path] == best)[:_MOST_SUBJECTS]


def _places(path: str) -> set[str]:
    """The words of the directories a path lies in, but those that say that it tests."""
    words = re.split(r"[/_.-]", posixpath.dirname(path).lower())
    return {word for word in words if word and word not in _TEST_FOLDERS}
