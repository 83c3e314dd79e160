"""conflicts: what could not all stand in a run, how it was settled, and who disagreed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple, cast

import click

from holdfast.cli.again import out_next
from holdfast.cli.place import file_option, find_run, json_option, place, place_options
from holdfast.cli.say import out, out_json, short
from holdfast.errors import IntegrityError
from holdfast.model.conflict import Conflict, Position, conflict_from_json, conflict_json
from holdfast.model.digest import Digest, Json
from holdfast.model.event import ConflictFound, ConflictResolved
from holdfast.model.plan import RunId
from holdfast.model.text import one_line
from holdfast.ports import Store

_HOW = {
    "agreed": "they agreed",
    "veto": "by a critical veto, which stands",
    "score": "by its score",
    "tie": "too close: a person decides",
    "high_veto": "a veto of high severity: a person decides",
    "vetoes": "critical vetoes contradict each other: a person decides",
    "overlap": "both wrote there: a person decides",
    "changed": "it was changed by hand: a person decides",
    "person": "by a person",
}


class Told(NamedTuple):
    """A conflict as it stands, and since when; without a record it was purged."""

    name: str
    at: int
    open: bool
    record: Conflict | None


@click.command(epilog="\b\nExample:\n  holdfast conflicts\n  holdfast conflicts r-1f3c --json")
@click.argument("run_id", metavar="[RUN]", required=False)
@file_option
@place_options
@json_option
def conflicts(
    run_id: str | None, plan: str | None, store: str | None, plan_id: str | None, *, as_json: bool
) -> int:
    """Show the conflicts of a run: positions, winner and dissent.

    Three kinds: agents that recommend different things about one scope, steps that wrote the same file,
    and files of the project that changed under a step. 'holdfast resolve' settles an open one.
    """
    where = place(plan, store, plan_id)
    opened = where.open(readonly=True)
    try:
        run = find_run(opened, run_id, where.line())
        found = conflicts_of(opened, run)
    finally:
        opened.close()
    if as_json:
        listed: list[Json] = [_json(one) for one in found]
        out_json({"schema": "holdfast.conflicts/1", "run": run, "conflicts": listed})
        return 0
    if not found:
        out(f"{short(run)}: no conflicts")
    for one in found:
        for line in _lines(one):
            out(line)
    first = next((one for one in found if one.open), None)
    if first is not None:
        out_next(f"holdfast resolve {first.name} --take STEP")
    return 0


def conflicts_of(store: Store, run: RunId) -> list[Told]:
    """The conflicts of a run in the order they were found, each with its last record."""
    found: dict[str, Told] = {}
    for recorded in store.read(f"run:{run}"):
        event = recorded.event
        if isinstance(event, ConflictFound | ConflictResolved):
            is_open = isinstance(event, ConflictFound)
            record = _record(store, event.record)
            found[event.conflict] = Told(event.conflict, recorded.at, is_open, record)
    return [*found.values()]


def _record(store: Store, digest: Digest) -> Conflict | None:
    try:
        return conflict_from_json(cast("Mapping[str, Json]", json.loads(store.get(digest))))
    except IntegrityError:  # removed since
        return None


def _json(told: Told) -> dict[str, Json]:
    head: dict[str, Json] = {"conflict_id": told.name, "open": told.open, "at": told.at}
    if told.record is None:
        return {**head, "purged": True}
    data = conflict_json(told.record)
    del data["schema"]
    return {**data, **head}


def _lines(told: Told) -> list[str]:
    record = told.record
    if record is None:
        return [f"{told.name}: its record was purged"]
    by = f" ({record.by})" if record.by else ""
    lines = [f"{told.name} · {record.kind} · {one_line(record.scope)}: {_HOW[record.how]}{by}"]
    for place_, position in enumerate(record.positions):
        sign = "*" if place_ == record.winner else "-" if place_ in record.dissent else "?"
        lines.append(f"  {sign} {_words(record, position)}")
    return lines


def _words(record: Conflict, position: Position) -> str:
    who = position.agent or position.step or "a person"
    if record.kind != "agents":
        content = f": holdfast show {position.content[:12]}" if position.content else ""
        return f"{who}{content}"
    grave = f", {position.severity}" if position.severity in {"critical", "high"} else ""
    return f"{who}: {one_line(position.action)} ({position.score:g}{grave})"
