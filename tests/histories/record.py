"""Records a history: `python -m tests.histories.record NAME` plays a scenario and writes what is stored.

A recorded file is never written again: it is what a released version left on somebody's disk. A new
feature gets a new scenario and a new file.
"""

import base64
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import apsw

from holdfast.testing.server import Asked, Fail, Hang, Reply, Say
from tests.cli.models import kill_before_it_asks, served
from tests.cli.project import Project, finish, kill, until
from tests.cli.served import verdict
from tests.histories.features import FEATURES

GOLDEN = Path(__file__).parent / "golden"
_PLACE = 1 << 40


def basic(project: Project) -> None:
    """Run, reuse, a change, early cutoff, a file put back, a version of a person's."""
    project.write("in.txt", "1\n")
    steps = {
        "a": {"shell": "cat in.txt", "inputs": "in.txt"},
        "b": {"shell": "wc -c < $HOLDFAST_INPUTS/a > b.txt", "needs": "a", "produces": "b.txt"},
        "c": {"shell": "cat b.txt", "needs": "b", "reuse": "content"},
    }
    project.plan(steps)
    project.run()
    project.run()
    project.write("in.txt", "2\n")
    project.run()
    (project.root / "b.txt").unlink()
    project.run()
    project.write("b.txt", "mine\n")
    project.run()


def goals(project: Project) -> None:
    """A goal planned after a refusal, run under a bound of time, planned again; another line forgotten."""
    goal = "Say two words"
    a = {"id": "A", "description": "a", "contract": "one word", "requires": []}
    b = {"id": "B", "description": "b", "contract": "one word", "requires": ["A"]}
    plans = iter([[b], [a], [a, b]])

    def script(asked: Asked) -> Reply:
        if "Find the artifacts" in asked.last:
            return Say(json.dumps({"artifacts": next(plans)}))
        return Say("word")

    with served(project, script, '[tiers]\nlarge = "fake:m"\n'):
        shown = project.ok("plan", goal, "--yes", "--json").json
        project.run(goal, "--yes", "--trust", shown["plan"]["digest"][:12], "--time", "1h")
        project.ok("plan", goal, "--replan", "--yes")
        project.ok("plans", "show", goal)
        project.plan({"x": {"shell": "echo x"}})
        project.run()
        project.ok("plans", "delete", "demo", "--yes")


def failures(project: Project) -> None:
    """Rejected, failed, lost, skipped, left out, tried again, resumed."""
    project.plan(
        {
            "ok": {"shell": "echo ok"},
            "picky": {
                "shell": 'echo "$HOLDFAST_ATTEMPT"',
                "retries": 1,
                "guards": [{"regex": {"pattern": "2"}}],
            },
            "bad": {"shell": "test -e flag", "needs": "ok"},
            "slow": {"shell": "sleep 5", "timeout": "1s", "needs": "ok"},
            "after": {"shell": "echo after", "needs": ["bad", "slow"]},
        }
    )
    project.run()
    project.write("flag", "")
    project.resume()
    project.run("-s", "picky")


def held(project: Project) -> None:
    """Killed within an external effect: held, then repeated by a person; stopped; superseded."""
    project.plan(
        {
            "send": {"shell": _waits("go"), "effects": "external"},
            "after": {"shell": "echo after", "needs": "send"},
        }
    )
    engine = project.start("run", "--yes")
    until(lambda: project.has("go.begun"))
    kill(engine)
    project.resume("--yes")
    project.write("go", "")
    project.retry("send", "--yes")
    project.plan({"wait": {"shell": _waits("more")}, "next": {"shell": "true"}})
    engine = project.start("run", "-j", "1")
    until(lambda: project.has("more.begun"))
    project.ok("stop")
    until(lambda: "stop_requested" in str(stored(project, project.store)["journals"]))
    project.write("more", "")
    finish(engine)
    project.run()


def _waits(name: str) -> str:
    """A shell line that says that it began, and ends when it is let go."""
    return f"touch {name}.begun; n=0; until [ -e {name} ] || [ $n -gt 600 ]; do n=$((n+1)); sleep 0.05; done"


