"""What people wrote in the place of artifacts, as the journals of runs tell it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

from holdfast.errors import IntegrityError
from holdfast.model.artifact import Form, tree_entries
from holdfast.model.digest import Digest, Json
from holdfast.model.event import AttemptAccepted, AttemptStarted, Event
from holdfast.model.plan import StepId
from holdfast.ports import Facts


class Wrote(NamedTuple):
    """A version of a person: the content itself, or a manifest with it in it; `paths` if they are known."""

    step: StepId
    digest: Digest
    form: Form
    own_ref: Digest | None = None
    paths: tuple[str, ...] = ()


def written_in(event: Event) -> Wrote | None:
    """What a person wrote, if this event keeps it: adopted or refused, replaced, or found meanwhile."""
    if isinstance(event, AttemptStarted):
        if event.source == "human" and event.reguard is not None:
            return Wrote(event.step, event.reguard, event.form, event.own_ref)
        if event.edited and event.before is not None:
            return Wrote(event.step, event.before, "tree", paths=event.edited)
        if event.reason.code == "output_modified" and event.before is not None:
            return Wrote(event.step, event.before, "tree", paths=event.reason.because)
    if isinstance(event, AttemptAccepted) and event.kept is not None:
        return Wrote(event.step, event.kept, "tree")
    return None


def written_paths(store: Facts, items: Iterable[Wrote]) -> list[str]:
    """Where people wrote it; the step where that cannot be told."""
    found: dict[str, None] = {}
    for item in items:
        try:
            found.update(dict.fromkeys(item.paths or _paths(store, item)))
        except IntegrityError:  # purged, or lost: verify tells
            found[item.step] = None
    return list(found)


def _paths(store: Facts, item: Wrote) -> list[str]:
    if item.form == "tree":
        return [entry.path for entry in tree_entries(store.get(item.digest))]
    if item.own_ref is None:
        return [item.step]
    own = cast("Mapping[str, Mapping[str, Json]]", json.loads(store.get(item.own_ref)))
    produces = own["ext"].get("produces")
    return [str(path) for path in produces] if isinstance(produces, list) else [item.step]
