"""Evidence: every finding with its step, source and confidence, what it stands on, and whether it stands.

Findings that say the same share a head, and none is dropped. What stands on something contested is stale.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from holdfast.core.above import Steps, stands_for
from holdfast.core.bases import Bases, FoundBy
from holdfast.core.confidence import Weight
from holdfast.core.likeness import Alike, groups
from holdfast.core.said import PERSON, Said, apart
from holdfast.core.told import Told
from holdfast.model.fixed import fixed
from holdfast.model.handoff import Observation, entry_id
from holdfast.model.plan import StepId
from holdfast.model.sources import source_name, source_names


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
    sources: tuple[str, ...] = ()  # what its source names in the world: several, each of its own


class Known(NamedTuple):
    """The evidence that counts, and what counts no more on which some of it stands or which fell."""

    latest: tuple[Evidence, ...]
    past: tuple[Evidence, ...]
    found_by: FoundBy


def evidence_of(bases: Bases, alike: Alike, said: Sequence[Said], gone: Iterable[Told]) -> Known:
    """The findings, with what each stands on, what says the same, what is contested and what is stale.

    `gone` are handoffs that count no more: what fell of them is kept, whether something stands on it or not.
    """
    contested = _Contested(said, bases)
    stands_on, groups = bases.stand_on()
    needed = {*bases.gone}
    for one in gone if contested.entries else ():
        bases.keep(one)
    if len(bases.gone) > len(needed):
        stands_on, groups = bases.stand_on()
    found = [
        _finding(bases, name, one, seen, stands_on.get(name, ()), contested)
        for name, (one, seen) in bases.rows.items()
    ]
    added: dict[str, Evidence] = {}
    for own in said:
        if own.word == "evidence":
            name = entry_id("e", PERSON, own.text, own.by)
            sources = (source_name(own.by),)
            doubt = contested.why(name, own.by, sources)
            entry = (name, PERSON, "", own.text, own.by, None, (), (), (), name, 1.0, doubt)
            added.setdefault(name, Evidence(*entry, sources=sources))
    past = [
        _finding(bases, name, one, seen, stands_on.get(name, ()), contested)
        for name, (one, seen) in bases.gone.items()
    ]
    latest = _headed([*found, *added.values()], alike, said)
    fell = _fallen([*latest, *past], groups)
    if fell:
        latest, past = ([_stale(one, fell) for one in ones] for ones in (latest, past))
    kept = [one for one in past if one.id in needed or one.contested or one.stale]
    return Known(tuple(latest), tuple(kept), groups)


def _finding(
    bases: Bases,
    name: str,
    told: Told,
    seen: Observation,
    stands_on: tuple[str, ...],
    contested: _Contested,
) -> Evidence:
    source, why = seen.source, ""
    sources = bases.sources(told, source, is_derived=bool(stands_on))
    if contested.entries:
        why = contested.why(name, source, sources) or doubt_of(contested.entries, told)
    return Evidence(
        name,
        told.step,
        told.id,
        seen.finding,
        source,
        seen.confidence,
        seen.supports,
        seen.refutes,
        stands_on,
        name,
        1.0,
        why,
        False,
        sources,
    )


class _Contested:
    """What people contest: entries and steps as they are named, and sources however they are written."""

    def __init__(self, said: Iterable[Said], bases: Bases) -> None:
        self.entries = {one.entry: one for one in said if one.word == "contest"}
        self._sources: dict[str, Said] = {}
        self._is_named = bases.is_named
        for name, word in self.entries.items():
            if not bases.is_named(name):
                self._sources[name] = self._sources[source_name(name)] = word

    def why(self, name: str, source: str, sources: Iterable[str]) -> str:
        """Why evidence is contested, itself or a source of it."""
        if name in self.entries:
            return self.entries[name].text
        if not self._sources:
            return ""
        plain = (one for one in (source, source_name(source), *sources) if not self._is_named(one))
        return next((self._sources[one].text for one in plain if one in self._sources), "")


def names_source(one: Evidence, name: str) -> bool:
    """Whether evidence is from the source of this name: one of its own, or the whole list of them."""
    if name in one.sources:
        return True
    return len(source_names(one.source)) > 1 and name == source_name(one.source)


def spread(said: Sequence[Said], steps: Steps) -> list[Said]:
    """What people said, where a contest of a step that gathers is one of each step whose work it gathers."""
    every: list[Said] = []
    for one in said:
        every.append(one)
        if one.word == "contest" and one.entry in steps:
            inner = (name for name in stands_for(steps, one.entry) if name != one.entry)
            every += [replace(one, entry=name) for name in inner]
    return every


def doubt_of(contested: Mapping[str, Said], told: Told) -> str:
    """Why what a handoff tells is contested: the handoff is, or its step as it was made."""
    if told.id in contested:
        return contested[told.id].text
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
        one.sources,
    )


def _fallen(evidence: Sequence[Evidence], groups: FoundBy) -> set[str]:
    """What stands on contested evidence is stale, and so is what stands on that."""
    fallen = [one.id for one in evidence if one.contested]
    stale: set[str] = set()
    if not fallen:
        return stale
    above: dict[str, list[str]] = {}
    rests = [*((one.id, one.stands_on) for one in evidence), *groups.items()]
    for name, bases in rests:
        for base in bases:
            above.setdefault(base, []).append(name)
    while fallen:
        for name in above.get(fallen.pop(), ()):
            if name not in stale:
                stale.add(name)
                fallen.append(name)
    return stale


def _stale(one: Evidence, fell: Collection[str]) -> Evidence:
    return replace(one, stale=True) if one.id in fell else one


def weights(evidence: Iterable[Evidence], groups: FoundBy) -> dict[str, Weight]:
    """What counts of evidence: all that is not contested, each with its source, or its step without one.

    A step or a handoff on which some of it stands claims nothing itself.
    """
    known = {name: Weight("", None, ids) for name, ids in groups.items()}
    for one in evidence:
        if not one.contested:
            source, *others = one.sources or (f"step {one.step}",)
            known[one.id] = Weight(source, one.confidence, one.stands_on, tuple(others))
    return known
