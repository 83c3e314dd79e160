"""Locks of the simulated operating system: they end with their process, sometimes a moment later."""

from collections.abc import Callable

from holdfast.ports import Lock
from tests.simulation.machine import Machine, Process


class Locks:
    """Who has which line."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.held: dict[tuple[str, str], Process] = {}

    def of(self, process: Process) -> Callable[[str, str], Lock]:
        """How a process gets at them; what it has ends with it."""
        process.on_death.append(lambda: self._dies(process))
        return lambda project, line: LineLock(self, process, (project, line))

    def _dies(self, process: Process) -> None:
        lingers = self._machine.random.choice([0.0, 0.0, 0.3])
        if lingers and process in self.held.values():
            self._machine.fault("lock_lingers", process.name)
        self._machine.after(lingers, lambda: self._ends(process))

    def _ends(self, process: Process) -> None:
        self.held = {key: owner for key, owner in self.held.items() if owner is not process}


class LineLock:
    """The lock of one line as one process has it."""

    def __init__(self, locks: Locks, process: Process, key: tuple[str, str]) -> None:
        self._locks = locks
        self._process = process
        self._key = key

    def try_lock(self) -> bool:
        self._process.point("lock")
        return self._locks.held.setdefault(self._key, self._process) is self._process

    def release(self) -> None:
        if self._locks.held.get(self._key) is self._process:
            del self._locks.held[self._key]
