"""pin and purge: what is kept whatever its age, and what is removed for good."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

import click

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.ask import confirm, who
from holdfast.cli.measure import count, moment, size_words
from holdfast.cli.place import Place, file_option, find_run, json_option, place, place_options
from holdfast.cli.say import out, out_json, short
from holdfast.engine.briefs import quoting
from holdfast.engine.lines import line_journal
from holdfast.engine.needed import files_of
from holdfast.engine.pins import Pin, pins
from holdfast.engine.rebuilt import holds
from holdfast.engine.remains import drop_remains
from holdfast.engine.snapshots import drop_snapshots
from holdfast.engine.unkept import check_words
from holdfast.errors import ConflictError, HeldError, IntegrityError, PurgedError, UsageError
from holdfast.executors.queue import is_queue
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest, Json, digest_bytes
from holdfast.model.line import ContentPurged, LineEvent, Pinned, Unpinned, UpTo
from holdfast.ports import Append, Batch, RunRow, Store
from holdfast.store.host import gone

SHORTEST = 8  # digits of a digest


@click.command(
    epilog="\b\nExample:\n  holdfast pin @ --because 'what we shipped'\n  holdfast pin report\n"
    "  holdfast pin --list"
)
@click.argument("what", required=False, metavar="[RUN|STEP|DIGEST]")
@click.option("--because", default="", metavar="TEXT", help="Why; kept with the decision.")
@click.option("--remove", is_flag=True, help="Let it go again.")
@click.option("--list", "listed", is_flag=True, help="Show what is pinned.")
@file_option
@place_options
@json_option
def pin(
    what: str | None,
    because: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    remove: bool,
    listed: bool,
    as_json: bool,
) -> int:
    """Keep a run, a step's present artifact or a content, whatever gc would remove."""
    if (what is None) != listed or (remove and listed):
        raise UsageError("name what to pin, or say --list", hint="holdfast pin --list")
    where = place(plan, store, plan_id)
    with_store = where.open(readonly=listed)
    try:
        check_words(because, where.hidden(with_store))
        said: Pinned | Unpinned | None = None
        if what is not None:
            change = _unpinned if remove else _pinned
            said, row = change(with_store, where, what, because)
            _tell(with_store, row.project, row.line, said, because)
        now = list(pins(with_store))
        words = {pin.because: _words(with_store, pin.because) for pin in now}
    finally:
        with_store.close()
    if as_json:
        out_json(
            {"schema": "holdfast.pins/1", "pins": [_pin_json(p, words[p.because]) for p in now]}
        )
    elif said is None:
        _print_pins(now, words)
    else:
        sign = "no longer pinned" if remove else "pinned"
        out(f"{said.kind} {_shown(said.kind, said.name)} is {sign}")
        out_next("holdfast pin --list    holdfast gc --dry-run")
    return 0


def _pinned(store: Store, where: Place, what: str, because: str) -> tuple[Pinned, RunRow]:
    line = where.line()
    text = _text_digest(because)
    if what.startswith(("r-", "@")):
        run = find_run(store, what, line)
        row = next(row for row in store.runs(imported=True) if row.run == run)
        return Pinned("run", run, who(), text, run=run), row
    newest = _newest(store, what, line)
    if newest is not None:
        return (
            Pinned("step", newest.step, who(), text, newest.digest, newest.run or None),
            _any_run(store, newest.line),
        )
    digest = find_content(store, what)
    return Pinned("content", digest, who(), text, digest), _any_run(store, line)


def _unpinned(store: Store, where: Place, what: str, because: str) -> tuple[Unpinned, RunRow]:
    names = {what}
    if what.startswith("@"):
        names.add(find_run(store, what, where.line()))
    fits = [
        found
        for found in pins(store)
        if found.name in names or (len(what) >= SHORTEST and found.name.startswith(what))
    ]
    if len(fits) != 1:
        raise UsageError(
            f"'{what}' is not pinned" if not fits else f"'{what}' fits {len(fits)} pins",
            hint="holdfast pin --list",
        )
    found = fits[0]
    row = next(
        row
        for row in store.runs(imported=True)
        if line_journal(row.project, row.line) == found.journal
    )
    return Unpinned(found.kind, found.name, who(), _text_digest(because)), row


def _newest(store: Store, step: str, line: str | None) -> Artifact | None:
    found = None
    for row in store.artifacts(status="accepted"):
        if row.step == step and row.source != "imported" and line in {None, row.line}:
            found = row
    return found


def _any_run(store: Store, line: str | None) -> RunRow:
    """A run of the line that is meant; the last of all if none is."""
    rows = store.runs(imported=True)
    fitting = [row for row in rows if line in {None, row.line}] or rows
    if not fitting:
        raise UsageError("there is no run yet", hint="holdfast run")
    return fitting[-1]


