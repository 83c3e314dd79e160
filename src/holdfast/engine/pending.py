"""What goes into the next commit of an engine."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.event import AttemptStarted, Recorded, Reused
from holdfast.model.line import LineEvent
from holdfast.ports import ClaimKey


@dataclass(slots=True)
class Pending:
    """What goes into the next commit, and what happens once it is stored."""

    events: list[Recorded] = field(default_factory=list)
    blobs: list[tuple[Digest, bytes]] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    held: list[tuple[ClaimKey, int]] = field(default_factory=list)
    released: list[tuple[ClaimKey, int]] = field(default_factory=list)
    launch: list[AttemptStarted] = field(default_factory=list)
    applied: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    wrote: list[str] = field(default_factory=list)
    reused: list[Reused] = field(default_factory=list)  # gathered for the last event
    said: list[tuple[int, LineEvent]] = field(default_factory=list)  # to the line
    waiters: list[asyncio.Future[None]] = field(default_factory=list)  # told once it is stored
    superseded: list[Artifact] = field(default_factory=list)  # the run accepts something else
