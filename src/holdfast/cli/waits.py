"""why --wait: what a step waits for in a run, and what that waits for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from holdfast import wire
from holdfast.cli.gates import ASKED, commands, waiting_words
from holdfast.cli.limits import Own, going_on, own_of
from holdfast.cli.measure import moment
from holdfast.cli.people import is_held
from holdfast.cli.place import Place, find_run, known_step
from holdfast.cli.say import named, seconds, short
from holdfast.cli.show import load_state
from holdfast.cli.since import answered_in
from holdfast.cli.status import answered_words
from holdfast.cli.whytext import Told
from holdfast.core.causes import causes
from holdfast.core.effects import DOUBTED, RECEIPT_GONE, UNCONFIRMED, has_hole
from holdfast.core.react import is_full, limit_reached, may_start, time_limit
from holdfast.core.reasons import sentence
from holdfast.core.state import COMPLETE, State
from holdfast.core.views import cost_limit
from holdfast.engine.asked import asked_in
from holdfast.engine.journals import read_state
from holdfast.engine.questions import HELD
from holdfast.errors import IntegrityError
from holdfast.model.digest import Digest
from holdfast.model.event import Reason
from holdfast.model.money import dollars
from holdfast.model.plan import StepId
from holdfast.model.text import clean, one_line
from holdfast.ports import Store

MOST_NEEDS = 8
MOST_WORDS = 6
Rows = list[tuple[str, str]]


def told_waiting(where: Place, step: str, run_id: str | None) -> Told:
    """The answer about the last run of the line, or about a named one."""
    if run_id is None and not where.exists():
        return _before_any(where, step)
    store = where.open(readonly=True)
    try:
        line = where.line()
        if run_id is None and not [row for row in store.runs() if line in {None, row.line}]:
            return _before_any(where, step)
        state = load_state(store, find_run(store, run_id, line))
        return _told(store, state, known_step(state.plan, step), own_of(state, where.file))
    finally:
        store.close()


def _before_any(where: Place, step: str) -> Told:
    plan = where.load().plan
    step_id = known_step(plan, step)
    needs = [need.step for need in plan.steps[step_id].needs]
    rows = [("needs", ", ".join(needs) if needs else "nothing: it would start at once")]
    return Told(
        step=plan.steps[step_id],
        decision="pending",
        reason=None,
        head=f"{step_id} waits for a run: there is none yet.",
        rows=tuple(rows),
        next=("holdfast run",),
    )


def _told(store: Store, state: State, step_id: StepId, own: Own) -> Told:
    here, now = state.steps[step_id], wire.now_ms()
    driven = state.status == "running" and wire.is_driven(store, state)
    rows: Rows = []
    answered = ""
    reason = here.reason
    if here.phase == "pending":
        head, reason = _pending(state, step_id, now, rows, driven=driven)
    elif here.phase == "running" and is_held(store, state, step_id):
        reason = Reason(UNCONFIRMED)
        head = f"{step_id} waits in {short(state.run)}, whose engine is gone: {sentence(reason)}."
        rows += _held(store, state, step_id, reason)
    elif here.phase == "waiting" and reason is not None:
        words = waiting_words(state.plan.steps[step_id], here)
        head = f"{step_id} waits in {short(state.run)}: {words}."
        rows += _held(store, state, step_id, reason)
        rows += _asked(store, state, step_id)
        answered = answered_in(store, state).get(step_id, "")
        rows += [("answered", answered_words(answered))] if answered else []
    else:
        words = _state_words(state, step_id, now)
        head = f"{step_id} does not wait in {short(state.run)}: it is {words}."
    reasons = {s: found.reason for s, found in state.steps.items() if found.reason is not None}
    stuck = here.phase in {"skipped", "waiting"}
    waits = here.phase in {"pending", "waiting"} or reason == Reason(UNCONFIRMED)
    return Told(
        step=state.plan.steps[step_id],
        decision="wait" if waits else here.phase,
        reason=reason,
        head=head,
        run=state.run,
        causes=causes(state.graph, step_id, reasons) if stuck else (),
        rows=tuple(rows),
        next=tuple(_next(state, step_id, None if answered else reason, own, driven=driven)),
    )


def _pending(
    state: State, step_id: StepId, now: int, rows: Rows, *, driven: bool
) -> tuple[str, Reason | None]:
    needs = [need.step for need in state.plan.steps[step_id].needs]
    open_needs = [need for need in needs if state.steps[need].phase not in COMPLETE]
    for need in open_needs[:MOST_NEEDS]:
        rows.append(("waits for", f"{need}: {_state_words(state, need, now)}"))
    if len(open_needs) > MOST_NEEDS:
        rows.append(("waits for", f"and {len(open_needs) - MOST_NEEDS} more"))
    if needs:
        rows.append(("complete", f"{len(needs) - len(open_needs)} of {len(needs)} needs"))
    behind = [s for s in _blockers(state, step_id) if s not in open_needs]
    for blocker in behind[:MOST_NEEDS]:
        rows.append(("behind it", f"{blocker}: {_state_words(state, blocker, now)}"))
    rows += _limits(state, now)
    run = short(state.run)
    if state.status != "running":
        rest = f": {sentence(state.rest)}" if state.rest else ""
        return f"{step_id} waits: {run} is {state.status}{rest}.", state.rest
    if not driven:
        return f"{step_id} waits: the engine of {run} is gone.", Reason("previous_interrupted")
    if open_needs:
        word = "a step" if len(open_needs) == 1 else f"{len(open_needs)} steps"
        return f"{step_id} waits for {word} in {run}: {', '.join(open_needs[:4])}.", None
    if not is_full(state) and not may_start(state, step_id):
        running = ", ".join(list(state.running)[:4])
        return f"{step_id} waits until {running} ended: one of them runs alone.", None
    return f"{step_id} is ready in {run} and waits for a free place.", None


def _blockers(state: State, step_id: StepId) -> Iterator[StepId]:
    """The steps far above that everything in between waits for: running, held, failed, or ready."""
    reached, queue = {step_id}, [step_id]
    for current in queue:  # grows while it is walked
        for need in state.plan.steps[current].needs:
            phase = state.steps[need.step].phase
            if need.step in reached or phase in COMPLETE:
                continue
            reached.add(need.step)
            if phase == "pending" and state.missing[need.step]:
                queue.append(need.step)
            else:
                yield need.step


def _state_words(state: State, step_id: StepId, now: int) -> str:
    step = state.steps[step_id]
    if step.phase == "running":
        return f"running for {seconds(max(0, now - step.started_at))}"
    if step.phase == "waiting":
        return f"waiting, {waiting_words(state.plan.steps[step_id], step)}"
    if step.phase in {"failed", "skipped"} and step.reason is not None:
        return f"{step.phase}, {sentence(step.reason)}"
    if step.phase == "pending":
        return "pending" if state.missing[step_id] else "ready to start"
    return step.phase


def _limits(state: State, now: int) -> Rows:
    limits, rows = state.plan.limits, Rows()
    if limits.attempts is not None:
        rows.append(("limit", f"{state.attempts} of {limits.attempts} attempts are used"))
    if (longest := time_limit(state)) is not None:
        end = state.ended_at if state.status != "running" else now
        used = seconds(max(0, end - state.since))
        rows.append(("limit", f"{used} of {seconds(longest)} are used"))
    if (most := cost_limit(state)) is not None:
        rows.append(("limit", f"{dollars(state.spent.cost)} of {dollars(most)} are spent"))
    if limits.tokens is not None:
        rows.append(("limit", f"{state.spent.tokens} of {limits.tokens} tokens are used"))
    if limits.parallel is not None:
        rows.append(("limit", f"{len(state.running)} of {limits.parallel} places are taken"))
    if state.status == "running" and (reached := limit_reached(state, now)) is not None:
        rows.append(("limit", sentence(reached)))
    return rows


def _asked(store: Store, state: State, step_id: StepId) -> Rows:
    """The questions that a step waits for."""
    rows = Rows()
    for question in asked_in(store, state).get(step_id, ()):
        whose = f" from {' or '.join(question.names)}" if question.names else ""
        rows.append(("asked", f"{question.approval}{whose}, about {question.subject[:12]}"))
    return rows


def _held(store: Store, state: State, step_id: StepId, reason: Reason) -> Rows:
    """What is known of a step that is held for a person."""
    if reason.code == RECEIPT_GONE:
        return [
            ("because", "it touches the outside and was done; what it gave was purged or lost"),
            *_done(store, state, step_id),
            ("to do", "amend says what it gave; retry does it again, on purpose"),
        ]
    if reason.code == DOUBTED:
        ways = ", or skip it" if has_hole(reason) else ", or accept what it gave"
        return [
            (
                "because",
                "it touches the outside and was done, and it may be the same that it would do now",
            ),
            *_done(store, state, step_id),
            ("to do", f"mend what is named and run anew{ways}; retry does it again, on purpose"),
        ]
    if reason.code == UNCONFIRMED and reason.because:
        return [
            ("because", f"it touches the outside and was done; {', '.join(reason.because)}"),
            *_done(store, state, step_id),
            ("to do", "amend says what it gave; retry and approve do it again, on purpose"),
        ]
    if reason.code == UNCONFIRMED:
        return [
            ("because", "it touches the outside, began, and never said that it had ended"),
            *_effect(store, state, step_id),
            ("to do", "look whether it happened; retry does it again, amend says what it gave"),
        ]
    if reason.code != "stuck":
        return []
    here = state.steps[step_id]
    rows = [("tried", f"{here.attempts} attempts")]
    if here.reopened:
        above = ", ".join(state.plan.steps[step_id].escalate)
        rows.append(("sent back", f"{above}, {here.reopened} times in all"))
    if here.last is not None:
        rows.append(("refused", sentence(here.last)))
    words = _said(store, here.said)
    rows += [("last said" if not place else "", line) for place, line in enumerate(words)]
    rows.append(("to do", "retry begins new rounds, approve too; amend gives it, reject fails it"))
    return rows


def _effect(store: Store, state: State, step_id: StepId) -> Rows:
    """Key, attempt and moment of an effect that nobody confirmed, in this run or before it."""
    found: State | None = state
    while found is not None and found.steps[step_id].effect is None:
        before = read_state(store, found.previous) if found.previous is not None else None
        found = before if before is not None and step_id in before.steps else None
    if found is None:
        return []
    here = found.steps[step_id]
    rows = [
        ("key", str(here.effect)),
        ("attempt", f"{here.attempts} of {short(found.run)}, begun {moment(here.started_at)}"),
    ]
    words = _said(store, here.log)
    rows += [("its log" if not place else "", line) for place, line in enumerate(words)]
    return rows


def _done(store: Store, state: State, step_id: StepId) -> Rows:
    """The last try at a step whose receipt is gone, as far as the runs of the line still know."""
    found: State | None = state
    while found is not None and (step_id not in found.steps or not found.steps[step_id].attempts):
        found = read_state(store, found.previous) if found.previous is not None else None
    if found is None:
        return []
    here = found.steps[step_id]
    return [("last try", f"{here.attempts} of {short(found.run)}, {moment(here.started_at)}")]


def _said(store: Store, digest: Digest | None) -> list[str]:
    """The last lines of something that was kept."""
    if digest is None:
        return []
    with suppress(IntegrityError):  # removed since
        text = clean(store.get(digest).decode("utf-8", "replace"))
        return [one_line(line) for line in text.splitlines() if line.strip()][-MOST_WORDS:]
    return []


def _next(
    state: State, step_id: StepId, reason: Reason | None, own: Own, *, driven: bool
) -> Iterator[str]:
    """What can be done; a step that waits for no `reason` any more was answered."""
    phase = state.steps[step_id].phase
    if phase == "waiting" and reason is None:
        yield "holdfast resume"
    elif phase == "waiting" and reason is not None and reason.code in ASKED:
        yield from commands(state.plan.steps[step_id], reason)
        yield f"holdfast reject {named(step_id)} --because '…'"
    elif phase == "waiting" or reason == Reason(UNCONFIRMED):
        yield f"holdfast retry {step_id}    (does it again)"
        if reason is not None and has_hole(reason):
            yield f"holdfast skip {step_id} --because '…'    (goes on without it)"
        elif reason is not None and reason.code == DOUBTED:
            yield f"holdfast accept {step_id} --from RUN --because '…'    (what it gave then stands)"
        else:
            yield f"holdfast amend {step_id} FILE    (puts its result in place)"
        if reason is not None and reason.code in HELD:
            yield f"holdfast reject {step_id} --because '…'    (it has failed)"
    elif phase == "pending" and state.replan is not None and not state.ended:
        yield "holdfast approve replan"
        yield "holdfast ledger"
    elif phase == "pending" and state.status == "limit":
        yield from going_on(state, own)
    elif phase == "pending" and not driven and not state.ended:
        yield "holdfast resume"
    elif phase in {"failed", "skipped"}:
        yield f"holdfast why {step_id} --run {short(state.run)}"
        yield "holdfast resume"
    else:
        yield f"holdfast status {short(state.run)}"
