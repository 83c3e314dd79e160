"""What a run learned that the run before it had not: findings, questions, gaps, hypotheses, a line each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from holdfast.core.evidence import Evidence
from holdfast.core.ledger import Gap, Hypothesis, Ledger
from holdfast.core.questions import Uncertainty
from holdfast.model.text import cut, one_line

MOST = 20  # lines of each kind
_WIDEST = 300
Entry = TypeVar("Entry", Evidence, Uncertainty, Gap)


def ledger_changes(old: Ledger | None, new: Ledger) -> list[str]:
    """The differences in words; nothing if nothing was learned or lost."""
    old = old or Ledger()
    lines = [*_some("evidence", [_evidence(one) for one in _added(old.evidence, new.evidence)])]
    was = {one.id: one for one in old.evidence}
    fell = [one for one in new.evidence if one.contested and not _contested(was.get(one.id))]
    lines += _some("contested", [_evidence(one) for one in fell])
    asked = {one.id: one.status for one in old.uncertainties}
    opened = [one for one in new.uncertainties if one.status != "resolved" and one.id not in asked]
    solved = [
        one
        for one in new.uncertainties
        if one.status == "resolved" and asked.get(one.id) not in {None, "resolved"}
    ]
    lines += _some("open question", [one_line(one.question) for one in opened])
    lines += _some("question resolved", [one_line(one.question) for one in solved])
    gaps = [one for one in _added(old.gaps, new.gaps) if not one.closed]
    lines += _some("gap", [f"{one_line(one.item)}: {one_line(one.reason)}" for one in gaps])
    here = {one.id for one in new.gaps if not one.closed}
    closed = [one for one in old.gaps if not one.closed and one.id not in here]
    lines += _some("gap closed", [one_line(one.item) for one in closed])
    return [*lines, *_some("hypothesis", [*_moved(old, new)])]


def _added(old: Iterable[Entry], new: Iterable[Entry]) -> list[Entry]:
    known = {one.id for one in old}
    return [one for one in new if one.id not in known]


def _contested(one: Evidence | None) -> bool:
    return one is not None and bool(one.contested)


def _evidence(one: Evidence) -> str:
    source = f" ({one_line(one.source)})" if one.source else ""
    return f"{one_line(one.finding)}{source}, from {one.step or 'a person'}"


def _moved(old: Ledger, new: Ledger) -> Iterable[str]:
    for name, one in new.hypotheses.items():
        before: Hypothesis | None = old.hypotheses.get(name)
        if before is None:
            yield f"{one_line(name)}: {one.status}"
        elif before.status != one.status:
            yield f"{one_line(name)}: {before.status} → {one.status}"


def _some(what: str, lines: list[str]) -> list[str]:
    shown = [f"{what}: {cut(line, _WIDEST)}" for line in lines[:MOST]]
    more = len(lines) - MOST
    return [*shown, f"{what}: {more} more (holdfast ledger)"] if more > 0 else shown