def people(project: Project) -> None:
    """Amended, accepted, undone, pinned, unpinned, purged, imported, collected."""
    project.write("in.txt", "1\n")
    project.plan(
        {
            "a": {"shell": "cat in.txt > a.txt", "inputs": "in.txt", "produces": "a.txt"},
            "secret": {"shell": "echo hush"},
        }
    )
    first = project.run()
    project.write("in.txt", "2\n")
    project.ok("accept", "a", "--from", first.id, "--because", "wording only")
    project.run()
    project.write("mine.txt", "mine\n")
    project.ok("amend", "secret", "mine.txt", "--because", "better")
    project.run()
    project.ok("undo", "a")
    project.run()
    project.ok("pin", "@", "--because", "kept")
    project.ok("pin", "@", "--remove")
    project.ok("purge", first.digests["secret"] or "", "--because", "a secret", "--yes")
    project.ok("export", "@", str(project.folder / "run.zip"))
    for _ in range(2):
        project.run("--force")
    project.ok("gc", "--keep", "0s", "--keep-runs", "1", "--yes")
    other = project.folder / "other"
    project.ok("export", "@", str(project.folder / "other.zip"))
    project.ok("import", str(project.folder / "run.zip"), "--store", str(other))


def guards(project: Project) -> None:
    """Guarded again and passed, guarded again and refused, fatal, broken, strict."""
    steps: dict[str, dict[str, object]] = {
        "word": {"shell": "echo tide", "guards": [{"regex": {"pattern": "t"}}], "retries": 1},
        "strict": {
            "shell": "echo kelp",
            "guards": [{"regex": {"pattern": "k"}}],
            "reuse": "strict",
        },
        "after": {"shell": "cat $HOLDFAST_INPUTS/word", "needs": "word"},
    }
    project.plan(steps)
    project.run()
    for pattern in ("d", "x"):
        steps["word"]["guards"] = [{"regex": {"pattern": pattern}}]
        steps["strict"]["guards"] = [{"regex": {"pattern": "e"}}]
        project.plan(steps)
        project.run()
    steps["word"]["guards"] = [{"command": ["sh", "-c", "exit 3"], "fatal_on": [3]}]
    steps["strict"]["guards"] = [{"command": ["no-such-program"]}]
    project.plan(steps)
    project.run()


def drift(project: Project) -> None:
    """What a person wrote to an output: adopted, made again, refused; an older version; a lost file."""
    steps: dict[str, dict[str, object]] = {
        "text": {"shell": "cat in.txt > text.txt", "inputs": "in.txt", "produces": "text.txt"},
        "tree": {
            "shell": "mkdir -p out; cp text.txt out/a.txt; echo b > out/b.txt; chmod 755 out/b.txt; "
            "echo t > tree.txt",
            "needs": "text",
            "produces": ["out", "tree.txt"],
            "workspace": "shared",
        },
    }
    project.write("in.txt", "1\n")
    project.plan(steps)
    project.run()
    project.write("in.txt", "2\n")
    project.run()
    project.write("text.txt", "1\n")
    project.run()
    project.write("out/a.txt", "mine\n")
    project.run("--on-drift", "fail")
    project.run("--on-drift", "regenerate")
    project.write("tree.txt", "mine\n")
    project.run()
    (project.root / "out/b.txt").unlink()
    project.run()


def choices(project: Project) -> None:
    """Left out, forced, cut off early, stopped at a limit, stopped at the first failure; shared lines."""
    steps: dict[str, dict[str, object]] = {
        "a": {"shell": "echo a # 1", "share": True, "workspace": "scratch"},
        "b": {"shell": "cat $HOLDFAST_INPUTS/a", "needs": "a"},
        "c": {"shell": "cat $HOLDFAST_INPUTS/b", "needs": "b"},
    }
    project.plan(steps)
    project.run("-s", "a")
    project.run("-x", "c")
    project.run()
    project.run("--force-node", "b")
    steps["a"]["shell"] = "echo a # 2"
    project.plan(steps)
    project.run("--cutoff")
    project.run("--plan-id", "other")
    project.run("--force")
    steps["bad"] = {"shell": "false"}
    steps["late"] = {"shell": "echo late", "needs": "c"}
    project.plan(steps)
    project.run("--fail-fast", "-j", "1")
    project.plan({**steps, "late": {"shell": "echo later"}}, limits={"attempts": 1})
    project.run("-j", "1")


