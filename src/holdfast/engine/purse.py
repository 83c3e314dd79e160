"""What the budgets of a day and of a project leave to one run.

They hold over all runs of a store, also those that other engines drive: what these spend is seen within a
second. A call that is under way counts with all that it reserved.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.engine.outlays import spent_beside
from holdfast.model.plan import RunId
from holdfast.ports import Store

_SEEN_FOR = 1.0


class Purse:
    """Says how much a run may have spent in all, in micro-dollars; None is no bound."""

    def __init__(
        self,
        store: Store,
        project: str,
        day: int | None,
        whole: int | None,
        began_today: Callable[[], int],
        monotonic: Callable[[], float],
    ) -> None:
        self._store = store
        self._project = project
        self._day = day
        self._whole = whole
        self._began_today = began_today
        self._monotonic = monotonic
        self._seen: tuple[RunId, float, int | None] | None = None

    def __call__(self, run: RunId) -> int | None:
        """What this run may have spent, beside what the others have."""
        now = self._monotonic()
        if self._seen is None or self._seen[0] != run or now - self._seen[1] >= _SEEN_FOR:
            self._seen = (run, now, self._look(run))
        return self._seen[2]

    def _look(self, run: RunId) -> int | None:
        rows = [row for row in self._store.runs() if row.run != run]
        left = []
        if self._day is not None:
            today = self._began_today()
            others = spent_beside(self._store, [row.run for row in rows], today)
            earlier = spent_beside(self._store, [run], 0) - spent_beside(self._store, [run], today)
            left.append(self._day - others + earlier)
        if self._whole is not None:
            same = [row.run for row in rows if row.project == self._project]
            left.append(self._whole - spent_beside(self._store, same, 0))
        return min(left, default=None)
