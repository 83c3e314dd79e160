"""Who is at work in a store: its engines, and the person who decides beside them."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from holdfast.errors import UsageError
from holdfast.wire.shared import is_shared

if TYPE_CHECKING:
    from holdfast import ports
    from holdfast.core.state import State
    from holdfast.engine.decisions import Person
    from holdfast.model.plan import RunId
    from holdfast.ports import Store
    from holdfast.store.host import LineLock


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def person(store: Store, location: str, *, terminal: bool) -> Person:
    """Who decides here; UsageError in a process that comes from a step or an engine.

    A step may not approve anything, wherever its processes went. One in a pid namespace of its own
    cannot see the engine it comes from; so nobody who cannot see a living engine of the store decides.
    """
    from holdfast.config.settings import read_people
    from holdfast.engine.decisions import Person
    from holdfast.process.descent import comes_from, own_space, sees
    from holdfast.store.host import is_hidden, line_lock, user_name

    holders = store.held()
    engines = {(held.owner.pid, held.owner.started) for _, _, held in holders}
    origin = comes_from(engines)
    if origin:
        raise UsageError(f"this process comes from {origin}, and only a person decides approvals")
    for project, line, held in holders:
        space = is_hidden(held.owner, own_space())
        if not space or sees(space):
            continue
        if held.sharing or _is_locked(line_lock(location, project, line)):
            raise UsageError(
                f"the engine of line '{line}' (process {held.owner.pid}) cannot be seen from here, "
                "as from inside a step",
                hint="decide where the engine was started",
            )
    return Person(user_name(), terminal, read_people())


def check_free(store: Store, location: str, state: State, lease_seconds: float) -> None:
    """HeldError if a live engine keeps a run from going on, before anybody is told what it will do.

    What the hold itself will say, as far as it is known without waiting: an engine on another machine whose
    heart has to be watched first is left to the hold.
    """
    from holdfast.engine.hold import held_by
    from holdfast.store.host import gone, line_lock, this_process

    project, line, here = state.project, state.line, this_process()
    for holder in store.holders(project, line):
        if gone(holder):
            continue
        if not state.options.joined and not is_shared(location):
            is_held = _is_locked(line_lock(location, project, line))
        elif holder.silent is not None:
            is_held = holder.run == state.run and holder.silent < lease_seconds
        else:
            is_near = (holder.owner.host, holder.owner.boot) == (here.host, here.boot)
            is_held = holder.run == state.run and is_near
        if is_held:
            raise held_by(holder, line, now_ms())


def _is_locked(lock: LineLock) -> bool:
    with lock:
        return not lock.try_lock()


def is_driven(store: Store, state: State) -> bool:
    """Whether a live engine drives this run."""
    return drives(store, state.project, state.line, state.run)


def live_runs(store: Store) -> frozenset[RunId]:
    """The runs that live engines drive."""
    from holdfast.store.host import gone

    held = (holder for _, _, holder in store.held() if not gone(holder))
    return frozenset(holder.run for holder in held if holder.run is not None)


def drives(store: Store, project: str, line: str, run: RunId) -> bool:
    """Whether a live engine drives a run of a line."""
    return driver(store, project, line, run) is not None


def driver(store: Store, project: str, line: str, run: RunId) -> ports.Owner | None:
    """The live engine that drives a run of a line."""
    from holdfast.store.host import gone

    holders = (holder for holder in store.holders(project, line) if holder.run == run)
    return next((holder.owner for holder in holders if not gone(holder)), None)


def output_of(owner: ports.Owner) -> str | None:
    """The file into which an engine of this machine writes what it says; None if there is none to be seen."""
    from holdfast.store.host import this_process

    here = this_process()
    if (owner.host, owner.boot) != (here.host, here.boot):
        return None
    try:
        path = os.readlink(f"/proc/{owner.pid}/fd/1")
    except OSError:  # somebody else's, or gone just now
        return None
    return path if os.path.isfile(path) else None
