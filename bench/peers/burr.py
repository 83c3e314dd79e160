"""burr: a state machine of one action after the other, its state in SQLite after each."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from burr.core import ApplicationBuilder, State, action
from burr.core.persistence import SQLLitePersister

from bench.case import Case, Timing, report


def action_of(case: Case, number: int) -> Callable[[State], State]:
    @action(reads=["value"], writes=["value"])
    def step(state: State) -> State:
        return state.update(value=case.step(number, [state["value"]] if number else []))

    return step


def main() -> None:
    case = Case.given()
    names = [f"s{number}" for number, _ in case.graph]
    keeper = SQLLitePersister(f"{case.folder}/state.db", table_name="state")
    keeper.initialize()
    app = (
        ApplicationBuilder()
        .with_actions(**{f"s{number}": action_of(case, number) for number, _ in case.graph})
        .with_transitions(*pairwise(names))
        .with_identifiers(app_id="one", partition_key="bench")
        .initialize_from(
            keeper,
            resume_at_next_action=True,
            default_state={"value": ""},
            default_entrypoint=names[0],
        )
        .with_state_persister(keeper)
        .build()
    )
    with Timing() as timing:
        _, _, state = app.run(halt_after=[names[-1]])
    report(state["value"], timing, case.executed)


if __name__ == "__main__":
    main()
