"""A plan that was written beforehand, to take the place of one that no longer holds: `replan: {to: FILE}`.

It lies beside the plan, since the directory of a plan is its project, and has the same name: it goes on with
the same line. What follows a plan is read with it, so that nothing wrong is found only when it is needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from holdfast.errors import PlanError, UsageError
from holdfast.formats.nodes import Mapping, Node
from holdfast.formats.problems import quoted
from holdfast.formats.reading import Reading
from holdfast.model.plan import Plan, Step

MOST = 20  # plans that take each other's place

Load = Callable[
    [str], tuple[Plan, str]
]  # a file, to its plan and the format if that is a foreign one


def check_prepared(
    reading: Reading, tree: Mapping, plan: Plan, before: tuple[str, ...], load: Load
) -> None:
    """Report what is wrong with the plan that is to take the place of this one.

    `before` are the files whose place was taken so far, this one the last of them.
    """
    node = _said(tree)
    if node is None:
        return
    path, problems = str(_rules(plan).get("to", "")), reading.problems
    if os.path.dirname(path):
        message = f"{quoted(path)} lies in another directory, which would be another project"
        problems.add("P112", node, message, "put it beside this plan")
        return
    made_by = next((one.id for one in plan.steps.values() if _makes(one, path)), None)
    if made_by is not None:
        message = f"{quoted(path)} is produced by the step {quoted(made_by)}, so it is not ready"
        problems.add("P112", node, message, "name a plan that no step writes")
        return
    if full_name(reading.root, path) in before or len(before) > MOST:
        way = " → ".join(map(os.path.basename, (*before[-MOST:], path)))
        message = f"plans take each other's place in a circle: {way}"
        problems.add("P113", node, message, "let the last of them go without 'to'")
        return
    try:
        found, foreign = load(path)
    except PlanError as error:
        codes = {problem.code for problem in error.problems}
        first = error.problems[0]
        at = f" (line {first.line})" if first.line else ""
        more = f" and {len(error.problems) - 1} more" if len(error.problems) > 1 else ""
        if codes == {"P113"}:  # it is said where it begins, too
            problems.add("P113", node, first.message, first.hint)
            return
        message = f"{quoted(path)} cannot take the place of this plan: {first.message}{at}{more}"
        problems.add("P112", node, message, f"holdfast check {path}")
        return
    except UsageError as error:  # a param of another type
        message = f"{quoted(path)} cannot take the place of this plan: {error.message}"
        problems.add("P112", node, message, error.hint or "")
        return
    if foreign:
        message = f"{quoted(path)} was written for another program"
        problems.add("P112", node, message, f"holdfast import {path} -o plan.yaml")
    elif (found.project, found.name) != (plan.project, plan.name):
        key = "name" if found.name != plan.name else "project"
        own, other = getattr(plan, key), getattr(found, key)
        message = f"{quoted(path)} belongs to another line: its {key} is {quoted(other)}"
        problems.add("P112", node, message, f"say {key}: {own or '…'} in it")


def _makes(step: Step, path: str) -> bool:
    return any(os.path.normpath(one) == os.path.normpath(path) for one in step.produces)


def full_name(root: Path, path: str) -> str:
    """A file by the one name that it has for everybody."""
    return os.path.realpath(os.path.join(root, path))


def _said(tree: Mapping) -> Node | None:
    """Where a plan names the one that is to take its place."""
    rules = tree.pairs["replan"][1] if "replan" in tree.pairs else None
    return rules.pairs["to"][1] if isinstance(rules, Mapping) and "to" in rules.pairs else None


def _rules(plan: Plan) -> dict[str, object]:
    said = plan.premises.get("replan")
    return dict(said) if isinstance(said, dict) else {}
