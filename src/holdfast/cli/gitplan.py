"""The plan as it was at a git commit, with the files beside it that it reads."""

from __future__ import annotations

import os
import tempfile

from holdfast.cli.place import PLAN_NAMES, Place, load_file
from holdfast.edits.tree import split_path
from holdfast.errors import EditError, ProcessError, UsageError
from holdfast.formats.heading import python_part
from holdfast.formats.planfile import Asked
from holdfast.gitrepo.git import LINK, SUBMODULE, Repository, contents, files, find, resolved
from holdfast.model.plan import Plan
from holdfast.wire import market, own_agents, walls_at


def plan_at(where: Place, given: str) -> Plan:
    """Load the plan of this place as it was at a commit; UsageError if there is no such thing."""
    if given.startswith("-"):
        raise UsageError(f"'{given}' is no run, no plan file and no git commit")
    file = os.path.basename(where.file) if where.file else PLAN_NAMES[0]
    try:
        here = find(where.root)
        commit = resolved(here, given)
    except ProcessError as error:
        raise UsageError(
            f"'{given}' is no run, no plan file and no git commit",
            hint="runs: holdfast history    attempts: STEP@1",
        ) from error
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        try:
            _lay(here, commit, folder)
        except (ProcessError, EditError) as error:
            raise UsageError(f"the files of '{given}' cannot be taken: {error.message}") from error
        path = os.path.join(folder, file)
        if not os.path.isfile(python_part(path)[0] or path):
            raise UsageError(f"there is no '{file}' at '{given}'")
        asked = Asked(
            where.plan_id, own=own_agents, models=market.known_models, walls=walls_at(where.root)
        )
        return load_file(path, asked).plan


def _lay(here: Repository, commit: str, folder: str) -> None:
    """Write the project's files of a commit as they are stored: no links, no submodules, no filter is run."""
    prefix = os.fsencode(here.prefix)
    rows = [
        one
        for one in files(here, commit)
        if one.path.startswith(prefix) and one.mode not in {LINK, SUBMODULE}
    ]
    for row, content in zip(rows, contents(here, [one.name for one in rows]), strict=True):
        path = os.fsdecode(row.path[len(prefix) :])
        place = os.path.join(folder, *split_path(path))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "xb") as file:
            file.write(content)
