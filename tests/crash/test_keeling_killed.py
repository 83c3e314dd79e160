"""The example that plans again, killed at any changing call or at any moment: the same report in the end."""

import json
import random
import shutil
import time
from pathlib import Path

import pytest

from tests.crash.faults import KILLED, Scene, Shim, each, kill_after, spread, unsound

EXAMPLE = Path(__file__).parents[2] / "examples" / "keeling"
RUN = ("run", "-j", "2")
SLICES = 4


def laid(folder: Path) -> Scene:
    """The example as it ships."""
    scene = Scene(folder)
    left = shutil.ignore_patterns(".holdfast", "__pycache__", "report.md", "report.html", "plots")
    shutil.copytree(EXAMPLE, scene.root, ignore=left)
    return scene


def written(scene: Scene) -> dict[str, bytes]:
    """The report with its plots, byte for byte."""
    files = [*scene.root.glob("report.*"), *scene.root.glob("plots/*")]
    found = {str(file.relative_to(scene.root)): file.read_bytes() for file in files}
    found.pop("report.py")
    return found


def goes_on(scene: Scene, *, resumes: bool) -> None:
    """Whatever was left, `run` comes to the end, and so does `resume` if a run is open."""
    journal = scene.journal()
    is_open = bool(journal.runs) and journal.ended(journal.runs[-1]) is None
    after = scene.call("resume" if is_open and resumes else "run", "--json")
    assert after.code == 0, after.err
    told = json.loads(after.out)
    assert (told["status"], len(told["steps"])) == ("completed", 7)


def is_sound(scene: Scene, wanted: dict[str, bytes]) -> None:
    assert written(scene) == wanted
    assert unsound(scene.store) == []
    journal = scene.journal()
    assert not [run for run in journal.runs if journal.ended(run) is None]
    facts = [fact for run in journal.runs for fact in journal.facts[f"run:{run}"]]
    wanted_by = [body["triggers"] for kind, body in facts if kind == "replan_wanted"]
    decided = [body for kind, body in facts if kind == "replan_decided"]
    assert wanted_by
    assert len({tuple(names) for names in wanted_by}) == 1
    assert {body["code"] for body in decided} == {"prepared"}
    assert {body["step"] for kind, body in facts if kind == "attempt_accepted"} == {
        "look",
        "straight",
        "decades",
        "curve",
        "forecast",
        "conclude",
        "report",
    }


def undisturbed(folder: Path) -> tuple[dict[str, bytes], float]:
    """What a whole run writes, and the seconds that it takes."""
    scene = laid(folder)
    began = time.monotonic()
    answer = scene.call(*RUN)
    assert answer.code == 0, answer.err
    return written(scene), time.monotonic() - began


def killed_at(shim: Shim, folder: Path, numbers: list[int], wanted: dict[str, bytes]) -> None:
    fired = []

    def kill(number: int) -> None:
        scene = laid(folder / f"case-{number}")
        fired.append(scene.call(*RUN, fault=shim.fault(number)).code == KILLED)
        journal = scene.journal()  # at no moment there is neither the one run nor the other
        assert [journal.ended(run) for run in journal.runs[-1:]] != ["superseded"], number
        goes_on(scene, resumes=number % 2 == 0)
        is_sound(scene, wanted)
        scene.remove()

    each(kill, numbers)
    assert sum(fired) >= 0.8 * len(fired)


@pytest.mark.req("R74", "R118", "R121", "E18")
def test_killed_at_some_calls_the_report_is_the_same(tmp_path: Path, shim: Shim) -> None:
    calls = shim.count(laid(tmp_path / "count"), *RUN)
    wanted = written(Scene(tmp_path / "count"))
    killed_at(shim, tmp_path, spread(calls, 4, seed=11), wanted)


@pytest.mark.req("R74", "R118", "R121", "E18")
def test_killed_again_and_again_at_any_moment_the_report_is_the_same(tmp_path: Path) -> None:
    wanted, whole = undisturbed(tmp_path / "whole")
    dice = random.Random(7)
    scene = laid(tmp_path / "killed")
    for _ in range(3):
        kill_after(scene.start(*RUN), dice.uniform(0.2, 1.0) * whole)
    goes_on(scene, resumes=False)
    is_sound(scene, wanted)


@pytest.mark.soak("keeling")
@pytest.mark.req("R74", "R118", "R121", "E18")
@pytest.mark.parametrize("slice_", range(SLICES))
def test_killed_at_every_call_the_report_is_the_same(
    tmp_path: Path, shim: Shim, slice_: int
) -> None:
    calls = shim.count(laid(tmp_path / "count"), *RUN)
    wanted = written(Scene(tmp_path / "count"))
    killed_at(shim, tmp_path, [*range(1 + slice_, len(calls) + 1, SLICES)], wanted)
