"""What a line knows of its earlier runs, and what people said to it since."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from holdfast.core.changes import Before
from holdfast.core.effects import open_since, stands_as, telling
from holdfast.core.fold import apply
from holdfast.core.history import results
from holdfast.core.refs import Refs, Upstream
from holdfast.core.state import State, StepState
from holdfast.core.views import person_row
from holdfast.engine.journals import has_ended, read_state
from holdfast.engine.lines import line_journal
from holdfast.engine.rebuilt import holds
from holdfast.engine.received import Received
from holdfast.engine.words import doubted
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.event import RunEnded
from holdfast.model.line import ContentPurged, StepAccepted, StepAmended, StepUndone
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Store

Word = StepAmended | StepAccepted
MOST_RUNS = 20


class _Said(NamedTuple):
    """What people wrote to the line: refs they withdrew; after which run they put a version in place.

    `given` are the versions that were not withdrawn since, each with its moment; `purged` are contents that
    were removed, with the journals that had made something of them. `received` are brought runs.
    """

    undone: dict[StepId, set[Digest]]
    after: dict[tuple[StepId, Digest, Digest], RunId]
    given: dict[StepId, list[tuple[int, Word]]]
    purged: list[tuple[frozenset[Digest], frozenset[str]]]
    received: Received


class EarlierRuns:
    """Looks into the runs of one line, each folded once, and into the line's own journal."""

    def __init__(
        self, store: Store, project: str, line: str, is_there: Callable[[Artifact], bool]
    ) -> None:
        self._store = store
        self._project = project
        self._line = line
        self._is_there = is_there
        self._past: dict[RunId, State | None] = {}
        self._came_to: dict[RunId, Mapping[StepId, Upstream]] = {}
        self._ends: dict[RunId, bool] = {}
        self._words: _Said | None = None
        self.alone = True  # no other engine drives a run of this line meanwhile

    # --- runs ---------------------------------------------------------------------------------------

    def results(self, run: RunId) -> Mapping[StepId, Upstream]:
        """What the steps of a run came to that it completed; nothing if its journal is gone."""
        if run not in self._came_to:
            self._came_to[run] = results(self._store.read(f"run:{run}"))
        return self._came_to[run]

    def lately(self, steps: Sequence[StepId]) -> Iterator[Mapping[StepId, Upstream]]:
        """What the newest runs that made something of these steps came to."""
        rows = (row for step in steps for row in self.accepted(step))
        made = sorted((row.number, row.run) for row in rows if row.run)
        runs = [*dict.fromkeys(run for _, run in reversed(made))]
        for run in runs[:MOST_RUNS]:
            if has_ended(self._store, run):
                yield self.results(run)

    def accepted(self, step: StepId) -> Iterator[Artifact]:
        """What was accepted for a step in the line."""
        return self._store.artifacts(
            project=self._project, line=self._line, step=step, status="accepted"
        )

    def made(self, step: StepId) -> Iterator[Artifact]:
        """The same with what people withdrew since: it may lie there again."""
        for row in self._store.artifacts(project=self._project, line=self._line, step=step):
            if row.status in {"accepted", "withdrawn"}:
                yield row

    def once_accepted(self, step: StepId) -> Iterator[Artifact]:
        """What was accepted, but of what another store brought only what lacks nothing but its content."""
        gone = self.said().received.gone
        for row in self.accepted(step):
            if row.source != "imported" or (gone and doubted(row) in gone):
                yield row

    def before(self, step: StepId, refs: Refs, previous: RunId | None) -> Before:
        """How the line's previous run left this step, if it tried it under the same ref."""
        if previous is None or self.was_completed(previous):
            return ""
        past = self.past(previous)
        if past is None or step not in past.steps:
            return ""
        then = past.steps[step]
        if then.phase in {"pending", "skipped"} and not then.attempts:
            return "incomplete"
        if then.config_ref not in {None, refs.config_ref}:
            return ""
        if then.phase == "failed":
            return "failed" if then.attempts else "unmade"
        if then.parked is not None:  # it was made, and waited for a person
            return ""
        interrupted = then.running or (then.last and then.last.code == "previous_interrupted")
        return "interrupted" if interrupted else ""

    def was_completed(self, run: RunId) -> bool:
        """Whether a run came to its end; nothing of it has to be read for that but its last event."""
        if run not in self._ends:
            journal = f"run:{run}"
            last = self._store.read(journal, max(0, self._store.last(journal) - 1))
            self._ends[run] = [recorded.event for recorded in last] == [RunEnded("completed")]
        return self._ends[run]

    def now(self, run: RunId) -> State | None:
        """An earlier run as it stands now: an engine that shares the line may still drive it."""
        found = self.past(run)
        if found is not None and not found.ended and not self.alone:
            for recorded in self._store.read(f"run:{run}", found.seq):
                apply(found, recorded)
        return found

    def recall(self, left: State) -> None:
        """An earlier run that was folded already."""
        self._past[left.run] = left

    def past(self, run: RunId) -> State | None:
        """An earlier run, folded once; None if its journal is gone."""
        if run not in self._past:
            self._past[run] = read_state(self._store, run)
        return self._past[run]

    # --- effects that nobody confirmed --------------------------------------------------------------

    def open_since(self, step: StepId, previous: RunId | None) -> dict[RunId, int] | None:
        """From where on a person's word is about an effect that earlier runs left open; None if none is."""
        words = [word for _, word in self.said().given.get(step, ())]
        since = open_since(self.now, words, step, previous)
        if since is None and (left := self.left_elsewhere(step, previous)) is not None:
            then = left.steps[step]
            return {left.run: then.effect_at or then.held_at}
        return since

    def left_elsewhere(self, step: StepId, previous: RunId | None) -> State | None:
        """The run of another store that left an effect of a step open, if nobody answered that here."""
        return self.said().received.open_of(self._store, self.now, step, previous)

    def unconfirmed(self, step: StepId, previous: RunId | None) -> StepState | None:
        """How the last run that tried a step left it, if an effect was started there and not confirmed."""
        for past, _ in telling(self.now, step, previous):
            then = past.steps.get(step)
            if then is not None and then.effect is not None:
                return then
        left = self.left_elsewhere(step, previous)
        return None if left is None or left.steps[step].effect is None else left.steps[step]

    # --- what people said ---------------------------------------------------------------------------

    def said(self) -> _Said:
        """What people wrote to the line until now, read once."""
        if self._words is None:
            self._words = _Said({}, {}, {}, [], Received())
            for recorded in self._store.read(line_journal(self._project, self._line)):
                event = recorded.event
                self._words.received.take(recorded)
                if isinstance(event, StepUndone):
                    refs = self._words.undone.setdefault(event.step, set())
                    refs.update(row.config_ref for row in event.rows)
                    self._words.given.pop(event.step, None)
                elif isinstance(event, StepAmended | StepAccepted):
                    key = (event.step, event.config_ref, event.digest)
                    self._words.after[key] = event.after_run
                    self._words.given.setdefault(event.step, []).append((recorded.at, event))
                elif isinstance(event, ContentPurged):
                    upto = frozenset(told.journal for told in event.upto)
                    self._words.purged.append((frozenset(event.digests), upto))
        return self._words

    def forget_words(self) -> None:
        """People may have said more to the line."""
        self._words = None

    def given(self, step: StepId, since: Mapping[RunId, int]) -> Artifact | None:
        """What a person put in the place of a step last, after one of these events of runs."""
        for at, word in reversed(self.said().given.get(step, ())):
            if word.after_run in since and word.after_seq >= since[word.after_run]:
                row = person_row(word, self._project, self._line, at)
                return row if self._is_there(row) else None
        return None

    def was_given_after(self, run: RunId, artifact: Artifact) -> bool:
        """Whether a person put this artifact in place when that run was the last one."""
        key = (artifact.step, artifact.config_ref, artifact.digest)
        return self.said().after.get(key) == run

    def is_undone(self, step: StepId, ref: Digest, newest: Artifact | None) -> bool:
        """Whether a person withdrew what stood under this ref, or the only thing that ever stood."""
        refs = self.said().undone.get(step, set())
        return bool(refs) and (newest is None or ref in refs)

    def was_purged(self, artifact: Artifact) -> bool:
        """Whether a person had its content removed; equal content that came since is another's."""
        if artifact.reusable:
            return False
        own = line_journal(self._project, self._line)
        journal = f"run:{artifact.run}" if artifact.run else own
        return any(
            journal in upto and holds(self._store, artifact, digests)
            for digests, upto in self.said().purged
        )


def stood_in(store: Store, past: State, step: StepId) -> Artifact | None:
    """The accepted artifact that a step had in a run of its line."""
    came_to = stands_as(past, step)
    if came_to is None:
        return None
    return accepted_as(store, past.project, past.line, step, came_to)


def accepted_as(
    store: Store, project: str, line: str, step: StepId, came_to: Upstream
) -> Artifact | None:
    """The newest accepted artifact of a step under this ref and with this content."""
    found = None
    for row in store.artifacts(project=project, line=line, step=step, status="accepted"):
        if (row.config_ref, row.digest) == came_to:
            found = row
    return found
