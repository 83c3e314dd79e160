"""Goals: which model plans, the plan that asks it, and the plan that its answer becomes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.errors import EditError, PlanError, UsageError
from holdfast.model.provider import TIERS
from holdfast.process.inside import open_inside
from holdfast.wire import market

if TYPE_CHECKING:
    from holdfast.model.digest import Json
    from holdfast.model.plan import Plan
    from holdfast.planner.found import Bounds, Found

_LOOKED_AT = 2**20  # bytes of a file that may be a plan
_PLAN = {  # what a file has that somebody may run as a plan, by how its name ends
    **dict.fromkeys(
        (".yaml", ".yml", ".json"),
        re.compile(rb"""(?m)^[\s{"']*(?:steps|schema["']?\s*:\s*["']?holdfast)\b"""),
    ),
    ".py": re.compile(rb"(?m)^\s*(?:import|from)\s+holdfast\b"),
}


def planning_model(root: str, given: str | None) -> tuple[str, str]:
    """The model that plans, and the tier or alias it was named by: as told, else the tier `large`."""
    known = market.known_models(root)
    name = given or "large"
    if ":" not in name:
        if name not in known.names:
            if given is None:
                raise UsageError(
                    "nobody said which model plans",
                    hint="say --model provider:name, or [tiers] large = 'provider:name' in config.toml"
                    " of your configuration directory",
                )
            raise UsageError(
                f"nobody said which model '{name}' is",
                hint=f"--model provider:name, or one of {', '.join(sorted(known.names)) or 'no tiers'}",
            )
        return known.names[name], name
    provider = name.partition(":")[0]
    if known.providers is not None and provider not in known.providers:
        raise UsageError(
            f"there is no provider '{provider}'",
            hint=f"known: {', '.join(sorted(known.providers))}",
        )
    return name, ""


def question(
    root: str,
    goal: str,
    line: str,
    given: str | None,
    bounds: Bounds,
    *,
    strategy: str = "",
    earlier: Plan | None = None,
    failed: str = "",
    files: str = "",
) -> Plan:
    """The plan of one step that plans for a goal; UsageError if nobody said who does that."""
    from holdfast.planner import goal as planning
    from holdfast.planner.steps import found_of

    model, tier = planning_model(root, given)
    _check(goal, line, model, root)
    found = found_of(earlier) if earlier is not None else ()
    return planning.question(
        goal,
        line,
        model,
        bounds,
        tier=tier,
        strategy=strategy,
        earlier=found,
        failed=failed,
        files=files,
    )


def _check(goal: str, line: str, model: str, root: str) -> None:
    """Refuse a goal that no plan can hold, before anybody is paid to plan for it."""
    artifact: dict[str, Json] = {"id": "a", "description": "a", "contract": "a"}
    try:
        _made({"artifacts": [artifact]}, {"model": model}, goal, line, root)
    except PlanError as error:
        raise UsageError(
            f"no plan can be made for this goal: {error.problems[0].message}",
            hint="say it in other characters",
        ) from error


def flaws(value: Json, config: Mapping[str, Json], goal: str, root: str) -> list[str]:
    """Everything that keeps an answer from being a plan: as a graph, then as a plan file."""
    from holdfast.planner.found import Bounds, read_found
    from holdfast.planner.found import flaws as wrong

    try:
        found = read_found(value)
    except ValueError as error:
        return [str(error)]
    bounds = Bounds(int(str(config["artifacts"])), int(str(config["depth"])))
    told = wrong(found, bounds, str(config.get("strategy", "")))
    if told := [*told, *_plans_among(found, root), *_out_of_reach(found, root)]:
        return told
    try:
        _made(value, config, goal, "goal", root)
    except PlanError as error:
        return [f"{p.message} ({p.hint})" if p.hint else p.message for p in error.problems]
    return []


def _plans_among(found: Sequence[Found], root: str) -> Iterator[str]:
    """The artifacts that would take the place of a plan that is there: a person may run it as his own."""
    for one in found:
        pattern = _PLAN.get(os.path.splitext(one.produces_file)[1].lower())
        if pattern is None:
            continue
        try:
            with open_inside(root, one.produces_file) as opened:
                is_plan = pattern.search(opened.read(_LOOKED_AT)) is not None
        except (
            OSError,
            ValueError,
            EditError,
        ):  # it is not there, or no path at all: others tell that
            continue
        if is_plan:
            yield (
                f"'{one.id}' is the file '{one.produces_file}', which is a plan already:"
                " no planned step may write it"
            )


def _out_of_reach(found: Sequence[Found], root: str) -> Iterator[str]:
    """The artifacts whose file cannot be written: something of the project stands in its way."""
    for one in found:
        place, parts = root, [part for part in one.produces_file.split("/") if part]
        for depth, part in enumerate(parts, start=1):
            place = os.path.join(place, part)
            if os.pardir in parts or "\0" in part or not os.path.lexists(place):
                break  # nothing is there yet, or others tell that it is no path
            is_last = depth == len(parts)
            if os.path.islink(place) or os.path.isdir(place) == is_last:
                kind = "a link" if os.path.islink(place) else "a directory" if is_last else "a file"
                at = "/".join(parts[:depth])
                yield f"'{one.id}' is the file '{one.produces_file}', but '{at}' is {kind}"
                break


def plan_from(content: bytes, asked: Plan, line: str, root: str) -> Plan:
    """The plan that an accepted answer to a question is."""
    from holdfast.planner.goal import settings_of

    return _made(json.loads(content), settings_of(asked), asked.goal, line, root)


def _made(value: Json, config: Mapping[str, Json], goal: str, line: str, root: str) -> Plan:
    from holdfast.formats.planfile import Asked, load_text
    from holdfast.planner.found import read_found
    from holdfast.planner.steps import plan_data

    named = [tier for tier in TIERS if tier in market.known_models(root).names]
    data = plan_data(goal, line, read_found(value), named, str(config["model"]))
    asked = Asked(line, models=market.known_models)
    content = json.dumps(data).encode()  # escaped: line separators may stand in words
    return load_text(content, "plan.json", root, asked).plan
