"""Confine a command by bubblewrap: what this machine offers, and the arguments that ask for it.

There are two strengths. Every command gets a pid namespace with the file system as it is; one that
comes with a `Sandbox` gets that and no more of the machine than is named there.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from holdfast.errors import StoreError, outside_fault
from holdfast.model.fixed import frozen
from holdfast.process.confine import Place, Sandbox, is_empty, places, sockets, without_gone
from holdfast.process.syscalls import call_filter
from holdfast.process.tree import MARK, owner

_TRIAL_SECONDS = 15.0
STATUS_MOST = 4096  # bytes; its report is two short lines
# bubblewrap refuses more words than this, its own and the command's together.
_MOST_WORDS = 9000
# Devices that work needs and that are bounded by their own rights.
_DEVICES = ("/dev/dri", "/dev/kfd", "/dev/nvidia")
_OF_KERNEL = ("acpi", "fs", "mtrr", "pressure", "scsi", "sys", "sysrq-trigger")
_KEYS = ("/proc/keys", "/proc/key-users")  # which keys there are; the calls to use them are refused
# A machine that is short of these will have them again; what else bubblewrap meets is how the machine is.
_NO_ROOM = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
# Folders that were made to mount on, and how many commands have each. Process-wide, as the folders are.
_reserved: dict[str, int] = {}
_FULL = ("--unshare-user", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")

# bubblewrap reports a death by signal n as exit code 128 + n, as a shell does. These are read back
# as signals. SIGHUP is not among them: 129 is what git exits with on wrong usage.
_DEADLY = frozenset(
    int(number)
    for number in (
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGILL,
        signal.SIGTRAP,
        signal.SIGABRT,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGKILL,
        signal.SIGUSR1,
        signal.SIGSEGV,
        signal.SIGUSR2,
        signal.SIGPIPE,
        signal.SIGALRM,
        signal.SIGTERM,
        signal.SIGXCPU,
        signal.SIGXFSZ,
        signal.SIGSYS,
    )
)


@frozen
class Confinement:
    """What this machine offers; `reason` says why there is no pid namespace, or no sandbox."""

    pid_namespace: bool
    program: str = ""
    reason: str = ""
    sandbox: bool = False


@frozen
class Status:
    """What bubblewrap reported: its first process as seen from here, and how the command ended.

    Without a code the command was never executed, or bubblewrap was killed.
    """

    init: int | None = None
    code: int | None = None


@functools.cache
def probe() -> Confinement:
    """Try bubblewrap once, with the very options commands will run under."""
    program = shutil.which("bwrap")
    if program is None:
        return Confinement(pid_namespace=False, reason="bubblewrap (bwrap) is not installed")
    try:
        trial, status = _try(program, None)
    except (OSError, subprocess.TimeoutExpired) as error:
        if (fault := outside_fault(error)) is not None:  # says nothing about bubblewrap
            raise fault from error
        return Confinement(pid_namespace=False, reason=f"bubblewrap does not run: {error}")
    if trial.returncode != 0 or status.code is None:
        said = _said_by(trial)
        return Confinement(pid_namespace=False, reason=f"bubblewrap does not work here: {said}")
    return Confinement(pid_namespace=True, program=program)


@functools.cache
def probe_whole() -> Confinement:
    """Try a whole sandbox once, where there is a pid namespace at all."""
    found = probe()
    if not found.pid_namespace:
        return found
    try:
        trial, status = _try_whole(found.program)
    except (OSError, subprocess.TimeoutExpired) as error:
        if (fault := outside_fault(error)) is not None:
            raise fault from error
        return Confinement(True, found.program, f"bubblewrap does not run: {error}")
    if trial.returncode != 0 or status.code is None:
        said = _said_by(trial)
        return Confinement(True, found.program, f"bubblewrap makes no sandbox here: {said}")
    return Confinement(True, found.program, sandbox=True)


def out_of_room(said: str) -> StoreError | None:
    """The error of a machine that has no room just now, if that is what bubblewrap said last."""
    for number in _NO_ROOM:
        words = os.strerror(number)
        if said.rstrip().endswith(f": {words}"):
            return outside_fault(OSError(number, words))
    return None


def _said_by(trial: subprocess.CompletedProcess[bytes]) -> str:
    """Why a trial failed; StoreError if that says nothing about bubblewrap."""
    said = trial.stderr.decode(errors="replace").strip()
    if (fault := out_of_room(said)) is not None:
        raise fault
    return said or f"exit code {trial.returncode}"


def _try_whole(program: str) -> tuple[subprocess.CompletedProcess[bytes], Status]:
    """The trial of a whole sandbox; again without the sockets that went away under it."""
    wanted: Sandbox | None = Sandbox()
    while True:
        trial, status = _try(program, wanted)
        wanted = without_gone(wanted) if wanted is not None and trial.returncode else None
        if wanted is None:
            return trial, status


def _try(
    program: str, sandbox: Sandbox | None
) -> tuple[subprocess.CompletedProcess[bytes], Status]:
    report, report_end = os.pipe()
    os.set_blocking(report, False)
    try:
        # Not bound to this process: bubblewrap killed in its set-up leaves a child that waits for ever, and
        # a trial that is left alone ends by itself.
        chosen = [word for word in options({}, sandbox) if word != "--die-with-parent"]
        with handed(chosen, filtered=sandbox is not None) as (words, given):
            words += ["--json-status-fd", str(report_end)]
            trial = subprocess.run(
                [program, *words, "--", program, "--version"],
                pass_fds=(*given, report_end),
                env={**os.environ, MARK: f"slot#{owner()}.0"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TRIAL_SECONDS,
                check=False,
            )
        status = Status()
        with contextlib.suppress(BlockingIOError):
            status = parse_status(os.read(report, STATUS_MOST))
    finally:
        os.close(report)
        os.close(report_end)
    if status.init is not None:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(status.init, 0)  # ours if orphans come to this process
    return trial, status


def options(env: Mapping[str, str], sandbox: Sandbox | None = None) -> list[str]:
    """The confinement itself: a pid namespace with its own /proc, and the file system.

    `--new-session` gives the command a process group of its own inside the namespace: without it
    `kill 0` in a script would reach bubblewrap. The environment is set from inside, so that a
    variable such as LD_PRELOAD acts on the command and not on bubblewrap.
    """
    words = ["--unshare-pid", "--die-with-parent", "--new-session"]
    if sandbox is None:
        words += ["--dev-bind", "/", "/", "--proc", "/proc"]
    else:
        words += [*_FULL, "--cap-drop", "ALL"]
        words += [] if sandbox.network else ["--unshare-net"]
        words += _mounts(sandbox)
    words.append("--clearenv")
    for name, value in env.items():
        words += ["--setenv", name, value]
    return words


def _mounts(sandbox: Sandbox) -> list[str]:
    """What the command sees of the file system. What bubblewrap must fill first is closed at the end."""
    words = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    if os.geteuid() == 0:
        # Without privileges root still owns these, and bubblewrap leaves some of them open.
        for name in _OF_KERNEL:
            if os.path.exists(f"/proc/{name}"):
                words += ["--ro-bind", f"/proc/{name}", f"/proc/{name}"]
    for device in _devices():
        words += ["--dev-bind-try", device, device]
    closed = ["/dev"]
    found = places(sandbox)
    for place in found:
        words += _mount(place, str(sandbox.limits.scratch))
        if _is_hollow(place):
            closed.append(place.path)
    heard = sandbox.heard
    listening = [path for path in sockets(found) if heard is None or path in heard]
    for path in (*filter(os.path.exists, _KEYS), *listening):
        words += ["--ro-bind", os.devnull, path]
    for path in closed:
        words += ["--remount-ro", path]
    return words


def _is_hollow(place: Place) -> bool:
    """Whether an empty folder is mounted there that must stay so."""
    if place.kind == "protected":
        return _is_missing(place.path)
    return place.kind == "masked" and os.path.isdir(place.path) and not is_empty(place.path)


def _mount(place: Place, scratch: str) -> list[str]:
    path = place.path
    match place.kind:
        case "masked" if os.path.isdir(path):
            return [*(("--size", scratch) if is_empty(path) else ()), "--tmpfs", path]
        case "masked":
            return ["--ro-bind", os.devnull, path]
        case "writable":
            return ["--dev-bind" if path.startswith("/dev/") else "--bind", place.source, path]
        case "protected" if _is_missing(path):
            return ["--tmpfs", path]
        case _:
            return ["--ro-bind", path, path]


def _devices() -> Iterator[str]:
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir("/dev")):
            path = os.path.join("/dev", name)
            if path.startswith(_DEVICES):
                yield path


def missing(sandbox: Sandbox) -> tuple[str, ...]:
    """Protected paths that are not there: bubblewrap makes a folder for each, to mount on."""
    return tuple(
        place.path
        for place in places(sandbox)
        if place.kind == "protected" and _is_missing(place.path)
    )


def _is_missing(path: str) -> bool:
    """Whether nobody but us made what lies there."""
    return path in _reserved or not os.path.lexists(path)


def reserve(paths: Sequence[str]) -> None:
    """Remember that a command has these folders, which nobody else made."""
    for path in paths:
        _reserved[path] = _reserved.get(path, 0) + 1


def release(paths: Sequence[str]) -> None:
    """Remove the folders that nobody has any longer, if they are empty still."""
    for path in paths:
        _reserved[path] -= 1
        if not _reserved[path]:
            del _reserved[path]
            with contextlib.suppress(OSError):
                os.rmdir(path)


def too_long(argv: Sequence[str], words: Sequence[str]) -> bool:
    own = (
        "--args",
        "",
        "--json-status-fd",
        "",
        "--block-fd",
        "",
        "--seccomp",
        "",
        "--as-pid-1",
        "--",
    )
    return len(words) + len(argv) + len(own) >= _MOST_WORDS


@contextlib.contextmanager
def handed(options: Sequence[str], *, filtered: bool) -> Iterator[tuple[list[str], list[int]]]:
    """What bubblewrap is told to read, and from which descriptors: its options, and the filter of calls.

    In argv other users could read the secrets among the options.
    """
    packed = b"".join(os.fsencode(word) + b"\0" for word in options)
    parts = {"--args": packed, "--seccomp": call_filter() if filtered else b""}
    with contextlib.ExitStack() as opened:
        words: list[str] = []
        given: list[int] = []
        for word, content in parts.items():
            if content:
                given.append(scratch_file(content))
                opened.callback(os.close, given[-1])
                words += [word, str(given[-1])]
        yield words, given


def scratch_file(content: bytes) -> int:
    """A descriptor of an unnamed file that holds `content`, at its start; the caller closes it."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("holdfast", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def parse_status(report: bytes) -> Status:
    """Read what `--json-status-fd` wrote so far: one object a line."""
    init: int | None = None
    code: int | None = None
    for line in report.splitlines(keepends=True):
        if line.endswith(b"\n"):
            fields = json.loads(line)
            init = fields.get("child-pid", init)
            code = fields.get("exit-code", code)
    return Status(init=init, code=code)


def outcome(code: int) -> int:
    """A code that bubblewrap reported, in the form of `Popen.returncode`: negative for a signal.

    A command that itself exits with 128 + n cannot be told from one that signal n ended.
    """
    return 128 - code if code - 128 in _DEADLY else code
