"""What a run came to: the block at its end, its exit code, and what to do next."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace

from holdfast import wire
from holdfast.cli.again import again, folded, here_now, keep_here, possible
from holdfast.cli.failure import failure_lines, failure_next
from holdfast.cli.gates import commands, conflict_lines, waiting_words
from holdfast.cli.limits import (
    NO_MONEY,
    Money,
    Own,
    going_on,
    limit_words,
    money_lines,
    own_of,
)
from holdfast.cli.money import spent_words
from holdfast.cli.progress import choices
from holdfast.cli.replanning import held_commands, ready_lines, replan_lines
from holdfast.cli.say import SIGNS, named, out, out_json, seconds, short
from holdfast.cli.since import waiting_since
from holdfast.cli.titles import is_planning
from holdfast.cli.view import width_now
from holdfast.core.effects import FOR_A_PERSON
from holdfast.core.estimate import asked_models, looked_back
from holdfast.core.outlay import Saved
from holdfast.core.reasons import sentence
from holdfast.core.state import COMPLETE, State
from holdfast.core.views import run_json, shown_phase, worked_ms
from holdfast.engine.asked import asked_in
from holdfast.engine.replans import doubts, led_to, unanswered
from holdfast.engine.requests import additions
from holdfast.errors import IntegrityError
from holdfast.model.digest import Json
from holdfast.model.event import Reason
from holdfast.model.plan import StepId
from holdfast.model.text import clean, one_line
from holdfast.ports import Store

_GOES_ON = re.compile(r"holdfast (?:resume|retry|replay|plan|run)\b(?: [^ ]+)*")
REPLAN = StepId("")  # under which the words stand that speak against the plan
EXIT = {
    "completed": 0,
    "failed": 1,
    "blocked": 1,
    "waiting": 3,
    "limit": 5,
    "escalated": 8,
    "paused": 130,
}
NO_KEY = "credentials_missing"
_CREDENTIALS = 4
_WITH_REASON = frozenset({"limit", "escalated", "blocked"})
MOST_STEPS = 20
MOST_TIMED = 2000


def conclude(
    store: Store, state: State, file: str | None, *, as_json: bool, driven: bool = True
) -> int:
    """Print what a run came to; its exit code."""
    now = wire.now_ms()
    if as_json:
        out_json(run_told(store, state, file))
    else:
        usual = usual_times(store, state) if state.counts["reused"] else {}
        saved = sum(usual.get(s, 0) for s in state.steps if shown_phase(state, s) == "reused")
        words = last_words(store, state) | waiting_since(store, state) | doubted(store, state)
        money = money_of(store, state, file)
        print_lines(end_block(state, now, driven=driven, words=words, saved_ms=saved, money=money))
    return exit_code(state)


def exit_code(state: State) -> int:
    """What a run that came so far means to whoever called."""
    if state.status == "running":
        return EXIT["paused"]
    if state.status == "failed" and any(
        step.phase == "failed" and step.reason is not None and step.reason.code == NO_KEY
        for step in state.steps.values()
    ):
        return _CREDENTIALS
    return EXIT.get(str(state.status), 1)


def money_of(store: Store, state: State, file: str | None) -> Money:
    """What is known of a run's money beside the run itself."""
    looked = None
    if state.spent.calls and state.status == "completed":
        from holdfast.engine.outlays import account, newest_runs

        runs = newest_runs(store, state.project, state.line)
        looked = looked_back(account(store, runs)).get(state.run)
    why, own = limit_words(store, state), own_of(state, file)
    return Money(saved_of(store, state), looked, why, own)


def saved_of(store: Store, state: State) -> Saved:
    """What reuse saved a run; nothing is read if it asks no model."""
    asks = any(asked_models(step) for step in state.plan.steps.values())
    if not state.counts["reused"] or not asks:
        return Saved()
    from holdfast.engine.outlays import saved_in

    return saved_in(store, state)


def run_told(store: Store, state: State, file: str | None) -> dict[str, Json]:
    """A run as programs read it, with what people were asked and what they asked for."""
    saved = saved_of(store, state)
    driven = state.status == "running" and wire.is_driven(store, state)
    return run_json(
        state,
        file=file,
        now=wire.now_ms() if driven else 0,
        asked=asked_in(store, state),
        additions=additions(store, state),
        saved=None if saved.unpriced else saved.cost,
        replaces=led_to(store, state),
    )


def doubted(store: Store, state: State) -> dict[StepId, str]:
    """What speaks against the plan of a run, a line each."""
    if state.replan is None:
        return {}
    if is_settled(store, state):
        return {REPLAN: again("what spoke against its plan no longer does: holdfast resume")}
    lines = [sentence(Reason("replan_wanted", state.replan.triggers))]
    with suppress(IntegrityError):
        lines = replan_lines(doubts(store.get(state.replan.words)))
    if state.replanned is not None:
        lines.append(f"plan {state.replanned[:12]} took its place")
    elif not state.ended:
        lines += ready_lines(state.plan)
    return {REPLAN: "\n".join(lines)}


