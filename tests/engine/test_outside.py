"""An effect that may have happened is never repeated unasked: `verify` tells if it was."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from holdfast.core.refs import encode_own, refs_of, structure, w_ref
from holdfast.engine.audit import audit
from holdfast.model.digest import digest_bytes
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptStarted,
    EffectConfirmed,
    EffectStarted,
    Event,
    Options,
    Reason,
    RunEnded,
    RunRested,
    RunStarted,
    StepHeld,
    StepsReset,
    StepWaived,
)
from holdfast.model.line import RunOpened, StepAmended
from holdfast.model.plan import Plan, RunId, Step, StepId, plan_bytes
from holdfast.ports import Append, Batch
from holdfast.store.memory import MemoryStore
from tests.histories.golden_store import HISTORIES, fill

SEND = StepId("send")
KEY = digest_bytes(b"key")
DONE = digest_bytes(b"done\n")
TOLD = "is repeated without a person's word"


def found(history: str, change: Callable[[str, dict[str, Any]], None]) -> tuple[str, ...]:
    """What is told of a recorded history some of whose events are others; the chain agrees with them."""
    stored = json.loads(json.dumps(HISTORIES[history]))
    for rows in stored["journals"].values():
        for row in rows:
            body = json.loads(row[3])
            change(row[2], body)
            row[3] = json.dumps(body, separators=(",", ":"))
    store = MemoryStore()
    fill(store, stored)
    result = audit(store)
    assert result.bits == (2 if result.problems else 0)
    return result.problems


@pytest.mark.req("I17")
def test_an_effect_that_nobody_asked_for_again_is_told() -> None:
    def unasked(kind: str, body: dict[str, Any]) -> None:
        if kind == "steps_reset":
            body.pop("asked", None)

    assert found("interruptions-main", lambda _, __: None) == ()
    (told,) = found("interruptions-main", unasked)
    assert TOLD in told
    assert "step 'effect'" in told


def lines(*runs: tuple[Mapping[str, Any], list[Event]], said: Event | None = None) -> list[str]:
    """What is told of runs, one after the other, of a step with an effect."""
    step = Step(SEND, uses="shell", shell="send", effects="external")
    plan = Plan(name="main", project="", steps={SEND: step})
    own, store = encode_own(step, {}), MemoryStore()
    texts = (own, plan_bytes(plan), structure(plan), b"done\n")
    line: list[tuple[int, Event]] = []
    previous: RunId | None = None
    for number, (options, events) in enumerate(runs):
        run = RunId(f"r-{number}")
        start = RunStarted(
            run, "main", "", digest_bytes(texts[1]), w_ref(plan), Options(**options), "e", previous
        )
        line = [(0, RunOpened(run))]
        if number and said is not None:
            line.insert(0, (0, said))
        appends = [
            Append("line:main", store.last("line:main"), line),
            Append(f"run:{run}", 0, [(0, event) for event in (start, *events)]),
        ]
        blobs = [(digest_bytes(text), text) for text in texts]
        store.open_run(run, "", "main", Batch(appends, [], blobs))
        previous = run
    return [told for told in audit(store).problems if "index" not in told]


REFS = refs_of(
    Step(SEND, uses="shell", shell="send", effects="external"),
    encode_own(Step(SEND, uses="shell", shell="send", effects="external"), {}),
    {},
)


def begin(code: str = "never_ran") -> list[Event]:
    return [AttemptStarted(SEND, 1, *REFS, Reason(code)), EffectStarted(SEND, 1, KEY)]


LOST: list[Event] = [
    *begin(),
    AttemptLost(SEND, 1, "previous_interrupted"),
    StepHeld(SEND, Reason("effect_unconfirmed")),
    RunRested("waiting", Reason("awaiting_person", (SEND,))),
    RunEnded("superseded"),
]
FAILED: list[Event] = [
    *begin(),
    AttemptFailed(SEND, 1, "command_failed"),
    RunRested("failed", Reason("dependency_failed", (SEND,))),
    RunEnded("superseded"),
]
AGAIN: list[Event] = [
    *begin("previous_interrupted"),
    EffectConfirmed(SEND, 1, KEY),
    AttemptAccepted(SEND, 1, DONE),
    RunEnded("completed"),
]
PARKED: list[Event] = [
    *begin(),
    EffectConfirmed(SEND, 1, KEY),
    AttemptParked(SEND, 1, DONE, ("human",), ("a-1",)),
    StepsReset((SEND,), "retried"),
    StepWaived(SEND, digest_bytes(b"gap"), DONE, "bytes", "me", DONE, 1),
    RunEnded("completed"),
]
GIVEN = StepAmended(SEND, *REFS, DONE, "bytes", False, "me", None, None, RunId("r-0"), len(LOST))


@pytest.mark.req("I17")
def test_an_effect_that_an_earlier_run_left_open_is_not_repeated_unasked() -> None:
    (told,) = lines(({}, LOST), ({}, AGAIN))
    assert told.startswith("run 'r-1': event 3: the effect of step 'send' was started in run 'r-0'")
    assert TOLD in told
    assert lines(({}, LOST), ({"force_steps": (SEND,)}, AGAIN)) == []
    assert lines(({}, LOST), ({}, AGAIN), said=GIVEN) == []
    assert lines(({}, FAILED), ({}, AGAIN)) == [], "its command ended by itself"
    assert lines(({}, AGAIN), ({"force": True}, AGAIN)) == [], "it was confirmed"
    assert len(lines(({}, LOST), ({"force": True}, AGAIN))) == 1, "a word about all is about none"


@pytest.mark.req("I17")
def test_an_effect_whose_result_was_gone_on_without_is_not_repeated_unasked() -> None:
    (told,) = lines(({}, PARKED), ({}, AGAIN))
    assert TOLD in told
    assert lines(({}, PARKED), ({"force_steps": (SEND,)}, AGAIN)) == []
