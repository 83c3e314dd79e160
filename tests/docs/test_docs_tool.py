from pathlib import Path

import pytest

from tools.docs import BEGIN, END, diagram, run
from tools.site import DocsError

TABLE = {
    "attempt_started": {"ready": "running", "held-back": "running"},
    "attempt_accepted": {"running": "done"},
    "attempt_adopted": {"running": "done"},
}

DRAWN = """```mermaid
stateDiagram-v2
    state "held-back" as held_back
    held_back --> running : attempt_started
    ready --> running : attempt_started
    running --> done : attempt_accepted, attempt_adopted
```"""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "index.md").write_text("# Start <here>\n\n[map](architecture.md#law)\n")
    (folder / "architecture.md").write_text(f"# Map\n\n{BEGIN}\nold\n{END}\n\n## Law\n")
    return folder


def test_the_diagram_has_one_arrow_per_pair_of_phases() -> None:
    assert diagram(TABLE) == DRAWN


def test_the_diagram_replaces_what_stands_between_the_markers(docs: Path) -> None:
    assert run(docs, TABLE, check=False) == "docs: 4 pages in docs/_site"
    page = (docs / "architecture.md").read_text()
    assert page == f"# Map\n\n{BEGIN}\n{DRAWN}\n{END}\n\n## Law\n"
    assert run(docs, TABLE, check=True) == "docs: up to date"


def test_an_old_diagram_fails_the_check_and_is_left_alone(docs: Path) -> None:
    before = (docs / "architecture.md").read_text()
    with pytest.raises(DocsError, match="out of date"):
        run(docs, TABLE, check=True)
    assert (docs / "architecture.md").read_text() == before


def test_links_between_pages_lead_to_the_written_pages(docs: Path) -> None:
    run(docs, TABLE, check=False)
    page = (docs / "_site" / "index.html").read_text()
    assert '<a href="architecture.html#law">map</a>' in page
    assert '<a href="architecture.html">Map</a>' in page
    assert "<title>Start &lt;here&gt; · Holdfast</title>" in page


def test_a_link_to_nowhere_is_named(docs: Path) -> None:
    (docs / "index.md").write_text("# Start\n\n[gone](gone.md)\n")
    with pytest.raises(DocsError, match=r'"docs/index.md" links to "gone.md"'):
        run(docs, TABLE, check=False)


def test_a_link_to_a_part_that_is_not_there_is_named(docs: Path) -> None:
    (docs / "index.md").write_text("# Start\n\n[gone](architecture.md#chaos)\n")
    with pytest.raises(DocsError, match=r"architecture\.md#chaos"):
        run(docs, TABLE, check=False)


def test_a_page_without_markers_is_refused(docs: Path) -> None:
    (docs / "architecture.md").write_text("# Map\n")
    with pytest.raises(DocsError, match="has no"):
        run(docs, TABLE, check=False)


def test_a_generated_page_is_written_and_an_old_one_fails_the_check(docs: Path) -> None:
    pages = {"reference/codes.md": "# Codes\n"}
    run(docs, TABLE, pages, check=False)
    assert (docs / "reference" / "codes.md").read_text() == "# Codes\n"
    assert (docs / "_site" / "reference" / "codes.html").is_file()
    assert run(docs, TABLE, pages, check=True) == "docs: up to date"
    (docs / "reference" / "codes.md").write_text("# Codes by hand\n")
    with pytest.raises(DocsError, match=r'"docs/reference/codes.md" is out of date'):
        run(docs, TABLE, pages, check=True)
