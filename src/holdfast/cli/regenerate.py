"""What follows when a plan that a model made for a goal fails or is doubted: a person or another plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from holdfast import wire
from holdfast.cli.again import mend
from holdfast.cli.ending import last_words
from holdfast.cli.goal import loaded_for
from holdfast.cli.place import Place
from holdfast.cli.planning import Wanted
from holdfast.cli.say import short, talk
from holdfast.cli.view import view
from holdfast.config.settings import read_planner
from holdfast.core.premises import statements, substance
from holdfast.core.reasons import sentence
from holdfast.core.state import State
from holdfast.engine.elsewhere import handoffs_of
from holdfast.engine.journals import read_state, runs_of
from holdfast.engine.ledgers import ledger_of
from holdfast.engine.replans import Doubt, begun_with, held, rounds_made
from holdfast.errors import UsageError
from holdfast.formats.planfile import Loaded
from holdfast.model.digest import Json
from holdfast.model.plan import Plan, RunId
from holdfast.model.text import one_line
from holdfast.ports import Store

_FAILED = 1
_WAITING = 3
_MOST_WORDS = 2000  # characters that a planner is told of one failure
_MOST_LEARNED = 8000  # and of all that speaks against a plan
_REFUSED = frozenset({"guard_rejected", "command_failed", "answer_cut", "answer_empty"})


def regenerated(
    where: Place,
    code: int,
    wanted: Wanted,
    manner: dict[str, object],
    policy: str | None,
    start: Callable[[Loaded], int],
) -> int:
    """Plan again after a failure or a doubt, as often as the policy lets it, and start what was planned."""
    own = read_planner()
    mode = policy or own.on_failure
    left = own.regenerations if mode != "escalate" else 0
    seen: set[RunId] = set()  # runs whose doubts another plan was made for
    while True:
        found: tuple[State, str] | None = None
        if code == _FAILED and left:
            left -= 1
            found = _after_failure(where, mode, may=bool(manner["yes"]) or view().asks)
        elif code == _WAITING and (bool(manner["yes"]) or view().asks):
            found = _after_doubt(where, seen, own.regenerations, asks=mode == "escalate")
        if found is None:
            return code
        state, words = found
        if (most := cast("int | None", manner["max_cost"])) is not None:
            manner["max_cost"] = max(0, most - state.spent.cost)  # one bound for the whole command
        again = replace(wanted, replan=True, fresh=False, failed=words)
        try:
            loaded = loaded_for(where, again, manner)
        except UsageError as error:  # that the work failed is what counts
            mend(error)
            talk(f"it is not planned again: {error}")
            return code
        if loaded is None:
            return code
        if _is_same(where, state, loaded.plan):
            talk("the same plan would fail again: this is for a person to decide")
            return code
        code = start(loaded)


def _is_same(where: Place, state: State, plan: Plan) -> bool:
    """Whether a plan does what that of a run did, and stands on the same."""
    store = where.open(readonly=True)
    try:
        return substance(plan) == substance(begun_with(store, state))
    finally:
        store.close()


def _after_failure(where: Place, mode: str, *, may: bool) -> tuple[State, str] | None:
    """The run that failed and what failed in it, if another plan may be made and may help against that."""
    if (found := _failed(where)) is None:
        return None
    state, _ = found
    if mode == "hybrid" and not is_recoverable(state):
        talk("another plan would not help: this is for a person to decide")
        return None
    if not may:
        talk(
            f"{short(state.run)} failed; it is not planned again: a new plan would take the place"
            " of the one that stands, and nobody is there to ask"
        )
        talk("hint: say --yes")
        return None
    talk(f"{short(state.run)} failed; planning again")
    return found


def _after_doubt(
    where: Place, seen: set[RunId], rounds: int, *, asks: bool
) -> tuple[State, str] | None:
    """The run that is held and what speaks against the plan, if another one may be made without asking.

    The plan says whether and how often; if it does not, the policy does. Rounds count for the whole line. A
    run that was `seen` still waits because nobody let the other plan run.
    """
    store = where.open(readonly=True)
    try:
        line = str(where.plan_id)
        found = held(store, "", line, wire.alike)
        state = read_state(store, found.run) if found is not None else None
        if found is None or state is None or found.run in seen:
            return None
        said = cast("Mapping[str, Json]", state.plan.premises.get("replan", {}))
        most = int(str(said.get("rounds", rounds)))
        if said.get("ask", asks) or rounds_made(store, "", line) >= most:
            return None
        words = _learned(store, state, found.doubts)
    finally:
        store.close()
    seen.add(found.run)
    talk(f"what {short(found.run)} learned speaks against its plan; planning again")
    return state, words[:_MOST_LEARNED]


def _learned(store: Store, state: State, found: Sequence[Doubt]) -> str:
    """What speaks against a plan, with the claims and the findings behind it, in words for a planner."""
    handoffs = handoffs_of(store, state)
    ledger = ledger_of(state, handoffs, wire.alike, handoffs.said)
    claims = statements(state.plan)
    lines: list[str] = []
    for doubt in found:
        lines.append(one_line(doubt.words))
        named = {*doubt.entries}
        lines += [f"  {name}: {one_line(claims[name])}" for name in doubt.entries if name in claims]
        for one in ledger.evidence:
            if one.id in named or (one.step == doubt.step and not one.contested):
                source = f" ({one_line(one.source)})" if one.source else ""
                lines.append(f"  found by {one.step}: {one_line(one.finding)}{source}")
        for told in ledger.handoffs:
            if told.step == doubt.step and told.handoff.first:
                lines.append(f"  {told.step} says what to do first: {one_line(told.handoff.first)}")
    return "\n".join(lines)


def is_recoverable(state: State) -> bool:
    """Whether another plan may help: what was made was refused, and nothing else went wrong."""
    failed = [step for step in state.steps.values() if step.phase == "failed"]
    return all(step.reason is not None and step.reason.code in _REFUSED for step in failed)


def _failed(where: Place) -> tuple[State, str] | None:
    """The last run of the line and what failed in it, in words for a planner."""
    store = where.open(readonly=True)
    try:
        rows = runs_of(store, "", str(where.plan_id))
        state = read_state(store, rows[-1].run) if rows else None
        if state is None:
            return None
        words = last_words(store, state)
    finally:
        store.close()
    told = []
    for step_id in state.graph.order:
        step = state.steps[step_id]
        if step.phase == "failed" and step.reason is not None:
            said = words.get(step_id, "").strip()[-_MOST_WORDS:]
            told.append(f"{step_id}: {one_line(sentence(step.reason))}\n{said}".strip())
    return (state, "\n\n".join(told)) if told else None
