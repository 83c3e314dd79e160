"""The newest artifact of each step of a line, in little room: a run of a million steps has a row of each."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from holdfast.model.artifact import Artifact, Form, Source, Status
from holdfast.model.digest import Digest
from holdfast.model.plan import RunId, StepId

_LENGTHS = [32] * 4  # bytes of the four digests of a row: its refs and its content
_NAMES = sum(_LENGTHS)
_REST = struct.Struct("<Iqq")  # which words it has, when it was accepted, its number


class Words(NamedTuple):
    """What most rows of a line have in common: the columns between the digests and the moment."""

    status: Status
    source: Source
    run: RunId
    attempt: int
    form: Form
    verified: bool
    reusable: bool


class Newest(Mapping[StepId, Artifact]):
    """A map for its reader alone. A row is an artifact once it is asked for; before, it takes a quarter.

    Who needs a row no more may let go of it: it is in the map no longer, and is remembered as let go.
    """

    def __init__(self, project: str, line: str) -> None:
        self._project = project
        self._line = line
        self._rows: dict[StepId, Artifact | bytes | None] = {}
        self._words: list[Words] = []
        self._places: dict[tuple[object, ...], int] = {}  # of words as a store has them
        self._gone = 0  # rows that were let go

    def add(self, artifact: Artifact) -> None:
        """Take a row as it is."""
        self._rows[artifact.step] = artifact

    def learn(self, raw: tuple[object, ...], artifact: Artifact) -> None:
        """Know the words of a row, under what a store has for them: it has looked whether they are any."""
        if raw not in self._places:
            self._places[raw] = len(self._words)
            self._words.append(
                Words(
                    artifact.status,
                    artifact.source,
                    artifact.run,
                    artifact.attempt,
                    artifact.form,
                    artifact.verified,
                    artifact.reusable,
                )
            )

    def pack(
        self,
        step: object,
        names: Sequence[bytes],
        raw: tuple[object, ...],
        at: object,
        number: object,
    ) -> bool:
        """Take a row as a store has it; False if its words are unknown, or anything of it is odd."""
        place = self._places.get(raw)
        if place is None or [*map(len, names)] != _LENGTHS or step.__class__ is not str:
            return False
        try:
            self._rows[StepId(step)] = b"".join((*names, _REST.pack(place, at, number)))
        except struct.error:
            return False
        return True

    def let_go(self, artifact: Artifact) -> None:
        """Forget a row that was asked for; another one of the step stays."""
        if self._rows.get(artifact.step) is artifact:
            self._rows[artifact.step] = None
            self._gone += 1

    def has_let_go(self, step: StepId) -> bool:
        """Whether there was a row of the step that is not here any more."""
        return step in self._rows and self._rows[step] is None

    def contents(self) -> Iterator[tuple[Digest, Form]]:
        """The content of each row, with its form."""
        for row in self._rows.values():
            if isinstance(row, bytes):
                place = _REST.unpack_from(row, _NAMES)[0]
                yield Digest(row[_NAMES - 32 : _NAMES].hex()), self._words[place].form
            elif row is not None:
                yield row.digest, row.form

    def of(self, step: StepId) -> Artifact | None:
        """The row of a step; None if there is none, or none any more."""
        row = self._rows.get(step)
        if isinstance(row, bytes):
            row = self._rows[step] = self._unpacked(step, row)
        return row

    def __getitem__(self, step: StepId) -> Artifact:
        if (row := self.of(step)) is None:
            raise KeyError(step)
        return row

    def __iter__(self) -> Iterator[StepId]:
        return (step for step, row in self._rows.items() if row is not None)

    def __len__(self) -> int:
        return len(self._rows) - self._gone

    def _unpacked(self, step: StepId, row: bytes) -> Artifact:
        names = row[:_NAMES].hex()
        place, at, number = _REST.unpack_from(row, _NAMES)
        status, source, run, attempt, form, verified, reusable = self._words[place]
        return Artifact(
            self._project,
            self._line,
            step,
            Digest(names[:64]),
            Digest(names[64:128]),
            Digest(names[128:192]),
            Digest(names[192:]),
            status,
            source,
            run,
            attempt,
            form,
            verified,
            reusable,
            at,
            number,
        )
