"""plans: the lines of a store with the versions of their plans; shown, compared, given back, forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import click

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.ask import confirm, who
from holdfast.cli.history import run_word
from holdfast.cli.measure import Duration, age_words, count
from holdfast.cli.place import (
    Place,
    file_option,
    goal_line,
    is_goal,
    json_option,
    place,
    place_options,
)
from holdfast.cli.say import out, out_json, short, talk
from holdfast.cli.templating import save_as_template
from holdfast.cli.titles import brief, is_planning, line_title
from holdfast.cli.view import view, width_now
from holdfast.core.waves import graph_of
from holdfast.engine.journals import read_state, runs_of
from holdfast.engine.versions import (
    PLANNED,
    Version,
    forget_versions,
    kept_plan,
    lines_of,
    versions,
)
from holdfast.errors import HeldError, IntegrityError, UsageError
from holdfast.model.digest import Json
from holdfast.model.plan import Plan, RunId
from holdfast.model.text import cut, one_line, wrap
from holdfast.planner.goal import PLANNING
from holdfast.ports import Store
from holdfast.store.host import gone

DEFAULT = 10
DEFAULT_OLD = 30 * 86_400_000
SHORTEST = 6
_WORDS = {"": "a run began with it", "planned": "planned", "replanned": "planned again"}


@dataclass(frozen=True, slots=True)
class Kept:
    """A line as the store has it: its versions, oldest first, and its last run."""

    project: str
    line: str
    versions: tuple[Version, ...]
    plan: Plan | None  # the latest version
    runs: int
    last: RunId | None
    status: str
    at: int  # when it last changed

    @property
    def goal(self) -> str:
        """The goal of the latest plan."""
        return self.plan.goal if self.plan is not None else ""

    @property
    def title(self) -> str:
        """The line as people know it."""
        return line_title(self.line, self.goal)


@click.group(
    "plans", epilog="\b\nExample:\n  holdfast plans list\n  holdfast plans diff my-api @-1 @"
)
def plans() -> None:
    """Show the plans that are kept, with their versions; compare, write out and forget them."""


plans.add_command(save_as_template)


# --- list -----------------------------------------------------------------------------------------


@plans.command(
    "list", epilog="\b\nExample:\n  holdfast plans list\n  holdfast plans list -n 50 --json"
)
@click.option("-n", "number", type=click.IntRange(1), default=DEFAULT, help="At most so many (10).")
@click.option("--all", "every", is_flag=True, help="Also the lines on which plans are made.")
@file_option
@place_options
@json_option
def list_plans(
    number: int,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    every: bool,
    as_json: bool,
) -> int:
    """Show the lines of the store, the last changed first: plan, versions, steps, last run."""
    where = place(plan, store, plan_id)
    found = _all(where, every=every)
    shown = found[:number]
    if as_json:
        listed: list[Json] = [_line_json(item) for item in shown]
        out_json({"schema": "holdfast.plans/1", "lines": listed, "known": len(found)})
        return 0
    now = wire.now_ms()
    for item in shown:
        _say(f"{brief(item.line):<14} {_summary(item, now)}")
        if item.title != brief(item.line):
            out(f"               {item.title}")
    if not found:
        out("no plan is kept here")
    elif len(shown) < len(found):
        out(f"{len(shown)} of {len(found)} lines; more with -n")
    out_next(
        "holdfast plans show LINE    holdfast plans clean --dry-run" if found else "holdfast run"
    )
    return 0


def _summary(item: Kept, now: int) -> str:
    steps = count(len(item.plan.steps), "step") if item.plan is not None else "no plan"
    parts = [f"plan {item.versions[-1].plan[:12]}" if item.versions else "", steps]
    parts.append(count(len(item.versions), "version"))
    last = f"{short(item.last)} {item.status}" if item.last is not None else "never run"
    return " · ".join(part for part in [*parts, last, age_words(now - item.at)] if part)


def _all(where: Place, *, every: bool) -> list[Kept]:
    if not where.exists():
        return []
    store = where.open(readonly=True)
    try:
        lines = [_kept(store, *line) for line in lines_of(store)]
    finally:
        store.close()
    shown = [item for item in lines if every or (item.versions and not is_planning(item.line))]
    return sorted(shown, key=lambda item: (-item.at, item.line))


def _kept(store: Store, project: str, line: str) -> Kept:
    found = versions(store, project, line)
    rows = runs_of(store, project, line)
    state = read_state(store, rows[-1].run) if rows else None
    live = wire.live_runs(store)
    status = run_word(rows[-1], state, driven=rows[-1].run in live) if rows and state else ""
    times = [one.at for one in found[-1:]]
    if state is not None:
        times.append(state.ended_at or state.since or state.started_at)
    plan = None
    if found:
        try:
            plan = kept_plan(store, found[-1].plan)
        except IntegrityError:  # a person had it removed
            plan = None
    last = rows[-1].run if rows else None
    return Kept(project, line, tuple(found), plan, len(rows), last, status, max(times, default=0))


def _line_json(item: Kept) -> dict[str, Json]:
    return {
        "line": item.line,
        "project": item.project,
        "goal": item.goal or None,
        "plan": item.versions[-1].plan if item.versions else None,
        "steps": len(item.plan.steps) if item.plan is not None else 0,
        "versions": len(item.versions),
        "planned": bool(item.versions) and item.versions[-1].reason in PLANNED,
        "runs": item.runs,
        "last_run": item.last,
        "status": item.status or None,
        "changed_at": item.at,
    }


# --- one line -------------------------------------------------------------------------------------


def chosen(where: Place, store: Store, given: str | None) -> Kept:
    """The line that is meant: by its name, the words of a goal, or the first digits of its digest."""
    lines = lines_of(store)
    name = given if given is not None else where.line()
    if name is not None and is_goal(name):
        name = goal_line(name)
    if name is None:
        mine = [line for line in lines if not is_planning(line[1])]
        if len(mine) != 1:
            raise UsageError("which line is meant?", hint="holdfast plans list")
        return _kept(store, *mine[0])
    found = [line for line in lines if line[1] == name]
    if not found and len(name) >= SHORTEST:
        found = [line for line in lines if line[1].startswith(name) and not is_planning(line[1])]
    if len(found) == 1:
        return _kept(store, *found[0])
    if not found:
        raise UsageError(f"there is no line '{name}'", hint="holdfast plans list")
    raise UsageError(f"'{name}' fits {len(found)} lines", hint="holdfast plans list")


def _version(item: Kept, given: str | None) -> Version:
    """A version by the first digits of its digest, or counted back: @ is the latest, @-1 the one before."""
    if not item.versions:
        raise UsageError(f"no plan of '{brief(item.line)}' is kept", hint="holdfast plans list")
    if given is None or given == "@":
        return item.versions[-1]
    if given.startswith("@-") and given[2:].isdigit():
        back = int(given[2:])
        if back < len(item.versions):
            return item.versions[-1 - back]
    found = {one.plan: one for one in item.versions if one.plan.startswith(given.lower())}
    if len(given) >= SHORTEST and len(found) == 1:
        return next(iter(found.values()))
    raise UsageError(
        f"'{brief(item.line)}' has no version '{given}'",
        hint=f"holdfast plans show {brief(item.line)}",
    )


@plans.command(
    "show",
    epilog="\b\nExample:\n  holdfast plans show\n  holdfast plans show 'Build a REST API' --yaml\n"
    "  holdfast plans show my-api --version @-1 --yaml -o plan.yaml",
)
@click.argument("line", metavar="[LINE|GOAL]", required=False)
@click.option("--version", "wanted", metavar="DIGEST|@-N", help="Another than the latest version.")
@click.option("--yaml", "as_yaml", is_flag=True, help="Print the version as a plan file.")
@click.option("-o", "--out", "file", metavar="FILE", help="Write the plan file there.")
@file_option
@place_options
@json_option
def show_plan(
    line: str | None,
    wanted: str | None,
    file: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    as_yaml: bool,
    as_json: bool,
) -> int:
    """Show a line: the versions of its plan with parent and reason, and the steps of one."""
    where = place(plan, store, plan_id)
    with_store = where.open(readonly=True)
    try:
        item = chosen(where, with_store, line)
        version = _version(item, wanted)
        found = kept_plan(with_store, version.plan)
    finally:
        with_store.close()
    if as_yaml or file is not None:
        from holdfast.cli.foreign import write_new
        from holdfast.formats.planout import plan_yaml

        text = plan_yaml(found)
        if file is None:
            out(text.rstrip("\n"), raw=True)
        else:
            write_new(file, text, force=False)
            talk(f"wrote {file}")
        return 0
    if as_json:
        out_json(_shown_json(item, version, found))
    else:
        _print(item, version, found)
    return 0


def _shown_json(item: Kept, version: Version, plan: Plan) -> dict[str, Json]:
    listed: list[Json] = [_version_json(one) for one in item.versions]
    return {
        **_line_json(item),
        "schema": "holdfast.plan-line/1",
        "versions": listed,
        "shown": version.plan,
        "steps": {
            step_id: {
                "uses": step.uses,
                "model": step.model or None,
                "tier": step.tier or None,
                "description": step.description or None,
                "contract": step.contract or None,
                "needs": [need.step for need in step.needs],
                "produces": list(step.produces),
            }
            for step_id, step in plan.steps.items()
        },
    }


def _version_json(one: Version) -> dict[str, Json]:
    return {
        "plan": one.plan,
        "ref": one.w_ref,
        "parent": one.parent,
        "reason": one.reason or None,
        "run": one.run or None,
        "by": one.by or None,
        "at": one.at,
    }


def _print(item: Kept, version: Version, plan: Plan) -> None:
    now = wire.now_ms()
    waves = graph_of(plan).waves()
    _say(f"{item.title} · {count(len(plan.steps), 'step')} in {count(len(waves), 'wave')}")
    if item.title == item.line and item.goal:
        _say(f"goal: {one_line(item.goal)}")
    out("")
    for one in reversed(item.versions):
        mark = "*" if one.plan == version.plan else " "
        _say(f" {mark} plan {one.plan[:12]}  {_history(one, now)}")
    out("")
    for wave in waves:
        for step_id in wave:
            step = plan.steps[step_id]
            needs = f" ← {', '.join(need.step for need in step.needs)}" if step.needs else ""
            file = f" → {', '.join(step.produces)}" if step.produces else ""
            out(cut(one_line(f"   {step_id}{needs}{file}"), width_now() or 10_000))
            if step.description:
                out(cut(one_line(f"      {step.description}"), width_now() or 10_000))
    name = brief(item.line)
    more = [f"holdfast plans show {name} --yaml"]
    if len(item.versions) > 1:
        more.insert(0, f"holdfast plans diff {name}")
    out_next("    ".join(more))


def _history(one: Version, now: int) -> str:
    parts = [_WORDS.get(one.reason, one.reason), age_words(now - one.at)]
    if one.run:
        parts.insert(1, f"in {short(one.run)}")
    if one.parent is not None:
        parts.append(f"after {one.parent[:12]}")
    return ", ".join(parts)


# --- two versions ---------------------------------------------------------------------------------


@plans.command(
    "diff",
    epilog="\b\nExample:\n  holdfast plans diff\n  holdfast plans diff my-api @-2 @",
)
@click.argument("line", metavar="[LINE|GOAL]", required=False)
@click.argument("before", metavar="[A]", required=False)
@click.argument("after", metavar="[B]", required=False)
@click.option("--full", is_flag=True, help="Whole diffs, however long.")
@click.option("--exit-code", is_flag=True, help="Exit 1 if something differs.")
@file_option
@place_options
@json_option
def diff_plans(
    line: str | None,
    before: str | None,
    after: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    full: bool,
    exit_code: bool,
    as_json: bool,
) -> int:
    """Say what differs between two versions of a line's plan: by default the latest and the one before.

    A and B are digests, or counted back: @ is the latest, @-1 the one before.
    """
    from holdfast.cli.diff import change_json, print_plan
    from holdfast.core.compare import plan_change

    where = place(plan, store, plan_id)
    with_store = where.open(readonly=True)
    try:
        item = chosen(where, with_store, line)
        if before is None and len(item.versions) == 1:
            out("No previous plan to compare")
            return 0
        old, new = _version(item, before or "@-1"), _version(item, after)
        change = plan_change(kept_plan(with_store, old.plan), kept_plan(with_store, new.plan))
    finally:
        with_store.close()
    if as_json:
        out_json(
            {
                "schema": "holdfast.plans-diff/1",
                "line": item.line,
                "a": old.plan,
                "b": new.plan,
                "equal": change.is_empty,
                "plan": change_json(change),
            }
        )
    else:
        _say(f"{item.title} · plan {old.plan[:12]} → {new.plan[:12]}")
        print_plan(change, whole=True, full=full)
    return 1 if exit_code and not change.is_empty else 0


# --- forgetting -----------------------------------------------------------------------------------


@plans.command("delete", epilog="\b\nExample:\n  holdfast plans delete my-api --dry-run")
@click.argument("line", metavar="LINE|GOAL")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@file_option
@place_options
@json_option
def delete_plan(
    line: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Forget the plans of a line and remove its runs; files in the project stay.

    A line that an engine holds is refused. What is pinned, unfinished, reused by another line, an effect
    that nobody confirmed, or written by a person stays.
    """
    where = place(plan, store, plan_id)
    with_store = where.open(readonly=dry_run)
    try:
        item = chosen(where, with_store, line)
        return _forget(where, with_store, [item], dry=dry_run, yes=yes, as_json=as_json)
    finally:
        with_store.close()


