"""Runs attempts elsewhere, by parcels; what cannot leave this machine runs here as ever.

Guards that ask a model, and steps whose changes of the project are taken over, are seen to on this side:
the far one only generates, and what changed in its folder is written into ours first.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Protocol

from holdfast.errors import AttemptError, EditError, HoldfastError, IntegrityError, StoreError
from holdfast.executors.answer import Changes, unpack_answer
from holdfast.executors.identity import files_of
from holdfast.executors.local import LocalExecutor, crashed
from holdfast.executors.parcel import Get, Put, Wish, lay, pack
from holdfast.model.digest import Json
from holdfast.model.plan import Step
from holdfast.ports import Candidate, Job, Outcome
from holdfast.process.removal import remove_folder
from holdfast.process.room import file_name, private_folder, put_given


class Carrier(Protocol):
    """Brings parcels to where they are carried out, and the answers back."""

    async def carry(self, parcel: bytes, job: Job) -> bytes:
        """The answer; the listener of the job hears what the step says meanwhile.

        AttemptError with the reason `lost` if whoever had it is gone. Cancelling this ends every process of
        the attempt before it returns.
        """

    def close(self) -> None:
        """Give up what is kept between attempts."""


class Elsewhere:
    """An executor for steps that may leave this machine; `goes` says which of them do.

    The carrier is made when the first one does, in a thread that lives as long as it and closes it: that may
    take seconds, and what it starts may depend on the thread.
    """

    def __init__(
        self,
        local: LocalExecutor,
        make: Callable[[], Carrier],
        wish: Wish,
        get: Get,
        put: Put,
        goes: Callable[[Step], bool] = lambda _: True,
    ) -> None:
        self._local = local
        self._make = make
        self._thread = ThreadPoolExecutor(1, "carrier")
        self._carrier: asyncio.Future[Carrier] | None = None
        self._wish = wish
        self._get = get
        self._put = put
        self._goes = goes

    def at_once(self, job: Job) -> Outcome | None:
        return self._local.at_once(job)

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        return self._local.identity(step, root)

    async def judge(self, job: Job, candidate: Candidate) -> Outcome:
        return await self._local.judge(job, candidate)

    async def run(self, job: Job) -> Outcome:
        stays = not job.step.can_leave or not self._goes(job.step) or job.step.id in self._local
        if stays or job.folder == job.root:
            return await self._local.run(job)
        if job.take is None and not job.step.has_judge:
            try:
                return (await self._sent(job, guarded=True))[0]
            except AttemptError as error:
                return Outcome("lost", error.reason, feedback=error.message, log=error.log)
            except (IntegrityError, StoreError, EditError):  # not the step's doing, as its file is
                raise
            except Exception as error:  # noqa: BLE001 - the boundary, as on the other side
                return crashed(error)
        return await self._local.run_with(job, partial(self._made, job))

    async def close(self) -> None:
        try:
            if self._carrier is not None:
                await asyncio.wait({self._carrier})
                if self._carrier.exception() is None:  # else that was said when it was needed
                    loop = asyncio.get_running_loop()
                    await loop.run_in_executor(self._thread, self._carrier.result().close)
        finally:
            self._thread.shutdown(wait=False)
            await self._local.close()

    async def _sent(self, job: Job, *, guarded: bool) -> tuple[Outcome, Changes]:
        parcel = pack(job, self._code(job), self._wish, self._put, guarded=guarded)
        if self._carrier is None:
            loop = asyncio.get_running_loop()
            self._carrier = asyncio.ensure_future(loop.run_in_executor(self._thread, self._make))
        carrier = await self._there(self._carrier)
        return unpack_answer(await carrier.carry(parcel, job), self._get)

    @staticmethod
    async def _there(coming: asyncio.Future[Carrier]) -> Carrier:
        """The carrier; StoreError if there is none, which is no step's doing."""
        try:
            return await asyncio.shield(coming)
        except HoldfastError:
            raise
        except Exception as error:
            said = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise StoreError(
                f"what carries steps does not start: {said}",
                hint="try again, or use --executor local",
            ) from error

    def _code(self, job: Job) -> set[str]:
        """The files of the project that lie not in the folder: modules, and schemas of guards."""
        if job.step.uses == "shell" and not job.step.is_judged:
            return set()
        return files_of(self._local.identity(job.step, job.root))

    async def _made(self, job: Job) -> Candidate:
        """What the far side generated, with its folder as it was left there."""
        outcome, changes = await self._sent(job, guarded=False)
        if outcome.candidate is None:
            raise AttemptError(outcome.feedback, reason=outcome.code, log=outcome.log)
        _write_back(job.folder, changes, self._get)
        inputs = private_folder(job.room, "inputs")
        for need, given in job.given.items():  # for guards of this side
            put_given(f"{inputs}/{file_name(need)}", given)
        return outcome.candidate


def _write_back(folder: str, changes: Changes, get: Get) -> None:
    for path in changes.removed:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(os.path.join(folder, path))
    for laid in changes.written:
        if os.path.isdir(place := os.path.join(folder, laid.path)):
            remove_folder(place)
    lay(folder, changes.written, get)
    for path, target in changes.links:
        place = os.path.join(folder, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.symlink(target, place)
