"""check --trace STEP: the files of the project that a command opened and its `inputs` do not name.

The command runs in a copy of the project, watched by strace, with the artifacts it needs as they stand, on
the terms of a run: strace runs in the sandbox of the command. Nothing is recorded, and nothing in the
project changes.
"""

from __future__ import annotations

import asyncio
import glob
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.ahead import reading
from holdfast.cli.foreign import say_unapproved
from holdfast.cli.grown import grown
from holdfast.cli.judge import given_to
from holdfast.cli.measure import count
from holdfast.cli.place import Place, known_step
from holdfast.cli.say import named, out, out_json
from holdfast.codebase.listing import NEVER, listed
from holdfast.core.values import file_values
from holdfast.engine.given import by_names, with_known_values
from holdfast.engine.trust import Trust
from holdfast.errors import PlanError, ProcessError, UsageError
from holdfast.model.digest import Json
from holdfast.model.plan import Plan, Step
from holdfast.model.text import one_line
from holdfast.ports import Job, Outcome

_CALLS = "trace=open,openat,openat2,execve"
_OPENED = re.compile(r"open(?:at2?)?\(.*\) = \d+<(.*)>$")
_STARTED = re.compile(r'execve\("((?:[^"\\]|\\.)*)".*\) = 0$')
_OCTAL = re.compile(r"\\([0-7]{1,3})")


@dataclass(frozen=True, slots=True)
class Traced:
    """What a step opened of the project, and what of that its key does not know."""

    step: str
    opened: tuple[str, ...]
    unnamed: tuple[str, ...]
    outcome: Outcome


class _Rooms(NamedTuple):
    """Where a watched command works: a copy of the project, within a directory of its own."""

    folder: str
    room: str


def trace(where: Place, given: str, wishes: wire.Wishes, *, as_json: bool) -> int:
    """Watch a step and say what it opened; exit 1 if that is more than it names, or if it failed."""
    loaded = grown(where, where.load())
    step = loaded.plan.steps[known_step(loaded.plan, given)]
    strace = _checked(step)
    if say_unapproved(where, loaded):
        raise UsageError(
            "commands from elsewhere are not run before somebody approved the plan",
            hint=f"holdfast plan {named(loaded.file)}, then holdfast run {named(loaded.file)}",
        )
    found = _traced(where, loaded.plan, step, strace, wishes)
    failed = found.outcome.ended != "accepted"
    if as_json:
        out_json(
            {
                "schema": "holdfast.check.trace/1",
                "step": found.step,
                "ended": found.outcome.ended,
                "opened": [*found.opened],
                "unnamed": [*found.unnamed],
            }
        )
        return 1 if found.unnamed or failed else 0
    if failed:
        said = found.outcome.feedback.replace(
            f"'{strace}'", f"'{(step.run or [step.shell])[0]}'", 1
        )
        reason = one_line(said.partition("\n")[0])
        out(f"the step failed, so it may open more than this: {reason}", raw=True)
    out(f"{found.step} opened {count(len(found.opened), 'file')} of the project")
    if not found.unnamed:
        if found.opened:
            inputs = "its inputs name" if step.inputs else "what its key is made of names"
            out(f"{inputs} them all")
        return 1 if failed else 0
    out(f"not named by its inputs ({len(found.unnamed)})")
    for path in found.unnamed:
        out(f"  {one_line(path)}", raw=True)
    out("a change of these files does not run the step again")
    out_next(
        f"add them to the inputs of {named(found.step)}, then holdfast check --trace {named(step.id)}"
    )
    return 1


def _checked(step: Step) -> str:
    """The program that watches; UsageError for steps that cannot be watched."""
    if step.uses != "shell" or not (step.run or step.shell):
        raise UsageError(f"'{step.id}' is no command, and only commands are traced")
    if step.effects != "none":
        raise UsageError(
            f"'{step.id}' changes the outside world, so it is not run only to be watched"
        )
    strace = shutil.which("strace")
    if strace is None:
        raise UsageError(
            "strace was not found on PATH, and nothing else here can watch a command",
            hint="install strace",
        )
    return strace


