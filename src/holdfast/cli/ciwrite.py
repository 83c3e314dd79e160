"""What init writes for a CI: a workflow that previews a change and runs the plan on the main branch."""

from __future__ import annotations

import os
import re

from holdfast.cli.templates import ci_file
from holdfast.errors import UsageError
from holdfast.process.gitplaces import top_of

SYSTEMS = ("github", "gitlab")
_PLACES = {"github": ".github/workflows/holdfast.yml", "gitlab": ".gitlab-ci.yml"}
_PLAIN = re.compile(r"[A-Za-z0-9_./-]+")


def ci_files(system: str | None, directory: str) -> dict[str, bytes]:
    """The workflow by its path from the project; it lies at the top of the repository, where CIs look."""
    if system is None:
        return {}
    here = os.path.abspath(directory)
    top = top_of(here) or here
    inside = os.path.relpath(here, top)
    if not _PLAIN.fullmatch(inside):
        raise UsageError(
            f"a workflow cannot name the folder '{inside}'",
            hint="letters, digits, . _ - and / are fine",
        )
    under = "" if inside == "." else f"{inside}/"
    text = ci_file(system).replace(b"@HERE@", inside.encode()).replace(b"@UNDER@", under.encode())
    return {os.path.relpath(os.path.join(top, _PLACES[system]), here): text}