def policy(project: Project) -> None:
    """Escalated and resumed; a step above made again; effects that fail, are cut off and are settled."""
    project.plan(
        {
            "vital": {"shell": "test -e flag", "priority": "critical"},
            "other": {"shell": "echo other", "priority": "low"},
        }
    )
    project.run("-j", "1")
    project.write("flag", "")
    project.resume()
    fatal = {"command": ["sh", "-c", "exit 9"], "fatal_on": [9]}
    project.plan({"fatal": {"shell": "echo x", "guards": [fatal], "on_fatal": "escalate"}})
    project.run()
    spec = "n=$(cat count || echo 0); echo $((n+1)) > count; echo version $((n+1))"
    code: dict[str, object] = {
        "shell": "cat $HOLDFAST_INPUTS/spec",
        "needs": "spec",
        "guards": [{"regex": {"pattern": "version 3"}}],
        "escalate": "spec",
    }
    beside = {"shell": "cat $HOLDFAST_INPUTS/spec", "needs": "spec", "reuse": "content"}
    steps: dict[str, Mapping[str, object]] = {
        "spec": {"shell": spec},
        "code": code,
        "beside": beside,
    }
    project.plan(steps)
    project.run("-j", "1")
    project.retry("code", "-j", "1")
    dull = {"shell": "echo dull", "retries": 3, "patience": 2, "resources": {"gpu": 1}}
    project.plan({"dull": {**dull, "guards": [{"regex": {"pattern": "never"}}]}})
    project.run("--barrier")
    send = {"shell": f"{_waits('$HOLDFAST_ROOT/sent')}; echo receipt", "effects": "external"}
    project.plan({"ping": {"shell": "echo pong", "effects": "external"}})
    project.run("--yes")
    project.plan({"send": send})
    engine = project.start("run", "--yes")
    until(lambda: project.has("sent.begun"))
    kill(engine)
    project.write("sent", "")
    project.resume("--yes")
    project.ok("amend", "send", "-", stdin=b"receipt\n")
    project.resume("--yes")


def joined(project: Project) -> None:
    """Two engines on one line, with claims; one of them is killed and its step is taken over."""
    waits = {f"w{number}": {"shell": _waits(f"$HOLDFAST_ROOT/go{number}")} for number in range(2)}
    project.plan({**waits, "end": {"shell": "echo end", "needs": list(waits)}})
    engines = [project.start("run", "--join", "-j", "1") for _ in range(2)]
    until(lambda: project.has("go0.begun") and project.has("go1.begun"))
    kill(engines[0])
    project.write("go0", "")
    project.write("go1", "")
    finish(engines[1])
    project.ok("resume", "@-1")


def approvals(project: Project) -> None:
    """Asked before, after and instead of an attempt; yes of each scope, no, revoked, given, abandoned."""
    steps: dict[str, dict[str, object]] = {
        "text": {
            "shell": "echo one > text.txt",
            "produces": "text.txt",
            "guards": ["human"],
            "retries": 1,
        },
        "given": {
            "uses": "human",
            "prompt": "What is it?",
            "guards": [{"regex": {"pattern": "ok"}}],
        },
        "deploy": {
            "shell": "test -e $HOLDFAST_ROOT/../ok",
            "needs": [{"step": "text", "type": "approval", "from": "lead"}],
            "retries": 1,
        },
        "each": {"shell": "echo each", "approve": "always"},
        "same": {"shell": "echo same", "approve": "on_change"},
    }
    project.plan(steps)
    project.run()
    project.ok("reject", "each", "--because", "not now")
    project.ok("approve", "same", "--yes", "--until", "7d")
    project.ok("answer", "given", "-", stdin=b"bad")
    project.ok("reject", "text", "--because", "say more")
    project.resume()
    project.resume()
    project.ok("answer", "given", "-", stdin=b"ok")
    project.ok("approve", "text", "--yes", "--because", "better")
    project.ok("approve", "each", "--yes")
    project.resume()
    project.ok("approve", "deploy", "--yes")
    project.resume()
    project.ok("approve", "deploy", "--yes", "--scope", "run")
    (project.folder / "ok").touch()
    project.resume()
    steps["each"]["shell"] = steps["same"]["shell"] = "echo other"
    project.plan(steps)
    project.run()
    project.ok("approve", "each", "--yes")
    (asked,) = (
        item["approval"]
        for item in project.ok("approvals", "--all", "--json").json["approvals"]
        if item["state"] == "approved" and item["step"] == "each"
    )
    project.ok("revoke", asked, "--because", "by mistake")
    project.resume()


