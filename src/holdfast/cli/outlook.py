"""The preview as people read it: a table of what would happen to each step, and why.

Everything here gives lines of text; they are made safe and coloured when they are printed.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from holdfast.cli.additions import left_out
from holdfast.cli.again import again, folded
from holdfast.cli.ahead import Ahead
from holdfast.cli.cause import OPEN, few, sign, why
from holdfast.cli.measure import age_words, count
from holdfast.cli.mix import models_words
from holdfast.cli.money import UNKNOWN, estimate_words
from holdfast.cli.prices import (
    bound_lines,
    far_off,
    open_lines,
    price_parts,
    total_words,
    unpriced_lines,
)
from holdfast.cli.say import short, shown, write
from holdfast.cli.titles import plan_title
from holdfast.cli.view import View, view
from holdfast.core.estimate import total
from holdfast.core.history import NO_HISTORY
from holdfast.core.preview import Outlook
from holdfast.core.reasons import sentence
from holdfast.engine.foresee import Earlier
from holdfast.model.event import Reason
from holdfast.model.items import base_of, spelled_out
from holdfast.model.money import dollars
from holdfast.model.plan import StepId, plan_digest
from holdfast.model.text import cells, cut, one_line, wrap
from holdfast.wire import now_ms

MOST_ROWS = 30
MOST_COLUMNS = 80  # of a line that is cut even where lines have no bound
FEWEST = 3  # steps that are worth a group
_PASSING = {"upstream_changed", "dependency_failed", "dependency_skipped", "awaiting_person"}
_HINT = "(list: -v)"
_PRUNE = "holdfast run --removed prune"
_PLAIN = 72  # where the last column begins at most, if lines are never cut
_COLOURS = {"+": "32", "~": "33", "?": "36", "-": "31", "!": "31"}  # the others are signs of states
_SIGN = re.compile(r"^ ([+~?!-])(?= )")
SPOKEN = {
    "+": "runs for the first time",
    "~": "runs again",
    "?": "may run",
    "=": "is reused",
    "⏸": "waits",
    "-": "left the plan",
    "!": "cannot run",
    "–": "is left out",
}


_COUNTED = {
    "!": "cannot run",
    "⏸": "waiting",
    "+": "first time",
    "~": "again",
    "?": "maybe",
    "–": "left out",
    "=": "reused",
}


class Row(NamedTuple):
    """One line of the table; `below` are further lines that belong to it."""

    sign: str
    name: str
    why: str
    cost: str = ""
    time: str = ""
    below: tuple[str, ...] = ()


def table(ahead: Ahead, how: View, *, verbose: int = 0, commands: Sequence[str] = ()) -> list[str]:
    """The whole screen."""
    rows = [*rows_of(ahead, verbose), *_removed(ahead, verbose)]
    lines = [head(ahead), ""]
    if verbose:
        lines += [*_lists(ahead), ""]
    lines += _totals(ahead)
    folded = [piece for line in lines for piece in wrap(one_line(line), how.width)]
    drawn = [*_drawn(rows, how), ""] if rows else []
    top = folded.index("") + 1
    return [*folded[:top], *drawn, *folded[top:], *next_lines(commands, how)]


def print_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines, made safe first and coloured then."""
    stream = sys.stderr if err else sys.stdout
    if stream is None:
        return
    made = (shown(line, stream) for line in lines)
    text = "".join((_SIGN.sub(_painted, t) if view().colour else t) + "\n" for t in made)
    if err:
        stream.write(text)
        stream.flush()
    else:
        write(text, now=True)


def _painted(found: re.Match[str]) -> str:
    return f" \x1b[{_COLOURS[found[1]]}m{found[1]}\x1b[0m"


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


def compared(ahead: Ahead, now: int) -> str:
    """What the plan is compared with, in words."""
    earlier = ahead.earlier
    if earlier is None:
        return "no earlier run"
    if earlier.run is None:
        return f"compared with {ahead.label}"
    return f"compared with {short(earlier.run)} ({age_words(now - earlier.at)})"


