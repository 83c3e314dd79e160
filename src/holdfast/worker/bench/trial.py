"""One case: see that it is one, let `holdfast work` do it in a fresh repository, judge what came of it.

PLACE/repository   what the worker has: the base and what led to it, without the hidden tests
PLACE/state        where Holdfast keeps what it knows of that repository
PLACE/judged       a copy of what was delivered, made afterwards, with the hidden tests in it
PLACE/result.json  what came of it; without it, the next time goes on where this one was
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence

from holdfast.core.state import State
from holdfast.errors import ProcessError
from holdfast.gitrepo.calls import Room, ask
from holdfast.model.call import MICRO
from holdfast.model.fixed import fixed
from holdfast.model.text import one_line
from holdfast.process.reports import failures, read_report
from holdfast.process.room import clean_environment, put_file, tail
from holdfast.process.run import Command, Completed, run
from holdfast.process.terms import Terms
from holdfast.worker.bench.case import Case, Hands, is_test
from holdfast.worker.bench.laying import borrow, head_of, lay
from holdfast.worker.bench.results import Result, keep, kept
from holdfast.worker.plan import branch_of, line_of
from holdfast.worker.ticket import Ticket
from holdfast.worker.tools import in_thread
from holdfast.worker.tree import TREE

_HOLDFAST = (sys.executable, "-P", "-m", "holdfast")
_OPEN = frozenset({"running", "paused"})
_LONG = 200  # letters of why tests did not pass
_WORKED = frozenset({0, 1, 3, 5, 8})  # exit codes of 'work' after which there is something to judge
_WHO = b"[user]\n\tname = Bench\n\temail = bench@example.invalid\n"
_OURS = ("HOLDFAST_STORE", "HOLDFAST_MARK", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")


@fixed
class Ground:
    """What all cases of a bench share: how tests are run, who knows of runs, what 'work' is told besides.

    `look` gives the runs of a line in the store of a repository, oldest first.
    """

    terms: Terms
    seconds: float  # that tests may take
    look: Callable[[str, str], Sequence[State]]
    words: tuple[str, ...] = ()


async def tried(case: Case, hands: Hands, place: str, ground: Ground) -> Result:
    """What came of a case in this place, now or earlier."""
    if (done := kept(place)) is not None:
        return done
    os.makedirs(place, 0o700, exist_ok=True)
    before = os.path.join(place, "before")
    if not case.known and (problem := await no_case(case, before, ground)):
        result = Result(case.name, solved=False, why=problem, status="")
    else:
        runs = await _worked(case, hands, place, ground)
        result = await _judged(case, runs, place, ground)
    keep(place, result)
    return result


async def no_case(case: Case, folder: str, ground: Ground) -> str:
    """Why a case is none: visible tests fail at its base, or hidden ones pass; empty if it is one."""
    try:
        await in_thread(lambda: borrow(case.source, case.base, folder))
        for check in case.checks:
            done = await tested(check, folder, ground)
            if not done.success:
                return f"'{check}' fails before anything is done: {said_by(done)}"
        await in_thread(lambda: put_hidden(case, folder))
        done = await tested(case.test, folder, ground)
        return "the hidden tests pass before anything is done" if done.success else ""
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def tested(command: str, folder: str, ground: Ground) -> Completed:
    """Run tests in a folder, on the terms of commands that nobody here wrote."""
    room = f"{folder}.room"
    env = clean_environment(room, os.environ, {})
    try:
        return await run(
            Command(
                argv=("/bin/sh", "-c", command),
                cwd=folder,
                env=env,
                timeout=ground.seconds,
                sandbox=ground.terms.sandbox_for(folder, folder, room, env["PATH"]),
            )
        )
    finally:
        shutil.rmtree(room, ignore_errors=True)


def said_by(done: Completed) -> str:
    """Why tests did not pass, in a line."""
    if done.ended != "exited":
        return done.ended.replace("_", " ")
    output = done.stdout + done.stderr
    found = read_report(output)
    lines = [line for line in tail(output).splitlines() if line.strip()]
    told = (failures(found) if found else "") or one_line(lines[-1] if lines else "")
    return told if len(told) <= _LONG else f"{told[:_LONG]}…"


def put_hidden(case: Case, folder: str) -> None:
    """Lay the hidden tests into a copy, over whatever is there."""
    for path, content in case.hidden.items():
        put_over(folder, path, content)


def put_over(folder: str, path: str, content: bytes | None) -> None:
    """Put a content in the place of whatever is at a path of a copy; None takes it away."""
    place = os.path.join(folder, path)
    if os.path.realpath(os.path.dirname(place)) != os.path.normpath(os.path.dirname(place)):
        raise ProcessError(f"'{one_line(path)}' is behind a link, where no test can be laid")
    if os.path.isdir(place) and not os.path.islink(place):
        shutil.rmtree(place)
    elif os.path.lexists(place):
        os.unlink(place)
    if content is not None:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        put_file(place, content)


# --- the work ----------------------------------------------------------------------------------------


async def _worked(case: Case, hands: Hands, place: str, ground: Ground) -> Sequence[State]:
    """Let `holdfast work` do the ticket; it goes on if it was begun before. All runs that it took."""
    folder = os.path.join(place, "repository")
    await in_thread(lambda: lay(case.source, case.base, folder))
    words = ["work", put_file(os.path.join(place, "ticket.md"), case.ticket.encode())]
    words += ["--id", case.name, "--base", case.base, "--yes", *hands.words, *ground.words]
    if hands.script is not None:
        script = put_file(os.path.join(place, "script.yaml"), hands.script(case).encode())
        words += ["--script", script]
    for check in case.checks:
        words += ["--validate", check]
    if not case.checks:
        words.append("--unverified")
    env = {name: value for name, value in os.environ.items() if name not in _OURS}
    env["XDG_STATE_HOME"] = os.path.join(place, "state")
    env["GIT_CONFIG_GLOBAL"] = put_file(os.path.join(place, "gitconfig"), _WHO)
    done = await run(Command(argv=(*_HOLDFAST, *words), cwd=folder, env=env, confine="never"))
    put_file(os.path.join(place, "work.log"), done.stdout + done.stderr)
    runs = await in_thread(lambda: ground.look(folder, line_of(Ticket(case.name, case.name))))
    if done.code not in _WORKED or not runs or str(runs[-1].status) in _OPEN:
        why = tail(done.stderr).strip() or f"it ended with {done.code or done.ended}"
        raise ProcessError(f"'holdfast work' did not work on '{case.name}': {why}")
    return runs


# --- the judgement -----------------------------------------------------------------------------------


async def _judged(case: Case, runs: Sequence[State], place: str, ground: Ground) -> Result:
    own = os.path.join(place, "repository", ".git")
    head = head_of(own, f"refs/heads/{branch_of(Ticket(case.name, case.name))}")
    why = f"nothing was delivered: {runs[-1].status}"
    if head:
        judged = os.path.join(place, "judged")
        await in_thread(lambda: borrow(own, head, judged))
        why = await _refuted(case, judged, ground)
        shutil.rmtree(judged, ignore_errors=True)
    steps = [(name, step) for state in runs for name, step in state.steps.items()]
    cycles = [(name, step) for name, step in steps if name.startswith("cycle-") and step.attempts]
    spent = [state.spent for state in runs]
    changed = _changed(own, case, head) if head else {}
    return Result(
        name=case.name,
        solved=not why,
        why=why,
        status=str(runs[-1].status),
        usd=None if any(one.unpriced for one in spent) else sum(one.cost for one in spent) / MICRO,
        tokens=sum(one.tokens for one in spent),
        seconds=sum(step.spent_ms for _, step in steps) / 1000,
        cycles=len({name for name, _ in cycles}),
        attempts=sum(step.attempts for _, step in cycles),
        **changed,
    )


async def _refuted(case: Case, folder: str, ground: Ground) -> str:
    """Why what was delivered does not solve the case; empty if it does.

    Tests that the worker could see are brought back as they were: what it made of them decides nothing.
    """
    await in_thread(lambda: tests_as_before(case, folder))
    await in_thread(lambda: put_hidden(case, folder))
    for kind, command in (("hidden", case.test), *(("visible", check) for check in case.checks)):
        done = await tested(command, folder, ground)
        if not done.success:
            return f"{kind} tests fail: {said_by(done)}"
    return ""


def tests_as_before(case: Case, folder: str) -> None:
    """Bring the tests of a copy back to what they are at the base."""
    room = Room(case.source, folder)
    listed = ask(room, "ls-tree", "-r", "-z", "--full-tree", case.base)
    for row in filter(None, listed.split(b"\0")):
        about, _, name = row.partition(b"\t")
        mode, _, oid = about.decode().split(" ")
        if mode.startswith("100") and is_test(path := os.fsdecode(name)):
            put_over(folder, path, ask(room, "cat-file", "blob", oid))


def _changed(own: str, case: Case, head: str) -> dict[str, int]:
    """Commits, files and lines between the base and what was delivered, without the task tree."""
    room = Room(own, os.path.dirname(own))
    but = ("--", ".", f":(exclude){TREE.format(case.name)}")
    paths: dict[str, str | None] = {"GIT_LITERAL_PATHSPECS": None}
    span = f"{case.base}..{head}"
    commits = ask(room, "rev-list", "--count", span, *but, env=paths)
    rows = ask(
        room, "diff-tree", "-r", "--numstat", "--no-renames", case.base, head, *but, env=paths
    )
    counts = [line.split("\t")[:2] for line in rows.decode("utf-8", "replace").splitlines()]
    return {
        "commits": int(commits),
        "files": len(counts),
        "added": sum(int(added) for added, _ in counts if added != "-"),
        "removed": sum(int(removed) for _, removed in counts if removed != "-"),
    }
