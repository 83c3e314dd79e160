"""What a CI is told of a run, or of a preview where nothing ran: the facts, each in words made once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from holdfast import wire
from holdfast.cli.again import again
from holdfast.cli.ahead import Ahead
from holdfast.cli.annotations import Note, Noted
from holdfast.cli.ending import (
    REPLAN,
    doubted,
    headline,
    last_words,
    money_of,
    next_commands,
    saved_of,
)
from holdfast.cli.failure import ended_words, failure_lines
from holdfast.cli.gates import waiting_words
from holdfast.cli.graph import Seen, drawing
from holdfast.cli.ledger import learned_in
from holdfast.cli.ledgerchange import ledger_changes
from holdfast.cli.limits import limit_words
from holdfast.cli.measure import count
from holdfast.cli.money import cost_words, step_words
from holdfast.cli.outlook import Row, head, rows_of
from holdfast.cli.place import Place
from holdfast.cli.prices import total_words, unpriced_lines
from holdfast.cli.say import SIGNS, seconds
from holdfast.cli.titles import plan_title
from holdfast.core.outlay import Saved
from holdfast.core.reasons import sentence
from holdfast.core.state import Phase, State
from holdfast.core.views import shown_phase, worked_ms
from holdfast.core.waves import graph_of
from holdfast.engine.journals import runs_of
from holdfast.formats.spots import Spot, Spots, spots
from holdfast.model.money import dollars
from holdfast.model.plan import Plan, RunId, StepId
from holdfast.model.text import first_line, one_line
from holdfast.ports import Store

MOST_BOXES = 120
MOST_ROWS = 200
_GUARDS = frozenset({"guard_rejected", "guard_fatal", "guard_broken", "rejected_by_person"})
_BROKEN = frozenset({"guard_broken", "lost", "timed_out", "call_failed", "credentials_missing"})
_ORDER: tuple[Phase, ...] = ("failed", "waiting", "running", "done", "pending", "skipped")
Outcome = Literal["passed", "failed", "broken", "skipped"]


class Change(NamedTuple):
    """What it costs beside what the run before cost, in one line; micro-dollars, None if nobody knows."""

    words: str
    cost: int | None
    before: int | None


class Case(NamedTuple):
    """A step as a test: what it came to, in a line, and what was said if it did not pass."""

    step: StepId
    outcome: Outcome
    line: str
    said: str = ""
    took_ms: int = 0
    spot: Spot = Spot("")


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that any page for a CI shows."""

    title: str
    sign: str
    status: str
    change: Change
    headline: str
    rows: Sequence[Row]
    more_rows: int
    failures: Sequence[str]
    ledger: Sequence[str]
    drawing: str
    noted: Noted
    cases: Sequence[Case]
    following: str
    line: str
    run: RunId | None = None
    began_ms: int = 0
    took_ms: int = 0


# --- a run ----------------------------------------------------------------------------------------


def report_of(store: Store, where: Place, state: State, before: State | None) -> Report:
    """A run as it stands, beside the one that it is compared with."""
    driven = wire.is_driven(store, state)
    words = last_words(store, state) | doubted(store, state)
    money = money_of(store, state, where.file)
    places = spots(where.file) if where.file else Spots("")
    shown = _shown(state)
    saved = saved_of(store, state)
    change = change_of(state, before)
    states = {step_id: str(shown_phase(state, step_id)) for step_id in state.steps}
    limit = ""
    if state.status == "limit" and state.rest is not None:
        limit = first_line(limit_words(store, state)) or sentence(state.rest)
    return Report(
        title=plan_title(state.plan),
        sign=_sign(state),
        status=str(state.status),
        change=change,
        headline=headline(state, wire.now_ms(), driven=driven, saved=saved),
        rows=[_row(state, s, words.get(s, "")) for s in shown[:MOST_ROWS]] + _reused(state, saved),
        more_rows=max(0, len(shown) - MOST_ROWS),
        failures=failure_lines(state, words),
        ledger=_ledger(store, where, state, before),
        drawing=picture(state.plan, Seen(state.run, states)),
        noted=_noted(state, words, limit, places, change),
        cases=[_case(state, s, words.get(s, ""), places) for s in state.graph.order],
        following=again(next_commands(state, driven=driven, own=money.own)),
        line=state.line,
        run=state.run,
        began_ms=state.started_at,
        took_ms=worked_ms(state, wire.now_ms() if driven else 0),
    )


