"""Tickets out of a git history: a commit that changes source and tests is one, begun at its parent.

The words of the ticket are those of the commit, or of an issue that somebody names for it. The tests of the
commit are the hidden ones. It counts only if they fail at the parent and pass at the commit, and if what
everybody may run passes at both, also as it was before; all of that is seen by running them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial

from holdfast.errors import GitError, UsageError
from holdfast.gitrepo.calls import Room, ask
from holdfast.gitrepo.place import locate
from holdfast.model.digest import Json
from holdfast.model.fixed import fixed
from holdfast.model.text import first_line, one_line
from holdfast.process.room import put_file
from holdfast.worker.bench.case import Case, Hands, is_test, key_of, on_files
from holdfast.worker.bench.laying import borrow
from holdfast.worker.bench.trial import Ground, no_case, said_by, tested, tests_as_before
from holdfast.worker.script import SCHEMA as SCRIPT
from holdfast.worker.tools import in_thread

_CODE = re.compile(r".*\.(?:py|js|mjs|cjs|ts|go|rs|java)")
_RUN = {
    "py": (re.compile(r"(?:.*/)?(?:test_[^/]*|[^/]*_test)\.py"), "python3 -m pytest -q {files}"),
    "js": (re.compile(r".*\.[cm]?js"), "node --test {files}"),
}
_TRAILER = re.compile(
    r"\s*(?:[A-Z][A-Za-z]*(?:-[A-Za-z]+)+: .*|\(cherry picked from .*\)|Change-Id: .*)\s*"
)
_BESIDE = re.compile(r"\s*\(#\d+\)\s*\Z")  # the number of what was merged
_MOST_FILES = 15
_MOST_BYTES = 1 << 20
_NOBODY = Hands("")
_LOOKED_AT = 3000  # commits, from the newest


@fixed
class Wanted:
    """Which tickets are wanted of a history: from what, how tests are run, and words from elsewhere."""

    git_dir: str
    test: str = ""  # with {files}; empty if it is told by the kind of the files
    check: str = ""  # what everybody may run; empty for the tests of the commit as they were before
    issues: Mapping[str, Mapping[str, Json]] | None = None  # by commit: only these count then


@fixed
class Change:
    """A file that a commit changes: its content before and after, None where it is not there."""

    path: str
    before: bytes | None
    after: bytes | None


def git_dir_of(given: str) -> str:
    """The git directory that a person names: itself, or the work tree that it belongs to."""
    if all(os.path.isdir(os.path.join(given, part)) for part in ("objects", "refs")):
        return os.path.realpath(given)
    if not os.path.isdir(given):
        raise UsageError(f"there is no git directory '{one_line(given)}'")
    return locate(given).common


def read_issues(text: str) -> dict[str, Mapping[str, Json]]:
    """Issues by the commit that closes them, from JSON; UsageError says what is wrong."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the issues are not JSON: {first_line(str(error))}") from error
    rows = data.items() if isinstance(data, dict) else ()
    if not rows or not all(isinstance(issue, dict) and issue.get("title") for _, issue in rows):
        raise UsageError(
            "the issues are no mapping of commits to issues",
            hint='{"COMMIT": {"title": "…", "body": "…"}}',
        )
    return dict(rows)


async def history_cases(
    wanted: Wanted, names: Sequence[str], folder: str, ground: Ground
) -> AsyncIterator[tuple[str, Case | str]]:
    """Each commit that looks like a ticket, newest first: its name with a case, or why it is none.

    With `names`, only commits that are called so.
    """
    commits = await in_thread(lambda: _commits(wanted))
    for name in dict.fromkeys((*(wanted.issues or ()), *names)):
        if not any(commit.startswith(name) for commit, _, _ in commits):
            yield name, f"it is none of the newest {_LOOKED_AT} commits with one parent"
    for commit, parent, words in commits:
        if wanted.issues is not None and _issue(wanted, commit) is None:
            continue
        if names and not commit.startswith(tuple(names)):
            continue
        found = await in_thread(partial(_case, wanted, commit, parent, words))
        if isinstance(found, Case):
            place = os.path.join(folder, f"{found.name}-{key_of(found, _NOBODY)}")
            problem = _looked(place)
            if problem is None:
                problem = await _unfit(found, commit, place, ground)
                shutil.rmtree(place, ignore_errors=True)
                put_file(f"{place}.txt", problem.encode())
            yield found.name, problem or found
        elif found:
            yield commit[:12], found


