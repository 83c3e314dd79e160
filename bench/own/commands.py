"""Commands as steps without a sandbox, in a thread pool that calls `subprocess.run`, or by ninja."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import holdfast
from holdfast.model.plan import Step, StepId

KINDS = ("true", "echo > file", "sleep 0.01")


def step_of(kind: str, number: int) -> Step:
    name = StepId(f"s{number}")
    if kind == "echo > file":
        file = f"made{number}"
        return Step(id=name, shell=f"echo {number} > {file}", produces=(file,))
    return Step(id=name, run=tuple(kind.split()))


def argv_of(kind: str, number: int) -> list[str]:
    step = step_of(kind, number)
    return ["/bin/sh", "-c", step.shell] if step.shell else list(step.run)


def by_pool(kind: str, jobs: int, count: int, folder: Path) -> float:
    def call(number: int) -> None:
        command = argv_of(kind, number)
        subprocess.run(
            command, cwd=folder, check=True, stdin=subprocess.DEVNULL, capture_output=True
        )

    began = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(call, range(count)))
    return time.perf_counter() - began


def by_holdfast(kind: str, jobs: int, count: int, folder: Path) -> float:
    plan = holdfast.Plan("commands", root=str(folder))
    for number in range(count):
        plan.add(step_of(kind, number))
    began = time.perf_counter()
    result = holdfast.run(plan, jobs=jobs, sandbox=False)
    wall = time.perf_counter() - began
    assert result.state.counts["done"] == count
    return wall


def by_ninja(kind: str, jobs: int, count: int, folder: Path) -> float:
    """The whole process; a command that makes no file is done all the same."""
    lines = ["rule step\n  command = $do"]
    for number in range(count):
        step = step_of(kind, number)
        lines.append(f"build made{number}: step\n  do = {step.shell or ' '.join(step.run)}")
    (folder / "build.ninja").write_text("\n".join(lines) + "\n", encoding="utf-8")
    began = time.perf_counter()
    subprocess.run(["ninja", f"-j{jobs}"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


WAYS = {"pool": by_pool, "holdfast": by_holdfast, "ninja": by_ninja}


def main() -> None:
    who, kind, jobs, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    folder = Path(sys.argv[5]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    measure = WAYS[who]
    with TemporaryDirectory() as warm:
        measure(kind, 1, 1, Path(warm))
    wall = measure(kind, jobs, count, folder)
    if kind == "echo > file":
        assert len(list(folder.glob("made*"))) == count
    print(json.dumps({"wall": wall}))


if __name__ == "__main__":
    main()
