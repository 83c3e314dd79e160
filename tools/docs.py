"""Write what comes from code into docs, then all pages as HTML into docs/_site.

The state diagram comes from the transition table of the fold, the pages of docs/reference from the
commands, the grammar and the lists of codes, so the pages cannot disagree with the code. `--check`
writes nothing and fails if one is out of date or a link leads nowhere.
"""

import argparse
import html
import os
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

from markdown_it import MarkdownIt
from markdown_it.token import Token

from holdfast.core.moves import TRANSITIONS
from tools.gallery import drawings
from tools.reference import generated as reference

BEGIN = "<!-- transitions:begin -->"
END = "<!-- transitions:end -->"

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
body {{ font: 1rem/1.55 system-ui, sans-serif; }}
body {{ max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }}
nav a {{ margin-right: 1rem; }}
pre {{ overflow-x: auto; padding: .8rem; border: 1px solid #8886; border-radius: 4px; }}
code {{ font: .9em ui-monospace, monospace; }}
table {{ border-collapse: collapse; }}
th, td {{ text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; }}
tr {{ border-bottom: 1px solid #8886; }}
</style>
</head>
<body>
<nav>
{nav}
</nav>
<main>
{body}</main>
</body>
</html>
"""


class DocsError(Exception):
    """A page that cannot be written as it stands."""


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


def pages(docs: Path) -> list[Path]:
    found = sorted(p for p in docs.rglob("*.md") if "_site" not in p.relative_to(docs).parts)
    return sorted(found, key=lambda p: (p.parent != docs, p.name != "index.md"))


def parse(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text)


def title(tokens: list[Token], page: Path) -> str:
    for token, following in pairwise(tokens):
        if token.type == "heading_open" and token.tag == "h1":
            return following.content
    raise DocsError(f'"{page}" has no first heading')


def links(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield from (inner for inner in token.children or [] if inner.type == "link_open")


def is_local(address: str) -> bool:
    return not re.match(r"[a-z][a-z0-9+.-]*:|#|//", address)


def check_links(docs: Path) -> Iterator[str]:
    for page in pages(docs):
        for link in links(parse(page.read_text(encoding="utf-8"))):
            address = str(link.attrs["href"])
            if is_local(address) and not (page.parent / address.partition("#")[0]).exists():
                yield f'"{page.relative_to(docs.parent)}" links to "{address}", which is not there'


def write_site(docs: Path) -> int:
    site = docs / "_site"
    parsed = {page: parse(page.read_text(encoding="utf-8")) for page in pages(docs)}
    titles = {page: title(tokens, page) for page, tokens in parsed.items()}
    renderer = MarkdownIt("commonmark").enable("table")
    for page, tokens in parsed.items():
        target = site / page.relative_to(docs).with_suffix(".html")
        for link in links(tokens):
            address = str(link.attrs["href"])
            if is_local(address):
                link.attrs["href"] = re.sub(r"\.md(?=$|#)", ".html", address)
        top = [p for p in titles if p.parent == docs]
        nav = "\n".join(nav_link(other, page, titles[other]) for other in top)
        body = renderer.renderer.render(tokens, renderer.options, {})
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(
            PAGE.format(title=html.escape(titles[page]), nav=nav, body=body), encoding="utf-8"
        )
    return len(parsed)


def nav_link(other: Path, page: Path, name: str) -> str:
    address = Path(os.path.relpath(other.with_suffix(".html"), page.parent)).as_posix()
    return f'<a href="{html.escape(address)}">{html.escape(name)}</a>'


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
    broken = list(check_links(docs))
    if broken:
        raise DocsError("; ".join(broken))
    if check:
        return "docs: up to date"
    return f"docs: {write_site(docs)} pages in {docs.name}/_site"


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
