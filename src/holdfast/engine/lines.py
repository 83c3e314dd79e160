"""The journal of a line: what people say about it, and which runs it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.errors import ConflictError
from holdfast.model.artifact import Artifact
from holdfast.model.event import Recorded
from holdfast.model.line import LineEvent, StepAccepted, StepAmended
from holdfast.ports import Append, Batch, Store


def line_journal(project: str, line: str) -> str:
    """The name of a line's journal; a slash in the project cannot be mistaken for the separator."""
    safe = project.replace("%", "%25").replace("/", "%2F")
    return f"line:{safe}/{line}" if project else f"line:{line}"


def tell_line(
    store: Store, project: str, line: str, say: Callable[[], tuple[int, LineEvent, list[Artifact]]]
) -> LineEvent:
    """Append one fact to a line's journal, whoever else writes to it; `say` is asked again each time."""
    journal = line_journal(project, line)
    while True:
        last = store.last(journal)
        at, event, rows = say()
        appends = [Append(journal, last, [(at, event)])]
        if isinstance(event, StepAmended | StepAccepted) and event.after_run:
            appends.append(Append(f"run:{event.after_run}", event.after_seq, ()))
        try:
            store.commit(Batch(appends, rows))
        except ConflictError:
            if all(store.last(append.journal) == append.expected for append in appends):
                raise
            continue
        return event


class Line:
    """A line's journal as one reader and writer of it knows it."""

    def __init__(
        self, store: Store, project: str, line: str, clock: Callable[[], int], after: int = 0
    ) -> None:
        self._store = store
        self._journal = line_journal(project, line)
        self._clock = clock
        self._read = after

    def news(self) -> Iterator[Recorded]:
        """What was said since the last time."""
        for recorded in self._store.read(self._journal, self._read):
            self._read = recorded.seq
            yield recorded

    def tell(self, say: Callable[[], LineEvent | None], refresh: Callable[[], object]) -> None:
        """Append what `say` gives, if it gives something.

        It is asked after everything was read that stands in the journal, and again whenever somebody else
        was faster: what is said is true where it stands.
        """
        while True:
            refresh()
            event = say()
            if event is None:
                return
            try:
                self._store.commit(
                    Batch([Append(self._journal, self._read, [(self._clock(), event)])])
                )
            except ConflictError:
                if self._store.last(self._journal) == self._read:
                    raise
                continue
            refresh()
            return
