"""history and ls: which runs there were, and which steps the plan has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import click

from holdfast import wire
from holdfast.cli.measure import Duration, age_words, moment
from holdfast.cli.place import Place, file_option, json_option, place, place_options
from holdfast.cli.say import out, out_json, seconds, short
from holdfast.cli.view import view
from holdfast.core.reasons import sentence
from holdfast.core.state import State
from holdfast.engine.probe import read_state
from holdfast.errors import UsageError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Json
from holdfast.model.event import Options, RunEnded, RunRested
from holdfast.model.plan import Plan, RunId, Step, StepId
from holdfast.ports import Holder, RunRow, Store
from holdfast.store.host import gone

DEFAULT = 20
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
    with_store = where.open(readonly=True)
    try:
        line = None if every_line else where.line()
        rows = with_store.runs(line, imported=True)
        oldest = None if since is None else now - since
        seen = []
        for found in _newest_first(with_store, rows, failed=failed, oldest=oldest):
            seen.append(found)
            if len(seen) == number:
                break
    finally:
        with_store.close()
    if as_json:
        shown: list[Json] = [_seen_json(item) for item in seen]
        out_json({"schema": "holdfast.history/1", "runs": shown, "known": len(rows)})
        return 0
    _print(seen, now, known=len(rows), every_line=every_line)
    return 0


def _newest_first(
    store: Store, rows: Sequence[RunRow], *, failed: bool, oldest: int | None
) -> Iterator[Seen]:
    """Fold a run only if its last event lets it be shown."""
    live = {holder.run for _, _, holder in store.held() if _lives(holder)}
    for row in reversed(rows):
        last_at, word = _end(store, row.run)
        if failed and word not in _FAILED:
            continue
        if oldest is not None and last_at < oldest:
            continue
        state = read_state(store, row.run)
        if state is None or (oldest is not None and state.started_at < oldest):
            continue
        yield Seen(
            row,
            state,
            _word(row, state, driven=row.run in live),
            _failure(state),
            asked(state.options),
            last_at,
        )


def _lives(holder: Holder) -> bool:
    return not gone(holder.owner)


def _end(store: Store, run: RunId) -> tuple[int, str]:
    """When a run last changed and the state its last event left it in; nothing is folded."""
    journal = f"run:{run}"
    last = max(0, store.last(journal) - 1)
    at, word = 0, "running"
    for recorded in store.read(journal, last):
        at = recorded.at
        if isinstance(recorded.event, RunEnded | RunRested):
            word = recorded.event.status
    return at, word


def _word(row: RunRow, state: State, *, driven: bool) -> str:
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
    words += ["--cutoff"] if options.cutoff else []
    words += [f"--on-drift {options.on_drift}"] if options.on_drift != "adopt" else []
    words += ["--join"] if options.joined else []
    return " ".join(words)


def _print(seen: list[Seen], now: int, *, known: int, every_line: bool) -> None:
    drawn = view().mode == "rich"
    for item in seen:
        state = item.state
        counts = state.counts
        complete = counts["done"] + counts["reused"]
        took = (state.ended_at or item.last_at) - state.started_at
        when = age_words(now - state.started_at) if drawn else moment(state.started_at)
        line = f" {item.row.line}" if every_line else ""
        out(
            f"{short(item.row.run)} {item.word:<11}{line} {when}, {seconds(max(0, took))},"
            f" {complete}/{len(state.steps)} done, {counts['reused']} reused"
            + (f" · {item.asked}" if item.asked != "run" else "")
        )
        if item.failure:
            out(_cut(f"  {item.failure}"))
    if not seen:
        out("no run fits" if known else "there is no run yet")
    elif len(seen) < known:
        out(f"{len(seen)} of {known} runs; more with -n")
    out(
        "next: holdfast status RUN    holdfast why STEP --run RUN" if seen else "next: holdfast run"
    )


def _cut(text: str) -> str:
    """On a terminal a line stays a line."""
    width = view().width
    return text if not width or len(text) <= width else f"{text[: width - 1]}…"


def _seen_json(item: Seen) -> dict[str, Json]:
    state = item.state
    return {
        "run": item.row.run,
        "line": item.row.line,
        "project": item.row.project,
        "status": item.word,
        "started_at": state.started_at,
        "changed_at": item.last_at,
        "duration_ms": max(0, (state.ended_at or item.last_at) - state.started_at),
        "steps": len(state.steps),
        "done": state.counts["done"],
        "reused": state.counts["reused"],
        "failed": state.counts["failed"],
        "failure": item.failure or None,
        "asked": item.asked,
        "imported": item.row.imported,
        "previous": state.previous,
    }


# --- ls ---------------------------------------------------------------------------------------


@click.command(
    epilog="\b\nExample:\n  holdfast ls\n  holdfast ls --long\n  holdfast ls --paths | xargs wc -c"
)
@click.option("--long", "long_", is_flag=True, help="With what generates it and its description.")
@click.option("--paths", is_flag=True, help="The paths that steps produce, instead of their names.")
@click.option("--keys", is_flag=True, help="With the config ref of the newest artifact.")
@click.option("--runs", is_flag=True, help="The ids of the runs of this line, newest first.")
@click.option(
    "--output-format",
    type=click.Choice(["name", "path", "json"]),
    default="name",
    help="Names, produced paths, or one JSON object.",
)
@click.argument("plan", required=False)
@place_options
@json_option
def ls(
    plan: str | None,
    output_format: str,
    store: str | None,
    plan_id: str | None,
    *,
    long_: bool,
    paths: bool,
    keys: bool,
    runs: bool,
    as_json: bool,
) -> int:
    """List names, one a line: steps of the plan, what they produce, or runs."""
    where = place(plan, store, plan_id)
    if runs:
        return _ls_runs(where, as_json=as_json or output_format == "json")
    loaded = where.load().plan
    steps = list(loaded.steps.values())
    as_json = as_json or output_format == "json"
    newest = _newest(where, loaded) if keys or as_json else {}
    if as_json:
        shown: list[Json] = [_step_json(step, newest.get(step.id)) for step in steps]
        out_json({"schema": "holdfast.ls/1", "steps": shown})
        return 0
    for step in steps:
        if paths or output_format == "path":
            for path in step.produces:
                out(path)
        else:
            out(_named(step, newest.get(step.id), long_=long_, keys=keys))
    return 0


def _named(step: Step, newest: Artifact | None, *, long_: bool, keys: bool) -> str:
    words: list[str] = [step.id]
    if keys:
        words.append(newest.config_ref if newest else "-")
    if long_:
        words.append(step.uses)
        words += [f"needs {','.join(need.step for need in step.needs)}"] if step.needs else []
        words += [f"makes {','.join(step.produces)}"] if step.produces else []
        words += [step.description.partition("\n")[0]] if step.description else []
    return "  ".join(words)


def _newest(where: Place, plan: Plan) -> Mapping[StepId, Artifact]:
    if not where.exists():
        return {}
    store = where.open(readonly=True)
    try:
        return store.newest_of_all(plan.project, plan.name)
    finally:
        store.close()


def _step_json(step: Step, newest: Artifact | None) -> dict[str, Json]:
    return {
        "id": step.id,
        "uses": step.uses,
        "needs": [need.step for need in step.needs],
        "produces": list(step.produces),
        "description": step.description,
        "config_ref": newest.config_ref if newest else None,
        "digest": newest.digest if newest else None,
    }


def _ls_runs(where: Place, *, as_json: bool) -> int:
    if not where.exists():
        raise UsageError("there is no run yet", hint="holdfast run")
    store = where.open(readonly=True)
    try:
        rows = store.runs(where.line(), imported=True)
    finally:
        store.close()
    if as_json:
        out_json({"schema": "holdfast.ls/1", "runs": [row.run for row in reversed(rows)]})
        return 0
    for row in reversed(rows):
        out(row.run)
    return 0