def run_before(store: Store, state: State) -> RunId | None:
    """The run of the same line that began before this one."""
    earlier: RunId | None = None
    for row in runs_of(store, state.project, state.line):
        if row.run == state.run:
            return earlier
        earlier = row.run
    return earlier


def change_of(state: State, before: State | None) -> Change:
    """How many steps ran and what they cost, beside the run before."""
    ran = sum(1 for step in state.steps.values() if step.attempts)
    cost = None if state.spent.unpriced else state.spent.cost
    last = None if before is None or before.spent.unpriced else before.spent.cost
    words = cost_words(state.spent.cost, state.spent.unpriced)
    than = _than(cost, last, "no earlier run" if before is None else "")
    return Change(f"{ran} of {_steps(len(state.steps))} ran, {words}{than}", cost, last)


def _steps(number: int) -> str:
    return count(number, "step")


def _than(cost: int | None, before: int | None, nothing: str) -> str:
    """How much more or less than the last run, in brackets."""
    if nothing:
        return f" ({nothing})"
    if cost is None or before is None:
        return " (the last cost nobody knows)" if cost is not None else ""
    if cost == before:
        return " (as last)"
    sign = "+" if cost > before else "−"
    return f" ({sign}{dollars(abs(cost - before))} vs last)"


def picture(plan: Plan, seen: Seen) -> str:
    """The plan for Mermaid, with so few boxes that any page draws it."""
    ordered = graph_of(plan)
    return drawing("mermaid", plan, ordered, ordered.order, seen, MOST_BOXES)


def _sign(state: State) -> str:
    words = {"completed": "done", "running": "running", "superseded": "skipped"}
    word = words.get(str(state.status), "waiting")
    return SIGNS["failed" if state.status in {"failed", "escalated", "blocked"} else word]


def _shown(state: State) -> list[StepId]:
    """The steps with a row of their own, those that want attention first; reused ones have one together."""
    places = {phase: place for place, phase in enumerate(_ORDER)}
    listed = [s for s in state.graph.order if shown_phase(state, s) in places]
    return sorted(listed, key=lambda s: places[shown_phase(state, s)])


def _row(state: State, step_id: StepId, said: str) -> Row:
    step, phase = state.steps[step_id], shown_phase(state, step_id)
    took = seconds(step.spent_ms) if step.attempts else ""
    why = _why(state, step_id)
    words = first_line(said) if phase == "failed" else ""
    return Row(
        SIGNS[phase], step_id, f"{why}: {words}" if words else why, step_words(step.spent), took
    )


def _why(state: State, step_id: StepId) -> str:
    """The sentence of a step, as every screen has it."""
    step = state.steps[step_id]
    if step.phase == "failed":
        return ended_words(step)
    if step.phase == "waiting":
        return waiting_words(state.plan.steps[step_id], step)
    words = sentence(step.reason) if step.reason else step.phase
    return f"{words}, {step.attempts} attempts" if step.attempts > 1 else words


def _reused(state: State, saved: Saved) -> list[Row]:
    number = state.counts["reused"] - len(state.gaps)
    words = f"saved ~{dollars(saved.cost)}" if saved.cost else ""
    return [Row(SIGNS["reused"], f"{number} reused", words)] if number else []


def _ledger(store: Store, where: Place, state: State, before: State | None) -> list[str]:
    new = learned_in(store, where.location, state.run).ledger
    old = None if before is None else learned_in(store, where.location, before.run).ledger
    return ledger_changes(old, new)


def _case(state: State, step_id: StepId, said: str, places: Spots) -> Case:
    step, phase = state.steps[step_id], shown_phase(state, step_id)
    outcome: Outcome = "skipped"
    if phase in {"done", "reused"}:
        outcome = "passed"
    elif phase == "failed":
        code = step.reason.code if step.reason else ""
        outcome = "broken" if code in _BROKEN else "failed"
    took = 0 if phase == "reused" else step.spent_ms
    line = f"{phase}: {_why(state, step_id)}"
    return Case(step_id, outcome, line, said, took, spot_of(state, step_id, places))


def spot_of(state: State, step_id: StepId, places: Spots) -> Spot:
    """The line that a step's state is about: the guard that refused it, what it does, or the step."""
    step = state.steps[step_id]
    reason = step.reason
    if step.phase == "failed" and reason is not None:
        if reason.code in _GUARDS and reason.because:
            return places.guard(step_id, reason.because[0])
        return places.work(step_id)
    return places.step(step_id)


