"""push and pull: ended runs from the store of this project into another one, and the other way round."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import click

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.ask import who
from holdfast.cli.measure import count, size_words
from holdfast.cli.place import Place, file_option, find_run, json_option, place, place_options
from holdfast.cli.say import out, out_json, short, talk
from holdfast.engine.bringing import (
    LeftOut,
    Load,
    Parcel,
    bring,
    chosen,
    contests_left,
    load,
    with_makers,
)
from holdfast.engine.whole import assure
from holdfast.errors import UsageError
from holdfast.model.digest import Json
from holdfast.model.text import one_line
from holdfast.ports import RunRow, Store
from holdfast.wire.shared import is_shared, name_of, refuse_password

_STEP = 1 << 26  # bytes between two words about how far it is
_NAMED = 5
_PROJECT = "add 'project: NAME' to the plan: what runs from then on can be pushed"


@dataclass(frozen=True, slots=True)
class Way:
    """From which store to which, and what a person wants brought."""

    verb: str
    past: str
    other: str
    source: str
    target: str
    run: str | None
    every_line: bool


def _options(command: Callable[..., int]) -> Callable[..., int]:
    for option in (
        json_option,
        place_options,
        file_option,
        click.option("--dry-run", is_flag=True, help="Only say what would go."),
        click.option("--run", "run", metavar="RUN", help="One run, and those it reused from."),
        click.option("--all", "every_line", is_flag=True, help="All lines of the project."),
        click.argument("other", metavar="URL|DIR"),
    ):
        command = option(command)
    return command


@click.command(
    epilog="\b\nExample:\n  holdfast push postgresql://ada@db/team\n"
    "  holdfast push ../backup/.holdfast --all\n  holdfast push postgresql://ada@db/team --dry-run"
)
@_options
def push(
    other: str,
    run: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    every_line: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Bring ended runs of the line into another store, where what they made is reused from then on.

    Journals are copied as they are. What is there already is left as it is, so the same command can be
    given again at any time, also after it was killed.
    """
    where = place(plan, store, plan_id)
    target = _other(where, other, must_be=False)
    way = Way("push", "pushed", other, where.location, target, run, every_line)
    return _carry(where, way, dry=dry_run, as_json=as_json)


