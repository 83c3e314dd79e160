"""What a command may use up: processes, memory, file sizes, descriptors, scratch space, disk.

Each process is bounded by the kernel's limits on processes. The whole command is bounded by a control
group where one can be made (root, or a delegated group), which is the only bound on the memory of
all its processes together, and the only one on the number of processes that root starts.
"""

from __future__ import annotations

import functools
import os
import resource
import sys

from holdfast.errors import ProcessError
from holdfast.model.fixed import frozen

MB = 2**20
_SHARE_OF_MEMORY = 3, 4


@frozen
class Limits:
    """Bounds on one command; None leaves that unbounded. Sizes are in bytes.

    `memory` bounds each process, and all of them together where there are control groups. `scratch` is
    the size of `/tmp` and of `/dev/shm`. A command that leaves less than `spare` of the disks that it
    writes to is ended.
    """

    processes: int | None = 4096
    memory: int | None = -1  # three quarters of the machine's
    file_size: int | None = 64 * 1024 * MB
    open_files: int | None = 65536
    scratch: int = 1024 * MB
    spare: int | None = 256 * MB

    def __post_init__(self) -> None:
        if self.memory == -1:
            object.__setattr__(self, "memory", _own_share())
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ProcessError(f"a limit of {value} for '{name}' leaves nothing")


@functools.cache
def _own_share() -> int | None:
    if sys.platform != "linux":
        return None
    part, whole = _SHARE_OF_MEMORY
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * part // whole


def bound(pid: int, limits: Limits) -> None:
    """Set the limits of a process that has not begun its work; its children inherit them."""
    if sys.platform == "linux":
        for which, most in bounds(limits):
            soft, hard = resource.prlimit(pid, which)
            resource.prlimit(pid, which, (_least(soft, most), _least(hard, most)))


def bounds(limits: Limits, *, processes: bool = True) -> list[tuple[int, int]]:
    """The limits as the kernel numbers them.

    Outside of a namespace the number of processes is that of all processes of the user: no bound there.
    """
    wanted = (
        (resource.RLIMIT_NPROC, limits.processes if processes else None),
        (resource.RLIMIT_DATA, limits.memory),
        (resource.RLIMIT_FSIZE, limits.file_size),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_CORE, 0),
    )
    return [(which, most) for which, most in wanted if most is not None]


def _least(present: int, most: int) -> int:
    return most if present == resource.RLIM_INFINITY else min(present, most)


def is_spent(places: tuple[str, ...], spare: int) -> bool:
    """Whether one of the disks has less left than must be spared."""
    for place in places:
        try:
            found = os.statvfs(place)
        except OSError:
            continue
        if found.f_bavail * found.f_frsize < spare or 0 < found.f_files > 100 * (
            found.f_favail + 1
        ):
            return True
    return False
