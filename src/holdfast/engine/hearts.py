"""Which of the other engines are dead.

A process of this machine that has ended is dead at once. Any other is judged by its heart, also one that
is there and stands still: it has stopped when its counter did not move for a whole lease: on the clock of
the store if it has one for everybody, else on the clock of whoever looks on; clocks of two machines are
never compared. On one's own clock only time in which somebody looked counts: after a sleep of the whole
machine nobody is dead because nobody was watched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from holdfast.ports import Holder, Owner

LONGEST_LOOK = 2  # polls: what lies between two looks counts for no more than this


class Watcher(Protocol):
    """Who looks on, and by which clock."""

    @property
    def owner(self) -> Owner:
        """The process that looks on."""

    @property
    def gone(self) -> Callable[[Holder], bool]:
        """Whether a process of this machine has ended."""

    @property
    def monotonic(self) -> Callable[[], float]:
        """A clock that only ever grows."""

    @property
    def poll_seconds(self) -> float:
        """How often it looks."""

    @property
    def lease_seconds(self) -> float:
        """How long a heart may stand still."""


class Seen(NamedTuple):
    """A heart as it was last seen, and how long it had stood still then."""

    beat: int
    still: float


class Hearts:
    """What one engine has seen of the hearts of the others."""

    def __init__(self, world: Watcher) -> None:
        self._world = world
        self._seen: dict[str, Seen] = {}
        self._looked = world.monotonic()

    def can_be_asked(self, holder: Holder) -> bool:
        """Whether this machine knows if the process is there."""
        mine = self._world.owner
        return (holder.owner.host, holder.owner.boot) == (mine.host, mine.boot)

    def look(self, holders: Iterable[Holder]) -> list[Holder]:
        """Look once more at everybody who is there; gives the dead."""
        now, world = self._world.monotonic(), self._world
        passed = min(now - self._looked, LONGEST_LOOK * world.poll_seconds)
        self._looked = now
        seen, dead = {}, []
        for holder in holders:
            before = self._seen.get(holder.owner.engine)
            is_still = before is not None and before.beat == holder.beat
            still = before.still + passed if before is not None and is_still else 0.0
            seen[holder.owner.engine] = Seen(holder.beat, still)
            if holder.silent is not None:  # the clock of the store is the same for everybody
                still = holder.silent
            if still >= world.lease_seconds or world.gone(holder):
                dead.append(holder)
        self._seen = seen
        return dead
