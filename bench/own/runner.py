"""One command after the other: `subprocess.run`, and `holdfast.process` with and without a sandbox."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.process.confine import Sandbox
from holdfast.process.front import call

WAYS = {"without sandbox": 3.0, "in a sandbox": 15.0}  # milliseconds over `subprocess.run` at most


def ways(folder: Path) -> dict[str, Callable[[], object]]:
    """The same command by each way."""
    box = Sandbox(writable=(str(folder),))
    return {
        "subprocess.run": lambda: subprocess.run(
            ["true"], capture_output=True, stdin=subprocess.DEVNULL, check=True
        ),
        "without sandbox": lambda: call(["true"], confine="never"),
        "in a sandbox": lambda: call(["true"], sandbox=box),
    }


def main() -> None:
    count, folder = int(sys.argv[1]), Path(sys.argv[2]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[float]] = {}
    for number in range(count + 1):
        for name, way in ways(folder).items():
            began = time.perf_counter()
            way()
            if number:  # the first looks for what the machine has
                found.setdefault(name, []).append(time.perf_counter() - began)
    print(json.dumps({name: min(walls) for name, walls in found.items()}))


if __name__ == "__main__":
    main()
