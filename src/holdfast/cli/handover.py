"""A plan, or how a run of it stands, in the formats of other programs; and the views that they look for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from holdfast import wire
from holdfast.cli.checkpoint import facts_of
from holdfast.cli.measure import iso
from holdfast.cli.place import Place, find_run
from holdfast.cli.show import load_state
from holdfast.core.execution import execution_state
from holdfast.core.ledger import folded
from holdfast.core.nodes import times
from holdfast.core.premises import standings
from holdfast.core.reasons import sentence
from holdfast.core.state import State, empty_state
from holdfast.core.trace import STATUS, trace
from holdfast.engine.elsewhere import handoffs_of
from holdfast.engine.ledgers import ledger_of
from holdfast.errors import UsageError
from holdfast.formats.atomicguardout import workflow_documents
from holdfast.formats.graphout import graph_document
from holdfast.formats.leftout import left_out
from holdfast.formats.plainids import plain_ids, with_plain_ids
from holdfast.formats.planfile import Asked, load_text
from holdfast.formats.planfolder import PlanFolder, Views
from holdfast.formats.planspecout import planspec_document
from holdfast.formats.runfacts import NO_RUN, RunFacts, StepFacts
from holdfast.formats.sunwellout import hashes, sunwell_document, tasks_document
from holdfast.model.digest import Json
from holdfast.model.event import Recorded, RunEnded, RunRested, RunResumed, RunStarted
from holdfast.model.plan import Plan, StepId

OF_A_RUN = ("trace", "hashes")
EXECUTION = "execution-state"
FORMATS = ("graph", "atomicguard", "sunwell", "tasks", "planspec", EXECUTION, *OF_A_RUN)


class Handover(NamedTuple):
    """The text of a file, a second one that belongs beside it, and what the format has no word for.

    `plan` is what it was made from.
    """

    text: str
    plan: Plan
    beside: tuple[str, str] | None = None
    left_out: Mapping[str, list[str]] = {}
    ids: Mapping[StepId, StepId] = {}  # of items, which have others there


def handover(where: Place, form: str, run: str | None) -> Handover:
    """The plan of this place, or a run of it, in a format."""
    if form == "graph":
        return _graph(where, run)
    if form == EXECUTION:
        return _execution(where, run)
    if run is None and form in OF_A_RUN:
        raise UsageError(
            f"'{form}' is of a run, not of a plan", hint=f"holdfast export @ FILE --format {form}"
        )
    plan, facts = (where.load().plan, NO_RUN) if run is None else run_facts(where, run)[1:]
    if form == "trace":
        lines = (json.dumps(event, ensure_ascii=False) + "\n" for event in facts.trace)
        return Handover("".join(lines), plan)
    if form == "hashes":
        return Handover(_text(hashes(plan, facts)), plan)
    beside, ids = None, plain_ids(plan)
    there = with_plain_ids(plan, ids)
    facts = facts._replace(steps={ids.get(s, s): told for s, told in facts.steps.items()})
    if form == "atomicguard":
        made, prompts = workflow_documents(there)
        beside = ("prompts.json", _text(prompts)) if prompts else None
    elif form == "sunwell":
        made = sunwell_document(there, facts)
    elif form == "tasks":
        made = tasks_document(there, facts)
    else:
        made = planspec_document(there)
    return _compared(where, Handover(_text(made), plan, beside, ids=ids))


def _compared(where: Place, made: Handover) -> Handover:
    """The same, with what is gone when the file is read again."""
    with TemporaryDirectory() as folder:
        prompts = Path(folder) / "prompts.json"
        prompts.write_text(made.beside[1] if made.beside else "{}", encoding="utf-8")
        asked = Asked(name=made.plan.name, own=wire.own_agents, prompts=str(prompts))
        again = load_text(made.text.encode(), "made.json", where.root, asked).plan
    return made._replace(left_out=left_out(made.plan, again))


def _graph(where: Place, run: str | None) -> Handover:
    if run is None:
        plan, facts, started = where.load().plan, None, iso(wire.now_ms())
    else:
        plan, facts, started = facts_of(where, run)
    ids = plain_ids(plan)
    told = None if facts is None else {ids.get(s, s): fact for s, fact in facts.items()}
    made = graph_document(with_plain_ids(plan, ids), told, started)
    return _compared(where, Handover(_text(made), plan, ids=ids))


def _execution(where: Place, run: str | None) -> Handover:
    """What a run has learned, with its plan; without a run what it would begin with."""
    if run is None:
        plan = where.load().plan
        state = empty_state(plan)
        ledger = folded((), wire.alike, standings(plan))
        made = execution_state(state, ledger, planspec_document(plan), {})
        return Handover(_text(made), plan)
    store = where.open(readonly=True)
    try:
        state = load_state(store, find_run(store, run, where.line()))
        handoffs = handoffs_of(store, state)
        ledger = ledger_of(state, handoffs, wire.alike, handoffs.said, audit=True)
        when = times(store.read(f"run:{state.run}"))
    finally:
        store.close()
    failed = {step_id: at.ended for step_id, at in when.items() if at.ended}
    made = execution_state(state, ledger, planspec_document(state.plan), failed)
    return Handover(_text(made), state.plan)


def write_views(where: Place, run: str | None) -> tuple[str, dict[str, str]]:
    """Write the views of a run into the store; its line, and where they are."""
    line, plan, facts = run_facts(where, run)
    views = Views(
        sunwell_document(plan, facts), facts.trace, hashes(plan, facts), tasks_document(plan, facts)
    )
    files = PlanFolder(where.location).save(line, views)
    return line, {name: str(file) for name, file in files.items()}


def _text(document: Mapping[str, Json]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


# --- what is known of a run -----------------------------------------------------------------------


def run_facts(where: Place, given: str | None) -> tuple[str, Plan, RunFacts]:
    """The line and the plan of a run, and how it stands; everything comes from its journal."""
    store = where.open(readonly=True)
    try:
        state = load_state(store, find_run(store, given, where.line()))
        events = [*store.read(f"run:{state.run}")]
    finally:
        store.close()
    when = times(events)
    steps = {}
    for step_id, step in state.steps.items():
        at = when.get(step_id)
        took = at.ended - at.started if at and at.started and at.ended else 0
        steps[step_id] = StepFacts(
            step.phase,
            str(step.digest or ""),
            iso(at.ended) if at and at.ended else "",
            took,
            step.verified,
            sentence(step.reason) if step.phase == "failed" and step.reason else "",
        )
    facts = RunFacts(
        STATUS[state.status or "running"],
        iso(state.started_at),
        iso(events[-1].at),
        _active(events),
        steps,
        _trace(state, events),
    )
    return state.line, state.plan, facts


def _trace(state: State, events: Iterable[Recorded]) -> list[dict[str, Json]]:
    waves: list[list[StepId]] = state.graph.waves()
    return [{"ts": iso(line.at), "event": line.event, **line.says} for line in trace(events, waves)]


def _active(events: Iterable[Recorded]) -> int:
    """How long engines drove the run, in milliseconds; while it rested it took none."""
    total, begun, last = 0, 0, 0
    for recorded in events:
        last = recorded.at
        if isinstance(recorded.event, RunStarted | RunResumed):
            begun = begun or recorded.at
        elif isinstance(recorded.event, RunRested | RunEnded):
            total += recorded.at - begun if begun else 0
            begun = 0
    return total + (last - begun if begun else 0)
