"""What a source names: steps and entries in ordinary words, and a source however it is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.ledger import folded
from holdfast.core.said import Said
from holdfast.model.handoff import Observation, entry_id
from holdfast.model.plan import Need, Step, StepId
from holdfast.model.sources import read_source, source_name, source_names
from tests.core.test_ledger import alike, ledger, told

SAME = [
    ("gauge.csv", "./gauge.csv"),
    ("gauge.csv", "data/../gauge.csv"),
    ("gauge.csv", "file:gauge.csv"),
    ("gauge.csv", "Gauge.csv"),
    ("gauge.csv", "gauge.csv."),
    ("gauge.csv", "`gauge.csv`"),
    ("gauge.csv", '"gauge.csv"'),
    ("gauge.csv", "(“gauge.csv”)"),
    ("gauge.csv", "gauge.csv\N{ZERO WIDTH SPACE}"),
    ("gauge.csv", "gauge.csv#L3"),
    ("gauge.csv", "gauge.csv#L3-L9"),
    ("gauge.csv", "gauge.csv:12"),
    ("gauge.csv", "gauge.csv:12-14"),
    ("gauge.csv", "gauge.csv (row 3)"),
    ("gauge.csv", "gauge.csv, row 3"),
    ("gauge.csv", "gauge.csv line 3"),
    ("gauge.csv", "`gauge.csv` (rows 3-9)"),
    ("gauge.csv", "source: gauge.csv"),
    ("gauge.csv", "Source: `./gauge.csv`."),
    ("gauge.csv", "see gauge.csv"),
    ("gauge.csv", "gauge.csv and gauge.csv"),
    ("gauge.csv", "gauge.csv; gauge.csv,"),
    ("data/gauge.csv", "./data//gauge.csv"),
    ("/data/gauge.csv", "file:///data/gauge.csv"),
    ("data", "data/"),
    ("café.csv", "cafe\N{COMBINING ACUTE ACCENT}.csv"),
    ("a b", "a  b"),
    ("a b", "a\N{NO-BREAK SPACE}b"),
    ("a-b", "a\N{NON-BREAKING HYPHEN}b"),
    ("https://x.org/a", "https://x.org/a/"),
    ("https://x.org/a", "HTTPS://X.org/a"),
    ("https://x.org/a", "<https://x.org/a>."),
    ("https://x.org/a", "https://x.org/a#part-2"),
    ("Smith, 2019", "Smith (2019)"),
    ("Smith, 2019", "smith 2019."),
    ("the report, p. 3", "the report (pp. 4-5)"),
    ("the register", "The register."),
    ("https://x.org/a", "https://x.org/a (p. 3)"),
    ("https://x.org/a", "https://x.org/a, p. 3"),
    ("gauge.csv", "gauge.csv (row 3, column 5)"),
    ("gauge.csv", "gauge.csv rows 3, 5 and 7"),
    ("gauge.csv", "gauge.csv (cells A1:B12)"),
    ("gauge.csv", "gauge.csv line 3 of 12"),
    ("gauge.csv", "(gauge.csv, row 3)"),
    ("the report, p. 3", "the report (pp. 12f.)"),
]
OTHER = [
    ("Smith, 2019", "Jones, 2019"),
    ("Smith, 2019", "Smith, 2020"),
    ("https://x.org/a?b=1,2", "https://y.org/q?b=7,2"),
    ("https://x.org/a", "https://x.org/A"),
    ("https://x.org/a", "http://x.org/a"),
    ("https://x.org/?q=1", "https://x.org/?q=2"),
    ("/data/gauge.csv", "gauge.csv"),
    ("../gauge.csv", "gauge.csv"),
    ("gauge.csv", "gauge.tsv"),
    ("gauge1", "gauge2"),
    ("ISO 9001:2015", "ISO 9001:2008"),
    ("repo#12", "repo#13"),
    ("next.js#12", "next.js#13"),
    ("metro line 5", "metro line 6"),
    ("metro (line 5)", "metro (line 6)"),
    ("figure 3", "figure 4"),
    ("sample 3", "sample 4"),
    ("report (May)", "report (June)"),
    ("v1.2", "v1.3"),
    ("10.1000/xyz", "10.1000/xyy"),
    ("C++", "C"),
    ("12", "13"),
    ("db.local:5432", "db.local:5433"),
    ("db.local:5432", "db.local"),
]


@pytest.mark.req("R128")
@pytest.mark.parametrize(("one", "other"), SAME)
def test_a_source_is_one_however_it_is_written(one: str, other: str) -> None:
    """It counts once, and falls with a contest in either spelling."""
    assert len({source_names(one), source_names(other)}) == 1
    seen = (Observation("x", one, 0.6, ("wet",)), Observation("y", other, 0.6, ("wet",)))
    found = ledger(told("s", observed=seen), wet="untested")
    assert found.hypotheses["wet"].confidence_for == pytest.approx(0.6)
    (name,) = source_names(one)
    for entry in (name, source_name(other)):
        doubted = ledger(told("s", observed=seen), said=[Said("contest", entry, "no")])
        assert [one.contested for one in doubted.evidence] == ["no", "no"], entry


@pytest.mark.req("R128")
@pytest.mark.parametrize(("one", "other"), OTHER)
def test_what_is_written_otherwise_is_another_source(one: str, other: str) -> None:
    assert not {*source_names(one)} & {*source_names(other)}
    seen = (Observation("x", one, 0.6, ("wet",)), Observation("y", other, 0.6, ("wet",)))
    found = ledger(told("s", observed=seen), wet="untested")
    assert found.hypotheses["wet"].confidence_for == pytest.approx(0.84)


LISTS = {
    "a.csv and b.csv": ("a.csv", "b.csv"),
    "b.csv & a.csv": ("b.csv", "a.csv"),
    "https://x.org/a,b, c.csv": ("https://x.org/a,b", "c.csv"),
    "https://x.org/a,https://y.org/b": ("https://x.org/a", "https://y.org/b"),
    "https://x.org/a; https://y.org/b": ("https://x.org/a", "https://y.org/b"),
    "Smith and Jones, 2019, a.csv": ("smith and jones 2019", "a.csv"),
    "gauge.csv, line 3; letter.txt": ("gauge.csv", "letter.txt"),
    "x.csv row 3 and y.csv row 5": ("x.csv", "y.csv"),
    "x.csv rows 3 and 5 and y.csv": ("x.csv", "y.csv"),
    "a.csv table 1 and b.csv": ("a.csv", "b.csv"),
    "a.csv line 3 vs b.csv": ("a.csv", "b.csv"),
    "a.csv (row 3) vs. https://x.org/b (p. 4)": ("a.csv", "https://x.org/b"),
    "a.csv row 3; b.csv:12": ("a.csv", "b.csv"),
    "(x.csv, y.csv)": ("x.csv", "y.csv"),
    "[x.csv; y.csv]": ("x.csv", "y.csv"),
    "(x.csv), (y.csv)": ("x.csv", "y.csv"),
    "{x.csv\ny.csv}": ("x.csv", "y.csv"),
    "2019": ("2019",),
    "...": ("...",),
    "": (),
}


@pytest.mark.parametrize(("source", "names"), LISTS.items())
def test_a_list_of_sources_is_read_one_by_one(source: str, names: tuple[str, ...]) -> None:
    assert source_names(source) == names


WORDS = [
    "search",
    "step search",
    "Step search",
    "steps search",
    "Search",
    "SEARCH",
    "search.",
    "search:",
    "search/",
    "`search`",
    "'search'",
    "(search)",
    "[search]",
    "from search",
    "From step `search`.",
    "see search",
    "source: search",
    "step: search",
    "handoff of search",
    "the handoff of step search",
    "output of search",
    "results from search",
    "search's handoff",
    "steps.search.output",
    "artifact:search",
    "search\N{ZERO WIDTH SPACE}",
    "search (p. 3)",
    "search (row 3)",
    "search (line 3)",
    "search, line 3",
    "search p. 3",
    "results of search (p. 2)",
    "search:12",
    "search#L3",
    "search#L3-L9",
    "(search, ID)",
    "[search; ID]",
    "the output of search and search's findings",
    "ID",
    "(ID)",
    "ID.",
    "see ID",
    "as ID says",
    "told in ID",
    "ID/ID",
    "ID\N{ZERO WIDTH SPACE}",
    "e\N{NON-BREAKING HYPHEN}HEX",
    "search and ID",
]


@pytest.mark.req("R128")
@pytest.mark.parametrize("words", WORDS)
def test_a_step_that_is_named_in_ordinary_words_bounds_what_stands_on_it(words: str) -> None:
    base = Observation("base", "reg.csv", 0.5, ("wet",))
    name = entry_id("e", StepId("search"), base.finding, base.source)
    source = words.replace("ID", name).replace("HEX", name[2:])
    seen = (Observation("it follows", source, 0.9, ("wet",)),)
    given_ = (told("search", observed=(base,)), told("syn", 1, observed=seen))
    steps = {one.step: Step(one.step) for one in given_}
    steps[StepId("syn")] = Step(StepId("syn"), needs=(Need(StepId("search")),))
    found = folded(given_, alike, {"wet": "untested"}, steps=steps)
    assert found.hypotheses["wet"].confidence_for == 0.5
    said = [Said("contest", "reg.csv", "no")]
    assert folded(given_, alike, steps=steps, said=said).evidence[-1].stale


MIXED = {
    "search and gauge": (("search",), ("gauge",)),
    "gauge.csv and search": (("search",), ("gauge.csv",)),
    "output of search and gauge.csv": (("search",), ("gauge.csv",)),
    "the register and the output of search": (("search",), ("the register",)),
    "search (p. 3) and gauge.csv row 5": (("search",), ("gauge.csv",)),
    "search and rescue teams": ((), ("search and rescue teams",)),
    "search line 5": ((), ("search line 5",)),
    "(search, gauge.csv)": (("search",), ("gauge.csv",)),
    "search+": ((), ("search+",)),
    "search++": ((), ("search++",)),
    "search+two": (("search", "two"), ()),
    "search + gauge": (("search",), ("gauge",)),
    "search, 2019": (("search",), ()),
    "the search of 2019": ((), ("the search of 2019",)),
    "search engines": ((), ("search engines",)),
    "research": ((), ("research",)),
    "https://x.org/search": ((), ("https://x.org/search",)),
    "search.csv": ((), ("search.csv",)),
    "https://x.org/e-0123456789ab": ((), ("https://x.org/e-0123456789ab",)),
    "Two": ((), ("two",)),
}


@pytest.mark.parametrize(("source", "read"), MIXED.items())
def test_a_word_that_only_holds_a_name_is_a_plain_source(
    source: str, read: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    """Nor is a step meant by a name that two have in other capital letters."""
    steps = ("search", "two", "TWO", "e-0123456789ab")

    def meant(name: str) -> str:
        fits = [one for one in steps if one.casefold() == name.casefold()]
        return name if name in steps else fits[0] if len(fits) == 1 else ""

    assert read_source(source, meant) == read


@given(st.text(max_size=60))
def test_the_name_of_a_source_is_its_own(source: str) -> None:
    assert source_name(source_name(source)) == source_name(source)


@given(st.from_regex(r"[a-z0-9_./:#() -]{1,20}", fullmatch=True))
def test_a_plain_name_is_its_own(source: str) -> None:
    assert source_name(source_name(source)) == source_name(source)


@pytest.mark.req("R128", "R129")
@pytest.mark.parametrize("entry", ["c.csv, b.csv", "b.csv and c.csv", "(c.csv; ./b.csv)"])
def test_a_list_is_contested_in_whatever_order_it_is_written(entry: str) -> None:
    """Who names one of its sources alone is about another finding, and stays."""
    seen = (Observation("x", "b.csv and c.csv"), Observation("y", "b.csv"))
    found = ledger(told("s", observed=seen), said=[Said("contest", entry, "no")])
    assert [one.contested for one in found.evidence] == ["no", ""]


def test_the_name_of_a_list_reads_as_the_list() -> None:
    assert source_name("b.csv & a.csv") == source_name("a.csv, b.csv") == "a.csv, b.csv"
    assert source_name("row 3, a.csv") == "row 3, a.csv"


def test_a_source_of_any_length_is_read_at_once() -> None:
    for text in ("a" * 100_000, "a." * 50_000, "(" * 100_000, "a, " * 30_000, "x:1" * 30_000):
        assert source_names(text)
    for text in ("row 1" * 190, "a.b/" * 240, "1:2-" * 240, "((a.b 1 " * 120, "see " * 240):
        assert source_names(text)
