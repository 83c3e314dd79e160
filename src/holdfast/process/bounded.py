"""Work done in a process of its own, item by item, because on some item it may never end.

For code that cannot be interrupted and may be given anything, as parsers are. The process is a fork: it has
what this one has, so nothing is handed over but the answers. CPU time and memory are watched by the kernel,
which ends it; another one then goes on after the item that was too much.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Generic, NoReturn, TypeVar

from holdfast.errors import ProcessError, outside_fault

T = TypeVar("T")
_LENGTH = 4  # bytes before an answer
_DEADLY = (signal.SIGINT, signal.SIGTERM, signal.SIGPROF)  # the process just dies of them
_ENDED, _TOO_MUCH, _RAISED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Work(Generic[T]):
    """What to do with an item, how many seconds of CPU that may take, and how many bytes beside."""

    do: Callable[[T], bytes]
    seconds: Callable[[T], float]
    memory: int


def each(work: Work[T], items: Sequence[T]) -> Iterator[bytes | None]:
    """What the work makes of each item, in their order; None for one that took too much.

    An item on which the work raises is done once more here, so that whoever asked sees what it raised.
    """
    done = 0
    while done < len(items):
        answered, code = yield from _answers(work, items[done:])
        done += answered
        if done < len(items):
            yield work.do(items[done]) if code == _RAISED else None
            done += 1


def _answers(work: Work[T], items: Sequence[T]) -> Generator[bytes, None, tuple[int, int]]:
    """The answers up to the item on which the process ended; how many, and how it ended.

    They are told in a file, which is read when the process ended: nobody waits for anybody meanwhile.
    """
    with tempfile.TemporaryFile() as told:
        try:
            pid = os.fork()
        except OSError as error:
            raise outside_fault(error) or ProcessError(
                f"a process cannot be started: {error.strerror}"
            ) from error
        if not pid:
            _carry_out(work, items, told)
        try:
            _, status = os.waitpid(pid, 0)
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        told.seek(0)
        count = 0
        for answer in _whole(told):
            yield answer
            count += 1
    return count, os.waitstatus_to_exitcode(status)


def _whole(file: BinaryIO) -> Iterator[bytes]:
    while len(head := file.read(_LENGTH)) == _LENGTH:
        length = int.from_bytes(head, "big")
        answer = file.read(length)
        if len(answer) < length:  # it ended while it wrote
            return
        yield answer


def _carry_out(work: Work[T], items: Sequence[T], told: BinaryIO) -> NoReturn:
    """The life of the process: what is not its own is neither touched nor flushed, and kept from nobody."""
    try:
        os.closerange(3, told.fileno())
        os.closerange(told.fileno() + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # where libraries say that memory is short
        gc.disable()
        for number in _DEADLY:
            signal.signal(number, signal.SIG_DFL)
        _limit(work.memory)
        for item in items:
            signal.setitimer(signal.ITIMER_PROF, work.seconds(item))
            answer = work.do(item)
            told.write(len(answer).to_bytes(_LENGTH, "big") + answer)
            told.flush()  # what is told must survive the next item
        os._exit(_ENDED)
    except MemoryError:
        os._exit(_TOO_MUCH)
    finally:
        os._exit(_RAISED)


def _limit(memory: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):  # a kernel that does not say, or a lower limit
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, hard))