def is_settled(store: Store, state: State) -> bool:
    """Whether what a run is held for was answered since, or is gone from the ledger."""
    if state.replan is None or state.ended or state.replanned is not None:
        return False
    return not unanswered(store, state, wire.alike)


def usual_times(store: Store, state: State) -> dict[StepId, int]:
    """How many milliseconds the steps of a run usually take; of a very large plan nobody waits for that."""
    if len(state.steps) > MOST_TIMED:
        return {}
    from holdfast.engine.foresee import timings

    found = timings(store, state.plan, state.line)
    return {step_id: timing.p50 for step_id, timing in found.items()}


def last_words(store: Store, state: State) -> dict[StepId, str]:
    """What the last attempt of each failed step was refused with, as far as it is still there."""
    words = {}
    for step_id, step in state.steps.items():
        if step.phase == "failed" and step.said is not None:
            with suppress(IntegrityError):
                words[step_id] = clean(store.get(step.said).decode("utf-8", "replace"))
    return words


def end_block(
    state: State,
    now: int,
    *,
    driven: bool = True,
    words: Mapping[StepId, str] | None = None,
    saved_ms: int = 0,
    money: Money = NO_MONEY,
) -> list[str]:
    """What a run came to, and what to do next.

    `driven` is false if no engine drives it any more; `words` is what is known of failed and waiting ones.
    """
    lines = [headline(state, now, driven=driven, saved_ms=saved_ms, saved=money.saved)]
    lines += money_lines(state, money)
    lines += failure_lines(state, words or {})
    for step in state.steps.values():
        lines += choices(step.reason) if step.phase == "failed" and step.reason else []
    lines += _waiting(state, words or {})
    lines += _gaps(state)
    if state.status == "blocked":
        lines += _blocked(state)
    elif skipped := state.counts["skipped"] - state.unselected:
        lines.append(f"{SIGNS['skipped']} {_steps(skipped)} skipped because of that")
    lines += _left_out(state)
    if state.status in {"paused", "escalated"} and state.counts["pending"]:
        lines.append(f"{SIGNS['pending']} {_unfinished(state)}; nothing done is lost")
    if is_planning(state.line):
        keep_here(replace(here_now(), plan_id=state.line, goal=state.plan.goal))
    lines.append(again(f"next: {next_commands(state, driven=driven, own=money.own)}"))
    return [one_line(line) for line in lines]


def _unfinished(state: State) -> str:
    """How many steps were not begun, and how many were tried and are not through."""
    pending = [step for step in state.steps.values() if step.phase == "pending"]
    tried = sum(step.attempts > 0 for step in pending)
    counted = {"not begun": len(pending) - tried, "not finished": tried}
    return ", ".join(f"{count} {words}" for words, count in counted.items() if count)


def _left_out(state: State) -> list[str]:
    """How many steps were not selected, and how many their conditions left out."""
    if not state.unselected:
        return []
    codes = Counter(
        s.reason.code for s in state.steps.values() if s.phase == "skipped" and s.reason
    )
    unmet = codes["condition_unmet"] + codes["condition_above"]
    counted = {"not selected": state.unselected - unmet, "left out by a condition": unmet}
    return [
        f"{SIGNS['skipped']} {_steps(count)} {words}" for words, count in counted.items() if count
    ]


def _gaps(state: State) -> list[str]:
    names = ", ".join(list(state.gaps)[:MOST_STEPS])
    return [f"{SIGNS['skipped']} gaps: {names} (skipped by a person)"] if state.gaps else []


def _cut_off(state: State) -> list[StepId]:
    """The selected steps that need one which was left out and would have to run."""
    return [s for s in state.graph.order if state.steps[s].phase == "skipped" and state.may_run(s)]


def _blocked(state: State) -> list[str]:
    lines = []
    if state.rest is not None and state.rest.code == "deadlocked":
        lines += [f"! {stuck}: {_why_stuck(state, StepId(stuck))}" for stuck in state.rest.because]
    for step_id in _cut_off(state)[:MOST_STEPS]:
        reason = state.steps[step_id].reason
        names = ", ".join(reason.because) if reason else ""
        lines.append(f"! {step_id} needs {names}, which would have to run and is not selected")
    return lines


def _why_stuck(state: State, step_id: StepId) -> str:
    """Why a step can never start: what it takes, or that something above it never comes."""
    takes = state.plan.steps[step_id].resources
    if not takes:
        return "what it needs never comes"
    asked = ", ".join(f"{count} of {name}" for name, count in sorted(takes.items()))
    return f"it takes {asked}, and there is less"


def _steps(count: int) -> str:
    return "1 step was" if count == 1 else f"{count} steps were"


