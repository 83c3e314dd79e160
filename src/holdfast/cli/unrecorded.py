"""Which steps of a preview have a recorded answer: as far as what they would ask is known before a run."""

from __future__ import annotations

import os

from holdfast import wire
from holdfast.cli.place import Place
from holdfast.core.preview import Outlook
from holdfast.core.values import read_by
from holdfast.engine.foresee import Foreseen
from holdfast.engine.given import with_values
from holdfast.errors import AttemptError
from holdfast.model.plan import Step, StepId
from holdfast.ports import Job, Store, given_artifact


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
        need: given_artifact(store.get, row.artifact.digest, row.artifact.form)
        for need, row in rows.items()
        if row.artifact is not None
    }
    try:
        known = with_values(step, given)
    except AttemptError:
        return None
    folder = os.path.abspath(where.root)
    return Job(known, 1, folder, folder, "", "", given=given, told=read_by(step))