@click.command(
    epilog="\b\nExample:\n  holdfast pull postgresql://ada@db/team\n"
    "  holdfast pull ../other/.holdfast --run @"
)
@_options
def pull(
    other: str,
    run: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    every_line: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Bring ended runs of the line from another store into this one, where what they made is reused.

    Take only from a store that you trust like your own: what was accepted there counts here. A file from
    somebody else is for 'holdfast import'.
    """
    where = place(plan, store, plan_id)
    source = _other(where, other, must_be=True)
    way = Way("pull", "pulled", other, source, where.location, run, every_line)
    return _carry(where, way, dry=dry_run, as_json=as_json)


def _other(where: Place, given: str, *, must_be: bool) -> str:
    """Where the other store is."""
    refuse_password(given)
    location = wire.store_location(where.root, given)
    if location == where.location or os.path.realpath(location) == os.path.realpath(where.location):
        raise UsageError("that is the store of this project itself", hint="name another one")
    if is_shared(location) or wire.has_store(location):
        return location
    inner = os.path.join(location, wire.STORE_NAME)
    if wire.has_store(inner):
        raise UsageError(f"there is no store in '{given}'", hint=f"did you mean '{inner}'?")
    if must_be:
        raise UsageError(
            f"there is no store in '{given}'", hint="name a directory like '.holdfast'"
        )
    return location


def _carry(where: Place, way: Way, *, dry: bool, as_json: bool) -> int:
    if not wire.has_store(way.source):
        raise UsageError("there is no run yet", hint="holdfast run")
    source = wire.open_store(way.source, readonly=True, whole=True, say=talk)
    try:
        assure(source)
        with_target = _opened(way.target)
        try:
            names = name_of(way.source, source), name_of(way.target, with_target)
            rows, homeless = _wanted(where, source, way)
            found = load(source, with_target, rows, names[0], who())
        finally:
            with_target.close()
        left = (*homeless, *found.left_out)
        doubts = contests_left(source, (one.row for one in found.parcels))
        if not as_json:
            _announce(way, found, names, dry=dry)
        hidden = where.hidden(source)()
        brought = [] if dry else _bring(source, way, found.parcels, hidden, quiet=as_json)
    finally:
        source.close()
    if as_json:
        answer = _answer(way, found, left, names, brought, dry=dry)
        out_json({**answer, "contests_left": [*doubts]})
    else:
        _conclude(way, found, left, doubts, dry=dry)
    return 0


def _opened(location: str) -> Store:
    """A store to look at; an empty one where none is yet."""
    if not wire.has_store(location):
        return wire.empty_store()
    return wire.open_store(location, readonly=True, whole=True, say=talk)


def _wanted(where: Place, source: Store, way: Way) -> tuple[list[RunRow], list[LeftOut]]:
    """The runs that are meant, and those of them that belong to no project and cannot be shared."""
    project = where.load().plan.project if where.file is not None else None
    line = None if way.every_line else where.line()
    if way.run is not None:
        if way.every_line:
            raise UsageError("--run and --all mean different runs", hint="use one of them")
        rows = with_makers(source, find_run(source, way.run, line, project=project))
    elif line is None and not way.every_line:
        raise UsageError("which line?", hint="name a plan, --plan-id, --run or --all")
    else:
        rows = chosen(source, project, line) or chosen(source, "", line)
    if not is_shared(way.target):
        return rows, []
    homeless = [row for row in rows if not row.project]
    if homeless and len(homeless) == len(rows):
        raise UsageError(
            f"the runs of line '{rows[0].line}' belong to no project, and a shared store has many",
            hint=_PROJECT,
        )
    return [row for row in rows if row.project], [LeftOut(r, "has no project") for r in homeless]


def _bring(
    source: Store, way: Way, parcels: Sequence[Parcel], hidden: Sequence[str], *, quiet: bool
) -> list[Parcel]:
    """Bring one after the other, each whole; says how far it is."""
    if not parcels:
        return []
    total, done, brought = sum(parcel.bytes for parcel in parcels), 0, list[Parcel]()
    target = wire.open_store(way.target, create=not is_shared(way.target), say=talk)

    def sent(size: int) -> None:
        nonlocal done
        done, before = done + size, done
        if done // _STEP > before // _STEP and not quiet:
            talk(f"{size_words(done)} of {size_words(total)}")

    try:
        for parcel in parcels:
            if bring(source, target, parcel, wire.now_ms, sent, hidden):
                brought.append(parcel)
                if not quiet:
                    out(f"{way.past} {_parcel_words(parcel)}")
    finally:
        target.close()
    return brought


def _parcel_words(parcel: Parcel) -> str:
    contents = f"{count(len(parcel.sends), 'content')}, {size_words(parcel.bytes)}"
    return f"{short(parcel.row.run)}: {count(parcel.counts, 'artifact')} to reuse, {contents}"


def _announce(way: Way, found: Load, names: tuple[str, str], *, dry: bool) -> None:
    """Say first how much it is."""
    if not found.parcels:
        return
    would = f"would {way.verb}" if dry else way.verb
    contents = sum(len(parcel.sends) for parcel in found.parcels)
    size = size_words(sum(parcel.bytes for parcel in found.parcels))
    what = f"{count(len(found.parcels), 'run')}, {count(contents, 'content')}, {size}"
    out(f"{would} {what}")
    out(f"from {names[0]}")
    out(f"to   {names[1]}")
    for parcel in found.parcels if dry else ():
        out(f"  {_parcel_words(parcel)}")


def _conclude(
    way: Way, found: Load, left: Sequence[LeftOut], doubts: Sequence[str], *, dry: bool
) -> None:
    if found.there:
        out(f"{count(len(found.there), 'run')} there already")
    for one in left[:_NAMED]:
        out(f"left out {short(one.row.run)}: it {one.why}")
    if len(left) > _NAMED:
        out(f"left out {len(left) - _NAMED} more")
    if doubts:
        named = ", ".join(map(one_line, doubts[:_NAMED])) + (" …" if len(doubts) > _NAMED else "")
        out(f"contests stay behind, with the line on which they were said: {named}")
    if not found.parcels:
        out("nothing changed")
    elif dry:
        out_next(f"holdfast {way.verb} {shlex.quote(way.other)}")
    elif way.verb == "pull":
        out_next("holdfast plan    holdfast history")


def _answer(
    way: Way,
    found: Load,
    left: Sequence[LeftOut],
    names: tuple[str, str],
    brought: Sequence[Parcel],
    *,
    dry: bool,
) -> dict[str, Json]:
    done = {parcel.row.run for parcel in brought}
    runs: list[Json] = [
        {
            "run": parcel.row.run,
            "project": parcel.row.project,
            "line": parcel.row.line,
            "brought": parcel.row.run in done,
            "artifacts": parcel.counts,
            "barred": len(parcel.said.barred),
            "contents": len(parcel.sends),
            "bytes": parcel.bytes,
        }
        for parcel in found.parcels
    ]
    return {
        "schema": f"holdfast.{way.verb}/1",
        "from": names[0],
        "to": names[1],
        "dry_run": dry,
        "changed": bool(done),
        "runs": runs,
        "there": [row.run for row in found.there],
        "left_out": [{"run": one.row.run, "why": one.why} for one in left],
    }
