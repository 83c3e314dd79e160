"""What every driver is given and what it prints: one graph, one folder, one line of JSON.

A driver is a process: `python -m bench.peers.NAME SHAPE SIZE FOLDER SALT VARIANT`. It runs the graph
to its end, or goes on where an earlier process left it, and says the value of the last step.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from bench import shapes

LOG = "BENCH_LOG"  # names a file to which every execution of a step adds the step's number


class Case:
    """One graph in one folder; counts what is executed."""

    def __init__(
        self, shape: str, size: int, folder: str, salt: str = "", variant: str = ""
    ) -> None:
        self.shape, self.size, self.salt, self.variant = shape, size, salt, variant
        self.folder = Path(folder).absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.graph = shapes.make(shape, size)
        self.last = self.graph[-1][0]
        self.leaf = shapes.leaf(shape, size)
        self.executed = 0
        self.began: float | None = (
            None  # the CPU that the process had used when the first step began
        )
        log = os.environ.get(LOG)
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644) if log else None

    @classmethod
    def given(cls) -> Case:
        """The case that the command line names."""
        shape, size, folder, *more = sys.argv[1:]
        return cls(shape, int(size), folder, *more)

    def salt_of(self, number: int) -> str:
        return self.salt if number == self.leaf else ""

    def step(self, number: int, needs: Sequence[str]) -> str:
        """Carry out a step."""
        if not self.executed:
            self.began = time.process_time()
        self.executed += 1
        if self._log is not None:
            os.write(self._log, b"%d\n" % number)
        return shapes.body(number, needs, self.salt_of(number))


class Timing:
    """Wall and CPU time of a block: the run itself, without start-up and without loading the graph."""

    wall = cpu = start = 0.0

    def __enter__(self) -> Self:
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        self.start = self.cpu
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu, self.wall = time.process_time() - self.cpu, time.perf_counter() - self.wall


def peak_mb(process: int | str = "self") -> float:
    """The most memory that a process held so far, 0 where the system does not say.

    Not `ru_maxrss`: a child inherits that of the process that started it.
    """
    with suppress(OSError), open(f"/proc/{process}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return 0.0


def report(
    value: str,
    timing: Timing,
    executed: int,
    peak: float | None = None,
    began: float | None = None,
) -> None:
    """The driver's last line. The value is checked by whoever started the driver."""
    said = {
        "value": value,
        "wall": timing.wall,
        "cpu": timing.cpu,
        "process_cpu": time.process_time(),
        "executed": executed,
        "peak_mb": peak_mb() if peak is None else peak,
        "first": None if began is None else began - timing.start,
    }
    print("\n" + json.dumps(said), flush=True)
