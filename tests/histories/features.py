"""Further scenarios for golden histories: one per feature, beside those of `record`."""

import hashlib
from collections.abc import Callable
from typing import Any

from holdfast.testing.server import Say
from tests.cli import test_reasons as reasons
from tests.cli.project import Project, kill, until
from tests.cli.served import served, verdict
from tests.cli.tickets import repository


def subplans(project: Project) -> None:
    """A plan within a plan, with values for its params; what several steps made is gathered."""
    inner: dict[str, dict[str, Any]] = {
        "draft": {"shell": "echo $HOLDFAST_WITH_WORD", "with": {"word": "${{ params.word }}"}},
        "each": {"for_each": ["x", "y"], "needs": ["draft"], "shell": "echo $HOLDFAST_STEP"},
    }
    project.plan(inner, file="inner.yaml", params={"word": {"type": "string"}})
    for word in ("one", "two"):
        project.plan(
            {
                "first": {"shell": "printf 1"},
                "sub": {"uses": "plan", "run": "inner.yaml", "with": {"word": word}},
                "both": {"uses": "gather", "needs": ["first", "sub"]},
            }
        )
        project.run()


def rules(project: Project) -> None:
    """Approvals that a person's own rules give, and what they leave to the person."""
    folder = project.home / ".config" / "holdfast"
    folder.mkdir(parents=True)
    rule = "[[approvals]]\nstep = 'lint'\neffects = 'none'\nscope = 'run'\n"
    (folder / "config.toml").write_text(rule)
    asks = {"shell": "echo $HOLDFAST_STEP", "approve": "always"}
    project.plan({"lint": asks, "drop": asks})
    project.run("--approve", "policy")
    project.ok("approve", "drop", "--yes")
    project.resume()


def idempotent(project: Project) -> None:
    """Killed within an effect that may be repeated: it is, under the same key."""
    send = {"shell": project.sh(project.gate("go")), "effects": "external", "idempotent": True}
    project.plan({"send": send})
    engine = project.start("run", "--yes")
    until(lambda: "send" in project.begun())
    kill(engine)
    project.open("go")
    project.resume("--yes")


def again(project: Project) -> None:
    """An effect that nobody confirmed, repeated by a person's yes to that question."""
    send = {"shell": project.sh(project.gate("go")), "effects": "external"}
    project.plan({"send": {**send, "approve": "always"}})
    project.run("--yes")
    project.ok("approve", "send", "--yes")
    engine = project.start("resume", "--yes")
    until(lambda: "send" in project.begun())
    kill(engine)
    project.open("go")
    project.resume("--yes")
    project.ok("approve", "send", "--yes")
    project.resume("--yes")


def worktrees(project: Project) -> None:
    """Changes made in worktrees of a repository, taken over one after the other."""
    repository(project, {"a": "a\n", "b": "b\n"})
    alone = {"workspace": "worktree", "effects": "workspace"}
    project.plan(
        {
            "one": {"shell": "echo 1 > a; echo new > c", **alone},
            "two": {"shell": "rm b; chmod +x a", "needs": ["one"], **alone},
        }
    )
    project.run("-j", "1")
    project.run()


def coders(project: Project) -> None:
    """A coding agent of the command line: refused once, then accepted."""
    project.write(
        "agent.py",
        "import pathlib, sys\nprompt = pathlib.Path(sys.argv[1]).read_text()\n"
        "pathlib.Path('made.txt').write_text(prompt)\nprint('low' if 'low' not in prompt else 'high')\n",
    )
    guard = "grep -q high $HOLDFAST_ARTIFACT || { echo the tide is low; exit 1; }"
    agent = {"uses": "cli-agent", "run": ["python3", "agent.py", "{prompt_file}"]}
    more = {"prompt": "write it", "inputs": ["agent.py"], "retries": 1}
    project.plan({"a": {**agent, **more, "guards": [{"command": ["sh", "-c", guard]}]}})
    project.run()