def headline(
    state: State, now: int, *, driven: bool, saved_ms: int = 0, saved: Saved = NO_MONEY.saved
) -> str:
    """The run in one line."""
    counts = state.counts
    complete = counts["done"] + counts["reused"]
    abandoned = state.status == "running" and not driven
    took = seconds(worked_ms(state, now if driven else 0))
    word = "running, engine gone" if abandoned else str(state.status)
    time = f", saved ~{seconds(saved_ms)}" if saved_ms >= 1000 else ""  # noqa: PLR2004 - a second
    spent = spent_words(state, saved.cost, saved.unpriced, driven=driven)
    paid = f" · {spent}" if spent else ""
    why = ""
    if state.status in _WITH_REASON and state.rest is not None:
        why = f" · {sentence(state.rest)}"
    failed = f", {counts['failed']} failed" if counts["failed"] else ""
    gaps = len(state.gaps)
    without = f", {gaps} gap{'s' if gaps > 1 else ''}" if gaps else ""
    return (
        f"{short(state.run)} {word} · {complete} of {len(state.steps)} done"
        f" · {counts['reused'] - gaps} reused, {counts['done']} ran{failed}{without}"
        f"{paid} · {took}{time}{why}"
    )


def last_sign(state: State) -> int:
    """The latest moment at which anything is known of a run that nobody drives."""
    if state.status != "running":
        return state.ended_at
    return max((step.started_at + step.duration_ms for step in state.steps.values()), default=0)


def _waiting(state: State, words: Mapping[StepId, str]) -> list[str]:
    waiting = [s for s in state.graph.order if state.steps[s].phase == "waiting"]
    lines = []
    for step_id in waiting[:MOST_STEPS]:
        why = waiting_words(state.plan.steps[step_id], state.steps[step_id])
        told = ", ".join(filter(None, (why, words.get(step_id))))
        lines.append(f"{SIGNS['waiting']} {step_id}: {told}")
    if len(waiting) > MOST_STEPS:
        lines.append(f"{SIGNS['waiting']} {len(waiting) - MOST_STEPS} more wait")
    lines += conflict_lines(state)
    lines += [f"! {line}" for line in words.get(REPLAN, "").splitlines()]
    return lines


def next_commands(
    state: State,
    *,
    driven: bool = True,
    own: Own = NO_MONEY.own,
    answered: Collection[StepId] = (),
) -> str:
    """The commands that fit where a run stands; nobody is asked about steps that are `answered`.

    Its plan is answered under `REPLAN`.
    """
    usual = _usual_next(state, driven=driven, own=own, answered=answered)
    usual = possible(usual) or "holdfast status"
    ticket = state.plan.origin.get("ticket")
    if not isinstance(ticket, Mapping):
        return usual
    resumes = f"holdfast work {ticket['id']}"  # tickets are gone on with by their own command
    return _GOES_ON.sub(resumes, usual)


def _usual_next(state: State, *, driven: bool, own: Own, answered: Collection[StepId]) -> str:
    if state.status == "running":
        return "holdfast attach    holdfast stop" if driven else "holdfast resume"
    if state.status in {"failed", "escalated"} and (mends := failure_next(state)):
        return "    ".join(mends)
    if state.status == "waiting" and state.replan is not None:
        held = [] if REPLAN in answered else held_commands(state.plan)
        return "    ".join(held or ["holdfast resume", "holdfast ledger"])
    if state.status == "waiting":
        waiting = [s for s in state.graph.order if state.steps[s].phase == "waiting"]
        first = next((s for s in waiting if s not in answered), None)
        if first is None and waiting:
            return "holdfast resume    holdfast status"
        if first is None:  # all is made, and agents disagree about it
            return (
                f"holdfast conflicts    holdfast resolve {next(iter(state.conflicts))} --take STEP"
            )
        reason = state.steps[first].reason
        offers = commands(state.plan.steps[first], reason)
        if reason is not None and reason.code in FOR_A_PERSON:
            offers = [f"holdfast why {named(first)} --run @", f"holdfast retry {named(first)}"]
        return "    ".join(offers)
    if state.status == "blocked" and (cut := _cut_off(state)):
        return f"holdfast run -s +{named(cut[0])}    holdfast run"
    if state.status == "limit":
        return "    ".join(going_on(state, own))
    if state.status in {"paused", "blocked", "failed", "escalated"}:
        return "holdfast resume    holdfast status"
    made = (s for s in reversed(state.graph.order) if state.steps[s].phase in COMPLETE)
    last = next(made, None)
    if state.status == "completed" and last is not None:
        return f"holdfast show {named(last)}    holdfast plan"
    return "holdfast status    holdfast plan"


def print_lines(lines: list[str]) -> None:
    """Lines of the result, none wider than the terminal; commands are not broken."""
    width = width_now()
    for line in lines:
        for piece in folded(line, width):
            out(piece)
