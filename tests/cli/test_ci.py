"""A CI is told of a run: summary, annotations at their lines, JUnit, what changed in cost."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from markdown_it import MarkdownIt

from holdfast.cli.cipages import MOST_BYTES, fitting, text_of
from holdfast.testing.server import Say
from tests.cli.market import asking, market
from tests.cli.project import Answer, Project

EXAMPLES = Path(__file__).parents[2] / "examples" / "ci"
HOSTILE = (
    "::error::owned\n  ::add-mask::x\r\n##[add-path]/tmp\n\x1b[2J\x00\x08\u202e"
    "```\n</failure><script>alert(1)</script>\n| a | b |\n[x](http://evil.test) https://evil.test @me %0A::x"
)
PLAN = """\
name: notes
steps:
  read:
    shell: echo text
  write:
    needs: [read]
    shell: echo draft
    guards:
      - regex: {pattern: draft}
      - name: tidy
        command: ["sh", "check.sh"]
  publish:
    needs: [write]
    shell: echo done
"""


def on_github(project: Project) -> dict[str, str]:
    return {
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": str(project.folder / "summary.md"),
        "GITHUB_OUTPUT": str(project.folder / "output"),
        "GITHUB_WORKSPACE": str(project.root),
    }


def summary(project: Project) -> str:
    return (project.folder / "summary.md").read_text()


def reported(project: Project, *words: str) -> Answer:
    answer = project.call("ci", "report", *words, env=on_github(project))
    assert answer.code == 0, answer.err
    return answer


def junit(project: Project, path: str = ".holdfast/out/junit.xml") -> ET.Element:
    """The document, by a parser that forgives nothing."""
    return ET.fromstring((project.root / path).read_bytes())


def refused(project: Project, words: str) -> None:
    project.write("plan.yaml", PLAN)
    project.write("words.txt", words)
    project.write("check.sh", "cat words.txt; exit 1\n")
    assert project.run(env=on_github(project)).code == 1


@pytest.mark.req("R183")
def test_a_failed_run_is_told_with_reasons_at_the_line_of_the_guard(project: Project) -> None:
    refused(project, "the draft is not tidy: line 3")
    answer = reported(project)
    assert answer.out.splitlines() == [
        (
            "::error file=plan.yaml,line=10,title=write::guard 'tidy' rejected its only attempt%0A"
            "blocked: 1 step%0Athe draft is not tidy: line 3"
        ),
        (
            "::notice file=plan.yaml,line=1,title=holdfast%3A failed::"
            "2 of 3 steps ran, $0 (no earlier run)"
        ),
        "2 of 3 steps ran, $0 (no earlier run)",
    ]
    rows = [line for line in summary(project).splitlines() if line.startswith("| ")]
    said = "guard 'tidy' rejected its only attempt: the draft is not tidy: line 3"
    assert [re.sub(r"\d+\.\d s", "0 s", row) for row in rows[1:]] == [
        f"| ✗ | write | {said} |  | 0 s |",
        "| ✓ | read | first time |  | 0 s |",
        "| – | publish | Dependency 'write' failed |  |  |",
    ]
    found = junit(project)
    assert found.attrib | {"time": ""} == {
        "name": "holdfast",
        "tests": "3",
        "failures": "1",
        "errors": "0",
        "skipped": "1",
        "time": "",
    }
    cases = {case.get("name"): case for case in found.iter("testcase")}
    failure = cases["write"].find("failure")
    assert failure is not None
    assert failure.text == "the draft is not tidy: line 3"
    assert (cases["write"].get("file"), cases["write"].get("line")) == ("plan.yaml", "10")
    assert cases["publish"].find("skipped") is not None
    assert [child.tag for child in cases["read"]] == ["system-out"]
    assert project.read(".holdfast/out/change.txt") == "2 of 3 steps ran, $0 (no earlier run)\n"


@pytest.mark.req("R183")
def test_a_broken_prompt_or_command_is_told_at_its_own_line(project: Project) -> None:
    project.write("plan.yaml", "steps:\n  a:\n    # why\n    shell: exit 3\n")
    assert project.run().code == 1
    first = reported(project).out.splitlines()[0]
    assert first.startswith("::error file=plan.yaml,line=4,title=a::its command failed")
    project.write("ask.md", "Say it.\n")
    project.write(
        "plan.yaml", "steps:\n  a:\n    model: recorded:m\n    retries: 0\n    prompt: ask.md\n"
    )
    assert project.run().code == 1
    assert reported(project).out.startswith("::error file=ask.md,line=1,title=a::")


@pytest.mark.req("R183")
def test_nothing_from_outside_is_a_command_a_link_or_markup(project: Project) -> None:
    refused(project, HOSTILE)
    run = project.call("run", "--yes", env=on_github(project))
    shown = project.call("status", "-v", env=on_github(project))
    told = project.call("status", "--json", env=on_github(project))
    logs = project.call("logs", "write", env=on_github(project))
    report = reported(project)
    ours = {line for line in report.out.splitlines() if line.startswith("::")}
    assert len(ours) == 2
    assert all(re.match(r"::(error|notice) file=plan\.yaml,line=\d+,title=", line) for line in ours)
    for answer in (run, shown, told, logs, report):
        for line in (answer.out + answer.err).splitlines():
            assert line in ours or not line.strip().startswith("::"), line
            assert "##[" not in line
    assert "owned" in run.err
    text = junit(project).findtext(".//failure") or ""
    assert "::error::owned" in text, "a parser finds the words as they are"
    assert "\\u{1b}[2J\\u{0}" in text
    html = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(summary(project))
    assert "<script" not in html
    assert "<a " not in html
    assert html.count("<table>") == 1
    assert html.count("<td>✗</td>") == 1


def test_a_terminal_without_our_signs_is_told_too(project: Project) -> None:
    refused(project, "größer →")
    for name in ("ascii", "latin-1"):
        own = {**on_github(project), "PYTHONIOENCODING": name}
        told = project.ended("ci", "report", env=own)
        assert told.code == 0, told.err
        assert told.out.startswith(b"::error file=plan.yaml,line=10,title=write::")
        assert told.out.decode(name)
    assert "größer →" in summary(project)


def test_text_stays_text() -> None:
    html = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(f"x {text_of(HOSTILE)}")
    assert html.count("<") == 2, "a paragraph, and nothing in it"
    assert "http:" not in text_of("http://evil.test")
    assert text_of("www.evil.test") == "www&#46;evil.test"


@pytest.mark.req("R183")
def test_ten_of_each_kind_and_those_that_block_most_come_first(project: Project) -> None:
    steps: dict[str, Any] = {f"bad{n:02}": {"shell": "exit 1"} for n in range(12)}
    steps |= {f"below{n}": {"shell": "echo x", "needs": ["bad11"]} for n in range(3)}
    steps |= {f"asked{n:02}": {"shell": "echo x", "approve": "always"} for n in range(11)}
    project.plan(steps)
    assert project.run().code == 3, "it waits, and much of it failed"
    lines = reported(project).out.splitlines()
    errors = [line for line in lines if line.startswith("::error")]
    warnings = [line for line in lines if line.startswith("::warning")]
    assert (len(errors), len(warnings)) == (10, 10)
    assert "title=bad11::" in errors[0]
    assert "blocked: 3 steps" in errors[0]
    assert "title=bad00::" in errors[1]
    assert "3 more are in the summary" in lines


@pytest.mark.req("R183")
def test_what_it_costs_is_compared_with_the_last_run(project: Project) -> None:
    with market(project, lambda asked: Say("good", input=10, output=5 * asked.number)):
        project.plan({"one": asking("say one"), "two": asking("say two")})
        assert project.run("--yes").code == 0
        assert reported(project).out.endswith("2 of 2 steps ran, $0.0015 (no earlier run)\n")
        assert project.run("--yes", "--force").code == 0
        found = reported(project, "--json").json
        assert found["change"] == "2 of 2 steps ran, $0.0035 (+$0.0020 vs last)"
        assert (found["cost_usd"], found["more_usd"]) == (0.0035, 0.002)
        assert found["run"] == project.status().id
        project.run("--yes")
        assert "0 of 2 steps ran, $0 (−$0.0035 vs last)" in reported(project).out
        before = project.ok("ci", "report", "@-1", "--against", "@-1", "--json").json
        assert before["change"] == "2 of 2 steps ran, $0.0035 (as last)"
        project.plan({"one": asking("say one more"), "two": asking("say two")})
        ahead = project.ok("ci", "report", "--preview", "--json").json
        assert re.match(
            r"1 of 2 steps would run, \$0\.00\d+ \(\+\$0\.00\d+ vs last\)", ahead["change"]
        )
        assert ahead["status"] == "planned"
        assert ahead["run"] is None


def test_a_preview_is_told_where_nothing_ran_and_makes_no_store(project: Project) -> None:
    project.write("plan.yaml", PLAN)
    answer = reported(project)
    assert answer.out.splitlines()[-1] == "3 of 3 steps would run, $0 (no earlier run)"
    assert not (project.store / "state.db").exists()
    assert (project.store / ".gitignore").read_text() == "*\n"
    assert "| + | read | first time |" in summary(project)
    project.refused(2, "ci", "report", "@", "--preview")
    project.refused(2, "ci", "report", "r-none")


@pytest.mark.req("R183")
def test_a_large_plan_is_drawn_in_few_boxes_and_a_summary_is_cut(project: Project) -> None:
    chain = {f"s{n:03}": {"shell": "echo", "needs": [f"s{n - 1:03}"]} for n in range(1, 200)}
    beside = {f"s000.{n}": {"shell": "echo", "needs": ["s050"]} for n in range(100)}
    project.plan({"s000": {"shell": "echo"}, **chain, **beside})
    (project.folder / "summary.md").write_bytes(b"x" * (MOST_BYTES - 3000))
    reported(project)
    whole = project.read(".holdfast/out/summary.md")
    assert 20 < whole.count('["') <= 120
    assert "| 30 more" not in whole
    told = (project.folder / "summary.md").read_bytes()
    assert len(told) <= MOST_BYTES
    assert "This summary is cut here; the whole of it is in" in told.decode()


def test_a_cut_page_ends_its_fence() -> None:
    page = "a\n\n`````\n" + "word ``` word\n" * 500 + "`````\n"
    kept = fitting(page, 3000, "out/summary.md")
    assert len(kept.encode()) <= 3000
    assert kept.count("\n`````\n") == 2
    assert MarkdownIt().render(kept).count("<pre>") == 1
    assert fitting(page, 10**6, "") == page


def test_what_was_learned_since_the_last_run_is_told(project: Project) -> None:
    told = {
        "attempted": "count",
        "observed": [{"finding": "12 stations", "source": "a.csv", "confidence": 0.9}],
        "changed": [],
        "not_done": [{"item": "the map", "reason": "no data"}],
        "highest_impact_uncertainty": "Are all online?",
        "next_agent_should_first": "ping",
    }
    project.plan({"look": {"inputs": "h.json", "shell": "cp h.json $HOLDFAST_HANDOFF; echo"}})
    project.write("h.json", json.dumps(told))
    project.run()
    first = reported(project, "--json").json["ledger"]
    assert first == [
        "evidence: 12 stations (a.csv), from look",
        "open question: Are all online?",
        "gap: the map: no data",
    ]
    assert "- evidence: 12 stations (a.csv), from look" in summary(project)
    project.run()
    assert reported(project, "--json").json["ledger"] == []
    project.write("h.json", json.dumps({**told, "not_done": [], "resolves": "Are all online?"}))
    project.run()
    assert reported(project, "--json").json["ledger"] == [
        "question resolved: Are all online?",
        "gap closed: the map",
    ]


def test_gitlab_gets_a_report_of_quality(project: Project) -> None:
    refused(project, "not tidy\r\n\n\tat  line 3\n")
    where = {"CI": "true", "GITLAB_CI": "true", "CI_PROJECT_DIR": str(project.folder)}
    answer = project.call("ci", "report", "-o", "report", "--junit", "deep/j.xml", env=where)
    assert answer.out == "2 of 3 steps ran, $0 (no earlier run)\n"
    found = json.loads(project.read("report/codequality.json"))
    assert found[0]["location"] == {"path": "project/plan.yaml", "lines": {"begin": 10}}
    assert found[0]["severity"] == "major"
    assert found[0]["description"] == (
        "write: guard 'tidy' rejected its only attempt; blocked: 1 step; not tidy; at line 3"
    )
    assert junit(project, "deep/j.xml").get("failures") == "1"
    assert not project.has("report/junit.xml")


def test_the_key_of_the_cache_follows_the_plan(project: Project) -> None:
    project.write("plan.yaml", PLAN)
    first = project.ok("ci", "key").out
    assert re.fullmatch(r"holdfast-0-[0-9a-f]{64}\n", first)
    assert project.ok("ci", "key", "--json").json == {
        "schema": "holdfast.key/1",
        "key": first.strip(),
        "restore": [first.strip(), "holdfast-0-"],
    }
    project.write("plan.yaml", PLAN.replace("echo text", "echo words"))
    assert project.ok("ci", "key").out != first
    assert not project.store.exists()


# --- workflows ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "path"),
    [("github", ".github/workflows/holdfast.yml"), ("gitlab", ".gitlab-ci.yml")],
)
def test_init_writes_the_workflow_at_the_top_of_the_repository(
    project: Project, system: str, path: str
) -> None:
    example = (EXAMPLES / f"{system}.yml").read_text()
    subprocess.run(["git", "init", "-q", project.root], check=True)
    told = project.ok("init", "--ci", system, "--json").json
    assert path in told["files"]
    assert project.read(path) == example
    assert "nothing was written" in project.refused(2, "init", "--ci", system)
    (project.root / path).unlink()
    again = project.ok("init", "--ci", system)
    assert again.out == f"  {path}\nnext: git add {path}\n"
    assert project.read(path) == example
    (project.root / path).unlink()
    project.ok("init", "sub/notes", "--ci", system)
    text = project.read(path)
    assert not re.search("@[A-Z]+@", text)
    assert "sub/notes/report" in text
    assert yaml.safe_load(text)


def lines_of(system: str, event: str) -> Iterator[str]:
    """The commands of an example that run on an event, in their order."""
    told = yaml.safe_load((EXAMPLES / f"{system}.yml").read_text())
    if system == "github":
        for step in told["jobs"]["holdfast"]["steps"]:
            wanted = re.search(r"event_name == '(\w+)'", step.get("if", ""))
            if "run" in step and (wanted is None or wanted[1] == event):
                yield step["run"]
        return
    job = told["holdfast-run" if event == "push" else "holdfast-plan"]
    base = told[job["extends"]]
    # What is before it runs in the same shell, what is after it in another.
    yield "\n".join((*base["before_script"], *job["script"]))
    yield "\n".join(job.get("after_script", ()))


def in_ci(
    project: Project, system: str, line: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """What a runner does with commands of a workflow."""
    own = on_github(project) if system == "github" else {"CI": "true", "GITLAB_CI": "true"}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", line],
        cwd=project.root,
        env=project.environment(own) | {"PATH": path} | more,
        capture_output=True,
        text=True,
        check=False,
    )


def checked_out(project: Project) -> None:
    """The project as a CI has it: one commit of a pull request, with nothing known of other branches."""
    origin = project.folder / "origin"
    name = ["-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "init.defaultBranch=main"]
    for words in (
        ["init", "-q", "."],
        ["add", "-A"],
        ["commit", "-qm", "one"],
        ["clone", "-q", "--bare", ".", str(origin)],
        ["checkout", "-q", "--detach"],
        ["branch", "-qD", "main"],
        ["remote", "add", "origin", origin.as_uri()],
    ):
        subprocess.run(["git", *name, *words], cwd=project.root, check=True)


INSTALLED = {
    "HOLDFAST_PACKAGE": "holdfast[ui]",
    "PIP_NO_INDEX": "1",  # it is there already; nothing is asked of the network
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "GITHUB_BASE_REF": "main",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
}


@pytest.mark.req("R157", "R183")
@pytest.mark.parametrize("system", ["github", "gitlab"])
def test_the_commands_of_the_example_workflows_run(project: Project, system: str) -> None:
    project.ok("init")
    checked_out(project)
    project.write("plan.yaml", project.read("plan.yaml") + "  more:\n    shell: echo more\n")
    told = []
    for event in ("pull_request", "push"):
        for line in lines_of(system, event):
            done = in_ci(project, system, line, **INSTALLED)
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            told.append(done.stdout)
        found = junit(project, "report/junit.xml")
        assert found.get("tests") == "4"
        assert found.get("skipped") == ("0" if event == "push" else "4")
        if event == "push":
            assert "<html" in project.read("report/run.html")
        else:
            assert "The plan itself: added: more" in project.read("report/plan.txt")
        shutil.rmtree(project.root / "report")
    assert "4 of 4 steps would run" in "".join(told)
    assert "4 of 4 steps ran" in "".join(told)
    if system == "github":
        assert re.match(r"key=holdfast-0-[0-9a-f]{64}\n", (project.folder / "output").read_text())
        assert "### ✓" in summary(project)


@pytest.mark.parametrize("system", ["github", "gitlab"])
def test_a_workflow_that_is_not_told_what_to_install_says_so_and_takes_nothing(
    project: Project, system: str
) -> None:
    told = yaml.safe_load((EXAMPLES / f"{system}.yml").read_text())
    given = told["env"] if system == "github" else told[".holdfast"]["variables"]
    assert given == {"HOLDFAST_PACKAGE": ""}
    line = next(line for line in lines_of(system, "push") if "pip install" in line)
    done = in_ci(project, system, line, **{**INSTALLED, **given})
    assert done.returncode != 0
    assert done.stdout == ""
    assert "HOLDFAST_PACKAGE: is not set, see the top of" in done.stderr


def test_a_target_branch_without_a_plan_is_no_failure(project: Project) -> None:
    project.write("notes.txt", "")
    checked_out(project)
    project.write("plan.yaml", PLAN)
    for system in ("github", "gitlab"):
        lines = [line for line in lines_of(system, "pull_request") if "--against" in line]
        done = in_ci(project, system, lines[0], **INSTALLED)
        assert done.returncode == 0, (done.stdout, done.stderr)
        assert done.stdout.endswith("not compared\n")


@pytest.mark.parametrize(
    ("code", "plan"),
    [
        (1, "steps: {a: {shell: exit 1}}\n"),
        (3, "steps: {a: {shell: echo a, approve: always}}\n"),
        (5, "limits: {attempts: 1}\nsteps: {a: {shell: echo a}, b: {shell: echo b}}\n"),
    ],
)
def test_a_run_that_can_go_on_is_no_failure_of_its_job(
    project: Project, code: int, plan: str
) -> None:
    project.write("plan.yaml", plan)
    told = yaml.safe_load((EXAMPLES / "gitlab.yml").read_text())["holdfast-run"]
    done = in_ci(project, "gitlab", "\n".join(told["script"]))
    assert done.returncode == code, done.stderr
    assert (code in told["allow_failure"]["exit_codes"]) == (code != 1)
    shutil.rmtree(project.store)
    line = next(line for line in lines_of("github", "push") if "holdfast run" in line)
    done = in_ci(project, "github", line)
    assert done.returncode == (code if code == 1 else 0), done.stderr
    kind = "error" if code == 1 else "warning"
    assert f"::{kind} file=plan.yaml" in reported(project).out
