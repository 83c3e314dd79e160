"""langgraph: a `StateGraph` with SQLite checkpoints; an unfinished thread is continued."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from bench.case import Case, Timing, report

Values = dict[int, str]


def merge(one: Values, other: Values) -> Values:
    return {**one, **other}


class State(TypedDict):
    values: Annotated[Values, merge]


def function_of(case: Case, number: int, needs: tuple[int, ...]) -> Callable[[State], State]:
    def step(state: State) -> State:
        return {"values": {number: case.step(number, [state["values"][need] for need in needs])}}

    return step


def graph_of(case: Case) -> StateGraph:
    graph = StateGraph(State)
    for number, needs in case.graph:
        graph.add_node(f"s{number}", function_of(case, number, needs))
    for number, needs in case.graph:
        names = [f"s{need}" for need in needs] or [START]
        graph.add_edge(names if len(names) > 1 else names[0], f"s{number}")
    graph.add_edge(f"s{case.last}", END)
    return graph


def main() -> None:
    sys.setrecursionlimit(200_000)
    case = Case.given()
    saver = SqliteSaver(sqlite3.connect(f"{case.folder}/state.db", check_same_thread=False))
    saver.setup()
    app = graph_of(case).compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "one"}, "recursion_limit": 1_000_000}
    with Timing() as timing:
        before = app.get_state(config)
        unfinished = before.created_at and case.last not in before.values.get("values", {})
        ended = app.invoke(None if unfinished else {"values": {}}, config)
    report(ended["values"][case.last], timing, case.executed)


if __name__ == "__main__":
    main()
