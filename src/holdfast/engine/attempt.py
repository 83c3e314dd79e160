"""One attempt from its start to a fact: its directories, what it is given, what its outcome means."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from holdfast.core.approvals import Approval
from holdfast.core.decide import Ending
from holdfast.core.state import Fed, State
from holdfast.core.values import filled, has_expressions
from holdfast.engine.conflicts import Conflicts
from holdfast.engine.copies import Copy
from holdfast.engine.furnish import lay_out
from holdfast.engine.kept import words_of_kept
from holdfast.engine.laying import Layer
from holdfast.engine.outputs import SMALL, Kept, Outputs
from holdfast.engine.putback import PutBack, put_back
from holdfast.engine.recent import Recent
from holdfast.engine.rooms import Rooms
from holdfast.engine.survey import NoInputError, Survey
from holdfast.engine.taking import Allowed, Clash, Taken, Taker, Wish, settled
from holdfast.engine.tee import Tee, tee_path
from holdfast.engine.worktrees import drop_worktree, drop_worktrees
from holdfast.engine.world import World
from holdfast.errors import AttemptError, EditError, IntegrityError, Where
from holdfast.model.artifact import Artifact, Entry, Form, Status, tree_bytes, tree_entries
from holdfast.model.changeset import changes_in, changeset_bytes
from holdfast.model.digest import Digest, Json, digest_bytes
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    AttemptStarted,
    RunEvent,
)
from holdfast.model.plan import COPIES, Step, StepId
from holdfast.ports import Candidate, Feedback, File, Given, Job, Outcome

SHORTEST_SECRET = 4
MOST_LOG = 1 << 20


@dataclass(slots=True)
class Result:
    """An ended attempt: the fact, and everything that is stored together with it."""

    ending: Ending
    at: int
    blobs: list[tuple[Digest, bytes]] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    applied: list[str] = field(
        default_factory=list
    )  # journals of placed files, to forget afterwards
    words: list[str] = field(default_factory=list)  # to be said afterwards
    wrote: list[str] = field(default_factory=list)  # what a shared step wrote, not yet safe
    after: list[RunEvent] = field(default_factory=list)  # what follows from it at once
    superseded: list[Artifact] = field(default_factory=list)  # what this run accepted before


class Bench:
    """Prepares attempts and turns their outcomes into results, for one run."""

    def __init__(self, world: World, state: State, survey: Survey, outputs: Outputs) -> None:
        self._world = world
        self._state = state
        self._survey = survey
        self._outputs = outputs
        self._recent = Recent()
        self._tees: dict[StepId, Tee] = {}
        self._rooms = Rooms(os.path.join(world.scratch, state.run))
        self.taker = Taker(world, state, outputs)
        self.conflicts = Conflicts(world, state, outputs)
        self._layer = Layer(world, state, outputs, self.taker)
        self._copies: dict[StepId, Copy] = {}

    # --- before ---------------------------------------------------------------------------------

    def in_copy(self, step: Step) -> bool:
        """Whether the step works in a directory of its own instead of the project directory."""
        return step.workspace in COPIES or (self._state.options.joined and not step.workspace)

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
        """The outcome of a function of this process; None if it has to be awaited."""
        try:
            job = self._quick_job(started)
        except AttemptError as error:
            return Outcome("failed", error.reason, feedback=error.message)
        return self._world.executor.at_once(job)

    def _quick_job(self, started: AttemptStarted) -> Job:
        """The job of a step that is a function of this process: no directories, no environment."""
        step = self._state.plan.steps[started.step]
        root, given = self._world.root, self._given(step)
        return Job(
            step=_with_values(step, given),
            attempt=started.attempt,
            folder=root,
            root=root,
            room="",
            mark="",
            given=given,
            feedback=self._feedback(step.id),
        )

    def job(self, started: AttemptStarted) -> Job:
        """Lay out the attempt's directories and collect what it is given.

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
            step=step if started.reguard is not None else _with_values(step, given),
            attempt=started.attempt,
            folder=folder,
            root=world.root,
            room=room,
            mark=self.mark(started),
            given=given,
            feedback=self._feedback(step.id),
            env={name: world.env[name] for name in names if name in world.env},
            on_output=self._listener(started),
            take=self._taking(step) if step.changes_copy else None,
            effect=self._state.steps[step.id].effect or "",
        )

    def _laid(self, started: AttemptStarted, step: Step, room: str) -> str:
        """Fill the directory that an attempt has for itself; gives the place of the project in it."""
        seen = self._survey.observe(step).parts
        kept = self.candidate(started) if started.reguard is not None else None
        worktree = self._copies.get(step.id)
        if worktree is not None:
            self._layer.worktree(step, worktree, seen)
            if kept is not None:
                self._layer.candidate(worktree, kept)
            worktree.settle()
            return worktree.folder
        folder = os.path.join(room, "work")
        os.makedirs(folder)
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
                found = copy.changed(world.root, step.produces, world.ignores)
                self.taker.check_outputs(step, found.changes)
            except EditError as error:
                raise AttemptError(str(error), reason="guard_rejected", log=made.log) from error
            files, log = made.files, made.log
            if not step.produces:
                log = made.content[-MOST_LOG:] + log
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
        tee = Tee(tee_path(world.scratch, self._state.run, step_id, started.attempt))
        self._tees[step_id] = tee

        def listen(stream: str, data: bytes) -> None:
            tee.add(data)
            if world.on_output is not None:
                world.on_output(step_id, stream, data)

        return listen

    def _given(self, step: Step) -> dict[StepId, Given]:
        given = {}
        for need in step.needs:
            if need.type == "data":
                done = self._state.steps[need.step]
                if done.digest is not None:
                    given[need.step] = self._artifact(need.step, done.digest, done.form)
        return given

    def _artifact(self, step_id: StepId, digest: Digest, form: Form) -> Given:
        content = partial(self._read, step_id, digest)
        if form != "tree":
            return Given(form, content)
        files = tuple(
            (entry.path, entry.executable, partial(self._read, step_id, entry.digest))
            for entry in tree_entries(content())
        )
        return Given(form, content, files)

    def _read(self, step_id: StepId, digest: Digest) -> bytes:
        """Content of a step's artifact. Small ones are asked for by every step below: kept in memory."""
        content = self._recent.get(digest)
        if content is not None:
            return content
        try:
            content = self._world.store.get(digest)
        except IntegrityError as error:
            raise IntegrityError(
                f"the artifact of '{step_id}' cannot be used: {error.message}",
                hint=f"holdfast run --force-node {step_id}",
                where=Where(step=step_id),
            ) from error
        self._recent.read(digest, content)
        return content

    def _feedback(self, step_id: StepId) -> tuple[Feedback, ...]:
        fed = self._state.steps[step_id].fed
        if not fed:
            return ()
        return tuple(Feedback(item.digest, item.guard, self._words(item)) for item in fed)

    def _words(self, item: Fed) -> str:
        return (
            ""
            if item.feedback is None
            else self._world.store.get(item.feedback).decode("utf-8", "replace")
        )

    def candidate(self, started: AttemptStarted) -> Candidate:
        """The kept content that an attempt only guards."""
        assert started.reguard is not None  # only called for such attempts
        return self._kept(started.reguard, started.form)

    def _kept(self, digest: Digest, form: Form) -> Candidate:
        get = self._world.store.get
        content = get(digest)
        if form != "tree":
            return Candidate(form, content)
        files = tuple(File(e.path, get(e.digest), e.executable) for e in tree_entries(content))
        return Candidate("tree", files=files, changes=changes_in(content))

    def clear(self, started: AttemptStarted, ending: Ending) -> None:
        """Remove what is in the attempt's directories."""
        if tee := self._tees.pop(started.step, None):
            tee.close()
        outside = started.step not in self._world.inline
        again = outside and isinstance(ending, AttemptAccepted) and ending.confined
        copy = self._copies.pop(started.step, None)
        if copy is not None and self._state.plan.steps[started.step].workspace == "worktree":
            drop_worktree(self._world.root, self._world.home, copy.top)
        self._rooms.leave((started.step, started.attempt), again=again)

    def close(self) -> None:
        """Remove the directories that wait for an attempt."""
        self._rooms.close()

    def leave(self) -> None:
        """The run rests: what a disk refused to remove before goes with the directory of the run."""
        shutil.rmtree(os.path.join(self._world.scratch, self._state.run), ignore_errors=True)
        drop_worktrees(self._world.root, self._world.home, self._state.run)

    # --- after ----------------------------------------------------------------------------------

    def finish(
        self,
        started: AttemptStarted,
        outcome: Outcome,
        seen: Mapping[str, Json] | None,
        now: int,
        approvals: tuple[str, ...] = (),
    ) -> Result:
        """Turn an outcome into a fact with its content. `seen` is what was observed before the attempt."""
        step = self._state.plan.steps[started.step]
        took = now - self._state.steps[started.step].started_at
        try:
            if outcome.ended in {"accepted", "asked"} and outcome.candidate is not None:
                reusable = started.reusable and (seen is None or self._is_same(step, seen))
                if outcome.ended == "asked":
                    return self._parked(started, step, outcome, approvals, reusable, took, now)
                return self._accepted(started, step, outcome, reusable, took, now)
            return self._refused(started, step, outcome, took, now)
        except EditError as error:
            return self._failed(started, "command_failed", str(error), outcome.log, took, now)

    def _is_same(self, step: Step, seen: Mapping[str, Json]) -> bool:
        try:
            return self._survey.observe(step).parts == seen
        except NoInputError:
            return False

    def _accepted(
        self,
        started: AttemptStarted,
        step: Step,
        outcome: Outcome,
        reusable: bool,
        took: int,
        now: int,
    ) -> Result:
        candidate = outcome.candidate
        assert candidate is not None  # an accepted outcome has one
        digest, blobs, entries = self._content(step, candidate)
        log = self._note(step, blobs, outcome.log) if outcome.log else None
        event = AttemptAccepted(
            step.id,
            started.attempt,
            digest,
            candidate.form,
            started.source,
            outcome.verified,
            reusable,
            log,
            took,
            candidate.confined,
        )
        result = Result(
            event, now, blobs, [self.row(started, digest, candidate.form, "accepted", now, event)]
        )
        result.superseded += self.superseded(step.id)
        if step.changes_copy:
            self._take_over(
                started, Wish(step, digest, entries, candidate.changes, candidate.files), result
            )
        elif step.produces:
            if started.reguard is None and not self.in_copy(step):
                result.wrote += [entry.path for entry in entries]
            self._place(started, step, entries, candidate, result)
        return result

    def _parked(
        self,
        started: AttemptStarted,
        step: Step,
        outcome: Outcome,
        approvals: tuple[str, ...],
        reusable: bool,
        took: int,
        now: int,
    ) -> Result:
        """Keep a candidate for people to decide about; the project is as it was before."""
        candidate = outcome.candidate
        assert candidate is not None  # people are asked about one
        digest, blobs, _ = self._content(step, candidate)
        log = self._note(step, blobs, outcome.log) if outcome.log else None
        event = AttemptParked(
            step.id,
            started.attempt,
            digest,
            outcome.asks,
            approvals,
            candidate.form,
            log,
            took,
            candidate.confined,
            reusable,
        )
        result = Result(event, now, blobs)
        self._put_back(started, step, result, silent=True)
        return result

    def stored(self, step: Step, candidate: Candidate) -> tuple[Digest, Form]:
        """The digest of a candidate, its content stored."""
        digest, blobs, _ = self._content(step, candidate)
        for _, content in blobs:
            self._world.store.put(content)
        return digest, candidate.form

    def decided(self, step_id: StepId, no: Approval | None, now: int, unfit: str = "") -> Result:
        """People decided about a kept candidate: the artifact of the step, or rejected with their words.

        It is rejected too if what it would add to the plan is `unfit` meanwhile.
        """
        step, here = self._state.plan.steps[step_id], self._state.steps[step_id]
        started, parked = here.running, here.parked
        assert started is not None  # it was kept by an attempt
        assert parked is not None
        blobs: list[tuple[Digest, bytes]] = []
        if no is not None or unfit:
            decision = no.decision if no is not None else None
            words = decision.because if decision else self._put(blobs, unfit.encode())
            event = AttemptRejected(
                step_id,
                parked.attempt,
                parked.guards[0] if no is not None else "add",
                parked.digest,
                parked.form,
                words,
                log=parked.log,
            )
            row = self.row(started, parked.digest, parked.form, "rejected", now)
            return Result(event, now, blobs, [row])
        candidate = self._kept(parked.digest, parked.form)
        _, _, entries = self._content(step, candidate)
        accepted = AttemptAccepted(
            step_id,
            parked.attempt,
            parked.digest,
            parked.form,
            started.source,
            verified=True,
            reusable=parked.reusable,
            log=parked.log,
            duration_ms=parked.duration_ms,
            confined=parked.confined,
        )
        row = self.row(started, parked.digest, parked.form, "accepted", now, accepted)
        result = Result(accepted, now, artifacts=[row], superseded=self.superseded(step_id))
        if step.changes_copy:
            self._take_over(
                started,
                Wish(step, parked.digest, entries, candidate.changes, candidate.files),
                result,
            )
        elif step.produces:
            self._place(started, step, entries, candidate, result)
        return result

    def resolved(self, step_id: StepId, lost: Sequence[str], allowed: Allowed, now: int) -> Result:
        """People settled the conflicts of a kept candidate: it is taken over without what it lost."""
        step, here = self._state.plan.steps[step_id], self._state.steps[step_id]
        started, parked = here.running, here.parked
        assert started is not None  # it was kept by an attempt
        assert parked is not None
        whole = self._kept(parked.digest, parked.form)
        files = tuple(file for file in whole.files if file.path not in lost)
        candidate = replace(whole, files=files, changes=settled(whole.changes, lost, allowed))
        digest, blobs, entries = self._content(step, candidate)
        accepted = AttemptAccepted(
            step_id,
            parked.attempt,
            digest,
            parked.form,
            started.source,
            verified=not lost and bool(step.guards or step.outputs or step.schema is not None),
            reusable=parked.reusable,
            log=parked.log,
            duration_ms=parked.duration_ms,
            confined=parked.confined,
        )
        row = self.row(started, digest, parked.form, "accepted", now, accepted)
        result = Result(accepted, now, blobs, [row], superseded=self.superseded(step_id))
        wish = Wish(step, digest, entries, candidate.changes, candidate.files)
        self._take_over(started, wish, result, allowed)
        return result

    def _take_over(
        self, started: AttemptStarted, wish: Wish, result: Result, allowed: Allowed | None = None
    ) -> None:
        """Write what a step changed into the project; if somebody else wrote there, keep it for a person."""
        ending, key = result.ending, f"{self._state.run}.{wish.step.id}.{started.attempt}"
        assert isinstance(ending, AttemptAccepted)  # only accepted content is taken over
        if started.reguard is not None:
            taken: Taken | Sequence[Clash] = self.taker.stand(wish, key)
        else:
            taken = self.taker.take(wish, key, allowed)
        if isinstance(taken, Taken):
            if taken.paths:
                result.blobs += taken.kept.blobs
                result.applied.append(key)
            if allowed:
                result.ending = replace(ending, kept=taken.kept.digest)
            return
        told = self.conflicts.about_files(wish.step.id, ending.digest, taken)
        result.blobs += told.blobs
        result.artifacts.clear()
        result.superseded.clear()
        result.after += told.events
        result.ending = AttemptParked(
            ending.step,
            ending.attempt,
            ending.digest,
            (),
            (),
            ending.form,
            ending.log,
            ending.duration_ms,
            ending.confined,
            ending.reusable,
        )

    def superseded(self, step_id: StepId) -> list[Artifact]:
        """What this run accepted of a step before it was sent back; it stands until something else does."""
        if not self._state.steps[step_id].stood:
            return []
        rows = self._world.store.artifacts(run=self._state.run, step=step_id, status="accepted")
        return list(rows)

    def _place(
        self,
        started: AttemptStarted,
        step: Step,
        entries: Sequence[Entry],
        candidate: Candidate,
        result: Result,
    ) -> None:
        """Bring accepted files into the project; what lies there is stored first, with the same batch."""
        if self._outputs.read(step) == tuple(entries):  # a shared step made it right there
            return
        kept = self._outputs.keep(step)
        fresh = candidate.files or (File(step.produces[0], candidate.content),)
        key = f"{self._state.run}.{step.id}.{started.attempt}"
        paths = self._outputs.place(step, entries, key, fresh)
        if not paths:
            return
        result.blobs += kept.blobs
        result.applied.append(key)
        files = [
            e for e in self._written_meanwhile(started, step, kept, entries) if e.path in paths
        ]
        if files:
            assert isinstance(result.ending, AttemptAccepted)  # only accepted content is placed
            result.ending = replace(result.ending, kept=kept.digest)
            result.words += words_of_kept(step, files, "it was changed while the step ran")

    def _written_meanwhile(
        self, started: AttemptStarted, step: Step, kept: Kept, made: Sequence[Entry]
    ) -> list[Entry]:
        """What lies at the output paths and is neither from before the attempt nor ours."""
        state, store = self._state, self._world.store
        drift = self._outputs.drift_of(
            step,
            kept.entries,
            made,
            lambda: self._outputs.known(state.project, state.line, step),
        )
        if drift.state != "edited":
            return []
        before = set(tree_entries(store.get(started.before)) if started.before else ())
        return [e for e in kept.entries if e.path in drift.paths and e not in before]

    def _content(
        self, step: Step, candidate: Candidate
    ) -> tuple[Digest, list[tuple[Digest, bytes]], tuple[Entry, ...]]:
        """The digest of a candidate, what is still to be stored of it, and its files."""
        blobs: list[tuple[Digest, bytes]] = []
        if candidate.form != "tree":
            content = candidate.content
            digest = self._put(blobs, content)
            if step.agent:
                self.conflicts.note(digest, content)
            if not step.produces:
                self._recent.made(digest, content)
                return digest, blobs, ()
            is_program = candidate.form == "program"
            return digest, blobs, (Entry(step.produces[0], digest, is_program, len(content)),)
        entries = tuple(
            Entry(f.path, self._put(blobs, f.content), f.executable, len(f.content))
            for f in candidate.files
        )
        if not step.changes_copy:
            return self._put(blobs, tree_bytes(entries)), blobs, entries
        changed = {change.path for change in candidate.changes}
        made = tuple(entry for entry in entries if entry.path not in changed)
        digest = self._put(blobs, changeset_bytes(made, candidate.changes))
        self.taker.note(digest, candidate.changes)
        return digest, blobs, made

    def _put(self, blobs: list[tuple[Digest, bytes]], content: bytes) -> Digest:
        if len(content) > SMALL:
            return self._world.store.put(content)
        digest = digest_bytes(content)
        blobs.append((digest, content))
        return digest

    def _note(self, step: Step, blobs: list[tuple[Digest, bytes]], content: bytes) -> Digest | None:
        """Store a log or a feedback, without the values of the step's secrets."""
        if not content:
            return None
        env = self._world.env
        values = [env[name] for name in step.secrets if name in env]
        return self._put(blobs, _redacted(content, values))

    def _refused(
        self, started: AttemptStarted, step: Step, outcome: Outcome, took: int, now: int
    ) -> Result:
        if outcome.ended == "lost":
            return self.lost(started, outcome.code, now, outcome.feedback, outcome.log)
        if outcome.ended == "failed":
            return self._failed(started, outcome.code, outcome.feedback, outcome.log, took, now)
        verdict, candidate = outcome.verdict, outcome.candidate
        digest: Digest | None = None
        blobs: list[tuple[Digest, bytes]] = []
        if candidate is not None:
            digest, blobs, _ = self._content(step, candidate)
        event = AttemptRejected(
            step=step.id,
            attempt=started.attempt,
            guard=verdict.guard if verdict else "",
            digest=digest,
            form=candidate.form if candidate else "bytes",
            feedback=self._note(step, blobs, outcome.feedback.encode("utf-8", "replace")),
            fatal=outcome.ended == "fatal",
            log=self._note(step, blobs, outcome.log),
            duration_ms=took,
            alike=self._alike(step, outcome.feedback),
        )
        result = Result(event, now, blobs)
        if digest is not None:
            result.artifacts.append(self.row(started, digest, event.form, "rejected", now))
        self._put_back(started, step, result)
        return result

    def _failed(
        self, started: AttemptStarted, code: str, feedback: str, log: bytes, took: int, now: int
    ) -> Result:
        step = self._state.plan.steps[started.step]
        blobs: list[tuple[Digest, bytes]] = []
        words = self._note(step, blobs, feedback.encode("utf-8", "replace"))
        log_digest = self._note(step, blobs, log)
        event = AttemptFailed(
            step.id,
            started.attempt,
            code,
            words,
            log_digest,
            took,
            alike=self._alike(step, feedback),
        )
        result = Result(event, now, blobs)
        back = self._put_back(started, step, result)
        result.ending = replace(event, kept=back.kept.digest if back else None)
        return result

    def _alike(self, step: Step, feedback: str) -> Digest | None:
        """Equal for feedback that says the same; blanks, and where the attempt worked, say nothing."""
        if step.patience is None:
            return None
        rooms = re.escape(os.path.join(self._world.scratch, self._state.run))
        return digest_bytes(
            " ".join(re.sub(rf"{rooms}/[^/\s]+", "", feedback).split()).encode("utf-8", "replace")
        )

    def lost(
        self,
        started: AttemptStarted,
        code: str,
        now: int,
        feedback: str = "",
        log: bytes = b"",
        *,
        unwatched: bool = False,
    ) -> Result:
        """An attempt that gave no answer: what it left at its output paths is kept, then put back.

        `unwatched` says that its engine died, so that anybody may have written there since.
        """
        step = self._state.plan.steps[started.step]
        blobs: list[tuple[Digest, bytes]] = []
        words = self._note(step, blobs, feedback.encode("utf-8", "replace"))
        log_digest = self._note(step, blobs, log)
        result = Result(AttemptLost(step.id, started.attempt, code, words, log_digest), now, blobs)
        back = self._put_back(started, step, result, loud=True, unwatched=unwatched)
        kept = back.kept.digest if back else None
        result.ending = AttemptLost(step.id, started.attempt, code, words, log_digest, kept)
        if kept is not None:
            result.artifacts.append(self.row(started, kept, "tree", "interrupted", now))
        return result

    def _put_back(
        self,
        started: AttemptStarted,
        step: Step,
        result: Result,
        *,
        loud: bool = False,
        unwatched: bool = False,
        silent: bool = False,
    ) -> PutBack | None:
        """Restore the output paths of a shared attempt; gives what was there instead."""
        if started.before is None or started.reguard is not None or self.in_copy(step):
            return None
        entries = tree_entries(self._world.store.get(started.before))
        key = f"{self._state.run}.{step.id}.{started.attempt}.back"
        done = put_back(self._world, self._outputs, step, entries, key)
        if done is None:
            return None
        result.applied.append(key)
        if silent:  # what it made is kept, and will be shown
            return done
        for line in (*done.words(step), *(done.doubt(step) if unwatched else ())):
            (self._world.remind if loud else self._world.say)(line)
        return done

    def row(
        self,
        started: AttemptStarted,
        digest: Digest,
        form: Form,
        status: Status,
        now: int,
        accepted: AttemptAccepted | None = None,
    ) -> Artifact:
        """The row of the artifact index for an ended attempt."""
        state = self._state
        return Artifact(
            state.project,
            state.line,
            started.step,
            started.config_ref,
            started.input_ref,
            started.own_ref,
            digest,
            status,
            started.source,
            state.run,
            started.attempt,
            form,
            accepted.verified if accepted else False,
            accepted.reusable if accepted else False,
            now,
        )


def _with_values(step: Step, given: Mapping[StepId, Given]) -> Step:
    if not has_expressions(step):
        return step

    def read(need: StepId) -> bytes | None:
        return None if given[need].form == "tree" else given[need].content()

    return filled(step, read)


def _redacted(content: bytes, secrets: Sequence[str]) -> bytes:
    """Logs and feedback without the values of secrets; very short values would blacken everything."""
    for value in secrets:
        if len(value) >= SHORTEST_SECRET:
            content = content.replace(value.encode("utf-8", "surrogateescape"), b"[secret]")
    return content


def leftovers(world: World, state: State) -> None:
    """End the processes of a dead engine's run and remove its private directories."""
    world.sweep(f"{state.run}/")
    shutil.rmtree(os.path.join(world.scratch, state.run), ignore_errors=True)
    drop_worktrees(world.root, world.home, state.run)