def _traced(where: Place, plan: Plan, step: Step, strace: str, wishes: wire.Wishes) -> Traced:
    with tempfile.TemporaryDirectory(prefix="holdfast-") as room:
        for name in ("home", "tmp"):
            os.makedirs(os.path.join(room, name))
        folder, record = os.path.join(room, "work"), os.path.join(room, "trace")
        shutil.copytree(
            where.root,
            folder,
            symlinks=True,
            ignore=lambda _, names: NEVER.intersection(names),
            ignore_dangling_symlinks=True,
        )
        watch = (strace, "-ff", "-qq", "-y", "-s", "4096", "-o", record, "-e", _CALLS, "--")
        argv = step.run or ("/bin/sh", "-c", step.shell)
        watched = replace(step, run=(*watch, *argv), shell="", guards=(), outputs=(), schema=None)
        outcome = asyncio.run(_run(where, plan, watched, _Rooms(folder, room), wishes))
        opened = sorted(_files(record, os.path.realpath(folder), where.root), key=os.fsencode)
    known = _named(where.root, plan, step)
    unnamed = tuple(path for path in opened if path not in known)
    return Traced(step.id, tuple(opened), unnamed, outcome)


async def _run(where: Place, plan: Plan, step: Step, rooms: _Rooms, wishes: wire.Wishes) -> Outcome:
    with reading(where) as store:
        given = given_to(store, plan, step)
        trust = Trust(store, plan.project, plan.name, wire.now_ms)
        wishes = replace(wishes, written_here=not trust.was_asked)
    executor = wire.executor_for(plan, terms=wire.terms_for(where.location, wishes))
    try:
        env = {name: os.environ[name] for name in step.env if name in os.environ}
        job = Job(
            with_known_values(step, given),
            0,
            rooms.folder,
            where.root,
            rooms.room,
            f"trace/{step.id}/0",
            given=by_names(step, given),
            env=env,
            files=file_values(step),
            walls=wire.walls_at(where.root),
        )
        return await executor.run(job)
    finally:
        await executor.close()


def _files(record: str, folder: str, root: str) -> set[str]:
    """The files of the project that the record says were opened or executed."""
    lines: list[str] = []
    for name in glob.glob(f"{glob.escape(record)}.*"):  # one for each process
        with open(name, encoding="utf-8", errors="surrogateescape") as file:
            lines += file.read().splitlines()
    if not lines:
        raise ProcessError("strace could not watch the command", hint="is ptrace allowed here?")
    known = set(listed(root).paths)
    found = set()
    for path in _paths(lines):
        whole = os.path.normpath(os.path.join(folder, path))
        if whole.startswith(folder + "/") and whole[len(folder) + 1 :] in known:
            found.add(whole[len(folder) + 1 :])
    return found


def _paths(lines: list[str]) -> Iterator[str]:
    for line in lines:
        match = _OPENED.search(line) or _STARTED.search(line)
        if match is None or "O_WRONLY" in line:
            continue
        raw = _OCTAL.sub(lambda found: chr(int(found[1], 8)), match[1])
        yield os.fsdecode(raw.encode("latin-1", "surrogateescape")) if "\\" in match[1] else raw


def _named(root: str, plan: Plan, step: Step) -> set[str]:
    """What decides the key already: inputs, files the command names, its outputs, those of its needs."""
    known = set(step.produces)
    for need in step.data_needs:
        known.update(plan.steps[need].produces)
    for entry in step.inputs:
        try:
            known.update(wire.project_files(root, entry.glob))
        except PlanError:
            continue
    identity = wire.identities().identity(step, root)
    known.update(_leaves(identity))
    return known


def _leaves(value: Json) -> Iterator[str]:
    """Every name in what a generator adds to the key: files stand there by their paths."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    elif isinstance(value, str):
        yield value
