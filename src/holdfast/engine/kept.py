"""Tells a person where the bytes are that a step was put in the place of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.model.artifact import Entry
from holdfast.model.digest import Digest
from holdfast.model.plan import Step

MOST = 5


def words_of_kept(step: Step, files: Sequence[Entry], why: str) -> Iterator[str]:
    """Which file, why, and the commands that give it back; to be said once they are stored."""
    for entry in files[:MOST]:
        yield f"{step.id}: your '{entry.path}' is kept ({why}): holdfast show {entry.digest[:12]}"
    if len(files) > MOST:
        yield f"{step.id}: {len(files) - MOST} more of your files are kept: holdfast trace"
    if files:
        how = "put them in place" if len(step.produces) > 1 else "put it in place"
        yield f"  to have your version stand: {how}, then holdfast amend {step.id}"


def words_of_lost(step: Step, files: Sequence[Entry], kept: Digest | None) -> Iterator[str]:
    """The same if the list of what the step made is lost: any of these files may be a person's."""
    if files:
        yield (
            f"{step.id}: nobody can tell which files at {', '.join(step.produces)} you wrote; all are"
            f" kept (it is made again): holdfast show {(kept or '')[:12]}"
        )
