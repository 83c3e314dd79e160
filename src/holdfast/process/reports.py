"""What a test program reported, as counts: pytest, unittest, cargo test, go test, node, and JUnit XML.

All of it is text that strangers wrote: each line is looked at once, lines and names are cut, XML may
declare nothing. A report says what a program claims; whether it ran at all is for the exit code to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from xml.parsers import expat

from holdfast.errors import ProcessError

MOST_BYTES = 64 * 2**20
_MOST_LINE = 4000
_MOST_NAMES = 1000
_MOST_DEPTH = 64
_FEW, _MOST_SHOWN = 10, 120  # names in a sentence, letters of each
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,16}[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Report:
    """Counts of tests, and the names of those that failed, as far as they were named."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    errors: int = 0
    duration: float | None = None
    names: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.skipped + self.errors


def read_report(output: bytes, kind: str = "") -> Report | None:
    """The report in an output; None if there is none. Without `kind` each is tried."""
    if kind and kind not in _READERS:
        raise ProcessError(f"nobody reads reports of '{kind}'", hint=", ".join(_READERS))
    if len(output) > MOST_BYTES:
        output = output[-MOST_BYTES:]
    for name, read in _READERS.items():
        if kind in {"", name} and (found := read(output)) is not None and found.total:
            return found
    return None


def failures(report: Report) -> str:
    """How many tests failed, of how many, and which; empty if none did."""
    counts = {"failed": report.failed, "broken": report.errors}
    told = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    if not told:
        return ""
    names = [f"{name[:_MOST_SHOWN]}…" if len(name) > _MOST_SHOWN else name for name in report.names]
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    which = f": {', '.join(names[:_FEW])}{more}" if names else ""
    return f"{told} of {report.total} tests{which}"


def _lines(output: bytes) -> Iterator[str]:
    for line in output.splitlines():
        yield _COLOUR.sub("", line[:_MOST_LINE].decode("utf-8", "replace")).rstrip()


