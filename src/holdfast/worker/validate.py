"""Guards of a cycle: what was changed may be changed, and the repository's own checks pass on exactly that.

Every check is stored with its command, the state it ran on, its exit code and what a test program counted:
that, and nothing that a model says, is what "tests pass" means.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from holdfast.errors import GuardBroken, ProcessError
from holdfast.gitrepo.client import Client
from holdfast.gitrepo.refs import branches
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard
from holdfast.ports import Candidate, Job
from holdfast.process.reports import Report, failures, read_report
from holdfast.process.room import tail
from holdfast.process.run import Completed
from holdfast.process.terms import Terms as Confinement
from holdfast.worker.cycle import Open, made_by
from holdfast.worker.noting import noted
from holdfast.worker.plan import told
from holdfast.worker.tools import in_thread, run_in

# What a test program says that ran no test, and what it would say otherwise: unittest, node, cargo, go, make.
_NOTHING = tuple(
    (re.compile(nothing, re.MULTILINE), re.compile(something, re.MULTILINE))
    for nothing, something in (
        (rb"^Ran 0 tests in ", rb"^Ran [1-9]"),
        (rb"^# tests 0$", rb"^# tests [1-9]"),
        (rb"^running 0 tests$", rb"^running [1-9]"),
        (rb"\[no test files\]", rb"^(?:ok|FAIL|---)\s"),
        (rb"^make: .*(?:is up to date\.|Nothing to be done for .*)$", rb"^(?!make: ).*\S"),
    )
)
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]{2,}")
_COULD_NOT_RUN = frozenset({126, 127})


class ValidationGuard:
    """Runs one check at the state that the candidate names."""

    def __init__(self, open_desk: Open, confinement: Confinement | None) -> None:
        self._open = open_desk
        self._confinement = confinement

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        del guard, root
        return {}

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        ticket, terms, _ = told(job.step)
        state, command = str(made_by(candidate.content)["state"]), str(guard.config)
        desk = await in_thread(lambda: self._open(ticket, terms))
        is_first = command == terms.checks[0]  # others find what it built
        await in_thread(lambda: desk.lay_bare(state) if is_first else desk.go_to(state))
        done: list[Completed] = []

        async def check() -> Mapping[str, Json]:
            try:
                done.append(
                    await run_in(desk, job, self._confinement, command, terms.bounds.seconds)
                )
            except ProcessError as error:
                raise GuardBroken(f"'{command}' could not run: {error}") from error
            return _record(command, state, done[0])

        await noted(job, "validate", {"command": command, "state": state}, check)
        return _verdict(guard, command, done[0])


class ScopeGuard:
    """Looks at what a cycle changed, whoever changed it."""

    def __init__(self, open_desk: Open) -> None:
        self._open = open_desk

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        del guard, root
        return {}

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        ticket, terms, _ = told(job.step)
        made = made_by(candidate.content)
        desk = await in_thread(lambda: self._open(ticket, terms))
        changed = await in_thread(lambda: desk.touched(str(made["begun"]), str(made["state"])))
        refused = desk.refused([item.path for item in changed])
        if refused:
            return Verdict("reject", guard.name, "\n".join(list(refused.values())[:20]))
        return Verdict("accept", guard.name)


class BranchGuard:
    """Looks whether a delivery is where it says: the person's branch is at its last commit."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        del guard, root
        return {}

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        told_of = json.loads(candidate.content)
        found = await in_thread(lambda: {row.name: row.oid for row in branches(self._client)})
        name, head = told_of["branch"], told_of["head"]
        is_nothing = name not in found and head == told(job.step)[1].base
        if found.get(name) == head or is_nothing:
            return Verdict("accept", guard.name)
        return Verdict("reject", guard.name, f"branch '{name}' is not at {head}")


def _record(command: str, state: str, done: Completed) -> dict[str, Json]:
    found = read_report(done.stdout + b"\n" + done.stderr)
    return {
        "cmd": command,
        "state": state,
        "exit_code": done.code if done.code is not None else -1,
        "ended": done.ended,
        "tests": None if found is None else _counts(found),
        "top_stderr": tail(_readable(done.stderr))[:2000],
    }


def _counts(found: Report) -> dict[str, Json]:
    return {
        "passed": found.passed,
        "failed": found.failed,
        "skipped": found.skipped,
        "errors": found.errors,
    }


def _readable(output: bytes) -> bytes:
    """What a command said; where it is no text at all, one sign stands for all of that."""
    return _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}".encode(), output)


def _verdict(guard: Guard, command: str, done: Completed) -> Verdict:
    output = _readable(done.stdout + done.stderr)
    if done.success and any(no.search(output) and not yes.search(output) for no, yes in _NOTHING):
        return Verdict("reject", guard.name, f"'{command}' ran no test, so it says nothing")
    if done.success:
        return Verdict("accept", guard.name)
    if done.ended != "exited" or done.code in _COULD_NOT_RUN:
        how = f"exit code {done.code}" if done.ended == "exited" else done.ended.replace("_", " ")
        raise GuardBroken(f"'{command}' gave no verdict: {how}\n{tail(output)}".strip())
    report = read_report(output)
    told_first = failures(report) if report is not None else ""
    said = "\n\n".join(filter(None, (told_first, tail(output))))
    return Verdict("reject", guard.name, said or f"'{command}' ended with exit code {done.code}")
