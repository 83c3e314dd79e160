"""Whichever step of several waves ends first, the same work leads to the same decision about the plan."""

from __future__ import annotations

import json
from functools import partial
from itertools import permutations
from typing import Any

import pytest

from tests.cli.project import Project, finish, until
from tests.cli.test_prepared import PLAIN
from tests.forge import Running

NEEDS: dict[str, list[str]] = {"a": [], "b": ["a"], "c": ["b"], "x": []}
ORDERS = [
    order
    for order in permutations(NEEDS)
    if all(order.index(need) < order.index(step) for step in NEEDS for need in NEEDS[step])
]
GROWS = {"grows": {"statement": "it grows", "critical": True}}
NUMBERS = {"numbers": {"description": "numbers", "priority": "must"}}
SPOKEN: dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]]]] = {
    "a hypothesis that is refuted, and supported a wave later": (
        {"hypotheses": GROWS},
        {
            "a": {"hypotheses": {"grows": {"status": "refuted"}}},
            "b": {"hypotheses": {"grows": {"status": "supported"}}},
        },
    ),
    "a gap, and one more a wave later": (
        {"requirements": NUMBERS, "replan": {"gaps": 0}},
        {
            name: {"not_done": [{"item": f"part {name}", "reason": "-", "requirement": "numbers"}]}
            for name in ("a", "b")
        },
    ),
}


def in_order(project: Project, order: tuple[str, ...]) -> list[str]:
    """A run whose steps end in this order, as far as they are started; what speaks against its plan."""
    engine = project.start("run")
    for step in order:
        project.open(step)
        until(partial(_is_over, project, engine, step), f"{step} ends, or nothing more does")
    assert finish(engine).code == 3
    status = project.status().data
    return list(status["replan"]["triggers"])


def _is_over(project: Project, engine: Running, step: str) -> bool:
    if engine.poll() is not None:
        return True
    told = project.call("status", "--json")
    return told.code == 0 and told.json["steps"][step]["state"] == "done"


def lay(project: Project, about: str) -> None:
    top, said = SPOKEN[about]
    steps: dict[str, dict[str, Any]] = {"end": {"needs": ["c", "x"], "shell": "echo end"}}
    for name, needs in NEEDS.items():
        project.write(f"{name}.json", json.dumps({**PLAIN, **said.get(name, {})}))
        shell = f"{project.gate(name)}; cp {name}.json $HOLDFAST_HANDOFF; echo {name}"
        steps[name] = {"needs": needs, "inputs": f"{name}.json", "shell": shell}
        if name in said and "hypotheses" in top:
            steps[name]["hypotheses"] = [*top["hypotheses"]]
    project.plan(steps, **top)


@pytest.mark.req("R118")
@pytest.mark.parametrize("about", SPOKEN)
@pytest.mark.parametrize("order", ORDERS, ids="".join)
def test_the_first_wave_that_speaks_against_the_plan_decides(
    project: Project, about: str, order: tuple[str, ...]
) -> None:
    lay(project, about)
    held = in_order(project, order)
    (wanted,) = [one for one in project.events() if one["event"] == "replan_wanted"]
    assert wanted["wave"] == 1
    for name in NEEDS:
        project.open(name)
    assert list(project.run("--yes").data["replan"]["triggers"]) == held