def _text_digest(text: str) -> Digest | None:

    return digest_bytes(text.encode()) if text else None


def _tell(store: Store, project: str, line: str, event: LineEvent, because: str) -> None:
    """Append one fact to the line's journal, with the words it names."""
    journal = line_journal(project, line)
    _append(store, [journal], lambda: event, because, store.commit)


def _append(
    store: Store,
    journals: Sequence[str],
    say: Callable[[], LineEvent],
    because: str,
    commit: Callable[[Batch], None],
) -> None:
    """Append one fact to journals of lines, whoever else writes to them."""
    text = _text_digest(because)
    blobs = [(text, because.encode())] if text else []
    while True:
        ends = {journal: store.last(journal) for journal in journals}
        event, at = say(), wire.now_ms()
        appends = [Append(journal, ends[journal], [(at, event)]) for journal in journals]
        try:
            commit(Batch(appends, blobs=blobs))
        except ConflictError:
            if all(store.last(journal) == end for journal, end in ends.items()):
                raise
            continue
        return


def _words(store: Store, digest: Digest | None) -> str:
    try:
        return store.get(digest).decode("utf-8", "replace") if digest else ""
    except IntegrityError:
        return ""


def _shown(kind: str, name: str) -> str:
    return short(name) if kind == "run" else name[:12] if kind == "content" else f"'{name}'"


def _print_pins(now: Sequence[Pin], words: dict[Digest | None, str]) -> None:
    for found in now:
        artifact = f" {found.digest[:12]}" if found.kind == "step" and found.digest else ""
        why = words[found.because]
        out(
            f"{found.kind} {_shown(found.kind, found.name)}{artifact}"
            f" · {moment(found.at)} by {found.by}" + (f" · {why}" if why else "")
        )
    if not now:
        out("nothing is pinned")
    out_next("holdfast pin RUN    holdfast pin STEP --remove")


def _pin_json(found: Pin, because: str) -> dict[str, Json]:
    return {
        "kind": found.kind,
        "name": found.name,
        "digest": found.digest,
        "run": found.run,
        "by": found.by,
        "because": because,
        "at": found.at,
    }


# --- purge ------------------------------------------------------------------------------------


