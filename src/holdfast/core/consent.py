"""What somebody agreed that a run may pay models for.

nothing   nobody was asked: what was foreseen costs nothing
shown     somebody saw what would cost money, and said yes
anything  somebody said that nobody has to be asked, or named a limit

It is said when a run begins and when it goes on, and never taken back. A budget of the person's own
configuration is none of these: it bounds what is agreed to.
"""

from __future__ import annotations

from holdfast.core.moves import LEFT_OUT
from holdfast.core.state import COMPLETE, State, StepState
from holdfast.model.event import Agreed, Shown
from holdfast.model.items import base_of, source_of
from holdfast.model.plan import StepId

_LEVELS: tuple[Agreed, ...] = ("nothing", "shown", "anything")


def agreed_in(state: State) -> Agreed:
    """What a run may pay for.

    Older versions did not write it down: there a limit stands for it, and so does what was paid.
    """
    if state.agreed is not None:
        return state.agreed
    if state.max_cost is not None:
        return "anything"
    return "shown" if state.spent.cost or state.reserved else "nothing"


def agree_to(state: State, more: Agreed) -> None:
    """Somebody agreed to something, perhaps to more than before; nothing changes nothing."""
    if more != "nothing":
        state.agreed = max(state.agreed or "nothing", more, key=_LEVELS.index)


def not_agreed(state: State) -> list[StepId]:
    """The steps that a run has still to do, if nobody was asked what they cost; in the order of the plan.

    What people or attempts add is asked about when it is added; of items that a step found it is known by
    now how many there are.
    """
    if agreed_in(state) != "nothing":
        return []
    to_do = (s for s in state.graph.order if _is_to_do(state.steps[s]))
    return [s for s in to_do if _is_foreseen(state, s) or _is_found(state, s)]


def is_unasked(state: State, step_id: StepId) -> bool:
    """Whether a step came into a run without anybody being asked what it costs.

    Items that a step finds are asked about together, before they come.
    """
    origin = state.added.get(step_id)
    if origin is None or origin.request or origin.agreed:
        return False
    agreed = agreed_in(state)
    if _is_found(state, step_id):
        return agreed == "nothing"
    return agreed == "nothing" or (agreed == "shown" and not _was_shown(state, origin.step))


def items_unasked(state: State, source: StepId) -> bool:
    """Whether nobody knew how many items a step lists when somebody agreed to what the run costs."""
    agreed = agreed_in(state)
    return agreed == "nothing" or (agreed == "shown" and not _was_shown(state, source))


def _was_shown(state: State, source: StepId) -> bool:
    """Whether who agreed saw what comes of the artifact that a step has now.

    That it is reused does not say so: a preview does not know it of a step that only might run.
    """
    above = state.steps.get(source)
    if above is None or above.digest is None or above.phase == "done":
        return False
    return Shown(source, above.digest) in state.options.shown


def _is_found(state: State, step_id: StepId) -> bool:
    """Whether it is an item of what another step lists."""
    base = base_of(step_id)
    return base is not None and source_of(state.plan.steps[base].for_each) is not None


def _is_foreseen(state: State, step_id: StepId) -> bool:
    """Whether a preview has it: a step of the plan, or one that comes with an artifact that is reused."""
    origin = state.added.get(step_id)
    if origin is None:
        return True
    above = state.steps.get(origin.step)
    return not origin.request and (above is None or above.phase != "done")


def _is_to_do(step: StepState) -> bool:
    unselected = step.reason is not None and step.reason.code in LEFT_OUT
    return step.phase not in COMPLETE and not (step.phase == "skipped" and unselected)
