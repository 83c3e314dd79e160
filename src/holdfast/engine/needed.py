"""The contents that a history needs: what its events name, and the files of the manifests among that."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from holdfast.errors import IntegrityError
from holdfast.model.artifact import Entry, Form, tree_entries
from holdfast.model.changeset import Change, changes_in
from holdfast.model.digest import Digest
from holdfast.model.event import AnswersKept, AttemptAccepted, Event, StepsReused, StepsTaken
from holdfast.model.glob import parents
from holdfast.model.line import (
    ContentPurged,
    HandoffGiven,
    Pinned,
    RunCollected,
    RunImported,
    StepsAdded,
    named_in,
)
from holdfast.ports import Facts, Store

_MANIFESTS = ("before", "kept")
_FORMED = ("digest", "reguard", "content")  # a manifest if the event says so
_PLAIN = (
    *("plan", "w_ref", "own_ref", "log", "feedback", "because"),
    *("subject", "rule", "record", "fragment"),
    *("request", "answer", "arguments"),
    *("handoff", "context", "text", "words"),
)
_DIGEST = re.compile("[0-9a-f]{64}")


def named_by(event: Event) -> Iterator[tuple[Digest, bool]]:
    """The contents without which an event is not whole, and whether each is a manifest of files."""
    if isinstance(event, StepsReused):
        yield from ((item.digest, item.form == "tree") for item in event.items)
        return
    if isinstance(event, StepsTaken):
        for item in event.items:
            yield item.digest, item.form == "tree"
            yield item.own_ref, False
        return
    if isinstance(event, AnswersKept):
        yield from ((digest, False) for item in event.items for digest in item)
        yield from ((item.answer, False) for item in event.used)
        return
    if isinstance(event, RunCollected):
        return
    if isinstance(event, RunImported):
        yield from ((digest, False) for digest in named_in(event))
        return
    if isinstance(event, StepsAdded | HandoffGiven):  # the artifact may go with its run
        yield event.plan if isinstance(event, StepsAdded) else event.handoff, False
        return
    names = _PLAIN if isinstance(event, Pinned) else (*_PLAIN, *_FORMED, *_MANIFESTS)
    for name in names:
        digest = getattr(event, name, None)
        if isinstance(digest, str):
            tree = name in _FORMED and getattr(event, "form", "") == "tree"
            yield Digest(digest), tree or name in _MANIFESTS


def absent_in(facts: Facts) -> set[Digest]:
    """Contents that a person had removed, or that an imported run came without."""
    found: set[Digest] = set()
    for journal in facts.journals():
        for recorded in facts.read(journal) if journal.startswith("line:") else ():
            event = recorded.event
            found.update(event.digests if isinstance(event, ContentPurged) else ())
            found.update(event.absent if isinstance(event, RunImported) else ())
    return found


def lacking(facts: Facts, present: Collection[Digest]) -> Iterator[tuple[Digest, str]]:
    """Contents that a history needs and that are not among those present, with where they belong.

    Manifests that are present are read; one that is none is told too.
    """
    seen: set[tuple[Digest, bool]] = set()
    told: set[Digest] = set()
    for journal in facts.journals():
        for recorded in facts.read(journal):
            for item in named_by(recorded.event):
                if item in seen:
                    continue
                seen.add(item)
                words = _words(journal, recorded.event)
                for digest, problem in _of(facts, present, *item):
                    if digest not in told:
                        told.add(digest)
                        yield digest, f"{problem} ({words})"


def lost_bases(store: Store, present: Collection[Digest]) -> Iterator[tuple[Digest, str]]:
    """Contents of files before a step changed them that are not among those present, with where they belong.

    Only those of accepted attempts: nothing else can be undone. What an imported run made is not undone here.
    """
    accepted = {
        (f"run:{row.run}", row.step, row.attempt)
        for row in store.artifacts(status="accepted")
        if row.form == "tree" and row.attempt and row.source != "imported"
    }
    told: set[Digest] = set()
    for journal, recorded in store.told(sorted({one[0] for one in accepted}), [AttemptAccepted]):
        event = recorded.event
        if not isinstance(event, AttemptAccepted) or event.digest not in present:
            continue
        if (journal, event.step, event.attempt) not in accepted:
            continue
        try:
            changes = changes_in(store.get(event.digest))
            before = tree_entries(store.get(event.kept)) if changes and event.kept else ()
        except IntegrityError:  # told for itself
            continue
        replaced = {entry.path: entry for entry in before}
        for change in changes:
            was = before_change(change, replaced)
            if was is not None and was.digest not in present and was.digest not in told:
                told.add(was.digest)
                words = f"of the file '{was.path}' as it was before '{event.step}' is missing"
                where = _words(journal, event)
                yield was.digest, f"content '{was.digest}' {words} ({where})"


def before_change(change: Change, replaced: Mapping[str, Entry]) -> Entry | None:
    """The file as it was before a change; `replaced` are those that were stored as they lay there."""
    if not replaced.keys().isdisjoint(parents(change.path)):
        return None
    if (lay := replaced.get(change.path)) is not None or change.base is None:
        return lay
    return Entry(change.path, change.base, change.base_executable)


def _of(
    facts: Facts, present: Collection[Digest], digest: Digest, tree: bool
) -> Iterator[tuple[Digest, str]]:
    if digest not in present:
        yield digest, f"content '{digest}' is missing"
        return
    if not tree:
        return
    try:
        for name, path in files_of(facts, digest).items():
            if name not in present:
                yield name, f"content '{name}' of the file '{path}' is missing"
    except IntegrityError as error:
        yield digest, f"content '{digest}': {error.message}"


def files_of(facts: Facts, manifest: Digest) -> dict[Digest, str]:
    """The contents that a manifest names, each with a path; IntegrityError if it is none."""
    entries = tree_entries(facts.get(manifest))
    if not all(_DIGEST.fullmatch(str(entry.digest)) for entry in entries):
        raise IntegrityError("a manifest of files cannot be read")
    return {entry.digest: entry.path for entry in entries}


def whole_of(store: Store, contents: Iterable[tuple[Digest, Form]]) -> set[Digest]:
    """Those of these contents that are all there, with every file of those that have several."""
    whole: set[Digest] = set()
    trees: set[Digest] = set()
    for digest, form in contents:
        whole.add(digest)
        if form == "tree":
            trees.add(digest)
    whole -= store.absent(whole)
    files: dict[Digest, set[Digest]] = {}
    for digest in trees & whole:
        try:
            files[digest] = {*files_of(store, digest)}
        except IntegrityError:
            whole.discard(digest)
    others = {digest for some in files.values() for digest in some if digest not in whole}
    lost = store.absent(others)
    whole -= {digest for digest, some in files.items() if not lost.isdisjoint(some)}
    return whole


def _words(journal: str, event: Event) -> str:
    step = getattr(event, "step", "")
    where = f"run '{journal.removeprefix('run:')}'" if journal.startswith("run:") else "its line"
    return f"step '{step}' in {where}" if step else where