def copies(project: Project) -> None:
    """Changes taken over from copies, put in place again, undone; conflicts found and settled."""
    project.write("a", "a\n")
    project.write("b", "b\n")
    copied = {"workspace": "scratch", "effects": "workspace"}
    said = 'echo \'{"recommendations": [{"scope": "db", "action": "%s"}]}\''
    project.plan(
        {
            "left": {"shell": "echo left > a; rm b; echo l > l", "inputs": ["a", "b"], **copied},
            "right": {"shell": "echo right > a; echo r > r", "inputs": "a", **copied},
            "below": {"shell": "cat a", "needs": "right"},
            "one": {"shell": said % "sqlite", "agent": "one"},
            "two": {"shell": said % "postgres", "agent": "two"},
            "both": {"shell": "echo both", "needs": ["one", "two"]},
        }
    )
    for found in project.run("-j", "1").data["conflicts"]:
        take = "mine" if found["kind"] == "files" else "two"
        project.ok("resolve", found["conflict"], "--take", take, "--because", "it is better")
    project.resume()
    (project.root / "l").unlink()
    project.run()
    project.ok("undo", "right")


def growth(project: Project) -> None:
    """Steps added by steps and by people, refused, gone on without and made after all; a fork."""
    more = json.dumps({"steps": {"lint": {"shell": "echo lint", "needs": ["scan"]}}})
    steps = {
        "scan": {"shell": f"printf '%s' '{more}' > $HOLDFAST_ADD/more.json; echo scan"},
        "bad": {"shell": "test -e flag && echo good", "needs": "scan"},
        "after": {"shell": "cat $HOLDFAST_INPUTS/bad; echo after", "needs": "bad"},
        "late": {"shell": "test -e flag", "needs": "scan"},
    }
    project.plan(steps)
    project.run()
    for name in ("x", "y"):
        project.write(f"{name}.yaml", f"steps: {{{name}: {{shell: echo {name}, needs: [scan]}}}}\n")
        project.ok("add", f"{name}.yaml", "--because", "wanted")
    project.write("z.yaml", "steps: {z: {shell: echo z, secrets: [TOKEN]}}\n")
    project.ok("add", "z.yaml")
    project.call("skip", "bad", "--because", "the tool is down")
    project.write("flag", "")
    project.retry("bad")
    project.ok("replay")
    project.ok("fork", "@", "--from", "bad", "--as", "other")
    project.run()


def models(project: Project) -> None:
    """Answers refused, cut off and too often asked for, a tool, a budget, and an answer left by a kill."""
    project.write("work.py", "def add(a: int, b: int) -> int:\n    return a + b\n")
    waits = project.gate("go")
    ask = {"prompt": "say it", "model": "fake:m"}
    steps: dict[str, Mapping[str, object]] = {
        "refused": {**ask, "guards": [{"regex": {"pattern": "good"}}]},
        "cut": {**ask, "needs": ["refused"]},
        "agent": {
            **ask,
            "uses": "agent",
            "tools": ["work:add"],
            "effects": "workspace",
            "workspace": "shared",
            "needs": ["cut"],
        },
        "left": {**ask, "needs": ["agent"], "guards": [{"command": ["sh", "-c", waits]}]},
        "dear": {**ask, "needs": ["left"], "budget": {"tokens": 1}},
    }
    project.plan(steps)
    replies: list[Reply] = [
        Say("bad"),
        Fail(429, headers={"retry-after": "0.01"}),
        Say("good"),
        Say("a long answer that is cut off", cut=2),
        Say("whole"),
        Say(tools=[("add", {"a": 1, "b": 2})]),
        Say("three"),
        Say("left"),
    ]
    with served(project, replies) as server:
        engine = project.start("run", "--yes")
        until(lambda: len(server.requests) == len(replies), "the last one is asked")
        until(lambda: project.events()[-1]["event"] == "call_answered", "it is stored")
        kill(engine)
        project.open("go")
        project.run("--yes")


def samples(project: Project) -> None:
    """Three artifacts under one key: judged, worse than what stands, and better."""
    judge = {"judge": {"rubric": "is it good?", "min": 0.5}}
    project.plan({"brief": {"prompt": "write", "model": "fake:m", "guards": [judge]}})
    texts = ["one", verdict(0.9), "two", verdict(0.6), "three", verdict(0.95)]
    with served(project, [Say(text) for text in texts]):
        project.run("--yes")
        project.run("--yes", "--resample", "brief")
        project.run("--yes", "--resample", "brief")