@plans.command("clean", epilog="\b\nExample:\n  holdfast plans clean --older-than 7d --dry-run")
@click.option(
    "--older-than",
    "age",
    type=Duration(),
    default=DEFAULT_OLD,
    help="Lines in which nothing happened for this time (default: 30d).",
)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@file_option
@place_options
@json_option
def clean_plans(
    age: int,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Forget the plans of lines in which nothing happened for long, and remove their runs.

    Lines that an engine holds, or whose last run is not finished, stay.
    """
    where = place(plan, store, plan_id)
    if not where.exists():
        raise UsageError("there is no store here", hint="-C DIR, or --store DIR")
    with_store = where.open(readonly=dry_run)
    try:
        now = wire.now_ms()
        busy = {(project, line) for project, line in _busy(with_store)}
        lines = (_kept(with_store, *line) for line in lines_of(with_store))
        old = [
            item
            for item in lines
            if item.versions
            and not is_planning(item.line)
            and item.at < now - age
            and item.status in {"", "completed", "superseded", "imported"}
            and (item.project, item.line) not in busy
        ]
        return _forget(where, with_store, old, dry=dry_run, yes=yes, as_json=as_json)
    finally:
        with_store.close()


def _busy(store: Store) -> Iterator[tuple[str, str]]:
    for project, line, holder in store.held():
        if not gone(holder.owner):
            yield project, line.removesuffix(PLANNING)


def _forget(
    where: Place, store: Store, lines: list[Kept], *, dry: bool, yes: bool, as_json: bool
) -> int:
    from holdfast.cli.gc import looked, outcome, print_sweep, sweep_json, swept
    from holdfast.engine.collect import Bounds

    for item in lines:
        if (item.project, item.line) in set(_busy(store)):
            raise HeldError(
                f"an engine holds line '{brief(item.line)}'", hint="holdfast stop, or wait"
            )
    names = [(i.project, i.line + end) for i in lines for end in ("", PLANNING)]
    bounds = Bounds(wire.now_ms(), lines=frozenset(names))
    if not lines:
        if as_json:
            out_json({"schema": "holdfast.plans-removed/1", "dry_run": dry, "lines": []})
        else:
            out("no line is that old")
        return 0
    found = looked(where, store, bounds, dry=dry)
    if not as_json:
        for item in lines:
            _say(f"forgets {count(len(item.versions), 'version')} of {_named(item)}")
        print_sweep(found)
        out("files in the project stay")
    if not dry:
        confirm("forget them?", yes=yes)
        for item in lines:
            forget_versions(store, item.project, item.line, who(), wire.now_ms)
        found = swept(where, store, bounds, found)
        if not as_json:
            out(outcome(found))
    if as_json:
        told: list[Json] = [_line_json(item) for item in lines]
        removed = cast("Mapping[str, Json]", sweep_json(found))
        out_json(
            {
                "schema": "holdfast.plans-removed/1",
                "dry_run": dry,
                "lines": told,
                "removed": removed["removed"],
                "kept": [
                    one
                    for one in cast("list[dict[str, Json]]", removed["kept"])
                    if ("", str(one["line"])) in names
                ],
            }
        )
    return 0


def _named(item: Kept) -> str:
    name = brief(item.line)
    return name if item.title == name else f"{name} ({item.title})"


def _say(text: str) -> None:
    for piece in wrap(one_line(text), view().width):
        out(piece)
