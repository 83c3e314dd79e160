"""doctor: is this machine, this store and this plan fit, and if not, what mends it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import click

from holdfast import wire
from holdfast.cli.again import again
from holdfast.cli.measure import count, moment, size_words
from holdfast.cli.place import Place, file_option, json_option, place, place_options
from holdfast.cli.say import out, out_json
from holdfast.errors import LET_IN, HoldfastError, IntegrityError, PlanError, UsageError
from holdfast.model.digest import Json
from holdfast.ports import Store
from holdfast.wire.shared import is_shared, name_of

if TYPE_CHECKING:
    from holdfast.process.terms import Terms
    from holdfast.store.postgres import PostgresStore

Grade = Literal["ok", "warn", "fix"]
OLDEST_PYTHON = (3, 11)
LITTLE, TOO_LITTLE = 2 * 10**9, 200 * 10**6  # bytes free
LONG_LOG = 64 * 2**20  # bytes of a write-ahead log
_THIS_IS_PAST = 1_735_689_600_000  # 2025: a clock before that was never set
_SLACK_MS = 300_000
_CLOCKS_DIFFER = 60_000  # ms between two clocks before an age is not believed
_PARTS = (
    ("jsonschema", "guards of kind json-schema", "pip install 'holdfast[schema]'"),
    ("re2", "guards of kind regex", "pip install 'holdfast[regex]'"),
    ("watchfiles", "run --watch without polling", "pip install 'holdfast[watch]'"),
    ("rich", "the live view", "pip install rich"),
)


class Check(NamedTuple):
    """One thing that was looked at; `fix` is a command or what to do."""

    name: str
    grade: Grade
    words: str
    fix: str = ""
    facts: Mapping[str, Json] = MappingProxyType({})  # what was measured, for programs


@click.command(epilog="\b\nExample:\n  holdfast doctor\n  holdfast doctor --json")
@file_option
@place_options
@json_option
def doctor(plan: str | None, store: str | None, plan_id: str | None, *, as_json: bool) -> int:
    """Check this machine, the store and the plan; each line that is wrong says how to mend it.

    Exit 1 if something must be fixed; warnings alone are 0.
    """
    where = place(plan, store, plan_id)
    checks = [check for part in _PARTS_OF_IT for check in part(where)]
    bad = sum(1 for check in checks if check.grade == "fix")
    warned = sum(1 for check in checks if check.grade == "warn")
    if as_json:
        shown: list[Json] = [
            {"name": c.name, "grade": c.grade, "words": c.words, "fix": again(c.fix) or None}
            | ({"facts": dict(c.facts)} if c.facts else {})
            for c in checks
        ]
        out_json({"schema": "holdfast.doctor/1", "ok": not bad, "checks": shown})
        return 1 if bad else 0
    for check in checks:
        out(f"{check.grade:<4} {check.name}: {check.words}")
        if check.fix and check.grade != "ok":
            out(f"     fix: {again(check.fix)}")
    out(f"{count(len(checks), 'check')}: {bad} to fix, {count(warned, 'warning')}")
    return 1 if bad else 0


def _machine(where: Place) -> Iterator[Check]:
    del where
    version = ".".join(str(part) for part in sys.version_info[:3])
    fine = sys.version_info >= OLDEST_PYTHON
    yield Check(
        "python",
        "ok" if fine else "fix",
        version,
        "install Python 3.11 or newer and holdfast in it",
    )
    yield _sqlite()
    encoding = sys.getfilesystemencoding()
    fine = encoding.lower().replace("-", "") == "utf8"
    yield Check("encoding", "ok" if fine else "fix", encoding, "export LANG=C.UTF-8")
    yield _git()
    now = wire.now_ms()
    fine = now > _THIS_IS_PAST
    yield Check("clock", "ok" if fine else "fix", moment(now), "set the clock of this machine")
    yield from _sandbox()
    for name, what, fix in _PARTS:
        found = importlib.util.find_spec(name) is not None
        yield Check(
            name,
            "ok" if found else "warn",
            f"for {what}" if found else f"not installed; for {what}",
            fix,
        )


def _git() -> Check:
    git, fix = shutil.which("git"), "install git; steps in worktrees need it"
    if git is None:
        return Check("git", "warn", "not found", fix)
    try:
        words = [git, "--version"]
        said = subprocess.run(  # noqa: S603 - what PATH of this person finds
            words, capture_output=True, text=True, timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return Check("git", "warn", f"'{git}' cannot be run: {error}", fix)
    version = said.removeprefix("git version ").strip()
    return Check("git", "ok", f"{version} ({git})", facts={"version": version})


def _sqlite() -> Check:
    import apsw

    from holdfast.store.gate import check_sqlite

    version = apsw.sqlite_lib_version()
    try:
        check_sqlite(version)
    except HoldfastError as error:
        return Check("sqlite", "fix", error.message, error.hint or "")
    return Check("sqlite", "ok", version, facts={"version": version})


def _sandbox() -> Iterator[Check]:
    """What holds commands on this machine, on the person's own terms."""
    from holdfast.config.sandbox import read_terms
    from holdfast.process import cgroup, landlock
    from holdfast.process.sandbox import probe_whole
    from holdfast.process.syscalls import call_filter

    fix = "install bubblewrap, and allow user namespaces"
    found = probe_whole()
    try:
        terms = read_terms()
    except HoldfastError as error:
        yield Check("sandbox", "fix", error.message, error.hint or "mend that file")
        return
    if found.sandbox:
        parts = ["own processes, read-only root, hidden homes"]
        parts.append("network as of this machine" if terms.network else "no network")
        parts.append("filtered system calls" if call_filter() else "system calls not filtered here")
        yield Check("sandbox", "ok", f"bubblewrap ({found.program}): {', '.join(parts)}")
    elif landlock.version():
        words = f"Landlock {landlock.version()} alone, commands count as unconfined: {found.reason}"
        yield Check("sandbox", "warn", words, fix)
    else:
        yield Check("sandbox", "warn", f"commands run unconfined: {found.reason}", fix)
        return
    yield from _grants(terms)
    limits = terms.limits
    trees = {name for tree in cgroup.trees() for name in tree.controllers}
    whole = "all of a command" if "memory" in trees else "each process"
    parts = [
        _bound("memory", limits.memory, f" for {whole}"),
        _bound("a file", limits.file_size),
        _bound("scratch folders", limits.scratch, " each"),
        _bound("left on disk", limits.spare),
        f"processes {limits.processes or 'unbounded'}",
        f"open files {limits.open_files or 'unbounded'}",
    ]
    counted = "pids" in trees or (found.sandbox and os.geteuid() != 0)
    yield Check(
        "sandbox limits",
        "ok" if counted else "warn",
        " · ".join(parts) + ("" if counted else "; but nothing bounds the processes of root here"),
        "run as another user than root, or give holdfast a control group of its own",
    )


