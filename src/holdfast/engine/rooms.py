"""The private directories of attempts, one after the other in the same few.

Making and removing five directories costs more than starting a program, most of all on a disk that
is being synchronised. So a room that was left tidy is emptied and given to the next attempt, under
its name. Only after an attempt of which no process can be alive, or it could reach into the next.
"""

from __future__ import annotations

import os
import shutil
import stat

# What every attempt has; the first two are there when it begins.
_HOME, _TEMPORARY, _INPUTS, _WITH = "home", "tmp", "inputs", "with"
_LASTING = frozenset({_HOME, _TEMPORARY, _INPUTS, _WITH})
_PRIVATE = stat.S_IFDIR | 0o700


class Rooms:
    """The rooms of one run, beneath one directory."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._free: list[str] = []

    def take(self, name: str) -> str:
        """A room for the attempt of this name, with nothing in it from before."""
        room = os.path.join(self._place, name)
        if os.path.lexists(room):
            shutil.rmtree(room, ignore_errors=True)
        while self._free:
            try:
                os.rename(self._free.pop(), room)
            except OSError:  # somebody removed it
                continue
            return room
        os.makedirs(self._place, exist_ok=True)
        os.mkdir(room, 0o700)
        for inner in (_HOME, _TEMPORARY):
            os.mkdir(os.path.join(room, inner), 0o700)
        return room

    def leave(self, name: str, *, again: bool) -> None:
        """The attempt has ended; `again` says that none of its processes can be alive."""
        room = os.path.join(self._place, name)
        if again and _emptied(room):
            self._free.append(room)
        else:
            shutil.rmtree(room, ignore_errors=True)

    def close(self) -> None:
        """Remove the rooms that wait for an attempt."""
        while self._free:
            shutil.rmtree(self._free.pop(), ignore_errors=True)


def _emptied(room: str) -> bool:
    """Remove what an attempt left in its room; False if the room is not as it was made."""
    found = set()
    try:
        with os.scandir(room) as entries:
            for entry in entries:
                if entry.name not in _LASTING:
                    _remove(entry)
                elif entry.stat(follow_symlinks=False).st_mode != _PRIVATE:
                    return False
                else:
                    found.add(entry.name)
                    _empty(entry.path)
    except OSError:
        return False
    return {_HOME, _TEMPORARY} <= found


def _empty(folder: str) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            _remove(entry)


def _remove(entry: os.DirEntry[str]) -> None:
    if entry.is_dir(follow_symlinks=False):
        shutil.rmtree(entry.path)
    else:
        os.unlink(entry.path)
