"""A run that grows, killed at any changing call: nothing is half added, and going on adds it once."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.crash import plans
from tests.crash.faults import KILLED, Scene, Shim, each, spread, unsound

ADDED = {
    "mid": {
        "shell": 'printf \'{"steps": {"deep": {"shell": "echo deep"}}}\' > $HOLDFAST_ADD/deep.json'
    },
    "last": {"shell": "cat $HOLDFAST_INPUTS/scan", "needs": ["scan", "mid"]},
}
EVERY = {"scan", "beside", "mid", "last", "deep"}


def growing(folder: Path) -> Scene:
    """A step that adds two, of which one adds another."""
    scene = Scene(folder)
    text = json.dumps({"steps": ADDED}).replace("'", "'\"'\"'")
    plan: dict[str, Any] = {
        "name": "growing",
        "steps": {
            "scan": {"shell": plans.noted(f"printf '%s' '{text}' > $HOLDFAST_ADD/more.json")},
            "beside": {"shell": "echo beside"},
        },
    }
    plans.write_project(scene.root, plan, {})
    return scene


def half_added(scene: Scene) -> list[str]:
    """Steps that count as done in a journal without what they add, or that added without counting."""
    found = []
    adders = {"scan": {*ADDED}, "mid": {"deep"}}
    journal = scene.journal()
    for run in journal.runs:
        facts = journal.facts[f"run:{run}"]
        done = {body["step"] for kind, body in facts if kind == "attempt_accepted"}
        done |= {
            item[0] for kind, body in facts if kind == "steps_reused" for item in body["items"]
        }
        extended = {
            body["step"]: {*body["added"]} for kind, body in facts if kind == "plan_extended"
        }
        for adder, names in adders.items():
            if extended.get(adder, set()) != (names if adder in done else set()):
                found.append(f"{run}: {adder} is {'done' if adder in done else 'open'}")
    return found


@pytest.mark.req("C24", "R32", "R74")
def test_killed_at_any_call_nothing_is_half_added(tmp_path: Path, shim: Shim) -> None:
    calls = shim.count(growing(tmp_path / "count"), "run", "-j", "1")
    fired = []

    def kill(number: int) -> None:
        scene = growing(tmp_path / f"case-{number}")
        answer = scene.call("run", "-j", "1", fault=shim.fault(number))
        fired.append(answer.code == KILLED)
        assert half_added(scene) == [], number
        journal = scene.journal()
        facts = journal.facts[f"run:{journal.runs[-1]}"] if journal.runs else []
        is_open = bool(facts) and facts[-1][0] != "run_ended"
        after = scene.call("resume" if is_open else "run", "--json")
        assert after.code == 0, (number, after.err)
        steps = json.loads(after.out)["steps"]
        assert steps.keys() == EVERY, number
        assert {step["state"] for step in steps.values()} <= {"done", "reused"}
        assert half_added(scene) == [], number
        assert unsound(scene.store) == []

    each(kill, spread(calls, 14, seed=5))
    assert sum(fired) >= len(fired) - 2
