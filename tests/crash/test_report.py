"""One table of all sweeps, whichever process ran them; a violation fails the run."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.crash.report import Report, Table, kind_of

ROOT = Path(__file__).parents[2]
CONFTEST = "from tests.conftest import *  # noqa: F403\n"
SWEEPS = """
import pytest

from tests.crash.report import Report


@pytest.mark.soak("kill")
@pytest.mark.parametrize("slice_", range(4))
def test_slices(slice_, sweep):
    report = Report("slices", tried=10, fired=9, kept=8, work=7)
    report.outcomes["killed"] = 9
    sweep(report)


@pytest.mark.soak("lock")
def test_without_a_report():
    assert {passes}


@pytest.mark.soak("power")
def test_with_its_own_kind(sweep):
    sweep(Report("own", "errno", tried=1, violations={violations}))


def test_that_is_no_soak():
    raise AssertionError
"""


def soak(folder: Path, *words: str, passes: bool = True, violations: tuple[str, ...] = ()) -> int:
    (folder / "conftest.py").write_text(CONFTEST)
    text = SWEEPS.format(passes=passes, violations=list(violations))
    (folder / "test_sweeps.py").write_text(text)
    (folder / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {ROOT}\naddopts = -m soak\nmarkers =\n    soak(kind)\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "xdist",
        "-p",
        "no:cacheprovider",
        *words,
    ]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    (folder / "out.txt").write_text(done.stdout + done.stderr)
    return done.returncode


def sweeps(folder: Path) -> dict[str, dict[str, object]]:
    found = json.loads((folder / ".soak" / "report.json").read_text())
    return {row["name"]: row for row in found["sweeps"]}


def test_slices_of_a_sweep_are_one_line_whichever_process_ran_them(tmp_path: Path) -> None:
    assert soak(tmp_path, "-n", "2") == 0
    rows = sweeps(tmp_path)
    assert {name: row["kind"] for name, row in rows.items()} == {
        "slices": "kill",
        "own": "errno",
        "test_without_a_report": "lock",
    }
    assert (rows["slices"]["tried"], rows["slices"]["work"]) == (40, 28)
    assert rows["slices"]["outcomes"] == {"killed": 36}
    shown = (tmp_path / "out.txt").read_text()
    assert (tmp_path / ".soak" / "report.md").read_text() in shown
    assert "| all   |    42 |" in shown


def test_a_violation_ends_it_with_an_error_and_is_named(tmp_path: Path) -> None:
    violations = ("own: one was lost",)
    assert soak(tmp_path, "-n", "0", "--only", "errno,kill,own_kind", violations=violations) == 1
    rows = sweeps(tmp_path)
    assert set(rows) == {"slices", "own"}, "chosen by kind, or by a part of a name"
    assert rows["own"]["violations"] == ["own: one was lost"]
    assert "own: one was lost" in (tmp_path / ".soak" / "report.md").read_text()


def test_a_sweep_that_fails_without_a_report_is_a_violation(tmp_path: Path) -> None:
    assert soak(tmp_path, "-n", "0", "--only", "lock", passes=False) == 1
    assert sweeps(tmp_path)["test_without_a_report"]["violations"]


def test_totals_add_up_by_kind() -> None:
    table = Table()
    for name in ("a", "b"):
        table.add(Report(name, "kill", tried=3, fired=2).row(), 1.5)
    table.add(Report("c", "law", tried=5).row(), 1.0)
    found = [(row.kind, row.tried, row.fired, row.seconds) for row in table.totals]
    assert found == [("kill", 6, 4, 3.0), ("law", 5, 0, 1.0), ("all", 11, 4, 4.0)]


def test_the_place_of_a_test_says_its_kind_if_nothing_else_does() -> None:
    assert kind_of("tests/laws/test_crash.py") == "law"
    assert kind_of("tests/laws/test_crash.py", "power") == "power"
    assert kind_of("tests/store/test_rows.py") == "other"
