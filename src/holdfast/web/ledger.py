"""What a run has learned: every entry with the steps it comes from, and what falls if one is contested.

Contesting is shown before it is said: which steps become stale, and what checking them again takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from holdfast.cli.contest import contested, fall_lines, taken_back
from holdfast.cli.ledger import PARTS, Part, Row, learned_in, rows_of
from holdfast.cli.place import Place, of_line
from holdfast.core.confidence import certainties
from holdfast.core.ledger import Ledger, counting
from holdfast.core.single import One, narrowed
from holdfast.core.state import State
from holdfast.engine.lines import line_journal
from holdfast.engine.snapshots import Learned
from holdfast.engine.speaker import check_text
from holdfast.engine.words import contests_in
from holdfast.errors import UsageError
from holdfast.model.items import step_named
from holdfast.model.plan import RunId, StepId
from holdfast.web.acting import Body, act, said
from holdfast.web.look import Look
from holdfast.web.screens import address, number, page, rendered, screen

FEW = 20  # entries of each part, where all parts are shown
PAGE = 200  # entries of a part that is shown alone
TITLES: Mapping[Part, str] = {
    "evidence": "Evidence",
    "uncertain": "Uncertainties",
    "artifacts": "Artifacts",
    "gaps": "Gaps",
    "hypotheses": "Hypotheses",
    "handoffs": "Handoffs",
}
_MAY_FALL: frozenset[Part] = frozenset({"evidence", "handoffs"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries, and which of them is about to be contested."""

    run: str = ""
    part: Part | None = None
    step: str = ""
    words: str = ""
    unanswered: bool = False
    page: int = 1

    def path(self, **other: object) -> str:
        """The same with something else."""
        query: dict[str, object] = {
            "run": self.run,
            "part": self.part,
            "step": self.step,
            "q": self.words,
            "open": int(self.unanswered),
            "page": self.page if self.page > 1 else "",
        }
        return address("/ledger", **{**query, **other})

    def turned(self, wanted: int) -> str:
        """Another page of the part."""
        return self.path(page=wanted)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its words, its chain, and what can be said of it."""

    row: Row
    chain: tuple[tuple[str, tuple[str, ...]], ...]
    may_fall: bool
    contested: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A part of the ledger, as far as it is shown."""

    part: Part
    title: str
    entries: tuple[Entry, ...]
    known: int
    first: int


def learned_of(look: Look, state: State) -> Learned:
    """What a run has learned; kept until its journal or that of its line goes on."""
    last = look.store.last(line_journal(state.project, state.line))
    return look.made(
        state,
        "ledger",
        lambda: learned_in(look.store, look.where.location, state.run),
        until=state.seq + last,  # both only grow
    )


