"""The judges of a play can say no: each finds what it looks for, and nothing where nothing is."""

import random
import threading
from pathlib import Path

import pytest

from tests.crash.nemesis.actors import Engines, Line, at_rest
from tests.crash.nemesis.bounds import LOG_LIMIT, Sampler, Samples
from tests.crash.nemesis.ends import Facts, effects, lost, once, spread, unknown
from tests.crash.nemesis.world import LINES, Told, World, plans
from tests.crash.scene import Answer

RUN = "r-00000000-0000-4000-8000-000000000000"
MB = 1 << 20


def sampled(step: int = 0, handles: int = 0, seconds: int = 600) -> Samples:
    """A process looked at each second of ten minutes, or longer."""
    found = Samples()
    for second in range(seconds):
        found.at.append(float(second))
        found.memory.append(60 * MB + (second % 7) * 4096 + step * second)
        found.handles.append(20 + second % 3 + handles * second // 60)
    return found


@pytest.mark.req("I16")
@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (sampled(), []),
        (sampled(step=20_000), ["memory of the page grows"]),
        (sampled(handles=3), ["handles of the page grow"]),
        (sampled(step=300), []),  # a megabyte an hour, and ten minutes are too short to tell
        (sampled(step=300, seconds=7202), ["memory of the page grows"]),
        (sampled(step=100, seconds=7202), []),
    ],
)
def test_what_grows_is_told(samples: Samples, words: list[str]) -> None:
    told = list(Sampler(None, {"page": samples}).grown())
    assert [line[: len(word)] for line, word in zip(told, words, strict=True)] == words


@pytest.mark.req("I16")
def test_a_log_that_is_too_long_is_told() -> None:
    assert list(Sampler(None, log=LOG_LIMIT).grown()) == []
    assert len(list(Sampler(None, log=LOG_LIMIT + 1).grown())) == 1


@pytest.mark.req("I2")
def test_a_step_that_was_accepted_twice_is_told_unless_it_was_opened_again() -> None:
    accepted = ("attempt_accepted", {"step": "a"})
    assert len(list(once({"run:r": [accepted, accepted]}))) == 1
    assert list(once({"run:r": [accepted, ("steps_reopened", {}), accepted]})) == []


@pytest.mark.req("I1")
def test_what_was_told_and_is_not_there_is_told() -> None:
    words, answer = ("run", "fan.yaml"), Answer(0, f"{RUN} completed\n", "✓ a: 0.1 s, unverified\n")
    told = [Told("fan", words, answer)]
    assert len(list(lost(told, {}))) == 1
    gone: Facts = {"line:fan": [("run_collected", {"run": RUN})]}
    assert list(lost(told, gone)) == []
    accepted: Facts = {f"run:{RUN}": [("attempt_accepted", {"step": "a"})]}
    assert list(lost(told, accepted)) == []
    assert len(list(unknown(words, answer, {f"run:{RUN}": []}))) == 1


@pytest.mark.req("I17")
def test_an_effect_that_nobody_asked_for_again_is_told(tmp_path: Path) -> None:
    world = World(tmp_path, "")
    confirmed: Facts = {"run:r": [("effect_confirmed", {"key": "k1"})]}
    assert len(list(effects(world, confirmed))) == 1, "it never happened"
    world.sink.write_text("k1\nk1\n")
    assert len(list(effects(world, confirmed))) == 1, "it happened twice"
    world.retries["k2"] = 1
    assert len(list(effects(world, confirmed))) == 1, "another one was asked for"
    world.retries["k1"] = 1
    assert list(effects(world, confirmed)) == []


@pytest.mark.req("I16")
def test_a_store_that_is_larger_than_its_work_is_told(tmp_path: Path) -> None:
    (tmp_path / "content").write_bytes(b"x" * (17 * MB))
    assert len(list(spread(tmp_path, 1))) == 1
    assert list(spread(tmp_path, 100)) == []


def line(name: str, tmp_path: Path) -> Line:
    return Line(name, Engines(World(tmp_path, ""), threading.Event()), random.Random(1))


def test_lines_are_at_rest_together_or_all_go_on(tmp_path: Path) -> None:
    first, second = line("fan", tmp_path), line("hand", tmp_path)
    with at_rest([first, second], 60) as ready:
        assert ready
        assert first.turn.locked()
        assert second.turn.locked()
    with second.turn, at_rest([first, second], 0) as ready:
        assert not ready, "one of them is at work"
        assert first.wanted.is_set()
    for one in (first, second):
        assert not one.turn.locked()
        assert not one.wanted.is_set()


def test_every_line_has_a_plan_of_its_own() -> None:
    assert set(LINES) == set(plans()) == {plan["name"] for plan in plans().values()}
