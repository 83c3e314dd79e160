"""kill -9 of workers, raylets and drivers of a Ray cluster, at any moment and again and again."""

import os
import random
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.project import Project, kill, until
from tests.cli.test_cluster import HERE, above, words_of
from tests.cluster import Cluster, shared

STEPS = 40
KILLS = 25


def workers(project: Project) -> list[int]:
    """The processes of Ray that run steps of the project now."""
    place, found = os.fsencode(project.folder), set()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, StopIteration):
            if place in (entry / "cmdline").read_bytes():
                chain = above(int(entry.name))
                found.add(next(pid for pid in chain if words_of(pid).startswith("ray::")))
    return sorted(found)


def plan(project: Project) -> None:
    """A few chains, gathered at the end; each step says what is above it."""
    steps: dict[str, dict[str, object]] = {}
    for at in range(STEPS):
        body = f"sleep 0.{at % 4 + 1}; cat $HOLDFAST_INPUTS/* 2> /dev/null; echo {at}"
        steps[f"s{at}"] = {
            "shell": project.sh(body),
            **({"needs": [f"s{at - 8}"]} if at >= 8 else {}),
        }
    last = [f"s{at}" for at in range(STEPS - 8, STEPS)]
    steps["end"] = {"shell": project.sh("cat $HOLDFAST_INPUTS/*"), "needs": last}
    project.plan(steps)


def disturbed(project: Project, cluster: Cluster, rng: random.Random) -> None:
    """Drive the run to its end through kills: mostly of workers, some of drivers, one of a raylet."""
    raylet = rng.choice(cluster.raylets)
    words = ["run"]
    for at in range(KILLS):
        engine = project.start(*words, "--json", *cluster.words, env=HERE)
        words = ["resume"]
        begun = len(project.begun())
        until(lambda n=begun: len(project.begun()) > n or engine.poll() is not None)  # type: ignore[misc]  # noqa: B023
        if at == KILLS // 3:
            os.kill(raylet, signal.SIGKILL)
        elif found := workers(project):
            with suppress(ProcessLookupError):
                os.kill(rng.choice(found), signal.SIGKILL)
        if engine.poll() is None and rng.random() < 0.5:
            kill(engine)
        else:
            engine.communicate(timeout=120)
        if project.status().data["status"] == "completed":
            return
    while project.status().data["status"] != "completed":
        project.resume(*cluster.words, env=HERE)


@pytest.mark.soak("cluster")
@pytest.mark.req("R177")
@pytest.mark.parametrize("seed", range(3))
def test_a_run_through_many_deaths_has_the_undisturbed_result(tmp_path: Path, seed: int) -> None:
    other = tmp_path / "other"
    other.mkdir()
    calm, project = Project(other), Project(tmp_path)
    plan(calm)
    plan(project)
    assert calm.run().code == 0
    with shared(tmp_path) as cluster:
        disturbed(project, cluster, random.Random(seed))
    assert project.shown("end") == calm.shown("end")
    accepted = [e["step"] for e in project.events() if e["event"] == "attempt_accepted"]
    assert sorted(accepted) == sorted([*(f"s{at}" for at in range(STEPS)), "end"]), "each once"
    assert project.call("verify").code == 0
    project.end()
