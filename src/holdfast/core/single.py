"""Less than a whole ledger: one entry by its id, one part, what comes from one step, what is open."""

from __future__ import annotations

from dataclasses import replace

from holdfast.core.ledger import Ledger
from holdfast.model.plan import StepId


def entries_of(ledger: Ledger) -> dict[str, str]:
    """The text of every entry by its id; handoffs that count no more too."""
    return {
        **{one.id: one.finding for one in ledger.evidence},
        **questions_of(ledger),
        **{one.id: one.item for one in ledger.gaps},
        **{one.id: one.artifact for one in ledger.artifacts},
        **{one.id: one.handoff.attempted for one in (*ledger.superseded, *ledger.handoffs)},
    }


def questions_of(ledger: Ledger) -> dict[str, str]:
    """Every question by its id, those too that are taken for another one."""
    merged = {same.id: same.question for one in ledger.uncertainties for same in one.merged}
    return merged | {one.id: one.question for one in ledger.uncertainties}


def all_of(ledger: Ledger, name: str) -> Ledger:
    """A ledger of one entry: a finding with all that say the same, a handoff with all that it told."""
    now = tuple(one for one in ledger.handoffs if one.id == name)
    before = tuple(one for one in ledger.superseded if one.id == name)
    step = now[0].step if now else None
    head = next((one.head for one in ledger.evidence if one.id == name), None)
    return replace(
        ledger,
        handoffs=now,
        superseded=before,
        evidence=tuple(one for one in ledger.evidence if one.handoff == name or one.head == head),
        uncertainties=tuple(
            one
            for one in ledger.uncertainties
            if step in one.raised_by or name in {one.id, *(same.id for same in one.merged)}
        ),
        gaps=tuple(one for one in ledger.gaps if one.id == name or one.step == step),
        artifacts=tuple(one for one in ledger.artifacts if one.id == name or one.step == step),
        hypotheses={
            key: one
            for key, one in ledger.hypotheses.items()
            if any(key in told.handoff.hypotheses for told in now)
        },
        stale=(),
    )


def narrowed(found: Ledger, part: str | None, step: StepId | None, *, unanswered: bool) -> Ledger:
    """The ledger with one part alone, with what comes from one step, or with what is open."""

    def keeps(name: str, of: StepId) -> bool:
        return part in {None, name} and step in {None, of}

    return replace(
        found,
        evidence=tuple(one for one in found.evidence if keeps("evidence", one.step)),
        uncertainties=tuple(
            one
            for one in found.uncertainties
            if any(keeps("uncertain", by) for by in one.raised_by)
            and not (unanswered and one.status == "resolved")
        ),
        artifacts=tuple(one for one in found.artifacts if keeps("artifacts", one.step)),
        gaps=tuple(
            one for one in found.gaps if keeps("gaps", one.step) and not (unanswered and one.closed)
        ),
        hypotheses={
            name: one
            for name, one in found.hypotheses.items()
            if part in {None, "hypotheses"}
            and (step is None or step in {*one.tested_by, *one.evidence_steps})
        },
        handoffs=tuple(one for one in found.handoffs if keeps("handoffs", one.step)),
        superseded=tuple(one for one in found.superseded if keeps("handoffs", one.step)),
    )