class _Names:
    """Names of failed tests, each once, not more than anybody reads."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}

    def add(self, name: str) -> None:
        if name and len(self._found) < _MOST_NAMES:
            self._found.setdefault(name)

    def all(self) -> tuple[str, ...]:
        return tuple(self._found)


# --- pytest ---------------------------------------------------------------------------------------

_PYTEST_END = re.compile(r"=* ?((?:[0-9]+ [a-z]+(?:, )?)+) in ([0-9.]+)s(?: \([0-9:]+\))? ?=*\Z")
_PYTEST_PART = re.compile(r"([0-9]+) ([a-z]+)")
_PYTEST_WORDS = {
    "passed": "passed",
    "xpassed": "passed",
    "failed": "failed",
    "skipped": "skipped",
    "xfailed": "skipped",
    "error": "errors",
    "errors": "errors",
}


def _pytest(output: bytes) -> Report | None:
    names, found = _Names(), None
    for line in _lines(output):
        if line.startswith(("FAILED ", "ERROR ")):
            names.add(line.split(" ", 1)[1].partition(" - ")[0])
        elif " in " in line and (match := _PYTEST_END.match(line)):
            found = match
    if found is None:
        return None
    counts: dict[str, int] = {}
    for number, word in _PYTEST_PART.findall(found[1]):
        if word in _PYTEST_WORDS:
            key = _PYTEST_WORDS[word]
            counts[key] = counts.get(key, 0) + int(number)
    return Report(**counts, duration=_seconds(found[2]), names=names.all())


# --- unittest -------------------------------------------------------------------------------------

_UNITTEST_RAN = re.compile(r"Ran ([0-9]+) tests? in ([0-9.]+)s\Z")
_UNITTEST_END = re.compile(r"(?:OK|FAILED|NO TESTS RAN)(?: \(([a-z =0-9,]+)\))?\Z")
_UNITTEST_PART = re.compile(r"([a-z ]+)=([0-9]+)")


def _unittest(output: bytes) -> Report | None:
    """The test runner of Python itself: how many ran, and of those what went wrong."""
    ran, seconds, counts, names, ended = 0, None, dict[str, int](), _Names(), False
    for line in _lines(output):
        if line.startswith(("FAIL: ", "ERROR: ")):
            names.add(line.partition(": ")[2])
        elif match := _UNITTEST_RAN.match(line):
            ran, seconds = int(match[1]), _seconds(match[2])
        elif seconds is not None and (match := _UNITTEST_END.match(line)):
            ended = True
            found = _UNITTEST_PART.findall(match[1] or "")
            counts = {word.strip(): int(number) for word, number in found}
    if not ended:
        return None
    failed = counts.get("failures", 0) + counts.get("unexpected successes", 0)
    skipped = counts.get("skipped", 0) + counts.get("expected failures", 0)
    errors = counts.get("errors", 0)
    passed = max(0, ran - failed - skipped - errors)
    return Report(passed, failed, skipped, errors, seconds, names.all())


# --- cargo ----------------------------------------------------------------------------------------

_CARGO_END = re.compile(
    r"test result: (?:ok|FAILED)\. ([0-9]+) passed; ([0-9]+) failed; ([0-9]+) ignored; "
    r"[0-9]+ measured; [0-9]+ filtered out(?:; finished in ([0-9.]+)s)?"
)


def _cargo(output: bytes) -> Report | None:
    """A line for each binary with tests; they are added up."""
    report, seconds, seen, names = Report(), 0.0, False, _Names()
    for line in _lines(output):
        if match := _CARGO_END.match(line):
            seen = True
            passed, failed, ignored = (int(match[part]) for part in (1, 2, 3))
            report = replace(
                report,
                passed=report.passed + passed,
                failed=report.failed + failed,
                skipped=report.skipped + ignored,
            )
            seconds += _seconds(match[4] or "0") or 0.0
        elif line.startswith("test ") and line.endswith(" ... FAILED"):
            names.add(line[len("test ") : -len(" ... FAILED")])
        elif line.startswith("error: could not compile"):
            seen = True
            report = replace(report, errors=report.errors + 1)
    return replace(report, duration=seconds, names=names.all()) if seen else None


# --- go -------------------------------------------------------------------------------------------

_GO_LINE = re.compile(r"\s*--- (PASS|FAIL|SKIP): (\S+) \(([0-9.]+)s\)\Z")
_GO_PACKAGE = re.compile(r"(ok|FAIL)\s+(\S+)\s+(?:([0-9.]+)s|\[build failed\]|\(cached\))")


def _go(output: bytes) -> Report | None:
    """With `-v` or `-json` each test counts; without, each package does."""
    if output.lstrip()[:1] == b"{":
        return _go_json(output)
    tests: dict[str, int] = {}
    packages: dict[str, int] = {}
    seconds, names, broken = 0.0, _Names(), 0
    for line in _lines(output):
        if match := _GO_LINE.match(line):
            tests[match[1]] = tests.get(match[1], 0) + 1
            if match[1] == "FAIL":
                names.add(match[2])
        elif match := _GO_PACKAGE.match(line):
            seconds += _seconds(match[3] or "0") or 0.0
            packages[match[1]] = packages.get(match[1], 0) + 1
            if "[build failed]" in line:
                broken += 1
                names.add(match[2])
    if not tests and not packages:
        return None
    if tests.get("PASS") or tests.get("SKIP"):
        counts = (tests.get("PASS", 0), tests.get("FAIL", 0), tests.get("SKIP", 0))
    else:  # passed tests are told of with -v alone
        failed = max(tests.get("FAIL", 0), packages.get("FAIL", 0) - broken)
        counts = (packages.get("ok", 0), failed, 0)
    return Report(*counts, broken, seconds, names.all())


def _go_json(output: bytes) -> Report | None:
    counts = {"pass": 0, "fail": 0, "skip": 0}
    seconds, names, seen, broken = 0.0, _Names(), False, 0
    for line in output.splitlines():
        event = _object(line)
        if event is None or event.get("Action") not in counts:
            broken += event is not None and event.get("Action") == "build-fail"
            continue
        seen = True
        action, test = str(event["Action"]), event.get("Test")
        if isinstance(test, str):
            counts[action] += 1
            if action == "fail":
                names.add(test[:_MOST_LINE])
        elif isinstance(elapsed := event.get("Elapsed"), int | float):
            seconds += elapsed
    if not seen:
        return None
    return Report(counts["pass"], counts["fail"], counts["skip"], broken, seconds, names.all())


def _object(line: bytes) -> dict[str, object] | None:
    if not line.startswith(b"{") or len(line) > 2**20:
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


# --- node -----------------------------------------------------------------------------------------

_TAP_COUNT = re.compile(
    r"(?:#|\u2139) (tests|pass|fail|cancelled|skipped|todo|duration_ms) ([0-9.]+)\Z"
)
_TAP_FAILED = re.compile(r"\s*not ok [0-9]+ (?:- )?(.+)\Z")
_SPEC_FAILED = re.compile(r"\s*✖ (.+?)(?: \([0-9.]+ms\))?\Z")
_JEST_END = re.compile(r"\s*Tests:?\s+((?:[0-9]+ [a-z]+(?:, | \| )?)+)(?:[0-9]+ total|\([0-9]+\))?")
_JEST_PART = re.compile(r"([0-9]+) (passed|failed|skipped|todo|pending)")
_JEST_TIME = re.compile(r"\s*(?:Time:|Duration)\s+([0-9.]+) ?(m?s)")
_JEST_FAILED = re.compile(r"\s*(?:●|✕|×|FAIL)\s+(\S.*)\Z")
_MOCHA_PART = re.compile(r"\s*([0-9]+) (passing|failing|pending)(?: \(([0-9.]+)(ms|s|m)\))?\Z")
_MOCHA_FAILED = re.compile(r"\s*[0-9]+\) (.+)\Z")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}


def _node(output: bytes) -> Report | None:
    lines = list(_lines(output))
    for read in (_node_test, _jest, _mocha):
        if (found := read(lines)) is not None:
            return found
    return None


def _node_test(lines: list[str]) -> Report | None:
    """The test runner of node itself, as TAP or as it shows itself on a terminal."""
    counts: dict[str, float] = {}
    names = _Names()
    for line in lines:
        if match := _TAP_COUNT.match(line):
            counts[match[1]] = _seconds(match[2]) or 0.0
        elif match := _TAP_FAILED.match(line) or _SPEC_FAILED.match(line):
            names.add("" if match[1] == "failing tests:" else match[1])
    if "pass" not in counts or "fail" not in counts:
        return None
    return Report(
        int(counts["pass"]),
        int(counts["fail"]),
        int(counts.get("skipped", 0) + counts.get("todo", 0)),
        int(counts.get("cancelled", 0)),
        counts.get("duration_ms", 0.0) / 1000,
        names.all(),
    )


def _jest(lines: list[str]) -> Report | None:
    """The summaries of jest and vitest."""
    found, seconds, names = None, None, _Names()
    for line in lines:
        if match := _JEST_END.match(line):
            found = match
        elif match := _JEST_TIME.match(line):
            seconds = (_seconds(match[1]) or 0.0) * _UNITS[match[2]]
        elif match := _JEST_FAILED.match(line):
            names.add(match[1])
    if found is None:
        return None
    counts: dict[str, int] = {}
    for number, word in _JEST_PART.findall(found[1]):
        counts[word] = counts.get(word, 0) + int(number)
    skipped = sum(counts.get(word, 0) for word in ("skipped", "todo", "pending"))
    return Report(
        counts.get("passed", 0), counts.get("failed", 0), skipped, 0, seconds, names.all()
    )


def _mocha(lines: list[str]) -> Report | None:
    counts: dict[str, int] = {}
    seconds, names = None, _Names()
    for line in lines:
        if match := _MOCHA_PART.match(line):
            counts[match[2]] = int(match[1])
            if match[3]:
                seconds = (_seconds(match[3]) or 0.0) * _UNITS[match[4]]
        elif counts and (match := _MOCHA_FAILED.match(line)):
            names.add(match[1])
    if "passing" not in counts:
        return None
    return Report(
        counts["passing"],
        counts.get("failing", 0),
        counts.get("pending", 0),
        0,
        seconds,
        names.all(),
    )


# --- JUnit ----------------------------------------------------------------------------------------


class _Junit:
    """Counts test cases as they come; nothing of the document is kept."""

    def __init__(self) -> None:
        self.counts = {"passed": 0, "failure": 0, "skipped": 0, "error": 0}
        self.seconds = 0.0
        self.names = _Names()
        self.seen = False
        self._case = ""
        self._state = "passed"
        self._depth = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise ProcessError("a report nests too deep")
        match tag:
            case "testsuite" | "testsuites":
                self.seen = True
            case "testcase":
                place = attributes.get("classname", "")[:_MOST_LINE]
                name = attributes.get("name", "")[:_MOST_LINE]
                self._case, self._state = f"{place}::{name}" if place else name, "passed"
                self.seconds += _seconds(attributes.get("time", "0")) or 0.0
            case "failure" | "error" | "skipped" if self._state == "passed":
                self._state = tag

    def end(self, tag: str) -> None:
        self._depth -= 1
        if tag == "testcase":
            self.counts[self._state] += 1
            if self._state in {"failure", "error"}:
                self.names.add(self._case)


def _junit(output: bytes) -> Report | None:
    if not output.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return None
    parser, found = expat.ParserCreate(), _Junit()
    parser.StartElementHandler = found.start
    parser.EndElementHandler = found.end
    parser.StartDoctypeDeclHandler = _refuse_declarations
    parser.EntityDeclHandler = _refuse_declarations
    try:
        parser.Parse(output, True)
    except (expat.ExpatError, ProcessError, ValueError):
        return None  # half a report counts for none
    if not found.seen:
        return None
    counts = found.counts
    return Report(
        counts["passed"],
        counts["failure"],
        counts["skipped"],
        counts["error"],
        found.seconds,
        found.names.all(),
    )


def _refuse_declarations(*_: object) -> None:
    raise ProcessError("a report may declare nothing")


def _seconds(text: str) -> float | None:
    try:
        found = float(text.replace(",", ""))
    except ValueError:
        return None
    return found if 0 <= found < 10**9 else None


_READERS: dict[str, Callable[[bytes], Report | None]] = {
    "junit": _junit,
    "pytest": _pytest,
    "unittest": _unittest,
    "cargo": _cargo,
    "go": _go,
    "node": _node,
}
