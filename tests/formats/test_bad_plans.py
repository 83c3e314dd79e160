"""Every file in `bad` is refused, with the codes and lines it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import wire
from holdfast.errors import PlanError
from holdfast.formats.planfile import load_plan
from holdfast.formats.problems import CODES
from holdfast.formats.render import render

pytestmark = pytest.mark.req("R16", "R180", "D32", "D33")

FILES = sorted((Path(__file__).parent / "bad").iterdir())


def expected(file: Path) -> list[str]:
    """A YAML file says it in its first line, a JSON file in its name: what.CODE.LINE.json."""
    if file.suffix == ".json":
        _, code, line, _ = file.name.split(".")
        return [f"{code}:{line}"]
    return file.read_text().splitlines()[0].removeprefix("# expect: ").split()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_bad_plan_is_refused_with_its_code_and_line(file: Path) -> None:
    with pytest.raises(PlanError) as caught:
        load_plan(str(file), check=wire.guard_flaw)
    found = [f"{item.code}:{item.line}" for item in caught.value.problems]
    assert sorted(found) == sorted(expected(file))
    for item in caught.value.problems:
        assert item.code in CODES
        assert item.file == str(file)
        assert item.column > 0
        assert item.message[0] in "'." or item.message[0].islower()
        assert not item.message.endswith(".")
        assert "\n" not in item.message


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_bad_plan_is_shown_with_every_problem(file: Path) -> None:
    with pytest.raises(PlanError) as caught:
        load_plan(str(file), check=wire.guard_flaw)
    screen = render(caught.value.problems, file.read_bytes())
    assert screen.count("error[P") == len(caught.value.problems)
    assert all(char.isprintable() or char == "\n" for char in screen)


HELPED = {"P013", "P014", "P018", "P019", "P020", "P037"}


def test_what_to_do_about_bytes_and_numbers_is_said() -> None:
    seen = set()
    for file in FILES:
        with pytest.raises(PlanError) as caught:
            load_plan(str(file), check=wire.guard_flaw)
        for item in caught.value.problems:
            if item.code in HELPED:
                assert item.hint, (file.name, item)
                seen.add(item.code)
    assert seen == HELPED - {"P013", "P019"}


@pytest.mark.parametrize(
    "content, hint",
    [
        (b"\x7fELF\x02\x01\xff\xfe", "save it as UTF-8"),
        (b"- a\n- b\n", "begin with 'steps:' and one entry for each step"),
        (b"steps:\n  a: [make]\n", "write its keys below its id, as 'run: make'"),
        (b"name: [a]\nsteps:\n  a: {run: x}\n", "write one value, without '-' or brackets"),
        (b"params: [a]\nsteps:\n  a: {run: x}\n", "write lines of 'key: value', without '-'"),
        (b"limits: {parallel: 0}\nsteps:\n  a: {run: x}\n", "the nearest is 1"),
        (b"name: &word a\ngoal: *wurd\nsteps:\n  a: {run: x}\n", "did you mean 'word'?"),
    ],
)
def test_what_helps_is_said(tmp_path: Path, content: bytes, hint: str) -> None:
    file = tmp_path / "plan.yaml"
    file.write_bytes(content)
    with pytest.raises(PlanError) as caught:
        load_plan(str(file))
    assert [item.hint for item in caught.value.problems] == [hint]


def test_the_corpus_is_large_and_covers_the_catalogue() -> None:
    seen = {item.split(":")[0] for file in FILES for item in expected(file)}
    # Of bytes, sizes, missing and Python files there are no files here: the other tests make them.
    others = {"P011", "P013", "P019", "P055", "P058", "P059", "P092", "P096", "P099"}
    made = others | {c for c in CODES if c > "P9"}
    assert len(FILES) >= 60
    assert CODES.keys() - seen == made


@pytest.mark.req("R39")
def test_two_needs_that_disagree_are_shown_with_both_places(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(
        "steps:\n  a: {run: x}\n  b:\n    run: x\n    needs:\n      - a\n"
        "      - {step: a, type: approval, from: lead}\n"
    )
    with pytest.raises(PlanError) as caught:
        load_plan(str(file))
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == ("P004", 7)
    assert problem.message == "'b' needs 'a' as 'data' in line 6 and as 'approval' here"
