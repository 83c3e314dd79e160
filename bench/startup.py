"""W7: what a command or an import costs above a Python that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.envs import Found
from bench.measure import environment
from bench.results import Start

PLAN = """schema: holdfast.plan/1
name: ten
steps:
"""


@dataclass(frozen=True, slots=True)
class Command:
    """What is timed, and the process that does nothing to compare it with."""

    tool: str
    what: str
    argv: tuple[str, ...]
    nothing: tuple[str, ...] | None
    folder: Path


def holdfast_commands(scratch: Path) -> list[Command]:
    """The start-up promises: the version, a preview of ten steps and how they stand, and the import."""
    steps = "".join(f"  s{n}:\n    run: [echo, '{n}']\n" for n in range(10))
    scratch.mkdir(parents=True, exist_ok=True)
    (scratch / "plan.yaml").write_text(PLAN + steps, encoding="utf-8")
    program = str(Path(sys.executable).parent / "holdfast")
    nothing = (sys.executable, "-c", "pass")
    subprocess.run(
        [program, "run", "-q"],
        cwd=scratch,
        env=environment(scratch),
        check=True,
        capture_output=True,
    )
    timed = {
        "--version": (program, "--version"),
        "status of 10 steps": (program, "status"),
        "plan of 10 steps": (program, "plan"),
        "import": (sys.executable, "-c", "import holdfast.api"),
    }
    return [Command("holdfast", what, argv, nothing, scratch) for what, argv in timed.items()]


def peer_commands(found: Found, scratch: Path) -> list[Command]:
    peer = found.peer
    nothing = None if peer.program else (found.python, "-c", "pass")
    timed: dict[str, tuple[str, ...]] = {}
    if peer.command:
        program, *words = peer.command
        path = program if peer.program else str(Path(found.python).parent / program)
        timed["--version"] = (path, *words)
    if peer.imports:
        timed["import"] = (found.python, "-c", f"import {peer.imports}")
    return [Command(peer.name, what, argv, nothing, scratch) for what, argv in timed.items()]


def start_ups(commands: Iterable[Command], repeats: int, scratch: Path) -> list[Start]:
    found = []
    for command in commands:
        print(f"start-up: {command.tool} {command.what}", file=sys.stderr, flush=True)
        found.append(_start(command, repeats, scratch))
    return found


def _start(command: Command, repeats: int, scratch: Path) -> Start:
    """The median of several, the first one apart: it fills the caches of the system."""
    env = environment(scratch)
    timed, nothing = [], [(0.0, 0.0)] if command.nothing is None else []
    for number in range(repeats + 1):
        code, *times = time_of(command.argv, command.folder, env)
        if code != 0:
            return Start(command.tool, command.what, failed=f"ended with {code}")
        if number:
            timed.append(times)
        if command.nothing is not None:
            _, *idle = time_of(command.nothing, command.folder, env)
            nothing.append((idle[0], idle[1]))
    idle_cpu, idle_wall = (median(times[n] for times in nothing) for n in (0, 1))
    cpu, wall = (median(times[n] for times in timed) for n in (0, 1))
    return Start(
        command.tool,
        command.what,
        cpu - idle_cpu,
        wall - idle_wall,
        repeats,
        nothing=idle_cpu,
    )


def time_of(argv: tuple[str, ...], folder: Path, env: dict[str, str]) -> tuple[int, float, float]:
    """Exit code, CPU and wall seconds of a process."""
    began = time.perf_counter()
    process = subprocess.Popen(
        argv, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime, wall
