"""Write a plan, and how a run of it stands, as an execution graph.

A plan that came from a graph gives that graph back, word for word, with the facts of the run put in. What
was added or changed since is written from the steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, cast

from holdfast.formats.graph import GRAPH, TIMEOUT_MS, create_batches
from holdfast.model.digest import Json
from holdfast.model.plan import Need, Plan, Step, StepId, plan_digest

_SETTLED = frozenset({"complete", "failed", "skipped"})
_HASH = 4


class Facts(NamedTuple):
    """How a node stands: a word of the format, times, and what came of it."""

    status: str
    started_at: str | None = None
    completed_at: str | None = None
    result: Mapping[str, Json] | None = None


def graph_document(
    plan: Plan, facts: Mapping[StepId, Facts] | None = None, created_at: str = ""
) -> dict[str, Json]:
    """The plan as a graph; with the facts of a run, its nodes and batches say how they stand."""
    told = facts or {}
    known = _mapping(plan.origin.get(GRAPH))
    nodes = {str(node["id"]): node for node in _list(known.get("nodes"))}
    kept = {step_id for step_id, step in plan.steps.items() if _is_kept(step, nodes.get(step_id))}
    kept &= _with_edges(plan, kept, known)
    whole = len(kept) == len(plan.steps) == len(nodes)
    made = [
        {**(nodes[step.id] if step.id in kept else _node(step)), **_told(told.get(step.id))}
        for step in _in_order(plan, nodes)
    ]
    document: dict[str, Json] = dict(known)
    if not known:
        document["graph_id"] = graph_id(plan, created_at)
        document["created_at"] = created_at
    document["nodes"] = made
    if not whole or (nodes and "edges" in known):
        document["edges"] = known["edges"] if whole else _edges(plan)
    if not whole or "batches" in known or told:
        document["batches"] = _batches(plan, told, _list(known.get("batches")) if whole else [])
    return document


def _in_order(plan: Plan, nodes: Iterable[str]) -> list[Step]:
    """As they stood in the graph, then those that came later."""
    first = [StepId(name) for name in nodes if StepId(name) in plan.steps]
    return [plan.steps[step_id] for step_id in dict.fromkeys((*first, *plan.steps))]


def graph_id(plan: Plan, created_at: str = "") -> str:
    """The id that the graph came with, else one made of a date and the plan."""
    known = _mapping(plan.origin.get(GRAPH)).get("graph_id")
    if isinstance(known, str):
        return known
    day = created_at[:10].replace("-", "") or "00000000"
    return f"GRAPH-{day}-{plan_digest(plan)[:_HASH]}"


def phase_of(plan: Plan) -> str:
    """The phase that the graph came with; `run` if there is none."""
    phase = _mapping(plan.origin.get(GRAPH)).get("phase")
    return phase if isinstance(phase, str) else "run"


def _is_kept(step: Step, node: Mapping[str, Json] | None) -> bool:
    """Whether a node still says what the step is."""
    if node is None or str(node["agent"]).partition("@")[0] != step.agent:
        return False
    return node["action"] == step.action


def _with_edges(plan: Plan, kept: set[StepId], known: Mapping[str, Json]) -> set[StepId]:
    """The steps whose needs are those that the graph gave them."""
    above: dict[str, set[str]] = {}
    for node in _list(known.get("nodes")):
        listed = cast("Sequence[str]", node.get("dependencies") or ())
        above.setdefault(str(node["id"]), set()).update(listed)
    for edge in _list(known.get("edges")):
        above.setdefault(str(edge["to"]), set()).add(str(edge["from"]))
    return {
        step_id
        for step_id in kept
        if {need.step for need in plan.steps[step_id].needs} == above.get(step_id, set())
    }


def _node(step: Step) -> dict[str, Json]:
    return {
        "id": step.id,
        "agent": step.agent or step.uses,
        "action": step.action or step.id,
        "status": "pending",
        "dependencies": [need.step for need in step.needs],
        "outputs": list(step.outputs),
        "priority": step.priority.upper(),
        "timeout_ms": TIMEOUT_MS if step.timeout is None else round(step.timeout * 1000),
    }


def _told(facts: Facts | None) -> dict[str, Json]:
    return {} if facts is None else dict(facts._asdict())


def _edges(plan: Plan) -> list[Json]:
    return [
        edge for step in plan.steps.values() for need in step.needs for edge in _edge(step, need)
    ]


def _edge(step: Step, need: Need) -> Iterable[Json]:
    ends: dict[str, Json] = {"from": need.step, "to": step.id}
    if need.type == "data":
        yield {**ends, "type": "data", **({"data_key": need.key} if need.key else {})}
    elif need.type == "sequence":
        yield {**ends, "type": "sequence"}
    if need.asks:
        by: dict[str, Json] = {"approval_required_from": need.approver} if need.approver else {}
        yield {**ends, "type": "approval", **by}


def batches_of(plan: Plan) -> list[list[str]]:
    """The levels of a plan."""
    return create_batches({str(s): [n.step for n in step.needs] for s, step in plan.steps.items()})


def _batches(
    plan: Plan, told: Mapping[StepId, Facts], known: Sequence[Mapping[str, Json]]
) -> list[Json]:
    if known and not told:
        return list(known)
    found: list[Json] = []
    for number, tasks in enumerate(batches_of(plan), 1):
        same = known[number - 1] if number <= len(known) else {}
        listed: list[Json] = [*tasks]
        base = {"batch_id": number, "tasks": listed, **same}
        found.append({**base, "status": batch_status(tasks, told)})
    return found


def batch_status(tasks: Iterable[str], told: Mapping[StepId, Facts]) -> str:
    """One of pending, running, complete."""
    words = {told[StepId(task)].status if StepId(task) in told else "pending" for task in tasks}
    if words <= _SETTLED:
        return "complete"
    return "pending" if words <= {"pending", "queued"} else "running"


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Json) -> Sequence[Mapping[str, Json]]:
    return cast("Sequence[Mapping[str, Json]]", value) if isinstance(value, list | tuple) else []
