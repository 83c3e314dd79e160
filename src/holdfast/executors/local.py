"""Runs attempts on this machine: generate, then guard, and say how it ended."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from holdfast.errors import (
    AttemptError,
    GuardBroken,
    IntegrityError,
    StoreError,
    outside_fault,
)
from holdfast.executors.identity import Basis, implied, joined_identity, judged_by
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard, Step, StepId
from holdfast.model.walls import Walls, moved_by, size_of
from holdfast.ports import Candidate, Generator, GuardKind, Job, Outcome
from holdfast.process.room import tail

_FULL = 64 * 1024  # bytes; with less than this hardly anything can be written
_LOST = frozenset({"timed_out", "lost", "call_failed", "limit_reached"})


class Inline(Generator, Protocol):
    """A generator of steps that are functions of this very process."""

    def __contains__(self, step: StepId, /) -> bool:
        """Whether the step is such a function."""

    def at_once(self, job: Job) -> Candidate | None:
        """Call it now; None if it is none of these, or must be awaited.

        AttemptError if it gives no candidate.
        """


class LocalExecutor:
    """Finds the generator by `uses` and the guards by kind; both are given by name.

    This is the one boundary where a crash of an adapter becomes a fact: an exception that nobody
    foresaw ends the attempt as failed, with the end of its traceback as the feedback.
    """

    def __init__(
        self,
        generators: Mapping[str, Generator],
        guards: Mapping[str, GuardKind],
        inline: Inline | None = None,
    ) -> None:
        self._generators = generators
        self._guards = guards
        self._inline = inline

    def at_once(self, job: Job) -> Outcome | None:
        step = job.step
        if self._inline is None or step.is_judged:
            return None
        try:
            candidate = self._inline.at_once(job)
        except AttemptError as error:
            return _without_candidate(error)
        except (IntegrityError, StoreError):  # not the step's doing: the engine must stop
            raise
        except Exception as error:  # noqa: BLE001 - the boundary
            return crashed(error)
        if candidate is None:
            return None
        if len(candidate.content) > job.walls.artifact:
            return _too_large(candidate, job.walls)
        return Outcome("accepted", "", candidate)

    def __contains__(self, step: StepId) -> bool:
        """Whether a step is a function of this very process."""
        return self._inline is not None and step in self._inline

    async def run(self, job: Job) -> Outcome:
        return await self.run_with(job, lambda: self._generator(job.step).generate(job))

    async def run_with(self, job: Job, generate: Callable[[], Awaitable[Candidate]]) -> Outcome:
        """Guard what is generated so; AttemptError if it gives no candidate."""
        return _unless_full(job, await self._run(job, generate))

    async def _run(self, job: Job, generate: Callable[[], Awaitable[Candidate]]) -> Outcome:
        before = self._judged_by(job)
        try:
            candidate = await generate()
            if job.take is not None:
                candidate = job.take(candidate)
        except AttemptError as error:
            return _without_candidate(error)
        except (IntegrityError, StoreError):  # not the step's doing: the engine must stop
            raise
        except Exception as error:  # noqa: BLE001 - the boundary
            return crashed(error)
        outcome = _too_large(candidate, job.walls) or await self._judge(job, candidate)
        is_good = outcome.verified or outcome.ended == "asked"
        changed = before.changed(self._judged_by(job)) if is_good else ()
        return _refused(candidate, _bent(job, changed)) if changed else outcome

    def _judged_by(self, job: Job) -> Basis:
        """What the guards of the step decide by, as far as that can be told."""
        try:
            return judged_by(
                job.step,
                lambda guard, root: self._kind(guard).identity(guard, root),
                job.folder,
                job.root,
            )
        except GuardBroken:  # which is said when it is asked
            return Basis({}, {})

    async def judge(self, job: Job, candidate: Candidate) -> Outcome:
        return _unless_full(job, await self._judge(job, candidate))

    async def _judge(self, job: Job, candidate: Candidate) -> Outcome:
        verdicts = []
        asks: list[str] = []
        for guard in (*implied(job.step), *job.step.guards):
            try:
                verdict = await self._kind(guard).judge(guard, candidate, job)
            except GuardBroken as error:
                return Outcome(
                    "lost", "guard_broken", candidate, feedback=str(error), log=candidate.log
                )
            except AttemptError as error:  # a model that it wanted to ask
                return _without_candidate(error)._replace(candidate=candidate, log=candidate.log)
            except (IntegrityError, StoreError):  # as above
                raise
            except Exception as error:  # noqa: BLE001 - the boundary
                return crashed(error, candidate)
            if verdict.call == "ask":  # the others first: nobody is asked about what they refuse
                asks += verdict.asks
            elif not verdict.passed:
                return _refused(candidate, verdict)
            verdicts.append(verdict)
        if asks:
            return Outcome("asked", candidate=candidate, log=candidate.log, asks=tuple(asks))
        if not verdicts:
            return Outcome("accepted", candidate=candidate, log=candidate.log)
        whole = Verdict("accept", items=tuple(verdicts))
        return Outcome(
            "accepted", candidate=candidate, verdict=whole, verified=True, log=candidate.log
        )

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        """The generator's part, `guards` in their order, and all that is `unresolved` in either."""
        if self._inline is not None and step.id in self and not step.is_judged:
            return self._inline.identity(step, root)
        return joined_identity(
            step,
            lambda: self._generator(step).identity(step, root),
            lambda guard: self._kind(guard).identity(guard, root),
        )

    async def close(self) -> None:
        generators = [*self._generators.values()]
        if self._inline is not None:
            generators.append(self._inline)
        await asyncio.gather(*(generator.close() for generator in generators))

    def _generator(self, step: Step) -> Generator:
        if self._inline is not None and step.id in self:
            return self._inline
        found = self._generators.get(step.uses)
        if found is None:
            raise AttemptError(f"nothing here runs '{step.uses}' steps", reason="command_failed")
        return found

    def _kind(self, guard: Guard) -> GuardKind:
        found = self._guards.get(guard.kind)
        if found is None:
            raise GuardBroken(f"there is no guard of kind '{guard.kind}' here")
        return found


