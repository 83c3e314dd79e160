"""Take over what commands did to a copy of a directory: all of it or nothing."""

from __future__ import annotations

from holdfast.edits.apply import apply, forget
from holdfast.edits.change import FileChange
from holdfast.edits.tree import quoted
from holdfast.errors import EditError
from holdfast.model.changeset import Change
from holdfast.process.trial import Trial


def commit(trial: Trial, *, journal_dir: str, key: str) -> tuple[Change, ...]:
    """Make the changes of a trial in the directory itself, through the journal; what was changed.

    EditError, with nothing changed, if a link or a special file is among them, or if somebody else changed
    one of the files meanwhile. Modes are those of the copy, but nobody may read or write a file who could not
    before. The copy stays until it is dropped.
    """
    if unfit := trial.unfit:
        names = ", ".join(quoted(path) for path in unfit[:8])
        raise EditError(f"a link or special file cannot be taken over: {names}")
    changes = trial.changes()
    wanted = [
        FileChange(
            path=change.path,
            before=change.base,
            after=change.digest,
            mode=0o644 if change.digest is None else trial.mode(change.path),
        )
        for change in changes
    ]
    by_digest = {str(change.digest): change.path for change in changes if change.digest is not None}
    apply(
        trial.root,
        wanted,
        lambda digest: trial.content(by_digest[digest]),
        journal_dir=journal_dir,
        key=key,
    )
    forget(journal_dir, key)
    return changes
