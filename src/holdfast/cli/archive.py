"""export and import: a run as history elsewhere, a whole store as a back-up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory

import click

from holdfast import wire
from holdfast.cli.again import again, out_next
from holdfast.cli.ask import confirm, who
from holdfast.cli.foreign import (
    RECORDS,
    Wanted,
    bring_in,
    is_plan,
    prompts_among,
    refusals,
    refuse_old,
    refused_file,
    write_new,
)
from holdfast.cli.handover import EXECUTION, FORMATS, OF_A_RUN, Handover, handover, write_views
from holdfast.cli.measure import Size, count, size_words
from holdfast.cli.place import Place, file_option, find_run, json_option, place, place_options
from holdfast.cli.say import out, out_json, short, talk
from holdfast.engine.audit import run_problem
from holdfast.engine.journals import read_state
from holdfast.engine.leaving import Arriving, leaving, named
from holdfast.engine.lines import line_journal
from holdfast.engine.naming import Listed, Names
from holdfast.engine.needed import absent_in, lacking
from holdfast.engine.rebuilt import rebuilt_index
from holdfast.engine.whole import assure
from holdfast.errors import HoldfastError, IntegrityError, PlanError, UsageError
from holdfast.formats.foreign import FORMATS as FOREIGN
from holdfast.formats.foreignnodes import few
from holdfast.model.digest import Digest, Json
from holdfast.model.event import Event
from holdfast.model.line import RunImported, named_in
from holdfast.ports import Append, Batch, Facts, RunRow, Store
from holdfast.store.archive import Archive, Selection, write_archive


@click.command(
    epilog="\b\nExample:\n  holdfast export @ run.zip\n  holdfast export --all backup.zip\n"
    "  holdfast export @ graph.json --format graph\n  holdfast export --views"
)
@click.argument("words", nargs=-1, metavar="[RUN] FILE")
@click.option("--all", "everything", is_flag=True, help="The whole store, as a back-up.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["archive", *FORMATS]),
    metavar="NAME",
    default="archive",
    help=f"An archive (default), or of a run, or without RUN of the plan: {', '.join(FORMATS)}.",
)
@click.option(
    "--views",
    is_flag=True,
    help="Write the views of a run into the store: saved plan, trace, hashes, tasks.",
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@file_option
@place_options
@json_option
def export(
    words: tuple[str, ...],
    form: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    everything: bool,
    views: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Write a run with everything it names, or with --all the whole store, into one file.

    With --format, write the plan or how a run of it stands as other programs read it; - is stdout. With
    --views, write what they look for into the store; it can be deleted and written again at any time.
    """
    if views:
        if everything or form != "archive" or len(words) > 1:
            raise UsageError("--views takes a run and nothing else", hint="holdfast export --views")
        return _export_views(place(plan, store, plan_id), words, as_json=as_json)
    if form != "archive":
        if everything or not 1 <= len(words) <= 2:  # noqa: PLR2004 - a run and a file
            raise UsageError(
                f"{form} is of one run or of the plan, into one file",
                hint=f"holdfast export @ {form}.json --format {form}",
            )
        where = place(plan, store, plan_id)
        return _export_as(where, form, words, force=force, as_json=as_json)
    if len(words) != (1 if everything else 2):
        raise UsageError(
            "a run and a file are needed, or --all and a file", hint="holdfast export @ run.zip"
        )
    path = words[-1]
    if os.path.exists(path) and not force:
        raise UsageError(f"'{path}' is there already", hint="name another file, or say --force")
    where = place(plan, store, plan_id, whole=True)
    with_store = where.open(readonly=True)
    try:
        with with_store.steady():  # an engine may work meanwhile
            assure(with_store)
            chosen = (
                _whole(with_store)
                if everything
                else _one(with_store, find_run(with_store, words[0], where.line()))
            )
            size = write_archive(path, with_store, chosen, wire.now_ms())
    finally:
        with_store.close()
    if as_json:
        out_json(
            {
                "schema": "holdfast.exported/1",
                "file": path,
                "kind": chosen.kind,
                "runs": [row.run for row in chosen.runs],
                "contents": len(chosen.contents),
                "bytes": size,
            }
        )
    else:
        runs = short(chosen.runs[0].run) if not everything else count(len(chosen.runs), "run")
        out(f"{path}: {runs}, {count(len(chosen.contents), 'content')}, {size_words(size)}")
        out(f"next: holdfast import {path}    (in another project)")
    return 0


