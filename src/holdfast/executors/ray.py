"""Carries parcels to a Ray cluster: one task for each attempt.

Ray tries nothing again: whether an attempt counts is decided by the store. A worker or a node that dies
loses the attempt, and the engine makes another one. A task that is cancelled is interrupted first, so that
it ends its processes itself; its worker is killed if that takes too long, and what a killed worker started
dies with it. Answers and parcels are small; contents never go through Ray's object store.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple, Protocol, cast

import ray
from ray import ObjectRefGenerator
from ray._private import worker
from ray.exceptions import RayError, RayTaskError

from holdfast.errors import AttemptError, StoreError
from holdfast.executors.pump import Item
from holdfast.model.plan import OF_MACHINES, Step
from holdfast.ports import Job
from holdfast.process.removal import discard_folder
from holdfast.process.run import sweep

GRACE = 3.0  # seconds for a task to end what it started
FORCED = 30.0  # seconds until a killed worker must be known to be gone
RUNS_ON = "runs_on:"  # what a node offers whose name a step asks for
_A_LITTLE = 0.001  # of such a name: it says where, not how much
_OF_RAY = frozenset({"CPU", "GPU", "object_store_memory"})  # what it asks for by other words
_OBJECTS = 80 * 2**20  # bytes; nothing of ours is in there

Task = Callable[[str, bytes], Iterator[Item]]


class Remote(Protocol):
    """A task as Ray begins it."""

    def remote(self, location: str, parcel: bytes, /) -> object:
        """Begin it."""


class Site(NamedTuple):
    """Where the tasks run, and what they are told; without an address a cluster of our own is started."""

    address: str
    location: str  # of the store
    is_shared: bool  # whether other machines can reach the store
    processors: int  # of a cluster of our own


class RayCarrier:
    """Brings parcels to a Ray cluster; made and closed in one thread, and for as long as that lives.

    `task` is what a worker runs. The processes of a cluster of our own end with the thread that started them.
    """

    def __init__(self, site: Site, task: Task, say: Callable[[str], None]) -> None:
        self._site = site
        self._folder = ""
        if site.address:
            self._join()
        else:
            say("starting a Ray cluster on this machine")
            self._start()
        worker._worker_logs_enabled = False  # noqa: SLF001 - or Ray prints what happens to nodes on stdout
        self._task = ray.remote(task)
        self._tasks: dict[Hashable, Remote] = {}
        self._offers = cast("Mapping[str, float]", ray.cluster_resources())  # type: ignore[no-untyped-call]  # of Ray

    async def carry(self, parcel: bytes, job: Job) -> bytes:
        task = self._task_for(job.step)
        stream = cast("ObjectRefGenerator[Item]", task.remote(self._site.location, parcel))
        listen = job.on_output or _nobody
        try:
            async for coming in stream:
                said, answer = cast("Item", await coming)
                for name, chunk in said:
                    listen(name, chunk)
                if answer:
                    return answer
        except asyncio.CancelledError:
            await asyncio.shield(self._end(stream, job))
            raise
        except RayTaskError as error:
            raise StoreError(
                f"the Ray cluster cannot run attempts: {_last_line(error)}",
                hint="install the same version of holdfast on all of its nodes",
            ) from error
        except RayError as error:
            raise AttemptError(_words(error), reason="lost") from error
        raise AttemptError("the Ray task ended without an answer", reason="lost")

    def close(self) -> None:
        ray.shutdown()
        if self._folder:
            discard_folder(self._folder)

    def _task_for(self, step: Step) -> Remote:
        """The task with what a step asks of the node that runs it; many ask for the same."""
        takes = step.resources
        named = takes.keys() & self._offers.keys() - OF_MACHINES - _OF_RAY
        custom: dict[str, float] = {name: takes[name] for name in sorted(named)}
        if step.runs_on:
            custom[RUNS_ON + step.runs_on] = _A_LITTLE
        machine = (takes.get("cpus", 1), takes.get("gpus", 0), takes.get("memory"))
        key = (*machine, *custom.items())
        if key not in self._tasks:
            cpus, gpus, memory = machine
            self._tasks[key] = self._task.options(
                num_returns="streaming",
                max_retries=0,
                retry_exceptions=False,
                num_cpus=cpus,
                num_gpus=gpus,
                memory=memory,
                resources=custom,
            )
        return self._tasks[key]

    async def _end(self, stream: ObjectRefGenerator[Item], job: Job) -> None:
        """Until nothing of the attempt runs any more."""
        ended = asyncio.ensure_future(_completed(stream))
        ray.cancel(stream, force=False)
        if not (await asyncio.wait({ended}, timeout=GRACE))[0]:
            ray.cancel(stream, force=True)
            await asyncio.wait({ended}, timeout=FORCED)
            sweep(job.mark)

    def _start(self) -> None:
        """A cluster of our own, for this run and on this machine alone."""
        self._folder = tempfile.mkdtemp(prefix="holdfast-ray-")
        try:
            ray.init(
                address="local",
                num_cpus=self._site.processors,
                object_store_memory=_OBJECTS,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                _temp_dir=self._folder,
            )
        except Exception as error:  # Ray raises plain ones too, such as for a node that is late
            self.close()
            raise StoreError(
                f"Ray does not start on this machine: {_last_line(error)}",
                hint="try again, or use --executor local",
            ) from error

    def _join(self) -> None:
        """A cluster that is there already."""
        try:
            ray.init(address=self._site.address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError, RayError) as error:
            raise StoreError(
                f"there is no Ray cluster at '{self._site.address}': {_last_line(error)}",
                hint="with token authentication, RAY_AUTH_MODE and RAY_AUTH_TOKEN must be as there",
            ) from error
        here = socket.gethostname()
        others = [
            node["NodeManagerHostname"]
            for node in ray.nodes()  # type: ignore[no-untyped-call]  # of Ray
            if node["Alive"] and node["NodeManagerHostname"] != here
        ]
        if others and not self._site.is_shared:
            ray.shutdown()
            raise StoreError(
                f"'{others[0]}' of the Ray cluster cannot reach the store '{self._site.location}'",
                hint="use a postgresql:// store",
            )


async def _completed(stream: ObjectRefGenerator[Item]) -> None:
    with suppress(RayError):
        await stream.completed()


def _nobody(stream: str, chunk: bytes) -> None:
    """Nobody listens."""


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__


def _words(error: RayError) -> str:
    first = str(error).strip().partition("\n")[0] or type(error).__name__
    return f"whoever ran it on the Ray cluster is gone: {first}"
