"""Places: never more than there are, and those who are under way come before those who start."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.places import HERE, INLINE, Places
from holdfast.engine.world import World
from holdfast.model.plan import StepId
from tests.core.builders import plan, sid, state_of, step

SHELLS, ASKING = "abc", "xyz"


class Ready:
    """A provider that bears two calls."""

    def __init__(self) -> None:
        self.loaded = True

    def at_once(self, provider: str) -> int:
        return 2

    def is_ready(self, provider: str) -> bool:
        return self.loaded


def places(
    parallel: int = 1, *, one_by_one: bool = False, wake: Callable[[], None] = lambda: None
) -> Places:
    """Places for three commands, three questions and one function."""
    steps = [step(name) for name in (*SHELLS, "f")]
    steps += [replace(step(name), uses="llm", model="p:m") for name in ASKING]
    world = SimpleNamespace(
        parallel=parallel,
        one_by_one=one_by_one,
        inline={sid("f"): None},
        models=lambda: None,
        elsewhere=0,
    )
    return Places(cast("World", world), state_of(plan(*steps)), Ready(), wake)


def test_a_step_takes_its_place_where_it_works() -> None:
    found = places()
    assert [found.of(sid(name)) for name in "afx"] == [HERE, INLINE, "p"]
    found.begin(sid("a"))
    assert not found.has_room(HERE)
    found.begin(sid("x"))
    assert found.has_room("p")
    found.begin(sid("y"))
    assert not found.has_room("p")
    found.end(sid("x"))
    assert found.has_room("p")
    assert not found.has_room(HERE)


def test_one_by_one_nothing_starts_beside_another() -> None:
    found = places(parallel=1, one_by_one=True)
    found.begin(sid("x"))
    assert not found.has_room("p")
    assert not found.has_room(HERE)
    found.end(sid("x"))
    assert found.has_room("p")


def test_who_asks_gives_its_place_back_and_takes_one_again_before_others_start() -> None:
    async def play() -> None:
        woken: list[str] = []
        found = places(wake=lambda: woken.append("!"))
        found.begin(sid("a"))
        found.give_back(sid("a"))
        assert woken == ["!"]
        assert found.has_room(HERE)
        found.begin(sid("b"))
        turn = asyncio.ensure_future(found.take(sid("a")))
        gone = asyncio.ensure_future(found.take(sid("x")))
        await asyncio.sleep(0)
        gone.cancel()
        found.end(sid("b"))
        await turn
        assert not found.has_room(HERE)
        await found.take(sid("a"))  # it has one
        found.end(sid("a"))
        assert found.has_room(HERE)

    asyncio.run(play())


@given(st.integers(1, 3), st.lists(st.tuples(st.sampled_from("beat!"), st.sampled_from("abcxyz"))))
def test_there_are_never_more_than_places(parallel: int, moves: list[tuple[str, str]]) -> None:
    async def play() -> None:
        found = places(parallel)
        under_way: dict[StepId, str] = {}
        turns: dict[StepId, asyncio.Task[None]] = {}
        for move, name in moves:
            step_id = sid(name)
            place = found.of(step_id)
            if move == "b" and step_id not in under_way and found.has_room(place):
                found.begin(step_id)
                under_way[step_id] = place
            elif step_id not in under_way:
                continue
            elif move == "e":
                if turn := turns.pop(step_id, None):
                    turn.cancel()
                found.end(step_id)
                del under_way[step_id]
            elif step_id in turns and not turns[step_id].done():
                if move == "!":
                    turns.pop(step_id).cancel()
            elif move == "a":
                found.give_back(step_id)
            elif move == "t":
                turns[step_id] = asyncio.create_task(found.take(step_id))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert len(found.working) <= parallel
            assert found.working <= under_way.keys()
            assert Counter(under_way.values())["p"] <= 2
            waiting = [turn for turn in turns.values() if not turn.done()]
            assert not waiting or len(found.working) == parallel, "who waits has a reason"
        for step_id in list(under_way):
            if turn := turns.pop(step_id, None):
                turn.cancel()
            found.end(step_id)
            await asyncio.sleep(0)
        assert not found.working
        assert found.has_room(HERE)

    asyncio.run(play())
