"""What a fork takes along from the line it comes from: what was handed over, and what people said of it.

All of it stands in the journal of the new line in the order and with the times that it had: a word about a
step counts for what the step told before, and not for what it told after it. A contest puts in doubt there
what the fork has of the artifacts that it doubts, so the next run of the fork makes them again, too. That
the plan holds in spite of something counts as well. Approvals do not: they were given for another line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from holdfast.core.state import State
from holdfast.engine.handoffs import Handoffs
from holdfast.engine.lines import line_journal
from holdfast.engine.words import doubted
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.line import Doubted, LedgerSaid, LineEvent, ReplanAnswered
from holdfast.model.plan import StepId
from holdfast.ports import Store

_Made = tuple[StepId, Digest, Digest, int]


def taken_along(
    store: Store, origin: State, rows: Sequence[Artifact]
) -> list[tuple[int, LineEvent]]:
    """The events for the line of a fork; `rows` are the artifacts that it takes."""
    handoffs = Handoffs(store, origin.project, origin.line)
    handoffs.refresh()
    came = (handoffs.given(row.step, row.config_ref, row.digest) for row in rows)
    found: list[tuple[int, int, LineEvent]]
    found = [(one.seq, one.at, one.event) for one in came if one is not None]
    taken = {_made(doubted(row)): doubted(row) for row in rows}
    found += _words(store, origin, taken)
    return [(at, event) for _, at, event in sorted(found, key=lambda one: one[0])]


def _words(
    store: Store, origin: State, taken: Mapping[_Made, Doubted]
) -> Iterator[tuple[int, int, LineEvent]]:
    for seq, at, event in store.read(line_journal(origin.project, origin.line)):
        if isinstance(event, LedgerSaid):
            named = dict.fromkeys(taken.get(_made(row)) for row in event.rows)
            rows = tuple(row for row in named if row is not None)
            yield seq, at, replace(event, rows=rows)
        elif isinstance(event, ReplanAnswered) and event.choice == "go_on":
            yield seq, at, event


def _made(row: Doubted) -> _Made:
    """What a row has in common with the one that it was taken from."""
    return row.step, row.config_ref, row.digest, row.at
