"""A run whose plan is doubted, killed at any changing call: it is held once, and asks once."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.crash import plans
from tests.crash.faults import KILLED, Scene, Shim, each, spread, unsound

HANDOFF = {
    "attempted": "look",
    "observed": [],
    "changed": [],
    "not_done": [],
    "highest_impact_uncertainty": "",
    "next_agent_should_first": "",
    "replan": {"reason": "another source"},
}


def doubted(folder: Path) -> Scene:
    """A step that asks for another plan, and one below it."""
    scene = Scene(folder)
    text = json.dumps(HANDOFF)
    plan: dict[str, Any] = {
        "name": "doubted",
        "steps": {
            "look": {"shell": plans.noted(f"printf '%s' '{text}' > $HOLDFAST_HANDOFF")},
            "below": {"shell": "echo below", "needs": ["look"]},
        },
    }
    plans.write_project(scene.root, plan, {})
    return scene


def held(scene: Scene) -> dict[str, int]:
    """How often each run was held, and how often that was decided."""
    journal = scene.journal()
    kinds = [kind for run in journal.runs for kind, _ in journal.facts[f"run:{run}"]]
    return {kind: kinds.count(kind) for kind in ("replan_wanted", "replan_decided")}


@pytest.mark.req("R118", "R122", "R74")
@pytest.mark.parametrize("sample", [5, pytest.param(40, marks=pytest.mark.soak("kill"))])
def test_killed_at_any_call_a_doubted_run_is_held_and_goes_on_once(
    sample: int, tmp_path: Path, shim: Shim
) -> None:
    calls = shim.count(doubted(tmp_path / "count"), "run", "-j", "1", code=3)
    fired = []

    def kill(number: int) -> None:
        scene = doubted(tmp_path / f"case-{number}")
        answer = scene.call("run", "-j", "1", fault=shim.fault(number))
        fired.append(answer.code == KILLED)
        journal = scene.journal()
        again = scene.call("resume" if journal.runs else "run", "--json")
        assert again.code == 3, (number, again.err)
        found = json.loads(again.out)
        assert found["reason"]["code"] == "replan_wanted"
        assert {name: one["state"] for name, one in found["steps"].items()} == {
            "look": "done",
            "below": "pending",
        }
        assert held(scene) == {"replan_wanted": 1, "replan_decided": 0}
        assert scene.call("approve", "replan", "--yes").code == 0
        last = scene.call("resume", "--json")
        assert last.code == 0, (number, last.err)
        assert held(scene) == {"replan_wanted": 1, "replan_decided": 1}
        assert unsound(scene.store) == []

    each(kill, spread(calls, sample, seed=3))
    assert sum(fired) >= len(fired) - 2


@pytest.mark.req("R118", "R74")
@pytest.mark.parametrize("sample", [3, pytest.param(20, marks=pytest.mark.soak("kill"))])
def test_killed_after_the_yes_a_run_goes_on_without_being_asked_again(
    sample: int, tmp_path: Path, shim: Shim
) -> None:
    def answered(folder: Path) -> Scene:
        scene = doubted(folder)
        assert scene.call("run").code == 3
        assert scene.call("approve", "replan", "--yes").code == 0
        return scene

    calls = shim.count(answered(tmp_path / "count"), "resume", "-j", "1")

    def kill(number: int) -> None:
        scene = answered(tmp_path / f"case-{number}")
        scene.call("resume", "-j", "1", fault=shim.fault(number))
        last = scene.call("status", "--json")
        if json.loads(last.out)["status"] != "completed":
            last = scene.call("resume", "--json")
            assert last.code == 0, (number, last.err)
        assert held(scene) == {"replan_wanted": 1, "replan_decided": 1}
        assert unsound(scene.store) == []

    each(kill, spread(calls, sample, seed=4))


def ready(folder: Path) -> Scene:
    """The same, with a plan that takes the place of the doubted one by itself."""
    scene = doubted(folder)
    place = scene.root / "plan.yaml"
    plan = json.loads(place.read_text())
    after = {**plan["steps"], "more": {"shell": "echo more"}}  # else it were no other plan
    (scene.root / "second.yaml").write_text(json.dumps({**plan, "steps": after}))
    place.write_text(json.dumps({**plan, "replan": {"to": "second.yaml", "ask": False}}))
    return scene


@pytest.mark.req("R118", "R122", "R74")
@pytest.mark.parametrize("around", [2, pytest.param(16, marks=pytest.mark.soak("kill"))])
def test_killed_where_one_plan_takes_the_place_of_another_there_is_always_one_of_them(
    around: int, tmp_path: Path, shim: Shim
) -> None:
    words = ("run", "-j", "1")
    calls = shim.count(ready(tmp_path / "count"), *words)

    def runs(number: int) -> int:
        """How many runs there are after a kill; the last of them is never one that gave up its place."""
        scene = ready(tmp_path / f"case-{number}")
        scene.call(*words, fault=shim.fault(number))
        journal = scene.journal()
        ends = [journal.ended(run) for run in journal.runs]
        assert ends[-1:] != ["superseded"], number
        after = scene.call("resume" if ends[-1:] == [None] else "run", "--json")
        assert after.code == 0, (number, after.err)
        assert {one["state"] for one in json.loads(after.out)["steps"].values()} <= {
            "done",
            "reused",
        }
        assert unsound(scene.store) == []
        scene.remove()
        return len(ends)

    first, last = 1, len(calls)  # the call at which the second run came to be lies between
    while first < last:
        middle = (first + last) // 2
        first, last = (first, middle) if runs(middle) > 1 else (middle + 1, last)
    for number in range(max(1, first - around), first):
        runs(number)
