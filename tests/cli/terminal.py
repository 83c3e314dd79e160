"""A real pseudo terminal, and the least of a screen: what a person would see."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from tests.cli.project import COMMAND, DEADLINE, LIBRARY, Project
from tests.forge import Kind, Running, forge

_PIECE = re.compile(
    r"\x1b\[(?P<numbers>[0-9;?]*)(?P<final>[A-Za-z])|(?P<other>\x1b)|(?P<control>[\x00-\x1f\x7f])|(?P<text>[^\x00-\x1f\x7f]+)"
)


class Screen:
    """Lines that scroll, a cursor, erasing. Anything else a program sends is remembered as strange."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.lines: list[list[str]] = [[]]
        self.row = self.column = 0
        self.strange: list[str] = []
        self.broken = 0  # lines that were wider than the terminal

    def feed(self, text: str) -> None:
        for piece in _PIECE.finditer(text):
            if piece["final"] is not None:
                self._obey(piece["numbers"], piece["final"])
            elif piece["control"] is not None:
                self._control(piece["control"])
            elif piece["text"] is not None:
                self._write(piece["text"])
            else:
                self.strange.append(text[piece.start() : piece.start() + 8])

    def _write(self, text: str) -> None:
        for letter in text:
            if self.column >= self.columns:
                self._down()
                self.column = 0
                self.broken += 1
            line = self.lines[self.row]
            line += [" "] * (self.column + 1 - len(line))
            line[self.column] = letter
            self.column += 1

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append([])

    def _control(self, letter: str) -> None:
        if letter == "\r":
            self.column = 0
        elif letter == "\n":
            self._down()
        else:
            self.strange.append(letter)

    def _obey(self, numbers: str, final: str) -> None:
        count = int(numbers) if numbers.isdigit() else 1
        if final == "A":
            self.row = max(0, self.row - count)
        elif final == "K" and numbers == "2":
            self.lines[self.row] = []
        elif final != "m":  # colours are no matter here
            self.strange.append(f"ESC[{numbers}{final}")

    @property
    def text(self) -> list[str]:
        return ["".join(line).rstrip() for line in self.lines]


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def take_terminal_awake() -> None:
    """The end of the terminal is heard, also if these tests were started by nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    _take_terminal()


def _take_terminal_deaf() -> None:
    """As nohup does: the end of the terminal is not heard."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _take_terminal()


class Terminal:
    """A command on a terminal of its own."""

    def __init__(
        self,
        project: Project,
        *words: str,
        columns: int = 80,
        rows: int = 24,
        env: Mapping[str, str] | None = None,
        deaf: bool = False,
    ) -> None:
        self._main, side = pty.openpty()
        self.resize(columns, rows)
        modes = termios.tcgetattr(side)
        modes[1] &= ~termios.OPOST  # what the program sends is what is read here
        termios.tcsetattr(side, termios.TCSANOW, modes)
        whole = project.environment({"TERM": "xterm", **(env or {})})
        self.process: Running
        if project.may_fork(words, whole, env or {}):
            kind: Kind = "deaf" if deaf else "terminal"
            server = forge("", LIBRARY, project.loaded)
            self.process = server.start(words, project.root, whole, (side, side, side), kind)
        else:
            self.process = subprocess.Popen(
                [*COMMAND, *words],
                cwd=project.root,
                env=whole,
                stdin=side,
                stdout=side,
                stderr=side,
                start_new_session=True,
                preexec_fn=_take_terminal_deaf if deaf else take_terminal_awake,  # noqa: PLW1509 - no threads
            )
        project._started.append(self.process)
        os.close(side)
        self.size = (columns, rows)
        self.frames: list[bytes] = []

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: bytes) -> None:
        os.write(self._main, keys)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    @property
    def bytes(self) -> bytes:
        return b"".join(self.frames)

    def read(self, until: Callable[[str], bool] = lambda _: False) -> str:
        """Read until the condition holds for all that came, or the program has ended."""
        end = time.monotonic() + DEADLINE
        while not until(self.bytes.decode("utf-8", "replace")):
            assert time.monotonic() < end, self.bytes.decode("utf-8", "replace")
            ready, _, _ = select.select([self._main], [], [], 0.05)
            if not ready:
                continue
            data = b""
            with suppress(OSError):  # the other side is closed
                data = os.read(self._main, 65536)
            if not data:
                break
            self.frames.append(data)
        return self.bytes.decode("utf-8", "replace")

    def finish(self) -> Screen:
        """Read to the end; the screen as it is left."""
        text = self.read()
        self.process.wait(timeout=DEADLINE)
        screen = Screen(*self.size)
        screen.feed(text.replace("\n", "\r\n").replace("\r\r\n", "\r\n"))
        return screen

    def hang_up(self) -> None:
        """The terminal goes away."""
        os.close(self._main)


def at_terminal(project: Project, answer: str, *words: str) -> tuple[int, str]:
    """A command with a person at a terminal, who gives one answer; exit code and screen."""
    terminal = Terminal(project, *words, columns=100, rows=40)
    terminal.press(f"{answer}\n".encode())
    seen = terminal.read()
    terminal.hang_up()
    return terminal.process.wait(timeout=DEADLINE), seen
