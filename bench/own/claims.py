"""Claim and complete one by one, from many processes: errands taken and reported per second.

`python -m bench.own.claims STORE PROCESSES ERRANDS`, with STORE a directory or postgresql://…, prints how
many a second, how many were taken twice or never, and the fewest and the most of one process.
"""

from __future__ import annotations

import json
import multiprocessing as mp
import sys
import time
from collections import Counter
from multiprocessing.queues import Queue

from holdfast import wire
from holdfast.model.digest import digest_bytes
from holdfast.ports import Store
from holdfast.store.host import this_process

_QUEUE = "bench"


def main() -> None:
    place, processes, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    context = mp.get_context("fork")  # before any store is open
    said: Queue[list[int]] = context.Queue()
    ready = context.Barrier(processes + 1)
    workers = [context.Process(target=_work, args=(place, said, ready)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    store = _open(place)
    engine = this_process()
    store.enter("bench", "claims", engine)
    parcel = digest_bytes(b"parcel")
    for _ in range(count):
        store.post(_QUEUE, parcel, engine.engine)
    ready.wait()
    began = time.perf_counter()
    taken = [said.get() for _ in workers]
    took = time.perf_counter() - began
    for worker in workers:
        worker.join()
    times = Counter(number for one in taken for number in one)
    reported = sum(one.report is not None for one in store.errands(engine.engine))
    store.leave(engine.engine)
    store.close()
    counts = [len(one) for one in taken]
    print(
        json.dumps(
            {
                "per_second": round(count / took, 1),
                "twice": sum(times.values()) - len(times),
                "lost": count - reported,
                "fewest": min(counts),
                "most": max(counts),
            }
        )
    )


def _open(place: str) -> Store:
    location = wire.store_location("/", place)
    return wire.open_store(location, create=not wire.is_shared(location))


def _work(place: str, said: Queue[list[int]], ready: object) -> None:
    store, me, taken = _open(place), this_process(), []
    store.enter("", f"queue:{_QUEUE}", me)
    done = digest_bytes(b"report")
    ready.wait()  # type: ignore[attr-defined]
    while errand := store.take_errand([_QUEUE], me.engine):
        if store.report(errand, done):
            taken.append(errand.id)
    store.leave(me.engine)
    store.close()
    said.put(taken)


if __name__ == "__main__":
    main()