def _noted(
    state: State, words: Mapping[StepId, str], limit: str, places: Spots, change: Change
) -> Noted:
    """What is said at lines of files, worst first."""
    blocks = _blocked(state)
    failed = [s for s in state.graph.order if state.steps[s].phase == "failed"]
    failed.sort(key=lambda s: -blocks[s])
    errors = []
    for step_id in failed:
        said = words.get(step_id, "").strip()
        skipped = f"\nblocked: {count(blocks[step_id], 'step')}" if blocks[step_id] else ""
        text = f"{ended_words(state.steps[step_id])}{skipped}" + (f"\n{said}" if said else "")
        errors.append(Note("error", step_id, text, spot_of(state, step_id, places)))
    warnings = [
        Note("warning", s, waiting_words(state.plan.steps[s], state.steps[s]), places.step(s))
        for s in state.graph.order
        if state.steps[s].phase == "waiting"
    ]
    warnings += [Note("warning", state.line, limit, Spot(places.file))] if limit else []
    if REPLAN in words:
        warnings.append(Note("warning", state.line, words[REPLAN], Spot(places.file)))
    warnings += [
        Note("warning", s, "a gap: a person lets the run go on without it", places.step(s))
        for s in state.gaps
    ]
    for step_id in state.graph.order:
        step = state.steps[step_id]
        if step.phase == "done" and step.rejections:
            text = f"accepted on attempt {step.attempts}; before that, guards refused it"
            warnings.append(Note("warning", step_id, text, places.work(step_id)))
    notice = Note("notice", f"holdfast: {state.status}", change.words, Spot(places.file))
    return Noted(tuple(errors), tuple(warnings), (notice,))


def _blocked(state: State) -> Counter[StepId]:
    """How many steps each failed one kept from running; every step is looked at once."""
    found: Counter[StepId] = Counter()
    roots: dict[StepId, StepId] = {}
    for step_id in state.graph.order:
        step = state.steps[step_id]
        if step.phase != "skipped" or step.reason is None or not step.reason.because:
            continue
        above = StepId(step.reason.because[0])
        root = roots.get(above, above)
        roots[step_id] = root
        found[root] += 1
    return found


# --- a preview ------------------------------------------------------------------------------------


def preview_report(where: Place, ahead: Ahead, before: State | None) -> Report:
    """What a run would do, where none is to be told of."""
    places = spots(where.file) if where.file else Spots("")
    runs = [s for s, o in ahead.outlooks.items() if o.decision in {"run", "maybe"}]
    cost = None if ahead.money.unknown else ahead.money.p50
    last = None if before is None or before.spent.unpriced else before.spent.cost
    than = _than(cost, last, "no earlier run" if before is None else "")
    price = total_words(ahead.money) if ahead.money.unknown else dollars(ahead.money.p50)
    words = f"{len(runs)} of {_steps(len(ahead.outlooks))} would run, {price}{than}"
    change = Change(words, cost, last)
    rows = rows_of(ahead)
    waits = [s for s, o in ahead.outlooks.items() if o.decision == "wait"]
    warnings = [
        Note("warning", s, sentence(ahead.outlooks[s].reason), places.step(s)) for s in waits
    ]
    unpriced = [one_line(line).removeprefix("! ") for line in unpriced_lines(ahead)]
    warnings += [Note("warning", ahead.plan.name, line, Spot(places.file)) for line in unpriced]
    notice = Note("notice", "holdfast: plan", words, Spot(places.file))
    return Report(
        title=plan_title(ahead.plan),
        sign=SIGNS["pending"],
        status="planned",
        change=change,
        headline=head(ahead),
        rows=rows[:MOST_ROWS],
        more_rows=max(0, len(rows) - MOST_ROWS),
        failures=(),
        ledger=(),
        drawing=picture(ahead.foreseen.plan, Seen("", {})),
        noted=Noted((), tuple(warnings), (notice,)),
        cases=[
            Case(
                step_id,
                "passed" if outlook.decision == "reuse" else "skipped",
                f"would {outlook.decision}: {sentence(outlook.reason)}",
                spot=places.step(step_id),
            )
            for step_id, outlook in ahead.outlooks.items()
        ],
        following=again("holdfast run" if ahead.is_work else "holdfast status"),
        line=ahead.plan.name,
    )


def relative(spot: Spot, top: str) -> Spot:
    """A place as whoever checked the code out to `top` names it; as it is if it lies elsewhere."""
    if not spot.file:
        return spot
    path = os.path.relpath(os.path.abspath(spot.file), os.path.abspath(top))
    return spot if path.startswith(os.pardir) else Spot(path, spot.line)
