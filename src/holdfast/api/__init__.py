"""The Python API. Its rooms are loaded when a name of theirs is first used: see `holdfast`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.api.deciding import Asked, answer, approvals, approve, reject
    from holdfast.api.growth import add
    from holdfast.api.guarding import Guarded, GuardFunction, guard
    from holdfast.api.planning import PlanFunction, plan
    from holdfast.api.plans import Plan, load, run
    from holdfast.api.previews import Preview
    from holdfast.api.results import Attempt, Result, StepResult, Why
    from holdfast.api.running import Handle
    from holdfast.api.stepping import StepFunction, step
    from holdfast.api.stored import Where, artifacts, where
    from holdfast.model.agent import Action, Agent

_ROOMS = {
    "holdfast.api.deciding": ("Asked", "answer", "approvals", "approve", "reject"),
    "holdfast.api.growth": ("add",),
    "holdfast.api.guarding": ("GuardFunction", "Guarded", "guard"),
    "holdfast.api.planning": ("PlanFunction", "plan"),
    "holdfast.api.plans": ("Plan", "load", "run"),
    "holdfast.api.previews": ("Preview",),
    "holdfast.api.results": ("Attempt", "Result", "StepResult", "Why"),
    "holdfast.api.running": ("Handle",),
    "holdfast.api.stepping": ("StepFunction", "step"),
    "holdfast.api.stored": ("Where", "artifacts", "where"),
    "holdfast.model.agent": ("Action", "Agent"),
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "Action",
    "Agent",
    "Asked",
    "Attempt",
    "GuardFunction",
    "Guarded",
    "Handle",
    "Plan",
    "PlanFunction",
    "Preview",
    "Result",
    "StepFunction",
    "StepResult",
    "Where",
    "Why",
    "add",
    "answer",
    "approvals",
    "approve",
    "artifacts",
    "guard",
    "load",
    "plan",
    "reject",
    "run",
    "step",
    "where",
]


def __getattr__(name: str) -> object:
    """A name from its room, which is loaded now: a child process that only calls a step needs few."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    message = f"module 'holdfast.api' has no attribute {name!r}"
    raise AttributeError(message)
