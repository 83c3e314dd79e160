"""What earlier versions left is read for ever: the same events, the same chain, the same states."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from holdfast.core.decide import Ending, settle
from holdfast.core.fold import apply, fold
from holdfast.core.react import can_never_start, may_start, react
from holdfast.core.reasons import CODES
from holdfast.core.state import State
from holdfast.core.views import run_json
from holdfast.engine.asked import asked_in
from holdfast.engine.audit import audit
from holdfast.engine.journals import read_plan, read_state
from holdfast.engine.outlays import saved_in
from holdfast.engine.replans import led_to
from holdfast.model.digest import Json
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    AttemptStarted,
    EffectConfirmed,
    Recorded,
    RunEnded,
    RunRested,
    RunResumed,
    RunStarted,
    StepFailed,
    StepHeld,
    StepsReused,
)
from holdfast.model.plan import RunId
from holdfast.ports import Store
from holdfast.store.codec import KINDS, decode, encode, first_hash, next_hash
from holdfast.store.memory import MemoryStore
from holdfast.store.sqlite import SqliteStore
from tests.histories.golden_store import GOLDEN, HISTORIES, fill
from tests.histories.record import SCENARIOS

# Reasons that only a preview gives, or that a view derives; no journal has them.
FORETOLD = {"key_version", "condition_open", "items_open", "reguarded", "skipped_by_person"}


def test_every_kind_of_event_has_a_history() -> None:
    kinds = {row[2] for h in HISTORIES.values() for rows in h["journals"].values() for row in rows}
    assert kinds == {*KINDS}


@pytest.mark.req("R186")
@pytest.mark.parametrize("name", HISTORIES)
def test_every_event_is_read_and_written_as_it_was_and_the_chain_holds(name: str) -> None:
    for journal, rows in HISTORIES[name]["journals"].items():
        chain = first_hash(journal)
        for seq, at, kind, body, recorded in rows:
            assert encode(decode(kind, body)) == (kind, body)
            chain = next_hash(chain, seq, at, kind, body)
            assert chain.hex() == recorded


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = MemoryStore()
    if request.param == "sqlite":
        made = SqliteStore.open(str(tmp_path / "store"), create=True)
    yield made
    made.close()


def _as_then(now: Any, then: Any) -> Any:
    """What is said now, without the keys that nobody knew then: later versions may say more."""
    if not isinstance(then, dict):
        return now
    return {key: _as_then(value, then[key]) for key, value in now.items() if key in then}


def _is_resumed(store: Store, run: str) -> bool:
    return any(isinstance(item.event, RunResumed) for item in store.read(f"run:{run}"))


@pytest.mark.parametrize("name", HISTORIES)
def test_every_run_folds_to_the_state_it_had(store: Store, name: str) -> None:
    history = HISTORIES[name]
    fill(store, history)
    for run, then in history["states"].items():
        state = read_state(store, RunId(run))
        assert state is not None
        asked = asked_in(store, state)
        saved = saved_in(store, state).cost
        file, replaces = then["plan"]["file"], led_to(store, state)
        now = run_json(state, file=file, now=0, asked=asked, saved=saved, replaces=replaces)
        if then["status"] == "superseded" or _is_resumed(store, run):
            # Then it was the time from the last start to the end, now it is that of work in all starts.
            cast("dict[str, Json]", now["totals"])["duration_ms"] = then["totals"]["duration_ms"]
        assert _as_then(now, then) == then, run
    assert audit(store).problems == ()


# --- decisions: what the present code does wherever a recorded run stood -----------------------------

ENDINGS = (AttemptAccepted, AttemptParked, AttemptRejected, AttemptFailed, AttemptLost)
VERDICTS = (StepFailed, EffectConfirmed)
# Decided in another way before a wave in which everything failed ended a run.
OTHERWISE = {"failures-main": "wave_failed", "guards-main": "wave_failed"}
ENOUGH = {"gpu": 1 << 20, "cpus": 1 << 20}  # whatever machine it was


class Decided(NamedTuple):
    """A place in a journal where something was decided: what stands there, and what is decided now."""

    at: str
    then: object
    now: object


def _decisions(store: Store, run: str) -> Iterator[Decided]:
    """Go through the journal of a run and decide anew at every event, from what came before it."""
    events = list(store.read(f"run:{run}"))
    start = cast("RunStarted", events[0].event)
    state = fold(read_plan(store, start.plan), events[:1], partial(read_plan, store))
    for index, recorded in enumerate(events[1:], 1):
        if isinstance(
            recorded.event, StepsReused
        ):  # as many events with one step each mean the same
            for item in recorded.event.items:
                there = (
                    item.step if item.step in react(state, seen=0, now=recorded.at).probe else ""
                )
                yield Decided(f"{run} {recorded.seq} StepsReused", item.step, there)
                apply(state, recorded._replace(event=StepsReused((item,))))
                state.seq -= 1
            state.seq += 1
            continue
        place = f"{run} {recorded.seq} {type(recorded.event).__name__}"
        yield from (Decided(place, *both) for both in _decided(state, events, index))
        apply(state, recorded)


def _decided(state: State, events: list[Recorded], index: int) -> Iterator[tuple[object, object]]:
    """What was decided at one event, and what is decided there now."""
    _, at, event = events[index]
    if isinstance(event, AttemptStarted):
        yield event.step, event.step if event.step in react(state, seen=0, now=at).probe else ""
        yield True, may_start(state, event.step, ENOUGH)
    if isinstance(event, EffectConfirmed) and isinstance(events[index + 1].event, ENDINGS):
        yield from _settled(state, events, index, index + 1)
    before = events[index - 1].event
    if isinstance(event, ENDINGS) and not isinstance(before, EffectConfirmed):
        yield from _settled(state, events, index, index)
    if isinstance(event, RunRested) or event == RunEnded("completed"):
        stopping = isinstance(event, RunRested) and event.status == "paused"
        stopping = stopping or (state.options.fail_fast and state.counts["failed"] > 0)
        stuck = {step for step in state.ready if can_never_start(state, step, {"gpu": 1})}
        yield event, react(state, seen=0, now=at, stopping=stopping, stuck=stuck).end


def _settled(
    state: State, events: list[Recorded], first: int, index: int
) -> Iterator[tuple[object, object]]:
    """An attempt ended: what follows of it, and nothing else."""
    ending = cast("Ending", events[index].event)
    facts = settle(state, ending)
    yield [item.event for item in events[first : first + len(facts)]], facts
    for item in events[first + len(facts) : first + len(facts) + 1]:
        follows = isinstance(item.event, VERDICTS) or (
            isinstance(item.event, StepHeld)
            and item.event.reason.code in {"effect_unconfirmed", "stuck"}
        )
        yield False, follows and getattr(item.event, "step", "") == ending.step


@pytest.mark.req("I15")
@pytest.mark.parametrize("name", HISTORIES)
def test_every_decision_is_made_again(name: str) -> None:
    store = MemoryStore()
    fill(store, HISTORIES[name])
    made = [item for run in HISTORIES[name]["states"] for item in _decisions(store, run)]
    assert made
    others = [item for item in made if item.then != item.now]
    if name in OTHERWISE:
        rested = [(item.then, item.now) for item in others]
        assert [isinstance(then, RunRested) for then, _ in rested] == [True]
        assert [now.reason.code for _, now in rested if isinstance(now, RunRested)] == [
            OTHERWISE[name]
        ]
    else:
        assert others == []


@pytest.mark.req("I15")
def test_there_are_enough_histories_and_every_feature_is_in_one() -> None:
    assert len(HISTORIES) >= 50
    assert {*SCENARIOS} == {file.stem for file in GOLDEN.glob("*.json")}
    text = "\n".join(
        row[3] for h in HISTORIES.values() for rows in h["journals"].values() for row in rows
    )
    absent = {code for code in CODES if f'"{code}"' not in text}
    assert absent == FORETOLD
