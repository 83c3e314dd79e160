"""Engines killed while models answer: every request is accounted for, and no answer is asked for twice."""

import os
import random
import signal
from collections import Counter

import pytest

from holdfast.testing.server import Asked, ModelServer, Reply, Say
from tests.cli.models import configure, step
from tests.cli.project import Project, until

STEPS = 200 if os.environ.get("HOLDFAST_SOAK") else 40


def answer(asked: Asked) -> Reply:
    return Say(f"answer to {asked.last}", delay=0.02 * (asked.number % 3))


@pytest.mark.req("R165")
@pytest.mark.parametrize("seed", range(2))
def test_every_request_is_an_answer_or_visibly_cut_off(project: Project, seed: int) -> None:
    choose = random.Random(seed)
    project.plan({f"s{n}": step(f"number {n}") for n in range(STEPS)})
    with ModelServer(answer) as server:
        configure(project, server.url)
        while len(server.requests) < STEPS:
            begun = len(server.requests)
            word = "resume" if begun else "run"
            engine = project.start(word, "--yes", "-j", "8")
            enough = begun + choose.randrange(1, max(2, STEPS // 6))
            until(
                lambda: len(server.requests) >= enough or engine.poll() is not None,  # noqa: B023
                "some were asked",
            )
            engine.send_signal(signal.SIGKILL)
            engine.wait()
        run = project.resume("--yes")
        requests = Counter(asked.last.removeprefix("# TASK\n") for asked in server.requests)
    assert (run.code, len(run.states), set(run.states.values())) == (0, STEPS, {"done"})
    events = project.events()
    started = Counter(e["step"] for e in events if e["event"] == "call_started")
    answered = Counter(e["step"] for e in events if e["event"] == "call_answered")
    assert set(answered.values()) == {1}, "an answer that was stored is never asked for again"
    for n in range(STEPS):
        asked = requests[f"number {n}"]
        assert 1 <= asked <= started[f"s{n}"], f"s{n} was asked {asked} times"
    cut = run.data["totals"]["interrupted_calls"]
    assert sum(started.values()) == STEPS + cut
    project.ok("verify")
