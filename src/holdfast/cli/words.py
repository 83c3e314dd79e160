"""ledger add, resolve, contest, apart: what people say about the ledger, and what falls with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import click

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.ahead import Ahead, gather
from holdfast.cli.course import Course, course
from holdfast.cli.ending import is_settled
from holdfast.cli.measure import count
from holdfast.cli.outlook import time_words
from holdfast.cli.place import Place, file_option, find_run, json_option, place, place_options
from holdfast.cli.prices import price_parts
from holdfast.cli.say import out, out_json
from holdfast.cli.show import load_state
from holdfast.cli.view import view
from holdfast.core.above import stands_for
from holdfast.core.ledger import Hypothesis, Ledger
from holdfast.core.preview import Outlook
from holdfast.core.reasons import sentence
from holdfast.core.said import Said, own_entry, upheld
from holdfast.core.single import past_of, questions_of
from holdfast.core.state import State
from holdfast.core.views import usd
from holdfast.engine.elsewhere import stale_steps
from holdfast.engine.handoffs import Handoffs
from holdfast.engine.ledgers import ledger_of
from holdfast.engine.lines import line_journal
from holdfast.engine.speaker import Speaker, check_text
from holdfast.engine.words import contests_in, steps_behind
from holdfast.errors import PlanError, UsageError
from holdfast.model.digest import Json
from holdfast.model.event import Options, Reason
from holdfast.model.handoff import Standing
from holdfast.model.line import LedgerSaid, LedgerWord
from holdfast.model.plan import StepId
from holdfast.model.text import one_line
from holdfast.ports import Store

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Known:
    """The last run of a line with its ledger, and what people said of it."""

    where: Place
    store: Store
    state: State
    handoffs: Handoffs
    ledger: Ledger

    @property
    def said(self) -> Sequence[Said]:
        """What people said, in the order of the journal."""
        return self.handoffs.said

    def with_word(self, word: Said) -> Ledger:
        """The ledger as it would be after one more word."""
        return ledger_of(self.state, self.handoffs, wire.alike, [*self.said, word], audit=True)

    def speaker(self) -> Speaker:
        """Whoever speaks here; UsageError inside a step."""
        person = wire.person(self.store, self.where.location, terminal=view().asks)
        return Speaker(self.store, self.state, person, wire.now_ms, self.where.hidden(self.store))


@contextmanager
def known(where: Place, *, readonly: bool = False) -> Iterator[Known]:
    """The ledger of the last run of the line, to speak about."""
    if not where.exists():
        raise UsageError("there is no run yet", hint="holdfast run")
    store = where.open(readonly=readonly)
    try:
        state = load_state(store, find_run(store, None, where.line()))
        handoffs = Handoffs(store, state.project, state.line)
        handoffs.refresh()
        ledger = ledger_of(state, handoffs, wire.alike, handoffs.said, audit=True)
        yield Known(where, store, state, handoffs, ledger)
    finally:
        store.close()


def because_option(command: F) -> F:
    """Why something is said; nothing counts without."""
    return click.option(
        "--because", required=True, metavar="TEXT", help="Why; kept with what you say."
    )(command)


def take_back_option(command: F) -> F:
    """Say the opposite of what was said."""
    return click.option(
        "--take-back", is_flag=True, help="Take it back: as if it had not been said."
    )(command)


# --- add ------------------------------------------------------------------------------------------


@click.command(
    epilog="\b\nExample:\n  holdfast ledger add gap 'the map' --because 'no data yet'\n"
    "  holdfast ledger add evidence 'station 7 is closed' --because 'I called them'"
)
@click.argument("kind", metavar="KIND", type=click.Choice(["evidence", "uncertainty", "gap"]))
@click.argument("text", metavar="TEXT")
@because_option
@take_back_option
@file_option
@place_options
@json_option
def add(
    kind: LedgerWord,
    text: str,
    because: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    take_back: bool,
    as_json: bool,
) -> int:
    """Add evidence, an uncertainty or a gap of your own; KIND says which.

    What was answered before is open again.
    """
    words, reason = check_text(text, "the text"), check_text(because, "--because")
    with known(place(plan, store, plan_id)) as here:
        speaker = here.speaker()
        own = speaker.own(kind, words)
        if take_back:
            if own not in map(own_entry, upheld(here.said)):
                raise UsageError(f"nobody added '{one_line(words)}'", hint="holdfast ledger")
            said = speaker.about("withdraw", own, reason)
        elif doubted := contests_in(here.said).get(own):
            raise UsageError(
                f"'{own}' is contested, and stays so: {one_line(doubted.text)}",
                hint=f"holdfast ledger contest {own} --take-back --because …",
            )
        else:
            said = speaker.add(kind, words, reason)
    _answer(said, words, because, as_json=as_json)
    return 0


# --- resolve, apart -------------------------------------------------------------------------------


@click.command(epilog="\b\nExample:\n  holdfast ledger resolve u-1f3c --because 'they all answer'")
@click.argument("entry", metavar="ID")
@because_option
@take_back_option
@file_option
@place_options
@json_option
def resolve(
    entry: str,
    because: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    take_back: bool,
    as_json: bool,
) -> int:
    """Say that a question is answered, or that a gap is closed."""
    with known(place(plan, store, plan_id)) as here:
        texts = questions_of(here.ledger) | {one.id: one.item for one in here.ledger.gaps}
        kind, hint = "question or gap", "holdfast ledger --open"
        found = _that_counts(here.ledger, entry, texts, kind, hint)
        reason = check_text(because, "--because")
        if take_back:
            _answer(_opened(here, found, reason), texts[found], because, as_json=as_json)
            return 0
        said = here.speaker().about("resolve", found, reason)
        already = _resolved(here.ledger, found)
        goes_on = is_settled(here.store, here.state)
    _answer(said, texts[found], because, already, as_json=as_json, goes_on=goes_on)
    return 0


@click.command(epilog="\b\nExample:\n  holdfast ledger apart e-1f3c e-22ab --because 'two rivers'")
@click.argument("entry", metavar="ID")
@click.argument("other", metavar="ID")
@click.option("--because", default="", metavar="TEXT", help="Why; kept with what you say.")
@take_back_option
@file_option
@place_options
@json_option
def apart(
    entry: str,
    other: str,
    because: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    take_back: bool,
    as_json: bool,
) -> int:
    """Keep two entries apart that were taken for one because they say nearly the same."""
    with known(place(plan, store, plan_id)) as here:
        texts = {one.id: one.finding for one in here.ledger.evidence}
        texts |= questions_of(here.ledger)
        kind, hint = "finding or question", "holdfast ledger evidence"
        one, two = (_that_counts(here.ledger, id_, texts, kind, hint) for id_ in (entry, other))
        if one == two:
            raise UsageError(f"'{one}' is one entry", hint="name two that are taken for one")
        if one[:2] != two[:2]:
            raise UsageError(f"'{one}' and '{two}' cannot be kept apart: they are never one")
        already = _parted(here.said, one, two)
        if take_back:
            if not already:
                raise UsageError(f"nobody keeps '{one}' and '{two}' apart", hint="holdfast ledger")
            said = here.speaker().about("rejoin", one, because.strip(), other=two)
            _answer(said, f"{texts[one]} / {texts[two]}", because, as_json=as_json)
            return 0
        heads = _heads(here.ledger)
        if heads[one] != heads[two] and not already:
            raise UsageError(
                f"'{one}' and '{two}' are not taken for one", hint=f"holdfast ledger {one}"
            )
        said = here.speaker().about("apart", one, because.strip(), other=two)
    _answer(said, f"{texts[one]} / {texts[two]}", because, already, as_json=as_json)
    return 0


def _opened(here: Known, entry: str, because: str) -> LedgerSaid:
    """Take back that people resolved a question or a gap, by whichever of its ids they did."""
    heads = _heads(here.ledger)
    head = heads.get(entry, entry)
    words = [one.entry for one in upheld(here.said) if one.word == "resolve"]
    names = dict.fromkeys(name for name in words if heads.get(name, name) == head)
    if not names:
        raise UsageError(f"nobody resolved '{entry}'", hint="holdfast ledger")
    return [here.speaker().about("uphold", name, because) for name in names][-1]


def _resolved(ledger: Ledger, entry: str) -> str:
    """Who answered a question or closed a gap before, and why; empty if nobody did."""
    for gap in ledger.gaps:
        if gap.id == entry:
            return gap.closed
    for one in ledger.uncertainties:
        if entry in {one.id, *(same.id for same in one.merged)} and one.status == "resolved":
            return one.because or f"{one.resolved_by} answered it"
    return ""


def _parted(said: Sequence[Said], one: str, other: str) -> str:
    """That somebody keeps two entries apart already, and why; empty if nobody does."""
    words = [w for w in upheld(said) if w.word == "apart" and {w.entry, w.text} == {one, other}]
    return (words[-1].because or f"{words[-1].by} keeps them apart") if words else ""


def _heads(ledger: Ledger) -> dict[str, str]:
    """For each finding and each question the one that it is taken for."""
    merged = {same.id: one.id for one in ledger.uncertainties for same in one.merged}
    merged |= {one.id: one.id for one in ledger.uncertainties}
    return merged | {one.id: one.head for one in ledger.evidence}


# --- contest --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fall:
    """What falls with a contest, the steps it is about, and what a run would do then."""

    entry: str
    text: str
    steps: Sequence[StepId]
    ledger: Ledger
    before: Mapping[str, Standing]  # how hypotheses stood
    stale: dict[StepId, tuple[str, ...]]
    ahead: Ahead | None
    way: Course | None
    already: str  # why it was contested before

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
    with known(where, readonly=dry_run) as here:
        meant = _contested(here, entry)
        if take_back:
            said = _take_back(here, meant, reason, dry_run=dry_run)
            _answer(said, _text(here.ledger, meant), reason, as_json=as_json)
            return 0
        steps = steps_behind(here.ledger, here.state, meant)
        if not dry_run:
            here.speaker().contest(meant, steps, reason)
        fall = _fall(here, meant, steps, reason, dry_run=dry_run)
    if as_json:
        out_json(_fall_json(fall, reason, dry_run=dry_run))
        return 0
    for line in _fall_lines(fall, dry_run=dry_run):
        out(line)
    again = f"holdfast ledger contest {meant}"
    out_next(
        f"{again} --because …" if dry_run else f"holdfast run    {again} --take-back --because …"
    )
    return 0


def _take_back(here: Known, entry: str, because: str, *, dry_run: bool) -> LedgerSaid:
    if entry not in contests_in(here.said):
        raise UsageError(f"'{entry}' is not contested", hint="holdfast ledger")
    if dry_run:
        raise UsageError("--dry-run and --take-back contradict each other")
    return here.speaker().about("uphold", entry, because)


def _contested(here: Known, name: str) -> str:
    """What is meant: a step, a source, or an entry by its id or the beginning of it."""
    ledger = here.ledger
    if name in here.state.steps or any(one.source == name for one in ledger.evidence):
        return name
    if name in contests_in(here.said):
        return name
    texts = {one.id: one.finding for one in ledger.evidence}
    texts |= {one.id: one.handoff.attempted for one in ledger.handoffs}
    kind = "evidence, handoff, step or source"
    return _that_counts(ledger, name, texts, kind, "holdfast ledger evidence")


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
    return Fall(entry, _text(ledger, entry), steps, ledger, before, stale, ahead, way, already)


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
    for one in ledger.evidence:
        if one.id == entry:
            return one.finding
    for told in ledger.handoffs:
        if told.id == entry:
            return told.handoff.attempted
    return entry


def _fall_lines(fall: Fall, *, dry_run: bool) -> Iterable[str]:
    word = "would be contested" if dry_run else "contested"
    own = f" ({fall.entry})" if fall.text != fall.entry else ""
    yield f"{word}: {one_line(fall.text)}{own}"
    yield from _replaced(fall.already)
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
        "again": [
            {"step": step, "decision": decision, "why": why} for step, decision, why in fall.again
        ],
        "duration_ms": None if ahead is None else ahead.estimate.typical,
        "cost_usd": None if ahead is None else usd(ahead.money.p50),
        "replan": None if fall.way is None else fall.way.json(),
    }


# --- words ----------------------------------------------------------------------------------------


def found_entry(name: str, texts: dict[str, str], kind: str, hint: str) -> str:
    """The one entry whose id begins so."""
    fits = [name] if name in texts else [one for one in texts if one.startswith(name) and name]
    if len(fits) == 1:
        return fits[0]
    if not fits:
        raise UsageError(f"the ledger has no {kind} '{name}'", hint=hint)
    raise UsageError(f"'{name}' may be {', '.join(fits)}", hint="say more of the id")


def _that_counts(ledger: Ledger, name: str, texts: dict[str, str], kind: str, hint: str) -> str:
    """The same of what counts; UsageError that says so if a step told it earlier and tells it no more."""
    if not any(one.startswith(name) for one in texts):
        gone = [one for one in past_of(ledger) if one.startswith(name)]
        if len(gone) == 1:
            raise UsageError(
                f"'{gone[0]}' counts no more: its step handed over something else since",
                hint=f"holdfast ledger {gone[0]}",
            )
    return found_entry(name, texts, kind, hint)


_SAID = {
    "evidence": "added evidence",
    "uncertainty": "added a question",
    "gap": "added a gap",
    "resolve": "resolved",
    "uphold": "stands again",
    "apart": "kept apart",
    "rejoin": "taken back",
    "withdraw": "taken back",
}


def _replaced(already: str) -> Iterable[str]:
    """A word that was said before; the new one takes its place."""
    if already:
        yield f"it was already: {one_line(already)}; what you say takes its place"


def _answer(
    said: LedgerSaid,
    text: str,
    because: str,
    already: str = "",
    *,
    as_json: bool,
    goes_on: bool = False,
) -> None:
    """Say what was said; a run that was held for it `goes_on` when somebody resumes it."""
    if as_json:
        out_json(
            {
                "schema": "holdfast.word/1",
                "word": said.word,
                "entry": said.entry or None,
                "other": said.other or None,
                "text": text,
                "because": because or None,
                "already": already or None,
                "by": said.by,
            }
        )
        return
    is_answer = said.word == "uphold" and said.entry[:2] in {"u-", "g-"}
    out(f"{'taken back' if is_answer else _SAID[said.word]}: {one_line(text)}")
    for line in _replaced(already):
        out(line)
    out_next("holdfast resume    holdfast ledger" if goes_on else "holdfast ledger")
