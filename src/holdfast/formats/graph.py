"""Read the execution graph: nodes of agents and actions, typed edges, batches.

`dependencies` and `edges` say the same thing twice. A node's needs are both together; where both are
written and differ, nobody knows which is meant, so that is an error that shows both places. An edge of
type `data` needs the key it names, `sequence` only orders, `approval` also asks; a dependency without an
edge orders. Batches are a view: they are checked against the levels of the graph, never obeyed.

Keys that mean nothing here are kept and warned about. The whole document is kept in the plan's `origin`.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Table
from dataclasses import field
from pathlib import Path
from typing import cast

from holdfast.errors import CyclicDependencyError
from holdfast.formats.contracts import Contracts
from holdfast.formats.edges import NeedAt
from holdfast.formats.fields import Promise
from holdfast.formats.foreignnodes import ANYTHING, few, items_of, known_part, named, plain
from holdfast.formats.nodes import Mapping, Node, Scalar
from holdfast.formats.problems import Problems, in_order, quoted
from holdfast.formats.reading import Reading
from holdfast.formats.records import Key
from holdfast.formats.shapes import LINE, LINES, TEXT, whole, word
from holdfast.formats.wiring import Wired, check_wiring
from holdfast.model.fixed import frozen, varying
from holdfast.model.plan import (
    AGENT,
    PRIORITIES,
    STEP_ID,
    Limits,
    Need,
    NeedType,
    Plan,
    Step,
    StepId,
)

GRAPH = "graph"
PHASES = ("enrich", "implementing", "validation")
STATUSES = ("pending", "queued", "running", "complete", "failed", "skipped")
BATCH_STATUSES = ("pending", "running", "complete")
TIMEOUT_MS = 300_000
_RETRIES = 2  # of agents

_DOCUMENT: dict[str, Key] = {
    "graph_id": Key(LINE),
    "issue_number": Key(whole(0)),
    "phase": Key(word(*PHASES)),
    "created_at": Key(TEXT),
    "nodes": ANYTHING,
    "edges": ANYTHING,
    "batches": ANYTHING,
}
_NODE: dict[str, Key] = {
    "id": Key(LINE),
    "agent": Key(LINE),
    "action": Key(LINE),
    "status": Key(word(*STATUSES)),
    "dependencies": ANYTHING,
    "outputs": Key(LINES),
    "priority": Key(word(*PRIORITIES, any_case=True)),
    "timeout_ms": Key(whole(1)),
    "started_at": Key(TEXT),
    "completed_at": Key(TEXT),
    "result": ANYTHING,
}
_EDGE: dict[str, Key] = {
    "from": Key(LINE),
    "to": Key(LINE),
    "type": Key(word("data", "sequence", "approval")),
    "data_key": Key(LINE),
    "approval_required_from": Key(LINE),
}
_BATCH: dict[str, Key] = {
    "batch_id": Key(whole(1)),
    "tasks": Key(LINES),
    "status": Key(word(*BATCH_STATUSES)),
}
_REQUIRED = {
    "graph": ("nodes",),
    "node": ("id", "agent", "action"),
    "edge": ("from", "to", "type"),
    "batch": ("batch_id", "tasks"),
}


@varying
class _At:
    """A node of the graph with its place, and the edges that lead to it by where they come from."""

    id: str
    node: Mapping
    given: dict[str, object]
    dependencies: dict[str, Node] | None = None
    edges: dict[str, list[_Edge]] = field(default_factory=dict)


@frozen
class _Edge:
    node: Mapping
    type: NeedType
    key: str
    approver: str

    @property
    def said(self) -> tuple[NeedType, str, str]:
        return self.type, self.key, self.approver


def is_graph(tree: Mapping) -> bool:
    """Whether a file is an execution graph and not a plan."""
    return "steps" not in tree.pairs and ("graph_id" in tree.pairs or "nodes" in tree.pairs)


def graph_plan(reading: Reading, tree: Mapping, contracts: Contracts, name: str | None) -> Plan:
    """The graph as a plan; raises PlanError with everything that is wrong with it."""
    problems = reading.problems
    given = known_part(reading, "graph", tree, _DOCUMENT, _REQUIRED["graph"])
    nodes = _nodes(reading, cast("Node | None", given.get("nodes")))
    has_edges = _edges(reading, cast("Node | None", given.get("edges")), nodes)
    problems.stop()
    if has_edges:
        _compare(problems, nodes)
    steps, wired = _steps(nodes, contracts, problems)
    check_wiring(wired, problems, {})
    if any(item.code == "P052" for item in problems.found):
        raise CyclicDependencyError(in_order(problems.found))
    problems.stop()
    _check_batches(reading, cast("Node | None", given.get("batches")), steps)
    known = _context(given)
    held, limits = contracts.hold(steps, lambda one: nodes[one].node, Limits(), known)
    _warn_idle(problems, held, nodes)
    problems.stop()
    line = name or _first_text(tree, ("name", "graph_id")) or Path(problems.file).stem
    return Plan(
        name=line,
        steps=held,
        description=f"{given['phase']} graph" if "phase" in given else "",
        limits=limits,
        origin={GRAPH: plain(tree)},
    )


def context_of(plan: Plan) -> tuple[str, ...]:
    """The context that all steps of a graph have, if the plan was one."""
    graph = plan.origin.get(GRAPH)
    return _context(graph) if isinstance(graph, Table) else ()


def _context(given: Iterable[str]) -> tuple[str, ...]:
    return ("issue",) if "issue_number" in given else ()


def _first_text(tree: Mapping, keys: Iterable[str]) -> str:
    """The text under whichever of the keys stands first, as a reader of headings finds it."""
    for key, (_, node) in tree.pairs.items():
        if key in keys and isinstance(node, Scalar) and isinstance(node.value, str):
            return node.value
    return ""


def _nodes(reading: Reading, listed: Node | None) -> dict[str, _At]:
    found: dict[str, _At] = {}
    for item in items_of(reading, "nodes", listed):
        given = known_part(reading, "node", item, _NODE, _REQUIRED["node"])
        name = given.get("id")
        if not isinstance(name, str) or not isinstance(item, Mapping):
            continue
        place = item.pairs["id"][1]
        if not STEP_ID.match(name):
            hint = "start with a letter or _, then letters, digits, _ . -; at most 128"
            reading.problems.add("P002", place, f"{quoted(name)} is not a step id", hint)
        if name in found:
            first = found[name].node.line
            message = f"the node {quoted(name)} stands twice, first in line {first}"
            reading.problems.add("P038", place, message)
            continue
        found[name] = _At(name, item, given)
        if "dependencies" in given:
            found[name].dependencies = named(reading, "dependencies", given["dependencies"])
    if listed is not None and not found and not reading.problems.found:
        reading.problems.add("P001", listed, "the graph has no nodes")
    return found


def _edges(reading: Reading, listed: Node | None, nodes: Table[str, _At]) -> bool:
    """Hang each edge on the node it leads to; whether there are any."""
    items = items_of(reading, "edges", listed)
    for item in items:
        given = known_part(reading, "edge", item, _EDGE, _REQUIRED["edge"])
        if not isinstance(item, Mapping) or not {"from", "to", "type"} <= given.keys():
            continue
        ends = [(end, str(given[end])) for end in ("from", "to")]
        lost = [(end, name) for end, name in ends if name not in nodes]
        for end, name in lost:
            message = f"an edge leads {end} {quoted(name)}, which is no node"
            hint = reading.problems.did_you_mean(name, nodes)
            reading.problems.add("P080", item.pairs[end][1], message, hint)
        if lost:
            continue
        kind = cast("NeedType", given["type"])
        key, approver = str(given.get("data_key", "")), str(given.get("approval_required_from", ""))
        for name, value, fits in (
            ("data_key", key, "data"),
            ("approval_required_from", approver, "approval"),
        ):
            if value and kind != fits:
                message = f"an edge of type '{kind}' can have no '{name}'"
                reading.problems.add("P035", item.pairs[name][0], message, f"say type: {fits}")
        into = nodes[str(given["to"])].edges.setdefault(str(given["from"]), [])
        edge = _Edge(item, kind, key, approver)
        if any(other.said == edge.said for other in into):
            both = f"{quoted(str(given['from']))} to {quoted(str(given['to']))}"
            reading.problems.add("P038", item, f"the edge from {both} stands twice")
        into.append(edge)
    return bool(items)


def _compare(problems: Problems, nodes: Table[str, _At]) -> None:
    """Report where dependencies and edges disagree, with both places."""
    for at in nodes.values():
        if at.dependencies is None:
            continue
        own = f"the dependencies of {quoted(at.id)} in line {_line(at)}"
        for name, place in at.dependencies.items():
            if name in nodes and name not in at.edges:
                message = f"{quoted(at.id)} depends on {quoted(name)}, and no edge leads there"
                note = f"line {place.line} names it; no edge goes from {quoted(name)} to {quoted(at.id)}"
                hint = "add the edge, or take the dependency out"
                problems.add("P081", place, message, hint, note=note)
        for name, edges in at.edges.items():
            if name not in at.dependencies:
                both = f"an edge leads from {quoted(name)} to {quoted(at.id)}"
                message = f"{both}, which does not depend on it"
                note = f"the edge is in line {edges[0].node.line}; {own} do not name {quoted(name)}"
                hint = "add the dependency, or take the edge out"
                problems.add("P081", edges[0].node, message, hint, note=note)


def _line(at: _At) -> int:
    return at.node.pairs["dependencies"][1].line


def _steps(
    nodes: Table[str, _At], contracts: Contracts, problems: Problems
) -> tuple[dict[StepId, Step], dict[str, Wired]]:
    outputs = {at.id: _outputs(at, contracts) for at in nodes.values()}
    steps: dict[StepId, Step] = {}
    wired: dict[str, Wired] = {}
    for at in nodes.values():
        needs = _needs(at, outputs, problems)
        found = Wired(at.id, cast("Scalar", at.node.pairs["id"][1]), needs)
        found.promise = Promise(outputs[at.id], None, "")
        wired[at.id] = found
        given = at.given
        agent, action = str(given["agent"]), str(given["action"])
        contract, how = contracts.known.find(agent), contracts.action(agent, action)
        longest = TIMEOUT_MS / 1000
        if contract is not None and contract.timeout is not None:
            longest = min(longest, contract.timeout)
        told = cast("int | None", given.get("timeout_ms"))
        steps[StepId(at.id)] = Step(
            StepId(at.id),
            uses=how.uses if how else AGENT,
            run=how.run if how else (),
            shell=how.shell if how else "",
            needs=tuple(item.need for item in needs),
            outputs=outputs[at.id],
            retries=0 if how else _RETRIES,
            timeout=longest if told is None else told / 1000,
            priority=str(given.get("priority", "normal")),
            agent=agent,
            action=action,
        )
    return steps, wired


def _outputs(at: _At, contracts: Contracts) -> tuple[str, ...]:
    if "outputs" in at.given:
        return cast("tuple[str, ...]", at.given["outputs"])
    found = contracts.known.action(str(at.given["agent"]), str(at.given["action"]))
    return found.required_outputs if found else ()


def _needs(at: _At, outputs: Table[str, tuple[str, ...]], problems: Problems) -> list[NeedAt]:
    """The needs of a node: its dependencies in their order, then what only edges name."""
    listed = at.dependencies or {}
    found = []
    for name in dict.fromkeys((*listed, *at.edges)):
        edges = at.edges.get(name)
        if edges is None:
            found.append(NeedAt(Need(StepId(name), "sequence"), listed[name]))
            continue
        need = _joined(name, edges, outputs.get(name, ()))
        place = edges[0].node.pairs["from"][1]
        if need is None:
            both = f"{quoted(name)} to {quoted(at.id)}"
            lines = ", ".join(str(edge.node.line) for edge in edges)
            message = f"the edges from {both} in lines {lines} cannot all be kept"
            hint = "name the keys in 'outputs', and one approver in 'approval_required_from'"
            problems.add("P082", edges[-1].node, message, hint)
            continue
        keyed = next((edge.node.pairs["data_key"][1] for edge in edges if need.key), None)
        found.append(NeedAt(need, place, keyed))
    return found


def _joined(name: str, edges: list[_Edge], outputs: tuple[str, ...]) -> Need | None:
    """All edges between two nodes as one need; None if that would lose something."""
    kinds = {edge.type for edge in edges}
    keys = {edge.key for edge in edges if edge.type == "data"} - {""}
    approvers = {edge.approver for edge in edges if edge.type == "approval"}
    if len(approvers) > 1 or ("data" in kinds and approvers == {""}):
        return None
    approver = next(iter(approvers), "")
    if len(keys) > 1 and not keys <= set(outputs):
        return None  # nothing would make sure that all of them are there
    key = next(iter(keys)) if len(keys) == 1 else ""
    kind: NeedType = "data" if "data" in kinds else "approval" if approvers else "sequence"
    return Need(StepId(name), kind, key, approver)


def create_batches(dependencies: Table[str, Iterable[str]]) -> list[list[str]]:
    """Ids level by level, sorted inside a level; a circle is a CyclicDependencyError.

    A level is one more than the highest among what an id depends on. What is not a key is not waited for.
    """
    missing = {
        name: {dep for dep in deps if dep in dependencies} for name, deps in dependencies.items()
    }
    users: dict[str, list[str]] = {}
    for name, deps in missing.items():
        for dep in deps:
            users.setdefault(dep, []).append(name)
    left = {name: len(deps) for name, deps in missing.items()}
    level = sorted(name for name, count in left.items() if not count)
    batches = []
    done = 0
    while level:
        batches.append(level)
        done += len(level)
        following = []
        for name in level:
            for user in users.get(name, ()):
                left[user] -= 1
                if not left[user]:
                    following.append(user)
        level = sorted(following)
    if done < len(missing):
        stuck = sorted(name for name, count in left.items() if count)
        raise CyclicDependencyError.of(stuck)
    return batches


def _check_batches(reading: Reading, listed: Node | None, steps: Table[StepId, Step]) -> None:
    if listed is None:
        return
    needs = {str(name): [need.step for need in step.needs] for name, step in steps.items()}
    wanted = create_batches(cast("Table[str, Iterable[str]]", needs))
    items = items_of(reading, "batches", listed)
    for number, item in enumerate(items, 1):
        given = known_part(reading, "batch", item, _BATCH, _REQUIRED["batch"])
        if not {"batch_id", "tasks"} <= given.keys():
            continue
        tasks = cast("tuple[str, ...]", given["tasks"])
        right = wanted[number - 1] if number <= len(wanted) else []
        if given["batch_id"] != number or sorted(tasks) != right:
            said = f"batch {given['batch_id']} has {few(tasks)}"
            message = f"{said}; the dependencies give batch {number} {few(right)}"
            reading.problems.add("P083", item, message, "leave 'batches' out: they are derived")
    if len(items) < len(wanted) and not reading.problems.found:
        message = f"there are {len(items)} batches; the dependencies give {len(wanted)}"
        reading.problems.add("P083", listed, message, "leave 'batches' out: they are derived")


def _warn_idle(problems: Problems, steps: Table[StepId, Step], nodes: Table[str, _At]) -> None:
    for step in steps.values():
        if step.is_idle:
            place = nodes[step.id].node.pairs["action"][1]
            message = f"{quoted(step.id)} has nothing to run: nobody said how {quoted(step.agent)} does it"
            hint = "give the action a 'run' in a registry of agents, or import it with -o and add 'run'"
            problems.warn("P912", place, message, hint)
