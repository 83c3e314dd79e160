"""The program of a watch: it waits for the end of an engine, and then ends what that left.

Bubblewrap dies with its engine and takes the command along, but it binds the two last, when the sandbox
stands. An engine that is killed before leaves a sandbox half made, which waits to be let go on for ever:
whoever is here then ends it. So it is with a command that was let go a moment before, and with what a
command started where nothing confines it.

Started by its path and with as little of the library as can be, as a slot is. Its arguments are the
descriptor of a pipe that nobody but the engine could write to, so that its end is the engine's, and how
the engine is named in the marks of what it started.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # it has no stubs
import os
import sys
import time

_MARK = b"\0HOLDFAST_MARK="
_POLL_SECONDS = 0.02
_QUIET = 3  # looks that find nobody: what was just forked has no mark yet


def main() -> None:
    """Wait, end, and be gone."""
    line, owner = int(sys.argv[1]), f"#{sys.argv[2]}.".encode()
    while os.read(line, 1):
        pass
    struck: set[int] = set()
    quiet = 0
    while quiet < _QUIET:
        found = {pid for pid in _marked(owner) if pid not in struck}
        struck |= found
        quiet = 0 if found else quiet + 1
        time.sleep(_POLL_SECONDS)


def _marked(owner: bytes) -> list[int]:
    """The processes of this engine, each killed as it was found."""
    return [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if _end(pid, owner)]


def _end(pid: int, owner: bytes) -> bool:
    """Whether it belonged to the engine; then it is killed. Its handle keeps its number from others."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            _, named, mark = (b"\0" + file.read()).partition(_MARK)
        if not named or owner not in mark.partition(b"\0")[0]:
            return False
        _signal.pidfd_send_signal(handle, _signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


if __name__ == "__main__":
    main()
