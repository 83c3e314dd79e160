"""A plan of very many steps, made from Python or by `for_each`: CPU and memory of each phase, as JSON.

`python -m bench.scale.million HOW STEPS FOLDER`: HOW is `python` (each step is added by hand), `file` (the
`for_each` of a plan file has the list), `other` (the same with another function, so that all is made anew) or
`found` (a step finds it). Steps are functions of this process.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import holdfast
from bench.case import peak_mb
from bench.own.warm import warm_up
from holdfast.model.plan import StepId

PLAN = """name: million
project: bench
steps:
  all:
    uses: python
    run: bench.scale.million:work
    for_each: ${{ params.numbers }}
    with: {number: "${{ item }}"}
params:
  numbers: {type: list}
"""
FOUND = PLAN.partition("params:")[0].replace("params.numbers", "steps.numbers.output") + (
    "  numbers: {uses: python, run: 'bench.scale.million:numbers'}\n"
)


def work(number: int) -> str:
    return f"{number * 7919 % 1_000_003}\n"


def again(number: int) -> str:
    return f"{number * 7907 % 1_000_003}\n"


@contextmanager
def phase(found: dict[str, object], name: str) -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    found[name] = {
        "cpu": round(time.process_time() - cpu, 4),
        "wall": round(time.perf_counter() - wall, 4),
        "peak_mb": round(peak_mb()),
    }


def made(how: str, steps: int, folder: Path) -> holdfast.Plan:
    if how == "python":
        plan = holdfast.Plan("million", root=str(folder), project="bench")
        for number in range(steps):
            plan.step(f"s{number}", work, values={"number": number}, inline=True)
        return plan
    file = folder / "plan.yaml"
    if how in {"file", "other"}:
        function = work if how == "file" else again
        text = PLAN if how == "file" else PLAN.replace(":work", ":again")
        file.write_text(text, encoding="utf-8")
        plan = holdfast.load(str(file), params={"numbers": list(range(steps))})
        plan.functions = {name: function for name in plan.steps if "[" in name}
        return plan
    file.write_text(FOUND, encoding="utf-8")
    plan = holdfast.load(str(file))
    items = {StepId(f"all[{number}]"): work for number in range(steps)}
    plan.functions = {StepId("numbers"): lambda: json.dumps(list(range(steps))), **items}
    return plan


def main() -> None:
    how, steps, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    warm_up()
    found: dict[str, object] = {"how": how, "steps": steps}
    with phase(found, "plan"):
        plan = made(how, steps, folder)
    with phase(found, "run"):
        result = holdfast.run(plan)
    assert result.status == "completed", result
    found |= {"counts": {k: v for k, v in result.state.counts.items() if v}}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
