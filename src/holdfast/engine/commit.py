"""The writer: one thread through which every change of the store goes, one transaction at a time.

Group commit never waits: a commit starts when the last one has ended, and takes all that is queued by
then. Nothing that a batch names begins before the batch is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from holdfast.errors import StoreError

P = ParamSpec("P")
T = TypeVar("T")


class Writer:
    """Runs calls of the store one after the other, off the event loop."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="holdfast-writer")

    def call(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Queue one call; the future gives its result."""
        try:
            return asyncio.wrap_future(self._thread.submit(work, *args, **kwargs))
        except RuntimeError as error:
            if "new thread" not in str(error):
                raise
            raise StoreError(f"the writer cannot begin: {error}") from error

    def close(self) -> None:
        """Wait for what is queued, then end the thread."""
        self._thread.shutdown(wait=True)
