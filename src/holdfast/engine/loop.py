"""The loop: react, look, start, commit, launch, settle; until nothing is left to do.

State in memory may be ahead of the disk by what is queued, never the other way round, and the world
outside is never ahead of the disk: an attempt is launched, and anything is told to a person, only
after the commit that names it. If a commit fails, this engine is over; the next one reads what is
stored, folds it, and goes on from there.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from holdfast.core.changes import Choice, choose
from holdfast.core.decide import fail, settle
from holdfast.core.fold import INTERRUPTED, apply, extend
from holdfast.core.react import may_start, react
from holdfast.core.refs import Upstream
from holdfast.core.state import State
from holdfast.engine.attempt import Bench, Result
from holdfast.engine.commit import Writer
from holdfast.engine.hold import Hold
from holdfast.engine.outputs import Outputs
from holdfast.engine.probe import Probed, Prober
from holdfast.engine.survey import NoInputError, Survey
from holdfast.engine.world import World
from holdfast.errors import EditError
from holdfast.model.artifact import Artifact, Form
from holdfast.model.digest import Digest, Json
from holdfast.model.event import (
    AttemptStarted,
    Event,
    OutputsPlaced,
    Reason,
    Recorded,
    Reused,
    RunEvent,
    StepsReused,
)
from holdfast.model.plan import PRIORITIES, Step, StepId
from holdfast.ports import Append, Batch, ClaimKey, Outcome

MOST_AT_ONCE = 256
MOST_REUSED = 1000


@dataclass(slots=True)
class Pending:
    """What goes into the next commit, and what happens once it is stored."""

    events: list[Recorded] = field(default_factory=list)
    blobs: list[tuple[Digest, bytes]] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    held: list[tuple[ClaimKey, int]] = field(default_factory=list)
    released: list[tuple[ClaimKey, int]] = field(default_factory=list)
    launch: list[AttemptStarted] = field(default_factory=list)
    applied: list[str] = field(default_factory=list)


class Engine:
    """Drives one run to its end, or to where it has to rest."""

    def __init__(self, world: World, state: State, fence: int, hold: Hold, survey: Survey) -> None:
        self.state = state
        self._world = world
        self._fence = fence
        self._hold = hold
        self._writer = Writer()
        self._survey = survey
        self._outputs = Outputs(world.root, world.journal, world.store)
        self._bench = Bench(world, state, survey, self._outputs)
        self._prober = Prober(world.store, survey, state.plan, state.project, state.line)
        self._pending = Pending()
        self._committed = state.seq
        self._committing = False
        self._seen = 0
        self._to_look: deque[StepId] = deque()
        self._desk: list[tuple[int, int, StepId]] = []
        self._answers: dict[StepId, tuple[Probed, Choice]] = {}
        self._observed: dict[StepId, Mapping[str, Json]] = {}
        self._claims: dict[StepId, tuple[ClaimKey, int]] = {}
        self._contested: set[StepId] = set()
        self._tasks: dict[StepId, asyncio.Task[None]] = {}
        self._outside = 0
        self._stopping = False
        self._over = False
        self._error: BaseException | None = None
        self._wake = asyncio.Event()

    # --- from outside -----------------------------------------------------------------------------

    def stop(self, *, now: bool = False) -> None:
        """Start nothing more; with `now`, also end what is running. Both can be resumed."""
        self._stopping = True
        if now:
            for task in self._tasks.values():
                task.cancel()
        self._wake.set()

    def record(self, events: list[RunEvent], results: list[Result]) -> None:
        """Queue facts that were settled before the loop began: what a dead engine left."""
        for result in results:
            self._take(result)
        at = results[0].at if results else None
        for event in events:
            self._append(event, at)

    async def drive(self) -> State:
        """Run until the run ends or rests."""
        pulse = asyncio.create_task(self._pulse())
        try:
            await self._survey.prepare()
            while not self._over:
                self._wake.clear()
                await self._turn()
                if self._error is not None:
                    raise self._error
                if not self._over:
                    await self._wake.wait()
            return self.state
        finally:
            pulse.cancel()
            await self._end_tasks()
            await asyncio.gather(pulse, return_exceptions=True)
            fresh = self._survey.take_fresh()
            if fresh and self._error is None:
                await self._writer.call(self._world.store.remember_stats, fresh)
            self._writer.close()
            await self._world.executor.close()

    async def _end_tasks(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    # --- one turn ---------------------------------------------------------------------------------

    async def _turn(self) -> None:
        while True:
            following = react(
                self.state, seen=self._seen, now=self._world.clock(), stopping=self._stopping
            )
            self._seen = following.seen
            self._to_look.extend(following.probe)
            if not self._to_look or self._stopping:
                break
            for _ in range(min(MOST_AT_ONCE, len(self._to_look))):
                self._look(self._to_look.popleft())
            self._fill()
            if self._pending.launch:  # reuse alone can wait for more of its kind
                self._flush()
            await asyncio.sleep(0)
        if following.end is not None and not self._to_look:
            self._append(following.end)
        self._fill()
        self._flush()
        if self.state.status != "running" and not self._committing and not self._pending.events:
            self._over = True

    def _look(self, step_id: StepId) -> None:
        """Find out what is to be done with a ready step: reuse it now, or queue it for a slot."""
        if step_id not in self.state.ready:
            return
        step = self.state.plan.steps[step_id]
        try:
            probed, choice = self._choose(step)
            if choice.action == "reuse" and step.produces:
                choice = self._against_disk(step, probed, choice)
        except (NoInputError, EditError) as error:
            for event in fail(self.state, step_id, Reason("command_failed", (error.message,))):
                self._append(event)
            return
        if choice.action == "reuse":
            self._reuse(probed, choice)
        elif choice.reason.code == "output_modified" and self.state.options.on_drift == "fail":
            for event in fail(self.state, step_id, choice.reason):
                self._append(event)
        else:
            self._answers[step_id] = (probed, choice)
            rank = self.state.graph.rank[step_id]
            heapq.heappush(self._desk, (PRIORITIES[step.priority], rank, step_id))

    def _choose(self, step: Step) -> tuple[Probed, Choice]:
        state = self.state
        now = state.steps[step.id]
        upstream = {}
        for need in step.needs:
            if need.type == "data":
                above = state.steps[need.step]
                if above.config_ref is not None and above.digest is not None:
                    upstream[need.step] = Upstream(above.config_ref, above.digest)
        probed = self._prober.probe(
            step,
            upstream,
            state.options,
            previous=state.previous,
            moved=lambda: self._moved(step),
        )
        return probed, choose(
            step, probed.probe, state.options, now=self._world.clock(), tried=now.last
        )

    def _moved(self, step: Step) -> tuple[str, ...]:
        """The data needs that ran, or stand on something new, in this run."""
        names = []
        for need in step.data_needs:
            above = self.state.steps[need]
            code = above.reason.code if above.reason else ""
            if above.phase == "done" or code in {"amended", "reguarded", "unchanged_content"}:
                names.append(need)
        return tuple(sorted(names))

    def _against_disk(self, step: Step, probed: Probed, choice: Choice) -> Choice:
        """An artifact that stands must also lie on the disk: restore it, or see that a person changed it."""
        artifact, state = choice.artifact, self.state
        assert artifact is not None  # a reuse has one
        drift = self._outputs.drift(
            step,
            artifact,
            lambda: self._world.store.artifacts(
                project=state.project, line=state.line, step=step.id
            ),
        )
        if drift.state == "equal":
            return choice
        if drift.state == "edited":
            return Choice("run", Reason("output_modified", drift.paths), None)
        entries = self._outputs.wanted(step, artifact.digest, artifact.form)
        key = f"{state.run}.{step.id}.place"
        paths = self._outputs.place(step, entries, key)
        self._append(OutputsPlaced(step.id, artifact.digest, artifact.form, paths))
        self._pending.applied.append(key)
        return choice

    def _reuse(self, probed: Probed, choice: Choice) -> None:
        artifact = choice.artifact
        assert artifact is not None  # a reuse has one
        refs = probed.probe.refs
        item = Reused(
            probed.probe.step, refs.config_ref, artifact.digest, artifact.form, choice.reason.code
        )
        if choice.reason.code == "unchanged_content":
            row = replace(artifact, config_ref=refs.config_ref, run=self.state.run, attempt=0)
            self._pending.artifacts.append(row)
        self._append(StepsReused((item,)))

    # --- starting -----------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Start what waits on the desk, best first, while there is room."""
        blocked = []
        while self._desk and not self._stopping:
            entry = heapq.heappop(self._desk)
            step_id = entry[2]
            if step_id not in self.state.ready:
                self._answers.pop(step_id, None)
                continue
            inline = step_id in self._world.inline
            full = (
                len(self._pending.launch) >= MOST_AT_ONCE
                if inline
                else self._outside >= self._world.parallel
            )
            if full or not may_start(self.state, step_id):
                blocked.append(entry)
                if full and not inline:
                    break
                if full or len(blocked) > MOST_AT_ONCE:
                    break
                continue
            self._start(step_id)
        for entry in blocked:
            heapq.heappush(self._desk, entry)

    def _start(self, step_id: StepId) -> None:
        step = self.state.plan.steps[step_id]
        probed, choice = self._answers.pop(step_id)
        fence = 0
        if self._hold.sharing:
            taken = self._claim(step, probed)
            if taken is None:
                return
            fence = taken
        if choice.reason.code == "output_modified" and choice.action == "run":
            started, blobs = self._adoption(step, probed, choice)
        else:
            started, blobs = self._attempt(step, probed, choice)
        started = replace(started, fence=fence)
        self._observed[step_id] = probed.seen
        self._append(started)
        self._pending.blobs += blobs
        self._pending.launch.append(started)
        if step_id not in self._world.inline:
            self._outside += 1

    def _attempt(
        self, step: Step, probed: Probed, choice: Choice
    ) -> tuple[AttemptStarted, list[tuple[Digest, bytes]]]:
        refs = probed.probe.refs
        blobs = [(refs.own_ref, probed.own)]
        reguard = choice.artifact if choice.action == "reguard" else None
        before = None
        if reguard is None and (kept := self._bench.keep_before(step)) is not None:
            before = kept.digest
            blobs += kept.blobs
        started = AttemptStarted(
            step=step.id,
            attempt=self.state.steps[step.id].attempts + 1,
            config_ref=refs.config_ref,
            input_ref=refs.input_ref,
            own_ref=refs.own_ref,
            reason=choice.reason,
            before=before,
            reguard=reguard.digest if reguard else None,
            form=reguard.form if reguard else "bytes",
            source=reguard.source if reguard else "generated",
            reusable=not probed.probe.unsure,
        )
        return started, blobs

    def _adoption(
        self, step: Step, probed: Probed, choice: Choice
    ) -> tuple[AttemptStarted, list[tuple[Digest, bytes]]]:
        """A person changed the output: guard that version, or make a new one after storing it."""
        started, blobs = self._attempt(step, probed, choice)
        if self.state.options.on_drift != "adopt":
            return started, blobs
        kept = self._outputs.keep(step)
        blobs += kept.blobs
        single = len(kept.entries) == 1 and kept.entries[0].path == step.produces[0]
        if len(step.produces) == 1 and single:
            entry = kept.entries[0]
            form: Form = "program" if entry.executable else "bytes"
            return replace(
                started, reguard=entry.digest, form=form, source="human", before=None
            ), blobs
        return replace(
            started, reguard=kept.digest, form="tree", source="human", before=None
        ), blobs

    def _claim(self, step: Step, probed: Probed) -> int | None:
        """Take the step for this engine; None while another one has it, or has just finished it."""
        state, refs = self.state, probed.probe.refs
        key = ClaimKey(state.project, state.line, step.id, refs.config_ref)
        fence = self._world.store.claim(key, self._world.owner.engine)
        if fence is None:
            self._contested.add(step.id)
            return None
        self._claims[step.id] = (key, fence)
        forced = state.options.force or step.id in state.options.force_steps
        found = self._world.store.find(state.project, state.line, step.id, refs.config_ref)
        if found is not None and not forced and not probed.probe.unsure:
            self._pending.released.append(self._claims.pop(step.id))
            self._to_look.append(step.id)
            self._wake.set()
            return None
        return fence

    # --- committing ---------------------------------------------------------------------------------

    def _append(self, event: RunEvent, at: int | None = None) -> None:
        """Fold an event and queue it for the next commit; reuse after reuse becomes one event."""
        events = self._pending.events
        if events and isinstance(event, StepsReused):
            last = events[-1].event
            if isinstance(last, StepsReused) and len(last.items) < MOST_REUSED:
                extend(self.state, event)
                events[-1] = events[-1]._replace(event=StepsReused((*last.items, *event.items)))
                return
        recorded = Recorded(self.state.seq + 1, self._world.clock() if at is None else at, event)
        apply(self.state, recorded)
        events.append(recorded)

    def _flush(self) -> None:
        if self._committing or self._error is not None:
            return
        pending = self._pending
        if not pending.events and not pending.released:
            return
        self._pending = Pending()
        self._committing = True
        appends = []
        if pending.events:
            facts: list[tuple[int, Event]] = [(item.at, item.event) for item in pending.events]
            appends.append(Append(f"run:{self.state.run}", self._committed, facts, self._fence))
        batch = Batch(
            appends, pending.artifacts, pending.blobs, held=pending.held, released=pending.released
        )
        future = self._writer.call(self._world.store.commit, batch)
        future.add_done_callback(lambda done: self._stored(done, pending))

    def _stored(self, done: asyncio.Future[None], pending: Pending) -> None:
        """A batch is stored: now it may be told, and what it names may begin."""
        self._committing = False
        self._wake.set()
        if done.cancelled() or done.exception() is not None:
            self._error = done.exception() or asyncio.CancelledError()
            return
        self._committed += len(pending.events)
        for key in pending.applied:
            self._outputs.placed(key)
        if pending.events:
            self._world.on_events(pending.events)
        for started in pending.launch:
            self._launch(started)

    # --- attempts -----------------------------------------------------------------------------------

    def _launch(self, started: AttemptStarted) -> None:
        if started.step in self._world.inline and started.reguard is None:
            outcome = self._world.executor.at_once(self._bench.quick_job(started))
            if outcome is not None:
                seen = self._observed.pop(started.step)
                again = seen if self.state.plan.steps[started.step].inputs else None
                self._ended(
                    started, self._bench.finish(started, outcome, again, self._world.clock())
                )
                return
        task = asyncio.create_task(self._run(started))
        self._tasks[started.step] = task

    async def _run(self, started: AttemptStarted) -> None:
        executor = self._world.executor
        try:
            job = self._bench.job(started)
            if started.reguard is None:
                outcome = await executor.run(job)
            else:
                outcome = await executor.judge(job, self._bench.candidate(started))
        except asyncio.CancelledError:
            outcome = Outcome("lost", INTERRUPTED)
        except BaseException as error:  # noqa: BLE001 - an engine that cannot run attempts is over
            self._error = error
            self._wake.set()
            return
        self._tasks.pop(started.step, None)
        try:
            seen = self._observed.pop(started.step)
            result = self._bench.finish(started, outcome, seen, self._world.clock())
            self._bench.clear(started)
            self._ended(started, result)
        except BaseException as error:  # noqa: BLE001 - as above
            self._error = error
        self._wake.set()

    def _ended(self, started: AttemptStarted, result: Result) -> None:
        if started.step not in self._world.inline:
            self._outside -= 1
        self._take(result)
        for event in settle(self.state, result.ending):
            self._append(event, result.at)
        if self.state.options.fail_fast and self.state.counts["failed"]:
            self._stopping = True
        if claim := self._claims.pop(started.step, None):
            self._pending.held.append(claim)
            self._pending.released.append(claim)

    def _take(self, result: Result) -> None:
        self._pending.blobs += result.blobs
        self._pending.artifacts += result.artifacts
        self._pending.applied += result.applied

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
        state = self.state
        for step_id, started in list(state.running.items()):
            key = ClaimKey(state.project, state.line, step_id, started.config_ref)
            fence = await self._writer.call(self._world.store.claim, key, self._world.owner.engine)
            if fence is not None and step_id in state.running:
                self._claims[step_id] = (key, fence)
        await self._hold.beat(self._writer)
