"""The attempts that run: launched once their commit is stored, ended with a result, or broken off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

from holdfast.core.briefing import ancestors
from holdfast.core.estimate import asked_models
from holdfast.core.moves import INTERRUPTED
from holdfast.core.state import State
from holdfast.engine.attempt import Bench
from holdfast.engine.calls import Switchboard
from holdfast.engine.citations import Citations, absent, digests_of, misnamed
from holdfast.engine.finish import Finisher
from holdfast.engine.grow import NOTHING, Steps
from holdfast.engine.growth import Growth
from holdfast.engine.handoffs import sound
from holdfast.engine.heed import People
from holdfast.engine.places import Places
from holdfast.engine.result import Result
from holdfast.engine.worktrees import given_worktree
from holdfast.engine.world import World
from holdfast.errors import AttemptError, EditError
from holdfast.model.digest import Json
from holdfast.model.event import AttemptStarted
from holdfast.model.handoff import Handoff
from holdfast.model.plan import GATHER, StepId
from holdfast.ports import Candidate, Job, Outcome

Ended = Callable[[AttemptStarted, Result, Steps], None]


class Crew:
    """Runs attempts. `ended` takes each result in; `fail` is told what ends the engine itself.

    `check_alive` raises FencedError if another engine took this one for dead.

    `observed` is what each step that starts was seen to read.
    """

    def __init__(
        self,
        world: World,
        state: State,
        bench: Bench,
        board: Switchboard,
        places: Places,
        finisher: Finisher,
        growth: Growth,
        people: People,
        ended: Ended,
        fail: Callable[[BaseException], None],
        check_alive: Callable[[], None],
        is_over: Callable[[], bool],
    ) -> None:
        self._world = world
        self._state = state
        self._citations = Citations(
            world.store,
            state.project,
            state.line,
            state.run,
            self._before,
        )
        self._bench = bench
        self._board = board
        self._places = places
        self._finisher = finisher
        self._growth = growth
        self._people = people
        self._ended = ended
        self._fail = fail
        self._check_alive = check_alive
        self._is_over = is_over
        self._tasks: dict[StepId, asyncio.Task[None]] = {}
        self._ending = False
        self.observed: dict[StepId, Mapping[str, Json]] = {}

    @property
    def is_busy(self) -> bool:
        """Whether attempts run."""
        return bool(self._tasks)

    def launch(self, started: AttemptStarted) -> None:
        """Begin an attempt whose start is stored."""
        step = self._state.plan.steps[started.step]
        is_here = started.step in self._world.inline or step.uses == GATHER
        if is_here and started.reguard is None:
            outcome = self._bench.at_once(started)
            if outcome is not None:
                outcome = self._bench.contents.fit(step, outcome)
                seen = self.observed.pop(started.step)
                again = seen if step.inputs else None
                result = self._finisher.finish(started, outcome, again, self._world.clock())
                self._ended(started, result, NOTHING)
                return
        task = asyncio.create_task(self._run(started))
        task.add_done_callback(
            lambda done: self._never_began(started) if done.cancelled() else None
        )
        self._tasks[started.step] = task
        if self._ending:
            task.cancel()

    def stop(self) -> None:
        """End what is running, and what is launched from now on."""
        self._ending = True
        for task in self._tasks.values():
            task.cancel()

    async def close(self) -> None:
        """Until nothing runs any more."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _never_began(self, started: AttemptStarted) -> None:
        """Cancelled before its first line: nothing was started, so nothing has to be ended."""
        self._tasks.pop(started.step, None)
        if not self._is_over():
            lost = self._finisher.lost(started, INTERRUPTED, self._world.clock())
            self._ended(started, lost, NOTHING)

    async def _run(self, started: AttemptStarted) -> None:
        executor = self._world.executor
        try:
            if self._state.plan.steps[started.step].workspace == "worktree":
                worktree = await given_worktree(self._world, self._state.run)
                self._bench.give(started.step, worktree)
            job = self._equipped(started)
            if started.reguard is None:
                outcome = await executor.run(job)
            else:
                outcome = await executor.judge(job, self._bench.candidate(started))
        except asyncio.CancelledError:
            if self._is_over():  # perhaps taken over: its files are another engine's now
                return
            outcome = Outcome("lost", INTERRUPTED)
        except AttemptError as error:  # it cannot be given what it should be: nothing was started
            outcome = Outcome("failed", error.reason, feedback=error.message)
        except EditError as error:  # as above: a file of the project that nobody may read
            outcome = Outcome("failed", "command_failed", feedback=error.message)
        except BaseException as error:  # noqa: BLE001 - an engine that cannot run attempts is over
            self._fail(error)
            return
        self._tasks.pop(started.step, None)
        try:
            self._check_alive()  # before anything of it is written where others see it
            seen = self.observed.pop(started.step)
            approvals: tuple[str, ...] = ()
            step = self._state.plan.steps[started.step]
            # first: what is wrong with a handoff is said in its own words, perhaps cut short
            outcome = self._fit(started, outcome)
            outcome = sound(step, outcome, started, self._checked)
            outcome, more = self._growth.brought(started, outcome)
            outcome = self._people.told_with(outcome, started.approvals)
            if outcome.ended == "asked":
                outcome, approvals = self._people.asked(started, outcome)
            result = self._finisher.finish(started, outcome, seen, self._world.clock(), approvals)
            self._bench.clear(started, result.ending, outcome.candidate)
            self._ended(started, result, more)
        except BaseException as error:  # noqa: BLE001 - as above
            self._fail(error)

    def _before(self, step: StepId) -> Collection[StepId]:
        """The steps whose words another one may refer to; a person had the whole ledger at hand."""
        is_person = self._state.plan.steps[step].uses == "human"
        return self._state.plan.steps if is_person else ancestors(self._state.graph, step)

    def _checked(
        self, handoff: Handoff, started: AttemptStarted, made: Candidate
    ) -> tuple[Handoff, list[str]]:
        """A handoff with its ids spelled out, and what it refers to and is not there."""

        def page() -> str:
            told = started.context
            return "" if told is None else self._world.store.get(told).decode()

        plan = self._state.plan
        told, wrong = self._citations.checked(handoff, started.step, page, digests_of(made))
        return told, [
            *misnamed(plan, told),
            *self._citations.misplaced(plan.steps, started.step, told),
            *absent(plan.steps[started.step], made, told, self._world.root),
            *wrong,
        ]

    def _fit(self, started: AttemptStarted, outcome: Outcome) -> Outcome:
        return self._bench.contents.fit(self._state.plan.steps[started.step], outcome)

    def _equipped(self, started: AttemptStarted) -> Job:
        """The job of an attempt, with a line to the models and a way to a place of this machine."""
        places, step_id = self._places, started.step
        job = self._bench.job(started, partial(places.take, step_id))
        if self._world.models is None:
            return job
        step = self._state.plan.steps[step_id]
        if step.uses == "shell" and not step.has_judge:  # which nobody asks a model for
            return job
        if step.has_judge:  # loaded while the step works
            for model in asked_models(job.step):
                self._board.is_ready(model.partition(":")[0])
        give_back = partial(places.give_back, step_id)
        return replace(job, calls=self._board.line(started, job.on_output, give_back))
