"""The simulation of many workers: nothing is lost under its failures, and it would notice if it were."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.scale.check import judge, model_rate
from bench.scale.hold import Played, play
from bench.scale.lane import Seen
from bench.scale.scene import Scene
from holdfast.store.postgres import make_store
from tests.docs.session import TOP
from tests.postgres import Server, new_schema

ROUGH = Scene(
    steps=60,
    workers=8,
    engines=2,
    lanes=2,
    dies=0.05,
    stands_still=0.05,
    reports_late=0.05,
    cut=0.02,
    window=1.0,
)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_workers_that_die_sleep_and_come_late_lose_and_repeat_nothing(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = str(tmp_path / "store")
    if kind == "postgresql":
        server: Server = request.getfixturevalue("postgres")
        place = server.url(new_schema())
        make_store(place)
    found = judge(kind, play(ROUGH, place))
    assert found.wrong == []
    assert found.accepted == ROUGH.steps
    assert found.died + found.stood_still == found.overtaken > 0


def test_what_must_not_be_is_counted() -> None:
    scene = Scene(steps=4, workers=1, engines=1, lanes=1)
    seen = Seen(
        taken=[1, 2, 2],
        reported=[1, 2],
        lapsed={2: (10.0, 11.0)},
        accepted=[(0, 1, 5.0), (0, 2, 60.0), (1, 9, 61.0)],
        again=[(2, 60.0)],
    )
    found = judge("none", Played(scene, (seen,), left=3, wall=1.0, lasted=61.0))
    assert found.wrong == [
        "lost: 2",
        "twice: 1",
        "taken_twice: 1",
        "made_up: 1",
        "told_late: 1",
        "left: 3",
        "a takeover after 50.0 s",
    ]


def test_the_model_is_workers_over_the_time_that_a_step_takes_one_of_them() -> None:
    smooth = Scene(
        workers=10, duration=4.98, latency=0.01, dies=0, stands_still=0, reports_late=0, cut=0
    )
    assert model_rate(smooth) == pytest.approx(2.0)
    assert model_rate(Scene(workers=10, duration=4.98, dies=0.1)) < 1.5


@pytest.mark.parametrize("way", ["claims", "bareclaims"])
def test_each_step_is_claimed_by_one_process(way: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"bench.own.{way}", str(tmp_path / "store"), "3", "40"],
        cwd=TOP,
        check=True,
        capture_output=True,
    )
    said = json.loads(done.stdout)
    assert (said["twice"], said["lost"]) == (0, 0)
    assert said["fewest"] * 3 <= 40 <= said["most"] * 3