def unsent(project: Project) -> None:
    """A call that was stored and had not left when its engine was killed."""
    project.plan({"a": {"prompt": "say it", "model": "fake:m"}})
    kill_before_it_asks(project)
    with served(project, [Say("said")]):
        project.call("resume", "--yes")


def short(project: Project) -> None:
    """Calls that limits leave no room for: of money, which is raised, and of tokens."""
    ask = {"prompt": "say it", "model": {"id": "fake:m", "max_tokens": 100}}
    project.plan({"a": ask, "b": {**ask, "needs": ["a"]}})
    with served(project, [Say("one", input=10, output=90), Say("two")]):
        project.run("--max-cost", "0.0003")
        project.resume("--max-cost", "0.01")
        project.plan({"c": ask}, limits={"tokens": 50})
        project.run("--yes")


def consent(project: Project) -> None:
    """Nobody is asked where nobody is paid; then a bound, which holds after a kill; then a saved preview."""
    ask = {"prompt": "say it", "model": "fake:m"}
    project.plan({"a": ask, "b": {**ask, "prompt": "say more", "needs": ["a"]}})
    with served(project, [Say("one"), Hang(), Say("two"), Say("three"), Say("four")]) as server:
        project.run("--provider", "recorded")
        engine = project.start("retry", "a", "--max-cost", "1")
        until(lambda: len(server.requests) == 2, "the second one is asked")
        kill(engine)
        project.ok("resume")
        project.ok("plan", "--force", "-o", "review.json")
        project.ok("run", "review.json")


def items(project: Project) -> None:
    """Items that a step finds, paid after a yes, more of them later; a condition, a failure gone without."""
    project.write("hits.json", '["a", "b/c"]')
    ask = {"prompt": "say ${{ item }}", "model": "fake:m"}
    each = {**ask, "for_each": "${{ steps.search.output }}", "key": "${{ item }}"}
    project.plan(
        {
            "search": {"shell": "cat hits.json", "inputs": ["hits.json"]},
            "each": each,
            "late": {"shell": "echo late", "when": {"steps.each.output.2": {"exists": True}}},
            "weak": {
                "shell": "[ $HOLDFAST_STEP != 'weak[2]' ]",
                "for_each": [1, 2],
                "optional": True,
            },
            "last": {"shell": "ls $HOLDFAST_INPUTS", "needs": ["each", "weak", "late"]},
        }
    )
    with served(project, [Say("one"), Say("two"), Say("three")]):
        project.ok("plan", "-o", "review.json")
        project.call("run", "review.json")
        project.ok("approve", "each", "--yes")
        project.resume()
        project.write("hits.json", '["b/c", "d"]')
        project.run("--yes")
        project.write("hits.json", '["b/c", "a"]')
        project.run("--yes")


def _told(finding: str, **more: object) -> str:
    whole = {
        "attempted": "look",
        "observed": [{"finding": finding, "source": "a.csv", "confidence": 0.5}],
        "changed": [],
        "not_done": [{"item": "the map", "reason": "no data"}],
        "highest_impact_uncertainty": f"is it so that {finding}?",
        "next_agent_should_first": "look again",
    }
    return json.dumps({**whole, **more})


def handoffs(project: Project) -> None:
    """Handed over by steps and people; added to, resolved, contested, taken back, kept apart by people."""
    told = {"shell": "cat $HOLDFAST_STEP.js* > $HOLDFAST_HANDOFF; echo $HOLDFAST_STEP"}
    project.plan(
        {
            "look": told,
            "twin": {**told, "guards": ["human"]},
            "who": {"uses": "human", "prompt": "who knows?", "handoff": True, "needs": ["look"]},
            "then": {"needs": ["who"], "shell": "cat $HOLDFAST_CONTEXT", "context": "in-ref"},
            "bad": {"shell": "exit 1", "needs": ["look"]},
        }
    )
    project.write("look.json", _told("12 stations answer"))
    project.write("twin.json", _told("the 12 stations answer"))
    project.write("who.json", _told("Ann knows", resolves=["is it so that 12 stations answer?"]))
    project.write("who.txt", "Ann\n")
    project.run()
    project.ok("answer", "who", "who.txt", "--handoff", "who.json")
    project.ok("approve", "twin", "--yes")
    project.resume()
    found = project.ok("ledger", "--json").json
    one, other = (
        next(item["id"] for item in found["evidence"] if item["from_step"] == name)
        for name in ("look", "twin")
    )
    because = ("--because", "I know better")
    for kind in ("evidence", "uncertainty", "gap"):
        project.ok("ledger", "add", kind, f"an own {kind}", *because)
    project.ok("ledger", "resolve", found["gaps"][0]["id"], *because)
    project.ok("ledger", "apart", one, other)
    project.ok("ledger", "contest", one, *because)
    project.run()
    project.ok("ledger", "contest", one, "--take-back", *because)
    project.write("look.txt", "13\n")
    project.write("look.json", _told("13 stations answer"))
    project.ok("amend", "look", "look.txt", "--handoff", "look.json", *because)
    project.run()


