"""Tickets from their words to commits on a branch, through the command."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.project import Project
from tests.cli.served import served
from tests.cli.tickets import (
    at,
    block,
    edit,
    finish,
    git,
    log_of,
    playing,
    repository,
    script,
    ticket,
    work,
    worked,
)

TIDES = {
    "tides.py": "def height(hour):\n    return 2 + hour % 12\n",
    "report.py": "from tides import height\n\n\ndef line(hour):\n    return str(height(hour))\n",
    "test_tides.py": "import unittest\n\nfrom report import line\nfrom tides import mean\n\n\n"
    "class Tides(unittest.TestCase):\n    def test_mean(self):\n        self.assertEqual(mean([1, 3]), 2)\n\n"
    "    def test_line(self):\n        self.assertEqual(line(0), '2 m')\n",
}
WANTED = """---
id: mean
eoi: tides.py
stakeholders: [harbour office]
viewpoints: [users of the library]
concerns: [accuracy]
acceptance: [mean of heights, heights with their unit]
---
# Give the mean of heights

`tides.mean(values)` gives the mean; `report.line` says metres.
"""
MEAN = block(
    "tides.py",
    "    return 2 + hour % 12\n",
    "    return 2 + hour % 12\n\n\ndef mean(values):\n    return sum(values) / len(values)\n",
)
LINE = "export const line = (h) => String(height(h));\n"
UNIT = block("report.py", "    return str(height(hour))\n", '    return f"{height(hour)} m"\n')


def mine(project: Project) -> tuple[str, str, dict[str, bytes]]:
    """Everything of the person's own: what git says of it, and every file."""
    files = {
        str(path.relative_to(project.root)): path.read_bytes()
        for path in project.root.rglob("*")
        if path.is_file() and ".git" not in path.parts and ".holdfast" not in path.parts
    }
    return git(project, "status", "--porcelain"), git(project, "rev-parse", "HEAD"), files


@pytest.mark.req(
    "R109", "R130", "R131", "R133", "R136", "R144", "R146", "R147", "R156", "C29", "E19"
)
def test_a_model_does_a_ticket_of_several_files_in_python(project: Project) -> None:
    base = repository(project, TIDES)
    project.write("tides.py", "# being changed by the person\n")
    project.write("notes.txt", "mine\n")
    before = mine(project)
    turns = [
        ("plan", {"steps": ["read", "change", "check"], "done": 1}),
        ("read", {"path": "tides.py"}),
        edit(MEAN),
        ("commit", {"message": "Give the mean of heights", "nodes": ["n-2"]}),
        ("read", {"path": "report.py"}),
        edit(UNIT),
        ("run", {"command": "python3 -m unittest 2>&1"}),
        ("tree", {"nodes": [
            {"id": "n-2", "title": "mean", "parent": "n-1", "finished": True, "notes": "sum over count"},
            {"id": "n-3", "title": "unit", "parent": "n-1", "finished": True},
        ]}),
        finish(message="Say metres", nodes=["n-3"], reflections=[{"type": "decision", "message": "small"}]),
    ]  # fmt: skip
    with served(project, playing(*turns)) as server:
        found = worked(project, ticket(project, WANTED), "--model", "fake:m", "--yes")
    assert found["exit"] == 0, found["err"]
    assert "checked by 'python3 -m unittest'" in found["err"], "what checks it is shown"
    assert mine(project) == before
    assert (found["status"], found["ready"], found["verified"]) == ("completed", True, True)
    assert git(project, "log", "--format=%s", f"{base}..holdfast/mean").splitlines() == [
        "mean: bring the task tree up to date",
        "Say metres",
        "Give the mean of heights",
    ]
    trailers = git(project, "log", "-1", "--format=%(trailers)", "holdfast/mean")
    assert found["run"] in trailers
    assert "Holdfast-Step: deliver-1" in trailers
    _passes(project, found)
    log, shas = log_of(found), [one["oid"] for one in found["commits"]]
    assert log["commits"] == shas
    assert [one["cmd"] for one in log["commands"]] == [
        "python3 -m unittest 2>&1",
        "python3 -m unittest",
    ]
    assert log["validation"] == {
        "compiled": True,
        "tests": {"passed": True, "summary": "python3 -m unittest: 2 passed"},
    }
    assert log["status"] == "completed"
    assert log["reflections"] == [{"type": "decision", "message": "small"}]
    nodes = {node["id"]: node for node in log["affected_nodes"]}
    assert nodes["n-2"]["evidence"] == {"commits": [shas[0]], "files": ["tides.py"]}
    assert (nodes["n-3"]["status"], nodes["n-3"]["coverage_pct"]) == ("done", 100)
    tree = at(project, "holdfast/mean", "tickets/mean/task_tree.yaml")
    assert shas[0] in tree
    assert "sum over count" in tree
    asked = server.requests[0].texts[1]
    for words in (
        "Give the mean",
        "harbour office",
        "users of the library",
        "accuracy",
        "tides.py",
    ):
        assert words in asked


