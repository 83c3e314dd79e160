"""A run that leaves its store: the contents that go with it, and how another store will see it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from holdfast.engine.collect import digests_in
from holdfast.engine.elsewhere import learned
from holdfast.engine.journals import read_state
from holdfast.engine.lines import line_journal
from holdfast.engine.naming import Names
from holdfast.engine.needed import lacking
from holdfast.model.digest import Digest
from holdfast.model.event import Recorded
from holdfast.model.line import RunImported, named_in
from holdfast.ports import Facts, RunRow, Store


class Leaving(NamedTuple):
    """What goes with a run, what is not there any more, and what its line knew."""

    contents: tuple[Digest, ...]
    absent: tuple[Digest, ...]
    line: RunImported


def leaving(store: Store, names: Names, said: RunImported, more: Iterable[Digest] = ()) -> Leaving:
    """Everything that a run names, what else is to go with it, and what is said of it there."""
    journals = [f"run:{said.run}"]
    state = read_state(store, said.run)
    line = said if state is None else learned(store, state, said)
    roots = {item.digest for item in store.artifacts(run=said.run)} | {*named_in(line)}
    roots.update(more)
    contents = named(store, journals, names, roots)
    needed = {digest for digest, _ in lacking(_Only(store, journals), {*contents})}
    absent = (needed | roots).difference(contents)
    return Leaving(tuple(contents), tuple(sorted(absent)), line)


def named(
    store: Store, journals: Iterable[str], names: Names, more: Collection[Digest]
) -> list[Digest]:
    """The contents that journals name, with all that those name."""
    roots = set(more)
    for journal in journals:
        for recorded in store.read(journal):
            roots.update(digests_in(recorded.event))
    return sorted(names.closure(roots))


class _Only:
    """Some journals of a store, as all there are."""

    def __init__(self, store: Store, journals: list[str]) -> None:
        self.read, self.get, self.runs = store.read, store.get, store.runs
        self._journals = journals

    def journals(self) -> list[str]:
        return self._journals


class Arriving:
    """A run as the store will have it that it comes to; fills the port `Facts`."""

    def __init__(self, facts: Facts, row: RunRow, said: RunImported) -> None:
        self.get = facts.get
        self._facts = facts
        self._row = row
        self._line = line_journal(row.project, row.line)
        self._said = said

    def read(self, journal: str, after: int = 0) -> Iterator[Recorded]:
        if journal == self._line:
            yield from [Recorded(1, 0, self._said)][after:]
        else:
            yield from self._facts.read(journal, after)

    def journals(self) -> Sequence[str]:
        return [f"run:{self._row.run}", self._line]

    def runs(self, line: str | None = None, *, imported: bool = False) -> list[RunRow]:
        return [self._row] if imported and line in {None, self._row.line} else []
