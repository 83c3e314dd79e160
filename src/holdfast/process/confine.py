"""What a command may touch: the value that asks for it, and where each path of it ends up.

A confined command sees the file system read-only. Homes, `/tmp`, `/run` and what else is masked are empty;
within them only what is named can be read. It writes where it is told to and nowhere else, has no
network unless that was granted, and none of the privileges that root has.

Of several paths the deepest decides; of two equal ones the later of masked, readable, writable,
protected. So a store can be hidden inside a project that may be written, and a room of one attempt can
lie inside that store.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Literal, NamedTuple

from holdfast.errors import ProcessError
from holdfast.model.fixed import frozen
from holdfast.process.limits import Limits

Kind = Literal["masked", "readable", "writable", "protected"]

# What holds keys in a home that cannot be masked whole, because the work is done there.
_KEYS = (
    ".aws",
    ".azure",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/holdfast",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".ssh",
)
_EMPTY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - what a command gets in their place
_HIDDEN = ("/run", "/root", "/home")
_POST = ("/var/mail", "/var/spool")  # of people, and the sockets of those who deliver it
_SOCKETS = "/proc/net/unix"  # a line each; the path is the eighth word
# Systems that keep programs or the names of servers where sockets lie.
_OF_RUN = (
    "/run/current-system",
    "/run/opengl-driver",
    "/run/systemd/resolve",
    "/run/NetworkManager",
)


@frozen
class Sandbox:
    """What a command is given; nothing is writable unless it is named here.

    `readable` are places inside masked ones. `protected` are read-only within `writable` ones, also
    those that are not there yet. `laid` are directories that lie, writable, at the place of others. Of
    sockets that others listen at only those in `heard` are hidden, if it is said.
    """

    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    network: bool = False
    limits: Limits = field(default_factory=Limits)
    laid: tuple[tuple[str, str], ...] = ()  # place, directory
    heard: frozenset[str] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        laid = (path for pair in self.laid for path in pair)
        for path in (*self.writable, *self.readable, *self.masked, *self.protected, *laid):
            if not os.path.isabs(path) or "\0" in path:
                raise ProcessError(
                    f'"{path}" is no place for a sandbox', hint="absolute paths only"
                )
        for path in self.writable:
            if os.path.realpath(path) == "/":
                raise ProcessError('the whole file system "/" cannot be made writable')


class Place(NamedTuple):
    """A path without links in it, and what it is to the command."""

    path: str
    kind: Kind
    source: str


def homes() -> tuple[str, ...]:
    """Where people live on this machine: the usual places, and the home of this user."""
    found = {os.path.realpath(place) for place in _HIDDEN}
    for home in (os.environ.get("HOME", ""), _home_of_user()):
        if os.path.isabs(home) and os.path.realpath(home) != "/":
            found.add(os.path.realpath(home))
    return tuple(sorted(found))


def places(sandbox: Sandbox) -> list[Place]:
    """Every place with what it is to the command, parents first; of equal ones the last kind stays."""
    found: dict[str, Kind] = {}
    laid = {os.path.realpath(place): os.path.realpath(source) for place, source in sandbox.laid}
    written = [*map(os.path.realpath, sandbox.writable), *laid]
    named: dict[Kind, Iterable[str]] = {
        "masked": (*_EMPTY, *_POST, *homes(), *sandbox.masked, *_keys(sandbox)),
        "readable": (*_OF_RUN, *sandbox.readable),
        "writable": (*sandbox.writable, *laid),
    }
    for kind, paths in named.items():
        for path in map(os.path.realpath, paths):
            if os.path.lexists(path):
                found[path] = kind
    for path in map(_first_missing, sandbox.protected):
        if path not in written and any(is_within(path, top) for top in written):
            found[path] = "protected"
    ordered = sorted(found, key=lambda path: (path.count("/"), path))
    return [Place(path, found[path], laid.get(path, path)) for path in ordered if path != "/"]


def without_gone(sandbox: Sandbox) -> Sandbox | None:
    """The sandbox without the sockets that went away since it was tried; None if none did.

    Where nothing lies any more nothing can be mounted, so a socket that goes at the wrong moment keeps a
    whole sandbox from being made. Each time fewer are hidden, none of which is there: so this ends.
    """
    now = frozenset(sockets(places(sandbox)))
    left = now if sandbox.heard is None else now & sandbox.heard
    return None if left == sandbox.heard else replace(sandbox, heard=left)


def sockets(found: Iterable[Place]) -> list[str]:
    """Sockets of others in places that can be read but not written.

    No mount that is read-only keeps a command from talking to whoever listens there. What begins to
    listen later is not among them.
    """
    kinds = {place.path: place.kind for place in found}
    folders: dict[str, str] = {}
    seen: set[str] = set()
    for path in _bound():
        folder, name = os.path.split(path)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        real = os.path.join(folders[folder], name)
        if real not in kinds and _kind(folders[folder], kinds) in {"readable", "protected"}:
            seen.add(real)
    return sorted(path for path in seen if _is_socket(path))


def _bound() -> Iterator[str]:
    """Paths that sockets of this machine were bound to."""
    try:
        with open(_SOCKETS, encoding="utf-8", errors="surrogateescape") as file:
            words = [line.rstrip("\n").split(None, 7) for line in file]
    except OSError:
        return
    yield from (found[7] for found in words if len(found) > 7 and found[7].startswith("/"))  # noqa: PLR2004 - the eighth


def _kind(path: str, kinds: Mapping[str, Kind]) -> Kind:
    """What the deepest place says that a path lies in."""
    while path not in kinds:
        if path == "/":
            return "readable"
        path = os.path.dirname(path)
    return kinds[path]


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def is_within(path: str, top: str) -> bool:
    """Whether a path is this one or beneath it."""
    return path == top or path.startswith(f"{top.rstrip('/')}/")


def is_empty(path: str) -> bool:
    """Whether a masked place is one that the command may fill as it likes: gone with the command."""
    return path in {os.path.realpath(place) for place in _EMPTY}


def _keys(sandbox: Sandbox) -> Iterator[str]:
    """The keys in a home that the command works in."""
    above = [os.path.realpath(path) for path in (*sandbox.writable, *sandbox.readable)]
    for home in homes():
        if any(is_within(home, path) for path in above):
            yield from (os.path.join(home, name) for name in _KEYS)


def _first_missing(path: str) -> str:
    """A protected path without links; of several that are not there, the first."""
    folder, name = os.path.split(os.path.normpath(path))
    folder = os.path.realpath(folder)
    if os.path.isdir(folder):
        place = os.path.join(folder, name)
        return os.path.realpath(place) if os.path.islink(place) else place
    return _first_missing(folder)


def _home_of_user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
