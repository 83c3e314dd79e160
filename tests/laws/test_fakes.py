"""The fakes do what they say."""

import asyncio

import pytest

from holdfast.model.artifact import Verdict
from holdfast.model.plan import Step, StepId
from holdfast.ports import Batch, Candidate, Job, Outcome
from holdfast.store.memory import MemoryStore
from holdfast.testing import (
    Crash,
    CrashingStore,
    FakeClock,
    ScriptedExecutor,
    failed,
    lost,
    refused_for_good,
    rejected,
)


def job(name: str) -> Job:
    return Job(Step(StepId(name)), 1, "", "", "", "")


def run(executor: ScriptedExecutor, name: str) -> Outcome:
    return asyncio.run(executor.run(job(name)))


def test_the_clock_moves_by_hand_and_by_ticks() -> None:
    clock = FakeClock(100, tick=5)
    assert [clock(), clock()] == [105, 110]
    clock.advance(1000)
    assert clock() == 1115


def test_answers_become_accepted_candidates() -> None:
    answers: dict[str, bytes | str | Candidate] = {
        "a": b"bytes",
        "b": "text",
        "c": Candidate("bytes", b"made", log=b"log"),
    }
    executor = ScriptedExecutor(lambda job: answers[job.step.id])
    found = [run(executor, name).candidate for name in "abc"]
    assert [made.content if made else None for made in found] == [b"bytes", b"text", b"made"]
    assert executor.executed == {"a": 1, "b": 1, "c": 1}
    assert [one.step.id for one in executor.jobs] == ["a", "b", "c"]


def test_mishaps_come_first_and_in_their_order() -> None:
    executor = ScriptedExecutor(lambda _: b"good")
    planned = [rejected("no"), failed("broken"), lost(), refused_for_good("never")]
    executor.mishap("a", *planned)
    assert [run(executor, "a").ended for _ in range(5)] == [
        "rejected",
        "failed",
        "lost",
        "fatal",
        "accepted",
    ]


@pytest.mark.parametrize(
    "call, ended", [("accept", "accepted"), ("reject", "rejected"), ("fatal", "fatal")]
)
def test_the_guard_decides_about_what_was_made_and_what_was_kept(call: str, ended: str) -> None:
    verdict = Verdict("accept" if call == "accept" else "reject" if call == "reject" else "fatal")
    executor = ScriptedExecutor(lambda _: b"x", judge=lambda _, __: verdict)
    assert run(executor, "a").ended == ended
    kept = asyncio.run(executor.judge(job("a"), Candidate("bytes", b"kept")))
    assert (kept.ended, executor.judged) == (ended, {"a": 1})


def test_the_seed_decides_which_attempt_ends_first() -> None:
    async def order(seed: int) -> list[str]:
        executor = ScriptedExecutor(lambda _: b"x", seed=seed)
        ended: list[str] = []

        async def one(name: str) -> None:
            await executor.run(job(name))
            ended.append(name)

        await asyncio.gather(*(one(name) for name in "abcdef"))
        return ended

    orders = {seed: asyncio.run(order(seed)) for seed in range(5)}
    assert all(sorted(found) == list("abcdef") for found in orders.values())
    assert len({tuple(found) for found in orders.values()}) > 1
    assert asyncio.run(order(3)) == orders[3]


@pytest.mark.parametrize("when, stored", [("before", False), ("after", True)])
def test_a_store_crashes_around_a_change_and_stays_dead(when: str, stored: bool) -> None:
    inside = MemoryStore()
    store = CrashingStore(inside, at=2, when="before" if when == "before" else "after")
    first = store.put(b"one")
    with pytest.raises(Crash):
        store.put(b"two")
    assert store.crashed
    assert len(list(inside.blobs())) == (2 if stored else 1)
    assert store.get(first) == b"one", "what it held can still be read"
    for late in (lambda: store.put(b"x"), lambda: store.commit(Batch()), lambda: store.leave("e")):
        with pytest.raises(Crash):
            late()
    inside.put(b"the next engine")


def test_a_store_that_is_not_told_to_crash_counts() -> None:
    store = CrashingStore(MemoryStore())
    store.put(b"one")
    store.commit(Batch())
    assert store.changes == 2