def _passes(project: Project, found: object) -> None:
    """The branch, in a clone of its own, passes its tests."""
    copy = project.folder / "copy"
    git(project, "clone", "-q", "--branch", "holdfast/mean", str(project.root), str(copy))
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "unittest"], cwd=copy, capture_output=True, check=False
    )
    assert done.returncode == 0, (done.stderr, found)


@pytest.mark.req("R130", "R146")
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_ticket_in_javascript(project: Project) -> None:
    repository(
        project,
        {
            "package.json": '{"name": "tides", "type": "module", "scripts": {"test": "node --test"}}\n',
            "tides.js": "export const height = (hour) => 2 + (hour % 12);\n",
            "report.js": f'import {{ height }} from "./tides.js";\n{LINE}',
            "tides.test.js": 'import test from "node:test";\nimport assert from "node:assert";\n'
            'import { mean } from "./tides.js";\nimport { line } from "./report.js";\n'
            'test("mean", () => assert.equal(mean([1, 3]), 2));\n'
            'test("line", () => assert.equal(line(0), "2 m"));\n',
        },
    )
    change = edit(
        block(
            "tides.js",
            "export const height = (hour) => 2 + (hour % 12);\n",
            "export const height = (hour) => 2 + (hour % 12);\n"
            "export const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;\n",
        ),
        block("report.js", LINE, LINE.replace("String(height(h))", "`${height(h)} m`")),
    )
    found = worked(
        project, "Give the mean", "--id", "js", "--script", script(project, [change, finish()])
    )
    assert found["exit"] == 0, found["err"]
    assert log_of(found)["validation"]["tests"]["summary"] == "npm test --silent: 2 passed"
    assert "m`" in at(project, "holdfast/js", "report.js")


RUST = {
    "Cargo.toml": '[package]\nname = "tides"\nversion = "0.1.0"\nedition = "2021"\n',
    ".gitignore": "target\nCargo.lock\n",
    "src/lib.rs": "pub mod report;\n\npub fn height(hour: u32) -> u32 {\n    2 + hour % 12\n}\n\n"
    "#[cfg(test)]\nmod tests {\n    #[test]\n    fn both() {\n        assert_eq!(crate::mean(&[1, 3]), 2);\n"
    '        assert_eq!(crate::report::line(0), "2 m");\n    }\n}\n',
    "src/report.rs": "pub fn line(hour: u32) -> String {\n    crate::height(hour).to_string()\n}\n",
}


@pytest.mark.req("R130", "R146")
@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_a_ticket_in_rust(project: Project) -> None:
    repository(project, RUST)
    mean = "pub fn mean(values: &[u32]) -> u32 {\n    values.iter().sum::<u32>() / values.len() as u32\n}\n"
    change = edit(
        block("src/lib.rs", "#[cfg(test)]\n", f"{mean}\n#[cfg(test)]\n"),
        block(
            "src/report.rs",
            "    crate::height(hour).to_string()\n",
            '    format!("{} m", crate::height(hour))\n',
        ),
    )
    found = worked(project, "Mean", "--id", "rs", "--script", script(project, [change, finish()]))
    assert found["exit"] == 0, found["err"]
    assert log_of(found)["validation"]["tests"]["summary"] == "cargo test --offline: 1 passed"
    assert [one["files"] for one in found["commits"]] == [["src/lib.rs", "src/report.rs"]]


@pytest.mark.req("C31", "E19", "R136")
def test_a_model_that_says_that_tests_pass_is_not_believed(project: Project) -> None:
    base = repository(project, TIDES)
    wrong = edit(
        block(
            "tides.py",
            "    return 2 + hour % 12\n",
            "    return 2 + hour % 12\n\n\ndef mean(values):\n    return 2\n",
        )
    )
    lie = finish(summary="all tests pass, I ran them")
    attempts = [[wrong, lie], [lie], [lie]]
    found = worked(project, ticket(project, WANTED), "--script", script(project, attempts))
    assert (found["exit"], found["status"], found["ready"]) == (1, "failed", False)
    assert found["head"] is None
    assert "holdfast/mean" not in git(project, "branch"), "nothing was delivered"
    assert git(project, "rev-parse", "HEAD").strip() == base
    log = log_of(found)
    assert (log["status"], log["commits"]) == ("failed", [])
    assert log["validation"]["tests"]["passed"] is False
    assert "1 failed" in log["error"]


