"""Looking on while another process drives a run: its journal, and what its attempts write."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import click

from holdfast import wire
from holdfast.cli.calls import ANSWER
from holdfast.cli.follow import Follower
from holdfast.core.fold import apply
from holdfast.core.state import State
from holdfast.engine.tee import tee_path
from holdfast.model.event import AttemptStarted, Recorded
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Store

PAUSE = 0.2
MOST_AT_ONCE = 64 * 1024


class Glass:
    """Reads what the running attempts of a run write, from wherever it has read to."""

    def __init__(self, home: str, run: RunId) -> None:
        self._scratch = os.path.join(home, "scratch")
        self._run = run
        self._files: dict[tuple[StepId, int], int] = {}

    def read(self, step: StepId, attempt: int) -> bytes:
        """What came since the last call. An open file can be read to its end after it was removed."""
        key = (step, attempt)
        if key not in self._files:
            try:
                path = tee_path(self._scratch, self._run, step, attempt)
                self._files[key] = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError:
                return b""
        return os.read(self._files[key], MOST_AT_ONCE)

    def rest(self, step: StepId, attempt: int) -> bytes:
        """All that is left of an attempt that ended."""
        pieces = iter(lambda: self.read(step, attempt), b"")
        content = b"".join(pieces)
        if (file := self._files.pop((step, attempt), None)) is not None:
            os.close(file)
        return content


def last_words(home: str, run: RunId, step: StepId, attempt: int, most: int) -> bytes:
    """The end of what a running attempt wrote so far; nothing if it wrote nothing yet, or elsewhere."""
    path = tee_path(os.path.join(home, "scratch"), run, step, attempt)
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - most))
            return file.read(most)
    except OSError:
        return b""


class Onlooker:
    """A run as its journal grows, read again and again by somebody who does not drive it."""

    def __init__(self, store: Store, state: State) -> None:
        self.state = state
        self._store = store

    def news(self) -> list[Recorded]:
        """The events since the last call, folded."""
        found = list(self._store.read(f"run:{self.state.run}", self.state.seq))
        for recorded in found:
            apply(self.state, recorded)
        return found

    @property
    def goes_on(self) -> bool:
        """Whether an engine still drives the run."""
        return self.state.status == "running" and wire.is_driven(self._store, self.state)


def look_on(store: Store, home: str, state: State, tell: Follower) -> bool:
    """Tell what a run does until it ends or rests; whether its engine got that far."""
    onlooker, glass = Onlooker(store, state), Glass(home, state.run)
    while True:
        goes_on = onlooker.goes_on  # asked before reading: what an engine wrote last is not missed
        events = onlooker.news()
        if events:
            tell.events(events)
        for step_id, started in list(state.running.items()):
            if data := glass.read(step_id, started.attempt):
                is_answer = state.plan.steps[step_id].asks_model
                tell.output(step_id, ANSWER if is_answer else "stdout", data)
        for event in (recorded.event for recorded in events):
            if not isinstance(event, AttemptStarted) and hasattr(event, "attempt"):
                glass.rest(event.step, event.attempt)  # type: ignore[union-attr]  # how attempts end
        if state.status != "running":
            return True
        if not goes_on:
            return False
        time.sleep(PAUSE)


class _Ended(BaseException):
    """A signal came; nothing on the way may take it for an error of its own."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@contextmanager
def leaving(said: Callable[[], None]) -> Iterator[None]:
    """A signal ends the looking on, never the run; what was drawn is taken away first."""

    def ended(number: int, _: FrameType | None) -> None:
        raise _Ended(128 + number)

    heard = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    before = [signal.signal(number, ended) for number in heard]
    try:
        yield
    except KeyboardInterrupt as error:
        said()
        raise click.exceptions.Exit(130) from error
    except _Ended as error:
        raise click.exceptions.Exit(error.code) from error
    finally:
        for number, answer in zip(heard, before, strict=True):
            signal.signal(number, answer)
