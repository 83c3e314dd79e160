"""Many lines on one store, and a nemesis among them; when it is quiet, all is as if it had not been there.

`make soak ONLY=nemesis` plays for a quarter of an hour on each store, `HOURS=4` for so many hours. A play
that found something leaves its project, says where, and says its seed; `SEED=7` plays that one again.
"""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.store.postgres import make_store
from tests.crash.nemesis.play import Stage, played
from tests.crash.report import Report
from tests.postgres import new_schema, server
from tests.soak import PLACE

HOURS = float(os.environ.get("HOURS", "0.25"))
SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(1_000_000))
DISK = 256  # MiB
LONG = 300.0  # seconds in which each deed has its turn


def judged(stage: Stage, name: str, sweep: Callable[[Report], None]) -> None:
    report = Report(name)
    play = played(stage, report)
    report.outcomes["seed"] = stage.seed
    report.outcomes.update(play.sampler.figures())
    sweep(report)
    if report.violations:
        left = play.keep(PLACE / f"nemesis-{stage.seed}-{'server' if stage.server else 'disk'}")
        pytest.fail("\n".join([f"left in {left}", *report.violations[:8]]))
    missed = [deed for deed in play.nemesis.deeds() if not report.outcomes[deed]]
    assert not missed or stage.seconds < LONG
    assert report.fired > 0
    assert report.work > 0
    assert report.kept > 0


@pytest.mark.soak("nemesis")
@pytest.mark.req("I1", "I2", "I9", "I12", "I16", "I17", "D15")
def test_all_is_well_in_the_end_on_a_small_disk(
    tmp_path: Path,
    disk: Callable[[int], Path],
    require_part: Callable[[str], str],
    sweep: Callable[[Report], None],
) -> None:
    stage = Stage(
        tmp_path / "play",
        HOURS * 3600,
        SEED,
        disk=disk(DISK),
        clock=(require_part("faketime"), "-f", "+1h"),
    )
    judged(stage, "all at once, SQLite", sweep)


@pytest.mark.soak("nemesis")
@pytest.mark.req("I1", "I2", "I9", "I12", "I16", "I17", "D19")
def test_all_is_well_in_the_end_on_a_server_that_comes_and_goes(
    tmp_path: Path, require_part: Callable[[str], str], sweep: Callable[[Report], None]
) -> None:
    with server() as running:
        url = running.url(new_schema())
        make_store(url)
        stage = Stage(
            tmp_path / "play",
            HOURS * 3600,
            SEED,
            server=running,
            place=url,
            clock=(require_part("faketime"), "-f", "-1d"),
        )
        judged(stage, "all at once, PostgreSQL", sweep)
