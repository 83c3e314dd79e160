"""The files of steps that left the plan: found, and on request removed.

Only what is certainly Holdfast's own is removed: a file whose bytes are those of a stored artifact of a
step that is no step any more, and which no step of the plan makes or reads. So nothing is lost with it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, NoReturn, cast

from holdfast.edits.apply import apply, forget, recover
from holdfast.edits.change import FileChange
from holdfast.edits.journal import keep_home
from holdfast.edits.tree import read_tree
from holdfast.engine.lines import line_journal
from holdfast.errors import EditError, IntegrityError
from holdfast.model.artifact import Artifact, tree_entries
from holdfast.model.changeset import changes_in
from holdfast.model.digest import Digest, Json
from holdfast.model.glob import components, glob_regex, is_plain, parents
from holdfast.model.line import PlanVersioned, StepsAdded
from holdfast.model.plan import Plan, StepId
from holdfast.ports import Store


class Left(NamedTuple):
    """A file that a step left behind, with the content it has; `changed` if that is somebody else's."""

    step: StepId
    path: str
    digest: Digest
    changed: bool = False


def left_behind(plan: Plan, line: str, store: Store, root: str) -> list[Left]:
    """The files of steps that are not in the plan any more and that nobody uses."""
    if not _ever_changed(plan, line, store):
        return []
    found = []
    there = plan.steps.keys() | _added(plan, line, store)
    for step_id in sorted(store.newest_of_all(plan.project, line).keys() - there):
        known: dict[str, set[Digest]] = {}
        for artifact in store.artifacts(project=plan.project, line=line, step=step_id):
            for path, digest in _files(store, artifact):
                known.setdefault(path, set()).add(digest)
        free = [path for path in sorted(known) if not _is_used(plan, path)]
        for path in free:
            present = _on_disk(root, path)
            if present is not None:
                found.append(Left(step_id, path, present, present not in known[path]))
    return found


def _ever_changed(plan: Plan, line: str, store: Store) -> bool:
    """Whether the line had more than one version of its plan: else no step can have left it."""
    events = (recorded.event for recorded in store.read(line_journal(plan.project, line)))
    return len({event.plan for event in events if isinstance(event, PlanVersioned)}) > 1


def _added(plan: Plan, line: str, store: Store) -> set[StepId]:
    """Steps that were added by steps of the plan: they come again when those are reused or run."""
    found: set[StepId] = set()
    for recorded in store.read(line_journal(plan.project, line)):
        event = recorded.event
        if isinstance(event, StepsAdded) and (event.step in plan.steps or event.step in found):
            found.update(event.added)
    return found


def _files(store: Store, artifact: Artifact) -> Iterator[tuple[str, Digest]]:
    """The files that an artifact means; where they belong is part of the key it was made under."""
    try:
        if artifact.form == "tree":
            manifest = store.get(artifact.digest)
            changed = {
                change.path for change in changes_in(manifest)
            }  # those are the project's own
            for entry in tree_entries(manifest):
                if entry.path not in changed:
                    yield entry.path, entry.digest
            return
        own = cast("Mapping[str, Mapping[str, Json]]", json.loads(store.get(artifact.own_ref)))
    except IntegrityError:  # it was removed from the store: nothing can be compared with it
        return
    produces = own["ext"].get("produces")
    if isinstance(produces, list) and produces:
        yield str(produces[0]), artifact.digest


def _on_disk(root: str, path: str) -> Digest | None:
    try:
        entries = read_tree(root, [path])
    except EditError:  # a link, or something else that is no file of ours
        return None
    return Digest(entries[0].digest) if [e.path for e in entries] == [path] else None


def _is_used(plan: Plan, path: str) -> bool:
    places = {path, *parents(path)}
    for step in plan.steps.values():
        if places & {*step.produces} or _names(step.run, path):
            return True
        if any(_reads(item.glob, path, places) for item in step.inputs):
            return True
    return False


def _names(words: Collection[str], path: str) -> bool:
    return any("/".join(components(word)) == path for word in words)


def _reads(glob: str, path: str, places: Collection[str]) -> bool:
    if is_plain(glob):
        return "/".join(components(glob)) in places
    return glob_regex(glob).match(path) is not None


def prune(root: str, home: str, left: Collection[Left]) -> None:
    """Remove files that nobody changed, all or none; EditError if one of them changed meanwhile."""
    left = [item for item in left if not item.changed]
    if not left:
        return
    journal, key = os.path.join(home, "apply", "removed"), "prune"
    keep_home(journal)
    recover(root, journal, committed=lambda _: True)
    forget(journal, key)  # a person wrote again where something was being removed: that stays
    changes = [FileChange(item.path, item.digest, None) for item in left]
    apply(root, changes, _nothing, journal_dir=journal, key=key)
    forget(journal, key)


def _nothing(digest: str) -> NoReturn:
    raise IntegrityError(f"a removal asks for the content '{digest}'")
