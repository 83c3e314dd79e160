"""What may take long is judged in a process of its own, which can be ended.

A pattern, a schema and a text that do not fit each other can take hours, and some of it cannot be
interrupted: meanwhile an engine would answer nobody, and its heart would stand still. So a guard judges
by itself only what it knows to be quick, and says `HeavyError` otherwise.
"""

from __future__ import annotations

import json
import os
import sys

from holdfast.errors import GuardBroken, ProcessError
from holdfast.guards.candidate import name_of, place_of
from holdfast.guards.command import TIMEOUT
from holdfast.model.artifact import Verdict
from holdfast.model.plan import Guard
from holdfast.ports import Candidate, File, Job
from holdfast.process.room import tail
from holdfast.process.run import Command, run

_ALONE = "import sys; sys.path.append(sys.argv[1]); from holdfast.guards import alone; alone.main()"
_SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


async def judged_apart(kind: str, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
    """The verdict of a guard of this kind; GuardBroken if there is none within its time."""
    limit = TIMEOUT if guard.timeout is None else guard.timeout
    await place_of(job)
    command = Command(
        argv=(sys.executable, "-I", "-B", "-X", "utf8", "-c", _ALONE, _SOURCE),
        cwd=job.folder,
        env={"PATH": os.environ.get("PATH") or os.defpath, "LANG": "C.UTF-8"},
        timeout=limit,
        mark=job.mark,
        stdin=_question(kind, guard, candidate),
    )
    name = name_of(guard)
    try:
        done = await run(command)
    except ProcessError as error:
        raise GuardBroken(f"'{name}' could not run: {error}") from error
    if done.ended == "timed_out":
        raise GuardBroken(f"'{name}' gave no verdict within {limit:g} s")
    if done.ended != "exited" or done.code != 0:
        raise GuardBroken(f"'{name}' broke: {tail(done.stderr) or done.ended}")
    call, feedback, hint = json.loads(done.stdout)
    if call == "broken":
        raise GuardBroken(feedback, hint=hint)
    return Verdict(call, name, feedback)


def _question(kind: str, guard: Guard, candidate: Candidate) -> bytes:
    """A line of JSON, and the contents behind it: see `alone`."""
    is_tree = candidate.form == "tree"
    files = candidate.files if is_tree else (File("", candidate.content),)
    head = {
        "kind": kind,
        "config": guard.config,
        "form": candidate.form,
        "files": [[file.path, len(file.content)] for file in files],
    }
    contents = (file.content for file in files)
    return b"".join((json.dumps(head, default=dict).encode(), b"\n", *contents))