def _export_views(where: Place, words: tuple[str, ...], *, as_json: bool) -> int:
    line, files = write_views(where, words[0] if words else None)
    if as_json:
        written: dict[str, Json] = {**files}
        answer: dict[str, Json] = {"schema": "holdfast.exported/1", "kind": "views", "line": line}
        out_json({**answer, "files": written})
        return 0
    for file in files.values():
        out(f"wrote {file}")
    out(again("they are views of the journal: delete them, and the same command writes them again"))
    return 0


def _export_as(
    where: Place, form: str, words: tuple[str, ...], *, force: bool, as_json: bool
) -> int:
    made = handover(where, form, words[0] if len(words) > 1 else None)
    path = words[-1]
    if path == "-":
        if made.beside is not None:
            raise UsageError(f"{form} is two files: name the first", hint="workflow.json")
        out(made.text.rstrip("\n"))
        for line in _lost(made):
            talk(line)
        return 0
    beside = ""
    if made.beside is not None:
        beside = os.path.join(os.path.dirname(path), made.beside[0])
        refuse_old(path, force=force)  # before the first of two files is written
        write_new(beside, made.beside[1], force=force)
    write_new(path, made.text, force=force)
    steps: list[Json] = [made.ids.get(step, step) for step in made.plan.steps]
    lost: dict[str, Json] = {key: [*names] for key, names in made.left_out.items()}
    if as_json:
        answer: dict[str, Json] = {"schema": "holdfast.exported/1", "file": path, "kind": form}
        out_json({**answer, "steps": steps, "beside": beside or None, "left_out": lost})
        return 0
    out(f"{path}: {form} of {count(len(steps), 'step')}")
    if beside:
        out(f"{beside}: their prompts")
    for line in _lost(made):
        out(line)
    if form != EXECUTION:  # which is read by other programs alone
        out_next(f"holdfast check {path}" if form not in OF_A_RUN else f"holdfast import {path}")
    return 0


def _lost(made: Handover) -> list[str]:
    renamed = [f"{step} as {there}" for step, there in made.ids.items()]
    items = [again(f"there are no items: {few(renamed)}")] if renamed else []
    return items + [
        again(f"there is no word for '{key}' of {few(names)}: it is left out")
        for key, names in made.left_out.items()
    ]


def _one(store: Store, run: str) -> Selection:
    row = next(row for row in store.runs(imported=True) if row.run == run)
    journals = [f"run:{row.run}"]
    said = RunImported(row.run, *store.end(journals[0]), "")
    found = leaving(store, Names(store, Listed(store.stored())), said)
    return Selection("run", [row], journals, found.contents, found.absent, found.line)


def _whole(store: Store) -> Selection:
    rows = store.runs(imported=True)
    if not rows:
        for problem in store.check():  # perhaps there was something
            raise IntegrityError(problem, hint="holdfast verify")
        raise UsageError("there is nothing to export yet", hint="holdfast run")
    more = {digest for item in store.artifacts() for digest in (item.digest, item.own_ref)}
    journals = list(store.journals())
    contents = named(store, journals, Names(store, Listed(store.stored())), more)
    return Selection("store", rows, journals, contents)


# --- import -----------------------------------------------------------------------------------


