"""What a person gives for a step that only a person can do, stored before the fact that names it."""

from __future__ import annotations

from holdfast.engine.outputs import Kept, Outputs
from holdfast.engine.unkept import Hidden, check_free
from holdfast.errors import EditError, UsageError
from holdfast.model.artifact import Form
from holdfast.model.digest import Digest
from holdfast.model.plan import Step
from holdfast.ports import Store


def given_for(
    store: Store, step: Step, content: bytes, hidden: Hidden, *, executable: bool = False
) -> tuple[Digest, Form]:
    """Store one content; UsageError if the step makes several files, or if it holds a secret."""
    if len(step.produces) > 1:
        raise UsageError(
            f"'{step.id}' makes several files; what is given can only be one",
            hint=f"put them in place, then holdfast answer {step.id}",
        )
    check_free(f"the content for '{step.id}'", content, hidden)
    return store.put(content), "program" if executable and step.produces else "bytes"


def keep_given(outputs: Outputs, step: Step) -> Kept:
    """Read what a person put at the output paths of a step; UsageError if it cannot be stored."""
    try:
        return outputs.keep(step)
    except EditError as error:
        raise UsageError(error.message, hint=error.hint) from error


def lying_there(store: Store, root: str, step: Step, hidden: Hidden) -> tuple[Digest, Form]:
    """Store what lies at the output paths of a step; UsageError if anything is missing."""
    if not step.produces:
        raise UsageError(
            f"'{step.id}' writes no files; name a FILE with its content", hint="'-' reads stdin"
        )
    kept = keep_given(Outputs(root, "", store, hidden=hidden), step)
    there = [entry.path for entry in kept.entries]
    missing = [p for p in step.produces if not any(e == p or e.startswith(f"{p}/") for e in there)]
    if missing:
        raise UsageError(
            f"nothing lies at {', '.join(missing)}",
            hint=f"put it there, or name a file: holdfast answer {step.id} FILE",
        )
    for _, content in kept.blobs:
        store.put(content)
    if len(there) == 1 and there == list(step.produces):
        entry = kept.entries[0]
        return entry.digest, "program" if entry.executable else "bytes"
    return kept.digest, "tree"
