"""Attempts in other processes: who brings them there, and what is kept where they are carried out."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from holdfast.errors import UsageError
from holdfast.model.text import is_count
from holdfast.wire.shared import address_of, is_shared
from holdfast.wire.workshop import executor_for, is_installed

if TYPE_CHECKING:
    from holdfast.executors.elsewhere import Carrier, Elsewhere
    from holdfast.executors.far import Far
    from holdfast.executors.local import LocalExecutor
    from holdfast.executors.parcel import Get, Put, Wish
    from holdfast.executors.pump import Item
    from holdfast.model.digest import Digest
    from holdfast.model.plan import Step
    from holdfast.ports import Holder, Owner, Store
    from holdfast.process.terms import Terms

_PATIENCE = 10.0  # seconds
_ALONE = {  # a cluster that lives as long as a run, on this machine alone
    "RAY_AUTH_MODE": "token",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # so Ray listens on the loopback address
    "RAY_USAGE_STATS_ENABLED": "0",
}


def ray_executor(
    local: LocalExecutor,
    store: Store,
    location: str,
    terms: Terms,
    address: str,
    processors: int,
    say: Callable[[str], None],
) -> Elsewhere:
    """An executor on a Ray cluster; UsageError if that is not installed, or cannot reach the store."""
    if address:
        _check_address(address, location)
    if not is_installed("ray"):
        raise UsageError(
            "steps on a Ray cluster need ray, which is not installed",
            hint="pip install 'holdfast[ray]'",
        )

    def make() -> Carrier:
        if not address:
            with _environment(**_ALONE, RAY_AUTH_TOKEN=secrets.token_hex(32)):
                return carrier()
        return carrier()

    def carrier() -> Carrier:
        from holdfast.executors.ray import RayCarrier, Site

        site = Site(address, address_of(location), is_shared(location), processors)
        return RayCarrier(site, attempt, say)

    return elsewhere(local, make, store, terms)


def _check_address(address: str, location: str) -> None:
    """See, before anything runs, that somebody answers there, and can reach the store."""
    host, _, port = address.rpartition(":")
    if not (host and is_count(port) and "/" not in host):
        raise UsageError(
            f"'{address}' is not the address of a Ray cluster",
            hint="give that of the cluster itself, like HOST:6379",
        )
    try:
        with socket.create_connection((host, int(port)), _PATIENCE) as line:
            is_here = line.getsockname()[0] == line.getpeername()[0]
    except OSError as error:
        raise UsageError(f"nobody answers at '{address}': {error.strerror or error}") from error
    if not (is_here or is_shared(location)):
        raise UsageError(
            f"the Ray cluster at '{address}' cannot reach the store '{location}' of this machine",
            hint="use a postgresql:// store",
        )


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Variables that Ray reads when it is loaded and when it starts, and nobody else is to see."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@dataclass(frozen=True, slots=True)
class Watching:
    """How an engine, or a worker, watches others."""

    owner: Owner
    gone: Callable[[Holder], bool]
    poll_seconds: float
    lease_seconds: float
    monotonic: Callable[[], float] = time.monotonic


def queue_executor(
    local: LocalExecutor,
    store: Store,
    terms: Terms,
    watching: Watching,
    say: Callable[[str], None],
) -> Elsewhere:
    """An executor that leaves steps which name a queue to the workers of that queue."""
    from holdfast.engine.hearts import Hearts
    from holdfast.executors.queue import QueueCarrier

    def make() -> Carrier:
        dead = Hearts(watching).look
        return QueueCarrier(store, watching.owner.engine, dead, watching.poll_seconds, say)

    return elsewhere(local, make, store, terms, lambda step: bool(step.runs_on))


def elsewhere(
    local: LocalExecutor,
    make: Callable[[], Carrier],
    store: Store,
    terms: Terms,
    goes: Callable[[Step], bool] = lambda _: True,
) -> Elsewhere:
    """An executor that sends what can leave this machine by a carrier."""
    from holdfast.executors.elsewhere import Elsewhere
    from holdfast.executors.parcel import Wish

    wish = Wish(terms.network, terms.sandbox, terms.written_here)
    return Elsewhere(local, make, wish, store.get, store.put, goes)


def attempt(location: str, parcel: bytes) -> Iterator[Item]:
    """What a worker of a cluster runs: one attempt, with the contents of the store at `location`.

    A worker whose node is given up lives on, and would go on with what is begun elsewhere by then: it ends
    with the process that started it.
    """
    from holdfast.executors.pump import OrphanedError, pumped

    far, above = far_side(location), os.getppid()
    try:
        yield from pumped(
            _runner(), lambda say: far.attempt(parcel, say), lambda: os.getppid() != above
        )
    except OrphanedError:
        os._exit(1)


@cache
def _runner() -> asyncio.Runner:
    """One event loop for all attempts of this process: what is kept between them belongs to it."""
    return asyncio.Runner()


@cache
def far_side(location: str) -> Far:
    """Who carries out parcels in this process; opens the store when a content is asked for."""
    from holdfast.wire.stores import open_store, store_location

    @cache
    def store() -> Store:
        return open_store(store_location("/", location))

    def get(digest: Digest) -> bytes:
        return store().get(digest)

    def put(content: bytes) -> Digest:
        return store().put(content)

    return parcels_here(location, get, put)[0]


def parcels_here(
    address: str, get: Get, put: Put, allowed: Callable[[Terms, Wish], Wish] = lambda _, wish: wish
) -> tuple[Far, Sequence[LocalExecutor]]:
    """Who carries out parcels here, and the executors that are made on the way, to be closed at the end.

    They run on this machine's terms and on the wishes of whoever sent them, as far as these are allowed.
    """
    from dataclasses import replace

    from holdfast.config.sandbox import read_terms
    from holdfast.config.walls import read_walls
    from holdfast.engine.rooms import Rooms
    from holdfast.executors.far import Far
    from holdfast.process.den import own_den

    own = read_terms()
    hidden = own.hidden if "://" in address else (*own.hidden, os.path.abspath(address))
    executors: list[LocalExecutor] = []

    @cache
    def executor(wish: Wish) -> LocalExecutor:
        network, sandbox, written_here = allowed(own, wish)
        terms = replace(
            own, hidden=hidden, network=network, sandbox=sandbox, written_here=written_here
        )
        executors.append(executor_for(None, terms=terms))
        return executors[-1]

    place = own_den()
    return Far(
        place, Rooms(os.path.join(place, "rooms")), executor, get, put, read_walls(place)
    ), executors
