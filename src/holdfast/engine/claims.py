"""Claims: what keeps engines that share a line from doing the same step twice."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.core.state import State
from holdfast.engine.inheritance import Beside
from holdfast.engine.journals import Followed
from holdfast.engine.losses import put_back
from holdfast.engine.probe import Probed
from holdfast.engine.scribe import Scribe
from holdfast.engine.world import World
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    AttemptStarted,
    RunEnded,
)
from holdfast.model.plan import RunId, Step, StepId
from holdfast.ports import ClaimKey

_Ending = AttemptAccepted | AttemptParked | AttemptRejected | AttemptFailed | AttemptLost


class Claims:
    """The claims of one engine; `look_again` is told of a step that another one has just finished."""

    def __init__(
        self,
        world: World,
        state: State,
        scribe: Scribe,
        beside: Beside,
        look_again: Callable[[StepId], None],
    ) -> None:
        self._world = world
        self._state = state
        self._scribe = scribe
        self._beside = beside
        self._look_again = look_again
        self._held: dict[StepId, tuple[ClaimKey, int]] = {}
        self.contested: set[StepId] = set()  # another engine has them
        self._followed = Followed(world.store, state.project, state.line, state.run, whole=True)
        self._under_way: dict[RunId, set[StepId]] = {}
        self._tried: list[StepId] = []  # where attempts of other runs began or ended, in order
        self._known = 0  # how many of them all that is looked up takes into account
        self._read_at: dict[StepId, int] = {}  # and did when a step was looked at

    def take(self, step: Step, probed: Probed) -> int | None:
        """Take the step for this engine; None while another one has it, or has just finished it."""
        state, refs = self._state, probed.probe.refs
        key = ClaimKey(state.project, state.line, step.id, refs.config_ref)
        if step.id in self._held and self._held[step.id][0] != key:
            self.let_go(step.id)
        if self._is_given_up(key):
            self.contested.add(step.id)
            return None
        fence = self._world.store.claim(key, self._world.owner.engine)
        if fence is None:
            self.contested.add(step.id)
            return None
        self._held[step.id] = (key, fence)
        forced = state.options.force or state.options.wants(step.id)
        forced = forced or state.steps[step.id].remade
        found = self._world.store.find(state.project, state.line, step.id, refs.config_ref)
        is_news = found is not None and found != probed.probe.found
        if is_news and not forced and not probed.probe.unsure:
            self.let_go(step.id)
            self._look_again(step.id)
            return None
        return fence

    def _is_given_up(self, key: ClaimKey) -> bool:
        """Whether a commit under way gives this claim up; what no commit has yet is not given up at all."""
        pending = self._scribe.pending
        pending.released = [claim for claim in pending.released if claim[0] != key]
        return any(claim[0] == key for claim in self._scribe.releasing)

    def is_in_hand(self, step_id: StepId) -> bool:
        """Whether another engine has the effect of a step in hand, under whatever key: it is waited for."""
        if not self._beside.has_in_hand(step_id):
            return False
        self.contested.add(step_id)
        return True

    def is_left(self, step: Step, probed: Probed, is_held: Callable[[], object]) -> bool:
        """Whether an effect that nobody confirmed is in nobody's hand, so that a person must look.

        That is found out under the claim: nobody begins the same effect meanwhile, and whoever had it said
        before how it ended. What does not come out so is looked at again.
        """
        if self.take(step, probed) is None:
            return False
        self.let_go(step.id)  # with the next commit
        if self.is_in_hand(step.id):
            return False
        if not is_held():
            self.contested.add(step.id)
            return False
        return True

    def refresh(self) -> None:
        """What was looked up is about to be forgotten where other runs accepted something since."""
        self._known = len(self._tried)

    def looks(self, step_id: StepId) -> None:
        """The files of a step are about to be read."""
        self._read_at[step_id] = self._known

    def are_tried(self, step_id: StepId, counting: Callable[[set[StepId]], set[StepId]]) -> bool:
        """Whether other runs try steps that count, or did so since the files of a step were read.

        What lies there then is perhaps not all that will, or will be taken back: it is looked at again.
        """
        self._follow()
        since = self._tried[self._read_at.get(step_id, 0) :]
        tried = counting({*since}.union(*self._under_way.values()))
        if tried:
            self._put_back(tried)
            self.contested.add(step_id)
        return bool(tried)

    def at_work(self, step_id: StepId) -> bool:
        """Whether another run of the line has an attempt at a step, which may have written its outputs."""
        self._follow()
        return self._put_back({step_id})

    def _put_back(self, steps: set[StepId]) -> bool:
        """Put back what dead engines left of these steps; whether any run has an attempt at one of them."""
        runs = [run for run, tried in self._under_way.items() if not tried.isdisjoint(steps)]
        if runs:
            put_back(self._world, self._state, runs)
        return bool(runs)

    def _follow(self) -> None:
        self._followed.has_grown()
        for run, event in self._followed.news():
            under_way = self._under_way.setdefault(run, set())
            if isinstance(event, AttemptStarted):
                under_way.add(event.step)
                self._tried.append(event.step)
            elif isinstance(event, _Ending):
                under_way.discard(event.step)
                self._tried.append(event.step)
            elif isinstance(event, RunEnded):
                del self._under_way[run]

    def let_go(self, step_id: StepId) -> None:
        """Give the claim on a step up with the next commit, if there is one."""
        if claim := self._held.pop(step_id, None):
            self._scribe.pending.released.append(claim)

    def ended(self, step_id: StepId) -> None:
        """An attempt ended: what it made counts only under the claim, which a further attempt keeps."""
        if claim := self._held.get(step_id):
            self._scribe.pending.held.append(claim)
            if self._state.steps[step_id].phase != "pending":
                self.let_go(step_id)

    async def share(self) -> None:
        """Another engine joined the line: claim what runs here."""
        state, owner = self._state, self._world.owner.engine
        for step_id, started in list(state.running.items()):
            key = ClaimKey(state.project, state.line, step_id, started.config_ref)
            fence = await self._scribe.writer.call(self._world.store.claim, key, owner)
            if fence is not None and step_id in state.running:
                self._held[step_id] = (key, fence)

    def take_contested(self) -> list[StepId]:
        """The steps that another engine had, to be looked at again."""
        steps = sorted(self.contested)
        self.contested.clear()
        return steps
