"""Who tells a person or a program what a run does while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from holdfast.cli.calls import Calls, writing
from holdfast.cli.ending import usual_times
from holdfast.cli.progress import Teller
from holdfast.cli.say import out_line, talk
from holdfast.cli.view import view, width_now
from holdfast.core.state import State
from holdfast.model.event import Recorded
from holdfast.model.plan import StepId
from holdfast.model.text import cut, last_line, one_line, wrap
from holdfast.ports import Store
from holdfast.store.codec import event_json

LONGEST = 120  # columns of a line that repeats the words of a model


class Follower(Protocol):
    """Is told everything on the engine's own thread, and must not keep it waiting."""

    def began(self, state: State) -> None:
        """The run as it stands before its first news."""

    def events(self, events: list[Recorded]) -> None:
        """Events, just stored."""

    def output(self, step: StepId, stream: str, data: bytes) -> None:
        """What a running attempt wrote."""

    def say(self, text: str) -> None:
        """A sentence of the engine itself."""


class Lines:
    """One line for each change, on stderr."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller
        self._calls = Calls()

    def began(self, state: State) -> None:
        self._teller.began(state)

    def events(self, events: list[Recorded]) -> None:
        for recorded in events:
            self._calls.take(recorded)
            for line in self._teller.lines(recorded):
                for piece in wrap(line, width_now()):
                    talk(piece)

    def output(self, step: StepId, stream: str, data: bytes) -> None:
        """Logs keep it; lines are for changes, and say now and then how far a long answer is."""
        written = self._calls.add(step, stream, data)
        if written is not None:
            words = last_line(written.tail.decode("utf-8", "replace"))
            talk(cut(one_line(f"  {step}: {writing(written)} so far: {words}"), LONGEST))

    def say(self, text: str) -> None:
        talk(text)


class Silent(Lines):
    """Nothing but what the engine itself has to say."""

    def events(self, events: list[Recorded]) -> None:
        """Not asked for."""

    def output(self, step: StepId, stream: str, data: bytes) -> None:
        """Not asked for."""


class Objects(Silent):
    """Every event as an object of its own, on stdout."""

    def events(self, events: list[Recorded]) -> None:
        for recorded in events:
            out_line(event_json(recorded))


@contextmanager
def following(store: Store, *, quiet: bool = False, hint: str = "") -> Iterator[Follower]:
    """The follower that fits the view."""
    how = view()
    quiet = quiet or how.quiet
    teller = Teller(store, voice=how.mode == "a11y", verbose=how.verbose > 0)
    if how.mode == "jsonl":
        yield Objects(teller)
    elif quiet:
        yield Silent(teller)
    elif how.live:
        from holdfast.cli.live import LiveView

        usual = partial(usual_times, store)
        with LiveView(teller, how, usual, hint) as live:
            yield live
    else:
        yield Lines(teller)
