"""Begins a run in a process of its own that outlives this terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.cli.again import out_next
from holdfast.cli.place import Place
from holdfast.cli.saved import Agreement
from holdfast.cli.say import out, out_json, short, talk
from holdfast.engine.lines import line_journal
from holdfast.errors import StoreError, UsageError
from holdfast.model.line import RunOpened
from holdfast.model.plan import Plan, RunId

_PAUSE = 0.05
_DONE = ("--detach", "--replan", "--fresh")  # what was asked for once


def detach(where: Place, plan: Plan, key: str, given: Agreement, *, as_json: bool) -> int:
    """Start this very command again without a terminal, and wait until its run exists."""
    key = key or f"detached-{uuid.uuid4()}"
    begun = launch(where, _again(sys.argv[1:], key, given))
    process, log = begun.process, begun.log
    run = _await_run(where, plan, key, process)
    if run is None:
        for line in begun.lines():
            talk(line)
        return process.returncode
    if as_json:
        out_json({"schema": "holdfast.detached/1", "run": run, "pid": process.pid, "log": log})
        return 0
    out(f"{short(run)} runs in process {process.pid}; what it says is in {log}")
    out_next(f"holdfast attach {short(run)}    holdfast status    holdfast stop {short(run)}")
    return 0


@dataclass(frozen=True, slots=True)
class Launched:
    """A command in a process of its own, and the file with what it says."""

    process: subprocess.Popen[bytes]
    log: str

    def lines(self) -> list[str]:
        """What it said so far."""
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()


def launch(where: Place, words: Sequence[str]) -> Launched:
    """Begin a command that outlives this process and has no terminal."""
    folder = os.path.join(where.location, "detached")
    os.makedirs(folder, exist_ok=True)
    log = os.path.join(folder, f"{uuid.uuid4()}.log")
    with open(log, "wb") as file:
        process = subprocess.Popen(  # noqa: S603 - this very program
            [sys.executable, "-m", "holdfast", *words],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    return Launched(process, log)


def _again(arguments: Sequence[str], key: str, given: Agreement) -> list[str]:
    """The same words without those that are done; who was asked has answered."""
    words = [word for word in standing_here(arguments) if word not in _DONE]
    end = words.index("--") if "--" in words else len(words)
    said = ["--key", key, "--yes", "--agreed", given.agreed]
    for seen in given.options.shown:
        said += ["--shown", seen.step, seen.digest]
    return [*words[:end], *said, *words[end:]]


def standing_here(arguments: Sequence[str]) -> list[str]:
    """The words of a command without the folder that it shall work in: this process is there already."""
    words: list[str] = []
    rest = iter(arguments)
    for word in rest:
        if word == "-C":
            next(rest, None)
        elif not word.startswith("-C"):
            words.append(word)
    return words


def _await_run(
    where: Place, plan: Plan, key: str, process: subprocess.Popen[bytes]
) -> RunId | None:
    while True:
        ended = process.poll() is not None
        if where.exists() and (run := _opened(where, plan, key)) is not None:
            return run
        if ended:
            return None
        time.sleep(_PAUSE)


def _opened(where: Place, plan: Plan, key: str) -> RunId | None:
    try:
        store = where.open(readonly=True)
    except (UsageError, StoreError):  # it is being made just now
        return None
    try:
        for recorded in store.read(line_journal(plan.project, plan.name)):
            if isinstance(recorded.event, RunOpened) and recorded.event.key == key:
                return recorded.event.run
    finally:
        store.close()
    return None
