"""Write a plan as a plan file: what a load of it gives is the same plan."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

import yaml

from holdfast.formats.grammar import STEP
from holdfast.formats.graph import GRAPH
from holdfast.formats.nodes import reads_as_text
from holdfast.formats.premises import PREMISES
from holdfast.model.digest import Json
from holdfast.model.expression import literal, literals
from holdfast.model.items import base_of, source_of
from holdfast.model.plan import CLI_AGENT, PLAN_SCHEMA, Guard, Plan, Step, plan_json

_UNITS = (("d", 86400), ("h", 3600), ("m", 60))
_WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z0-9_./+-][A-Za-z0-9_./+ -]*\Z")
_GUARD_KEYS = ("name", "fatal_on")
_PROSE = frozenset(
    {
        *("description", "contract", "constraints", "specification"),
        *("preregistered", "evaluate_against"),
    }
)
_BULK = ("nodes", "edges", "batches")


def plan_data(plan: Plan) -> dict[str, Json]:
    """A plan with the keys of a plan file; defaults are left out, params are filled in."""
    spelled = cast("Mapping[str, Mapping[str, Json]]", plan_json(plan)["steps"])
    data: dict[str, Json] = {"schema": PLAN_SCHEMA, "name": plan.name}
    for key in ("goal", "description", "project"):
        if value := getattr(plan, key):
            data[key] = value if key == "project" else literal(value)
    if limits := _limits(plan):
        data["limits"] = limits
    for key in PREMISES:
        if said := plan.premises.get(key):
            data[key] = literals(said)
    if origin := _origin(plan.origin):
        data["origin"] = origin
    data["steps"] = {
        str(step_id): _written(step, spelled[step_id])
        for step_id, step in plan.steps.items()
        if base_of(step_id) is None  # an item is a part of the step that gathers it
    }
    return data


def _written(step: Step, given: Mapping[str, Json]) -> dict[str, Json]:
    """A step as it was read: with its items, if it gathers some."""
    if step.template is None:
        return _step(step, given)
    inner = _step(step.template, cast("Mapping[str, Json]", given["template"]))
    source = source_of(step.for_each)
    needs = inner.pop("needs", [])
    told: Json = {"step": source, "type": "sequence"}
    kept = [need for need in cast("Sequence[Json]", needs) if need != told]
    more: dict[str, Json] = {"needs": kept} if kept else {}
    if step.key:
        more["key"] = step.key
    if isinstance(step.for_each, list | tuple):
        more["for_each"] = literals(step.for_each)
    else:
        more["for_each"] = step.for_each
    found = {**inner, **more}
    order = [*STEP]
    return {key: found[key] for key in sorted(found, key=order.index)}


def _limits(plan: Plan) -> dict[str, Json]:
    given = cast("Mapping[str, Json]", plan_json(plan)["limits"])
    return {
        key: duration(cast("float", value)) if key == "time" else value
        for key, value in given.items()
    }


def _origin(origin: Mapping[str, Json]) -> dict[str, Json]:
    """Of a graph only its head: the rest is what the steps say."""
    found = dict(origin)
    graph = found.get(GRAPH)
    if isinstance(graph, Mapping):
        found[GRAPH] = {key: value for key, value in graph.items() if key not in _BULK}
    return found


def _step(step: Step, given: Mapping[str, Json]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, value in given.items():
        if key in {"timeout", "fresh_for"}:
            found[key] = duration(cast("float", value))
        elif key == "values":
            found["with"] = value
        elif key == "uses" and step.is_idle:
            continue  # nobody said how: a load asks for it
        elif key in _PROSE:
            found[key] = literals(value)
        elif key not in {"needs", "inputs", "guards", "lost_retries", "parameters", "tier"}:
            found[key] = value
    if step.model:
        found["model"] = _model(step)
    if (step.asks_model and not step.is_idle) or step.uses == CLI_AGENT:
        found["retries"] = step.retries  # those of a model are others if nothing is said
    if step.run and step.uses == "python":
        found["run"] = step.run[0]
    if step.needs:
        found["needs"] = [_need(step, place) for place in range(len(step.needs))]
    if step.inputs:
        found["inputs"] = [
            {"glob": item.glob, "optional": True} if item.optional else item.glob
            for item in step.inputs
        ]
    if step.guards:
        found["guards"] = [guard_data(guard) for guard in step.guards]
    order = [*STEP]
    return {key: found[key] for key in sorted(found, key=order.index)}


def _model(step: Step) -> Json:
    """The model as the person called it, with how to sample it."""
    name = step.tier or step.model
    return {"id": name, **step.parameters} if step.parameters else name


def _need(step: Step, place: int) -> Json:
    need = step.needs[place]
    if need.type == "data" and not need.key and not need.approver and not need.optional:
        return need.step
    found: dict[str, Json] = {"step": need.step}
    if need.type != "data":
        found["type"] = need.type
    if need.key:
        found["key"] = need.key
    if need.approver:
        found["from"] = need.approver
    if need.optional:
        found["optional"] = True
    return found


def guard_data(guard: Guard) -> Json:
    """A guard with the keys of a plan file."""
    value = [guard_data(item) for item in guard.items] if guard.items else guard.config
    found: dict[str, Json] = {guard.kind: value}
    for key in _GUARD_KEYS:
        if more := getattr(guard, key):
            found[key] = list(more) if isinstance(more, tuple) else more
    if guard.timeout is not None:
        found["timeout"] = duration(guard.timeout)
    return guard.kind if found == {"human": None, "name": "human"} else found


def duration(seconds: float) -> str:
    """Seconds as a plan file writes them, in the largest unit that fits exactly."""
    for unit, size in _UNITS:
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:.9f}".rstrip("0").rstrip(".") + "s"


class _Dumper(yaml.SafeDumper):
    """Writes text so that the reader of plan files takes it for text, and nothing twice by reference."""

    def ignore_aliases(self, data: object) -> bool:
        """Never."""
        del data
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    if "\n" in value and _is_block(value):
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|")
    easy = _PLAIN.match(value) and reads_as_text(value) and value == value.strip()
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if easy else '"')


def _is_block(value: str) -> bool:
    """Whether a text of several lines can stand as it is."""
    lines = value.split("\n")
    return all(line.isprintable() and line == line.rstrip() for line in lines) and not (
        lines[0].startswith(" ") or not lines[0]
    )


_Dumper.add_representer(str, _text)


def plan_yaml(plan: Plan) -> str:
    """The text of a plan file."""
    return data_yaml(plan_data(plan))


def data_yaml(data: Mapping[str, Json]) -> str:
    """The text of a plan file with this data."""
    return yaml.dump(
        _simple(data),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=_WIDTH,
        default_flow_style=False,
    )


def _simple(value: Json) -> object:
    """Values as the YAML library knows them: exact types, lists for tuples."""
    if isinstance(value, Mapping):
        return {str(key): _simple(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_simple(item) for item in value]
    return str(value) if isinstance(value, str) else value
