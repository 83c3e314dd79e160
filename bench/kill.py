"""W6: kill -9 when half of the steps were begun, then run again; the log of executions tells the rest."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from statistics import median

from bench import shapes
from bench.case import LOG
from bench.measure import PATIENCE, FailedError, Tool, kill, run, start
from bench.results import Kill, Resume
from holdfast.api import artifacts, where

LOOK = 0.0005  # seconds between looks at the log


def kill_and_resume(tool: Tool, shape: str, size: int, scratch: Path) -> Kill:
    """One kill and one resume of a tool."""
    print(f"kill -9: {tool.name} {shape} {size:,}", file=sys.stderr, flush=True)
    shutil.rmtree(scratch, ignore_errors=True)
    folder, log = scratch / "project", scratch / "log"
    scratch.mkdir(parents=True)
    log.touch()
    try:
        _kill_half_way(tool, shape, size, folder, log)
        before = _numbers(log)
        finished = _accepted(folder, scratch) if tool.name.startswith("holdfast") else None
        run(tool, shape, size, folder, **{LOG: str(log)})
    except FailedError as error:
        return Kill(tool.name, shape, size, failed=str(error))
    after = set(_numbers(log)[len(before) :])
    wanted = {number for number, _ in shapes.make(shape, size)}
    shutil.rmtree(scratch, ignore_errors=True)
    return Kill(
        tool=tool.name,
        shape=shape,
        size=size,
        before=len(set(before)),
        twice=len(after.intersection(before)),
        lost=len(wanted.difference(after, before)),
        finished_again=None if finished is None else len(after & finished),
    )


def resume_costs(tool: Tool, shape: str, size: int, scratch: Path, repeats: int) -> Resume:
    """One kill, and what it costs to go on until a step begins, beside a run that finds nothing to do.

    Each resume begins with a copy of what the kill left, and runs to its end.
    """
    print(f"resume: {tool.name} {shape} {size:,}", file=sys.stderr, flush=True)
    shutil.rmtree(scratch, ignore_errors=True)
    left, folder, log = scratch / "left", scratch / "project", scratch / "log"
    scratch.mkdir(parents=True)
    log.touch()
    firsts, noops = [], []
    try:
        _kill_half_way(tool, shape, size, folder, log)
        folder.rename(left)
        for _ in range(repeats):
            shutil.copytree(left, folder)
            resumed = run(tool, shape, size, folder)
            if tool.note:
                shutil.rmtree(folder / tool.note, ignore_errors=True)
            again = run(tool, shape, size, folder)
            shutil.rmtree(folder)
            assert resumed.first is not None
            assert again.executed == 0
            firsts.append(resumed.first)
            noops.append(again.cpu)
    except FailedError as error:
        return Resume(tool.name, shape, size, failed=str(error))
    before = len(set(_numbers(log)))
    shutil.rmtree(scratch, ignore_errors=True)
    return Resume(
        tool=tool.name,
        shape=shape,
        size=size,
        before=before,
        first=median(firsts),
        noop=median(noops),
        repeats=repeats,
    )


def _kill_half_way(tool: Tool, shape: str, size: int, folder: Path, log: Path) -> None:
    process = start(tool.command(shape, size, folder), folder, **{LOG: str(log)})
    end = time.monotonic() + PATIENCE
    try:
        begun = 0
        with log.open("rb") as lines:
            while process.poll() is None and begun < size // 2:
                if time.monotonic() > end:
                    raise FailedError(f"not half done after {PATIENCE:.0f} s")
                time.sleep(LOOK)
                begun += lines.read().count(b"\n")
        if process.poll() is not None:
            raise FailedError("it ended before it could be killed")
    finally:
        kill(process)
        process.communicate()


def _numbers(log: Path) -> list[int]:
    return [int(line) for line in log.read_text(encoding="ascii").split()]


def _accepted(folder: Path, scratch: Path) -> set[int]:
    """The steps whose artifacts were recorded as accepted; read from a copy, to change nothing."""
    copy = scratch / "copy"
    shutil.copytree(folder / ".holdfast", copy)
    rows = artifacts(str(copy), where(status="accepted"))
    return {int(row.step.removeprefix("s")) for row in rows}
