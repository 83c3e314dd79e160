"""Writes the pages as a site: one way through them, an index, and nothing from elsewhere.

A page stands in the section that names it below, else in that of its folder, so a new page is never lost.
Headings and the rows of reference tables can be linked to, and the index leads to both.
"""

from __future__ import annotations

import html
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ASSETS = Path(__file__).with_name("site_files")
START, HOW_TO, REFERENCE, EXPLANATION = "Start", "How to", "Reference", "Explanation"
SECTIONS: Mapping[tuple[str, str], str] = {
    (START, ""): "index tutorial gallery",
    (START, "Examples"): "",
    (HOW_TO, "Write a plan"): "write-a-plan many-items conditions sub-plans python goals"
    " agents-and-graphs other-formats",
    (HOW_TO, "Run it"): "preview-and-run what-changed understand when-things-fail"
    " failures-and-effects growing-runs change-files hand-edits keep-tidy bench-engine",
    (HOW_TO, "Look on and connect"): "page pictures mcp ci-and-scripts telemetry attest",
    (HOW_TO, "Models"): "models tools-and-judges budgets recorded-answers local-model",
    (HOW_TO, "People and what is known"): "people-decide ledger contest replan",
    (HOW_TO, "Tickets and code"): "work coding-agents bench-worker code edit git sandbox",
    (HOW_TO, "Teams"): "team push-pull cluster",
    (HOW_TO, "More"): "",
    (REFERENCE, ""): "plan-file output exit-codes glossary edits",
    (
        EXPLANATION,
        "",
    ): "architecture security trials learning scale finding-files benchmarks benchmarks-edits",
    (EXPLANATION, "Decisions"): "",
}
FOLDERS: Mapping[str, tuple[str, str]] = {
    "howto": (HOW_TO, "More"),
    "reference": (REFERENCE, ""),
    "decisions": (EXPLANATION, "Decisions"),
    "": (EXPLANATION, ""),
}
CONTENTS, TERMS = "contents.html", "terms.html"
PART, COMMAND = 2, 3  # levels of headings
LONGEST, FEWEST = 40, 3  # letters of a term that is looked up; parts of a page that has an outline


class DocsError(Exception):
    """A page that cannot be written as it stands."""


@dataclass(frozen=True)
class Page:
    """A Markdown file on its way to the site. `terms` are rows that can be linked to, by their ids."""

    source: Path
    target: str
    section: tuple[str, str]
    title: str
    tokens: list[Token]
    headings: Sequence[tuple[int, str, str]]  # level, id, text
    terms: Mapping[str, str] = field(default_factory=dict)

    @property
    def ids(self) -> set[str]:
        return {name for _, name, _ in self.headings} | set(self.terms)


