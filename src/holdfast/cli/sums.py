"""What a preview comes to: steps, money and time, what is reused and saved, and what to know before a yes.

Everything here gives lines of text, as in the table of a preview.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.cli.additions import left_out
from holdfast.cli.ahead import Ahead
from holdfast.cli.measure import count
from holdfast.cli.mix import models_words
from holdfast.cli.money import UNKNOWN
from holdfast.cli.provisions import unpriced, unpriced_words
from holdfast.cli.say import short
from holdfast.model.money import dollars, dollars_left, dollars_needed

MOST_COLUMNS = 80  # of a line that is cut even where lines have no bound
NAMED = 3  # steps that a group names


def rough(milliseconds: int) -> str:
    """A duration as an estimate deserves: 0.4s, 20s, 1m 08s, 2h 05m."""
    seconds = milliseconds / 1000
    if seconds < 9.95:  # noqa: PLR2004 - below ten a tenth still says something
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004 - a minute
        return f"{whole}s"
    minutes, left = divmod(whole, 60)
    if minutes < 60:  # noqa: PLR2004 - an hour
        return f"{minutes}m {left:02}s"
    return f"{minutes // 60}h {minutes % 60:02}m"


def saves(ahead: Ahead) -> str:
    """What reuse saves: money, where models made it, and time."""
    parts = []
    if ahead.saved.cost:
        parts.append(f"~{dollars(ahead.saved.cost)}")
    elif ahead.saved.unpriced:
        parts.append(f"money ({UNKNOWN})")
    if ahead.estimate.saved:
        parts.append(f"~{rough(ahead.estimate.saved)}")
    return f"saves {', '.join(parts)}" if parts else ""


def few(names: Sequence[str]) -> str:
    """The first of some names, and how many there are beside them."""
    more = len(names) - NAMED
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


def price_words(ahead: Ahead) -> str:
    """What a run may cost: typical, high, and how many steps nobody knows the price of."""
    found, parts = ahead.money, []
    if found.p90 or not found.unknown:
        low, high = dollars(found.p50), dollars(found.p90)
        parts.append(f"{low} typical" + (f", {high} high" if high != low else ""))
    if found.unknown:
        parts.append(f"{UNKNOWN} for {count(found.unknown, 'step')}")
    return ", ".join(parts)


def lists(ahead: Ahead) -> list[str]:
    """What is skipped and what is built, by name."""
    lines = []
    for word, decision in (("Skip", "reuse"), ("Build", "run"), ("Maybe", "maybe")):
        names = [s for s, o in ahead.outlooks.items() if o.decision == decision]
        if names:
            lines.append(f"{word} ({len(names)}): {', '.join(names)}")
    return lines


def totals(ahead: Ahead) -> list[str]:
    """What a run comes to: steps, money, time, who is asked, what is reused, and what to know before."""
    sure, maybe, steps = ahead.count("run"), ahead.count("maybe"), len(ahead.outlooks)
    reused, estimate = ahead.count("reuse"), ahead.estimate
    lines = []
    if sure or maybe:
        span = f"{sure}–{sure + maybe}" if maybe else str(sure)
        lines.append(
            " · ".join([f"Runs {span} of {steps}", *_prices(ahead), *_times(ahead), *_stops(ahead)])
        )
        lines += [f"Models: {models_words(ahead.models, MOST_COLUMNS - 8)}"] if ahead.models else []
    elif ahead.is_work:
        lines.append(" · ".join(["Runs nothing", *_stops(ahead)]))
    elif reused == steps:
        stand = "its one step stands" if steps == 1 else f"all {steps} steps stand"
        lines.append(f"Nothing to do: {stand}.")
    else:
        cut = [s for s, o in ahead.outlooks.items() if o.reason.code == "dependency_skipped"]
        what = f"Cannot run {', '.join(cut[:5])}: add what it needs, -s +{cut[0]}" if cut else ""
        lines.append(" · ".join([what or "Nothing to do", *_stops(ahead)]))
    if reused and (sure or maybe):
        saved = f", {words}" if (words := saves(ahead)) else ""
        lines.append(f"Reuses {reused} of {steps} ({reused * 100 // steps} %){saved}")
    lines += [*_since(ahead), *unpriced_lines(ahead), *notes(ahead)]
    if estimate.attempts:
        lines.append(
            f"Estimates from {count(estimate.attempts, 'earlier attempt')}; "
            f"{count(estimate.without_history, 'step')} without history."
        )
    elif estimate.without_history:
        lines.append(f"No estimates: {count(estimate.without_history, 'step')} without history.")
    return lines


def notes(ahead: Ahead) -> list[str]:
    """What somebody should know before he says yes: what would fail, be written, be left out, or stop."""
    found = [*_idle(ahead), *_unrecorded(ahead), *_written(ahead)]
    found += [*left_out(ahead.last, ahead.waiting), *_far_off(ahead)]
    return [*found, *bound_lines(ahead)]


def unpriced_lines(ahead: Ahead) -> Iterable[str]:
    """That a run would be refused, as nobody knows what its bound is to be compared with."""
    if ahead.costs and (unknown := unpriced(ahead.where.root, ahead.foreseen)):
        yield f"! {unpriced_words(unknown)}: give it in [prices] of your own config.toml"


def bound_lines(ahead: Ahead) -> Iterable[str]:
    """The bounds that a run may come to and that are not its own budget: of tokens, a day, the project."""
    tokens, room = ahead.plan.limits.tokens, ahead.room
    if ahead.costs and tokens is not None and ahead.used.p90 > tokens:
        yield f"! limits.tokens is {tokens}, and this may use {ahead.used.p90}"
    if room is not None and ahead.money.p90 > room.left:
        name = room.budget.partition(" ")[0]
        yield (
            f"! of the {dollars(room.most)} for the {name} {dollars_left(max(0, room.left))} is left,"
            f" and this may cost {dollars_needed(ahead.money.p90)}"
        )


def _far_off(ahead: Ahead) -> Iterable[str]:
    """A warning that these estimates may be as wrong as the last."""
    if ahead.looked is not None and ahead.costs and ahead.looked[1].is_off:
        run, looked = ahead.looked
        yield (
            f"The last estimate was far off: {dollars(looked.expected)} expected,"
            f" {dollars(looked.actual)} spent in {short(run)}."
        )


def _prices(ahead: Ahead) -> list[str]:
    if not ahead.costs:
        return []
    budget = [f"budget {dollars(ahead.budget)}"] if ahead.budget is not None else []
    tokens = ahead.plan.limits.tokens
    limit = [f"limit {tokens} tokens"] if tokens is not None else []
    return [price_words(ahead), *budget, *limit]


def _times(ahead: Ahead) -> list[str]:
    return [time_words(ahead)] if ahead.estimate.attempts else []


def time_words(ahead: Ahead) -> str:
    """How long a run would take: typical, and high if that is far from it."""
    typical, high = ahead.estimate.typical, ahead.estimate.high
    far = high >= 10_000 and high * 4 >= typical * 5  # noqa: PLR2004 - worth a second number
    return f"~{rough(typical)}" + (f", high {rough(high)}" if far else "")


def _stops(ahead: Ahead) -> list[str]:
    stuck = sum(outlook.is_stuck for outlook in ahead.outlooks.values())
    left_out = sum(outlook.is_left_out for outlook in ahead.outlooks.values())
    waits = ahead.count("wait") - stuck - left_out
    unselected = sum(o.reason.code == "not_selected" for o in ahead.outlooks.values())
    return [
        *([f"{waits} wait{'s' if waits == 1 else ''} for a person"] if waits else []),
        *([f"{stuck} cannot run"] if stuck else []),
        *([f"{unselected} not selected"] if unselected else []),
    ]


def _idle(ahead: Ahead) -> Iterable[str]:
    """What to do about steps of which nobody said how they are done; a run begins none of them."""
    steps = ahead.foreseen.plan.steps
    if any(outlook.is_stuck and steps[s].is_idle for s, outlook in ahead.outlooks.items()):
        yield (
            "A run is refused: give each action a 'run' in a registry of agents, or "
            f"bring it in: holdfast import {ahead.where.file or 'FILE'} -o plan.yaml"
        )


def _unrecorded(ahead: Ahead) -> Iterable[str]:
    """Steps that would fail because nobody recorded an answer, and those of which nobody knows."""
    missing = [step for step, found in ahead.recorded.items() if found is False]
    unknown = [step for step, found in ahead.recorded.items() if found is None]
    if missing:
        yield f"No answer is recorded for {few(missing)}: holdfast run --record DIR asks a model"
    if unknown:
        yield f"Whether an answer is recorded shows when it is asked: {few(unknown)}"


def _written(ahead: Ahead) -> Iterable[str]:
    paths = [path for outlook in ahead.outlooks.values() for path in outlook.written]
    if paths:
        yield f"Writes {count(len(paths), 'file')} from the store: {few(paths)}"


def _since(ahead: Ahead) -> Iterable[str]:
    changes = ahead.changes
    parts = (
        (changes.added, "added"),
        (changes.removed, "removed"),
        (changes.contract_changed, "contract changed"),
        (changes.deps_changed, "dependencies changed"),
    )
    told = [f"{word}: {few(names)}" for names, word in parts if names]
    if told:
        yield "The plan itself: " + "; ".join(told)
