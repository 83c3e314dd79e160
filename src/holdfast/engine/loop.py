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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from holdfast.core.approvals import Approval
from holdfast.core.decide import fail, leave_out, reset, settle
from holdfast.core.fold import apply, extend
from holdfast.core.moves import IN_CONFLICT, INTERRUPTED
from holdfast.core.react import can_never_start, limit_reached, react
from holdfast.core.reopen import reopenings
from holdfast.core.state import State, StepState
from holdfast.engine.attempt import Bench, Result
from holdfast.engine.commit import Writer
from holdfast.engine.conflicts import Told
from holdfast.engine.copies import Copy
from holdfast.engine.desk import Desk
from holdfast.engine.gate import Answer, Gatekeeper
from holdfast.engine.grow import NOTHING, Grower, Steps
from holdfast.engine.growth import Growth
from holdfast.engine.hold import Hold
from holdfast.engine.lines import line_journal
from holdfast.engine.look import Look, Looker
from holdfast.engine.outputs import Outputs
from holdfast.engine.pending import Pending
from holdfast.engine.probe import Probed
from holdfast.engine.questions import HELD
from holdfast.engine.settling import Settler
from holdfast.engine.survey import Survey
from holdfast.engine.tools import tool_versions, versions_for
from holdfast.engine.unchanged import leave_note, sources_of
from holdfast.engine.worktrees import drop_worktree, make_worktree
from holdfast.engine.world import World
from holdfast.errors import AttemptError, ConflictError, EditError, LockedError, StoreError
from holdfast.model.digest import Digest, Json, digest_bytes, digest_json
from holdfast.model.event import (
    AttemptAccepted,
    AttemptParked,
    AttemptStarted,
    ConflictFound,
    EffectStarted,
    Event,
    OutputsPlaced,
    Reason,
    Recorded,
    Reused,
    RunEvent,
    StepHeld,
    StepsReleased,
    StepsReused,
)
from holdfast.model.line import LineEvent
from holdfast.model.plan import Step, StepId, fragment_bytes
from holdfast.ports import Append, Batch, ClaimKey, Outcome

MOST_AT_ONCE = 256
MOST_REUSED = 1000
QUICK_MS = 2  # a commit that takes no longer is not worth handing over, also while attempts run
BREATH = 0.005  # seconds


