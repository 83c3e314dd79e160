"""The private directories of attempts: a few of them, used one attempt after the other.

Making and removing five directories costs more than starting a program, most of all on a disk that
is being synchronised. So a room is emptied and given to the next attempt: only after one of which
no process can be alive, or it could reach into the next, and only if it is as it was made.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Collection, Hashable

from holdfast.process.removal import discard_folder, remove_folder

_LASTING = ("home", "tmp", "inputs", "with", "add", "work")  # what every attempt has
_PRIVATE = stat.S_IFDIR | 0o700
# A directory younger than this could have changed once more without its stamp telling.
_SETTLED_NS = 100_000_000


class Rooms:
    """The rooms of one run, beneath one directory; no other engine's have the same names."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._token = secrets.token_hex(4)
        self._made = 0
        self._free: list[str] = []
        self._taken: dict[Hashable, tuple[str, int]] = {}
        self._stamps: dict[str, tuple[int, int]] = {}
        self._places: dict[str, tuple[str, ...]] = {}

    def take(self, attempt: Hashable) -> str:
        """A room for an attempt, with nothing in it from before."""
        room = self._free.pop() if self._free else self._make()
        self._taken[attempt] = (room, time.time_ns())
        return room

    def leave(self, attempt: Hashable, *, again: bool) -> None:
        """The attempt has ended; `again` says that none of its processes can be alive."""
        room, since = self._taken.pop(attempt, ("", 0))
        if not room:
            return
        if again and self._tidy(room, since - _SETTLED_NS):
            self._free.append(room)
        else:
            self._remove(room)

    def close(self) -> None:
        """Remove the rooms that wait for an attempt."""
        while self._free:
            self._remove(self._free.pop())

    def _make(self) -> str:
        self._made += 1
        room = os.path.join(self._place, f"{self._token}.{self._made}")
        os.makedirs(self._place, exist_ok=True)
        os.mkdir(room, 0o700)
        for name in _LASTING:
            os.mkdir(f"{room}/{name}", 0o700)
        return room

    def _tidy(self, room: str, before: int) -> bool:
        """Remove what an attempt left; False if the room is not as it was made.

        A directory whose stamp is older than the attempt and still the same needs no look.
        """
        try:
            for place in self._lasting(room):
                found = os.lstat(place)
                if found.st_mode != _PRIVATE:
                    return False
                same = self._stamps.get(place) == (found.st_ino, found.st_ctime_ns)
                if not same or found.st_ctime_ns >= before:
                    _empty(place, _LASTING if place == room else ())
                    found = os.lstat(place)
                    self._stamps[place] = (found.st_ino, found.st_ctime_ns)
        except OSError:
            return False
        return True

    def _lasting(self, room: str) -> tuple[str, ...]:
        """The room and the directories that it always has."""
        found = self._places.get(room)
        if found is None:
            found = self._places[room] = (room, *(f"{room}/{name}" for name in _LASTING))
        return found

    def _remove(self, room: str) -> None:
        for place in self._places.pop(room, ()):
            self._stamps.pop(place, None)
        discard_folder(room)


def _empty(folder: str, but: Collection[str]) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in but:
                continue
            if entry.is_dir(follow_symlinks=False):
                remove_folder(entry.path)
            else:
                os.unlink(entry.path)
