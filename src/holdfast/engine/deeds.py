"""What steps do outside: under which key, and what other runs of the line left open of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.core.effects import effect_name, made_none
from holdfast.core.state import State, StepState
from holdfast.engine.journals import start_of
from holdfast.engine.opened import is_left, sharing
from holdfast.engine.probe import Prober
from holdfast.model.digest import Digest, digest_json
from holdfast.model.event import AttemptStarted, EffectStarted
from holdfast.model.plan import RunId, Step, StepId
from holdfast.ports import Store


class _Deed(NamedTuple):
    """What a run says of the last effect of a step: whose it was, whether it is open, under which key."""

    run: RunId
    attempt: str
    is_left: bool
    key: Digest | None = None


class Deeds:
    """Knows what was done outside for one run, and beside it."""

    def __init__(self, store: Store, engine: str, state: State, prober: Prober) -> None:
        self._store = store
        self._engine = engine
        self._state = state
        self._prober = prober
        self._joined: dict[RunId, bool] = {}
        self._wished = self._open_for_wishes()

    def begin(self, step: Step, started: AttemptStarted) -> EffectStarted | None:
        """What an attempt is about to do outside.

        Its key is the same if it is the same effect and was never confirmed, else a new one.
        """
        if step.effects != "external" or started.reguard is not None:
            return None
        run, before = self._state.run, self._state.steps[step.id]
        left = [found for found in self._of(step.id) if found.is_left]
        key = digest_json({"run": run, "step": started.step, "attempt": started.attempt})
        if before.effect is None and not before.effect_at:
            key = next((found.key for found in left if found.key), key)
            before = self._prober.earlier.unconfirmed(step.id, self._state.previous) or before
        if before.effect and (before.config_ref == started.config_ref or not _failed(before)):
            key = before.effect
        names = [one.attempt for one in left]
        if (
            other := self._prober.earlier.left_elsewhere(step.id, self._state.previous)
        ) is not None:
            names.append(effect_name(other, step.id))
        return EffectStarted(step.id, started.attempt, key, tuple(names))

    def is_open_beside(self, step_id: StepId) -> bool:
        """Whether an engine that shared the line left the effect of a step open; the newest run knows.

        What was open when this run acted itself is no news: it was allowed to.
        """
        here, tried = self._state.steps[step_id], False
        for found in self._of(step_id):
            if found.run == self._state.run:
                tried = bool(here.effect_at)
            elif found.is_left and found.attempt not in here.beside:
                return True
            elif not found.is_left and not tried:
                return False
        return False

    def are_news(self, step_id: StepId) -> bool:
        """Whether an effect is open beside that was not when somebody asked for the step by name."""
        left = {found.attempt for found in self._of(step_id) if found.is_left}
        return not left <= self._wished.get(step_id, frozenset())

    def held_beside(self, step_id: StepId) -> dict[RunId, int]:
        """The runs that are held for what this one left open, each with the event that holds it."""
        others = (one for one in self._sharing(step_id) if one is not self._state)
        held = (other for other in others if made_none(other, step_id))
        return {other.run: other.steps[step_id].held_at for other in held}

    def _open_for_wishes(self) -> dict[StepId, frozenset[str]]:
        """What is open of steps that somebody asked for by name as the run begins; later nobody knows."""
        options, plan = self._state.options, self._state.plan.steps
        wanted = (*options.force_steps, *options.resample)
        once = [s for s in wanted if s in plan and plan[s].done_once]
        start = start_of(self._store, self._state.run) if once else None
        if start is None or start.engine != self._engine:
            return {}
        return {s: frozenset(e.attempt for e in self._of(s) if e.is_left) for s in once}

    def _of(self, step_id: StepId) -> Iterator[_Deed]:
        """What the runs of the line say of a step's effect, newest first."""
        for other in self._sharing(step_id):
            if other is self._state:
                yield _Deed(other.run, "", is_left=False)
            elif (left := is_left(other, step_id)) is not None:
                key = other.steps[step_id].effect
                yield _Deed(other.run, effect_name(other, step_id), left, key)

    def _sharing(self, step_id: StepId) -> Iterator[State]:
        return sharing(self._store, self._state, step_id, self._prober.earlier.now, self._joined)


def _failed(before: StepState) -> bool:
    """Whether its command ended by itself, without a result: no other effect has to fear its key."""
    code = before.reason.code if before.reason is not None else ""
    return before.phase == "failed" and code == "command_failed"
