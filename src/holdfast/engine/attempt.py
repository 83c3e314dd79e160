"""Attempts before and while they run: their directories, and what they are given."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from shlex import quote

from holdfast.core.decide import Ending
from holdfast.core.moves import LOST
from holdfast.core.reasons import UNANSWERED
from holdfast.core.state import Fed, State
from holdfast.core.values import file_values, read_by
from holdfast.engine.contents import Contents
from holdfast.engine.copies import Copy
from holdfast.engine.furnish import lay_out
from holdfast.engine.gathering import collected, gathered
from holdfast.engine.given import by_names, with_known_values, with_values
from holdfast.engine.laying import Layer
from holdfast.engine.outputs import Kept, Outputs
from holdfast.engine.places import leaves
from holdfast.engine.rooms import Rooms
from holdfast.engine.survey import Survey
from holdfast.engine.taking import Taker
from holdfast.engine.tee import Onlooking, tee_path
from holdfast.engine.worktrees import drop_worktree, drop_worktrees
from holdfast.engine.world import World
from holdfast.errors import AttemptError, EditError, IntegrityError, Where
from holdfast.model.digest import Digest
from holdfast.model.event import (
    AttemptAccepted,
    AttemptStarted,
)
from holdfast.model.plan import COPIES, GATHER, Step, StepId
from holdfast.ports import Candidate, Feedback, File, Given, Job, Outcome, given_artifact
from holdfast.process.removal import discard_folder


class Bench:
    """Prepares attempts and clears up after them, for one run."""

    def __init__(self, world: World, state: State, survey: Survey, outputs: Outputs) -> None:
        self._world = world
        self._state = state
        self._survey = survey
        self._outputs = outputs
        self._tees: dict[StepId, Onlooking] = {}
        self._rooms = Rooms(os.path.join(world.scratch, state.run))
        self.taker = Taker(world, state, outputs)
        self.contents = Contents(world, self.taker)
        self._layer = Layer(world, state, outputs, self.taker)
        self._copies: dict[StepId, Copy] = {}

    def in_copy(self, step: Step) -> bool:
        """Whether the step works in a directory of its own instead of the project directory."""
        if step.workspace:
            return step.workspace in COPIES
        return self._state.options.joined or leaves(self._world, self._state, step)

    def give(self, step_id: StepId, worktree: Copy) -> None:
        """Let the next attempt at a step work in this worktree."""
        self._copies[step_id] = worktree

    def keep_before(self, step: Step) -> Kept | None:
        """Store what lies at the output paths before an attempt may touch them."""
        return self._outputs.keep(step) if step.produces else None

    def mark(self, started: AttemptStarted) -> str:
        """What the processes of an attempt carry in their environment, so that they can be found."""
        return f"{self._state.run}/{started.step}/{started.attempt}"

    def at_once(self, started: AttemptStarted) -> Outcome | None:
        """The outcome of a function of this process, or of gathering; None if it has to be awaited."""
        step = self._state.plan.steps[started.step]
        try:
            if step.uses == GATHER:
                return Outcome("accepted", candidate=gathered(step, self._state, self._read))
            job = self._quick_job(started)
        except AttemptError as error:
            return Outcome("failed", error.reason, feedback=error.message)
        return self._world.executor.at_once(job)

    def _quick_job(self, started: AttemptStarted) -> Job:
        """The job of a step that is a function of this process: no directories, no environment."""
        step = self._state.plan.steps[started.step]
        root, given = self._world.root, self._given(step)
        return Job(
            step=with_values(step, given),
            attempt=started.attempt,
            folder=root,
            root=root,
            room="",
            mark="",
            given=by_names(step, given),
            feedback=self._feedback(step.id),
            walls=self._world.walls,
        )

    def job(self, started: AttemptStarted, place: Callable[[], Awaitable[None]]) -> Job:
        """Lay out the attempt's directories and collect what it is given; `place` waits for a machine's.

        AttemptError if a value of the step reads what an artifact does not have.
        """
        world, step = self._world, self._state.plan.steps[started.step]
        room = self._rooms.take((step.id, started.attempt))
        folder = world.root
        if self.in_copy(step):
            folder = self._laid(started, step, room)
        names = (*step.env, *step.secrets)
        given = self._given(step)
        return Job(
            step=with_known_values(step, given)
            if started.reguard is not None
            else with_values(step, given),
            attempt=started.attempt,
            folder=folder,
            root=world.root,
            room=room,
            mark=self.mark(started),
            given=by_names(step, given),
            feedback=self._feedback(step.id),
            env={name: world.env[name] for name in names if name in world.env},
            on_output=self._listener(started),
            take=self._taking(step) if step.changes_copy else None,
            effect=self._state.steps[step.id].effect or "",
            config_ref=started.config_ref,
            files=file_values(step),
            told=frozenset(map(step.called, read_by(step))) if step.is_told else frozenset(),
            context=self._context(started),
            walls=world.walls,
            place=place,
        )

    def _context(self, started: AttemptStarted) -> str:
        return "" if started.context is None else self._world.store.get(started.context).decode()

    def _laid(self, started: AttemptStarted, step: Step, room: str) -> str:
        """Fill the directory that an attempt has for itself; gives the place of the project in it."""
        seen = self._survey.observe(step, lenient=started.reguard is not None).parts
        kept = self.candidate(started) if started.reguard is not None else None
        worktree = self._copies.get(step.id)
        if worktree is not None:
            self._layer.worktree(step, worktree, seen)
            if kept is not None:
                self._layer.candidate(worktree, kept)
            worktree.settle()
            return worktree.folder
        folder = os.path.join(room, "work")
        os.makedirs(folder, exist_ok=True)
        self._layer.scratch(step, folder, seen)
        if kept is not None:
            lay_out(folder, step, kept)
        if step.changes_copy:
            self._copies[step.id] = copy = Copy(folder)
            copy.survey()
        return folder

    def _taking(self, step: Step) -> Callable[[Candidate], Candidate]:
        """How the candidate of a step is made of what it changed in its copy."""
        copy, world = self._copies[step.id], self._world

        def take(made: Candidate) -> Candidate:
            try:
                found = copy.changed(world.root, step.produces, world.ignores, world.walls)
                self.taker.check_outputs(step, found.changes)
            except EditError as error:
                raise AttemptError(str(error), reason="guard_rejected", log=made.log) from error
            files, log = made.files, made.log
            if not step.produces:
                log = made.content[-world.walls.log :] + log
            elif made.form != "tree":
                files = (File(step.produces[0], made.content, made.form == "program"),)
            whole = (*files, *found.files)
            return replace(
                made, form="tree", content=b"", files=whole, log=log, changes=found.changes
            )

        return take

    def _listener(self, started: AttemptStarted) -> Callable[[str, bytes], None] | None:
        """Lets people look on. Not if the attempt knows secrets: they are struck out of the whole log."""
        if self._state.plan.steps[started.step].secrets:
            return None
        world, step_id = self._world, started.step
        place = tee_path(world.scratch, self._state.run, step_id, started.attempt)
        tell = None if world.on_output is None else partial(world.on_output, step_id)
        self._tees[step_id] = tee = Onlooking(place, tell, world.hidden)
        return tee.add

    def _given(self, step: Step) -> dict[StepId, Given]:
        given = {}
        for need in step.needs:
            if need.type == "data":
                done = self._state.steps[need.step]
                if done.digest is not None and done.phase not in LOST:
                    found = given_artifact(partial(self._read, need.step), done.digest, done.form)
                    given[need.step] = collected(found, need.step, self._state.plan.steps)
        return given

    def _read(self, step_id: StepId, digest: Digest) -> bytes:
        """Content of a step's artifact. Small ones are asked for by every step below: kept in memory.

        AttemptError if it is lost and only a person can say how it comes again, IntegrityError if a run can.
        """
        content = self.contents.recent.get(digest)
        if content is not None:
            return content
        try:
            content = self._world.store.get(digest)
        except IntegrityError as error:
            words = f"the artifact of '{step_id}' cannot be used: {error.message}"
            step = self._state.plan.steps[step_id]
            if step.done_once or step.changes_copy:  # no run makes it again, so the others go on
                name = quote(step_id)
                given = f"holdfast amend {name} FILE, then holdfast run; "
                made = f"holdfast run --force-node {name} makes it again"
                words = f"{words}\nhint: {'' if step.changes_copy else given}{made}"
                raise AttemptError(words, reason="command_failed") from error
            raise IntegrityError(words, hint="holdfast run", where=Where(step=step_id)) from error
        self.contents.recent.read(digest, content)
        return content

    def _feedback(self, step_id: StepId) -> tuple[Feedback, ...]:
        if not (fed := self._state.steps[step_id].fed):
            return ()
        return tuple(
            Feedback(item.digest, item.guard, self._words(item), self._made(item))
            for item in fed
            if item.code not in UNANSWERED
        )

    def _made(self, item: Fed) -> Callable[[], bytes] | None:
        return None if item.digest is None else partial(self._world.store.get, item.digest)

    def _words(self, item: Fed) -> str:
        return (
            ""
            if item.feedback is None
            else self._world.store.get(item.feedback).decode("utf-8", "replace")
        )

    def candidate(self, started: AttemptStarted) -> Candidate:
        """The kept content that an attempt only guards."""
        assert started.reguard is not None  # only called for such attempts
        kept = self.contents.kept(started.reguard, started.form)
        if started.handoff is None:
            return kept
        return replace(kept, handoff=self._world.store.get(started.handoff))

    def clear(self, started: AttemptStarted, ending: Ending, made: Candidate | None) -> None:
        """Remove what is in the attempt's directories."""
        if tee := self._tees.pop(started.step, None):
            tee.close()
        outside = started.step not in self._world.inline
        gone = isinstance(ending, AttemptAccepted) and (
            ending.confined or (made is not None and made.swept)
        )
        copy = self._copies.pop(started.step, None)
        if copy is not None and self._state.plan.steps[started.step].workspace == "worktree":
            drop_worktree(self._world.root, self._world.home, copy.top)
        self._rooms.leave((started.step, started.attempt), again=outside and gone)

    def close(self) -> None:
        """Remove the directories that wait for an attempt."""
        self._rooms.close()

    def leave(self) -> None:
        """The run rests: what a disk refused to remove before goes with the directory of the run."""
        discard_folder(os.path.join(self._world.scratch, self._state.run))
        drop_worktrees(self._world.root, self._world.home, self._state.run)
        self._outputs.leave()


def leftovers(world: World, state: State) -> None:
    """End the processes of a dead engine's run and remove its private directories."""
    world.sweep(f"{state.run}/")
    discard_folder(os.path.join(world.scratch, state.run))
    drop_worktrees(world.root, world.home, state.run)