class Engine:
    """Drives one run to its end, or to where it has to rest.

    `heard` is how far the line's journal says nothing about this run that it did not answer.
    """

    def __init__(
        self,
        world: World,
        state: State,
        fence: int,
        hold: Hold,
        survey: Survey,
        heard: int | None = None,
    ) -> None:
        self.state = state
        self._world = world
        self._fence = fence
        self._hold = hold
        self._writer = world.writer() if world.writer is not None else Writer()
        self._survey = survey
        journal, steps = world.journal(state.run), state.plan.steps
        self._outputs = Outputs(world.root, journal, world.store, steps)
        self._bench = Bench(world, state, survey, self._outputs)
        self._bench.conflicts.content = self._content
        self._looker = Looker(world, state, survey, self._outputs, self._bench)
        self._gates = Gatekeeper(world, state)
        self._inherited: set[StepId] = set()
        if state.counts["waiting"]:
            self._inherited = {s for s, here in state.steps.items() if _asked_before(here)}
        self._said_waiting: set[StepId] = set()
        self._settler = Settler(state, self._bench)
        self._has_agents = any(step.agent for step in steps.values())
        self._pending = Pending()
        grower = Grower(world, state, state.heard if heard is None else heard)
        self._growth = Growth(grower, self._append, lambda: self._pending, self._grown)
        self._looker.ask_whether_fit(self._growth.unfit)
        self._committed = state.seq
        self._committing = False
        self._storing: list[tuple[Digest, bytes]] = []
        self._took = 0
        self._seen = 0
        self._to_look: deque[StepId] = deque()
        self._turns = 0
        self._desk = Desk(state, world.inline, world.resources)
        self._stuck: set[StepId] = set()
        self._looks: dict[StepId, tuple[Look, int]] = {}
        self._observed: dict[StepId, Mapping[str, Json]] = {}
        self._claims: dict[StepId, tuple[ClaimKey, int]] = {}
        self._contested: set[StepId] = set()
        self._tasks: dict[StepId, asyncio.Task[None]] = {}
        self._outside = 0
        self._stopping = False
        self._ending = False  # also what is running
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
            self._ending = True
            for task in self._tasks.values():
                task.cancel()
        self._wake.set()

    def record(self, events: Iterable[RunEvent]) -> None:
        """Queue facts that were found before the loop began."""
        for event in events:
            self._append(event)

    def settle(
        self, result: Result, more: Steps = NOTHING, started: AttemptStarted | None = None
    ) -> None:
        """Take in how an attempt ended, and what follows from that; `more` are the steps that it adds."""
        self._take(result)
        for event in settle(self.state, result.ending):
            self._append(event, result.at)
        if more and started is not None and isinstance(result.ending, AttemptAccepted):
            self._growth.of_attempt(more, started, result.ending)
        self._follow(result.after)
        while following := reopenings(self.state):
            for reopened in following:
                self._append(reopened)
                self._looker.reopened(reopened.steps)
            self._desk.again()

    def placed(self, event: OutputsPlaced, key: str) -> None:
        """Queue the fact that files were written from the store before the loop began."""
        self._append(event)
        self._pending.applied.append(key)

    async def drive(self) -> State:
        """Run until the run ends or rests."""
        self._events = asyncio.get_running_loop()
        pulse = asyncio.create_task(self._pulse())
        try:
            self._survey.know(await tool_versions(self.state.plan, self._world.root))
            sources = sources_of(self._world, self.state.plan)
            while not self._over:
                self._wake.clear()
                await self._turn()
                if self._error is not None:
                    raise self._error
                if not self._over:
                    await self._breathe()
                    await self._wait()
            self._bench.leave()
            leave_note(self._world, self.state, self._survey.tools, sources)
            return self.state
        finally:
            await self._end_tasks()
            fresh = self._survey.take_fresh()
            if fresh and self._error is None:
                with contextlib.suppress(StoreError):  # only a cache
                    await self._writer.call(self._world.store.remember_stats, fresh)
            pulse.cancel()  # not before: it wakes the loop if the writer's thread could not
            await asyncio.gather(pulse, return_exceptions=True)
            self._writer.close()
            self._bench.close()
            await self._world.executor.close()

    async def _breathe(self) -> None:
        """Let attempts, signals and the heartbeat be heard; each 5 ms if only this loop works (15 µs)."""
        now = self._events.time()
        if self._tasks or self._committing or now - self._heard > BREATH:
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

    async def _end_tasks(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    @property
    def _is_running(self) -> bool:
        return self.state.status == "running"

    # --- one turn ---------------------------------------------------------------------------------

    async def _turn(self) -> None:
        while True:
            self._turns += 1
            if self._hold.has_requests and self._is_running:
                self._hold.has_requests = False
                self._growth.hear()
            waits = self.state.counts["waiting"] or self.state.conflicts
            if self._hold.has_news and waits and self._is_running:
                self._heed()
            if self._has_agents and self._is_running:
                self._tell(self._bench.conflicts.in_waves())
            if self._growth.unasked:
                steps = self._growth.take_unasked()
                self._survey.know(await versions_for(steps, self._world.root))
            following = react(
                self.state,
                seen=self._seen,
                now=self._world.clock(),
                stopping=self._stopping,
                staying=self._world.stays,
                stuck=self._stuck,
            )
            self._seen, self._alarm = following.seen, following.wake
            self._to_look.extend(following.probe)
            if not self._to_look or self._stopping or self.state.escalation is not None:
                if following.end is not None and self._growth.hear():
                    continue
                break
            self._looker.refresh()
            for _ in range(min(MOST_AT_ONCE, len(self._to_look))):
                self._look(self._to_look.popleft())
            self._fill()
            if self._pending.launch:  # reuse alone can wait for more of its kind
                self._flush()
            if self._error is not None:
                return
            await self._breathe()
        if following.end is not None:
            self._append(following.end)
        elif self._world.stays and self.state.counts["waiting"]:
            self._say_waiting()
        self._fill()
        self._flush()
        if self.state.status != "running" and not self._committing and not self._pending.events:
            self._over = True

    def _say_waiting(self) -> None:
        """Nothing goes on but the waiting: say once for which steps."""
        state = self.state
        waiting = {s for s, here in state.steps.items() if here.phase == "waiting"}
        if state.running or state.ready or waiting == self._said_waiting:
            return
        self._said_waiting = waiting
        names = sorted(waiting, key=state.graph.rank.__getitem__)
        self._world.say(f"waiting for a person: {', '.join(names)}; Ctrl-C stops, resume goes on")

    def _look(self, step_id: StepId) -> None:
        """Find out what is to be done with a ready step: reuse it now, or queue it for a slot."""
        if step_id not in self.state.ready:
            return
        if self._has_agents and self._in_conflict(step_id):
            return
        step = self.state.plan.steps[step_id]
        look = self._decided(step)
        if look is None:
            self._let_go(step_id)
        elif self.state.demands and can_never_start(self.state, step_id, self._world.resources):
            self._stuck.add(step_id)
        else:
            self._looks[step_id] = (look, self._turns)
            self._desk.put(step_id)

    def _decided(self, step: Step) -> Look | None:
        """What to run; None if the step was settled on the spot."""
        try:
            look = self._looker.look(step)
        except EditError as error:
            if (
                self._pending.applied or self._committing
            ):  # perhaps in the way of files being placed
                self._contested.add(step.id)
            else:
                self._fail(step.id, Reason("command_failed", (error.message,)))
            return None
        if look.placed is not None:
            self._append(look.placed)
            self._pending.applied.append(look.key)
        if look.choice.action == "reuse":
            self._reuse(look)
            return None
        if look.choice.action == "skip":
            self._append(leave_out(self.state, step.id))
            return None
        drifted = look.choice.reason.code == "output_modified"
        if drifted and self.state.options.on_drift == "fail":
            self._fail(step.id, look.choice.reason)
            return None
        if step.reads_keys and (lacking := self._looker.lacking(step, self._content)):
            self._fail(step.id, Reason("key_missing", lacking))
            return None
        if self._looker.is_held(step):
            self._append(StepHeld(step.id, Reason("effect_unconfirmed")))
            return None
        return look

    def _content(self, digest: Digest) -> bytes:
        """A content that was stored, or that goes with a commit which is still to come."""
        queued = (*self._pending.blobs, *self._storing)
        found = next((content for name, content in queued if name == digest), None)
        return self._world.store.get(digest) if found is None else found

    def _fail(self, step_id: StepId, reason: Reason, said: Digest | None = None) -> None:
        for event in fail(self.state, step_id, reason, said):
            self._append(event)

    def _reuse(self, look: Look) -> None:
        """Let the artifact stand, with the steps that came with it."""
        artifact, probe = look.choice.artifact, look.probed.probe
        assert artifact is not None  # a reuse has one
        ref, code = probe.refs.config_ref, look.choice.reason.code
        if code == "unchanged_content":
            row = replace(artifact, config_ref=ref, run=self.state.run, attempt=0)
            self._pending.artifacts.append(row)
            self._pending.superseded += self._bench.superseded(probe.step)
        self._gather(Reused(probe.step, ref, artifact.digest, artifact.form, code))
        if more := self._growth.comes_with(artifact):
            self._growth.again(more, artifact)

    # --- starting -----------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Start what waits, best first, while there is room: functions of this process, then the rest."""
        if self._stopping or self.state.status != "running" or self.state.escalation is not None:
            return
        if limit_reached(self.state, self._world.clock()) is not None:
            return
        while (step_id := self._desk.take(self._has_room, self._passed_over)) is not None:
            self._start(step_id)

    def _has_room(self, outside: bool) -> bool:
        if outside:
            return self._outside < self._world.parallel
        return len(self._pending.launch) < MOST_AT_ONCE

    def _passed_over(self, step_id: StepId) -> None:
        """A step left the queue: it is ready no more, or what it stands on is made again first."""
        self._looks.pop(step_id, None)

    def _start(self, step_id: StepId) -> None:
        step = self.state.plan.steps[step_id]
        look, turn = self._looks.pop(step_id)
        waited = turn != self._turns and step_id not in self._world.inline
        if waited and look.probed.seen:  # the world may have changed meanwhile
            again = self._decided(step)
            if again is None:
                return
            look = again
        fence = 0
        if self._hold.sharing:
            taken = self._claim(step, look.probed)
            if taken is None:
                return
            fence = taken
        if step.secrets and step_id in self.state.added and not self._may_know(step):
            return
        answer = self._may_begin(step, look)
        if not answer.granted:
            self._let_go(step_id)
            self._append(StepHeld(step_id, answer.reason))
            self._hold.has_news = True  # a policy may have said no
            return
        try:
            started, blobs, words = self._looker.start(step, look)
        except EditError as error:
            self._fail(step_id, Reason("command_failed", (error.message,)))
            return
        if fence:
            started = replace(started, fence=fence)
        if answer.approvals:
            started = _under(started, step, answer)
        self._observed[step_id] = look.probed.seen
        if started.reguard is not None and step.uses != "human":
            probe = look.probed.probe
            self._growth.carry(step_id, look.choice.artifact or probe.found or probe.newest)
        key = None
        if step.effects == "external" and started.reguard is None:
            key = self._effect_key(step, started)
        self._append(started)
        if key is not None:
            self._append(EffectStarted(step_id, started.attempt, key))
        self._pending.blobs += blobs
        self._pending.words += words
        self._pending.launch.append(started)
        if step_id not in self._world.inline:
            self._outside += 1

    def _may_know(self, step: Step) -> bool:
        """Whether a person allowed an added step its secrets; those of the plan were asked for before."""
        for name in step.secrets:
            if name not in self._world.secrets:
                self._let_go(step.id)
                words = f"it asks for the secret '{name}', which nobody allowed"
                self._fail(step.id, Reason("command_failed", (words,)))
                return False
        return True

    def _effect_key(self, step: Step, started: AttemptStarted) -> Digest:
        """The key of an effect: the same if it is the same effect and was never confirmed, else a new one."""
        here = self.state.steps[step.id]
        before = here if here.attempts else self._looker.unconfirmed(step)
        if before is not None and before.effect and before.config_ref == started.config_ref:
            return before.effect
        return digest_json(
            {"run": self.state.run, "step": started.step, "attempt": started.attempt}
        )

    def _may_begin(self, step: Step, look: Look) -> Answer:
        """Whether people let this attempt begin; what only guards something that exists needs nobody."""
        if not step.asks_first:
            return _FREE
        if look.choice.action == "reguard" or look.choice.reason.code == "output_modified":
            return _FREE
        attempt = self.state.steps[step.id].attempts + 1
        return self._gates.ask(step, self._gates.before(step, look.probed), attempt)

    def _heed(self) -> None:
        """Do what people decided about the steps that wait for them."""
        self._hold.has_news = False
        if self.state.conflicts:
            self._settle_conflicts()
        self._gates.refresh()
        waiting = [s for s, here in self.state.steps.items() if here.phase == "waiting"]
        for step_id in waiting:
            here = self.state.steps[step_id]
            is_held = here.reason is not None and here.reason.code in HELD
            if is_held and self._gates.was_given(step_id, here.held_at):
                self.record(reset(self.state, [step_id], "answered"))
                continue
            asked = self._gates.decided_for(step_id, here)
            if asked is None:
                if step_id in self._inherited:  # what it asked about may be other by now
                    self._append(StepsReleased((step_id,), "resumed"))
                continue
            no = self._gates.rejection(asked)
            if here.parked is not None:
                self._decide(step_id, no)
            elif no is not None:
                self._refuse(step_id, no)
            elif is_held:
                if self._gates.use(asked[0], step_id, here.attempts + 1):
                    self.record(reset(self.state, [step_id], "retried"))
            else:
                code = "answered" if self.state.plan.steps[step_id].uses == "human" else "approved"
                self._append(StepsReleased((step_id,), code))
        self._inherited.clear()

    def _refuse(self, step_id: StepId, no: Approval) -> None:
        """A person said no before anything was made: the step fails, and what he said is kept with it."""
        assert no.decision is not None  # it was rejected
        self._fail(step_id, Reason("rejected_by_person", (no.decision.by,)), no.decision.because)

    def _decide(self, step_id: StepId, no: Approval | None) -> None:
        """A candidate was kept for people, and they decided."""
        step = self.state.plan.steps[step_id]
        here = self.state.steps[step_id]
        parked = here.parked
        assert parked is not None  # only asked for such steps
        if no is None:
            questions = self._gates.about(step, parked.guards, parked.digest, parked.form)
            answer = self._gates.ask(step, questions, parked.attempt)
            if not answer.granted:  # a yes was taken back, or ended, before it was heard
                self._append(StepHeld(step_id, answer.reason))
                return
        started = here.running
        assert started is not None  # it made the candidate
        more, unfit = self._growth.kept_with(parked) if no is None else ({}, "")
        result = self._bench.decided(step_id, no, self._world.clock(), unfit)
        self._decided_about(result, more, started)

    def _decided_about(self, result: Result, more: Steps, started: AttemptStarted) -> None:
        """A kept candidate is accepted or refused, or goes on being kept because of a new conflict."""
        if isinstance(result.ending, AttemptParked):
            self._take(result)
            self._follow(result.after)
        else:
            self.settle(result, more, started)

    def _take_over(self, step_id: StepId) -> None:
        """The changes of a kept candidate may be taken over; refused if its steps no longer fit."""
        here, now = self.state.steps[step_id], self._world.clock()
        started, parked = here.running, here.parked
        assert started is not None  # it made the candidate
        assert parked is not None
        more, unfit = self._growth.kept_with(parked)
        if unfit:
            self._decided_about(self._bench.decided(step_id, None, now, unfit), {}, started)
        else:
            self._decided_about(self._settler.taken(step_id, now), more, started)

    def _grown(self) -> None:
        """The plan has further steps."""
        self._looker.grow()
        steps = self.state.plan.steps
        self._has_agents = self._has_agents or any(steps[s].agent for s in self.state.added)

    # --- conflicts ----------------------------------------------------------------------------------

    def _tell(self, told: Told) -> None:
        """Record conflicts, or how they were settled."""
        self._pending.blobs += told.blobs
        self._follow(told.events)

    def _follow(self, events: Sequence[RunEvent]) -> None:
        for event in events:
            self._append(event)
            if isinstance(event, ConflictFound):
                self._hold.has_news = True  # people may have decided the same before

    def _settle_conflicts(self) -> None:
        """Do what people decided about conflicts. Files wait until no other change of them is under way."""
        settler = self._settler
        for told in settler.agreed():
            self._tell(told)
        if self._pending.applied or self._committing:
            self._hold.has_news = True
            return
        for step_id, told in settler.decided():
            self._tell(told)
            try:
                self._take_over(step_id)
            except EditError as error:
                self._fail(step_id, Reason("command_failed", (error.message,)))

    def _in_conflict(self, step_id: StepId) -> bool:
        """Whether a step has to wait because agents above it disagree."""
        self._tell(self._bench.conflicts.among_needs(step_id))
        names = self._bench.conflicts.blocks(step_id)
        if names:
            self._let_go(step_id)
            self._append(StepHeld(step_id, Reason(IN_CONFLICT, names)))
        return bool(names)

    def _claim(self, step: Step, probed: Probed) -> int | None:
        """Take the step for this engine; None while another one has it, or has just finished it."""
        state, refs = self.state, probed.probe.refs
        key = ClaimKey(state.project, state.line, step.id, refs.config_ref)
        if step.id in self._claims and self._claims[step.id][0] != key:
            self._let_go(step.id)
        fence = self._world.store.claim(key, self._world.owner.engine)
        if fence is None:
            self._contested.add(step.id)
            return None
        self._claims[step.id] = (key, fence)
        forced = state.options.force or step.id in state.options.force_steps
        forced = forced or state.steps[step.id].remade
        found = self._world.store.find(state.project, state.line, step.id, refs.config_ref)
        if found is not None and not forced and not probed.probe.unsure:
            self._let_go(step.id)
            self._to_look.append(step.id)
            self._wake.set()
            return None
        return fence

    def _let_go(self, step_id: StepId) -> None:
        """Give the claim on a step up with the next commit, if there is one."""
        if claim := self._claims.pop(step_id, None):
            self._pending.released.append(claim)

    # --- committing ---------------------------------------------------------------------------------

    def _append(self, event: RunEvent, at: int | None = None) -> None:
        """Fold an event and queue it for the next commit."""
        self._close_reused()
        recorded = Recorded(self.state.seq + 1, self._world.clock() if at is None else at, event)
        apply(self.state, recorded)
        self._pending.events.append(recorded)

    def _gather(self, item: Reused) -> None:
        """Fold a reuse; reuse after reuse becomes one event."""
        if 0 < len(self._pending.reused) < MOST_REUSED:
            extend(self.state, item)
        else:
            self._append(StepsReused((item,)))
        self._pending.reused.append(item)

    def _close_reused(self) -> None:
        """Let the last event have all that was gathered for it."""
        pending = self._pending
        if len(pending.reused) > 1:
            whole = StepsReused(tuple(pending.reused))
            pending.events[-1] = pending.events[-1]._replace(event=whole)
        pending.reused.clear()

    def _flush(self) -> None:
        if self._committing or self._error is not None:
            return
        self._close_reused()
        pending = self._pending
        if not pending.events and not pending.released:
            return
        self._pending = Pending()
        self._committing, self._storing = True, pending.blobs
        appends = []
        if pending.events:
            facts: list[tuple[int, Event]] = [(item.at, item.event) for item in pending.events]
            appends.append(Append(f"run:{self.state.run}", self._committed, facts, self._fence))
        batch = Batch(
            appends,
            pending.artifacts,
            pending.blobs,
            pending.held,
            pending.released,
            superseded=pending.superseded,
        )
        beside = self._tasks and (self._hold.sharing or self._took > QUICK_MS)
        if not beside and self._writer.is_idle:
            error: BaseException | None = None
            try:
                self._store(batch, pending.wrote, pending.said, wait=False)
            except LockedError:  # attempts, signals and the heart are not kept waiting
                beside = True
            except BaseException as raised:  # noqa: BLE001 - an engine that cannot store is over
                error = raised
            if not beside:
                self._stored(error, pending)
                return
        future = self._writer.call(self._store, batch, pending.wrote, pending.said)
        future.add_done_callback(lambda done: self._stored(_error_of(done), pending))

    def _store(
        self,
        batch: Batch,
        wrote: list[str],
        said: list[tuple[int, LineEvent]],
        *,
        wait: bool = True,
    ) -> None:
        """Files of steps first, then the facts that name them."""
        began = self._world.clock()
        self._outputs.secure(wrote)
        if said:
            self._store_and_tell(batch, said, wait=wait)
        else:
            self._world.store.commit(batch, wait=wait)
        self._took = self._world.clock() - began

    def _store_and_tell(
        self, batch: Batch, said: list[tuple[int, LineEvent]], *, wait: bool
    ) -> None:
        """The same with what the line has to know, to which others write too."""
        store, journal = self._world.store, line_journal(self.state.project, self.state.line)
        while True:
            last = store.last(journal)
            try:
                appends = [*batch.appends, Append(journal, last, said)]
                store.commit(replace(batch, appends=appends), wait=wait)
            except ConflictError:
                if store.last(journal) == last:
                    raise
                continue
            return

    def _stored(self, error: BaseException | None, pending: Pending) -> None:
        """A batch is stored: now it may be told, and what it names may begin."""
        self._committing, self._storing = False, []
        self._wake.set()
        if error is not None:
            self._error = error
            return
        self._committed += len(pending.events)
        try:
            for key in pending.applied:
                self._outputs.placed(key)
            for line in pending.words:
                self._world.remind(line)
            if pending.events:
                self._world.on_events(pending.events)
            for started in pending.launch:
                self._launch(started)
        except BaseException as raised:  # noqa: BLE001 - an engine that cannot tell or run is over
            self._error = raised

    # --- attempts -----------------------------------------------------------------------------------

    def _launch(self, started: AttemptStarted) -> None:
        if started.step in self._world.inline and started.reguard is None:
            outcome = self._bench.at_once(started)
            if outcome is not None:
                seen = self._observed.pop(started.step)
                again = seen if self.state.plan.steps[started.step].inputs else None
                self._ended(
                    started, self._bench.finish(started, outcome, again, self._world.clock())
                )
                return
        task = asyncio.create_task(self._run(started))
        task.add_done_callback(
            lambda done: self._never_began(started) if done.cancelled() else None
        )
        self._tasks[started.step] = task
        if self._ending:
            task.cancel()

    def _never_began(self, started: AttemptStarted) -> None:
        """Cancelled before its first line: nothing was started, so nothing has to be ended."""
        self._tasks.pop(started.step, None)
        if self._error is None and not self._over:
            self._ended(started, self._bench.lost(started, INTERRUPTED, self._world.clock()))
            self._wake.set()

    async def _run(self, started: AttemptStarted) -> None:
        executor = self._world.executor
        try:
            if self.state.plan.steps[started.step].workspace == "worktree":
                self._bench.give(started.step, await self._worktree())
            job = self._bench.job(started)
            if started.reguard is None:
                outcome = await executor.run(job)
            else:
                outcome = await executor.judge(job, self._bench.candidate(started))
        except asyncio.CancelledError:
            if self._error is not None:  # perhaps taken over: its files are another engine's now
                return
            outcome = Outcome("lost", INTERRUPTED)
        except (
            AttemptError
        ) as error:  # what it should be given cannot be given: nothing was started
            outcome = Outcome("failed", error.reason, feedback=error.message)
        except BaseException as error:  # noqa: BLE001 - an engine that cannot run attempts is over
            self._error = error
            self._wake.set()
            return
        self._tasks.pop(started.step, None)
        try:
            seen = self._observed.pop(started.step)
            approvals: tuple[str, ...] = ()
            outcome, more = self._growth.brought(started, outcome)
            if outcome.ended == "asked":
                outcome, approvals = self._asked(started, outcome)
            result = self._bench.finish(started, outcome, seen, self._world.clock(), approvals)
            self._bench.clear(started, result.ending)
            self._ended(started, result, more)
        except BaseException as error:  # noqa: BLE001 - as above
            self._error = error
        self._wake.set()

    async def _worktree(self) -> Copy:
        """A worktree for an attempt; made beside the loop, and to its end whatever happens."""
        world = self._world
        making = asyncio.ensure_future(
            asyncio.to_thread(make_worktree, world.root, world.home, self.state.run)
        )
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            with contextlib.suppress(AttemptError):
                drop_worktree(world.root, world.home, (await making).top)
            raise

    def _asked(self, started: AttemptStarted, outcome: Outcome) -> tuple[Outcome, tuple[str, ...]]:
        """Guards leave a candidate to people: accepted if they said yes to the same content before."""
        step = self.state.plan.steps[started.step]
        assert outcome.candidate is not None  # there is nothing to ask about otherwise
        digest, form = self._bench.stored(step, outcome.candidate)
        questions = self._gates.about(step, outcome.asks, digest, form)
        answer = self._gates.ask(step, questions, started.attempt)
        if answer.granted:
            return outcome._replace(ended="accepted", verified=True), ()
        self._hold.has_news = True  # as above
        return outcome, answer.ids

    def _ended(self, started: AttemptStarted, result: Result, more: Steps = NOTHING) -> None:
        if started.step not in self._world.inline:
            self._outside -= 1
        if more and isinstance(result.ending, AttemptParked):
            content = fragment_bytes(more)
            result.blobs.append((digest_bytes(content), content))
            result.ending = replace(result.ending, fragment=digest_bytes(content))
        if isinstance(result.ending, AttemptAccepted) and not result.ending.confined:
            self._warn_unconfined()
        self.settle(result, more, started)
        if self.state.options.fail_fast and self.state.counts["failed"]:
            self._stopping = True
        if claim := self._claims.get(started.step):
            self._pending.held.append(claim)
            if self.state.steps[started.step].phase != "pending":  # else it is tried again under it
                self._let_go(started.step)

    def _warn_unconfined(self) -> None:
        if not self._warned:
            self._warned = True
            self._world.say("steps run unconfined: bubblewrap is not there or not allowed")

    def _take(self, result: Result) -> None:
        self._pending.blobs += result.blobs
        self._pending.artifacts += result.artifacts
        self._pending.superseded += result.superseded
        self._pending.applied += result.applied
        self._pending.words += result.words
        self._pending.wrote += result.wrote

    # --- beside -------------------------------------------------------------------------------------

    async def _pulse(self) -> None:
        """Heartbeat, the line's inbox, and steps that another engine had."""
        try:
            while True:
                await asyncio.sleep(self._world.poll_seconds)
                await self._hold.pulse(self._writer)
                if self._hold.others and not self._hold.sharing:
                    await self._share()
                if self._hold.stop_asked is not None:
                    self.stop(now=self._hold.stop_asked)
                if self._contested:
                    self._to_look.extend(sorted(self._contested))
                    self._contested.clear()
                self._wake.set()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - without a heart the engine is over
            self._error = error
            self._wake.set()

    async def _share(self) -> None:
        """Another engine joined the line: claim what runs here, then say that claims are written."""
        self._hold.sharing = True
        self._looker.not_alone()
        state = self.state
        for step_id, started in list(state.running.items()):
            key = ClaimKey(state.project, state.line, step_id, started.config_ref)
            fence = await self._writer.call(self._world.store.claim, key, self._world.owner.engine)
            if fence is not None and step_id in state.running:
                self._claims[step_id] = (key, fence)
        await self._hold.beat(self._writer)


_FREE = Answer(True, ())


def _asked_before(here: StepState) -> bool:
    """Whether a step waits for an answer before an attempt, as an earlier engine left it."""
    if here.phase != "waiting" or here.parked is not None or here.reason is None:
        return False
    return here.reason.code != "effect_unconfirmed"


def _under(started: AttemptStarted, step: Step, answer: Answer) -> AttemptStarted:
    """An attempt under approvals; what a person gave is only guarded."""
    started = replace(started, approvals=answer.ids)
    given = [found.decision for found in answer.approvals if found.request.gate == "answer"]
    if step.uses != "human" or not given or given[0] is None or given[0].content is None:
        return started
    return replace(
        started,
        reguard=given[0].content,
        form=given[0].form,
        source="human",
        before=None,
        edited=(),
    )


def _error_of(done: asyncio.Future[None]) -> BaseException | None:
    return asyncio.CancelledError() if done.cancelled() else done.exception()
