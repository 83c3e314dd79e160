"""Starts one driver as a process of its own, checks what it says, and gives the figures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench import shapes
from bench.envs import Found

REPOSITORY = Path(__file__).parent.parent
PATIENCE = 300.0  # seconds for one process
SHELLS = ("ninja", "make", "snakemake", "holdfast shell")  # their value is the last step's number
QUIET = {
    "DO_NOT_TRACK": "1",
    "HAMILTON_TELEMETRY_ENABLED": "false",
    "HOLDFAST_STORE": "",
    "LANGSMITH_TRACING": "false",
    "PYTHONDONTWRITEBYTECODE": "",
    "PYTHONWARNINGS": "ignore",
}


class FailedError(Exception):
    """A measurement that gave nothing; the message says why, in words for the table."""


@dataclass(frozen=True, slots=True)
class Tool:
    """Something to measure: a driver under a Python, in one of its variants."""

    name: str
    python: str
    module: str
    variant: str = ""
    shapes: tuple[str, ...] = shapes.SHAPES
    phases: tuple[str, ...] = ("cold", "noop", "change")
    largest: int = 100_000
    repeats: int = 5
    once_above: int = 100_000  # graphs above this are run cold only once
    given: int = 0  # the largest graph that it gets where all get the smallest one
    note: str = ""  # what it knows a whole plan by; removed where it is to look at every step

    def command(self, shape: str, size: int, folder: Path, salt: str = "") -> list[str]:
        words = [shape, str(size), str(folder), salt, self.variant]
        return [self.python, "-m", self.module, *words]


@dataclass(frozen=True, slots=True)
class Sample:
    wall: float
    cpu: float
    process_cpu: float
    peak_mb: float
    executed: int
    first: float | None = None  # CPU until the first step began


BARE = Tool("bare", sys.executable, "bench.bare")
FULL = Tool("bare full", sys.executable, "bench.bare", "full", ("chain",), ("cold",), 10_000)
HOLDFAST = Tool(
    "holdfast",
    sys.executable,
    "bench.peers.holdfast",
    phases=("cold", "noop", "shortcut", "change"),
    note=".holdfast/unchanged",
)
SHELL = Tool("holdfast shell", sys.executable, "bench.peers.holdfast", "shell")


def tool_of(found: Found, *, once: bool = False) -> Tool:
    """A peer as something to measure, as often as it says or once."""
    peer = found.peer
    return Tool(
        peer.name,
        found.python,
        f"bench.peers.{peer.name}",
        shapes=peer.shapes,
        phases=peer.phases,
        largest=peer.largest,
        repeats=1 if once else peer.repeats,
        once_above=1_000,
        given=peer.steps,
    )


def environment(scratch: Path, **more: str) -> dict[str, str]:
    """What drivers see: nothing of theirs is written outside the scratch folder, or sent anywhere."""
    return {**os.environ, **QUIET, "XDG_CACHE_HOME": str(scratch / "cache"), **more}


def run(tool: Tool, shape: str, size: int, folder: Path, salt: str = "", **more: str) -> Sample:
    """One process, one measurement; raises `FailedError` if it fails or gives a wrong value."""
    command = tool.command(shape, size, folder, salt)
    process = start(command, folder, **more)
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        kill(process)
        raise FailedError(f"not done after {PATIENCE:.0f} s") from None
    finally:
        kill(process)
    if process.returncode != 0:
        print(f"{' '.join(command)}\n{err[-3_000:]}", file=sys.stderr, flush=True)
        raise FailedError(_cause(err))
    said = json.loads(out.splitlines()[-1])
    wanted = right_value(tool, shape, size, salt)
    if said.pop("value") != wanted:
        raise FailedError("wrong value")
    return Sample(**said)


def start(command: list[str], folder: Path, **more: str) -> subprocess.Popen[str]:
    """A driver in a session of its own, so that it can be killed with all it started."""
    return subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env=environment(folder.parent, **more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def kill(process: subprocess.Popen[str]) -> None:
    """End a driver and all it started, as `kill -9` does; nothing if it is gone."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@cache
def _expected(shape: str, size: int, salt: str) -> str:
    return shapes.expected(shape, size, salt)


def right_value(tool: Tool, shape: str, size: int, salt: str) -> str:
    if tool.name in SHELLS:
        return str(shapes.make(shape, size)[-1][0])
    return _expected(shape, size, salt)


def _cause(words: str) -> str:
    """The kind of error that ended a driver, for a table; the whole of it went to stderr."""
    for line in reversed(words.splitlines()):
        name = line.partition(":")[0].strip()
        if name.endswith(("Error", "Exception")) and " " not in name:
            return name.rpartition(".")[2]
        if "Error" in line and line.split()[0].endswith("Error"):
            return line.split()[0]
    return "failed"
