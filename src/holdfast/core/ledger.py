"""The ledger: what the handoffs of a run add up to.

The law: the ledger is a function of the latest handoff of each step, of what those were told before that
they stand on, and of what people said, folded in canonical order, wave by wave and by id inside a wave. When
a step ended, and in which order, changes nothing; times come from the journal and are only carried along.

    evidence        every finding, with its step, source and confidence; findings that say the same share
                    a head, and none is dropped
    uncertainties   open -> testing -> resolved, as later handoffs say; raised again after that, open;
                    what a contested handoff says, or one whose findings all fell, answers nothing
    artifacts       what was changed, and where it is
    gaps            what was not done, and why
    hypotheses      how they stand: what all that tested them say, by a verdict or else by what they
                    found; supported by some and refuted by others is inconclusive, and so is what
                    only contested findings decided
    stale           what stands on something that was contested
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple

from holdfast.core.above import Steps
from holdfast.core.bases import Bases, FoundBy
from holdfast.core.confidence import Weight, bounded, together
from holdfast.core.evidence import Evidence, doubt_of, evidence_of, spread, weights
from holdfast.core.likeness import Alike
from holdfast.core.questions import Uncertainty, answered
from holdfast.core.said import PERSON, Said, own_entry, upheld
from holdfast.core.told import Past, Told, past_of
from holdfast.model.fixed import fixed, frozen
from holdfast.model.handoff import Standing, cited, entry_id
from holdfast.model.plan import StepId


@fixed
class Registered:
    """Something a step changed."""

    id: str
    step: StepId
    artifact: str
    ref: str


@fixed
class Gap:
    """Something a step did not do."""

    id: str
    step: StepId
    item: str
    reason: str
    requirements: tuple[str, ...] = ()  # those that it names
    closed: str = ""  # a person's word that it is closed
    serves: tuple[str, ...] = ()  # the requirements that its step serves


@fixed
class Hypothesis:
    """How a hypothesis stands, and everything that speaks for and against it."""

    id: str
    status: Standing
    tested_by: tuple[StepId, ...] = ()
    evidence_steps: tuple[StepId, ...] = ()
    supporting: tuple[str, ...] = ()  # ids of evidence that counts
    refuting: tuple[str, ...] = ()
    fallen_for: tuple[str, ...] = ()  # and of what was contested, or stands on that
    fallen_against: tuple[str, ...] = ()
    confidence_for: float | None = None
    confidence_against: float | None = None
    stale: bool = False


class Silent(NamedTuple):
    """A step that was to test hypotheses and told nothing, and its wave."""

    wave: int
    tests: tuple[str, ...]


@frozen
class Ledger:
    """What is known. Every list is in canonical order."""

    handoffs: tuple[Told, ...] = ()
    superseded: tuple[Told, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    uncertainties: tuple[Uncertainty, ...] = ()
    artifacts: tuple[Registered, ...] = ()
    gaps: tuple[Gap, ...] = ()
    hypotheses: Mapping[str, Hypothesis] = field(default_factory=dict)
    stale: tuple[str, ...] = ()
    unmatched: tuple[tuple[StepId, str], ...] = ()  # what a handoff refers to and nobody said
    found_by: FoundBy = field(
        default_factory=dict
    )  # of the steps and handoffs that evidence stands on
    past: tuple[Evidence, ...] = ()  # counts no more: something stands on it, or it fell
    contested: Mapping[str, str] = field(default_factory=dict)  # handoffs, and why


def folded(
    told: Iterable[Told],
    alike: Alike,
    hypotheses: Mapping[str, Standing] | None = None,
    said: Sequence[Said] = (),
    earlier: Iterable[Told] = (),
    silent: Mapping[StepId, Silent] | None = None,
    steps: Steps | None = None,
    past: Past | None = None,
) -> Ledger:
    """The ledger of these handoffs. `hypotheses` are those of the plan, as it says they stand.

    `earlier` ones count no more, and are kept beside it. `silent` steps tested hypotheses and told nothing.
    `steps` are those of the plan: they say which of them a source may name, and what each stands for. What
    stands on something that counts no more finds it in the `past`; without one, among the earlier ones.
    """
    latest, superseded = _latest(told)
    superseded = _ordered([*superseded, *earlier])
    steps = {} if steps is None else steps
    said = spread(upheld(said), steps)
    bases = Bases(latest, steps, past_of(superseded) if past is None else past)
    for one in latest:  # so that all that counts no more is known before anything is made of it
        for trial in one.handoff.hypotheses.values():
            for item in trial.evidence:
                bases.means(one, item)
    evidence, before, groups = evidence_of(bases, alike, said, superseded)
    beyond = (*(bases.gone[one.id][0] for one in before), *superseded)
    told_in_order = [(one.step, one.handoff) for one in latest]
    doubted = _contested(latest, said)
    void = _void(latest, evidence, doubted) if any(one.word == "contest" for one in said) else ()
    uncertainties, unmatched = answered(told_in_order, alike, said, void)
    counting = weights((*evidence, *before), groups)
    stands = _hypotheses(
        latest, (evidence, before), bases, hypotheses or {}, said, silent or {}, counting
    )
    return Ledger(
        handoffs=latest,
        superseded=_ordered({(one.id, one.place): one for one in beyond}.values()),
        evidence=evidence,
        uncertainties=uncertainties,
        artifacts=_artifacts(latest),
        gaps=_gaps(latest, said),
        hypotheses=stands,
        stale=_fallen(evidence, stands),
        unmatched=unmatched,
        found_by=groups,
        past=before,
        contested=doubted,
    )


def _contested(latest: Iterable[Told], said: Iterable[Said]) -> dict[str, str]:
    """The handoffs that are contested themselves, or whose steps are, and why."""
    words = {one.entry: one for one in said if one.word == "contest"}
    why = {one.id: doubt_of(words, one) for one in latest} if words else {}
    return {name: text for name, text in why.items() if text}


def _void(
    latest: Iterable[Told], evidence: Iterable[Evidence], doubted: Collection[str]
) -> set[StepId]:
    """The steps whose handoffs answer nothing any more: contested themselves, or all that they found fell."""
    stands: dict[str, bool] = {}
    for one in evidence:
        stands[one.handoff] = stands.get(one.handoff, False) or not _fell(one)
    return {one.step for one in latest if one.id in doubted or not stands.get(one.id, True)}


def _latest(told: Iterable[Told]) -> tuple[tuple[Told, ...], tuple[Told, ...]]:
    last: dict[StepId, Told] = {}
    earlier: list[Told] = []
    for one in sorted(told, key=lambda one: one.place):
        if one.step in last:
            earlier.append(last[one.step])
        last[one.step] = one
    return _ordered(last.values()), _ordered(earlier)


def _ordered(told: Iterable[Told]) -> tuple[Told, ...]:
    return tuple(sorted(told, key=lambda one: (one.wave, one.step, one.place)))


# --- artifacts, gaps, hypotheses ------------------------------------------------------------------


def _artifacts(latest: Sequence[Told]) -> tuple[Registered, ...]:
    made = (
        Registered(entry_id("a", one.step, c.artifact, c.ref), one.step, c.artifact, c.ref)
        for one in latest
        for c in one.handoff.changed
    )
    return tuple({one.id: one for one in made}.values())


def _gaps(latest: Sequence[Told], said: Sequence[Said]) -> tuple[Gap, ...]:
    found: dict[str, Gap] = {}
    for one in latest:
        for gap in one.handoff.not_done:
            name = entry_id("g", one.step, gap.item)
            named = (gap.requirement,) if gap.requirement else ()
            new = Gap(name, one.step, gap.item, gap.reason, named, "", one.serves)
            found[name] = _both(found[name], new) if name in found else new
    for word in said:
        if word.word == "gap":
            name = own_entry(word)
            found[name] = Gap(name, PERSON, word.text, word.because)
        elif word.word == "resolve" and word.entry in found:
            found[word.entry] = replace(found[word.entry], closed=word.text)
    return tuple(found.values())


def _both(one: Gap, other: Gap) -> Gap:
    """A gap that a step told twice: all its reasons, and all requirements that it leaves open."""
    reasons = dict.fromkeys([one.reason, other.reason])
    named = dict.fromkeys([*one.requirements, *other.requirements])
    return replace(one, reason="; ".join(reasons), requirements=tuple(named))


class _Heard(NamedTuple):
    """What is known of one hypothesis: who tested it with which verdict, and the evidence on both sides."""

    tested_by: dict[StepId, None]
    verdicts: dict[StepId, Standing]
    steps: list[StepId]
    sides: dict[Standing, dict[str, None]]
    doubted: list[StepId]  # whose verdict is contested


def _hypotheses(
    latest: Sequence[Told],
    evidence: tuple[Sequence[Evidence], Sequence[Evidence]],
    bases: Bases,
    planned: Mapping[str, Standing],
    said: Sequence[Said],
    silent: Mapping[StepId, Silent],
    counting: Mapping[str, Weight],
) -> dict[str, Hypothesis]:
    counts, before = evidence
    known = {one.id: one for one in (*counts, *before)}
    steps = {name: one.step for one in latest for name in (one.step, one.id)}
    tested = [*(name for one in latest for name in (*one.handoff.hypotheses, *one.tests))]
    tested += [name for quiet in silent.values() for name in quiet.tests]
    heard = {name: _Heard({}, {}, [], {}, []) for name in dict.fromkeys([*planned, *tested])}
    _speaking(counts, heard)
    for step, quiet in silent.items():
        for name in quiet.tests:
            heard[name].tested_by[step] = None
    wave = {one.step: one.wave for one in latest} if silent else {}
    wave |= {step: quiet.wave for step, quiet in silent.items()}
    contested = {one.entry: one for one in said if one.word == "contest"}
    for one in latest:
        _tested(one, heard, known, steps, bases, contested)
    return {
        name: _stands(name, planned.get(name, "untested"), one, known, counting, wave)
        for name, one in heard.items()
    }


def _speaking(evidence: Iterable[Evidence], heard: Mapping[str, _Heard]) -> None:
    for one in evidence:
        sides: tuple[tuple[Standing, tuple[str, ...]], ...]
        sides = (("supported", one.supports), ("refuted", one.refutes))
        for side, names in sides:
            for name in names:
                if name in heard:
                    heard[name].sides.setdefault(side, {})[one.id] = None
                    heard[name].steps.append(one.step)


def _tested(
    one: Told,
    heard: Mapping[str, _Heard],
    known: Mapping[str, Evidence],
    steps: Mapping[str, StepId],
    bases: Bases,
    contested: Mapping[str, Said],
) -> None:
    """Take the verdicts of a handoff. One that is contested itself decides nothing, nor one whose all fell.

    A verdict leans on the evidence that it names, else on what the same handoff found that speaks for it,
    else on all that the handoff found.
    """
    is_contested = bool(contested) and bool(doubt_of(contested, one))
    own = _Own([known[name] for name in bases.by(one.id)] if contested else ())
    for name in one.tests:
        heard[name].tested_by[one.step] = None
    for name, trial in one.handoff.hypotheses.items():
        here = heard[name]
        if trial.status != "untested":
            here.tested_by[one.step] = None
        named: list[str] = []
        for item in trial.evidence:  # an entry, or all that a step or a handoff found
            ids = bases.evidence(one, item)
            if trial.status in {"supported", "refuted"}:
                here.sides.setdefault(trial.status, {}).update(dict.fromkeys(ids))
                named += ids
            told_by = [steps[item]] if item in steps else [known[name].step for name in ids]
            here.steps.extend(dict.fromkeys(told_by))
        leans_on = [known[item] for item in named] or own.behind(name, trial.status)
        fell = [_fell(item) for item in leans_on] if contested else []
        is_void = is_contested or (bool(fell) and all(fell))
        here.verdicts[one.step] = "inconclusive" if is_void else trial.status
        here.doubted.extend([one.step] if is_contested or any(fell) else ())


class _Own:
    """What the findings of one handoff say of each hypothesis."""

    def __init__(self, found: Sequence[Evidence]) -> None:
        self._found = found
        self._sides: dict[tuple[Standing, str], list[Evidence]] = {}
        for one in found:
            for name in one.supports:
                self._sides.setdefault(("supported", name), []).append(one)
            for name in one.refutes:
                self._sides.setdefault(("refuted", name), []).append(one)

    def behind(self, name: str, verdict: Standing) -> Sequence[Evidence]:
        """What a verdict leans on that names nothing: what speaks for it, else all that was found."""
        if verdict not in {"supported", "refuted"}:
            return ()
        return self._sides.get((verdict, name), self._found)


def _fell(one: Evidence) -> bool:
    return bool(one.contested) or one.stale


def _stands(
    name: str,
    planned: Standing,
    heard: _Heard,
    known: Mapping[str, Evidence],
    counting: Mapping[str, Weight],
    wave: Mapping[StepId, int],
) -> Hypothesis:
    tested_by = tuple(heard.tested_by)  # those that told something, in canonical order
    if wave:
        tested_by = tuple(sorted(tested_by, key=lambda step: (wave[step], step)))
    every = [known[one] for side in heard.sides.values() for one in side]
    whole = {one.id for one in every if not _fell(one)}
    pro, contra = heard.sides.get("supported", {}), heard.sides.get("refuted", {})
    supporting = tuple(one for one in pro if one in whole)
    refuting = tuple(one for one in contra if one in whole)
    return Hypothesis(
        id=name,
        status=_verdict(heard, planned, known),
        tested_by=tested_by,
        evidence_steps=tuple(dict.fromkeys(heard.steps)),
        supporting=supporting,
        refuting=refuting,
        fallen_for=tuple(one for one in pro if one not in whole),
        fallen_against=tuple(one for one in contra if one not in whole),
        confidence_for=together(supporting, counting),
        confidence_against=together(refuting, counting),
        stale=bool(heard.doubted) or any(map(_fell, every)),
    )


def _verdict(heard: _Heard, planned: Standing, known: Mapping[str, Evidence]) -> Standing:
    """What all that tested a hypothesis say together, in whatever order they did.

    Who gives no verdict speaks by the findings, and without any is inconclusive. Findings that all fell leave
    that behind until it is checked again, but take down no verdict that leans on something else.
    """
    given = set(heard.verdicts.values())
    for side, ids in heard.sides.items():
        standing = [known[one] for one in ids if not _fell(known[one])]
        if any(one.step not in heard.verdicts for one in standing):
            given.add(side)
        if ids and not standing:
            given.add("inconclusive")
    if not given and heard.tested_by:
        return "inconclusive"
    if {"supported", "refuted"} <= given:
        return "inconclusive"
    order: tuple[Standing, ...] = ("refuted", "supported", "inconclusive", "testing")
    return next((one for one in order if one in given), planned)


def _fallen(evidence: Iterable[Evidence], stands: Mapping[str, Hypothesis]) -> tuple[str, ...]:
    stale = [one.id for one in evidence if one.stale]
    return (*stale, *(name for name, one in stands.items() if one.stale))


def sure(one: Evidence, ledger: Ledger) -> float | None:
    """How sure a piece of evidence is: contested is nothing, a synthesis at most what it stands on."""
    if one.contested:
        return 0.0
    return bounded(one.id, counting(ledger))


def counting(ledger: Ledger) -> dict[str, Weight]:
    """What counts of the evidence, and of what that stands on."""
    return weights((*ledger.evidence, *ledger.past), ledger.found_by)


def loose_ends(ledger: Ledger) -> list[tuple[StepId, str]]:
    """What handoffs name as if it were an entry and nobody said: ids that are not there."""
    known = {one.id for one in (*ledger.evidence, *ledger.past)} | {
        one.id for one in (*ledger.handoffs, *ledger.superseded)
    }
    named = ((one.step, name) for one in ledger.handoffs for name in cited(one.handoff))
    return [
        *ledger.unmatched,
        *((step, name) for step, name in named if name[:2] in {"e-", "h-"} and name not in known),
    ]