def travels(project: Project) -> None:
    """A yes with a handoff, a run that reuses it all, taken elsewhere with what its line knew, and forked."""
    told = {"shell": "cat look.js* > $HOLDFAST_HANDOFF; echo 12", "guards": ["human"]}
    project.plan({"look": told, "then": {"needs": ["look"], "shell": "cat $HOLDFAST_CONTEXT"}})
    project.write("look.json", _told("12 stations answer"))
    project.write("yes.json", _told("two are missing"))
    project.run()
    project.ok("approve", "look", "--yes", "--handoff", "yes.json")
    project.resume()
    project.ok("ledger", "contest", "look", "--because", "I doubt it")
    project.ok("ledger", "contest", "look", "--take-back", "--because", "it is so")
    project.ok("ledger", "add", "gap", "the map", "--because", "no data")
    project.run()
    project.ok("export", "@", "run.zip")
    project.ok("import", "run.zip", "--store", str(project.folder / "other"))
    project.ok("fork", "@", "--from", "then", "--as", "again")


def brought(project: Project) -> None:
    """A run approved by a person, one that reuses by content, one undone; all pushed to another store."""
    then = {"needs": ["look"], "shell": "cat $HOLDFAST_INPUTS/look", "reuse": "content"}
    last = {"needs": ["then"], "shell": "echo last"}
    project.write("look.json", _told("12 stations answer"))
    for word in ("12", "$((6 * 2))"):
        told = f"cat look.js* > $HOLDFAST_HANDOFF; echo {word}"
        look = {"shell": told, "guards": ["human"]}
        project.plan({"look": look, "then": then, "last": last}, project="shop")
        if project.run().code:
            project.ok("approve", "look", "--yes")
            project.resume()
    project.ok("undo", "last")
    project.ok("push", str(project.folder / "other"))


class Ann(Project):
    """A project of somebody who has a name on every machine."""

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        return {**super().environment(extra), "LOGNAME": "ann"}


def replans(project: Project) -> None:
    """Handoffs, a context, a plan that is doubted: held, gone on with, doubted again, changed, withdrawn."""
    told = {
        "attempted": "look",
        "observed": [{"finding": "it shrank", "source": "sales.csv", "refutes": ["grows"]}],
        "changed": [],
        "not_done": [],
        "highest_impact_uncertainty": "Who buys?",
        "next_agent_should_first": "ask",
        "hypotheses": {"grows": {"status": "refuted"}},
    }
    project.write("look.json", json.dumps(told))
    look = {
        "type": "experiment",
        "hypotheses": ["grows"],
        "inputs": "look.json",
        "shell": "cp look.json $HOLDFAST_HANDOFF; echo looked",
    }
    write = {"needs": ["look"], "shell": "cat $HOLDFAST_CONTEXT"}
    grows = {"grows": {"statement": "it grows", "critical": True}}
    project.plan({"look": look, "write": write}, hypotheses=grows)
    project.run()
    project.ok("approve", "replan", "--yes", "--because", "it is known")
    project.resume()
    project.write("look.json", json.dumps({**told, "replan": {"reason": "another source"}}))
    project.run()
    project.plan({"look": look, "write": {**write, "shell": "echo otherwise"}}, hypotheses=grows)
    project.run("--yes")
    failing = {"shell": "test -e there && echo done"}
    musts = {"there": {"description": "it is there", "priority": "must"}}
    project.plan({"there": failing}, requirements=musts, replan={"gaps": 0})
    project.run("--yes")
    project.write("there", "")
    project.resume()


