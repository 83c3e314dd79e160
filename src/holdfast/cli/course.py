"""The plan that a run comes to: from what stands, plans that are ready take each other's place beforehand.

Nothing is run and nothing is written for that. A plan is foreseen to take the place of another only if all
steps are reused up to the wave that speaks against it: else the first plan is what there is to be shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from holdfast import wire
from holdfast.cli.again import again
from holdfast.cli.ahead import Ahead, gather, look_ahead, preview_json, reading
from holdfast.cli.grown import grown
from holdfast.cli.place import Place
from holdfast.cli.replanning import held_commands, ready_lines
from holdfast.cli.say import short
from holdfast.cli.succession import place_of
from holdfast.core.changes import asking_for_nothing
from holdfast.core.premises import rules_of
from holdfast.core.replan import Trigger
from holdfast.core.said import Said
from holdfast.engine.foretold import Foretold, foretold
from holdfast.engine.handoffs import Handoffs
from holdfast.engine.journals import runs_of
from holdfast.engine.replans import (
    PREPARED,
    Doubt,
    Footing,
    answers_by,
    answers_on,
    doubted,
    held_in,
    takes_over,
)
from holdfast.errors import PlanError, UsageError
from holdfast.formats.planfile import Loaded
from holdfast.formats.prepared import MOST
from holdfast.model.digest import Digest, Json
from holdfast.model.event import Options
from holdfast.model.fixed import frozen
from holdfast.model.line import ReplanAnswered
from holdfast.model.plan import Plan, RunId, StepId, plan_digest
from holdfast.model.text import one_line, wrap
from holdfast.ports import Store


@frozen
class Over:
    """A plan takes the place of the one before it: its file, and what speaks against that one."""

    file: str
    because: Sequence[Trigger]


@frozen
class Course:
    """The plan that a run would come to, and how.

    `waits` is what it would be held for there, `may_wait` what for if steps that are only made once more tell
    the same, `ready` the file of a plan that may take its place when steps ran. `held` is the run that is
    held now, with what speaks against its plan; if nothing does any more, it can be `resumed`.
    """

    where: Place
    loaded: Loaded
    options: Options
    overs: Sequence[Over] = ()
    waits: Sequence[Trigger] = ()
    may_wait: Sequence[Trigger] = ()
    ready: str = ""
    held: tuple[RunId, Sequence[Doubt], Plan] | None = None
    resumed: bool = False

    @property
    def lines(self) -> list[str]:
        """All of that in words."""
        lines, known = [], set[str]()
        if self.held is not None:
            run, doubts, plan = self.held
            known = {one.id for one in doubts}
            lines += [f"! {short(run)} is held: {one_line(one.words)}" for one in doubts]
            lines += [f"  {line}" for line in ready_lines(plan)]
        lines += self.over_lines
        if self.waits and known.issuperset(one.id for one in self.waits):
            lines.append(again("what is shown here follows after: holdfast approve replan"))
        elif self.waits:
            words = "; ".join(one_line(one.words) for one in self.waits)
            lines.append(f"! a run would wait for a person, and go on so after a yes: {words}")
            lines += [f"  {line}" for line in ready_lines(self.loaded.plan)]
        if self.may_wait:
            words = "; ".join(one_line(one.words) for one in self.may_wait)
            again_told = "if what is made again tells the same, a run would wait for a person"
            lines.append(f"! {again_told}: {words}")
        if self.ready and not self.waits:
            lines.append(f"{self.ready} is ready, should what is learned speak against this plan")
        return lines

    @property
    def over_lines(self) -> list[str]:
        """Which plans take the place of others, and why."""
        lines = []
        for over in self.overs:
            words = "; ".join(one_line(one.words) for one in over.because)
            lines.append(f"goes on with {over.file}: {words}")
        return lines

    @property
    def commands(self) -> list[str]:
        """What follows if a person has to say first what becomes of the plan; nothing if none has."""
        if self.resumed:
            return [again("holdfast resume"), again("holdfast status")]
        return held_commands(self.held[2]) if self.held is not None and self.waits else []

    def json(self) -> dict[str, Json]:
        """The same for programs."""
        return {
            "goes_on": [
                {"file": over.file, "because": [_trigger(one) for one in over.because]}
                for over in self.overs
            ],
            "waits_for": [_trigger(one) for one in self.waits],
            "may_wait_for": [_trigger(one) for one in self.may_wait],
            "ready": self.ready or None,
            "held": None if self.held is None else self.held[0],
        }


def _trigger(one: Trigger) -> Json:
    return {"trigger": one.id, "cause": one.cause, "words": one.words}


def course(
    where: Place,
    loaded: Loaded,
    options: Options,
    forced: Sequence[StepId] = (),
    unsaid: Sequence[Said] = (),
) -> Course:
    """The plan that a run of this one would come to; steps that are `forced` are so in all of them.

    `unsaid` is what somebody is about to say of the ledger.
    """
    found = Course(where, _with(where, loaded, forced), _forcing(where, loaded, options, forced))
    if where.file is None or where.goal or options.select:
        return found
    with reading(where) as store:
        way: list[ReplanAnswered] = []
        answers = answers_on(store, loaded.plan.project, loaded.plan.name)
        found = _with_held(store, found)
        tells = Handoffs(store, loaded.plan.project, loaded.plan.name)
        tells.refresh()
        is_silent = not loaded.plan.premises and next(tells.ever(), None) is None
        for _ in range(MOST):
            plan = found.loaded.plan
            rules = rules_of(plan)
            if is_silent:
                return replace(found, ready=rules.to)
            answers = [*answers, *_would_answer(store, plan)]
            told = _foretold(store, found, way, answers, unsaid)
            if not told.found:
                return replace(found, ready=rules.to if told.depends else "")
            names = tuple(one.id for one in told.found)
            following = None
            if takes_over(rules, names, way, answers):
                following = _following(found, rules.to, forced)
            if told.depends:
                may_wait = told.found if following is None else ()
                return replace(found, may_wait=may_wait, ready=rules.to)
            if following is None:
                return replace(found, waits=told.found, ready=rules.to)
            digest = plan_digest(following.loaded.plan)
            way = [ReplanAnswered(RunId(""), names, PREPARED, plan=digest), *way]
            found = replace(following, overs=[*found.overs, Over(rules.to, told.found)])
    return found


class Seen(NamedTuple):
    """The preview of the plan that a run comes to. `digest` is that of the one it begins with."""

    ahead: Ahead
    way: Course
    digest: Digest

    def json(self) -> dict[str, Json]:
        """All of it for programs."""
        return {**preview_json(self.ahead), "digest": self.digest, "replan": self.way.json()}

    def lines(self, width: int) -> list[str]:
        """What is to be said before the preview."""
        return [piece for line in self.way.lines for piece in wrap(line, width)]


def looked(
    where: Place,
    loaded: Loaded,
    options: Options,
    *,
    against: str | None = None,
    parallel: int = 0,
    follows: bool = True,
) -> Seen:
    """Look ahead along the course of a run; if it does not follow that, only at the plan it begins with.

    UsageError for what a run refuses before it begins.
    """
    if any(step.workspace == "worktree" for step in loaded.plan.steps.values()):
        from holdfast.engine.worktrees import check_worktrees

        check_worktrees(loaded.plan, where.root)
    way = course(where, loaded, options)
    if not follows or not way.overs:
        ahead = gather(where, loaded, options, against=against, parallel=parallel)
        return Seen(replace(ahead, is_held=bool(way.waits)), way, ahead.foreseen.digest)
    digest = look_ahead(where, loaded, options).digest
    ahead = gather(way.where, way.loaded, way.options, against=against, parallel=parallel)
    return Seen(replace(ahead, is_held=bool(way.waits)), way, digest)


def _foretold(
    store: Store,
    at: Course,
    way: Sequence[ReplanAnswered],
    answers: Sequence[ReplanAnswered],
    unsaid: Sequence[Said],
) -> Foretold:
    plan = at.loaded.plan
    here = Footing(plan, Digest(plan_digest(plan)), way)
    foreseen = look_ahead(at.where, at.loaded, at.options, unsaid)
    return foretold(store, foreseen, here, [*answers, *way], wire.alike, unsaid)


def _would_answer(store: Store, plan: Plan) -> list[ReplanAnswered]:
    """What a run of this plan answers by beginning."""
    rows = runs_of(store, plan.project, plan.name)
    return answers_by(store, rows[-1].run, plan) if rows else []


def _following(at: Course, file: str, forced: Sequence[StepId]) -> Course | None:
    """The plan that takes the place of one; None if it cannot be read."""
    there = place_of(at.where, at.loaded.plan.name, file)
    try:
        loaded = there.load(at.loaded.plan.params)
    except (PlanError, UsageError):  # then it takes nobody's place
        return None
    options = _forcing(there, loaded, asking_for_nothing(at.options), forced)
    return replace(at, where=there, loaded=_with(there, loaded, forced), options=options)


def _with(where: Place, loaded: Loaded, forced: Sequence[StepId]) -> Loaded:
    """With steps that others added: those may be meant too."""
    return grown(where, loaded) if forced else loaded


def _forcing(where: Place, loaded: Loaded, options: Options, forced: Sequence[StepId]) -> Options:
    there = _with(where, loaded, forced).plan.steps
    steps = tuple(step for step in forced if step in there)
    return replace(options, force_steps=(*options.force_steps, *steps))


def _with_held(store: Store, found: Course) -> Course:
    """With the run that is held now, or that was and can be resumed."""
    plan = found.loaded.plan
    state = doubted(store, plan.project, plan.name)
    if state is None:
        return found
    waits = held_in(store, state, wire.alike)
    if waits is None:
        is_it = state.base == plan_digest(plan) and state.replanned is None
        return replace(found, resumed=is_it and state.status == "waiting")
    return replace(found, held=(waits.run, waits.doubts, waits.plan))
