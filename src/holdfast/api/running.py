"""Running a plan from a program: to its end, beside the program, or in its event loop."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, thread  # noqa: F401 - see _outlive
from dataclasses import replace
from functools import cache, partial
from typing import Literal, TypedDict

from holdfast import wire
from holdfast.api.homes import stop_import
from holdfast.api.ready import Ready
from holdfast.api.results import Result
from holdfast.api.told import Named, options_of, refuse_wrong
from holdfast.core.state import State
from holdfast.engine.hold import Hold
from holdfast.engine.journals import read_plan, read_state
from holdfast.engine.lines import tell_line
from holdfast.engine.loop import Engine
from holdfast.engine.repeat import Repeated
from holdfast.engine.runs import start_run
from holdfast.engine.world import World
from holdfast.errors import UsageError
from holdfast.model.digest import Digest
from holdfast.model.event import Drift
from holdfast.model.line import StopRequested
from holdfast.model.plan import Plan, RunId


class Wishes(TypedDict, total=False):
    """What a run may be told.

    store        where state lives, if not in `.holdfast` beside the plan
    jobs         steps at once on this machine
    force        run every step; force_steps: these steps; resample: one more artifact of these alone
    cutoff       reuse a step whose content inputs are the same, though steps above it ran
    on_drift     what to do with outputs changed by hand
    trust        the digest of a plan from a foreign file that somebody approved
    max_cost     dollars to spend on models at most; never more than the person's own budget
    max_cost_usd the same, with its unit
    record       a directory to which answers of models are written
    network      let commands reach the network
    sandbox      False lets commands read, write and reach whatever this program can
    executor     "local", or "ray" for what can leave this machine
    address      of the Ray cluster, like HOST:6379; without it one is started for the run
    provider     "recorded": nobody is asked, every answer comes from the directory `recorded`
    """

    store: str | None
    jobs: int
    force: bool
    force_steps: Iterable[Named]
    resample: Iterable[Named]
    cutoff: bool
    on_drift: Drift
    trust: str | None
    max_cost: float | None
    max_cost_usd: float | None
    record: str | None
    executor: Literal["local", "ray"]
    address: str
    network: bool
    sandbox: bool
    provider: Literal["recorded"] | None
    recorded: str | None


class Handle:
    """A run that goes on beside the program."""

    def __init__(self, ready: Ready, wishes: Wishes) -> None:
        refuse_wrong(wishes, Wishes)
        stop_import()
        options_of(ready, wishes)  # what names no step is said here, not to whoever waits
        self.location = ready.location(wishes.get("store"))
        self._begun = threading.Event()
        self._run = ""
        self._result: Future[Result] = Future()
        self._thread = threading.Thread(
            target=self._drive, args=(ready, wishes), name=f"holdfast {ready.plan.name}"
        )
        _outlive()
        _going.add(self)
        self._thread.start()

    def _drive(self, ready: Ready, wishes: Wishes) -> None:
        try:
            self._result.set_result(run_ready(ready, wishes, self._note))
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            self._result.set_exception(error)
        finally:
            _going.discard(self)
            self._begun.set()

    def _note(self, run: RunId) -> None:
        self._run = run
        self._begun.set()

    @property
    def run(self) -> str:
        """The id of the run, as soon as it began; nothing if it could not begin."""
        self._begun.wait()
        return self._run

    @property
    def status(self) -> str:
        """running, or how it ended: completed, failed, waiting, paused, limit."""
        return "running" if not self._result.done() else self.wait().status

    def wait(self, timeout: float | None = None) -> Result:
        """What came of it; TimeoutError after `timeout` seconds, while it goes on.

        Ctrl-C ends its running steps and lets it rest, before it ends the program.
        """
        try:
            found = self._result.result(timeout)
        except KeyboardInterrupt:
            self.stop(now=True)
            self._thread.join()
            raise
        self._thread.join()
        return found

    def stop(self, *, now: bool = False) -> None:
        """Let it rest after its running steps, or end them `now`; a further run goes on from there."""
        if not self.run or self._result.done():
            return
        store = wire.open_store(self.location)
        try:
            state = read_state(store, RunId(self.run))
            if state is not None and state.status == "running":
                event = StopRequested(state.run, now, getpass.getuser())
                tell_line(store, state.project, state.line, lambda: (wire.now_ms(), event, []))
        finally:
            store.close()

    def finish(self) -> None:
        """The program ends: wait for the run, and let it rest first if Ctrl-C is why."""
        if isinstance(getattr(sys, "last_value", None), KeyboardInterrupt):
            self.stop(now=True)
        self._thread.join()

    async def result(self) -> Result:
        """What came of it, for a program with an event loop."""
        return await asyncio.shield(asyncio.wrap_future(self._result))


_going: set[Handle] = set()


def _finish_all() -> None:
    for handle in list(_going):
        handle.finish()


@cache
def _outlive() -> None:
    """Let runs outlive the last line of a program.

    Python ends its pools of threads before it waits for threads, and an engine needs both. What is registered
    last is called first: the module of the pools is loaded with this one.
    """
    register = getattr(threading, "_register_atexit", None)
    if register is not None:
        register(_finish_all)


async def arun_ready(ready: Ready, wishes: Wishes) -> Result:
    """Run beside an event loop; cancelling it stops the run at once and waits until it rests."""
    handle = Handle(ready, wishes)
    try:
        return await handle.result()
    except asyncio.CancelledError:
        await asyncio.to_thread(handle.stop, now=True)
        await asyncio.to_thread(_rested, handle)
        raise


def _rested(handle: Handle) -> None:
    handle.wait()


def run_here(ready: Ready, wishes: Wishes) -> Result:
    """Run to an end or a rest, also where an event loop goes round, as in a notebook: that one waits."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_ready(ready, wishes)
    return Handle(ready, wishes).wait()


