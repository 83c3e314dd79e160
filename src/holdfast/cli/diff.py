"""diff: what differs between two runs, two plans, two attempts, or between one of them and now."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from shlex import quote
from typing import NamedTuple

import click

from holdfast import wire
from holdfast.cli.again import again, out_next
from holdfast.cli.pieces import Contents, Piece, pieces
from holdfast.cli.place import Place, file_option, json_option, place, place_options
from holdfast.cli.say import out, out_edit, out_json, seconds, short
from holdfast.cli.sides import Attempt, Side, attempt, now, side
from holdfast.cli.view import view
from holdfast.core.compare import PlanChange, ValueChange, plan_change, text_change, value_changes
from holdfast.core.state import StepState
from holdfast.core.views import usd
from holdfast.errors import UsageError
from holdfast.model.digest import Json
from holdfast.model.items import step_named
from holdfast.model.money import dollars
from holdfast.model.plan import StepId
from holdfast.model.text import one_line, wrap
from holdfast.ports import Store

MOST_LINES = 40
WIDEST_VALUE = 60


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which parts were asked for; none means a summary of all."""

    plan: bool
    outputs: bool
    time: bool
    cost: bool
    full: bool
    steps: frozenset[StepId]

    @property
    def summary(self) -> bool:
        """Whether only a summary was asked for."""
        return not (self.plan or self.outputs or self.time or self.cost)


@dataclass(frozen=True, slots=True)
class Difference:
    """Everything that differs."""

    before: Side
    after: Side
    plan: PlanChange
    outputs: Sequence[Piece] | None
    times: dict[StepId, tuple[int, int]]
    costs: dict[StepId, tuple[int, int]]  # micro-dollars

    @property
    def is_empty(self) -> bool:
        """Whether plan and outputs are the same; how long it took is no difference."""
        return self.plan.is_empty and not self.outputs


@click.command(
    epilog="\b\nExample:\n  holdfast diff @-1 @\n  holdfast diff @-1 @ --outputs -s brief\n"
    "  holdfast diff main --plan\n  holdfast diff brief@1 brief@2"
)
@click.argument("before", metavar="A")
@click.argument("after", metavar="[B]", required=False)
@click.option("--plan", "plans", is_flag=True, help="Steps added, removed and changed, with text.")
@click.option("--outputs", is_flag=True, help="Artifacts: text, JSON values, or sizes.")
@click.option("--time", "times", is_flag=True, help="How long each step took.")
@click.option("--cost", "costs", is_flag=True, help="What each step cost.")
@click.option("-s", "--step", "steps", multiple=True, metavar="STEP", help="Only this step.")
@click.option("--full", is_flag=True, help="Whole diffs, however long.")
@click.option("--exit-code", is_flag=True, help="Exit 1 if something differs.")
@file_option
@place_options
@json_option
def diff(
    before: str,
    after: str | None,
    steps: tuple[str, ...],
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    plans: bool,
    outputs: bool,
    times: bool,
    costs: bool,
    full: bool,
    exit_code: bool,
    as_json: bool,
) -> int:
    """Say what differs between A and B; without B, between A and how things are now.

    A and B are runs (@ is the last, @-1 the one before, or an id), plan files, versions of a plan by their
    digest, git commits (plans only), or two attempts (STEP@1 STEP@2). What is equal is not shown.
    """
    wanted = Wanted(plans, outputs, times, costs, full, frozenset(map(StepId, steps)))
    found = compared(place(plan, store, plan_id), before, after, wanted)
    if as_json:
        out_json(found.data)
    else:
        found.say()
    return 1 if exit_code and found.differs else 0


class Compared(NamedTuple):
    """What differs: whether anything does, all of it for programs, and how people are told."""

    differs: bool
    data: dict[str, Json]
    say: Callable[[], None]


def compared(where: Place, before: str, after: str | None, wanted: Wanted) -> Compared:
    """Compare two runs, plans or attempts; without `after`, one of them with how things are now."""
    with_store = where.open(readonly=True) if where.exists() else None
    try:
        first = attempt(with_store, before, where.line())
        if first is not None and with_store is not None:
            second = attempt(with_store, after or f"{first.step}@{first.number + 1}", where.line())
            if second is None:
                raise UsageError(f"'{before}' is an attempt and '{after}' is not")
            return _attempts(with_store, first, second, full=wanted.full)
        old = side(where, with_store, before)
        new = side(where, with_store, after) if after else now(where, with_store, old)
        found = _difference(with_store or wire.empty_store(), old, new, wanted)
    finally:
        if with_store is not None:
            with_store.close()
    say = partial(_print, found, wanted, (before, after))
    return Compared(not found.is_empty, _as_json(found), say)


