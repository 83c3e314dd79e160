"""diff: plans, outputs, times and attempts, compared; equal things are not shown."""

import json
import subprocess
from typing import Any

import pytest

from tests.cli.project import Project


def show(value: Any) -> str:
    return f"printf '%s' '{json.dumps(value)}'"


def versions(project: Project) -> tuple[str, str]:
    """Two runs of two plans."""
    project.plan(
        {
            "text": {"shell": "printf 'one\\ntwo\\n' > out.txt", "produces": "out.txt"},
            "data": {"shell": show({"a": 1, "list": [1, 2, 3]})},
            "raw": {"shell": "printf 'a\\000b'"},
            "same": {"shell": "echo same"},
            "old": {"shell": "echo old"},
        }
    )
    first = project.run().id
    project.plan(
        {
            "text": {
                "shell": "printf 'one\\nTWO\\nthree\\n' > out.txt",
                "produces": "out.txt",
                "retries": 2,
            },
            "data": {"shell": show({"a": 2, "list": [1, 3], "new": "x"})},
            "raw": {"shell": "printf 'a\\000bc'"},
            "same": {"shell": "echo same"},
            "new": {"shell": "echo new"},
        }
    )
    return first, project.run().id


@pytest.mark.req("R171")
def test_two_runs_differ_in_plan_and_outputs(project: Project) -> None:
    first, second = versions(project)
    found = project.ok("diff", "@-1", "@", "--json").json
    assert (found["a"]["run"], found["b"]["run"], found["equal"]) == (first, second, False)
    plan = found["plan"]
    assert (plan["added"], plan["removed"]) == (["new"], ["old"])
    changed = {item["step"]: [key["path"] for key in item["keys"]] for item in plan["changed"]}
    assert changed == {"text": ["retries", "shell"], "data": ["shell"], "raw": ["shell"]}
    by = {piece["step"]: piece for piece in found["outputs"]}
    assert by.keys() == {"text", "data", "raw"}, "what is equal is not there"
    assert (by["text"]["how"], by["text"]["path"]) == ("text", "out.txt")
    assert by["text"]["lines"][2:] == ["@@ -1,2 +1,3 @@", " one", "-two", "+TWO", "+three"]
    assert [(c["path"], c["how"], c["before"], c["after"]) for c in by["data"]["changes"]] == [
        ("a", "changed", 1, 2),
        ("list[1]", "removed", 2, None),
        ("new", "added", None, "x"),
    ]
    assert (by["raw"]["how"], by["raw"]["sizes"]) == ("binary", [3, 4])
    one = project.ok("diff", first, second, "-s", "data", "--outputs").out
    assert "~ a: 1 → 2" in one
    assert "out.txt" not in one
    assert project.call("diff", "@-1", "@", "--exit-code").code == 1
    assert project.call("diff", "@", second, "--exit-code", "--time").code == 0
    assert "→" in project.ok("diff", "@-1", "@", "--time").out


@pytest.mark.req("R171")
def test_a_run_is_compared_with_the_present_plan_and_disk(project: Project) -> None:
    versions(project)
    assert project.call("diff", "@", "--exit-code").code == 0
    project.write("out.txt", "one\nmine\n")
    steps = json.loads(project.read("plan.yaml"))["steps"]
    project.plan({**steps, "more": {"shell": "true"}})
    found = project.call("diff", "@", "--exit-code", "--json")
    assert found.code == 1
    assert found.json["plan"]["added"] == ["more"]
    (piece,) = found.json["outputs"]
    assert "+mine" in piece["lines"]
    (project.root / "out.txt").unlink()
    (piece,) = project.ok("diff", "@", "--json").json["outputs"]
    assert piece["how"] == "removed"


@pytest.mark.req("R171")
def test_plan_files_and_git_commits_are_compared(project: Project) -> None:
    def git(*words: str) -> None:
        name = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *name, *words], cwd=project.root, check=True, capture_output=True)

    git("init", "-q")
    project.plan({"a": {"shell": "echo one"}})
    git("add", "-A")
    git("commit", "-qm", "one")
    project.plan({"a": {"shell": "echo one\necho two"}, "b": {"shell": "true"}})
    found = project.ok("diff", "HEAD", "--json").json
    assert (found["plan"]["added"], found["outputs"]) == (["b"], None)
    whole = project.ok("diff", "HEAD", "--plan").out
    assert "+ b" in whole
    assert "+echo two" in whole
    project.plan({"a": {"shell": "echo three"}}, file="other.yaml")
    other = project.ok("diff", "plan.yaml", "other.yaml", "--json").json
    assert other["plan"]["removed"] == ["b"]
    assert not project.store.exists(), "nothing is created"
    assert "only a plan" in project.refused(2, "diff", "HEAD", "--outputs")
    assert "of runs only" in project.refused(2, "diff", "HEAD", "--time")
    assert "no git commit" in project.refused(2, "diff", "nothing")
    assert "no store yet" in project.refused(2, "diff", "@")
    git("rm", "-q", "--cached", "plan.yaml")
    git("add", "other.yaml")
    git("commit", "-qm", "none")
    assert "no 'plan.yaml' at 'HEAD'" in project.refused(2, "diff", "HEAD")


@pytest.mark.req("R171")
def test_two_attempts_are_compared_with_the_feedback_between_them(project: Project) -> None:
    guard = {"regex": {"pattern": "^2"}, "name": "second"}
    body = "echo $HOLDFAST_ATTEMPT; seq 100"
    project.plan({"a": {"shell": body, "guards": [guard], "retries": 1}})
    project.run()
    project.run()
    said = project.ok("diff", "a@1", "a@2").out
    assert "attempt 1 was rejected by 'second'" in said
    assert said.index("attempt 2 was accepted") < said.index("\n-1\n")
    found = project.ok("diff", "a@1", "--json").json
    assert (found["a"]["name"], found["b"]["name"]) == ("a@1", "a@2")
    assert found["a"]["feedback"]
    assert "+2" in found["outputs"][0]["lines"]
    assert "no ended attempt 7" in project.refused(2, "diff", "a@1", "a@7")
    assert "is not" in project.refused(2, "diff", "a@1", "@")
    assert "neither side has a step 'z'" in project.refused(2, "diff", "@", "-s", "z")


def test_long_diffs_are_cut_and_say_so(project: Project) -> None:
    project.plan({"a": {"shell": "seq 1 90"}})
    project.run()
    project.plan({"a": {"shell": "seq 101 190"}})
    project.run()
    cut = project.ok("diff", "@-1", "@", "--outputs").out
    assert "more lines, --full" in cut
    whole = project.ok("diff", "@-1", "@", "--outputs", "--full").out
    assert whole.count("\n+1") == 90
    painted = project.ok("--color", "always", "diff", "@-1", "@", "--outputs").out
    assert "\x1b[31m-1\x1b[0m" in painted
