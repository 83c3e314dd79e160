"""dask: a graph written by hand on its threaded scheduler, two threads. Nothing is kept."""

from __future__ import annotations

from dask.threaded import get

from bench.case import Case, Timing, report


def main() -> None:
    case = Case.given()
    begun: list[int] = []

    def step(number: int, needs: list[str]) -> str:
        begun.append(number)  # two threads: adding to a number may lose one
        return case.step(number, needs)

    graph = {
        f"s{number}": (step, number, [f"s{need}" for need in needs]) for number, needs in case.graph
    }
    with Timing() as timing:
        value = get(graph, f"s{case.last}", num_workers=2)
    report(value, timing, len(begun))


if __name__ == "__main__":
    main()
