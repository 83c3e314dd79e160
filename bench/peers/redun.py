"""redun: state in SQLite, two threads.

An expression that several steps share is written once for each path to it, so a graph of diamonds is
given layer by layer: each layer gets the values of those above it.
"""

from __future__ import annotations

import logging
import sys

from redun import Scheduler, task
from redun.config import Config

from bench import shapes
from bench.case import Case, Timing, report

case = Case.given()
layers = shapes.layers(case.graph)
redun_namespace = "bench"
Values = dict[int, str]


@task(version="1")
def step(number: int, needs: list[str], salt: str) -> str:  # noqa: ARG001  the salt is in the key
    return case.step(number, needs)


@task(version="1")
def layer(depth: int, values: Values, salt: str) -> Values:  # noqa: ARG001  as above
    made = {
        number: step(number, [values[need] for need in needs], case.salt_of(number))
        for number, needs in layers[depth]
    }
    return {**values, **made}


@task(version="1")
def last(values: Values) -> str:
    return values[case.last]


def main() -> None:
    sys.setrecursionlimit(200_000)
    logging.getLogger("redun").setLevel(logging.ERROR)
    settings = {
        "backend": {"db_uri": f"sqlite:///{case.folder}/state.db"},
        "executors.default": {"type": "local", "max_workers": "2"},
    }
    scheduler = Scheduler(config=Config(settings))
    scheduler.load()
    values: Values = {}
    changed = next(depth for depth, row in enumerate(layers) if case.leaf in dict(row))
    for depth in range(len(layers)):
        values = layer(depth, values, case.salt if depth == changed else "")
    with Timing() as timing:
        value = scheduler.run(last(values))
    report(value, timing, case.executed)


if __name__ == "__main__":
    main()
