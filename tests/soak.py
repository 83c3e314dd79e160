"""One report of all sweeps of a test run, however many processes ran them, and how far they are.

A test hands in what its sweep found through the fixture `sweep`; it travels with the test's result.
A soak test that hands in nothing has a line all the same: its result is its only outcome.
"""

import os
import re
import shutil
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.crash.report import Table, begin, kind_of, under_way

PLACE = Path(".soak")
_MOST_TOLD, _LONGEST = 5, 500  # violations told at once, characters of each
EVERY = 30.0  # seconds between two looks at what is under way
_PROPERTY = "sweep"
_EXAMPLES = re.compile(r"(\d+) passing, (\d+) failing")


def is_soak(config: pytest.Config) -> bool:
    expression = str(config.option.markexpr or "")
    return "soak" in expression and "not soak" not in expression


class Soak:
    """Collects, shows and writes; in a worker process it only notes how far its sweep is."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._worker: str | None = getattr(config, "workerinput", {}).get("workerid")
        self._soak = is_soak(config)
        self._place = config.rootpath / PLACE
        self._table = Table()
        self._quiet = threading.Event()
        self._doing: tuple[str, float] | None = None
        self._only = {word for word in config.getoption("--only").split(",") if word}

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        for item in items:
            if mark := item.get_closest_marker("soak"):
                word = str(mark.args[0]) if mark.args else ""
                item.user_properties.append(("soak", kind_of(item.nodeid, word)))
        if self._only:
            left = [item for item in items if not self._is_wanted(item)]
            config.hook.pytest_deselected(items=left)
            items[:] = [item for item in items if self._is_wanted(item)]

    def _is_wanted(self, item: pytest.Item) -> bool:
        kind = dict(item.user_properties).get("soak")
        return any(word == kind or word in item.nodeid for word in self._only)

    # How far: each process that runs tests writes it into a file, the one with the terminal reads.

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        if not self._soak:
            return
        if self._worker is None:
            shutil.rmtree(self._place / "progress", ignore_errors=True)
            (self._place / "progress").mkdir(parents=True)
        if self._worker is None and not self._config.getoption("numprocesses", None):
            return  # the tests run here, and what they print is caught
        work = self._tell if self._worker is None else self._note
        threading.Thread(target=work, daemon=True).start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        begin()
        self._doing = (nodeid, time.monotonic())

    def _note(self) -> None:
        place = self._place / "progress" / str(self._worker)
        while not self._quiet.wait(EVERY / 6):
            if self._doing is not None:
                name, since = self._doing
                found = "; ".join(report.progress() for report in under_way())
                text = f"{found or name} ({time.monotonic() - since:.0f} s)"
                with suppress(OSError):  # another run in this directory may have ended
                    place.with_suffix(".new").write_text(text)
                    os.replace(place.with_suffix(".new"), place)

    def _tell(self) -> None:
        terminal = self._terminal()
        while not self._quiet.wait(EVERY):
            for place in sorted((self._place / "progress").glob("gw*[0-9]")):
                with suppress(OSError):
                    terminal.write_line(f"… {place.read_text()}")

    # What was found.

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """A law has no report of its own, but Hypothesis counts its examples."""
        report = yield
        counts = _EXAMPLES.findall(getattr(item, "hypothesis_statistics", ""))
        if report.when == "call" and counts:
            tried = sum(int(passed) + int(failed) for passed, failed in counts)
            report.user_properties.append(("examples", tried))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties = dict(report.user_properties)
        is_last = report.when == "call" or report.outcome != "passed"
        if self._worker is not None or not is_last:
            return
        sweeps = _sweeps(report)
        kind = str(properties.get("soak", kind_of(report.nodeid)))
        for found in sweeps if report.when == "call" else []:
            self._table.add({**found, "kind": found["kind"] or kind}, report.duration)
        if not sweeps and "soak" in properties:
            self._table.add(_plain(report, kind), report.duration)
        if self._soak and sweeps and report.when == "call":
            lines = "; ".join(f"{found['name']}: {found['tried']} tried" for found in sweeps)
            self._terminal().write_line(f" {report.outcome} {lines} ({report.duration:.0f} s)")
            for found in sweeps:
                for violation in found["violations"][:_MOST_TOLD]:
                    self._terminal().write_line(f"   {violation[:_LONGEST]}")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._quiet.set()
        if (
            self._worker is None
            and self._soak
            and self._table.violations
            and not session.exitstatus
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._soak or not self._table.rows:
            return
        self._place.mkdir(parents=True, exist_ok=True)
        (self._place / "report.md").write_text(self._table.markdown())
        (self._place / "report.json").write_text(self._table.json())
        shutil.rmtree(self._place / "progress", ignore_errors=True)
        terminalreporter.section("sweeps")
        terminalreporter.write(self._table.markdown())
        terminalreporter.write_line(f"written to {PLACE}/report.md and {PLACE}/report.json")

    def _terminal(self) -> pytest.TerminalReporter:
        found = self._config.pluginmanager.get_plugin("terminalreporter")
        assert isinstance(found, pytest.TerminalReporter)
        return found


def _sweeps(report: pytest.TestReport) -> list[dict[str, Any]]:
    found = (value for name, value in report.user_properties if name == _PROPERTY)
    return [value for value in found if isinstance(value, dict)]


def _plain(report: pytest.TestReport, kind: str) -> dict[str, Any]:
    """The line of a soak test that handed in nothing."""
    failed = report.outcome == "failed"
    tried = dict(report.user_properties).get("examples", 1)
    return {
        "kind": kind,
        "name": report.nodeid.partition("::")[2].partition("[")[0],
        "tried": tried,
        "fired": 0,
        "kept": 0,
        "work": 0,
        "outcomes": {report.outcome: tried},
        "violations": [f"{report.nodeid} failed"] if failed else [],
    }
