"""The far side: makes a job of a parcel again, runs it as any other here, and answers.

Everything lies in a private directory of this process. What stands for the project directory holds only
the modules and schemas that parcels brought; attempts may not write there, so it serves all with the same.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
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
    """Carries out parcels, one at a time.

    `executor` gives who runs attempts on the terms that somebody wishes for.
    """

    def __init__(
        self,
        place: str,
        rooms: Rooms,
        executor: Callable[[Wish], LocalExecutor],
        get: Get,
        put: Put,
    ) -> None:
        self._place = place
        self._rooms = rooms
        self._executor = executor
        self._get = get
        self._put = put
        self._roots: dict[Digest, str] = {}
        self._made = 0

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
        try:
            folder = private_folder(room, "work")
            lay(folder, parcel.files, self._get)
            root = self._root(parcel.code)
            job = parcel.job(self._get, folder, root, room, say if parcel.listens else None)
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
            self._rooms.leave(key, again=confined)
            if not confined or len(self._roots) > MOST_ROOTS:
                self._forget_roots()

    def _root(self, code: tuple[Laid, ...]) -> str:
        """A directory with these files of the project."""
        name = digest_bytes(canonical([laid_json(laid) for laid in code]))
        if name not in self._roots:
            self._made += 1
            place = os.path.join(self._place, f"root.{self._made}")
            os.mkdir(place)
            lay(place, code, self._get)
            self._roots[name] = place
        return self._roots[name]

    def _forget_roots(self) -> None:
        """They are too many, or somebody could have changed them."""
        for place in self._roots.values():
            discard_folder(place)
        self._roots = {}


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