def groups_of(learned: Learned, wanted: Wanted, steps: Sequence[StepId]) -> list[Group]:
    """The parts that are asked for, each in words."""
    found = learned[0]
    certain = certainties(counting(found))
    shown = narrowed(found, wanted.part, steps, unanswered=wanted.unanswered)
    written = rows_of(One(shown), certain)
    chains = chains_of(found)
    doubted = {one.id for one in (*found.evidence, *found.past) if one.contested}
    doubted |= contests_in(learned[1]).keys()
    words = wanted.words.casefold().split()
    groups = []
    for part in PARTS if wanted.part is None else (wanted.part,):
        rows = [row for row in written[part] if all(word in row.line.casefold() for word in words)]
        most = FEW if wanted.part is None else PAGE
        first = min(max(0, wanted.page - 1) * most, max(0, (len(rows) - 1) // most * most))
        entries = tuple(
            Entry(row, chains.get(row.id, ()), part in _MAY_FALL, row.id in doubted)
            for row in rows[first : first + most]
        )
        groups.append(Group(part, TITLES[part], entries, len(rows), first))
    return groups


def chains_of(found: Ledger) -> dict[str, tuple[tuple[str, tuple[str, ...]], ...]]:
    """For each entry what it stands on, and what speaks for and against it."""
    chains: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {}
    for one in found.evidence:
        given = {"stands on": one.stands_on, "supports": one.supports, "refutes": one.refutes}
        chains[one.id] = _chain(given)
    for name, hypothesis in found.hypotheses.items():
        given = {
            "for": hypothesis.supporting,
            "against": hypothesis.refuting,
            "contested": (*hypothesis.fallen_for, *hypothesis.fallen_against),
            "tested by": tuple(hypothesis.tested_by),
        }
        chains[name] = _chain(given)
    return chains


def _chain(given: Mapping[str, Sequence[str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((word, tuple(names)) for word, names in given.items() if names)


def _run(look: Look, given: str) -> State | None:
    """The run that is meant; without one the last of the page's line, or of any."""
    if given:
        return look.find(given)
    rows = [row for row in look.rows() if look.where.line() in {None, row.line}]
    return look.state(rows[-1].run) if rows else None


def wanted_in(request: Request) -> Wanted:
    """Read which entries an address asks for."""
    query = request.query_params
    part = next((one for one in PARTS if one == query.get("part")), None)
    return Wanted(
        run=query.get("run", ""),
        part=part,
        step=query.get("step", ""),
        words=query.get("q", "").strip(),
        unanswered=query.get("open") == "1",
        page=number(query.get("page"), 1),
    )


def show(look: Look, request: Request) -> Response:
    """The ledger of a run."""
    with look.speaking():
        wanted = wanted_in(request)
        state = _run(look, wanted.run)
        if state is None:
            return page(look, request, "ledger.html", {"state": None, "wanted": wanted})
        wanted = replace(wanted, run=state.run)
    with look.speaking(state.line, state.file):
        steps: tuple[StepId, ...] = ()
        if wanted.step:
            step = step_named(wanted.step, state.steps)
            if step is None:
                raise UsageError(f"the run has no step '{wanted.step}'", hint="holdfast ls")
            steps = (step,)
        learned = learned_of(look, state)
        about = request.query_params.get("contest", "")
        groups = groups_of(learned, wanted, steps)
        values = {
            "state": state,
            "wanted": wanted,
            "groups": groups,
            "most": PAGE,
            "stale": learned[2],
            "about": about,
            "back": request.query_params.get("back") == "1",
            "titles": TITLES,
            "is_last": _is_last(look, state.run, state.line),
        }
        return page(look, request, "ledger.html", values)


def _is_last(look: Look, run: RunId, line: str) -> bool:
    """Whether a run is the last of its line: people speak about that one."""
    rows = look.store.runs(line)
    return bool(rows) and rows[-1].run == run


# --- what people say ----------------------------------------------------------------------------------


def _where(look: Look, body: Body) -> Place:
    line = body.text("line")
    return look.where if look.where.line() == line else of_line(look.where, line)


def foresee(look: Look, body: Body) -> Response:
    """What would fall with an entry, and what checking it again would take; nothing is said yet."""
    entry, because = body.text("entry"), check_text(body.text("because"), "the reason")
    with look.speaking(body.text("line")):
        fall = contested(_where(look, body), entry, because, dry_run=True)
        context = {
            "lines": [*fall_lines(fall, dry_run=True)],
            "entry": fall.entry,
            "because": because,
            "line": body.text("line"),
        }
        return HTMLResponse(rendered("fall.html", context))


def contest(look: Look, body: Body) -> Response:
    """Contest an entry."""
    because = check_text(body.text("because"), "the reason")
    with look.speaking(body.text("line")):
        where = _where(look, body)
        fall = contested(where, body.text("entry"), because, dry_run=False, terminal=True)
        return said([*fall_lines(fall, dry_run=False)])


def take_back(look: Look, body: Body) -> Response:
    """Let an entry stand again."""
    because = check_text(body.text("because"), "the reason")
    with look.speaking(body.text("line")):
        return said(taken_back(_where(look, body), body.text("entry"), because, terminal=True))


ROUTES = [
    screen("/ledger", show),
    act("/ledger/foresee", foresee),
    act("/ledger/contest", contest),
    act("/ledger/take-back", take_back),
]
