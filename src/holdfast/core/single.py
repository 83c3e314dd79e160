"""One entry of a ledger, by its id: what a line of a page or of a summary stands for."""

from __future__ import annotations

from dataclasses import replace

from holdfast.core.ledger import Ledger


def entries_of(ledger: Ledger) -> dict[str, str]:
    """The text of every entry by its id; handoffs that count no more too."""
    return {
        **{one.id: one.finding for one in ledger.evidence},
        **{one.id: one.question for one in ledger.uncertainties},
        **{one.id: one.item for one in ledger.gaps},
        **{one.id: one.artifact for one in ledger.artifacts},
        **{one.id: one.handoff.attempted for one in (*ledger.superseded, *ledger.handoffs)},
    }


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
            one for one in ledger.uncertainties if one.id == name or step in one.raised_by
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
