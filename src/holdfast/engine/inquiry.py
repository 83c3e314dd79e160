"""What can be found out about one step: its key now or in a run, and what lies behind each change of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

from holdfast.core.causes import Mark, Piece, compare_files
from holdfast.core.changes import Change, differences
from holdfast.core.preview import Outlook
from holdfast.core.refs import Upstream, encode_own
from holdfast.core.state import COMPLETE, State
from holdfast.engine.earlier import stood_in
from holdfast.engine.evidence import Texts
from holdfast.engine.foresee import Foreseen
from holdfast.engine.journals import read_state
from holdfast.engine.outputs import Outputs
from holdfast.engine.survey import Survey
from holdfast.errors import EditError, IntegrityError
from holdfast.model.artifact import Artifact, Form
from holdfast.model.digest import Digest, Json
from holdfast.model.event import AttemptStarted, Reason
from holdfast.model.plan import Step, StepId
from holdfast.ports import Store


class Shown(NamedTuple):
    """A part of the key that differs, with the content behind it."""

    change: Change
    pieces: tuple[Piece, ...] = ()


class Above(NamedTuple):
    """What a need brought into a key."""

    ref: Upstream
    form: Form


@dataclass(frozen=True, slots=True)
class Key:
    """Everything that decided a step. `above` is None where that is not known any more."""

    own: Mapping[str, Json]
    above: Mapping[StepId, Above] | None

    def upstream(self) -> Mapping[StepId, Upstream] | None:
        """What the needs brought, as the comparison of keys takes it."""
        return None if self.above is None else {s: found.ref for s, found in self.above.items()}


def compare(old: Key, new: Key, texts: Texts, steps: Mapping[StepId, Step]) -> tuple[Shown, ...]:
    """How two keys differ, each difference with its content."""
    changes = differences(old.own, new.own, old.upstream(), new.upstream() or {})
    if new.above is None:
        changes = tuple(change for change in changes if change.part != "upstream")
    return tuple(
        Shown(c, _between(old.above, new.above, c.names, texts, steps))
        if c.part == "upstream"
        else Shown(c, texts.behind(c))
        for c in changes
    )


def _between(
    old: Mapping[StepId, Above] | None,
    new: Mapping[StepId, Above] | None,
    names: tuple[str, ...],
    texts: Texts,
    steps: Mapping[StepId, Step],
) -> tuple[Piece, ...]:
    """How the artifacts of needs differ, where both are known."""
    pieces: list[Piece] = []
    for name in names:
        step_id = StepId(name)
        was, now = (old or {}).get(step_id), (new or {}).get(step_id)
        if was is None or now is None or step_id not in steps or was.ref.digest == now.ref.digest:
            continue
        pieces += compare_files(
            texts.artifact(steps[step_id], was.ref.digest, was.form),
            texts.artifact(steps[step_id], now.ref.digest, now.form),
            texts.kept,
            texts.kept,
        )
    return tuple(pieces)


# --- the past ---------------------------------------------------------------------------------------------


class Past:
    """A run that is stored."""

    def __init__(self, store: Store, state: State, texts: Texts) -> None:
        self.state = state
        self._store = store
        self._texts = texts
        self._started: dict[StepId, list[AttemptStarted]] | None = None
        self._previous: State | None = None
        self._has_previous = False  # it was looked for

    def attempts(self, step_id: StepId) -> list[AttemptStarted]:
        """How each attempt at a step began in this run."""
        if self._started is None:
            self._started = {}
            for recorded in self._store.read(f"run:{self.state.run}"):
                if isinstance(recorded.event, AttemptStarted):
                    self._started.setdefault(recorded.event.step, []).append(recorded.event)
        return self._started.get(step_id, [])

    def reason(self, step_id: StepId) -> Reason | None:
        """Why it ran in this run if it did, else why not."""
        begun = self.attempts(step_id)
        return begun[0].reason if begun else self.state.steps[step_id].reason

    def key(self, step_id: StepId) -> Key | None:
        """The key under which this run made or reused a step; None if it got to neither."""
        begun = self.attempts(step_id)
        own = begun[-1].own_ref if begun else self._own_of_reused(step_id)
        return None if own is None else _key(self._store, own, self.state, step_id)

    def _own_of_reused(self, step_id: StepId) -> Digest | None:
        ref = self.state.steps[step_id].config_ref
        rows = self._store.artifacts(project=self.state.project, step=step_id)
        found = [row.own_ref for row in rows if ref is not None and row.config_ref == ref]
        return found[-1] if found else None

    def earlier(self, step_id: StepId) -> Artifact | None:
        """The artifact that stood before this run: in the line's previous one, or the newest by then."""
        newest, previous = self._newest_before(step_id), self.state.previous
        if newest is None or previous is None or newest.run == previous:
            return newest
        if not self._has_previous:
            self._previous, self._has_previous = read_state(self._store, previous), True
        past = self._previous
        if past is None or (not newest.run and newest.at >= past.started_at):
            return newest
        return stood_in(self._store, past, step_id) or newest

    def _newest_before(self, step_id: StepId) -> Artifact | None:
        numbers = {row.run: row.number for row in self._store.runs()}
        here = numbers.get(self.state.run, 0)
        found = None
        for row in self._store.artifacts(
            project=self.state.project, line=self.state.line, step=step_id, status="accepted"
        ):
            known = numbers.get(row.run)
            if known < here if known is not None else row.at <= self.state.started_at:
                found = row
        return found

    def behind(self, step_id: StepId) -> tuple[Shown, ...]:
        """What this run found changed, compared with the artifact that stood before it."""
        earlier, key = self.earlier(step_id), self.key(step_id)
        before = None if earlier is None else key_of(self._store, earlier)
        if before is None or key is None:
            return ()
        return compare(before, key, self._texts, self.state.plan.steps)


