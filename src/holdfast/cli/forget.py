"""plans delete, plans clean: forget the plans of lines and remove their runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

import click

from holdfast import wire
from holdfast.cli.ask import confirm, who
from holdfast.cli.kept import Kept, chosen, kept_line, line_json
from holdfast.cli.measure import Duration, count
from holdfast.cli.place import Place, file_option, json_option, place, place_options
from holdfast.cli.say import out, out_json
from holdfast.cli.titles import brief, is_planning
from holdfast.cli.view import view
from holdfast.engine.versions import forget_versions, lines_of, versions
from holdfast.errors import HeldError, UsageError
from holdfast.model.digest import Json
from holdfast.model.text import one_line, wrap
from holdfast.planner.goal import PLANNING
from holdfast.ports import Store
from holdfast.store.host import gone

DEFAULT_OLD = 30 * 86_400_000


@click.command("delete", epilog="\b\nExample:\n  holdfast plans delete my-api --dry-run")
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


@click.command("clean", epilog="\b\nExample:\n  holdfast plans clean --older-than 7d --dry-run")
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
        lines = (kept_line(with_store, *line) for line in lines_of(with_store))
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
        if not gone(holder):
            yield project, line.removesuffix(PLANNING)


def _forget(
    where: Place, store: Store, lines: list[Kept], *, dry: bool, yes: bool, as_json: bool
) -> int:
    from holdfast.cli.gc import looked, outcome, print_sweep, sweep_json, swept, without_lists
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
            for name in (item.line, item.line + PLANNING):
                if versions(store, item.project, name):
                    forget_versions(store, item.project, name, who(), wire.now_ms)
        found = without_lists(found)
        found = swept(where, store, bounds, found)
        if not as_json:
            out(outcome(found))
    if as_json:
        told: list[Json] = [line_json(item) for item in lines]
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
