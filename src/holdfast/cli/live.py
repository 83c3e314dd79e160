"""The live view: finished steps scroll by, a short footer below them is redrawn.

Everything is drawn by one thread of its own, at most four times a second, so that a slow or stopped
terminal never holds the engine up. There is no other screen and the cursor is never hidden: whatever
ends this process leaves a usable terminal behind.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text

from holdfast.cli.footer import TAIL, Size, footer_lines
from holdfast.cli.progress import Teller
from holdfast.cli.say import SIGNS, into_the_void, shown
from holdfast.cli.tally import Tally, tally_of
from holdfast.cli.view import View
from holdfast.core.state import State
from holdfast.model.event import (
    AttemptStarted,
    CallFailed,
    CallStarted,
    Recorded,
    RunEnded,
    RunRested,
    StepsReused,
)
from holdfast.model.plan import StepId
from holdfast.model.text import cells, wrap

PAUSE = 0.25
MOST_AT_ONCE = 100  # lines about finished steps in one picture
STYLES = {
    SIGNS["done"]: "green",
    SIGNS["failed"]: "red",
    SIGNS["waiting"]: "yellow",
    SIGNS["running"]: "cyan",
    SIGNS["reused"]: "dim",
    SIGNS["skipped"]: "dim",
    SIGNS["pending"]: "dim",
}
HINT = "Ctrl-C stops after the running steps, twice stops now"


class LiveView:
    """Draws a run while it runs. Told by the engine's thread, draws on its own."""

    def __init__(
        self, teller: Teller, how: View, usual: Callable[[State], Mapping[StepId, int]], hint: str
    ) -> None:
        self._teller = teller
        self._verbose = how.verbose > 0
        self._look_up = usual
        self._usual: Mapping[StepId, int] = {}
        self._hint = hint or HINT
        self._lock = threading.Lock()
        self._lines: list[str] = []
        self._tally = Tally()
        self._said: dict[StepId, bytes] = {}
        self._reused: list[StepId] = []
        self._over = threading.Event()
        self._drawn: list[str] = []
        self._lost = False
        self._thread = threading.Thread(target=self._draw_on, name="live view", daemon=True)
        self._console = Console(
            file=sys.stderr,
            force_terminal=True,
            color_system="standard" if how.colour else None,
            highlight=False,
            markup=False,
            emoji=False,
        )
        self._before: object = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGCONT, lambda *_: self._forget())
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Draw what is left, and take the footer away."""
        self._over.set()
        self._thread.join()
        self._draw(footer=False)
        if self._before is not None:
            signal.signal(signal.SIGCONT, signal.SIG_DFL)

    # --- told by the engine -------------------------------------------------------------------------

    def began(self, state: State) -> None:
        self._usual = self._look_up(state)
        with self._lock:
            self._teller.began(state)
            self._tally = tally_of(state)

    def events(self, events: list[Recorded]) -> None:
        with self._lock:
            for recorded in events:
                self._take(recorded)

    def _take(self, recorded: Recorded) -> None:
        event = recorded.event
        self._tally.take(recorded)
        lines = self._teller.lines(recorded)
        if isinstance(event, CallStarted | CallFailed):  # what broke off is no answer
            self._said.pop(event.step, None)
        if isinstance(event, AttemptStarted):  # the footer shows what runs
            self._said.pop(event.step, None)
        elif isinstance(event, StepsReused) and not self._verbose:
            self._reused += [item.step for item in event.items]
        elif lines:
            self._flush_reused()
            self._lines += lines
        if isinstance(event, RunRested | RunEnded):
            self._flush_reused()

    def _flush_reused(self) -> None:
        """One line for all that was reused so far; the footer counts."""
        if self._reused:
            rest = len(self._reused) - 3
            names = ", ".join(self._reused[:3]) + (f" and {rest} more" if rest > 0 else "")
            self._lines.append(f"{SIGNS['reused']} {len(self._reused)} reused: {names}")
            self._reused = []

    def output(self, step: StepId, stream: str, data: bytes) -> None:
        with self._lock:
            self._tally.calls.add(step, stream, data)
            self._said[step] = (self._said.get(step, b"") + data[-TAIL:])[-TAIL:]

    def say(self, text: str) -> None:
        with self._lock:
            self._lines += text.splitlines()

    # --- drawing ------------------------------------------------------------------------------------

    def _draw_on(self) -> None:
        while not self._over.wait(PAUSE):
            self._draw(footer=True)

    def _forget(self) -> None:
        """After a pause in the background the footer stands somewhere above: begin another."""
        self._drawn = []

    def _draw(self, *, footer: bool) -> None:
        size = _size()
        with self._lock:
            lines, self._lines = _bounded(self._lines), []
            now = time.time_ns() // 1_000_000
            below = (
                footer_lines(self._tally, self._said, self._usual, now, size, self._hint)
                if footer and self._tally.total
                else []
            )
        if self._lost or not (lines or below or self._drawn):
            return
        try:
            with self._console:  # one write
                self._erase(size.columns)
                for line in lines:
                    for piece in wrap(line, size.columns - 1):
                        self._print(piece, end="\n")
                for number, line in enumerate(below, 1):
                    self._print(line, end="\n" if number < len(below) else "")
            self._drawn = below
        except (OSError, ValueError):  # the terminal went away; the run goes on
            self._lost = True
            into_the_void(sys.stderr)

    def _erase(self, columns: int) -> None:
        """Take the last footer away, also where a narrower terminal has broken its lines."""
        rows = sum(max(1, -(-cells(line) // columns)) for line in self._drawn)
        for row in range(rows):
            if row:
                self._console.control(Control((ControlType.CURSOR_UP, 1)))
            self._console.control(
                Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))
            )
        self._drawn = []

    def _print(self, line: str, *, end: str) -> None:
        text = Text(shown(line, sys.stderr, raw=True))
        sign = line.lstrip(" ")[:1]
        if sign in STYLES:
            at = line.index(sign)
            text.stylize(STYLES[sign], at, at + 1)
        elif sign == "─":
            text.stylize("dim")
        self._console.print(text, end=end, soft_wrap=True)


def _bounded(lines: list[str]) -> list[str]:
    """Lines of one picture; of very many finished steps the first, and how many more."""
    if len(lines) <= MOST_AT_ONCE:
        return lines
    kept, room, hidden = [], MOST_AT_ONCE // 2, 0
    for line in lines:
        if not line.startswith(SIGNS["done"]):
            kept.append(line)
        elif room:
            room -= 1
            kept.append(line)
        else:
            hidden += 1
    return [*kept, f"{SIGNS['done']} {hidden} more done"] if hidden else kept


def _size() -> Size:
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return Size(80, 24)
    return Size(size.columns or 80, size.lines or 24)
