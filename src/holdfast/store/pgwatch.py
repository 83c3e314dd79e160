"""A connection that notices when what it sent is lost on the way, and does not wait for the answer for ever.

If the system refuses a send, libpq waits for what the server has to say; one that was sent nothing never says
anything. A statement may also take long, so no time is too long by itself: the server is asked, over another
connection, whether it is busy with it or waits for us.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import psycopg
from psycopg.conninfo import make_conninfo

from holdfast.store.tables import Row

if TYPE_CHECKING:
    from psycopg.abc import RV, PQGen

UNANSWERED = 10.0  # seconds after which the server is asked
# What it has just answered may be on the way: it must have waited for a while. Of several statements that
# were sent together and did not all arrive it has done the first, and calls itself active while it waits.
_IS_IDLE = (
    "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
    " AND (state LIKE 'idle%%' OR wait_event = 'ClientRead')"
    " AND state_change < clock_timestamp() - make_interval(secs => %s)"
)


class Watched(psycopg.Connection[Row]):
    """Fails with OperationalError, closed, if the server waits for us while we wait for it."""

    unanswered = UNANSWERED
    another: Callable[[], psycopg.Connection[Row]] | None = None

    def wait(
        self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None
    ) -> RV:  # psycopg waits for every answer here
        return super().wait(self._watched(gen), interval, timeout)

    def _watched(self, gen: PQGen[RV]) -> PQGen[RV]:
        looked = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:  # something goes on
                    looked = time.monotonic()
                elif time.monotonic() - looked > self.unanswered:
                    self._look()
                    looked = time.monotonic()
                wanted = gen.send(ready)
        except StopIteration as ended:
            found: RV = ended.value
            return found

    def _look(self) -> None:
        """Who cannot be asked now may answer yet: a server that is gone is noticed by the system."""
        if self.another is None:
            return
        try:
            with self.another() as other:
                values = (self.info.backend_pid, self.unanswered / 2)
                is_idle = other.execute(_IS_IDLE, values).fetchone() is not None
        except psycopg.Error:
            return
        if is_idle:
            self.close()
            raise psycopg.OperationalError("what was sent to the server did not arrive there")


def connect_watched(info: str, unanswered: float = UNANSWERED, **settings: str | int) -> Watched:
    """Connect, with these settings of libpq; every statement is a transaction unless one is begun."""
    whole = make_conninfo(info, **settings)

    def another() -> psycopg.Connection[Row]:
        return psycopg.connect(whole, autocommit=True)

    connection = Watched.connect(whole, autocommit=True)
    connection.unanswered = unanswered
    connection.another = another
    return connection
