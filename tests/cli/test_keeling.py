"""The example of research: a hypothesis is refuted, another plan takes over, the report cites the ledger."""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable
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


def table(value: Callable[[int], float], *, without: tuple[int, ...] = ()) -> str:
    years = (year for year in range(1960, 2020) if year not in without)
    return "year,ppm\n" + "".join(f"{year},{value(year):.2f}\n" for year in years)


def line(year: int) -> float:
    return 300 + 1.5 * (year - 1960)


def hill(year: int) -> float:
    return 300 + 3 * (year - 1960) - 0.02 * (year - 1960) ** 2


def evidence(project: Project, step: str) -> str:
    (name,) = [one["id"] for one in ledger(project)["evidence"] if one["from_step"] == step]
    return str(name)


@pytest.mark.req("R114", "R129")
def test_what_the_report_says_is_in_what_it_cites(keeling: Project) -> None:
    assert keeling.run().code == 0
    text = keeling.read("report.md")
    said = {one["from_step"]: one["finding"] for one in ledger(keeling)["evidence"]}
    for fact in ("1.598 ppm a year", "3.47 ppm", "8.40 ppm", "r = 0.98"):
        assert fact in said["straight"]
        assert fact in text
    for fact in ("0.0254 ppm", "0.70 ppm", "1.77 ppm"):
        assert fact in said["curve"]
        assert fact in text
    for fact in ("0.85 ppm", "10.77 ppm", "7.20 ppm", "the 20 from 2000"):
        assert fact in said["forecast"]
    assert "1980s 1.60, 1990s 1.57" in said["decades"]
    assert "steeper" not in text  # 1.60, then 1.57
    assert "uncertainty of about" not in text
    assert "from that ledger alone" not in text


@pytest.mark.req("R118")
def test_a_missing_year_is_told_and_refutes_what_the_first_plan_takes_for_known(
    keeling: Project,
) -> None:
    lines = keeling.read("co2.csv").splitlines(keepends=True)
    keeling.write("co2.csv", "".join(one for one in lines if not one.startswith("1975,")))
    run = keeling.run()
    assert (run.code, run.data["replaces"]["how"], len(run.states)) == (0, "prepared", 7)
    assert "a finding refutes 'the table has no holes'" in run.err
    text = keeling.read("report.md")
    assert "59 yearly means" in text
    assert "1 missing (1975)" in text
    assert "without a hole" not in text
    assert "took it for granted that the table has no holes" in text
    assert "straight line. A straight" not in text  # that is not why the plan changed


@pytest.mark.req("R118")
@pytest.mark.parametrize("without", [(), (1975, 1979)])
def test_words_follow_from_the_numbers_of_a_straight_line(
    keeling: Project, without: tuple[int, ...]
) -> None:
    assert keeling.run().code == 0  # with the plots of another table
    keeling.write("co2.csv", table(line, without=without))
    run = keeling.run()
    assert (run.code, len(run.states)) == (0, 7 if without else 5), run.err
    text = keeling.read("report.md")
    assert "it grew by 1.50 ppm a year, in a straight line" in text
    assert "NOAA" not in text  # the table does not say so
    for wrong in ("below the years", "above the years", "is a bowl", "is a hill", "its growth"):
        assert wrong not in text
    plots = {file.stem for file in (keeling.root / "plots").iterdir()}
    assert plots == set(re.findall(r"\(plots/(\w+)\.svg\)", text))
    assert plots == (PLOTS if without else PLOTS - {"forecast"})


@pytest.mark.req("R118")
def test_words_follow_from_the_numbers_of_growth_that_falls(keeling: Project) -> None:
    keeling.write("co2.csv", table(hill))
    assert keeling.run().code == 0
    text = keeling.read("report.md")
    assert "its growth fell: a straight line does not describe it" in text
    assert "0.040 ppm less than that of the year before" in text
    assert "above the years at both ends and below them in the middle" in text
    assert "is a hill" in text
    assert "the straight line runs above them" in text


@pytest.mark.req("R118")
def test_a_table_that_is_too_short_is_refused_with_words(keeling: Project) -> None:
    keeling.write("co2.csv", "year,ppm\n2000,300\n2001,301\n")
    run = keeling.run()
    assert run.code == 1
    assert "co2.csv needs at least 3 years before 2000 and 3 from then on" in run.err


@pytest.mark.req("R117", "R118")
def test_no_sentence_leans_on_one_that_is_gone(keeling: Project) -> None:
    assert keeling.run().code == 0
    keeling.ok("ledger", "contest", evidence(keeling, "curve"), "--because", "too few years")
    assert keeling.run().code == 0
    text = keeling.read("report.md")
    assert "That is no accident" not in text
    assert "From the years before 2000 alone, a parabola tells the 20 years after" in text
    assert ", in part by what is contested" in text
    keeling.ok("ledger", "contest", evidence(keeling, "decades"), "--because", "whole decades")
    assert keeling.run().code == 0
    answer = keeling.read("report.md").partition("## Answer")[2].partition("##")[0]
    assert "does not describe it. [" in answer  # without what the decades added
    assert "decade" not in answer


@pytest.mark.req("R117", "R118")
def test_a_report_of_which_all_is_contested_says_so(keeling: Project) -> None:
    assert keeling.run().code == 0
    keeling.ok("ledger", "contest", "co2.csv", "--because", "another station")
    run = keeling.run()
    assert (run.code, run.data["status"]) == (0, "completed"), run.err
    text = keeling.read("report.md")
    answer = text.partition("## Answer")[2].partition("##")[0]
    assert answer.strip() == "None: all that was found is contested."
    assert "](#e-" not in text
    assert "(contested)" in text
    assert "None: all that was found is contested." in keeling.read("report.html")