@pytest.mark.req("C31", "E19")
def test_a_check_that_runs_no_test_says_nothing(project: Project) -> None:
    repository(project, {"a.py": "a = 1\n", "tests/test_a.py": "import unittest\n"})
    played = script(
        project, [[edit(block("a.py", "a = 1\n", "a = 2\n")), finish()], [finish()], [finish()]]
    )
    found = worked(project, "Change a", "--id", "a", "--script", played)
    assert (found["exit"], found["head"]) == (1, None)
    assert "ran no test" in log_of(found)["error"]


def test_a_ticket_for_which_nothing_was_changed_leaves_no_branch(project: Project) -> None:
    repository(project, TIDES)
    played = script(project, [("read", {"path": "tides.py"}), finish()])
    found = worked(project, "Nothing", "--id", "n", "--validate", "true", "--script", played)
    assert (found["exit"], found["ready"], found["commits"]) == (1, True, [])
    assert "holdfast/n" not in git(project, "branch")


@pytest.mark.req("R135", "R145")
def test_what_the_checks_refuse_is_mended_from_where_it_was(project: Project) -> None:
    repository(project, TIDES)
    half = [edit(MEAN), finish(summary="half of it")]
    rest = [edit(UNIT), finish(summary="the rest")]
    found = worked(project, ticket(project, WANTED), "--script", script(project, [half, rest]))
    assert found["exit"] == 0, found["err"]
    log = log_of(found)
    assert [one["exit_code"] for one in log["commands"]] == [1, 0]
    assert (log["status"], log["error"]) == ("completed", None)
    assert [one["files"] for one in found["commits"]] == [["report.py", "tides.py"]]


@pytest.mark.req("R132", "R155")
def test_a_ticket_that_is_not_ready_goes_on_in_another_cycle(project: Project) -> None:
    repository(project, TIDES | {"test_tides.py": ""})
    first = [
        ("plan", {"steps": ["mean", "unit"], "done": 1}),
        edit(MEAN),
        finish(ready=False, summary="the mean is there", eoi="report.py"),
    ]
    second = [("plan", {}), edit(UNIT), finish()]
    found = worked(
        project,
        ticket(project, WANTED),
        "--validate",
        "true",
        "--script",
        script(project, first, second),
    )
    assert found["exit"] == 0, found["err"]
    assert found["cycles"] == 2
    assert [one["message"] for one in found["commits"]] == ["the mean is there", "it is done"]
    project.ok("logs", "cycle-2", "--plan-id", "ticket-mean")
    said = project.ok("logs", "cycle-2", "--plan-id", "ticket-mean").out
    assert "1. mean 2. unit" in said, "the plan is read in the next cycle"
    log = log_of(found)
    assert (log["plan_steps"], log["current_step"]) == (2, 1)
    assert log["eoi"] == {"label": "report.py", "path": ""}
    assert worked(project, "mean", "--script", script(project, first, second))["exit"] == 0


@pytest.mark.req("R145")
def test_a_ticket_that_never_gets_ready_ends_at_its_limit_and_keeps_what_passed(
    project: Project,
) -> None:
    repository(project, TIDES)
    more = [edit(MEAN), finish(ready=False)]
    found = worked(
        project,
        "Mean",
        "--id",
        "m",
        "--cycles",
        "1",
        "--validate",
        "true",
        "--script",
        script(project, more),
    )
    assert (found["exit"], found["ready"]) == (5, False)
    assert "def mean" in at(project, "holdfast/m", "tides.py")


@pytest.mark.req("R145")
def test_a_known_ticket_goes_on_under_what_is_said_of_it_anew(project: Project) -> None:
    repository(project, TIDES | {"test_tides.py": ""})
    cycles = [[edit(MEAN), finish(ready=False)], [edit(UNIT), finish()]]
    words = ["--validate", "true", "--script", script(project, *cycles)]
    first = worked(project, "Mean", "--id", "m", "--cycles", "1", *words)
    assert (first["exit"], first["ready"]) == (5, False)
    refused = project.refused(2, "work", "m", "--base", "HEAD", *words)
    assert "'--base' cannot be changed" in refused
    still = worked(project, "m", *words)
    assert (still["exit"], still["cycles"]) == (5, 1), "what is not said stays as it was"
    found = worked(project, "m", "--cycles", "2", "--scope", "tides.py", *words)
    assert (found["exit"], found["cycles"], found["ready"]) == (0, 2, True), found["err"]
    assert at(project, "holdfast/m", "report.py") == TIDES["report.py"], "it is out of the scope"


