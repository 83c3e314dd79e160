"""An effect is started before and confirmed after; killed anywhere between, nobody repeats it unasked.

The file outside is the world: each execution of the effect adds a line with its key to it.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash import plans
from tests.crash.faults import KILLED, Report, Scene, Shim, each, spread

RUN = ("run", "-j", "1", "--yes")


def lay(folder: Path, *, idempotent: bool) -> Scene:
    scene = Scene(folder)
    steps = {
        "make": {"shell": "echo text"},
        "send": {
            "shell": 'echo $HOLDFAST_EFFECT_KEY >> "$HOLDFAST_ROOT/../world.txt"; echo sent',
            "needs": ["make"],
            "effects": "external",
            "idempotent": idempotent,
        },
        "after": {"shell": 'cat "$HOLDFAST_INPUTS/send"', "needs": ["send"]},
    }
    plans.write_project(scene.root, {"name": "effect", "steps": steps}, {})
    return scene


def keys(scene: Scene) -> list[str]:
    world = scene.folder / "world.txt"
    return world.read_text().split() if world.exists() else []


def status(scene: Scene) -> dict[str, object]:
    data = json.loads(scene.call("status", "--json").out)
    return {"run": data["status"], **{s: v["state"] for s, v in data["steps"].items()}}


def started_only(scene: Scene) -> bool:
    """Whether the journal has an effect that was started and not confirmed."""
    kinds = [kind for name, facts in scene.journal().facts.items() for kind, _ in facts]
    return kinds.count("effect_started") > kinds.count("effect_confirmed")


def kill_at(
    tmp_path: Path, shim: Shim, report: Report, numbers: list[int], *, idempotent: bool
) -> list[int]:
    """Kill a run at each of these calls and go on; tells where the effect had to be held."""
    held: list[int] = []
    report.total += len(numbers)

    def kill(place: int) -> None:
        scene = lay(tmp_path / f"case-{place}", idempotent=idempotent)
        killed = scene.call(*RUN, fault=shim.fault(place)).code == KILLED
        before, journal, unsure = keys(scene), scene.journal(), started_only(scene)
        with report.lock:
            report.tried += 1
            report.fired += killed
            report.kept += len(journal.steps)
        assert len(before) <= 1
        again = scene.call(*(("resume", "--yes") if journal.runs else RUN))
        if unsure and not idempotent:
            held.append(place)
            assert again.code == 3, again.err
            assert keys(scene) == before, "it may have happened: nobody repeats it unasked"
            assert status(scene)["send"] == "waiting"
            again = scene.call("retry", "send", "--yes")
        if again.code == 2:  # it had ended before it was killed
            assert status(scene)["run"] == "completed"
        else:
            assert again.code == 0, again.err
        done = keys(scene)
        assert 1 <= len(done) <= 2
        assert len(set(done)) == 1, "the same effect has the same key"
        whole = {"run": "completed", **dict.fromkeys(("make", "send", "after"), "done")}
        assert status(scene) == whole
        assert scene.call("verify").code == 0
        with report.lock:
            report.work += len(scene.journal().steps)

    each(kill, numbers)
    return held


@pytest.mark.req("I17", "D01")
@pytest.mark.parametrize("idempotent", [False, True])
def test_killed_anywhere_an_effect_is_repeated_only_if_it_may_be(
    idempotent: bool, tmp_path: Path, shim: Shim, settle: Callable[[Report], None]
) -> None:
    calls = shim.count(lay(tmp_path / "count", idempotent=idempotent), *RUN)
    report = Report("I17 effects", "kill")
    late = [number for number in spread(calls, 8, seed=3) if number > len(calls) // 2]
    kill_at(tmp_path, shim, report, late, idempotent=idempotent)
    settle(report)


@pytest.mark.soak("kill")
@pytest.mark.req("I17", "D01")
@pytest.mark.parametrize("idempotent", [False, True])
def test_killed_at_every_call_an_effect_is_repeated_only_if_it_may_be(
    idempotent: bool, tmp_path: Path, shim: Shim, settle: Callable[[Report], None]
) -> None:
    calls = shim.count(lay(tmp_path / "count", idempotent=idempotent), *RUN)
    report = Report("I17 effects")
    numbers = list(range(1, len(calls) + 1, 3))
    held = kill_at(tmp_path, shim, report, numbers, idempotent=idempotent)
    settle(report)
    assert idempotent or held, "some kills fell between start and confirmation"
