"""show --handoff and --context: what a step handed over, and what its attempt was told."""

from __future__ import annotations

import json
from typing import Literal

from holdfast.cli.place import known_step
from holdfast.cli.say import out, out_json, talk
from holdfast.core.state import State
from holdfast.core.told import Told
from holdfast.engine.elsewhere import handoffs_of
from holdfast.engine.words import attempts_of, maker
from holdfast.errors import UsageError
from holdfast.model.digest import Digest
from holdfast.model.handoff import handoff_json
from holdfast.model.plan import RunId, StepId
from holdfast.model.text import is_count
from holdfast.ports import Store

What = Literal["handoff", "context"]


def print_told(store: Store, state: State, ref: str, what: What, *, as_json: bool) -> None:
    """Print one of both, of a STEP as it stands or of a STEP@ATTEMPT of the run."""
    name, _, number = ref.partition("@")
    step_id = known_step(state.plan, name)
    if number and not is_count(number):
        raise UsageError(f"'{number}' is no number of an attempt", hint=f"{name}@1")
    if what == "handoff":
        _print_handoff(store, state, step_id, number, as_json=as_json)
    else:
        _print_context(store, state, step_id, number, as_json=as_json)


def handoff_of(store: Store, state: State, step_id: StepId) -> Told | None:
    """What a step tells in a run as it stands."""
    handoffs = handoffs_of(store, state)
    return next(iter(handoffs.told_since(state, [step_id])), None)


def _print_handoff(
    store: Store, state: State, step_id: StepId, number: str, *, as_json: bool
) -> None:
    handoffs = handoffs_of(store, state)
    found = handoffs.told_since(state, [step_id])
    if number:
        every = [*found, *handoffs.before(state, found)]
        found = [one for one in every if one.step == step_id and one.attempt == int(number)]
    if not found:
        raise UsageError(
            f"'{step_id}' handed nothing over", hint="a step writes it to $HOLDFAST_HANDOFF"
        )
    told = found[0]
    body = handoff_json(told.handoff)
    if as_json:
        out_json(
            {
                "schema": "holdfast.handoff/1",
                "id": told.id,
                "step": step_id,
                "run": told.run,
                "attempt": told.attempt,
                "failed": told.failed,
                "handoff": body,
            }
        )
        return
    out(json.dumps(body, ensure_ascii=False, indent=2), raw=True)


def _print_context(
    store: Store, state: State, step_id: StepId, number: str, *, as_json: bool
) -> None:
    run, attempt, page = told_to(store, state, step_id, int(number) if number else 0)
    text = "" if page is None else store.get(page).decode("utf-8", "replace")
    if as_json:
        out_json(
            {
                "schema": "holdfast.context/1",
                "step": step_id,
                "run": run,
                "attempt": attempt,
                "digest": page,
                "text": text or None,
            }
        )
    elif text:
        out(text, raw=True)
    else:
        talk(f"attempt {attempt} of '{step_id}' was told nothing of the work before it")


def told_to(
    store: Store, state: State, step_id: StepId, number: int = 0
) -> tuple[RunId, int, Digest | None]:
    """Run and number of the attempt that stands, or of the last one, and the page that it was given."""
    made = None if state.steps[step_id].attempts else maker(store, state, step_id)
    run = state.run if made is None else made.run
    number = number or (0 if made is None else made.attempt)
    started = [event for event in attempts_of(store, run) if event.step == step_id]
    for event in reversed(started):
        if number in {0, event.attempt}:
            return run, event.attempt, event.context
    which = f"attempt {number}" if number else "attempt"
    raise UsageError(f"'{step_id}' has no {which} in {run}", hint=f"holdfast logs {step_id}")
