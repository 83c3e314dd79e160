"""A yes that does not count any more: which question came after it, and what is other in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

from holdfast.core.approvals import Approval, Book
from holdfast.errors import IntegrityError
from holdfast.model.digest import Json
from holdfast.ports import Store

_NAMED = {  # key of a document -> what a person calls it; a key that is missing is its own name
    "plan": "the plan's steps and needs",
    "uses": "who does it",
    "run": "its command",
    "shell": "its command",
    "with": "its values",
    "env": "the names of its environment",
    "secrets": "the names of its secrets",
    "effects": "what it touches",
    "idempotent": "whether it may be repeated",
    "workspace": "where it runs",
    "approve": "when it asks",
    "produces": "the paths it writes",
    "sent_back": "how often it was sent back",
    "attempts": "the attempts that were made",
    "from": "who is asked",
    "artifact": "what was made",
    "form": "what was made",
    "items": "its items",
    "fragment": "its items",
}
_HELD = {  # the same of a step that is held: it names what was tried
    "run": "the run",
    "attempt": "the attempt",
    "key": "the effect",
    "beside": "what other runs left open",
}
HELD_GATES = frozenset({"effect", "stuck"})
_REST = "input_ref"  # covers everything else that decides the content: prompt, guards, tools
_OTHERS = "what decides it (prompt, guards, tools)"


class Since(NamedTuple):
    """The last yes to the same question about something else, and the names of what is other now."""

    by: str
    parts: tuple[str, ...]


def since(store: Store, book: Book, approval: Approval) -> Since | None:
    """What differs from what was approved last at the same place; None if nothing ever was.

    What a step is held for happened once: nothing of it can change.
    """
    if approval.request.gate in HELD_GATES:
        return None
    try:
        mine = _document(store, approval)
        for other in reversed(_of_step(book, approval)):
            if other.decision is None or not other.decision.yes or other.revoked is not None:
                continue
            document = _document(store, other)
            if other.decided_at <= approval.at and _place(document) == _place(mine):
                parts = differing(document, mine)
                return Since(other.decision.by, parts) if parts else None
    except IntegrityError:  # what was asked then was removed since
        pass
    return None


def overtaken(store: Store, book: Book) -> set[str]:
    """The ids of yeses that stand unused, while their step asked about something else later."""
    found: set[str] = set()
    newest: dict[str, Approval] = {}
    for approval in reversed(list(book)):
        try:
            place = _place(_document(store, approval))
        except IntegrityError:  # removed since
            continue
        later = newest.setdefault(place, approval)
        yes = approval.decision is not None and approval.decision.yes and not approval.uses
        if yes and later.request.subject != approval.request.subject:
            found.add(approval.id)
    return found


def replaced_by(store: Store, book: Book, approval: Approval) -> Approval | None:
    """The open question that was asked in the place of this one."""
    mine = _place(_document(store, approval))
    for other in reversed(_of_step(book, approval)):
        if other.stand(0) == "open" and _place(_document(store, other)) == mine:
            return other
    return None


def differing(before: Mapping[str, Json], after: Mapping[str, Json]) -> tuple[str, ...]:
    """The names of what two documents cover differently; of values only the names."""
    found = list(dict.fromkeys(_names(before, after)))
    if not found and before.get(_REST) != after.get(_REST):
        return (_OTHERS,)
    return tuple(found)


def _names(before: Mapping[str, Json], after: Mapping[str, Json]) -> Iterator[str]:
    for lead, key in (("", "files"), ("env ", "env_digests"), ("what {} made", "needs")):
        for name in _changed(before.get(key), after.get(key)):
            yield lead.format(name) if "{}" in lead else f"{lead}{name}"
    for key in sorted({*before, *after} - {"files", "env_digests", "needs", _REST}):
        if before.get(key) != after.get(key):
            yield (_HELD if after.get("gate") in HELD_GATES else _NAMED).get(key, key)


def _changed(before: Json, after: Json) -> list[str]:
    """The names under which two objects have different values."""
    old = before if isinstance(before, Mapping) else {}
    new = after if isinstance(after, Mapping) else {}
    return sorted(name for name in {*old, *new} if old.get(name) != new.get(name))


def _of_step(book: Book, approval: Approval) -> list[Approval]:
    """The other questions of the same step and gate, in the order they were asked."""
    mine = approval.request
    asked = book.by_place.get((mine.step, mine.gate), ())
    return [other for other in asked if other.request.subject != mine.subject]


def _document(store: Store, approval: Approval) -> Mapping[str, Json]:
    return cast("Mapping[str, Json]", json.loads(store.get(approval.request.subject)))


def _place(document: Mapping[str, Json]) -> str:
    """Where in a plan a question is asked: a step may have several needs and guards that ask."""
    return "\0".join(str(document.get(key)) for key in ("step", "gate", "after", "guard"))
