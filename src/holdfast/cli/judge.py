"""Lets the guards of a step look at a version of its artifact, as they would in a run."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterable
from dataclasses import replace

from holdfast import wire
from holdfast.cli.place import Place
from holdfast.engine.furnish import copy_into, furnish, lay_out
from holdfast.engine.survey import Survey
from holdfast.executors.identity import implied
from holdfast.model.artifact import Form, tree_entries
from holdfast.model.digest import Digest
from holdfast.model.plan import Guard, Plan, Step
from holdfast.ports import Candidate, Executor, File, Job, Outcome, Store


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


def judge(
    where: Place, plan: Plan, steps: Iterable[Step], candidate: Candidate, *, on_disk: bool
) -> list[Outcome]:
    """Let the guards of each of these steps look: in the project if it lies there, else in a copy."""

    async def main() -> list[Outcome]:
        executor = wire.executor_for(plan)
        try:
            return [
                await _one(where, plan, step, candidate, executor, on_disk=on_disk)
                for step in steps
            ]
        finally:
            await executor.close()

    return asyncio.run(main())


async def _one(
    where: Place, plan: Plan, step: Step, candidate: Candidate, executor: Executor, *, on_disk: bool
) -> Outcome:
    env = {name: os.environ[name] for name in step.env if name in os.environ}
    with tempfile.TemporaryDirectory(prefix="holdfast-") as room:
        for name in ("home", "tmp", "work"):
            os.makedirs(os.path.join(room, name))
        folder = where.root
        if step.produces and not on_disk:
            folder = os.path.join(room, "work")
            survey = Survey(where.root, wire.empty_store(), executor, plan, wire.ignore_rules)
            furnish(folder, where.root, survey.observe(step).parts)
            _copy_needs(folder, where.root, plan, step)
            lay_out(folder, step, candidate)
        job = Job(step, 0, folder, where.root, room, f"judge/{step.id}/0", env=env)
        return await executor.judge(job, candidate)


def _copy_needs(folder: str, root: str, plan: Plan, step: Step) -> None:
    """The files of needed steps, as far as they lie in the project."""
    for need in step.data_needs:
        for path in plan.steps[need].produces:
            if os.path.exists(os.path.join(root, path)):
                copy_into(folder, root, path)
