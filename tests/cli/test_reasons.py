"""Every reason of the closed list, brought about through the front door where that is possible."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.core.changes import differences
from holdfast.core.reasons import CODES, sentence
from holdfast.model.event import Reason
from holdfast.testing.server import Fail, Reply, Say
from tests.cli.project import Project, finish, kill, until
from tests.cli.served import served
from tests.cli.test_stop import heard


def _codes(value: Any) -> set[str]:
    """Every code that stands anywhere in what a command printed."""
    if isinstance(value, dict):
        own = {value["code"]} if isinstance(value.get("code"), str) else set()
        return own.union(*(_codes(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(_codes(item) for item in value))
    return set()


def _told(project: Project) -> set[str]:
    """The codes of the journal of the last run."""
    return _codes(project.events())


def listing(project: Project) -> set[str]:
    """Nobody knows how many items a step will find, nor what a condition will say of them."""
    each = {"for_each": "${{ steps.find.output }}", "shell": "echo $HOLDFAST_STEP"}
    when = {"when": {"steps.find.output": {"equals": 3}}, "shell": "echo"}
    below = {"needs": ["never"], "shell": "echo"}
    find = {"shell": "echo '[1, 2]'"}
    project.plan({"find": find, "each": each, "never": when, "below": below})
    before = _codes(project.ok("plan", "--json").json)
    assert project.run().code == 0
    return before | _told(project)


def edits(project: Project) -> set[str]:
    """One step for each kind of edit; all edited at once."""
    project.write("in.txt", "1\n")
    project.write("work.py", "def make():\n    return 'made'\n")
    (project.folder / "version").write_text("tool 1\n")
    shell = {"shell": "echo $HOLDFAST_STEP"}
    tool = {"tool": ["cat", str(project.folder / "version")]}
    steps: dict[str, dict[str, Any]] = {
        "prompt": {**shell, "prompt": "do it"},
        "model": {**shell, "model": "small"},
        "with": {**shell, "with": {"size": 1}},
        "kid": {"shell": "cat $HOLDFAST_INPUTS/with", "needs": ["with"]},
        "guard": {**shell, "guards": [{"regex": {"pattern": "g"}}]},
        "uses": {**shell},
        "command": {**shell},
        "contract": {**shell},
        "spec": {**shell},
        "needy": {**shell},
        "tools": {**shell, "tool_versions": tool},
        "env": {**shell, "env": ["COLOUR"]},
        "input": {"shell": "cat in.txt", "inputs": ["in.txt"]},
        "below": {"shell": "cat $HOLDFAST_INPUTS/input", "needs": ["input"]},
        "same": {**shell},
        "out": {"shell": "echo made > out.txt", "produces": "out.txt"},
        "fresh": {**shell, "fresh_for": "0.001s"},
        "mine": {**shell},
    }
    project.plan(steps)
    first = project.run(env={"COLOUR": "red"})
    assert first.code == 0, first.err
    project.write("in.txt", "2\n")
    project.write("out.txt", "by hand\n")
    (project.folder / "version").write_text("tool 2\n")
    project.ok("amend", "mine", "-", stdin=b"my own\n")
    steps["prompt"]["prompt"] = "do it well"
    steps["model"]["model"] = "large"
    steps["with"]["with"] = {"size": 2}
    steps["guard"]["guards"] = [{"regex": {"pattern": "u"}}]
    steps["uses"] = {"uses": "python", "run": "work:make"}
    steps["command"]["shell"] += "; true"
    steps["contract"]["contract"] = "a word"
    steps["spec"]["specification"] = "a word"
    steps["needy"]["needs"] = ["same"]
    steps["new"] = {**shell}
    project.plan(steps)
    blue = {"COLOUR": "blue"}
    plan = project.call("plan", "--json", "--force-node", "same", env=blue).json
    later = project.run("--cutoff", env=blue)
    assert later.code == 0, later.err
    return _codes(plan["steps"]) | _codes(later.data)


def failures(project: Project) -> set[str]:
    """Everything that can end a step badly, and what that means for those below it."""
    shell = {"shell": "echo $HOLDFAST_STEP"}
    project.plan(
        {
            "rejected": {**shell, "guards": [{"regex": {"pattern": "never"}}]},
            "fatal": {**shell, "guards": [{"command": ["sh", "-c", "exit 9"], "fatal_on": [9]}]},
            "broken": {**shell, "guards": [{"command": ["no-such-program"]}]},
            "failed": {"shell": "exit 1"},
            "slow": {"shell": "sleep 60", "timeout": "0.2s"},
            "killed": {"shell": "kill -9 $$"},
            "below": {**shell, "needs": ["failed"]},
            "lower": {**shell, "needs": ["below"]},
        }
    )
    project.run()
    seen = _told(project) | _codes(project.status().data)
    return seen | _codes(project.call("plan", "--json").json["steps"])


def selections(project: Project) -> set[str]:
    """A run of some steps only, and one that a limit ends."""
    steps = {name: {"shell": "echo $HOLDFAST_STEP"} for name in "abc"}
    project.plan(steps)
    seen = _codes(project.run("-s", "a").data)
    project.plan(steps, limits={"attempts": 1})
    project.run("-j", "1")
    project.plan(steps)
    return seen | _told(project) | _codes(project.call("plan", "--json").json["steps"])


def interruptions(project: Project) -> set[str]:
    """An engine that dies with an effect begun; and one that is asked to stop."""
    gate = project.gate("go")
    project.plan(
        {
            "slow": {"shell": project.sh(f"{gate}; echo slow")},
            "effect": {"shell": project.sh(f"{gate}; echo sent"), "effects": "external"},
        }
    )
    engine = project.begun_by("run", "--yes", "-j", "2", step="slow")
    until(lambda: "effect" in project.begun(), "the effect begins")
    kill(engine)
    project.open("go")
    project.resume("--yes")
    seen = _told(project)
    project.retry("effect", "--yes")
    seen |= _told(project)
    project.plan(
        {
            "one": {"shell": project.sh(f"{project.gate('later')}; echo one")},
            "two": {"shell": "cat $HOLDFAST_INPUTS/one", "needs": ["one"]},
        }
    )
    engine = project.begun_by("run", step="one")
    project.ok("stop")
    heard(engine, b"asked to stop")
    project.open("later")
    finish(engine)
    return seen | _told(project)


def receipts(project: Project) -> set[str]:
    """What an effect gave was purged."""
    project.plan({"send": {"shell": "printf sent", "effects": "external"}})
    sent = str(project.run("--yes").digests["send"])
    project.ok("purge", sent, "--because", "a name", "--yes")
    project.run("--yes")
    return _told(project)


def unresolved(project: Project) -> set[str]:
    """What an effect was done with does not say any more what it is."""
    tool = project.write("tool.sh", "echo 1")
    send = {
        "shell": "printf sent",
        "effects": "external",
        "tool_versions": {"t": ["sh", str(tool)]},
    }
    project.plan({"send": send})
    project.run("--yes")
    tool.write_text("exit 1")
    project.run("--yes")
    return _told(project)


def decisions(project: Project) -> set[str]:
    """What a person decides about a result."""
    project.plan({"a": {"shell": "echo one"}, "b": {"shell": "echo two"}})
    run = project.run().id
    project.plan({"a": {"shell": "echo changed"}, "b": {"shell": "echo two"}})
    project.ok("accept", "a", "--from", run, "--because", "as good")
    project.ok("undo", "b", "--because", "not yet")
    return _codes(project.call("plan", "--json").json["steps"])


def people(project: Project) -> set[str]:
    """People are asked, answer, refuse; and an output that is read by name is not there."""
    project.plan(
        {
            "gate": {"shell": "echo 1", "approve": "always"},
            "no": {"shell": "echo 1", "approve": "always"},
            "given": {"uses": "human"},
            "lacks": {"shell": "true", "needs": [{"step": "given", "key": "a"}]},
        }
    )
    project.run()
    project.resume()
    project.ok("approve", "gate", "--yes")
    project.ok("reject", "no", "--because", "not here")
    project.ok("answer", "given", "-", stdin=b"no json")
    project.resume()
    return _told(project)


def disagreements(project: Project) -> set[str]:
    """Agents recommend different things; a person decides."""
    said = 'echo \'{"recommendations": [{"scope": "db", "action": "%s"}]}\''
    project.plan(
        {
            "one": {"shell": said % "sqlite", "agent": "one"},
            "two": {"shell": said % "postgres", "agent": "two"},
            "both": {"shell": "echo both", "needs": ["one", "two"]},
        }
    )
    (found,) = project.run().data["conflicts"]
    project.ok("resolve", found["conflict"], "--take", "one")
    project.resume()
    return _told(project)


def doubts(project: Project) -> set[str]:
    """A handoff asks for another plan."""
    told: dict[str, object] = {"attempted": "a", "observed": [], "changed": [], "not_done": []}
    told |= {"highest_impact_uncertainty": "", "next_agent_should_first": ""}
    told |= {"replan": {"reason": "another source"}}
    project.plan({"a": {"shell": f"echo '{json.dumps(told)}' > $HOLDFAST_HANDOFF"}})
    return {project.run().data["reason"]["code"]}


def beyond(project: Project) -> set[str]:
    """A step that cannot get through, and one that is told the same again and again."""
    never = {"guards": [{"regex": {"pattern": "never"}}]}
    project.plan(
        {
            "above": {"shell": "echo $HOLDFAST_ATTEMPT"},
            "below": {
                "shell": "cat $HOLDFAST_INPUTS/above",
                "needs": ["above"],
                "escalate": ["above"],
                **never,
            },
            "dull": {"shell": "echo dull", "retries": 5, "patience": 2, **never},
        }
    )
    project.run()
    seen = _told(project) | _codes(project.status().data)
    project.plan({"big": {"shell": "echo big", "resources": {"gpu": 2}}}, limits=_GPUS)
    config = project.home / ".config" / "holdfast"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("[resources]\ngpu = 1\n")
    project.run("--yes")
    return seen | _told(project)


def lists(project: Project) -> set[str]:
    """A step that is sent back and then lists something else."""
    flag = project.gates / "flag"
    project.plan(
        {
            "src": {"shell": f"[ -e {flag} ] && echo '[1, 2, 3]' || echo '[1, 2]'"},
            "it": {"for_each": "${{ steps.src.output }}", "shell": "echo hi"},
            "c": {"shell": f"touch {flag}; exit 1", "needs": ["it"], "escalate": ["src"]},
        }
    )
    project.run("--yes")
    return _told(project)


def escalations(project: Project) -> set[str]:
    """Failures after which nothing more is started."""
    seen: set[str] = set()
    fatal = {"command": ["sh", "-c", "exit 9"], "fatal_on": [9]}
    for steps in (
        {"a": {"shell": "exit 1", "priority": "critical"}},
        {"a": {"shell": "exit 1"}, "b": {"shell": "exit 1"}},
        {"a": {"shell": "echo a", "guards": [fatal], "on_fatal": "escalate"}},
    ):
        project.plan(steps)
        project.run()
        seen |= _told(project)
    return seen


def growing(project: Project) -> set[str]:
    """A step that adds, then no longer fits; a step that is gone on without; a fork."""
    more = '{"steps": {"x": {"shell": "echo x"}}}'
    steps: dict[str, dict[str, Any]] = {
        "scan": {"shell": f"printf '%s' '{more}' > $HOLDFAST_ADD/m.json"},
        "bad": {"shell": "exit 1", "needs": ["scan"]},
    }
    project.plan(steps)
    project.run()
    project.call("skip", "bad", "--because", "down")
    seen = _codes(project.status().data)
    seen |= _codes(project.call("fork", "@", "--from", "bad", "--json").json)
    project.plan({**steps, "x": {"shell": "echo other"}})
    project.run()
    return seen | _told(project)


def tools(project: Project) -> set[str]:
    """A model that uses tools: too often, and one of which nobody knows whether it did its work."""
    gate = project.gates / "go"
    project.write(
        "work.py",
        f"""
