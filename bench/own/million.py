"""Very many steps from one `for_each`: a cold run, then nothing changed, looked at step by step.

`python -m bench.own.million STEPS FOLDER`: CPU seconds and MB of both, each run a process of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

WALLS = "[limits]\nplan_steps = {most}\nplan_items = {most}\nitems = {most}\n"


def both(steps: int, folder: Path) -> dict[str, float]:
    """The cold run and the second one."""
    home = folder / "home" / "holdfast"
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text(WALLS.format(most=2 * steps), encoding="utf-8")
    cold = _run(steps, folder)
    assert cold["done"] >= steps
    shutil.rmtree(folder / ".holdfast" / "unchanged", ignore_errors=True)
    again = _run(steps, folder)
    assert not again["done"]
    return {**{f"cold_{name}": value for name, value in cold.items()}, **again}


def _run(steps: int, folder: Path) -> dict[str, float]:
    ended = subprocess.run(
        [sys.executable, "-m", "bench.scale.million", "file", str(steps), str(folder)],
        env={**os.environ, "XDG_CONFIG_HOME": str(folder / "home")},
        check=False,
        capture_output=True,
        text=True,
    )
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    said: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    counts, run = said["counts"], said["run"]
    assert counts.get("done", 0) + counts.get("reused", 0) >= steps
    return {"load_cpu": said["plan"]["cpu"], **run, "done": counts.get("done", 0)}


def main() -> None:
    steps, folder = int(sys.argv[1]), Path(sys.argv[2]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    print(json.dumps(both(steps, folder)))


if __name__ == "__main__":
    main()