def slug(text: str) -> str:
    """The id of a heading, as the hosts of repositories make it."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def sources(docs: Path) -> list[Path]:
    """All pages: those of docs, and the README of each example."""
    found = [p for p in docs.rglob("*.md") if "_site" not in p.relative_to(docs).parts]
    return sorted(found) + sorted((docs.parent / "examples").glob("*/README.md"))


def place_of(source: Path, docs: Path) -> Path:
    """Where a file stands in the site: what is outside of docs, by its path in the repository."""
    inside = source.is_relative_to(docs)
    place = source.relative_to(docs if inside else docs.parent)
    is_page = place.suffix == ".md" and (inside or place.name == "README.md")
    return place.with_suffix(".html") if is_page else place


def section_of(source: Path, docs: Path) -> tuple[str, str]:
    if not source.is_relative_to(docs):
        return START, "Examples"
    folder = source.relative_to(docs).parent.as_posix().removeprefix(".")
    for section, names in SECTIONS.items():
        if source.stem in names.split() and folder in {"", "howto"}:
            return section
    return FOLDERS.get(folder, (EXPLANATION, ""))


def parser() -> MarkdownIt:
    markdown = MarkdownIt("commonmark").enable("table")
    markdown.add_render_rule("fence", _fence)
    markdown.add_render_rule("table_open", _table_open)
    markdown.add_render_rule("table_close", _table_close)
    return markdown


def read(source: Path, docs: Path) -> Page:
    """A page with ids for its headings, and for its rows if it is one to look things up in."""
    tokens = parser().parse(source.read_text(encoding="utf-8"))
    section = section_of(source, docs)
    headings = list(_headings(tokens))
    if not headings or headings[0][0] != 1:
        raise DocsError(f'"{source}" has no first heading')
    taken = {name for _, name, _ in headings}
    terms = dict(_terms(tokens, taken)) if section[0] == REFERENCE else {}
    target = place_of(source, docs).as_posix()
    return Page(source, target, section, headings[0][2], tokens, headings, terms)


def _text(inline: Token) -> str:
    kinds = {"text", "code_inline", "html_inline"}
    return "".join(one.content for one in inline.children or [] if one.type in kinds)


def _headings(tokens: Sequence[Token]) -> Iterator[tuple[int, str, str]]:
    seen: Counter[str] = Counter()
    for token, following in pairwise(tokens):
        if token.type != "heading_open":
            continue
        name = slug(_text(following))
        token.attrs["id"] = name + (f"-{seen[name]}" if seen[name] else "")
        seen[name] += 1
        yield int(token.tag[1:]), str(token.attrs["id"]), _text(following)


def _terms(tokens: Sequence[Token], taken: set[str]) -> Iterator[tuple[str, str]]:
    """Rows whose first cell is a word or a name: what people look up."""
    for row, cell, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if row.type != "tr_open" or cell.type != "td_open":
            continue
        for term in re.split(r", ", _text(inline)):
            name = slug(term)
            if name and name not in taken and len(term) <= LONGEST:
                taken.add(name)
                row.attrs.setdefault("id", name)
                yield str(row.attrs["id"]), term
                break


def is_local(address: str) -> bool:
    return not re.match(r"[a-z][a-z0-9+.-]*:|//", address)


def links(tokens: Sequence[Token]) -> Iterator[tuple[Token, str]]:
    """Links and images, with the attribute that leads away."""
    for token in tokens:
        for inner in token.children or []:
            if inner.type in {"link_open", "image"}:
                yield inner, "href" if inner.type == "link_open" else "src"


def broken_links(docs: Path, pages: Sequence[Page]) -> Iterator[str]:
    """Links to files, headings and rows that are not there."""
    known = {page.source.resolve(): page.ids for page in pages}
    for page in pages:
        for link, key in links(page.tokens):
            address = str(link.attrs[key])
            if not is_local(address):
                continue
            name, _, fragment = address.partition("#")
            place = (page.source.parent / name).resolve() if name else page.source.resolve()
            lost = fragment and fragment not in known.get(place, {fragment})
            if lost or not place.exists():
                where = page.source.relative_to(docs.parent).as_posix()
                yield f'"{where}" links to "{address}", which is not there'


# --- rendering ----------------------------------------------------------------------------------------


def _fence(_: object, tokens: Sequence[Token], index: int, *__: object) -> str:
    """Code to copy: in a session the prompt and the answers cannot be selected."""
    token = tokens[index]
    if token.info != "console":
        return f'<pre tabindex="0"><code>{html.escape(token.content)}</code></pre>\n'
    lines = []
    for line in token.content.splitlines():
        sign, rest = line[:2], html.escape(line[2:])
        if sign in {"$ ", "> "}:
            lines.append(f'<span class="sign">{html.escape(sign)}</span><b>{rest}</b>')
        else:
            lines.append(f'<span class="said">{html.escape(line)}</span>')
    return f'<pre tabindex="0" class="session"><code>{chr(10).join(lines)}\n</code></pre>\n'


def _table_open(*_: object) -> str:
    return '<div class="table" tabindex="0"><table>\n'


def _table_close(*_: object) -> str:
    return "</table></div>\n"


def _body(page: Page, docs: Path) -> str:
    """The text of a page, its links leading to where things stand in the site."""
    for link, key in links(page.tokens):
        address = str(link.attrs[key])
        if not is_local(address) or address.startswith("#"):
            continue
        name, _, fragment = address.partition("#")
        place = place_of((page.source.parent / name).resolve(), docs.resolve())
        here = os.path.relpath(place, Path(page.target).parent)
        link.attrs[key] = Path(here).as_posix() + (f"#{fragment}" if fragment else "")
    markdown = parser()
    return str(markdown.renderer.render(page.tokens, markdown.options, {}))


def _link(target: str, here: str, words: str, more: str = "") -> str:
    name, hash_sign, fragment = target.partition("#")
    address = Path(os.path.relpath(name, Path(here).parent)).as_posix() + hash_sign + fragment
    return f'<a href="{html.escape(address)}"{more}>{html.escape(words)}</a>'


def _menu(pages: Sequence[Page], here: str) -> str:
    """All pages by section; the section of this page is open."""
    parts = []
    for kind, some in groupby(pages, key=lambda page: page.section[0]):
        inside, lines = list(some), []
        for group, members in groupby(inside, key=lambda page: page.section[1]):
            if group:
                lines.append(f"<h3>{html.escape(group)}</h3>")
            lines.append("<ul>")
            for page in members:
                now = ' aria-current="page"' if page.target == here else ""
                lines.append(f"<li>{_link(page.target, here, page.title, now)}</li>")
            lines.append("</ul>")
        is_open = kind == START or any(page.target == here for page in inside)
        opened = " open" if is_open else ""
        parts.append(f"<details{opened}><summary>{kind}</summary>{''.join(lines)}</details>")
    ways = ((CONTENTS, "Contents"), (TERMS, "Index from A to Z"))
    for target, words in ways:
        now = ' aria-current="page"' if target == here else ""
        parts.append(f"<p>{_link(target, here, words, now)}</p>")
    return "\n".join(parts)


def _outline(page: Page) -> str:
    """The headings of a long page."""
    inside = [(name, text) for level, name, text in page.headings if level == PART]
    if len(inside) < FEWEST:
        return ""
    items = "".join(f'<li><a href="#{name}">{html.escape(text)}</a></li>' for name, text in inside)
    return (
        '<nav class="outline" aria-label="On this page"><details open><summary>On this page</summary>'
        f"<ul>{items}</ul></details></nav>"
    )


def _around(pages: Sequence[Page], target: str) -> str:
    """The page before and the one after."""
    at = next((at for at, page in enumerate(pages) if page.target == target), None)
    if at is None:
        return ""
    before = pages[at - 1] if at else None
    after = pages[at + 1] if at + 1 < len(pages) else None
    one = _link(before.target, target, f"← {before.title}", ' rel="prev"') if before else ""
    other = _link(after.target, target, f"{after.title} →", ' rel="next"') if after else ""
    return (
        '<nav class="around" aria-label="Reading order">'
        f"<span>{one}</span><span>{other}</span></nav>"
    )


def _whole(pages: Sequence[Page], target: str, title: str, body: str, outline: str = "") -> str:
    up = "../" * target.count("/")
    shell = (ASSETS / "page.html").read_text(encoding="utf-8")
    filled = {
        "title": html.escape(title if title == "Holdfast" else f"{title} · Holdfast"),
        "up": up,
        "menu": _menu(pages, target),
        "outline": outline,
        "body": body,
        "around": _around(pages, target),
    }
    return re.sub(r"\{\{ (\w+) \}\}", lambda found: filled[found[1]], shell)


def _contents(pages: Sequence[Page]) -> str:
    """Every page with its headings."""
    lines = ["<h1>Contents</h1>"]
    for (kind, group), some in groupby(pages, key=lambda page: page.section):
        name = f"{kind}: {group}" if group else kind
        lines += [f'<h2 id="{slug(name)}">{html.escape(name)}</h2>', "<ul>"]
        for page in some:
            inner = [
                _link(f"{page.target}#{name}", CONTENTS, text)
                for level, name, text in page.headings
                if level == PART
            ]
            said = f'<p class="inner">{" · ".join(inner)}</p>' if inner else ""
            lines.append(f"<li>{_link(page.target, CONTENTS, page.title)}{said}</li>")
        lines.append("</ul>")
    return "\n".join(lines)


def _index(pages: Sequence[Page]) -> str:
    """Commands, keys, codes and words, from A to Z, with the pages that explain them."""
    found: dict[str, list[str]] = {}
    for page in pages:
        names = dict(page.terms)
        if page.target == "reference/commands.html":
            names |= {
                name: f"holdfast {text}" for level, name, text in page.headings if level == COMMAND
            }
        if page.target == "exit-codes.html":
            names = {name: f"exit code {text}" for name, text in names.items()}
        for name, text in names.items():
            found.setdefault(text, []).append(_link(f"{page.target}#{name}", TERMS, page.title))
    ordered = sorted(found, key=lambda text: (_first(text), _alphabetic(text)))
    letters = [letter for letter, _ in groupby(ordered, key=_first)]
    jump = " ".join(f'<a href="#{slug(one) or "signs"}">{one}</a>' for one in letters)
    lines = ["<h1>Index from A to Z</h1>", f'<p class="letters">{jump}</p>']
    for letter, some in groupby(ordered, key=_first):
        lines += [f'<h2 id="{slug(letter) or "signs"}">{letter}</h2>', "<dl>"]
        lines += [f"<dt>{html.escape(text)}</dt><dd>{', '.join(found[text])}</dd>" for text in some]
        lines.append("</dl>")
    return "\n".join(lines)


def _alphabetic(text: str) -> str:
    """Numbers by their size, words without what stands before them."""
    plain = text.removeprefix("holdfast ").lower().lstrip("-.")
    return re.sub(r"\d+", lambda found: found[0].zfill(6), plain)


def _first(text: str) -> str:
    letters = re.sub(r"[^a-zA-Z0-9]", "", text.removeprefix("holdfast "))[:1].upper()
    return letters if letters.isalpha() else "0–9"


def in_order(docs: Path) -> list[Page]:
    """All pages as one reads them: section by section, in the order that a section names."""
    kinds = list(SECTIONS)

    def rank(page: Page) -> tuple[int, int, str]:
        names = SECTIONS[page.section].split()
        at = names.index(page.source.stem) if page.source.stem in names else len(names)
        return kinds.index(page.section), at, page.title.lower()

    return sorted((read(source, docs) for source in sources(docs)), key=rank)


def write(docs: Path, pages: Sequence[Page], site: Path) -> int:
    """Write the whole site anew; how many pages it has."""
    shutil.rmtree(site, ignore_errors=True)
    site.mkdir()
    for name in ("site.css", "site.js"):
        shutil.copy(ASSETS / name, site / name)
    _copy_linked(docs, pages, site)
    made = {
        page.target: _whole(pages, page.target, page.title, _body(page, docs), _outline(page))
        for page in pages
    }
    made[CONTENTS] = _whole(pages, CONTENTS, "Contents", _contents(pages))
    made[TERMS] = _whole(pages, TERMS, "Index", _index(pages))
    for target, text in made.items():
        place = site / target
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return len(made)


def _copy_linked(docs: Path, pages: Sequence[Page], site: Path) -> None:
    """Pictures and other files that a page leads to."""
    known = {page.source.resolve() for page in pages}
    for page in pages:
        for link, key in links(page.tokens):
            address = str(link.attrs[key]).partition("#")[0]
            place = (page.source.parent / address).resolve()
            if not address or not is_local(address) or place in known or not place.is_file():
                continue
            target = site / place_of(place, docs.resolve())
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(place, target)
