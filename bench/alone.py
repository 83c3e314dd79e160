"""Figures of Holdfast alone: reopening, stored bytes, commands beside a thread pool."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.measure import REPOSITORY, environment
from bench.own.commands import KINDS
from bench.own.reopen import PROMISED
from bench.results import Own

JOBS = (2, 4)


def figures(scratch: Path, *, repeats: int, quick: bool) -> Iterator[Own]:
    """All of them; a quick run does a tenth of the work."""
    shutil.rmtree(scratch, ignore_errors=True)
    share = 10 if quick else 1
    yield from _reopen(scratch, PROMISED // 2 // share, repeats)
    yield _stored(scratch, 10_000 // share)
    for kind in KINDS:
        for jobs in JOBS:
            yield _commands(scratch, kind, jobs, 200 // share, repeats)
    shutil.rmtree(scratch, ignore_errors=True)


def _reopen(scratch: Path, steps: int, repeats: int) -> Iterator[Own]:
    folder, kept = scratch / "reopen", scratch / "kept"
    events = _say("reopen", "write", str(folder), str(steps))["events"]
    shutil.copytree(folder / ".holdfast", kept)
    found = []
    for _ in range(repeats):
        shutil.rmtree(folder / ".holdfast")
        shutil.copytree(kept, folder / ".holdfast")
        found.append(_say("reopen", "resume", str(folder), str(steps)))
    wall = min(said["wall"] for said in found)
    yield Own("reopened events", events, "events")
    yield Own("reopening", wall, "s", repeats=repeats)
    yield Own("reopening 50,000 events", wall / events * PROMISED, "s", repeats=repeats)
    shutil.rmtree(scratch)


def _stored(scratch: Path, steps: int) -> Own:
    found = _say("stored", str(scratch / "stored"), str(steps))["bytes"]
    return Own("stored bytes per step", found, "bytes", repeats=1)


def _commands(scratch: Path, kind: str, jobs: int, count: int, repeats: int) -> Own:
    walls: dict[str, list[float]] = {"pool": [], "holdfast": []}
    for number in range(repeats):
        for who, found in walls.items():
            folder = scratch / f"{who}{number}"
            found.append(_say("commands", who, kind, str(jobs), str(count), str(folder))["wall"])
            shutil.rmtree(folder)
    ours, theirs = min(walls["holdfast"]), min(walls["pool"])
    return Own(f"`{kind}`, {jobs} at once", ours / count, "s", theirs / count, repeats)


def _say(module: str, *words: str) -> dict[str, float]:
    print(f"alone: {module} {' '.join(words[:-1])}", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", f"bench.own.{module}", *words],
        cwd=REPOSITORY,
        env=environment(REPOSITORY / ".bench"),
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"bench.own.{module} failed:\n{done.stderr}")
    said: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return said
