"""prefect: results are kept and reused by inputs; a server of its own is started before the run."""

from __future__ import annotations

import os

from bench.case import Case, Timing, report

case = Case.given()
os.environ.update(
    PREFECT_HOME=f"{case.folder}/home",
    PREFECT_LOCAL_STORAGE_PATH=f"{case.folder}/kept",
    PREFECT_LOGGING_LEVEL="ERROR",
    PREFECT_SERVER_ALLOW_EPHEMERAL_MODE="true",
    PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS="120",
    PREFECT_SERVER_ANALYTICS_ENABLED="false",
)

from prefect import flow, task  # noqa: E402  it reads its settings when it is imported
from prefect.cache_policies import INPUTS  # noqa: E402


@task(cache_policy=INPUTS, persist_result=True)
def step(number: int, needs: list[str], salt: str) -> str:  # noqa: ARG001  the salt is in the key
    return case.step(number, needs)


@flow
def whole() -> str:
    values: dict[int, str] = {}
    for number, needs in case.graph:
        values[number] = step(number, [values[need] for need in needs], case.salt_of(number))
    return values[case.last]


@flow
def nothing() -> int:
    return 0


def main() -> None:
    nothing()  # starts the server
    with Timing() as timing:
        value = whole()
    report(value, timing, case.executed)


if __name__ == "__main__":
    main()
