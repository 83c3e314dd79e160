"""Which places inside masked ones hold the programs that commands are started with.

A home is masked, but programs may be installed there: those that PATH names are shown, with what they are
made of as far as that can be told. What lies beside them stays hidden: `~/.cargo/bin` is shown,
`~/.cargo/credentials.toml` is not.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator, Mapping

from holdfast.process.confine import homes, is_within

_BIN = frozenset({"bin", "sbin"})
_MOST_LINKS = 400
_CONFIG = "pyvenv.cfg"


@functools.lru_cache(maxsize=64)
def tool_places(path: str, root: str) -> tuple[str, ...]:
    """What must be readable for the programs of a PATH, the engine's own included, beside a project."""
    found: dict[str, None] = {}
    library = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 2))
    for place in (
        sys.prefix,
        sys.base_prefix,
        sys.base_exec_prefix,
        os.path.realpath(sys.executable),
        library,
    ):
        found.setdefault(place)
    folders = [os.path.normpath(one) for one in path.split(os.pathsep) if os.path.isabs(one)]
    top = os.path.realpath(root)
    for folder in folders:
        # What lies in the project is shown with it, as far as it is not hidden. It can name nothing
        # else: perhaps a step wrote it.
        if os.path.isdir(folder) and not is_within(os.path.realpath(folder), top):
            found.update(dict.fromkeys(_of_folder(folder)))
    found.update(dict.fromkeys(toolchains(path).values()))
    return tuple(place for place in found if os.path.exists(place) and not _is_home(place))


@functools.lru_cache(maxsize=64)
def toolchains(path: str) -> Mapping[str, str]:
    """Variables that tell programs of a PATH, which only choose between versions, where these are."""
    for folder in path.split(os.pathsep):
        place = os.environ.get("RUSTUP_HOME") or os.path.join(folder, "../../.rustup")
        is_there = os.path.isabs(folder) and os.path.isfile(os.path.join(folder, "rustup"))
        if is_there and os.path.isdir(os.path.join(place, "toolchains")):
            return {"RUSTUP_HOME": os.path.normpath(place)}
    return {}


def _of_folder(folder: str) -> Iterator[str]:
    yield folder
    real = os.path.realpath(folder)
    yield from _prefix(real)
    if not any(is_within(real, home) for home in homes()):
        return
    with os.scandir(real) as entries:
        for _, entry in zip(range(_MOST_LINKS), entries, strict=False):
            if entry.is_symlink():
                target = os.path.realpath(entry.path)
                yield target
                yield from _prefix(os.path.dirname(target))


def _prefix(folder: str) -> Iterator[str]:
    """The installation that a folder of programs belongs to, unless more than that lies there."""
    above, name = os.path.split(folder)
    if name == "shims":  # of programs that choose between versions
        yield above
    if name not in _BIN:
        return
    if os.path.isfile(os.path.join(above, _CONFIG)):
        yield from _environment(above)
    elif not any(os.path.dirname(above) == home or above == home for home in homes()):
        yield above


def _environment(folder: str) -> Iterator[str]:
    """A virtual environment of Python, and the Python that it is made from."""
    try:
        with open(os.path.join(folder, _CONFIG), encoding="utf-8") as file:
            lines = [line.partition("=") for line in file]
    except (OSError, UnicodeDecodeError):
        return
    yield folder
    for key, _, value in lines:
        if key.strip() == "home" and os.path.isabs(value.strip()):
            yield from _prefix(os.path.realpath(value.strip()))


def _is_home(place: str) -> bool:
    """Whether a place is a home or holds homes: then it stays hidden whatever is in it."""
    real = os.path.realpath(place)
    return any(is_within(home, real) for home in homes())