def functions(project: Project) -> None:
    """Steps that are Python functions, with a schema, a failure and a change of what they use."""
    project.write(
        "work.py", "from words import NAME\ndef count(text):\n    return {NAME: len(text)}\n"
    )
    project.write("words.py", 'NAME = "other"\n')
    count = {"uses": "python", "run": "work:count", "needs": ["text"]}
    project.plan(
        {"text": {"shell": "echo text"}, "count": {**count, "schema": {"required": ["size"]}}}
    )
    project.run()
    project.write("words.py", 'NAME = "size"\n')
    project.run()


def budgets(project: Project) -> None:
    """More attempts than a budget has, after a person's yes; and a limit of time for all of a run."""
    project.plan(
        {
            "dear": {
                "shell": "test -e $HOLDFAST_ROOT/ok",
                "retries": 3,
                "budget": {"attempts": 1},
                "approve": "over_budget",
            }
        }
    )
    project.run()
    project.write("ok", "")
    project.ok("approve", "dear", "--yes")
    project.resume()
    project.plan({"slow": {"shell": "sleep 9"}, "next": {"shell": "true", "needs": ["slow"]}})
    project.run("--time", "1s")


def judged(project: Project) -> None:
    """Guards of every kind on one step: composites, a judge, quotes, code, a schema."""
    project.write("source.txt", "The tide is high at noon.\n")
    all_of = {
        "all": [
            {"regex": {"pattern": "tide"}},
            {"any": [{"regex": {"pattern": "low"}}, {"regex": {"pattern": "high"}}]},
        ]
    }
    cites = {"cites": {"in": "source.txt"}}
    judge = {"judge": {"rubric": "is it good?", "min": 0.5}}
    ask = {"prompt": "quote it", "model": "fake:m", "inputs": ["source.txt"], "retries": 1}
    project.plan({"brief": {**ask, "guards": [all_of, cites, judge]}})
    replies = ['"the tide is low"', '"The tide is high at noon."', verdict(0.9)]
    with served(project, [Say(text) for text in replies]):
        project.run("--yes")


def params(project: Project) -> None:
    """Params of each type, given otherwise the second time; conditions that follow from them."""
    names = {"n": {"type": "int", "default": 1}, "parts": {"type": "list", "default": ["a"]}}
    project.plan(
        {
            "each": {"for_each": "${{ params.parts }}", "shell": "echo $HOLDFAST_STEP"},
            "more": {"shell": "echo $HOLDFAST_WITH_N", "with": {"n": "${{ params.n }}"}},
        },
        params=names,
    )
    project.run()
    project.run("--param", "n=2", "--param", 'parts=["a", "b"]')


def lost(project: Project) -> None:
    """Content that is gone is made again: without a repair, and after one that recorded it."""
    below = {"shell": "echo b; cat $HOLDFAST_INPUTS/a", "needs": ["a"]}
    project.plan({"a": {"shell": "echo a"}, "b": below})
    found = project.run().digests
    _lose(project, str(found["a"]))
    project.run()
    _lose(project, str(found["b"]))
    project.ok("repair")
    project.run()


def _lose(project: Project, digest: str) -> None:
    with project.database() as connection:
        connection.execute("DELETE FROM blob WHERE digest = ?", (bytes.fromhex(digest),))


def receipts(project: Project) -> None:
    """A purged receipt: held, held again in a new run, then done again because a person asked."""
    project.plan({"send": {"shell": "printf sent", "effects": "external"}})
    sent = str(project.run("--yes").digests["send"])
    project.ok("purge", sent, "--because", "a name", "--yes")
    project.run("--yes")
    project.run("--yes")
    project.retry("send", "--yes")


def unresolved(project: Project) -> None:
    """A tool that does not say what it is: its effect is held, done because a person asked, and stands."""
    tool = project.write("tool.sh", "echo 1")
    send = {
        "shell": "printf sent",
        "effects": "external",
        "tool_versions": {"t": ["sh", "tool.sh"]},
    }
    project.plan({"send": send})
    project.run("--yes")
    tool.write_text("exit 1")
    project.run("--yes")
    project.run("--yes")
    tool.write_text("echo 1")
    project.retry("send", "--yes")
    project.run("--yes")


