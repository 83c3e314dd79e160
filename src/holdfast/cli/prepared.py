"""A plan that no longer holds, and one that is ready: it takes its place in the same command."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, cast

import click

from holdfast import wire
from holdfast.cli.again import mend
from holdfast.cli.ask import ask, who
from holdfast.cli.course import course
from holdfast.cli.ending import conclude
from holdfast.cli.place import Place
from holdfast.cli.provisions import provide
from holdfast.cli.saved import Agreement, consent, plan_changes
from holdfast.cli.say import short, talk
from holdfast.cli.succession import place_of
from holdfast.core.changes import asking_for_nothing
from holdfast.core.premises import rules_of
from holdfast.core.state import State
from holdfast.engine.journals import has_ended, read_state, runs_of
from holdfast.engine.replans import answers_by, answers_on, doubts, successor
from holdfast.errors import PlanError, UsageError
from holdfast.formats.planfile import Loaded
from holdfast.model.event import Options
from holdfast.model.fixed import frozen
from holdfast.model.plan import Plan
from holdfast.model.text import one_line
from holdfast.ports import Store


@frozen
class Taking:
    """A run that is held, the file of the plan that takes its place, and who said so if somebody had to."""

    state: State
    file: str
    words: tuple[str, ...]
    by: str = ""


Start = Callable[[Place, Plan, Agreement, dict[str, object], str], int]


def taking(root: str, store: Store, state: State, *, asks: bool) -> Taking | None:
    """What follows a run that is held: a plan that is ready, if nobody has to be asked or he says yes."""
    if state.replan is None or state.status != "waiting":
        return None
    words = tuple(one_line(one.words) for one in doubts(store.get(state.replan.words)))
    answers = answers_on(store, state.project, state.line)
    follows = successor(store, state, answers, partial(wire.ready, root))
    if follows is not None and follows.is_as_it_was:
        return Taking(state, follows.file, words)
    if follows is not None:
        changed = f"{follows.file} is not as it was when {short(state.run)} began"
        talk(f"! {changed}, so it takes its place only if a person looked at it and says so")
    file = rules_of(state.plan).to
    if not asks or not file or state.options.select:
        return None
    for line in words:
        talk(f"! {line}")
    if not ask(f"go on with '{file}' instead of this plan?", default=False):
        return None
    return Taking(state, file, words, who())


def take(where: Place, found: Taking, given: Mapping[str, object], start: Start) -> int:
    """Begin a run with the plan that was ready; if it cannot be used, the one before is left as it is."""
    state, manner = found.state, dict(given)
    paid = state.agreed if state.agreed == "anything" else None  # as was said when it began
    most = cast("int | None", manner["max_cost"])
    if most is None and paid is not None:
        most = state.max_cost
    if most is not None:
        manner["max_cost"] = max(0, most - state.spent.cost)  # one bound for the whole command
    there = place_of(where, state.line, found.file)
    talk(f"what {short(state.run)} learned speaks against its plan:")
    for line in found.words:
        talk(f"  {line}")
    try:
        loaded = there.load(state.plan.params)
        _say_changes(state, loaded, found.file)
        options = asking_for_nothing(state.options)
        provide(there, loaded, options, cast("int | None", manner["max_cost"]))
        agreed = consent(there, loaded, options, manner, told=paid)
    except (PlanError, UsageError, click.exceptions.Exit) as error:
        return _left(there, found, error, as_json=bool(manner["as_json"]))
    return start(there, loaded.plan, agreed, manner, found.by)


def _say_changes(state: State, loaded: Loaded, file: str) -> None:
    for line in plan_changes(state.plan, loaded.plan, f"going on with {file}"):
        talk(line)


def _left(there: Place, found: Taking, error: Exception, *, as_json: bool) -> int:
    """Say why the plan that was ready does not run; the run before it still waits."""
    if isinstance(error, PlanError):
        talk(f"{found.file} cannot take its place: {error.problems[0].message}")
    elif isinstance(error, UsageError):
        mend(error)
        talk(f"{found.file} does not take its place yet: {error}")
    store = there.open(readonly=True)
    try:
        return conclude(store, found.state, there.file, as_json=as_json)
    finally:
        store.close()


class Before(NamedTuple):
    """The last run of a line, if something speaks against its plan and that was not answered.

    `taken_by` is who lets another plan take its place by naming its file ('' if nobody has to), None if the
    file is another one. It `goes_over` if nobody has to be asked: a plan takes its place without a person,
    or this one is another and so the answer, or comes to one.
    """

    taken_by: str | None = None
    goes_over: bool = False


def before(where: Place, loaded: Loaded, options: Options) -> Before:
    """What a run that begins now finds; a run that ended is not looked into."""
    plan = loaded.plan
    if where.file is None or not where.exists():
        return Before()
    store = where.open(readonly=True)
    try:
        rows = runs_of(store, plan.project, plan.name)
        if not rows or has_ended(store, rows[-1].run):
            return Before()
        state = read_state(store, rows[-1].run)
        if state is None or state.replan is None:
            return Before()
        file = rules_of(state.plan).to
        answers = answers_on(store, plan.project, plan.name)
        found = successor(store, state, answers, partial(wire.ready, where.root))
        follows = found is not None and found.is_as_it_was
        is_answer = bool(answers_by(store, state.run, plan))
    finally:
        store.close()
    wanted = os.path.realpath(os.path.join(where.root, file)) if file else None
    if os.path.realpath(where.file) == wanted:
        return Before("" if follows else who(), follows)
    if follows or state.counts["waiting"]:  # for something else, too
        return Before(None, follows)
    if found is not None:  # what a step has changed takes nobody's place unseen
        return Before(None, is_answer)
    way = None if is_answer else course(where, loaded, options)
    return Before(None, way is None or bool(way.overs and not way.waits))