@click.command(epilog="\b\nExample:\n  holdfast purge 3b4c5d6e --because 'holds a password'")
@click.argument("digest", metavar="DIGEST")
@click.option("--because", required=True, metavar="TEXT", help="Why; kept for ever.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@file_option
@place_options
@json_option
def purge(
    digest: str,
    because: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    yes: bool,
    as_json: bool,
) -> int:
    """Remove a content for good, wherever it is stored. A tombstone says when, who and why."""
    if not because.strip():
        raise UsageError("a purge needs a reason", hint="--because 'holds a password'")
    where = place(plan, store, plan_id)
    with_store = where.open()
    try:
        check_words(because, where.hidden(with_store))
        _check_alone(with_store)
        found = find_content(with_store, digest)
        digests = _all_of(with_store, found)
        _check_not_needed(with_store, digests)
        sizes = {item.digest: item.size for item in with_store.stored() if item.digest in digests}
        rows = [
            row
            for row in with_store.artifacts()
            if row.reusable and holds(with_store, row, digests)
        ]
        pages = quoting(with_store, found)
        if not as_json:
            _say_purge(digests, sum(sizes.values()), rows)
            for page, (run, step) in pages.items():
                out(f"  what '{step}' was told in {short(run)} quotes it and stays: {page}")
        confirm("remove this content for good?", yes=yes)
        _purge(with_store, where, list(digests), because)
    finally:
        with_store.close()
    if as_json:
        out_json(
            {
                "schema": "holdfast.purge/1",
                "digests": list(digests),
                "bytes": sum(sizes.values()),
                "artifacts": [{"step": row.step, "run": row.run} for row in rows],
                "quoted_in": [
                    {"digest": page, "step": step, "run": run}
                    for page, (run, step) in pages.items()
                ],
            }
        )
    else:
        out("purged; files in the project, back-ups and exports keep what they have")
        for page in pages:
            out_next(f"holdfast purge {page[:12]} --because TEXT")
        out_next("holdfast plan    holdfast verify")
    return 0


def _check_alone(store: Store) -> None:
    for _, line, holder in store.held():
        idle = is_queue(line) and not store.errands(worker=holder.owner.engine)
        if not idle and not gone(holder):
            raise HeldError(
                f"process {holder.owner.pid} works on line '{line}' and may read this content",
                hint="wait for it, or 'holdfast stop' it",
            )


def find_content(store: Store, given: str) -> Digest:
    """A content by digest or unique prefix; says so if it was purged before."""
    prefix = given.lower()
    if not re.fullmatch(r"[0-9a-f]+", prefix) or len(prefix) > 64:  # noqa: PLR2004 - SHA-256
        raise UsageError(f"there is no run, step or content '{given}'", hint="holdfast history")
    if len(prefix) < SHORTEST:
        raise UsageError(f"'{given}' is too short: name at least {SHORTEST} digits of the digest")
    found = {digest for digest in store.blobs() if digest.startswith(prefix)}
    if not found:
        found = {row.digest for row in store.artifacts() if row.digest.startswith(prefix)}
    if len(found) > 1:
        raise UsageError(f"'{given}' fits {len(found)} contents", hint="name more of the digest")
    if not found and len(prefix) == 64:  # noqa: PLR2004 - whole: it may have been purged
        found = {Digest(prefix)}
    for digest in found:
        if store.has(digest):
            return digest
        try:
            store.get(digest)
        except PurgedError as error:
            raise UsageError(error.message) from error
        except IntegrityError:
            break
    raise UsageError(f"there is no content '{given}'", hint="holdfast show STEP --json")


def _all_of(store: Store, digest: Digest) -> dict[Digest, str]:
    """What a digest means, with paths: the files of a manifest, which itself holds only names; else itself.

    Also what lay somewhere before an attempt, or was kept from being lost, is a manifest.
    """
    files = _files(store, digest)
    if files is None:
        return {digest: ""}
    found = {name: path for name, path in sorted(files.items()) if store.has(name)}
    if any(row.form != "tree" for row in store.artifacts(digest=digest)):
        found[digest] = ""  # somebody made bytes that look like one
    if not found:
        raise UsageError("the files that this content lists are not here any more")
    return found


def _files(store: Store, digest: Digest) -> dict[Digest, str] | None:
    """The files of a content if it is a manifest."""
    if not next(store.chunks(digest), b"").startswith(b"{"):
        return None
    try:
        return files_of(store, digest)
    except IntegrityError:
        return None


def _check_not_needed(store: Store, digests: Collection[Digest]) -> None:
    """Plans and keys are what journals are read with; they go only with their runs."""
    for journal in store.journals():
        for recorded in store.read(journal):
            for name in ("plan", "w_ref", "own_ref"):
                if getattr(recorded.event, name, None) in digests:
                    raise UsageError(
                        f"this content is a plan or a key that '{journal}' cannot be read without",
                        hint="change the plan, then remove the runs with 'holdfast gc --keep-runs 1'",
                    )


def _say_purge(digests: Mapping[Digest, str], size: int, rows: Sequence[Artifact]) -> None:
    out(f"purges {count(len(digests), 'content')} ({size_words(size)})")
    for digest, path in list(digests.items())[:10]:
        out(f"  {digest} {path}".rstrip())
    if len(digests) > 10:  # noqa: PLR2004 - as many as a person reads
        out(f"  … and {len(digests) - 10} more")
    for row in rows[:10]:
        made = f"in {short(row.run)}" if row.run else "given by a person"
        out(f"  '{row.step}' {made} can no longer be reused: the step runs again or waits")


def _purge(store: Store, where: Place, digests: Sequence[Digest], because: str) -> None:
    drop_snapshots(where.location)  # they hold what was told, and a crash may come
    driven = wire.live_runs(store)
    left = [row.run for row in store.runs() if row.run not in driven]
    drop_remains(where.root, where.location, left)
    _bury(store, where, digests, because, removed=digests)
    drop_snapshots(where.location)  # and somebody may have looked meanwhile


def record_lost(store: Store, where: Place, digests: Sequence[Digest], because: str) -> None:
    """Leave a tombstone of contents that are not there any more; what lies in quarantine stays there."""
    _bury(store, where, digests, because, removed=())


def _bury(
    store: Store,
    where: Place,
    digests: Sequence[Digest],
    because: str,
    *,
    removed: Sequence[Digest],
) -> None:
    rows = [row for row in store.artifacts() if row.reusable and holds(store, row, digests)]
    row = _any_run(store, where.line())
    own = line_journal(row.project, row.line)
    lines = {line_journal(found.project, found.line) for found in rows} or {own}

    def event() -> ContentPurged:
        journals = {
            f"run:{found.run}" if found.run else line_journal(found.project, found.line)
            for found in rows
        }
        upto = tuple(UpTo(journal, store.last(journal)) for journal in sorted(journals))
        return ContentPurged(tuple(digests), who(), _text_digest(because), upto)

    numbers = [found.number for found in rows]
    _append(
        store, sorted(lines), event, because, lambda batch: store.purge(removed, numbers, batch)
    )
