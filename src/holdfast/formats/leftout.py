"""What a plan says that is gone when it is read again from another format; it is always named.

No list of words is kept for each format. The file that was made is read, and what came back is compared
with what there was, key by key of the plan file: whatever is said and did not come back was left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from holdfast.formats.planout import plan_data
from holdfast.model.digest import Json
from holdfast.model.plan import Plan

_NOT_COMPARED = frozenset({"schema", "name", "origin", "steps"})
THE_PLAN = "the plan"


def left_out(plan: Plan, again: Plan) -> dict[str, list[str]]:
    """Each key that did not come back, and the steps that say it; `the plan` for those of its head."""
    before, after = plan_data(plan), plan_data(again)
    found: dict[str, list[str]] = {}
    told = {before.get("goal"), before.get("description")}
    for key, value in before.items():
        if key in _NOT_COMPARED or value == after.get(key):
            continue
        if key in {"goal", "description"} and {after.get("goal"), after.get("description")} & told:
            continue  # formats have one word for both, and the other is kept
        found[key] = [THE_PLAN]
    kept = cast("Mapping[str, Mapping[str, Json]]", after["steps"])
    for name, step in cast("Mapping[str, Mapping[str, Json]]", before["steps"]).items():
        now = kept.get(name, {})
        for key, value in step.items():
            if _spelled(key, value) != _spelled(key, now.get(key)):
                found.setdefault(key, []).append(name)
    return found


def _spelled(key: str, value: Json) -> Json:
    """A value as it is compared: a prompt of one text is its task."""
    return {"task": value} if key == "prompt" and isinstance(value, str) else value
