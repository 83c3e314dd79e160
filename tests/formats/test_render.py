"""What a person sees when a plan is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import PlanError, Problem
from holdfast.formats.planfile import load_text
from holdfast.formats.render import render

pytestmark = pytest.mark.req("R180")


def screen(text: str) -> str:
    with pytest.raises(PlanError) as caught:
        load_text(text.encode(), "plan.yaml", "/nowhere")
    return render(caught.value.problems, text.encode())


def test_a_problem_shows_what_where_and_what_to_do() -> None:
    text = "steps:\n  build:\n    run: make\n  test:\n    needs: [biuld]\n    rnu: make test\n"
    assert (
        screen(text)
        == """\
error[P042]: step 'test' has nothing to run
  plan.yaml:5:5
  4 │   test:
  5 │     needs: [biuld]
    │     ^^^^^
  help: give it 'run' or 'shell'

error[P003]: 'test' needs 'biuld', which is no step
  plan.yaml:5:13
  4 │   test:
  5 │     needs: [biuld]
    │             ^^^^^
  help: did you mean 'build'?

error[P030]: 'rnu' is not a key of step 'test'
  plan.yaml:6:5
  5 │     needs: [biuld]
  6 │     rnu: make test
    │     ^^^
  help: did you mean 'run'?
"""
    )


def test_control_characters_are_shown_escaped() -> None:
    shown = screen("steps:\n  a: {run: x\x1b[31m}\n")
    assert "\x1b" not in shown
    assert "  2 │   a: {run: x\\u{1b}[31m}" in shown


def test_a_direction_override_is_shown_escaped() -> None:
    shown = screen("steps:\n  a: {rnu\u202e: x}\n")
    assert "\u202e" not in shown
    assert "'rnu\\u{202e}' is not a key" in shown


def test_a_long_line_is_cut_around_the_place() -> None:
    shown = screen("steps: {" + ", ".join(f"a{i}: {{run: x}}" for i in range(900)) + ", b: 1}\n")
    rows = shown.splitlines()
    assert max(len(row) for row in rows) < 120
    line, mark = rows[2], rows[3]
    assert line[mark.index("^")] == "1"


def test_wide_characters_keep_the_mark_under_the_value() -> None:
    shown = screen('steps: {a: {run: "日本", retries: x}}\n')
    line, mark = shown.splitlines()[2:4]
    assert mark.index("^") == line.index("x}}") + 2


def test_at_most_fifty_are_shown() -> None:
    problems = [Problem(f"number {i}", "p.yaml", 1, 1, "", "P030") for i in range(120)]
    shown = render(problems, b"x: y")
    assert shown.count("error[P030]") == 50
    assert shown.endswith("\nand 70 more\n")


def test_a_count_that_was_stopped_is_not_stated_as_exact() -> None:
    shown = screen("steps:\n" + "".join(f"  s{i}: {{rnu: x}}\n" for i in range(2000)))
    assert shown.endswith("\nand at least 950 more\n")


def test_a_key_that_is_not_given_is_marked_itself() -> None:
    text = "steps:\n  a: {run: x, outputs: [facts]}\n  b: {run: x, needs: [{step: a, key: fact}]}\n"
    line, mark, hint = screen(text).splitlines()[3:]
    assert line[mark.index("^") :].startswith("fact}")
    assert (mark.count("^"), hint) == (4, "  help: did you mean 'facts'?")


@pytest.mark.parametrize(
    "there, suggested",
    [
        ("12nul.json", ""),
        ("notes.json", ""),
        ("nosuhc.json", "did you mean 'nosuhc.json'?"),
        ("nosuch.yaml", "did you mean 'nosuch.yaml'?"),
    ],
)
def test_a_file_is_suggested_only_if_its_name_is_near(
    tmp_path: Path, there: str, suggested: str
) -> None:
    (tmp_path / there).write_text("{}")
    with pytest.raises(PlanError) as caught:
        load_text(b"steps: {a: {run: x, schema: nosuch.json}}", "plan.yaml", str(tmp_path))
    assert [item.hint for item in caught.value.problems] == [suggested]


def test_a_param_without_a_usable_name_is_not_asked_for() -> None:
    shown = screen("params: {bad name: {type: string}, ok: {type: string}}\nsteps: {a: {run: x}}\n")
    assert (shown.count("error["), shown.count("[P046]"), shown.count("[P062]")) == (2, 1, 1)
    assert "--param bad" not in shown
    assert "help: --param ok=…" in shown


def test_warnings_say_so_and_a_place_may_be_missing() -> None:
    assert render([Problem("odd", "p.yaml", 1, 1, "", "P901")], "a\n").startswith("warning[P901]")
    assert render([Problem("gone", "p.yaml", code="P010")], b"") == "error[P010]: gone\n  p.yaml\n"
    assert render([], b"") == ""
