"""Reports of test programs become counts, whoever wrote them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ProcessError
from holdfast.process.reports import Report, failures, read_report

CASES = {
    "pytest": (
        (
            "FAILED tests/test_a.py::test_b - assert 1 == 2\nERROR tests/test_c.py\n"
            "= 1 failed, 3 passed, 2 skipped, 1 xfailed, 1 error, 4 warnings in 75.30s (0:01:15) =\n"
        ),
        Report(3, 1, 3, 1, 75.3, ("tests/test_a.py::test_b", "tests/test_c.py")),
    ),
    "unittest": (
        (
            "FAIL: test_b (test_a.Case.test_b)\nTraceback …\nRan 6 tests in 0.250s\n\n"
            "FAILED (failures=1, errors=1, skipped=1, expected failures=1)\n"
        ),
        Report(2, 1, 2, 1, 0.25, ("test_b (test_a.Case.test_b)",)),
    ),
    "cargo": (
        (
            "running 2 tests\ntest tests::a ... ok\ntest tests::b ... FAILED\n"
            "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; "
            "finished in 0.50s\n"
            "test result: ok. 4 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.25s\n"
        ),
        Report(5, 1, 2, 0, 0.75, ("tests::b",)),
    ),
    "go": (
        (
            "=== RUN   TestA\n--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.10s)\n    b_test.go:3: no\n"
            "--- SKIP: TestC (0.00s)\nFAIL\nFAIL\texample.com/m\t0.012s\n"
        ),
        Report(1, 1, 1, 0, 0.012, ("TestB",)),
    ),
    "go -json": (
        (
            '{"Action":"run","Package":"m","Test":"TestA"}\n'
            '{"Action":"output","Package":"m","Output":"--- FAIL: TestX (0.0s)\\n"}\n'
            '{"Action":"pass","Package":"m","Test":"TestA","Elapsed":0}\n'
            '{"Action":"fail","Package":"m","Test":"TestB","Elapsed":0.1}\n'
            '{"Action":"skip","Package":"m","Test":"TestC"}\n{"Action":"fail","Package":"m","Elapsed":0.5}\n'
        ),
        Report(1, 1, 1, 0, 0.5, ("TestB",)),
    ),
    "node --test": (
        (
            "TAP version 13\nok 1 - adds\nnot ok 2 - divides\n1..2\n# tests 3\n# suites 0\n# pass 1\n"
            "# fail 1\n# cancelled 0\n# skipped 1\n# todo 0\n# duration_ms 50.5\n"
        ),
        Report(1, 1, 1, 0, 0.0505, ("divides",)),
    ),
    "jest": (
        (
            "  ● sum > adds\n\nTests:       1 failed, 2 skipped, 5 passed, 8 total\nSnapshots:   0 total\n"
            "Time:        1.5 s\n"
        ),
        Report(5, 1, 2, 0, 1.5, ("sum > adds",)),
    ),
    "vitest": (
        " FAIL  src/a.test.ts > adds\n      Tests  1 failed | 5 passed (6)\n   Duration  800ms\n",
        Report(5, 1, 0, 0, 0.8, (" src/a.test.ts > adds".strip(),)),
    ),
    "mocha": (
        "  5 passing (20ms)\n  1 pending\n  1 failing\n\n  1) sum adds:\n     AssertionError\n",
        Report(5, 1, 1, 0, 0.02, ("sum adds:",)),
    ),
    "junit": (
        (
            '<testsuites><testsuite name="s"><testcase classname="m" name="a" time="0.5"/>'
            '<testcase classname="m" name="b" time="0.25"><failure message="no">trace</failure></testcase>'
            '<testcase name="c"><skipped/></testcase><testcase name="d"><error/></testcase>'
            "</testsuite></testsuites>"
        ),
        Report(1, 1, 1, 1, 0.75, ("m::b", "d")),
    ),
}


@pytest.mark.req("R142")
@pytest.mark.parametrize("kind", CASES)
def test_a_report_is_counted(kind: str) -> None:
    text, wanted = CASES[kind]
    assert read_report(text.encode()) == wanted
    assert read_report(f"before\n\x1b[31m{text}".encode()) == wanted or kind in {
        "junit",
        "go -json",
    }


def test_what_pytest_really_says(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\ndef test_a(): pass\ndef test_b(): assert False\n"
        "@pytest.mark.skip\ndef test_c(): pass\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml=out.xml"]
    env = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False, env=env)
    for output in (done.stdout, (tmp_path / "out.xml").read_bytes()):
        found = read_report(output)
        assert found is not None
        assert (found.passed, found.failed, found.skipped, found.errors) == (1, 1, 1, 0)
        assert "test_b" in found.names[0]


def test_what_declares_entities_is_no_report() -> None:
    bomb = (
        '<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>'
        '<testsuite><testcase name="&b;"/></testsuite>'
    )
    outside = bomb.replace('ENTITY a "aa"', 'ENTITY a SYSTEM "file:///etc/passwd"')
    deep = "<testsuite>" + "<a>" * 10**5
    cut = "<testsuite><testcase name='a'/>"
    for text in (bomb, outside, deep, cut):
        assert read_report(text.encode(), "junit") is None


def test_no_report_is_none_and_an_unknown_kind_is_said() -> None:
    assert read_report(b"") is None
    assert read_report(b"all 5 tests passed!") is None
    with pytest.raises(ProcessError, match="nobody reads"):
        read_report(b"", "tap14")


@given(st.binary(max_size=300))
def test_anything_is_read_without_an_error(output: bytes) -> None:
    found = read_report(output)
    assert found is None or found.total > 0


def test_a_long_hostile_line_is_read_in_passing() -> None:
    for piece in (b"1 a", b"1 passed, ", b"= ", b"({", b"(1", b"--- FAIL: ", b"\x1b["):
        read_report(piece * 2_000_000)


def test_failures_are_a_sentence_with_some_of_their_names() -> None:
    assert failures(Report(passed=3, skipped=2)) == ""
    assert failures(Report(failed=2, passed=3)) == "2 failed of 5 tests"
    names = ("x" * 200, *(f"n{number}" for number in range(11)))
    told = failures(Report(failed=12, names=names))
    assert told.startswith(f"12 failed of 12 tests: {'x' * 120}…, n0, ")
    assert told.endswith(", n8 and 2 more")
