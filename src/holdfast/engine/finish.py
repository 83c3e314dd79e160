"""What the outcome of an attempt means: a fact, files in their place, and what is stored with them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from holdfast.core.approvals import Approval
from holdfast.core.state import State
from holdfast.engine.attempt import Bench
from holdfast.engine.conflicts import Conflicts
from holdfast.engine.handoffs import added_to
from holdfast.engine.kept import words_of_kept
from holdfast.engine.outputs import BACK, Kept, Outputs, edit_key
from holdfast.engine.putback import PutBack, put_back
from holdfast.engine.result import Result
from holdfast.engine.samples import score_of, stands_better
from holdfast.engine.sent import Sent
from holdfast.engine.survey import Survey
from holdfast.engine.taking import Allowed, Clash, Taken, Wish, Word, settled
from holdfast.engine.verdicts import carried, is_as_in_copy, records, seen_in
from holdfast.engine.world import World
from holdfast.errors import EditError
from holdfast.model.artifact import Artifact, Entry, Form, Status, tree_entries
from holdfast.model.changeset import Change, settled_in
from holdfast.model.digest import Digest, Json, digest_bytes
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    AttemptStarted,
    ConflictFound,
)
from holdfast.model.plan import Step, StepId
from holdfast.ports import Candidate, File, Outcome


class Finisher:
    """Turns outcomes into results, for one run."""

    def __init__(
        self,
        world: World,
        state: State,
        survey: Survey,
        outputs: Outputs,
        bench: Bench,
        conflicts: Conflicts,
        sent: Sent,
    ) -> None:
        self._sent = sent
        self._world = world
        self._state = state
        self._survey = survey
        self._outputs = outputs
        self._bench = bench
        self.contents = bench.contents
        self.conflicts = conflicts

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
                changes = outcome.candidate.changes
                same = seen is None or self._is_same(step, seen, changes)
                reusable = started.reusable and same
                if outcome.ended == "asked":
                    return self._parked(started, step, outcome, approvals, reusable, took, now)
                result = self._accepted(started, step, outcome, reusable, took, now)
                if isinstance(result.ending, AttemptParked) and started.reusable and not same:
                    assert seen is not None  # else it is the same
                    found = [one for one in result.after if isinstance(one, ConflictFound)]
                    paths = {path for one in found for path in one.paths}
                    same = self._is_same(step, seen, changes, paths)
                    result.ending = replace(result.ending, reusable=same)
                return result
            return self._refused(started, step, outcome, took, now)
        except EditError as error:
            return self._failed(started, "command_failed", str(error), outcome.log, took, now)

    def _is_same(
        self,
        step: Step,
        seen: Mapping[str, Json],
        changes: Sequence[Change],
        decided: Collection[str] = (),
    ) -> bool:
        """Whether what the step reads is as it was. What it changed itself, it had in a copy."""
        now = self._survey.observe(step, lenient=True).parts
        return now == seen or is_as_in_copy(now, seen, changes, decided)

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
        if step.changes_copy and started.reguard is None:
            candidate = self._with_verdicts(started, candidate)
        digest, blobs, entries = self.contents.of(step, candidate)
        log = self.contents.note(step, blobs, outcome.log) if outcome.log else None
        told = self.contents.put(blobs, candidate.handoff) if candidate.handoff else None
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
            score=score_of(outcome),
            handoff=told,
        )
        state = self._state
        if step.id in state.options.resample and stands_better(
            self._world.store, state.project, state.line, started, event.score
        ):
            result = Result(replace(event, stands=False), now, blobs)
            self._set_aside(started, step, result)
            return result
        result = Result(event, now, blobs)
        self._stand(started, step, candidate, entries, result)
        if step.produces and started.reguard is None and not self._bench.in_copy(step):
            result.wrote += [entry.path for entry in entries]
        return result

    def _set_aside(self, started: AttemptStarted, step: Step, result: Result) -> None:
        """Keep a sample beside what stands; the project is as it was before."""
        event = result.ending
        assert isinstance(event, AttemptAccepted)  # guards accepted it
        row = self.row(started, event.digest, event.form, "superseded", result.at, event)
        result.artifacts.append(row)
        self._put_back(started, step, result, silent=True)

    def _stand(
        self,
        started: AttemptStarted,
        step: Step,
        candidate: Candidate,
        entries: Sequence[Entry],
        result: Result,
        allowed: Allowed | None = None,
    ) -> None:
        """Give an accepted candidate its row, and its files their place in the project."""
        event = result.ending
        assert isinstance(event, AttemptAccepted)  # only accepted content stands
        result.artifacts.append(
            self.row(started, event.digest, event.form, "accepted", result.at, event)
        )
        if self._state.steps[step.id].stood:
            result.superseded += self.superseded(step.id)
        if step.changes_copy:
            wish = Wish(step, event.digest, entries, candidate.changes, candidate.files)
            self._take_over(started, wish, result, allowed)
        elif step.produces:
            self._place(started, step, entries, candidate, result)

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
        digest, blobs, _ = self.contents.of(step, candidate)
        log = self.contents.note(step, blobs, outcome.log) if outcome.log else None
        told = self.contents.put(blobs, candidate.handoff) if candidate.handoff else None
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
            handoff=told,
        )
        result = Result(event, now, blobs)
        self._put_back(started, step, result, silent=True)
        return result

    def decided(
        self,
        step_id: StepId,
        no: Approval | None,
        now: int,
        unfit: str = "",
        said: Sequence[Approval] = (),
    ) -> Result:
        """People decided about a kept candidate: the artifact of the step, or rejected with their words.

        It is rejected too if what it would add to the plan is `unfit` meanwhile. Those who `said` yes may
        have handed something over with that.
        """
        step, here = self._state.plan.steps[step_id], self._state.steps[step_id]
        started, parked = here.running, here.parked
        assert started is not None  # it was kept by an attempt
        assert parked is not None
        blobs: list[tuple[Digest, bytes]] = []
        if no is not None or unfit:
            decision = no.decision if no is not None else None
            words = decision.because if decision else self.contents.put(blobs, unfit.encode())
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
        candidate = self.contents.kept(parked.digest, parked.form)
        _, _, entries = self.contents.of(step, candidate)
        stands = _stands(started, parked, parked.digest, verified=True)
        if (told := added_to(parked.handoff, said, self._world.store.get)) is not None:
            stands = replace(stands, handoff=self.contents.put(blobs, told))
        result = Result(stands, now, blobs)
        self._stand(started, step, candidate, entries, result)
        return result

    def _with_verdicts(self, started: AttemptStarted, candidate: Candidate) -> Candidate:
        """A candidate that goes on from what people decided about the step before."""
        store, state = self._world.store, self._state
        newest = store.newest(state.project, state.line, started.step)
        if newest is None or newest.form != "tree" or not store.has(newest.digest):
            return candidate
        before = settled_in(store.get(newest.digest))
        if not before:
            return candidate
        lies = self._bench.taker.lying([one.path for one in before])
        saw = seen_in(store.get(started.own_ref), state.plan.steps[started.step])
        return replace(candidate, settled=carried(candidate.changes, before, lies, saw))

    def resolved(self, step_id: StepId, word: Word, now: int) -> Result:
        """People settled the conflicts of a kept candidate: it is taken over without what it lost."""
        step, here = self._state.plan.steps[step_id], self._state.steps[step_id]
        started, parked = here.running, here.parked
        assert started is not None  # it was kept by an attempt
        assert parked is not None
        whole = self.contents.kept(parked.digest, parked.form)
        lost = word.lost
        files = tuple(file for file in whole.files if file.path not in lost)
        taker = self._bench.taker
        lies = taker.lying(lost)
        others = {path: [*some, *taker.last_written(path)] for path, some in word.others.items()}
        saw = seen_in(self._world.store.get(started.own_ref), step)
        changes = settled(whole.changes, lost, word.allowed)
        candidate = replace(
            whole,
            files=files,
            changes=changes,
            settled=records(whole.changes, whole.settled, others, lies, saw),
        )
        if way := taker.cleared(changes, word.allowed):
            more = tuple(sorted((*changes, *way), key=lambda change: change.path))
            result = self._settled(step, replace(candidate, changes=more), word, now)
            if isinstance(result.ending, AttemptAccepted):
                return result
        return self._settled(step, candidate, word, now)

    def _settled(self, step: Step, candidate: Candidate, word: Word, now: int) -> Result:
        """Let a candidate stand as people decided."""
        here = self._state.steps[step.id]
        started, parked = here.running, here.parked
        assert started is not None  # it was kept by an attempt
        assert parked is not None
        digest, blobs, entries = self.contents.of(step, candidate)
        verified = not word.lost and bool(step.guards or step.outputs or step.schema is not None)
        result = Result(_stands(started, parked, digest, verified=verified), now, blobs)
        self._stand(started, step, candidate, entries, result, word.allowed)
        return result

    def _take_over(
        self, started: AttemptStarted, wish: Wish, result: Result, allowed: Allowed | None = None
    ) -> None:
        """Write what a step changed into the project; if somebody else wrote there, keep it for a person."""
        ending, key = result.ending, edit_key(self._state.run, wish.step.id, started.attempt)
        assert isinstance(ending, AttemptAccepted)  # only accepted content is taken over
        if started.reguard is not None:
            taken: Taken | Sequence[Clash] = self._bench.taker.stand(wish, key)
        else:
            taken = self._bench.taker.take(wish, key, allowed)
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
            handoff=ending.handoff,
        )

    def superseded(self, step_id: StepId) -> list[Artifact]:
        """What this run accepted of a step before it was sent back; it stands until something else does."""
        if not self._state.steps[step_id].stood:
            return []
        state = self._state
        rows = self._world.store.artifacts(  # its line too: by that a step is found among very many
            project=state.project, line=state.line, run=state.run, step=step_id, status="accepted"
        )
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
        key = edit_key(self._state.run, step.id, started.attempt)
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

    def _refused(
        self, started: AttemptStarted, step: Step, outcome: Outcome, took: int, now: int
    ) -> Result:
        if outcome.ended == "lost":
            return self.lost(
                started,
                outcome.code,
                now,
                outcome.feedback,
                outcome.log,
                limit=outcome.limit,
                wanted=outcome.wanted,
            )
        if outcome.ended == "failed":
            return self._failed(started, outcome.code, outcome.feedback, outcome.log, took, now)
        verdict, candidate = outcome.verdict, outcome.candidate
        digest: Digest | None = None
        blobs: list[tuple[Digest, bytes]] = []
        if candidate is not None:
            digest, blobs, _ = self.contents.of(step, candidate)
        event = AttemptRejected(
            step=step.id,
            attempt=started.attempt,
            guard=verdict.guard if verdict else "",
            digest=digest,
            form=candidate.form if candidate else "bytes",
            feedback=self.contents.note(step, blobs, outcome.feedback.encode("utf-8", "replace")),
            fatal=outcome.ended == "fatal",
            log=self.contents.note(step, blobs, outcome.log),
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
        words = self.contents.note(step, blobs, feedback.encode("utf-8", "replace"))
        log_digest = self.contents.note(step, blobs, log)
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
        theirs: Digest | None = None,
        limit: str = "",
        wanted: int = 0,
    ) -> Result:
        """An attempt that gave no answer: what it left at its output paths is kept, then put back.

        `unwatched` says that its engine died, so that anybody may have written there since;
        `theirs` is what a person wrote where its changes were taken back; `limit` is what was reached
        and `wanted` what that left no room for.
        """
        step = self._state.plan.steps[started.step]
        blobs: list[tuple[Digest, bytes]] = []
        words = self.contents.note(step, blobs, feedback.encode("utf-8", "replace"))
        log_digest = self.contents.note(step, blobs, log)
        unsent = self._sent.unsent(started, self._state.steps[step.id].calls or ())
        event = AttemptLost(
            step.id,
            started.attempt,
            code,
            words,
            log_digest,
            limit=limit,
            unsent=unsent,
            wanted=wanted,
        )
        result = Result(event, now, blobs)
        back = self._put_back(started, step, result, loud=True, unwatched=unwatched)
        kept = back.kept.digest if back else theirs
        result.ending = replace(event, kept=kept)
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
        if started.before is None or started.reguard is not None or self._bench.in_copy(step):
            return None
        entries = tree_entries(self._world.store.get(started.before))
        key = edit_key(self._state.run, step.id, started.attempt, BACK)
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


def _stands(
    started: AttemptStarted, parked: AttemptParked, digest: Digest, *, verified: bool
) -> AttemptAccepted:
    """The acceptance of a candidate that was kept for people."""
    return AttemptAccepted(
        parked.step,
        parked.attempt,
        digest,
        parked.form,
        started.source,
        verified=verified,
        reusable=parked.reusable,
        log=parked.log,
        duration_ms=parked.duration_ms,
        confined=parked.confined,
        handoff=parked.handoff,
    )
