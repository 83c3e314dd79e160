"""When a plan no longer holds: four triggers, each of which a plan can tune or turn off.

    assumption  a finding refutes what the plan takes for known, or an open question doubts it; whether a
                step or a person says so
    gaps        more critical things were left undone than the plan allows; critical is what a `must`
                requirement asks for, or what a step left undone that serves one
    hypothesis  one was refuted that the plan stands on
    request     a handoff asks for another plan

What a contested handoff asks for, or asks, is no cause.

They are looked at when all steps of a wave are settled, on the ledger up to that wave, so that the same
work always leads to the same decision. What was decided once is not decided again: a trigger is known by
its id, and those that an earlier plan answered are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Literal

from holdfast.core.evidence import Evidence
from holdfast.core.ledger import Gap, Ledger
from holdfast.core.likeness import holds, spelled
from holdfast.core.said import Said, upheld
from holdfast.model.digest import digest_json
from holdfast.model.fixed import fixed
from holdfast.model.handoff import Handoff, Standing
from holdfast.model.pattern import Pattern
from holdfast.model.plan import StepId

Cause = Literal["assumption", "gaps", "hypothesis", "request"]
_ASKS = "need to replan"
_FILLING = """
    a an the any real strict urgent further longer i we you they one it there that if whether will would shall
    should may might do does is are be am think thinks believe believes see sees feel feels say says expect
    expects really now yet still currently sure certain clear convinced
