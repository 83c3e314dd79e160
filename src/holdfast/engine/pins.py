"""What people want kept: pins, as the journals of the lines tell them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.model.digest import Digest
from holdfast.model.line import PinKind, Pinned, Unpinned
from holdfast.model.plan import RunId
from holdfast.ports import Facts


class Pin(NamedTuple):
    """One pin: what, which artifact it meant, who set it, when and why."""

    kind: PinKind
    name: str
    digest: Digest | None
    run: RunId | None
    by: str
    because: Digest | None
    at: int
    journal: str


def pins(store: Facts) -> Sequence[Pin]:
    """The pins that hold now, oldest first."""
    found: dict[tuple[PinKind, str], Pin] = {}
    for journal in store.journals():
        for recorded in store.read(journal) if journal.startswith("line:") else ():
            event = recorded.event
            if isinstance(event, Pinned):
                digest = Digest(event.name) if event.kind == "content" else event.digest
                run = RunId(event.name) if event.kind == "run" else event.run
                found[event.kind, event.name] = Pin(
                    event.kind,
                    event.name,
                    digest,
                    run,
                    event.by,
                    event.because,
                    recorded.at,
                    journal,
                )
            elif isinstance(event, Unpinned):
                found.pop((event.kind, event.name), None)
    return list(found.values())