def key_of(store: Store, artifact: Artifact) -> Key | None:
    """The key of an artifact; None if its own parts are not there any more."""
    state = read_state(store, artifact.run) if artifact.run else None
    if state is None or artifact.step not in state.steps:
        own = _own(store, artifact.own_ref)
        return None if own is None else Key(own, None)
    return _key(store, artifact.own_ref, state, artifact.step)


def _key(store: Store, own_ref: Digest, state: State, step_id: StepId) -> Key | None:
    own = _own(store, own_ref)
    above: dict[StepId, Above] = {}
    for need in state.plan.steps[step_id].data_needs:
        then = state.steps[need]
        if then.phase in COMPLETE and then.config_ref is not None and then.digest is not None:
            above[need] = Above(Upstream(then.config_ref, then.digest), then.form)
    return None if own is None else Key(own, above)


def _own(store: Store, digest: Digest) -> Mapping[str, Json] | None:
    try:
        return cast("Mapping[str, Json]", json.loads(store.get(digest)))
    except IntegrityError:
        return None


# --- the present ------------------------------------------------------------------------------------------


class Ahead:
    """What a run would do now."""

    def __init__(
        self, store: Store, foreseen: Foreseen, survey: Survey, root: str, texts: Texts
    ) -> None:
        self.foreseen = foreseen
        self._store = store
        self._survey = survey
        self._root = root
        self._texts = texts

    def own(self, step_id: StepId) -> Mapping[str, Json]:
        """The own parts of a step as they are now; nothing if that cannot be told."""
        step = self.foreseen.graph.steps[step_id]
        try:
            own = encode_own(step, self._survey.observe(step).parts)
        except EditError:
            return {}
        return cast("Mapping[str, Json]", json.loads(own))

    def key(self, step_id: StepId) -> Key:
        """The present key, as far as it is known: a need that is still to run brings nothing yet."""
        above: dict[StepId, Above] = {}
        for need in self.foreseen.graph.steps[step_id].data_needs:
            outlook = self.foreseen.outlooks[need]
            found = standing(outlook)
            if outlook.probe is not None and found is not None and outlook.decision == "reuse":
                above[need] = Above(
                    Upstream(outlook.probe.refs.config_ref, found.digest), found.form
                )
        return Key(self.own(step_id), above)

    def behind(self, step_id: StepId) -> tuple[Shown, ...]:
        """What changed since a step last stood, with the content behind it."""
        outlook = self.foreseen.outlooks[step_id]
        probe, reason = outlook.probe, outlook.reason
        if reason.code == "output_modified":
            return self._by_hand(step_id, outlook)
        shown = (
            [self._shown(step_id, change, probe.base) for change in probe.changes] if probe else []
        )
        if probe and not shown and reason.code == "input_changed" and not reason.because:
            note = "they changed while it ran, so that artifact is not reused"
            change = Change("inputs", reason.code, (), None, None)
            return (Shown(change, (Piece("inputs", "changed", note=note),)),)
        above = any(item.change.part == "upstream" for item in shown)
        if reason.code == "upstream_changed" and not above:
            shown.append(Shown(Change("upstream", reason.code, reason.because, None, None)))
        return tuple(shown)

    def _shown(self, step_id: StepId, change: Change, base: Artifact | None) -> Shown:
        if change.part != "upstream":
            return Shown(change, self._texts.behind(change))
        before = None if base is None else key_of(self._store, base)
        if before is None:
            return Shown(change)
        steps = self.foreseen.graph.steps
        above = self.key(step_id).above
        return Shown(change, _between(before.above, above, change.names, self._texts, steps))

    def _by_hand(self, step_id: StepId, outlook: Outlook) -> tuple[Shown, ...]:
        step, names = self.foreseen.graph.steps[step_id], outlook.reason.because
        kept = standing(outlook)
        if kept is None:
            return ()
        try:
            entries = Outputs(self._root, "", self._store).read(step)
        except EditError:
            return ()
        was = self._texts.artifact(step, kept.digest, kept.form)
        now = {entry.path: Mark(entry.digest, entry.executable) for entry in entries}
        pieces = compare_files(
            {path: mark for path, mark in was.items() if path in names},
            {path: mark for path, mark in now.items() if path in names},
            self._texts.kept,
            self._texts.now,
        )
        change = Change("output", "output_modified", names, None, None)
        return (Shown(change, pieces),)


def standing(outlook: Outlook) -> Artifact | None:
    """The artifact that stands, or would if nothing had changed."""
    probe = outlook.probe
    return None if probe is None else probe.found or probe.same_content or probe.base
