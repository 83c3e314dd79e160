"""What long-lived processes use: memory, descriptors, the log of the database, the disk."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression, mean

PAGE = os.sysconf("SC_PAGE_SIZE")
LOG_LIMIT = 64 << 20
WARM = 0.5  # the first part of the samples is not looked at: what is kept for later fills up then
HOUR = 3600.0
SLOPE = 0.01  # of its size in an hour, if it was looked at for an hour or longer after that
SLACK = 3 << 20  # what a shorter look may see: the folds of 256 runs that a page keeps, and noise
MORE_HANDLES = 8
FEWEST = 20  # samples of a process that can be judged


@dataclass
class Samples:
    """Of one process."""

    at: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    handles: list[int] = field(default_factory=list)


@dataclass
class Sampler:
    """Looks again and again; says in the end what grew."""

    store: Path | None
    processes: dict[str, Samples] = field(default_factory=dict)
    log: int = 0

    def look(self, pids: Mapping[str, int]) -> None:
        now = time.monotonic()
        for name, pid in pids.items():
            with suppress(OSError, ValueError, IndexError):
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                handles = len(os.listdir(f"/proc/{pid}/fd"))
                found = self.processes.setdefault(name, Samples())
                found.at.append(now)
                found.memory.append(pages * PAGE)
                found.handles.append(handles)
        if self.store is not None:
            with suppress(OSError):
                self.log = max(self.log, (self.store / "state.db-wal").stat().st_size)

    def grown(self) -> Iterator[str]:
        """What is a leak, by the second half of the samples."""
        for name, found in self.processes.items():
            if len(found.at) >= FEWEST:
                yield from leaks(name, found)
        if self.log > LOG_LIMIT:
            yield f"the log of the database had {self.log} bytes"

    def figures(self) -> dict[str, int]:
        """What a reader wants to know of it."""
        told = {"log KiB": self.log >> 10}
        for name, found in self.processes.items():
            if len(found.at) >= FEWEST:
                told[f"{name} MiB"] = round(mean(found.memory)) >> 20
                told[f"{name} KiB/h"] = round(rate(found)) >> 10
                told[f"{name} handles"] = max(found.handles)
        return told


def rate(found: Samples) -> float:
    """Bytes an hour, by a line through the second half."""
    half = int(len(found.at) * WARM)
    slope, _ = linear_regression(found.at[half:], found.memory[half:])
    return slope * HOUR


def leaks(name: str, found: Samples) -> Iterator[str]:
    half = int(len(found.at) * WARM)
    late = found.at[-1] - found.at[half]
    hourly, size = rate(found), mean(found.memory[half:])
    if hourly * late > (size * SLOPE * late if late >= HOUR else SLACK * HOUR):
        yield f"memory of the {name} grows by {hourly / size:.1%} an hour ({size:.0f} bytes)"
    if max(found.handles[half:]) > max(found.handles[:half]) + MORE_HANDLES:
        yield (
            f"handles of the {name} grow from {max(found.handles[:half])}"
            f" to {max(found.handles[half:])}"
        )