@click.command(
    "import",
    epilog="\b\nExample:\n  holdfast import run.zip\n  holdfast import backup.zip --store new/.holdfast\n"
    "  holdfast import graph.json -o plan.yaml",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option(
    "--max-size",
    type=Size(),
    help="What a file may unpack to (20GB, or 100 times its size if that is less).",
)
@click.option("--yes", is_flag=True, help="Do not ask before a back-up with unfinished runs.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["auto", "archive", "plan", *FOREIGN, *RECORDS]),
    metavar="NAME",
    default="auto",
    help=f"What the file is (auto): archive, plan, {', '.join((*FOREIGN, *RECORDS))}.",
)
@click.option("-o", "--out", "target", metavar="FILE", help="Write a plan file of your own.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@file_option
@place_options
@json_option
def import_(
    files: tuple[str, ...],
    max_size: int | None,
    form: str,
    target: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    yes: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Add an exported run as history, restore a back-up, or take in a plan of another format.

    Nothing of the file is executed, and nothing is written if anything in it is wrong. Artifacts of an
    imported run are reused only through 'holdfast accept STEP --from RUN'. An execution graph is checked
    and, with -o, written as a plan file of your own.
    """
    where = place(plan, store, plan_id, whole=True)
    if target is not None and len(files) > 1 + bool(prompts_among(files)):
        raise UsageError("-o takes one plan", hint="import them one by one")
    answers: list[Json] = []
    refused = 0
    prompts = prompts_among(files) if len(files) > 1 else ""
    wanted = Wanted(form, plan_id, target, prompts, force)
    archives = {p for p in files if form == "archive" or (form == "auto" and not is_plan(p))}
    if archives and where.exists():  # what is wrong with the store is not of a file
        where.open(readonly=True).close()
    for path in files:
        try:
            if path in archives:
                answer = _import(where, path, max_size, yes=yes, quiet=as_json)
            else:
                answer = bring_in(path, wanted, quiet=as_json)
        except HoldfastError as error:
            if not as_json and len(files) == 1:
                raise
            refused += 1
            told: list[Json] = refusals(error) if isinstance(error, PlanError) else [error.message]
            answer = refused_file(path, told)
            if not as_json:
                out(f"{path}: {told[0]}")
        answers.append(answer)
    if as_json:
        out_json({"schema": "holdfast.import/1", "files": answers})
    return 2 if refused else 0


@contextmanager
def opened_apart(path: str) -> Iterator[Place]:
    """An exported run or a back-up in a store of its own, to look at; it is gone afterwards."""
    with TemporaryDirectory(prefix="holdfast-") as folder:
        where = Place(None, folder, os.path.join(folder, wire.STORE_NAME), None)
        _import(where, path, None, yes=True, quiet=True)  # nobody resumes what is gone
        yield where


def _import(
    where: Place, path: str, max_bytes: int | None, *, yes: bool, quiet: bool
) -> dict[str, Json]:
    with Archive.open(path, max_bytes) as archive:
        _check_runs(archive)
        answer = _describe(archive, path)
        add = _restore if archive.kind == "store" else _add
        changed = add(where, archive, yes=yes)
        if not quiet:
            _say(archive, path, changed=changed)
    return {**answer, "changed": changed}


def _check_runs(archive: Archive) -> None:
    """Every run in it can be read: its plan is one, and its events follow from each other."""
    for row in archive.runs(imported=True):
        try:
            problem = run_problem(archive, row)
        except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
            raise UsageError(
                f"'{archive.path}' is refused: the plan of run '{row.run}' cannot be read",
                hint="write it anew where it comes from, with 'holdfast export'",
            ) from error
        if problem:
            raise UsageError(f"'{archive.path}' is refused: {problem}")


def _describe(archive: Archive, path: str) -> dict[str, Json]:
    last = archive.runs(imported=True)[-1]
    state = read_state(archive, last.run)
    assert state is not None
    return {
        "file": path,
        "format": "holdfast.export/1",
        "result": "loaded",
        "kind": archive.kind,
        "plan": {"line": last.line, "digest": state.plan_digest, "steps": list(state.plan.steps)},
        "runs": [row.run for row in archive.runs(imported=True)],
        "errors": [],
        "warnings": [],
    }


def _say(archive: Archive, path: str, *, changed: bool) -> None:
    rows = archive.runs(imported=True)
    if not changed:
        out(f"{path}: everything in it is here already; nothing changed")
    elif archive.kind == "store":
        out(
            f"restored {count(len(rows), 'run')} and {count(len(list(archive.contents())), 'content')}"
        )
        out_next("holdfast verify    holdfast history --all")
        return
    else:
        out(f"added {short(rows[0].run)} to the history of line '{rows[0].line}'")
        out(
            again(
                "its artifacts are not reused by themselves: holdfast accept STEP --from RUN takes one"
            )
        )
    out_next(f"holdfast history    holdfast status {short(rows[-1].run)}")


def _same(one: Facts, two: Facts, journal: str) -> bool:
    """Whether the journal of the first begins with all that the second has."""
    theirs = two.read(journal)
    for mine in one.read(journal):
        other = next(theirs, None)
        if other is None:
            return True
        if other != mine:
            return False
    return next(theirs, None) is None


def _add(where: Place, archive: Archive, *, yes: bool) -> bool:
    """Add one run as history of its line."""
    del yes
    (given,) = archive.runs(imported=True)
    store = where.open(create=True)
    try:
        if any(row.run == given.run for row in store.runs(imported=True)):
            if _same(store, archive, f"run:{given.run}"):
                return False
            raise UsageError(f"run '{given.run}' is here already, with another history")
        row = replace(given, number=0, fence=1, imported=True)
        last, chain = archive.last(f"run:{given.run}")
        said = RunImported(given.run, last, chain, who(), archive.absent)
        rows = rebuilt_index(Arriving(archive, row, said))
        if (came := archive.learned) is not None:
            said = replace(said, told=came.told, said=came.said, pages=came.pages)
        _check_present(archive, [*(item.digest for item in rows), *named_in(said)])
        _put_contents(store, archive)
        line = line_journal(given.project, given.line)
        events = _events(archive, f"run:{given.run}")
        appends = [
            Append(line, store.last(line), [(wire.now_ms(), said)]),
            Append(f"run:{given.run}", 0, events, 1),
        ]
        store.add_runs([row], Batch(appends, rows))
        return True
    finally:
        store.close()


def _restore(where: Place, archive: Archive, *, yes: bool) -> bool:
    """Put a whole store where nothing is yet."""
    if where.exists():
        store = where.open(readonly=True)
        try:
            known = set(store.journals())
            if known and all(_same(store, archive, name) for name in archive.journals()):
                return False
        finally:
            store.close()
        if known:
            raise UsageError(
                f"the store at '{where.location}' has a history of its own",
                hint="restore into an empty one with --store DIR, or export single runs",
            )
    rows = archive.runs(imported=True)
    index = rebuilt_index(archive)
    _check_present(archive, [row.digest for row in index])
    if unfinished := [row.run for row in rows if _is_open(archive, row)]:
        names = ", ".join(short(run) for run in unfinished[:3])
        confirm(
            f"{names} did not finish: 'resume' would run the plan in this back-up. trust it?",
            yes=yes,
        )
    store = where.open(create=True)
    try:
        _put_contents(store, archive)
        fences = {f"run:{row.run}": row.fence for row in rows}
        appends = [
            Append(name, 0, _events(archive, name), fences.get(name)) for name in archive.journals()
        ]
        store.add_runs(rows, Batch(appends, index))
    finally:
        store.close()
    return True


def _is_open(archive: Archive, row: RunRow) -> bool:
    state = read_state(archive, row.run)
    return not row.imported and state is not None and not state.ended


def _events(archive: Archive, journal: str) -> list[tuple[int, Event]]:
    return [(recorded.at, recorded.event) for recorded in archive.read(journal)]


def _check_present(archive: Archive, digests: list[Digest]) -> None:
    """Something that its history names and that is not there would make the store contradict itself."""
    absent = {*archive.absent, *absent_in(archive)}
    present = {*archive.contents()}
    for digest in digests:
        if digest not in present | absent:
            raise UsageError(f"'{archive.path}' is refused: content '{digest}' is missing")
    for digest, told in lacking(archive, present):
        if digest not in absent:
            raise UsageError(f"'{archive.path}' is refused: {told}")


def _put_contents(store: Store, archive: Archive) -> None:
    for digest in archive.contents():
        if store.put(archive.chunks(digest)) != digest:  # also makes young what is there
            raise UsageError(f"'{archive.path}' changed while it was read")
