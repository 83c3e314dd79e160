"""A fragment: steps in the grammar of a plan file that are added to a plan which is there.

It is read with the plan in view: its steps may need those of the plan, read its params, are held to the
contracts of its agents, and must not get in the way of what is there. Everything wrong is told with its
place in the fragment.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as Table
from pathlib import Path
from typing import cast

from holdfast.formats.contracts import Contracts, Own
from holdfast.formats.foreach import going_on, unfolded
from holdfast.formats.grammar import PLAN
from holdfast.formats.graph import GRAPH, context_of
from holdfast.formats.nodes import Bounds, Mapping, Node, Scalar, read
from holdfast.formats.onestep import step_of
from holdfast.formats.premises import check_premises
from holdfast.formats.problems import BEGIN, NOWHERE, Problems, folded, quoted
from holdfast.formats.reading import Check, Param, Reading, kind_of
from holdfast.formats.records import Key, record
from holdfast.formats.wiring import Wired, check_wiring, wired_of
from holdfast.model.expression import MOST
from holdfast.model.plan import FRAGMENT_SCHEMA, PLAN_SCHEMA, STEP_ID, Limits, Plan, Step, StepId
from holdfast.model.walls import WALLS, Walls

FRAGMENT: dict[str, Key] = {"schema": Key(PLAN["description"].shape), "steps": PLAN["steps"]}
_NODE = Scalar(None, NOWHERE.line, NOWHERE.column)
_NO_KEYS = Mapping({}, NOWHERE.line, NOWHERE.column)
_EACH = 100  # expressions for each step


def read_fragment(
    content: bytes,
    file: str,
    root: str,
    plan: Plan,
    *,
    check: Check | None = None,
    again: bool = False,
    own: Own | None = None,
    walls: Walls = WALLS,
) -> dict[StepId, Step]:
    """The steps of a fragment; PlanError with everything that keeps them from being added.

    Files that it names are looked for in `root`, the directory of the project. With `again` it may hold
    steps that are there; whether they are the same is for the caller to see. `own` gives the agents that
    the person knows.
    """
    problems = Problems(file)
    is_json = file.endswith(".json")
    tree = read(content, problems, strict_json=is_json, bounds=Bounds.of(walls))
    if not isinstance(tree, Mapping):
        message = f"a fragment is a mapping with 'steps', not {kind_of(tree)}"
        raise problems.fatal("P032", tree, message, BEGIN)
    reading = Reading(problems, Path(root), source=content, check=check, walls=walls)
    given = record(reading, "fragment", tree, FRAGMENT) or {}
    _check_schema(tree, given, problems)
    reading.params = {
        name: Param(name, _NODE, "string", value, value) for name, value in plan.params.items()
    }
    contracts = _contracts(reading, plan, own)
    steps, wired = _steps(reading, tree, given, plan, contracts, again=again)
    check_premises(reading, {**plan.premises, "steps": given["steps"]})
    places = cast("Mapping", given["steps"]).pairs
    steps, _ = _hold(contracts, plan, steps, lambda name: cast("Mapping", places[name][1]))
    problems.stop()
    _check(plan, wired, problems)
    problems.stop()
    return unfolded(reading, going_on(steps), reading.lists, None)


def held(
    plan: Plan, added: Table[StepId, Step], own: Own | None = None
) -> tuple[dict[StepId, Step], Limits]:
    """Steps that were read already as the contracts of their agents want them, and the limits with them.

    PlanError if they break one. Steps that are held already stay as they are.
    """
    if not any(step.agent for step in added.values()):
        return dict(added), plan.limits
    reading = Reading(Problems(""), Path())
    found = _hold(_contracts(reading, plan, own), plan, added, lambda _: _NO_KEYS)
    reading.problems.stop()
    return found


def _contracts(reading: Reading, plan: Plan, own: Own | None) -> Contracts:
    """What steps of the plan are held to, as it was when the plan was read."""
    is_foreign = GRAPH in plan.origin and not plan.contracts
    return Contracts(reading, own=own, foreign=is_foreign, kept=plan.contracts)


def _hold(
    contracts: Contracts,
    plan: Plan,
    added: Table[StepId, Step],
    place_of: Callable[[StepId], Mapping],
) -> tuple[dict[StepId, Step], Limits]:
    if not (contracts.binds or contracts.foreign):
        return dict(added), plan.limits  # whoever breaks one would only be warned
    given = (*plan.params, *context_of(plan))
    return contracts.hold(added, place_of, plan.limits, given, plan.steps)


def check_added(plan: Plan, added: Table[StepId, Step]) -> None:
    """See that the plan can have steps that were read already; PlanError if it cannot."""
    problems = Problems("")
    for step_id in added:
        _check_free(step_id, _NODE, plan, problems)
    problems.stop()
    _check(plan, {name: wired_of(step, is_new=True) for name, step in added.items()}, problems)
    problems.stop()


def _check_schema(tree: Mapping, given: dict[str, object], problems: Problems) -> None:
    named = given.get("schema", FRAGMENT_SCHEMA)
    if named not in {FRAGMENT_SCHEMA, PLAN_SCHEMA}:
        message = f"'schema' is {quoted(str(named))}; this version reads '{FRAGMENT_SCHEMA}'"
        problems.add("P005", tree.pairs["schema"][1], message)


def _steps(
    reading: Reading,
    tree: Mapping,
    given: dict[str, object],
    plan: Plan,
    contracts: Contracts,
    *,
    again: bool,
) -> tuple[dict[StepId, Step], dict[str, Wired]]:
    problems = reading.problems
    node = cast("Node | None", given.get("steps"))
    if not isinstance(node, Mapping) or not node.pairs:
        place = tree if node is None else node
        hint = "write 'steps:' and below it each step as 'id:' with its keys"
        raise problems.fatal("P001", place, "the fragment has no steps", hint)
    reading.most = MOST + _EACH * len(node.pairs)
    steps: dict[StepId, Step] = {}
    wired: dict[str, Wired] = {}
    spellings = {folded(name): str(name) for name in plan.steps}
    for name, (key, value) in node.pairs.items():
        if not STEP_ID.match(name):
            hint = "start with a letter or _, then letters, digits, _ . -; at most 128"
            problems.add("P002", key, f"{quoted(name)} is not a step id", hint)
        if not again:
            _check_free(StepId(name), key, plan, problems)
        other = spellings.setdefault(folded(name), name)
        if other != name:
            message = f"{quoted(name)} and {quoted(other)} differ only in their spelling"
            problems.add("P050", key, message, "give it another id")
        reading.step = name
        wired[name] = Wired(name, key)
        step = step_of(reading, wired[name], value, {}, contracts)
        if step is not None:
            steps[step.id] = step
    reading.step = ""
    return steps, wired


def _check_free(name: StepId, key: Scalar, plan: Plan, problems: Problems) -> None:
    if name in plan.steps:
        message = f"the plan has a step {quoted(name)} already"
        problems.add("P058", key, message, "give it another id")


def _check(plan: Plan, wired: Table[str, Wired], problems: Problems) -> None:
    whole = {str(name): wired_of(step) for name, step in plan.steps.items()}
    known = len(whole)
    whole.update(wired)
    check_wiring(whole, problems, plan.limits.resources, known)
