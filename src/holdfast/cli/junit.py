"""A run as JUnit XML, which every CI reads: a step is a test case."""

from __future__ import annotations

from xml.etree import ElementTree as ET  # only written, never read

from holdfast.cli.cireport import Case, Report
from holdfast.cli.drawings import of_xml
from holdfast.cli.measure import iso
from holdfast.model.text import one_line

LONGEST = 20_000  # characters of what a step was refused with
_COUNTED = {"failed": "failures", "broken": "errors", "skipped": "skipped"}


def junit(report: Report) -> bytes:
    """The document. Nothing in it is no letter of XML: what a terminal would obey is spelled out."""
    counts = dict.fromkeys(_COUNTED.values(), 0)
    for case in report.cases:
        if case.outcome in _COUNTED:
            counts[_COUNTED[case.outcome]] += 1
    numbers = {
        "tests": str(len(report.cases)),
        **{name: str(number) for name, number in counts.items()},
        "time": _time(report.took_ms),
    }
    top = ET.Element("testsuites", {"name": "holdfast", **numbers})
    name = _attribute(report.line)
    suite = ET.SubElement(top, "testsuite", {"name": name, **numbers})
    if report.began_ms:
        suite.set("timestamp", iso(report.began_ms).removesuffix("Z"))
    kept = ET.SubElement(suite, "properties")
    facts = {"run": report.run or "", "status": report.status, "change": report.change.words}
    for key, value in facts.items():
        ET.SubElement(kept, "property", {"name": key, "value": _attribute(value)})
    for case in report.cases:
        _add(suite, case, name)
    ET.indent(top)
    body = ET.tostring(top, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'.encode()


def _add(suite: ET.Element, case: Case, line: str) -> None:
    test = ET.SubElement(
        suite,
        "testcase",
        {"name": _attribute(case.step), "classname": line, "time": _time(case.took_ms)},
    )
    if case.spot.file:
        test.set("file", _attribute(case.spot.file))
        test.set("line", str(case.spot.line))
    message = _attribute(case.line)
    if case.outcome == "passed":
        ET.SubElement(test, "system-out").text = message
    elif case.outcome == "skipped":
        ET.SubElement(test, "skipped", {"message": message})
    else:
        kind = "error" if case.outcome == "broken" else "failure"
        found = ET.SubElement(test, kind, {"message": message, "type": case.outcome})
        found.text = of_xml(case.said[:LONGEST])


def _attribute(text: str) -> str:
    return of_xml(one_line(text))


def _time(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.3f}"
