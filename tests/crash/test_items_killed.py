"""A run whose items are found by a step, killed at any changing call: going on makes each of them once."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.crash import plans
from tests.crash.faults import KILLED, Scene, Shim, each, spread, unsound

KEYS = ("nl", "de/x", "fr", "é %")
ITEMS = {"each[nl]", "each[de%2Fx]", "each[fr]", "each[%C3%A9%20%25]"}
EVERY = {"list", "beside", "each", "sum", *ITEMS}


PAIR = 'f=$(md5sum < "$HOLDFAST_WITH/word" | cut -c 1-6); echo 1 > $f-1.txt; echo 2 > $f-2.txt'
COPY = {"shell": plans.noted(PAIR), "effects": "workspace", "workspace": "scratch"}


def finding(folder: Path, *, in_copies: bool = False) -> Scene:
    """A step that lists four items, what is done for each (`in_copies`: two new files), and a sum of that."""
    scene = Scene(folder)
    each = COPY if in_copies else {"shell": plans.noted("cat $HOLDFAST_WITH/word")}
    total = {
        "with": {"all": "${{ steps.each.output }}"},
        "shell": plans.noted("cat $HOLDFAST_WITH/all"),
    }
    plan: dict[str, Any] = {
        "name": "finding",
        "steps": {
            "list": {"shell": plans.noted(f"printf '%s' '{json.dumps(KEYS)}'")},
            "beside": {"shell": "echo beside"},
            "each": {
                "for_each": "${{ steps.list.output }}",
                "key": "${{ item }}",
                "with": {"word": "${{ item }}"},
                **each,
            },
            "sum": {"shell": "ls", "needs": ["each"]} if in_copies else total,
        },
    }
    plans.write_project(scene.root, plan, {})
    return scene


def wrong_in(scene: Scene) -> list[str]:
    """Items that came in part, before what lists them, or that were accepted twice."""
    found = []
    journal = scene.journal()
    accepted: Counter[str] = Counter()
    for run in journal.runs:
        facts = journal.facts[f"run:{run}"]
        accepted.update(body["step"] for kind, body in facts if kind == "attempt_accepted")
        listed = False
        for kind, body in facts:
            listed |= kind == "attempt_accepted" and body["step"] == "list"
            listed |= kind == "steps_reused" and any(one[0] == "list" for one in body["items"])
            if kind == "plan_extended" and ({*body["added"]} != ITEMS or not listed):
                found.append(f"{run}: {body['added']}")
    return [*found, *(f"{step} {times} times" for step, times in accepted.items() if times > 1)]


@pytest.mark.req("C24", "R74", "R182")
@pytest.mark.parametrize("sample", [7, pytest.param(60, marks=pytest.mark.soak("kill"))])
@pytest.mark.parametrize("in_copies", [False, True], ids=["printed", "in copies"])
def test_killed_at_any_call_no_item_is_lost_or_made_again(
    in_copies: bool, sample: int, tmp_path: Path, shim: Shim
) -> None:
    calls = shim.count(finding(tmp_path / "count", in_copies=in_copies), "run", "-j", "2")
    fired = []

    def kill(number: int) -> None:
        scene = finding(tmp_path / f"case-{number}", in_copies=in_copies)
        answer = scene.call("run", "-j", "2", fault=shim.fault(number))
        fired.append(answer.code == KILLED)
        assert wrong_in(scene) == [], number
        journal = scene.journal()
        facts = journal.facts[f"run:{journal.runs[-1]}"] if journal.runs else []
        is_open = bool(facts) and facts[-1][0] != "run_ended"
        after = scene.call("resume" if is_open else "run", "--json")
        assert after.code == 0, (number, after.err)
        steps = json.loads(after.out)["steps"]
        assert steps.keys() == EVERY, number
        assert {step["state"] for step in steps.values()} <= {"done", "reused"}
        assert wrong_in(scene) == [], number
        assert unsound(scene.store) == []
        made = [path.name[:6] for path in scene.root.glob("*-[12].txt")]
        assert {*Counter(made).values()} == ({2} if in_copies else set()), number
        assert len(made) == (2 * len(KEYS) if in_copies else 0), number

    each(kill, spread(calls, sample, seed=7))
    assert sum(fired) >= len(fired) - 3
