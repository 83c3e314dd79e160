"""Slots: processes that are kept between commands, so that a command costs little more than itself.

Each is the first process of a pid namespace made by bubblewrap, and runs one command at a time (see
`slot`). A command that ends by itself leaves an empty namespace for the next one; a command that
must be ended takes its slot with it. What a command could change for the next one is looked at
after each: such a slot is not used again. Commands share a slot only if they ask for the same sandbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from holdfast.errors import NotBegunError, ProcessError
from holdfast.process import sandbox, slot
from holdfast.process.confine import Sandbox
from holdfast.process.launch import Started, environment, start
from holdfast.process.tree import namespace

# A request up to this size is one message; a longer one goes by a file in memory.
_INLINE = 2**15
_ANSWER = 256
# More commands at once than this are started without a slot: each holds a few megabytes.
MOST_SLOTS = 16
# Python itself without the environment that it may be in, which a sandbox need not show.
_PYTHON = os.path.realpath(sys.executable)
_EXECUTE = (_PYTHON, "-I", "-S", "-E", slot.__file__)


class Slot:
    """One kept process; owned by the event loop that started it."""

    def __init__(self, started: Started, line: socket.socket, wanted: Sandbox | None) -> None:
        self._started = started
        self._line = line
        self.wanted = wanted
        self._loop = asyncio.get_running_loop()
        self._is_up = False
        self._take: Callable[[bytes], None] | None = None
        self.is_fit = True
        self._loop.add_reader(line.fileno(), self._hear)

    @classmethod
    def start(cls, wanted: Sandbox | None) -> Slot:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                number = theirs.fileno()
                started = start(
                    (*_EXECUTE, namespace(), str(number), "" if wanted is None else "alone"),
                    "/",
                    {},
                    mark="slot",
                    stdin=subprocess.DEVNULL,
                    confine="auto",
                    first=(number,),
                    wanted=None if wanted is None else _with_python(wanted),
                )
            except BaseException:
                ours.close()
                raise
        ours.setblocking(False)
        return cls(started, ours, wanted)

    @property
    def sandboxed(self) -> bool:
        return self._started.sandboxed

    @property
    def was_short_of_memory(self) -> bool:
        return self._started.was_short_of_memory

    def begin(
        self, request: bytes, descriptors: Sequence[int], take: Callable[[bytes], None]
    ) -> None:
        """Send a request; `take` gets the answer, empty if the slot ended without one.

        BrokenPipeError if the slot is gone: it knows nothing of the request.
        """
        self._take = take
        scratch: list[int] = []
        message = b"." + request
        if len(request) > _INLINE:
            scratch, message = [sandbox.scratch_file(request)], b"@"
        try:
            numbers = array("i", [*scratch, *descriptors])
            self._line.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])
        except ConnectionResetError as error:
            raise BrokenPipeError from error
        finally:
            for descriptor in scratch:
                os.close(descriptor)

    def problem(self) -> str | None:
        """Why the slot never came up; None if it did."""
        if self._is_up:
            return None
        with contextlib.suppress(BlockingIOError):
            return os.read(self._started.stderr, 2**12).decode(errors="replace").strip()
        return ""

    async def end(self) -> None:
        """End the slot and what runs in it; returns when all is gone."""
        self.is_fit = False
        try:
            await self._started.finish()
        finally:
            self.close()

    def close(self) -> None:
        """Give back every descriptor; what runs is killed."""
        self.is_fit = False
        if self._line.fileno() >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._line.fileno())
            self._line.close()
        self._started.close()

    def _hear(self) -> None:
        try:
            message = self._line.recv(_ANSWER)
        except BlockingIOError:
            return
        except ConnectionResetError:
            message = b""
        if message == b"ready":
            self._is_up = True
            return
        if not message:
            self.is_fit = False
            self._loop.remove_reader(self._line.fileno())
        self._answer(message)

    def _answer(self, message: bytes) -> None:
        take, self._take = self._take, None
        if take is not None:
            take(message)


class Tenant:
    """One command in a slot, with the manners of `Started`."""

    def __init__(self, kept: Slot, leave: Callable[[Slot], None]) -> None:
        self._slot: Slot | None = kept
        self._leave = leave
        self._pipes: list[int] = []
        self._answer: list[bytes] = []
        self.confined = True
        self.sandboxed = kept.sandboxed
        self.restrained = False
        self.was_short_of_memory = False
        self._ended = False
        self._call: Callable[[], None] = lambda: None

    def begin(self, request: bytes, stdin: int | None) -> None:
        assert self._slot is not None  # it was not left yet
        theirs: list[int] = []
        try:
            for _ in range(2):
                ours, end = os.pipe()
                self._pipes.append(ours)
                theirs.append(end)
                os.set_blocking(ours, False)
            given = theirs if stdin is None else [*theirs, stdin]
            self._slot.begin(request, given, self._take)
        finally:
            for end in theirs:
                os.close(end)

    @property
    def stdout(self) -> int:
        return self._pipes[0]

    @property
    def stderr(self) -> int:
        return self._pipes[1]

    @property
    def returncode(self) -> int:
        """As `Popen` has it: negative for a signal; only after `finish`."""
        match self._answer:
            case [b"ended", status, _]:
                return os.waitstatus_to_exitcode(int(status))
            case [b"refused", _]:
                return 127
            case _:  # ended with its slot
                return -signal.SIGKILL

    @property
    def refusal(self) -> int:
        """Why the program was not executed, as a number of `errno`; 0 if it was."""
        match self._answer:
            case [b"refused", number]:
                return int(number)
            case _:
                return 0

    def when_ended(self, call: Callable[[], None]) -> None:
        """Call when every process of the command is gone, or the slot is."""
        self._call = call

    async def finish(self) -> None:
        """End what still runs, wait until all of it is gone.

        A cancellation in between is held back until then.
        """
        kept, self._slot = self._slot, None
        if kept is None:
            return
        if self.returncode != 0:
            self.was_short_of_memory = kept.was_short_of_memory
        match self._answer:
            case [b"ended", _, b"1"] | [b"refused", _]:
                self._leave(kept)
            case [b"folder", number]:
                self._leave(kept)
                raise ProcessError(f"the working directory: {os.strerror(int(number))}")
            case _:
                problem = kept.problem() if self._ended else None
                try:
                    await kept.end()
                finally:
                    self._leave(kept)
                if problem is not None:
                    fault = sandbox.out_of_room(problem)
                    raise fault or NotBegunError(f"bubblewrap could not start a slot: {problem}")

    def close(self) -> None:
        """Give back every descriptor; kill what runs if `finish` was not reached."""
        kept, self._slot = self._slot, None
        if kept is not None:
            kept.close()
            self._leave(kept)
        for pipe in self._pipes:
            os.close(pipe)
        self._pipes = []

    def _take(self, message: bytes) -> None:
        self._answer = message.split()
        self._ended = True
        self._call()


class Slots:
    """The slots of one event loop: made when needed, used again, ended by `close`."""

    def __init__(self, most: int = MOST_SLOTS) -> None:
        self._most = most
        self._idle: list[Slot] = []
        self._taken = 0
        self._closed = False

    def start(
        self,
        program: str,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        *,
        mark: str,
        stdin: int | None,
        wanted: Sandbox | None = None,
    ) -> Tenant | None:
        """Start a command whose program was found; None if there is no slot for it."""
        if self._taken >= self._most or not sandbox.probe().pid_namespace:
            return None
        if wanted is not None and not sandbox.probe_whole().sandbox:
            return None
        request = _request(program, argv, cwd, environment(cwd, env, mark))
        while True:
            tenant = Tenant(self._take(wanted), self._left)
            try:
                tenant.begin(request, stdin)
            except BrokenPipeError:  # killed while nobody used it, and not heard of yet
                tenant.close()
            except BaseException:
                tenant.close()
                raise
            else:
                return tenant

    async def close(self) -> None:
        """End the slots; one that is taken ends when its command has ended."""
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*(kept.end() for kept in idle))

    def _take(self, wanted: Sandbox | None) -> Slot:
        kept = None
        for found in [found for found in self._idle if found.wanted == wanted][::-1]:
            self._idle.remove(found)
            if found.is_fit:
                kept = found
                break
            found.close()  # it ended while nobody used it
        if kept is None:
            self._drop_left()
            kept = Slot.start(wanted)
        self._taken += 1
        return kept

    def _drop_left(self) -> None:
        """End slots that are too many, and those that nobody can use: what they may write is gone."""
        for found in list(self._idle):
            gone = found.wanted and not all(map(os.path.exists, found.wanted.writable))
            if gone or self._taken + len(self._idle) >= self._most:
                self._idle.remove(found)
                found.close()

    def _left(self, kept: Slot) -> None:
        self._taken -= 1
        if self._closed:
            kept.close()
        elif kept.is_fit:
            self._idle.append(kept)


def _with_python(wanted: Sandbox) -> Sandbox:
    """The sandbox with what a slot itself is made of."""
    own = (sys.base_prefix, sys.base_exec_prefix, os.path.dirname(_PYTHON), slot.__file__)
    return replace(wanted, readable=(*wanted.readable, *dict.fromkeys(own)))


def _request(program: str, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
    fields = [program, cwd, str(len(argv)), *argv, *(f"{k}={v}" for k, v in env.items()), ""]
    return os.fsencode("\0".join(fields))
