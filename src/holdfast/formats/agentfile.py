"""Registries of agents: the shipped one, a file of one's own, or `agents` in a plan.

A contract is written as the agent protocol writes it: `input_schema` and `output_schema` by action,
`constraints`, `veto_domains`. Beside that an action may say how it is done (`run` or `shell`), and an agent
what its word counts (`weight`, `boost` in its `domains`).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import cast

from holdfast.errors import BugError, PlanError
from holdfast.formats.nodes import Bounds, Mapping, Node, Scalar, read
from holdfast.formats.problems import Problems, quoted
from holdfast.formats.reading import Reading
from holdfast.formats.records import Key, record, record_schema
from holdfast.formats.shapes import (
    COMMAND,
    FLAG,
    LINE,
    LINES,
    TEXT,
    Shape,
    as_is,
    command,
    function,
    line,
    whole,
    word,
)
from holdfast.model.agent import ROLLS, TIERS, VERSION, Action, Agent, Registry, Roll, Rules, Tier
from holdfast.model.digest import Json
from holdfast.model.walls import WALLS, Walls

AGENTS_SCHEMA = "holdfast.agents/1"
_MOST_WEIGHT = 100
_SHIPPED = "agents.yaml"


def _number(least: float, most: float) -> Shape[float]:
    def read_number(reading: Reading, key: str, node: Node) -> float | None:
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            reading.wrong_type(key, node, "a number")
            return None
        if not least <= value <= most:
            message = f"{reading.label(key)} must be from {least:g} to {most:g}"
            hint = f"the nearest is {min(max(value, least), most):g}"
            reading.problems.add("P037", node, message, hint)
            return None
        return float(value)

    return Shape(read_number, {"type": "number", "minimum": least, "maximum": most})


def _version(reading: Reading, key: str, node: Node) -> str | None:
    value = line(reading, key, node)
    if value is not None and not VERSION.match(value):
        message = f"{reading.label(key)} is {quoted(value)}, which is not a version"
        reading.problems.add("P046", node, message, "write it like 1.0")
        return None
    return value


_INPUT_ACTION: dict[str, Key] = {
    "description": Key(TEXT, words="What the action does."),
    "required_context": Key(LINES, words="What the agent must be given."),
    "optional_context": Key(LINES, words="What the agent may be given."),
    "uses": Key(word("shell", "python"), words="What does it: a command or a function."),
    "run": Key(Shape(as_is, COMMAND.schema), words="The command, or module:function."),
    "shell": Key(TEXT, words="One line for /bin/sh."),
}
_OUTPUT_ACTION: dict[str, Key] = {
    "required_outputs": Key(LINES, words="Keys that the artifact must have."),
    "optional_outputs": Key(LINES, words="Keys that the artifact may have."),
}
_CONSTRAINTS: dict[str, Key] = {
    "timeout_ms": Key(whole(1), words="How long one attempt may take, in milliseconds."),
    "max_concurrent": Key(whole(1), words="How many steps of this agent may run at once."),
    "requires_human_approval": Key(FLAG, words="Whether a person must say yes first."),
}


def _actions(table: dict[str, Key]) -> Shape[dict[str, dict[str, object]]]:
    def read_actions(reading: Reading, key: str, node: Node) -> dict[str, dict[str, object]] | None:
        outer = record(reading, key, node, {"actions": Key(Shape(as_is, {}))})
        inner = outer.get("actions") if outer else None
        if not isinstance(inner, Mapping):
            reading.wrong_type(key, node, "a mapping with 'actions'")
            return None
        found = {}
        for name, (place, value) in inner.pairs.items():
            given = record(reading, name, value, table)
            if line(reading, key, place) is not None and given is not None:
                found[name] = given
        return found

    item: Json = {
        "type": "object",
        "additionalProperties": record_schema(table),
        "description": "The actions by name.",
    }
    schema: Json = {
        "type": "object",
        "properties": {"actions": item},
        "required": ["actions"],
        "additionalProperties": False,
    }
    return Shape(read_actions, schema)


def _constraints(reading: Reading, key: str, node: Node) -> dict[str, object] | None:
    return record(reading, key, node, _CONSTRAINTS)


CONTRACT: dict[str, Key] = {
    "agent": Key(LINE, words="The name of the agent, once more."),
    "version": Key(Shape(_version, LINE.schema), words="The version of the contract, like 1.0."),
    "tier": Key(word(*TIERS), words="Where the agent stands among the others."),
    "capabilities": Key(LINES, words="What the agent is good at."),
    "input_schema": Key(_actions(_INPUT_ACTION), words="Its actions, and what they need."),
    "output_schema": Key(_actions(_OUTPUT_ACTION), words="What its actions give."),
    "constraints": Key(
        Shape(_constraints, record_schema(_CONSTRAINTS)), words="Time, number at once, approval."
    ),
    "dependencies": Key(LINES, words="Agents whose work it builds on."),
    "veto_domains": Key(LINES, words="Domains in which it can forbid."),
    "weight": Key(_number(0, _MOST_WEIGHT), words="What its word counts in a disagreement."),
    "boost": Key(_number(0, _MOST_WEIGHT), words="What is added inside its own domains."),
    "domains": Key(LINES, words="Its own domains."),
}
_RULES: dict[str, Key] = {
    "rounds": Key(whole(1), words="How many rounds of debate are heard."),
    "tie": Key(_number(0, 1), words="How near two sides may be before a person decides."),
    "weight": Key(_number(0, _MOST_WEIGHT), words="What the word of an unknown agent counts."),
    "similarity": Key(_number(0, 1), words="How alike two findings are that count as one."),
    "confidence": Key(_number(0, 1), words="How sure a finding must be to be kept."),
}


def _rules(reading: Reading, key: str, node: Node) -> Rules | None:
    given = record(reading, key, node, _RULES)
    return None if given is None else Rules(**given)  # type: ignore[arg-type]  # as _RULES reads


def _schema_name(reading: Reading, key: str, node: Node) -> str | None:
    value = line(reading, key, node)
    if value is not None and value != AGENTS_SCHEMA:
        message = f"'schema' is {quoted(value)}; this version reads '{AGENTS_SCHEMA}'"
        reading.problems.add("P005", node, message)
    return value


_FILE: dict[str, Key] = {
    "schema": Key(
        Shape(_schema_name, {"const": AGENTS_SCHEMA}), words="The version of this format."
    ),
    "conflicts": Key(Shape(_rules, record_schema(_RULES)), words="How disagreement is settled."),
    "agents": Key(Shape(as_is, {}), words="The agents that do the work, by name."),
    "reviewers": Key(Shape(as_is, {}), words="The agents that review, by name."),
}


def contract_schema() -> Json:
    """The JSON Schema of one contract."""
    return record_schema(CONTRACT)


def registry_of(reading: Reading, tree: Node) -> Registry:
    """Read a registry: both sections, and the rules if it has some."""
    given = record(reading, "agents", tree, _FILE) or {}
    agents: dict[str, Agent] = {}
    for roll in ROLLS:
        section = given.get(roll)
        if section is not None:
            for agent in agents_in(reading, cast("Node", section), roll).values():
                if agent.name in agents:
                    message = f"{quoted(agent.name)} stands in 'agents' and in 'reviewers'"
                    reading.problems.add("P038", cast("Node", section), message)
                agents[agent.name] = agent
    return Registry(agents, cast("Rules", given.get("conflicts", Rules())))


def agents_in(reading: Reading, node: Node, roll: Roll = "agents") -> dict[str, Agent]:
    """Contracts by name."""
    if not isinstance(node, Mapping):
        reading.wrong_type(roll, node, "a mapping of names to contracts")
        return {}
    found = {}
    for name, (place, value) in node.pairs.items():
        given = record(reading, name, value, CONTRACT)
        if line(reading, roll, place) is None or given is None:
            continue
        if "@" in name or given.get("agent", name) != name:
            message = f"{quoted(name)} is not the name of this agent"
            reading.problems.add(
                "P046", place, message, "the key and 'agent' must be the same name"
            )
            continue
        found[name] = _agent(reading, name, given, roll)
    return found


def _agent(reading: Reading, name: str, given: dict[str, object], roll: Roll) -> Agent:
    taken = cast("dict[str, dict[str, object]]", given.get("input_schema", {}))
    made = cast("dict[str, dict[str, object]]", given.get("output_schema", {}))
    limits = cast("dict[str, object]", given.get("constraints", {}))
    timeout = cast("int | None", limits.get("timeout_ms"))
    plain = (
        "version",
        "capabilities",
        "dependencies",
        "veto_domains",
        "weight",
        "boost",
        "domains",
    )
    return Agent(
        name=name,
        actions={
            action: _action(reading, {**taken.get(action, {}), **made.get(action, {})})
            for action in dict.fromkeys((*taken, *made))
        },
        tier=cast("Tier", given.get("tier", "specialist")),
        roll=roll,
        timeout=None if timeout is None else timeout / 1000,
        max_concurrent=cast("int | None", limits.get("max_concurrent")),
        requires_human_approval=bool(limits.get("requires_human_approval", False)),
        **{key: given[key] for key in plain if key in given},  # type: ignore[arg-type]  # as CONTRACT reads
    )


def _action(reading: Reading, given: dict[str, object]) -> Action:
    node = cast("Node | None", given.pop("run", None))
    if node is not None and "shell" in given:
        reading.problems.add(
            "P035", node, "an action has both 'run' and 'shell'", "keep one of them"
        )
    elif node is not None and given.get("uses") == "python":
        called = function(reading, "run", node)
        given["run"] = (called,) if called else ()
    elif node is not None:
        given["run"] = command(reading, "run", node) or ()
    return Action(**given)  # type: ignore[arg-type]  # as the tables read


def read_registry(content: bytes, file: str, root: str, walls: Walls = WALLS) -> Registry:
    """Read a registry from bytes; raises PlanError with everything that is wrong with it."""
    problems = Problems(file)
    reading = Reading(problems, Path(root), source=content, walls=walls)
    is_json = file.endswith(".json")
    tree = read(content, problems, strict_json=is_json, bounds=Bounds.of(walls))
    found = registry_of(reading, tree)
    problems.stop()
    return found


@cache
def shipped() -> Registry:
    """The agents that are known without being told."""
    try:
        return read_registry(Path(__file__).with_name(_SHIPPED).read_bytes(), _SHIPPED, ".")
    except PlanError as error:
        raise BugError(f"the shipped registry is wrong: {error.message}") from error
