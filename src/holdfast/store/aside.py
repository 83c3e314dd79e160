"""Says what is waited for, without waiting for anybody who listens.

Who waits for a database may be the heart of an engine. If it waited for a terminal that stands still, or
for a pipe that nobody reads, its line would be taken from it.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable


def say_aside(say: Callable[[str], None], text: str) -> None:
    """Have it said beside everything else; a process that ends does not wait for it."""
    here = contextvars.copy_context()  # who listens is told by the context
    try:
        threading.Thread(target=here.run, args=(say, text), daemon=True).start()
    except RuntimeError:  # no thread to be had: better unsaid than stopped
        return
