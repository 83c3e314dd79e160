"""Start one process so that it can be ended with every descendant, and watch it.

Confined, the command lives in a pid namespace: the end of the namespace's first process is the end
of all, also when this process is killed. Unconfined, `setpriv` asks the kernel to kill the direct
child when this process dies (a `preexec_fn` would do without the extra program, but runs Python
between fork and exec, which may deadlock in a process with threads); orphans become children of
this process and are found by `tree`. What either leaves when this process is killed, a watch ends.

Both death signals hang on the thread that started the process: when an event loop's thread ends,
so do its commands.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from holdfast.errors import ProcessError, outside_fault
from holdfast.process import cgroup, limits, restrain, sandbox, tree, watch
from holdfast.process.confine import Sandbox

Confine = Literal["auto", "never"]

_POLL_SECONDS = 0.01

_numbers = itertools.count(1)
_watches: dict[int, int | None] = {}  # by process, for one may fork: the pidfd of its watch


class Started:
    """A started process with all its descendants; owned by the event loop that started it."""

    def __init__(
        self,
        popen: subprocess.Popen[bytes],
        mark: str,
        *,
        since: int,
        status: int | None,
        wrapper: str,
        gate: Gate | None = None,
    ) -> None:
        self._popen = popen
        self._gate = gate
        self._status = status
        self._report = b""
        self._loop = asyncio.get_running_loop()
        self._finished = False
        self.pid = popen.pid
        self.confined = status is not None
        self.wrapper = wrapper
        self.flaw = ""
        self.restrained = False
        self.ended: asyncio.Future[None] = self._loop.create_future()

        def belongs(entry: tree.Entry) -> bool:
            return entry.start >= since and (
                entry.session == popen.pid or tree.mark_of(entry.pid) == mark
            )

        self._belongs = belongs
        self._family = tree.Family(belongs)
        self._pidfd = tree.open_pidfd(popen.pid)
        if self._pidfd is None:
            threading.Thread(target=self._wait_in_thread, daemon=True).start()
        else:
            self._loop.add_reader(self._pidfd, self._note_end)
        if gate is not None and status is not None:
            self._loop.add_reader(status, self._admit)

    @property
    def sandboxed(self) -> bool:
        """Whether the command has no more of the machine than its sandbox names."""
        return self._gate is not None

    @property
    def was_short_of_memory(self) -> bool:
        """Whether a process of it was killed for want of memory since this was last asked."""
        group = None if self._gate is None else self._gate.group
        return group is not None and group.was_short_of_memory()

    @property
    def stdin(self) -> int:
        return _descriptor(self._popen.stdin)

    @property
    def stdout(self) -> int:
        return _descriptor(self._popen.stdout)

    @property
    def stderr(self) -> int:
        return _descriptor(self._popen.stderr)

    @property
    def returncode(self) -> int:
        """As `Popen` has it: negative for a signal; only after `finish`."""
        code = self._popen.returncode
        return sandbox.outcome(code) if self.confined else code

    @property
    def was_executed(self) -> bool:
        """False if bubblewrap says that it never came to execute the command."""
        return not self.confined or self.returncode < 0 or self._read_status().code is not None

    def when_ended(self, call: Callable[[], None]) -> None:
        """Call when the direct child has ended; its descendants may live."""
        self.ended.add_done_callback(lambda _: call())

    async def finish(self) -> None:
        """End what still runs, wait until all of it is gone, take the exit status.

        A cancellation in between is held back until then.
        """
        patience = _Patience()
        if self.confined:
            await self._finish_namespace(patience)
        else:
            await self._finish_family(patience)
        self._finished = True
        tree.roots.discard(self.pid)
        if patience.was_cancelled:
            raise asyncio.CancelledError

    def strike(self) -> None:
        """Kill everything now, without waiting for the end."""
        self._signal_group(signal.SIGSTOP)
        self._family.strike()
        self._signal_group(signal.SIGKILL)

    def close(self) -> None:
        """Give back every descriptor; kill what runs if `finish` was not reached."""
        if not self._finished:
            self.strike()
            self._popen.wait()
            tree.roots.discard(self.pid)
        if self._pidfd is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        if self._status is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._status)
            os.close(self._status)
            self._status = None
        if self._gate is not None:
            self._gate.close()
        for stream in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if stream is not None:
                stream.close()

    def _admit(self) -> None:
        """Bound the command before it begins: bubblewrap has said which process it will be."""
        assert self._gate is not None  # only then this is called
        before = self._report
        init = self._read_status().init
        if init is None and self._report != before:
            return
        if self._status is not None:
            self._loop.remove_reader(self._status)
        if init is not None:
            try:
                self._gate.open(init)
            except OSError as error:
                self.flaw = f"its limits could not be set: {error.strerror}"
                self.strike()

    def _note_end(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
        if not self.ended.done():
            self.ended.set_result(None)

    def _wait_in_thread(self) -> None:
        """Where there is no pidfd. Takes the exit status at once; `Popen` keeps it."""
        self._popen.wait()
        with contextlib.suppress(RuntimeError):  # the loop may be closed
            self._loop.call_soon_threadsafe(self._note_end)

    def _signal_group(self, number: signal.Signals) -> None:
        # One call reaches all at once, before any can fork. Safe against reuse: the group's number
        # is taken until its leader's status is.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def _finish_family(self, patience: _Patience) -> None:
        if not self.ended.done():
            self._signal_group(signal.SIGSTOP)
            await self._end_family(patience)
            self._signal_group(signal.SIGKILL)
        await patience.wait(self.ended)
        self._signal_group(signal.SIGKILL)
        self._popen.wait()
        if self._has_orphans():
            await self._end_family(patience)

    async def _finish_namespace(self, patience: _Patience) -> None:
        if not self.ended.done():
            init = self._read_status().init
            entry = None if init is None else tree.look(init)
            if entry is not None and entry.parent == self.pid:
                tree.signal_entry(entry, signal.SIGKILL)
            self._popen.kill()
        await patience.wait(self.ended)
        self._popen.wait()
        init = self._read_status().init
        if init is None:
            # Ended during set-up: the namespace's first process may exist without being told of.
            await self._end_family(patience)
            return
        while not tree.reap(init):
            # An orphan that came to us. Killed in its set-up, bubblewrap has not yet bound it to
            # its own death; the pid is safe, for only we can take the status.
            os.kill(init, signal.SIGKILL)
            await self._gone(init, patience)

    async def _end_family(self, patience: _Patience) -> None:
        while struck := self._family.strike():
            for entry in struck[: tree.BATCH]:
                await self._gone(entry.pid, patience, start=entry.start)

    def _has_orphans(self) -> bool:
        pids = tree.adopted()
        if pids is None:
            return True  # unknown: look at the whole table
        entries = (tree.look(pid) for pid in pids if pid not in tree.roots)
        return any(entry is not None and self._belongs(entry) for entry in entries)

    async def _gone(self, pid: int, patience: _Patience, *, start: int | None = None) -> None:
        """Wait for the end of a process that was just killed: a child, or known by its start."""
        gone: asyncio.Future[None] = self._loop.create_future()
        try:
            descriptor = tree.open_pidfd(pid)
        except ProcessLookupError:
            return
        if descriptor is None:
            self._loop.call_later(_POLL_SECONDS, _settle, gone)  # the caller looks again
            await patience.wait(gone)
            return
        with _closing(descriptor):
            now = tree.look(pid)
            if start is not None and (now is None or now.start != start):
                return
            self._loop.add_reader(descriptor, _settle, gone)
            try:
                await patience.wait(gone)
            finally:
                self._loop.remove_reader(descriptor)
        if pid not in tree.roots:
            tree.reap(pid)

    def _read_status(self) -> sandbox.Status:
        if self._status is not None:
            with contextlib.suppress(BlockingIOError):
                self._report += os.read(self._status, sandbox.STATUS_MOST)
        return sandbox.parse_status(self._report)


class Gate:
    """Holds a command back until its limits are set, and gives back what held it."""

    def __init__(self, wanted: Sandbox, line: int) -> None:
        self._limits = wanted.limits
        self._line: int | None = line
        self._missing = sandbox.missing(wanted)
        sandbox.reserve(self._missing)
        self.group = cgroup.make(wanted.limits)

    def open(self, pid: int) -> None:
        """Set the limits of the process that will become the command, and let it go on."""
        try:
            if self.group is not None:
                self.group.add(pid)
            limits.bound(pid, self._limits)
        except ProcessLookupError:
            pass
        assert self._line is not None  # opened once
        line, self._line = self._line, None
        with _closing(line), contextlib.suppress(BrokenPipeError):
            os.write(line, b".")

    def close(self) -> None:
        """After the end of every process."""
        if self._line is not None:
            os.close(self._line)
            self._line = None
        if self.group is not None:
            self.group.remove()
        sandbox.release(self._missing)
        self._missing = ()


class _Patience:
    """Waits that a cancellation does not interrupt; remembers that there was one."""

    def __init__(self) -> None:
        self.was_cancelled = False

    async def wait(self, future: asyncio.Future[None]) -> None:
        while not future.done():
            try:
                await asyncio.shield(future)
            except asyncio.CancelledError:
                self.was_cancelled = True


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _descriptor(stream: object) -> int:
    fileno = getattr(stream, "fileno", None)
    if fileno is None:
        raise ProcessError("this stream of the process is not a pipe")
    return int(fileno())


def check(argv: Sequence[str], cwd: str, env: Mapping[str, str], mark: str) -> None:
    """Refuse what no system call could take."""
    if not argv or not argv[0]:
        raise ProcessError("a command needs a program")
    if any("\0" in word for word in (*argv, cwd, mark)):
        raise ProcessError(f'command "{argv[0]}" has a null character in it')
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            raise ProcessError(f'"{name}" cannot be an environment variable')


def start(
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    *,
    mark: str,
    stdin: int,
    confine: Confine,
    first: tuple[int, ...] | None = None,
    wanted: Sandbox | None = None,
) -> Started:
    """Start a command whose output comes by pipes that do not block.

    `stdin` is a descriptor or a constant of `subprocess`. With `first` a confined command is itself
    the first process of its namespace, and these descriptors are its alone: not bubblewrap's. A sandbox
    that is `wanted` is had whole only where bubblewrap can make it: look at `sandboxed`. Elsewhere
    Landlock holds what it can: `restrained`.
    """
    check(argv, cwd, env, mark)
    tree.adopt_orphans(os.getpid())
    _have_watch()
    whole = environment(cwd, env, mark)
    mark = whole[tree.MARK]
    since = tree.clock()
    status: int | None = None
    gate: Gate | None = None
    restrained = False
    if wanted is not None and not (confine == "auto" and sandbox.probe_whole().sandbox):
        under = restrain.words(wanted) if confine == "auto" else ()
        restrained, argv, wanted = bool(under), (*under, *argv), None
    try:
        if confine == "auto" and sandbox.probe().pid_namespace:
            wrapper = "bwrap"
            popen, status, gate = _popen_confined(argv, cwd, whole, stdin, first, wanted)
        else:
            words = death_signal()
            wrapper = "setpriv" if words else ""
            popen = _popen([*words, *argv], cwd, whole, stdin)
    except OSError as error:
        if (fault := outside_fault(error)) is not None:  # no command could have been started
            raise fault from error
        raise ProcessError(
            f'"{argv[0]}" could not be started: {error.strerror or error}'
        ) from error
    for stream in (popen.stdin, popen.stdout, popen.stderr):
        if stream is not None:
            os.set_blocking(stream.fileno(), False)
    started = Started(popen, mark, since=since, status=status, wrapper=wrapper, gate=gate)
    started.restrained = restrained
    return started


def environment(cwd: str, env: Mapping[str, str], mark: str) -> dict[str, str]:
    """What a command finds: `env`, PWD, which bubblewrap sets in any case, and a unique mark."""
    unique = f"{mark}#{tree.owner()}.{next(_numbers)}"
    place = _plain(cwd) if cwd.startswith("/") else os.path.abspath(cwd)
    return {**env, "PWD": place, tree.MARK: unique}


@functools.lru_cache(maxsize=256)
def _plain(path: str) -> str:
    return os.path.normpath(path)


def _popen_confined(
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    stdin: int,
    first: tuple[int, ...] | None,
    wanted: Sandbox | None,
) -> tuple[subprocess.Popen[bytes], int, Gate | None]:
    """The process, the descriptor where bubblewrap reports, and what holds the command back."""
    options = sandbox.options(env, wanted)
    if sandbox.too_long(argv, options):
        raise ProcessError(
            f'"{argv[0]}" has more arguments than bubblewrap takes',
            hint="hand them over in a file",
        )
    own = {name: env[name] for name in ("PWD", tree.MARK)}
    with contextlib.ExitStack() as ends, contextlib.ExitStack() as kept:
        handed = sandbox.handed(options, filtered=wanted is not None)
        words, passed = ends.enter_context(handed)
        status, status_end = os.pipe()
        kept.callback(os.close, status)
        ends.callback(os.close, status_end)
        os.set_blocking(status, False)
        words = [sandbox.probe().program, *words, "--json-status-fd", str(status_end)]
        passed += [status_end, *(first or ())]
        gate = None
        if wanted is not None:
            # A slot that finds nobody there ends by itself.
            held, line = _lasting_pipe() if first is None else os.pipe()
            ends.callback(os.close, held)
            gate = Gate(wanted, line)
            kept.callback(gate.close)
            words += ["--block-fd", str(held)]
            passed.append(held)
        words += ["--", *argv] if first is None else ["--as-pid-1", "--", *argv]
        popen = _popen(words, cwd, own, stdin, passed)
        kept.pop_all()
        return popen, status, gate


def _popen(
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    stdin: int,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    popen = subprocess.Popen(
        argv,
        cwd=cwd,
        env=env,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
        pass_fds=pass_fds,
    )
    tree.roots.add(popen.pid)
    return popen


def _have_watch() -> None:
    """Have somebody end what this process leaves if it is killed; another one if that was ended itself.

    What is half made is bound to nobody yet, and where nothing confines a command only its own process is
    bound. Without a process to be had it is left to the sweep of the next engine.
    """
    if sys.platform != "linux":
        return
    process = os.getpid()
    if process in _watches and not _has_ended(_watches[process]):
        return
    with contextlib.suppress(OSError):
        _watches[process] = _begin_watch()


def _has_ended(watching: int | None) -> bool:
    """Whether a watch was ended by somebody; its status is taken then. None is one that cannot be asked."""
    if watching is None:
        return False
    asked = select.poll()
    asked.register(watching, select.POLLIN)
    if not asked.poll(0):
        return False
    with _closing(watching), contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PIDFD, watching, os.WEXITED | os.WNOHANG)
    return True


def _begin_watch() -> int | None:
    """A watch over this process, as a pidfd where there are any."""
    end, line = os.pipe()  # the line is never closed: that this process ends closes it
    try:
        with _closing(end):
            argv = (
                os.path.realpath(sys.executable),
                *("-I", "-S", "-E", watch.__file__),
                *(str(end), tree.owner()),
            )
            popen = subprocess.Popen(
                argv,
                cwd="/",
                env={},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=(end,),
            )
    except OSError:
        os.close(line)
        raise
    tree.roots.add(popen.pid)
    popen.returncode = 0  # it outlives this process, which waits for it only if it was ended
    return tree.open_pidfd(popen.pid)


def _lasting_pipe() -> tuple[int, int]:
    """A pipe whose reader waits also when the writer is gone.

    Bubblewrap takes the end of what it reads for leave to go on: a command whose engine was killed while its
    sandbox was made would begin with nobody there. The reader here is a writer too, so no end comes.
    """
    held, line = os.pipe()
    try:
        return os.open(f"/proc/self/fd/{held}", os.O_RDWR | os.O_CLOEXEC), line
    except BaseException:
        os.close(line)
        raise
    finally:
        os.close(held)


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)


@functools.cache
def death_signal() -> tuple[str, ...]:
    """The words that make the kernel kill the direct child with this process; none if it cannot."""
    program = shutil.which("setpriv")
    if program is None:
        return ()
    words = (program, "--pdeathsig", "KILL", "--")
    try:
        trial = subprocess.run(
            [*words, program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=15,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        if (fault := outside_fault(error)) is not None:  # says nothing about the program
            raise fault from error
        return ()
    return words if trial.returncode == 0 else ()
