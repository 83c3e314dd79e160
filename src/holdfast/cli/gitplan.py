"""The plan as it was at a git commit, with the files beside it that it reads."""

from __future__ import annotations

import asyncio
import os
import tempfile

from holdfast.cli.place import PLAN_NAMES, Place, load_file
from holdfast.errors import ProcessError, UsageError
from holdfast.formats.heading import python_part
from holdfast.formats.planfile import Asked
from holdfast.model.plan import Plan
from holdfast.process.run import Command, Completed, run
from holdfast.process.unpack import unpack
from holdfast.wire import market, own_agents

SECONDS = 60.0


def plan_at(where: Place, given: str) -> Plan:
    """Load the plan of this place as it was at a commit; UsageError if there is no such thing."""
    if given.startswith("-"):
        raise UsageError(f"'{given}' is no run, no plan file and no git commit")
    file = os.path.basename(where.file) if where.file else PLAN_NAMES[0]
    commit = _git(where.root, "rev-parse", "--verify", "--quiet", f"{given}^{{commit}}")
    if commit.code != 0:
        raise UsageError(
            f"'{given}' is no run, no plan file and no git commit",
            hint="runs: holdfast history    attempts: STEP@1",
        )
    archive = _git(where.root, "archive", "--format=tar", commit.stdout.decode().strip(), "--", ".")
    if archive.code != 0:
        raise UsageError(f"git cannot give the files of '{given}': {_last(archive.stderr)}")
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        try:
            unpack(archive.stdout, folder, others="skip")
        except ProcessError as error:
            raise UsageError(f"the files of '{given}' cannot be taken: {error.message}") from error
        path = os.path.join(folder, file)
        if not os.path.isfile(python_part(path)[0] or path):
            raise UsageError(f"there is no '{file}' at '{given}'")
        asked = Asked(where.plan_id, own=own_agents, models=market.known_models)
        return load_file(path, asked).plan


def _git(root: str, *words: str) -> Completed:
    names = ("PATH", "HOME", "XDG_CONFIG_HOME")
    env = {name: os.environ[name] for name in names if name in os.environ}
    env |= {"LANG": "C.UTF-8", "GIT_OPTIONAL_LOCKS": "0"}
    command = Command(("git", *words), root, env, timeout=SECONDS, confine="never")
    try:
        return asyncio.run(run(command))
    except ProcessError as error:
        raise UsageError(f"git cannot be asked: {error.message}") from error


def _last(text: bytes) -> str:
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "no reason given"
