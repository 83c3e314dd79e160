"""The far side: makes a job of a parcel again, runs it as any other here, and answers.

Everything lies in a private directory of this process. What stands for the project directory holds only
the modules and schemas that parcels brought. Attempts in a sandbox cannot write there, so it serves all with
the same; after one that could, nobody else begins in it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from holdfast.errors import IntegrityError, StoreError, UsageError
from holdfast.executors.answer import Changes, pack_answer, pack_fault
from holdfast.executors.local import LocalExecutor
from holdfast.executors.parcel import (
    Get,
    Laid,
    Packer,
    Parcel,
    Put,
    Wish,
    laid_json,
    lay,
    paths_in,
    unpack,
)
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Digest, canonical, digest_bytes
from holdfast.model.walls import WALLS, Walls
from holdfast.ports import Job, Outcome
from holdfast.process.inside import SpecialFileError, open_regular
from holdfast.process.removal import discard_folder
from holdfast.process.room import private_folder

MOST_ROOTS = 16

Say = Callable[[str, bytes], None]


class Rooms(Protocol):
    """Gives private directories to attempts."""

    def take(self, attempt: Hashable) -> str:
        """A directory with nothing in it from before."""

    def leave(self, attempt: Hashable, *, again: bool) -> None:
        """The attempt has ended; `again` says that none of its processes can be alive."""


class Far:
    """Carries out parcels; `executor` gives who runs attempts on the terms that somebody wishes for."""

    def __init__(
        self,
        place: str,
        rooms: Rooms,
        executor: Callable[[Wish], LocalExecutor],
        get: Get,
        put: Put,
        walls: Walls = WALLS,
    ) -> None:
        self._place = place
        self._rooms = rooms
        self._executor = executor
        self._get = get
        self._put = put
        self._walls = walls
        self._roots = Roots(place, get)

    async def attempt(self, parcel: bytes, say: Say) -> bytes:
        """The answer to a parcel; `say` gets what the step says meanwhile.

        Cancelling it ends every process of the attempt before this returns.
        """
        try:
            return await self._attempt(unpack(parcel, self._get), say)
        except (StoreError, IntegrityError, UsageError) as error:
            return pack_fault(error)

    async def _attempt(self, parcel: Parcel, say: Say) -> bytes:
        key, confined = object(), False
        room = self._rooms.take(key)
        root = self._roots.take(parcel.code)
        try:
            folder = private_folder(room, "work")
            lay(folder, parcel.files, self._get)
            on_output = say if parcel.listens else None
            job = parcel.job(self._get, folder, root.place, room, on_output, self._walls)
            executor = self._executor(parcel.wish)
            packer = Packer(self._put, parcel.secrets)
            if parcel.guarded:
                outcome, changes = await executor.run(job), Changes()
            else:
                before = {path: _mark(full) for path, full in paths_in(folder)}
                outcome = await executor.run(_unguarded(job))
                outcome, changes = _changed(outcome, folder, before, packer)
            made = outcome.candidate
            confined = outcome.ended == "accepted" and made is not None and made.confined
            return pack_answer(outcome, changes, packer)
        finally:
            self._roots.leave(root, again=confined)
            self._rooms.leave(key, again=confined)


@dataclass(slots=True)
class Root:
    """A directory that stands for the project in attempts that are under way."""

    key: Digest
    place: str
    users: int = 0


class Roots:
    """Directories with files of projects, each for all attempts that brought the same ones."""

    def __init__(self, place: str, get: Get) -> None:
        self._place = place
        self._get = get
        self._made = 0
        self._kept: dict[Digest, Root] = {}

    def take(self, code: tuple[Laid, ...]) -> Root:
        """A directory with these files, and nothing else."""
        key = digest_bytes(canonical([laid_json(laid) for laid in code]))
        root = self._kept.get(key)
        if root is None:
            self._made += 1
            root = Root(key, os.path.join(self._place, f"root.{self._made}"))
            os.mkdir(root.place)
            lay(root.place, code, self._get)
            self._kept[key] = root
        root.users += 1
        return root

    def leave(self, root: Root, *, again: bool) -> None:
        """An attempt has ended; with `again` it cannot have changed anything there."""
        root.users -= 1
        is_kept = self._kept.get(root.key) is root
        if is_kept and (not again or len(self._kept) > MOST_ROOTS):
            del self._kept[root.key]
            is_kept = False
        if not is_kept and not root.users:
            discard_folder(root.place)


def _unguarded(job: Job) -> Job:
    """The job without what would judge it: that is done where it came from."""
    return replace(job, step=replace(job.step, guards=(), outputs=(), schema=None))


def _mark(full: str) -> tuple[int, str]:
    """What tells that a file is another one than before."""
    with open_regular(full) as file:
        mode = os.fstat(file.fileno()).st_mode & 0o777
        return mode, hashlib.file_digest(file, "sha256").hexdigest()


def _changed(
    outcome: Outcome, folder: str, before: Mapping[str, tuple[int, str]], packer: Packer
) -> tuple[Outcome, Changes]:
    """What an attempt changed in its folder; it is refused if that cannot be sent."""
    written, links, left = [], [], dict(before)
    for path, full in sorted(paths_in(folder)):
        if os.path.islink(full):
            links.append((path, os.readlink(full)))
            continue
        try:
            mark = _mark(full)
            if mark != left.pop(path, None):
                with open_regular(full) as file:
                    written.append(Laid(path, mark[0], packer.piece(file.read())))
        except SpecialFileError:
            words = f"it left '{path}', which is no file"
            verdict = Verdict("reject", "produces", words)
            refused = Outcome("rejected", "guard_rejected", None, verdict, feedback=words)
            return refused._replace(log=outcome.log), Changes()
    return outcome, Changes(tuple(written), tuple(left), tuple(links))
