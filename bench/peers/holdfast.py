"""Holdfast: steps are functions of the process (or, as `shell`, commands); the rest is as always.

Given an address instead of a variant, it works with the store that is there.
"""

from __future__ import annotations

import holdfast
from bench.case import LOG, Case, Timing, report
from bench.own.warm import warm_up
from holdfast.model.digest import Json
from holdfast.model.plan import Need, Step, StepId

case = Case.given()


def work(number: int, salt: str, **needs: str) -> str:  # noqa: ARG001  the salt is in the key
    return case.step(number, list(needs.values()))


def add_function(plan: holdfast.Plan, number: int, needs: tuple[int, ...]) -> None:
    values: dict[str, Json] = {"number": number, "salt": case.salt_of(number)}
    names = [f"s{need}" for need in needs]
    plan.step(f"s{number}", work, needs=names, values=values, inline=True)


def add_command(plan: holdfast.Plan, number: int, needs: tuple[int, ...]) -> None:
    """A command that says its number, and adds it to the log of executions."""
    step = Step(
        id=StepId(f"s{number}"),
        shell=f'echo {number} >> "${LOG}"; echo {number}',
        needs=tuple(Need(StepId(f"s{need}")) for need in needs),
        env=(LOG,),
    )
    plan.add(step)


def main() -> None:
    store = case.variant if "://" in case.variant else None
    plan = holdfast.Plan(f"bench-{case.shape}", root=str(case.folder), project="bench")
    add = add_command if case.variant == "shell" else add_function
    for number, needs in case.graph:
        add(plan, number, needs)
    warm_up()
    with Timing() as timing:
        result = holdfast.run(plan, store=store)
        assert result.status == "completed"
    value = result[f"s{case.last}"].content.decode().strip()
    report(value, timing, result.state.counts["done"], began=case.began)


if __name__ == "__main__":
    main()
