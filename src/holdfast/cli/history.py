"""history: which runs there were, newest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import NamedTuple

import click

from holdfast import wire
from holdfast.cli.additions import added_words, addition_notes
from holdfast.cli.again import out_next
from holdfast.cli.brought import brought_json, brought_words
from holdfast.cli.measure import Duration, age_words, count, cut, moment
from holdfast.cli.money import step_words
from holdfast.cli.place import file_option, json_option, place, place_options
from holdfast.cli.say import out, out_json, seconds, short
from holdfast.cli.titles import line_title
from holdfast.cli.view import view
from holdfast.core.reasons import sentence
from holdfast.core.state import State
from holdfast.core.views import Addition, origin_json, spent_json, worked_ms
from holdfast.engine.elsewhere import Brought, brought_in
from holdfast.engine.journals import read_state
from holdfast.engine.requests import additions
from holdfast.model.digest import Json
from holdfast.model.event import Options, RunEnded, RunRested
from holdfast.model.plan import RunId
from holdfast.model.text import wrap
from holdfast.ports import Holder, RunRow, Store
from holdfast.store.host import gone

DEFAULT = 20
_MOST_NAMED = 20  # added steps
_FAILED = frozenset({"failed", "escalated", "blocked", "limit"})


@dataclass(frozen=True, slots=True)
class Seen:
    """A run as history shows it."""

    row: RunRow
    state: State
    word: str
    failure: str
    asked: str
    last_at: int
    additions: Mapping[int, Addition]
    brought: Brought | None = None


@click.command(
    epilog="\b\nExample:\n  holdfast history\n  holdfast history --since 7d --failed\n"
    "  holdfast history --all -n 100 --json"
)
@click.option("--since", type=Duration(), help="Only runs that began within this time (7d).")
@click.option("--failed", is_flag=True, help="Only runs that rest with a failure.")
@click.option("-n", "number", type=click.IntRange(1), default=DEFAULT, help="At most so many (20).")
@click.option("--all", "every_line", is_flag=True, help="Runs of all lines of the store.")
@file_option
@place_options
@json_option
def history(
    since: int | None,
    number: int,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    failed: bool,
    every_line: bool,
    as_json: bool,
) -> int:
    """Show the runs of the line, newest first, each with its first failure."""
    where = place(plan, store, plan_id)
    now = wire.now_ms()
    shown: Sequence[Json] = ()
    told: list[_Lines] = []
    with_store = where.open(readonly=True)
    try:
        line = None if every_line else where.line()
        rows = with_store.runs(line, imported=True)
        oldest = None if since is None else now - since
        found = islice(_newest_first(with_store, rows, failed=failed, oldest=oldest), number)
        if as_json:
            shown = list(map(partial(_seen_json, now=now), found))
        else:
            told = list(map(partial(_told_of, now=now), found))
    finally:
        with_store.close()
    if as_json:
        out_json({"schema": "holdfast.history/1", "runs": shown, "known": len(rows)})
        return 0
    several = len({item.line for item in told}) > 1
    _print(told, known=len(rows), every_line=every_line or several)
    return 0


def _newest_first(
    store: Store, rows: Sequence[RunRow], *, failed: bool, oldest: int | None
) -> Iterator[Seen]:
    """Fold a run only if its last event lets it be shown."""
    live = {holder.run for _, _, holder in store.held() if _lives(holder)}
    lines = dict.fromkeys((row.project, row.line) for row in rows if row.imported)
    brought = {run: one for line in lines for run, one in brought_in(store, *line).items()}
    for row in reversed(rows):
        last_at, word = run_end(store, row.run)
        if failed and word not in _FAILED:
            continue
        if oldest is not None and last_at < oldest:
            continue
        state = read_state(store, row.run)
        if state is None or (oldest is not None and state.started_at < oldest):
            continue
        driven = row.run in live
        yield seen_run(store, row, state, last_at, driven=driven, brought=brought.get(row.run))
        del state  # before the next is read: one may take gigabytes


def seen_run(
    store: Store,
    row: RunRow,
    state: State,
    last_at: int,
    *,
    driven: bool,
    brought: Brought | None = None,
) -> Seen:
    """A run as history shows it; `driven` by a live engine, `last_at` when it last changed."""
    return Seen(
        row,
        state,
        str(state.status) if brought is not None else run_word(row, state, driven=driven),
        _failure(state),
        asked(state.options),
        last_at,
        additions(store, state),
        brought,
    )


def _lives(holder: Holder) -> bool:
    return not gone(holder)


def run_end(store: Store, run: RunId) -> tuple[int, str]:
    """When a run last changed and the state its last event left it in; nothing is folded."""
    journal = f"run:{run}"
    last = max(0, store.last(journal) - 1)
    at, word = 0, "running"
    for recorded in store.read(journal, last):
        at = recorded.at
        if isinstance(recorded.event, RunEnded | RunRested):
            word = recorded.event.status
    return at, word


def run_word(row: RunRow, state: State, *, driven: bool) -> str:
    """The state of a run in a word."""
    if row.imported:
        return "imported"
    if state.status == "running" and not driven:
        return "interrupted"
    return str(state.status)


def _failure(state: State) -> str:
    for step_id in state.graph.order:
        step = state.steps[step_id]
        if step.phase in {"failed", "waiting"} and step.reason is not None:
            return f"{step_id}: {sentence(step.reason)}"
    return ""


def asked(options: Options) -> str:
    """What was asked for when a run began, in the words of the command line."""
    words = ["run"]
    words += ["--force"] if options.force else []
    words += [f"--force-node {step}" for step in options.force_steps]
    words += [f"--resample {step}" for step in options.resample]
    words += ["--cutoff"] if options.cutoff else []
    words += [f"--on-drift {options.on_drift}"] if options.on_drift != "adopt" else []
    words += ["--join"] if options.joined else []
    words += [f"-s {step}" for step in options.select[:3]]
    words += [f"(and {len(options.select) - 3} more)"] if len(options.select) > 3 else []  # noqa: PLR2004
    return " ".join(words)


def _worked(item: Seen, now: int) -> int:
    return worked_ms(item.state, now if item.word == "running" else 0)


class _Lines(NamedTuple):
    """What is printed of a run; its state is let go before the next one is read."""

    line: str
    head: str
    title: str
    rest: str
    notes: Sequence[str]


def _told_of(item: Seen, now: int) -> _Lines:
    state, drawn = item.state, view().mode == "rich"
    complete = f"{state.counts['done'] + state.counts['reused']}/{len(state.steps)}"
    took = seconds(_worked(item, now))
    when = age_words(now - state.started_at) if drawn else moment(state.started_at)
    gaps = f"{count(len(state.gaps), 'gap')}  " if state.gaps else ""
    words = step_words(state.spent, state.reserved)
    cost = f", {words}" if words else ""
    head = f"{short(item.row.run)}  {item.word:<11} {complete:>7} done {_reused(state):>4} reused"
    notes = [note for note in (item.failure, _told(item), *_growth(item)) if note]
    title = line_title(item.row.line, state.plan.goal)
    return _Lines(item.row.line, f"{head}  {gaps}", title, f"{when}, {took}{cost}", notes)


def _print(told: list[_Lines], *, known: int, every_line: bool) -> None:
    for item in told:
        title = f"{item.title}  " if every_line else ""
        for piece in wrap(f"{item.head}{title}{item.rest}", view().width):
            out(piece)
        for note in item.notes:
            out(cut(f"            {note}"))
    if not told:
        out("no run fits" if known else "there is no run yet")
    elif len(told) < known:
        out(f"{len(told)} of {known} runs; more with -n")
    following = "holdfast status RUN    holdfast why STEP --run RUN" if told else "holdfast run"
    out_next(following)


def _told(item: Seen) -> str:
    state = item.state
    if item.brought is not None:
        return f"brought {brought_words(item.brought)}"
    if state.forked is not None:
        return f"forked from {short(state.forked)} at {state.forked_at}"
    if state.replanned is not None:
        return f"what was learned spoke against its plan; {state.replanned[:12]} took its place"
    return "" if item.asked == "run" else f"asked: {item.asked}"


def _reused(state: State) -> int:
    """Steps that stand on an artifact; one that a person goes on without stands on none."""
    return state.counts["reused"] - len(state.gaps)


def _growth(item: Seen) -> Iterator[str]:
    """What became of the plan under way: steps that were added, or not, and steps gone on without."""
    state = item.state
    by: dict[str, list[str]] = {}
    for step_id in state.added:
        by.setdefault(added_words(state, step_id, item.additions), []).append(step_id)
    for words, steps in by.items():
        more = f" and {len(steps) - _MOST_NAMED:,} more" if len(steps) > _MOST_NAMED else ""
        yield f"{words}: {', '.join(steps[:_MOST_NAMED])}{more}"
    notes = addition_notes(item.additions, driven=item.word == "running")
    yield from (note for _, note in notes)
    if state.gaps:
        yield f"gaps: {', '.join(state.gaps)}"


def _seen_json(item: Seen, now: int) -> dict[str, Json]:
    state = item.state
    return {
        "run": item.row.run,
        "line": item.row.line,
        "goal": state.plan.goal or None,
        "project": item.row.project,
        "status": item.word,
        "started_at": state.started_at,
        "changed_at": item.last_at,
        "duration_ms": _worked(item, now),
        "steps": len(state.steps),
        "done": state.counts["done"],
        "reused": _reused(state),
        "failed": state.counts["failed"],
        **spent_json(state.spent),
        "failure": item.failure or None,
        "asked": item.asked,
        "imported": item.row.imported,
        "brought": brought_json(item.brought),
        "previous": state.previous,
        "replanned": state.replanned,
        "forked": {"run": state.forked, "step": state.forked_at} if state.forked else None,
        "added": {s: origin_json(state, s, item.additions) for s in state.added},
        "additions": [found.json() for found in item.additions.values()],
        "gaps": list(state.gaps),
    }
