"""What comes next. Instructions are only ever a function of the state.

`ready_log` grows by one entry whenever a step becomes ready; `seen` is how much of it the shell has
been told. A shell that starts anew says `seen=0` and is told everything again: that is the whole of
recovery.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from holdfast.core.room import NOTHING_SAID, fits
from holdfast.core.state import State
from holdfast.model.event import Reason, RunEnded, RunRested
from holdfast.model.plan import StepId


class Next(NamedTuple):
    """Steps to look at now, how far the log was read, the end if this is it, and when to ask again."""

    probe: tuple[StepId, ...]
    seen: int
    end: RunEnded | RunRested | None
    wake: int | None


def react(
    state: State,
    *,
    seen: int,
    now: int,
    stopping: bool = False,
    staying: bool = False,
    stuck: AbstractSet[StepId] = frozenset(),
) -> Next:
    """What the shell should do. `stopping` means that a person asked to start nothing more.

    With `staying` a run that only waits for a person goes on waiting instead of coming to rest. `stuck`
    are ready steps that ask for more than there is: they can never start.
    """
    if state.status != "running":
        return Next((), len(state.ready_log), None, None)
    limit = limit_reached(state, now)
    if stopping or limit is not None or state.escalation is not None:
        return Next((), seen, None if state.running else _rest(state, limit), None)
    if state.replan is not None:
        end = None if state.running or staying else conclude(state)
        return Next((), seen, end, _deadline(state))
    fresh: dict[StepId, None] = {}
    log = state.ready_log
    for place in range(seen, len(log)):
        if log[place] in state.ready:
            fresh[log[place]] = None
    stays = staying and (state.counts["waiting"] or state.conflicts)
    open_steps = state.ready and not (stuck and state.ready <= stuck)
    end = None if open_steps or state.running or stays else conclude(state, stuck)
    return Next(tuple(fresh), len(log), end, _deadline(state))


def may_start(state: State, step_id: StepId, machine: Mapping[str, int] = NOTHING_SAID) -> bool:
    """Whether an attempt may begin beside those that run.

    Some steps run alone, attempts are limited, at once and in all, and there is only so much of some things;
    `machine` says how much of them there is here.
    """
    limits = state.plan.limits
    if is_full(state):
        return False
    if limits.attempts is not None and state.attempts >= limits.attempts:
        return False
    if state.frozen and step_id in state.frozen:
        return False
    if state.demands and not fits(state.demands.get(step_id, ()), state.taken, limits, machine):
        return False
    if not state.running or not state.alone:
        return True
    return step_id not in state.alone and not any(other in state.alone for other in state.running)


def is_full(state: State) -> bool:
    """Whether as many attempts run as the plan allows at once, whatever they do."""
    most = state.plan.limits.parallel
    return most is not None and len(state.running) >= most


def can_never_start(
    state: State, step_id: StepId, machine: Mapping[str, int] = NOTHING_SAID
) -> bool:
    """Whether a step asks for more than there is, whoever else runs."""
    demands = state.demands.get(step_id)
    return demands is not None and not fits(demands, {}, state.plan.limits, machine)


def front(state: State, after: int = 0) -> int:
    """Where, in the order of the graph, the first step stands that is still to be settled.

    `after` is an answer that was given before; no step before it became pending since.
    """
    order = state.graph.order
    while after < len(order) and state.steps[order[after]].phase not in {"pending", "running"}:
        after += 1
    return after


def time_limit(state: State) -> int | None:
    """What the run may take since it was last started, in milliseconds: the less of plan and person."""
    planned, own = state.plan.limits.time, state.options.max_ms
    bounds = [own] if planned is None else [int(planned * 1000), own]
    return min((bound for bound in bounds if bound is not None), default=None)


def limit_reached(state: State, now: int) -> Reason | None:
    """The limit that keeps further attempts from starting, if one does."""
    limits, most = state.plan.limits, time_limit(state)
    if most is not None and now - state.since >= most:
        return Reason("limit_reached", ("time",))
    if state.short is not None:
        return state.short
    if limits.attempts is not None and state.attempts >= limits.attempts and state.ready:
        return Reason("limit_reached", ("attempts",))
    return None


def conclude(state: State, stuck: AbstractSet[StepId] = frozenset()) -> RunEnded | RunRested:
    """The end of a run in which nothing can start and nothing is running."""
    counts = state.counts
    if state.complete and not state.conflicts and state.replan is None:
        return RunEnded("completed")
    if state.escalation is not None:
        return RunRested("escalated", state.escalation)
    if state.replan is not None:
        return RunRested("waiting", Reason("replan_wanted", state.replan.triggers))
    if counts["waiting"]:
        held = next(s for s in state.graph.order if state.steps[s].phase == "waiting")
        return RunRested("waiting", Reason("awaiting_person", (held,)))
    if state.complete:
        return RunRested("waiting", Reason("conflict_open", tuple(state.conflicts)[:5]))
    if counts["failed"]:
        failed = tuple(s for s in state.graph.order if state.steps[s].phase == "failed")
        return RunRested("failed", Reason("dependency_failed", failed[:5]))
    if counts["pending"]:
        left = [s for s in state.graph.order if state.steps[s].phase == "pending"]
        left = [s for s in left if s in stuck] or left
        return RunRested("blocked", Reason("deadlocked", tuple(left[:5])))
    cut = [s for s in state.graph.order if state.steps[s].phase == "skipped" and state.may_run(s)]
    return RunRested("blocked", Reason("dependency_skipped", tuple(cut[:5])))


def _rest(state: State, limit: Reason | None) -> RunRested | RunEnded:
    is_over = not state.ready and not state.counts["pending"]
    if state.escalation is not None or state.replan is not None or is_over:
        return conclude(state)
    if limit is not None:
        return RunRested("limit", limit)
    if state.options.fail_fast and state.counts["failed"]:
        return conclude(state)
    return RunRested("paused", Reason("stopped"))


def _deadline(state: State) -> int | None:
    most = time_limit(state)
    return None if most is None else state.since + most
