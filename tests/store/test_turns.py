"""Whose turn it is at a database that several processes write: nobody is kept from it for long."""

import pytest

from holdfast.store.database import _Patience


class Writer:
    """A process that commits again and again, on a disk of this speed, under a clock turned by hand."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.now = 1000.0
        self.naps = 0
        self._patience = _Patience(300_000, "state.db", print, lambda: self.now, self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds
        self.naps += 1

    def wait(self) -> None:
        """Another process has the lock."""
        self._patience.wait(0)
        self.naps = 0

    def commits_before_a_nap(self, most: int) -> int | None:
        """How many commits until this process stays away; None if it does not within so many."""
        self.naps = 0
        for number in range(1, most + 1):
            self.now += self._seconds
            self._patience.give_way()
            if self.naps:
                return number
        return None


@pytest.mark.parametrize(
    ("seconds", "commits"), [(0.001, 16), (0.015, 16), (0.03, 9), (0.07, 4), (0.5, 1), (3.0, 1)]
)
def test_others_that_wait_get_a_turn_however_slow_the_disk_is(seconds: float, commits: int) -> None:
    writer = Writer(seconds)
    writer.wait()
    assert writer.commits_before_a_nap(100) == commits


@pytest.mark.parametrize("seconds", [0.001, 0.07, 3.0])
def test_who_is_alone_makes_way_for_nobody(seconds: float) -> None:
    writer = Writer(seconds)
    assert writer.commits_before_a_nap(10_000) is None
    writer.wait()
    last = writer.now + 2 + seconds
    while writer.commits_before_a_nap(2_000) is not None:
        assert writer.now < last