def _difference(store: Store, old: Side, new: Side, wanted: Wanted) -> Difference:
    known = {**old.plan.steps, **new.plan.steps}
    meant = {name: step_named(name, known) for name in wanted.steps}
    if unknown := [name for name, step_id in meant.items() if step_id is None]:
        raise UsageError(f"neither side has a step '{min(unknown)}'")
    wanted = replace(wanted, steps=frozenset(s for s in meant.values() if s is not None))
    change = plan_change(old.plan, new.plan)
    if wanted.steps:
        change = PlanChange(
            tuple(s for s in change.added if s in wanted.steps),
            tuple(s for s in change.removed if s in wanted.steps),
            tuple(c for c in change.changed if c.step in wanted.steps),
            (),
        )
    found: list[Piece] | None = None
    if old.files is not None and new.files is not None:
        contents, names = (
            (Contents(store, old.root), Contents(store, new.root)),
            (old.name, new.name),
        )
        found = []
        for step_id in _shared(old, new):
            if not wanted.steps or step_id in wanted.steps:
                found += pieces(step_id, old.files[step_id], new.files[step_id], contents, names)
    elif wanted.outputs:
        alone = old if old.files is None else new
        raise UsageError(f"'{alone.name}' has only a plan, no outputs", hint="compare two runs")
    times = _times(old, new, wanted)
    if wanted.time and not times:
        raise UsageError("how long steps took is known of runs only", hint="compare two runs")
    if wanted.cost and (old.state is None or new.state is None):
        raise UsageError("what steps cost is known of runs only", hint="compare two runs")
    return Difference(old, new, change, found, times, _costs(old, new, wanted))


def _shared(old: Side, new: Side) -> list[StepId]:
    """The steps that have something on both sides, in the order of the plan."""
    return [s for s in old.plan.steps if s in (old.files or {}) and s in (new.files or {})]


def _times(old: Side, new: Side, wanted: Wanted) -> dict[StepId, tuple[int, int]]:
    if old.state is None or new.state is None:
        return {}
    one, two = old.state.steps, new.state.steps
    return {
        step_id: (one[step_id].duration_ms, two[step_id].duration_ms)
        for step_id in one
        if step_id in two
        and "done" in {one[step_id].phase, two[step_id].phase}
        and (not wanted.steps or step_id in wanted.steps)
    }


def _costs(old: Side, new: Side, wanted: Wanted) -> dict[StepId, tuple[int, int]]:
    """What each step cost on both sides, where it cost anything; one that is not there cost nothing."""
    if old.state is None or new.state is None:
        return {}
    one, two = old.state.steps, new.state.steps
    names = dict.fromkeys([*one, *two])
    found = {s: (_cost(one.get(s)), _cost(two.get(s))) for s in names}
    return {
        s: pair
        for s, pair in found.items()
        if any(pair) and (not wanted.steps or s in wanted.steps)
    }


def _cost(step: StepState | None) -> int:
    return step.spent.cost if step is not None and step.spent is not None else 0


# --- for programs ---------------------------------------------------------------------------------


def _side_json(item: Side) -> dict[str, Json]:
    return {"name": item.name, "run": item.run}


def _change_json(change: ValueChange) -> dict[str, Json]:
    return {
        "path": change.path,
        "how": change.how,
        "before": change.before,
        "after": change.after,
    }


def _piece_json(piece: Piece) -> dict[str, Json]:
    return {
        "step": piece.step,
        "path": piece.path or None,
        "how": piece.how,
        "before": piece.before,
        "after": piece.after,
        "sizes": list(piece.sizes),
        "lines": list(piece.lines),
        "changes": [_change_json(change) for change in piece.changes],
    }


