"""ledger contest: what people doubt, and what falls with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import click

from holdfast.cli.again import out_next
from holdfast.cli.ahead import Ahead, gather
from holdfast.cli.course import Course, course
from holdfast.cli.measure import count
from holdfast.cli.outlook import time_words
from holdfast.cli.place import Place, file_option, json_option, place, place_options
from holdfast.cli.prices import price_parts
from holdfast.cli.say import out, out_json
from holdfast.cli.words import (
    Known,
    answer,
    because_option,
    known,
    replaced,
    said_line,
    take_back_option,
    that_counts,
)
from holdfast.core.above import stands_for, step_meant
from holdfast.core.evidence import names_source
from holdfast.core.ledger import Hypothesis, Ledger
from holdfast.core.preview import Outlook
from holdfast.core.questions import Uncertainty
from holdfast.core.reasons import sentence
from holdfast.core.said import Said
from holdfast.core.views import usd
from holdfast.engine.elsewhere import stale_steps
from holdfast.engine.lines import line_journal
from holdfast.engine.speaker import check_text
from holdfast.engine.words import contests_in, steps_behind
from holdfast.errors import PlanError, UsageError
from holdfast.model.digest import Json
from holdfast.model.event import Options, Reason
from holdfast.model.handoff import Standing
from holdfast.model.line import LedgerSaid
from holdfast.model.plan import StepId
from holdfast.model.sources import source_name
from holdfast.model.text import one_line

_NEAR = 5  # sources that are named because they are nearly the same
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Fall:
    """What falls with a contest, the steps it is about, and what a run would do then."""

    entry: str
    text: str
    steps: Sequence[StepId]
    ledger: Ledger
    before: Mapping[str, Standing]  # how hypotheses stood
    reopened: Sequence[Uncertainty]  # questions whose answer falls
    stale: dict[StepId, tuple[str, ...]]
    ahead: Ahead | None
    way: Course | None
    already: str  # why it was contested before
    near: Sequence[str]  # sources that have nearly the same name, and stand

    @property
    def hypotheses(self) -> dict[str, Hypothesis]:
        """Those that lean on what is contested."""
        return {name: one for name, one in self.ledger.hypotheses.items() if one.stale}

    @property
    def again(self) -> list[tuple[StepId, str, str]]:
        """The steps that would run, or may, with the reason."""
        if self.ahead is None:
            return []
        return [
            (step_id, one.decision, self._why(step_id, one))
            for step_id, one in self.ahead.outlooks.items()
            if one.is_work
        ]

    def _why(self, step_id: StepId, one: Outlook) -> str:
        """Before it is said, a step that would be contested is looked at as if it were asked for."""
        reason = one.reason
        if one.decision == "maybe" and reason.code == "upstream_changed":
            return f"only if {', '.join(reason.because)} changes"
        if step_id in self.steps and reason.code == "forced":
            contested = (*(one.probe.contested if one.probe else ()), self.entry)
            reason = Reason("evidence_contested", tuple(dict.fromkeys(contested)))
        theirs = [*one.edited, *one.replaced]
        goes = f"; a person's version of {', '.join(theirs)} is replaced" if theirs else ""
        return sentence(reason) + goes


@click.command(
    epilog="\b\nExample:\n  holdfast ledger contest e-1f3c --because 'counted twice' --dry-run\n"
    "  holdfast ledger contest stations.csv --because 'it is of last year'\n"
    "  holdfast ledger contest e-1f3c --take-back --because 'it was right'"
)
@click.argument("entry", metavar="ID|STEP|SOURCE")
@because_option
@click.option("--dry-run", is_flag=True, help="Only show what would fall, and what it would cost.")
@take_back_option
@file_option
@place_options
@json_option
def contest(
    entry: str,
    because: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    dry_run: bool,
    take_back: bool,
    as_json: bool,
) -> int:
    """Contest evidence, a handoff, a step or a source; what stands on it becomes stale.

    It shows what falls, which steps would be checked again, and what that takes. Nothing runs: the next run
    makes the contested steps again, and what is below them only if that changes what it reads.
    """
    reason = check_text(because, "--because")
    where = place(plan, store, plan_id)
    if take_back:
        with known(where, readonly=dry_run) as here:
            meant = _contested(here, entry)
            said = _take_back(here, meant, reason, dry_run=dry_run)
        answer(said, _text(here.ledger, meant), reason, as_json=as_json)
        return 0
    fall = contested(where, entry, reason, dry_run=dry_run)
    if as_json:
        out_json(_fall_json(fall, reason, dry_run=dry_run))
        return 0
    for line in fall_lines(fall, dry_run=dry_run):
        out(line)
    again = f"holdfast ledger contest {fall.entry}"
    out_next(
        f"{again} --because …" if dry_run else f"holdfast run    {again} --take-back --because …"
    )
    return 0


def contested(
    where: Place, entry: str, because: str, *, dry_run: bool, terminal: bool | None = None
) -> Fall:
    """Contest something, or only see what would fall with it.

    `terminal` says that a person saw what falls and says so himself; else the view knows.
    """
    with known(where, readonly=dry_run) as here:
        meant = _contested(here, entry)
        steps = steps_behind(here.ledger, here.state, meant)
        if not dry_run:
            here.speaker(terminal).contest(meant, steps, because)
        return _fall(here, meant, steps, because, dry_run=dry_run)


def taken_back(where: Place, entry: str, because: str, *, terminal: bool) -> list[str]:
    """Say that something stands again, and tell so."""
    with known(where) as here:
        meant = _contested(here, entry)
        said = _take_back(here, meant, because, dry_run=False, terminal=terminal)
        return [said_line(said, _text(here.ledger, meant))]


def _take_back(
    here: Known, entry: str, because: str, *, dry_run: bool, terminal: bool | None = None
) -> LedgerSaid:
    if entry not in contests_in(here.said):
        raise UsageError(f"'{entry}' is not contested", hint="holdfast ledger")
    if dry_run:
        raise UsageError("--dry-run and --take-back contradict each other")
    return here.speaker(terminal).about("uphold", entry, because)


def _contested(here: Known, name: str) -> str:
    """What is meant: a step, a source, or an entry by its id or the beginning of it."""
    ledger, own = here.ledger, source_name(name)
    every = (*ledger.evidence, *ledger.past)
    doubted = contests_in(here.said)
    if name in here.state.steps or name in doubted:
        return name
    if any(name == one.source or names_source(one, own) for one in every):
        return next((one for one in doubted if source_name(one) == own), name)
    texts = {one.id: one.finding for one in every}
    texts |= {one.id: one.handoff.attempted for one in ledger.handoffs}
    kind, near = "evidence, handoff, step or source", near_sources(ledger, name)
    hint = f"sources like it: {'; '.join(near)}" if near else "holdfast ledger evidence"
    if step := step_meant(here.state.steps)(name):
        hint = f"is the step '{step}' meant?"
    return that_counts(ledger, name, texts, kind, hint)


def near_sources(ledger: Ledger, name: str) -> list[str]:
    """Sources that stand and nearly have this name: another path to such a file, or more or fewer words."""
    own = source_name(name)
    found = {
        one: None
        for evidence in ledger.evidence
        if not evidence.contested
        for one in evidence.sources
        if one != own and _is_near(own, one)
    }
    return [*found][:_NEAR]


def _is_near(one: str, other: str) -> bool:
    """Whether two have the same letters and digits, or the words of one are among those of the other."""
    less, more = sorted((_WORD.findall(one), _WORD.findall(other)), key=len)
    if not less or "".join(less) == "".join(more):
        return bool(less)
    return any(more[at : at + len(less)] == less for at in range(len(more) - len(less) + 1))


def _fall(here: Known, entry: str, steps: Sequence[StepId], because: str, *, dry_run: bool) -> Fall:
    """What falls. Before it is said, the steps are looked at as if they were asked for."""
    journal = line_journal(here.state.project, here.state.line)
    word = Said("contest", entry, because, place=here.store.last(journal) + 1)
    ledger = here.with_word(word)
    stale = stale_steps(here.store, here.state, ledger)
    unsaid, forced = ([word], steps) if dry_run else ((), ())
    way = _way(here.where, forced, unsaid)
    ahead = None if way is None else gather(way.where, way.loaded, way.options, unsaid=unsaid)
    already = _doubted(here, entry)
    before = {name: one.status for name, one in here.ledger.hypotheses.items()}
    reopened = _reopened(here.ledger, ledger)
    near = near_sources(ledger, entry) if _is_source(ledger, entry) else []
    text = _text(ledger, entry)
    return Fall(entry, text, steps, ledger, before, reopened, stale, ahead, way, already, near)


def _reopened(before: Ledger, after: Ledger) -> list[Uncertainty]:
    answered = {one.id for one in before.uncertainties if one.status == "resolved"}
    return [one for one in after.uncertainties if one.id in answered and one.status != "resolved"]


def _is_source(ledger: Ledger, entry: str) -> bool:
    own = source_name(entry)
    return any(entry == one.source or names_source(one, own) for one in ledger.evidence)


def _doubted(here: Known, entry: str) -> str:
    """Why something is contested already; empty if it is not, or if its step has told anew since."""
    word = contests_in(here.said).get(entry)
    if word is None:
        return ""
    behind = stands_for(here.state.plan.steps, entry)
    told = [one.place for one in here.ledger.handoffs if one.step in behind]
    return "" if told and 0 < word.place < min(told) else word.text


def _way(where: Place, steps: Sequence[StepId], unsaid: Sequence[Said]) -> Course | None:
    """The plan that a run comes to, these steps made again; None if it cannot be read as it is now."""
    try:
        return course(where, where.load(), Options(), steps, unsaid)
    except (PlanError, UsageError):
        return None


def _text(ledger: Ledger, entry: str) -> str:
    for one in (*ledger.evidence, *ledger.past):
        if one.id == entry:
            return one.finding
    for told in ledger.handoffs:
        if told.id == entry:
            return told.handoff.attempted
    return entry


def fall_lines(fall: Fall, *, dry_run: bool) -> Iterable[str]:
    """What falls, in words."""
    word = "would be contested" if dry_run else "contested"
    own = f" ({fall.entry})" if fall.text != fall.entry else ""
    yield f"{word}: {one_line(fall.text)}{own}"
    yield from replaced(fall.already)
    if fall.near:
        yield f"sources like it that stand: {'; '.join(map(one_line, fall.near))}"
    fallen = [one for one in fall.ledger.evidence if one.stale]
    if fallen or fall.hypotheses or fall.stale:
        yield f"stale ({len(fallen) + len(fall.hypotheses) + len(fall.stale)})"
    for one in fallen:
        yield f"  {one_line(one.finding)} · {one.id} · from {one.step or 'a person'}"
    for name, found in fall.hypotheses.items():
        was = fall.before[name]
        yield f"  hypothesis {one_line(name)}: {found.status}" + (
            f", was {was}" if was != found.status else ""
        )
    for step_id in fall.stale:
        yield f"  step {step_id}: it was told of it"
    for question in fall.reopened:
        yield f"{question.status} again: {one_line(question.question)} · {question.id}"
    again = fall.again
    if fall.ahead is None or fall.way is None:
        yield "the plan cannot be read as it is now, so nobody can say what a run would check again"
        return
    yield from fall.way.lines
    if not again:
        yield "no step would be checked again"
        return
    yield f"a run would check again ({count(len(again), 'step')} of {len(fall.ahead.outlooks)})"
    for step_id, _, why in again:
        yield f"  {step_id}: {why}"
    took = time_words(fall.ahead) if fall.ahead.estimate.attempts else "time unknown"
    yield " · ".join([took, *(price_parts(fall.ahead) or ["no model is asked"])])


def _fall_json(fall: Fall, because: str, *, dry_run: bool) -> dict[str, Json]:
    ahead = fall.ahead
    return {
        "schema": "holdfast.contest/1",
        "dry_run": dry_run,
        "entry": fall.entry,
        "text": fall.text,
        "because": because,
        "already": fall.already or None,
        "near": [*fall.near],
        "steps": [*fall.steps],
        "stale": {
            "evidence": [one.id for one in fall.ledger.evidence if one.stale],
            "hypotheses": [*fall.hypotheses],
            "steps": {step: [*held] for step, held in fall.stale.items()},
        },
        "hypotheses": {
            name: {"status": one.status, "was": fall.before[name]}
            for name, one in fall.hypotheses.items()
        },
        "uncertainties": {
            one.id: {"status": one.status, "was": "resolved"} for one in fall.reopened
        },
        "again": [
            {"step": step, "decision": decision, "why": why} for step, decision, why in fall.again
        ],
        "duration_ms": None if ahead is None else ahead.estimate.typical,
        "cost_usd": None if ahead is None else usd(ahead.money.p50),
        "replan": None if fall.way is None else fall.way.json(),
    }