"""  # what may stand between a denial and what it denies
_DENIES = Pattern(
    r"(?:\b(?:no|not|never|without|nobody|none|neither|nor|hardly)|n['\u2019]t)"
    rf" (?:(?:{'|'.join(_FILLING.split())}) ){{0,4}}{_ASKS}"
)
_NAMED = 5  # gaps that are called by name
_DOUBTS = frozenset({"uncertainty", "evidence"})  # words of people that may doubt what is known


@fixed
class Rules:
    """What makes a plan be made again. `gaps` is how many critical ones are borne."""

    assumptions: bool = True
    gaps: int | None = 3
    hypotheses: bool = True
    requests: bool = True
    rounds: int = 1
    ask: bool = True  # a person says yes before another plan takes its place
    to: str = ""  # the file of that plan, if it was written beforehand


@fixed
class Premises:
    """What a plan stands on: known facts, `must` requirements by id, and critical hypotheses."""

    known: tuple[str, ...] = ()
    musts: Mapping[str, str] = field(default_factory=dict)
    critical: frozenset[str] = frozenset()


@fixed
class Trigger:
    """A cause, the entries of the ledger behind it, and the words for a person."""

    cause: Cause
    about: str
    entries: tuple[str, ...]
    step: StepId
    words: str

    @property
    def id(self) -> str:
        """Equal for the same cause: it is answered once."""
        return f"t-{digest_json([self.cause, self.about, sorted(self.entries)])[:12]}"


def triggers(
    ledger: Ledger, premises: Premises, rules: Rules, answered: Collection[str] = ()
) -> list[Trigger]:
    """Everything that speaks against the plan and was not answered by an earlier one."""
    found = [
        *(_assumptions(ledger, premises) if rules.assumptions else ()),
        *(_gaps(ledger, premises, rules.gaps) if rules.gaps is not None else ()),
        *(_hypotheses(ledger, premises) if rules.hypotheses else ()),
        *(_requests(ledger) if rules.requests else ()),
    ]
    return [one for one in found if one.id not in answered]


def may_matter(handoff: Handoff, premises: Premises, rules: Rules) -> bool:
    """Whether a handoff says anything that a trigger could come of; most say nothing of the kind."""
    asks = bool(handoff.replan) or _asks(handoff.uncertainty)
    doubts = bool(handoff.uncertainty) or any(one.refutes for one in handoff.observed)
    return (
        (rules.requests and asks)
        or (rules.assumptions and bool(premises.known) and doubts)
        or (rules.gaps is not None and bool(premises.musts) and bool(handoff.not_done))
        or (rules.hypotheses and not premises.critical.isdisjoint(_spoken_of(handoff)))
    )


def may_matter_besides(
    said: Iterable[Said], stands: Mapping[str, Standing], premises: Premises, rules: Rules
) -> bool:
    """The same of what no handoff says: what people add to the ledger, and what the plan says itself."""
    words = {one.word for one in upheld([*said])}
    refuted = {name for name, status in stands.items() if status == "refuted"}
    return (
        (rules.assumptions and bool(premises.known) and not words.isdisjoint(_DOUBTS))
        or (rules.gaps is not None and bool(premises.musts) and "gap" in words)
        or (rules.hypotheses and not premises.critical.isdisjoint(refuted))
        or (rules.hypotheses and bool(premises.critical) and "evidence" in words)
    )


def _asks(question: str) -> bool:
    """Whether a question says that another plan is needed, and not that none is."""
    said = " ".join(question.casefold().split())
    return said.count(_ASKS) > len(_DENIES.findall(said))


def _spoken_of(handoff: Handoff) -> Iterator[str]:
    yield from handoff.hypotheses
    for one in handoff.observed:
        yield from one.refutes


def _assumptions(ledger: Ledger, premises: Premises) -> Iterator[Trigger]:
    known = {spelled(text): text for text in premises.known if spelled(text).words}
    by_words = {words: text for (words, _), text in known.items()}
    for one in ledger.evidence:
        for name in one.refutes:
            text = by_words.get(spelled(name).words)
            if text is not None and not (one.contested or one.stale):
                yield _assumed(text, one)
    fell = {one.step for one in ledger.handoffs if one.id in ledger.contested}
    for question in ledger.uncertainties:
        if question.status == "resolved" or fell.issuperset(question.raised_by):
            continue
        asked = (question.question, *question.same)
        for words, text in known.items():
            if any(holds(one, words) for one in asked):
                doubt = f"an open question doubts '{text}': {question.question}"
                yield Trigger("assumption", text, (question.id,), question.step, doubt)


def _assumed(text: str, one: Evidence) -> Trigger:
    words = f"a finding refutes '{text}': {one.finding}"
    return Trigger("assumption", text, (one.id,), one.step, words)


def _gaps(ledger: Ledger, premises: Premises, borne: int) -> Iterator[Trigger]:
    every = [one for one in ledger.gaps if _is_critical(one, premises)]
    critical = [one for one in every if not one.closed]
    if len(critical) > borne:
        items = ", ".join(one.item for one in critical[:_NAMED])
        more = f" and {len(critical) - _NAMED} more" if len(critical) > _NAMED else ""
        are = "is" if borne == 1 else "are"
        many = "things were" if len(critical) > 1 else "thing was"
        words = f"{len(critical)} critical {many} not done, {borne} {are} borne: {items}{more}"
        ids = tuple(one.id for one in every)  # that one is closed makes no other cause of it
        yield Trigger("gaps", "", ids, critical[-1].step, words)


def _is_critical(gap: Gap, premises: Premises) -> bool:
    """Whether it leaves a `must` requirement open: it names one, its step serves one, or it says so.

    It says so by the words of one, or by its id at the beginning; an id may be a word like any other.
    """
    if gap.requirements:
        return any(name in premises.musts for name in gap.requirements)
    if any(name in premises.musts for name in gap.serves):
        return True
    if gap.item.partition(":")[0].strip() in premises.musts:
        return True
    texts = [spelled(text) for text in premises.musts.values()]
    return any(holds(said, text) for said in (gap.item, gap.reason) for text in texts)


def _hypotheses(ledger: Ledger, premises: Premises) -> Iterator[Trigger]:
    for name, one in ledger.hypotheses.items():
        if one.status == "refuted" and name in premises.critical:
            steps = one.tested_by or one.evidence_steps
            step = steps[-1] if steps else StepId("")
            words = f"'{name}' was refuted, and the plan stands on it"
            found = (*one.refuting, *one.fallen_against)  # a contest of some makes no other cause
            yield Trigger("hypothesis", name, (name, *found), step, words)


def _requests(ledger: Ledger) -> Iterator[Trigger]:
    for one in ledger.handoffs:
        reason = one.handoff.replan
        if not reason and _asks(one.handoff.uncertainty):
            reason = one.handoff.uncertainty
        if reason and one.id not in ledger.contested:
            words = f"'{one.step}' asks for another plan: {reason}"
            yield Trigger("request", reason, (one.id,), one.step, words)
