"""Evidence: every finding with its step, source and confidence, what it stands on, and whether it stands.

Findings that say the same share a head, and none is dropped. What stands on something contested is stale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from holdfast.core.above import Steps, lying_above, stands_for
from holdfast.core.confidence import UNSAID, Weight
from holdfast.core.likeness import Alike, groups
from holdfast.core.said import PERSON, Said, apart
from holdfast.model.fixed import fixed
from holdfast.model.handoff import Handoff, Observation, entry_id, names_in
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
    stands_on: tuple[
        str, ...
    ]  # what its source names: evidence, or a step or handoff for all it found
    head: str
    alike: float
    contested: str = ""
    stale: bool = False


Rows = dict[
    str, tuple[Told, Observation]
]  # what was observed, before it is known what it stands on
FoundBy = Mapping[str, tuple[str, ...]]  # the evidence of steps and handoffs that sources name


class Found:
    """The evidence of a step or of a handoff; of a step that gathers, all of those whose work it gathers."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self._ids: dict[str, tuple[str, ...]] = {}
        self._gathered: dict[str, tuple[str, ...]] = {}

    def add(self, told: Told, ids: Iterable[str]) -> None:
        """What a handoff found."""
        self._ids[told.step] = self._ids[told.id] = tuple(ids)

    def is_name(self, name: str) -> bool:
        """Whether something is the name of a step or of a handoff, so that it is no source in the world."""
        return name in self._ids or name in self.steps

    def by(self, name: str) -> tuple[str, ...]:
        """The same tuple each time, so that many may stand on it."""
        if own := self._ids.get(name):
            return own
        if name in self.steps and name not in self._gathered:
            every = (self._ids.get(one, ()) for one in stands_for(self.steps, name))
            self._gathered[name] = tuple([one for ids in every for one in ids])
        return self._gathered.get(name, ())


def evidence_of(
    rows: Rows, found_by: Found, alike: Alike, said: Sequence[Said]
) -> tuple[tuple[Evidence, ...], FoundBy]:
    """The findings, with what each stands on, what says the same, what is contested and what is stale.

    And what was found by the steps and handoffs that they stand on: it is the same for all that name one.
    """
    contested = {one.entry: one for one in said if one.word == "contest"}
    stands_on, groups = _bases(rows, found_by)
    found: dict[str, Evidence] = {}
    for name, (one, seen) in rows.items():
        source, why = seen.source, ""
        if contested:
            plain = "" if source in rows or found_by.is_name(source) else source
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
    return _stale(_headed(list(found.values()), alike, said), groups), groups


def observed(latest: Sequence[Told], steps: Steps) -> tuple[Rows, Found]:
    """Every finding once, in canonical order, and what each step and each handoff found."""
    rows: Rows = {}
    found = Found(steps)
    for one in latest:
        mine: list[str] = []
        for seen in one.handoff.observed:
            name = entry_id("e", one.step, seen.finding, seen.source)
            if name in rows:
                rows[name] = (one, _again(rows[name][1], seen))
                continue
            rows[name] = (one, seen)
            mine.append(name)
        found.add(one, mine)
    return rows, found


def _again(one: Observation, other: Observation) -> Observation:
    """What a step told twice: as sure as the surer of the two, speaking for all that it was told for."""
    surer = max(
        (one.confidence, other.confidence), key=lambda sure: UNSAID if sure is None else sure
    )
    return replace(
        one,
        confidence=surer,
        supports=tuple(dict.fromkeys((*one.supports, *other.supports))),
        refutes=tuple(dict.fromkeys((*one.refutes, *other.refutes))),
    )


def spread(said: Sequence[Said], steps: Steps) -> list[Said]:
    """What people said, where a contest of a step that gathers is one of each step whose work it gathers."""
    every: list[Said] = []
    for one in said:
        every.append(one)
        if one.word == "contest" and one.entry in steps:
            inner = (name for name in stands_for(steps, one.entry) if name != one.entry)
            every += [replace(one, entry=name) for name in inner]
    return every


def _bases(rows: Rows, found_by: Found) -> tuple[dict[str, tuple[str, ...]], FoundBy]:
    """What each source names: evidence by its id, or a handoff or a step above for all that it found.

    A step that is not above is a word like any other: nothing of it was known. By its id something may be
    named that a step later in the plan told in an earlier run. Where evidence would stand on itself in a
    circle, such names count no more.
    """

    def is_known(name: str) -> bool:
        return name in rows or bool(found_by.by(name))

    sources = dict.fromkeys(seen.source for _, seen in rows.values())
    meant = {one: names for one in sources if one and (names := names_in(one, is_known))}
    if not meant:
        return {}, {}
    named = {name: meant[seen.source] for name, (_, seen) in rows.items() if seen.source in meant}
    above = lying_above(
        found_by.steps,
        ((rows[name][0].step, one) for name, names in named.items() for one in names),
    )
    found: dict[str, tuple[str, ...]] = {}
    for name, names in named.items():
        told = rows[name][0]
        own = {told.id, told.step}
        bases = tuple(
            one
            for one in names
            if one in rows
            or ((told.step, one) in above if one in found_by.steps else one not in own)
        )
        if bases:
            found[name] = bases
    groups = {one: found_by.by(one) for names in found.values() for one in names if one not in rows}
    place = {name: n for n, name in enumerate(rows)}
    place |= {name: max(place[one] for one in ids) for name, ids in groups.items()}
    if all(place[base] < place[name] for name, bases in found.items() for base in bases):
        return found, groups
    for name in _circling({**found, **groups}):
        if name in found:
            found[name] = tuple(base for base in found[name] if place[base] < place[name])
    return found, groups


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


def _stale(evidence: Sequence[Evidence], groups: FoundBy) -> tuple[Evidence, ...]:
    """What stands on contested evidence is stale, and so is what stands on that."""
    fallen = [one.id for one in evidence if one.contested]
    if not fallen:
        return tuple(evidence)
    above: dict[str, list[str]] = {}
    rests = [*((one.id, one.stands_on) for one in evidence), *groups.items()]
    for name, bases in rests:
        for base in bases:
            above.setdefault(base, []).append(name)
    stale: set[str] = set()
    while fallen:
        for name in above.get(fallen.pop(), ()):
            if name not in stale:
                stale.add(name)
                fallen.append(name)
    return tuple([replace(one, stale=True) if one.id in stale else one for one in evidence])


def weights(evidence: Iterable[Evidence], groups: FoundBy) -> dict[str, Weight]:
    """What counts of evidence: all that is not contested, each with its source, or its step without one.

    A step or a handoff on which some of it stands claims nothing itself.
    """
    known = {name: Weight("", None, ids) for name, ids in groups.items()}
    for one in evidence:
        if not one.contested:
            known[one.id] = Weight(_source(one), one.confidence, one.stands_on)
    return known


def _source(one: Evidence) -> str:
    return f"step {one.step}" if one.source in {"", one.step} else one.source
