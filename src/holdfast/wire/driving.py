"""Driving a run to its end or rest: the event loop around an engine, signals, who is told."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from holdfast.errors import StoreError, outside_fault

if TYPE_CHECKING:
    import asyncio

    from holdfast.core.state import State
    from holdfast.engine.hold import Hold
    from holdfast.engine.loop import Engine
    from holdfast.engine.repeat import Repeated
    from holdfast.engine.world import World
    from holdfast.model.event import Options
    from holdfast.model.plan import Plan
    from holdfast.wire.telemetry import Telling

_BETWEEN_SEARCHES = 50_000  # objects made
_COLLECTORS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def has_collector() -> bool:
    """Whether the environment names somebody who is told of runs by OpenTelemetry."""
    env = os.environ
    return env.get("OTEL_SDK_DISABLED") != "true" and any(env.get(name) for name in _COLLECTORS)


def drive(
    begin: Callable[[], tuple[Hold, Engine]], *, signals: bool = False, world: World
) -> State:
    """Begin a run and drive it to its end or rest. With `signals`, Ctrl-C once stops, twice stops now."""
    try:
        return _driven(begin, signals=signals, world=world)
    except RuntimeError as error:  # a loop that ends may need a thread for it
        if (fault := outside_fault(error)) is not None:
            raise fault from error
        raise


def _driven(begin: Callable[[], tuple[Hold, Engine]], *, signals: bool, world: World) -> State:
    import asyncio

    with seldom_collected(), asyncio.Runner(loop_factory=_new_loop) as runner:
        runner.get_loop()  # before anything is begun: there may be no descriptors for it
        hold, engine = begin()
        telling = _telling(world)
        if telling is not None:
            telling.began(engine.state)

        async def main() -> None:  # gives nothing back: the runner would spell out a whole state
            with _signals(engine, world.say) if signals else _nothing():
                await engine.drive()

        try:
            runner.run(main())
        except BaseException as error:
            with suppress(StoreError, OSError):  # a store that failed cannot be told either
                hold.release()
            if (fault := outside_fault(error)) is not None:
                raise fault from error
            raise
        finally:
            if telling is not None:
                telling.close()
        hold.release()
        return engine.state


def repeat(world: World, plan: Plan, options: Options) -> Repeated | None:
    """A run of a plan that stands whole, known without looking at each step; None if it may not."""
    import asyncio

    from holdfast.engine.repeat import repeat_run
    from holdfast.engine.tools import tool_versions
    from holdfast.model.digest import digest_bytes
    from holdfast.model.items import with_templates

    def tools() -> dict[tuple[str, ...], str | None]:
        if not any(step.tool_versions for step in with_templates(plan)):
            return {}
        said = asyncio.run(tool_versions(plan, world.root, world.terms))
        return {
            argv: None if words is None else digest_bytes(words) for argv, words in said.items()
        }

    with seldom_collected():
        repeated = repeat_run(world, plan, plan.name, options, tools)
    telling = _telling(world)
    if repeated is not None and telling is not None:
        telling.repeated(repeated.plan, repeated.events)
    return repeated


def _telling(world: World) -> Telling | None:
    """The one who tells a collector, if there is one."""
    if not has_collector():
        return None
    with suppress(ImportError):
        from holdfast.wire.telemetry import Telling

        return world.on_events if isinstance(world.on_events, Telling) else None
    return None


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Let the search for garbage in cycles be rare: what a plan and a run are made of stays.

    Each search goes through most of it, and would cost a third of a large run.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _BETWEEN_SEARCHES), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _new_loop() -> asyncio.AbstractEventLoop:
    """An event loop; StoreError if there is nothing to make it of.

    One that is half made complains on stderr when it is thrown away, so that is done here, unheard.
    """
    import asyncio
    import sys
    import traceback

    from holdfast.process.hints import hearing

    try:
        return hearing(asyncio.new_event_loop())
    except OSError as error:
        hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
        traceback.clear_frames(error.__traceback__)
        sys.unraisablehook = hook
        if (fault := outside_fault(error)) is not None:
            raise fault from error
        raise


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _signals(engine: Engine, say: Callable[[str], None]) -> Iterator[None]:
    import asyncio
    import signal

    loop = asyncio.get_running_loop()
    presses: list[int] = []

    def interrupted() -> None:
        presses.append(1)
        if len(presses) == 1:
            say("stopping after the running steps; press Ctrl-C again to stop now")
        else:
            say("stopping now; what is running will be run again on resume")
        engine.stop(now=len(presses) > 1)

    def terminated() -> None:
        say("told to end: stopping now; resume continues from here")
        engine.stop(now=True)

    answers = {
        signal.SIGINT: interrupted,
        signal.SIGTERM: terminated,
        signal.SIGHUP: terminated,
    }
    heard = [number for number in answers if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heard:  # what whoever started us ignores, as nohup does, stays ignored
        loop.add_signal_handler(number, answers[number])
    try:
        yield
    finally:
        for number in heard:
            loop.remove_signal_handler(number)
