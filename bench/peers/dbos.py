"""dbos on SQLite, or on a PostgreSQL that it is given: steps in turn in one durable function."""

from __future__ import annotations

from dbos import DBOS, SetWorkflowID

from bench.case import Case, Timing, report

case = Case.given()


@DBOS.step()
def step(number: int, needs: list[str]) -> str:
    return case.step(number, needs)


@DBOS.workflow()
def whole() -> str:
    values: dict[int, str] = {}
    for number, needs in case.graph:
        values[number] = step(number, [values[need] for need in needs])
    return values[case.last]


def main() -> None:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": case.variant or f"sqlite:///{case.folder}/state.db",
            "run_admin_server": False,
            "log_level": "ERROR",
            "application_version": "1",
            "executor_id": "local",
        }
    )
    DBOS.launch()
    with Timing() as timing, SetWorkflowID("one"):
        value = DBOS.start_workflow(whole).get_result()
    report(value, timing, case.executed)
    DBOS.destroy()


if __name__ == "__main__":
    main()
