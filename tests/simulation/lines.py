"""What must be so for every run at rest, whoever drove it and whatever happened meanwhile."""

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping

from holdfast.core.state import COMPLETE, State
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.plan import StepId
from holdfast.ports import Store
from tests.laws.escalating import escalations
from tests.laws.oracle import Fate
from tests.laws.script import value


def unexplained(
    store: Store, state: State, persons: Collection[tuple[StepId, bytes]]
) -> Iterator[str]:
    """Steps whose content does not follow from their own text and the contents of their needs."""
    contents = {
        step: store.get(now.digest)
        for step, now in state.steps.items()
        if now.phase in COMPLETE and now.digest is not None
    }
    for step_id, content in contents.items():
        if (step_id, content) in persons:
            continue
        step, made = state.plan.steps[step_id], json.loads(content)
        needs = {n: hashlib.sha256(contents[n]).hexdigest()[:8] for n in step.data_needs}
        read = needs if value(step, "reads") else {}
        if (made.get("step"), made.get("text")) != (step_id, value(step, "text")):
            yield f"'{step_id}' of '{state.run}' has the content of another step: {content!r}"
        elif made["read"] != read:
            yield f"'{step_id}' of '{state.run}' was made from other needs: {content!r}, not {read}"


def foretold(
    store: Store, state: State, fates: Mapping[StepId, Fate], unsure: Collection[StepId]
) -> Iterator[str]:
    """Steps that came to something else than the oracle says, but for those of which it knows too little.

    Where a run is escalated nothing more began.
    """
    for step_id, fate in fates.items():
        now = state.steps[step_id]
        if step_id in unsure or (state.status == "escalated" and now.phase == "pending"):
            continue
        phases = COMPLETE if fate.phase in COMPLETE else {fate.phase}
        if now.phase not in phases:
            yield f"'{step_id}' of '{state.run}' is {now.phase}, not {fate}"
        elif now.phase in COMPLETE and (
            now.digest is None or store.get(now.digest) != fate.content
        ):
            yield f"'{step_id}' of '{state.run}' has {now.digest}, not {fate}"
    whole = all(now.phase in COMPLETE for now in state.steps.values())
    escalated = escalations(state.plan, store.read(f"run:{state.run}"))[-1]
    status = "completed" if whole else "escalated" if escalated else "failed"
    found = (state.status, state.escalation.code if state.escalation else None)
    if found != (status, escalated):
        yield f"'{state.run}' is {found}, not {(status, escalated)}"


def misplaced(
    store: Store, state: State, root: str, accepted: Mapping[StepId, Collection[Digest]]
) -> Iterator[str]:
    """Output files that are not what their step was accepted with; a step without may leave none behind.

    What a step was ever `accepted` with may stand there, also if its run is collected.
    """
    for step_id, now in state.steps.items():
        for path in state.plan.steps[step_id].produces:
            found = _content(os.path.join(root, path))
            if now.phase in COMPLETE and now.digest is not None:
                if found != store.get(now.digest):
                    yield f"'{path}' of '{step_id}' is {found!r}"
            elif found is not None:
                rows = store.artifacts(step=step_id, status="accepted")
                known = {*accepted.get(step_id, ()), *(row.digest for row in rows)}
                if digest_bytes(found) not in known:
                    yield f"'{path}' of '{step_id}', which is {now.phase}, is left as {found!r}"


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