def _grants(terms: Terms) -> Iterator[Check]:
    """The places that the person grants, and which of them are not there."""
    granted = {"writable": terms.writable, "readable": terms.readable}
    words = [f"{name} {', '.join(places)}" for name, places in granted.items() if places]
    lost = [place for places in granted.values() for place in places if not os.path.exists(place)]
    if lost:
        told = f"{' · '.join(words)}; not there: {', '.join(lost)}"
        yield Check("sandbox places", "warn", told, "mend [sandbox] in your configuration")
    elif words:
        yield Check("sandbox places", "ok", " · ".join(words))


def _bound(what: str, size: int | None, more: str = "") -> str:
    return f"{what} {'unbounded' if size is None else size_words(size)}{more}"


def _disk(where: Place) -> Iterator[Check]:
    from holdfast.store.gate import check_file_system, file_system
    from holdfast.store.peek import check_place

    try:
        folder = check_place(where.location)
    except UsageError as error:
        fix = "move it away, or use --store DIR"
        yield Check("store directory", "fix", error.message, fix)
        return
    kind = file_system(folder)
    try:
        check_file_system(kind, where.location)
        yield Check("file system", "ok", kind or "unknown", facts={"kind": kind})
    except HoldfastError as error:
        yield Check(
            "file system", "fix", error.message, f"{error.hint}: --store DIR, HOLDFAST_STORE"
        )
    free = shutil.disk_usage(folder).free
    grade: Grade = "ok" if free > LITTLE else "warn" if free > TOO_LITTLE else "fix"
    yield Check("disk", grade, f"{size_words(free)} free", "holdfast gc, or free some space")
    writable = os.access(folder, os.W_OK | os.X_OK)
    yield Check(
        "store directory",
        "ok" if writable else "fix",
        where.location if writable else f"'{folder}' cannot be written",
        f"chmod u+rwx '{folder}', or use --store DIR",
    )
    if writable and not is_shared(where.location):
        yield _skew(_file_clock(folder), "of the file system")


