"""What dead engines left in the private directories of their runs: what steps were given, and wrote."""

from __future__ import annotations

import os
from collections.abc import Collection

from holdfast.engine.sent import NOTES
from holdfast.engine.worktrees import drop_worktrees
from holdfast.process.removal import discard


def drop_remains(root: str, home: str, runs: Collection[str]) -> None:
    """Remove it, for runs that nobody drives; what they noted of calls to models stays, and has no content.

    Whoever goes on with such a run finds nothing of it, and needs nothing: its attempts were cut off.
    """
    for run in runs:
        folder = os.path.join(home, "scratch", run)
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name != NOTES:
                discard(os.path.join(folder, name))
        drop_worktrees(root, home, run)