def head(ahead: Ahead) -> str:
    """The first line of a preview."""
    steps = count(len(ahead.outlooks), "step")
    if added := len(ahead.foreseen.added):
        steps += f" ({added} added)"
    what = f"{plan_title(ahead.plan)} · {steps} · plan {plan_digest(ahead.plan)[:12]}"
    return f"{what} · {compared(ahead, now_ms())}"


# --- rows --------------------------------------------------------------------------------------------------


def rows_of(ahead: Ahead, verbose: int = 0) -> list[Row]:
    """The steps of a preview, those that are reused in one row unless all are wanted."""
    listed = {
        s: o for s, o in ahead.outlooks.items() if verbose or o.is_work or o.decision != "reuse"
    }
    hidden = len(ahead.outlooks) - len(listed)
    if verbose or len(listed) <= MOST_ROWS:
        rows = [_row(ahead, step_id, outlook, verbose) for step_id, outlook in listed.items()]
    else:
        items = _items(ahead, listed)
        told = {step_id for members in items.values() for step_id in members}
        hidden -= len(told - listed.keys())
        rows = _grouped(ahead, {s: o for s, o in listed.items() if s not in told}, items)
    if hidden:
        rows.append(Row("=", f"{hidden} reused", f"{saves(ahead)} {_HINT}".strip()))
    return rows


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


def _row(ahead: Ahead, step_id: StepId, outlook: Outlook, verbose: int) -> Row:
    took = ahead.timings.get(step_id, NO_HISTORY)
    makes = outlook.means == "make" and outlook.decision in {"run", "maybe"}
    time = rough(took.p50) if makes and took.attempts else ""
    cost = ahead.costs.get(step_id)
    price = estimate_words(cost) if cost else "$0" if ahead.costs and outlook.is_work else ""
    price += " each" if step_id in ahead.opened else ""
    return Row(
        sign(outlook),
        f"{step_id}[…]" if outlook.reason.code == OPEN else step_id,
        why(ahead, step_id, outlook),
        price,
        time,
        _digests(outlook) if verbose > 1 else (),
    )


def _digests(outlook: Outlook) -> tuple[str, ...]:
    refs = outlook.probe.refs if outlook.probe else None
    lines = []
    if refs and refs.config_ref:
        lines.append(f"config ref {refs.config_ref}")
    if outlook.artifact:
        lines.append(f"artifact   {outlook.artifact.digest}")
    return tuple(lines)


def _removed(ahead: Ahead, verbose: int) -> list[Row]:
    """The steps that left the plan; if they are many, in one row unless all are wanted."""
    if ahead.earlier is None:
        return []
    gone = ahead.changes.removed
    if verbose or len(gone) <= MOST_ROWS:
        return [Row("-", s, removed_words(ahead.earlier, s)) for s in gone]
    keeps = any(ahead.earlier.plan.steps[s].produces for s in gone)
    kept = f"; their files are kept (delete: {again(_PRUNE)})" if keeps else ""
    return [Row("-", f"{len(gone):,} steps", f"left the plan{kept} {_HINT}")]


def removed_words(earlier: Earlier, step_id: StepId) -> str:
    """That a step left the plan, and what becomes of its files."""
    paths = ", ".join(earlier.plan.steps[step_id].produces)
    prune = again(_PRUNE)
    return f"left the plan; {paths} is kept (delete: {prune})" if paths else "left the plan"


# --- groups ------------------------------------------------------------------------------------------------


def _items(ahead: Ahead, shown: dict[StepId, Outlook]) -> dict[StepId, list[StepId]]:
    """The items of each step of which several are shown, those that are not shown too."""
    found: dict[StepId, list[StepId]] = {}
    for step_id in ahead.outlooks:
        if (base := base_of(step_id)) is not None:
            found.setdefault(base, []).append(step_id)
    return {
        base: members
        for base, members in found.items()
        if sum(step_id in shown for step_id in members) >= FEWEST
    }


