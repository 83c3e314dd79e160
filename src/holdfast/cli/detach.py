"""Begins or goes on with a run in a process of its own that outlives this terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.place import Place, find_run
from holdfast.cli.said import words_now
from holdfast.cli.saved import Agreement
from holdfast.cli.say import out, out_json, short, talk
from holdfast.core.state import State
from holdfast.engine.journals import read_state
from holdfast.engine.runs import run_of_key
from holdfast.errors import StoreError, UsageError
from holdfast.model.event import Agreed
from holdfast.model.fixed import frozen
from holdfast.model.plan import Plan, RunId
from holdfast.ports import Owner, Store

DETACHED_SCHEMA = "holdfast.detached/1"
_PAUSE = 0.05
_DONE = ("--detach", "--replan", "--fresh")  # what was asked for once


@frozen
class Launched:
    """A command in a process of its own, and the file with what it says."""

    process: subprocess.Popen[bytes]
    log: str

    def lines(self) -> list[str]:
        """What it said so far."""
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()


def detach(where: Place, plan: Plan, key: str, given: Agreement, *, as_json: bool) -> int:
    """Start this very command again without a terminal, and wait until its run exists."""
    left = _left(where, plan, key) if key else None
    key = key or f"detached-{uuid.uuid4()}"
    said = ["--key", key, "--yes", "--agreed", given.agreed]
    for seen in given.options.shown:
        said += ["--shown", seen.step, seen.digest]
    begun = launch(where, _again(words_now(), said))
    if left is not None:
        return _gone_on(where, begun, left, lambda _: left.run, as_json=as_json)
    run = _await_run(where, begun, lambda store: run_of_key(store, plan.project, plan.name, key))
    if run is not None and (other := _other(where, plan, run, begun.process.pid)) is not None:
        return _told_of(run, other, as_json=as_json)  # who began it at the same moment
    return _told(begun, run, as_json=as_json)


def is_told(where: Place, plan: Plan, key: str, *, as_json: bool) -> bool:
    """Tell of the run under a key that a live engine drives, or that has ended: nothing begins then."""
    with _reading(where) as store:
        run = None if store is None else run_of_key(store, plan.project, plan.name, key)
        if store is None or run is None:
            return False
        owner = wire.driver(store, plan.project, plan.name, run)
        state = read_state(store, run)
    if owner is None and (state is None or not state.ended):
        return False
    if owner is not None:
        _told_of(run, owner, as_json=as_json)
    elif as_json:
        out_json({"schema": DETACHED_SCHEMA, "run": run, "pid": None, "log": None})
    elif state is not None:
        out(f"{short(run)} was begun under this key and is {state.status} already")
        out_next(f"holdfast status {short(run)}")
    return True


def _left(where: Place, plan: Plan, key: str) -> State | None:
    """The run under a key as it rests, if there is one."""
    with _reading(where) as store:
        run = None if store is None else run_of_key(store, plan.project, plan.name, key)
        return None if store is None or run is None else read_state(store, run)


def _other(where: Place, plan: Plan, run: RunId, pid: int) -> Owner | None:
    """The engine that drives a run, if it is another process than this one."""
    with _reading(where) as store:
        owner = None if store is None else wire.driver(store, plan.project, plan.name, run)
    return owner if owner is not None and owner.pid != pid else None


def detach_on(
    where: Place, line: str, agreed: Agreed, left: State | None = None, *, as_json: bool
) -> int:
    """The same of a command that goes on with a run which was `left`, or tries a step of its line again."""
    begun = launch(where, _again(words_now(), ["--yes", "--agreed", agreed]))
    last = partial(find_run, given=None, line=line)
    return _gone_on(where, begun, left, last, as_json=as_json)


def _gone_on(
    where: Place,
    begun: Launched,
    left: State | None,
    over: Callable[[Store], RunId],
    *,
    as_json: bool,
) -> int:
    """Wait until a process goes on with a run, and tell; `over` gives the one that ended before that."""
    run = _await_run(where, begun, lambda store: _driven(store, begun.process.pid, left))
    if run is None and begun.process.returncode in _CAME_SO_FAR:  # over before anybody looked
        with _reading(where) as store:
            run = None if store is None else over(store)
    return _told(begun, run, as_json=as_json)


_CAME_SO_FAR = frozenset({0, 1, 3, 5, 8})  # a run came to an end or a rest


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


def _told(begun: Launched, run: RunId | None, *, as_json: bool) -> int:
    process, log = begun.process, begun.log
    if run is None:
        for line in begun.lines():
            talk(line)
        return process.returncode
    # Who goes on for long after this, like a server, must not leave it a zombie.
    threading.Thread(target=process.wait, daemon=True).start()
    if as_json:
        out_json({"schema": DETACHED_SCHEMA, "run": run, "pid": process.pid, "log": log})
        return 0
    out(f"{short(run)} runs in process {process.pid}; what it says is in {log}")
    out_next(_watching(run))
    return 0


def _told_of(run: RunId, owner: Owner, *, as_json: bool) -> int:
    """Tell of a run that another process drives."""
    log = wire.output_of(owner)
    if as_json:
        out_json({"schema": DETACHED_SCHEMA, "run": run, "pid": owner.pid, "log": log})
        return 0
    said = f"; what it says is in {log}" if log else ""
    words = f"{short(run)} was begun under this key and runs in process {owner.pid}"
    out(f"{words} on '{owner.host}'{said}")
    out_next(_watching(run))
    return 0


def _watching(run: RunId) -> str:
    return f"holdfast attach {short(run)}    holdfast status    holdfast stop {short(run)}"


def _again(arguments: Sequence[str], said: Sequence[str]) -> list[str]:
    """The same words without those that are done; who was asked has answered."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    words = [word for word in standing_here(arguments[:end]) if word not in _DONE]
    return [*words, *said, *arguments[end:]]


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
    where: Place, begun: Launched, found: Callable[[Store], RunId | None]
) -> RunId | None:
    """The run of a process, as soon as there is one; None if it ended without."""
    while True:
        ended = begun.process.poll() is not None
        with _reading(where) as store:
            if store is not None and (run := found(store)) is not None:
                return run
        if ended:
            return None
        time.sleep(_PAUSE)


@contextmanager
def _reading(where: Place) -> Iterator[Store | None]:
    """The store, if there is one already."""
    try:
        store = where.open(readonly=True) if where.exists() else None
    except (UsageError, StoreError):  # it is being made just now
        store = None
    try:
        yield store
    finally:
        if store is not None:
            store.close()


def _driven(store: Store, pid: int, left: State | None) -> RunId | None:
    """The run that a process goes on with; it is our child, so nobody else has its id.

    Whoever looks next must not find the run as it was left.
    """
    for run in (holder.run for _, _, holder in store.held() if holder.owner.pid == pid):
        before = left.seq if left is not None and left.run == run else 0
        if run is not None and store.last(f"run:{run}") > before:
            return run
    return None