import os, time
def tool() -> str:
    open({str(project.log)!r}, "a").write("tool\\n")
    while not os.path.exists({str(gate)!r}):
        time.sleep(0.02)
    return "done"
""",
    )
    agent = {"uses": "agent", "prompt": "do it", "model": "fake:m", "tools": ["work:tool"]}
    once = {**agent, "effects": "workspace", "workspace": "shared"}
    with served(project, lambda _: Say(tools=[("tool", {})])):
        project.plan({"a": {**once, "turns": 2, "retries": 0}})
        engine = project.start("run", "--yes")
        until(lambda: "tool" in project.begun(), "the tool is used")
        kill(engine)
        gate.touch()
        project.resume("--yes")
        seen = _told(project)
        project.retry("a", "--yes")
    return seen | _told(project)


def calls(project: Project) -> set[str]:
    """Everything that a provider or a model can do instead of answering, and a budget for no call at all."""
    replies: dict[str, Reply] = {
        "busy": Fail(429, headers={"retry-after": "6000"}),
        "unknown": Fail(404),
        "keyless": Fail(401),
        "unwilling": Say(refusal="I will not"),
        "cut": Say("half", finish="length"),
        "empty": Say(""),
        "endless": Say("x" * (17 << 20)),
    }
    asks = {"model": "fake:m", "retries": 0}
    steps = {name: {**asks, "prompt": f"as {name}"} for name in replies}
    steps["poor"] = {**asks, "prompt": "as poor", "budget": {"usd": 0.000001}}
    project.plan(steps)
    with served(project, lambda asked: replies[asked.last.split()[-1]]):
        project.run("--yes", "--keep-going")
    return _codes([event for event in project.events() if event["event"] != "call_failed"])


_GPUS = {"resources": {"gpu": 2}}


def samples(project: Project) -> set[str]:
    """One more artifact of a step under the same key."""
    project.plan({"a": {"shell": "echo a"}})
    project.run()
    return _codes(project.run("--resample", "a").data)


def contesting(project: Project) -> set[str]:
    """A step whose result a person doubts."""
    project.plan({"a": {"shell": "echo a"}})
    project.run()
    project.ok("ledger", "contest", "a", "--because", "I doubt it")
    return _codes(project.run().data)


def telling(project: Project) -> set[str]:
    """A step above hands over something else, and makes the same."""
    whole = {
        "attempted": "one",
        "observed": [],
        "changed": [],
        "not_done": [],
        "highest_impact_uncertainty": "",
        "next_agent_should_first": "",
    }
    above = {"shell": "cp told.json $HOLDFAST_HANDOFF; echo 1"}
    below = {"needs": ["a"], "shell": "echo 2", "context": "in-ref"}
    project.plan({"a": above, "b": below})
    project.write("told.json", json.dumps(whole))
    project.run()
    project.write("told.json", json.dumps({**whole, "attempted": "two"}))
    return _codes(project.run("--force-node", "a").data)


def unrecorded(project: Project) -> set[str]:
    """A model whose answers come from recordings, of which there are none."""
    project.plan({"a": {"prompt": "say it", "model": "recorded:m"}})
    return _codes(project.run().data)


SCENARIOS: dict[Callable[[Project], set[str]], set[str]] = {
    edits: {
        "never_ran",
        "input_changed",
        "upstream_changed",
        "prompt_changed",
        "model_changed",
        "parameters_changed",
        "guard_changed",
        "generator_changed",
        "command_changed",
        "contract_changed",
        "specification_changed",
        "dependencies_changed",
        "tools_changed",
        "environment_changed",
        "output_modified",
        "expired",
        "forced",
        "unchanged",
        "unchanged_content",
        "amended",
        "reguarded",
    },
    failures: {
        "guard_rejected",
        "guard_fatal",
        "guard_broken",
        "command_failed",
        "timed_out",
        "lost",
        "dependency_failed",
        "dependency_skipped",
        "previous_failed",
    },
    people: {
        "awaiting_approval",
        "approved",
        "answered",
        "resumed",
        "rejected_by_person",
        "key_missing",
    },
    beyond: {"reopening", "reopened", "stuck", "stagnated", "deadlocked"},
    lists: {"items_changed"},
    escalations: {"critical_failed", "wave_failed", "fatal_verdict"},
    selections: {"not_selected", "limit_reached", "previous_incomplete"},
    decisions: {"accepted_by_person", "undone"},
    disagreements: {"conflict_open", "conflict_settled"},
    doubts: {"replan_wanted"},
    tools: {"turns_spent", "tool_unconfirmed"},
    calls: {
        "call_failed",
        "call_refused",
        "credentials_missing",
        "model_refused",
        "answer_cut",
        "answer_empty",
        "answer_too_large",
        "budget_spent",
    },
    samples: {"resampled"},
    unrecorded: {"not_recorded"},
    contesting: {"evidence_contested"},
    telling: {"context_changed"},
    growing: {"additions_unfit", "skipped_by_person", "forked"},
    listing: {"items_open", "condition_open", "condition_unmet", "condition_above"},
    receipts: {"receipt_gone"},
    unresolved: {"effect_doubted"},
    interruptions: {
        "previous_interrupted",
        "effect_unconfirmed",
        "awaiting_person",
        "retried",
        "stopped",
    },
}


def _key_version() -> str:
    (change,) = differences({"ext": {"v": 0}}, {"ext": {"v": 1}}, None, {})
    return change.code


# What no command of this version brings about: the sentence, and the decision where there is one.
BELOW: dict[str, Callable[[], str]] = {
    "key_version": _key_version,
    "output_missing": lambda: "output_missing",
}


@pytest.mark.req("R170")
def test_every_reason_has_a_test_that_brings_it_about() -> None:
    reached = set().union(*SCENARIOS.values())
    assert reached.isdisjoint(BELOW)
    assert reached | set(BELOW) == CODES


@pytest.mark.req("R170", "R56")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda found: found.__name__)
def test_a_reason_is_met_through_the_front_door(
    project: Project, scenario: Callable[[Project], set[str]]
) -> None:
    seen = scenario(project)
    assert SCENARIOS[scenario] - seen == set()
    assert seen <= CODES


@pytest.mark.req("R170")
@pytest.mark.parametrize("code", BELOW)
def test_a_reason_of_a_deeper_floor_has_its_sentence(code: str) -> None:
    assert BELOW[code]() == code
    assert sentence(Reason(code, ("x",)))
