"""Whether the index of artifacts is what the journals say: built a second time, from the stored rows alone.

It shares nothing with what `rebuild` does but the meaning of the events. Of a reuse by content the journal
has only the ref and the digest; the rest of its row must be that of another row of the step.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from holdfast.engine.lines import line_journal
from holdfast.errors import HoldfastError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.ports import Raw, RunRow, Store

_Body = Mapping[str, Any]
_OF_RUNS = frozenset(
    {"run_started", "attempt_started", "attempt_accepted", "attempt_rejected", "attempt_lost"}
    | {"attempt_failed", "steps_reused", "steps_taken"}
)
_STOOD = frozenset({"accepted", "superseded", "withdrawn"})
_OF_LINES = frozenset({"step_amended", "step_accepted", "step_undone", "content_purged"})


class Row(NamedTuple):
    """What the index has to say of one artifact."""

    project: str
    line: str
    step: str
    config_ref: str
    input_ref: str
    own_ref: str
    digest: str
    status: str
    source: str
    run: str
    attempt: int
    form: str = "bytes"
    verified: bool = False
    reusable: bool = True
    at: int = 0


class Loose(NamedTuple):
    """A reuse by content: what its row must have."""

    project: str
    line: str
    step: str
    config_ref: str
    digest: str
    run: str


@dataclass
class Built:
    """Rows with the event behind each, and reuses by content."""

    rows: list[tuple[str, int, Row]] = field(default_factory=list)
    loose: list[Loose] = field(default_factory=list)
    stood: set[tuple[object, ...]] = field(default_factory=set)  # what brought reuses stood on
    undone: set[tuple[object, ...]] = field(default_factory=set)
    purged: list[tuple[frozenset[str], dict[str, int]]] = field(default_factory=list)


def unindexed(store: Store, runs: Sequence[RunRow]) -> Iterator[str]:
    """Rows that the journals give and the index does not have, and those that it has beside them."""
    built = Built()
    owners = {line_journal(run.project, run.line): (run.project, run.line) for run in runs}
    came: dict[str, _Body] = {}
    for journal in store.journals():
        if journal.startswith("line:"):
            _read_line(store, journal, owners.get(journal, ("", "")), built, came)
    for run in runs:
        _read_run(store.raw(f"run:{run.run}"), run, came.get(run.run, {}), built)
    there = Counter(_as_row(one) for one in store.artifacts())
    wanted = Counter(_settled(store, built))
    known = {_content(one) for one in wanted} | built.stood
    imported = {run.run for run in runs if run.imported}
    extra, lacks = there - wanted, wanted - there
    beside = _by_reuse(row for row in extra.elements() if _content(row) in known)
    for one in built.loose:
        own = beside[one].pop() if beside.get(one) else None
        gone = own is not None and any(_holds(store, own, some) for some, _ in built.purged)
        if own is not None and (own.reusable or gone):
            extra -= Counter([own])
        elif one.run not in imported:  # what an imported one stood on may have stayed behind
            yield f"the index lacks a row of step '{one.step}' in run '{one.run}', reused by content"
    for found, what in [*((row, "has") for row in extra), *((row, "lacks") for row in lacks)]:
        made = f"in run '{found.run}'" if found.run else "given by a person"
        told = f"step '{found.step}' {made}, {found.status}: '{found.digest}'"
        yield f"the index {what} a row of {told}"


def _as_row(row: Artifact) -> Row:
    return Row(*(getattr(row, name) for name in Row._fields))


def _by_reuse(rows: Iterable[Row]) -> dict[Loose, list[Row]]:
    """The rows that can be those of a reuse by content, by what it must have."""
    found: dict[Loose, list[Row]] = {}
    for row in rows:
        if row.attempt == 0 and row.status in _STOOD:
            key = Loose(row.project, row.line, row.step, row.config_ref, row.digest, row.run)
            found.setdefault(key, []).append(row)
    return found


def _content(row: Row) -> tuple[object, ...]:
    """What a reuse by content has from the row that it stands on."""
    refs = (row.project, row.line, row.step, row.input_ref, row.own_ref, row.digest)
    return (*refs, row.source, row.form, row.verified, row.at)


def _read_line(
    store: Store,
    journal: str,
    owner: tuple[str, str],
    built: Built,
    came: dict[str, _Body],
) -> None:
    for row in store.raw(journal):
        if row.kind == "run_imported":
            body = json.loads(row.body)
            came[body["run"]] = body
        if row.kind not in _OF_LINES:
            continue
        body = json.loads(row.body)
        if row.kind == "content_purged":
            upto = dict(body.get("upto", ()))
            built.purged.append((frozenset(body["digests"]), upto))
        elif row.kind == "step_undone":
            built.undone |= {(*owner, body["step"], *gone) for gone in body["rows"]}
        else:
            amended = row.kind == "step_amended"
            refs = (body["config_ref"], body["input_ref"], body["own_ref"], body["digest"])
            made = Row(
                *owner,
                body["step"],
                *refs,
                "accepted",
                "human" if amended else "accepted",
                "",
                0,
                body["form"],
                amended and body["verified"],
                True,
                row.at,
            )
            built.rows.append((journal, row.seq, made))


def _read_run(raw: Iterable[Raw], run: RunRow, came: _Body, built: Built) -> None:
    begun: dict[str, _Body] = {}
    stands: dict[str, int] = {}  # by step: where its row of this run is that stands
    barred = {tuple(one) for one in came.get("barred", ())}
    for step, _, above, own, digest, form, verified, at in came.get("stood", ()):
        refs = (run.project, run.line, step, above, own, digest)
        built.stood.add((*refs, "generated", form, verified, at))
    for row in raw:
        if row.kind not in _OF_RUNS:
            continue
        body = json.loads(row.body)
        if row.kind == "attempt_started":
            begun[body["step"]] = body
        elif row.kind == "attempt_failed":
            begun.pop(body["step"], None)
        elif row.kind == "steps_reused":
            for item in body["items"]:
                if item[-1] == "unchanged_content":
                    _step_down(built, stands, item[0])
                    stands.pop(item[0], None)
                    step, ref, digest = item[:3]
                    loose = Loose(run.project, run.line, step, ref, digest, run.run)
                    built.loose.append(loose)
        elif row.kind == "steps_taken":
            for item in body["items"]:
                _put(built, stands, run, row.seq, _taken(run, item))
        elif row.kind != "run_started":
            made = _made(run, begun.pop(body["step"]), row, body)
            if run.imported and (not _counts(came, made, barred)):
                made = made and made._replace(source="imported")
            if row.kind == "attempt_accepted":
                _step_down(built, stands, body["step"])
            if made is not None:
                built.rows.append((f"run:{run.run}", row.seq, made))
            if row.kind == "attempt_accepted":
                stands[body["step"]] = len(built.rows) - 1


def _counts(came: _Body, made: Row | None, barred: set[tuple[object, ...]]) -> bool:
    """Whether what an imported run made is reused here."""
    if made is None or not came.get("store") or made.source != "generated":
        return False
    key = (made.step, made.config_ref, made.digest, made.run, made.attempt, made.at)
    return key not in barred


def _put(built: Built, stands: dict[str, int], run: RunRow, seq: int, made: Row) -> None:
    _step_down(built, stands, made.step)
    if run.imported:
        made = made._replace(source="imported")
    built.rows.append((f"run:{run.run}", seq, made))
    stands[made.step] = len(built.rows) - 1


def _step_down(built: Built, stands: dict[str, int], step: str) -> None:
    """What this run accepted of a step before does not stand any more."""
    if step in stands:
        journal, seq, row = built.rows[stands[step]]
        built.rows[stands[step]] = (journal, seq, row._replace(status="superseded"))


def _taken(run: RunRow, item: Sequence[Any]) -> Row:
    step, ref, above, own, digest, form, source, verified, reusable, at = item
    refs = (ref, above, own, digest)
    return Row(
        run.project,
        run.line,
        step,
        *refs,
        "accepted",
        source,
        run.run,
        0,
        form,
        verified,
        reusable,
        at,
    )


def _made(run: RunRow, begun: _Body, row: Raw, body: _Body) -> Row | None:
    """The row of an attempt that ended; None if it left nothing."""
    lost, accepted = row.kind == "attempt_lost", row.kind == "attempt_accepted"
    digest = body.get("kept" if lost else "digest")
    if digest is None:
        return None
    status = "interrupted" if lost else "rejected"
    if accepted:
        status = "accepted" if body.get("stands", True) else "superseded"
    return Row(
        run.project,
        run.line,
        body["step"],
        begun["config_ref"],
        begun["input_ref"],
        begun["own_ref"],
        digest,
        status,
        begun.get("source", "generated"),
        run.run,
        begun["attempt"],
        "tree" if lost else body.get("form", "bytes"),
        accepted and body.get("verified", False),
        accepted and body.get("reusable", True),
        row.at,
    )


def _settled(store: Store, built: Built) -> Iterator[Row]:
    """The rows, after what people undid and had removed."""
    for journal, seq, row in built.rows:
        found = row
        if any(
            row.reusable and seq <= upto.get(journal, 0) and _holds(store, row, digests)
            for digests, upto in built.purged
        ):
            found = found._replace(reusable=False)
        key = (row.config_ref, row.digest, row.run, row.attempt, row.at)
        if (row.project, row.line, row.step, *key) in built.undone:
            found = found._replace(status="withdrawn")
        yield found


def _holds(store: Store, row: Row, digests: frozenset[str]) -> bool:
    if row.digest in digests or row.form != "tree":
        return row.digest in digests
    try:
        manifest = json.loads(store.get(Digest(row.digest)))
    except (HoldfastError, ValueError):
        return False
    return any(item["digest"] in digests for item in manifest["files"])
