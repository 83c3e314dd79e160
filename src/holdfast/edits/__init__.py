"""Hands for files: read a tree without following links, change a set of files all or nothing.

    from holdfast.edits import Edit, Scope, Workspace, apply_edit

What is exported is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.edits.editing import Edit, Saw, apply_edit, preview_edit
    from holdfast.edits.outcome import Outcome, Planned, Refusal
    from holdfast.edits.scope import Scope
    from holdfast.edits.workspace import Workspace
    from holdfast.edits.write import (
        FileEdit,
        Report,
        forget_edits,
        history,
        read_file,
        recover_workspace,
        roll_back,
    )

__all__ = [
    "Edit",
    "FileEdit",
    "Outcome",
    "Planned",
    "Refusal",
    "Report",
    "Saw",
    "Scope",
    "Workspace",
    "apply_edit",
    "forget_edits",
    "history",
    "preview_edit",
    "read_file",
    "recover_workspace",
    "roll_back",
]
_ROOMS = ("editing", "write", "workspace", "scope", "outcome")


def __getattr__(name: str) -> object:
    """Load what is exported on first use: most of Holdfast needs a small part of this package."""
    if name in __all__:
        for room in _ROOMS:
            found = getattr(importlib.import_module(f"holdfast.edits.{room}"), name, None)
            if found is not None:
                return found
    message = f"module 'holdfast.edits' has no attribute {name!r}"
    raise AttributeError(message)
