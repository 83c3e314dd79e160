"""Whether an effect outside was repeated unasked: a second reading of what the runs of a line say.

It shares nothing with the engine's own rule but the meaning of the events. An effect of a step that may be
done only once is open from its start until it is confirmed, until its command ended by itself without a
result, or until a person gave its result. Whoever starts it again meanwhile needs a person's word: to try
the step again, to make it whatever stands, or a yes to this very repetition.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from holdfast.engine.lines import line_journal
from holdfast.model.digest import Digest
from holdfast.ports import RunRow, Store

_Body = Mapping[str, Any]
_MADE = frozenset({"attempt_accepted", "effect_confirmed"})  # then nobody has to ask
_GIVEN = frozenset({"step_amended", "step_accepted"})


class Spot(NamedTuple):
    """An event of a run; one that started an effect has the name of its attempt."""

    run: str
    seq: int
    name: str = ""


@dataclass
class Ran:
    """What a run says of effects: those that were open when it began, and what it did itself."""

    previous: str = ""
    joined: bool = False
    came: dict[str, Spot] = field(default_factory=dict)
    left: dict[str, Spot] = field(default_factory=dict)  # its own that are open, by step
    parked: dict[str, Spot] = field(default_factory=dict)  # made, and people are to decide about it
    acted: set[str] = field(default_factory=set)  # steps
    knew: dict[str, set[str]] = field(default_factory=dict)  # attempts beside that were open then


@dataclass
class Told:
    """What people said on a line about effects."""

    repeats: set[tuple[str, str, int]] = field(default_factory=set)  # attempts that a yes covers
    given: dict[str, list[Spot]] = field(default_factory=dict)  # by step, after which event
    order: Mapping[str, int] = field(default_factory=dict)  # of the runs
    words: set[str] = field(default_factory=set)  # steps that were undone


def repeated(store: Store, rows: Sequence[RunRow]) -> Iterator[str]:
    """Effects that were started again although nobody knew how they had ended, and nobody asked."""
    told: dict[str, Told] = {}
    before: dict[str, Ran] = {}
    order = {str(row.run): number for number, row in enumerate(rows)}
    for row in rows:
        if row.imported:
            continue
        journal = line_journal(row.project, row.line)
        if journal not in told:
            told[journal] = _heard(store, journal)
            told[journal].order = order
        yield from _of_run(store, row.run, told[journal], before)


def _heard(store: Store, journal: str) -> Told:
    told, asked = Told(), set[str]()
    for row in store.raw(journal):
        if row.kind == "approval_requested":
            body = json.loads(row.body)
            if body["gate"] == "effect":
                asked.add(body["approval"])
        elif row.kind == "approval_used":
            body = json.loads(row.body)
            if body["approval"] in asked:
                told.repeats.add((body["run"], body["step"], body["attempt"]))
        elif row.kind in _GIVEN:
            body = json.loads(row.body)
            spot = Spot(body["after_run"], body["after_seq"])
            told.given.setdefault(body["step"], []).append(spot)
        elif row.kind == "step_undone":
            told.words.add(json.loads(row.body)["step"])
    return told


def _of_run(store: Store, run: str, told: Told, before: dict[str, Ran]) -> Iterator[str]:
    once: set[str] = set()
    asked: set[str] = set()
    here = before[run] = Ran()
    for row in store.raw(f"run:{run}"):
        body = json.loads(row.body)
        if row.kind == "run_started":
            once = _done_once(store, body["plan"])
            options = body.get("options") or {}
            asked = {*options.get("force_steps", ()), *options.get("resample", ())}
            here.previous, here.joined = body.get("previous") or "", bool(options.get("joined"))
            here.came = _came(here, before)
        elif row.kind == "plan_extended":
            once |= _done_once(store, body["plan"])
        elif row.kind == "steps_reset":
            asked |= {*body.get("asked", ())}
        elif row.kind == "attempt_parked" and body["step"] in once:
            here.parked[body["step"]] = Spot(
                run, row.seq, f"{run}.{body['step']}.{body['attempt']}"
            )
        elif row.kind == "step_waived" and body["step"] in here.parked:
            here.left[body["step"]] = here.parked.pop(body["step"])
        elif row.kind == "effect_started" and body["step"] in once:
            step, attempt = body["step"], body["attempt"]
            may = step in asked or step in told.words or (run, step, attempt) in told.repeats
            then = here.left.get(step) or (None if step in here.acted else here.came.get(step))
            if then is not None and not may and not _is_given(told, step, then):
                yield (
                    f"run '{run}': event {row.seq}: the effect of step '{step}' was started in run"
                    f" '{then.run}', never confirmed, and is repeated without a person's word"
                )
            here.left[step] = Spot(run, row.seq, f"{run}.{step}.{attempt}")
            here.acted.add(step)
            asked.discard(step)  # who asked for it knew nothing of what it left
            here.knew[step] = {*body.get("beside", ())}
        elif row.kind == "attempt_rejected":
            here.parked.pop(body["step"], None)
        elif row.kind in _MADE or (
            row.kind == "attempt_failed" and body["code"] == "command_failed"
        ):
            here.left.pop(body["step"], None)
            here.parked.pop(body["step"], None)
            here.acted.add(body["step"])


def _came(here: Ran, before: Mapping[str, Ran]) -> dict[str, Spot]:
    """The effects that are open when a run begins.

    Runs that share a line act in an order that no journal tells. So one that joined answers only for what
    was open before all of them and that none of them touched. Whoever begins alone finds open what one of
    them left and no other one knew of when it acted.
    """
    shared: list[Ran] = []
    one = before.get(here.previous)
    while one is not None:
        shared.append(one)
        one = before.get(one.previous) if one.joined else None
    acted = {step for ran in shared for step in ran.acted}
    came = dict(shared[-1].came) if shared else {}
    found = {step: spot for step, spot in came.items() if step not in acted}
    if here.joined:
        return found
    left = [pair for ran in reversed(shared) for pair in ran.left.items()]
    known = {name for ran in shared for names in ran.knew.values() for name in names}
    return found | {step: spot for step, spot in left if spot.name not in known}


def _is_given(told: Told, step: str, before: Spot) -> bool:
    """Whether a person gave the result of an effect after it was started; runs that are gone count."""
    for spot in told.given.get(step, ()):
        if spot.run not in told.order or told.order[spot.run] > told.order[before.run]:
            return True
        if spot.run == before.run and spot.seq >= before.seq:
            return True
    return False


def _done_once(store: Store, plan: str) -> set[str]:
    """The steps of a stored plan that nobody may repeat unasked."""
    steps: Mapping[str, _Body] = json.loads(store.get(Digest(plan)))["steps"]
    return {
        name
        for name, step in steps.items()
        if step.get("effects") == "external" and not step.get("idempotent")
    }
