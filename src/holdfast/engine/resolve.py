"""How people settle the conflicts of a line: one word for each, the first one counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from holdfast.engine.conflicts import place_of, read_record
from holdfast.engine.decisions import Person
from holdfast.engine.journals import read_state, runs_of
from holdfast.engine.lines import Line
from holdfast.engine.unkept import Hidden, check_words
from holdfast.errors import IntegrityError, UsageError
from holdfast.model.conflict import Conflict
from holdfast.model.event import ConflictFound
from holdfast.model.line import ConflictDecided, LineEvent
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Store

MINE, THEIRS = "mine", "theirs"


class Open(NamedTuple):
    """A conflict that nobody settled, and the run that waits for it."""

    run: RunId
    found: ConflictFound
    record: Conflict


class Desk:
    """The open conflicts of one line, as somebody who decides sees them.

    Words that hold a secret of `hidden` are refused.
    """

    def __init__(
        self,
        store: Store,
        project: str,
        line: str,
        clock: Callable[[], int],
        hidden: Hidden = tuple,
    ) -> None:
        self._store = store
        self._project = project
        self._name = line
        self._line = Line(store, project, line, clock)
        self._hidden = hidden
        self._said: dict[str, ConflictDecided] = {}

    def open(self) -> list[Open]:
        """The conflicts of unfinished runs, in the order they were found."""
        found = []
        for row in runs_of(self._store, self._project, self._name):
            state = read_state(self._store, row.run)
            if state is not None and not state.ended:
                found += [
                    Open(row.run, event, read_record(self._store, event.record))
                    for event in state.conflicts.values()
                ]
        return found

    def find(self, name: str) -> Open:
        """The open conflict that a person means by its id, the beginning of it, or a step in it."""
        some = self.open()
        fits = [one for one in some if one.found.conflict.startswith(name)]
        fits = fits or [one for one in some if name in one.found.steps]
        if len(fits) == 1:
            return fits[0]
        if not fits:
            what = f"no open conflict is called '{name}'" if some else "no conflict is open"
            raise UsageError(what, hint="holdfast conflicts")
        names = ", ".join(one.found.conflict for one in fits)
        raise UsageError(f"'{name}' may be {names}", hint="say more of the id")

    def meant(self, conflict: Open, word: str) -> StepId:
        """The step whose position a word names; empty for what lies in the project."""
        steps = [step for step in conflict.record.steps if step]
        about_files = conflict.record.kind != "agents"
        if word in steps:
            return StepId(word)
        if word == MINE and about_files:
            return StepId("")
        if word == THEIRS and len(steps) == 1:
            return steps[0]
        known = [*steps, *([MINE] if about_files else [])]
        raise UsageError(
            f"'{word}' is no side of conflict '{conflict.found.conflict}'",
            hint=f"--take {' | '.join(known)}",
        )

    def decide(self, conflict: Open, take: StepId, person: Person, because: str) -> ConflictDecided:
        """Say how a conflict is settled; UsageError if somebody was faster or nobody may."""
        if take or conflict.record.kind == "agents":
            self._check(conflict.record, take)
        check_words(because, self._hidden)
        why = self._store.put(because.encode()) if because else None

        def say() -> LineEvent:
            said = self._said.get(conflict.found.conflict)
            if said is not None:
                whose = said.take or MINE
                raise UsageError(
                    f"'{said.by}' settled conflict '{said.conflict}' already: '{whose}' stands",
                    hint="holdfast resume",
                )
            name = conflict.found.conflict
            return ConflictDecided(name, take, person.user, why, terminal=person.terminal)

        self._line.tell(say, self._refresh)
        return self._said[conflict.found.conflict]

    def _check(self, record: Conflict, take: StepId) -> None:
        try:
            place_of(record, take)
        except IntegrityError as error:
            raise UsageError(error.message, hint="holdfast conflicts") from error

    def _refresh(self) -> None:
        for recorded in self._line.news():
            event = recorded.event
            if isinstance(event, ConflictDecided):
                self._said.setdefault(event.conflict, event)