def run_ready(
    ready: Ready, wishes: Wishes, began: Callable[[RunId], None] = lambda _: None
) -> Result:
    """Run to an end or a rest; `began` is told the id of the run once there is one."""
    refuse_wrong(wishes, Wishes)
    ready.check(wishes.get("trust"))
    plan, root = ready.plan, ready.root
    location = ready.location(wishes.get("store"))
    options = options_of(ready, wishes)
    record, folder = _recordings(root, wishes)
    opened = wire.open_store(location, create=True)

    def begin(world: World) -> tuple[Hold, Engine]:
        hold, engine = start_run(world, plan, plan.name, options)
        began(engine.state.run)
        return hold, engine

    try:
        asked = wire.Wishes(
            parallel=wishes.get("jobs", 0),
            functions=ready.functions,
            record=record,
            recorded=folder,
            agreed="anything" if folder is None else "nothing",
            network=wishes.get("network", False),
            sandbox=wishes.get("sandbox", True),
            written_here=wishes.get("trust") is None,
            executor=options.executor,
            address=wishes.get("address", ""),
        )
        world = wire.world_for(plan, root, location, opened, asked)
        repeated = wire.repeat(world, plan, options)
        if repeated is not None:  # folded if somebody asks for more
            again = partial(_folded, repeated, location)
            return Result(again, location, root, ready.types, "completed")
        state: State = wire.drive(lambda: begin(world), world=world)
    finally:
        opened.close()
    return Result(lambda: state, location, root, ready.types)


def _folded(repeated: Repeated, location: str) -> State:
    """The state of a run, of which the store was closed since; it has the plans that the run went on with."""

    def plan_of(digest: Digest) -> Plan:
        store = wire.open_store(location, readonly=True)
        try:
            return read_plan(store, digest)
        finally:
            store.close()

    return replace(repeated, plans=plan_of).state()


def _recordings(root: str, wishes: Wishes) -> tuple[str | None, str | None]:
    """Where answers are written, and the directory that all of them come from."""
    provider, recorded = wishes.get("provider"), wishes.get("recorded")
    record = wishes.get("record")
    if provider not in {None, "recorded"}:
        raise UsageError(f"provider is '{provider}'", hint="'recorded', or nothing")
    if provider is None:
        if recorded is not None:
            raise UsageError("recorded= names recordings for provider='recorded'")
        return wire.market.record_into(root, record) if record is not None else None, None
    if record is not None:
        raise UsageError("with provider='recorded' nobody is asked: there is nothing to record")
    return None, os.path.abspath(recorded or os.path.join(root, "recorded"))
