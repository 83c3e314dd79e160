"""The system refuses one call, or all from one on: a typed end, nobody blamed, and it goes on later."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.crash.disk import DISK_FAILED, RUN, Point, counted, refused
from tests.crash.faults import Reference, Report, Shim, lay, spread

ROOM = ("ENOSPC", "EDQUOT")
HANDLES = ("EMFILE", "ENOMEM")
SYNCS = ("fsync", "fdatasync")
DAMAGED = 9
SLICES = 8  # of the whole sweep: reports of one name are added up

# What each call may answer. Calls that no system interrupts are not said to be interrupted.
OF_FILES: Mapping[str, Sequence[str]] = {
    "open": ("EIO", *HANDLES, "EINTR"),
    "create": ("EIO", *ROOM, *HANDLES, "EINTR"),
    "read": ("EIO", "EINTR"),
    "pread64": ("EIO", "EINTR"),
    "write": ("EIO", *ROOM, "EINTR"),
    "pwrite64": ("EIO", *ROOM, "EINTR"),
    "fsync": ("EIO", *ROOM, "EINTR"),
    "fdatasync": ("EIO", *ROOM, "EINTR"),
    "ftruncate64": ("EIO", "EINTR"),
    "rename": ("EIO", *ROOM),
    "renameat": ("EIO", *ROOM),
    "unlink": ("EIO", "ENOMEM"),
    "unlinkat": ("EIO", "ENOMEM"),
    "rmdir": ("EIO", "ENOMEM"),
    "mkdir": ("EIO", *ROOM, "ENOMEM"),
    "mkdirat": ("EIO", *ROOM),
    "fchmod": ("EIO",),
}
OF_PROCESSES: Mapping[str, Sequence[str]] = {
    "fork": ("ENOMEM", "EAGAIN"),
    "clone": ("ENOMEM", "EAGAIN"),
    "pipe2": HANDLES,
    "memfd_create": HANDLES,
    "socketpair": HANDLES,
    "epoll_create1": HANDLES,
    "sendto": ("ENOMEM",),
}
OF_TABLE = {"open": HANDLES}  # of the process table: what cannot be read is not gone
TABLES: Sequence[tuple[Mapping[str, Sequence[str]], str | None]] = (
    (OF_FILES, ""),
    (OF_PROCESSES, None),
    (OF_TABLE, "/proc/"),
)

# What goes on once it began: which calls, where, how.
STAYS: Sequence[tuple[tuple[str, ...], str | None, str]] = (
    (("write", "pwrite64", "create", "mkdir", "mkdirat"), "", "ENOSPC"),
    (("write", "pwrite64", "create", "mkdir", "mkdirat"), "", "EDQUOT"),
    (("write", "pwrite64", "fsync", "fdatasync", "renameat", "unlink"), "", "EIO"),
    (("open", "create"), "", "EMFILE"),
    (("pipe2", "memfd_create"), None, "EMFILE"),
    (("fork",), None, "ENOMEM"),
)


def codes(point: Point) -> set[int]:
    """An interrupted call is made again, and nobody notices; a sync is never tried twice.

    SQLite says of a page that cannot be read that the database is damaged.
    """
    if "EINTR" in point.how and point.calls[0] not in SYNCS:
        return {0}
    if point.calls[0] == "pread64":
        return {0, DISK_FAILED, DAMAGED}
    return {0, DISK_FAILED}


def once(
    calls: Sequence[str], errors: Mapping[str, Sequence[str]], under: str | None, each: int
) -> Iterator[Point]:
    """For each call and each of its errors some places among all such calls."""
    for call, count in Counter(calls).items():
        for seed, error in enumerate(errors[call]):
            for number in spread([call] * count, each, seed=seed):
                yield Point((call,), number, f"error {error}", under)


class Calls:
    """What an undisturbed command calls, counted once."""

    def __init__(self, shim: Shim, folder: Path, plan: str) -> None:
        self._calls = {
            under: counted(shim, lay(folder / f"count-{number}", plan), tuple(errors), under, *RUN)
            for number, (errors, under) in enumerate(TABLES)
        }

    def chosen(self, each: int) -> list[Point]:
        """Every kind of call with every error that it may have."""
        return [
            point
            for errors, under in TABLES
            for point in once(self._calls[under], errors, under, each)
        ]

    def staying(self, each: int) -> list[Point]:
        """Refusals that do not end."""
        points: list[Point] = []
        for seed, (calls, under, error) in enumerate(STAYS):
            count = sum(call in calls for call in self._calls[under])
            numbers = spread(["any"] * count, each, seed=seed)
            points += [Point(calls, number, f"error {error} on", under) for number in numbers]
        return points


@pytest.mark.req("D03", "I1")
@pytest.mark.parametrize("size", [9, pytest.param(18, marks=pytest.mark.soak("errno"))])
def test_a_refused_call_is_nobodys_failure(
    size: int,
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    report = Report("D03 a call is refused")
    calls = Calls(shim, tmp_path, "small")
    points = calls.chosen(1)
    sample = [points[number - 1] for number in spread(["any"] * len(points), size, seed=3)]
    sample += calls.staying(1)
    refused(tmp_path, shim, reference("small"), report, sample, "small", codes)
    settle(report)
    assert report.outcomes[f"exit {DISK_FAILED}"] > report.tried / 3


@pytest.mark.soak("errno")
@pytest.mark.req("D03", "I1")
@pytest.mark.parametrize("slice_", range(SLICES))
def test_every_kind_of_call_is_refused_with_every_error(
    slice_: int,
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    report = Report("D03 every call with every error")
    points = Calls(shim, tmp_path, "reference").chosen(14)
    assert len(points) > 600
    points = points[slice_::SLICES]
    report.total = len(points)
    refused(tmp_path, shim, reference("reference"), report, points, codes=codes)
    settle(report)
    assert report.outcomes[f"exit {DISK_FAILED}"] > report.tried / 3


@pytest.mark.soak("errno")
@pytest.mark.req("D03", "D08", "I1")
@pytest.mark.parametrize("slice_", range(2))
def test_a_refusal_that_stays(
    slice_: int,
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    report = Report("D03 refused from a call on")
    points = Calls(shim, tmp_path, "reference").staying(20)[slice_::2]
    report.total = len(points)
    refused(tmp_path, shim, reference("reference"), report, points)
    settle(report)
    assert report.outcomes[f"exit {DISK_FAILED}"] > report.tried / 2
