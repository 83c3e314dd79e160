"""The preview wave by wave: who does each step, what all of it takes, and how the plan changed.

Everything here gives lines of text; they are made safe and coloured when they are printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from holdfast.cli.ahead import DECISIONS, Ahead
from holdfast.cli.cause import few, sign, why
from holdfast.cli.measure import count
from holdfast.cli.mix import models_words
from holdfast.cli.outlook import (
    MOST_ROWS,
    SPOKEN,
    compared,
    head,
    next_lines,
    notes,
    removed_words,
    saves,
    time_words,
)
from holdfast.cli.prices import open_lines, price_words, unpriced_lines
from holdfast.cli.view import View
from holdfast.core.mix import doer
from holdfast.core.reasons import sentence
from holdfast.model.event import Reason
from holdfast.model.money import dollars
from holdfast.model.plan import StepId
from holdfast.model.text import cells, cut, one_line, wrap
from holdfast.wire import now_ms

MOST_IN_WAVE = 10  # steps of a wave, where a plan has more than fit on a screen
_DESCRIBED = 50  # columns of a description
_FIRST = sentence(Reason("never_ran"))
_UNCHANGED = re.compile(r"unchanged( \([0-9a-f]+\))?")
_DECIDED = dict(zip(DECISIONS, ("run", "reused", "may run", "wait"), strict=True))


def waves(ahead: Ahead, how: View, *, verbose: int = 0, commands: Sequence[str] = ()) -> list[str]:
    """The whole screen."""
    lines = [head(ahead), *_waves(ahead, how, verbose), "", "Estimates", *_estimates(ahead, how)]
    if changes := _changes(ahead):
        lines += ["", f"Changes, {compared(ahead, now_ms())}", *changes]
    if told := notes(ahead):
        lines += ["", *told]
    fitting = [piece for line in lines for piece in wrap(one_line(line), how.width)]
    return [*fitting, *next_lines(commands, how)]


# --- waves -------------------------------------------------------------------------------------------------


def _waves(ahead: Ahead, how: View, verbose: int) -> Iterable[str]:
    levels = ahead.foreseen.graph.waves()
    has_room = verbose or len(ahead.outlooks) <= MOST_ROWS
    for number, level in enumerate(levels, 1):
        if not has_room and number > MOST_ROWS:
            yield from ("", f"… {count(len(levels) - MOST_ROWS, 'more wave')} (list: -v)")
            return
        yield from ("", _title(number, len(level), how))
        kept = level if has_room else level[:MOST_IN_WAVE]
        for step_id in kept:
            yield from _step(ahead, step_id, how, verbose)
        if hidden := len(level) - len(kept):
            yield f"   … {hidden} more (list: -v)"


def _title(number: int, steps: int, how: View) -> str:
    if how.mode == "a11y":
        return f"Wave {number}, {count(steps, 'step')}{' side by side' if steps > 1 else ''}"
    return f"Wave {number} {'⚡' if steps > 1 else '→'}"


def _step(ahead: Ahead, step_id: StepId, how: View, verbose: int) -> Iterable[str]:
    step, mark = ahead.foreseen.plan.steps[step_id], sign(ahead.outlooks[step_id])
    makes = f" → {few(step.produces)}" if step.produces else ""
    if how.mode == "a11y":
        made = f", makes {few(step.produces)}" if step.produces else ""
        yield f"{step_id}, {doer(step)}{made}: {SPOKEN[mark]}"
    else:
        yield f" {mark} [{doer(step)}] {step_id}{makes}"
    if described := " ".join(step.description.split()):
        yield f"      {cut(one_line(described), _DESCRIBED)}"
    words = why(ahead, step_id, ahead.outlooks[step_id])
    if verbose or not _is_plain(mark, words):
        yield f"      {words}" if mark == "+" else f"      {SPOKEN[mark]}: {words}"


def _is_plain(mark: str, words: str) -> bool:
    """Whether the sign alone says it: made for the first time, or nothing changed."""
    return words == _FIRST if mark == "+" else mark == "=" and bool(_UNCHANGED.fullmatch(words))


# --- what it takes -----------------------------------------------------------------------------------------


def _estimates(ahead: Ahead, how: View) -> Iterable[str]:
    steps, levels = len(ahead.outlooks), len(ahead.foreseen.graph.waves())
    counts = ((ahead.count(decision), word) for decision, word in _DECIDED.items())
    told = ", ".join(f"{number} {word}" for number, word in counts if number)
    yield f"  Steps: {steps}" + (f" ({told})" if told else "")
    yield f"  Waves: {levels}"
    yield f"  Parallelization: {steps / max(1, levels):.1f}x"
    yield from _models(ahead, how)
    yield f"  Tokens: {_tokens(ahead)}"
    yield f"  Cost: {_cost(ahead)}"
    yield from (f"  {line}" for line in [*unpriced_lines(ahead), *open_lines(ahead)])
    yield f"  Time: {_time(ahead)}"
    if reused := ahead.count("reuse"):
        saved = f", {words}" if (words := saves(ahead)) else ""
        yield f"  Reuse: {reused} of {steps} ({reused * 100 // steps} %){saved}"


def _models(ahead: Ahead, how: View) -> Iterable[str]:
    """On one line if that has room, else each on its own."""
    line = f"  Models: {models_words(ahead.models) or 'none'}"
    if not how.width or cells(line) <= how.width:
        yield line
        return
    for number, (model, mix) in enumerate(ahead.models.items()):
        yield f"{'          ' if number else '  Models: '}{models_words({model: mix})}"


def _tokens(ahead: Ahead) -> str:
    found = ahead.used
    if not ahead.models:
        return "0"
    high = f", {found.p90:,} high" if found.p90 != found.p50 else ""
    return f"~{found.p50:,} typical{high}{_unknown(found.without_history)}"


def _cost(ahead: Ahead) -> str:
    if not ahead.models:
        return "$0"
    budget = f"; budget {dollars(ahead.budget)}" if ahead.budget is not None else ""
    return f"{price_words(ahead)}{_unknown(ahead.money.without_history)}{budget}"


def _time(ahead: Ahead) -> str:
    estimate = ahead.estimate
    if estimate.attempts:
        return f"{time_words(ahead)}{_unknown(estimate.without_history)}"
    return "no history" if estimate.without_history else "0s"


def _unknown(without_history: int) -> str:
    return f"; no history for {count(without_history, 'step')}" if without_history else ""


# --- what changed ------------------------------------------------------------------------------------------


def _changes(ahead: Ahead) -> list[str]:
    """How the plan differs from the one it is compared with; nothing if there is none."""
    if ahead.earlier is None:
        return []
    found = ahead.changes
    other = [s for s in found.edited if s not in {*found.contract_changed, *found.deps_changed}]
    parts = (
        ("Added", found.added),
        ("Removed", found.removed),
        ("Contract changed", found.contract_changed),
        ("Dependencies changed", found.deps_changed),
        ("Changed otherwise", other),
        ("Output modified", found.output_modified),
    )
    lines = [f"  {word}: {len(names)} ({few(names)})" for word, names in parts if names]
    left = [step for step in found.removed if ahead.earlier.plan.steps[step].produces]
    lines += [f"  {step}: {removed_words(ahead.earlier, step)}" for step in left]
    changed = found.all_changed.union(other)
    return [*lines, f"  Unchanged: {sum(step not in changed for step in ahead.plan.steps)}"]
