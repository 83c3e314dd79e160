"""`make bench`: Holdfast beside the bare loop, in one run, as ratios; Markdown on stdout, JSON in .bench/.

Timings on a shared machine vary by a quarter, so every figure is the least of several runs that
alternate with the reference, and only ratios taken in one run are worth comparing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

import shapes

HERE = Path(__file__).parent
ROOT = Path(".bench")
SIZES = (1_000, 10_000, 100_000)
Row = dict[str, float | int | str | bool]


def measure(script: str, shape: str, size: int, folder: Path, *extra: str) -> Row:
    """One process, one measurement."""
    command = [sys.executable, str(HERE / script), shape, str(size), str(folder), *extra]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    row: Row = json.loads(done.stdout.splitlines()[-1])
    if not row["ok"]:
        sys.exit(f"{' '.join(command)} gave a wrong value")
    return row


def best(rows: list[Row], key: str) -> float:
    return min(float(row[key]) for row in rows)


def compare(shape: str, size: int, times: int) -> Row:
    """Bare (normal, full) and Holdfast (cold, then nothing changed) on one graph."""
    bare, full, cold, noop, bare_noop = [], [], [], [], []
    for _ in range(times):
        shutil.rmtree(ROOT / "run", ignore_errors=True)
        ours, theirs = ROOT / "run" / "holdfast", ROOT / "run" / "bare"
        ours.mkdir(parents=True)
        bare.append(measure("bare.py", shape, size, theirs, "normal"))
        cold.append(measure("driver.py", shape, size, ours))
        bare_noop.append(measure("bare.py", shape, size, theirs, "normal"))
        noop.append(measure("driver.py", shape, size, ours))
        if shape == "chain":
            full.append(measure("bare.py", shape, size, ROOT / "run" / "full", "full"))
    steps = len(shapes.make(shape, size))
    row: Row = {
        "shape": shape,
        "steps": steps,
        "bare_us": best(bare, "cpu") / steps * 1e6,
        "cold_us": best(cold, "cpu") / steps * 1e6,
        "cold_wall_us": best(cold, "wall") / steps * 1e6,
        "cold_ratio": best(cold, "cpu") / best(bare, "cpu"),
        "noop_us": best(noop, "cpu") / steps * 1e6,
        "noop_ratio": best(noop, "cpu") / best(bare_noop, "cpu"),
        "rss_mb": best(cold, "rss_mb"),
    }
    if full:
        row["full_wall_ratio"] = best(cold, "wall") / best(full, "wall")
    if any(r["executed"] for r in noop) or any(r["executed"] != steps for r in cold):
        sys.exit(f"{shape} {size}: steps ran that should not have, or did not run that should have")
    return row


def table(rows: list[Row]) -> str:
    head = (
        "| graph | steps | bare µs/step | cold µs/step | × bare | cold wall µs/step | no-op µs/step |"
        " × bare | wall × bare full | RSS MB |"
    )
    lines = [head, "|---" * 10 + "|"]
    for row in rows:
        wall = f"{float(row['full_wall_ratio']):.2f}" if "full_wall_ratio" in row else "–"
        lines.append(
            f"| {row['shape']} | {row['steps']:,} | {float(row['bare_us']):.1f} | "
            f"{float(row['cold_us']):.1f} | {float(row['cold_ratio']):.1f} | "
            f"{float(row['cold_wall_us']):.1f} | {float(row['noop_us']):.1f} | "
            f"{float(row['noop_ratio']):.1f} | {wall} | {float(row['rss_mb']):.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="measure Holdfast beside the bare loop")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--shapes", nargs="+", default=list(shapes.SHAPES))
    parser.add_argument(
        "--times", type=int, default=5, help="runs per figure (one above 50,000 steps)"
    )
    given = parser.parse_args()
    rows = []
    for size in given.sizes:
        for shape in given.shapes:
            rows.append(compare(shape, size, given.times if size < 50_000 else 1))
            print(f"measured {shape} {size}", file=sys.stderr, flush=True)
    ROOT.mkdir(exist_ok=True)
    (ROOT / "results.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    shutil.rmtree(ROOT / "run", ignore_errors=True)
    print(table(rows))


main()
