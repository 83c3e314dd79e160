"""Loads what a run loads when it begins, so that start-up is not counted as the run."""

from __future__ import annotations

from tempfile import TemporaryDirectory

import holdfast


def nothing() -> str:
    return ""


def warm_up() -> None:
    with TemporaryDirectory() as folder:
        plan = holdfast.Plan("warm-up", root=folder)
        plan.step("one", nothing, inline=True)
        assert holdfast.run(plan).status == "completed"
