"""Less than a whole ledger: one entry by its id, one part, what comes from one step, what is open."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from holdfast.core.ledger import Ledger, folded
from holdfast.core.likeness import equal
from holdfast.core.said import Said, own_entry
from holdfast.core.told import Told
from holdfast.model.handoff import entry_id
from holdfast.model.plan import StepId
from holdfast.model.sources import source_name


class One(NamedTuple):
    """A ledger of one entry or one handoff, and the ids of what counts no more in it."""

    ledger: Ledger
    gone: frozenset[str] = frozenset()


def entries_of(ledger: Ledger) -> dict[str, str]:
    """The text of every entry that counts, by its id."""
    return {
        **{one.id: one.finding for one in ledger.evidence},
        **questions_of(ledger),
        **{one.id: one.item for one in ledger.gaps},
        **{one.id: one.artifact for one in ledger.artifacts},
        **{one.id: one.handoff.attempted for one in ledger.handoffs},
    }


def past_of(ledger: Ledger) -> dict[str, str]:
    """The same of what only handoffs told that count no more."""
    counting = entries_of(ledger)
    told = {name: text for one in ledger.superseded for name, text in _told_in(one)}
    return {name: text for name, text in told.items() if name not in counting}


def _told_in(one: Told) -> Iterator[tuple[str, str]]:
    yield one.id, one.handoff.attempted
    for seen in one.handoff.observed:
        yield entry_id("e", one.step, seen.finding, seen.source), seen.finding
    if asked := one.handoff.uncertainty:
        yield entry_id("u", one.step, asked), asked
    for gap in one.handoff.not_done:
        yield entry_id("g", one.step, gap.item), gap.item
    for made in one.handoff.changed:
        yield entry_id("a", one.step, made.artifact, made.ref), made.artifact


def questions_of(ledger: Ledger) -> dict[str, str]:
    """Every question by its id, those too that are taken for another one."""
    merged = {same.id: same.question for one in ledger.uncertainties for same in one.merged}
    return merged | {one.id: one.question for one in ledger.uncertainties}


def all_of(ledger: Ledger, name: str, said: Sequence[Said]) -> One:
    """A ledger of one entry: a finding with all that say the same, a handoff with all that it told.

    What counts no more is shown as the last handoff told it that did, with what people said of it.
    """
    counting = entries_of(ledger)
    if name in counting:
        return One(_picked(ledger, name))
    told = [one for one in ledger.superseded if any(known == name for known, _ in _told_in(one))]
    about = [one for one in said if one.entry]
    shown = _picked(folded(told[-1:], equal, said=about), name)
    gone = frozenset(
        [*(one for one in entries_of(shown) if one not in counting), *shown.hypotheses]
    )
    return One(replace(shown, handoffs=(), superseded=shown.handoffs), gone)


def _picked(ledger: Ledger, name: str) -> Ledger:
    now = tuple(one for one in ledger.handoffs if one.id == name)
    step = now[0].step if now else None
    head = next((one.head for one in ledger.evidence if one.id == name), None)
    picked = replace(
        ledger,
        handoffs=now,
        superseded=(),
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
    )
    return _with_stale(picked)


def narrowed(
    found: Ledger, part: str | None, steps: Collection[StepId], *, unanswered: bool
) -> Ledger:
    """The ledger with one part alone, with what comes from these steps, if any, or with what is open."""

    def keeps(name: str, of: StepId) -> bool:
        return part in {None, name} and (not steps or of in steps)

    less = replace(
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
            and (not steps or not {*one.tested_by, *one.evidence_steps}.isdisjoint(steps))
        },
        handoffs=tuple(one for one in found.handoffs if keeps("handoffs", one.step)),
        superseded=tuple(one for one in found.superseded if keeps("handoffs", one.step)),
    )
    return _with_stale(less)


def _with_stale(shown: Ledger) -> Ledger:
    """A part of a ledger with what of it is stale."""
    known = {*(one.id for one in shown.evidence), *shown.hypotheses}
    return replace(shown, stale=tuple(name for name in shown.stale if name in known))


def words_about(said: Sequence[Said], shown: Ledger, steps: Collection[StepId] = ()) -> list[Said]:
    """What people said of what is shown: of an entry itself, or of the handoff, step or source it is from.

    And of the `steps` that were asked for.
    """
    names = {*steps, *entries_of(shown), *(one.id for one in shown.superseded)}
    for one in shown.evidence:
        names |= {one.handoff, one.step, one.source, source_name(one.source), *one.sources}
    names |= {told.step for told in (*shown.handoffs, *shown.superseded)}
    return [word for word in said if not names.isdisjoint(_about(word))]


def _about(one: Said) -> tuple[str, ...]:
    """The ids that a word is about; of an entry of their own, its id."""
    if own := own_entry(one):
        return (own,)
    if one.word in {"apart", "rejoin"}:
        return (one.entry, one.text)
    return (one.entry, source_name(one.entry)) if one.entry else ()
