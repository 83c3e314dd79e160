"""Approvals: what waits for a person, on cards; what was decided, with the way to take it back.

A page session counts as a person: whoever answers here is the user who started `holdfast ui`, as at a
terminal, and may hold the names that the configuration gives. Nothing is decided by a GET.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from holdfast import wire
from holdfast.cli.approvals import stand_of, story
from holdfast.cli.approve import GOES_ON, Desk, desk, is_awaited, outcome
from holdfast.cli.card import Card, card
from holdfast.cli.handing import handed_over
from holdfast.cli.place import of_line
from holdfast.cli.replanning import held_at, let_go_on, ready_lines, replan_lines
from holdfast.cli.titles import line_title
from holdfast.core.approvals import Approval, allowed_scopes, usual_scope
from holdfast.core.evidence import Evidence
from holdfast.core.state import State
from holdfast.engine.answers import given_for
from holdfast.engine.decisions import Decisions, Given, Wanted
from holdfast.engine.replans import Held, held_in
from holdfast.errors import UsageError
from holdfast.model.line import Scope
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Store
from holdfast.web.acting import Body, act, said
from holdfast.web.drawer import Content, evidence_of, result_of
from holdfast.web.look import Look
from holdfast.web.screens import page, screen

MOST_DECIDED = 50
MOST_GIVEN = 5  # needs of a step, and files of each
MOST_LETTERS = 4000  # of each file; the step's own page has more
MOST_EVIDENCE = 20
SCOPES: Mapping[Scope, str] = {
    "once": "once",
    "run": "for this run",
    "content": "always for the same content",
}


@dataclass(frozen=True, slots=True)
class Question:
    """A card, and how it may be answered."""

    wanted: Wanted
    state: State
    title: str
    card: Card
    given: Sequence[tuple[StepId, Sequence[Content]]]
    evidence: Sequence[Evidence]
    scopes: Sequence[tuple[Scope, str]]
    usual: Scope
    is_answer: bool
    may_type: bool


@dataclass(frozen=True, slots=True)
class Decided:
    """A question that was decided, or that nobody waits for any more."""

    approval: Approval
    stand: str
    story: str


def show(look: Look, request: Request) -> Response:
    """The inbox."""
    questions: list[Question] = []
    doubts: list[tuple[State, Held, list[str]]] = []
    for state in look.open_runs():
        with look.speaking(state.line, state.file):
            questions += questions_of(look, state)
            if state.replan is not None and (held := held_in(look.store, state, wire.alike)):
                lines = [*replan_lines(held.doubts), *ready_lines(held.plan)]
                doubts.append((state, held, lines))
    values = {
        "questions": questions,
        "doubts": doubts,
        "decided": list(decided(look))[:MOST_DECIDED],
    }
    return page(look, request, "approvals.html", values)


def questions_of(look: Look, state: State) -> Iterator[Question]:
    """What one run waits for."""
    if not state.counts["waiting"] and not state.running:
        return
    decisions = decisions_of(look, state.project, state.line)
    for wanted in decisions.wanted(state.run):
        request = wanted.approval.request
        approve = str(decisions.document(wanted.approval).get("approve", ""))
        allowed = allowed_scopes(request.gate, approve)
        is_answer = request.gate == "answer"
        yield Question(
            wanted,
            state,
            line_title(state.line, state.plan.goal),
            card(decisions, look.store, wanted, look.where.root),
            _given_to(look, state, wanted.step),
            _evidence_for(look, state, wanted.step),
            [(scope, words) for scope, words in SCOPES.items() if scope in allowed],
            usual_scope(request.gate, approve),
            is_answer,
            is_answer and len(state.plan.steps[wanted.step].produces) <= 1,
        )


def _given_to(look: Look, state: State, step_id: StepId) -> list[tuple[StepId, Sequence[Content]]]:
    """What a step will act on: what it made already and is to be approved, else what its needs made."""
    makers = state.plan.steps[step_id].data_needs[:MOST_GIVEN]
    if state.steps[step_id].parked is not None:
        makers = (step_id,)
    return [(one, [*map(_shortened, result_of(look, state, one)[:MOST_GIVEN])]) for one in makers]


def _shortened(content: Content) -> Content:
    text = content.text or ""
    if len(text) <= MOST_LETTERS:
        return content
    rest = content.rest + len(text) - MOST_LETTERS
    return replace(content, text=text[:MOST_LETTERS], rest=rest)


def _evidence_for(look: Look, state: State, step_id: StepId) -> list[Evidence]:
    """What the steps that a step needs have found."""
    needs = [need.step for need in state.plan.steps[step_id].needs]
    found = [one for need in needs for one in evidence_of(look, state, need).evidence]
    return found[:MOST_EVIDENCE]


def decisions_of(look: Look, project: str, line: str) -> Decisions:
    """The approvals of a line; its runs are folded already."""

    def read(_: Store, run: RunId) -> State | None:
        return look.state(run)

    drives = partial(wire.is_driven, look.store)
    return Decisions(look.store, project, line, wire.now_ms, drives, read=read)


def decided(look: Look) -> Iterator[Decided]:
    """What does not wait any more, on all lines, the last decision first."""
    found: list[tuple[int, Decided]] = []
    for project, line in dict.fromkeys((row.project, row.line) for row in look.store.runs()):
        decisions = decisions_of(look, project, line)
        rest = [one for one in decisions.book if one.decision is not None or one.revoked]
        if not rest:
            continue
        passed = decisions.overtaken()
        for one in rest:
            stand = stand_of(one, (), passed)
            found.append((one.decided_at, Decided(one, stand, story(decisions, one))))
    return (one for _, one in sorted(found, key=lambda pair: pair[0], reverse=True))


# --- deciding -------------------------------------------------------------------------------------------


@contextmanager
def deciding(look: Look, body: Body) -> Iterator[Desk]:
    """Where somebody decides about the line of the run that a request names."""
    store = look.where.open(readonly=True)
    try:
        lines = [row.line for row in store.runs() if row.run == body.text("run")]
    finally:
        store.close()
    if not lines:
        raise UsageError(f"there is no run '{body.text('run')}'")
    where = of_line(look.where, lines[0])
    with look.speaking(lines[0]), desk(where, terminal=True) as at:
        yield at


def decide(look: Look, body: Body) -> Response:
    """A yes with its scope, a no with its reason, or the content that was asked for."""
    name, because = body.text("approval"), body.text("because")
    with deciding(look, body) as at:
        wanted = next((one for one in at.decisions.called(name) if one.approval.id == name), None)
        if wanted is None:
            raise UsageError(f"nothing called '{name}' waits for a person")
        if body.text("subject") != wanted.approval.request.subject:
            raise UsageError(f"'{wanted.step}' asks about something else now", hint="look again")
        at.person.names_for(wanted.approval.request.names)
        if body.text("answer") == "no":
            if not because.strip():
                raise UsageError("a rejection needs a reason", hint="say why; the step is told")
            found = at.decisions.decide(wanted, at.person, Given(because=because), yes=False)
        else:
            found = at.decisions.decide(wanted, at.person, _given(at, wanted, body), yes=True)
        return _outcome(at, found, wanted.run)


def _given(at: Desk, wanted: Wanted, body: Body) -> Given:
    because = body.text("because")
    if wanted.approval.request.gate != "answer":
        scope = next((one for one in SCOPES if one == body.text("scope")), None)
        return Given(scope, because=because)
    plan = at.decisions.plan_of(wanted)
    step, text = plan.steps[wanted.step], body.text("content")
    if not text:
        raise UsageError(f"the content for '{step.id}' is empty")
    told = handed_over(at.store, at.where, plan, step, None)
    digest, form = given_for(at.store, step, text.encode(), at.where.hidden(at.store))
    return Given(because=because, content=digest, form=form, handoff=told)


def _outcome(at: Desk, found: Approval, run: RunId) -> Response:
    lines = list(outcome(at, [found]))
    goes_on = is_awaited(at, found)
    return said([*lines, *([GOES_ON] if goes_on else [])], run="" if goes_on else run)


def revoke(look: Look, body: Body) -> Response:
    """Take a yes back."""
    name = body.text("approval")
    with deciding(look, body) as at:
        found = at.decisions.book.by_id.get(name)
        if found is None:
            raise UsageError(f"there is no approval '{name}'", hint="holdfast approvals --all")
        at.decisions.revoke(found, at.person, body.text("because"))
        return said(list(outcome(at, [found])))


def keep_plan(look: Look, body: Body) -> Response:
    """Let a run go on with a plan that something speaks against."""
    with deciding(look, body) as at:
        line = at.where.plan_id
        held = held_at(at.store, line)
        if held is None or held.run != body.text("run"):
            raise UsageError("nothing speaks against its plan any more")
        because, hidden = body.text("because"), at.where.hidden(at.store)
        let_go_on(at.store, line, held, at.person, because, hidden)
        return said(["the plan stands as it is"], run=held.run)


ROUTES = [
    screen("/approvals", show),
    act("/approvals/decide", decide),
    act("/approvals/revoke", revoke),
    act("/approvals/plan", keep_plan),
]
