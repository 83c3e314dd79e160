"""`python -m bench.scale.costs`: what a step, an idle engine and an idle worker cost PostgreSQL; JSON.

Real commands against a server of this machine: transactions as the server counts them, the log that it writes
before anything counts (WAL), and what its tables grow by.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psycopg

from bench.scale.hold import open_store
from bench.scale.places import new_store
from holdfast.executors.queue import queue_line
from holdfast.store.host import this_process

COMMAND = (sys.executable, "-P", "-m", "holdfast")
ARTIFACT = "seq {0} $(({0} + 199))"  # about a kilobyte, another one for each step
IDLE = 60.0  # seconds
POLLERS, POLLING = 4, 5.0  # processes, seconds


@dataclass(frozen=True, slots=True)
class Meter:
    """What the server counted until now."""

    transactions: int
    wal: int
    stored: int

    @classmethod
    def read(cls, url: str) -> Self:
        base = url.partition("&schema=")[0]
        with psycopg.connect(base, autocommit=True) as connection:
            connection.execute("SELECT pg_stat_force_next_flush()")
            row = connection.execute(
                "SELECT xact_commit, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint,"
                " (SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class"
                "  WHERE relnamespace = 'holdfast'::regnamespace AND relkind = 'r')"
                " FROM pg_stat_database WHERE datname = current_database()"
            ).fetchone()
        assert row is not None
        return cls(*row)


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale.costs", description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    steps = parser.parse_args(words).steps
    nobody = _idle()
    idle = {"an idle worker": ("worker", "--queue", "far"), "an engine": ("run", "wait.yaml")}
    found = {
        "one engine": _steps(steps, engines=1),
        "two engines": _steps(steps, engines=2),
        "a worker": _steps(steps, engines=1, queue="far"),
        **{who: _above(_idle(*words), nobody) for who, words in idle.items()},
        "polls": _polls(),
    }
    print(json.dumps(found, indent=1))


def _steps(steps: int, *, engines: int, queue: str = "") -> dict[str, float]:
    """What each of so many steps cost, of one plan that engines share."""
    with new_store("postgresql") as url, tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        runs_on = f", runs_on: {queue}" if queue else ""
        lines = [f'  s{n}: {{shell: "{ARTIFACT.format(n)}"{runs_on}}}' for n in range(steps)]
        plan = "\n".join(["name: wide", "project: bench", "steps:", *lines, ""])
        (place / "plan.yaml").write_text(plan, encoding="utf-8")
        _start(place, url, "store", "status").wait()
        before = Meter.read(url)
        workers = [_start(place, url, "worker", "--queue", queue, "-j", "4")] if queue else []
        began = time.monotonic()
        runs = [_start(place, url, "run", "-q", "-j", "4") for _ in range(engines)]
        if any(run.wait() for run in runs):
            raise RuntimeError("a run failed")
        took = time.monotonic() - began
        for worker in workers:
            worker.send_signal(signal.SIGTERM)
            worker.wait()
        after = Meter.read(url)
        return {
            "transactions": (after.transactions - before.transactions) / steps,
            "wal": (after.wal - before.wal) / steps,
            "stored": (after.stored - before.stored) / steps,
            "per_second": steps / took,
        }


def _idle(*words: str) -> dict[str, float]:
    """What somebody costs a second who has nothing to do."""
    with new_store("postgresql") as url, tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        plan = "name: wait\nproject: bench\nsteps:\n  wait: {shell: sleep 600}\n"
        (place / "wait.yaml").write_text(plan, encoding="utf-8")
        process = _start(place, url, *(words or ("--version",)))
        time.sleep(15)  # until it has begun, and the server has counted that
        before = Meter.read(url)
        time.sleep(IDLE)
        after = Meter.read(url)
        with psycopg.connect(url.partition("&schema=")[0]) as connection:
            query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast'"
            connections = connection.execute(query).fetchone()
        process.kill()
        process.wait()
        return {
            "transactions": (after.transactions - before.transactions) / IDLE,
            "wal": (after.wal - before.wal) / IDLE,
            "connections": float(connections[0]) if connections else 0.0,
        }


def _above(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    """Without what the server, and whoever reads its counters, does anyway."""
    return {name: value - other[name] for name, value in one.items()}


def _polls() -> dict[str, float]:
    """How often a second this machine can say that there is nothing to take."""
    with new_store("postgresql") as url:
        context = mp.get_context("fork")
        with context.Pool(POLLERS) as pool:
            counts = pool.map(_poll, [url] * POLLERS)
    return {"per_second": sum(counts) / POLLING}


def _poll(url: str) -> int:
    store, me = open_store(url), this_process()
    store.enter("", queue_line("far"), me)
    end, count = time.monotonic() + POLLING, 0
    while time.monotonic() < end:
        store.take_errand(["far"], me.engine)
        count += 1
    store.close()
    return count


def _start(place: Path, url: str, *words: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "HOME": str(place), "HOLDFAST_STORE": url}
    quiet = subprocess.DEVNULL
    return subprocess.Popen([*COMMAND, *words], cwd=place, env=env, stdout=quiet, stderr=quiet)


if __name__ == "__main__":
    main(sys.argv[1:])
