"""Which process this is, whether another one still lives, and locks that end with their owner.

A process is known by host, boot, process id and start time: an id alone is given out again. `boot`
also names the process id namespace, because the same id means another process in another container;
across namespaces, and on another host, nobody can tell, and then nobody is dead. A store on a disk of
this machine is used by no other one, so who entered it before the last boot has ended; one that machines
share may know another machine under the same name.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import pwd
import time
import uuid
import weakref
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from holdfast.errors import StoreError, outside_fault, shut_out
from holdfast.ports import Holder, Owner

_BOOT = "/proc/sys/kernel/random/boot_id"
_UNKNOWN = "unknown"  # a boot without a name; a process of which nobody can tell since when it runs
_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def this_process() -> Owner:
    """This process under a fresh name; two calls never give the same one."""
    pid = os.getpid()
    return Owner(
        engine=str(uuid.uuid4()),
        host=platform.node(),
        boot=this_boot(),
        pid=pid,
        started=started(pid),
        since=time.time_ns() // 1_000_000,
    )


def gone(holder: Holder, look: Callable[[int], str] | None = None) -> bool:
    """Whether the process has certainly ended. False means alive, or that nobody here can tell."""
    owner, is_shared = holder.owner, holder.silent is not None
    if owner.host != platform.node():
        return False
    boot, _, space = owner.boot.partition("/")
    here, _, our_space = this_boot().partition("/")
    if boot != here:
        return not is_shared
    if is_shared and boot == _UNKNOWN:  # as any other machine may say
        return False
    return space == our_space and (look or started)(owner.pid) not in {owner.started, _UNKNOWN}


def is_hidden(owner: Owner, space: str) -> str:
    """The pid namespace of an engine on this machine, if it is another one than this; else nothing."""
    boot, _, theirs = owner.boot.partition("/")
    if boot != this_boot().partition("/")[0]:  # the name of a host can be set by anybody
        return ""
    return theirs if theirs != space else ""


def user_name() -> str:
    """The user that this process belongs to, by the system's own table: variables can be set by anybody."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user-{os.getuid()}"


def started(pid: int) -> str:
    """When the process began, as the kernel says it; '' if it is no more, or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            after_name = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "" if os.path.exists("/proc/self/stat") else _started_elsewhere(pid)
    except PermissionError:
        return _UNKNOWN
    return "" if after_name[0] in "ZX" else after_name[19]


def _started_elsewhere(pid: int) -> str:
    """Without /proc: only whether there is a process with this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return _UNKNOWN
    return _UNKNOWN


def this_boot() -> str:
    """Names this start of this machine, and the process id namespace."""
    boot, space = _UNKNOWN, ""
    with contextlib.suppress(OSError), open(_BOOT, encoding="ascii") as file:
        boot = file.read().strip()
    with contextlib.suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return f"{boot}/{space}"


class LineLock:
    """A lock of the operating system on one line: held until released or the process ends.

    The file is never removed (that would let two processes lock two files of one name). Programs
    that this process starts do not get the lock, and a forked child lets go of it at once.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle: int | None = None
        _LOCKS.add(self)

    @property
    def held(self) -> bool:
        """Whether this object has the lock."""
        return self._handle is not None

    def try_lock(self) -> bool:
        """Take the lock if nobody has it; does not wait."""
        if self._handle is not None:
            return True
        try:
            os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
            handle = os.open(self._path, _LOCK, 0o600)
        except OSError as error:
            fault = outside_fault(error) or shut_out(error)
            raise StoreError(
                f"the lock '{self._path}' cannot be opened: {error}",
                hint=fault.hint if fault else None,
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        except OSError as error:
            os.close(handle)
            raise StoreError(f"the lock '{self._path}' cannot be taken: {error}") from error
        self._handle = handle
        return True

    def release(self) -> None:
        """Give the lock back."""
        if self._handle is not None:
            fcntl.flock(self._handle, fcntl.LOCK_UN)
            self.forget()

    def forget(self) -> None:
        """In a forked child: close what was inherited and leave the lock to the parent."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


_LOCKS: weakref.WeakSet[LineLock] = weakref.WeakSet()


def _forget_all() -> None:
    for lock in list(_LOCKS):
        lock.forget()


os.register_at_fork(after_in_child=_forget_all)  # once: what is registered stays for ever


def line_lock(directory: str, project: str, line: str) -> LineLock:
    """The lock of a line in the store of a directory; not yet taken."""
    name = f"{project}\0{line}".encode("utf-8", "surrogatepass")
    return LineLock(os.path.join(directory, "locks", f"{hashlib.sha256(name).hexdigest()}.lock"))


def budget_lock(directory: str) -> LineLock:
    """The lock under which engines of a store reserve from budgets that they share; not yet taken."""
    return LineLock(os.path.join(directory, "locks", "budgets.lock"))


@contextlib.contextmanager
def only_one(path: str) -> Iterator[None]:
    """Wait until no other process is inside; for the short moment in which a store is made."""
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    handle = os.open(path, _LOCK, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