def _looked(place: str) -> str | None:
    """What was found when somebody looked at a case before."""
    try:
        with open(f"{place}.txt", encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


async def _unfit(case: Case, commit: str, folder: str, ground: Ground) -> str:
    """Why a case does not count; empty if it does."""
    if problem := await no_case(case, folder, ground):
        return problem
    await in_thread(lambda: borrow(case.source, commit, folder))
    for command in (case.test, *case.checks):
        done = await tested(command, folder, ground)
        if not done.success:
            return f"'{command}' fails at the commit itself: {said_by(done)}"
    await in_thread(lambda: tests_as_before(case, folder))
    for command in case.checks:  # a worker is held to them as they were
        done = await tested(command, folder, ground)
        if not done.success:
            return f"'{command}' as it was before refutes the commit: {said_by(done)}"
    return ""


# --- looking at commits -------------------------------------------------------------------------------


def _commits(wanted: Wanted) -> list[tuple[str, str, str]]:
    """Commits with one parent, newest first: name, parent, words."""
    room = Room(wanted.git_dir, wanted.git_dir)
    words = ("--no-merges", "--min-parents=1", f"--max-count={_LOOKED_AT}")
    try:
        said = ask(room, "log", "-z", "--format=%H %P%n%B", *words, "HEAD", "--")
    except GitError as error:
        raise UsageError(f"'{wanted.git_dir}' has no history: {error.message}") from error
    found = []
    for record in filter(None, said.decode("utf-8", "replace").split("\0")):
        names, _, message = record.partition("\n")
        commit, *parents = names.split()
        if len(parents) == 1:
            found.append((commit, parents[0], message.strip()))
    return found


def _case(wanted: Wanted, commit: str, parent: str, words: str) -> Case | str:
    """What a commit comes to: a case that may be one, why it is none, or nothing to speak of."""
    rows = _changed(wanted, commit, parent)
    tests = [path for path in rows if is_test(path)]
    source = [path for path in rows if not is_test(path) and _CODE.fullmatch(path)]
    if not source or not any(_CODE.fullmatch(path) for path in tests):
        return ""
    if len(rows) > _MOST_FILES:
        return f"it changes {len(rows)} files"
    try:
        changes = [_read(wanted, path, *oids) for path, oids in rows.items()]
    except ValueError as error:
        return str(error)
    hidden = {one.path: one.after for one in changes if is_test(one.path)}
    run, runs = _how(wanted, hidden)
    if not runs:
        return "nobody knows how its tests are run: say --test COMMAND"
    before = tuple(one.path for one in changes if one.path in runs and one.before is not None)
    check = wanted.check or (on_files(run, before) if before else "")
    return Case(
        name=commit[:12],
        ticket=_ticket(wanted, commit, words),
        source=wanted.git_dir,
        base=parent,
        hidden=hidden,
        test=on_files(run, runs),
        checks=(check,) if check else (),
        reference=_reference(words, [one for one in changes if not is_test(one.path)]),
        known=True,
    )


def _changed(wanted: Wanted, commit: str, parent: str) -> dict[str, tuple[str, str]]:
    """The regular files that a commit changes, with the names of their contents before and after."""
    room = Room(wanted.git_dir, wanted.git_dir)
    words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", parent, commit)
    parts = iter(ask(room, *words).split(b"\0"))
    rows = {}
    for about in parts:
        if not about:
            break
        old, new, before, after, _ = about.decode().removeprefix(":").split(" ")
        path = os.fsdecode(next(parts))
        modes = {mode for mode in (old, new) if mode != "000000"}
        if not modes <= {"100644", "100755"}:
            return {}
        rows[path] = (before, after)
    return rows


def _read(wanted: Wanted, path: str, before: str, after: str) -> Change:
    room = Room(wanted.git_dir, wanted.git_dir)
    contents: list[bytes | None] = []
    for oid in (before, after):
        content = None if not oid.strip("0") else ask(room, "cat-file", "blob", oid)
        if content is not None and (len(content) > _MOST_BYTES or b"\0" in content):
            raise ValueError(f"'{one_line(path)}' is no text, or too long")
        contents.append(content)
    return Change(path, contents[0], contents[1])


def _how(wanted: Wanted, hidden: Mapping[str, bytes | None]) -> tuple[str, tuple[str, ...]]:
    """The command that runs hidden tests, and which of them it runs."""
    there = [path for path, content in hidden.items() if content is not None]
    for pattern, command in _RUN.values():
        if runs := tuple(path for path in there if pattern.fullmatch(path)):
            return wanted.test or command, runs
    return wanted.test, tuple(there) if wanted.test else ()


# --- words --------------------------------------------------------------------------------------------


def _issue(wanted: Wanted, commit: str) -> Mapping[str, Json] | None:
    named = (wanted.issues or {}).items()
    return next((issue for name, issue in named if name and commit.startswith(name)), None)


def _ticket(wanted: Wanted, commit: str, words: str) -> str:
    """An issue as it is, or the message of the commit without what tools add to it."""
    if (issue := _issue(wanted, commit)) is not None:
        return json.dumps(issue)
    title, _, body = words.partition("\n")
    lines = [line for line in body.strip().splitlines() if not _TRAILER.fullmatch(line)]
    title = _BESIDE.sub("", title).strip() or commit[:12]
    return "\n".join([f"# {title}", "", *lines]).rstrip() + "\n"


def _reference(words: str, changes: list[Change]) -> str:
    """A script that does what the commit did, but for its tests."""
    reads: list[Json] = [
        {"use": "read", "with": {"path": one.path}} for one in changes if one.before is not None
    ]
    edits: list[Json] = [_edit(one) for one in changes]
    title = first_line(words)[:72]
    return json.dumps(
        {
            "schema": SCRIPT,
            "cycles": [
                [
                    *([reads] if reads else []),
                    {"use": "edit", "with": {"edit": json.dumps({"edits": edits})}},
                    {"use": "finish", "with": {"summary": title, "ready": True}},
                ]
            ],
        }
    )


def _edit(one: Change) -> Json:
    if one.after is None:
        return {"path": one.path, "delete": True}
    text = one.after.decode("utf-8", "surrogateescape")
    return {"path": one.path, "create" if one.before is None else "whole": text}
