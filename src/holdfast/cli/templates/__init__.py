"""Projects that `init` and `demo` write: the files as they are, beside this module."""

from __future__ import annotations

import os

NAMES = ("basic", "python", "minimal", "goal")
GOAL = "Write a short guide to the kelp forest"  # what the template 'goal' has recorded answers for
NEXT = {"goal": f'plan "{GOAL}" --provider recorded'}  # what to do first; with others, plan
DEMO = "demo"


def files_of(template: str) -> dict[str, bytes]:
    """Every file of a template by its path inside the project, in a stable order."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), template)
    found: dict[str, bytes] = {}
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, root)] = file.read()
    return {
        name: found[name] for name in sorted(found, key=lambda name: (name != "plan.yaml", name))
    }


def ci_file(system: str) -> bytes:
    """The workflow for a CI, with marks where the folder of the project stands."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ci", f"{system}.yml")
    with open(path, "rb") as file:
        return file.read()