def _unless_full(job: Job, outcome: Outcome) -> Outcome:
    """The outcome; StoreError if there is no room on the disk: what fails there says nothing about a step."""
    if outcome.ended == "accepted":
        return outcome
    for place in filter(os.path.isdir, (job.room, job.folder)):
        found = os.statvfs(place)
        if found.f_bavail * found.f_frsize < _FULL and found.f_blocks:
            raise StoreError(
                f"the disk that holds '{place}' is full, and step '{job.step.id}' did not get through",
                hint="free some space, then resume",
            )
    return outcome


def _without_candidate(error: AttemptError) -> Outcome:
    if error.reason in _LOST:
        return Outcome(
            "lost",
            error.reason,
            feedback=error.message,
            log=error.log,
            limit=error.limit,
            wanted=error.wanted,
        )
    if error.reason == "guard_rejected":
        verdict = Verdict("reject", "produces", error.message)
        return Outcome(
            "rejected", error.reason, verdict=verdict, feedback=error.message, log=error.log
        )
    return Outcome("failed", error.reason, feedback=error.message, log=error.log)


def crashed(error: Exception, candidate: Candidate | None = None) -> Outcome:
    """The attempt failed over an exception; a machine that refuses everybody is not the step's doing."""
    if (fault := outside_fault(error)) is not None:
        raise fault from error
    story = "".join(traceback.format_exception(error)).encode("utf-8", "replace")
    log = candidate.log if candidate else b""
    return Outcome("failed", "command_failed", candidate, feedback=tail(story), log=log)


def _refused(candidate: Candidate, verdict: Verdict) -> Outcome:
    fatal = verdict.call == "fatal"
    return Outcome(
        "fatal" if fatal else "rejected",
        "guard_fatal" if fatal else "guard_rejected",
        candidate,
        verdict,
        feedback=verdict.feedback,
        log=candidate.log,
    )


def _bent(job: Job, changed: Sequence[str]) -> Verdict:
    """No guard speaks for a step that changed what it decides by. In the project, that stays changed."""
    names = ", ".join(f"'{path}'" for path in changed)
    return Verdict(
        "fatal" if job.folder == job.root else "reject",
        "guards",
        f"{names} changed during the attempt, and its guards decide by that; what a step makes"
        " itself belongs under 'produces'",
    )


def _too_large(candidate: Candidate, walls: Walls) -> Outcome | None:
    size = len(candidate.content)
    if candidate.files:
        size += sum(len(file.content) for file in candidate.files)
    if size <= walls.artifact:
        return None
    most, hint = size_of(walls.artifact), moved_by("artifact", walls.artifact)
    words = f"the artifact has {size:,} bytes, and {most} are the most\nhint: {hint}"
    return Outcome("failed", "command_failed", feedback=words, log=candidate.log)
