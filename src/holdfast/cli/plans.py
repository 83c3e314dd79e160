"""plans: the lines of a store with the versions of their plans; shown, compared, given back, forgotten."""

from __future__ import annotations

import click

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.forget import clean_plans, delete_plan
from holdfast.cli.kept import Kept, all_kept, chosen, line_json, standing, version_of
from holdfast.cli.measure import age_words, count
from holdfast.cli.place import (
    file_option,
    json_option,
    place,
    place_options,
)
from holdfast.cli.say import out, out_json, short, talk
from holdfast.cli.templating import save_as_template
from holdfast.cli.titles import brief
from holdfast.cli.view import view, width_now
from holdfast.core.waves import graph_of
from holdfast.engine.versions import (
    Version,
    kept_plan,
)
from holdfast.model.digest import Json
from holdfast.model.plan import Plan
from holdfast.model.text import cut, one_line, wrap

DEFAULT = 10
_WORDS = {
    "": "a run began with it",
    "planned": "planned",
    "replanned": "planned again",
    "prepared": "took the place of the one before",
}


@click.group(
    "plans", epilog="\b\nExample:\n  holdfast plans list\n  holdfast plans diff my-api @-1 @"
)
def plans() -> None:
    """Show the plans that are kept, with their versions; compare, write out and forget them."""


plans.add_command(delete_plan)
plans.add_command(clean_plans)
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
    found = all_kept(where, every=every)
    shown = found[:number]
    if as_json:
        listed: list[Json] = [line_json(item) for item in shown]
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


# --- one line -------------------------------------------------------------------------------------


@plans.command(
    "show",
    epilog="\b\nExample:\n  holdfast plans show\n  holdfast plans show 'Build a REST API' --yaml\n"
    "  holdfast plans show my-api --version @-1 --yaml -o plan.yaml",
)
@click.argument("line", metavar="[LINE|GOAL]", required=False)
@click.option("--version", "wanted", metavar="DIGEST|@-N", help="Another than the one that stands.")
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
        version = version_of(item, wanted) if wanted is not None else standing(item)
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
        **line_json(item),
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
        "answers": list(one.answers),
    }


def _print(item: Kept, version: Version, plan: Plan) -> None:
    now = wire.now_ms()
    waves = graph_of(plan).waves()
    _say(f"{item.title} · {count(len(plan.steps), 'step')} in {count(len(waves), 'wave')}")
    if item.title == item.line and item.goal:
        _say(f"goal: {one_line(item.goal)}")
    out("")
    for one in reversed(item.versions):
        mark = "*" if one is version else " "
        _say(f" {mark} plan {one.plan[:12]}  {version_words(one, now)}")
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


def version_words(one: Version, now: int) -> str:
    """Where a version of a plan comes from."""
    parts = [_WORDS.get(one.reason, one.reason), age_words(now - one.at)]
    if one.run:
        parts.insert(1, f"in {short(one.run)}")
    if one.parent is not None:
        parts.append(f"after {one.parent[:12]}")
    if one.answers:
        parts.append(f"answers {', '.join(one.answers)}")
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
        old, new = version_of(item, before or "@-1"), version_of(item, after)
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


def _say(text: str) -> None:
    for piece in wrap(one_line(text), view().width):
        out(piece)
