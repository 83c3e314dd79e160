"""Holdfast on one graph: steps are functions of this process, everything else is as always."""

from __future__ import annotations

import json
import resource
import sys
import time

import shapes

import holdfast


def work(number: int, **needs: str) -> str:
    """The measured step."""
    return shapes.body(number, list(needs.values()))


def main() -> None:
    shape, size, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    started = time.process_time()
    plan = holdfast.Plan(f"bench-{shape}", root=folder)
    for number, needs in shapes.make(shape, size):
        names = [f"s{need}" for need in needs]
        plan.step(f"s{number}", work, needs=names, values={"number": number}, inline=True)
    built = time.process_time() - started
    wall, cpu = time.perf_counter(), time.process_time()
    result = holdfast.run(plan)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    last = next(reversed(plan.steps))
    print(
        json.dumps(
            {
                "wall": wall,
                "cpu": cpu,
                "build": built,
                "executed": result.state.counts["done"],
                "ok": result[last].decode() == shapes.expected(shape, size),
                "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }
        )
    )


main()
