"""One command, many readers: options anywhere, each way of showing things, signs that fit."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import main
from holdfast.cli.say import ASCII
from holdfast.cli.view import AGENTS, automatic, coloured
from holdfast.model.text import cells
from tests.cli.project import Project
from tests.cli.terminal import Terminal


def small(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": "echo a"},
            "b": {"shell": "echo b >&2; exit 3", "needs": ["a"]},
            "c": {"shell": "echo c", "needs": ["b"]},
        }
    )


def steady(text: str) -> str:
    return re.sub(r"(\d+\.\d s|\"duration_ms\": \d+|r-[0-9a-f-]{8,})", "_", text)


@pytest.mark.req("R110")
def test_output_json_is_json_before_and_after_the_command(project: Project) -> None:
    small(project)
    project.call("run")
    wanted = project.call("status", "--json")
    for given in (["--output", "json", "status"], ["status", "--output", "json"]):
        answer = project.call(*given)
        assert steady(answer.out) == steady(wanted.out)
        assert answer.code == wanted.code
        assert answer.json


def test_options_stand_where_people_write_them(project: Project) -> None:
    small(project)
    inner = project.root / "inner"
    inner.mkdir()
    for words in (["-C", "..", "run", "-q"], ["-q", "run", "-C", ".."]):
        answer = project.call(*words, cwd=inner)
        assert answer.code == 1
        assert "failed" in answer.out
        assert not answer.err
    lost = project.call("status", "-C", "no-such-place")
    assert (lost.code, lost.out) == (2, "")
    assert "cannot work in 'no-such-place'" in lost.err


def test_an_error_is_an_object_for_programs_wherever_they_ask(project: Project) -> None:
    for words in (["--output", "jsonl", "status"], ["status", "--output=json"]):
        answer = project.call(*words)
        assert answer.code == 2
        assert answer.json["error"]["code"] == "usage"


@pytest.mark.req("R110")
def test_lines_of_objects_as_they_are_stored_and_the_run_last(project: Project) -> None:
    small(project)
    answer = project.call("run", "--output", "jsonl")
    *events, run = [json.loads(line) for line in answer.out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["event"] == "run_started"
    assert events[-1]["event"] == "run_rested"
    assert (run["schema"], run["status"], answer.code) == ("holdfast.run/1", "failed", 1)
    assert not answer.err
    traced = project.ok("trace", "--output", "jsonl")
    assert [json.loads(line) for line in traced.out.splitlines()] == [*events, run]
    assert [json.loads(line) for line in project.ok("trace", "--json").out.splitlines()] == events
    again = project.call("resume", "--output", "jsonl").out.splitlines()
    assert json.loads(again[0])["event"] == "run_resumed"
    assert json.loads(again[-1])["run"] == run["run"]


def test_a_voice_hears_words_and_no_signs(project: Project) -> None:
    small(project)
    said = project.call("run", "--output", "a11y")
    lines = (said.out + said.err).splitlines()
    assert not any(sign in line for line in lines for sign in "·▸⏸✓✗–=…")
    assert "running: a: first time" in lines
    assert any(line.startswith("done: a: ") for line in lines)
    assert "failed: b: its command failed" in lines
    assert "skipped: c: skipped, Dependency 'b' failed" in lines
    on_terminal = Terminal(project, "status", env={"HOLDFAST_A11Y": "1"}).finish()
    assert not on_terminal.strange
    assert any(line.startswith("failed: b: ") for line in on_terminal.text)


def test_signs_that_the_stream_cannot_show_are_replaced(project: Project) -> None:
    small(project)
    said = project.call("run", env={"PYTHONIOENCODING": "ascii"})
    assert said.out.isascii()
    assert said.err.isascii()
    assert "> a: first time" in said.err.splitlines()
    assert "x b: its command failed" in said.out.splitlines()
    assert "- c: skipped, Dependency 'b' failed" in said.err.splitlines()


@pytest.mark.parametrize("encoding", ["ascii", "cp437"])
def test_an_old_terminal_reads_every_page(project: Project, encoding: str) -> None:
    small(project)
    project.call("run")
    for words in (["run", "--help"], ["status"], ["plan", "--waves"], ["plans", "show"]):
        ended = project.ended(*words, env={"PYTHONIOENCODING": encoding})
        assert ended.code == 0, ended.err
        said = ended.out.decode(encoding)
        assert said.isascii()
        assert "\\u" not in said, "a sign of ours has no plain form"


def test_every_sign_that_the_command_prints_has_a_plain_form() -> None:
    lost = {}
    for file in Path(main.__file__).parent.glob("*.py"):
        if file.stem == "drawings":  # files for other programs, always in UTF-8
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
        letters = {one for text in texts if isinstance(text, str) for one in text}
        strange = {one for one in letters if not one.translate(ASCII).isascii()}
        if strange:
            lost[file.stem] = strange
    assert not lost


@pytest.mark.parametrize(
    "env, wish, drawn, wanted",
    [
        ({}, "auto", True, True),
        ({}, "auto", False, False),
        ({"FORCE_COLOR": "1"}, "auto", False, True),
        ({"FORCE_COLOR": "0"}, "auto", False, False),
        ({"NO_COLOR": "1"}, "auto", True, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, "auto", True, False),
        ({"NO_COLOR": ""}, "auto", True, True),
        ({"NO_COLOR": "1"}, "always", False, True),
        ({"FORCE_COLOR": "1"}, "never", True, False),
    ],
)
def test_colour_only_where_a_person_wants_it(
    env: dict[str, str], wish: str, drawn: bool, wanted: bool
) -> None:
    assert coloured(env, wish, drawn=drawn) is wanted


def test_plain_where_a_program_looks_on() -> None:
    assert automatic({"TERM": "xterm", "CI": "false"}, terminal=True) == "rich"
    assert automatic({"TERM": "xterm"}, terminal=False) == "plain"
    assert automatic({"TERM": "dumb"}, terminal=True) == "plain"
    assert automatic({"HOLDFAST_A11Y": "1", "CI": "1"}, terminal=True) == "a11y"
    for name in ("CI", *AGENTS):
        assert automatic({name: "1"}, terminal=True) == "plain"


def test_on_a_terminal_under_an_agent_nothing_is_drawn(project: Project) -> None:
    small(project)
    shown = Terminal(project, "run", env={"CLAUDECODE": "1"})
    screen = shown.finish()
    assert b"\x1b" not in shown.bytes
    assert "▸ a: first time" in screen.text
    forced = Terminal(project, "status", "--color", "always", env={"CI": "1"})
    forced.finish()
    assert "\x1b[31m✗\x1b[0m b" in forced.bytes.decode()


SLOW = (
    "asyncio",
    "concurrent",
    "email",
    "http",
    "jinja2",
    "logging",
    "multiprocessing",
    "pydantic",
    "rich",
    "socket",
    "sqlite3",
    "ssl",
    "subprocess",
    "urllib.request",
)
NOT_FOR_THE_VERSION = (
    "apsw",
    "click",
    "dataclasses",
    "holdfast.cli.main",
    "inspect",
    "json",
    "typing",
    "yaml",
)


@pytest.mark.parametrize("words", [["--version"], ["plan"], ["status"]])
def test_what_is_quick_loads_nothing_slow(project: Project, words: list[str]) -> None:
    small(project)
    if words == ["status"]:
        project.call("run")
    unwanted = SLOW if words != ["--version"] else SLOW + NOT_FOR_THE_VERSION
    code = (
        "import sys\n"
        "from holdfast.cli.entry import main\n"
        "try: main()\n"
        f"finally: sys.stderr.write('LOADED ' + ' '.join(m for m in {unwanted} if m in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=project.root,
        env=project.environment(),
        capture_output=True,
        check=False,
    )
    assert done.stdout
    assert done.stderr.decode().endswith("LOADED ")


def test_the_version_is_said_as_the_command_would(project: Project) -> None:
    code = "import sys; sys.argv[0] = 'holdfast'; from holdfast.cli.{} import main; main()"
    said = [
        subprocess.run(
            [sys.executable, "-c", code.format(entry), "--version"],
            cwd=project.root,
            env=project.environment(),
            capture_output=True,
            check=True,
        ).stdout
        for entry in ("entry", "main")
    ]
    assert said[0] == said[1] != b""


@pytest.mark.req("R87")
def test_nothing_is_wider_than_a_narrow_terminal(project: Project) -> None:
    long, narrow = "fetch-the-sources-of-everything", {"COLUMNS": "40", "LINES": "24"}
    for word in ("a", "b"):
        steps: dict[str, dict[str, Any]] = {
            long: {"shell": f"echo {word}"},
            "report": {"shell": f"echo {word}; exit 3", "needs": [long]},
        }
        project.plan(steps, name="a-rather-long-name-of-a-plan")
        project.call("run")
    for words in (
        ["plan", "-vv"],
        ["plan", "--force", "--on-drift", "regenerate"],
        ["graph"],
        ["graph", "--no-state"],
        ["history"],
        ["status"],
        ["diff", "@-1", "@"],
    ):
        said = project.call("--output", "rich", "--color", "never", *words, env=narrow)
        assert said.code == 0, said
        wide = [line for line in said.out.splitlines() if cells(line) > 40]
        assert [line for line in wide if not line.startswith("  holdfast ")] == [], said.out
