"""Ways to break a command at one of its calls.

`strace` injects a signal or an error into one kind of call; it counts the calls of each thread for
itself, so the calls of one thread hide those of another with the same number. The shim (`shim.c`)
counts all calls of the process together, so it reaches every one of them.
"""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

CALLS = (
    *("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "sendto"),
    *("rename", "renameat", "renameat2", "link", "linkat"),
    *("unlink", "unlinkat", "mkdir", "mkdirat"),
)
SHIM_CALLS = (*CALLS, "ftruncate64", "rmdir")


class Fault(NamedTuple):
    """One way to break a command: what stands before it, and what its environment has more."""

    name: str
    before: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


NONE = Fault("nothing")


def by_strace(strace: str, call: str, number: int, what: str = "signal=KILL") -> Fault:
    """The Nth call of one kind in any thread of the engine; programs it starts are left alone."""
    rule = f"inject={call}:{what}:when={number}"
    trace = ("-f", "-b", "execve", "-qq", "-o", os.devnull, "-e", f"trace={call}", "-e", rule)
    return Fault(f"{call} {number} {what}", (strace, *trace))


class Called(Protocol):
    """A scene, as far as it matters here."""

    folder: Path

    def call(self, *words: str, fault: Fault) -> Any: ...


@dataclass(frozen=True)
class Shim:
    """The built library of `shim.c`."""

    library: str
    calls: tuple[str, ...] = SHIM_CALLS

    def fault(self, number: int, how: str = "kill", under: str = "", log: str = "") -> Fault:
        """Something happens at the Nth of the calls, over all threads."""
        env = {
            "LD_PRELOAD": self.library,
            "FAULT_AT": str(number),
            "FAULT_HOW": how,
            "FAULT_CALLS": f",{','.join(self.calls)},",
            "FAULT_UNDER": under,
            "FAULT_LOG": log,
        }
        return Fault(f"call {number} {how}", (), env)

    def count(
        self, scene: Called, *words: str, how: str = "kill", under: str = "", code: int = 0
    ) -> list[str]:
        """The names of the calls of an undisturbed command, in their order; it ends with this code."""
        log = scene.folder / "calls.txt"
        log.unlink(missing_ok=True)
        answer = scene.call(*words, fault=self.fault(0, how, under, str(log)))
        assert answer.code == code, answer.err
        return log.read_text().split()


_built: list[str] = []


def built() -> str:
    """The library, once it was built; it is loaded where commands are forked."""
    return _built[0] if _built else ""


def build_shim(compiler: str, folder: Path) -> Shim:
    """Build it, once in a process."""
    if _built:
        return Shim(_built[0])
    target = folder / "shim.so"
    source = str(Path(__file__).with_name("shim.c"))
    words = [compiler, "-O1", "-shared", "-fPIC", source, "-o", str(target), "-ldl"]
    subprocess.run(words, check=True, capture_output=True)
    _built.append(str(target))
    return Shim(str(target))
