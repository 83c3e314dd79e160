"""What an ended attempt, or a settled conflict, comes to: facts, and what is stored together with them."""

from __future__ import annotations

from dataclasses import field

from holdfast.core.decide import Ending
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.event import RunEvent
from holdfast.model.fixed import varying


@varying
class Result:
    """An ended attempt: the fact, and everything that is stored together with it."""

    ending: Ending
    at: int
    blobs: list[tuple[Digest, bytes]] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    applied: list[str] = field(default_factory=list)  # journals of placed files, to forget after
    words: list[str] = field(default_factory=list)  # to be said afterwards
    wrote: list[str] = field(default_factory=list)  # what a shared step wrote, not yet safe
    after: list[RunEvent] = field(default_factory=list)  # what follows from it at once
    superseded: list[Artifact] = field(default_factory=list)  # what this run accepted before


@varying
class Told:
    """Facts about conflicts, and the contents they name."""

    events: list[RunEvent] = field(default_factory=list)
    blobs: list[tuple[Digest, bytes]] = field(default_factory=list)
