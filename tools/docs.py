"""Write what comes from code into docs, then all pages as HTML into docs/_site.

The state diagram comes from the transition table of the fold, the pages of docs/reference from the
commands, the grammar and the lists of codes, so the pages cannot disagree with the code. `--check`
writes nothing and fails if one is out of date or a link leads nowhere.
"""

import argparse
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from holdfast.core.moves import TRANSITIONS
from tools.gallery import drawings
from tools.reference import generated as reference
from tools.site import DocsError, broken_links, in_order, write

BEGIN = "<!-- transitions:begin -->"
END = "<!-- transitions:end -->"


def diagram(transitions: Mapping[str, Mapping[str, str]]) -> str:
    """Draw a Mermaid diagram: one arrow per pair of phases, with the events that cause it."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for event, phases in transitions.items():
        for before, after in phases.items():
            arrows.setdefault((str(before), str(after)), []).append(str(event))
    names = dict.fromkeys(name for arrow in arrows for name in arrow)
    drawn = ["```mermaid", "stateDiagram-v2"]
    drawn += [f'    state "{name}" as {phase_id(name)}' for name in names if name != phase_id(name)]
    for (before, after), events in sorted(arrows.items()):
        label = ", ".join(sorted(events))
        drawn.append(f"    {phase_id(before)} --> {phase_id(after)} : {label}")
    return "\n".join([*drawn, "```"])


def phase_id(name: str) -> str:
    return re.sub(r"\W", "_", name)


def with_diagram(page: str, drawn: str) -> str:
    """Replace what stands between the two markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise DocsError(f'architecture.md has no "{BEGIN}" and "{END}"')
    return f"{before}{BEGIN}\n{drawn}\n{END}{after}"


def run(
    docs: Path,
    transitions: Mapping[str, Mapping[str, str]],
    generated: Mapping[str, str] = MappingProxyType({}),
    *,
    check: bool,
) -> str:
    """Bring the pages and the site up to date, or with `check` say what is not."""
    page = docs / "architecture.md"
    drawn = with_diagram(page.read_text(encoding="utf-8"), diagram(transitions))
    wanted = {page: drawn, **{docs / name: text for name, text in generated.items()}}
    for place, text in wanted.items():
        if place.is_file() and place.read_text(encoding="utf-8") == text:
            continue
        if check:
            name = place.relative_to(docs.parent)
            raise DocsError(f'"{name}" is out of date; hint: make docs')
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    pages = in_order(docs)
    broken = list(broken_links(docs, pages))
    if broken:
        raise DocsError("; ".join(broken))
    if check:
        return "docs: up to date"
    return f"docs: {write(docs, pages, docs / '_site')} pages in {docs.name}/_site"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the documentation as HTML.")
    parser.add_argument("--check", action="store_true", help="write nothing, fail if out of date")
    options = parser.parse_args(arguments)
    docs = Path(__file__).resolve().parent.parent / "docs"
    try:
        table = {
            kind: {str(a): str(b) for a, b in row.items()} for kind, row in TRANSITIONS.items()
        }
        said = run(docs, table, {**reference(), **drawings()}, check=options.check)
    except DocsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(said)
    return 0


if __name__ == "__main__":
    sys.exit(main())
