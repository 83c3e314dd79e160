"""Read PlanSpec: research and development plans with requirements, hypotheses and what is not known.

Both generations of its fields are read: `dependsOn` and `dependencyIds`, `parallelizable` and `concurrent`,
`inputStepIds` and `fromStepId` of inputs. A step depends on all that any of them names, and gets what those
made. Twelve checks have names of their own, which the note of a problem says.

An agent is a model with a prompt made of what the step says, unless a registry says how it works, and is done
when it hands over; a person does what a person is to do; a tool is a function (`module:function`) or a file
of the project, a workflow a plan file of it. One that is neither has nothing to run here until somebody says
what.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Table
from dataclasses import field
from typing import cast

from holdfast.errors import CyclicDependencyError
from holdfast.formats.contracts import Contracts
from holdfast.formats.foreignnodes import (
    ANYTHING,
    FREE,
    FREE_TEXTS,
    Said,
    Translated,
    items_of,
    known_part,
    named,
    plain,
    prompt_words,
    said_text,
    words,
)
from holdfast.formats.graph import create_batches
from holdfast.formats.nodes import Listing, Mapping, Node, Scalar
from holdfast.formats.premises import MODES, STANDINGS, TYPES, no_commitments, no_criteria
from holdfast.formats.problems import Placed, quoted
from holdfast.formats.reading import Reading
from holdfast.formats.records import Key
from holdfast.formats.shapes import FLAG, LINE, word
from holdfast.model.expression import literal
from holdfast.model.fixed import varying

PLANSPEC = "planspec"
CODES = {
    "EMPTY_PLAN": "P100",
    "CYCLE_DETECTED": "P101",
    "INVALID_STEP_REFERENCE": "P102",
    "INVALID_HYPOTHESIS_REFERENCE": "P103",
    "INVALID_REQUIREMENT_REFERENCE": "P104",
    "INVALID_EXECUTOR_REFERENCE": "P105",
    "EXECUTOR_CANNOT_HANDLE_STEP": "P106",
    "MISSING_PREREGISTERED_COMMITMENTS": "P107",
    "MISSING_EVALUATE_AGAINST": "P108",
    "DUPLICATE_STEP_ID": "P109",
    "DUPLICATE_HYPOTHESIS_ID": "P110",
    "DUPLICATE_REQUIREMENT_ID": "P111",
}
EXECUTORS: dict[str, frozenset[str]] = {
    "literature-searcher": frozenset({"research"}),
    "paper-summarizer": frozenset({"research"}),
    "code-explorer": frozenset({"research"}),
    "concept-explainer": frozenset({"research", "synthesize"}),
    "result-synthesizer": frozenset({"synthesize"}),
    "hypothesis-generator": frozenset({"synthesize"}),
    "progress-evaluator": frozenset({"synthesize"}),
    "code-reviewer": frozenset({"synthesize"}),
    "experiment-designer": frozenset({"experiment"}),
    "experiment-runner": frozenset({"experiment"}),
    "code-writer": frozenset({"develop", "experiment"}),
    "documentation-writer": frozenset({"develop"}),
}
KINDS = ("agent", "tool", "workflow", "human")
_PLAN: dict[str, Key] = {
    "id": Key(LINE),
    "name": Key(LINE),
    "goalSummary": FREE,
    "aimType": Key(word("describe", "explain", "predict", "intervene")),
    "requirements": ANYTHING,
    "hypotheses": ANYTHING,
    "steps": ANYTHING,
    "unknownsMap": ANYTHING,
    "estimatedComplexity": Key(word("low", "medium", "high", "very-high")),
}
_REQUIREMENT: dict[str, Key] = {
    "id": Key(LINE),
    "description": FREE,
    "priority": Key(word("must", "should", "could")),
}
_HYPOTHESIS: dict[str, Key] = {
    "id": Key(LINE),
    "statement": FREE,
    "assumptions": FREE_TEXTS,
    "testableVia": FREE,
    "status": Key(word(*STANDINGS)),
}
_UNKNOWNS: dict[str, Key] = {
    "knownKnowns": FREE_TEXTS,
    "knownUnknowns": FREE_TEXTS,
    "unknownUnknowns": ANYTHING,
    "communityCheck": FREE,
}
_STEP: dict[str, Key] = {
    "type": Key(word(*TYPES)),
    "id": Key(LINE),
    "description": FREE,
    "dependsOn": ANYTHING,
    "dependencyIds": ANYTHING,
    "parallelizable": Key(FLAG),
    "concurrent": Key(FLAG),
    "requirementIds": ANYTHING,
    "inputs": ANYTHING,
    "outputs": ANYTHING,
    "evalCriteria": ANYTHING,
    "executor": ANYTHING,
    "query": FREE,
    "stoppingRule": FREE,
    "mode": Key(word(*MODES)),
    "inputStepIds": ANYTHING,
    "evaluateAgainst": FREE_TEXTS,
    "hypothesisIds": ANYTHING,
    "procedure": FREE,
    "expectedOutcomes": FREE_TEXTS,
    "successCriteria": FREE_TEXTS,
    "preregisteredCommitments": FREE_TEXTS,
    "specification": FREE,
    "deliverables": FREE_TEXTS,
}
_EXECUTOR: dict[str, Key] = {
    "kind": Key(word(*KINDS)),
    "ref": Key(LINE),
    "instructions": FREE,
}
_DATA: dict[str, Key] = {"name": Key(LINE), "description": FREE, "fromStepId": Key(LINE)}
_EVAL: dict[str, Key] = {"successCondition": FREE, "failureCondition": FREE}
_KEPT = {  # what a step says, and the key of a plan file that says it
    "type": "type",
    "mode": "mode",
    "hypothesisIds": "hypotheses",
    "requirementIds": "requirements",
    "preregisteredCommitments": "preregistered",
    "evaluateAgainst": "evaluate_against",
}
_TOLD = {
    "query": "Find out",
    "stoppingRule": "Done when",
    "procedure": "Procedure",
    "expectedOutcomes": "Possible outcomes",
    "successCriteria": "It succeeds if",
    "preregisteredCommitments": "Decided beforehand",
    "evaluateAgainst": "Judge against",
    "deliverables": "Deliver",
}


@varying
class _At:
    """A step of the file: what it says, and what it depends on with the places that say so."""

    id: str
    node: Mapping
    given: dict[str, object]
    above: dict[str, Node] = field(default_factory=dict)
    executor: dict[str, object] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)

    @property
    def place(self) -> Scalar:
        return cast("Scalar", self.node.pairs["id"][1])


def is_planspec(tree: Mapping) -> bool:
    """Whether a file is a PlanSpec."""
    steps = tree.pairs.get("steps")
    return "goalSummary" in tree.pairs or (
        steps is not None
        and isinstance(steps[1], Listing)
        and any(key in tree.pairs for key in ("unknownsMap", "hypotheses", "requirements"))
    )


def planspec_words(reading: Reading, tree: Mapping, contracts: Contracts) -> Translated:
    """The PlanSpec in words of a plan file; problems say what keeps it from being one."""
    given = known_part(reading, "PlanSpec", tree, _PLAN, ("steps",))
    ids = {
        "requirement": _ids(reading, "requirement", given.get("requirements"), _REQUIREMENT),
        "hypothesis": _ids(reading, "hypothesis", given.get("hypotheses"), _HYPOTHESIS),
    }
    if "unknownsMap" in given:
        known_part(reading, "unknowns map", tree.pairs["unknownsMap"][1], _UNKNOWNS)
    steps = _steps(reading, given.get("steps"))
    for at in steps.values():
        reading.step = at.id
        _check_references(reading, at, steps, ids)
        _check_executor(reading, at, contracts)
        _check_rigour(reading, at)
        reading.step = ""
    _check_circles(reading, steps)
    if "steps" in given and not steps and not reading.problems.found:
        _add(reading, "EMPTY_PLAN", tree.pairs["steps"][1], "the PlanSpec has no steps")
    reading.problems.stop()
    made: dict[str, tuple[Scalar, Node]] = {
        at.id: (at.place, _step(reading, at, contracts)) for at in steps.values()
    }
    at_steps = tree.pairs["steps"][1]
    said: dict[str, Said] = {"steps": Mapping(made, at_steps.line, at_steps.column)}
    if given.get("goalSummary"):
        said["goal"] = tree.pairs["goalSummary"][1]
    for key, table in (("requirements", _REQUIREMENT), ("hypotheses", _HYPOTHESIS)):
        if isinstance(given.get(key), Listing):
            said[key] = _by_id(cast("Listing", given[key]), table)
    if isinstance(given.get("unknownsMap"), Mapping):
        said["unknowns"] = _snake(cast("Mapping", given["unknownsMap"]), _UNKNOWNS)
    if "name" in given:
        said["name"] = tree.pairs["name"][1]
    return Translated(PLANSPEC, words(tree, said), plain(tree))


def _add(reading: Reading, code: str, at: Placed, message: str, hint: str = "") -> None:
    reading.problems.add(CODES[code], at, message, hint, note=code)


def _ids(reading: Reading, what: str, node: object, table: dict[str, Key]) -> set[str]:
    found: set[str] = set()
    for item in items_of(reading, f"{what}s", node):
        name = known_part(reading, what, item, table, ("id",)).get("id")
        if not isinstance(name, str) or not isinstance(item, Mapping):
            continue
        if name in found:
            message = f"the {what} {quoted(name)} stands twice"
            _add(reading, f"DUPLICATE_{what.upper()}_ID", item.pairs["id"][1], message)
        found.add(name)
    return found


def _steps(reading: Reading, node: object) -> dict[str, _At]:
    found: dict[str, _At] = {}
    for item in items_of(reading, "steps", node):
        given = known_part(reading, "step", item, _STEP, ("id", "type", "description", "executor"))
        name = given.get("id")
        if not isinstance(name, str) or not isinstance(item, Mapping):
            continue
        if name in found:
            first = found[name].place.line
            message = f"the step {quoted(name)} stands twice, first in line {first}"
            _add(reading, "DUPLICATE_STEP_ID", item.pairs["id"][1], message)
            continue
        at = _At(name, item, given)
        if "executor" in given:
            at.executor = known_part(reading, "executor", item.pairs["executor"][1], _EXECUTOR)
        for key in ("dependsOn", "dependencyIds", "inputStepIds"):
            at.above = {**named(reading, key, given.get(key)), **at.above}
        for part in items_of(reading, "inputs", given.get("inputs")):
            data = known_part(reading, "input", part, _DATA)
            if "fromStepId" in data and isinstance(part, Mapping):
                at.above.setdefault(str(data["fromStepId"]), part.pairs["fromStepId"][1])
        for part in items_of(reading, "outputs", given.get("outputs")):
            data = known_part(reading, "output", part, _DATA)
            at.outputs += [str(data["name"])] if "name" in data else []
        found[name] = at
    return found


def _check_references(
    reading: Reading, at: _At, steps: Table[str, _At], ids: Table[str, set[str]]
) -> None:
    for name, place in at.above.items():
        if name not in steps:
            message = f"{quoted(at.id)} depends on {quoted(name)}, which is no step"
            hint = reading.problems.did_you_mean(name, steps)
            _add(reading, "INVALID_STEP_REFERENCE", place, message, hint)
    for what, key in (("hypothesis", "hypothesisIds"), ("requirement", "requirementIds")):
        for name, place in named(reading, key, at.given.get(key)).items():
            if name not in ids[what]:
                message = f"{quoted(at.id)} names the {what} {quoted(name)}, which is not there"
                hint = reading.problems.did_you_mean(name, ids[what])
                _add(reading, f"INVALID_{what.upper()}_REFERENCE", place, message, hint)


def _check_executor(reading: Reading, at: _At, contracts: Contracts) -> None:
    """An agent is one that is known, and does steps of this type: by the list, or by a registry."""
    if at.executor.get("kind") != "agent" or "type" not in at.given:
        return
    node = cast("Mapping", at.node.pairs["executor"][1])
    ref, kind = str(at.executor.get("ref", "")), str(at.given["type"])
    place = node.pairs["ref"][1] if "ref" in node.pairs else node
    own = contracts.known.find(ref)
    if ref not in EXECUTORS and own is None:
        message = f"{quoted(at.id)} names the agent {quoted(ref)}, which is not known"
        near = reading.problems.did_you_mean(ref, {*EXECUTORS, *contracts.known.agents})
        hint = near or "add it to a registry of agents of your own: holdfast agents"
        _add(reading, "INVALID_EXECUTOR_REFERENCE", place, message, hint)
    elif kind not in EXECUTORS.get(ref, ()) and contracts.known.action(ref, kind) is None:
        does = sorted(EXECUTORS.get(ref) or (own.actions if own else ()))
        message = f"{quoted(ref)} does not do steps of type '{kind}', which {quoted(at.id)} is"
        _add(reading, "EXECUTOR_CANNOT_HANDLE_STEP", place, message, f"it does {', '.join(does)}")


def _check_rigour(reading: Reading, at: _At) -> None:
    kind, mode = at.given.get("type"), at.given.get("mode")
    place = at.node.pairs["mode"][1] if "mode" in at.given else at.place
    if (kind, mode) == ("experiment", "confirmatory"):
        key, name = "preregisteredCommitments", "MISSING_PREREGISTERED_COMMITMENTS"
        if not at.given.get(key):
            no_commitments(reading, at.id, place, CODES[name], key, note=name)
    elif (kind, mode) == ("synthesize", "evaluative") and not at.given.get("evaluateAgainst"):
        name = "MISSING_EVALUATE_AGAINST"
        no_criteria(reading, at.id, place, CODES[name], "evaluateAgainst", note=name)


def _check_circles(reading: Reading, steps: Table[str, _At]) -> None:
    above = {name: [one for one in at.above if one in steps] for name, at in steps.items()}
    try:
        create_batches(above)
    except CyclicDependencyError:
        circle = _circle(above)
        path = " → ".join(circle)
        at = steps[circle[0]]
        message = f"steps depend on each other in a circle: {path}"
        _add(reading, "CYCLE_DETECTED", at.above[circle[1]], message, "take one of them out")


def _circle(above: Table[str, list[str]]) -> list[str]:
    """One circle, from a step back to itself; there is one."""
    left = {name: set(deps) for name, deps in above.items()}
    while free := {name for name, deps in left.items() if not deps & left.keys()}:
        left = {name: deps for name, deps in left.items() if name not in free}
    name, seen = next(iter(left)), dict[str, None]()
    while name not in seen:
        seen[name] = None
        name = next(one for one in above[name] if one in left)
    path = [*seen]
    return [*path[path.index(name) :], name]


# --- the words of a step --------------------------------------------------------------------------


def _step(reading: Reading, at: _At, contracts: Contracts) -> Mapping:
    kind, ref = str(at.executor.get("kind", "")), str(at.executor.get("ref", ""))
    action = str(at.given["type"])
    said: dict[str, Said] = {}
    if at.given.get("description"):
        said["description"] = at.node.pairs["description"][1]
    if at.above:
        said["needs"] = Listing([*at.above.values()], at.place.line, at.place.column)
    if at.outputs:
        said["outputs"] = [*dict.fromkeys(at.outputs)]
    if at.given.get("specification"):
        said["specification"] = at.node.pairs["specification"][1]
    said |= {
        name: _literal(at.node.pairs[key][1]) for key, name in _KEPT.items() if at.given.get(key)
    }
    if kind == "workflow" and _is_plan(reading, ref):
        for key in ("outputs", "specification"):  # the steps of that plan say both
            said.pop(key, None)
        return words(at.place, {**said, "uses": "plan", "run": ref})
    if kind == "tool" and contracts.action(ref, action) is None:
        said |= _tool(reading, ref)
    if "run" in said:
        pass
    elif kind == "human":
        more = str(at.executor.get("instructions", ""))
        said |= {"uses": "human", "prompt": prompt_words(at.place, task=_task(at, more))}
    elif kind == "agent" and contracts.action(ref, action) is None:
        role = f"You are {ref}."
        prompt = prompt_words(at.place, role=role, task=_task(at))
        said |= {"uses": "llm", "prompt": prompt, "handoff": True}
    elif contracts.action(ref, action) is None:
        said |= {"uses": "agent", "agent": ref or None, "action": action}
    else:
        said |= {"agent": ref, "action": action}
    return words(at.place, said)


def _is_plan(reading: Reading, ref: str) -> bool:
    """Whether a workflow is a plan file of the project."""
    return ref.endswith((".yaml", ".yml", ".json")) and _is_file(reading, ref)


def _tool(reading: Reading, ref: str) -> dict[str, Said]:
    """What runs a tool that no registry knows: a function or a file of the project; nothing if neither."""
    module, _, name = ref.partition(":")
    if name.isidentifier() and all(part.isidentifier() for part in module.split(".")):
        return {"uses": "python", "run": ref}
    if _is_file(reading, ref):
        return {"uses": "shell", "run": [ref if "/" in ref else f"./{ref}"]}
    return {}


def _is_file(reading: Reading, ref: str) -> bool:
    """Whether it names a regular file inside the project."""
    if not ref or ref.startswith("/") or ".." in ref.split("/") or "\0" in ref:
        return False
    return (reading.root / ref).is_file()


def _by_id(listed: Listing, table: dict[str, Key]) -> Mapping:
    """What a list holds, by ids; the first of an id is a problem already if there are two."""
    found: dict[str, tuple[Scalar, Node]] = {}
    for item in listed.items:
        if isinstance(item, Mapping):
            place = cast("Scalar", item.pairs["id"][1])
            rest = {key: pair for key, pair in item.pairs.items() if key != "id"}
            whole = _snake(Mapping(rest, item.line, item.column), table)
            _complete(whole, str(place.value), table)
            found[str(place.value)] = (place, whole)
    return Mapping(found, listed.line, listed.column)


def _complete(said: Mapping, name: str, table: dict[str, Key]) -> None:
    """A hypothesis says something, and so does a requirement: at least its name."""
    key = "statement" if "statement" in table else "description"
    if key not in said.pairs:
        at = Scalar(name, said.line, said.column)
        said.pairs[key] = (Scalar(key, said.line, said.column), _literal(at))


def _snake(node: Mapping, table: Table[str, Key]) -> Mapping:
    """The known keys of a mapping that say something, in words of a plan file."""
    found: dict[str, tuple[Scalar, Node]] = {}
    for key, (place, value) in node.pairs.items():
        if key in table and not (isinstance(value, Scalar) and value.value is None):
            name = "".join(f"_{c.lower()}" if c.isupper() else c for c in key)
            found[name] = (Scalar(name, place.line, place.column), _literal(value))
    return Mapping(found, node.line, node.column)


def _literal(node: Node) -> Node:
    """A node whose texts stand for themselves; what has no text is written as one."""
    if isinstance(node, Mapping):
        pairs = {key: (place, _literal(value)) for key, (place, value) in node.pairs.items()}
        return Mapping(pairs, node.line, node.column)
    if isinstance(node, Listing):
        return Listing([_literal(item) for item in node.items], node.line, node.column)
    if isinstance(node.value, str):
        return Scalar(literal(node.value), node.line, node.column)
    return node


def _task(at: _At, more: str = "") -> str:
    return "\n\n".join(
        [said_text(at.given.get("description"), at.id), *_told(at), *([more] * bool(more))]
    )


def _told(at: _At) -> Iterator[str]:
    for key, heading in _TOLD.items():
        said = at.given.get(key)
        if isinstance(said, tuple) and said:
            yield f"{heading}:\n" + "\n".join(f"- {item}" for item in said)
        elif said:
            yield f"{heading}: {said}"
    if "evalCriteria" in at.given:
        node = at.node.pairs["evalCriteria"][1]
        told = plain(node) if isinstance(node, Mapping) else {}
        for key, heading in (("successCondition", "Success"), ("failureCondition", "Failure")):
            if isinstance(told, Table) and told.get(key):
                yield f"{heading}: {told[key]}"
    if at.outputs:
        yield f"Answer with a JSON object that has: {', '.join(dict.fromkeys(at.outputs))}"
