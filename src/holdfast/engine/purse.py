"""What the budgets of a day and of a project leave to one run.

They hold over all runs of a store, also those that other engines drive, and over what is asked outside of
runs. Whoever reserves from them is alone
while he does: he looks at what all the others spent and reserved, and stores his own before the next one
looks. A call that is under way counts with all that it reserved, also if its engine died; so engines
together never go beyond a budget by more than an answer is longer than what was reserved for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.core.outlay import CALLS, Short, Tally
from holdfast.engine.outlays import account, paid_in
from holdfast.model.plan import RunId
from holdfast.ports import Lock, Store

_PAUSE = 0.005  # seconds until the lock is tried again; whoever has it keeps it for one commit
_LONGEST = 24 * 60 * 60 * 1000  # ms that a call may take, by far
_AT_ONCE = 500  # events that are read before others have their turn


class Room(NamedTuple):
    """The budget that leaves least: its name, what it is, what a run may have spent in all, who says so."""

    budget: Short
    most: int
    left: int
    file: str = ""

    @property
    def name(self) -> str:
        """What it is for: the day, or the project."""
        return self.budget.partition(" ")[0]


@dataclass(slots=True)
class _Seen:
    """What one journal told so far."""

    tally: Tally
    upto: int = 0


class Purse:
    """Says how much a run may have spent in all, in micro-dollars, and lets one engine reserve at a time."""

    def __init__(
        self,
        store: Store,
        project: str,
        day: int | None,
        whole: int | None,
        began_today: Callable[[], int],
        lock: Lock | None = None,
        file_of: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._store = store
        self._project = project
        self._day = day
        self._whole = whole
        self._began_today = began_today
        self._lock = lock
        self._file_of = file_of  # that says the budget of a day or a project
        self._turn = asyncio.Lock()
        self._seen: dict[tuple[str, int], _Seen] = {}  # by journal, and since when
        self._before: dict[tuple[RunId, int], int] = {}

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """As long as it lasts, no call of this or of another engine is reserved from these budgets."""
        async with self._turn:
            await self._catch_up()
            while self._lock is not None and not self._lock.try_lock():  # noqa: ASYNC110 - another process
                await asyncio.sleep(_PAUSE)
            try:
                yield
            finally:
                if self._lock is not None:
                    self._lock.release()

    def room(self, run: RunId) -> Room | None:
        """What this run may have spent, beside what the others have; None if there is no budget."""
        others = [journal for journal in paid_in(self._store) if journal != f"run:{run}"]
        found = []
        if self._day is not None:
            today = self._began_today()
            spent = sum(self._spent(journal, today) for journal in others)
            left = self._day - spent + self._spent_before(run, today)
            found.append(Room("day budget", self._day, left, self._file_of("day")))
        if self._whole is not None:
            own = [j for j in paid_in(self._store, self._project) if j != f"run:{run}"]
            spent = sum(self._spent(journal, 0) for journal in own)
            left, file = self._whole - spent, self._file_of("project")
            found.append(Room("project budget", self._whole, left, file))
        return min(found, key=lambda room: room.left, default=None)

    async def _catch_up(self) -> None:
        """Read what long journals told, before others have to wait for it, and bit by bit."""
        read = 0
        for since, project in self._looks():
            for journal in paid_in(self._store, project):
                for _ in self._news(journal, since):
                    read += 1
                    if read % _AT_ONCE == 0:
                        await asyncio.sleep(0)

    def _looks(self) -> Iterator[tuple[int, str | None]]:
        """Since when calls count for each budget, and of which project."""
        if self._day is not None:
            yield self._began_today(), None
        if self._whole is not None:
            yield 0, self._project

    def _spent(self, journal: str, since: int) -> int:
        """What was spent elsewhere since a moment."""
        for _ in self._news(journal, since):
            pass
        return self._seen[journal, since].tally.spent

    def _news(self, journal: str, since: int) -> Iterator[None]:
        """Take what a journal told since it was last looked at, event by event; it may be left at any."""
        known = self._seen.setdefault((journal, since), _Seen(Tally(since)))
        end = self._store.last(journal)
        if known.upto == end:
            return
        if known.upto:
            news = self._store.read(journal, known.upto)
        else:
            told = self._store.told([journal], CALLS, max(0, since - _LONGEST))
            news = (recorded for _, recorded in told)
        for recorded in news:
            known.tally.take(recorded)
            known.upto = recorded.seq
            yield
        known.upto = max(known.upto, end)

    def _spent_before(self, run: RunId, moment: int) -> int:
        """What calls of this run cost that had ended then; what is under way counts for the present day."""
        if (run, moment) not in self._before:
            calls = account(self._store, [run]).calls
            ended = (call for call in calls if call.at < moment and call.fate != "open")
            self._before[run, moment] = sum(call.cost or 0 for call in ended)
        return self._before[run, moment]
