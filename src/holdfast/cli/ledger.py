"""ledger: what a run has learned, and from which step each of it comes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, cast

import click

from holdfast import wire
from holdfast.cli.contest import contest
from holdfast.cli.place import file_option, find_run, json_option, nearest, place, place_options
from holdfast.cli.say import out, out_json, short
from holdfast.cli.show import load_state
from holdfast.cli.words import TOLD_ELSE, add, apart, found_entry, resolve
from holdfast.core.above import stands_for
from holdfast.core.bases import FoundBy
from holdfast.core.confidence import certainties
from holdfast.core.evidence import Evidence
from holdfast.core.ledger import Gap, Hypothesis, Ledger, Registered, counting
from holdfast.core.questions import Uncertainty
from holdfast.core.said import PERSON, Said
from holdfast.core.single import One, all_of, entries_of, narrowed, past_of, words_about
from holdfast.core.told import Told
from holdfast.engine.elsewhere import handoffs_of, stale_steps
from holdfast.engine.ledgers import ledger_of
from holdfast.engine.lines import line_journal
from holdfast.engine.snapshots import Learned, learned
from holdfast.errors import UsageError
from holdfast.model.digest import Json
from holdfast.model.handoff import as_id, handoff_json
from holdfast.model.items import step_named
from holdfast.model.plan import RunId, StepId
from holdfast.model.text import one_line
from holdfast.ports import Store

Part = Literal["evidence", "uncertain", "artifacts", "gaps", "hypotheses", "handoffs"]
Certain = Mapping[str, float | None]  # how sure evidence is, by its id
Gone = Collection[str]  # ids of what counts no more


class Row(NamedTuple):
    """An entry in words. `steps` are those it comes from, empty for a person; None if it needs none.

    Below it stands what is taken for it.
    """

    id: str
    text: str
    steps: Sequence[StepId] | None = None
    below: Sequence[str] = ()

    @property
    def line(self) -> str:
        """All of it as it is printed."""
        come = "" if self.steps is None else _from(self.steps)
        return "\n    ".join([f"{self.text}{come}", *self.below])


_NAMES: Mapping[Part, str] = {
    "evidence": "evidence",
    "uncertain": "questions",
    "artifacts": "artifacts",
    "gaps": "gaps",
    "hypotheses": "hypotheses",
    "handoffs": "handoffs",
}
_GONE = "superseded"
_A_PERSON = "a person"  # no step is called so
_DIGITS = 9  # of a share that is worked out
_FEW = 100  # ids that are written wherever they are meant
PARTS: tuple[Part, ...] = tuple(_NAMES)


class _Parts(click.Group):
    """Without a word of a person it shows the ledger: `ledger evidence` is `ledger show evidence`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `show` before what is none of the commands."""
        helps = bool(args) and args[0] in {"-h", "--help"}
        if not helps and (not args or args[0] not in self.commands):
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=_Parts,
    epilog="\b\nExample:\n  holdfast ledger\n  holdfast ledger uncertain --open --json\n"
    "  holdfast ledger contest e-1f3c --because 'counted twice'",
)
def ledger() -> None:
    """Show what a run has learned, and say what you think of it."""


for _command in (add, resolve, contest, apart):
    ledger.add_command(_command)


@ledger.command(
    "show",
    epilog="\b\nExample:\n  holdfast ledger\n  holdfast ledger evidence --step search\n"
    "  holdfast ledger e-1f3c\n  holdfast ledger uncertain --open --json",
)
@click.argument("wanted", metavar="[PART|ID]", required=False)
@click.option("--run", "run_id", metavar="RUN", help="Which run (default: the last of the line).")
@click.option("--step", metavar="STEP", help="Only what comes from this step.")
@click.option("--open", "unanswered", is_flag=True, help="Only questions and gaps that are open.")
@file_option
@place_options
@json_option
def show_ledger(
    wanted: str | None,
    run_id: str | None,
    step: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    unanswered: bool,
    as_json: bool,
) -> int:
    """Show what a run has learned: evidence, open questions, gaps, hypotheses.

    It is worked out of the handoffs of its steps, the latest of each, in the order of the plan. Every line
    names the step that it comes from. PART is evidence, uncertain, artifacts, gaps, hypotheses or handoffs.
    An ID, or its beginning, shows one entry with all that says the same, or a handoff with all that it told,
    also if it counts no more.
    """
    part = next((one for one in PARTS if one == wanted), None)
    if wanted is not None and part is None and wanted[1:2] != "-":
        parts = ", ".join(PARTS)
        raise UsageError(
            f"the ledger has no part '{wanted}'", hint=f"{parts}, or an id like e-1f3c"
        )
    where = place(plan, store, plan_id)
    opened = where.open(readonly=True)
    try:
        run = find_run(opened, run_id, where.line())
        of = () if step is None else _steps_of(opened, run, step)
        found, people, stale = learned_in(opened, where.location, run)
    finally:
        opened.close()
    certain = certainties(counting(found))
    if wanted is not None and part is None:
        one = entry_of(found, wanted, people)
    else:
        one = One(narrowed(found, part, of, unanswered=unanswered))
    if wanted is not None or unanswered or of:
        people = tuple(words_about(people, one.ledger, of))
        stale = (
            {} if wanted else {name: held for name, held in stale.items() if not of or name in of}
        )
    if as_json:
        fallen: dict[str, Json] = {name: [*held] for name, held in stale.items()}
        said: list[Json] = [_said_json(word) for word in people]
        whole = {**ledger_json(one, certain), "stale_steps": fallen, "said": said}
        out_json({"schema": "holdfast.ledger/1", "run": run, **whole})
        return 0
    told = [*_lines(one, certain)]
    for line in told or [nothing_words(found, part, step, unanswered=unanswered)]:
        out(line)
    if stale:
        out(f"steps that were told what is contested, or stands on it ({len(stale)})")
    for name, held in stale.items():
        out(f"  {name}: {', '.join(held)}")
    return 0


def _steps_of(store: Store, run: RunId, given: str) -> tuple[StepId, ...]:
    """The step of a run that was meant, with those whose work it gathers; UsageError if it has none."""
    state = load_state(store, run)
    name = step_named(given, state.steps)
    if name is None:
        raise UsageError(f"{short(run)} has no step '{given}'", hint=nearest(given, state.steps))
    return tuple(dict.fromkeys([name, *stands_for(state.plan.steps, name)]))


def learned_in(store: Store, home: str, run: RunId) -> Learned:
    """What a run has learned, from a snapshot if one is left."""
    row = next((one for one in store.runs(imported=True) if one.run == run), None)

    def fold() -> Learned:
        state = load_state(store, run)
        handoffs = handoffs_of(store, state)
        found = ledger_of(state, handoffs, wire.alike, handoffs.said, audit=True)
        return Learned(found, tuple(handoffs.said), stale_steps(store, state, found))

    with wire.seldom_collected():
        if row is None:
            return fold()
        return learned(store, home, run, line_journal(row.project, row.line), fold)


def entry_of(found: Ledger, name: str, said: Sequence[Said]) -> One:
    """The ledger with one entry alone; UsageError if there is none, or if several begin so."""
    name = as_id(name)
    entries = entries_of(found)
    if not any(one.startswith(name) for one in entries):
        entries = past_of(found)
    return all_of(found, found_entry(name, entries, "entry", "holdfast ledger lists all"), said)


# --- words ----------------------------------------------------------------------------------------


def _lines(one: One, certain: Certain) -> Iterable[str]:
    """The ledger as text, a part after the other; of one entry also if it counts no more."""
    written = rows_of(one, certain)
    for name in PARTS:
        if rows := written[name]:
            yield f"{name} ({len(rows)})"
        for row in rows:
            yield f"  {row.line}"
    if one.gone:
        yield f"{_GONE}: {TOLD_ELSE}, so it counts no more"


def rows_of(one: One, certain: Certain) -> Mapping[Part, Sequence[Row]]:
    """Each part of the ledger, entry by entry, in words."""
    shown, gone = one
    earlier = shown.superseded if gone else ()
    return {
        "evidence": [Row(e.id, _finding(e, certain, gone), [e.step]) for e in shown.evidence],
        "uncertain": [_question(q, gone) for q in shown.uncertainties],
        "artifacts": [Row(a.id, _artifact(a, gone), [a.step]) for a in shown.artifacts],
        "gaps": [
            Row(
                g.id,
                f"{one_line(g.item)}: {one_line(g.reason)}{_left_open(g)}{_closed(g, gone)} · {g.id}",
                [g.step],
            )
            for g in shown.gaps
        ],
        "hypotheses": [Row(h.id, _hypothesis(h, gone)) for h in shown.hypotheses.values()],
        "handoffs": [
            Row(
                told.id,
                f"{_attempted(told)}{note}{_doubted(told, shown)} · {told.id}",
                [told.step],
            )
            for ones, note in ((shown.handoffs, ""), (earlier, f" · {_GONE}"))
            for told in ones
        ],
    }


def _hypothesis(one: Hypothesis, gone: Gone) -> str:
    return (
        f"{one_line(one.id)}: {one.status}"
        f" · {len(one.supporting)} for, {len(one.refuting)} against"
        + (" · stale" if one.stale else "")
        + (f" · {_GONE}" if one.id in gone else "")
    )


def nothing_words(found: Ledger, part: Part | None, step: str | None, *, unanswered: bool) -> str:
    """Why no line is shown: nothing was told at all, or nothing of what was asked for."""
    told = (found.evidence, found.uncertainties, found.gaps, found.hypotheses, found.handoffs)
    if not any(told):  # an artifact comes with a handoff
        return "nothing was told: a step writes what it learned to the file HOLDFAST_HANDOFF names"
    what = _NAMES[part] if part else "entries"
    may_be_open = part in {"uncertain", "gaps"}
    is_open = "open " if unanswered and may_be_open else ""
    return f"no {is_open}{what}" + (f" from {step}" if step else "") + ": holdfast ledger shows all"


def _finding(one: Evidence, certain: Certain, gone: Gone) -> str:
    """A finding, and how sure it is; one that counts no more, how sure it was said to be."""
    sure = one.confidence if one.id in gone else certain.get(one.id)
    facts = [one_line(one.source)] if one.source else []
    facts += [f"{sure:.2f}"] if sure is not None else []
    facts += [f"as {one.head}"] if one.head != one.id else []
    facts += [f"contested: {one_line(one.contested)}"] if one.contested else []
    facts += ["stale"] if one.stale else []
    facts += [_GONE] if one.id in gone else []
    return " · ".join([one_line(one.finding), *facts, one.id])


def _artifact(one: Registered, gone: Gone) -> str:
    facts = [_GONE] if one.id in gone else []
    return " · ".join([f"{one_line(one.artifact)}: {one_line(one.ref)}", *facts, one.id])


def _doubted(one: Told, shown: Ledger) -> str:
    why = shown.contested.get(one.id)
    return f" · contested: {one_line(why)}" if why else ""


def _attempted(one: Told) -> str:
    words = one_line(one.handoff.attempted)
    if not one.failed:
        return words
    reason = next((gap.reason for gap in one.handoff.not_done), "")
    return f"{words} · failed: {one_line(reason)}" if reason else f"{words} · failed"


def _question(one: Uncertainty, gone: Gone) -> Row:
    """A question with everyone who raised it, and below it each that is taken for it."""
    status = _GONE if one.id in gone else _answered(one)
    text = f"{one_line(one.question)} · {status} · {one.id}"
    below = [
        f"{one_line(same.question)} · as {one.id} · {same.id}{_from([same.step])}"
        for same in one.merged
    ]
    return Row(one.id, text, one.raised_by, below)


def _from(steps: Iterable[StepId]) -> str:
    return f" · from {', '.join(step or _A_PERSON for step in steps)}"


def _answered(question: Uncertainty) -> str:
    why = f": {one_line(question.because)}" if question.because else ""
    return f"{question.status}{why}"


def _left_open(gap: Gap) -> str:
    return f" · for {', '.join(map(one_line, gap.requirements))}" if gap.requirements else ""


def _closed(gap: Gap, gone: Gone) -> str:
    closed = f" · closed: {one_line(gap.closed)}" if gap.closed else ""
    return f"{closed} · {_GONE}" if gap.id in gone else closed


# --- JSON -----------------------------------------------------------------------------------------


def ledger_json(shown: One, certain: Certain) -> dict[str, Json]:
    """The ledger for programs; every entry with its id and the step that it comes from."""
    found, gone = shown

    def standing(name: str) -> str:
        return "superseded" if name in gone else "latest"

    return {
        "evidence": [
            {
                "id": one.id,
                "from_step": one.step,
                "standing": standing(one.id),
                "finding": one.finding,
                "source": one.source or None,
                "confidence": one.confidence,
                "sure": _share(certain.get(one.id)),
                "stands_on": [*_spelled(one.stands_on, found.found_by)],
                "same_as": one.head if one.head != one.id else None,
                "alike": one.alike if one.head != one.id else None,
                "contested": one.contested or None,
                "stale": one.stale,
            }
            for one in found.evidence
        ],
        "uncertainties": [
            {
                "id": q.id,
                "from_step": q.step,
                "standing": standing(q.id),
                "question": q.question,
                "status": q.status,
                "raised_by": [step or _A_PERSON for step in q.raised_by],
                "same": [*q.same],
                "merged": [
                    {
                        "id": one.id,
                        "from_step": one.step,
                        "question": one.question,
                        "alike": one.alike,
                    }
                    for one in q.merged
                ],
                "tested_by": q.tested_by,
                "resolved_by": _A_PERSON if q.resolved_by == PERSON else q.resolved_by,
                "because": q.because or None,
            }
            for q in found.uncertainties
        ],
        "artifacts": [
            {
                "id": one.id,
                "from_step": one.step,
                "standing": standing(one.id),
                "artifact": one.artifact,
                "ref": one.ref,
            }
            for one in found.artifacts
        ],
        "gaps": [
            {
                "id": one.id,
                "from_step": one.step,
                "standing": standing(one.id),
                "item": one.item,
                "reason": one.reason,
                "requirement": next(iter(one.requirements), None),
                "requirements": [*one.requirements],
                "closed": one.closed or None,
            }
            for one in found.gaps
        ],
        "hypotheses": {
            name: {
                "id": name,
                "standing": standing(name),
                "status": one.status,
                "tested_by": [*one.tested_by],
                "evidence_steps": [*one.evidence_steps],
                "supporting": [*one.supporting],
                "refuting": [*one.refuting],
                "contested": [*one.fallen_for, *one.fallen_against],
                "confidence_for": _share(one.confidence_for),
                "confidence_against": _share(one.confidence_against),
                "stale": one.stale,
            }
            for name, one in found.hypotheses.items()
        },
        "handoffs": [_told_json(one, "latest", found) for one in found.handoffs]
        + cast("list[Json]", [_told_json(one, "superseded", found) for one in found.superseded]),
        "found_by": {name: [*ids] for name, ids in _named(found)},
        "stale": [*found.stale],
    }


def _share(sure: float | None) -> float | None:
    """A share without what rounding left of it: 0.3, not 0.30000000000000004."""
    return None if sure is None else round(sure, _DIGITS)


def _spelled(names: Iterable[str], found_by: FoundBy) -> Iterable[str]:
    """Evidence by its ids; where a step or a handoff has many they stand under its name, once for all."""
    for name in names:
        ids = found_by.get(name, (name,))
        yield from ids if len(ids) <= _FEW else (name,)


def _named(found: Ledger) -> Iterable[tuple[str, tuple[str, ...]]]:
    """The steps and handoffs with many findings on which shown evidence stands."""
    named = dict.fromkeys(name for one in found.evidence for name in one.stands_on)
    return [(name, ids) for name in named if len(ids := found.found_by.get(name, ())) > _FEW]


def _said_json(one: Said) -> Json:
    return {
        "word": one.word,
        "entry": one.entry or None,
        "text": one.text or None,
        "because": one.because or None,
        "by": one.by,
        "at": one.at,
    }


def _told_json(one: Told, standing: str, found: Ledger) -> Json:
    return {
        "id": one.id,
        "from_step": one.step,
        "standing": standing,
        "failed": one.failed,
        "contested": found.contested.get(one.id),
        "run": one.run or None,
        "attempt": one.attempt,
        "at": one.at or None,
        "handoff": handoff_json(one.handoff),
    }