def change_json(plan: PlanChange) -> dict[str, Json]:
    """How two plans differ."""
    return {
        "added": list(plan.added),
        "removed": list(plan.removed),
        "changed": [
            {"step": change.step, "keys": [_change_json(key) for key in change.keys]}
            for change in plan.changed
        ],
        "top": [_change_json(change) for change in plan.top],
    }


def _as_json(found: Difference) -> dict[str, Json]:
    outputs: Json = None
    if found.outputs is not None:
        outputs = [_piece_json(piece) for piece in found.outputs]
    return {
        "schema": "holdfast.diff/1",
        "a": _side_json(found.before),
        "b": _side_json(found.after),
        "equal": found.is_empty,
        "plan": change_json(found.plan),
        "outputs": outputs,
        "time_ms": {step: list(pair) for step, pair in found.times.items()},
        "cost_usd": {step: [usd(cost) for cost in pair] for step, pair in found.costs.items()},
        "unread": list(found.after.faults),
    }


# --- for people -----------------------------------------------------------------------------------


def _print(found: Difference, wanted: Wanted, given: tuple[str, str | None]) -> None:
    _say(f"{found.before.name} → {found.after.name}")
    if wanted.plan or wanted.summary:
        print_plan(found.plan, whole=wanted.plan, full=wanted.full)
    if wanted.outputs or (wanted.summary and found.outputs is not None):
        _print_outputs(found, whole=wanted.outputs, full=wanted.full)
    if wanted.time or (wanted.summary and found.times):
        _print_times(found.times, whole=wanted.time)
    if wanted.cost or (wanted.summary and found.costs):
        _print_costs(found.costs, whole=wanted.cost)
    for fault in found.after.faults:
        _say(f"  not compared: {fault}")
    if wanted.summary:
        words = " ".join(quote(word) for word in given if word)
        more = [f"holdfast diff {words} --plan"] if not found.plan.is_empty else []
        more += [f"holdfast diff {words} --outputs"] if found.outputs else []
        out_next("    ".join(more) or "holdfast history")


def print_plan(change: PlanChange, *, whole: bool, full: bool) -> None:
    """What came, left and changed, with `whole` also how."""
    if change.is_empty:
        out("plan      equal")
        return
    counts = [
        f"{len(names)} {word}"
        for names, word in (
            (change.added, "added"),
            (change.removed, "removed"),
            (change.changed, "changed"),
        )
        if names
    ]
    _say(f"plan      {', '.join(counts) or 'its head changed'}")
    for step_id in change.added:
        _say(f"  + {step_id}")
    for step_id in change.removed:
        _say(f"  - {step_id}")
    for item in change.changed:
        _say(f"  ~ {item.step}: {', '.join(key.path for key in item.keys)}")
        if whole:
            for key in item.keys:
                _print_value(key, full=full)
    for key in change.top:
        _say(f"  ~ {key.path}")
        if whole:
            _print_value(key, full=full)


def _print_value(change: ValueChange, *, full: bool) -> None:
    """Both values of a key: short ones on a line, long texts as a diff."""
    old, new = _words(change.before), _words(change.after)
    is_short = max(len(old), len(new)) <= WIDEST_VALUE and "\n" not in old + new
    if change.how == "changed" and is_short:
        out(f"      {change.path}: {old} → {new}")
        return
    if not isinstance(change.before, str) and not isinstance(change.after, str):
        _print_parts(change, full=full)
        return
    out(f"      {change.path}")
    names = ("before", "after")
    lines = text_change(_lines(change.before), _lines(change.after), names)
    if lines is None:
        out("        too long to compare")
        return
    _print_lines(lines[3:], full=full, margin="        ")


def _print_parts(change: ValueChange, *, full: bool) -> None:
    """The parts of a structured value that came, went or changed."""
    empty: Json = [] if isinstance(change.after or change.before, list) else {}
    old = empty if change.before is None else change.before
    new = empty if change.after is None else change.after
    for part in value_changes(old, new, change.path):
        out(f"      {_one_value(part, full=full)}")


def _words(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _lines(value: Json) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)


