"""Globs match as fnmatch does in each component, `**` over directories, and never slowly."""

from __future__ import annotations

import fnmatch
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model.glob import Paths, glob_regex

pytestmark = pytest.mark.req("R16", "D33")


@pytest.mark.parametrize(
    "pattern, path, matches",
    [
        ("a.c", "a.c", True),
        ("a.c", "abc", False),
        ("a.c", "d/a.c", False),
        ("*.c", "a.c", True),
        ("*.c", ".c", True),
        ("*.c", "d/a.c", False),
        ("*", "a", True),
        ("*", "a/b", False),
        ("d/*", "d/a", True),
        ("d/*", "d", False),
        ("d/*", "d/a/b", False),
        ("**", "a", True),
        ("**", "a/b/c", True),
        ("**/*.c", "a.c", True),
        ("**/*.c", "x/y/a.c", True),
        ("d/**", "d/a", True),
        ("d/**", "d/a/b", True),
        ("d/**", "d", False),
        ("d/**/a", "d/a", True),
        ("d/**/a", "d/x/y/a", True),
        ("d/**/a", "da", False),
        ("**/b/**/d", "b/d", True),
        ("**/b/**/d", "a/b/c/c/d", True),
        ("**/b/**/d", "a/c/d", False),
        ("**/a/b/**/a/c", "a/b/a/b/a/c", True),
        ("**/**/a", "a", True),
        ("a**b", "aXb", True),
        ("a**b", "a/b", False),
        ("[ab].c", "a.c", True),
        ("[!ab].c", "a.c", False),
        ("[!ab].c", "c.c", True),
        ("[!a]", "/", False),
        ("[a-c]x", "bx", True),
        ("[c-a]x", "bx", False),
        ("[]]", "]", True),
        ("[", "[", True),
        ("?", "é", True),
        ("a\nb*", "a\nbc", True),
        ("**", ".git/config", False),
        ("**", "a/.GIT/config", False),
        ("**/config", ".holdfast/config", False),
        ("*", ".git", False),
        ("*", ".gitignore", True),
        ("./a//b", "a/b", True),
    ],
)
def test_a_glob_matches_paths(pattern: str, path: str, matches: bool) -> None:
    assert bool(glob_regex(pattern).match(path)) is matches


WORDS = st.text(alphabet="ab.-]![*?", min_size=1, max_size=8).filter(
    lambda word: word not in {".", "**"}
)


@settings(deadline=None)
@given(WORDS, st.text(alphabet="ab.-]![", min_size=1, max_size=8))
def test_one_component_is_matched_as_fnmatch_does(pattern: str, name: str) -> None:
    assert bool(glob_regex(pattern).match(name)) == fnmatch.fnmatchcase(name, pattern)


COMPONENTS = st.lists(st.sampled_from(["**", "a", "b", "*", "a*", "?b"]), min_size=1, max_size=6)
NAMES = st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=7)


def slow(pattern: list[str], names: list[str]) -> bool:
    """The meaning of a glob, without any cleverness."""
    if not pattern:
        return not names
    if pattern[0] != "**":
        first = bool(names) and fnmatch.fnmatchcase(names[0], pattern[0])
        return first and slow(pattern[1:], names[1:])
    if len(pattern) == 1:
        return bool(names)
    return slow(pattern[1:], names) or (bool(names) and slow(pattern, names[1:]))


@settings(max_examples=500, deadline=None)
@given(COMPONENTS, NAMES)
def test_directories_are_matched_as_the_definition_says(
    pattern: list[str], names: list[str]
) -> None:
    assert bool(glob_regex("/".join(pattern)).match("/".join(names))) == slow(pattern, names)


@settings(max_examples=300, deadline=None)
@given(COMPONENTS, st.lists(NAMES, max_size=8))
def test_the_index_finds_what_the_expression_matches(
    pattern: list[str], paths: list[list[str]]
) -> None:
    known = {"/".join(names) for names in paths}
    glob = "/".join(pattern)
    matched = {path for path in known if glob_regex(glob).match(path)}
    found = set(Paths(known).matching(glob))
    assert matched <= found
    # What comes on top are the directories that the glob looks into.
    assert all(f"{glob}/".startswith(f"{path}/") for path in found - matched)


@pytest.mark.parametrize("pattern", ["*a" * 40 + "b", "**/a/" * 40 + "b", "a?" * 40 + "*b"])
def test_a_hostile_glob_is_matched_at_once(pattern: str) -> None:
    compiled = glob_regex(pattern)
    assert isinstance(compiled, re.Pattern)
    assert not compiled.match("a" * 5000)
    assert not compiled.match("a/" * 2000 + "a")