def prepared(project: Project) -> None:
    """A plan that is doubted, and one that was ready to take its place: by itself, and by a person's word."""
    told = {
        "attempted": "look",
        "observed": [{"finding": "it shrank", "source": "sales.csv", "refutes": ["grows"]}],
        "changed": [],
        "not_done": [],
        "highest_impact_uncertainty": "",
        "next_agent_should_first": "",
        "hypotheses": {"grows": {"status": "refuted"}},
    }
    project.write("look.json", json.dumps(told))
    look = {
        "type": "experiment",
        "hypotheses": ["grows"],
        "inputs": "look.json",
        "shell": "cp look.json $HOLDFAST_HANDOFF; echo looked",
    }
    grows = {"grows": {"statement": "it grows", "critical": True}}
    for name, end, rules in (
        ("plan.yaml", "first", {"to": "second.yaml", "ask": False}),
        ("asking.yaml", "asking", {"to": "second.yaml"}),
        ("second.yaml", "second", {}),
    ):
        steps = {"look": look, "write": {"needs": ["look"], "shell": f"echo {end}"}}
        project.plan(steps, file=name, hypotheses=grows, replan=rules)
    project.run()
    project.run()
    project.write("look.json", json.dumps({**told, "replan": {"reason": "another source"}}))
    project.run("asking.yaml")
    project.run("second.yaml")


def shown(project: Project) -> None:
    """Items of a list that stood when somebody said yes, paid for without another question."""
    ask = {"prompt": "say ${{ item }}", "model": "fake:m"}
    project.plan(
        {
            "search": {"shell": "echo '[1, 2]'"},
            "each": {**ask, "for_each": "${{ steps.search.output }}"},
        }
    )
    with served(project, [Say("one"), Say("two")]):
        project.run("-s", "search")
        project.ok("plan", "-o", "review.json")
        project.ok("run", "review.json")


SCENARIOS: dict[str, Callable[[Project], object]] = {
    **FEATURES,
    "basic": basic,
    "failures": failures,
    "held": held,
    "people": people,
    "guards": guards,
    "drift": drift,
    "choices": choices,
    "joined": joined,
    "growth": growth,
    "approvals": approvals,
    "policy": policy,
    "copies": copies,
    "models": models,
    "samples": samples,
    "unsent": unsent,
    "short": short,
    "consent": consent,
    "goals": goals,
    "items": items,
    "handoffs": handoffs,
    "replans": replans,
    "prepared": prepared,
    "shown": shown,
    "travels": travels,
    "brought": brought,
}


def stored(project: Project, place: Path) -> dict[str, object]:
    """The journals of a store as they lie there, and the contents that are in its database."""
    database = apsw.Connection(str(place / "state.db"), flags=apsw.SQLITE_OPEN_READONLY)
    database.set_busy_timeout(10_000)
    journals = {}
    for number, name in database.execute("SELECT id, name FROM journal ORDER BY id"):
        rows = database.execute(
            "SELECT place, at, kind, body, hash FROM event WHERE place > ? AND place < ? ORDER BY place",
            (number * _PLACE, (number + 1) * _PLACE),
        )
        journals[name] = [
            [at - number * _PLACE, when, kind, body, chain.hex()]
            for at, when, kind, body, chain in rows
        ]
    runs = [
        list(row)
        for row in database.execute(
            "SELECT run.id, project, name, number, imported FROM run"
            " JOIN line ON line.id = run.line ORDER BY number"
        )
    ]
    contents = {
        digest.hex(): base64.b64encode(content).decode()
        for digest, content in database.execute("SELECT digest, content FROM blob ORDER BY digest")
    }
    database.close()
    states = {
        row[0]: project.ok("status", row[0], "--store", str(place), "--json").json for row in runs
    }
    return {"journals": journals, "runs": runs, "contents": contents, "states": states}


def main(name: str) -> None:
    """Play one scenario and write its file; an existing one is left as it is."""
    target = GOLDEN / f"{name}.json"
    if target.exists():
        sys.exit(f"{target} is there already, and a history is never written again")
    with tempfile.TemporaryDirectory() as folder:
        project = Ann(Path(folder))
        SCENARIOS[name](project)
        found = {"main": stored(project, project.store)}
        other = project.folder / "other"
        if other.exists():
            found["other"] = stored(project, other)
        project.end()
    target.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