@pytest.mark.req("R145")
def test_a_ticket_that_takes_too_long_rests_and_goes_on(project: Project) -> None:
    repository(project, TIDES)
    turns = [("run", {"command": "sleep 1.1"}), edit(MEAN), finish()]
    words = ["--id", "m", "--validate", "true", "--script", script(project, turns)]
    found = worked(project, "Mean", *words, "--time", "1s")
    assert (found["exit"], found["status"], found["head"]) == (5, "limit", None)
    assert log_of(found)["status"] == "in_progress"
    said = project.ok("status", "--plan-id", "ticket-m").out
    assert "next: holdfast work m" in said
    again = worked(project, "Mean", *words)
    assert (again["exit"], again["run"]) == (0, found["run"]), again["err"]


def test_doing_the_same_again_while_nothing_changed_is_refused_and_ends_the_cycle(
    project: Project,
) -> None:
    repository(project, TIDES)
    loop = [("read", {"path": "tides.py"})] * 9
    found = worked(
        project,
        "Loop",
        "--id",
        "l",
        "--cycles",
        "1",
        "--validate",
        "true",
        "--script",
        script(project, loop),
    )
    assert (found["exit"], found["ready"]) == (5, False)
    said = project.ok("logs", "cycle-1", "--plan-id", "ticket-l").out
    assert "the same was done in turn 1" in said
    assert said.count("turn ") < 20


@pytest.mark.req("R141", "R139")
def test_an_edit_that_does_not_fit_changes_nothing_and_says_what_is_near(project: Project) -> None:
    repository(project, TIDES)
    bad = edit(block("tides.py", "    return 3 + hour % 12\n", "    return 0\n"), UNIT)
    found = worked(
        project, "Unit", "--id", "u", "--validate", "true",
        "--script", script(project, [bad, ("status", {}), edit(UNIT), finish()]),
    )  # fmt: skip
    assert found["exit"] == 0, found["err"]
    assert [one["files"] for one in found["commits"]] == [["report.py"]]
    said = project.ok("logs", "cycle-1", "--plan-id", "ticket-u").out
    assert "failed: refused: nothing was changed" in said
    assert "return 2 + hour" in said
    assert "status {} -> nothing was found" in said


@pytest.mark.req("E19", "R143")
def test_a_push_that_fails_says_so_with_its_exit_code(project: Project) -> None:
    repository(project, TIDES | {"test_tides.py": ""})
    git(project, "remote", "add", "origin", "../nowhere.git")
    words = ["--validate", "true", "--push", "origin", "--yes"]
    played = script(project, [edit(MEAN), finish()])
    answer = work(project, ticket(project, WANTED), *words, "--script", played)
    assert answer.code == 1
    assert "failed (exit code 128)" in answer.out + answer.err
    assert "holdfast work mean --push origin --script FILE" in answer.out
    found = worked(project, "mean", "--script", played)
    assert found["exit"] == 0, "the work itself stands"
    logs = sorted(Path(found["log"]).parent.glob("*.json"))
    pushed = json.loads(logs[0].read_text())
    assert (pushed["status"], pushed["commands"][-1]["exit_code"]) == ("failed", 128)
    git(project, "init", "-q", "--bare", str(project.folder / "nowhere.git"))
    hook = project.folder / "nowhere.git/hooks/pre-receive"
    hook.write_text("#!/bin/sh\necho policy says no >&2\nexit 1\n")
    hook.chmod(0o755)
    answer = work(project, "mean", "--push", "origin", "--yes", "--script", played)
    assert 'a hook of the remote declined it: "policy says no"' in answer.out
    hook.unlink()
    assert work(project, "mean", "--push", "origin", "--yes", "--script", played).code == 0
    there = git(project, "rev-parse", "holdfast/mean", cwd=project.folder / "nowhere.git")
    assert there == git(project, "rev-parse", "holdfast/mean")


def test_a_push_needs_a_yes(project: Project) -> None:
    repository(project, TIDES)
    git(project, "init", "-q", "--bare", str(project.folder / "there.git"))
    git(project, "remote", "add", "origin", str(project.folder / "there.git"))
    played = script(project, [edit(MEAN), finish()])
    err = project.refused(
        2, "work", "The mean", "--validate", "true", "--push", "origin", "--script", played
    )
    assert "push to" in err
    assert "holdfast/" not in git(project, "branch", "-a")
    git(project, "remote", "add", "own", "./.git")
    words = ("work", "The mean", "--validate", "true", "--script", played, "--yes", "--push", "own")
    assert "inside of the repository itself" in project.refused(2, *words)


