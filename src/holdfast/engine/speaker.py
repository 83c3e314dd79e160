"""Somebody who says something about the ledger of a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from holdfast.core.said import Said, own_entry
from holdfast.core.state import State
from holdfast.engine.decisions import Person
from holdfast.engine.lines import tell_line
from holdfast.engine.unkept import Hidden, check_free, check_words
from holdfast.engine.words import in_doubt
from holdfast.errors import UsageError
from holdfast.model.digest import Digest
from holdfast.model.line import LedgerSaid, LedgerWord
from holdfast.model.plan import StepId
from holdfast.ports import Store


class Speaker:
    """Somebody who says something about the ledger of one line; words that hold a secret are refused."""

    def __init__(
        self,
        store: Store,
        state: State,
        person: Person,
        clock: Callable[[], int],
        hidden: Hidden = tuple,
    ) -> None:
        self._store = store
        self._state = state
        self._person = person
        self._clock = clock
        self._hidden = hidden

    def add(self, word: LedgerWord, text: str, because: str) -> LedgerSaid:
        """An entry of one's own."""
        check_free("the text", text, self._hidden)
        return self._tell(LedgerSaid(word, self._person.user, text=self._kept(text)), because)

    def own(self, word: LedgerWord, text: str) -> str:
        """The id that an entry of one's own has, or would have."""
        return own_entry(Said(word, "", text, self._person.user))

    def about(self, word: LedgerWord, entry: str, because: str, other: str = "") -> LedgerSaid:
        """A word about an entry that is there."""
        return self._tell(LedgerSaid(word, self._person.user, entry, other), because)

    def contest(self, entry: str, steps: Sequence[StepId], because: str) -> LedgerSaid:
        """Doubt of an entry: what its steps made stands for no reuse until they made it again."""
        rows = in_doubt(self._store, self._state, steps)
        return self._tell(LedgerSaid("contest", self._person.user, entry, rows=rows), because)

    def _tell(self, event: LedgerSaid, because: str) -> LedgerSaid:
        check_words(because, self._hidden)
        whole = replace(
            event,
            because=self._kept(because) if because else None,
            terminal=self._person.terminal,
        )
        tell_line(
            self._store,
            self._state.project,
            self._state.line,
            lambda: (self._clock(), whole, []),
        )
        return whole

    def _kept(self, text: str) -> Digest:
        return self._store.put(text.encode("utf-8", "surrogatepass"))


def check_text(text: str, what: str) -> str:
    """A person's text without what surrounds it; UsageError if nothing is left."""
    found = text.strip()
    if not found:
        raise UsageError(f"{what} is empty", hint="say it in words")
    return found