def _file_clock(folder: str) -> int:
    """What time it is for whoever keeps these files; they may be on another machine."""
    with tempfile.TemporaryFile(dir=folder) as file:
        return os.fstat(file.fileno()).st_mtime_ns // 1_000_000


def _skew(theirs: int, whose: str) -> Check:
    """How much two clocks differ, by what was asked between two looks at the one here."""
    skew = theirs - wire.now_ms()
    fine = abs(skew) < _CLOCKS_DIFFER
    words = f"that {whose} is {abs(skew) / 1000:.1f} s {'ahead' if skew > 0 else 'behind'}"
    fix = "let both machines keep their clocks by NTP"
    return Check("clock skew", "ok" if fine else "warn", words, fix, {"skew_ms": skew})


def _state(where: Place) -> Iterator[Check]:
    try:
        if not where.exists():
            yield Check("store", "ok", "none yet; the first run makes it")
            return
    except UsageError:  # no directory can be there, which is a check of its own
        return
    except HoldfastError as error:
        yield Check("store", "fix", error.message, error.hint or "holdfast verify")
        return
    database = os.path.join(where.location, "state.db")
    if not is_shared(where.location) and not os.access(database, os.R_OK | os.W_OK):
        yield Check("store", "fix", f"'{database}' cannot be written", f"chmod u+rw '{database}'")
        return
    try:
        store = replace(where, whole=True).open(readonly=True)
    except HoldfastError as error:
        yield Check("store", "fix", error.message, error.hint or "holdfast verify")
        return
    try:
        from holdfast.store.migrate import VERSION

        size = sum(item.size for item in store.stored())
        place = name_of(where.location, store) if is_shared(where.location) else f"format {VERSION}"
        words = f"{place}, {count(len(store.runs()), 'run')}, {size_words(size)} of contents"
        yield Check("store", "ok", again(f"{words}, not read here: 'holdfast verify' reads them"))
        if not is_shared(where.location):
            yield _log(f"{database}-wal")
        else:
            yield _skew(cast("PostgresStore", store).clock(), "of the database")
        yield _tables(store)
        yield _holders(store)
        yield _leases(store)
        yield _times(store)
        yield _litter(where, store)
    except HoldfastError as error:
        yield Check("store", "fix", error.message, error.hint or "holdfast verify")
    except PermissionError as error:
        yield Check("store", "fix", f"'{error.filename}' cannot be read", LET_IN)
    finally:
        store.close()


def _log(path: str) -> Check:
    """The write-ahead log: it stays long only while somebody reads without an end."""
    size = os.path.getsize(path) if os.path.exists(path) else 0
    hint = "end programs that keep the database open to read; the next run takes the log in"
    grade: Grade = "ok" if size <= LONG_LOG else "warn"
    return Check("log", grade, size_words(size), hint, {"bytes": size})


