"""Effects outside that may have happened: what a run says about one that nobody confirmed.

A step that may be done only once is never done again unasked. Its effect is open from the moment it
is started until it is confirmed, or a person gave its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from shlex import quote
from typing import Final

from holdfast.core.refs import Upstream
from holdfast.core.state import COMPLETE, State
from holdfast.errors import IntegrityError
from holdfast.model.event import Reason
from holdfast.model.line import StepAccepted, StepAmended
from holdfast.model.plan import RunId, StepId

Word = StepAmended | StepAccepted

UNCONFIRMED: Final = "effect_unconfirmed"
RECEIPT_GONE: Final = "receipt_gone"  # it was done, and what it gave was purged or lost
DOUBTED: Final = "effect_doubted"  # it was done, and nothing can tell whether that still counts
WAS_DONE: Final = frozenset({RECEIPT_GONE, DOUBTED})
FOR_A_PERSON: Final = WAS_DONE | {UNCONFIRMED}
UNRESOLVED: Final = "cannot be resolved"  # said of a part of a key that nobody can find out now
BY_PEOPLE: Final = frozenset({"amended", "accepted_by_person"})
TAKEN_AGAIN: Final = frozenset({"unchanged", "unchanged_content", "reguarded"}) | BY_PEOPLE
REJECTED: Final = "rejected_by_person"
LATEST: Final = 1 << 62  # the number of no event


def is_open(state: State, step_id: StepId) -> bool | None:
    """Whether a run left an effect that may have happened; None if earlier runs have to be asked.

    Nobody knows it either if a person rejected the step, or went on without it, nor if an artifact stands
    that was there before. What was made and waits for a person is done, and has no artifact yet; it has none
    at all if it got lost, or if people went on without it. A command that ended by itself, without a result,
    left nothing open.
    """
    here = state.steps.get(step_id)
    if here is None:
        return None
    code = here.reason.code if here.reason is not None else ""
    if here.phase == "waiting" and code == UNCONFIRMED:
        return True
    if here.phase in {"waiting", "failed"} and here.parked is not None:
        return True
    if here.phase in COMPLETE and step_id not in state.gaps:
        return None if takes_again(state, step_id) else False
    if here.undecided:
        return True
    if not here.attempts:
        return None
    return here.effect is not None and not here.effect_failed


def changes_lost(message: str, *steps: StepId) -> IntegrityError:
    """What a step changed in a copy is gone: where its changes lie already, it could make them twice."""
    asked = " ".join(f"--force-node {quote(step)}" for step in dict.fromkeys(steps))
    return IntegrityError(message, hint=f"holdfast run {asked}")


def changes_untold(
    step_id: StepId, others: Iterable[StepId], asked: Iterable[StepId] = ()
) -> IntegrityError:
    """The same for a step whose files may be as others left them: nobody can tell whether it stands.

    `asked` are steps that are to run whatever stands, already.
    """
    names = ", ".join(f"'{other}'" for other in others)
    words = f"what {names} changed is gone, and nobody can tell whether '{step_id}' stands"
    return changes_lost(words, *asked, *others, step_id)


def has_hole(reason: Reason) -> bool:
    """Whether a step is in doubt because nobody can find out its key now: nothing can stand under that."""
    return reason.code == DOUBTED and any(told.endswith(UNRESOLVED) for told in reason.because)


def made_none(state: State, step_id: StepId) -> bool:
    """Whether a step is held only for what another run left open, or did: that one knows how it ended."""
    here = state.steps[step_id]
    code = here.reason.code if here.reason is not None else ""
    held = here.phase == "waiting" and code in FOR_A_PERSON
    return held and here.effect is None and here.parked is None


def effect_name(state: State, step_id: StepId) -> str:
    """The attempt that acted last, as other runs name it."""
    return f"{state.run}.{step_id}.{state.steps[step_id].attempts}"


def is_in_hand(state: State, step_id: StepId) -> bool:
    """Whether an effect is under way, or made and not accepted yet: who drives the run says how it ends."""
    here = state.steps.get(step_id)
    if here is None or (here.phase != "running" and here.parked is None):
        return False
    return is_cut_off(state, step_id) or is_open(state, step_id) is True


def takes_again(state: State, step_id: StepId) -> bool:
    """Whether a run made nothing of a step itself: the artifact may be the receipt of another effect."""
    here = state.steps[step_id]
    code = here.reason.code if here.reason is not None else ""
    if here.answered or here.effect_at:
        return False
    return here.phase == "reused" and code in TAKEN_AGAIN


def is_given(state: State, step_id: StepId) -> bool:
    """Whether what stands in a run comes from a person, who may have given it to settle an effect."""
    here = state.steps[step_id]
    return takes_again(state, step_id) and here.reason is not None and here.reason.code in BY_PEOPLE


def is_cut_off(state: State, step_id: StepId) -> bool:
    """Whether nobody would know what an attempt that runs has done, if its engine is gone."""
    started = state.running.get(step_id)
    return started is not None and started.reguard is None and state.plan.steps[step_id].done_once


def open_since(
    past: Callable[[RunId], State | None], words: Iterable[Word], step: StepId, run: RunId | None
) -> dict[RunId, int] | None:
    """The runs of a line since an effect of a step is open, each with the event that begins it.

    An open effect belongs to the line: a later run may not repeat it before a person has looked. None if
    there is none up to this run; `past` finds the runs, `words` are what people gave for the step. What they
    gave after the effect settles it as soon as it stands in a run.
    """
    since: dict[RunId, int] = {}
    stood: Upstream | None = None  # what a person gave, perhaps after the effect
    for found, left in telling(past, step, run):
        if left:
            then = found.steps[step]
            since[found.run] = then.effect_at or then.held_at
            after = (word for word in words if word.after_seq >= since.get(word.after_run, LATEST))
            is_settled = stood is not None and any(word.digest == stood.digest for word in after)
            return None if is_settled else since
        if left is None:
            if stood is None and step in found.steps and is_given(found, step):
                stood = stands_as(found, step)
            since[found.run] = 0
    return None


def telling(
    past: Callable[[RunId], State | None], step: StepId, run: RunId | None
) -> Iterator[tuple[State, bool | None]]:
    """The runs that say where the effect of a step stands, newest first, as `is_open` has it.

    A run that ended its own says it of all before it, but not of one that shared the line with it: there it
    may have been tried later. What was open when it acted itself is named in its journal.
    """
    settled, known = False, frozenset[str]()
    while run is not None and (found := past(run)) is not None:
        left = is_open(found, step)
        if left is False:
            settled, known = True, known.union(found.steps[step].beside)
            yield found, left
        elif not settled or (
            left and effect_name(found, step) not in known and not made_none(found, step)
        ):
            yield found, left
        if settled and not found.options.joined:
            return
        run = found.previous


def stands_as(state: State, step: StepId) -> Upstream | None:
    """What a step came to in a run, if it is complete there."""
    then = state.steps.get(step)
    if then is None or then.phase not in COMPLETE or not then.config_ref or not then.digest:
        return None
    return Upstream(then.config_ref, then.digest)