def _print_outputs(found: Difference, *, whole: bool, full: bool) -> None:
    outputs = found.outputs or ()
    compared = len(_shared(found.before, found.after))
    if not outputs:
        _say(f"outputs   equal ({compared} step{'s' if compared != 1 else ''} compared)")
        return
    differ = len({piece.step for piece in outputs})
    _say(f"outputs   {differ} of {compared} differ")
    for piece in outputs:
        where = f" {one_line(piece.path)}" if piece.path else ""
        _say(f"  ~ {piece.step}{where}: {piece.words()}")
        if whole:
            _print_piece(piece, full=full)


def _print_piece(piece: Piece, *, full: bool) -> None:
    if piece.how == "text":
        _print_lines(piece.lines, full=full)
    elif piece.how == "json":
        shown = piece.changes if full else piece.changes[:MOST_LINES]
        for change in shown:
            out(f"      {_one_value(change, full=full)}")
        if len(shown) < len(piece.changes):
            out(f"      … {len(piece.changes) - len(shown)} more values, --full")
    elif piece.before and piece.after and piece.how != "mode":
        out(again(f"      holdfast show {piece.before[:12]}    holdfast show {piece.after[:12]}"))


def _one_value(change: ValueChange, *, full: bool) -> str:
    cut = one_line if full else _cut
    old, new = (cut(_words(value)) for value in (change.before, change.after))
    if change.how == "added":
        return f"+ {change.path}: {new}"
    if change.how == "removed":
        return f"- {change.path}: {old}"
    return f"~ {change.path}: {old} → {new}"


def _cut(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= WIDEST_VALUE else f"{line[: WIDEST_VALUE - 1]}…"


def _print_lines(lines: Sequence[str], *, full: bool, margin: str = "") -> None:
    shown = lines if full else lines[:MOST_LINES]
    for line in shown:
        out_edit(line, margin)
    if len(shown) < len(lines):
        out(f"{margin}… {len(lines) - len(shown)} more lines, --full")


def _print_times(times: dict[StepId, tuple[int, int]], *, whole: bool) -> None:
    before, after = (sum(pair[side] for pair in times.values()) for side in (0, 1))
    _say(f"time      {seconds(before)} → {seconds(after)} in steps that ran")
    if whole:
        for step_id, (old, new) in times.items():
            _say(f"  {step_id}: {seconds(old)} → {seconds(new)}")


def _print_costs(costs: dict[StepId, tuple[int, int]], *, whole: bool) -> None:
    before, after = (sum(pair[side] for pair in costs.values()) for side in (0, 1))
    _say(f"cost      {dollars(before)} → {dollars(after)}")
    if whole:
        for step_id, (old, new) in costs.items():
            if old != new:
                _say(f"  {step_id}: {dollars(old)} → {dollars(new)}")


# --- attempts -------------------------------------------------------------------------------------


def _attempts(store: Store, first: Attempt, second: Attempt, *, full: bool) -> Compared:
    """Compare what two attempts made, with what was said of the first."""
    contents = (Contents(store), Contents(store))
    found = pieces(first.step, first.files, second.files, contents, (first.name, second.name))
    data: dict[str, Json] = {
        "schema": "holdfast.diff/1",
        "a": _attempt_json(first),
        "b": _attempt_json(second),
        "equal": not found,
        "outputs": [_piece_json(piece) for piece in found],
    }
    return Compared(bool(found), data, partial(_print_attempts, first, second, found, full=full))


def _print_attempts(first: Attempt, second: Attempt, found: Sequence[Piece], *, full: bool) -> None:
    _say(f"{first.name} → {second.name} of {short(first.run)}")
    for item in (first, second):
        by = f" by '{item.guard}'" if item.guard else ""
        made = "" if item.files else ", it made nothing"
        _say(f"attempt {item.number} was {item.ended}{by}{made}")
        lines = item.feedback.strip().splitlines()
        for line in lines if full else lines[-MOST_LINES:]:
            out(f"    {line}", raw=True)
    if not found:
        out("both made the same" if first.files else "there is nothing to compare")
    for piece in found:
        _say(f"  ~ {piece.name}: {piece.words()}")
        _print_piece(piece, full=full)


def _attempt_json(item: Attempt) -> dict[str, Json]:
    return {
        "name": item.name,
        "run": item.run,
        "ended": item.ended,
        "guard": item.guard or None,
        "feedback": item.feedback,
    }


def _say(line: str) -> None:
    """A line of ours, none wider than the terminal."""
    for piece in wrap(line, view().width):
        out(piece)
