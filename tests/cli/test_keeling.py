"""The example of research: a hypothesis is refuted, another plan takes over, the report cites the ledger."""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project

EXAMPLE = Path(__file__).parents[2] / "examples" / "keeling"
MADE = ("report.md", "report.html", "plots")
PLOTS = {"means", "fits", "left", "decades", "forecast"}
PARTS = (
    "Question",
    "Answer",
    "Data",
    "Hypotheses",
    "What was measured",
    "How the plan changed",
    "What is open",
    "How it was made",
    "Evidence",
)


@pytest.fixture
def keeling(project: Project) -> Project:
    """The example as it ships, in a place of its own."""
    left = shutil.ignore_patterns(".holdfast", "__pycache__", *MADE)
    shutil.copytree(EXAMPLE, project.root, ignore=left, dirs_exist_ok=True)
    return project


class Page(HTMLParser):
    """What a page holds: its tags, its ids, where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.ids += [value for value in [given.get("id")] if value]
        self.links += [value for key in ("href", "src") if (value := given.get(key))]


def ledger(project: Project) -> Any:
    return project.ok("ledger", "--json").json


@pytest.mark.req("R118", "R121", "R123", "E18")
def test_one_command_refutes_plans_again_and_reports(keeling: Project) -> None:
    run = keeling.run()
    assert (run.code, run.data["status"], len(run.states)) == (0, "completed", 7)
    reused = {step for step, state in run.states.items() if state == "reused"}
    assert reused == {"look", "straight", "decades"}  # finished steps keep their results
    assert run.data["replaces"]["how"] == "prepared"
    assert "'linear' was refuted, and the plan stands on it" in run.err
    known = ledger(keeling)["hypotheses"]
    assert {name: one["status"] for name, one in known.items()} == {
        "linear": "refuted",
        "faster": "inconclusive",
        "curved": "supported",
    }
    first, second = keeling.ok("plans", "show", "--json").json["versions"]
    assert (second["parent"], second["reason"]) == (first["plan"], "prepared")
    assert keeling.ok("verify").code == 0


@pytest.mark.req("R112", "R114", "R129")
def test_every_citation_of_the_report_is_an_entry_of_the_ledger(keeling: Project) -> None:
    assert keeling.run().code == 0
    entries = {one["id"]: one for one in ledger(keeling)["evidence"]}
    text = keeling.read("report.md")
    cited = set(re.findall(r"\]\(#(e-[0-9a-f]+)\)", text))
    assert len(cited) == 5
    assert cited <= entries.keys()
    assert cited == set(re.findall(r'<a id="(e-[0-9a-f]+)">', text))
    page = Page(keeling.read("report.html"))
    assert set(page.links) == {f"#{name}" for name in cited}
    assert cited <= set(page.ids)
    assert {entries[name]["from_step"] for name in cited} == {
        "look",
        "straight",
        "decades",
        "curve",
        "forecast",
    }
    concluded = [one for one in entries.values() if one["from_step"] == "conclude"]
    assert {one["source"] for one in concluded} <= cited  # what follows stands on them


@pytest.mark.req("R118")
def test_the_report_is_whole_and_needs_nothing_else(keeling: Project) -> None:
    assert keeling.run().code == 0
    text, page = keeling.read("report.md"), keeling.read("report.html")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [*PARTS]
    assert re.findall(r"<h2>(.*)</h2>", page) == [*PARTS]
    assert "**refuted**" in text
    assert "3.47 ppm" in text  # what a straight line leaves
    assert "0.70 ppm" in text  # and a parabola
    seen = Page(page)
    assert len(seen.ids) == len(set(seen.ids))
    assert {"script", "img", "link", "iframe"}.isdisjoint(seen.tags)
    assert "http" not in page
    assert "prefers-color-scheme:dark" in page
    assert seen.tags.count("svg") == len(PLOTS)
    assert set(re.findall(r"\(plots/(\w+)\.svg\)", text)) == PLOTS
    for name in PLOTS:
        drawing = ET.fromstring((keeling.root / "plots" / f"{name}.svg").read_bytes())
        words = {child.tag.rpartition("}")[2]: child.text or "" for child in drawing}
        assert words["title"]
        assert words["desc"]
        assert "nan" not in "".join(drawing.itertext())


@pytest.mark.req("R115")
def test_a_question_that_an_experiment_raised_is_answered_by_the_next(keeling: Project) -> None:
    assert keeling.run().code == 0
    stand = {one["from_step"]: one["status"] for one in ledger(keeling)["uncertainties"]}
    assert stand == {"look": "open", "curve": "resolved", "forecast": "open"}


@pytest.mark.req("R118")
def test_run_again_reuses_everything_and_leaves_the_report_as_it_is(keeling: Project) -> None:
    first = keeling.run()
    before = {name: (keeling.root / name).read_bytes() for name in ("report.md", "report.html")}
    again = keeling.run()
    assert (again.code, set(again.states.values())) == (0, {"reused"})
    assert again.digests == first.digests
    for name, content in before.items():
        assert (keeling.root / name).read_bytes() == content


@pytest.mark.req("R118")
def test_data_that_lie_on_a_line_are_reported_by_the_first_plan(keeling: Project) -> None:
    def bumpy(year: int) -> float:
        return 300 + 1.5 * (year - 1960) + (0.3 if year % 3 else -0.6)

    lines = "\n".join(f"{year},{bumpy(year):.2f}" for year in range(1960, 2020))
    keeling.write("co2.csv", f"year,ppm\n{lines}\n")
    run = keeling.run()
    assert (run.code, run.data["replaces"], len(run.states)) == (0, None, 5)
    assert ledger(keeling)["hypotheses"]["linear"]["status"] == "supported"
    text = keeling.read("report.md")
    assert "in a straight line" in text
    assert "How the plan changed" not in text


@pytest.mark.req("R117", "R118")
def test_what_stands_on_contested_evidence_is_left_out_of_the_next_report(keeling: Project) -> None:
    assert keeling.run().code == 0
    assert "That is no accident of the fit" in keeling.read("report.md")
    (name,) = [one["id"] for one in ledger(keeling)["evidence"] if one["from_step"] == "forecast"]
    keeling.ok("ledger", "contest", name, "--because", "the split was chosen afterwards")
    stale = [one["from_step"] for one in ledger(keeling)["evidence"] if one["stale"]]
    assert stale == ["conclude"]
    assert keeling.run().code == 0
    text = keeling.read("report.md")
    assert "That is no accident of the fit" not in text
    assert name not in text
    assert "(contested)" in text
