"""What a person sees when a plan is wrong."""

from __future__ import annotations

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


def test_warnings_say_so_and_a_place_may_be_missing() -> None:
    assert render([Problem("odd", "p.yaml", 1, 1, "", "P901")], "a\n").startswith("warning[P901]")
    assert render([Problem("gone", "p.yaml", code="P010")], b"") == "error[P010]: gone\n  p.yaml\n"
    assert render([], b"") == ""
