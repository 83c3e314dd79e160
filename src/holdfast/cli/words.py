"""ledger add, resolve, apart: what people say about the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import click

from holdfast import wire
from holdfast.cli.again import out_next
from holdfast.cli.ending import is_settled
from holdfast.cli.place import Place, file_option, find_run, json_option, place, place_options
from holdfast.cli.say import out, out_json
from holdfast.cli.show import load_state
from holdfast.cli.view import view
from holdfast.core.ledger import Ledger
from holdfast.core.said import Said, own_entry, upheld
from holdfast.core.single import past_of, questions_of
from holdfast.core.state import State
from holdfast.engine.handoffs import Handoffs
from holdfast.engine.ledgers import ledger_of
from holdfast.engine.speaker import Speaker, check_text
from holdfast.engine.words import contests_in
from holdfast.errors import UsageError
from holdfast.model.handoff import as_id
from holdfast.model.line import LedgerSaid, LedgerWord
from holdfast.model.text import one_line
from holdfast.ports import Store

TOLD_ELSE = "its step handed over something else since, or left the plan"
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

    def speaker(self, terminal: bool | None = None) -> Speaker:
        """Whoever speaks here; UsageError inside a step. `terminal`: somebody answers himself."""
        sees = view().asks if terminal is None else terminal
        person = wire.person(self.store, self.where.location, terminal=sees)
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
    answer(said, words, because, as_json=as_json)
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
        found = that_counts(here.ledger, entry, texts, kind, hint)
        reason = check_text(because, "--because")
        if take_back:
            answer(_opened(here, found, reason), texts[found], because, as_json=as_json)
            return 0
        said = here.speaker().about("resolve", found, reason)
        already = _resolved(here.ledger, found)
        goes_on = is_settled(here.store, here.state)
    answer(said, texts[found], because, already, as_json=as_json, goes_on=goes_on)
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
        one, two = (that_counts(here.ledger, id_, texts, kind, hint) for id_ in (entry, other))
        if one == two:
            raise UsageError(f"'{one}' is one entry", hint="name two that are taken for one")
        if one[:2] != two[:2]:
            raise UsageError(f"'{one}' and '{two}' cannot be kept apart: they are never one")
        already = _parted(here.said, one, two)
        if take_back:
            if not already:
                raise UsageError(f"nobody keeps '{one}' and '{two}' apart", hint="holdfast ledger")
            said = here.speaker().about("rejoin", one, because.strip(), other=two)
            answer(said, f"{texts[one]} / {texts[two]}", because, as_json=as_json)
            return 0
        heads = _heads(here.ledger)
        if heads[one] != heads[two] and not already:
            raise UsageError(
                f"'{one}' and '{two}' are not taken for one", hint=f"holdfast ledger {one}"
            )
        said = here.speaker().about("apart", one, because.strip(), other=two)
    answer(said, f"{texts[one]} / {texts[two]}", because, already, as_json=as_json)
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


# --- words ----------------------------------------------------------------------------------------


def found_entry(name: str, texts: dict[str, str], kind: str, hint: str) -> str:
    """The one entry whose id begins so."""
    fits = [name] if name in texts else [one for one in texts if one.startswith(name) and name]
    if len(fits) == 1:
        return fits[0]
    if not fits:
        raise UsageError(f"the ledger has no {kind} '{name}'", hint=hint)
    raise UsageError(f"'{name}' may be {', '.join(fits)}", hint="say more of the id")


def that_counts(ledger: Ledger, name: str, texts: dict[str, str], kind: str, hint: str) -> str:
    """The same of what counts; UsageError that says so if a step told it earlier and tells it no more."""
    name = as_id(name)
    if not any(one.startswith(name) for one in texts):
        gone = [one for one in past_of(ledger) if one.startswith(name)]
        if len(gone) == 1:
            raise UsageError(
                f"'{gone[0]}' counts no more: {TOLD_ELSE}",
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


def replaced(already: str) -> Iterable[str]:
    """A word that was said before; the new one takes its place."""
    if already:
        yield f"it was already: {one_line(already)}; what you say takes its place"


def said_line(said: LedgerSaid, text: str) -> str:
    """What was said, and of what."""
    is_answer = said.word == "uphold" and said.entry[:2] in {"u-", "g-"}
    return f"{'taken back' if is_answer else _SAID[said.word]}: {one_line(text)}"


def answer(
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
    out(said_line(said, text))
    for line in replaced(already):
        out(line)
    out_next("holdfast resume    holdfast ledger" if goes_on else "holdfast ledger")
