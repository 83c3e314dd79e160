"""Tells a person where the bytes are that a step was put in the place of."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.world import World
from holdfast.model.artifact import Entry
from holdfast.model.plan import Step

MOST = 5


def tell_kept(world: World, step: Step, files: Sequence[Entry], why: str) -> None:
    """Say it now and once more at the end: which file, why, and the commands that give it back."""
    for entry in files[:MOST]:
        world.remind(
            f"{step.id}: your '{entry.path}' is kept ({why}): holdfast show {entry.digest[:12]}"
        )
    if len(files) > MOST:
        world.remind(f"{step.id}: {len(files) - MOST} more of your files are kept: holdfast trace")
    if files:
        how = "put them in place" if len(step.produces) > 1 else "put it in place"
        world.remind(f"  to have your version stand: {how}, then holdfast amend {step.id}")
