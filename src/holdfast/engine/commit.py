"""The writer: every change of the store goes through it, one transaction at a time.

Group commit never waits: a commit starts when the last one has ended, and takes all that is queued by
then. Nothing that a batch names begins before the batch is stored.

While attempts run, slow changes are made by a thread of their own, so that the event loop can serve
them. Otherwise the loop makes the change itself: handing a commit over and back costs about 0.4 ms, as
much as the commit. Never both at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar, cast

from holdfast.errors import StoreError

P = ParamSpec("P")
T = TypeVar("T")


class Writer:
    """Runs calls of the store one after the other, off the event loop."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="holdfast-writer")
        self._last: Future[object] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether the thread has nothing to do, so that the event loop may write by itself.

        A call that was taken back before it began says nothing about the one before it.
        """
        last = self._last
        return last is None or (last.done() and not last.cancelled())

    def call(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Queue one call; the future gives its result."""
        try:
            queued = self._thread.submit(work, *args, **kwargs)
        except RuntimeError as error:
            if "new thread" not in str(error):
                raise
            raise StoreError(f"the writer cannot begin: {error}") from error
        self._last = cast("Future[object]", queued)
        return asyncio.wrap_future(queued)

    def close(self) -> None:
        """Wait for what is queued, then end the thread."""
        self._thread.shutdown(wait=True)
