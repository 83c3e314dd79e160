"""The program of a slot: the first process of a pid namespace, running one command after the other.

Started by its path and with as little of the library as can be, so that it starts fast (`_ctypes`, `_signal`
and `_socket` are what lies beneath `ctypes`, `signal` and `socket`, which take as long to load as Python
itself). Its arguments name the pid namespace that it must not be in, the descriptor of a unix
socket of whole messages, and, if it has scratch folders and queues of its own, `alone`:

    to us    `.` and a request, or `@` alone: the request is in the first descriptor. A request is
             program, folder, count of words, words, variables, each ended by a null byte. With it
             come descriptors for standard output and error, perhaps a third for standard input
    from us  `ready`, once; then for each request one of
             `ended STATUS FIT`   the wait status; every process of the command is gone. FIT is 0 if
                                  the command changed what the next one would inherit from us
             `refused ERRNO`      the program could not be executed
             `folder ERRNO`       the folder could not be entered

A command cannot reach the socket (closed on exec, and no process of ours may look into this one),
nor end this process (the kernel keeps signals from inside a namespace away from its first process
unless it handles them, and it handles none). The end of this process is the end of the namespace:
whoever wants to end a command at once kills the slot.
"""

from __future__ import annotations

import _ctypes
import _signal  # type: ignore[import-not-found]  # it has no stubs
import _socket
import os
import select
import sys

_MOST = 2**16
_DESCRIPTORS = 4
_INT = 4
_SET_DUMPABLE = 4  # from linux/prctl.h
# Ignored by Python itself; a command must find them as they usually are.
_SCRATCH = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - this slot's own
_FOLDER = 0o040000
_DEFAULTS = (_signal.SIGPIPE, _signal.SIGXFSZ)

Request = tuple[bytes, bytes, list[bytes], dict[bytes, bytes]]


def main() -> None:
    """Serve requests until the socket is closed."""
    if not _is_alone(sys.argv[1]):
        sys.exit("a slot must be the first process of a pid namespace of its own")
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    _hide()
    line = _socket.socket(fileno=os.dup(int(sys.argv[2])))
    os.close(int(sys.argv[2]))
    nothing = os.open(os.devnull, os.O_RDONLY)
    inherited = Inherited(alone=sys.argv[3] == "alone")
    room = _socket.CMSG_SPACE(_DESCRIPTORS * _INT)
    line.send(b"ready")
    while True:
        message, ancillary, _, _ = line.recvmsg(_MOST, room, _socket.MSG_CMSG_CLOEXEC)
        if not message:
            return
        descriptors = [number for _, _, data in ancillary for number in _numbers(data)]
        line.send(_serve(message, descriptors, nothing, inherited))


def _hide() -> None:
    """Let no process of this user look into this one."""
    found = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]  # this program
    if _ctypes.call_function(found, (_SET_DUMPABLE, 0, 0, 0, 0)):
        sys.exit("a slot cannot be hidden from what runs in it")


def _is_alone(outer: str) -> bool:
    """Whether `kill(-1)` here reaches the slot's own commands and nobody else."""
    return os.getpid() == 1 and os.stat("/proc/self/ns/pid").st_ino != int(outer)


def _numbers(data: bytes) -> list[int]:
    whole = len(data) - len(data) % _INT
    return [int.from_bytes(data[at : at + _INT], sys.byteorder) for at in range(0, whole, _INT)]


def _serve(message: bytes, descriptors: list[int], nothing: int, inherited: Inherited) -> bytes:
    try:
        if message[:1] == b"@":
            message = b"." + _content(descriptors.pop(0))
        program, folder, words, variables = _parse(message[1:])
        try:
            os.chdir(folder)
        except OSError as error:
            return b"folder %d" % (error.errno or 0)
        try:
            child = _spawn(program, words, variables, [*descriptors, nothing])
        except OSError as error:
            return b"refused %d" % (error.errno or 0)
        finally:
            os.chdir("/")
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    status = _wait(child)
    _end_all()
    return b"ended %d %d" % (status, inherited.is_whole())


def _content(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        return file.read()


def _parse(request: bytes) -> Request:
    program, folder, count, *rest = request.split(b"\0")
    words = int(count)
    variables = dict(item.split(b"=", 1) for item in rest[words:-1])
    return program, folder, rest[:words], variables


def _spawn(
    program: bytes, words: list[bytes], variables: dict[bytes, bytes], given: list[int]
) -> int:
    stdout, stderr, stdin, *_ = given
    actions = [
        (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_DUP2, stdout, 1),
        (os.POSIX_SPAWN_DUP2, stderr, 2),
    ]
    return os.posix_spawn(
        program, words, variables, file_actions=actions, setsid=True, setsigdef=_DEFAULTS
    )


def _wait(child: int) -> int:
    """The wait status of the command; orphans that end before it are taken too."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            return status


def _end_all() -> None:
    """End what the command left; returns when every process but this one is gone.

    Orphans are our children, so without a child there is nobody. One call reaches all at once, and
    a process that is being killed forks no more.
    """
    try:
        os.waitpid(-1, os.WNOHANG)
        if os.getpid() != 1:  # anywhere else the call would reach strangers
            sys.exit("a slot lost its namespace")
        try:  # noqa: SIM105 - what would be imported for it takes 3 ms
            os.kill(-1, _signal.SIGKILL)
        except ProcessLookupError:
            pass
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return


class Inherited:
    """What a command inherits from this process, and another one of the same user could change."""

    def __init__(self, *, alone: bool) -> None:
        self._alone = alone
        self._scratch = _scratch() if alone else {}
        self._mounts = select.poll()
        self._mounts.register(os.open("/proc/self/mounts", os.O_RDONLY), select.POLLPRI)
        self._limits = os.open("/proc/self/limits", os.O_RDONLY)
        self._first = self._read()

    def is_whole(self) -> bool:
        if self._alone and not self._is_swept():
            return False
        return not self._mounts.poll(0) and self._read() == self._first

    def _is_swept(self) -> bool:
        """Whether the scratch folders are as they were, once what was left there is removed."""
        try:
            found = _scratch()
            for path in sorted(found.keys() - self._scratch.keys(), reverse=True):
                (os.rmdir if (found[path] & 0o170000) == _FOLDER else os.unlink)(path)
            return _scratch() == self._scratch and not _has_queues()
        except OSError:
            return False

    def _read(self) -> tuple[object, ...]:
        return (
            os.pread(self._limits, _MOST, 0),
            os.getpriority(os.PRIO_PROCESS, 0),
            os.sched_getaffinity(0),
            os.sched_getscheduler(0),
        )


def _scratch() -> dict[str, int]:
    """Every path of the scratch folders with its mode; what is mounted within them is not theirs."""
    found: dict[str, int] = {}
    for top in _SCRATCH:
        if os.path.isdir(top) and not os.path.islink(top):
            status = os.stat(top)
            found[top] = status.st_mode
            waiting = [top]
            while waiting:
                with os.scandir(waiting.pop()) as entries:
                    for entry in entries:
                        seen = entry.stat(follow_symlinks=False)
                        if seen.st_dev == status.st_dev:
                            found[entry.path] = seen.st_mode
                            if entry.is_dir(follow_symlinks=False):
                                waiting.append(entry.path)
    return found


def _has_queues() -> bool:
    """Whether shared memory, queues or semaphores were left: each list has a line of names."""
    for name in ("shm", "msg", "sem"):
        try:
            with open(f"/proc/sysvipc/{name}", "rb") as file:
                if file.read().count(b"\n") > 1:
                    return True
        except FileNotFoundError:
            continue
    return False


if __name__ == "__main__":
    main()
