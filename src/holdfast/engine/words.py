"""What people say about the ledger of a line, and which artifacts a contest puts in doubt."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress

from holdfast.core.above import stands_for
from holdfast.core.evidence import Evidence, names_source
from holdfast.core.ledger import Ledger
from holdfast.core.said import Said, upheld
from holdfast.core.state import State
from holdfast.engine.lines import Line
from holdfast.errors import IntegrityError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.event import AttemptStarted, Recorded
from holdfast.model.line import Doubted, LedgerSaid, LedgerWord
from holdfast.model.plan import StepId
from holdfast.model.sources import source_name
from holdfast.ports import Store

OWN: tuple[LedgerWord, ...] = ("evidence", "uncertainty", "gap")  # entries of people themselves
REMOVED = "the words were removed"
Read = Callable[[Digest], bytes]


def said_in(recorded: Recorded, read: Read) -> Said | None:
    """A person's word as the fold takes it; None if it is none, or if its text was removed."""
    event = recorded.event
    if not isinstance(event, LedgerSaid):
        return None
    because = kept_text(event.because, read)
    text = event.other or because  # what is kept apart
    if event.word in OWN:
        text = kept_text(event.text, read)
        if text == REMOVED:
            return None
    return Said(event.word, event.entry, text, event.by, recorded.at, because, recorded.seq)


def kept_text(content: Digest | None, read: Read) -> str:
    """Text from the store; that it was removed, if it was."""
    if content is None:
        return ""
    with suppress(IntegrityError):
        return read(content).decode("utf-8", "replace")
    return REMOVED


# --- what no longer stands ------------------------------------------------------------------------


class Contests:
    """The artifacts of one line that stand for no reuse, because what came with them is contested."""

    def __init__(self, store: Store, project: str, line: str) -> None:
        self._line = Line(store, project, line, lambda: 0)
        self._rows: dict[str, tuple[Doubted, ...]] = {}
        self._by_row: dict[Doubted, list[str]] | None = None

    def refresh(self) -> None:
        """Read what was said since."""
        for recorded in self._line.news():
            event = recorded.event
            if not isinstance(event, LedgerSaid):
                continue
            if event.word == "contest":
                self._rows[event.entry] = (*self._rows.get(event.entry, ()), *event.rows)
            elif event.word == "uphold":
                self._rows.pop(event.entry, None)
            self._by_row = None

    def of(self, row: Artifact | None) -> tuple[str, ...]:
        """What is contested of what came with an artifact."""
        if self._by_row is None:
            self._by_row = {}
            for entry, rows in self._rows.items():
                for one in dict.fromkeys(rows):
                    self._by_row.setdefault(one, []).append(entry)
        if row is None or not self._by_row:
            return ()
        return tuple(self._by_row.get(doubted(row), ()))


def doubted(row: Artifact) -> Doubted:
    """How a contest names a row of the index."""
    return Doubted(row.step, row.config_ref, row.digest, row.run, row.attempt, row.at)


def in_doubt(store: Store, state: State, steps: Iterable[StepId]) -> tuple[Doubted, ...]:
    """The rows behind what these steps of a run stand on, with what a person put in their place since."""
    found: list[Doubted] = []
    for step_id in steps:
        here = state.steps[step_id]
        if here.phase not in {"done", "reused"} or here.digest is None:
            continue
        rows = store.artifacts(
            project=state.project, line=state.line, step=step_id, status="accepted"
        )
        newest = store.newest(state.project, state.line, step_id)
        stand = {here.digest, *([newest.digest] if newest is not None else ())}
        found += [doubted(row) for row in rows if row.digest in stand]
    return tuple(found)


def steps_behind(ledger: Ledger, state: State, entry: str) -> tuple[StepId, ...]:
    """The steps that told what is contested: evidence, a handoff, a step or a source.

    A step that gathers told nothing: it is about those whose work it gathers. What counts no more nobody
    tells again: it is about those that stand on it.
    """
    if entry in state.steps:
        named = [*stands_for(state.plan.steps, entry)] or [StepId(entry)]
        gone = {one.id for one in ledger.past if one.step in named}
    else:
        named = [one.step for one in ledger.handoffs if one.id == entry]
        named += [one.step for one in ledger.evidence if _is_about(entry, one)]
        gone = {one.id for one in ledger.past if _is_about(entry, one)}
    named += _standing_on(ledger, gone) if gone else ()
    return tuple(dict.fromkeys(step for step in named if step in state.steps))


def _is_about(entry: str, one: Evidence) -> bool:
    is_about = entry in (one.id, one.handoff, one.source) or names_source(one, source_name(entry))
    return is_about and entry not in one.stands_on


def _standing_on(ledger: Ledger, gone: Collection[str]) -> Iterator[StepId]:
    """The steps whose findings or verdicts name something of this."""
    for one in ledger.evidence:
        ids = (name for base in one.stands_on for name in ledger.found_by.get(base, (base,)))
        if any(name in gone for name in ids):
            yield one.step
    for told in ledger.handoffs:
        if any(
            name in gone for trial in told.handoff.hypotheses.values() for name in trial.evidence
        ):
            yield told.step


# --- who made what stands -------------------------------------------------------------------------


def maker(store: Store, state: State, step_id: StepId) -> Artifact | None:
    """Who made what stands of a step in a run; without an attempt it was taken from elsewhere."""
    here = state.steps[step_id]
    if here.phase not in {"done", "reused"} or here.digest is None:
        return None
    rows = store.artifacts(project=state.project, line=state.line, step=step_id, status="accepted")
    known = [row for row in rows if row.digest == here.digest]
    made = [row for row in known if row.attempt] or known
    here_made = [row for row in made if row.run == state.run]
    return next(reversed(here_made or made), None)


def attempts_of(store: Store, run: str) -> Iterator[AttemptStarted]:
    """The attempts of a run in their order."""
    for recorded in store.read(f"run:{run}"):
        if isinstance(recorded.event, AttemptStarted):
            yield recorded.event


# --- what is contested ----------------------------------------------------------------------------


def contests_in(said: Sequence[Said]) -> dict[str, Said]:
    """What is contested now, with the last word about it."""
    return {one.entry: one for one in upheld(said) if one.word == "contest"}
