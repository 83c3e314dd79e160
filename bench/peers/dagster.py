"""dagster: ops of one job in one process, its instance in SQLite, values in files.

A run that was killed is marked as failed by hand, and what it had not finished is executed anew from there.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

import dagster as dg

from bench.case import Case, Timing, report

case = Case.given()


def op_of(number: int, needs: tuple[int, ...]) -> dg.OpDefinition:
    def step(**values: str) -> str:
        return case.step(number, [values[f"n{need}"] for need in needs])

    made: Callable[..., dg.OpDefinition] = dg.op(
        name=f"s{number}", ins={f"n{need}": dg.In(str) for need in needs}, out=dg.Out(str)
    )
    return made(step)


def job() -> dg.JobDefinition:
    """The graph; found by this name when a run is taken up again."""
    wanted = {
        f"s{number}": {f"n{need}": dg.DependencyDefinition(f"s{need}") for need in needs}
        for number, needs in case.graph
    }
    ops = [op_of(number, needs) for number, needs in case.graph]
    graph = dg.GraphDefinition(name="bench", node_defs=ops, dependencies=wanted)
    files = dg.fs_io_manager.configured({"base_dir": f"{case.folder}/kept"})
    return graph.to_job(
        resource_defs={"io_manager": files},
        logger_defs={},
        executor_def=dg.in_process_executor,
    )


def left_over(instance: dg.DagsterInstance) -> dg.ReexecutionOptions | None:
    """What a killed process left behind, as something to go on with."""
    for run in instance.get_runs(limit=1):
        if not run.is_success:
            instance.report_run_failed(run)
            return dg.ReexecutionOptions.from_failure(run.run_id, instance)
    return None


def main() -> None:
    logging.disable(logging.CRITICAL)
    sys.setrecursionlimit(200_000)
    (case.folder / "home").mkdir(exist_ok=True)
    instance = dg.DagsterInstance.local_temp(f"{case.folder}/home")
    whole = dg.build_reconstructable_job("bench.peers.dagster", "job", (), {})
    whole.get_definition()
    with Timing() as timing:
        earlier = left_over(instance)
        with dg.execute_job(whole, instance, reexecution_options=earlier) as result:
            assert result.success
            value = result.output_for_node(f"s{case.last}")
    report(value, timing, case.executed)


if __name__ == "__main__":
    sys.modules["bench.peers.dagster"] = sys.modules["__main__"]  # by which the job is found
    main()
