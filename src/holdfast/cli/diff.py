"""diff: what differs between two runs, two plans, two attempts, or between one of them and now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from shlex import quote
from typing import NamedTuple

import click

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.differing import MOST_LINES, Told, piece_lines, plan_words, value_lines
from holdfast.cli.pieces import Contents, Piece, pieces
from holdfast.cli.place import Place, file_option, json_option, place, place_options
from holdfast.cli.say import out, out_edit, out_json, seconds, short
from holdfast.cli.sides import Attempt, Side, attempt, now, side
from holdfast.cli.view import view
from holdfast.core.compare import PlanChange, ValueChange, plan_change
from holdfast.core.state import StepState
from holdfast.core.views import usd
from holdfast.errors import UsageError
from holdfast.model.digest import Json
from holdfast.model.items import step_named
from holdfast.model.money import dollars
from holdfast.model.plan import StepId
from holdfast.model.text import one_line, wrap
from holdfast.ports import Store


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
        found = difference(with_store or wire.empty_store(), old, new, wanted)
    finally:
        if with_store is not None:
            with_store.close()
    say = partial(_print, found, wanted, (before, after))
    return Compared(not found.is_empty, _as_json(found), say)


def difference(store: Store, old: Side, new: Side, wanted: Wanted) -> Difference:
    """Compare two sides in all that both have."""
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
        for step_id in shared(old, new):
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


def shared(old: Side, new: Side) -> list[StepId]:
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
    _say(f"plan      {plan_words(change)}")
    for step_id in change.added:
        _say(f"  + {step_id}")
    for step_id in change.removed:
        _say(f"  - {step_id}")
    for item in change.changed:
        _say(f"  ~ {item.step}: {', '.join(key.path for key in item.keys)}")
        if whole:
            for key in item.keys:
                _tell(value_lines(key, full=full))
    for key in change.top:
        _say(f"  ~ {key.path}")
        if whole:
            _tell(value_lines(key, full=full))


def _tell(lines: Iterable[Told]) -> None:
    for line in lines:
        if line.is_edit:
            out_edit(line.text, line.margin)
        else:
            out(f"{line.margin}{line.text}")


def outputs_words(found: Difference) -> str:
    """How many of the outputs differ."""
    outputs, compared = found.outputs or (), len(shared(found.before, found.after))
    if not compared:
        return "nothing to compare: no step has one on both sides"
    if not outputs:
        return f"equal ({compared} step{'s' if compared != 1 else ''} compared)"
    return f"{len({piece.step for piece in outputs})} of {compared} differ"


def _print_outputs(found: Difference, *, whole: bool, full: bool) -> None:
    _say(f"outputs   {outputs_words(found)}")
    for piece in found.outputs or ():
        where = f" {one_line(piece.path)}" if piece.path else ""
        _say(f"  ~ {piece.step}{where}: {piece.words()}")
        if whole:
            _tell(piece_lines(piece, full=full))


def time_words(times: Mapping[StepId, tuple[int, int]]) -> str:
    """How long steps took on both sides."""
    before, after = (sum(pair[side] for pair in times.values()) for side in (0, 1))
    return f"{seconds(before)} → {seconds(after)} in steps that ran"


def cost_words(costs: Mapping[StepId, tuple[int, int]]) -> str:
    """What steps cost on both sides."""
    before, after = (sum(pair[side] for pair in costs.values()) for side in (0, 1))
    return f"{dollars(before)} → {dollars(after)}"


def _print_times(times: dict[StepId, tuple[int, int]], *, whole: bool) -> None:
    _say(f"time      {time_words(times)}")
    if whole:
        for step_id, (old, new) in times.items():
            _say(f"  {step_id}: {seconds(old)} → {seconds(new)}")


def _print_costs(costs: dict[StepId, tuple[int, int]], *, whole: bool) -> None:
    _say(f"cost      {cost_words(costs)}")
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
        _tell(piece_lines(piece, full=full))


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
