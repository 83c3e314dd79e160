"""Peers that are programs: steps are shells that write a file, and the whole process is measured."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from bench.case import LOG, Case, Timing, peak_mb, report

OUTPUTS = "o"
SOURCE = "leaf.src"  # the changed step needs this file
LOOK = 0.005  # seconds between looks at the memory of a program


def prepare(case: Case, file: str, text: str) -> None:
    """Write the build file once, and the leaf's source if it changed."""
    (case.folder / OUTPUTS).mkdir(exist_ok=True)
    if not (case.folder / file).exists():
        (case.folder / file).write_text(text, encoding="utf-8")
    source = case.folder / SOURCE
    if not source.exists() or source.read_text(encoding="utf-8") != case.salt:
        source.write_text(case.salt, encoding="utf-8")


def needs_of(case: Case, number: int, needs: Sequence[int]) -> list[str]:
    """The files that a step needs."""
    files = [f"{OUTPUTS}/{need}" for need in needs]
    return [*files, SOURCE] if number == case.leaf else files


def command_of(number: str, output: str, dollar: str = "$$") -> str:
    """What a step does, written for a file in which `dollar` stands for a dollar."""
    log = f" && echo {number} >> {dollar}{LOG}" if LOG in os.environ else ""
    return f"echo {number} > {output}{log}"


class _Watch(threading.Thread):
    """Looks at the memory of a process until told to stop."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.process, self.peak, self.done = process, 0.0, threading.Event()

    def run(self) -> None:
        while not self.done.wait(LOOK):
            self.peak = max(self.peak, peak_mb(self.process))


def measure(case: Case, command: Sequence[str]) -> None:
    """Run the command under the watch, and report; if it fails, so does the driver."""
    mark, words, timing = case.folder / "mark", case.folder / "said", Timing()
    mark.write_bytes(b"")
    wall = time.perf_counter()
    with words.open("wb") as said:
        process = subprocess.Popen(command, cwd=case.folder, stdout=said, stderr=subprocess.STDOUT)
        watch = _Watch(process.pid)
        watch.start()
        _, status, used = os.wait4(process.pid, 0)
    timing.wall, timing.cpu = time.perf_counter() - wall, used.ru_utime + used.ru_stime
    watch.done.set()
    watch.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(words.read_text(encoding="utf-8", errors="replace")[-2_000:])
    executed = _written_since(case.folder / OUTPUTS, mark.stat().st_mtime_ns)
    value = (case.folder / OUTPUTS / str(case.last)).read_text(encoding="ascii").strip()
    report(value, timing, executed, watch.peak)


def _written_since(folder: Path, mark: int) -> int:
    return sum(entry.stat().st_mtime_ns >= mark for entry in os.scandir(folder))
