"""What a scene may not have left behind: files, processes, holders, an unsound store."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import apsw

from holdfast.engine.audit import audit
from holdfast.process.tree import namespace
from holdfast.store.sqlite import SqliteStore
from tests.crash.scene import Scene

GONE = 15.0  # three times what is promised


def left_behind(scene: Scene) -> Iterator[str]:
    """Temporary files, journals of edits, and rooms of attempts that nobody needs any more."""
    for place, _, names in os.walk(scene.root):
        for name in names:
            path = str(Path(place, name).relative_to(scene.root))
            if name.startswith(".holdfast-") and name.endswith(".tmp"):
                yield f"a temporary file is left: {path}"
            elif path.startswith(".holdfast/apply/"):
                yield f"a journal of an edit is left: {path}"
    for known in (scene.root / ".git").glob("worktrees/*"):
        yield f"git knows of a worktree that is not there: {known.name}"
    for kind in ("apply", "scratch", "worktrees"):
        for room in (scene.store / kind).glob("*/*"):
            yield f"a directory is left: {room.relative_to(scene.root)}"


def marked(runs: Sequence[str]) -> Iterator[int]:
    """Processes that carry the mark of one of these runs in their environment."""
    names = [run.encode() for run in runs]
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            environment = (place / "environ").read_bytes()
            state = (place / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in {"Z", "X"} and any(
            part.startswith(b"HOLDFAST_MARK=") and name in part
            for part in environment.split(b"\0")
            for name in names
        ):
            yield int(place.name)


def descendants(pid: int) -> list[int]:
    """The processes below one, as far as they are there at this moment."""
    found: list[int] = []
    threads: list[str] = []
    with suppress(OSError):  # it ended
        threads = os.listdir(f"/proc/{pid}/task")
    for thread in threads:
        with suppress(OSError):
            told = Path(f"/proc/{pid}/task/{thread}/children").read_text()
            found += [int(child) for child in told.split()]
    return found + [below for child in found for below in descendants(child)]


def kill_process(pid: int) -> bool:
    """Kill a process that may be gone already; tells whether it was there."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def left_running(runs: Sequence[str], engines: Sequence[int] = ()) -> list[str]:
    """Processes of these runs, and those that these engines, which have ended, kept for their steps."""
    end = time.monotonic() + GONE
    while (found := list(marked([*runs, *_slots(engines)]))) and time.monotonic() < end:
        time.sleep(0.05)
    return [f"a process is left: {pid}" for pid in found]


def _slots(engines: Sequence[int]) -> Iterator[str]:
    """The marks of what engines kept. A number that lives again is another engine's by now."""
    return (f"=slot#{namespace()}:{pid}." for pid in engines if not Path(f"/proc/{pid}").exists())


def unsound(store: Path) -> list[str]:
    """What `verify` finds, asked in this process: a command costs its start."""
    with SqliteStore.open(str(store), create=False, readonly=True) as opened:
        return [f"verify: {problem}" for problem in audit(opened).problems]


def held(store: Path) -> list[str]:
    """Engines that say they hold a line."""
    connection = apsw.Connection(str(store / "state.db"))
    try:
        return [str(row[0]) for row in connection.execute("SELECT engine FROM holder")]
    finally:
        connection.close()
