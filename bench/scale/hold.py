"""Plays a scene: lanes in processes of their own, in step by simulated time; gives what they saw."""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import threading
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Barrier
from threading import BrokenBarrierError

import psycopg

from bench.scale.lane import Lane, Seen
from bench.scale.scene import Scene
from holdfast import wire
from holdfast.errors import StoreError
from holdfast.ports import Store

TRIES = 5
PATIENCE = 600.0  # real seconds for one window; then a lane is stuck
_CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name = 'holdfast' AND datname = current_database()"
    " ORDER BY random() LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class Played:
    """A scene that was played; `wall` is real, `lasted` simulated."""

    scene: Scene
    seen: tuple[Seen, ...]
    left: int  # errands in the store afterwards
    wall: float
    lasted: float


def open_store(place: str) -> Store:
    location = wire.store_location("/", place)
    return wire.open_store(location, create=not wire.is_shared(location))


def _reopened(place: str) -> Store:
    """Open it again; who is cut off just then comes once more, as a command would be typed again."""
    for _ in range(TRIES):
        with contextlib.suppress(StoreError):
            return open_store(place)
    return open_store(place)


def play(scene: Scene, place: str) -> Played:
    """All of it; RuntimeError if a lane failed."""
    context = mp.get_context("fork")  # before any store is open
    barrier, finished = context.Barrier(scene.lanes), context.Value("i", 0)
    pipes = [context.Pipe(duplex=False) for _ in range(scene.lanes)]
    lanes = [
        context.Process(target=_lane, args=(scene, number, place, barrier, finished, there))
        for number, (_, there) in enumerate(pipes)
    ]
    began = time.perf_counter()
    for lane in lanes:
        lane.start()
    over = threading.Event()
    cutter = threading.Thread(target=_cut, args=(place, over))
    cutter.start()
    try:
        said = [here.recv() for here, _ in pipes]
    finally:
        over.set()
        cutter.join()
        for lane in lanes:
            lane.join()
    wall = time.perf_counter() - began
    if broken := [one for one in said if isinstance(one, str)]:
        raise RuntimeError("\n".join(broken))
    found: list[tuple[Seen, float]] = said
    store = open_store(place)
    left = len(store.errands())
    store.close()
    return Played(scene, tuple(seen for seen, _ in found), left, wall, max(end for _, end in found))


def _lane(
    scene: Scene,
    number: int,
    place: str,
    barrier: Barrier,
    finished: Synchronized[int],
    pipe: Connection,
) -> None:
    try:
        lane = Lane(scene, number, lambda: _reopened(place))
        told = windows = 0
        while finished.value < scene.engines:
            barrier.wait(PATIENCE)  # all have seen how many were finished
            windows += 1
            lane.play(windows * scene.window)
            if lane.finished > told:
                with finished.get_lock():
                    finished.value += lane.finished - told
                told = lane.finished
            barrier.wait(PATIENCE)
        lane.close()
        pipe.send((lane.seen, lane.now))
    except BrokenBarrierError:
        pipe.send(f"lane {number}: another one failed")
    except BaseException as error:  # noqa: BLE001 - told to whoever waits for this lane
        barrier.abort()
        pipe.send(f"lane {number}: {''.join(traceback.format_exception(error))}")


def _cut(place: str, over: threading.Event) -> None:
    """Cut connections at any moment, also in the midst of a call. A file has none."""
    if "://" not in place:
        return
    with psycopg.connect(place.partition("&schema=")[0], autocommit=True) as connection:
        while not over.wait(0.5):
            connection.execute(_CUT)
