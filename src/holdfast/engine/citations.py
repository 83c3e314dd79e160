"""Whether what a handoff refers to is there: entries of the ledger by their ids, contents by their digests.

An id is known if somebody told it on this line at any time, if it stands on the page that the attempt was
given, or if it is the handoff's own. A source in plain words, a path or an address is not looked up: the
journal cannot know whether the world has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from holdfast.core.said import PERSON
from holdfast.engine.handoffs import Handoffs
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.handoff import Handoff, entry_id
from holdfast.model.plan import StepId
from holdfast.ports import Candidate, Store

_ENTRY = re.compile("[ehu]-[0-9a-f]{12}")
_DIGEST = re.compile("[0-9a-f]{64}")
_OWN: dict[str, Callable[[str, str], str]] = {
    "evidence": lambda text, by: entry_id("e", PERSON, text, by),
    "uncertainty": lambda text, _: entry_id("u", PERSON, text),
}


class Citations:
    """What was told on one line, by ids; grows with the journal, so that each handoff is read once."""

    def __init__(self, store: Store, project: str, line: str) -> None:
        self._store = store
        self._handoffs = Handoffs(store, project, line)
        self._known: set[str] = set()
        self._told = self._said = 0

    def unknown(
        self,
        handoff: Handoff,
        step: StepId,
        page: Callable[[], str] = str,
        own: Callable[[], set[str]] = set,
    ) -> list[str]:
        """What a handoff refers to and nobody told, each with its place.

        `page` gives what its attempt was told, `own` the digests of what it made; few are asked.
        """
        named = [(place, name) for place, name in _named(handoff) if _ENTRY.fullmatch(name)]
        if named:
            self._refresh()
            mine = {*ids_in(handoff, step)}
            named = [one for one in named if one[1] not in self._known and one[1] not in mine]
        if named:
            shown = {*_ENTRY.findall(page())}
            named = [one for one in named if one[1] not in shown]
        return [
            *(f"'{place}' names '{name}', which nobody told" for place, name in named),
            *(
                f"'changed[{number}].ref' names the content '{one.ref[:12]}', which is not stored"
                for number, one in enumerate(handoff.changed)
                if _DIGEST.fullmatch(one.ref)
                and not self._store.has(Digest(one.ref))
                and one.ref not in own()
            ),
        ]

    def _refresh(self) -> None:
        self._handoffs.refresh()
        for step, told in self._handoffs.ever(self._told):
            self._told += 1
            self._known.add(told.id)
            self._known.update(ids_in(told.handoff, step))
        for said in self._handoffs.said[self._said :]:
            self._said += 1
            if (make := _OWN.get(said.word)) is not None:
                self._known.add(make(said.text, said.by))


def digests_of(made: Candidate) -> Callable[[], set[str]]:
    """What a candidate consists of, by digest; worked out only if somebody asks."""
    return lambda: {
        digest_bytes(made.content),
        *(digest_bytes(file.content) for file in made.files),
        *(entry.digest for entry in made.entries),
    }


def ids_in(handoff: Handoff, step: StepId) -> Iterator[str]:
    """The ids of the entries that a handoff makes."""
    for one in handoff.observed:
        yield entry_id("e", step, one.finding, one.source)
    if handoff.uncertainty:
        yield entry_id("u", step, handoff.uncertainty)


def _named(handoff: Handoff) -> Iterator[tuple[str, str]]:
    """Everything that a handoff may refer to an earlier entry with, and where."""
    for number, one in enumerate(handoff.observed):
        yield f"observed[{number}].source", one.source
        yield from ((f"observed[{number}].supports", name) for name in one.supports)
        yield from ((f"observed[{number}].refutes", name) for name in one.refutes)
    for key, names in (
        ("resolves", handoff.resolves),
        ("testing", handoff.testing),
        ("refers_to", handoff.refers_to),
    ):
        yield from ((key, name) for name in names)
    for name, trial in handoff.hypotheses.items():
        yield from ((f"hypotheses.{name}.evidence", item) for item in trial.evidence)