def _tables(store: Store) -> Check:
    """A damaged table hides a run or a result as if it had never been."""
    from holdfast.engine.whole import assure

    try:
        assure(store)
    except IntegrityError as error:
        return Check("tables", "fix", error.message, error.hint or "holdfast repair")
    return Check("tables", "ok", "they name every run that the journals tell")


def _holders(store: Store) -> Check:
    from holdfast.store.host import gone

    held = store.held()
    dead = [(line, holder) for _, line, holder in held if gone(holder)]
    if dead:
        line, holder = dead[0]
        words = f"process {holder.owner.pid} of line '{line}' died without leaving"
        return Check("engines", "warn", words, "holdfast resume")
    names = ", ".join(f"process {h.owner.pid} on '{line}'" for _, line, h in held)
    return Check("engines", "ok", names or "none is running")


def _leases(store: Store) -> Check:
    """What engines have in hand: lines, steps, and attempts that others make for them."""
    from holdfast.store.host import gone

    holders = [holder for _, _, holder in store.held()]
    lives = {holder.owner.engine for holder in holders if not gone(holder)}
    claims = [engine for _, engine, _ in store.claims()]
    left = sum(1 for engine in claims if engine not in lives)
    parts = (count(len(holders), "line"), count(len(claims), "step"))
    words = f"{' and '.join(parts)} held, {count(len(store.errands()), 'errand')} open"
    facts: dict[str, Json] = {"lines": len(holders), "steps": len(claims), "left": left}
    facts |= {"errands": len(store.errands())}
    if left:
        return Check(
            "leases", "warn", f"{words}; {left} of engines that are gone", "holdfast resume", facts
        )
    return Check("leases", "ok", words, facts=facts)


def _times(store: Store) -> Check:
    latest = 0
    for row in store.runs()[-20:]:
        journal = f"run:{row.run}"
        for recorded in store.read(journal, max(0, store.last(journal) - 1)):
            latest = max(latest, recorded.at)
    if latest > wire.now_ms() + _SLACK_MS:
        words = f"the newest event is of {moment(latest)}, which is still to come"
        return Check("clock and journal", "fix", words, "set the clock of this machine")
    return Check("clock and journal", "ok", f"newest event {moment(latest)}" if latest else "empty")


def _litter(where: Place, store: Store) -> Check:
    from holdfast.cli.gc import leftovers

    bad = os.path.join(where.location, "blobs", "quarantine")
    damaged = len(os.listdir(bad)) if os.path.isdir(bad) else 0
    if damaged:
        words = f"{count(damaged, 'damaged content')} in quarantine"
        return Check("leftovers", "warn", words, f"holdfast verify, then look into '{bad}'")
    left = list(leftovers(where, store, store.held()))
    if left:
        words = f"private directories of {count(len(left), 'ended run')}"
        return Check("leftovers", "warn", words, "holdfast gc --yes")
    return Check("leftovers", "ok", "none")


def _settings(where: Place) -> Iterator[Check]:
    """Both files of settings, judged as a run judges them; a plan is read only if they are fit."""
    try:
        wire.configured(where.root)
    except HoldfastError as error:
        yield Check("settings", "fix", error.message, error.hint or "mend that file")
        return
    yield Check("settings", "ok", "those of this project and your own")
    yield from _plan(where)


def _plan(where: Place) -> Iterator[Check]:
    if where.file is None:
        yield Check("plan", "ok", "no plan file here")
        return
    try:
        loaded = where.load()
    except PlanError as error:
        words = f"{count(len(error.problems), 'problem')} in '{where.file}'"
        yield Check("plan", "fix", words, f"holdfast check {where.file}")
        return
    except (HoldfastError, OSError) as error:
        yield Check("plan", "fix", str(error).partition("\n")[0], f"holdfast check {where.file}")
        return
    yield Check("plan", "ok", f"'{where.file}', {count(len(loaded.plan.steps), 'step')}")


_PARTS_OF_IT: tuple[Callable[[Place], Iterator[Check]], ...] = (_machine, _disk, _state, _settings)
