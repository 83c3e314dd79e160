from pathlib import Path

import pytest

from tools.requirements import Due, main, problems, read_due, read_marks

TESTS = """
import pytest
from pytest import mark

@pytest.mark.req("R1", "R2")
def test_alone():
    pass

@mark.req("R3")
class TestTogether:
    pytestmark = pytest.mark.req("R4")

    def test_first(self):
        pass

    @pytest.mark.req("E1")
    async def test_second(self):
        pass

@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.req("D04"))])
def test_one_case(n):
    pass

@pytest.mark.req("R5")
class TestMachine(Machine.TestCase):
    pass
"""


def tree(root: Path, due: str, **files: str) -> Path:
    (root / "requirements.toml").write_text(due, encoding="utf-8")
    folder = root / "tests" / "core"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return root


def kept(root: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for mark in read_marks(root / "tests"):
        assert mark.test is not None, mark
        found.setdefault(mark.number, []).append(mark.test.removeprefix("tests/core/test_x.py::"))
    return found


def complaints(root: Path) -> list[str]:
    return problems(read_due(root / "requirements.toml"), read_marks(root / "tests"))


def test_markers_are_found_on_functions_classes_and_parameters(tmp_path: Path) -> None:
    both = ["TestTogether::test_first", "TestTogether::test_second"]
    assert kept(tree(tmp_path, "due = []", test_x=TESTS)) == {
        "R1": ["test_alone"],
        "R2": ["test_alone"],
        "R3": both,
        "R4": both,
        "E1": ["TestTogether::test_second"],
        "D04": ["test_one_case"],
        "R5": ["TestMachine"],
    }


@pytest.mark.parametrize(
    "line",
    [
        'pytestmark = pytest.mark.req("R7")',
        'pytestmark = [pytest.mark.slow, pytest.mark.req("R7")]',
        'pytestmark: list = [pytest.mark.req("R7")]',
    ],
)
def test_a_module_mark_counts_for_each_test(tmp_path: Path, line: str) -> None:
    text = f"{line}\ndef test_a(): pass\ndef test_b(): pass\ndef helper(): pass\n"
    assert kept(tree(tmp_path, "due = []", test_x=text)) == {"R7": ["test_a", "test_b"]}


def test_the_map_names_each_due_number_with_its_tests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tree(
        tmp_path,
        'due = ["R10", "R9"]\n[removed]\nR11 = "no such file any more"',
        test_x='@mark.req("R9", "R10", "E2")\ndef test_a(): pass\n',
    )
    assert main(["--root", str(root)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "R9",
        "    tests/core/test_x.py::test_a",
        "R10",
        "    tests/core/test_x.py::test_a",
        "E2 (not due)",
        "    tests/core/test_x.py::test_a",
        "R11 removed: no such file any more",
        "requirements: 2 due, 2 with tests",
    ]


def test_a_due_number_without_a_test_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tree(tmp_path, 'due = ["R9"]', test_x="def test_a(): pass\n")
    assert main(["--root", str(root), "--quiet"]) == 1
    said = capsys.readouterr()
    assert said.out == "requirements: 1 due, 0 with tests\n"
    assert said.err == 'error: "R9" is due and has no test\n'


@pytest.mark.parametrize("number", ["R0", "R188", "E20", "D4", "D41", "I18", "r1", "R01", "X1"])
def test_a_marker_with_an_unknown_number_fails(tmp_path: Path, number: str) -> None:
    text = f'@mark.req("{number}")\ndef test_a(): pass\n'
    assert complaints(tree(tmp_path, "due = []", test_x=text)) == [
        f'tests/core/test_x.py:1: "{number}" is no known number'
    ]


@pytest.mark.parametrize("number", ["R1", "R187", "E19", "D01", "D40", "I1", "I17"])
def test_the_ends_of_each_range_are_known(tmp_path: Path, number: str) -> None:
    text = f'@mark.req("{number}")\ndef test_a(): pass\n'
    assert complaints(tree(tmp_path, f'due = ["{number}"]', test_x=text)) == []


@pytest.mark.parametrize(
    "text",
    [
        '@mark.req("R9")\ndef helper(): pass\n',
        '@mark.req("R9")\n@mark.skip\ndef test_a(): pass\n',
        '@mark.req("R9")\n@mark.xfail(reason="later")\ndef test_a(): pass\n',
        '@mark.req("R9")\nclass TestEmpty: pass\n',
        'pytestmark = mark.req("R9")\n',
    ],
)
def test_a_marker_that_holds_no_running_test_fails(tmp_path: Path, text: str) -> None:
    said = complaints(tree(tmp_path, 'due = ["R9"]', test_x=text))
    assert said == [
        'tests/core/test_x.py:1: "R9" marks no running test',
        '"R9" is due and has no test',
    ]


def test_a_marker_must_be_written_out(tmp_path: Path) -> None:
    root = tree(tmp_path, "due = []", test_x="@mark.req(NUMBER)\ndef test_a(): pass\n")
    assert complaints(root) == ['tests/core/test_x.py:1: "NUMBER" is no known number']


@pytest.mark.parametrize(
    ("due", "said"),
    [
        (Due(("R1", "R1"), {}), 'requirements.toml: "R1" stands twice'),
        (Due(("R1",), {"R1": "gone"}), 'requirements.toml: "R1" stands twice'),
        (Due((), {"R1": " "}), 'requirements.toml: "R1" was removed without a reason'),
        (Due(("Z9",), {}), 'requirements.toml: "Z9" is no known number'),
    ],
)
def test_the_list_itself_is_checked(due: Due, said: str) -> None:
    assert said in problems(due, [])
