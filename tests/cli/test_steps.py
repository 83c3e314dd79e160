"""What a step finds, where it runs, how many run at once and in which order."""

import json
import os
import sys
from typing import Any

from tests.cli.project import Project, finish_run, until

ALWAYS = {
    "PATH",
    "LANG",
    "HOME",
    "TMPDIR",
    "HOLDFAST_STEP",
    "HOLDFAST_ATTEMPT",
    "HOLDFAST_ROOT",
    "HOLDFAST_INPUTS",
    "HOLDFAST_WITH",
    "HOLDFAST_HANDOFF",
    "HOLDFAST_ADD",
    "HOLDFAST_CONTEXT",
}
# By this one the engine finds what an attempt left running; nothing else may depend on it.
OWN = {"HOLDFAST_MARK"}
REPORT = """\
import json, os, pathlib, stat, sys
inputs = pathlib.Path(os.environ["HOLDFAST_INPUTS"])
values = pathlib.Path(os.environ["HOLDFAST_WITH"])
prompt = os.environ.get("HOLDFAST_PROMPT")
print(json.dumps({
    "environment": dict(os.environ),
    "cwd": os.getcwd(),
    "stdin": sys.stdin.read(),
    "inputs": {p.name: sorted(str(f.relative_to(p)) for f in p.rglob("*") if f.is_file())
               if p.is_dir() else p.read_text() for p in inputs.iterdir()},
    "with": {p.name: p.read_text() for p in values.iterdir()},
    "prompt": prompt and pathlib.Path(prompt).read_text(),
    "home": sorted(os.listdir(os.environ["HOME"])),
}))
"""


def report(project: Project, **more: Any) -> Any:
    project.write("report.py", REPORT)
    project.plan(
        {
            "text": {"shell": "echo some text"},
            "files": {
                "shell": "mkdir -p d; echo 1 > d/one; echo 2 > two",
                "produces": ["d", "two"],
            },
            "after": {"run": ["true"]},
            "s": {
                "run": [sys.executable, "report.py"],
                "needs": ["text", "files", {"step": "after", "type": "sequence"}],
                "inputs": ["report.py"],
                **more,
            },
        }
    )
    run = project.run(env={"COLOUR": "red", "OTHER": "x", "PATH": os.environ["PATH"]})
    assert run.code == 0, run.err + project.call("logs", "s").out
    return json.loads(project.shown("s"))


def test_a_step_finds_exactly_what_is_documented(project: Project) -> None:
    found = report(project, env=["COLOUR"], **{"with": {"size": 3, "word": "x y"}}, prompt="do it")
    env = found["environment"]
    added = {"LC_CTYPE", "PWD"}  # by the interpreter and by bubblewrap
    assert set(env) - added == ALWAYS | OWN | {"COLOUR", "HOLDFAST_PROMPT"}
    assert env["COLOUR"] == "red"
    assert (env["HOLDFAST_STEP"], env["HOLDFAST_ATTEMPT"]) == ("s", "1")
    assert env["HOLDFAST_ROOT"] == found["cwd"] == str(project.root)
    assert found["stdin"] == ""
    assert found["inputs"] == {"text": "some text\n", "files": ["d/one", "two"]}
    assert found["with"] == {"size": "3", "word": "x y"}
    assert found["prompt"] == "do it"
    assert found["home"] == []
    assert env["HOME"] != str(project.home)


def test_a_scratch_step_runs_in_a_directory_of_its_own(project: Project) -> None:
    found = report(project, workspace="scratch")
    assert found["cwd"] != str(project.root)
    assert found["environment"]["HOLDFAST_ROOT"] == str(project.root)


