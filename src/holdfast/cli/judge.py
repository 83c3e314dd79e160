"""Lets the guards of a step look at a version of its artifact, as they would in a run."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import click

from holdfast import wire
from holdfast.cli.ahead import reading
from holdfast.cli.ask import consent_to
from holdfast.cli.gates import is_paid
from holdfast.cli.money import Dollars, estimate_words
from holdfast.cli.place import Place
from holdfast.cli.provisions import can_bound, provide_guards
from holdfast.cli.recording import provider_options
from holdfast.cli.say import talk
from holdfast.core.values import file_values
from holdfast.engine.furnish import copy_into, furnish, lay_out
from holdfast.engine.gathering import collected
from holdfast.engine.given import by_names, with_known_values
from holdfast.engine.survey import Survey
from holdfast.executors.identity import implied
from holdfast.model.artifact import Form, tree_entries
from holdfast.model.digest import Digest
from holdfast.model.plan import Guard, Plan, Step, StepId
from holdfast.ports import (
    Calls,
    Candidate,
    Executor,
    File,
    Given,
    Job,
    Outcome,
    Store,
    given_artifact,
)

if TYPE_CHECKING:
    from holdfast.engine.aside import Desk


def judging_options(command: Callable[..., object]) -> Callable[..., object]:
    """Options of commands that let guards look outside of a run: some guards ask models."""
    for option in (
        *provider_options,
        click.option(
            "--max-cost", type=Dollars(), help="What the guards may spend on models, at most."
        ),
        click.option("--yes", is_flag=True, help="Do not ask before guards that cost money."),
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Consent:
    """What was said about money."""

    yes: bool
    max_cost: int | None


def guards_of(step: Step) -> tuple[Guard, ...]:
    """Every guard that would look: those that follow from other keys first, as in a run."""
    return (*implied(step), *step.guards)


def only(step: Step, guard: Guard) -> Step:
    """The step as if it had this guard alone."""
    return replace(step, guards=(guard,), outputs=(), schema=None)


def stored_candidate(store: Store, digest: Digest, form: Form) -> Candidate:
    """Kept content, as guards look at it."""
    content = store.get(digest)
    if form != "tree":
        return Candidate(form, content)
    files = (File(e.path, store.get(e.digest), e.executable) for e in tree_entries(content))
    return Candidate("tree", files=tuple(files))


def ask_about_cost(where: Place, plan: Plan, step: Step, consent: Consent) -> None:
    """Ask before the guards of a step cost money; a limit is an answer too.

    What cannot be done for want of a key, a library or a price is refused before.
    """
    provide_guards(where, plan, step, wire.market.cost_bound(where.root, plan, consent.max_cost))
    if consent.yes or consent.max_cost is not None or not is_paid(where.root, step, about_it=True):
        return
    from holdfast.engine.outlays import Forecast

    with reading(where) as store:
        given = store.newest_of_all(plan.project, plan.name)
        price = wire.market.price_of(where.root)
        weigh = partial(wire.files_size, where.root)
        found = Forecast(store, plan, plan.name, price, given, weigh).of({step.id: "adopt"})
    words = estimate_words(found[step.id].cost)
    bounds = can_bound(where.root, [step], about_it=True)
    consent_to([], yes=False, look="", paid=[step.id], price=words, bounds=bounds)


def judge(
    where: Place,
    plan: Plan,
    steps: Iterable[Step],
    candidate: Candidate,
    *,
    on_disk: bool,
    max_cost: int | None = None,
) -> list[Outcome]:
    """Let the guards of each of these steps look: in the project if it lies there, else in a copy.

    What they ask models is written down in the journal of the line.
    """
    found = list(steps)

    async def main(room: _Room) -> list[Outcome]:
        try:
            return [await room.judge(step, candidate, on_disk=on_disk) for step in found]
        finally:
            await room.close()

    with _store(where, found) as store:
        desk = None
        if any(step.has_judge for step in found):
            desk = wire.market.desk_for(where.root, where.location, store, plan, max_cost, talk)
        return asyncio.run(main(_Room(where, plan, store, desk)))


@contextmanager
def _store(where: Place, steps: Iterable[Step]) -> Iterator[Store]:
    """The store to read from; to write to, if a model is asked."""
    if not any(step.has_judge for step in steps):
        with reading(where) as store:
            yield store
        return
    store = where.open(create=True)
    try:
        yield store
    finally:
        store.close()


class _Room:
    """Where guards look."""

    def __init__(self, where: Place, plan: Plan, store: Store, desk: Desk | None) -> None:
        self._where = where
        self._plan = plan
        self._store = store
        self._desk = desk
        self._executor: Executor = wire.executor_for(
            plan, terms=wire.terms_for(where.location, wire.Wishes())
        )
        self._calls: Calls | None = None

    async def judge(self, step: Step, candidate: Candidate, *, on_disk: bool) -> Outcome:
        """What the guards of a step say."""
        if step.has_judge and self._desk is not None and self._calls is None:
            from holdfast.engine.aside import Aside

            self._calls = Aside(
                self._desk, step
            )  # one for all: what they spend is counted together
        where, plan = self._where, self._plan
        env = {name: os.environ[name] for name in step.env if name in os.environ}
        given = given_to(self._store, plan, step)
        with tempfile.TemporaryDirectory(prefix="holdfast-") as room:
            for name in ("home", "tmp", "work"):
                os.makedirs(os.path.join(room, name))
            folder = where.root
            if step.produces and not on_disk:
                folder = os.path.join(room, "work")
                survey = Survey(
                    where.root, wire.empty_store(), self._executor, plan, wire.ignore_rules
                )
                furnish(folder, where.root, survey.observe(step).parts)
                _copy_needs(folder, where.root, plan, step)
                lay_out(folder, step, candidate)
            job = Job(
                with_known_values(step, given),
                0,
                folder,
                where.root,
                room,
                f"judge/{step.id}/0",
                given=by_names(step, given),
                env=env,
                files=file_values(step),
                calls=self._calls,
                walls=wire.walls_at(where.root),
            )
            return await self._executor.judge(job, candidate)

    async def close(self) -> None:
        """End what is kept between looks."""
        await self._executor.close()
        if self._desk is not None:
            await self._desk.models.close()


def given_to(store: Store, plan: Plan, step: Step) -> dict[StepId, Given]:
    """The newest artifacts of what the step needs."""
    found = {}
    for need in step.data_needs:
        row = store.newest(plan.project, plan.name, need)
        if row is not None:
            given = given_artifact(store.get, row.digest, row.form)
            found[need] = collected(given, need, plan.steps)
    return found


def _copy_needs(folder: str, root: str, plan: Plan, step: Step) -> None:
    """The files of needed steps, as far as they lie in the project."""
    for need in step.data_needs:
        for path in plan.steps[need].produces:
            if os.path.exists(os.path.join(root, path)):
                copy_into(folder, root, path)