def _item_row(ahead: Ahead, base: StepId, members: Sequence[StepId]) -> Row:
    """The items of a step in one row: how many of them go which way."""
    signs = Counter(sign(ahead.outlooks[step_id]) for step_id in members)
    words = ", ".join(f"{signs[mark]:,} {word}" for mark, word in _COUNTED.items() if signs[mark])
    return Row(
        next(mark for mark in _COUNTED if signs[mark]),
        f"{base}[…] ×{len(members):,}",
        words,
        _cost_of(ahead, members),
    )


def _cost_of(ahead: Ahead, members: Iterable[StepId]) -> str:
    found = {s: ahead.costs[s] for s in members if s in ahead.costs}
    return total_words(total(found)) if found else "$0" if ahead.costs else ""


def _grouped(
    ahead: Ahead, shown: dict[StepId, Outlook], items: Mapping[StepId, Sequence[StepId]]
) -> list[Row]:
    """Steps with the same sign and reason below the same cause share a row, where the first of them is."""
    groups: dict[tuple[str, str, str], list[StepId]] = {}
    for step_id, outlook in shown.items():
        root = _root(ahead, step_id)
        cause = "" if root == step_id else root
        groups.setdefault((sign(outlook), outlook.reason.code, cause), []).append(step_id)
    rows = [_item_row(ahead, base, members) for base, members in items.items()]
    for (mark, code, cause), members in groups.items():
        if len(members) < FEWEST:
            rows += [_row(ahead, step_id, shown[step_id], 0) for step_id in members]
        else:
            rows.append(_group(ahead, mark, code, cause, members))
    return rows


def _group(ahead: Ahead, mark: str, code: str, cause: str, members: Sequence[StepId]) -> Row:
    if mark == "?" and cause:
        words = f"only if {cause} changes"
    elif cause:
        words = f"below {cause}"
    else:
        words = sentence(Reason(code))
    named = f"{words}: {few(members)}"
    return Row(mark, count(len(members), "step"), named, _cost_of(ahead, members))


def _root(ahead: Ahead, step_id: StepId) -> StepId:
    """The step at the beginning of the chain of causes."""
    seen = set()
    while step_id not in seen:
        seen.add(step_id)
        reason = ahead.outlooks[step_id].reason
        if reason.code not in _PASSING:
            break
        if not reason.because or reason.because[0] not in ahead.outlooks:
            break
        step_id = StepId(reason.because[0])
    return step_id


# --- drawing -----------------------------------------------------------------------------------------------


