"""Somebody removes what is old, beside engines that live: what `holdfast gc` does."""

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.engine.collect import YOUNG_MS, Bounds, hold_lines, look, remove, unnamed
from holdfast.engine.naming import NO_CONTENTS
from holdfast.ports import Holder, Owner
from tests.simulation.disk import Seat
from tests.simulation.machine import Process

if TYPE_CHECKING:
    from tests.simulation.play import Simulation


def sweep(sim: "Simulation", *, keep_runs: int) -> None:
    """Another process holds the lines that nobody has, and removes runs and contents."""
    name = f"gc{len(sim.others) + 1}"
    host = name if sim.apart else "host"

    def gone(holder: Holder) -> bool:
        return sim.is_gone(holder.owner, host)

    def main(process: Process) -> None:
        store = Seat(process, sim.disk, sim.watch, sim.dark)
        store.unordered = frozenset({"get", "chunks"})
        process.hesitates = max(sim.hesitation, 0.1)
        owner = Owner(name, host, host, 0, "", sim.machine.wall())
        bounds = Bounds(sim.machine.wall(), keep_runs=keep_runs)
        shown = {told.row.run for told in look(store, bounds).goes}
        try:
            busy = hold_lines(store, owner, gone)
            found = look(store, bounds, {(project, line) for project, line, _ in busy})
            found = replace(found, contents=NO_CONTENTS) if busy else found
            goes = [told for told in found.goes if told.row.run in shown]
            for told in goes:
                remove(store, told, "me", sim.machine.wall)
            before = bounds.now - YOUNG_MS
            free = unnamed(store, before, found.contents) if found.contents else NO_CONTENTS
            store.forget(free.digests(), before)
        finally:
            store.leave(owner.engine)
        kind = "swept_beside" if busy else "swept"
        sim.machine.fault(kind, "person", f"{len(goes)} runs, {len(free)} contents")
        sim.machine.fired["runs_collected"] += len(goes)
        sim.machine.fired["contents_collected"] += len(free)
        sim.forgot.update(item.step for item in found.lost if item.run in shown)

    process = sim.others[name] = Process(sim.machine, name, main)
    if sim.machine.random.random() < 0.2:
        process.doomed_at = sim.machine.random.randrange(1, 80)