@pytest.mark.req("C27")
def test_tickets_are_worked_on_beside_each_other(project: Project) -> None:
    repository(project, TIDES | {"test_tides.py": ""})
    one = script(
        project, [("run", {"command": project.gate("open")}), edit(MEAN), finish()], name="one"
    )
    two = script(project, [edit(UNIT), finish()], name="two")
    first = project.start(
        "work", "Mean", "--id", "one", "--validate", "true", "--script", one, "--quiet"
    )
    second = worked(project, "Unit", "--id", "two", "--validate", "true", "--script", two)
    assert second["exit"] == 0, second["err"]
    project.open("open")
    assert first.wait(60) == 0, first.communicate()
    assert git(project, "diff", "--name-only", "main...holdfast/one").split() == [
        "tickets/one/task_tree.yaml", "tides.py",
    ]  # fmt: skip
    assert git(project, "diff", "--name-only", "main...holdfast/two").split() == [
        "report.py", "tickets/two/task_tree.yaml",
    ]  # fmt: skip


def test_in_place_follows_only_with_a_clean_tree(project: Project) -> None:
    repository(project, TIDES | {"test_tides.py": ""})
    played = script(project, [edit(MEAN), finish()])
    words = ["Mean", "--id", "m", "--validate", "true", "--in-place", "--script", played]
    project.write("tides.py", "dirty\n")
    assert "not clean" in project.refused(2, "work", *words)
    git(project, "checkout", "-q", "tides.py")
    assert work(project, *words).code == 0
    assert "def mean" in project.read("tides.py")
    assert git(project, "status", "--porcelain") == ""
    assert git(project, "rev-parse", "main") == git(project, "rev-parse", "holdfast/m")
    for again in (words, ["m", "--in-place", "--script", played, "--validate", "test -e tides.py"]):
        answer = work(project, *again)
        assert answer.code == 0, answer.err


@pytest.mark.req("R155")
def test_a_question_of_the_worker_waits_for_a_person(project: Project) -> None:
    repository(project, TIDES | {"test_tides.py": ""})
    played = script(project, [("ask", {"question": "metres or feet?"})], [edit(UNIT), finish()])
    words = ["Unit", "--id", "u", "--validate", "true", "--script", played]
    found = worked(project, *words)
    assert (found["exit"], found["status"]) == (3, "waiting")
    project.ok("answer", "question-1", "-", "--plan-id", "ticket-u", stdin=b"metres")
    found = worked(project, "u", "--script", played)
    assert found["exit"] == 0, found["err"]
    given = project.ok("show", "question-1", "--plan-id", "ticket-u").out
    assert "metres" in given


@pytest.mark.req("R131", "R132", "C29", "E19")
def test_what_people_write_into_the_task_tree_stays(project: Project) -> None:
    own = (
        "# our words\nid: mean\ntitle: ours\nnodes:\n  - id: n-1  # first\n    title: \"the 'whole'\"\n"
        "    owner: harbour\n    children:\n      - id: n-9\n        title: inner\n"
    )
    repository(project, TIDES | {"test_tides.py": "", "tickets/mean/task_tree.yaml": own})
    turns = [
        edit(MEAN),
        ("tree", {"nodes": [{"id": "n-8", "title": "more", "parent": "n-9"}]}),
        finish(nodes=["n-8"]),
    ]
    found = worked(
        project, ticket(project, WANTED), "--validate", "true", "--script", script(project, turns)
    )
    assert found["exit"] == 0, found["err"]
    tree = at(project, "holdfast/mean", "tickets/mean/task_tree.yaml")
    for words in ("# our words", "# first", "\"the 'whole'\"", "owner: harbour", "id: n-9"):
        assert words in tree
    assert tree.index("id: n-9") < tree.index("id: n-8")
    assert found["commits"][0]["oid"] in tree


def test_without_any_check_nothing_is_begun(project: Project) -> None:
    repository(project, {"a.txt": "a\n"})
    played = script(project, [edit(block("a.txt", "a\n", "b\n")), finish()])
    err = project.refused(2, "work", "Change it", "--script", played)
    assert "how the work is checked" in err
    found = worked(project, "Change it", "--id", "c", "--unverified", "--script", played)
    assert (found["exit"], found["verified"]) == (0, False)
    assert "unverified" in work(project, "c", "--script", played).out


def test_a_directory_is_no_ticket(project: Project) -> None:
    repository(project, {"d.md/x": "one\n"})
    assert "'d.md' is a directory, and a ticket is a file" in project.refused(2, "work", "d.md")
