"""What findings and verdicts stand on: the evidence, handoffs and steps that they name.

A name means what it meant when it was said. An id is that of the entry, and if its step tells something else
since, or has left the plan, of the entry as it was told last. The name of a step is the handoff that the step
had given by then: that another one took its place changes nothing in what was concluded from the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from holdfast.core.above import Steps, lying_above, stands_for, step_meant
from holdfast.core.confidence import UNSAID
from holdfast.core.told import Past, Told, findings
from holdfast.model.handoff import Observation, is_entry
from holdfast.model.sources import Source, read_source

Names = tuple[str, ...]
Rows = dict[str, tuple[Told, Observation]]  # what was observed, by its id
FoundBy = Mapping[str, Names]  # the evidence of steps and handoffs that something stands on
_SILENT = 1 << 62  # later than all places: who tells nothing now may have before


class Bases:
    """What the latest handoffs found, in canonical order, and what names in them mean.

    `gone` is what counts no more and was asked for: what something stands on, and what that stands on.
    """

    def __init__(self, latest: Sequence[Told], steps: Steps, past: Past) -> None:
        self.rows: Rows = {}
        self.gone: Rows = {}
        self._steps = steps
        self._past = past
        self._latest: dict[str, Told] = {}
        self._ids: dict[str, Names] = {}  # what steps and handoffs found
        self._gathered: dict[str, Names] = {}
        self._within: dict[str, tuple[Sequence[str], int]] = {}
        self._then: dict[tuple[str, str, int], Names] = {}
        self._found: dict[tuple[str, int], Rows] = {}
        self._read: dict[str, Source] = {}
        self._step_meant = step_meant(steps or self._latest)
        for one in latest:
            self._latest[one.step] = one
            self._ids[one.step] = self._ids[one.id] = _observe(one, self.rows)

    def is_named(self, name: str) -> bool:
        """Whether something is the name of evidence, a step or a handoff, so no source in the world."""
        return self._is_evidence(name) or name in self._ids or name in self._steps

    def by(self, name: str) -> Names:
        """The evidence of a step or a handoff; of a step that gathers, of all whose work it gathers.

        The same tuple each time, so that many may stand on it.
        """
        if own := self._ids.get(name):
            return own
        if name not in self._gathered:
            every = (self._ids.get(one, ()) for one in stands_for(self._steps, name))
            self._gathered[name] = tuple([one for ids in every for one in ids])
        return self._gathered[name]

    def means(self, told: Told, name: str) -> Names:
        """What a handoff means by a name: evidence by its id, or steps and handoffs that found some."""
        if self._is_evidence(name):
            return (name,)
        if is_entry(name):
            return self._entry(name)
        key = (name, told.id, told.place)
        if key not in self._then:
            self._then[key] = self._step(told, name)
        return self._then[key]

    def evidence(self, told: Told, name: str) -> Names:
        """The same, each piece of evidence by its id."""
        named = self.means(told, name)
        if named == (name,):
            return named if self._is_evidence(name) else self.by(name)
        return tuple([one for base in named for one in self.by(base)])

    def keep(self, told: Told) -> Names:
        """What a handoff found that counts no more, each as it was told last."""
        if told.id not in self._ids:
            self._ids[told.id] = tuple(self._all(told))
            for name in self._ids[told.id]:
                if not self._is_evidence(name):
                    last = self._past.last(name) or told
                    self.gone[name] = self._all(last)[name]
        return self._ids[told.id]

    def stand_on(self) -> tuple[dict[str, Names], FoundBy]:
        """What each finding stands on, and what those found that are named there.

        A step that is not above is a word like any other: nothing of it was known. By its id something may be
        named that a step later in the plan told in an earlier run. Where evidence would stand on itself in a
        circle, such names count no more.
        """
        found = self._of_rows()
        done: set[str] = set()
        while fresh := [name for name in self.gone if name not in done]:
            done.update(fresh)
            found |= self._of_gone(fresh)
        groups = {
            one: self.by(one)
            for names in found.values()
            for one in names
            if not self._is_evidence(one)
        }
        gone = sorted(
            self.gone, key=lambda name: (self.gone[name][0].step, self.gone[name][0].place)
        )
        return _straight(found, groups, [*gone, *self.rows]), groups

    def sources(self, told: Told, source: str, *, is_derived: bool) -> Names:
        """The sources in the world that a source names; a name that nothing stands on is one, too."""
        read = self._read[source]
        if is_derived or not read.names:
            return read.plain
        return (*read.plain, *(one for one in read.names if one != told.step))

    def _of_rows(self) -> dict[str, Names]:
        for one in {seen.source: None for _, seen in self.rows.values()}:
            self._read[one] = read_source(one, self._meant)
        meant = {source: one.names for source, one in self._read.items() if one.names}
        if not meant:
            return {}
        named = {
            name: (told, meant[seen.source])
            for name, (told, seen) in self.rows.items()
            if seen.source in meant
        }
        above = lying_above(
            self._steps, ((told.step, one) for told, names in named.values() for one in names)
        )
        found: dict[str, Names] = {}
        for name, (told, names) in named.items():
            own = {told.id, told.step}
            may = [
                one
                for one in names
                if ((told.step, one) in above if one in self._steps else one not in own)
            ]
            if bases := self._bases(told, may):
                found[name] = bases
        return found

    def _of_gone(self, fresh: Iterable[str]) -> dict[str, Names]:
        """The same of what counts no more: it was looked up when it was told, in the plan as it was."""

        def meant(name: str) -> str:
            return self._meant(name) or (name if self._past.tellings.by(name) else "")

        found = {}
        for name in fresh:
            told, seen = self.gone[name]
            if seen.source not in self._read:
                self._read[seen.source] = read_source(seen.source, meant)
            names = self._read[seen.source].names
            may = [one for one in names if one not in {told.id, told.step}]
            if bases := self._bases(told, may):
                found[name] = bases
        return found

    def _bases(self, told: Told, names: Iterable[str]) -> Names:
        return tuple(dict.fromkeys([base for one in names for base in self.means(told, one)]))

    def _is_evidence(self, name: str) -> bool:
        return name in self.rows or name in self.gone

    def _meant(self, name: str) -> str:
        """The entry or step that a name means, a step in other capital letters too, if it is the only one."""
        if self.is_named(name) or self._was_told(name):
            return name
        return self._step_meant(name)

    def _was_told(self, name: str) -> bool:
        return is_entry(name) and self._past.last(name) is not None

    def _all(self, told: Told) -> Rows:
        key = (told.id, told.place)
        if key not in self._found:
            self._found[key] = {}
            _observe(told, self._found[key])
        return self._found[key]

    def _entry(self, name: str) -> Names:
        """An id: of a handoff, or of evidence that counts no more."""
        if name not in self._ids:
            told = self._past.last(name)
            if told is None:
                return ()
            if told.id != name:
                self.gone[name] = self._all(told)[name]
                return (name,)
            self.keep(told)
        return (name,) if self._ids[name] else ()

    def _step(self, told: Told, name: str) -> Names:
        """A step, or those whose work it gathers, as they had told by then."""
        is_latest = self._latest.get(told.step) is told
        if is_latest and name not in self._steps:  # no order is known without a plan
            return (name,) if self.by(name) else ()
        if name not in self._within:
            inner: Sequence[str] = stands_for(self._steps, name) or (name,)
            places = [one.place if (one := self._latest.get(step)) else _SILENT for step in inner]
            self._within[name] = (inner, max(places))
        inner, newest = self._within[name]
        if is_latest and (not told.place or newest <= told.place):
            return (name,) if self.by(name) else ()
        then = [self._as_told(step, told.place) for step in inner]
        if all(one is self._latest.get(step) for one, step in zip(then, inner, strict=True)):
            return (name,) if self.by(name) else ()
        return tuple([one.id for one in then if one is not None and self.keep(one)])

    def _as_told(self, step: str, place: int) -> Told | None:
        """What a step had told by then; where nobody knows, what it tells now."""
        now = self._latest.get(step)
        if now is not None and now.place <= place:
            return now
        then = self._past.before(step, place)
        return now if then is None or (now is not None and then.id == now.id) else then


def _observe(told: Told, rows: Rows) -> Names:
    """Add what a handoff found; the ids of it."""
    mine: list[str] = []
    for name, seen in findings(told):
        if name in rows:
            rows[name] = (told, _again(rows[name][1], seen))
        else:
            rows[name] = (told, seen)
            mine.append(name)
    return tuple(mine)


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


def _straight(found: dict[str, Names], groups: FoundBy, order: Iterable[str]) -> dict[str, Names]:
    """What each stands on, without what leads back to itself."""
    place = {name: n for n, name in enumerate(order)}
    place |= {name: max(place[one] for one in ids) for name, ids in groups.items()}
    if all(place[base] < place[name] for name, bases in found.items() for base in bases):
        return found
    for name in _circling({**found, **groups}):
        if name in found:
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