def forks(project: Project) -> None:
    """A fork of a run that failed, and a fork of that; the lines go their own ways."""
    steps: dict[str, dict[str, Any]] = {
        "a": {"shell": "echo a"},
        "b": {"shell": "test -e flag", "needs": ["a"]},
    }
    project.plan(steps)
    project.run()
    project.call("fork", "@", "--from", "b", "--as", "second")
    project.write("flag", "")
    project.ok("resume", "--plan-id", "second")
    project.ok("fork", "@", "--plan-id", "second", "--from", "a", "--as", "third")


def stops(project: Project) -> None:
    """Stopped at once: what ran is interrupted, and goes on with a resume."""
    project.plan({"slow": {"shell": project.sh(project.gate("go"))}, "last": {"shell": "true"}})
    engine = project.begun_by("run", "-j", "1", step="slow")
    project.ok("stop", "--now")
    engine.wait()
    project.open("go")
    project.resume()


def orders(project: Project) -> None:
    """Priorities, waves, resources and agents that bound each other, one engine."""
    steps = {
        name: {"shell": "true", "priority": level, "resources": {"gpu": 1}, "agent": "one"}
        for name, level in (("a", "low"), ("b", "high"), ("c", "critical"))
    }
    limits = {"resources": {"gpu": 1}, "agents": {"one": 1}}
    project.plan({**steps, "d": {"shell": "true", "needs": [*steps]}}, limits=limits)
    project.run("--barrier", "-j", "2")


def trees(project: Project) -> None:
    """Artifacts of several files: a file of one purged, a tree restored, made again, collected."""
    body = "mkdir -p out; echo 1 > out/a; echo secret > out/b"
    project.plan({"tree": {"shell": body, "produces": ["out"]}})
    project.run()
    (project.root / "out" / "a").unlink()
    project.run()
    digest = hashlib.sha256(b"secret\n").hexdigest()
    project.ok("purge", digest, "--because", "a secret", "--yes")
    project.run()
    project.run("--force")
    project.ok("gc", "--keep", "0s", "--keep-runs", "1", "--yes")


def handed(project: Project) -> None:
    """An agent with a tool that only reads, a model that answers JSON, a step that is told of both."""
    project.write("work.py", "def add(a: int, b: int) -> int:\n    return a + b\n")
    ask = {"prompt": "say it", "model": "fake:m"}
    schema = {"type": "object", "required": ["n"]}
    project.plan(
        {
            "agent": {**ask, "uses": "agent", "tools": ["work:add"]},
            "json": {**ask, "schema": schema, "retries": 1, "needs": ["agent"]},
        }
    )
    uses = Say(tools=[("add", {"a": 1, "b": 2})])
    with served(project, [uses, Say("three"), Say("{}"), Say('{"n": 3}')]):
        project.run("--yes")


def decisions(project: Project) -> None:
    """What a person accepted stands, and what a person undid is made again."""
    reasons.decisions(project)
    project.run()


FEATURES: dict[str, Callable[[Project], object]] = {
    "edits": reasons.edits,
    "endings": reasons.failures,
    "asked": reasons.people,
    "beyond": reasons.beyond,
    "lists": reasons.lists,
    "escalations": reasons.escalations,
    "selections": reasons.selections,
    "decisions": decisions,
    "disagreements": reasons.disagreements,
    "doubts": reasons.doubts,
    "tools": reasons.tools,
    "calls": reasons.calls,
    "contesting": reasons.contesting,
    "telling": reasons.telling,
    "unrecorded": reasons.unrecorded,
    "additions": reasons.growing,
    "listing": reasons.listing,
    "interruptions": reasons.interruptions,
    "subplans": subplans,
    "rules": rules,
    "idempotent": idempotent,
    "again": again,
    "worktrees": worktrees,
    "coders": coders,
    "functions": functions,
    "budgets": budgets,
    "judged": judged,
    "params": params,
    "lost": lost,
    "receipts": receipts,
    "unresolved": unresolved,
    "forks": forks,
    "stops": stops,
    "orders": orders,
    "trees": trees,
    "handed": handed,
}