def _drawn(rows: Sequence[Row], how: View) -> list[str]:
    if how.mode == "a11y":
        return [one_line(_spoken(row)) for row in rows]
    rows = [
        row._replace(name=one_line(spelled_out(row.name)), why=one_line(spelled_out(row.why)))
        for row in rows
    ]
    names = max(len("STEP"), *(cells(row.name) for row in rows))
    times = max(cells(row.time) for row in rows)
    whys = max(len("WHY"), *(cells(row.why) for row in rows))
    times = max(times, len("TIME")) if times else 0
    costs = max(cells(row.cost) for row in rows)
    costs = max(costs, len("COST")) if costs else 0
    if how.width:
        names = min(names, max(12, how.width * 2 // 5))
        taken = names + times + 7 + (costs + 2 if costs else 0)
        whys = max(12, min(whys, how.width - taken))
    else:
        whys = min(whys, _PLAIN)
    title = Row(" ", "STEP", "WHY", "COST" if costs else "", "TIME" if times else "")
    widths = (names, whys, costs, times)
    lines = _line(title, widths, how)
    for row in rows:
        lines += _line(row, widths, how)
        lines += [piece for text in row.below for piece in wrap(f"     {text}", how.width)]
    return lines


def _spoken(row: Row) -> str:
    if row.sign == "=" and row.name.endswith(" reused"):
        return f"{row.name}, {row.why}"
    cost = f", costs {row.cost}" if row.cost else ""
    return f"{row.name}: {SPOKEN[row.sign]}: {row.why}{cost}"


def _line(row: Row, widths: tuple[int, int, int, int], how: View) -> list[str]:
    names, whys, costs, times = widths
    name = cut(row.name, names) if how.width else row.name
    first, *rest = wrap(row.why, whys, indent=2) if how.width else [row.why]
    cost = f"  {_padded(row.cost, costs)}" if costs else ""
    line = (
        f" {row.sign} {_padded(name, names)}  {_padded(first, whys)}{cost}  {row.time:>{times}}"
    ).rstrip()
    return [line, *(f"   {'':<{names}}  {piece}" for piece in rest)]


def _padded(text: str, width: int) -> str:
    return text + " " * max(0, width - cells(text))


def next_lines(commands: Sequence[str], how: View) -> list[str]:
    """The end of a preview: as many of the commands as fit, the first in any case."""
    if not commands:
        return []
    while len(commands) > 1 and how.width and cells(_commands(commands)) > how.width:
        commands = commands[:-1]
    return ["", *folded(_commands(commands), how.width)]


def _commands(commands: Sequence[str]) -> str:
    return "next: " + "    ".join(commands)


# --- sums --------------------------------------------------------------------------------------------------


def _lists(ahead: Ahead) -> list[str]:
    """What is skipped and what is built, by name."""
    lines = []
    for word, decision in (("Skip", "reuse"), ("Build", "run"), ("Maybe", "maybe")):
        names = [s for s, o in ahead.outlooks.items() if o.decision == decision]
        if names:
            lines.append(f"{word} ({len(names)}): {', '.join(names)}")
    return lines


def _totals(ahead: Ahead) -> list[str]:
    sure, maybe, steps = ahead.count("run"), ahead.count("maybe"), len(ahead.outlooks)
    reused, estimate = ahead.count("reuse"), ahead.estimate
    lines = []
    if sure or maybe:
        span = f"{sure}–{sure + maybe}" if maybe else str(sure)
        lines.append(
            " · ".join(
                [f"Runs {span} of {steps}", *price_parts(ahead), *_times(ahead), *_stops(ahead)]
            )
        )
        lines += [f"Models: {models_words(ahead.models, MOST_COLUMNS - 8)}"] if ahead.models else []
    elif ahead.is_work:
        lines.append(" · ".join(["Runs nothing", *_stops(ahead)]))
    elif reused == steps:
        stand = "its one step stands" if steps == 1 else f"all {steps} steps stand"
        held = f"Runs nothing: {stand}, but a run would wait until somebody decides about the plan."
        lines.append(held if ahead.is_held else f"Nothing to do: {stand}.")
    else:
        cut = [s for s, o in ahead.outlooks.items() if o.reason.code == "dependency_skipped"]
        what = f"Cannot run {', '.join(cut[:5])}: add what it needs, -s +{cut[0]}" if cut else ""
        lines.append(" · ".join([what or "Nothing to do", *_stops(ahead)]))
    if reused and (sure or maybe):
        saved = f", {words}" if (words := saves(ahead)) else ""
        lines.append(f"Reuses {reused} of {steps} ({reused * 100 // steps} %){saved}")
    lines += [*_since(ahead), *unpriced_lines(ahead), *notes(ahead), *open_lines(ahead)]
    if estimate.attempts:
        lines.append(
            f"Estimates from {count(estimate.attempts, 'earlier attempt')}; "
            f"{count(estimate.without_history, 'step')} without history."
        )
    elif estimate.without_history:
        what = "times" if ahead.money.p50 else "estimates"
        lines.append(f"No {what}: {count(estimate.without_history, 'step')} without history.")
    return lines


def notes(ahead: Ahead) -> list[str]:
    """What somebody should know before he says yes: what would fail, be written, be left out, or stop."""
    found = [*_idle(ahead), *_unrecorded(ahead), *_written(ahead)]
    found += [*left_out(ahead.last, ahead.waiting), *far_off(ahead)]
    return [*found, *bound_lines(ahead)]


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
    paths = [*dict.fromkeys(chain.from_iterable(o.written for o in ahead.outlooks.values()))]
    if paths:
        yield f"Writes {count(len(paths), 'file')} from the store: {few(paths)}"
    paths = [*dict.fromkeys(chain.from_iterable(o.removed for o in ahead.outlooks.values()))]
    if paths:
        yield f"Removes {count(len(paths), 'file')} again: {few(paths)}"


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
