"""Evidence: every finding with its step, source and confidence, what it stands on, and whether it stands.

Findings that say the same share a head, and none is dropped. What stands on something contested is stale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from holdfast.core.confidence import Weight
from holdfast.core.likeness import Alike, groups
from holdfast.core.said import PERSON, Said, apart
from holdfast.model.fixed import fixed
from holdfast.model.handoff import Handoff, Observation, entry_id
from holdfast.model.plan import RunId, StepId


@fixed
class Told:
    """A handoff as the journal has it. `place` grows with the journal: of a step, the last one counts."""

    id: str
    step: StepId
    wave: int
    handoff: Handoff
    at: int = 0
    run: RunId = RunId("")
    attempt: int = 1
    place: int = 0
    failed: bool = False
    tests: tuple[str, ...] = ()  # the hypotheses that its step declares
    serves: tuple[str, ...] = ()  # the requirements


@fixed
class Evidence:
    """A finding. `head` is the first one that says the same, itself if none does."""

    id: str
    step: StepId
    handoff: str
    finding: str
    source: str
    confidence: float | None
    supports: tuple[str, ...]
    refutes: tuple[str, ...]
    stands_on: tuple[str, ...]  # ids of evidence that its source names
    head: str
    alike: float
    contested: str = ""
    stale: bool = False


Rows = dict[
    str, tuple[Told, Observation]
]  # what was observed, before it is known what it stands on
Ids = dict[str, list[str]]  # the evidence of a step or of a handoff


def evidence_of(
    rows: Rows, ids_of: Ids, alike: Alike, said: Sequence[Said]
) -> tuple[Evidence, ...]:
    """The findings, with what each stands on, what says the same, what is contested and what is stale."""
    contested = {one.entry: one for one in said if one.word == "contest"}
    stands_on = _bases(rows, ids_of)
    found: dict[str, Evidence] = {}
    for name, (one, seen) in rows.items():
        source, why = seen.source, ""
        if contested:
            plain = "" if source in rows or source in ids_of else source
            why = doubt_of(contested, one, name, plain)
        found[name] = Evidence(
            name,
            one.step,
            one.id,
            seen.finding,
            source,
            seen.confidence,
            seen.supports,
            seen.refutes,
            stands_on.get(name, ()),
            name,
            1.0,
            why,
        )
    for own in said:
        if own.word == "evidence":
            name = entry_id("e", PERSON, own.text, own.by)
            doubt = next((contested[key].text for key in (name, own.by) if key in contested), "")
            entry = (name, PERSON, "", own.text, own.by, None, (), (), (), name, 1.0, doubt)
            found.setdefault(name, Evidence(*entry))
    return _stale(_headed(list(found.values()), alike, said))


def observed(latest: Sequence[Told]) -> tuple[Rows, Ids]:
    """Every finding once, in canonical order, and what each step and each handoff found."""
    rows: Rows = {}
    ids_of: Ids = {}
    for one in latest:
        mine: list[str] = []
        for seen in one.handoff.observed:
            name = entry_id("e", one.step, seen.finding, seen.source)
            if name in rows:
                rows[name] = (one, _again(rows[name][1], seen))
                continue
            rows[name] = (one, seen)
            mine.append(name)
        ids_of[one.step] = ids_of[one.id] = mine
    return rows, ids_of


def _again(one: Observation, other: Observation) -> Observation:
    """What a step told twice: as sure as it was told at the most, speaking for all that it was told for."""
    shares = [sure for sure in (one.confidence, other.confidence) if sure is not None]
    return replace(
        one,
        confidence=max(shares, default=None),
        supports=tuple(dict.fromkeys((*one.supports, *other.supports))),
        refutes=tuple(dict.fromkeys((*one.refutes, *other.refutes))),
    )


def _bases(rows: Rows, ids_of: Ids) -> dict[str, tuple[str, ...]]:
    """The evidence that each source names: by its id, or all of a handoff or of a step.

    Something may be named that a step later in the plan told in an earlier run. Where evidence would stand
    on itself in a circle, such names count no more.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name, (one, seen) in rows.items():
        source = seen.source
        if source in rows:
            found[name] = (source,)
        elif (bases := ids_of.get(source)) and source not in (one.step, one.id):
            found[name] = tuple(bases)
    place = {name: n for n, name in enumerate(rows)} if found else {}
    if all(place[base] < place[name] for name, bases in found.items() for base in bases):
        return found
    for name in _circling(found):
        found[name] = tuple(base for base in found[name] if place[base] < place[name])
    return found


def _circling(found: Mapping[str, Sequence[str]]) -> list[str]:
    """What stands on itself, or on something that does."""
    left = {name: sum(base in found for base in bases) for name, bases in found.items()}
    above: dict[str, list[str]] = {}
    for name, bases in found.items():
        for base in bases:
            above.setdefault(base, []).append(name)
    free = [name for name, many in left.items() if not many]
    while free:
        for name in above.get(free.pop(), ()):
            left[name] -= 1
            if not left[name]:
                free.append(name)
    return [name for name, many in left.items() if many]


def doubt_of(contested: Mapping[str, Said], told: Told, name: str, source: str) -> str:
    """Why evidence is contested: itself, its handoff or its source is, or its step as it was made."""
    for entry in (name, told.id, source):
        if entry and entry in contested:
            return contested[entry].text
    word = contested.get(told.step)
    return "" if word is None or 0 < word.place < told.place else word.text


def _headed(found: Sequence[Evidence], alike: Alike, said: Sequence[Said]) -> list[Evidence]:
    places = groups([one.finding for one in found], alike, apart([one.id for one in found], said))
    return [
        one if same.head == place else _joined(one, found[same.head].id, same.alike)
        for place, (one, same) in enumerate(zip(found, places, strict=True))
    ]


def _joined(one: Evidence, head: str, alike: float) -> Evidence:
    """The same under another head; `replace` would take four times as long, and there are many."""
    return Evidence(
        one.id,
        one.step,
        one.handoff,
        one.finding,
        one.source,
        one.confidence,
        one.supports,
        one.refutes,
        one.stands_on,
        head,
        alike,
        one.contested,
        one.stale,
    )


def _stale(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """What stands on contested evidence is stale, and so is what stands on that."""
    fallen = [one.id for one in evidence if one.contested]
    if not fallen:
        return tuple(evidence)
    above: dict[str, list[str]] = {}
    for one in evidence:
        for base in one.stands_on:
            above.setdefault(base, []).append(one.id)
    stale: set[str] = set()
    while fallen:
        for name in above.get(fallen.pop(), ()):
            if name not in stale:
                stale.add(name)
                fallen.append(name)
    return tuple([replace(one, stale=True) if one.id in stale else one for one in evidence])


def weights(evidence: Iterable[Evidence]) -> dict[str, Weight]:
    """What counts of evidence: all that is not contested, each with its source, or its step without one."""
    return {
        one.id: Weight(_source(one), one.confidence, one.stands_on)
        for one in evidence
        if not one.contested
    }


def _source(one: Evidence) -> str:
    return f"step {one.step}" if one.source in {"", one.step} else one.source
