"""What a program tells a run or a look: every value is checked before anything is begun."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast, get_args

from holdfast import wire
from holdfast.api.ready import Ready
from holdfast.api.stepping import StepFunction
from holdfast.errors import UsageError
from holdfast.model.event import Drift, Options, Where
from holdfast.model.items import step_named
from holdfast.model.plan import StepId

Named = str | StepFunction[..., Any]
_MOST_JOBS = 1024
_TEXTS = ("store", "trust", "record", "recorded")
_FLAGS = ("force", "cutoff")


def refuse_wrong(wishes: Mapping[str, object], known: type) -> None:
    """Refuse what nobody would heed, or heed wrongly: a bound that is spelled wrong would bind nothing."""
    names = list(known.__annotations__)
    for name, value in wishes.items():
        if name not in names:
            close = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(names)}"
            raise UsageError(f"there is no '{name}' to be told here", hint=hint)
        if name in _TEXTS and not (value is None or isinstance(value, str)):
            raise _wrong(name, value, "a text, or nothing")
        if name in _FLAGS and not isinstance(value, bool):
            raise _wrong(name, value, "True or False")
    jobs = wishes.get("jobs", 1)
    if not isinstance(jobs, int) or isinstance(jobs, bool) or not 1 <= jobs <= _MOST_JOBS:
        raise _wrong("jobs", jobs, f"1 to {_MOST_JOBS:,}; without it as many as there are cores")
    drift = wishes.get("on_drift", "adopt")
    if drift not in get_args(Drift):
        raise _wrong("on_drift", drift, f"one of {', '.join(get_args(Drift))}")
    _most(wishes)


def options_of(ready: Ready, wishes: Mapping[str, object]) -> Options:
    """The wishes as an engine is told them."""
    more = _steps(ready, wishes, "resample")
    bound = wire.market.micro(_most(wishes))
    return Options(
        force=bool(wishes.get("force", False)),
        force_steps=_steps(ready, wishes, "force_steps"),
        select=more,
        resample=more,
        cutoff=bool(wishes.get("cutoff", False)),
        on_drift=cast("Drift", wishes.get("on_drift", "adopt")),
        joined=wire.is_shared(ready.location(cast("str | None", wishes.get("store")))),
        max_cost=wire.market.cost_bound(ready.root, ready.plan, bound),
        executor=where_of(wishes),
    )


def where_of(wishes: Mapping[str, object]) -> Where:
    """Where steps run that can leave this machine."""
    said = wishes.get("executor", "local")
    if said not in {"local", "ray"}:
        raise UsageError(f"executor is '{said}'", hint="'local' or 'ray'")
    return "ray" if said == "ray" else ""


def named(step: Named) -> str:
    """The id of a step that is named by it, or by its function if that is its id."""
    return step if isinstance(step, str) else step.step_id or step.function.__name__


def known(step: object, steps: Collection[StepId]) -> StepId:
    """A step of a plan; UsageError if it has none of that name."""
    if not isinstance(step, str | StepFunction):
        raise _wrong("a step", step, "its id, or its function")
    exact = StepId(named(step))
    found = exact if exact in steps else step_named(exact, dict.fromkeys(steps))
    if found is None:
        raise UsageError(f"the plan has no step '{named(step)}'")
    return found


def _steps(ready: Ready, wishes: Mapping[str, object], name: str) -> tuple[StepId, ...]:
    given = wishes.get(name, ())
    if isinstance(given, str | StepFunction) or not isinstance(given, Iterable):
        raise _wrong(name, given, "a list of steps")
    return tuple(known(step, ready.plan.steps) for step in given)


def _most(wishes: Mapping[str, object]) -> float | None:
    """The dollars that may be spent; of two words for it only one may be said."""
    if wishes.keys() >= {"max_cost", "max_cost_usd"}:
        raise UsageError("max_cost and max_cost_usd are the same: give one of them")
    most = wishes.get("max_cost", wishes.get("max_cost_usd"))
    if most is None:
        return None
    if not isinstance(most, int | float) or isinstance(most, bool) or not 0 <= most < math.inf:
        raise _wrong("max_cost", most, "dollars, 0 or more")
    return most


def _wrong(name: str, value: object, hint: str) -> UsageError:
    return UsageError(f"{name} is {value!r:.80}", hint=hint)
