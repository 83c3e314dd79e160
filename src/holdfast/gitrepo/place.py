"""Where a person's repository is, found by reading files: git is not asked, so nothing decides but they."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from holdfast.errors import UsageError
from holdfast.gitrepo.calls import Room, Settings, ask
from holdfast.gitrepo.names import shown
from holdfast.process.gitplaces import top_of

_MOST = 1 << 16
# Settings of a repository that are plain facts about its files. No other of its settings is taken over.
_FACTS = {
    "core.autocrlf": {"true", "false", "input"},
    "core.eol": {"lf", "crlf", "native"},
    "core.filemode": {"true", "false"},
    "core.ignorecase": {"true", "false"},
    "core.symlinks": {"true", "false"},
    "core.precomposeunicode": {"true", "false"},
}


@dataclass(frozen=True, slots=True)
class Place:
    """A person's work tree, the git directory of that work tree, and the one that all share."""

    top: str
    git_dir: str
    common: str


def locate(folder: str) -> Place:
    """The work tree that a folder lies in; UsageError if there is none.

    A directory that merely looks like a repository of its own (bare, inside the work tree) is not
    taken for one: only something called `.git` counts.
    """
    top = top_of(os.path.realpath(folder))
    if top is None:
        raise UsageError(f"{shown(folder)} lies in no work tree of git", hint="git init")
    git_dir = _git_dir(top)
    try:
        common = os.path.join(git_dir, _line(os.path.join(git_dir, "commondir")))
    except OSError:
        common = git_dir
    common = os.path.realpath(common)
    for part in ("objects", "refs"):
        if not os.path.isdir(os.path.join(common, part)):
            raise UsageError(f"{shown(common)} is no git directory: it has no {part!r}")
    return Place(top, os.path.realpath(git_dir), common)


def _git_dir(top: str) -> str:
    place = os.path.join(top, ".git")
    if os.path.isdir(place):
        return place
    try:
        word, _, where = _line(place).partition(" ")
    except OSError as error:
        raise UsageError(f"{shown(place)} cannot be read: {error.strerror}") from error
    if word != "gitdir:" or not where:
        raise UsageError(f"{shown(place)} names no git directory")
    return os.path.join(top, where)


def _line(path: str) -> str:
    with open(path, "rb") as file:
        return os.fsdecode(file.read(_MOST)).removesuffix("\n")


def read_settings(place: Place) -> Mapping[str, str]:
    """What the repository's own file of settings says, as data: the last value of each key.

    Files that it includes are not read.
    """
    file = os.path.join(place.common, "config")
    if not os.path.isfile(file):
        return MappingProxyType({})
    room = Room(place.common, place.top)
    listed = ask(room, "config", "--file", file, "--no-includes", "--null", "--list")
    rows = (row.partition("\n") for row in os.fsdecode(listed).split("\0") if row)
    return MappingProxyType({key: value for key, _, value in rows})


def facts(settings: Mapping[str, str]) -> Settings:
    """Those settings that say how files are stored, and could start nothing."""
    return tuple(
        (key, settings[key].lower())
        for key, values in _FACTS.items()
        if settings.get(key, "").lower() in values
    )


def ignored(place: Place) -> bytes:
    """The rules that a person keeps beside the tree for what git ignores: global first, then of the clone.

    A person's own configuration is read here on purpose, and only for the place of this file.
    """
    files = [_global_ignore(), os.path.join(place.common, "info", "exclude")]
    rules = b""
    for file in files:
        try:
            with open(file, "rb") as opened:
                rules += opened.read().rstrip(b"\n") + b"\n"
        except OSError:
            continue
    return rules


def _global_ignore() -> str:
    set_by_person = read_global("core.excludesFile", "--type=path")
    if set_by_person:
        return set_by_person
    above = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(above, "git", "ignore")


def read_global(key: str, *flags: str) -> str:
    """One value of the person's own configuration of git, which no repository can change."""
    room = Room(os.devnull, "/")
    names = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")
    env = {name: os.environ.get(name) for name in names}
    said = ask(room, "config", "--global", *flags, "--get", key, env=env, fine=(0, 1))
    return os.fsdecode(said).removesuffix("\n")
