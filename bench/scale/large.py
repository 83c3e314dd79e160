"""`python -m bench.scale.large [--steps N] [--rows N …] [--folder PLACE]`: the largest plans and stores.

Prints three tables: what each phase of a plan of so many steps takes, made anew and again; what commands and
the page take on the store of such a plan; and what look-ups cost in a store with more and more rows.
1,000,000 steps take an hour, 4 GB of memory and 5 GB of disk; 10,000,000 rows ten minutes and 7 GB of disk.
`--steps 0` leaves the plans out, `--rows` with nothing behind it the look-ups.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

HOWS = ("python", "file", "found")
STEPS, ROWS = 100_000, (100_000, 1_000_000)
_WALLS = "[limits]\nitems = 10000000\nplan_items = 10000000\nplan_steps = 10000000\n"
Found = Mapping[str, object]


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale.large", description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--folder", help="on a disk with room; a temporary one if not said")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        place = Path(folder)
        _allow(place)
        if given.steps:
            _plans(place, given.steps)
            _asked(place, given.steps)
        _rows(place, given.rows)


def _allow(place: Path) -> None:
    """Move the walls of this process and its children."""
    (place / "holdfast").mkdir()
    (place / "holdfast" / "config.toml").write_text(_WALLS, encoding="utf-8")
    os.environ["XDG_CONFIG_HOME"] = str(place)


def _plans(place: Path, steps: int) -> None:
    print("| plan | steps | | CPU to make it | CPU of the run | peak |\n|---|---|---|---|---|---|")
    for how in HOWS:
        folder = place / how
        for kind in ("anew", "step by step", "by the note"):
            if kind == "step by step":
                shutil.rmtree(folder / ".holdfast" / "unchanged", ignore_errors=True)
            [found] = _told("bench.scale.million", how, str(steps), str(folder))
            plan, run = (cast("Mapping[str, float]", found[name]) for name in ("plan", "run"))
            costs = f"{plan['cpu']:.1f} s | {run['cpu']:.1f} s | {run['peak_mb']:,.0f} MB"
            print(f"| {how} | {steps:,} | {kind} | {costs} |", flush=True)
        shutil.rmtree(folder)


def _asked(place: Path, steps: int) -> None:
    print("\n| on a store of four runs | CPU | peak |\n|---|---|---|")
    for found in _told("bench.scale.asked", str(steps), str(place / "asked")):
        print(f"| {found['what']} | {found['cpu']} s | {found['peak_mb']:,} MB |", flush=True)
    shutil.rmtree(place / "asked")


def _rows(place: Path, rows: Sequence[int]) -> None:
    if not rows:
        return
    found = _told("bench.scale.filled", str(place / "filled"), *map(str, rows))
    print("\n| µs CPU of a look-up, s of a command | " + " | ".join(f"{n:,} rows" for n in rows))
    print("|---" * (len(rows) + 1) + "|")
    for name in [name for name in found[0] if name != "rows"]:
        print(f"| {name} | " + " | ".join(str(one[name]) for one in found) + " |")


def _told(module: str, *words: str) -> list[Found]:
    command = [sys.executable, "-m", module, *words]
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]


if __name__ == "__main__":
    main(sys.argv[1:])
