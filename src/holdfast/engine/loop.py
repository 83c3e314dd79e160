"""The loop: react, look, start, commit, launch, settle; until nothing is left to do.

State in memory may be ahead of the disk by what is queued, never the other way round, and the world
outside is never ahead of the disk: an attempt is launched, and anything is told to a person, only
after the commit that names it. If a commit fails, this engine is over; the next one reads what is
stored, folds it, and goes on from there.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from shlex import quote

from holdfast.core.decide import leave_out, set_aside, settle
from holdfast.core.effects import DOUBTED, WAS_DONE
from holdfast.core.react import can_never_start, limit_reached, react
from holdfast.core.reopen import reopenings
from holdfast.core.state import State
from holdfast.engine.attempt import Bench
from holdfast.engine.briefs import Briefs
from holdfast.engine.calls import Switchboard
from holdfast.engine.claims import Claims
from holdfast.engine.conflicts import Conflicts
from holdfast.engine.crew import Crew
from holdfast.engine.desk import Desk
from holdfast.engine.finish import Finisher
from holdfast.engine.grow import NOTHING, Grower, Steps
from holdfast.engine.growth import Growth
from holdfast.engine.handoffs import given
from holdfast.engine.heed import FREE, People, under
from holdfast.engine.hold import Hold
from holdfast.engine.inheritance import Beside
from holdfast.engine.look import Look, Looker
from holdfast.engine.outputs import Outputs
from holdfast.engine.pending import Pending
from holdfast.engine.places import INLINE, Places
from holdfast.engine.replans import Replans
from holdfast.engine.result import Result
from holdfast.engine.scribe import Scribe
from holdfast.engine.sent import Notes
from holdfast.engine.survey import Survey
from holdfast.engine.tools import tool_versions, versions_for
from holdfast.engine.unchanged import leave_note, sources_of
from holdfast.engine.world import World
from holdfast.errors import EditError, StoreError
from holdfast.model.event import (
    AttemptAccepted,
    AttemptParked,
    AttemptStarted,
    OutputsPlaced,
    Reason,
    Reused,
    RunEvent,
    StepHeld,
    StepsReopened,
)
from holdfast.model.plan import Step, StepId
from holdfast.process.hints import Hints

MOST_AT_ONCE = 256
BREATH = 0.005  # seconds


class Engine:
    """Drives one run to its end, or to where it has to rest.

    `heard` is how far the line's journal says nothing about this run that it did not answer, `left` the run
    before it if its state is known.
    """

    def __init__(
        self,
        world: World,
        state: State,
        fence: int,
        hold: Hold,
        survey: Survey,
        heard: int | None = None,
        left: State | None = None,
    ) -> None:
        self.state = state
        self._world = world
        self._hold = hold
        self._survey = survey
        journal, steps = world.journal(state.run), state.plan.steps
        self._outputs = outputs = Outputs(world.root, journal, world.store, steps, world.hidden)
        self._scribe = Scribe(world, state, fence, hold, outputs)
        self._append = self._scribe.append
        self._bench = Bench(world, state, survey, outputs)
        self._looker = Looker(world, state, survey, outputs, self._bench, left)
        if hold.sharing:
            self._looker.not_alone()
        self._conflicts = Conflicts(world, state, outputs, self._scribe.content)
        sent = Notes(world.scratch, state.run, world.owner.boot)
        self._finisher = Finisher(world, state, survey, outputs, self._bench, self._conflicts, sent)
        grower = Grower(world, state, state.heard if heard is None else heard)
        self._growth = Growth(grower, self._scribe, self._grown, self._looker.would_run)
        self._looker.heed(grower.additions, self._growth.unfit)
        self._briefs = Briefs(world, state, self._scribe.content, self._scribe.rows)
        survey.heed(self._briefs.in_ref)
        self._replans = Replans(world, state, self._scribe.content, self._scribe.rows)
        self._people = People(
            world,
            state,
            hold,
            self._scribe,
            self._finisher,
            self._growth,
            self.settle,
            self._looker.deeds.held_beside,
        )
        self._board = Switchboard(
            world, state, self._scribe, self._bench.contents, sent, self._call
        )
        self._places = Places(world, state, self._board, self._call)
        self._crew = Crew(
            world,
            state,
            self._bench,
            self._board,
            self._places,
            self._finisher,
            self._growth,
            self._people,
            self._ended,
            self._failed,
            hold.check_alive,
            lambda: self._over or self._error is not None,
        )
        self._beside = Beside(world.store, state)
        self._claims = Claims(world, state, self._scribe, self._beside, self._look_again)
        self._desk = Desk(state, self._places.of, world.resources)
        self._has_agents = any(step.agent for step in steps.values())
        self._seen = 0
        self._to_look: deque[StepId] = deque()
        self._turns = 0
        self._stuck: set[StepId] = set()
        self._looks: dict[StepId, tuple[Look, int]] = {}
        self._stopping = False
        self._over = False
        self._alarm: int | None = None
        self._warned = False
        self._error: BaseException | None = None
        self._wake = asyncio.Event()
        self._events: asyncio.AbstractEventLoop
        self._heard = 0.0

    # --- from outside -----------------------------------------------------------------------------

    def stop(self, *, now: bool = False) -> None:
        """Start nothing more; with `now`, also end what is running. Both can be resumed."""
        self._stopping = True
        if now:
            self._crew.stop()
        self._wake.set()

    def record(self, events: Iterable[RunEvent]) -> None:
        """Queue facts that were found before the loop began."""
        self._scribe.record(events)

    def placed(self, event: OutputsPlaced, key: str) -> None:
        """Queue the fact that files were written from the store before the loop began."""
        self._append(event)
        self._scribe.pending.applied.append(key)

    def settle(
        self, result: Result, more: Steps = NOTHING, started: AttemptStarted | None = None
    ) -> None:
        """Take in how an attempt ended, and what follows from that; `more` are the steps that it adds."""
        self._scribe.take(result)
        for event in settle(self.state, result.ending):
            self._append(event, result.at)
        ending = result.ending
        if more and started is not None and isinstance(ending, AttemptAccepted) and ending.stands:
            self._growth.of_attempt(more, started, ending)
        if started is not None and (told := given(self.state.run, started, ending)) is not None:
            self._scribe.pending.said.append((result.at, told))
        if result.after:
            self._scribe.record(result.after)
        while self.state.reopening and (following := reopenings(self.state)):
            for reopened in following:
                self._append(reopened)
                if isinstance(reopened, StepsReopened):
                    self._looker.reopened()
            self._desk.again()

    async def drive(self) -> State:
        """Run until the run ends or rests."""
        self._events = asyncio.get_running_loop()
        pulse = asyncio.create_task(self._pulse())
        try:
            self._survey.know(
                await tool_versions(self.state.plan, self._world.root, self._world.terms)
            )
            begun = self.state.plan
            sources = sources_of(self._world, begun)
            while not self._over:
                self._wake.clear()
                await self._turn()
                if self._error is not None:
                    raise self._error
                if not self._over:
                    await self._breathe()
                    await self._wait()
            self._bench.leave()
            leave_note(self._world, self.state, self._survey.tools, sources, begun)
            return self.state
        finally:
            await self._crew.close()
            fresh = self._survey.take_fresh()
            if fresh and self._error is None:
                with contextlib.suppress(StoreError):  # only a cache
                    await self._scribe.writer.call(self._world.store.remember_stats, fresh)
            pulse.cancel()  # not before: it wakes the loop if the writer's thread could not
            await asyncio.gather(pulse, return_exceptions=True)
            self._scribe.writer.close()
            self._bench.close()
            await self._board.close()
            await self._world.executor.close()

    async def _breathe(self) -> None:
        """Let attempts, signals and the heartbeat be heard; each 5 ms if only this loop works (15 µs)."""
        now = self._events.time()
        if self._crew.is_busy or self._scribe.committing or now - self._heard > BREATH:
            self._heard = now
            await asyncio.sleep(0)

    async def _wait(self) -> None:
        """Until something happened, or the moment comes at which the core wants to be asked again."""
        if self._alarm is None:
            await self._wake.wait()
            return
        left = max(0, self._alarm - self._world.clock()) / 1000
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left):
                await self._wake.wait()

    @property
    def _is_running(self) -> bool:
        return self.state.status == "running"

    @property
    def _stays(self) -> bool:
        """Whether the run goes on waiting where only a person can help."""
        return self._world.stays and not self._replans.goes_over

    @property
    def _is_held(self) -> bool:
        """Whether nothing more may start until a person looked."""
        return self.state.escalation is not None or self.state.replan is not None

    # --- one turn ---------------------------------------------------------------------------------

    async def _turn(self) -> None:
        if not self._is_alive():
            return
        while True:
            self._turns += 1
            if self._hold.has_requests and self._is_running:
                self._hold.has_requests = False
                self._growth.hear()
            waits = self.state.counts["waiting"] or self.state.conflicts
            if self._hold.has_news and waits and self._is_running:
                self._people.heed()
            if self._has_agents and self._is_running:
                self._scribe.tell(self._conflicts.in_waves())
            if self._is_running:
                self._scribe.tell(self._replans.look())
            if self._growth.unasked:
                steps = self._growth.take_unasked()
                self._survey.know(await versions_for(steps, self._world.root, self._world.terms))
            following = react(
                self.state,
                seen=self._seen,
                now=self._world.clock(),
                stopping=self._stopping,
                staying=self._stays,
                stuck=self._stuck,
            )
            self._seen, self._alarm = following.seen, following.wake
            self._to_look.extend(following.probe)
            if not self._to_look or self._stopping or self._is_held:
                if following.end is not None and self._growth.hear():
                    continue
                break
            self._refresh()
            for _ in range(min(MOST_AT_ONCE, len(self._to_look))):
                self._look(self._to_look.popleft())
            self._fill()
            if self._scribe.pending.launch:  # reuse alone can wait for more of its kind
                self._flush()
            if self._error is not None:
                return
            await self._breathe()
        if following.end is not None:
            self._append(following.end)
        self._fill()
        self._flush()
        if self._scribe.has_said_all:  # what ended before is told first
            if not self._is_running:
                self._over = True
            elif self._stays and (self.state.counts["waiting"] or self.state.replan):
                self._people.say_waiting()

    def _is_alive(self) -> bool:
        """Whether this engine still has its line: who stood still for long asks first."""
        try:
            self._hold.check_alive()
        except BaseException as error:  # noqa: BLE001 - an engine that was taken over is over
            self._error = error
        return self._error is None

    def _look(self, step_id: StepId) -> None:
        """Find out what is to be done with a ready step: reuse it now, or queue it for a slot."""
        if step_id not in self.state.ready:
            return
        if self._has_agents and self._people.is_in_conflict(step_id):
            self._claims.let_go(step_id)
            return
        step = self.state.plan.steps[step_id]
        if step.when is not None and (words := self._looker.unmet(step, self._scribe.content)):
            self._claims.let_go(step_id)
            self._append(set_aside(self.state, step_id, words))
            return
        if step.template is not None and not self._growth.has_items(step, self._people.may_add):
            self._claims.let_go(step_id)
            return
        if step_id.endswith("]") and not self._growth.is_listed(step):
            self._claims.let_go(step_id)
            return
        look = self._decided(step)
        if look is None:
            self._claims.let_go(step_id)
        elif self.state.demands and can_never_start(self.state, step_id, self._world.resources):
            self._stuck.add(step_id)
        else:
            self._looks[step_id] = (look, self._turns)
            self._desk.put(step_id)

    def _decided(self, step: Step) -> Look | None:
        """What to run; None if the step was settled on the spot."""
        if self._hold.sharing:
            self._claims.looks(step.id)
        try:
            look = self._looker.look(step)
        except EditError as error:
            if self._scribe.places_files:  # perhaps what is in the way
                self._claims.contested.add(step.id)
            elif not self._is_changed_beside(step):
                self._scribe.fail(step.id, Reason("command_failed", (error.message,)))
            return None
        if look.placed is not None:
            self._append(look.placed)
            self._scribe.pending.applied.append(look.key)
        if look.choice.action == "reuse":
            self._reuse(look)
            return None
        if self._is_changed_beside(step):
            return None
        if look.choice.action == "skip":
            self._append(leave_out(self.state, step.id))
            return None
        drifted = look.choice.reason.code == "output_modified"
        if drifted and self._hold.sharing and self._may_be_anothers(step, look):
            self._claims.contested.add(step.id)
            return None
        if drifted and self.state.options.on_drift == "fail":
            self._scribe.fail(step.id, look.choice.reason)
            return None
        if step.reads_keys and (lacking := self._looker.lacking(step, self._scribe.content)):
            self._scribe.fail(step.id, Reason("key_missing", lacking))
            return None
        if step.done_once and self._hold.sharing and self._claims.is_in_hand(step.id):
            return None
        if held := self._looker.held_for(step, look):
            still = partial(self._looker.held_for, step, look)
            if not self._hold.sharing or self._claims.is_left(step, look.probed, still):
                self._hold_back(step.id, held)
            return None
        return look

    def _hold_back(self, step_id: StepId, reason: Reason) -> None:
        """A person must look before a step touches the outside again."""
        self._append(StepHeld(step_id, reason))
        if reason.code in WAS_DONE:
            self._world.remind(_was_done(step_id, reason))

    def _may_be_anothers(self, step: Step, look: Look) -> bool:
        """Whether what lies at a step's output paths may come from an attempt of another engine.

        One that was at work when they were read may have ended since: then it is known what it made.
        """
        at_it = partial(self._claims.at_work, step.id)
        return at_it() or not self._looker.edited(step, look.probed) or at_it()

    def _is_changed_beside(self, step: Step) -> bool:
        """Whether another engine changes files now that a step reads, or did since they were read."""
        counting = self._looker.counting(step.id) if self._hold.sharing else None
        return counting is not None and self._claims.are_tried(step.id, counting)

    def _reuse(self, look: Look) -> None:
        """Let the artifact stand, with the steps that came with it."""
        artifact, probe = look.choice.artifact, look.probed.probe
        assert artifact is not None  # a reuse has one
        ref, code = probe.refs.config_ref, look.choice.reason.code
        if code == "unchanged_content":
            row = replace(artifact, config_ref=ref, run=self.state.run, attempt=0)
            self._scribe.pending.artifacts.append(row)
            self._scribe.pending.superseded += self._finisher.superseded(probe.step)
        self._scribe.reuse(Reused(probe.step, ref, artifact.digest, artifact.form, code))
        if more := self._growth.comes_with(artifact):
            self._growth.again(more, artifact)
        self._looker.let_go(artifact)

    # --- starting -----------------------------------------------------------------------------------

    def _call(self) -> None:
        """Something is to be stored for whoever waits for it, or there is room for another attempt."""
        self._wake.set()

    def _look_again(self, step_id: StepId) -> None:
        self._to_look.append(step_id)
        self._wake.set()

    def _fill(self) -> None:
        """Start what waits, best first, while there is room: functions of this process, then the rest."""
        if self._stopping or self.state.status != "running" or self._is_held:
            return
        if limit_reached(self.state, self._world.clock()) is not None:
            return
        self._briefs.renew()
        while (step_id := self._desk.take(self._has_room, self._passed_over)) is not None:
            self._start(step_id)

    def _has_room(self, place: str) -> bool:
        if place == INLINE:
            return len(self._scribe.pending.launch) < MOST_AT_ONCE
        return self._places.has_room(place)

    def _passed_over(self, step_id: StepId) -> None:
        """A step left the queue: it is ready no more, or what it stands on is made again first."""
        self._looks.pop(step_id, None)

    def _start(self, step_id: StepId) -> None:
        step = self.state.plan.steps[step_id]
        look = self._still(step, *self._looks.pop(step_id))
        if look is None:
            return
        fence = self._claimed(step, look) if self._hold.sharing else 0
        if fence is None:
            return
        if step.secrets and not self._growth.may_know(step):
            self._claims.let_go(step_id)
            return
        pays = bool(self.state.added) and self._growth.costs_unasked(step)
        asks = pays or step.asks_first
        answer = self._people.may_begin(step, look, pays=pays) if asks else FREE
        if not answer.granted:
            self._claims.let_go(step_id)
            return
        try:
            started, blobs, words = self._looker.start(step, look)
        except EditError as error:
            self._claims.let_go(step_id)
            if not self._is_changed_beside(step):
                self._scribe.fail(step_id, Reason("command_failed", (error.message,)))
            return
        if fence:
            started = replace(started, fence=fence)
        started, more = self._briefs.told(step, started)
        if answer.approvals:
            started = under(started, step, answer)
        self._crew.observed[step_id] = look.probed.lying
        asks = step.asks_model or step.has_judge
        if asks and (kept := self._beside.answers(step_id, shared=bool(fence))) is not None:
            self._append(kept)
        if started.reguard is not None and step.uses != "human":
            probe = look.probed.probe
            self._growth.carry(step_id, look.choice.artifact or probe.found or probe.newest)
        effect = self._looker.deeds.begin(step, started)
        self._append(started)
        if effect is not None:
            self._append(effect)
        self._scribe.pending.blobs += [*blobs, *more]
        self._scribe.pending.words += words
        self._scribe.pending.launch.append(started)
        self._places.begin(step_id)

    def _refresh(self) -> None:
        """Take note of what people and other engines did meanwhile."""
        self._claims.refresh()
        self._looker.refresh()

    def _still(self, step: Step, look: Look, turn: int) -> Look | None:
        """What to run of a step that was looked at in a turn; None if it was settled on the spot."""
        waited = turn != self._turns and step.id not in self._world.inline
        if not waited or not look.probed.seen:
            return look
        if self._hold.sharing:
            self._refresh()
        return self._decided(step)  # the world may have changed meanwhile

    def _claimed(self, step: Step, look: Look) -> int | None:
        """The fence of this engine's claim on a step; None while that is another one's, or settled."""
        fence = self._claims.take(step, look.probed)
        if fence is None:
            return None
        if self._is_changed_beside(step):  # by one that saw other files, and has another claim
            self._claims.let_go(step.id)
            return None
        held = self._looker.held_for(step, look) if step.done_once else None
        if held is not None:  # by whoever had the claim
            self._claims.let_go(step.id)
            if not self._claims.is_in_hand(step.id):
                self._hold_back(step.id, held)
            return None
        return fence

    def _grown(self) -> None:
        """The plan has further steps."""
        self._looker.grow()
        steps = self.state.plan.steps
        self._has_agents = self._has_agents or any(steps[s].agent for s in self.state.added)

    # --- committing ---------------------------------------------------------------------------------

    def _flush(self) -> None:
        if self._error is None:
            self._scribe.flush(self._stored, busy=self._crew.is_busy)

    def _stored(self, error: BaseException | None, pending: Pending) -> None:
        """A batch is stored: now it may be told, and what it names may begin."""
        self._wake.set()
        if error is not None:
            self._error = error
            return
        for waiter in pending.waiters:
            if not waiter.done():
                waiter.set_result(None)
        try:
            for key in pending.applied:
                self._outputs.placed(key)
            for line in pending.words:
                self._world.remind(line)
            if pending.events:
                self._world.on_events(pending.events)
            if pending.launch:
                self._hold.check_alive()
            for started in pending.launch:
                self._crew.launch(started)
        except BaseException as raised:  # noqa: BLE001 - an engine that cannot tell or run is over
            self._error = raised

    # --- attempts -----------------------------------------------------------------------------------

    def _failed(self, error: BaseException) -> None:
        self._error = error
        self._wake.set()

    def _ended(self, started: AttemptStarted, result: Result, more: Steps) -> None:
        self._places.end(started.step)
        if more and isinstance(result.ending, AttemptParked):
            self._growth.keep(more, result)
        if isinstance(result.ending, AttemptAccepted) and not result.ending.confined:
            if not self._warned:
                self._world.say("steps run unconfined; hint: holdfast doctor says what there is")
            self._warned = True
        self.settle(result, more, started)
        if self.state.options.fail_fast and self.state.counts["failed"]:
            self._stopping = True
        self._claims.ended(started.step)
        self._board.settled()  # what a call of it had reserved is free again
        self._wake.set()

    # --- beside -------------------------------------------------------------------------------------

    async def _pulse(self) -> None:
        """Heartbeat, the line's inbox, and steps that another engine had."""
        hints = Hints()
        try:
            while True:
                if self._hold.sharing:
                    hints.listen(self._world.store.hints)
                await hints.rest(self._world.poll_seconds)
                await self._hold.pulse(self._scribe.writer)
                if self._hold.others and not self._hold.sharing:
                    self._hold.sharing = True
                    self._looker.not_alone()
                    await self._claims.share()
                    await self._hold.beat(self._scribe.writer)  # says that claims are written
                if self._hold.stop_asked is not None:
                    self.stop(now=self._hold.stop_asked)
                self._to_look.extend(self._claims.take_contested())
                self._wake.set()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - without a heart the engine is over
            self._error = error
            self._wake.set()
        finally:
            hints.close()


def _was_done(step_id: StepId, reason: Reason) -> str:
    name = quote(step_id)  # of an item it has brackets
    if reason.code == DOUBTED:
        return (
            f"{step_id}: {', '.join(reason.because)}; doing it again may repeat its effect,"
            f" and holdfast retry {name} does it"
        )
    return (
        f"{step_id}: what it gave is gone, and doing it again would repeat its effect;"
        f" holdfast amend {name} FILE says what it gave, holdfast retry {name} does it again"
    )
