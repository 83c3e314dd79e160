"""Which steps of a preview have a recorded answer: as far as what they would ask is known before a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial

from holdfast import wire
from holdfast.cli.place import Place
from holdfast.core.preview import Outlook
from holdfast.core.values import filled, has_expressions, read_by
from holdfast.engine.foresee import Foreseen
from holdfast.errors import AttemptError
from holdfast.model.artifact import Artifact, tree_entries
from holdfast.model.plan import Step, StepId
from holdfast.ports import Given, Job, Store


def recorded(where: Place, store: Store, foreseen: Foreseen) -> dict[StepId, bool | None]:
    """For each step that would take its answer from recordings: whether it is there.

    None if nobody knows: it reads what a run makes first, or it is more than one question.
    """
    found: dict[StepId, bool | None] = {}
    for step_id, outlook in foreseen.outlooks.items():
        step = foreseen.plan.steps[step_id]
        if not step.asks_model or not _would_make(outlook):
            continue
        if wire.market.is_recorded(where.root, step.model):
            job = _job(where, store, foreseen, step)
            found[step_id] = (
                None
                if job is None
                else wire.market.has_recording(where.root, job, wire.project_files)
            )
    return found


def _would_make(outlook: Outlook) -> bool:
    return outlook.decision in {"run", "maybe"} and outlook.means == "make"


def _job(where: Place, store: Store, foreseen: Foreseen, step: Step) -> Job | None:
    """What the first attempt would be given; None if that is not known yet."""
    rows = {need: foreseen.outlooks[need] for need in step.data_needs}
    if step.uses != "llm" or any(row.decision != "reuse" for row in rows.values()):
        return None
    given = {
        need: _given(store.get, row.artifact)
        for need, row in rows.items()
        if row.artifact is not None
    }
    try:
        known = _filled(step, given)
    except AttemptError:
        return None
    folder = os.path.abspath(where.root)
    return Job(known, 1, folder, folder, "", "", given=given, told=read_by(step))


def _given(get: Callable[..., bytes], row: Artifact) -> Given:
    content = partial(get, row.digest)
    if row.form != "tree":
        return Given(row.form, content)
    files = tuple((e.path, e.executable, partial(get, e.digest)) for e in tree_entries(content()))
    return Given(row.form, content, files)


def _filled(step: Step, given: Mapping[StepId, Given]) -> Step:
    if not has_expressions(step):
        return step

    def read(need: StepId) -> bytes | None:
        found = given.get(need)
        return None if found is None or found.form == "tree" else found.content()

    return filled(step, read)
