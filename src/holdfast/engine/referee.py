"""A second reading of a run's journal, from its rows alone.

It shares nothing with the fold but the meaning of the events: it reads the stored text by itself, knows
the needs from the stored plan by itself, and says in its own words where each step stands. `verify`
compares both; a mistake in one of them, or in what was stored, shows as a difference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

from holdfast.model.digest import Json
from holdfast.ports import Raw

_LEFT_OUT: Final = frozenset({"not_selected", "condition_unmet", "condition_above"})
_PLAIN_NEED: Final = 4  # parts of a need that nobody goes on without
_NO_LATER: Final[Mapping[str, Mapping[str, Json]]] = {}
_Body = Mapping[str, Any]  # the JSON of one event; what it has to hold follows from its kind


class Stand(NamedTuple):
    """Where a step stands: its phase, how often it was tried, which content it has under which ref."""

    phase: str = "pending"
    attempts: int = 0
    digest: str = ""
    config_ref: str = ""


class Claimed(NamedTuple):
    """An attempt that was begun under a claim."""

    step: str
    attempt: int
    config_ref: str
    fence: int


@dataclass
class Reading:
    """What the rows of one run say, and everything in them that cannot be."""

    needs: dict[str, Sequence[str]]
    plans: Callable[[str], Mapping[str, Json]]
    limits: _Body = field(default_factory=dict)
    status: str = ""
    gaps: set[str] = field(default_factory=set)  # steps that a person goes on without
    steps: dict[str, Stand] = field(default_factory=dict)
    begun: dict[str, _Body] = field(default_factory=dict)  # the attempts that go on
    parked: dict[str, _Body] = field(
        default_factory=dict
    )  # those whose candidate people decide about
    effects: dict[str, str] = field(default_factory=dict)  # started and not confirmed
    calls: set[tuple[str, int]] = field(default_factory=set)  # of steps, not yet answered
    accepted: set[str] = field(default_factory=set)
    free: set[tuple[str, str]] = field(default_factory=set)  # steps, and what they go on without
    conflicts: dict[str, Sequence[str]] = field(default_factory=dict)  # open ones, who takes part
    doubted: tuple[str, ...] = ()  # what speaks against the plan, until it is decided
    left_out: set[str] = field(default_factory=set)
    claimed: list[Claimed] = field(default_factory=list)
    let_go: set[tuple[str, int]] = field(default_factory=set)  # attempts that kept no claim
    asking: dict[str, _Body] = field(default_factory=dict)  # steps that people may be asked about
    begun_asking: list[_Body] = field(default_factory=list)  # their attempts
    accepted_asking: list[_Body] = field(default_factory=list)
    engines: int = 0  # how many took the run, one after the other
    problems: list[str] = field(default_factory=list)
    seq: int = 0

    def wrong(self, what: str) -> None:
        self.problems.append(f"event {self.seq}: {what}")

    def put(self, step: str, phase: str, *allowed: str) -> Stand:
        """Move a step, and say so if it could not be moved from where it stood."""
        here = self.steps.get(step)
        if here is None:
            self.wrong(f"'{step}' is no step of the plan")
            here = Stand()
        elif here.phase not in allowed:
            self.wrong(f"step '{step}' is {here.phase} and becomes {phase}")
        now = self.steps[step] = here._replace(phase=phase)
        return now

    def learn(self, step: str, data: Mapping[str, Any]) -> None:
        """Take note of a step of the plan."""
        self.wait(step, data.get("needs", ()))
        self.steps[step] = Stand()
        if _asks(data):
            self.asking[step] = data

    def wait(self, step: str, needs: Sequence[Sequence[str]]) -> None:
        """Take note of what a step waits for, and of what it goes on without."""
        self.needs[step] = [need[0] for need in needs]
        self.free |= {(step, need[0]) for need in needs if len(need) > _PLAIN_NEED}

    def ask_needs(self, step: str) -> None:
        """Nothing is made or reused before everything it needs is there."""
        for need in self.needs.get(step, ()):
            phase = self.steps[need].phase
            if phase in {"failed", "skipped"} and (step, need) in self.free:
                continue
            if phase not in {"done", "reused"}:
                self.wrong(f"step '{step}' goes on before '{need}' is complete")


def read(
    rows: Iterable[Raw],
    plan: Mapping[str, Json],
    plans: Callable[[str], Mapping[str, Json]] = _NO_LATER.__getitem__,
) -> Reading:
    """Go through the rows of a run's journal; `plan` is the one it began with, as JSON.

    `plans` gives a later one by its digest.
    """
    steps = cast("Mapping[str, Mapping[str, Any]]", plan["steps"])
    reading = Reading({}, plans, limits=cast("_Body", plan.get("limits", {})))
    for step, data in steps.items():
        reading.learn(step, data)
    for row in rows:
        reading.seq += 1
        rule = _RULES.get(row.kind)
        if rule is None:
            reading.wrong(f"'{row.kind}' does not belong in a run's journal")
        elif _may_follow(reading, row.kind):
            rule(reading, json.loads(row.body))
    return reading


def _asks(step: _Body) -> bool:
    """Whether a step has anything to do with people."""
    approvals = any(_asks_over(need) for need in step.get("needs", ()))
    return approvals or "approve" in step or step.get("uses") == "human" or "guards" in step


def _asks_over(need: Sequence[str]) -> bool:
    """Whether an edge asks: one of that type, or one with the name of an approver behind its key."""
    _, kind, _, *approver = need
    return kind == "approval" or bool(approver and approver[0])


def _may_follow(reading: Reading, kind: str) -> bool:
    """A run begins once; what has ended stays so; what rests is first resumed."""
    allowed = {
        "": kind == "run_started",
        "running": kind != "run_started",
        "completed": False,
        "superseded": False,
    }.get(reading.status, kind in {"run_resumed", "run_ended", "replan_decided"})
    if not allowed:
        reading.wrong(f"'{kind}' although the run is {reading.status or 'not begun'}")
    return allowed


def _run_started(reading: Reading, _: _Body) -> None:
    reading.status, reading.engines = "running", 1


def _run_resumed(reading: Reading, _: _Body) -> None:
    reading.status = "running"
    reading.engines += 1


def _steps_reused(reading: Reading, body: _Body) -> None:
    for step, ref, digest, *_ in body["items"]:
        reading.ask_needs(step)
        here = reading.put(step, "reused", "pending")
        reading.steps[step] = here._replace(digest=digest, config_ref=ref)


def _steps_taken(reading: Reading, body: _Body) -> None:
    for step, ref, _input, _own, digest, *_ in body["items"]:
        _steps_reused(reading, {"items": [[step, ref, digest]]})


def _attempt_started(reading: Reading, body: _Body) -> None:
    step, number = body["step"], body["attempt"]
    reading.ask_needs(step)
    here = reading.put(step, "running", "pending")
    if number != here.attempts + 1:
        reading.wrong(f"attempt {number} of step '{step}' follows attempt {here.attempts}")
    reading.steps[step] = here._replace(attempts=number, config_ref=body["config_ref"])
    reading.begun[step] = body
    if step in reading.asking:
        reading.begun_asking.append(body)
    if fence := body.get("fence", 0):
        reading.claimed.append(Claimed(step, number, body["config_ref"], fence))


def _end(reading: Reading, body: _Body) -> _Body:
    """The start of the attempt that this event ends."""
    step = body["step"]
    reading.calls = {call for call in reading.calls if call[0] != step}
    begun = reading.begun.pop(step, None) or reading.parked.pop(step, None)
    if begun is None or begun["attempt"] != body["attempt"]:
        reading.wrong(f"attempt {body['attempt']} of step '{step}' ends and was not going on")
    return begun or {}


def _attempt_accepted(reading: Reading, body: _Body) -> None:
    step = body["step"]
    begun = _end(reading, body)
    made = begun.get("reguard") is None or bool(begun.get("approvals"))
    here = reading.put(step, "done" if made else "reused", "running", "waiting")
    if step in reading.accepted:
        reading.wrong(f"step '{step}' is accepted for the second time")
    reading.accepted.add(step)
    reading.steps[step] = here._replace(digest=body["digest"])
    if step in reading.asking:
        reading.accepted_asking.append(body)


def _attempt_parked(reading: Reading, body: _Body) -> None:
    begun = reading.begun.get(body["step"])
    if begun is None or begun["attempt"] != body["attempt"]:
        reading.wrong(f"a candidate of step '{body['step']}' is kept that nothing made")
    reading.parked[body["step"]] = reading.begun.pop(body["step"], {})
    reading.let_go.add((body["step"], body["attempt"]))
    reading.put(body["step"], "waiting", "running")


def _attempt_ended(reading: Reading, body: _Body) -> None:
    _end(reading, body)
    reading.put(body["step"], "pending", "running", "waiting")


def _step_failed(reading: Reading, body: _Body) -> None:
    reading.put(body["step"], "failed", "pending", "waiting")


def _step_held(reading: Reading, body: _Body) -> None:
    reading.put(body["step"], "waiting", "pending", "waiting")


def _steps_released(reading: Reading, body: _Body) -> None:
    for step in body["steps"]:
        reading.put(step, "pending", "waiting")


def _steps_reopened(reading: Reading, body: _Body) -> None:
    _made_again(reading, body["steps"])
    for step in body["steps"]:
        if step in reading.begun:
            reading.wrong(f"step '{step}' is sent back while it goes on")
        here = reading.put(
            step, "pending", "pending", "done", "reused", "waiting", "failed", "skipped"
        )
        reading.steps[step] = here._replace(digest="")
        reading.accepted.discard(step)
        reading.gaps.discard(step)
        reading.parked.pop(step, None)
        reading.left_out.discard(step)
    if not {body["step"], body["by"]} <= {*body["steps"]}:
        reading.wrong(f"step '{body['by']}' sends '{body['step']}' back, and one of them stays")


def _plan_extended(reading: Reading, body: _Body) -> None:
    """Exactly the named steps are new, and nothing that was there is another now.

    But for one that had not begun, and from now on waits for exactly these steps as its items. Of the
    limits only those of agents may be narrower.
    """
    plan = reading.plans(body["plan"])
    later = cast("Mapping[str, Mapping[str, Any]]", plan["steps"])
    if not _narrower(reading.limits, limits := cast("_Body", plan["limits"])):
        reading.wrong("the plan that the run goes on with has other limits")
    reading.limits = limits
    if later.keys() - reading.steps.keys() != set(body["added"]):
        reading.wrong("the plan that the run goes on with has not just the added steps")
    for step, known in list(reading.needs.items()):
        needs = later.get(step, {}).get("needs", ())
        now = [need[0] for need in needs]
        if now == known:
            continue
        if _gathers(reading, step, now, body["added"]):
            reading.wait(step, needs)
        else:
            reading.wrong(f"step '{step}' is another one in the plan that the run goes on with")
    for step in body["added"]:
        if step in reading.steps:
            reading.wrong(f"step '{step}' is added and was there already")
        elif step in later:
            reading.learn(step, later[step])


def _gathers(reading: Reading, step: str, needs: list[str], added: Sequence[str]) -> bool:
    """Whether a step needs what is added beside what it needed before, as its items."""
    known = [*reading.needs[step]]
    items, here = needs[len(known) :], reading.steps[step]
    if needs[: len(known)] != known or sorted(items) != sorted(added) or here.phase != "pending":
        return False
    return all(item.startswith(f"{step}[") for item in items)


def _narrower(before: _Body, now: _Body) -> bool:
    known, agents = before.get("agents", {}), now.get("agents", {})
    others = [{key: of[key] for key in of if key != "agents"} for of in (before, now)]
    return others[0] == others[1] and all(
        agents.get(name) in range(1, most + 1) for name, most in known.items()
    )


def _request_refused(_reading: Reading, _body: _Body) -> None:
    """It changes nothing."""


def _step_waived(reading: Reading, body: _Body) -> None:
    here = reading.put(body["step"], "reused", "pending")
    reading.steps[body["step"]] = here._replace(
        digest=body["digest"], config_ref=body["config_ref"]
    )
    reading.gaps.add(body["step"])


def _gap_closed(reading: Reading, body: _Body) -> None:
    if body["step"] not in reading.gaps:
        reading.wrong(f"a gap at step '{body['step']}' is closed that was not there")
    _steps_reopened(reading, {**body, "by": body["step"]})


def _call_started(reading: Reading, body: _Body) -> None:
    begun, call = reading.begun.get(body["step"]), (body["step"], body["call"])
    if begun is None or begun["attempt"] != body["attempt"] or call in reading.calls:
        reading.wrong(f"call {call[1]} of step '{call[0]}' begins, which cannot be")
    reading.calls.add(call)


def _call_ended(reading: Reading, body: _Body) -> None:
    call = (body["step"], body["call"])
    if call not in reading.calls:
        reading.wrong(f"call {call[1]} of step '{call[0]}' ends and was not under way")
    reading.calls.discard(call)


def _answers_kept(reading: Reading, body: _Body) -> None:
    if body["step"] not in reading.steps:
        reading.wrong(f"answers are kept for '{body['step']}', which is no step of the plan")


def _effect_started(reading: Reading, body: _Body) -> None:
    if body["step"] not in reading.begun:
        reading.wrong(f"an effect of step '{body['step']}' starts outside an attempt")
    reading.effects[body["step"]] = body["key"]


def _tool_used(reading: Reading, body: _Body) -> None:
    """A tool is used, or about to be: only while its attempt runs."""
    begun = reading.begun.get(body["step"])
    if begun is None or begun["attempt"] != body["attempt"]:
        reading.wrong(f"a tool of step '{body['step']}' is used outside an attempt")


def _effect_confirmed(reading: Reading, body: _Body) -> None:
    if reading.effects.pop(body["step"], None) != body["key"]:
        reading.wrong(f"an effect of step '{body['step']}' is confirmed that was not started")


def _conflict_found(reading: Reading, body: _Body) -> None:
    name = body["conflict"]
    if name in reading.conflicts or not set(body["steps"]) <= reading.steps.keys():
        reading.wrong(f"conflict '{name}' is found, which cannot be")
    reading.conflicts[name] = body["steps"]


def _conflict_resolved(reading: Reading, body: _Body) -> None:
    if reading.conflicts.pop(body["conflict"], None) is None:
        reading.wrong(f"conflict '{body['conflict']}' is resolved and was not open")


def _replan_wanted(reading: Reading, body: _Body) -> None:
    if reading.doubted:
        reading.wrong("another plan is wanted while that is open already")
    reading.doubted = tuple(body["triggers"])


def _replan_decided(reading: Reading, body: _Body) -> None:
    if not reading.doubted or reading.doubted != tuple(body["triggers"]):
        reading.wrong("it is decided about a plan that nothing spoke against")
    if reading.status != "running" and body.get("plan") is None:
        reading.wrong("it is decided that a plan goes on while its run rests")
    if body.get("plan") is None:
        reading.doubted = ()


def _made_again(reading: Reading, steps: Iterable[str]) -> None:
    for name, parts in list(reading.conflicts.items()):
        if not set(steps).isdisjoint(parts):
            del reading.conflicts[name]


def _steps_skipped(reading: Reading, body: _Body) -> None:
    for step, code, _ in body["items"]:
        reading.put(step, "skipped", "pending")
        if code in _LEFT_OUT:
            reading.left_out.add(step)


def _steps_reset(reading: Reading, body: _Body) -> None:
    _made_again(reading, body["steps"])
    for step in body["steps"]:
        reading.put(step, "pending", "failed", "skipped", "waiting")
        reading.parked.pop(step, None)
        reading.left_out.discard(step)


def _outputs_placed(reading: Reading, body: _Body) -> None:
    here = reading.steps.get(body["step"])
    if here is None or here.phase not in {"pending", "reused", "done"}:
        reading.wrong(f"outputs of step '{body['step']}' are placed, which cannot be")


def _rest(reading: Reading, body: _Body) -> None:
    if reading.begun:
        reading.wrong(f"the run is {body['status']} while {sorted(reading.begun)} go on")
    reading.status = body["status"]


def _run_ended(reading: Reading, body: _Body) -> None:
    _rest(reading, body)
    if reading.status == "completed":
        if reading.doubted:
            reading.wrong("the run is completed, and another plan is wanted")
        for name in reading.conflicts:
            reading.wrong(f"the run is completed, and conflict '{name}' is open")
        for step, here in reading.steps.items():
            if here.phase not in {"done", "reused"} and step not in reading.left_out:
                reading.wrong(f"the run is completed, and step '{step}' is {here.phase}")


_RULES: Final[dict[str, Callable[[Reading, _Body], None]]] = {
    "run_started": _run_started,
    "run_resumed": _run_resumed,
    "steps_reused": _steps_reused,
    "steps_taken": _steps_taken,
    "attempt_started": _attempt_started,
    "attempt_accepted": _attempt_accepted,
    "attempt_parked": _attempt_parked,
    "call_started": _call_started,
    "call_answered": _call_ended,
    "call_failed": _call_ended,
    "answers_kept": _answers_kept,
    "effect_started": _effect_started,
    "effect_confirmed": _effect_confirmed,
    "attempt_rejected": _attempt_ended,
    "attempt_failed": _attempt_ended,
    "attempt_lost": _attempt_ended,
    "outputs_placed": _outputs_placed,
    "step_failed": _step_failed,
    "step_held": _step_held,
    "steps_skipped": _steps_skipped,
    "steps_reset": _steps_reset,
    "steps_released": _steps_released,
    "steps_reopened": _steps_reopened,
    "plan_extended": _plan_extended,
    "request_refused": _request_refused,
    "step_waived": _step_waived,
    "gap_closed": _gap_closed,
    "tool_started": _tool_used,
    "tool_used": _tool_used,
    "conflict_found": _conflict_found,
    "conflict_resolved": _conflict_resolved,
    "replan_wanted": _replan_wanted,
    "replan_decided": _replan_decided,
    "run_rested": _rest,
    "run_ended": _run_ended,
}