def test_results_of_a_scratch_step_are_applied_and_its_failure_leaves_no_trace(
    project: Project,
) -> None:
    project.write("in.txt", "in\n")
    project.write("undeclared.txt", "no\n")
    body = "mkdir out; cat in.* > out/copy; echo '#!' > out/tool; chmod +x out/tool; ls > out/seen"

    def plan(end: str) -> None:
        project.plan(
            {
                "s": {
                    "shell": project.sh(f"{body}; {end}"),
                    "inputs": ["in.txt"],
                    "produces": "out",
                    "workspace": "scratch",
                }
            }
        )

    plan("echo stray > stray; exit 1")
    failed = project.run()
    assert failed.code == 1
    assert not project.has("out")
    assert not project.has("stray")
    plan("echo stray > stray")
    done = project.run()
    assert done.code == 0
    assert project.read("out/copy") == "in\n"
    assert project.read("out/seen").split() == ["in.txt", "out"]
    assert os.access(project.root / "out/tool", os.X_OK)
    assert not project.has("stray"), "only what it promised comes back"
    plan("echo other > out/copy; exit 1")
    assert project.run().code == 1
    assert project.read("out/copy") == "in\n"
    assert not list((project.store / "scratch").rglob("out"))


def test_as_many_steps_run_at_once_as_asked_for(project: Project) -> None:
    """Each of three steps ends only after all three have begun: fewer at once would never end."""
    ask = f"until [ $(wc -l < {project.log}) -ge 3 ]"
    meet = f"n=0; {ask}; do n=$((n+1)); [ $n -lt 900 ] || exit 9; sleep 0.03; done"
    project.plan({name: {"shell": project.sh(meet)} for name in "abc"})
    assert project.run("-j", "3").code == 0
    assert project.ran() == ["a", "b", "c"]


def test_one_at_a_time_means_one_at_a_time_in_order_of_priority(project: Project) -> None:
    """Each step notes its beginning and its end: with one job they never interleave."""
    body = f"echo $HOLDFAST_STEP >> {project.log}"
    steps: dict[str, Any] = {
        name: {"shell": project.sh(f"sleep 0.05; {body}"), "priority": priority}
        for name, priority in (
            ("a", "low"),
            ("b", "normal"),
            ("c", "high"),
            ("d", "critical"),
            ("e", "normal"),
        )
    }
    project.plan(steps)
    assert project.run("-j", "1").code == 0
    assert project.begun() == [name for name in "dcbea" for _ in range(2)]


def test_a_step_that_changes_the_project_at_large_runs_alone(project: Project) -> None:
    body = f"echo $HOLDFAST_STEP >> {project.log}"
    steps: dict[str, Any] = {
        name: {"shell": project.sh(f"sleep 0.05; {body}"), "effects": "workspace"} for name in "abc"
    }
    project.plan(steps)
    assert project.run("-j", "3").code == 0
    assert project.begun() == [name for name in "abc" for _ in range(2)]


def test_the_log_of_a_step_can_be_read_and_is_not_its_artifact(project: Project) -> None:
    project.plan(
        {
            "s": {"shell": "echo result; echo warning >&2"},
            "f": {"shell": "echo said; echo file > out.txt", "produces": "out.txt"},
            "odd": {"shell": "printf '\\033[31mred\\n' >&2; printf 'a\\000b'"},
        }
    )
    assert project.run().code == 0
    assert project.shown("s") == b"result\n"
    assert project.ok("logs", "s").out == "warning\n"
    assert project.shown("f") == b"file\n"
    assert project.ok("logs", "f").out == "said\n"
    assert project.shown("odd") == b"a\0b", "byte for byte"
    assert "\033" not in project.ok("logs", "odd").out, "nothing that a terminal would obey"


def test_progress_is_told_while_it_happens(project: Project) -> None:
    project.plan(
        {"a": {"run": ["true"]}, "b": {"shell": project.sh(project.gate("go")), "needs": ["a"]}}
    )
    engine = project.begun_by("run", "--json", step="b")
    assert engine.stderr is not None
    said = b""
    while "▸ b".encode() not in said:
        said += engine.stderr.readline()
    assert "✓ a".encode() in said
    until(lambda: engine.poll() is None)
    project.open("go")
    assert finish_run(engine).code == 0


def test_show_prints_what_stands_and_not_what_came_last(project: Project) -> None:
    project.write("n.txt", "one\n")
    project.plan({"a": {"run": ["cat", "n.txt"]}})
    project.run()
    project.write("n.txt", "two\n")
    project.run()
    project.write("n.txt", "one\n")
    assert project.run().states == {"a": "reused"}
    assert project.shown("a") == b"one\n"
    project.ok("amend", "a", "-", stdin=b"mine\n")
    assert project.shown("a") == b"mine\n"
